"""The page of a run: one HTML file whose figures are those of the JSON, with a timeline and a replay, in a browser."""

import html
import json
import random
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given

from orchtrace_corpus.trace.analysis.replay import replay
from orchtrace_corpus.trace.diagnosis import diagnose
from orchtrace_corpus.trace.diagnosis.comparison import compare, largest_first
from orchtrace_corpus.trace.model.trace import Trace
from orchtrace_corpus.trace.page import page
from orchtrace_corpus.trace.page.columns import axis_breaks, columns, wait_intervals
from orchtrace_corpus.trace.page.tables import Figure, Name, Table, Tables
from orchtrace_corpus.trace.render.names import agent_names, duration
from orchtrace_corpus.trace.render.sentences import Sentences
from orchtrace_corpus.trace.view import TraceView
from tests.browser import Browser, _browser, browser, markup_errors  # noqa: F401
from tests.conftest import ROOT, run_corpus
from tests.effort import tries
from tests.trace.test_import import SESSION
from tests.trace.traces import documents, event, example, raw, trace

FINDINGS = ROOT / "tests" / "data" / "findings"
HOSTILE = "</script><script>document.title = 'run'</script><img src=x onerror=document.title='run'>"
LARGEST = [
    "elapsed: 20\xa0s in A, 10\xa0s in B (-50%)",
    "tokens: 8,240 in A, 4,520 in B (-45%)",
    "events of the model small: 6 in A, 0 in B (-100%)",
    "sub-decisions to delegate: 4 in A, 0 in B (-100%)",
    "worked: 35\xa0s in A, 12\xa0s in B (-66%)",
]
FIRST_LABELS = ["reward agent", "reward orchestration", "reward role", "reward team"]
HALF_LINE = "${alert(1)} ‮ 'n\" {{ 7 * 7 }} \u2028"


def small() -> Trace:
    """A lead that asks a person, spawns a worker, waits for it, and is answered; the worker's call stays open long."""
    return trace(
        raw(
            [
                event("ask", 10, "human_intervention", "user", t_end=10, to="lead"),
                event("plan", 10, "inference", "lead", t_end=12, model="large", tokens={"input": 100, "output": 20}),
                event("s", 12, "spawn", "lead", to="w", role="helper"),
                event("think", 13, "inference", "w", t_end=14.5, model="small"),
                event("run", 14.5, "tool_call", "w", tool="Bash", call_id="c1", cost_usd=0.25),
                event(
                    "ran", 414.5, "tool_result", "w", tool="Bash", call_id="c1", status="error", error_type="timeout"
                ),
                event("r", 415, "return", "w", to="lead"),
                event("end", 415, "inference", "lead", t_end=416, model="large", tokens={"input": 300}, cost_usd=0.5),
                event("stop", 416, "stop", "lead"),
            ],
            "ask>plan plan>s s>think:spawn think>run run>ran:tool_dependency ran>r r>end:return end>stop",
            agents=[{"id": "user", "kind": "human"}],
        )
    )


def made_columns(run: Trace | TraceView, *, with_content: bool = False) -> dict[str, Any]:
    diagnosis = diagnose(run)
    found = columns(diagnosis, Sentences(diagnosis).names, with_content=with_content)
    return dict(json.loads(json.dumps(found)))  # as the script has it


def test_a_run_as_columns() -> None:
    assert made_columns(small()) == {
        "unit": "s",
        "elapsed": 406.0,
        "types": ["orchestrator_decision", "spawn", "despawn", "message", "tool_call", "tool_result", "return",
                  "aggregate", "human_intervention", "safety_event", "stop", "inference"],
        "statuses": ["ok", "error", "cancelled", "unknown"],
        "agents": {
            "name": ["user", "lead", "w (helper)"],
            "id": ["user", "lead", "w"],
            "depth": [0, 0, 1],
            "begin": [0, 0, 2],
            "end": [0, 406, 405],
            "person": [1, 0, 0],
            "role": [0, 0, 1],
            "group": -1,
        },
        "events": {
            "id": ["ask", "plan", "s", "think", "run", "ran", "r", "end", "stop"],
            "agent": [0, 1, 1, 2, 2, 2, 2, 1, 1],
            "type": [8, 11, 1, 11, 4, 5, 6, 11, 10],
            "status": [3, 3, 3, 3, 3, 1, 3, 3, 3],
            "start": [0, 0, 2, 3, 4.5, 404.5, 405, 405, 406],
            "took": [0, 2, 0, 1.5, 400, 0, 0, 1, 0],
            "flags": [0, 1, 0, 1, 3, 0, 0, 1, 0],  # works; the call is open, too
            "tool": [0, 0, 0, 0, 2, 2, 0, 0, 0],
            "model": [0, 3, 0, 4, 0, 0, 0, 3, 0],
            "target": [5, 0, 6, 0, 0, 0, 5, 0, 0],
            "error": [0, 0, 0, 0, 0, 7, 0, 0, 0],
            "file": 0,
            "line": 0,
        },
        "edges": [[0, 1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4, 5, 6, 7, 8]],
        "arrows": {"event": [2, 6], "agent": [2, 1], "arrival": [3, 405]},
        "critical": {
            "event": [0, 1, 2, 3, 4, 5, 6, 7, 8],
            "worked": [0, 2, 0, 1.5, 400, 0, 0, 1, 0],
            "gap": [0, 0, 0, 1, 0, 0, 0.5, 0, 0],
        },
        "waits": {"agent": [1], "awaited": [2], "begin": [2], "end": [405]},
        "replay": {
            "tokens": [0, 120, 0, None, 0, 0, 0, 300, 0],
            "cost": [None, None, None, None, 0.25, None, None, 0.5, None],
            "live": [[0, 1, 2, 8], [8, 5, 6, 5]],
            "calls": [[4, 5], [4, 4]],
            "messages": [[], []],
        },
        "strings": ["", "helper", "Bash", "large", "small", "lead", "w (helper)", "timeout", "user"],
    }  # fmt: skip


def test_an_answer_without_tokens_is_unknown_in_the_columns_wherever_it_stands() -> None:
    answers = [event(f"e{index}", index, "inference", "a", t_end=index + 1, **more)
               for index, more in enumerate(({}, {"tokens": {"input": 5}}, {}))]  # fmt: skip
    edges = "e0>e1 e1>e2"

    assert made_columns(trace(raw(answers, edges)))["replay"]["tokens"] == [None, 5, None]


