"""The agents of a span tree: who acts when, who brought whom into being, who took over from whom.

An agent's span is one activation of it: a time in which it is at work. An agent that is called like a tool, or
lies within another's span, is a new agent each time. One that takes over by a handoff, or by the edge of a graph,
may be at work again later under the same name.

LangGraph runs a graph in supersteps: the tasks of one step run at once, and what they write is read in the next.
So every task depends on the tasks of the step before it, or on those that its `join:` trigger names, unless these
say that another node shall run next. A task that was pushed (`Send`) is brought into being by one of them.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from operator import itemgetter

from msgspec import Struct

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core.identity import Names
from orchtrace_corpus.trace.importers.core.privacy import masked
from orchtrace_corpus.trace.importers.core.transcript import USER
from orchtrace_corpus.trace.importers.spans import span as spans
from orchtrace_corpus.trace.importers.spans.span import AGENT, CHAIN, GUARDRAIL, HANDOFF, PERSON, TOOL
from orchtrace_corpus.trace.importers.spans.tree import NOBODY, Meanings, Tree
from orchtrace_corpus.trace.model.import_report import ImportReport, Problem

_PUSH = "__pregel_push"
_END = "__end__"
_MOST_PAIRS = 1_000  # of two steps with more pairs of tasks, not every task is joined to every other: edges stay linear


class Transfer(NamedTuple):
    """Control passes from one activation to another."""

    source: int  # the index of the activation that passes it on
    target: int  # the index of the activation that takes over
    span: int = NOBODY  # the index of the handoff's span; `NOBODY` where the transfer is concluded
    is_push: bool = False  # whether the target is brought into being by it
    is_routed: bool = False  # whether the source has chosen the target


def _joined(task: spans.Task, nodes: Mapping[str, int]) -> list[str]:
    """Return the nodes that a task's `join:` trigger names, such as `join:a+b:merge`."""
    ending = f":{task.node}"
    for trigger in task.triggers:
        if trigger.startswith("join:") and trigger.endswith(ending):
            return [name for name in trigger[5 : -len(ending)].split("+") if name in nodes]
    return []


class Activation(Struct):
    """An agent at work for a time."""

    span: int  # the index of its span; `NOBODY` where acts belong to no agent's span
    name: str  # the agent's name
    start: float  # when it began
    end: float | None  # when it ended; None where the log does not say
    earliest: float  # when the first of all that happens within began
    latest: float  # when the last of it began or ended
    parent: int = NOBODY  # the index of the activation that it lies in, or `NOBODY`
    wrapper: int = NOBODY  # the index of the tool's or guardrail's span between it and that activation, or `NOBODY`
    agent: str = ""  # the agent's id in the trace
    spawner: int = NOBODY  # the index of the activation that brought the agent into being, or `NOBODY`
    is_first: bool = False  # whether it is the agent's first
    is_last: bool = False  # whether it is the agent's last
    incoming: list[Transfer] = []  # what passed control to it
    outgoing: list[Transfer] = []  # what it passed control on by


