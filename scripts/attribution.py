"""Asks whether diagnosis, rewards and credit find the agent and the step at fault, on made runs and on records.

    python scripts/attribution.py                    # 300 made runs with planted faults, as in docs/credit.md
    python scripts/attribution.py --records FOLDER   # failure-attribution records in the form of Who&When

Every method gives each agent and each step of a run a suspicion; what counts is how often the one at fault ranks first,
ties shared evenly. Everything is seeded. Records (arXiv 2505.00212) hold questions of benchmarks, so none comes with
this package.
"""

import argparse
import json
from collections import defaultdict
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
    """Return a record of Who&When as a trace, without the labels in it.

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
    """Return a name in a form in which equal agents have equal names."""
    return name.strip().casefold().replace(" ", "_")


Suspicion = dict[str, float]
"""How much each agent or event is suspected, by its name; one that is not named is not suspected."""
Method = Callable[[Case], tuple[Suspicion, Suspicion]]
"""A function that returns, for a case, the suspicion of agents and of events."""


def by_place(case: Case, *, is_last: bool) -> tuple[Suspicion, Suspicion]:
    """Suspect the first or the last agent that acts, and the first or the last step."""
    events = case.view.trace.events
    step_indices = set(steps(case.view.trace))
    ordered = [events[index] for index in case.view.sequence if index in step_indices]
    suspect = ordered[-1] if is_last else ordered[0]
    return {suspect.agent: 1.0}, {suspect.id: 1.0}


def by_credit(case: Case, *, sign: float) -> tuple[Suspicion, Suspicion]:
    """Suspect the agents with the largest or the smallest part in the result: Shapley values of the proxy `reach`."""
    agents = Reach(case.view, parts(case.view, "agent"), 1.0).shapley()
    turns = Reach(case.view, parts(case.view, "turn"), 1.0).shapley()
    return (
        {name: sign * share.credit for name, share in agents.items()},
        {name: sign * share.credit for name, share in turns.items()},
    )


def by_diagnosis(case: Case) -> tuple[Suspicion, Suspicion]:
    """Suspect the agents and events that most findings and failed events name."""
    events = case.view.trace.events
    by_agent: defaultdict[str, float] = defaultdict(float)
    by_event: defaultdict[str, float] = defaultdict(float)
    for finding in diagnose(case.view).team_findings.findings:
        for agent in finding.agents:
            by_agent[agent] += 1.0
        for index in finding.events:
            by_event[events[index].id] += 1.0
    for event in events:
        if event.status == "error":
            by_agent[event.agent] += 1.0
            by_event[event.id] += 1.0
    return dict(by_agent), dict(by_event)


_PENALTIES = tuple(TermSpec(name, name, -1.0) for name in ("tool_failures", "tool_repeats", "late_steps", "regret"))


def by_reward(case: Case) -> tuple[Suspicion, Suspicion]:
    """Suspect the agents with the least reward by what a trace shows: failed and repeated calls, late steps, regret."""
    reward = compute(case.view, Spec("faults", _PENALTIES))
    return _negative(reward.by_agent()), _negative(reward.by_event())


def by_judged_reward(case: Case) -> tuple[Suspicion, Suspicion]:
    """Suspect as `by_reward` does, with further terms: the outcomes of agents (R2), and those of steps (R4)."""
    data = as_data(case.view.trace)
    names = list(dict.fromkeys(event["agent"] for event in data["events"]))
    data["agents"] = [{"id": name, "reward": case.outcomes[name]} for name in names]
    for event in data["events"]:
        if event["id"] in case.outcomes:
            event["reward"] = case.outcomes[event["id"]]
    view = TraceView(parse_trace(json.dumps(data)))
    agent_term = TermSpec("agents", "agent_outcomes", len(names))  # the value is a mean, so the weight is their number
    step_term = TermSpec("steps", "step_outcomes")
    agents = compute(view, Spec("agents", (*_PENALTIES, agent_term))).by_agent()
    events = compute(view, Spec("steps", (*_PENALTIES, step_term))).by_event()
    return _negative(agents), _negative(events)


def _negative(rewards: Mapping[str, float]) -> Suspicion:
    """Return the negative of each reward, except that of the whole run."""
    return {name: -reward for name, reward in rewards.items() if name != WHOLE}


def by_reruns(case: Case) -> tuple[Suspicion, Suspicion]:
    """Suspect the agents whose replacement makes the run better: difference rewards from simulated, noisy reruns.

    It shows what credit would be with values from runs. It uses nothing of the trace, and says nothing about steps.
    """
    chance = Random(f"{case.view.trace.trace_id} again")
    names = list(parts(case.view, "agent"))
    everybody = frozenset(names)

    def simulate_value(coalition: frozenset[str]) -> float:
        """Return the share of reruns that succeed; a rerun has the wrong outcome with a small probability."""
        succeeds = case.agent not in coalition
        successes = 0
        for _ in range(RERUNS):
            is_reliable = chance.random() < RELIABLE
            if is_reliable == succeeds:
                successes += 1
        return successes / RERUNS

    coalitions = (everybody, *(everybody - {name} for name in names))
    values = {coalition: simulate_value(coalition) for coalition in coalitions}
    rewards = difference_rewards(names, values.__getitem__)
    return {name: -share.credit for name, share in rewards.items()}, {}


JUDGED = "reward, with a judge"
RERUN = "credit, from reruns"
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
    """The rank of the agent or step at fault.

    Attributes:
        first: The probability that it ranks first if ties are broken by lot.
        share: Its mean rank among all, from 0 (first) to 1 (last); 0.5 is chance.
        chance: The probability that a random order ranks it first.
    """

    first: float
    share: float
    chance: float


def rank(suspicion: Suspicion, guilty: str, candidates: Sequence[str]) -> Rank:
    """Return the rank of the guilty one among candidates, by suspicion; it is never found if it is no candidate."""
    if guilty not in candidates:
        return Rank(0.0, 1.0, 0.0)
    own = suspicion.get(guilty, 0.0)
    values = [suspicion.get(name, 0.0) for name in candidates]
    tolerance = 1e-12
    higher_count = len([value for value in values if value > own + tolerance])
    equal_count = len([value for value in values if abs(value - own) <= tolerance])
    share = 0.0
    if len(candidates) > 1:
        share = (higher_count + (equal_count - 1) / 2) / (len(candidates) - 1)
    first = 0.0 if higher_count else 1 / equal_count
    return Rank(first, share, 1 / len(candidates))


def ranks(case: Case, method: Method) -> tuple[Rank, Rank]:
    """Return the ranks of the agent and the step at fault. An event has the suspicion of the step that led to it."""
    agent_suspicion, event_suspicion = method(case)
    trace = case.view.trace
    step_indices = set(steps(trace))
    agents: dict[str, None] = {}
    step_ids = []
    latest_steps: dict[str, str] = {}  # by agent
    steps_by_event: dict[str, str] = {}  # a terminal is no agent: its output belongs to the step that called it
    step_suspicion: Suspicion = {}
    for index in case.view.sequence:
        event = trace.events[index]
        if index in step_indices:
            agents[event.agent] = None
            step_ids.append(event.id)
            latest_steps[event.agent] = event.id
        if event.id in event_suspicion and event.agent in latest_steps:
            step = latest_steps[event.agent]
            step_suspicion[step] = step_suspicion.get(step, 0.0) + event_suspicion[event.id]
        steps_by_event[event.id] = latest_steps.get(event.agent, event.id)
    agent_rank = rank(agent_suspicion, case.agent, list(agents))
    return agent_rank, rank(step_suspicion, steps_by_event[case.step], step_ids)


def interval(hits: float, case_count: int) -> tuple[float, float]:
    """Return the interval of E. B. Wilson (1927) at 95 % for a share; hits that are shared by ties count in part."""
    z = 1.959964  # the 97.5 % quantile of the normal distribution
    share = hits / case_count
    middle = share + z * z / (2 * case_count)
    half_width = z * sqrt(share * (1 - share) / case_count + z * z / (4 * case_count * case_count))
    divisor = 1 + z * z / case_count
    return (middle - half_width) / divisor, (middle + half_width) / divisor


def titled(title: str, cases: Sequence[Case], methods: Mapping[str, Method]) -> str:
    """Return a table: how often each method ranks the agent and the step at fault first, and how often chance does."""
    rows: list[tuple[str, ...]] = []
    for name, method in {"chance": _suspect_nobody, **methods}.items():
        ranks_by_case = [ranks(case, method) for case in cases]
        cells = [name]
        for all_ranks in zip(*ranks_by_case, strict=True):  # those of agents, then those of steps
            hits = sum(each.first for each in all_ranks)
            share = f"{hits / len(cases):.1%}"
            if method is not _suspect_nobody:
                low, high = interval(hits, len(cases))
                share += f" ({low:.1%} to {high:.1%})"
            cells.append(share)
            cells.append(f"{sum(each.share for each in all_ranks) / len(cases):.2f}")
        if name == RERUN:  # it says nothing about steps
            cells = [*cells[:3], "", ""]
        rows.append(tuple(cells))
    columns = ("method", "agent first", "place", "step first", "place of step")
    return f"**{title}**\n\n{markdown(Table('attribution', '', columns, tuple(rows)))}"


def _suspect_nobody(_case: Case) -> tuple[Suspicion, Suspicion]:
    return {}, {}


def made_tables() -> str:
    """Return the tables of docs/credit.md: for each fault, how often each method finds it."""
    tables = []
    for fault in Fault:
        cases = [made_run(fault, seed) for seed in range(RUNS_PER_FAULT)]
        tables.append(titled(f"{fault.capitalize()}, {len(cases)} runs", cases, METHODS))
    return "\n".join(tables)


def records(folder: Path) -> Iterator[Case]:
    """Yield the records in a folder and the folders in it, one record a file; report files that are no sound record."""
    for path in sorted(folder.rglob("*.json")):
        try:
            case = read_record(path)
        except (CorpusError, KeyError, TypeError, ValueError) as error:
            print(f"{path}: passed over: {str(error).splitlines()[0]}")
            continue
        agent = next(event.agent for event in case.view.trace.events if event.id == case.step)
        if agent != case.agent:
            print(f"{path}: the step at fault is of {agent}, and the record names {case.agent}")
        yield case


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="How often the agent and the step at fault rank first.")
    parser.add_argument("--records", type=Path, metavar="FOLDER", help="records in the form of Who&When instead")
    arguments = parser.parse_args()
    if arguments.records is None:
        print(made_tables())
        return
    cases = list(records(arguments.records))
    if not cases:
        print("There is no record.")
        return
    methods = {name: method for name, method in METHODS.items() if name not in (JUDGED, RERUN)}
    print(titled(f"{len(cases)} records", cases, methods))


if __name__ == "__main__":
    main()