def test_the_tables_of_a_run() -> None:
    diagnosis = diagnose(small())
    tables = Tables(diagnosis, Sentences(diagnosis).names)
    found = {one.title: shown(one) for one in [tables.figures(), tables.agents(), *tables.between()]}
    problems = [shown(one) for one in tables.problems()]
    by_role = next(shown(one) for one in tables.ledger() if one.title == "Tokens by role")
    tokens = next(row for row in shown(tables.measures()) if row[0] == "tokens")

    assert {row[3] for row in shown(tables.measures())} == {"unit", "s", "token", "usd", ""}  # no unit "1"
    assert [row[by_role[0].index("tokens")] for row in by_role[1:]] == ["420 = 420", ""]
    assert tokens[:2] == ["tokens", "at least 420 = 420"]
    assert found["Figures"] == [
        ["figure", "if open calls worked", "if they only waited"],
        ["elapsed", "6 min 46 s = 406", ""],
        ["waited for people", "0 s = 0", ""],
        ["worked", "6 min 44 s = 404.5", "4.5 s = 4.5"],
        ["longest path of work", "6 min 44 s = 404.5", "4.5 s = 4.5"],
        ["speed-up", "0.996 = 0.996305418719", "0.0111 = 0.0110837438424"],
        ["most at once", "1 = 1", "1 = 1"],
        ["several at work", "0.0% = 0", "0.0% = 0"],
        ["one at work", "99.6% = 0.996305418719", "1.1% = 0.0110837438424"],
        ["nobody at work", "0.4% = 0.00369458128079", "98.9% = 0.988916256158"],
        ["events", "9 = 9", ""],
        ["errors", "1 = 1", ""],
        ["agents", "2 = 2", ""],
        ["tokens", "at least 420 = 420", ""],
        ["cost in USD", "at least 0.7500 = 0.75", ""],
    ]
    assert found["Agents"] == [
        ["agent", "role", "elapsed", "worked", "waited for agents", "idle", "open calls", "tokens", "USD",
         "worked, with all below", "tokens, with all below", "USD, with all below"],
        ["user", "", "0 s = 0", "0 s = 0", "0 s = 0", "0 s = 0", "", "", "", "0 s = 0", "", ""],
        ["lead", "", "6 min 46 s = 406", "3 s = 3", "6 min 42 s = 401.5", "1.5 s = 1.5", "", "420 = 420",
         "0.5000 = 0.5", "6 min 44 s = 404.5", "at least 420 = 420", "at least 0.7500 = 0.75"],
        ["> w (helper)", "helper", "6 min 43 s = 403", "6 min 42 s = 401.5", "0 s = 0", "1.5 s = 1.5",
         "6 min 40 s = 400", "", "at least 0.2500 = 0.25", "6 min 42 s = 401.5", "", "at least 0.2500 = 0.25"],
    ]  # fmt: skip
    assert found["Waits"] == [
        ["agent", "waited for", "time", "until"],
        ["lead", "w (helper)", "6 min 43 s = 403", "end"],
    ]
    assert found["Open calls"] == [
        ["event", "agent", "tool", "open", "why"],
        ["run", "w (helper)", "Bash", "6 min 40 s = 400", "long"],
    ]
    assert ["waited", "0 = 0", "", "s", "for people"] in shown(tables.measures())
    assert problems[0] == [["event", "agent", "what", "error"], ["ran", "w (helper)", "tool result Bash", "timeout"]]
    assert [row[0] for row in shown(tables.events())[1:]] == ["run", "ran", "end"]


def test_the_waits_that_stated_turns_imply_have_a_table() -> None:
    calls = [event(name, t, "tool_call", "main", tool="Bash", t_end=t + 600) for name, t in (("a", 0), ("b", 600))]
    turn = {"agent": "main", "t": 0, "t_end": 1200, "run_time": 600}
    diagnosis = diagnose(trace(raw(calls, turns=[turn])))

    found = {table.title: shown(table) for table in Tables(diagnosis, Sentences(diagnosis).names).between()}

    assert found["Waits for people within turns"] == [
        ["event", "agent", "tool", "waited at least", "at most", "all of the turn"],
        ["a", "main", "Bash", "0 s = 0", "10 min = 600", "10 min = 600"],
        ["b", "main", "Bash", "0 s = 0", "10 min = 600", "10 min = 600"],
    ]


def test_of_many_agents_those_that_worked_most_are_in_the_table_below_their_parents() -> None:
    spawned = [
        event(f"s{n}", n, "spawn", "lead" if n % 3 else f"w{n - 1}" if n else "lead", to=f"w{n}") for n in range(1500)
    ]
    worked = [event(f"i{n}", 1500, "inference", f"w{n}", t_end=1500 + (n % 7) * 10) for n in range(1500)]
    diagnosis = diagnose(trace(raw([event("first", 0, "inference", "lead", t_end=0), *spawned, *worked])))
    found = Tables(diagnosis, Sentences(diagnosis).names).agents()
    rows = shown(found)[1:]
    below = float(rows[0][-1].rpartition(" = ")[2])

    assert len(rows) == 1000
    assert [note for note in found.notes if "agents that worked most" in note] == [
        "The 1,000 of 1,501 agents that worked most, with all below them. corpus trace doctor --format json has all."
    ]
    assert below == sum((n % 7) * 10 for n in range(1500))
    depths = [row[0].count("> ") for row in rows]
    assert depths[0] == 0
    assert all(later <= earlier + 1 for earlier, later in pairwise(depths))
    assert max(depths) == 2


def shown(table: Table) -> list[list[str]]:
    """The columns and rows of a table as texts; of numbers, exact values as well."""

    def text(cell: Any) -> str:
        if isinstance(cell, Figure):
            return f"{cell.text} = {cell.value:.12g}".replace("\u00a0", " ")
        if isinstance(cell, Name):
            return f"{'> ' * cell.depth}{cell.text}"
        return cell if isinstance(cell, str) else ", ".join(link.text for link in cell)

    return [list(table.columns), *([text(cell) for cell in row] for row in table.rows)]


@given(documents())
def test_the_single_waits_add_up_to_those_of_the_diagnosis(document: dict[str, Any]) -> None:
    diagnosis = diagnose(trace(document))
    found: dict[tuple[str, str], float] = {}
    for one in wait_intervals(diagnosis):
        found[one.agent, one.awaited] = found.get((one.agent, one.awaited), 0.0) + one.end - one.begin

    assert found == pytest.approx({(one.agent, one.awaited): one.seconds for one in diagnosis.team_findings.waits})


@given(documents())
def test_comings_and_goings_give_the_states_of_the_replay(document: dict[str, Any]) -> None:
    run = trace(document)
    found = made_columns(run)
    there: dict[str, set[int]] = {"live": set(), "calls": set(), "messages": set()}
    for state in replay(run):
        for what, names in there.items():
            names.symmetric_difference_update(
                name for step, name in zip(*found["replay"][what], strict=True) if step == state.step - 1
            )
        assert {found["strings"][name] for name in there["live"]} == set(state.live)
        assert {found["events"]["id"][name] for name in there["calls"]} == set(state.open_calls)
        assert {found["events"]["id"][name] for name in there["messages"]} == set(state.in_flight)


def test_a_column_of_one_value_is_that_value() -> None:
    found = made_columns(example("unknown"))

    assert found["events"]["file"] == 0
    assert found["events"]["line"] == 0


# The command


