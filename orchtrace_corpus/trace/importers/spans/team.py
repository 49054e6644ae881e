"""The agents of a span tree: who acts when, who spawned whom, who took over from whom.

An agent's span is one activation of it: a time in which it is at work. An agent that is called like a tool, or is
inside another's span, is a new agent each time. One that takes over by a handoff, or by the edge of a graph, may be at
work again later under the same name.

LangGraph runs a graph in supersteps: the tasks of one step run at once, and the next step reads what they write. So a
task depends on the tasks of the step before it, or on those that its `join:` trigger names, unless these say that
another node runs next. A task that was pushed (`Send`) is spawned by one of them.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from math import inf
from operator import itemgetter

from msgspec import Struct

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core.identity import UniqueNames
from orchtrace_corpus.trace.importers.core.privacy import masked
from orchtrace_corpus.trace.importers.core.transcript import USER
from orchtrace_corpus.trace.importers.spans import span as spans
from orchtrace_corpus.trace.importers.spans.span import AGENT, CHAIN, GUARDRAIL, HANDOFF, PERSON, TOOL
from orchtrace_corpus.trace.importers.spans.tree import NO_INDEX, SpanRoles, Tree
from orchtrace_corpus.trace.model.import_report import ImportReport, Problem

_PUSH = "__pregel_push"
_END = "__end__"
_MOST_PAIRS = 1_000
"""Of two steps with more pairs of tasks, not every task is joined to every other: the number of edges stays linear."""


class Transfer(NamedTuple):
    """The passing of control from one activation to another."""

    source: int  # the index of the activation that passes it on
    target: int  # the index of the activation that takes over
    span: int = NO_INDEX  # the index of the handoff's span; `NO_INDEX` if the transfer is inferred
    is_push: bool = False  # True if it spawns the target
    is_routed: bool = False  # True if the source chose the target


def _joined(task: spans.Task, nodes: Mapping[str, int]) -> list[str]:
    """Return the nodes that a task's `join:` trigger names, such as `join:a+b:merge`."""
    ending = f":{task.node}"
    for trigger in task.triggers:
        if trigger.startswith("join:") and trigger.endswith(ending):
            return [name for name in trigger[5 : -len(ending)].split("+") if name in nodes]
    return []


class Activation(Struct):
    """An agent at work for a time."""

    span: int  # the index of its span; `NO_INDEX` for the acts of an agent that has no span
    name: str  # the agent's name
    start: float  # when it began
    end: float | None  # when it ended; None if the log does not say
    earliest: float  # when the first of its span and all inside began
    latest: float  # when the last of these began or ended
    parent: int = NO_INDEX  # the index of the activation around it, or `NO_INDEX`
    wrapper: int = NO_INDEX  # the index of the tool's or guardrail's span between it and that activation, or `NO_INDEX`
    agent: str = ""  # the agent's id in the trace
    spawner: int = NO_INDEX  # the index of the activation that spawned the agent, or `NO_INDEX`
    is_first: bool = False  # True if it is the agent's first
    is_last: bool = False  # True if it is the agent's last
    incoming: list[Transfer] = []  # the transfers of control to it
    outgoing: list[Transfer] = []  # the transfers of control from it


