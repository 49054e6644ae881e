"""Span trees: what three log formats have in common, and the way from their files to traces.

OpenAI Agents SDK, OpenTelemetry and LangSmith all write spans: something with a beginning, an end and a parent.
The module of each format turns its records into `Span`s. From there on all go one way: `tree` makes a tree
of whatever the records say, `usage` decides which token counts are counted, `team` finds the agents, and
`events` writes the events.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core.usage import Usage
from orchtrace_corpus.trace.importers.core.values import count, items, string

USER = "user"
"""The name under which people act in a trace."""

PARENT_COMMAND = "ParentCommand"
"""With this, LangGraph's tasks hand over to another graph: it is raised like an error, and is none."""


class Kind(StrEnum):
    """What a span stands for; `CHAIN` for whatever merely holds other spans."""

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
    """A node of a LangGraph graph at work, as the metadata of its runs tell.

    Attributes:
        step: The superstep in which it ran.
        node: The node's name.
        triggers: The channels that made it run.
        namespace: Tells this task from all others; runs inside the task carry it, too.
    """

    step: int
    node: str
    triggers: tuple[str, ...]
    namespace: str


class Span(msgspec.Struct, gc=False):
    """One span of a log.

    Attributes:
        id: Its id, unique in its trace.
        parent: The id of the span that it belongs to; empty for none.
        kind: What it stands for.
        name: Its name: of an agent or a tool, the agent's or the tool's.
        file: The file it was read from, as events call it.
        line: The line on which it begins.
        other_parent: The id of a span that it belongs to where the parent is not in the log.
        start: When it began, in seconds since 1970; None where the log does not say.
        end: When it ended.
        is_named: Whether an agent's name was given as such, not taken from the span's.
        agent: The agent that the span says it belongs to, which counts where it lies in no agent's span.
        target: Of a handoff, the agent that takes over.
        follows: The agent that acted before this one, where the log says so by name.
        usage: Its token counts.
        is_cumulative: Whether the counts are the state of a shared counter rather than the span's own.
        model: The model that answered.
        call_id: The id of the tool call that the span carries out.
        calls: Of a model's answer, the tool calls that it asks for.
        arguments: A reference to what a tool was given.
        output: A reference to what came out.
        is_error: Whether it failed.
        error_type: The kind of error.
        is_triggered: Whether a guardrail has stopped something.
        is_interrupted: Whether it stopped to ask a person.
        task: The LangGraph task that it belongs to.
        routes: The nodes that the task says shall run next.
        unknown: What the log calls it, if the format does not know it.
        library: What wrote it: the instrumentation, or else the dialect of its attributes.
        is_free: Whether it is an answer that nobody paid for, since it was kept from an earlier run.
        more: Further fields of its event, such as `run_time`; times are seconds since 1970.
    """

    id: str
    parent: str
    kind: Kind
    name: str
    file: str
    line: int
    other_parent: str = ""
    start: float | None = None
    end: float | None = None
    is_named: bool = False
    agent: str = ""
    target: str = ""
    follows: str = ""
    usage: Usage | None = None
    is_cumulative: bool = False
    model: str = ""
    call_id: str = ""
    calls: tuple[Call, ...] = ()
    arguments: str = ""
    output: str = ""
    is_error: bool = False
    error_type: str = ""
    is_triggered: bool = False
    is_interrupted: bool = False
    task: Task | None = None
    routes: tuple[str, ...] = ()
    unknown: str = ""
    library: str = ""
    is_free: bool = False
    more: dict[str, Any] | None = None

    @property
    def where(self) -> str:
        """Its place in the log, for the report."""
        return f"{self.file}:{self.line}"


class Bundle(msgspec.Struct):
    """The spans of one trace, in the order of the log.

    Attributes:
        trace_id: The trace's id.
        name: What ran, if the log names it.
        system: The system that ran, if the log names it.
        version: The version of the program that wrote the log.
        spans: The spans.
        scores: What people or evaluators gave the run, by the name of the score.
    """

    trace_id: str
    name: str = ""
    system: str = ""
    version: str = ""
    spans: list[Span] = []
    scores: dict[str, float] = {}


def error_kind(message: Any) -> str:
    """Return the kind of an error by how its message begins, such as `ValueError`; the message itself is content."""
    found = re.match(
        r"[A-Za-z_][\w.]{0,80}?(?:Error|Exception|Exceeded|Timeout|Interrupt|Warning|Exit)\b", string(message)
    )
    return found.group() if found else ""


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
            found = re.search(r"goto=(\[[^\]]{0,2000}\]|'[^']{0,200}'|\"[^\"]{0,200}\")", output)
            output = re.findall(r"'([^']*)'|\"([^\"]*)\"", found.group(1)) if found else []
            output = [first or second for first, second in output]
        else:
            output = [output]
    return tuple(name for name in items(output) if isinstance(name, str) and len(name) < 200)