class Team:
    """The activations of a tree, and which span belongs to which."""

    def __init__(
        self, of: Tree, meanings: Meanings, bundle: spans.Bundle, bearers: set[int], report: ImportReport
    ) -> None:
        # the activations; those of agents without spans come when their first act does
        self.activations: list[Activation] = []
        # for each span the index of the activation that it belongs to, or `NOBODY`; of an agent's span its own
        self.owner = [NOBODY] * len(of.spans)
        # the same for spans that bear tokens though they lie in no agent's span and are no act
        self.bearer_owner: dict[int, int] = {}
        self._of, self._meanings, self._report = of, meanings, report
        self._unnamed = masked(bundle.name) or "agent"
        self._spanless: dict[str, int] = {}
        self._find(bearers)
        with_spans = [each for each in self.activations if each.span != NOBODY]
        # for each agent's span the activation that it lies in, and the tool's span between
        self._places = {each.span: (each.parent, each.wrapper) for each in with_spans}
        self._origins: dict[int, list[int]] = {}
        transfers = self._transfers()
        # for each handoff's span the index of the activation that took over
        self.handoffs = {transfer.span: transfer.target for transfer in transfers if transfer.span != NOBODY}
        for transfer in transfers:
            self.activations[transfer.source].outgoing.append(transfer)
            self.activations[transfer.target].incoming.append(transfer)
        self._name_agents()
        initial = Counter(each.wrapper for each in self.activations if each.wrapper != NOBODY and not each.incoming)
        # the indexes of the tools' spans that wrap one agent, which stand for it
        self.lone = {wrapper for wrapper, index in initial.items() if index == 1}

    def _find(self, bearers: set[int]) -> None:
        """Give every agent's span an activation, and every act and bearer of tokens an owner."""
        of, kinds = self._of, self._meanings.kinds
        wrapper = [NOBODY] * len(of.spans)
        for index in of.order:
            parent, kind = of.parents[index], kinds[index]
            owner = self.owner[parent] if parent != NOBODY else NOBODY
            around = wrapper[parent] if parent != NOBODY else NOBODY
            if owner == NOBODY and kind not in (AGENT, CHAIN):
                owner = self._without_span(index)
            elif owner == NOBODY and kind is CHAIN and index in bearers:
                self.bearer_owner[index] = self._without_span(index)
            if kind is AGENT:
                name = masked(self._meanings.names[index]) or "agent"
                extent = of.earliest[index], of.latest[index]
                activation = Activation(index, name, of.starts[index], of.ends[index], *extent, owner, around)
                owner, around = len(self.activations), NOBODY
                self.activations.append(activation)
            elif kind in (TOOL, GUARDRAIL) and self._meanings.has_agents[index]:
                around = index
            self.owner[index], wrapper[index] = owner, around
        failed = next((index for index in of.order if of.spans[index].is_error), NOBODY)
        if not self.activations and failed != NOBODY:
            self._without_span(failed)  # the run failed before any agent began

    def _without_span(self, index: int) -> int:
        """Return the activation of an agent that has no span, by the name that its act gives, else that of the run."""
        of = self._of
        name = masked(of.spans[index].agent) or self._unnamed
        if name not in self._spanless:
            self._spanless[name] = len(self.activations)
            start, last = of.earliest[index], of.latest[index]
            self.activations.append(Activation(NOBODY, name, start, last, start, last))
        activation = self.activations[self._spanless[name]]
        activation.start = activation.earliest = min(activation.earliest, of.earliest[index])
        activation.end = activation.latest = max(activation.latest, of.latest[index])
        return self._spanless[name]

    def _name_agents(self) -> None:
        """Give each activation its agent: a new one, or one of the same name that has finished and takes over again."""
        free: dict[tuple[int, int, int, str], list[tuple[float, int]]] = {}
        names = Names()
        if PERSON in self._meanings.kinds:
            names.new(USER)
        last: dict[str, int] = {}
        by_time = sorted(
            enumerate(self.activations), key=lambda pair: (pair[1].earliest, pair[1].latest, pair[1].name, pair[0])
        )
        for index, activation in by_time:
            activation.spawner = next((each.source for each in activation.incoming if each.is_push), activation.parent)
            is_new = activation.spawner != NOBODY and all(each.is_push for each in activation.incoming)
            beside = self._of.parents[activation.span] if activation.span != NOBODY else NOBODY
            wide = (activation.parent, activation.wrapper)
            # An agent of the same name may have been at work before: beside it first, then anywhere alike.
            places = [(*wide, beside, activation.name), (*wide, -2, activation.name)]
            queues = [] if is_new else [free.setdefault(key, []) for key in places]
            agent = next((found for queue in queues if (found := self._finished(queue, activation, last))), "")
            if agent:
                before = self.activations[last[agent]]
                before.is_last = False
                activation.spawner = before.spawner
            else:
                agent = names.new(activation.name)
                activation.is_first = True
            activation.agent, activation.is_last = agent, True
            last[agent] = index
            for key in places:
                heappush(free.setdefault(key, []), (activation.latest, index))

    def _finished(self, queue: list[tuple[float, int]], activation: Activation, last: dict[str, int]) -> str:
        """Return the agent of a queue that has finished first, if before the activation; it is taken from the queue."""
        while queue and last[self.activations[queue[0][1]].agent] != queue[0][1]:
            heappop(queue)  # it was at work since
        has_finished = bool(queue) and queue[0][0] <= activation.earliest
        return self.activations[heappop(queue)[1]].agent if has_finished else ""

    # Transfers

    def _transfers(self) -> list[Transfer]:
        """Find where control passes: in graphs, by handoffs, and by the name of who acted before."""
        transfers = [*self._in_graphs(), *self._handoffs()]
        reached = {transfer.target for transfer in transfers}
        return [*transfers, *(transfer for transfer in self._by_name() if transfer.target not in reached)]

    def _beside(self, index: int) -> tuple[tuple[int, ...], ...]:
        """Return where others of a group are looked for: under the same parent first, then in the same agent."""
        return (self._of.parents[index],), self._places[index]

    def _agents(self, times: Sequence[float]) -> dict[tuple[tuple[int, ...], str], list[tuple[float, int]]]:
        """Return the agents' spans by where they lie and by name, each with a time, in its order."""
        agents: dict[tuple[tuple[int, ...], str], list[tuple[float, int]]] = {}
        for index in self._places:
            for place in self._beside(index):
                agents.setdefault((place, masked(self._meanings.names[index])), []).append((times[index], index))
        for candidates in agents.values():
            candidates.sort()
        return agents

    def _handoffs(self) -> Iterator[Transfer]:
        """Yield handoffs, each to the next agent of that name that begins beside the one that hands over."""
        of, owner = self._of, self.owner
        handoffs = [index for index, kind in enumerate(self._meanings.kinds) if kind is HANDOFF]
        span_of = {owner[index]: index for index in self._places} if handoffs else {}
        agents = self._agents(of.earliest) if handoffs else {}
        for index in handoffs:
            source = span_of.get(owner[index], NOBODY)
            for place in self._beside(source) if source != NOBODY else ((NOBODY,), (NOBODY, NOBODY)):
                candidates = agents.get((place, masked(of.spans[index].target)), [])
                at = bisect_left(candidates, (of.starts[index], NOBODY))
                if at < len(candidates) and candidates[at][1] != source:
                    yield Transfer(owner[index], owner[candidates[at][1]], index, is_routed=True)
                    break
            else:
                self._report.note(Problem.HANDOFF_TO_NOBODY, of.spans[index].where)

    def _by_name(self) -> Iterator[Transfer]:
        """Yield agents that name the one before them: the last of that name that has ended beside them."""
        of, owner = self._of, self.owner
        followers = [index for index in self._places if of.spans[index].follows]
        agents = self._agents([NOBODY if end is None else end for end in of.ends]) if followers else {}
        for index in followers:
            for place in self._beside(index):
                candidates = agents.get((place, masked(of.spans[index].follows)), [])
                at = bisect_right(candidates, (of.earliest[index], len(of.spans))) - 1
                if at >= 0 and candidates[at][0] != NOBODY and candidates[at][1] != index:
                    yield Transfer(owner[candidates[at][1]], owner[index], is_routed=True)
                    break

    def _in_graphs(self) -> Iterator[Transfer]:
        graphs: defaultdict[tuple[int, str], list[tuple[int, spans.Task]]] = defaultdict(list)
        for index in self._of.order:
            span, kind = self._of.spans[index], self._meanings.kinds[index]
            is_node = kind is AGENT or index in self._meanings.silent
            if is_node and span.task is not None and self._meanings.names[index] == span.task.node:
                parent = self._of.parents[index]
                missing = span.parent if parent == NOBODY else ""
                graphs[parent, missing].append((index, span.task))
        for tasks in graphs.values():
            yield from self._of_graph(tasks)

    def _of_graph(self, tasks: list[tuple[int, spans.Task]]) -> Iterator[Transfer]:
        steps: dict[int, list[tuple[int, spans.Task]]] = {}
        for index, task in tasks:
            steps.setdefault(task.step, []).append((index, task))
        nodes = {task.node for _, task in tasks} | {_END}
        routes = {index: self._routes(index, nodes) for index, _ in tasks}
        last: dict[str, int] = {}
        before: list[int] = []
        for _, step in sorted(steps.items()):
            leads_to = self._leads_to(before, routes)
            is_wide = len(before) * len(step) > _MOST_PAIRS
            for place, (index, task) in enumerate(step):
                joined = [last[name] for name in _joined(task, last)]
                sources = joined or leads_to.get(task.node) or leads_to[""]
                if is_wide and place:
                    sources = sources[-1:]
                yield from self._to(index, task, sources, routes)
            before = [index for index, _ in step]
            last.update((task.node, index) for index, task in step)

    def _leads_to(self, before: Sequence[int], routes: Mapping[int, set[str] | None]) -> dict[str, list[int]]:
        """Return the tasks of a step that lead to each node, the last to end last; without a name, to any other."""
        before = sorted(before, key=lambda each: (self._end(each), each))
        free = [each for each in before if not routes[each]]
        chosen: dict[str, list[int]] = {}
        for each in before:
            for node in sorted(routes[each] or ()):
                chosen.setdefault(node, []).append(each)
        if len(free) * len(chosen) <= _MOST_PAIRS:
            places = {each: place for place, each in enumerate(before)}
            chosen = {node: sorted((*free, *sources), key=places.__getitem__) for node, sources in chosen.items()}
        return {"": free or before, **chosen}

    def _to(
        self, index: int, task: spans.Task, sources: list[int], routes: Mapping[int, set[str] | None]
    ) -> Iterator[Transfer]:
        """Yield the transfers to a task; a task that only computes passes on what led to it."""
        sources = list(dict.fromkeys(origin for each in sources for origin in self._origins.get(each, (each,))))
        if index in self._meanings.silent:
            fits = len(sources) ** 2 <= _MOST_PAIRS
            self._origins[index] = sources if fits else [max(sources, key=lambda each: (self._end(each), each))]
            return
        begin = self._of.earliest[index]
        before = [source for source in sources if self._end(source) <= begin]
        if len(before) < len(sources):
            self._report.note(Problem.OVERLAPPING_TASK, self._of.spans[index].where)
        is_push = _PUSH in task.triggers
        if is_push:
            before = sorted(before, key=lambda each: (self._end(each), each))[-1:]
        for each in before:
            is_routed = not is_push and task.node in (routes.get(each) or ())
            yield Transfer(self.owner[each], self.owner[index], is_push=is_push, is_routed=is_routed)

    def _end(self, index: int) -> float:
        end = self._of.ends[index]
        return float("inf") if end is None else end

    def _routes(self, index: int, nodes: set[str]) -> set[str] | None:
        """Return the nodes that a task says shall run next; None if it does not say."""
        spans = self._of.spans
        inside = (child for child in self._of.children[index] if self._meanings.kinds[child] is CHAIN)
        return {name for each in (index, *inside) for name in spans[each].routes if name in nodes} or None


