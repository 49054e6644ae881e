"""Made runs of agent teams, each with one fault, for `attribution`."""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import count
from random import Random
from typing import Any, NamedTuple

from orchtrace_corpus.trace import TraceView, parse_trace
from orchtrace_corpus.trace.measures.measure import steps

FAILS, REPEATS, RELIABLE = 0.08, 0.1, 0.8
"""How often a call fails and a sibling rightly repeats one in any run; how often a judge, or a run made again without
the fault, is right."""


class Fault(StrEnum):
    """What is planted."""

    WRONG_ANSWER = "wrong answer"
    DUPLICATE = "duplicated subtask"
    LATE_STOP = "late stop"


class Case(NamedTuple):
    """A run with a planted fault.

    Attributes:
        fault: What sort of fault it is.
        view: The run, with the reward 1: what the fault has cost.
        agent: The agent at fault.
        step: The event of the step at fault.
        outcomes: What a judge says of agents and steps, 1 or -1; empty where nobody judged.
    """

    fault: str
    view: TraceView
    agent: str
    step: str
    outcomes: Mapping[str, float] = {}


class _Team:
    """Makes a run: a lead, its workers and their workers. Each of them thinks, calls tools and returns."""

    def __init__(self, draw: Random, fault: Fault) -> None:
        self.draw, self.fault = draw, fault
        self.events: list[dict[str, Any]] = []
        self.edges: list[dict[str, str]] = []
        self.guilty: tuple[str, str] = ("", "")
        self.bad: set[str] = set()  # the agent at fault, and the steps that are
        self.number = count()
        self.calls: dict[str, list[str]] = {}
        self.tree = {"lead": [f"w{n}" for n in range(2 + draw.randrange(4))]}
        for name in list(self.tree["lead"]):
            if draw.random() < 0.35:
                self.tree[name] = [f"{name}.{n}" for n in range(2 + draw.randrange(2))]
        self.leaves = [name for names in self.tree.values() for name in names if name not in self.tree]
        self.chosen = draw.choice(self.leaves if fault is Fault.WRONG_ANSWER else list(self.tree))
        self.is_visible = draw.random() < 0.5

    def add(self, kind: str, agent: str, t: float, *after: str, long: float = 0.0, **more: Any) -> str:
        name = f"e{next(self.number)}"
        self.events.append({"id": name, "t": t, "t_end": t + long, "type": kind, "agent": agent, **more})
        self.edges += [{"src": one, "dst": name, "type": "causal"} for one in after if one]
        return name

    def call(self, agent: str, t: float, after: str, content: str, *, fails: bool = False) -> tuple[str, float]:
        """Add a tool call and its result."""
        long, key = 1 + self.draw.random(), f"c{len(self.events)}"
        tool = self.draw.choice(("search", "read", "run")) if content == "" else content.split()[0]
        content = content or f"{tool} {agent} {key}"
        fails = fails or self.draw.random() < FAILS
        self.calls.setdefault(agent, []).append(content)
        asked = self.add("tool_call", agent, t, after, long=long, tool=tool, call_id=key, content_ref=content)
        ended = "error" if fails else "ok"
        return self.add("tool_result", agent, t + long, asked, call_id=key, status=ended), t + long

    def work(self, agent: str, t: float, after: str, copied: Sequence[str] = ()) -> tuple[str, float]:
        """Add the work of an agent without workers: rounds of thinking and calling, and a return."""
        rounds = len(copied) or 1 + self.draw.randrange(4)
        wrong = self.draw.randrange(rounds + 1) if self.fault is Fault.WRONG_ANSWER and agent == self.chosen else -1
        for place in range(rounds):
            thought = self.add("inference", agent, t, after, long=1)
            if place == wrong:
                self.guilty = agent, thought
            misleads = self.is_visible and place + 1 == wrong  # the tool fails, and the next step guesses
            content = copied[place] if copied else self.seen_before(agent) if not place else ""
            after, t = self.call(agent, t + 1, thought, content, fails=misleads)
        thought = self.add("inference", agent, t, after, long=1)
        if wrong == rounds:
            self.guilty = agent, thought
        back = self.add("return", agent, t + 1, thought, status="ok")
        if wrong >= 0:
            self.bad |= set(self.guilty)
        return back, t + 1

    def seen_before(self, agent: str) -> str:
        """Now and then what a sibling has looked at, too, and rightly; else nothing."""
        siblings = next((names for names in self.tree.values() if agent in names), [])
        known = [self.calls[name][0] for name in siblings if name in self.calls]
        return self.draw.choice(known) if known and self.draw.random() < REPEATS else ""

    def lead(self, agent: str, t: float, after: str) -> tuple[str, float]:
        """Add the work of an agent with workers: decisions, spawns, a merge, and a return or the end of the run."""
        team = list(self.tree[agent])
        again = team[0] if self.fault is Fault.DUPLICATE and agent == self.chosen else ""
        if again:
            team.insert(1 + self.draw.randrange(len(team)), f"{again}'")
        backs, ends = [], [t]
        repeated: list[str] = []
        for name in team:
            decided = self.add("orchestrator_decision", agent, t, after, long=1)
            after, t = decided, t + 1
            spawned = self.add("spawn", agent, t, decided, to=name)
            if name == f"{again}'":
                self.guilty = agent, decided
                self.bad |= set(self.guilty)
                repeated = self.copied(again)
            if name in self.tree:
                back, end = self.lead(name, t, spawned)
            else:
                back, end = self.work(name, t, spawned, repeated if name == f"{again}'" else ())
            backs.append(back)
            ends.append(end)
        t = max(ends)
        merged = self.add("aggregate", agent, t, *backs, long=1)
        if agent == "lead":  # which says what came out
            merged, t = self.add("inference", agent, t + 1, merged, long=1), t + 1
        if self.fault is Fault.LATE_STOP and agent == self.chosen:
            merged, t = self.linger(agent, t + 1, merged)
        if agent == "lead":
            return self.add("stop", agent, t + 1, merged), t + 1
        return self.add("return", agent, t + 1, merged, status="ok"), t + 1

    def copied(self, name: str) -> list[str]:
        """The calls of an agent, or the same in other words."""
        below = [call for call in self.calls if call == name or call.startswith(f"{name}.")]
        found = [content for one in below for content in self.calls[one]][:4]
        return found if self.is_visible else [f"{content.split()[0]} {content} again" for content in found]

    def linger(self, agent: str, t: float, after: str) -> tuple[str, float]:
        """Add steps that change nothing any more, or another round whose merge is worse."""
        for place in range(1 + self.draw.randrange(4)):
            after = self.add("inference", agent, t, after, long=1)
            self.guilty = self.guilty if place else (agent, after)
            self.bad |= {agent, after}
            t += 1
        if self.is_visible:
            return after, t
        spawned = self.add("spawn", agent, t, after, to=f"{agent}+")
        back, t = self.work(f"{agent}+", t, spawned)
        merged = self.add("aggregate", agent, t, back, long=1)
        self.bad.add(merged)
        return merged, t + 1


