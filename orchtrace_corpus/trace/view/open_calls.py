"""Calls of tools and models that are open far longer than their work takes: perhaps they waited.

A log says when a call of a tool was made and when its result came. What lies between is work of the tool, or the time
until somebody let it begin; few logs say which. Transcripts say when an answer of a model was written, and not when
the model was asked: an answer is taken to begin with the input before it, which may have come long before the agent
went on. Such calls are called open, and times that they take part in are given twice: as if they had worked all the
time, and as if they had only waited.

A call of a tool is open where it asked a person and took more than 1 s, or where it took longer than

- 30 s, of a tool on files, lists or plans: these never work for minutes;
- else 180 s and ten times the median of the other calls of its tool in the run. The median holds however long the
  open calls are, as long as they are less than half. Where there are fewer than three other calls, 180 s alone
  counts for commands and searches, and calls of other tools are not judged.

A call of a model is open where its begin is only concluded, and it took longer than 30 s and 0.1 s for each token that
it wrote, reasoning included; or longer than 180 s where the log does not count what it wrote. The models of these logs
begin within seconds and write more than ten tokens in a second. A count noted before the model had written says nothing
of what it wrote: such an answer may be as long as any.

Claude Code stops a command after 120 s unless the call names another limit, hence the 180 s.

No call is open of which a stated duration says how long it worked: its own run time, or the duration of its turn. A
call that the log shows unfinished is open from when it was last seen: perhaps it had ended.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.model.terms import EdgeType, EventType, Status, TokenBasis
from orchtrace_corpus.trace.view.timing import Timing

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Event

FILE_TOOL_SECONDS = 30.0
OTHER_TOOL_SECONDS = 180.0
ASKED_SECONDS = 1.0
ANSWER_SECONDS = 30.0
TOKEN_SECONDS = 0.1
MOST_OUTPUT_TOKENS = 32_000
"""The longest answers: what Claude Code asks a model for at most, unless it is told otherwise."""
TIMES_THE_MEDIAN = 10.0
LEAST_OTHER_CALLS = 3

_FILE_TOOLS = frozenset(
    (
        "apply_patch", "create_file", "edit", "edit_file", "glob", "grep", "list_dir", "list_directory", "ls",
        "multiedit", "notebookedit", "notebookread", "read", "read_file", "replace", "str_replace_editor",
        "str_replace_based_edit_tool", "todoread", "todowrite", "update_plan", "view_image", "write", "write_file",
    )
)  # fmt: skip
CLOSING_TOOLS = frozenset(("complete_task", "submit"))
"""With these an agent hands in its result, as Gemini CLI and Inspect have it: who does that repeats no work."""

_ANSWERS = (EventType.INFERENCE, EventType.DECISION, EventType.AGGREGATE)
_COMMANDS_AND_SEARCHES = frozenset(
    (
        "bash", "exec", "exec_command", "local_shell", "powershell", "run_shell_command", "shell", "shell_command",
        "web_search", "webfetch", "websearch", "write_stdin",
    )
)  # fmt: skip


class Cause(StrEnum):
    """Why a call is taken for open."""

    LONG = "long"
    ASKED = "asked"
    ANSWER = "answer"
    UNFINISHED = "unfinished"


class OpenCall(NamedTuple):
    """A call that perhaps waited.

    Attributes:
        number: Its number.
        cause: Why it is taken for one; `answer` where it is a call of a model.
        usual: The median of the other calls of its tool, in seconds; None where there are fewer than three, and for
            models.
    """

    number: int
    cause: Cause
    usual: float | None


def open_calls(times: Timing) -> tuple[OpenCall, ...]:
    """Return the calls of a run that perhaps waited: those of tools, then those of models, by number."""
    works, events, settled = times.works, times.of.events, times.stated.settled
    answers = _answers(times)
    calls = [index for index in times.of.of_type.get(EventType.TOOL_CALL, ()) if works[index] > 0]
    asked = _asked(times)
    long = [index for index in calls if works[index] > FILE_TOOL_SECONDS] if times.unit == "s" else []
    if not asked and not long:
        return (*_unfinished(times), *answers)
    by_tool: dict[str, list[float]] = {}
    for index in calls:
        by_tool.setdefault(events[index].tool, []).append(works[index])
    for durations in by_tool.values():
        durations.sort()
    found = []
    for index in calls if asked else long:
        event = events[index]
        if index in settled or index in times.last_seen or event.background or event.run_time is not None:
            continue
        usual = _median_of_others(by_tool[event.tool], works[index])
        if index in asked:
            found.append(OpenCall(index, Cause.ASKED, usual))
        elif times.unit == "s" and _is_long(event.tool, works[index], usual):
            found.append(OpenCall(index, Cause.LONG, usual))
    return tuple(sorted((*found, *_unfinished(times)))) + answers


def _unfinished(times: Timing) -> tuple[OpenCall, ...]:
    """Return the calls whose end the log does not show, and that had time to go on."""
    indices = (n for n, seen in times.last_seen.items() if times.ends[n] > seen and n not in times.off_clock)
    return tuple(OpenCall(index, Cause.UNFINISHED, None) for index in indices)


def _answers(times: Timing) -> tuple[OpenCall, ...]:
    """Return the answers of models that perhaps waited before they began."""
    works, events = times.works, times.of.events
    if times.unit != "s":
        return ()
    indices = [n for kind in _ANSWERS for n in times.of.of_type.get(kind, ()) if works[n] > ANSWER_SECONDS]
    indices = [n for n in indices if n not in times.stated.settled]
    slow = sorted(n for n in indices if events[n].inferred and works[n] > _longest_answer(events[n]))
    return tuple(OpenCall(index, Cause.ANSWER, None) for index in slow)


def _longest_answer(event: Event) -> float:
    """Return the longest time that an answer may take, in seconds; infinite if it only stands for an agent's life."""
    tokens = event.tokens
    if event.token_basis is TokenBasis.PLACEHOLDER:
        return ANSWER_SECONDS + TOKEN_SECONDS * MOST_OUTPUT_TOKENS
    if not tokens or tokens.output is None:
        is_stand_in = not (event.model or tokens or event.content_ref)
        return float("inf") if is_stand_in else OTHER_TOOL_SECONDS
    return ANSWER_SECONDS + TOKEN_SECONDS * tokens.output