class Failure(NamedTuple):
    """A span that failed, and the activation that bears it."""

    span: int  # the index of the span
    activation: int  # the index of the activation
    time: float  # when it failed
    is_outside: bool  # whether it lies in no span of that agent


class Failures:
    """The failures of a tree that no event tells."""

    def __init__(self, of: Tree, meanings: Meanings, team: Team) -> None:
        self.by_span: dict[int, Failure] = {}  # those that are to become an event, by the index of their span
        # the span with which the whole run has failed, by the agent that stops with it
        self.runs: dict[str, spans.Span] = {}
        self.last: dict[str, float] = {}  # for agents that bear what lies outside their spans: when the last of it was
        self._of, self._meanings, self._team = of, meanings, team
        failed = [index for index, span in enumerate(of.spans) if span.has_failed]
        if not failed:
            return
        self._activations = {activation.span: activation for activation in team.activations}
        first = [(one.latest, place) for place, one in enumerate(team.activations) if one.spawner == NOBODY]
        first.sort()
        stopping = [(time, place) for time, place in first if _stops(team.activations[place])]
        for index in self._untold(failed):
            owner, time = team.owner[index], self._time(index)
            is_outside = owner == NOBODY
            bearer = _last_before(time, first) if is_outside else owner
            if bearer != NOBODY:
                self.by_span[index] = Failure(index, bearer, time, is_outside)
            if bearer != NOBODY and is_outside:
                self._note_last(bearer, time)
        for index in failed:
            time = self._time(index)
            if of.parents[index] == team.owner[index] == NOBODY and (last := _last_before(time, stopping)) != NOBODY:
                self.runs[team.activations[last].agent] = of.spans[index]
                self._note_last(last, time)

    def _time(self, index: int) -> float:
        end = self._of.ends[index]
        return self._of.latest[index] if end is None else end

    def _note_last(self, activation: int, time: float) -> None:
        agent = self._team.activations[activation].agent
        self.last[agent] = max(self.last.get(agent, time), time)

    def _untold(self, failed: list[int]) -> Iterator[int]:
        """Yield the innermost failed spans that no event shows: their own, one below, or the agent's end."""
        is_told = [False] * len(self._of.spans)
        is_failed = set(failed).__contains__
        for index in reversed(self._of.order):
            if is_failed(index) and not is_told[index]:
                is_told[index] = True
                owner = self._team.owner[index]
                around = self._team.activations[owner].span if owner != NOBODY else NOBODY
                if not self._becomes_event(index) and not (is_failed(around) and self._becomes_event(around)):
                    yield index
            parent = self._of.parents[index]
            if parent != NOBODY and is_told[index]:
                is_told[parent] = True

    def _becomes_event(self, index: int) -> bool:
        kind, team = self._meanings.kinds[index], self._team
        if kind is AGENT:
            one = self._activations[index]
            return _stops(one) or (one.parent != NOBODY and one.end is not None and not one.outgoing)
        if kind is TOOL:
            return index in team.lone or (not self._meanings.has_agents[index] and self._of.ends[index] is not None)
        return kind is not CHAIN


def _stops(activation: Activation) -> bool:
    """Return True if the activation's agent, which nobody spawned, stops at its end."""
    return (
        activation.spawner == NOBODY and activation.is_last and activation.end is not None and not activation.outgoing
    )


def _last_before(time: float, ended: list[tuple[float, int]]) -> int:
    """Return the activation that ended last before a time, given all by their ends, else the first; or `NOBODY`."""
    place = bisect_right(ended, time, key=itemgetter(0))
    return ended[max(place - 1, 0)][1] if ended else NOBODY