def test_doctor_writes_a_page_and_says_so(tmp_path: Path) -> None:
    wanted, other = tmp_path / "run.html", tmp_path / "other.html"
    swarm = str(ROOT / "data" / "traces" / "swarm.json")

    result = run_corpus("trace", "doctor", swarm, "--html", str(wanted))
    again = run_corpus("trace", "show", swarm, "--html", str(other))
    third = run_corpus("trace", "doctor", swarm, "--html", str(wanted))

    assert (result.code, result.stdout, result.stderr) == (0, "", f"wrote {wanted}\n")
    assert again.code == 0
    assert other.read_bytes() == wanted.read_bytes()
    assert third.code == 3
    assert "exists already" in third.stderr


def test_diff_writes_the_page_of_two_runs(tmp_path: Path) -> None:
    wanted, other = tmp_path / "diff.html", tmp_path / "doctor.html"
    runs = [str(ROOT / "data" / "traces" / name) for name in ("swarm.json", "hierarchical.json")]

    result = run_corpus("trace", "diff", *runs, "--html", str(wanted), "--exit-code")
    run_corpus("trace", "doctor", *runs, "--html", str(other))
    refused = run_corpus("trace", "diff", *runs, "--html", str(tmp_path / "x.html"), "--format", "csv")

    assert (result.code, result.stdout) == (1, "")
    assert result.stderr.endswith(f"wrote {wanted}\n")
    assert wanted.read_bytes() == other.read_bytes()
    assert refused.code == 2
    assert "--html and --format csv contradict each other" in refused.stderr


def test_what_no_page_can_be_is_refused(tmp_path: Path) -> None:
    swarm, out = str(ROOT / "data" / "traces" / "swarm.json"), str(tmp_path / "run.html")

    three = run_corpus("trace", "doctor", swarm, swarm, swarm, "--html", out)
    both = run_corpus("trace", "doctor", swarm, "--html", out, "--format", "json")
    content = run_corpus("trace", "show", swarm, "--content")
    compared = run_corpus("trace", "doctor", swarm, swarm, "--content")
    listed = run_corpus("trace", "doctor", "--list", "--html", out)
    event_ = run_corpus("trace", "show", swarm, "--event", "s1", "--html", out)

    assert [one.code for one in (three, both, content, listed, event_)] == [2, 2, 2, 2, 2]
    assert "--event and --html contradict each other" in event_.stderr
    assert "a page shows one run or two, and there are more" in three.stderr
    assert "--html and --format json contradict each other" in both.stderr
    assert "--content says what is in a page, and no page is asked for" in content.stderr
    assert compared.code == 2
    assert "a comparison shows no content" in compared.stderr
    assert not list(tmp_path.iterdir())


def test_what_was_said_is_in_the_page_only_on_request(tmp_path: Path) -> None:
    said = "Find where the checkout rounds prices."
    assert said in next(SESSION.glob("*.jsonl")).read_text(encoding="utf-8")
    without, with_it = tmp_path / "without.html", tmp_path / "with.html"

    run_corpus("trace", "doctor", str(SESSION), "--html", str(without))
    run_corpus("trace", "doctor", str(SESSION), "--html", str(with_it), "--content")

    assert said not in without.read_text(encoding="utf-8")
    assert "Nothing of what was said or written in the run is in this file." in without.read_text(encoding="utf-8")
    assert said in with_it.read_text(encoding="utf-8")
    assert "The contents of the log are in this file." in with_it.read_text(encoding="utf-8")


def test_who_wants_no_page_pays_for_none() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from orchtrace_corpus.cli.main import run; "
        f"run(['trace', 'doctor', {str(ROOT / 'data' / 'traces' / 'swarm.json')!r}]); "
        "sys.exit(any(name in sys.modules for name in ('jinja2', 'orchtrace_corpus.trace.page')))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_the_page_says_what_the_screen_says_and_links_to_events_instead_of_naming_a_command() -> None:
    diagnosis = diagnose(trace(json.loads((FINDINGS / "repeated_call.json").read_text(encoding="utf-8"))))
    (summary,) = re.findall(r'<dl class="sentences">(.*?)</dl>', page([diagnosis]), re.DOTALL)
    said = re.findall(r"<d[td]>(.*?)</d[td]>", summary)
    sentences = Sentences(diagnosis)
    wanted = [(label, text) for label, text in (*sentences.paragraphs(), *sentences.lever()) if label != "More"]

    assert any("--event" in text for _, text in sentences.paragraphs())
    assert [html.unescape(one) for one in said] == [
        part.replace("\ue000", "\u00a0").replace(" -> ", " → ") for pair in wanted for part in pair if part
    ]


def test_errors_are_unknown_in_the_figures_where_no_call_has_a_status() -> None:
    (errors,) = (row for row in shown(Tables(diagnose(example("swarm")), {}).figures()) if row[0] == "errors")

    assert errors == ["errors", "unknown"]


def test_a_page_of_two_runs_begins_with_which_is_faster() -> None:
    swarm, chain = (diagnose(example(name)) for name in ("swarm", "hierarchical"))

    assert '</h1>\n<p class="head">B took 10 s less than A: 10 s, not 20 s.</p>' in page([swarm, chain])
    assert "took" not in page([swarm]).partition("</h1>")[2].partition("<figure")[0]


def test_a_page_of_two_runs_says_the_five_largest_differences_in_words_and_has_them_all_with_labels() -> None:
    text = page([diagnose(example(name)) for name in ("swarm", "hierarchical")])
    (largest,) = re.findall(r'<ol class="largest">(.*?)</ol>', text, re.DOTALL)
    (table_,) = re.findall(r'<table id="a-what-differs">(.*?)</table>', text, re.DOTALL)

    assert re.findall(r"<li>(.*?)</li>", largest) == LARGEST
    assert re.findall(r'<th scope="col"[^>]*>(.*?)</th>', table_) == ["what", "A", "B", "change", "unit", "part"]
    assert re.findall(r'<th scope="row">(.*?)</th>', table_)[:4] == FIRST_LABELS


def test_the_first_thing_on_a_page_is_a_title_four_figures_and_the_timeline() -> None:
    text = page([diagnose(small())])
    top, _, below = text.partition("<main")[2].partition('id="a-lanes"')
    figures = re.findall(r"<dt>(.*?)</dt><dd><b>(.*?)</b>(?: <span class=\"muted\">(.*?)</span>)?", top)

    assert "<h1>A run of 2 agents, 6\u00a0min\u00a046\u00a0s</h1>" in top
    assert figures == [
        ("elapsed", "6\u00a0min\u00a046\u00a0s", ""),
        ("agents", "2", "one at work at a time, 1 error"),
        ("tokens", "at least 420", "model large"),
        ("cost in USD", "at least 0.7500", "not all costs are known"),
    ]
    saving = "Up to 6 min 40 s of 6 min 46 s could be saved: Bash in w (helper), perhaps waiting."
    assert f'<p class="head">{saving}</p>' in top.replace("\u00a0", " ")
    assert "<table" not in top
    assert below.index('id="summary"') < below.index('id="calls"') < below.index('id="figures"')