class Team:
    """The activations of a tree, and which span belongs to which."""

    def __init__(
        self, tree: Tree, roles: SpanRoles, bundle: spans.Bundle, bearers: Collection[int], report: ImportReport
    ) -> None:
        # those of agents without spans are at the place of their first act
        self.activations: list[Activation] = []
        # for each span the index of the activation that it belongs to, or `NO_INDEX`; for an agent's span its own
        self.owner = [NO_INDEX] * (len(tree.spans) + 1)
        # the same for spans that bear tokens, are no acts, and are inside no agent's span
        self.bearer_owner: dict[int, int] = {}
        self._tree, self._roles, self._report = tree, roles, report
        self._unnamed = masked(bundle.name) or "agent"
        self._spanless: dict[str, int] = {}
        self._find(bearers)
        self._with_spans = [activation for activation in self.activations if activation.span != NO_INDEX]
        self._origins: dict[int, list[int]] = {}
        transfers = self._transfers()
        # for each handoff's span the index of the activation that took over
        self.handoffs = {transfer.span: transfer.target for transfer in transfers if transfer.span != NO_INDEX}
        for transfer in transfers:
            self.activations[transfer.source].outgoing.append(transfer)
            self.activations[transfer.target].incoming.append(transfer)
        self._name_agents()
        called = Counter(each.wrapper for each in self.activations if each.wrapper != NO_INDEX and not each.incoming)
        # the indexes of the spans of tools that wrap one agent: the call is the agent's spawn
        self.lone = {wrapper for wrapper, count in called.items() if count == 1}

    def _find(self, bearers: Collection[int]) -> None:
        """Give every agent's span an activation, and every act and bearer of tokens an owner."""
        tree, kinds = self._tree, self._roles.kinds
        wrappers = [NO_INDEX] * len(self.owner)
        names = [""] * len(self.owner)  # the name of the agent around, unless a tool is in between
        for index in tree.order:
            parent, kind, name = tree.parents[index], kinds[index], self._roles.names[index]
            owner, wrapper = self.owner[parent], wrappers[parent]
            if kind is AGENT and name and name == names[parent]:  # two instrumentations report one agent
                kind = kinds[index] = CHAIN
            names[index] = name if kind is AGENT else names[parent]
            if owner == NO_INDEX and kind not in (AGENT, CHAIN):
                owner = self._without_span(index)
            elif owner == NO_INDEX and kind is CHAIN and index in bearers:
                self.bearer_owner[index] = self._without_span(index)
            if kind is AGENT:
                name, extent = masked(name) or "agent", (tree.earliest[index], tree.latest[index])
                activation = Activation(index, name, tree.starts[index], tree.ends[index], *extent, owner, wrapper)
                owner, wrapper = len(self.activations), NO_INDEX
                self.activations.append(activation)
            elif kind in (TOOL, GUARDRAIL) and self._roles.has_agents[index]:
                wrapper = index
            if kind is TOOL:
                names[index] = ""
            self.owner[index], wrappers[index] = owner, wrapper
        failed = next((index for index in tree.order if tree.spans[index].is_error), NO_INDEX)
        if not self.activations and failed != NO_INDEX:
            self._without_span(failed)  # the run failed before any agent began

    def _without_span(self, index: int) -> int:
        """Return the activation of an agent that has no span, by the name that its act gives, else that of the run."""
        name = masked(self._tree.spans[index].agent) or self._unnamed
        if name not in self._spanless:
            self._spanless[name] = len(self.activations)
            self.activations.append(Activation(NO_INDEX, name, inf, -inf, inf, -inf))
        activation = self.activations[self._spanless[name]]
        activation.start = activation.earliest = min(activation.earliest, self._tree.earliest[index])
        activation.end = activation.latest = max(activation.latest, self._tree.latest[index])
        return self._spanless[name]

    def _name_agents(self) -> None:
        """Give each activation its agent: a new one, or one of the same name that is done and takes over again."""
        free: dict[tuple[str, int, int, int], list[tuple[float, int]]] = {}
        names = UniqueNames()
        if PERSON in self._roles.kinds:
            names.add(USER)
        last: dict[str, int] = {}
        by_time = sorted(
            enumerate(self.activations), key=lambda pair: (pair[1].earliest, pair[1].latest, pair[1].name, pair[0])
        )
        for index, activation in by_time:
            pushed_by = (transfer.source for transfer in activation.incoming if transfer.is_push)
            activation.spawner = next(pushed_by, activation.parent)
            is_new = activation.spawner != NO_INDEX and all(transfer.is_push for transfer in activation.incoming)
            around = (activation.name, activation.parent, activation.wrapper)
            # an agent of the same name that was at work before: under the same parent first, then in the same agent
            places = [(*around, self._tree.parents[activation.span]), (*around, -2)]
            agent = ""
            for place in () if is_new else places:
                agent = agent or self._finished(free.setdefault(place, []), activation, last)
            if agent:
                before = self.activations[last[agent]]
                before.is_last = False
                activation.spawner = before.spawner
            else:
                agent = names.add(activation.name)
                activation.is_first = True
            activation.agent, activation.is_last = agent, True
            last[agent] = index
            for place in places:
                heappush(free.setdefault(place, []), (activation.latest, index))

    def _finished(self, queue: list[tuple[float, int]], activation: Activation, last: dict[str, int]) -> str:
        """Take the agent that was done first from a queue, if it was done before the activation; else return ""."""
        while queue and last[self.activations[queue[0][1]].agent] != queue[0][1]:
            heappop(queue)  # it was at work since
        has_finished = bool(queue) and queue[0][0] <= activation.earliest
        return self.activations[heappop(queue)[1]].agent if has_finished else ""

    # Transfers

    def _transfers(self) -> list[Transfer]:
        """Return where control passes: in graphs, by handoffs, and by the name of the agent before."""
        transfers = [*self._in_graphs(), *self._handoffs()]
        reached = {transfer.target for transfer in transfers}
        return [*transfers, *(transfer for transfer in self._by_name() if transfer.target not in reached)]

    def _beside(self, activation: Activation) -> tuple[tuple[int, ...], ...]:
        """Return where others of its group are looked for: under the same parent first, then in the same agent."""
        return (self._tree.parents[activation.span],), (activation.parent, activation.wrapper)

    def _agents(self, times: Sequence[float]) -> dict[tuple[tuple[int, ...], str], list[tuple[float, int]]]:
        """Return the agents' spans by place and by name, each with its time, in the order of time."""
        agents = defaultdict[tuple[tuple[int, ...], str], list[tuple[float, int]]](list)
        for activation in self._with_spans:
            name = masked(self._roles.names[activation.span])
            for place in self._beside(activation):
                agents[place, name].append((times[activation.span], activation.span))
        for candidates in agents.values():
            candidates.sort()
        return agents

    def _handoffs(self) -> Iterator[Transfer]:
        """Yield handoffs, each to the next agent of that name that begins beside the one that hands over."""
        tree, owner = self._tree, self.owner
        handoffs = [index for index, kind in enumerate(self._roles.kinds) if kind is HANDOFF]
        agents = self._agents(tree.earliest) if handoffs else {}
        for index in handoffs:
            source = self.activations[owner[index]]
            for place in self._beside(source):
                candidates = agents.get((place, masked(tree.spans[index].target)), [])
                at = bisect_left(candidates, (tree.starts[index], NO_INDEX))
                if at < len(candidates) and candidates[at][1] != source.span:
                    yield Transfer(owner[index], owner[candidates[at][1]], index, is_routed=True)
                    break
            else:
                self._report.note(Problem.HANDOFF_TO_NOBODY, tree.spans[index].where)

    def _by_name(self) -> Iterator[Transfer]:
        """Yield transfers to agents that name the one before them: the last of that name that ended beside them."""
        tree, owner = self._tree, self.owner
        followers = [activation for activation in self._with_spans if tree.spans[activation.span].follows]
        agents = self._agents([NO_INDEX if end is None else end for end in tree.ends]) if followers else {}
        for activation in followers:
            for place in self._beside(activation):
                candidates = agents.get((place, masked(tree.spans[activation.span].follows)), [])
                at = bisect_right(candidates, (activation.earliest, len(tree.spans))) - 1
                if at >= 0 and candidates[at][0] != NO_INDEX and candidates[at][1] != activation.span:
                    yield Transfer(owner[candidates[at][1]], owner[activation.span], is_routed=True)
                    break

    def _in_graphs(self) -> Iterator[Transfer]:
        """Yield the transfers between the tasks of each LangGraph graph."""
        graphs = defaultdict[tuple[int, str], list[tuple[int, spans.Task]]](list)
        for index in self._tree.order:
            span, parent = self._tree.spans[index], self._tree.parents[index]
            is_node = self._roles.kinds[index] is AGENT or index in self._roles.silent
            if is_node and span.task is not None and self._roles.names[index] == span.task.node:
                missing = span.parent if parent == NO_INDEX else ""
                graphs[parent, missing].append((index, span.task))
        for tasks in graphs.values():
            yield from self._of_graph(tasks)

    def _of_graph(self, tasks: list[tuple[int, spans.Task]]) -> Iterator[Transfer]:
        steps = defaultdict[int, list[tuple[int, spans.Task]]](list)
        for index, task in tasks:
            steps[task.step].append((index, task))
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
        """Return the tasks of a step that lead to each node, by their ends; under "" those that lead to any other."""
        before = sorted(before, key=self._by_end)
        free = [source for source in before if not routes[source]]
        chosen = defaultdict[str, list[int]](list)
        for source in before:
            for node in sorted(routes[source] or ()):
                chosen[node].append(source)
        if len(free) * len(chosen) <= _MOST_PAIRS:
            for sources in chosen.values():
                sources += free
                sources.sort(key=self._by_end)
        return {"": free or before, **chosen}

    def _to(
        self, index: int, task: spans.Task, sources: list[int], routes: Mapping[int, set[str] | None]
    ) -> Iterator[Transfer]:
        """Yield the transfers to a task; a task that only computes passes on those that led to it."""
        sources = list(dict.fromkeys(origin for source in sources for origin in self._origins.get(source, (source,))))
        if index in self._roles.silent:
            fits = len(sources) ** 2 <= _MOST_PAIRS
            self._origins[index] = sources if fits else [max(sources, key=self._by_end)]
            return
        before = [source for source in sources if self._by_end(source)[0] <= self._tree.earliest[index]]
        if len(before) < len(sources):
            self._report.note(Problem.OVERLAPPING_TASK, self._tree.spans[index].where)
        is_push = _PUSH in task.triggers
        if is_push:
            before = sorted(before, key=self._by_end)[-1:]
        for source in before:
            is_routed = not is_push and task.node in (routes.get(source) or ())
            yield Transfer(self.owner[source], self.owner[index], is_push=is_push, is_routed=is_routed)

    def _by_end(self, index: int) -> tuple[float, int]:
        end = self._tree.ends[index]
        return inf if end is None else end, index

    def _routes(self, index: int, nodes: set[str]) -> set[str] | None:
        """Return the nodes that run next according to a task; None if it does not say."""
        inside = (child for child in self._tree.children[index] if self._roles.kinds[child] is CHAIN)
        return {node for each in (index, *inside) for node in self._tree.spans[each].routes if node in nodes} or None


