"""Spans: what the log formats of span trees have in common, and the way from their files to traces.

OpenAI Agents SDK, OpenTelemetry, LangSmith, Inspect AI and ATOF all write spans: something with a beginning, an end
and a parent. The module of each format turns its records into `Span`s. From there on all go one way: `tree` makes a
tree of whatever the records say and decides which token counts are counted, `team` finds the agents, and `events`
writes the events.
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
from orchtrace_corpus.trace.importers.core.values import count, items, object_field, objects, string, text_field
from orchtrace_corpus.trace.model.terms import Status

_OK = {"status": Status.OK}

PARENT_COMMAND = "ParentCommand"
"""With this, LangGraph's tasks hand over to another graph: it is raised like an error, and is none."""


class Kind(StrEnum):
    """The kind of a span; `CHAIN` only holds other spans."""

    AGENT = "agent"
    INFERENCE = "inference"
    TOOL = "tool"
    HANDOFF = "handoff"
    GUARDRAIL = "guardrail"
    PERSON = "person"
    CHAIN = "chain"


AGENT, INFERENCE, TOOL, HANDOFF, GUARDRAIL, PERSON, CHAIN = Kind
"""The kinds once more: Python 3.11 takes long to find a member of an enumeration, and every span is asked."""


class Call(NamedTuple):
    """A tool call that a model asked for. `arguments` is a reference to them."""

    id: str
    tool: str
    arguments: str


class Task(NamedTuple):
    """A node of a LangGraph graph at work, as the metadata of its runs tell."""

    step: int  # the superstep in which it ran
    node: str  # the node's name
    triggers: tuple[str, ...]  # the channels that made it run
    namespace: str  # tells this task from all others; runs inside the task carry it, too


class Span(msgspec.Struct, gc=False):
    """One span of a log."""

    id: str  # its id, unique in its trace
    parent: str  # the id of the span that it belongs to; empty for none
    kind: Kind  # what it stands for
    name: str  # its name: of an agent or a tool, the agent's or the tool's
    file: str  # the file it was read from, as events call it
    line: int  # the line on which it begins
    other_parent: str = ""  # the id of a span that it belongs to where the parent is not in the log
    start: float | None = None  # when it began, in seconds since 1970; None where the log does not say
    end: float | None = None  # when it ended
    is_named: bool = False  # whether an agent's name was given as such, not taken from the span's
    agent: str = ""  # the agent that the span says it belongs to, which counts where it lies in no agent's span
    target: str = ""  # of a handoff, the agent that takes over
    follows: str = ""  # the agent that acted before this one, where the log says so by name
    usage: Usage | None = None  # its token counts
    is_cumulative: bool = False  # whether the counts are the state of a shared counter rather than the span's own
    model: str = ""  # the model that answered
    call_id: str = ""  # the id of the tool call that the span carries out
    calls: tuple[Call, ...] = ()  # of a model's answer, the tool calls that it asks for
    arguments: str = ""  # a reference to what a tool was given
    output: str = ""  # a reference to what came out
    is_error: bool = False  # whether it failed
    error_type: str = ""  # the kind of error
    is_triggered: bool = False  # whether a guardrail has stopped something
    is_interrupted: bool = False  # whether it stopped to ask a person
    task: Task | None = None  # the LangGraph task that it belongs to
    routes: tuple[str, ...] = ()  # the nodes that the task says shall run next
    unknown: str = ""  # what the log calls it, if the format does not know it
    library: str = ""  # what wrote it: the instrumentation, or else the dialect of its attributes
    is_free: bool = False  # whether it is an answer that nobody paid for, since it was kept from an earlier run
    more: dict[str, Any] | None = None  # further fields of its event, such as `run_time`; times are seconds since 1970

    @property
    def has_failed(self) -> bool:
        """Return True if it failed; one that stopped to ask a person did not."""
        return self.is_error and not self.is_interrupted

    @property
    def failure(self) -> dict[str, Any]:
        """Return how it failed, in the schema's words; empty if it did not."""
        return {"status": Status.ERROR, "error_type": masked(self.error_type)} if self.has_failed else {}

    @property
    def ending(self) -> dict[str, Any]:
        """Return how it ended, in the schema's words; empty if it has not."""
        return self.failure or (_OK if self.end is not None else {})

    @property
    def where(self) -> str:
        """Its place in the log, for the report."""
        return f"{self.file}:{self.line}"


class Bundle(msgspec.Struct):
    """The spans of one trace, in the order of the log."""

    trace_id: str  # the trace's id
    name: str = ""  # what ran, if the log names it
    system: str = ""  # the system that ran, if the log names it
    version: str = ""  # the version of the program that wrote the log
    spans: list[Span] = []
    scores: dict[str, float] = {}  # what people or evaluators gave the run, by the name of the score


_HOLDERS = ("parts", "output", "message", "kwargs", "generations", "messages", "choices", "content")
"""The members of an answer in which calls are looked for."""


def calls_of(answer: Any, privacy: Privacy) -> tuple[Call, ...]:
    """Return the tool calls in an answer of a model, given as JSON or as values.

    Known are the message parts of GenAI, the items of OpenAI's Responses, the blocks of Anthropic, and messages with
    `tool_calls`, as in Chat Completions and LangChain.
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
        called = [value] if is_call else objects(value.get("tool_calls"))
        for call in called:
            function = object_field(call, "function") or call
            arguments = next((function[name] for name in ("arguments", "args", "input") if name in function), None)
            if tool := text_field(function, "name"):
                call_id = text_field(call, "call_id") or text_field(call, "id")
                calls.append(Call(call_id, tool, privacy.reference(arguments)))
        if not called:
            waiting += [value[name] for name in _HOLDERS if name in value]
    return tuple(calls)


def error_kind(message: Any) -> str:
    """Return the kind of an error by how its message begins, such as `ValueError`; the message itself is content."""
    match = re.match(
        r"[A-Za-z_][\w.]{0,80}?(?:Error|Exception|Exceeded|Timeout|Interrupt|Warning|Exit)\b", string(message)
    )
    return match.group() if match else ""


def langgraph_task(metadata: Mapping[str, Any]) -> Task | None:
    """Return the LangGraph task that metadata tell of; None if they tell of none."""
    namespace = string(metadata.get("langgraph_checkpoint_ns"))
    node = string(metadata.get("langgraph_node"))
    step = count(metadata.get("langgraph_step"))
    if not namespace or not node or step is None:
        return None
    triggers = tuple(name for name in items(metadata.get("langgraph_triggers")) if isinstance(name, str))
    return Task(step, node, triggers, namespace)


def langgraph_routes(output: Any) -> tuple[str, ...]:
    """Return the nodes that run next by a task's output: a `Command`, or what a conditional edge has answered."""
    if isinstance(output, dict):
        output = output["goto"] if "goto" in output and "update" in output else output.get("output")
        if isinstance(output, dict):
            output = output.get("goto")
    if isinstance(output, str):
        if output.startswith("Command("):
            match = re.search(r"goto=(\[[^\]]{0,2000}\]|'[^']{0,200}'|\"[^\"]{0,200}\")", output)
            output = re.findall(r"'([^']*)'|\"([^\"]*)\"", match.group(1)) if match else []
            output = [first or second for first, second in output]
        else:
            output = [output]
    return tuple(name for name in items(output) if isinstance(name, str) and len(name) < 200)