def test_time_waited_for_people_is_a_part_of_the_time_on_the_clock_and_none_of_the_time_running() -> None:
    events = [
        event("a", 0, "inference", "x", t_end=60),
        event("h", 60, "human_intervention", "user", t_end=660),
        event("b", 660, "inference", "x", t_end=690),
    ]
    run = trace(raw(events, "a>h h>b", agents=[{"id": "user", "kind": "human"}]))
    text = page([diagnose(run)])
    figures = re.findall(r"<dt>(.*?)</dt><dd><b>(.*?)</b>(?: <span class=\"muted\">(.*?)</span>)?", text)

    assert figures[:2] == [
        ("on the clock", "11\u00a0min\u00a030\u00a0s", "10\u00a0min of it waiting for people"),
        ("running", "1\u00a0min\u00a030\u00a0s", "on the timeline below"),
    ]
    assert "1\u00a0min\u00a030\u00a0s elapsed, not counting 10\u00a0min waiting for people." in text
    assert "Elapsed leaves out the time waited for people." in text
    alone = trace(raw([event("a", 0, "inference", "x", t_end=60)]))
    both = page([diagnose(alone), diagnose(run)])
    assert "<li>waited for people: 0\u00a0s in A, 10\u00a0min in B</li>" in both
    assert " On the clock, waiting for people included: A 1\u00a0min, B 11\u00a0min\u00a030\u00a0s.</p>" in both


def legend_of(*runs: Trace) -> list[str]:
    (legend,) = re.findall(r'<ul class="legend">(.*?)</ul>', page([diagnose(run) for run in runs]), re.DOTALL)
    return re.findall(r"</span> (.*?)</li>", legend)


def test_the_legend_explains_what_occurs_and_nothing_else() -> None:
    thinking = trace(raw([event("a", 0, "inference", "x", t_end=4)]))
    plain = ["model", "critical path", "other event", "number of events"]
    full = ["model", "tool", "open call, perhaps waiting", "waits for another agent", "critical path", "spawn",
            "return, end or stop", "other event", "number of events", "error", "axis broken"]  # fmt: skip

    assert legend_of(thinking) == plain
    assert legend_of(small()) == full
    assert legend_of(thinking, small()) == full
    assert 'hidden><input type="checkbox" data-show="messages">' in page([diagnose(small())])
    assert 'hidden><input type="checkbox" data-show="messages">' not in page([diagnose(example("mixed"))])


def test_two_runs_that_are_alike_say_so() -> None:
    text = page([diagnose(small()), diagnose(small())])

    assert "<p>Nothing but ids, times of single events and contents.</p>" in text
    assert "All differences" not in text


def test_the_title_is_the_task_only_where_contents_are_allowed() -> None:
    document = json.loads(msgspec.json.encode(small()))
    document["events"][0]["content_ref"] = "Find the <b>bug</b> in the checkout."
    run = msgspec.convert(document, Trace)

    assert "<h1>A run of 2 agents, 6\u00a0min\u00a046\u00a0s</h1>" in page([diagnose(run)])
    assert "<h1>Find the &lt;b&gt;bug&lt;/b&gt; in the checkout.</h1>" in page([diagnose(run)], with_content=True)
    assert "in the checkout" not in page([diagnose(run)])


def test_a_page_has_a_description_and_an_icon() -> None:
    text = page([diagnose(small())])
    (description,) = re.findall(r'<meta name="description" content="(.*?)">', text)

    assert description == (
        "2\u00a0agents, 9\u00a0events, 6\u00a0min\u00a046\u00a0s elapsed. "
        "Who worked when, what the end waited for, who spent the tokens."
    )
    assert '<link rel="icon" href="data:image/svg+xml,%3Csvg' in text


def test_a_long_open_call_breaks_the_axis_and_nothing_else_does() -> None:
    idle = trace(raw([event("a", 0, "inference", "x", t_end=4), event("b", 400, "inference", "x", t_end=404)], "a>b"))

    assert axis_breaks([made_columns(small())]) == [[4.5, 404.5, 0.72]]  # 0.12 of the other 6 s
    assert axis_breaks([made_columns(idle)]) == []
    assert axis_breaks([made_columns(small()), made_columns(example("swarm"))]) == [[20, 404.5, 2.58]]


def test_sub_agents_of_one_parent_and_role_are_a_group() -> None:
    spawns = [event(f"s{n}", n, "spawn", "lead", to=f"w{n}", role="coder" if n < 5 else "tester") for n in range(8)]
    works = [event(f"i{n}", 10, "inference", f"w{n}", t_end=12) for n in range(8)]
    data = made_columns(trace(raw([*spawns, event("t", 9, "spawn", "w0", to="x"), *works])))
    groups = dict(zip(data["agents"]["name"], data["agents"]["group"], strict=True))

    assert [name for name, group in groups.items() if group == 0] == ["coder w1", "coder w2", "coder w3", "coder w4"]
    assert set(groups.values()) == {-1, 0}  # w0 spawned another; the testers are three


def many_calls() -> Trace:
    """Thirty calls of one agent, each a little longer than the one before."""
    calls = [
        event(f"e{n}", n, "inference", "x", t_end=n + 1 + n / 100, cost_usd=(n * 7 % 30 + 1) / 100) for n in range(30)
    ]
    return trace(raw(calls))


def test_rows_beyond_the_first_are_for_the_script_and_without_it_a_note_says_where_they_are() -> None:
    text = page([diagnose(many_calls())])
    first = {
        name: re.findall(r'data-place="(\d+)"', rows)
        for name, rows in re.findall(r'<table id="a-(\w+)-calls".*?<tbody>(.*?)</tbody>', text, re.DOTALL)
    }

    assert first == {
        "costliest": [str(n) for n in sorted(range(30), key=lambda n: -(n * 7 % 30))[:10]],
        "longest": [str(n) for n in range(29, 19, -1)],
    }
    note = "The first 10 of 30 rows; the others need scripts, or <code>corpus trace replay --format json</code>."
    assert text.count(note) == 2


def test_calls_have_a_column_of_costs_only_where_one_is_known() -> None:
    diagnosis = diagnose(example("swarm"))
    (costliest, longest) = Tables(diagnosis, Sentences(diagnosis).names).calls()

    assert costliest.calls == "tokens"
    assert costliest.columns == longest.columns == (
        "event", "agent", "what", "model", "begins at", "lasts", "tokens"
    )  # fmt: skip


def test_calls_have_columns_of_models_and_tokens_only_where_one_is_known() -> None:
    diagnosis = diagnose(many_calls())
    costliest, _ = Tables(diagnosis, Sentences(diagnosis).names).calls()

    assert costliest.columns == ("event", "agent", "what", "begins at", "lasts", "USD")
    assert all(len(row) == 6 for row in costliest.rows)