def _is_long(tool: str, seconds: float, usual: float | None) -> bool:
    name = tool.rpartition(".")[2].lower()
    if name in _FILE_TOOLS:
        return seconds > FILE_TOOL_SECONDS
    if usual is None and name not in _COMMANDS_AND_SEARCHES:
        return False
    return seconds > max(OTHER_TOOL_SECONDS, TIMES_THE_MEDIAN * (usual or 0.0))


def _median_of_others(durations: list[float], one: float) -> float | None:
    """Return the lower median of sorted durations without one of them; None if too few are left."""
    if len(durations) <= LEAST_OTHER_CALLS:
        return None
    place = (len(durations) - 2) // 2
    return durations[place + (one <= durations[place])]


def _asked(times: Timing) -> frozenset[int]:
    """Return the calls that asked a person and whose answer has no time.

    A call asks where an edge leads from it to a human intervention; or an edge of type `safety_flow` to a safety event
    that takes no time (a guard at work does), did not fail, and that no human intervention follows, which would say how
    long it waited.
    """
    of, works, ends = times.of, times.works, times.ends
    people = of.of_type.get(EventType.HUMAN, ())
    guards = of.of_type.get(EventType.SAFETY, ())
    if not people and not guards:
        return frozenset()
    asked = set(people)
    pairs = [(source, target) for source, target in zip(of.sources, of.targets, strict=True) if target in asked]
    released = {source for source, _ in pairs}
    questions = {
        index for index in guards if of.events[index].status is not Status.ERROR and ends[index] == times.starts[index]
    } - released
    if questions:
        flows = zip(of.sources, of.targets, of.edges, strict=True)
        pairs += [(a, b) for a, b, edge in flows if edge.type is EdgeType.SAFETY and b in questions]
    return frozenset(
        call
        for call, question in pairs
        if of.events[call].type is EventType.TOOL_CALL
        and works[call] > ASKED_SECONDS
        and times.starts[question] < ends[call]
    )
