"""Commands and monitors of a Claude Code session that go on in the background, until the log shows their end.

The result of such a call only says that its task has begun, and how it is called. The task ends with the first sign of
its end: a notification with a status, in the queue of the program or among the rows of the agent; the result of a call
that asks for its output; or the result of a call that stops it. Notifications without a status, and outputs of a task
that runs, are signs that it goes on. A task without a sign of its end was at work at least until its last sign.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.conversations.claude_code import rows
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.values import string
from orchtrace_corpus.trace.model.trace import Status

_LAUNCHED = re.compile(
    r"(?:Command [^\n]{1,120}?\bbackground(?:ed by user)? with ID: |Monitor started \(task )([\w-]+)"
)
"""The words with which a result says that its call goes on, if it has no structured part."""

ENDS = {
    "completed": Status.OK,
    "failed": Status.ERROR,
    "error": Status.ERROR,
    "killed": Status.CANCELLED,
    "stopped": Status.CANCELLED,
    "cancelled": Status.CANCELLED,
    "timeout": Status.CANCELLED,
    "timed_out": Status.CANCELLED,
}
"""The words for the end of a task; under any other word it goes on."""

POLLS = frozenset(("BashOutput", "TaskOutput", "AgentOutputTool"))
"""The tools that ask for the output of a task."""

STOPS = frozenset(("KillBash", "KillShell", "TaskStop"))
"""The tools that stop a task."""


class Launch(NamedTuple):
    """A call that has begun a task: the task, the id of the call in the log, and the call."""

    task: str
    id: str
    tool_call: steps.ToolCall


class Sign(Struct):
    """A sign of life or of the end of a task.

    Attributes:
        task: The task; empty if only the call is named.
        call: The id of the call that began it; empty if only the task is named.
        step: The time and the place of the sign.
        end: The status of the ended task; None if it goes on.
    """

    task: str
    call: str
    step: steps.Step
    end: Status | None


def launched_task(text: str, row: rows.Line) -> str:
    """Return the task that a call has begun, as its result says; empty where it has begun none."""
    if "background" not in text and not text.startswith("Monitor started"):
        return ""
    details = rows.details(row)
    if details is not None:
        is_monitor = text.startswith("Monitor started")
        return string(details.background_task) or (string(details.task) if is_monitor else "")
    match = _LAUNCHED.match(text)
    return match[1] if match else ""


def end_background_calls(launches: Iterable[Launch], signs: Iterable[Sign], notices: Sequence[rows.Notice]) -> None:
    """Give the calls in the background their ends, and join notices to them.

    Args:
        launches: The calls that have begun tasks, whose results are joined.
        signs: The signs of all tasks.
        notices: The notices among the rows of agents.
    """
    by_task: dict[str, list[steps.ToolCall]] = {}
    by_call: dict[str, steps.ToolCall] = {}
    for launch in launches:
        by_task.setdefault(launch.task, []).append(launch.tool_call)
        by_call.setdefault(launch.id, launch.tool_call)
    if not by_task:
        return
    for calls in by_task.values():
        calls.sort(key=lambda call: call.at)
    signs_of: dict[int, list[Sign]] = {}
    for sign in sorted(signs, key=lambda sign: sign.step.at):
        call = _launch(sign.task, sign.call, sign.step.time, by_task, by_call)
        if call is not None:
            signs_of.setdefault(id(call), []).append(sign)
            _note_poll(sign)
    for notice in notices:
        notice.step.tool_call = _launch(notice.task.task, notice.task.call, notice.step.time, by_task, by_call)
    for calls in by_task.values():
        for call in calls:
            _end(call, signs_of.get(id(call), []))


def _note_poll(sign: Sign) -> None:
    """Note that a call for the output of a task does nothing itself: while it waits, the task works."""
    poll = sign.step.tool_call if isinstance(sign.step, steps.ToolResult) else None
    if poll is not None and poll.tool in POLLS:
        poll.more = {**(poll.more or {}), "run_time": 0.0}


def _launch(
    task: str,
    call_id: str,
    time: float,
    by_task: Mapping[str, Sequence[steps.ToolCall]],
    by_call: Mapping[str, steps.ToolCall],
) -> steps.ToolCall | None:
    """Return the call that began a task: the one that is named, else the last of the task's name before a time."""
    if call_id and call_id in by_call:
        return by_call[call_id]
    earlier = [call for call in by_task.get(task, ()) if call.time <= time]
    return earlier[-1] if earlier else None


def _end(call: steps.ToolCall, signs: Sequence[Sign]) -> None:
    launched = call.answer.time if call.answer is not None else call.time
    last = next((sign for sign in signs if sign.end is not None), None)
    call.more = call.more or {}
    call.more["background"] = True
    if last is None:
        call.more["unfinished"] = True
        call.more["t_end"] = max([launched, *(sign.step.time for sign in signs)])
        return
    call.more["t_end"] = max(launched, last.step.time)
    call.more["status"] = last.end
    if last.end is Status.ERROR:
        call.more["error_type"] = "failed"