def made_run(fault: Fault, seed: int) -> Case:
    """Return a run of a made-up team with a planted fault.

    A wrong answer comes from a leaf, at any of its thoughts; in one half of the runs a tool has failed before it. A
    duplicate is a subtask that an agent gives to two others, in one half with the very same calls. A late stop is
    steps of an agent behind its merge, of the lead behind its answer; in one half they end there, in the other a
    worse merge follows.
    """
    draw = Random(f"{fault} {seed}")
    team = _Team(draw, fault)
    team.lead("lead", 0.0, "")
    view = TraceView(parse_trace(json.dumps(document(f"{fault} {seed}", team.events, team.edges))))
    events = view.trace.events
    judged = [*dict.fromkeys(event.agent for event in events), *(events[step].id for step in steps(view.trace))]
    outcomes = {name: 1.0 if (name not in team.bad) == (draw.random() < RELIABLE) else -1.0 for name in judged}
    return Case(fault, view, *team.guilty, outcomes)


def document(name: str, events: list[dict[str, Any]], edges: list[dict[str, str]]) -> dict[str, Any]:
    """Return the trace as JSON, with the reward 1."""
    costs = {"tokens": None, "wall_clock_s": None}
    reasons = {f"costs.{cost}": "Made to plant a fault, or not logged." for cost in costs}
    given = {"trace_id": name, "task_id": name, "events": events, "edges": edges}
    return {**given, "rewards": {"team": 1.0}, "costs": costs, "reasons": reasons}