def test_a_page_is_the_same_each_time_and_names_what_may_run() -> None:
    first, second = page([diagnose(small())]), page([diagnose(small())])

    assert first == second
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', first)
    assert re.fullmatch(
        r"default-src &#39;none&#39;; script-src &#39;sha256-[\w+/]{43}=&#39;; style-src &#39;sha256-[\w+/]{43}=&#39;; "
        r"img-src data:; base-uri &#39;none&#39;; form-action &#39;none&#39;",
        policy,
    )
    assert re.findall(r"<script[^>]*>", first) == ['<script type="application/json" id="runs">', "<script>"]
    assert "\n//" not in first
    assert not re.search(r" (?:style|on\w+)=", first)
    assert not re.search(r'(?:src|href)="(?!#|data:image/svg\+xml,)', first)


# In a browser


def opened(browser: Browser, folder: Path, *runs: Trace, **how: Any) -> Path:
    """The page of some runs, opened."""
    path = folder / f"{'-'.join(run.trace_id for run in runs)[:20].replace('/', '_').replace('<', '_')}.html"
    path.write_text(page([diagnose(run) for run in runs], **how), encoding="utf-8")
    browser.open(path)
    return path


def table(browser: Browser, name: str, number: int = 0) -> list[list[Any]]:
    """The rows of a table of the page by its title: texts, or exact numbers."""
    return list(
        browser.run(
            "return [...[...document.querySelectorAll('table')].filter(t => t.caption.textContent === arguments[0])"
            "[arguments[1]].tBodies[0].rows].map(r => [...r.cells].map(c => c.querySelector('data')"
            " ? Number(c.querySelector('data').value) : c.textContent))",
            name,
            number,
        )
    )


def all_rows(browser: Browser, table_id: str) -> list[list[Any]]:
    """The rows of a table that is seen in parts: each part as it comes when one asks for the next."""
    return list(
        browser.run(
            "const table = document.getElementById(arguments[0]), rows = [];"
            'const next = document.querySelector(`.pager[data-table="${arguments[0]}"] [data-go=next]`);'
            "const read = () => rows.push(...[...table.tBodies[0].rows].map(r => [...r.cells].map(c => c.querySelector('data')"
            " ? Number(c.querySelector('data').value) : c.textContent)));"
            "read(); while (next && !next.disabled) { next.click(); read(); } return rows",
            table_id,
        )
    )


def click(browser: Browser, selector: str) -> None:
    """Click on an element in the middle of the window; pages scroll smoothly, and tests do not wait for that."""
    one = browser.one(selector)
    browser.run("arguments[0].scrollIntoView({behavior: 'instant', block: 'center'})", one)
    one.click()


def settle(browser: Browser) -> None:
    """Wait until what was planned to be drawn is drawn."""
    browser.driver.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))"
    )


def said(browser: Browser) -> str:
    """What the timeline says of what it shows."""
    settle(browser)
    return str(browser.texts(".drawn")[0])


def elements(browser: Browser) -> int:
    settle(browser)
    return int(browser.run("return document.querySelectorAll('.lanes svg *, .axis *').length"))


@pytest.mark.external
def test_all_figures_of_the_page_are_those_of_the_json(browser: Browser, tmp_path: Path) -> None:
    path, prices = tmp_path / "run.html", str(SESSION / "prices.yaml")
    run_corpus("trace", "doctor", str(SESSION), "--prices", prices, "--html", str(path))
    data = json.loads(run_corpus("trace", "doctor", str(SESSION), "--prices", prices, "--format", "json").stdout)
    (wanted,) = data["sessions"]

    browser.open(path)
    figures = {row[0]: row[1] for row in table(browser, "Figures")}
    agents = table(browser, "Agents")
    steps = all_rows(browser, "a-critical-path")
    waits = table(browser, "Waits")

    assert figures == {
        "elapsed": wanted["elapsed"],
        "waited for people": wanted["waited"],
        "worked": wanted["worked"]["if_working"],
        "longest path of work": wanted["span"]["if_working"],
        "speed-up": wanted["speed_up"]["if_working"],
        "most at once": wanted["parallelism"]["most"]["if_working"],
        "several at work": wanted["parallelism"]["together"]["if_working"],
        "one at work": wanted["parallelism"]["alone"]["if_working"],
        "nobody at work": wanted["parallelism"]["idle"]["if_working"],
        "events": wanted["events"],
        "errors": wanted["errors"],
        "agents": sum(not one["person"] for one in wanted["agents"]),
        "tokens": wanted["tokens"]["known"],
        "cost in USD": wanted["cost_usd"]["known"],
    }
    columns = ["elapsed", "worked", "waited", "idle"]
    assert [row[2:6] for row in agents] == [[one[name] for name in columns] for one in wanted["agents"]]
    assert [row[6] for row in agents] == [one["tokens"] or "" for one in wanted["agents"]]
    below = sum(one["tokens"] or 0 for one in wanted["agents"]), sum(wanted["cost_usd"]["by_agent"].values())
    assert [row[9:] for row in agents if row[0] == "main"] == [pytest.approx(below)]
    assert [[row[0], row[3], row[4] or 0] for row in steps] == [
        [one["event"], one["worked"], one["gap_before"]]
        for one in wanted["critical_path"]
        if one["worked"] or one["gap_before"]
    ]
    assert [[row[2], row[3]] for row in waits] == [
        [one["seconds"], ", ".join(one["events"])] for one in wanted["waits"]
    ]
    measured = json.loads(run_corpus("trace", "measure", str(SESSION), "--format", "json").stdout)
    values = {name: one["value"] for name, one in measured["traces"][0]["measures"].items() if name != "cost"}
    assert {
        row[0]: None if row[1] == "" else row[1] for row in table(browser, "Measures") if row[0] != "cost"
    } == values
    assert browser.violations() == []


@pytest.mark.external
def test_durations_are_in_the_same_words_as_on_the_screen(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, small())
    chance = random.Random(1)
    seconds = [
        0.0,
        1.0,
        0.9994,
        0.9996,
        59.94,
        59.96,
        60.5,
        61.5,
        3599.5,
        3600.0,
        86400.0,
        12.25,
        12.75,
        4e6,
        1e-4,
        2.125,
    ]
    seconds += [round(chance.uniform(0, 10**power) * 4) / 4 for power in range(8) for _ in range(100)]
    seconds += [chance.uniform(0, 10**power) for power in range(-4, 8) for _ in range(100)]

    for unit in ("s", "step"):
        shorter = seconds if unit == "s" else [one for one in seconds if one == 0 or 0.001 <= one < 1e6]
        found = browser.run("return arguments[0].map(time => duration(time, arguments[1]))", shorter, unit)
        assert found == [duration(one, unit).replace("\ue000", " ") for one in shorter]


