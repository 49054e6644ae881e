"""A trace as an ATIF trajectory, version 1.7, each agent's trajectory embedded in that of the agent that spawned it.

Harbor, RFC 0001, Agent Trajectory Interchange Format. An answer of a model is a step, with the calls that it led to and
their results. What is no answer, call or result is a step of its own. What ATIF has no field for is kept in `extra`,
from which `importers.atif` restores the trace. Written so that the validators of Harbor, NVIDIA and the package `atif`
accept it: each result in the step of its call, no field left out that one of them asks for.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from orchtrace_corpus.trace.importers.atif.restoration import (
    KEY,
    fields_of_call,
    fields_of_result,
    fields_of_step,
    metrics_of,
    rest,
)
from orchtrace_corpus.trace.importers.core.times import instant
from orchtrace_corpus.trace.model.terms import Unit
from orchtrace_corpus.trace.view.timing import SECONDS

_VERSION = "ATIF-v1.7"
_ANSWERS = frozenset(("inference", "orchestrator_decision", "aggregate"))
_CALLS = frozenset(("tool_call", "spawn"))
_OWN_WORDS = frozenset((*_ANSWERS, *_CALLS, "tool_result", "human_intervention"))
"""The types of events for which ATIF has words of its own; returns have a word where they answer a spawn."""
_HASH = "sha256:"
_MOST_NESTED = 40
"""An agent that is further below is embedded in the first: readers of JSON do not nest without end."""
_STATUSES = {"ok": "completed", "error": "error", "cancelled": "cancelled"}

Object = dict[str, Any]


def as_atif(trace: Mapping[str, Any]) -> Object:
    """The trace as a trajectory, with those of all other agents embedded.

    Args:
        trace: A sound trace as read by `json.loads`.
    """
    return _Export(trace).document()


def losses(trace: Mapping[str, Any]) -> list[str]:
    """Return the kinds of content that ATIF has no field for; they are kept in `extra` only."""
    found = []
    without = Counter(event["type"] for event in trace["events"] if event["type"] not in (*_OWN_WORDS, "return"))
    if without:
        kinds = ", ".join(f"{number:,} {name}" for name, number in sorted(without.items()))
        found.append(f"{sum(without.values()):,} of {len(trace['events']):,} events ({kinds})")
    if trace["edges"]:
        found.append(f"{len(trace['edges']):,} {'edge' if len(trace['edges']) == 1 else 'edges'}")
    fields = [name for name in ("rewards", "metrics", "baseline", "run", "reasons", "topology") if trace.get(name)]
    return [*found, f"fields of the trace: {', '.join(fields)}"] if fields else found


class _Agent:
    """The trajectory of an agent in the making."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.steps: list[Object] = []
        self.answer: Object | None = None  # the step of its last answer
        self.children: list[_Agent] = []
        self.spent: dict[str, float] = {}

    def spend(self, metrics: Mapping[str, Any]) -> None:
        """Add to the totals."""
        for name, value in metrics.items():
            if name != "extra":
                self.spent[f"total_{name}"] = self.spent.get(f"total_{name}", 0) + value


