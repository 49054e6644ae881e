"""Make runs of agent teams with one planted fault each, for `attribution`."""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import count
from random import Random
from typing import Any, NamedTuple

from orchtrace_corpus.trace import TraceView, parse_trace
from orchtrace_corpus.trace.measures.measure import steps

FAILS = 0.08
"""The probability that a call fails, in any run."""
REPEATS = 0.1
"""The probability that an agent repeats a call of a sibling, in any run, which is no fault."""
RELIABLE = 0.8
"""The probability that a judge is right, and that the outcome of a rerun is right."""


class Fault(StrEnum):
    """The kinds of faults."""

    WRONG_ANSWER = "wrong answer"
    DUPLICATE = "duplicated subtask"
    LATE_STOP = "late stop"


class Case(NamedTuple):
    """A run with a planted fault.

    Attributes:
        fault: The kind of fault.
        view: The run. Its reward is 1, the cost of the fault.
        agent: The agent at fault.
        step: The id of the event that is the step at fault.
        outcomes: The verdicts of a judge on agents and steps, by name or id: 1 or -1; empty if nobody judged.
    """

    fault: str
    view: TraceView
    agent: str
    step: str
    outcomes: Mapping[str, float] = {}


class _Team:
    """Makes a run: a lead, its workers and their workers. Each of them thinks, calls tools and returns."""

    # The methods add events. `t` is the time at which they begin, and `after` the id of the event that causes the
    # first one. They return the id of the last event, and the time at which it ends.

    def __init__(self, chance: Random, fault: Fault) -> None:
        self.chance = chance
        self.fault = fault
        self.events: list[dict[str, Any]] = []
        self.edges: list[dict[str, str]] = []
        self.guilty: tuple[str, str] = ("", "")  # the agent and the step at fault
        self.bad: set[str] = set()  # the agent at fault, and all steps that are wrong
        self.numbers = count()
        self.calls: dict[str, list[str]] = {}  # the contents of each agent's calls
        self.tree = {"lead": [f"w{index}" for index in range(2 + chance.randrange(4))]}  # the workers of each agent
        for name in list(self.tree["lead"]):
            if chance.random() < 0.35:
                self.tree[name] = [f"{name}.{index}" for index in range(2 + chance.randrange(2))]
        leaves = [name for names in self.tree.values() for name in names if name not in self.tree]
        self.chosen = chance.choice(leaves if fault is Fault.WRONG_ANSWER else list(self.tree))  # the agent at fault
        # In one half of the runs, the trace shows the fault: by a failed call, by equal calls, or by the last steps.
        self.is_visible = chance.random() < 0.5

    def add(self, kind: str, agent: str, t: float, *after: str, duration: float = 0.0, **fields: Any) -> str:
        """Add an event with an edge from each event of `after`, and return its id."""
        name = f"e{next(self.numbers)}"
        self.events.append({"id": name, "t": t, "t_end": t + duration, "type": kind, "agent": agent, **fields})
        self.edges += [{"src": source, "dst": name, "type": "causal"} for source in after if source]
        return name

    def call(self, agent: str, t: float, after: str, content: str, *, fails: bool = False) -> tuple[str, float]:
        """Add a tool call and its result; an empty content stands for a new one."""
        duration = 1 + self.chance.random()
        call_id = f"c{len(self.events)}"
        if content:
            tool = content.split()[0]
        else:
            tool = self.chance.choice(("search", "read", "run"))
            content = f"{tool} {agent} {call_id}"
        fails = fails or self.chance.random() < FAILS
        self.calls.setdefault(agent, []).append(content)
        call = self.add(
            "tool_call", agent, t, after, duration=duration, tool=tool, call_id=call_id, content_ref=content
        )
        status = "error" if fails else "ok"
        end = t + duration
        return self.add("tool_result", agent, end, call, call_id=call_id, status=status), end

    def work(self, agent: str, t: float, after: str, copied: Sequence[str] = ()) -> tuple[str, float]:
        """Add the work of an agent without workers: rounds of thinking and calling, and a return.

        `copied` are the contents of the calls, if they are those of another agent.
        """
        rounds = len(copied) or 1 + self.chance.randrange(4)
        wrong_round = -1
        if self.fault is Fault.WRONG_ANSWER and agent == self.chosen:
            wrong_round = self.chance.randrange(rounds + 1)  # the last is the thought before the return
        for index in range(rounds):
            thought = self.add("inference", agent, t, after, duration=1)
            if index == wrong_round:
                self.guilty = agent, thought
            fails = self.is_visible and index + 1 == wrong_round  # the tool fails, and the next step guesses
            content = ""
            if copied:
                content = copied[index]
            elif index == 0:
                content = self.call_of_sibling(agent)
            after, t = self.call(agent, t + 1, thought, content, fails=fails)
        thought = self.add("inference", agent, t, after, duration=1)
        if wrong_round == rounds:
            self.guilty = agent, thought
        returned = self.add("return", agent, t + 1, thought, status="ok")
        if wrong_round >= 0:
            self.bad |= set(self.guilty)
        return returned, t + 1

    def call_of_sibling(self, agent: str) -> str:
        """Return now and then the content of a sibling's first call, which is no fault; else an empty text."""
        siblings = next((names for names in self.tree.values() if agent in names), [])
        contents = [self.calls[name][0] for name in siblings if name in self.calls]
        if contents and self.chance.random() < REPEATS:
            return self.chance.choice(contents)
        return ""

    def lead(self, agent: str, t: float, after: str) -> tuple[str, float]:
        """Add the work of an agent with workers: decisions, spawns, a merge, and a return or the end of the run."""
        team = list(self.tree[agent])
        original = ""  # the worker whose subtask is given to a duplicate, too
        duplicate = "'"
        if self.fault is Fault.DUPLICATE and agent == self.chosen:
            original = team[0]
            duplicate = f"{original}'"
            team.insert(1 + self.chance.randrange(len(team)), duplicate)
        returns = []
        ends = [t]
        for name in team:
            decision = self.add("orchestrator_decision", agent, t, after, duration=1)
            after = decision
            t += 1
            spawn = self.add("spawn", agent, t, decision, to=name)
            copied: list[str] = []
            if name == duplicate:
                self.guilty = agent, decision
                self.bad |= set(self.guilty)
                copied = self.calls_of(original)
            if name in self.tree:
                returned, end = self.lead(name, t, spawn)
            else:
                returned, end = self.work(name, t, spawn, copied)
            returns.append(returned)
            ends.append(end)
        t = max(ends)
        last = self.add("aggregate", agent, t, *returns, duration=1)
        if agent == "lead":  # its answer
            last = self.add("inference", agent, t + 1, last, duration=1)
            t += 1
        if self.fault is Fault.LATE_STOP and agent == self.chosen:
            last, t = self.linger(agent, t + 1, last)
        if agent == "lead":
            return self.add("stop", agent, t + 1, last), t + 1
        return self.add("return", agent, t + 1, last, status="ok"), t + 1

    def calls_of(self, name: str) -> list[str]:
        """Return the contents of the calls of an agent and its workers, or the same in other words."""
        contents: list[str] = []
        for agent, agent_contents in self.calls.items():
            if agent == name or agent.startswith(f"{name}."):
                contents += agent_contents
        contents = contents[:4]
        if self.is_visible:
            return contents
        return [f"{content.split()[0]} {content} again" for content in contents]

    def linger(self, agent: str, t: float, after: str) -> tuple[str, float]:
        """Add steps that change nothing any more, or another round whose merge is worse."""
        for index in range(1 + self.chance.randrange(4)):
            after = self.add("inference", agent, t, after, duration=1)
            if index == 0:
                self.guilty = agent, after
            self.bad |= {agent, after}
            t += 1
        if self.is_visible:
            return after, t
        spawn = self.add("spawn", agent, t, after, to=f"{agent}+")
        returned, t = self.work(f"{agent}+", t, spawn)
        merge = self.add("aggregate", agent, t, returned, duration=1)
        self.bad.add(merge)
        return merge, t + 1