@pytest.mark.external
def test_the_replay_has_the_state_after_each_event(browser: Browser, tmp_path: Path) -> None:
    path = str(ROOT / "data" / "traces" / "hierarchical.json")
    opened(browser, tmp_path, example("hierarchical"))
    lines = run_corpus("trace", "replay", path, "--format", "json").stdout.splitlines()[1:]
    states = [json.loads(line) for line in lines]

    found = browser.run(
        "const slider = document.querySelector('input[type=range]'), found = [];"
        "for (const way of [1, -1]) for (let n = 0; n < slider.max; n++) {"
        "  slider.value = way > 0 ? n + 1 : slider.max - n; slider.dispatchEvent(new Event('input'));"
        "  found.push(Object.fromEntries([...document.querySelectorAll('.state data')].map(e => [e.dataset.name, e.value])))"
        "} return found"
    )
    wanted = [
        {
            "live": str(len(one["live"])),
            "calls": str(len(one["open_calls"])),
            "messages": str(len(one["in_flight"])),
            "tokens": f"{one['tokens']:g}",
            **({} if one["cost_usd"] is None else {"cost": f"{one['cost_usd']:.17g}"}),
        }
        for one in states
    ]

    assert found == [*wanted, *wanted[::-1]]


@pytest.mark.external
def test_the_timeline_draws_work_waits_arrows_and_the_critical_path(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, small())
    counts = browser.run(
        "return Object.fromEntries(arguments[0].map(s => [s, document.querySelectorAll('.lanes svg ' + s).length]))",
        [".name", ".bar.model", ".bar.tool", ".bar.open", ".bar.assumed", ".wait", ".arrow.spawn", ".arrow.return",
         ".critical", ".step", ".cursor"],
    )  # fmt: skip
    signs = browser.texts(".lanes .mark, .lanes .count")

    assert counts == {
        ".name": 3,
        ".bar.model": 3,
        ".bar.tool": 0,
        ".bar.open": 1,  # the call that took 400 s
        ".bar.assumed": 0,
        ".wait": 1,  # the lead, for its worker
        ".arrow.spawn": 1,
        ".arrow.return": 1,
        ".critical": 3,  # lead, worker, lead
        ".step": 3,  # from the person to the lead, to the worker, and back
        ".cursor": 2,
    }
    assert signs == ["●", "▼", "▲", "✕", "▲"]
    assert browser.texts(".axis text") == ["0 s", "1 s", "2 s", "3 s", "4 s", "6 min 45 s", "6 min 46 s", "≈"]
    assert said(browser) == (
        "Shown: 9 events, each by itself. "
        "The time axis is broken at ≈: 6 min 40 s in which nothing but open calls went on."
    )
    click(browser, "[data-show=broken]")
    assert said(browser).startswith("Shown: 9 events, 2 of them in 1 group of neighbours")
    assert browser.texts(".axis text") == ["0 s", "1 min", "2 min", "3 min", "4 min", "5 min", "6 min"]
    assert browser.texts(".lanes .mark, .lanes .count") == ["●", "▼", "▲", "2"]  # the error and the return are as one
    click(browser, "[data-do=all]")
    browser.open(tmp_path / "t.html", "#a-event-6")
    for _ in range(12):
        click(browser, "[data-do=in]")
    assert "✕" in browser.texts(".lanes .mark")
    assert said(browser) == (
        "Shown: 2 events, each by itself. The time axis is broken at ≈: 6 min 40 s in which nothing but open calls went "
        "on. From 6 min 43.792 s to 6 min 44.5 s."
    )


@pytest.mark.external
def test_a_gap_of_the_critical_path_is_dashed_and_a_phone_shows_what_a_table_hides(
    browser: Browser, tmp_path: Path
) -> None:
    events = [event("a", 0, "inference", "x", t_end=4), event("b", 30, "inference", "x", t_end=40)]
    opened(browser, tmp_path, trace(raw(events, "a>b", trace_id="0f8fad5b-d9cb-469f-a165-70867728950e")))
    (gap,) = browser.run("return [...document.querySelectorAll('.gap')].map(e => e.getBoundingClientRect().width)")
    wide = browser.run("return document.querySelector('.lanes').clientWidth")

    assert browser.run("return document.querySelectorAll('.lanes .critical').length") == 2
    assert 0.4 * wide < gap < 0.65 * wide  # 26 of 40 s, beside the names
    assert browser.run("return document.querySelector('.source .id').getClientRects().length") == 1
    browser.resize(390)
    opened(browser, tmp_path, example("swarm"), example("hierarchical"))
    right = "return [...document.querySelectorAll('#a-what-differs thead th')][%d].getBoundingClientRect().right"
    assert browser.run(right % 2) <= 390  # the column B is seen
    assert browser.run("return getComputedStyle(document.querySelector('.scroll')).backgroundImage") != "none"


@pytest.mark.external
def test_keys_buttons_and_the_mouse_zoom_move_and_choose(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, example("hierarchical"))
    whole = said(browser)
    assert whole.startswith("Shown: ")
    assert " From " not in whole
    browser.run("document.querySelector('.lanes').focus()")

    browser.press("+")
    zoomed = said(browser)
    browser.press("\ue014")  # to the right
    moved = said(browser)
    browser.press("0")
    back = said(browser)
    for name in ("in", "later", "earlier", "out"):
        click(browser, f"[data-do={name}]")
    buttons = said(browser)
    browser.run(
        "const box = document.querySelector('.lanes'), at = box.getBoundingClientRect();"
        "box.dispatchEvent(new WheelEvent('wheel', {ctrlKey: true, deltaY: -100, clientX: at.left + at.width * 0.6,"
        " clientY: at.top + 20, bubbles: true, cancelable: true}))"
    )
    wheel = said(browser)
    from selenium.webdriver.common.action_chains import ActionChains

    box = browser.one(".lanes")
    ActionChains(browser.driver).move_to_element(box).click_and_hold().move_by_offset(-150, 0).release().perform()
    dragged = said(browser)

    assert back == buttons == whole
    texts = [re.search(r"From (.*) to (.*)\.$", text) for text in (zoomed, moved, wheel, dragged)]
    assert all(texts)
    assert len({text[0] for text in texts if text}) == 4


