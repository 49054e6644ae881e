"""An ATIF document as typed values, whatever is wrong with it, and on which lines its steps are.

Harbor, RFC 0001, Agent Trajectory Interchange Format, versions 1.0 to 1.8. Only members are decoded that say something
about agents, calls or tokens, each of any kind of value where nothing depends on it.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

ABSENT = Raw(b"null")
"""Stands for a member that is left undecoded, and is not there."""


class Invocation(Struct, gc=False):
    """When a call began and ended, in seconds since 1970, by NVIDIA's convention."""

    start_timestamp: Any = None
    end_timestamp: Any = None


class Extra(Struct, gc=False):
    """What is known of the members of `extra`, which are not those of ATIF."""

    invocation: Invocation | None = None
    ancestry: Raw = ABSENT
    status: Any = None
    is_error: Any = None
    agent_name: Any = None
    subagent_name: Any = None
    orchtrace: Raw = ABSENT


class Agent(Struct, gc=False):
    """The agent of a trajectory."""

    name: Any = None
    version: Any = None
    model_name: Any = None
    extra: Extra | None = None


class Metrics(Struct, gc=False):
    """The members of `metrics`; lists of single tokens are left undecoded."""

    prompt_tokens: Any = None
    completion_tokens: Any = None
    cached_tokens: Any = None
    cost_usd: Any = None
    prompt_token_ids: Raw = ABSENT
    completion_token_ids: Raw = ABSENT
    logprobs: Raw = ABSENT
    extra: Any = None


class Call(Struct, gc=False):
    """A call of a tool."""

    tool_call_id: Any = None
    function_name: Any = None
    arguments: Any = None
    extra: Extra | None = None


class Reference(Struct, gc=False):
    """Where the trajectory of a sub-agent is."""

    trajectory_id: Any = None
    trajectory_path: Any = None
    extra: Extra | None = None


class Result(Struct, gc=False):
    """The result of a call, or another observation."""

    source_call_id: Any = None
    content: Any = None
    subagent_trajectory_ref: list[Reference] | None = None
    extra: Extra | None = None


class Observation(Struct, gc=False):
    """What came back from the calls of a step."""

    results: list[Result] | None = None


class Step(Struct, gc=False):
    """The members of a step that say something about agents, calls or tokens."""

    step_id: Any = None
    timestamp: Any = None
    source: Any = None
    model_name: Any = None
    message: Any = None
    tool_calls: list[Call] | None = None
    observation: Observation | None = None
    metrics: Metrics | None = None
    is_copied_context: Any = None
    llm_call_count: Any = None
    extra: Extra | None = None


class Document(Struct, gc=False):
    """The members of a trajectory, with those of its sub-agents."""

    trajectory_id: Any = None
    session_id: Any = None
    agent: Agent | None = None
    steps: list[Step] = []
    final_metrics: Any = None
    continued_trajectory_ref: Any = None
    subagent_trajectories: list["Document"] | None = None
    extra: Extra | None = None

    @property
    def is_ours(self) -> bool:
        """Return True if we have exported it, and it can be restored."""
        return self.extra is not None and self.extra.orchtrace is not ABSENT


_DOCUMENT = msgspec.json.Decoder(Document)
_STEP_ID = re.compile(rb'"step_id"\s*:\s*(\d+)')
_BACKSLASH = ord("\\")
_LISTS = ("steps", "tool_calls", "results", "subagent_trajectories", "subagent_trajectory_ref")
_OBJECTS = ("agent", "metrics", "observation", "extra", "invocation")


def decode(data: bytes) -> Document:
    """Return a document, whatever is wrong with it: members of another kind than they should be are left out.

    Raises:
        msgspec.DecodeError: It is no JSON, or no object.
        RecursionError: It is nested too deeply.
    """
    try:
        return _DOCUMENT.decode(data)
    except (msgspec.ValidationError, UnicodeDecodeError):
        value = msgspec.json.decode(data.decode("utf-8", "replace"))
        _prune(value)
        return _DOCUMENT.decode(msgspec.json.encode(value))


def _prune(document: Any) -> None:
    """Leave out what has another kind than it should have."""
    waiting = [document]
    while waiting:
        one = waiting.pop()
        if type(one) is not dict:
            continue
        for name in _LISTS:
            if name in one:
                one[name] = [inner for inner in one[name] if type(inner) is dict] if type(one[name]) is list else []
                waiting += one[name]
        for name in _OBJECTS:
            if name in one and type(one[name]) is not dict:
                one[name] = None
            waiting.append(one.get(name))


def lines(data: bytes, document: Document) -> Iterator[int]:
    """Return the lines of all steps: those of a trajectory before those of its sub-agents, as all programs write them.

    Where the text has them in another order, or holds further `step_id`, each is on the line of the document.
    """
    found = []
    if b"\n" in data:
        line, before = 1, 0
        for mark in _STEP_ID.finditer(data):
            at = mark.start()
            if data[at - 1] != _BACKSLASH:
                text, before = data[before:at], at
                line += len(text) - len(text.replace(b"\n", b""))  # `count` takes twice as long
                found.append((line, int(mark[1])))
    expected = [step.step_id for one in _documents(document) for step in one.steps]
    if [number for _, number in found] == expected:
        return (line for line, _ in found)
    return (1 for _ in expected)


def _documents(document: Document) -> Iterator[Document]:
    """Yield a document and those embedded in it, in the order of the text."""
    waiting = [document]
    while waiting:
        yield (one := waiting.pop())
        waiting += reversed(one.subagent_trajectories or ())
