"""Open calls: calls of tools and models that took far longer than their work usually takes, so perhaps they waited.

A log records when a tool was called and when its result came. In between, the tool worked or waited for permission to
begin; few logs say which. Transcripts record when a model's answer was written, but not when the model was called. The
answer is assumed to begin with the input before it, which may have come long before the agent continued. Figures that
depend on open calls are given twice: as if the calls had worked all the time, and as if they had only waited.

A tool call is open if it asked a person and took more than 1 s, or if it took longer than

- 30 s, for a tool that works on files, lists or plans: such tools never work for minutes;
- 180 s and ten times the median duration of the other calls of its tool in the run, for any other tool. Open calls do
  not distort the median as long as they are less than half. With fewer than three other calls, 180 s alone is the
  limit for commands and searches, and calls of other tools are never open.

Claude Code stops a command after 120 s unless the call names another limit, hence the 180 s.

A model call is open if its begin is only inferred and it took longer than 30 s plus 0.1 s for each token that it wrote,
including reasoning. Models begin within seconds and write more than ten tokens per second. If the log does not count
the output, the limit is 180 s. If the log counted before the model had finished, the output may be as long as the
longest.

A call is never open if a stated duration shows how long it worked: its own run time, or the duration of its turn. A
call that is unfinished in the log is open from the time at which it was last seen: it may have ended then.
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
SECONDS_PER_TOKEN = 0.1
MAX_OUTPUT_TOKENS = 32_000
"""The longest answer: Claude Code's default limit on the output of a model call."""
MEDIAN_FACTOR = 10.0
MIN_OTHER_CALLS = 3

_FILE_TOOLS = frozenset(
    (
        "apply_patch", "create_file", "edit", "edit_file", "glob", "grep", "list_dir", "list_directory", "ls",
        "multiedit", "notebookedit", "notebookread", "read", "read_file", "replace", "str_replace_editor",
        "str_replace_based_edit_tool", "todoread", "todowrite", "update_plan", "view_image", "write", "write_file",
    )
)  # fmt: skip

_ANSWER_TYPES = (EventType.INFERENCE, EventType.DECISION, EventType.AGGREGATE)
_COMMANDS_AND_SEARCHES = frozenset(
    (
        "bash", "exec", "exec_command", "local_shell", "powershell", "run_shell_command", "shell", "shell_command",
        "web_search", "webfetch", "websearch", "write_stdin",
    )
)  # fmt: skip


class Cause(StrEnum):
    """The reason why a call counts as open.

    It took long, it asked a person, it is an answer of a model that took long, or its end is not in the log.
    """

    LONG = "long"
    ASKED = "asked"
    ANSWER = "answer"
    UNFINISHED = "unfinished"


class OpenCall(NamedTuple):
    """A call that perhaps waited instead of working.

    Attributes:
        event: The index of the call's event.
        cause: The reason why the call counts as open; `answer` for a model call.
        usual: The median duration of the other calls of its tool, in seconds; None if there are fewer than three other
            calls, and for model calls.
    """

    event: int
    cause: Cause
    usual: float | None


def open_calls(times: Timing) -> tuple[OpenCall, ...]:
    """Return the open calls of a run: first of tools, then of models, both by index."""
    works, events = times.works, times.graph.events
    tool_calls = [index for index in times.graph.indices_by_type.get(EventType.TOOL_CALL, ()) if works[index] > 0]
    calls_that_asked = _calls_that_asked(times)
    # A call that did not ask is never open in a trace that counts steps, nor if it took less than `FILE_TOOL_SECONDS`.
    min_seconds = FILE_TOOL_SECONDS if times.unit == "s" else float("inf")
    candidates = [index for index in tool_calls if index in calls_that_asked or works[index] > min_seconds]
    durations_by_tool: dict[str, list[float]] = {}
    if candidates:
        for index in tool_calls:
            durations_by_tool.setdefault(events[index].tool, []).append(works[index])
        for durations in durations_by_tool.values():
            durations.sort()
    found = [
        OpenCall(index, Cause.UNFINISHED, None)
        for index, last_seen in times.last_seen.items()
        if times.ends[index] > last_seen and index not in times.off_clock
    ]
    for index in candidates:
        event = events[index]
        if index in times.last_seen or event.background:
            continue
        if index in times.stated.with_known_work or event.run_time is not None:
            continue  # a stated duration shows how long it worked
        usual = _median_of_others(durations_by_tool[event.tool], works[index])
        if index in calls_that_asked:
            found.append(OpenCall(index, Cause.ASKED, usual))
        elif _is_long(event.tool, works[index], usual):
            found.append(OpenCall(index, Cause.LONG, usual))
    return (*sorted(found), *_open_answers(times))


