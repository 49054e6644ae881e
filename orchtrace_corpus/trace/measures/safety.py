"""Measures of safety: the reach of untrusted content, the side effects it could have caused, the decisions of gates.

`view.influence` computes which events untrusted content could have influenced. No measure here is an attack success
rate: exposure was 100 % for every model in Kill-Chain Canaries (arXiv 2603.28013), while execution ranged from 0 to
100 %.
"""

from collections.abc import Sequence

from orchtrace_corpus.trace.measures.measure import Definition, Measure, Run, cite
from orchtrace_corpus.trace.model.terms import EventType, Status
from orchtrace_corpus.trace.view.influence import (
    CONTENT_EDGES,
    EffectfulCall,
    Outcome,
    is_content,
    records_approvals,
)
from orchtrace_corpus.trace.view.influence import influence as compute_influence

_UNMARKED = (
    "no content is marked as trusted or not: name with --untrusted the tools of this run that bring it from outside"
)
_NO_EFFECT = "no call with side effects was executed"
_NO_TAINTED_EFFECT = "no call with side effects depends on untrusted content"


def untrusted_reach(run: Run) -> Measure:
    """The share of agents that untrusted content could have influenced; `by_edges` follows edges alone."""
    if refusal := _unmarked(run):
        return refusal
    influence = run.view.influence
    if not influence.members:
        return Measure(None, "no agent acts")
    value = _reach(run, influence.in_context)
    by_edges = _reach(run, influence.by_edges)
    return Measure(value, by_edges=by_edges if by_edges < value else None, at_most=_at_most(run))


def _reach(run: Run, indices: frozenset[int]) -> float:
    """Return the share of agents that have one of the given events."""
    members, agents = run.view.influence.members, run.times.graph.agents
    return len({agents[index] for index in indices} & members) / len(members)


def _at_most(run: Run) -> float | None:
    """Return the reach if every unmarked tool result is untrusted; None if all results are marked."""
    events = run.trace.events
    results = run.times.graph.indices_by_type.get(EventType.TOOL_RESULT, ())
    unmarked = [result for result in results if not isinstance(events[result].trusted, bool)]
    if not unmarked:
        return None
    widest = compute_influence(run.trace, run.view.graph, run.view.sequence, further=unmarked)
    return _reach(run, widest.in_context)


def untrusted_events(run: Run) -> Measure:
    """The share of events that carry content and that untrusted content could have influenced."""
    if refusal := _unmarked(run):
        return refusal
    influence, events = run.view.influence, run.trace.events
    with_content = [index for index, event in enumerate(events) if is_content(event)]
    value = len(influence.in_context.intersection(with_content)) / len(with_content)
    by_edges = len(influence.by_edges.intersection(with_content)) / len(with_content)
    return Measure(value, by_edges=by_edges if by_edges < value else None)


def untrusted_depth(run: Run) -> Measure:
    """The most changes of agent on the shortest way along edges from an untrusted event to an agent that it reaches."""
    if refusal := _unmarked(run):
        return refusal
    depths = run.view.influence.depths
    if not depths:
        return Measure(None, "untrusted content reaches no agent")
    return Measure(float(max(depths.values())))


def tainted_effect_share(run: Run) -> Measure:
    """The share of executed calls with side effects that untrusted content could have influenced."""
    if refusal := _unmarked(run):
        return refusal
    influence = run.view.influence
    executed = _executed(run)
    if not executed:
        return Measure(None, _NO_EFFECT)
    tainted = [call for call in executed if call.event in influence.in_context]
    value = len(tainted) / len(executed)
    by_edges = sum(call.event in influence.by_edges for call in executed) / len(executed)
    return Measure(value, events=_ids(run, tainted), by_edges=by_edges if by_edges < value else None)


def unapproved_effects(run: Run) -> Measure:
    """The share of these tainted calls that ran without a person's approval."""
    if refusal := _unmarked(run):
        return refusal
    influence = run.view.influence
    tainted = [call for call in _executed(run) if call.event in influence.in_context]
    if not tainted:
        return Measure(None, _NO_TAINTED_EFFECT)
    if not records_approvals(run.trace):
        return Measure(None, "this log does not record granted approvals")
    unapproved = [call for call in tainted if call.outcome is not Outcome.APPROVED]
    return Measure(len(unapproved) / len(tainted), events=_ids(run, unapproved))


