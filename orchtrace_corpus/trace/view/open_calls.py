"""Open calls: calls of tools and models that took far longer than their work usually takes, so perhaps they waited.

A log records when a tool was called and when its result came. The time in between is work of the tool, or a wait for
permission to begin; few logs say which. Transcripts record when a model's answer was written, but not when the model
was called. The answer is assumed to begin with the input before it, which may have come long before the agent
continued. Such calls are open calls. Figures that depend on them are given twice: as if the calls had worked all the
time, and as if they had only waited.

A tool call is open if it asked a person and took more than 1 s, or if it took longer than

- 30 s, for a tool that works on files, lists or plans: these never work for minutes;
- 180 s and ten times the median of the other calls of its tool in the run, for any other tool. The median is not
  distorted by open calls as long as they are less than half. With fewer than three other calls, 180 s alone is the
  limit for commands and searches, and calls of other tools are never open.

A model call is open if its begin is only inferred and it took longer than 30 s and 0.1 s for each token that it wrote,
including reasoning; or longer than 180 s if the log does not count its output. The models of these logs begin within
seconds and write more than ten tokens per second. A count that was logged before the model had finished says nothing
about the output: such an answer may be as long as the longest.

Claude Code stops a command after 120 s unless the call names another limit, hence the 180 s.

A call is never open if a stated duration tells how long it worked: its own run time, or the duration of its turn. A
call that the log shows unfinished is open from the time at which it was last seen: it may have ended then.
"""

from __future__ import annotations

from enum import StrEnum

from orchtrace_corpus.base.annotations import TYPE_CHECKING
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
"""The longest answer: Claude Code's default limit on the output of a model call."""
TIMES_THE_MEDIAN = 10.0
LEAST_OTHER_CALLS = 3

_FILE_TOOLS = frozenset(
    (
        "apply_patch", "create_file", "edit", "edit_file", "glob", "grep", "list_dir", "list_directory", "ls",
        "multiedit", "notebookedit", "notebookread", "read", "read_file", "replace", "str_replace_editor",
        "str_replace_based_edit_tool", "todoread", "todowrite", "update_plan", "view_image", "write", "write_file",
    )
)  # fmt: skip

_ANSWERS = (EventType.INFERENCE, EventType.DECISION, EventType.AGGREGATE)
_COMMANDS_AND_SEARCHES = frozenset(
    (
        "bash", "exec", "exec_command", "local_shell", "powershell", "run_shell_command", "shell", "shell_command",
        "web_search", "webfetch", "websearch", "write_stdin",
    )
)  # fmt: skip


class Cause(StrEnum):
    """The reason why a call counts as open."""

    LONG = "long"
    ANSWER_TYPES = "asked"
    ANSWER = "answer"
    UNFINISHED = "unfinished"


class OpenCall(NamedTuple):
    """A call that perhaps waited instead of working.

    Attributes:
        event: The index of the call's event.
        cause: Why the call counts as open; `answer` for a model call.
        usual: The median duration of the other calls of its tool, in seconds; None with fewer than three, and for
            model calls.
    """

    event: int
    cause: Cause
    usual: float | None


def open_calls(times: Timing) -> tuple[OpenCall, ...]:
    """Return the open calls of a run: those of tools, then those of models, each by index."""
    works, events, settled = times.works, times.graph.events, times.stated.settled
    tool_calls = [index for index in times.graph.indices_by_type.get(EventType.TOOL_CALL, ()) if works[index] > 0]
    asked = _asked(times)
    candidates = tool_calls
    if not asked:
        candidates = [index for index in tool_calls if works[index] > FILE_TOOL_SECONDS and times.unit == "s"]
    by_tool: dict[str, list[float]] = {}
    if candidates:
        for index in tool_calls:
            by_tool.setdefault(events[index].tool, []).append(works[index])
        for durations in by_tool.values():
            durations.sort()
    opened = [
        OpenCall(index, Cause.UNFINISHED, None)
        for index, last_seen in times.last_seen.items()
        if times.ends[index] > last_seen and index not in times.off_clock
    ]
    for index in candidates:
        event = events[index]
        if index in settled or index in times.last_seen or event.background or event.run_time is not None:
            continue
        usual = _median_of_others(by_tool[event.tool], works[index])
        if index in asked:
            opened.append(OpenCall(index, Cause.ANSWER_TYPES, usual))
        elif times.unit == "s" and _is_long(event.tool, works[index], usual):
            opened.append(OpenCall(index, Cause.LONG, usual))
    return (*sorted(opened), *_open_answers(times))


