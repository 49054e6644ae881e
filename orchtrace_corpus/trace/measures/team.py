"""The team: how deep it delegates, how wide it grows, how much its agents say to one another."""

from orchtrace_corpus.trace.lives import Life, ancestors, lives
from orchtrace_corpus.trace.measures.measure import Definition, Measure, Run, named, steps
from orchtrace_corpus.trace.model import Event, EventType, Tokens
from orchtrace_corpus.trace.rules.totals import total
from orchtrace_corpus.trace.timing import longest_path

_PARL = "Critical Steps of PARL (Kimi K2.5, arXiv 2602.02276)"
_SCALING = "message density (Kim et al., arXiv 2512.08296)"
_PROTOCOL = frozenset({EventType.SPAWN, EventType.MESSAGE, EventType.RETURN, EventType.AGGREGATE})


def step_count(run: Run) -> Measure:
    """The number of steps of all agents."""
    return Measure(float(len(steps(run.trace))))


def critical_steps(run: Run) -> Measure:
    """The steps of the main agent, plus, for each group of agents spawned between two of them, those of the longest.

    A sub-agent that spawns others counts by the same rule. Of several agents that nobody spawned, the largest.
    """
    trace, times = run.trace, run.times
    known = lives(trace)
    own: dict[str, list[float]] = {event.agent: [] for event in trace.events}
    for number in steps(trace):
        own[trace.events[number].agent].append(times.starts[number])
    children: dict[str, list[str]] = {}
    born: dict[str, float] = {}
    for agent in own:
        life = known.get(agent)
        if life is not None and life.parent and agent not in ancestors(agent, known):
            children.setdefault(life.parent, []).append(agent)
            born[agent] = _born(run, agent, life)
    counted: dict[str, int] = {}
    for agent in sorted(own, key=lambda agent: -len(ancestors(agent, known))):
        stages: dict[int, int] = {}
        for child in children.get(agent, ()):
            stage = sum(start <= born[child] for start in own[agent])
            stages[stage] = max(stages.get(stage, 0), counted[child])
        counted[agent] = len(own[agent]) + sum(stages.values())
    return Measure(float(max(counted.values())))


def _born(run: Run, agent: str, life: Life) -> float:
    if life.spawns:
        return run.times.starts[life.spawns[0]]
    return min(run.times.starts[n] for n, event in enumerate(run.trace.events) if event.agent == agent)


def critical_step_path(run: Run) -> Measure:
    """The most steps on a path of events that depend on one another: Critical Steps of a run that is not in stages."""
    weights = [0.0] * len(run.trace.events)
    for number in steps(run.trace):
        weights[number] = 1.0
    path = longest_path(run.times, weights, overlapping=False)
    return Measure(path.length, events=tuple(run.trace.events[n].id for n in path.events if weights[n]))


def agent_count(run: Run) -> Measure:
    """The number of agents that act."""
    return Measure(float(len({event.agent for event in run.trace.events})))


def delegation_depth(run: Run) -> Measure:
    """The longest chain of spawns: 0 for an agent alone."""
    known = lives(run.trace)
    return Measure(float(max((len(ancestors(agent, known)) for agent in known), default=0)))


def width(run: Run) -> Measure:
    """The most agents alive at once, from spawn or first act to despawn, stop or last act."""
    times = run.times
    first: dict[str, float] = {}
    last: dict[str, float] = {}
    for number, event in enumerate(run.trace.events):
        for agent in (event.agent, event.target if event.type is EventType.SPAWN else ""):
            if agent:
                first[agent] = min(first.get(agent, times.starts[number]), times.starts[number])
                last[agent] = max(last.get(agent, times.ends[number]), times.ends[number])
    changes = sorted([(start, 0, 1) for start in first.values()] + [(end, 1, -1) for end in last.values()])
    most = alive = 0
    for _, _, change in changes:
        alive += change
        most = max(most, alive)
    return Measure(float(most))


