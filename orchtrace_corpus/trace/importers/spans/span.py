"""Spans, which the modules of span formats make of their records, and functions that several of these formats share.

OpenAI Agents SDK, OpenTelemetry, LangSmith, Inspect AI and ATOF write spans: records with a beginning, an end and a
parent. `tree` makes a tree of them and counts their tokens, `team` finds the agents, `events` writes the events.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core.json_parts import decoded
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.usage import Usage
from orchtrace_corpus.trace.importers.core.values import (
    as_array,
    as_count,
    as_text,
    object_field,
    objects_in,
    text_field,
)
from orchtrace_corpus.trace.model.terms import Status

_OK = {"status": Status.OK}

PARENT_COMMAND = "ParentCommand"
"""The exception by which a LangGraph task hands over to another graph. It is no error."""


class Kind(StrEnum):
    """The kind of a span. A `CHAIN` only contains other spans."""

    AGENT = "agent"
    INFERENCE = "inference"
    TOOL = "tool"
    HANDOFF = "handoff"
    GUARDRAIL = "guardrail"
    PERSON = "person"
    CHAIN = "chain"


AGENT, INFERENCE, TOOL, HANDOFF, GUARDRAIL, PERSON, CHAIN = Kind
"""The members of `Kind`, because Python 3.11 is slow to look up a member of an enumeration."""


class Call(NamedTuple):
    """A tool call that a model asked for."""

    id: str
    tool: str
    arguments: str  # a reference to the arguments


class Task(NamedTuple):
    """A LangGraph task: one run of a node of a graph."""

    step: int  # the superstep in which it ran
    node: str  # the name of the node
    triggers: tuple[str, ...]  # the channels that made it run
    namespace: str  # the checkpoint namespace, which all runs inside the task have


class Span(msgspec.Struct, gc=False):
    """One span of a log."""

    id: str  # unique in its trace
    parent: str  # the id of the span around it; empty for none
    kind: Kind
    name: str  # the name of the agent or tool, or of the span itself
    file: str  # the name of the file, as events show it
    line: int  # the line on which its record begins
    other_parent: str = ""  # the id of a parent that is used if the log does not have `parent`
    start: float | None = None  # when it began, in seconds since 1970; None if the log does not say
    end: float | None = None  # when it ended
    is_named: bool = False  # True if `name` is the name of an agent, not only of the span
    agent: str = ""  # the agent that the log names for the span; used if the span is inside no agent's span
    target: str = ""  # the agent that takes over, for a handoff
    follows: str = ""  # the agent that acted before this agent, if the log names it
    usage: Usage | None = None  # its token counts
    is_cumulative: bool = False  # True if the counts are those of a shared counter, not of this span alone
    model: str = ""  # the model that answered
    call_id: str = ""  # the id of the tool call that the span carries out
    calls: tuple[Call, ...] = ()  # the tool calls that a model's answer asks for
    arguments: str = ""  # a reference to the arguments of a tool
    output: str = ""  # a reference to the output
    is_error: bool = False  # True if it failed
    error_type: str = ""  # the kind of error
    is_triggered: bool = False  # True for a guardrail that stopped something
    is_interrupted: bool = False  # True if it stopped to ask a person
    task: Task | None = None  # the LangGraph task that it belongs to
    routes: tuple[str, ...] = ()  # the nodes that the task chose to run next
    unknown: str = ""  # its kind in the log, if the importer does not know that kind
    library: str = ""  # the library that wrote it, or else the dialect of its attributes
    is_free: bool = False  # True if the answer came from the cache of an earlier run, and cost nothing
    more: dict[str, Any] | None = None  # further fields of its event, such as `run_time`; times in seconds since 1970

    @property
    def has_failed(self) -> bool:
        """Return True if the span failed. A span that stopped to ask a person did not."""
        return self.is_error and not self.is_interrupted

    @property
    def failure(self) -> dict[str, Any]:
        """Return the fields of the event of a span that failed: status and kind of error; empty for other spans."""
        return {"status": Status.ERROR, "error_type": masked(self.error_type)} if self.has_failed else {}

    @property
    def ending(self) -> dict[str, Any]:
        """Return the status of a span that ended, with the kind of error if it failed; empty for other spans."""
        return self.failure or (_OK if self.end is not None else {})

    @property
    def where(self) -> str:
        """Return the place in the log, for the report."""
        return f"{self.file}:{self.line}"


class Bundle(msgspec.Struct):
    """The spans of one trace, in the order of the log."""

    trace_id: str
    name: str = ""  # the name of the run, if the log has one
    system: str = ""  # the system that ran, if the log names it
    version: str = ""  # the version of the program that wrote the log
    spans: list[Span] = []
    scores: dict[str, float] = {}  # the scores that people or evaluators gave the run, by name


_CONTAINERS = ("parts", "output", "message", "kwargs", "generations", "messages", "choices", "content")
"""The members of an answer inside which calls may be."""


def calls_of(answer: Any, privacy: Privacy) -> tuple[Call, ...]:
    """Return the tool calls in an answer of a model, which may be JSON in a text.

    They are message parts of GenAI, items of OpenAI's Responses, blocks of Anthropic, or in `tool_calls` of messages,
    as in Chat Completions and LangChain.
    """
    if isinstance(answer, str):
        answer = decoded(answer) if "_call" in answer else None
    calls: list[Call] = []
    waiting = [answer]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += reversed(value)
        if not isinstance(value, dict):
            continue
        is_call = value.get("type") in ("tool_call", "function_call", "tool_use") and "name" in value
        stated_calls = [value] if is_call else objects_in(value.get("tool_calls"))
        for call in stated_calls:
            function = object_field(call, "function") or call
            arguments = next((function[name] for name in ("arguments", "args", "input") if name in function), None)
            if tool := text_field(function, "name"):
                call_id = text_field(call, "call_id") or text_field(call, "id")
                calls.append(Call(call_id, tool, privacy.reference(arguments)))
        if not stated_calls:
            waiting += [value[name] for name in _CONTAINERS if name in value]
    return tuple(calls)


_ERROR_KIND = re.compile(r"[A-Za-z_][\w.]{0,80}?(?:Error|Exception|Exceeded|Timeout|Interrupt|Warning|Exit)\b").match


def error_kind(message: Any) -> str:
    """Return the kind of error at the start of a message, such as `ValueError`; the rest of the message is private."""
    match = _ERROR_KIND(as_text(message))
    return match.group() if match else ""


def langgraph_task(metadata: Mapping[str, Any]) -> Task | None:
    """Return the LangGraph task that metadata describe; None if they describe none."""
    namespace = as_text(metadata.get("langgraph_checkpoint_ns"))
    node = as_text(metadata.get("langgraph_node"))
    step = as_count(metadata.get("langgraph_step"))
    if not namespace or not node or step is None:
        return None
    triggers = tuple(name for name in as_array(metadata.get("langgraph_triggers")) if isinstance(name, str))
    return Task(step, node, triggers, namespace)


def langgraph_routes(output: Any) -> tuple[str, ...]:
    """Return the nodes that a task chose to run next, by its output: a `Command`, or the result of a condition."""
    if isinstance(output, dict):
        output = output["goto"] if "goto" in output and "update" in output else output.get("output")
        if isinstance(output, dict):
            output = output.get("goto")
    if isinstance(output, str):
        if output.startswith("Command("):
            match = re.search(r"goto=(\[[^\]]{0,2000}\]|'[^']{0,200}'|\"[^\"]{0,200}\")", output)
            quoted_names = re.findall(r"'([^']*)'|\"([^\"]*)\"", match.group(1)) if match else []
            output = [single_quoted or double_quoted for single_quoted, double_quoted in quoted_names]
        else:
            output = [output]
    return tuple(name for name in as_array(output) if isinstance(name, str) and len(name) < 200)