def made_run(fault: Fault, seed: int) -> Case:
    """Return a run of a made-up team with a planted fault.

    A wrong answer comes from an agent without workers, in any of its thoughts. In one half of the runs, a tool has
    failed before it. A duplicate is a subtask that an agent gives to two others; in one half of the runs, both make the
    same calls. A late stop has further steps of an agent after its merge, or of the lead after its answer. In one half
    of the runs they end there, in the other a worse merge follows.
    """
    chance = Random(f"{fault} {seed}")
    team = _Team(chance, fault)
    team.lead("lead", 0.0, "")
    view = TraceView(parse_trace(json.dumps(document(f"{fault} {seed}", team.events, team.edges))))
    events = view.trace.events
    judged = [*dict.fromkeys(event.agent for event in events), *(events[step].id for step in steps(view.trace))]
    outcomes = {}
    for name in judged:
        is_sound = name not in team.bad
        is_reliable = chance.random() < RELIABLE
        outcomes[name] = 1.0 if is_sound == is_reliable else -1.0
    agent, step = team.guilty
    return Case(fault, view, agent, step, outcomes)


def document(name: str, events: list[dict[str, Any]], edges: list[dict[str, str]]) -> dict[str, Any]:
    """Return the trace as JSON, with the reward 1."""
    costs = {"tokens": None, "wall_clock_s": None}
    reasons = {f"costs.{cost}": "Made to plant a fault, or not logged." for cost in costs}
    return {
        "trace_id": name,
        "task_id": name,
        "events": events,
        "edges": edges,
        "rewards": {"team": 1.0},
        "costs": costs,
        "reasons": reasons,
    }