def _open_answers(times: Timing) -> list[OpenCall]:
    """Return the answers of models that perhaps waited before they began."""
    works, events = times.works, times.graph.events
    if times.unit != "s":
        return []
    answers = times.graph.indices_of(_ANSWER_TYPES)
    slow = [index for index in answers if works[index] > ANSWER_SECONDS and events[index].inferred]
    slow = [index for index in slow if index not in times.stated.with_known_work]
    too_slow = [index for index in slow if works[index] > _max_answer_seconds(events[index])]
    return [OpenCall(index, Cause.ANSWER, None) for index in sorted(too_slow)]


def _max_answer_seconds(event: Event) -> float:
    """Return the seconds that an answer may take at most; infinite if the event represents an agent's whole life."""
    if event.token_basis is TokenBasis.PLACEHOLDER:
        return ANSWER_SECONDS + SECONDS_PER_TOKEN * MAX_OUTPUT_TOKENS
    if event.tokens and event.tokens.output is not None:
        return ANSWER_SECONDS + SECONDS_PER_TOKEN * event.tokens.output
    if event.model or event.tokens or event.content_ref:
        return OTHER_TOOL_SECONDS
    return float("inf")


def _is_long(tool: str, seconds: float, usual: float | None) -> bool:
    """Return True if a call took longer than the work of its tool usually takes."""
    name = tool.rpartition(".")[2].lower()
    if name in _FILE_TOOLS:
        return seconds > FILE_TOOL_SECONDS
    if usual is None and name not in _COMMANDS_AND_SEARCHES:
        return False
    return seconds > max(OTHER_TOOL_SECONDS, MEDIAN_FACTOR * (usual or 0.0))


def _median_of_others(durations: list[float], excluded: float) -> float | None:
    """Return the lower median of sorted durations without the duration `excluded`; None if too few are left."""
    if len(durations) <= MIN_OTHER_CALLS:
        return None
    place = (len(durations) - 2) // 2
    if excluded <= durations[place]:  # without the excluded duration, the following ones move down by one place
        place += 1
    return durations[place]


def _calls_that_asked(times: Timing) -> frozenset[int]:
    """Return the tool calls that asked a person before they ended, and took more than a second.

    A call asks if an edge leads from it to a human intervention. It also asks if a `safety_flow` edge leads from it to
    a safety event that takes no time and did not fail; a safety event that takes time is a guard at work. A safety
    event that a human intervention follows does not count, since the intervention shows how long the call waited.
    """
    graph, works, starts, ends = times.graph, times.works, times.starts, times.ends
    interventions = set(graph.indices_by_type.get(EventType.HUMAN, ()))
    safety_events = graph.indices_by_type.get(EventType.SAFETY, ())
    if not interventions and not safety_events:
        return frozenset()
    pairs = [pair for pair in zip(graph.sources, graph.targets, strict=True) if pair[1] in interventions]
    questions = {index for index in safety_events if ends[index] == starts[index]}
    questions = {index for index in questions if graph.events[index].status is not Status.ERROR}
    questions -= {source for source, _ in pairs}
    if questions:
        edges = zip(graph.sources, graph.targets, graph.edges, strict=True)
        pairs += [(source, to) for source, to, edge in edges if edge.type is EdgeType.SAFETY and to in questions]
    return frozenset(
        call
        for call, question in pairs
        if graph.events[call].type is EventType.TOOL_CALL
        and works[call] > ASKED_SECONDS
        and starts[question] < ends[call]
    )