@pytest.mark.external
def test_the_chosen_event_follows_keys_clicks_links_and_the_address(browser: Browser, tmp_path: Path) -> None:
    path = opened(browser, tmp_path, small())

    def step() -> str:
        return str(browser.texts(".state dd")[0]).partition(" of ")[0]

    found = [step()]
    browser.run("document.querySelector('.lanes').focus()")
    for key in ("n", "n", "p", "c", "C", "\ue010", "\ue011"):  # the last two: End, Home
        browser.press(key)
        found.append(step())
    click(browser, "a[href='#a-event-5']")
    found.append(step())
    browser.run("history.back()")
    settle(browser)
    browser.open(path, "#a-event-8")
    browser.driver.refresh()
    found.append(step())
    browser.run("document.querySelector('.lanes').scrollIntoView({behavior: 'instant', block: 'center'})")
    places = browser.run(
        "const bar = document.querySelectorAll('.bar.open')[0].getBoundingClientRect();"
        "return [bar.left + bar.width / 2, bar.top + bar.height / 2]"
    )
    for kind in ("mousePressed", "mouseReleased"):
        browser.driver.execute_cdp_cmd(
            "Input.dispatchMouseEvent",
            {"type": kind, "x": places[0], "y": places[1], "button": "left", "clickCount": 1},
        )
    found.append(step())

    assert found == ["1", "2", "3", "2", "3", "2", "9", "1", "5", "8", "5"]
    assert "on the critical path; an open call: perhaps it only waited" in browser.texts(".state dl")[0]
    assert browser.run("return document.querySelector('input[type=range]').getAttribute('aria-valuetext')") == (
        "step 5 of 9: tool call Bash of w (helper) at 4.5 s"
    )


@pytest.mark.external
@pytest.mark.parametrize("with_content", [False, True])
def test_hostile_texts_neither_run_nor_break_the_page(browser: Browser, tmp_path: Path, with_content: bool) -> None:
    document = json.loads(msgspec.json.encode(small()))
    document["trace_id"] = "hostile"
    for number, one in enumerate(document["events"]):
        for name in ("id", "agent", "tool", "model", "to", "error_type", "content_ref", "role"):
            if name in one or name == "content_ref":
                one[name] = f"{number if name == 'id' else ''}{one.get(name, '')}{HOSTILE}{HALF_LINE}"
    document["edges"] = []
    document["agents"] = []

    opened(browser, tmp_path, msgspec.convert(document, Trace), with_content=with_content)
    steps = len(document["events"])
    for number in range(steps):
        browser.run(
            "const slider = document.querySelector('input[type=range]');"
            "slider.value = arguments[0]; slider.dispatchEvent(new Event('input'))",
            number + 1,
        )

    assert browser.driver.title.endswith(" (hostile)")
    assert (HOSTILE[:20] in browser.driver.title) is with_content
    assert browser.all("img") == []
    assert "</script>" in browser.texts(".state")[0]
    assert (HALF_LINE in browser.texts(".state")[0]) is with_content
    assert browser.violations() == []


@pytest.mark.external
def test_without_scripts_there_are_a_picture_and_all_tables(browser: Browser, tmp_path: Path) -> None:
    browser.scripts(False)
    path = tmp_path / "run.html"
    path.write_text(page([diagnose(small())]), encoding="utf-8")
    browser.open(path)

    (picture,) = browser.all("img")
    assert picture.is_displayed()
    assert [one.is_displayed() for one in browser.all(".scripted")] == [False, False, False]
    assert browser.one("#a-event-5").is_displayed()
    assert browser.one("a[href='#a-event-5']").text == "run"
    browser.scripts(True)


@pytest.mark.external
def test_two_runs_are_side_by_side_on_one_scale(browser: Browser, tmp_path: Path) -> None:
    runs = TraceView(example("swarm")), TraceView(example("hierarchical"))
    opened(browser, tmp_path, example("swarm"), example("hierarchical"))
    before = [str(one) for one in browser.texts(".axis")]
    click(browser, "#timelines [data-do=in]")
    settle(browser)
    after = [str(one) for one in browser.texts(".axis")]
    click(browser, "#b-replay [data-do=next]")

    assert len(before) == 1  # one axis for both
    assert after != before
    order = browser.run(
        "return ['.axis', '#a-lanes', '#b-lanes', '.largest', '#a-what-differs', '#summary'].map((one) =>"
        " document.querySelector(one).getBoundingClientRect().top)"
    )
    assert order == sorted(order)
    assert [str(text).partition(" of ")[0] for text in browser.texts(".state div:first-child dd:first-of-type")] == [
        "1",
        "2",
    ]
    assert [[row[5], *row[1:4]] for row in all_rows(browser, "a-what-differs")] == [
        [one.part, *("" if value is None else value for value in (one.before, one.after, one.change))]
        for one in largest_first(compare(*runs, [agent_names(one) for one in runs]))
    ]
    assert browser.violations() == []


@pytest.mark.external
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 768, 1200, 1600])
def test_a_page_fits_every_screen_and_nothing_on_it_moves(
    browser: Browser, tmp_path: Path, width: int, scheme: str
) -> None:
    browser.resize(width)
    browser.scheme(scheme)
    opened(browser, tmp_path, small())
    settle(browser)

    shift = browser.driver.execute_async_script(
        "const done = arguments[0]; let sum = 0; new PerformanceObserver(list => { for (const e of list.getEntries())"
        " sum += e.value }).observe({type: 'layout-shift', buffered: true}); setTimeout(() => done(sum), 50)"
    )

    assert shift == 0
    assert browser.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth") is True
    assert browser.violations() == []


@pytest.mark.external
@pytest.mark.parametrize("width", [390, 768, 1200, 1600])
def test_no_head_of_a_table_breaks_within_a_word(browser: Browser, tmp_path: Path, width: int) -> None:
    browser.resize(width)
    opened(browser, tmp_path, small(), example("hierarchical"))

    broken = browser.run(
        "const found = [];"
        "for (const head of document.querySelectorAll('thead th')) {"
        "  const walker = document.createTreeWalker(head, NodeFilter.SHOW_TEXT);"
        "  while (walker.nextNode()) for (const {0: word, index} of walker.currentNode.data.matchAll(/\\S+/g)) {"
        "    const range = document.createRange();"
        "    range.setStart(walker.currentNode, index); range.setEnd(walker.currentNode, index + word.length);"
        "    if (range.getClientRects().length > 1) found.push(word);"
        "  }"
        "} return found"
    )

    assert broken == []


@pytest.mark.external
def test_the_summary_begins_on_the_first_screen_beside_the_replay(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, small())
    top, state = (
        browser.run("return document.querySelector(arguments[0]).getBoundingClientRect().top", selector)
        for selector in ("#summary", ".state")
    )
    boxes = browser.run("const e = document.querySelector('.state'); return [e.scrollHeight, e.clientHeight]")

    assert top < state < 900
    assert boxes[0] <= boxes[1]  # the state of an event is seen as a whole


@pytest.mark.external
def test_the_timeline_fits_a_page_that_is_narrower_than_the_screen(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, example("hierarchical"))
    settle(browser)
    seen = browser.run(
        "const box = document.getElementById('timelines'), mark = document.querySelector('.lanes .critical');"
        "const share = () => { const [a, b] = [mark, box].map(e => e.getBoundingClientRect()); return a.right / b.width };"
        "const before = share(); box.style.width = '600px'; return [before, share()]"
    )

    assert seen[1] == pytest.approx(seen[0], abs=0.05)


