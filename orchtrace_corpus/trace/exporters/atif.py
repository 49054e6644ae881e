"""Export a trace as an ATIF trajectory (version 1.7), with the trajectories of sub-agents embedded.

ATIF is Harbor's Agent Trajectory Interchange Format (RFC 0001). An answer of a model becomes a step with the tool calls
that it led to and their results. Every other event becomes a step of its own. `extra` keeps the fields of an event for
which ATIF has none, so that `importers.atif` can restore the trace. The validators of Harbor, NVIDIA and the package
`atif` accept the document: each result is in the step of its call, and all fields that one of them requires are there.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.atif.restoration import (
    KEY,
    fields_of_call,
    fields_of_result,
    fields_of_step,
    metrics_of,
    unstated_fields,
)
from orchtrace_corpus.trace.importers.core.times import instant
from orchtrace_corpus.trace.model.terms import SECONDS, Unit

_VERSION = "ATIF-v1.7"
_ANSWERS = frozenset(("inference", "orchestrator_decision", "aggregate"))
_CALLS = frozenset(("tool_call", "spawn"))
_NATIVE_TYPES = frozenset((*_ANSWERS, *_CALLS, "tool_result", "human_intervention", "return"))
"""The event types that ATIF can express."""
_HASH = "sha256:"
_MAX_DEPTH = 40
"""The most levels of embedded agents. JSON readers limit depth, so deeper agents are embedded in the root."""
_STATUSES = {"ok": "completed", "error": "error", "cancelled": "cancelled"}

Object = dict[str, Any]


class _Call(NamedTuple):
    """A tool call, and the step that holds it."""

    step: Object
    call: Object


def as_atif(trace: Mapping[str, Any]) -> Object:
    """Return a trace as the trajectory of its root agent, with the trajectories of all other agents embedded.

    Args:
        trace: A valid trace as read by `json.loads`.
    """
    return _Export(trace).document()


def losses(trace: Mapping[str, Any]) -> list[str]:
    """Return the kinds of content that ATIF has no field for; they are kept in `extra` only."""
    lost: list[str] = []
    unsupported = Counter(event["type"] for event in trace["events"] if event["type"] not in _NATIVE_TYPES)
    if unsupported:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(unsupported.items()))
        lost.append(f"{sum(unsupported.values()):,} of {len(trace['events']):,} events ({kinds})")
    if trace["edges"]:
        noun = "edge" if len(trace["edges"]) == 1 else "edges"
        lost.append(f"{len(trace['edges']):,} {noun}")
    fields = [name for name in ("rewards", "metrics", "baseline", "run", "reasons", "topology") if trace.get(name)]
    if fields:
        lost.append(f"fields of the trace: {', '.join(fields)}")
    return lost


class _Agent:
    """An agent, with the steps and totals of its trajectory so far."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.version = ""  # of the program that wrote the agent's log
        self.steps: list[Object] = []
        self.last_answer: Object | None = None  # the step that holds the agent's next calls
        self.children: list[_Agent] = []
        self.totals: dict[str, float] = {}

    def add_metrics(self, metrics: Mapping[str, Any]) -> None:
        """Add the metrics of one step to the totals."""
        for name, value in metrics.items():
            if name != "extra":
                self.totals[f"total_{name}"] = self.totals.get(f"total_{name}", 0) + value


