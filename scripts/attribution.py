"""Asks whether diagnosis, rewards and credit find the agent and the step at fault, on made runs and on records.

    python scripts/attribution.py                    # 300 made runs with planted faults, as in docs/credit.md
    python scripts/attribution.py --records FOLDER   # failure-attribution records in the form of Who&When

Every method gives each agent and each step of a run a suspicion; what counts is how often the one at fault ranks first,
ties shared evenly. Everything is seeded. Records (arXiv 2505.00212) hold questions of benchmarks, so none comes with
this package.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import count
from math import sqrt
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from orchtrace_corpus.base.errors import CorpusError
from orchtrace_corpus.base.text.table import Table, markdown
from orchtrace_corpus.trace import TraceView, as_data, parse_trace
from orchtrace_corpus.trace.credit.assign import parts
from orchtrace_corpus.trace.credit.reach import Reach
from orchtrace_corpus.trace.diagnosis import diagnose
from orchtrace_corpus.trace.measures.measure import steps
from orchtrace_corpus.trace.rewards import WHOLE, Spec, TermSpec, compute

RUNS_OF_A_FAULT = 100
FAILS, REPEATS, RELIABLE = 0.08, 0.1, 0.8
"""How often a call fails and a sibling rightly repeats one in any run, and how often a judge is right."""


class Fault(StrEnum):
    """What is planted."""

    WRONG_ANSWER = "wrong answer"
    DUPLICATE = "duplicated subtask"
    LATE_STOP = "late stop"


class Case(NamedTuple):
    """A run with its fault.

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
    """A made run: a lead, its workers and theirs, each of which thinks, calls tools and returns."""

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
        """A tool call and its result."""
        long, key = 1 + self.draw.random(), f"c{len(self.events)}"
        tool = self.draw.choice(("search", "read", "run")) if content == "" else content.split()[0]
        content = content or f"{tool} {agent} {key}"
        fails = fails or self.draw.random() < FAILS
        self.calls.setdefault(agent, []).append(content)
        asked = self.add("tool_call", agent, t, after, long=long, tool=tool, call_id=key, content_ref=content)
        ended = "error" if fails else "ok"
        return self.add("tool_result", agent, t + long, asked, call_id=key, status=ended), t + long

    def work(self, agent: str, t: float, after: str, copied: Sequence[str] = ()) -> tuple[str, float]:
        """What a leaf does: rounds of thinking and calling, and a return."""
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
        """What an agent with others below does: decisions, spawns, a merge, and a return or the end of the run."""
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
        below = [one for one in self.calls if one == name or one.startswith(f"{name}.")]
        found = [content for one in below for content in self.calls[one]][:4]
        return found if self.is_visible else [f"{content.split()[0]} {content} again" for content in found]

    def linger(self, agent: str, t: float, after: str) -> tuple[str, float]:
        """Steps that change nothing any more; or another round, whose merge is worse."""
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
    """A run of a made-up team with a planted fault.

    A wrong answer comes from a leaf, at any of its thoughts; in one half of the runs a tool has failed before it. A
    duplicate is a subtask that an agent gives to two others, in one half with the very same calls. A late stop is
    steps of an agent behind its merge, of the lead behind its answer; in one half they end there, in the other a
    worse merge follows.
    """
    draw = Random(f"{fault} {seed}")
    team = _Team(draw, fault)
    team.lead("lead", 0.0, "")
    view = TraceView(parse_trace(json.dumps(_trace(f"{fault} {seed}", team.events, team.edges))))
    events = view.trace.events
    judged = [*dict.fromkeys(event.agent for event in events), *(events[number].id for number in steps(view.trace))]
    outcomes = {name: 1.0 if (name not in team.bad) == (draw.random() < RELIABLE) else -1.0 for name in judged}
    return Case(fault, view, *team.guilty, outcomes)


def _trace(name: str, events: list[dict[str, Any]], edges: list[dict[str, str]]) -> dict[str, Any]:
    costs = {"tokens": None, "wall_clock_s": None}
    reasons = {f"costs.{one}": "Made to plant a fault, or not logged." for one in costs}
    given = {"trace_id": name, "task_id": name, "events": events, "edges": edges}
    return {**given, "rewards": {"team": 1.0}, "costs": costs, "reasons": reasons}