@pytest.mark.external
def test_a_very_long_run_draws_few_elements_and_says_what_they_stand_for(browser: Browser, tmp_path: Path) -> None:
    import synthesize_traces

    path, size = tmp_path / "long.json", tries(100_000, 20_000)
    synthesize_traces.write(path, size)
    out = tmp_path / "long.html"
    assert run_corpus("trace", "doctor", str(path), "--html", str(out)).code == 0

    browser.open(out)
    counts, texts = [elements(browser)], [said(browser)]
    assert browser.run("return document.querySelectorAll('*').length") <= 2000
    click(browser, "[data-show=messages]")
    browser.run("document.querySelector('.lanes').focus()")
    for key in [*"++++++++++++++", "\ue014", "\ue014", *"-----", "\ue011"]:
        browser.press(key)
        counts.append(elements(browser))
        texts.append(said(browser))

    assert max(counts) <= 2000
    assert re.match(rf"Shown: {size:,} events, [\d,]+ of them as profiles of groups", texts[0])
    assert "only those of the chosen event are drawn" in texts[0]
    shown_events = [int(text.split()[1].replace(",", "")) for text in texts]
    assert all(later <= earlier for earlier, later in pairwise(shown_events[:14]))
    click(browser, "[data-show=groups]")
    assert "scroll for the others" in said(browser)
    assert browser.run("return document.querySelectorAll('*').length") <= 2000


def team(size: int) -> Trace:
    """A lead and many workers, each of which thinks once."""
    spawns = [event(f"s{n}", n / 10, "spawn", "lead", to=f"worker-{n}", role="coder") for n in range(size)]
    works = [
        event(
            f"i{n}", n / 10 + 1, "inference", f"worker-{n}", t_end=n / 10 + 3 + n % 7, cost_usd=(n * 37 % size) / 1000
        )
        for n in range(size)
    ]
    return trace(raw([*spawns, *works]))


def row_of(browser: Browser, name: str) -> list[str]:
    """The cells of the first row of a table of calls, as texts."""
    return list(
        browser.run(
            "return [...document.getElementById(arguments[0]).tBodies[0].rows[0].cells].map(c => c.textContent)", name
        )
    )


def event_shown(browser: Browser) -> str:
    settle(browser)
    return str(browser.run("return document.querySelectorAll('.state dd')[1].textContent"))


@pytest.mark.external
def test_an_agent_among_many_is_found_by_its_name_and_has_a_lane_of_its_own(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, team(3000))
    lanes = browser.texts(".lanes .name")

    browser.press("/")
    browser.press("worker-2718")
    options = browser.texts("#found [role=option]")
    browser.press("\ue007")

    assert lanes == ["lead", "▸ 3,000 × coder"]
    assert len(options) == 1
    assert "(worker-2718)" in options[0]
    name = options[0].partition(" (")[0]
    assert event_shown(browser) == f"i2718: inference of {name}"
    assert browser.texts(".lanes .name.chosen") == [name]
    assert browser.violations() == []


@pytest.mark.external
def test_all_calls_are_in_the_tables_sorted_by_any_column(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, team(300))
    costliest, longest = row_of(browser, "a-costliest-calls"), row_of(browser, "a-longest-calls")
    rows = all_rows(browser, "a-costliest-calls")
    click(browser, "#a-costliest-calls thead th:nth-child(2) button")
    by_agent = row_of(browser, "a-costliest-calls")
    click(browser, "#a-costliest-calls thead th:nth-child(6) button")
    click(browser, "#a-costliest-calls tbody a")

    assert costliest[5] == "0.2990"
    assert longest[4] == "8\u00a0s"
    assert len(rows) == 300
    assert [row[5] or 0 for row in rows] == sorted((n / 1000 for n in range(300)), reverse=True)
    assert by_agent[1] == "worker-0 (coder)"
    assert event_shown(browser) == f"{costliest[0]}: inference of {costliest[1]}"


@pytest.mark.external
def test_the_address_keeps_what_is_chosen_shown_and_zoomed(browser: Browser, tmp_path: Path) -> None:
    path = opened(browser, tmp_path, team(30))
    click(browser, "#a-longest-calls tbody a")
    browser.press("+", "+")
    click(browser, "[data-show=groups]")
    before = event_shown(browser), said(browser).partition(" From ")[2], browser.texts(".lanes .name")
    browser.driver.execute_async_script("setTimeout(arguments[0], 400)")
    address = browser.run("return location.hash")
    browser.driver.get("about:blank")
    browser.open(path, address)
    after = event_shown(browser), said(browser).partition(" From ")[2], browser.texts(".lanes .name")
    browser.run("location.hash = '#a-event-3'")
    browser.driver.execute_async_script("setTimeout(arguments[0], 50)")
    third = event_shown(browser)
    browser.driver.back()
    browser.driver.execute_async_script("setTimeout(arguments[0], 50)")

    assert re.fullmatch(r"#a-event-\d+&time=[\d.]+-[\d.]+&groups=0", address)
    assert after == before
    assert third == "s2: spawn of lead to worker-2 (coder)"
    assert event_shown(browser) == before[0]


@pytest.mark.external
def test_play_goes_through_the_run_and_stops_when_an_event_is_chosen(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, example("hierarchical"))
    browser.run("document.querySelector('.lanes').focus()")
    browser.press(" ")
    browser.driver.execute_async_script(
        "const done = arguments[0], slider = document.getElementById('a-step');"
        "const wait = setInterval(() => { if (slider.valueAsNumber > 2) { clearInterval(wait); done() } }, 20)"
    )
    playing = browser.one("[data-do=play]").text
    browser.press("n")
    step = browser.run("return document.getElementById('a-step').valueAsNumber")
    browser.driver.execute_async_script("setTimeout(arguments[0], 300)")

    assert playing == "❚❚ Pause"
    assert browser.one("[data-do=play]").text == "▶ Play"
    assert browser.run("return document.getElementById('a-step').valueAsNumber") == step


@pytest.mark.external
def test_live_agents_are_a_number_with_their_list_behind_it(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, team(100))
    browser.run("document.querySelector('.lanes').focus()")
    browser.press("\ue010")
    closed = browser.run("return document.querySelector('.state details').open")
    click(browser, ".state summary")
    settle(browser)
    browser.press("\ue00c")
    click(browser, "[data-do=previous]")

    assert closed is False
    assert browser.run("return document.querySelector('.state details').open") is True
    assert browser.texts(".state summary") == ["101"]
    assert browser.texts(".state details p")[0].startswith("worker-0 (coder), worker-1 (coder), ")


@pytest.mark.external
def test_pages_of_runs_are_valid_and_accessible_in_all_looks(browser: Browser, tmp_path: Path) -> None:
    one, two = tmp_path / "one.html", tmp_path / "two.html"
    one.write_text(page([diagnose(example("hierarchical"))]), encoding="utf-8")
    two.write_text(page([diagnose(example("hierarchical")), diagnose(small())]), encoding="utf-8")

    assert markup_errors(one, two) == []
    assert [*browser.violations_of_looks(one), *browser.violations_of_looks(two)] == []
