"""Names made unique: agents and calls that a log gives the same name stay two."""

from collections.abc import Callable
from operator import ne
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.trace.importers.core.identity import UniqueNames
from tests.effort import assert_grows
from tests.trace.conversationlogs import Claude, Codex, problems, text, trace_of, use

P = "0199c000-0000-7000-8000-000000000001"
TAKEN = ["c", "c#2", "c", "c#2#2", "c#2", "c", "c#3"]
UNIQUE = ["c", "c#2", "c#3", "c#2#2", "c#2#3", "c#4", "c#3#2"]


def test_a_name_gets_the_first_number_that_no_name_has() -> None:
    names = UniqueNames()

    assert [names.add(name) for name in TAKEN] == UNIQUE


@given(st.lists(st.sampled_from(["", "c", "c#2", "c#2#2", "c#3", "c#4", "d#2", "#2"]), max_size=40))
def test_no_name_is_given_away_twice_and_the_first_to_want_a_free_one_has_it(wanted: list[str]) -> None:
    names = UniqueNames()
    given_away: list[str] = []
    for name in wanted:
        found = names.add(name)
        assert found == name or name in given_away
        assert found not in given_away
        given_away.append(found)


def test_a_name_that_very_many_want_takes_no_longer_each_time() -> None:
    def prepare(number: int) -> Callable[[], object]:
        def call() -> None:
            names = UniqueNames()
            for _ in range(number):
                last = names.add("reader")
            assert last == f"reader#{number}"

        return call

    assert_grows(prepare, 3_000, 24_000, 22)


def test_call_ids_that_look_numbered_are_told_apart(tmp_path: Path) -> None:
    claude, codex = Claude(), Codex(P)
    claude.say(0, "Go.")
    codex.event(0, "user_message", message="Go.")
    for number, name in enumerate(TAKEN):
        # Claude Code's ids are unique in a thread, so each call of the same id is in a thread of its own.
        agent = Claude(agent=f"a{number}")
        agent.say(1, f"Task {number}.")
        agent.answer(2 + number, f"m{number}", text("A"), use(name, "Read"))
        agent.result(3 + number, name, "done")
        agent.write(tmp_path / "claude")
        codex.call(1 + number, "shell", name)
        codex.output(1.5 + number, name, "done")
    claude.write(tmp_path / "claude")
    codex.write(tmp_path / "codex")

    for form in ("claude", "codex"):
        trace = trace_of(tmp_path / form)
        for kind in ("tool_call", "tool_result"):
            assert sorted(event["call_id"] for event in trace["events"] if event["type"] == kind) == sorted(UNIQUE)
        told = {what: number for what, number in problems(trace).items() if "spawned" not in what}
        assert told == {"call id used again: numbered": sum(map(ne, TAKEN, UNIQUE))}