def read_record(record: Mapping[str, Any], name: str) -> Case:
    """A record of Who&When: entries of a history as messages, each after the one before.

    Raises:
        KeyError: It lacks the history, or says not who was at fault at which step.
    """
    events, edges = [], []
    for place, entry in enumerate(record["history"]):
        agent = (entry.get("name") or entry["role"]).split(" (")[0]
        kind = "human_intervention" if agent == "human" else "message"
        events.append({"id": f"h{place}", "t": place, "type": kind, "agent": agent, "content_ref": entry["content"]})
        edges += [{"src": f"h{place - 1}", "dst": f"h{place}", "type": "temporal"}] if place else []
    view = TraceView(parse_trace(json.dumps({**_trace(name, events, edges), "clock": {"unit": "step"}})))
    return Case("record", view, record["mistake_agent"], f"h{record['mistake_step']}")


Suspicion = dict[str, float]
"""How much each agent, or each step, is suspected; who is not named is not suspected at all."""
Method = Callable[[Case], tuple[Suspicion, Suspicion]]
"""From a case to the suspicion of agents and of events."""


def by_place(case: Case, *, is_last: bool) -> tuple[Suspicion, Suspicion]:
    """The first or the last to act, and the first or the last step."""
    events = case.view.trace.events
    ordered = [events[number] for number in case.view.sequence if number in set(steps(case.view.trace))]
    one = ordered[-1 if is_last else 0]
    return {one.agent: 1.0}, {one.id: 1.0}


def by_credit(case: Case, *, sign: float) -> tuple[Suspicion, Suspicion]:
    """Who has the most of what led to the result, or the least: Shapley values by the proxy `reach`."""
    agents, turns = (Reach(case.view, parts(case.view, unit), 1.0).shapley() for unit in ("agent", "turn"))
    return (
        {name: sign * share.credit for name, share in agents.items()},
        {name: sign * share.credit for name, share in turns.items()},
    )


def by_diagnosis(case: Case) -> tuple[Suspicion, Suspicion]:
    """Who is named by most findings and failed events, and which events are."""
    diagnosis, events = diagnose(case.view), case.view.trace.events
    agents: Suspicion = {}
    named: Suspicion = {}
    for finding in diagnosis.between.findings:
        for agent in finding.agents:
            agents[agent] = agents.get(agent, 0.0) + 1.0
        for number in finding.events:
            named[events[number].id] = named.get(events[number].id, 0.0) + 1.0
    for event in events:
        if event.status == "error":
            agents[event.agent] = agents.get(event.agent, 0.0) + 1.0
            named[event.id] = named.get(event.id, 0.0) + 1.0
    return agents, named


_PENALTIES = tuple(TermSpec(name, name, -1.0) for name in ("tool_failures", "tool_repeats", "late_steps", "regret"))


def by_reward(case: Case) -> tuple[Suspicion, Suspicion]:
    """Who is paid least for what a trace alone shows: failed and repeated calls, late steps, regret."""
    reward = compute(case.view, Spec("faults", _PENALTIES))
    return _negative(reward.by_agent()), _negative(reward.by_event())


def by_judged_reward(case: Case) -> tuple[Suspicion, Suspicion]:
    """The same with the outcomes of agents for agents (R2), and with those of steps for steps (R4)."""
    data = as_data(case.view.trace)
    names = list(dict.fromkeys(event["agent"] for event in data["events"]))
    data["agents"] = [{"id": name, "reward": case.outcomes[name]} for name in names]
    for event in data["events"]:
        if event["id"] in case.outcomes:
            event["reward"] = case.outcomes[event["id"]]
    view = TraceView(parse_trace(json.dumps(data)))
    of_agents = TermSpec("agents", "agent_outcomes", len(names))  # whose value is a mean
    agents = compute(view, Spec("agents", (*_PENALTIES, of_agents))).by_agent()
    events = compute(view, Spec("steps", (*_PENALTIES, TermSpec("steps", "step_outcomes")))).by_event()
    return _negative(agents), _negative(events)


def _negative(paid: Mapping[str, float]) -> Suspicion:
    return {name: -share for name, share in paid.items() if name != WHOLE}


JUDGED = "reward, with a judge"
METHODS: dict[str, Method] = {
    "first to act": lambda case: by_place(case, is_last=False),
    "last to act": lambda case: by_place(case, is_last=True),
    "credit, the most": lambda case: by_credit(case, sign=1.0),
    "credit, the least": lambda case: by_credit(case, sign=-1.0),
    "diagnosis": by_diagnosis,
    "reward": by_reward,
    JUDGED: by_judged_reward,
}


class Rank(NamedTuple):
    """Where the one at fault stands.

    Attributes:
        first: The chance that it is named first, ties broken by lot.
        share: Its mean place among all, from 0 (first) to 1 (last); 0.5 is chance.
        chance: The chance to name it without looking.
    """

    first: float
    share: float
    chance: float


