"""Tokens of made-up sessions, of which every answer is known: none is lost, and none counts twice."""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.effort import tries
from tests.trace.conversationlogs import Claude, Codex, by_agent, moment, spawn, spawned, text, trace_of, write

AMOUNT = st.integers(0, 5000)


class Spent(NamedTuple):
    """What one answer spent: input without what was cached, output, cached input; and in how many rows it says so."""

    read: int
    written: int
    cached: int
    rows: int


SPENT = st.builds(Spent, st.integers(1, 5000), AMOUNT, AMOUNT, st.integers(1, 3))
ANSWERS = st.lists(SPENT, min_size=1, max_size=4)
WAYS = st.sampled_from(["fresh", "replayed", "replayed under the old times", "from the parent's total"])
CHECKED = settings(
    max_examples=tries(40, 15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def fresh(folder: Path) -> Path:
    """A folder that no other example has used."""
    place = folder / str(len(list(folder.iterdir())))
    place.mkdir()
    return place


def totals(answers: dict[str, list[Spent]]) -> dict[str, tuple[int, ...]]:
    """The tokens of each agent, as `by_agent` has them."""
    return {
        agent: (sum(one.read for one in of), sum(one.written for one in of), sum(one.cached for one in of), 0, 0)
        for agent, of in sorted(answers.items())
    }


@CHECKED
@given(
    st.lists(st.tuples(st.integers(0, 10), ANSWERS), max_size=5), ANSWERS,
    st.sampled_from(["subagents", "siblings", "inline"]), st.booleans(),
)  # fmt: skip
def test_claude_code_sessions(
    tmp_path: Path, below: list[tuple[int, list[Spent]]], own: list[Spent], layout: str, resumed: bool
) -> None:
    """Sub-agents of sub-agents, in files of their own or among the rows of the session, which may go on in another."""
    files = [Claude()]
    truth = {"main": list(own)}
    files[0].say(0, "Go.")
    for number, spent in enumerate(own):
        answer(files[0], number, f"main{number}", spent)
    for number, (above, answers) in enumerate(below):
        name = f"a{number}"
        parent = files[0] if layout == "inline" else files[above % len(files)]
        call = parent.answer(
            100 * number + 50, f"spawn{number}", spawn(f"t{number}", f"Task {number}."), usage=(1, 1, 0, 0)
        )
        truth[parent.agent or "main"].append(Spent(1, 1, 0, 1))
        if layout == "inline":
            last = parent.say(100 * number + 51, f"Task {number}.", parentUuid=call["uuid"], isSidechain=True)["uuid"]
            name, child = f"sidechain-{number + 1}", parent
            for place, spent in enumerate(answers):
                last = answer(
                    child, 100 * number + 52 + place, f"{name}{place}", spent, parentUuid=last, isSidechain=True
                )
        else:
            child = Claude(agent=name)
            files.append(child)
            child.say(100 * number + 51, f"Task {number}.")
            for place, spent in enumerate(answers):
                answer(child, 100 * number + 52 + place, f"{name}{place}", spent)
        truth[name] = list(answers)
        parent.result(100 * number + 99, f"t{number}", "Done.")
    folder = fresh(tmp_path)
    for rows in files:
        if layout == "siblings" and rows.agent:
            write(folder / f"agent-{rows.agent}.jsonl", rows.rows)
        else:
            rows.write(folder)
    if resumed:
        later = Claude("9e551000-0000-4000-8000-000000000001")
        later.rows = [{**row, "sessionId": later.session} for row in files[0].rows]
        answer(later, 5000, "later", Spent(7, 8, 9, 1))
        truth["main"].append(Spent(7, 8, 9, 1))
        later.write(folder)

    trace = trace_of(folder)
    assert by_agent(trace) == totals(truth)
    assert trace["costs"]["tokens"] == sum(map(sum, totals(truth).values()))


def answer(rows: Claude, second: float, name: str, spent: Spent, **fields: object) -> str:
    """Write an answer in some rows, of which only the last has the whole output; the name of its last row."""
    uuid = ""
    for left in reversed(range(spent.rows)):
        usage = (spent.read, min(left, spent.written) if left else spent.written, spent.cached, 0)
        row = rows.answer(second, name, text(f"Part {left}."), usage=usage, stop=None if left else "end_turn", **fields)
        uuid = row["uuid"]
        if "parentUuid" in fields:
            fields["parentUuid"] = uuid
    return uuid


@CHECKED
@given(st.lists(st.tuples(WAYS, ANSWERS), max_size=4), ANSWERS, st.booleans())
def test_codex_sessions(tmp_path: Path, below: list[tuple[str, list[Spent]]], own: list[Spent], grand: bool) -> None:
    """Threads that count from zero or go on from their parent's total, with or without its history."""
    # Two totals in a row that equal the parent's are taken for its history: no two answers spend the same here.
    spent = [
        (one.read, one.written, one.cached) for answers in (own, *(answers for _, answers in below)) for one in answers
    ]
    assume(len(set(spent)) == len(spent))
    root = Codex("t0")
    root.typed(1, "Go.")
    truth = {"main": list(own)}
    threads = [root]
    count(root, 2, own)
    for number, (way, answers) in enumerate(below):
        parent = threads[-1] if grand else root
        begin = 200 * (number + 1)
        child = Codex(f"t{number + 1}", begin, source=spawned(parent.thread, agent_nickname=f"n{number}"))
        if way.startswith("replayed"):
            old = way.endswith("times")
            child.rows += [row if old else {**row, "timestamp": moment(begin + 0.01)} for row in parent.rows]
        if way != "fresh":
            child.total = parent.total
        child.typed(begin + 1, f"Task {number}.")
        count(child, begin + 2, answers)
        truth[f"n{number}"] = list(answers)
        threads.append(child)
    folder = fresh(tmp_path)
    for rows in threads:
        rows.write(folder)

    trace = trace_of(folder)
    kept = [event for event in trace["events"] if not event.get("copied_context")]
    assert by_agent({"events": kept}) == totals(truth)
    assert trace["costs"]["tokens"] == sum(map(sum, totals(truth).values()))
    copies = Counter(event["agent"] for event in trace["events"] if event.get("copied_context"))
    assert copies == {f"n{number}": 1 for number, (way, _) in enumerate(below) if way.startswith("replayed")}


def count(rows: Codex, begin: float, answers: list[Spent]) -> None:
    """Write answers, each with its count in some rows."""
    for place, spent in enumerate(answers):
        rows.says(begin + 10 * place, f"Answer {place} of {rows.thread}.")
        rows.count(begin + 10 * place + 1, spent.read + spent.cached, spent.cached, spent.written, 0, rows=spent.rows)
