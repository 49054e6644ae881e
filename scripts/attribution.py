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
from math import sqrt
from pathlib import Path
from random import Random
from typing import NamedTuple

from planted_faults import RELIABLE, Case, Fault, made_run

from orchtrace_corpus.base.errors import CorpusError
from orchtrace_corpus.base.text.table import Table, markdown
from orchtrace_corpus.trace import TraceView, as_data, import_logs, parse_trace
from orchtrace_corpus.trace.credit.assign import parts
from orchtrace_corpus.trace.credit.methods import difference_rewards
from orchtrace_corpus.trace.credit.reach import Reach
from orchtrace_corpus.trace.diagnosis import diagnose
from orchtrace_corpus.trace.importers.conversations.who_and_when import MISTAKE
from orchtrace_corpus.trace.measures.measure import steps
from orchtrace_corpus.trace.model.terms import Status
from orchtrace_corpus.trace.rewards import WHOLE, Spec, TermSpec, compute

RUNS_PER_FAULT = 100
RERUNS = 4
"""How often each agent is replaced."""


def read_record(path: Path) -> Case:
    """A record of Who&When, imported, with its labels taken out of the trace.

    Raises:
        DataFileError: The file holds no record.
        ValueError: It says not at which step the mistake was made, or not by whom.
    """
    (imported,) = import_logs(str(path), "who_and_when", salt="attribution")
    if imported.error is not None:
        raise imported.error
    trace = imported.trace
    at_fault = [event for event in trace.events if event.error_type == MISTAKE] if trace else []
    named = json.loads(path.read_text(encoding="utf-8"))["mistake_agent"]
    if trace is None or len(at_fault) != 1 or not isinstance(named, str):
        raise ValueError("its labels name no agent and step of its history")
    (step,) = at_fault
    step.status, step.error_type = Status.UNKNOWN, ""
    trace.metrics.clear()
    known = {_plain(event.agent): event.agent for event in trace.events}
    return Case("record", TraceView(trace), known.get(_plain(named), named), step.id)


def _plain(name: str) -> str:
    """A name by which an agent is known again."""
    return name.strip().casefold().replace(" ", "_")


Suspicion = dict[str, float]
"""How much each agent, or each step, is suspected; who is not named is not suspected at all."""
Method = Callable[[Case], tuple[Suspicion, Suspicion]]
"""From a case to the suspicion of agents and of events."""


def by_place(case: Case, *, is_last: bool) -> tuple[Suspicion, Suspicion]:
    """The first or the last to act, and the first or the last step."""
    events, asked = case.view.trace.events, set(steps(case.view.trace))
    ordered = [events[number] for number in case.view.sequence if number in asked]
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
    for finding in diagnosis.team_findings.findings:
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


def by_reruns(case: Case) -> tuple[Suspicion, Suspicion]:
    """Who makes the run better by being replaced: difference rewards from runs made again, each outcome noisy.

    This is what credit would be with values from runs; it is no reading of the trace, and says nothing of steps.
    """
    draw = Random(f"{case.view.trace.trace_id} again")
    names = list(parts(case.view, "agent"))
    everybody = frozenset(names)

    def value(coalition: frozenset[str]) -> float:
        is_sound = case.agent not in coalition
        return sum((draw.random() < RELIABLE) == is_sound for _ in range(RERUNS)) / RERUNS

    known = {coalition: value(coalition) for coalition in (everybody, *(everybody - {name} for name in names))}
    found = difference_rewards(names, known.__getitem__)
    return {name: -share.credit for name, share in found.items()}, {}


JUDGED, RERUN = "reward, with a judge", "credit, from reruns"
METHODS: dict[str, Method] = {
    "first to act": lambda case: by_place(case, is_last=False),
    "last to act": lambda case: by_place(case, is_last=True),
    "credit, the most": lambda case: by_credit(case, sign=1.0),
    "credit, the least": lambda case: by_credit(case, sign=-1.0),
    "diagnosis": by_diagnosis,
    "reward": by_reward,
    JUDGED: by_judged_reward,
    RERUN: by_reruns,
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
    home: dict[str, str] = {}  # a terminal is no agent: what it prints belongs to the step that called it
    of_steps: Suspicion = {}
    for number in order:
        event = trace.events[number]
        if number in asked:
            latest[event.agent] = event.id
        if event.id in events and event.agent in latest:
            of_steps[latest[event.agent]] = of_steps.get(latest[event.agent], 0.0) + events[event.id]
        home[event.id] = latest.get(event.agent, event.id)
    every = [trace.events[number].id for number in order if number in asked]
    return rank(agents, case.agent, names), rank(of_steps, home[case.step], every)


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
        rows.append(tuple(cells) if name != RERUN else (*cells[:3], "", ""))
    columns = ("method", "agent first", "place", "step first", "place of step")
    return f"**{title}**\n\n{markdown(Table('attribution', '', columns, tuple(rows)))}"


def made_tables() -> str:
    """The tables of docs/credit.md: for each fault, how often each method finds it."""
    found = []
    for fault in Fault:
        cases = [made_run(fault, seed) for seed in range(RUNS_PER_FAULT)]
        found.append(titled(f"{fault.capitalize()}, {len(cases)} runs", cases, METHODS))
    return "\n".join(found)


def records(folder: Path) -> Iterator[Case]:
    """The records of a folder and those below it, one in a file; what contradicts itself, or is none, is named."""
    for path in sorted(folder.rglob("*.json")):
        try:
            case = read_record(path)
        except (CorpusError, KeyError, TypeError, ValueError) as error:
            print(f"{path}: passed over: {str(error).splitlines()[0]}")
            continue
        acts = next(event.agent for event in case.view.trace.events if event.id == case.step)
        if acts != case.agent:
            print(f"{path}: the step at fault is of {acts}, and the record names {case.agent}")
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
    without = {name: method for name, method in METHODS.items() if name not in (JUDGED, RERUN)}
    print(titled(f"{len(cases)} records", cases, without) if cases else "There is no record.")


if __name__ == "__main__":
    main()