class _Export:
    """Distributes the events of a trace over the trajectories of its agents."""

    def __init__(self, trace: Mapping[str, Any]) -> None:
        self._trace = trace
        self._declared = {agent["id"]: agent for agent in trace.get("agents", ())}
        clock = trace.get("clock", {})
        epoch = instant(clock.get("epoch"))
        self._scale = SECONDS[Unit(clock.get("unit", "s"))]
        self._epoch = epoch if clock.get("unit") != Unit.STEP else None
        self._people = {name for name, agent in self._declared.items() if agent.get("kind") == "human"}
        self._agents: dict[str, _Agent] = {}
        self._answers: dict[str, tuple[_Agent, Object | None]] = {}  # by their events
        self._calls: dict[tuple[str, str], tuple[Object, Object]] = {}  # by agent and id: the step and the call
        self._spawns: dict[tuple[str, str], list[tuple[Object, Object]]] = {}  # by parent and child, without a return
        self._spawner: dict[str, str] = {}
        self._causes = {edge["dst"]: edge["src"] for edge in trace["edges"] if edge["type"] == "causal"}
        numbered = enumerate(trace["events"])
        for number, event in sorted(numbered, key=lambda one: (one[1]["t"], one[1].get("seq") or 0, one[0])):
            self._add(number, event)

    def _add(self, number: int, event: Mapping[str, Any]) -> None:
        kind, name = event["type"], event["agent"]
        spawns = self._spawns.get((event.get("to", ""), name)) if kind == "return" else None
        if metrics_of(event) and kind not in _CALLS:  # for which only a step has room
            self._add_step(number, event)
        elif spawns:
            result = self._add_result(number, event, event["to"], *spawns.pop(0))
            result["subagent_trajectory_ref"] = [{"trajectory_id": self._id(name)}]
        elif kind == "tool_result" and (call := self._calls.pop((name, event.get("call_id", "")), None)):
            self._add_result(number, event, name, *call)
        elif kind in _CALLS:
            self._add_call(number, event)
        else:
            self._add_step(number, event)

    def _home(self, event: Mapping[str, Any]) -> _Agent:
        """The agent in whose trajectory an event stands: what people do in that of the agent that they address."""
        name = event["agent"]
        if name in self._people or event["type"] == "human_intervention":
            name = event.get("to") or next(iter(self._agents), name)
        return self._agents.setdefault(name, _Agent(name))

    def _new_step(self, home: _Agent, event: Mapping[str, Any], source: str) -> Object:
        step: Object = {"step_id": len(home.steps) + 1, "source": source, "message": ""}
        if time := self._time(event):
            step["timestamp"] = time
        home.steps.append(step)
        return step

    def _add_step(self, number: int, event: Mapping[str, Any]) -> None:
        home = self._home(event)
        metrics = metrics_of(event)
        is_answer = event["type"] in _ANSWERS or bool(metrics) or "model" in event
        is_person = event["type"] == "human_intervention" or event["agent"] in self._people
        source = "agent" if is_answer else "user" if is_person else "system"
        step = self._new_step(home, event, source)
        if event["type"] in _ANSWERS:
            home.answer = step
            self._answers[event["id"]] = home, step
        step["message"] = _content(event)
        if event.get("copied_context"):
            step["is_copied_context"] = True
        if is_answer:
            step.update({"model_name": event["model"]} if event.get("model") else {})
            step.update({"metrics": metrics} if metrics else {})
            if not event.get("copied_context"):
                home.spend(metrics)
        self._keep(step, number, event, fields_of_step(step, home.name))

    def _add_call(self, number: int, event: Mapping[str, Any]) -> None:
        """A call, in the step of the answer that led to it; a spawn is one, too."""
        home = self._home(event)
        cause, step = self._answers.get(self._causes.get(event["id"], ""), (home, home.answer))
        step = step if cause is home else home.answer
        metrics = metrics_of(event)
        if step is None or metrics:
            step = self._new_step(home, event, "agent")
            step.update({"metrics": metrics} if metrics else {"llm_call_count": 0})
            home.spend(metrics)
            home.answer = home.answer if metrics else step
        calls = step.setdefault("tool_calls", [])
        used = {call["tool_call_id"] for call in calls}
        wanted = event.get("call_id") or event["id"]
        call = {
            "tool_call_id": wanted if wanted not in used else f"{wanted}#{event['id']}",
            "function_name": event.get("tool") or event["type"],
            "arguments": {},
        }
        calls.append(call)
        self._keep(call, number, event, fields_of_call(call, home.name))
        if event["type"] == "spawn" and event.get("to"):
            self._spawns.setdefault((home.name, event["to"]), []).append((step, call))
            self._spawner.setdefault(event["to"], home.name)
        elif "call_id" in event:
            self._calls[home.name, event["call_id"]] = step, call

    def _add_result(self, number: int, event: Mapping[str, Any], home: str, step: Object, call: Object) -> Object:
        content = event.get("content_ref", "")
        result: Object = {
            "source_call_id": call["tool_call_id"],
            "content": "" if content.startswith(_HASH) else content,
        }
        step.setdefault("observation", {"results": []})["results"].append(result)
        self._keep(result, number, event, fields_of_result(result, home))
        return result

    def _keep(self, holder: Object, number: int, event: Mapping[str, Any], said: Mapping[str, Any]) -> None:
        """Keep in `extra` what an object of ATIF does not say of its event, with the times that NVIDIA's tools read."""
        extra: Object = {KEY: {"number": number, "event": rest(event, said)}}
        if self._epoch is not None and event.get("t_end") is not None:
            begin, end = (self._epoch + event[name] * self._scale for name in ("t", "t_end"))
            extra["invocation"] = {"start_timestamp": begin, "end_timestamp": end, "invocation_id": event["id"]}
            if event.get("status") in _STATUSES:
                extra["invocation"]["status"] = _STATUSES[event["status"]]
        holder["extra"] = extra

    def _time(self, event: Mapping[str, Any]) -> str:
        """Return the end of an event as ISO 8601; empty if the trace has no time of day."""
        if self._epoch is None:
            return ""
        t = event["t"] if event.get("t_end") is None else event["t_end"]
        try:
            moment = datetime.fromtimestamp(self._epoch + t * self._scale, UTC)
        except (OverflowError, ValueError, OSError):
            return ""
        return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")

    def _id(self, agent: str) -> str:
        """The `trajectory_id` of an agent."""
        return f"{self._trace['trace_id']}/{agent}"

    def document(self) -> Object:
        """The trajectory of the first agent, with all others embedded."""
        agents = {name: agent for name, agent in self._agents.items() if agent.steps}
        names = sorted(agents, key=lambda name: name in self._spawner)  # the first that nobody has spawned
        root = agents[names[0]]
        for name in names[1:]:
            parent = agents.get(self._spawner.get(name, ""), root)
            above = self._above(parent.name)
            parent = root if name in above or len(above) > _MOST_NESTED else parent
            parent.children.append(agents[name])
        for (_, child), spawns in self._spawns.items():
            for step, call in spawns if child in agents else ():  # that never came back
                reference = [{"trajectory_id": self._id(child)}]
                result = {"source_call_id": call["tool_call_id"], "content": "", "subagent_trajectory_ref": reference}
                step.setdefault("observation", {"results": []})["results"].append(result)
        found = self._trajectories(root)
        kept = {name: value for name, value in self._trace.items() if name not in ("events", "edges")}
        found["trajectory_id"] = self._trace["trace_id"]
        found["extra"] = {KEY: {"events": len(self._trace["events"]), "trace": kept, "edges": self._trace["edges"]}}
        return found

    def _above(self, name: str) -> list[str]:
        """An agent, and those above it by who spawned whom."""
        found = [name]
        while (name := self._spawner.get(name, "")) and name not in found and len(found) <= _MOST_NESTED:
            found.append(name)
        return found

    def _trajectories(self, root: _Agent) -> Object:
        """The trajectory of an agent with those embedded in it."""
        found = self._trajectory(root)
        waiting = [(root, found)]
        while waiting:
            agent, document = waiting.pop()
            if agent.children:
                document["subagent_trajectories"] = [self._trajectory(child) for child in agent.children]
                waiting += zip(agent.children, document["subagent_trajectories"], strict=True)
        return found

    def _trajectory(self, agent: _Agent) -> Object:
        said = self._declared.get(agent.name, {})
        described = {"name": agent.name, "version": _version(agent.steps)}
        if said.get("model"):
            described["model_name"] = said["model"]
        return {
            "schema_version": _VERSION,
            "session_id": self._trace["trace_id"],
            "trajectory_id": self._id(agent.name),
            "agent": described,
            "steps": agent.steps,
            "final_metrics": {**agent.spent, "total_steps": len(agent.steps)},
        }


def _content(event: Mapping[str, Any]) -> str:
    """Return the text of an event, if the trace has it; its hash would say nothing to others."""
    content: str = event.get("content_ref", "")
    return "" if content.startswith(_HASH) else content


def _version(steps: Sequence[Mapping[str, Any]]) -> str:
    """The version of the program that wrote the log of an agent; `unknown` where no event says it."""
    sources = (step["extra"][KEY]["event"].get("source") for step in steps if "extra" in step)
    return next((source["version"] for source in sources if source and source.get("version")), "unknown")