def _open_answers(times: Timing) -> list[OpenCall]:
    """Return the answers of models that perhaps waited before they began."""
    works, events = times.works, times.graph.events
    if times.unit != "s":
        return []
    indices = [n for kind in _ANSWERS for n in times.graph.indices_by_type.get(kind, ()) if works[n] > ANSWER_SECONDS]
    indices = [n for n in indices if n not in times.stated.settled and events[n].inferred]
    slow = sorted(n for n in indices if works[n] > _longest_answer(events[n]))
    return [OpenCall(index, Cause.ANSWER, None) for index in slow]


def _longest_answer(event: Event) -> float:
    """Return the seconds that an answer may take at most; infinite if the event stands for an agent's whole life."""
    if event.token_basis is TokenBasis.PLACEHOLDER:
        return ANSWER_SECONDS + TOKEN_SECONDS * MOST_OUTPUT_TOKENS
    if event.tokens and event.tokens.output is not None:
        return ANSWER_SECONDS + TOKEN_SECONDS * event.tokens.output
    if event.model or event.tokens or event.content_ref:
        return OTHER_TOOL_SECONDS
    return float("inf")


def _is_long(tool: str, seconds: float, usual: float | None) -> bool:
    name = tool.rpartition(".")[2].lower()
    if name in _FILE_TOOLS:
        return seconds > FILE_TOOL_SECONDS
    if usual is None and name not in _COMMANDS_AND_SEARCHES:
        return False
    return seconds > max(OTHER_TOOL_SECONDS, TIMES_THE_MEDIAN * (usual or 0.0))


def _median_of_others(durations: list[float], excluded: float) -> float | None:
    """Return the lower median of sorted durations without one of them; None if too few are left."""
    if len(durations) <= LEAST_OTHER_CALLS:
        return None
    place = (len(durations) - 2) // 2
    if excluded <= durations[place]:  # without it, the values that follow move down by one place
        place += 1
    return durations[place]


def _asked(times: Timing) -> frozenset[int]:
    """Return the tool calls that asked a person while they were open, and took more than a second.

    A call asks if an edge leads from it to a human intervention, or a `safety_flow` edge to a safety event that takes
    no time (a guard at work does) and did not fail. A safety event that a human intervention follows is left out:
    the intervention shows how long the call waited.
    """
    graph, works, starts, ends = times.graph, times.works, times.starts, times.ends
    people = set(graph.indices_by_type.get(EventType.HUMAN, ()))
    guards = graph.indices_by_type.get(EventType.SAFETY, ())
    if not people and not guards:
        return frozenset()
    pairs = [pair for pair in zip(graph.sources, graph.targets, strict=True) if pair[1] in people]
    before_people = {source for source, _ in pairs}
    questions = {
        index for index in guards if graph.events[index].status is not Status.ERROR and ends[index] == starts[index]
    } - before_people
    if questions:
        edges = zip(graph.sources, graph.targets, graph.edges, strict=True)
        pairs += [(call, guard) for call, guard, edge in edges if edge.type is EdgeType.SAFETY and guard in questions]
    return frozenset(
        call
        for call, question in pairs
        if graph.events[call].type is EventType.TOOL_CALL
        and works[call] > ASKED_SECONDS
        and starts[question] < ends[call]
    )