class Failures(NamedTuple):
    """The failures of a tree that no span's event shows."""

    bearers: dict[int, int]  # the activation that gets an event of a failure, by the index of the failed span
    runs: dict[str, spans.Span]  # the span with which the whole run failed, by the agent that stops with it
    last: dict[str, float]  # when the last failure outside its spans was, by agent


def find_failures(tree: Tree, roles: SpanRoles, team: Team) -> Failures:
    """Return the failures of a tree that no span's event shows."""
    failures = Failures({}, {}, {})
    failed = [index for index, span in enumerate(tree.spans) if span.has_failed]
    if not failed:
        return failures
    unspawned = [(each.latest, place) for place, each in enumerate(team.activations) if each.spawner == NO_INDEX]
    unspawned.sort()
    stopping = [(time, place) for time, place in unspawned if _stops(team.activations[place])]

    def bear(index: int, ended: list[tuple[float, int]]) -> int:
        """Return the activation that ended last before a failure, else the first; or `NO_INDEX`."""
        if not ended:
            return NO_INDEX
        time = tree.end(index)
        place = ended[max(bisect_right(ended, time, key=itemgetter(0)) - 1, 0)][1]
        agent = team.activations[place].agent
        failures.last[agent] = max(failures.last.get(agent, time), time)
        return place

    for index in _not_shown(set(failed), tree, roles, team):
        bearer = team.owner[index]
        if bearer == NO_INDEX:
            bearer = bear(index, unspawned)
        if bearer != NO_INDEX:
            failures.bearers[index] = bearer
    for index in failed:
        if tree.parents[index] == team.owner[index] == NO_INDEX and (last := bear(index, stopping)) != NO_INDEX:
            failures.runs[team.activations[last].agent] = tree.spans[index]
    return failures