def fan_out(run: Run) -> Measure:
    """Spawns by decision that spawns: the event of the same agent that leads to a spawn, or the same instant."""
    trace, of = run.trace, run.times.of
    causes: dict[int, int] = {}
    for source, target in zip(of.sources, of.targets, strict=True):
        event = trace.events[target]
        if event.type is EventType.SPAWN and trace.events[source].agent == event.agent:
            causes.setdefault(target, source)
    spawns = [number for number, event in enumerate(trace.events) if event.type is EventType.SPAWN]
    if not spawns:
        return Measure(None, "nothing is spawned")
    decisions = {causes.get(n, (trace.events[n].agent, trace.events[n].t)) for n in spawns}
    return Measure(len(spawns) / len(decisions))


def message_density(run: Run) -> Measure:
    """Messages between agents by step."""
    number = len(steps(run.trace))
    messages = sum(event.type is EventType.MESSAGE and not event.copied_context for event in run.trace.events)
    return Measure(messages / number) if number else Measure(None, "no step is logged")


def communication_tokens(run: Run) -> Measure:
    """The tokens of all messages."""
    return _tokens_of(run, frozenset({EventType.MESSAGE}), "message")


def protocol_share(run: Run) -> Measure:
    """The share of all tokens that spawns, messages, returns and aggregates take."""
    everything = _tokens_of(run, frozenset(EventType), "event")
    protocol = _tokens_of(run, _PROTOCOL, "spawn, message, return or aggregate")
    if everything.value is None or protocol.value is None:
        return Measure(None, protocol.reason or everything.reason)
    return Measure(protocol.value / everything.value) if everything.value else Measure(None, "no token is logged")


_MAY_LACK = frozenset(
    {EventType.TOOL_CALL, EventType.TOOL_RESULT, EventType.HUMAN, EventType.SAFETY, EventType.DESPAWN, EventType.STOP}
)
"""Events of which a model writes nothing beyond what another event has: without tokens they have none."""


def _tokens_of(run: Run, kinds: frozenset[EventType], noun: str) -> Measure:
    """The tokens of the events of some types; None where one that should have tokens has none."""
    wanted = [n for n, event in enumerate(run.trace.events) if event.type in kinds and not event.copied_context]
    lacking = [n for n in wanted if not _has_tokens(run.trace.events[n])]
    if not wanted:
        return Measure(None, f"there is no {noun}")
    if lacking:
        return Measure(None, f"{len(lacking)} of {len(wanted)} have no tokens: {named(run.trace, lacking)}")
    tokens = (run.trace.events[n].tokens for n in wanted)
    return Measure(float(sum(total(one) for one in tokens if isinstance(one, Tokens))))


def _has_tokens(event: Event) -> bool:
    return isinstance(event.tokens, Tokens) or event.type in _MAY_LACK


DEFINITIONS = (
    Definition("steps", "1", "inferences, orchestrator decisions and aggregates of all agents", "ours", step_count),
    Definition("critical_steps", "1", "sum over stages of (S_main + max_i S_sub,i)", _PARL, critical_steps),
    Definition(
        "critical_step_path",
        "1",
        "most steps on a path of dependent events",
        f"ours, after {_PARL}",
        critical_step_path,
    ),
    Definition("agents", "1", "agents that act", "ours", agent_count),
    Definition("delegation_depth", "1", "longest chain of spawns", "ours", delegation_depth),
    Definition("width", "1", "most agents alive at once", "ours", width),
    Definition("fan_out", "1", "spawns / decisions that spawn", "ours", fan_out),
    Definition("message_density", "1", "messages / steps", _SCALING, message_density),
    Definition("communication_tokens", "token", "sum of the tokens of messages", "ours", communication_tokens),
    Definition(
        "protocol_share", "1", "tokens of spawns, messages, returns and aggregates / all tokens", "ours", protocol_share
    ),
)