def rank(suspicion: Suspicion, guilty: str, among: Sequence[str]) -> Rank:
    """Where one stands among some, by suspicion; who has none has 0, and who is not among them is never found."""
    if guilty not in among:
        return Rank(0.0, 1.0, 0.0)
    own = suspicion.get(guilty, 0.0)
    values = [suspicion.get(name, 0.0) for name in among]
    tolerance = 1e-12
    more = sum(value > own + tolerance for value in values)
    same = sum(abs(value - own) <= tolerance for value in values)
    share = (more + (same - 1) / 2) / (len(among) - 1) if len(among) > 1 else 0.0
    return Rank(0.0 if more else 1 / same, share, 1 / len(among))


def ranks(case: Case, method: Method) -> tuple[Rank, Rank]:
    """Where the agent and the step at fault stand: suspicion of an event is that of the step that led to it."""
    agents, events = method(case)
    trace, order = case.view.trace, case.view.sequence
    asked = set(steps(trace))
    names = list(dict.fromkeys(trace.events[number].agent for number in order if number in asked))
    latest: dict[str, str] = {}
    of_steps: Suspicion = {}
    for number in order:
        event = trace.events[number]
        if number in asked:
            latest[event.agent] = event.id
        if event.id in events and event.agent in latest:
            of_steps[latest[event.agent]] = of_steps.get(latest[event.agent], 0.0) + events[event.id]
    every = [trace.events[number].id for number in order if number in asked]
    return rank(agents, case.agent, names), rank(of_steps, case.step, every)


def interval(hits: float, number: int) -> tuple[float, float]:
    """The interval of E. B. Wilson (1927) at 95 % for a share; hits shared by ties count in part."""
    z, share = 1.959964, hits / number
    middle = share + z * z / (2 * number)
    wide = z * sqrt(share * (1 - share) / number + z * z / (4 * number * number))
    return (middle - wide) / (1 + z * z / number), (middle + wide) / (1 + z * z / number)


def titled(title: str, cases: Sequence[Case], methods: Mapping[str, Method]) -> str:
    """A table of how often each method names the agent and the step at fault first, beside chance."""
    rows: list[tuple[str, ...]] = []
    for name, method in {"chance": None, **methods}.items():
        both = [ranks(case, method or (lambda _: ({}, {}))) for case in cases]
        cells = [name]
        for of_kind in zip(*both, strict=True):
            hits = sum(one.first for one in of_kind)
            low, high = interval(hits, len(cases))
            shown = f"{hits / len(cases):.1%}"
            cells.append(shown if method is None else f"{shown} ({low:.1%} to {high:.1%})")
            cells.append(f"{sum(one.share for one in of_kind) / len(cases):.2f}")
        rows.append(tuple(cells))
    columns = ("method", "agent first", "place", "step first", "place of step")
    return f"**{title}**\n\n{markdown(Table('attribution', '', columns, tuple(rows)))}"


def made_tables() -> str:
    """The tables of docs/credit.md: for each fault, how often each method finds it."""
    found = []
    for fault in Fault:
        cases = [made_run(fault, seed) for seed in range(RUNS_OF_A_FAULT)]
        found.append(titled(f"{fault.capitalize()}, {len(cases)} runs", cases, METHODS))
    return "\n".join(found)


def records(folder: Path) -> Iterator[Case]:
    """The records of a folder and those below it; what cannot be read, or contradicts itself, is named."""
    for path in sorted(folder.rglob("*.json")):
        try:
            case = read_record(json.loads(path.read_text(encoding="utf-8")), path.stem)
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError, CorpusError) as error:
            print(f"{path}: passed over: {type(error).__name__}: {str(error).splitlines()[0]}")
            continue
        at_fault = {event.id: event.agent for event in case.view.trace.events}.get(case.step)
        if at_fault != case.agent:
            print(f"{path}: {case.step} is of {at_fault}, and the record names {case.agent}")
        yield case


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="How often the agent and the step at fault rank first.")
    parser.add_argument("--records", type=Path, metavar="FOLDER", help="records in the form of Who&When instead")
    chosen = parser.parse_args()
    if chosen.records is None:
        print(made_tables())
        return
    cases = list(records(chosen.records))
    without = {name: method for name, method in METHODS.items() if name != JUDGED}
    print(titled(f"{len(cases)} records", cases, without) if cases else "There is no record.")


if __name__ == "__main__":
    main()