def _not_shown(failed: set[int], tree: Tree, roles: SpanRoles, team: Team) -> Iterator[int]:
    """Yield the innermost failed spans that no event shows: their own, one below, or the agent's end."""

    def is_event(index: int) -> bool:
        kind = roles.kinds[index]
        if kind is AGENT:
            activation = team.activations[team.owner[index]]
            returns = activation.parent != NO_INDEX and activation.end is not None and not activation.outgoing
            return returns or _stops(activation)
        if kind is TOOL:
            return index in team.lone or (not roles.has_agents[index] and tree.ends[index] is not None)
        return kind is not CHAIN

    is_shown = [False] * (len(tree.spans) + 1)
    for index in reversed(tree.order):
        if index in failed and not is_shown[index]:
            is_shown[index] = True
            owner = team.owner[index]
            around = team.activations[owner].span if owner != NO_INDEX else NO_INDEX
            if not is_event(index) and not (around in failed and is_event(around)):
                yield index
        if is_shown[index]:
            is_shown[tree.parents[index]] = True


def _stops(activation: Activation) -> bool:
    """Return True if the activation's agent, which nobody spawned, stops at its end."""
    is_end = activation.is_last and activation.end is not None and not activation.outgoing
    return is_end and activation.spawner == NO_INDEX
