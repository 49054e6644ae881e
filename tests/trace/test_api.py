"""Traces from Python."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from orchtrace_corpus import trace as package
from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.trace import api, rules
from orchtrace_corpus.trace.api import (
    InvalidTraceError,
    agent_tree,
    as_data,
    as_published,
    as_text,
    parse_trace,
    read_traces,
    validate_traces,
)
from orchtrace_corpus.trace.model.decode import Document, decode
from tests.conftest import ROOT, run_corpus
from tests.trace.traces import EXAMPLES, event, raw

SOUND = json.dumps(raw([event("a", 0, "inference", "x", t_end=1)]))


def test_a_folder_is_read_by_name() -> None:
    assert [trace.trace_id for trace in read_traces(ROOT / "data" / "traces")] == [
        json.loads(path.read_text(encoding="utf-8"))["trace_id"] for path in EXAMPLES
    ]


def test_lines_are_read_one_after_another(tmp_path: Path) -> None:
    (tmp_path / "two.jsonl").write_text(f"{SOUND}\n\n{SOUND}\n{{\n", encoding="utf-8")
    traces = read_traces(str(tmp_path / "two.jsonl"))

    assert [next(traces).trace_id, next(traces).trace_id] == ["t", "t"]
    with pytest.raises(DataFileError, match=r"two\.jsonl:4:2: T101 not JSON"):
        next(traces)
    assert [finding.code for finding in validate_traces(tmp_path / "two.jsonl")] == ["T227", "T101"]


def test_a_trace_with_errors_is_refused_with_the_first_of_them(tmp_path: Path) -> None:
    edges = [{"src": "a", "dst": f"z{number}", "type": "causal"} for number in range(7)]
    broken = json.dumps({**json.loads(SOUND), "edges": edges})
    (tmp_path / "t.json").write_text(broken, encoding="utf-8")

    with pytest.raises(InvalidTraceError) as raised:
        list(read_traces(tmp_path))
    assert str(raised.value).count("T202") == 5
    assert "… and 2 more" in str(raised.value)
    assert len(validate_traces(tmp_path)) == 7


def test_names_that_two_traces_of_a_folder_have_are_among_the_problems(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(SOUND, encoding="utf-8")

    assert [str(finding) for finding in validate_traces(tmp_path)] == [
        f"{tmp_path / 'b.json'}:1:1: T227 warning: $.trace_id: 't' is that of {tmp_path / 'a.json'}:1, too; "
        "give each run its own [t]"
    ]


def test_agents_come_as_a_tree_each_with_its_time() -> None:
    (run,) = read_traces(ROOT / "data" / "traces" / "hierarchical.json")

    assert [(one.agent, one.depth, one.begin, one.end) for one in agent_tree(run)] == [
        ("lead", 0, 0, 10), ("manager", 1, 1, 9), ("w1", 2, 3, 7), ("w2", 2, 3, 5),
    ]  # fmt: skip


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_trace_is_written_and_read_again(path: Path) -> None:
    (run,) = read_traces(path)

    assert parse_trace(as_text(as_data(run))) == run


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_published_form_is_that_of_the_command(path: Path) -> None:
    (run,) = read_traces(path)
    result = run_corpus("trace", "export", str(path), "--profile", "published")

    if result.code:
        with pytest.raises(CommandUseError, match="cannot be left unknown"):
            as_published(run)
    else:
        assert {"topology": "unknown", **as_published(run)} == json.loads(result.stdout)


@pytest.mark.parametrize("text", [SOUND, SOUND.encode()])
def test_text_is_parsed(text: str | bytes) -> None:
    assert parse_trace(text).events[0].t_end == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "T102 nothing"), ("{", "T101 not JSON"), (SOUND.replace('"x"', '"\ud800"'), "T103 not UTF-8")],
)
def test_text_that_is_no_trace_is_refused(text: str, message: str) -> None:
    with pytest.raises(DataFileError, match=message):
        parse_trace(text)


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match="no trace in"):
        list(read_traces(tmp_path))
    with pytest.raises(DataFileError, match="cannot read"):
        list(read_traces(tmp_path / "none.json"))


def test_every_name_of_the_interface_is_there_and_documented() -> None:
    assert [name for name in api.__all__ if not getattr(api, name).__doc__] == []


def test_the_package_offers_the_names_of_the_interface_and_imports_them_when_they_are_used() -> None:
    assert set(api.__all__) == package._API_NAMES
    for name in api.__all__:
        assert getattr(package, name) is getattr(api, name)
        assert name in dir(package)
    with pytest.raises(AttributeError, match="no attribute 'spam'"):
        package.spam  # noqa: B018
    code = "import sys; from orchtrace_corpus import trace; assert 'msgspec' not in sys.modules; trace.measure; import msgspec"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_the_interface_leads_from_a_log_to_its_diagnosis() -> None:
    (imported,) = package.import_logs(str(ROOT / "tests/data/session"), salt="ours")
    run = imported.trace
    assert run is not None
    assert (imported.form, imported.error) == ("claude_code", None)
    assert package.validate(run) == ()

    view = package.TraceView(run)
    diagnosis = package.diagnose(view)
    assert diagnosis.summary == package.summarize(view)
    assert (diagnosis.summary.elapsed, diagnosis.waited) == (
        pytest.approx(312),
        pytest.approx(780),
    )
    assert [name for name, _ in diagnosis.children] == ["main"]
    assert [(one.kind, one.occurrences) for one in diagnosis.problems] == [("failed event", 1)]
    assert diagnosis.tokens.known == sum(number for _, number in diagnosis.tokens.by_agent) == 46_215
    chain = diagnosis.path.chain
    assert sum(chain.worked) + sum(chain.gaps) + chain.after == pytest.approx(diagnosis.summary.elapsed)
    assert sum(one.seconds for one in diagnosis.path.stretches) + diagnosis.path.small_gaps == pytest.approx(312)
    assert diagnosis.cost.by_agent == ()
    assert [one.agent for one in package.agent_tree(view)] == [one.agent for one in view.agents]
    assert package.compare(view, run) == []
    assert len(list(package.replay(view))) == len(run.events)
    assert {one.event for one in package.labels(view)} <= set(range(len(run.events)))
    assert package.measure(view, ["span"])["span"].value == diagnosis.path.span.length


def test_a_session_that_cannot_be_read_does_not_stop_the_rest(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tests/data/logs/codex", tmp_path / "logs")
    (tmp_path / "logs" / "empty.jsonl").write_text(
        '{"type": "session_meta", "payload": {"id": "x"}}\n', encoding="utf-8"
    )
    found = list(package.import_logs([str(tmp_path / "logs")]))

    assert {(one.trace is None) == (one.error is not None) for one in found} == {True}
    assert sum(one.trace is not None for one in found) >= 3


def test_findings_of_a_trace_in_memory_have_places_in_its_text() -> None:
    broken = parse_trace(SOUND)
    broken.costs["tokens"] = None
    del broken.reasons["costs.tokens"]

    assert [str(finding) for finding in package.validate(broken)] == [
        str(finding) for finding in rules.check(decode(Document(as_text(as_data(broken)).encode(), "t")))
    ]
    assert [finding.code for finding in package.validate(broken)] == ["T217"]