class _Export:
    """Distributes the events of a trace over the trajectories of its agents."""

    def __init__(self, trace: Mapping[str, Any]) -> None:
        self._trace = trace
        self._declared = {agent["id"]: agent for agent in trace.get("agents", ())}
        clock = trace.get("clock", {})
        self._scale = SECONDS[Unit(clock.get("unit", "s"))]  # seconds in a unit of the trace's times
        # when the trace's time 0 was, in seconds since 1970; None if unknown, or if times are counts of steps
        self._epoch = instant(clock.get("epoch")) if clock.get("unit") != Unit.STEP else None
        self._people = {name for name, agent in self._declared.items() if agent.get("kind") == "human"}
        self._agents: dict[str, _Agent] = {}  # by name, in the order of their first events
        self._answers: dict[str, tuple[_Agent, Object]] = {}  # by event id: agent and step of an answer
        self._calls: dict[tuple[str, str], _Call] = {}  # calls without a result, by agent and call id
        self._spawns: dict[tuple[str, str], list[_Call]] = {}  # spawns without a return, by parent and child
        self._parents: dict[str, str] = {}  # by name of the agent
        self._last_cause = {
            edge["dst"]: edge["src"] for edge in trace["edges"] if edge["type"] == "causal"
        }  # event ids

    def document(self) -> Object:
        """Return the trajectory of the root agent, with all others embedded."""

        def order(item: tuple[int, Mapping[str, Any]]) -> tuple[float, float, int]:
            index, event = item
            return event["t"], event.get("seq") or 0, index

        for index, event in sorted(enumerate(self._trace["events"]), key=order):
            self._add(index, event)
        agents = {name: agent for name, agent in self._agents.items() if agent.steps}
        names = sorted(agents, key=lambda name: name in self._parents)  # agents without a parent first
        root = agents[names[0]]
        for name in names[1:]:
            parent = agents.get(self._parents.get(name, ""), root)
            ancestors = self._with_ancestors(parent.name)
            if name in ancestors or len(ancestors) > _MAX_DEPTH:
                parent = root
            parent.children.append(agents[name])
        for (_, child), spawns in self._spawns.items():
            if child not in agents:
                continue
            for step, call in spawns:  # without a return: an empty result refers to the trajectory
                reference = [{"trajectory_id": self._id(child)}]
                result = {"source_call_id": call["tool_call_id"], "content": "", "subagent_trajectory_ref": reference}
                _append_result(step, result)
        document = self._with_embedded(root)
        fields = {name: value for name, value in self._trace.items() if name not in ("events", "edges")}
        document["trajectory_id"] = self._trace["trace_id"]
        document["extra"] = {
            KEY: {"events": len(self._trace["events"]), "trace": fields, "edges": self._trace["edges"]}
        }
        return document

    def _add(self, index: int, event: Mapping[str, Any]) -> None:
        """Add an event as a call, as a result of the call that it answers, or else as a step."""
        kind, agent = event["type"], event["agent"]
        if kind in _CALLS:
            self._add_call(index, event)
            return
        if metrics_of(event):  # a result cannot have metrics
            self._add_step(index, event)
            return
        if kind == "return":
            spawns = self._spawns.get((event.get("to", ""), agent))
            if spawns:
                result = self._add_result(index, event, event["to"], spawns.pop(0))
                result["subagent_trajectory_ref"] = [{"trajectory_id": self._id(agent)}]
                return
        if kind == "tool_result":
            call = self._calls.pop((agent, event.get("call_id", "")), None)
            if call:
                self._add_result(index, event, agent, call)
                return
        self._add_step(index, event)

    def _agent_of(self, event: Mapping[str, Any]) -> _Agent:
        """Return the agent whose trajectory holds an event.

        An event of a person goes to the agent that the person addresses, or else to the first agent so far.
        """
        name = event["agent"]
        if name in self._people or event["type"] == "human_intervention":
            if event.get("to"):
                name = event["to"]
            elif self._agents:
                name = next(iter(self._agents))
        return self._agents.setdefault(name, _Agent(name))

    def _new_step(self, agent: _Agent, event: Mapping[str, Any], source: str) -> Object:
        step: Object = {"step_id": len(agent.steps) + 1, "source": source, "message": ""}
        time = self._time(event)
        if time:
            step["timestamp"] = time
        agent.steps.append(step)
        return step

    def _add_step(self, index: int, event: Mapping[str, Any]) -> None:
        """Add an event as a step of its own."""
        agent = self._agent_of(event)
        metrics = metrics_of(event)
        is_answer = event["type"] in _ANSWERS or bool(metrics) or "model" in event
        if is_answer:
            source = "agent"
        elif event["type"] == "human_intervention" or event["agent"] in self._people:
            source = "user"
        else:
            source = "system"
        step = self._new_step(agent, event, source)
        if not agent.version:
            agent.version = (event.get("source") or {}).get("version") or ""
        if event["type"] in _ANSWERS:
            agent.last_answer = step
            self._answers[event["id"]] = agent, step
        step["message"] = _content(event)
        if event.get("copied_context"):
            step["is_copied_context"] = True
        if is_answer:
            if event.get("model"):
                step["model_name"] = event["model"]
            if metrics:
                step["metrics"] = metrics
            if not event.get("copied_context"):
                agent.add_metrics(metrics)
        self._add_extra(step, index, event, fields_of_step(step, agent.name))

    def _add_call(self, index: int, event: Mapping[str, Any]) -> None:
        """Add a tool call or a spawn to the step of the answer that led to it."""
        agent = self._agent_of(event)
        step = agent.last_answer
        cause = self._last_cause.get(event["id"], "")
        if cause in self._answers and self._answers[cause][0] is agent:
            step = self._answers[cause][1]
        metrics = metrics_of(event)
        if step is None or metrics:
            step = self._new_step(agent, event, "agent")
            agent.add_metrics(metrics)
            if metrics:  # they are the metrics of this call alone: later calls do not join its step
                step["metrics"] = metrics
            else:
                step["llm_call_count"] = 0
                agent.last_answer = step
        calls = step.setdefault("tool_calls", [])
        call_id = event.get("call_id") or event["id"]
        if any(call["tool_call_id"] == call_id for call in calls):  # ids of a step have to differ
            call_id = f"{call_id}#{event['id']}"
        call = {"tool_call_id": call_id, "function_name": event.get("tool") or event["type"], "arguments": {}}
        calls.append(call)
        self._add_extra(call, index, event, fields_of_call(call, agent.name))
        if event["type"] == "spawn" and event.get("to"):
            self._spawns.setdefault((agent.name, event["to"]), []).append(_Call(step, call))
            self._parents.setdefault(event["to"], agent.name)
        elif "call_id" in event:
            self._calls[agent.name, event["call_id"]] = _Call(step, call)

    def _add_result(self, index: int, event: Mapping[str, Any], agent: str, call: _Call) -> Object:
        result: Object = {"source_call_id": call.call["tool_call_id"], "content": _content(event)}
        _append_result(call.step, result)
        self._add_extra(result, index, event, fields_of_result(result, agent))
        return result

    def _add_extra(self, item: Object, index: int, event: Mapping[str, Any], stated: Mapping[str, Any]) -> None:
        """Add `extra`: the fields of an event that the item does not state, and the times that NVIDIA's tools read."""
        extra: Object = {KEY: {"number": index, "event": unstated_fields(event, stated)}}
        if self._epoch is not None and event.get("t_end") is not None:
            extra["invocation"] = {
                "start_timestamp": self._epoch + event["t"] * self._scale,
                "end_timestamp": self._epoch + event["t_end"] * self._scale,
                "invocation_id": event["id"],
            }
            if event.get("status") in _STATUSES:
                extra["invocation"]["status"] = _STATUSES[event["status"]]
        item["extra"] = extra

    def _time(self, event: Mapping[str, Any]) -> str:
        """Return the end of an event as ISO 8601; empty if the trace has no time of day."""
        if self._epoch is None:
            return ""
        end = event["t"] if event.get("t_end") is None else event["t_end"]
        try:
            moment = datetime.fromtimestamp(self._epoch + end * self._scale, UTC)
        except (OverflowError, ValueError, OSError):
            return ""
        return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")

    def _id(self, agent: str) -> str:
        """Return the `trajectory_id` of an agent."""
        return f"{self._trace['trace_id']}/{agent}"

    def _with_ancestors(self, name: str) -> list[str]:
        """Return an agent and its ancestors, nearest first; at most one more than `_MAX_DEPTH`."""
        chain = [name]
        parent = self._parents.get(name, "")
        while parent and parent not in chain and len(chain) <= _MAX_DEPTH:
            chain.append(parent)
            parent = self._parents.get(parent, "")
        return chain

    def _with_embedded(self, root: _Agent) -> Object:
        """Return the trajectory of the root agent, with the trajectories of all agents below it embedded."""
        document = self._trajectory(root)
        waiting = [(root, document)]
        while waiting:
            agent, trajectory = waiting.pop()
            if agent.children:
                trajectory["subagent_trajectories"] = [self._trajectory(child) for child in agent.children]
                waiting += zip(agent.children, trajectory["subagent_trajectories"], strict=True)
        return document

    def _trajectory(self, agent: _Agent) -> Object:
        declared = self._declared.get(agent.name, {})
        description = {"name": agent.name, "version": agent.version or "unknown"}
        if declared.get("model"):
            description["model_name"] = declared["model"]
        return {
            "schema_version": _VERSION,
            "session_id": self._trace["trace_id"],
            "trajectory_id": self._id(agent.name),
            "agent": description,
            "steps": agent.steps,
            "final_metrics": {**agent.totals, "total_steps": len(agent.steps)},
        }


def _append_result(step: Object, result: Object) -> None:
    step.setdefault("observation", {"results": []})["results"].append(result)


def _content(event: Mapping[str, Any]) -> str:
    """Return the text of an event; empty if the trace has only its hash, which other programs cannot use."""
    content: str = event.get("content_ref", "")
    return "" if content.startswith(_HASH) else content