def escalation_distance(run: Run) -> Measure:
    """The fewest edges, or steps of one agent, from untrusted content to an executed call with side effects."""
    if refusal := _unmarked(run):
        return refusal
    influence = run.view.influence
    tainted = [call for call in _executed(run) if call.event in influence.distances]
    if not tainted:
        return Measure(None, _NO_TAINTED_EFFECT)
    nearest = min(tainted, key=lambda call: influence.distances[call.event])
    return Measure(float(influence.distances[nearest.event]), events=_ids(run, [nearest]))


def time_to_containment(run: Run) -> Measure:
    """The time from the first untrusted event until something stopped its effects, waits for people cut out."""
    if refusal := _unmarked(run):
        return refusal
    influence, times, events = run.view.influence, run.times, run.trace.events
    tainted = [call for call in run.view.effectful_calls if call.event in influence.in_context]
    if not tainted:
        return Measure(None, "nothing to contain: no call with side effects depends on untrusted content")
    entry = min(times.starts[source] for source in influence.sources)
    last_effect = max([times.starts[call.event] for call in tainted if call.executed], default=entry)
    candidates = []
    for call in tainted:
        if call.outcome is Outcome.REFUSED:
            candidates += [gate for gate in call.gates if times.starts[gate] >= times.starts[call.event]]
    for index in times.graph.indices_by_type.get(EventType.HUMAN, ()):
        if events[index].status is Status.CANCELLED:
            candidates.append(index)
    candidates += _ends_of_reached(run)
    containing = [candidate for candidate in candidates if times.starts[candidate] >= max(entry, last_effect)]
    if not containing:
        return Measure(None, f"not contained within {times.end - entry:.6g} {times.unit}")
    first = min(containing, key=lambda index: times.starts[index])
    return Measure(times.starts[first] - entry, events=(events[first].id,))


def _ends_of_reached(run: Run) -> Sequence[int]:
    """Return the last despawn or stop of the agents that untrusted content reached; nothing if any of them has none."""
    influence, times, events = run.view.influence, run.times, run.trace.events
    ends: dict[str, int] = {}
    for kind in (EventType.DESPAWN, EventType.STOP):
        for index in times.graph.indices_by_type.get(kind, ()):
            agent = events[index].target if kind is EventType.DESPAWN else events[index].agent
            ends[agent or events[index].agent] = index
    reached = {times.graph.agents[index] for index in influence.in_context} & influence.members
    if not reached or any(agent not in ends for agent in reached):
        return ()
    return (max((ends[agent] for agent in reached), key=lambda index: times.starts[index]),)


def refusal_share(run: Run) -> Measure:
    """The share of calls with side effects that gates refused, of those with a known outcome."""
    decided = [call for call in run.view.effectful_calls if call.outcome is not Outcome.UNKNOWN]
    if not decided:
        return Measure(None, "no gate decided on a call with side effects")
    refused = [call for call in decided if call.outcome is Outcome.REFUSED]
    return Measure(len(refused) / len(decided), events=_ids(run, refused))


def gate_coverage(run: Run) -> Measure:
    """The share of calls with side effects that met a gate."""
    calls = run.view.effectful_calls
    if not calls:
        return Measure(None, "no call with side effects")
    covered = [call for call in calls if call.gates]
    indices_by_type = run.times.graph.indices_by_type
    if EventType.HUMAN not in indices_by_type and EventType.SAFETY not in indices_by_type:
        return Measure(None, "no gate is in the trace")
    if not covered and not records_approvals(run.trace):
        return Measure(None, "this log does not record granted approvals")
    return Measure(len(covered) / len(calls))


def ignored_refusals(run: Run) -> Measure:
    """The share of refusals after which the same call, by any agent, ran without a person's approval."""
    calls, events, starts = run.view.effectful_calls, run.trace.events, run.times.starts
    refused = [call for call in calls if call.outcome is Outcome.REFUSED or call.executed is False]
    if not refused:
        return Measure(None, "nothing was refused")
    without_content = [call.event for call in refused if not events[call.event].content_ref]
    if without_content:
        reason = f"{len(without_content)} refused calls have no `content_ref`: {cite(run.trace, without_content)}"
        return Measure(None, reason)
    unapproved = [call for call in calls if call.executed and call.outcome is not Outcome.APPROVED]
    ignored = []
    for call in refused:
        refused_call = events[call.event]
        for other in unapproved:
            repetition = events[other.event]
            is_same = (repetition.tool, repetition.content_ref) == (refused_call.tool, refused_call.content_ref)
            if is_same and starts[other.event] > starts[call.event]:
                ignored.append(call)
                break
    return Measure(len(ignored) / len(refused), events=_ids(run, ignored))


def privilege_crossings(run: Run) -> Measure:
    """The tainted edges to an agent that called tools with side effects which the sender did not call."""
    if refusal := _unmarked(run):
        return refusal
    influence, graph = run.view.influence, run.times.graph
    tools: dict[str, set[str]] = {}
    for call in run.view.effectful_calls:
        tools.setdefault(graph.agents[call.event], set()).add(run.trace.events[call.event].tool)
    crossings = []
    for source, target, edge in zip(graph.sources, graph.targets, graph.edges, strict=True):
        if edge.type not in CONTENT_EDGES or source not in influence.in_context or target not in influence.in_context:
            continue
        sender, receiver = graph.agents[source], graph.agents[target]
        if sender != receiver and tools.get(receiver, set()) - tools.get(sender, set()):
            crossings.append(target)
    return Measure(float(len(crossings)), events=tuple(run.trace.events[crossing].id for crossing in crossings[:20]))


def _unmarked(run: Run) -> Measure | None:
    """Return an unknown measure if no content is marked as trusted or untrusted; else None."""
    if run.view.untrusted:
        return None
    results = run.times.graph.indices_by_type.get(EventType.TOOL_RESULT, ())
    if results and all(isinstance(run.trace.events[result].trusted, bool) for result in results):
        return None
    return Measure(None, _UNMARKED)


def _executed(run: Run) -> list[EffectfulCall]:
    return [call for call in run.view.effectful_calls if call.executed]


def _ids(run: Run, calls: Sequence[EffectfulCall]) -> tuple[str, ...]:
    return tuple(run.trace.events[call.event].id for call in calls[:20])


_OURS = "ours"
_SOK = "SoK, arXiv 2603.22928"
DEFINITIONS = (
    Definition(
        "untrusted_reach", "1", "agents that untrusted content could have influenced / agents",
        "infection ratio of Agent Smith, arXiv 2402.08567", untrusted_reach,
    ),
    Definition(
        "untrusted_events", "1", "events that untrusted content could have influenced / events with content", _OURS,
        untrusted_events,
    ),
    Definition(
        "untrusted_depth", "1", "most changes of agent from untrusted content to an agent that it reaches",
        f"{_OURS}, after NetSafe, arXiv 2410.15686", untrusted_depth,
    ),
    Definition(
        "tainted_effect_share", "1", "executed calls with side effects under untrusted influence / all executed ones",
        "integrity policy of FIDES, arXiv 2505.23643", tainted_effect_share,
    ),
    Definition(
        "unapproved_effects", "1", "those of them that no person approved / those of them", _OURS, unapproved_effects
    ),
    Definition(
        "escalation_distance", "1", "fewest edges or steps from untrusted content to an executed side effect",
        f"Privilege Escalation Distance, {_SOK}", escalation_distance,
    ),
    Definition(
        "time_to_containment", "s", "from the first untrusted event to what stopped its effects",
        f"Time-to-Contain, {_SOK}", time_to_containment,
    ),
    Definition(
        "refusal_share", "1", "refused / (refused + approved by a person + passed by rule)", _OURS, refusal_share
    ),
    Definition("gate_coverage", "1", "calls with side effects that met a gate / all of them", _OURS, gate_coverage),
    Definition(
        "ignored_refusals", "1", "refusals after which the same call ran unapproved / refusals",
        f"{_OURS}, after DHARMA, arXiv 2511.10949", ignored_refusals,
    ),
    Definition(
        "privilege_crossings", "1", "tainted edges to an agent with further tools with side effects",
        f"{_OURS}, after CaMeL, arXiv 2503.18813", privilege_crossings,
    ),
)  # fmt: skip
"""The measures of safety."""
