"""Find the agents of a span tree: when each of them is at work, who spawned it, and who took over from whom.

The span of an agent is an activation of it: a time in which it is at work. An agent that is called like a tool, or
whose span is inside the span of another agent, is a new agent each time. An agent that takes over by a handoff, or by
the edge of a graph, may be at work again later under the same name.

LangGraph runs a graph in supersteps. The tasks of one step run at the same time, and the next step reads what they
write. So a task depends on the tasks of the previous step, or on the tasks that its `join:` trigger names. Tasks that
choose another node to run next are excepted. A task that was pushed (`Send`) is spawned by one of these tasks.
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
_OTHER_NODES = ""  # stands for the nodes that no task chose
_NO_END = -1.0  # stands for an end that the log does not say
_ANY_PARENT = -2  # stands for any parent span; -1 is `NO_INDEX`
_MAX_PAIRS = 1_000
"""The most pairs of tasks of two steps that are all joined. Of more, some are joined, so that edges stay few."""


class Transfer(NamedTuple):
    """A transfer of control from one activation to another."""

    source: int  # the index of the activation that gives up control
    target: int  # the index of the activation that takes over
    span: int = NO_INDEX  # the index of the handoff's span; `NO_INDEX` if the transfer is inferred
    is_push: bool = False  # True if the source spawns the target
    is_routed: bool = False  # True if the source chose the target


def _join_sources(task: spans.Task, nodes: Mapping[str, int]) -> list[str]:
    """Return the nodes that a task waits for by its `join:` trigger: a and b for `join:a+b:merge`."""
    beginning, ending = "join:", f":{task.node}"
    for trigger in task.triggers:
        if trigger.startswith(beginning) and trigger.endswith(ending):
            names = trigger[len(beginning) : -len(ending)].split("+")
            return [name for name in names if name in nodes]
    return []


class Activation(Struct):
    """A time in which an agent is at work. Times are in seconds; an index is `NO_INDEX` if there is no such thing."""

    span: int  # the index of its span; `NO_INDEX` for the acts of an agent that has no span
    name: str  # the name of the agent in the log
    start: float  # when it began
    end: float | None  # when it ended; None if the log does not say
    earliest: float  # when its span or the first span inside it began
    latest: float  # when the last of these spans began or ended
    parent: int = NO_INDEX  # the index of the activation around it
    wrapper: int = NO_INDEX  # the index of the span of a tool or guardrail between it and that activation
    agent: str = ""  # the name of the agent in the trace
    spawner: int = NO_INDEX  # the index of the activation that spawned the agent
    is_first: bool = False  # True if it is the first activation of the agent
    is_last: bool = False  # True if it is the last activation of the agent
    incoming: list[Transfer] = []  # the transfers of control to it
    outgoing: list[Transfer] = []  # the transfers of control from it


class Team:
    """The activations of a tree, and the transfers of control between them; `with_tokens` are the spans with tokens."""

    def __init__(
        self, tree: Tree, roles: SpanRoles, bundle: spans.Bundle, with_tokens: Collection[int], report: ImportReport
    ) -> None:
        self.activations: list[Activation] = []  # in the order of their first spans
        self.owner = [NO_INDEX] * (len(tree.spans) + 1)  # the index of the activation of each span, or `NO_INDEX`
        self.token_owner: dict[int, int] = {}  # the same for chains with tokens that are inside no agent's span
        self._tree, self._roles, self._report = tree, roles, report
        self._run_name = masked(bundle.name) or "agent"
        self._spanless: dict[str, int] = {}  # the activations of agents without spans, by name
        self._find_activations(with_tokens)
        self._with_spans = [activation for activation in self.activations if activation.span != NO_INDEX]
        self._origins: dict[int, list[int]] = {}  # the tasks that led to a silent task, by its index
        transfers = self._transfers()
        # the index of the activation that took over, by the span of the handoff
        self.handoffs = {transfer.span: transfer.target for transfer in transfers if transfer.span != NO_INDEX}
        for transfer in transfers:
            self.activations[transfer.source].outgoing.append(transfer)
            self.activations[transfer.target].incoming.append(transfer)
        self._name_agents()
        wrappers = Counter(activation.wrapper for activation in self.activations if not activation.incoming)
        del wrappers[NO_INDEX]
        # the spans of tools that contain one agent: the call of the tool spawns the agent
        self.spawning_tools = {wrapper for wrapper, count in wrappers.items() if count == 1}

    def _find_activations(self, with_tokens: Collection[int]) -> None:
        """Make an activation of every agent's span, and find the owner of every other span."""
        tree, kinds = self._tree, self._roles.kinds
        wrappers = [NO_INDEX] * len(self.owner)  # the wrapper around each span
        names = [""] * len(self.owner)  # the agent around each span; empty inside a tool
        for index in tree.order:
            parent, kind, name = tree.parents[index], kinds[index], self._roles.names[index]
            owner, wrapper = self.owner[parent], wrappers[parent]
            if kind is AGENT and name and name == names[parent]:  # two instrumentations report one agent
                kind = kinds[index] = CHAIN
            names[index] = name if kind is AGENT else names[parent]
            if owner == NO_INDEX and kind not in (AGENT, CHAIN):
                owner = self._spanless_activation(index)
            elif owner == NO_INDEX and kind is CHAIN and index in with_tokens:
                self.token_owner[index] = self._spanless_activation(index)
            if kind is AGENT:
                activation = Activation(
                    index, masked(name) or "agent", tree.starts[index], tree.ends[index],
                    tree.earliest[index], tree.latest[index], parent=owner, wrapper=wrapper,
                )  # fmt: skip
                owner, wrapper = len(self.activations), NO_INDEX  # of the spans inside it
                self.activations.append(activation)
            elif kind in (TOOL, GUARDRAIL) and self._roles.has_agents[index]:
                wrapper = index
            if kind is TOOL:
                names[index] = ""
            self.owner[index], wrappers[index] = owner, wrapper
        if not self.activations:
            failed = next((index for index in tree.order if tree.spans[index].is_error), NO_INDEX)
            if failed != NO_INDEX:
                self._spanless_activation(failed)  # the run failed before any agent began

    def _spanless_activation(self, index: int) -> int:
        """Return the activation of an agent without a span, which the span of its act or the run names."""
        name = masked(self._tree.spans[index].agent) or self._run_name
        if name not in self._spanless:
            self._spanless[name] = len(self.activations)
            self.activations.append(Activation(NO_INDEX, name, start=inf, end=-inf, earliest=inf, latest=-inf))
        activation = self.activations[self._spanless[name]]
        activation.start = activation.earliest = min(activation.earliest, self._tree.earliest[index])
        activation.end = activation.latest = max(activation.latest, self._tree.latest[index])
        return self._spanless[name]

    def _name_agents(self) -> None:
        """Set the agent of each activation: a new one, or an idle agent of the same name that takes over again."""
        idle: dict[tuple[str, int, int, int], list[tuple[float, int]]] = {}  # heaps of ends and activations, by place
        names = UniqueNames()
        if PERSON in self._roles.kinds:
            names.add(USER)
        last: dict[str, int] = {}  # the index of the last activation of each agent so far
        by_time = sorted(
            enumerate(self.activations), key=lambda pair: (pair[1].earliest, pair[1].latest, pair[1].name, pair[0])
        )
        for index, activation in by_time:
            pushers = [transfer.source for transfer in activation.incoming if transfer.is_push]
            activation.spawner = pushers[0] if pushers else activation.parent
            is_new = activation.spawner != NO_INDEX and len(pushers) == len(activation.incoming)
            # an idle agent is looked for under the same parent span first, then in the whole activation around
            around = (activation.name, activation.parent, activation.wrapper)
            places = [(*around, self._tree.parents[activation.span]), (*around, _ANY_PARENT)]
            agent = ""
            if not is_new:
                for place in places:
                    agent = agent or self._take_idle(idle.setdefault(place, []), activation, last)
            if agent:
                previous = self.activations[last[agent]]
                previous.is_last = False
                activation.spawner = previous.spawner
            else:
                agent = names.add(activation.name)
                activation.is_first = True
            activation.agent, activation.is_last = agent, True
            last[agent] = index
            for place in places:
                heappush(idle.setdefault(place, []), (activation.latest, index))

    def _take_idle(self, heap: list[tuple[float, int]], activation: Activation, last: dict[str, int]) -> str:
        """Remove the agent that ended first from a heap, and return it; empty if none ended before the activation."""
        while heap and last[self.activations[heap[0][1]].agent] != heap[0][1]:
            heappop(heap)  # its agent has taken over again since
        if not heap or heap[0][0] > activation.earliest:
            return ""
        _, index = heappop(heap)
        return self.activations[index].agent

    # Transfers

    def _transfers(self) -> list[Transfer]:
        """Return the transfers in graphs, by handoffs, and from agents that the log names as the previous ones."""
        transfers = [*self._graph_transfers(), *self._handoff_transfers()]
        targets = {transfer.target for transfer in transfers}
        transfers += [transfer for transfer in self._named_transfers() if transfer.target not in targets]
        return transfers

    def _places(self, activation: Activation) -> tuple[tuple[int, ...], ...]:
        """Return the places where agents of its group are looked for: the same parent span, then the same agent."""
        return (self._tree.parents[activation.span],), (activation.parent, activation.wrapper)

    def _agents_by_place(self, times: Sequence[float]) -> dict[tuple[tuple[int, ...], str], list[tuple[float, int]]]:
        """Return the agents' spans by place and name, each with its time, sorted by time; `times` are by span."""
        agents = defaultdict[tuple[tuple[int, ...], str], list[tuple[float, int]]](list)
        for activation in self._with_spans:
            name = masked(self._roles.names[activation.span])
            for place in self._places(activation):
                agents[place, name].append((times[activation.span], activation.span))
        for candidates in agents.values():
            candidates.sort()
        return agents

    def _handoff_transfers(self) -> Iterator[Transfer]:
        """Yield the handoffs, each to the next agent of the name in the log that begins in the same place."""
        tree, owner = self._tree, self.owner
        handoffs = [index for index, kind in enumerate(self._roles.kinds) if kind is HANDOFF]
        agents = self._agents_by_place(tree.earliest) if handoffs else {}
        for index in handoffs:
            source = self.activations[owner[index]]
            for place in self._places(source):
                candidates = agents.get((place, masked(tree.spans[index].target)), [])
                position = bisect_left(candidates, (tree.starts[index], NO_INDEX))
                if position < len(candidates) and candidates[position][1] != source.span:
                    yield Transfer(owner[index], owner[candidates[position][1]], index, is_routed=True)
                    break
            else:  # there is no such agent in either place
                self._report.note(Problem.HANDOFF_TO_NOBODY, tree.spans[index].where)

    def _named_transfers(self) -> Iterator[Transfer]:
        """Yield the transfers to agents for which the log names the previous agent: the last one in the same place."""
        tree, owner = self._tree, self.owner
        followers = [activation for activation in self._with_spans if tree.spans[activation.span].follows]
        if not followers:
            return
        agents = self._agents_by_place([_NO_END if end is None else end for end in tree.ends])
        for activation in followers:
            for place in self._places(activation):
                candidates = agents.get((place, masked(tree.spans[activation.span].follows)), [])
                position = bisect_right(candidates, (activation.earliest, len(tree.spans))) - 1
                if position < 0:
                    continue
                end, span = candidates[position]
                if end != _NO_END and span != activation.span:
                    yield Transfer(owner[span], owner[activation.span], is_routed=True)
                    break

    def _graph_transfers(self) -> Iterator[Transfer]:
        """Yield the transfers between the tasks of each LangGraph graph."""
        graphs = defaultdict[tuple[int, str], list[tuple[int, spans.Task]]](list)
        for index in self._tree.order:
            span, parent = self._tree.spans[index], self._tree.parents[index]
            is_node = self._roles.kinds[index] is AGENT or index in self._roles.silent
            if is_node and span.task is not None and self._roles.names[index] == span.task.node:
                missing_parent = span.parent if parent == NO_INDEX else ""  # the id of a graph that is not in the log
                graphs[parent, missing_parent].append((index, span.task))
        for tasks in graphs.values():
            yield from self._transfers_in_graph(tasks)

    def _transfers_in_graph(self, tasks: list[tuple[int, spans.Task]]) -> Iterator[Transfer]:
        """Yield the transfers between the tasks of a graph, given with the indexes of their spans."""
        steps = defaultdict[int, list[tuple[int, spans.Task]]](list)
        for index, task in tasks:
            steps[task.step].append((index, task))
        nodes = {task.node for _, task in tasks} | {_END}
        routes = {index: self._routes(index, nodes) for index, _ in tasks}
        last_tasks: dict[str, int] = {}  # the last task of each node
        previous: list[int] = []  # the tasks of the previous step
        for _, step in sorted(steps.items()):
            sources_by_node = self._sources_by_node(previous, routes)
            is_wide = len(previous) * len(step) > _MAX_PAIRS
            for position, (index, task) in enumerate(step):
                sources = [last_tasks[name] for name in _join_sources(task, last_tasks)]
                if not sources:
                    sources = sources_by_node.get(task.node) or sources_by_node[_OTHER_NODES]
                if is_wide and position:  # only the first task of a wide step depends on all of its sources
                    sources = sources[-1:]
                yield from self._transfers_to(index, task, sources, routes)
            previous = [index for index, _ in step]
            last_tasks.update((task.node, index) for index, task in step)

    def _sources_by_node(self, step: Sequence[int], routes: Mapping[int, set[str] | None]) -> dict[str, list[int]]:
        """Return the tasks of a step that lead to each node, sorted by end; `_OTHER_NODES` stands for other nodes."""
        step = sorted(step, key=self._end_key)
        undecided = [source for source in step if not routes[source]]
        sources_by_node = defaultdict[str, list[int]](list)
        for source in step:
            for node in sorted(routes[source] or ()):
                sources_by_node[node].append(source)
        if len(undecided) * len(sources_by_node) <= _MAX_PAIRS:
            for sources in sources_by_node.values():
                sources += undecided
                sources.sort(key=self._end_key)
        return {_OTHER_NODES: undecided or step, **sources_by_node}

    def _transfers_to(
        self, index: int, task: spans.Task, sources: list[int], routes: Mapping[int, set[str] | None]
    ) -> Iterator[Transfer]:
        """Yield the transfers to a task. A silent task is no agent: the tasks that led to it count in its place."""
        origins: dict[int, None] = {}  # in order, without repetitions
        for source in sources:
            origins.update(dict.fromkeys(self._origins.get(source, [source])))
        sources = list(origins)
        if index in self._roles.silent:
            if len(sources) ** 2 > _MAX_PAIRS:
                sources = [max(sources, key=self._end_key)]
            self._origins[index] = sources
            return
        ended = [source for source in sources if self._end_key(source)[0] <= self._tree.earliest[index]]
        if len(ended) < len(sources):
            self._report.note(Problem.OVERLAPPING_TASK, self._tree.spans[index].where)
        is_push = _PUSH in task.triggers
        if is_push:
            ended = sorted(ended, key=self._end_key)[-1:]
        for source in ended:
            is_routed = not is_push and task.node in (routes.get(source) or ())
            yield Transfer(self.owner[source], self.owner[index], is_push=is_push, is_routed=is_routed)

    def _end_key(self, index: int) -> tuple[float, int]:
        """Return the key by which spans are sorted by end; spans without an end are last."""
        end = self._tree.ends[index]
        return inf if end is None else end, index

    def _routes(self, index: int, nodes: set[str]) -> set[str] | None:
        """Return the nodes of the graph that a task chose to run next; None if it chose none."""
        routes = set(self._tree.spans[index].routes)
        for child in self._tree.children[index]:
            if self._roles.kinds[child] is CHAIN:
                routes.update(self._tree.spans[child].routes)
        return routes & nodes or None


class Failures(NamedTuple):
    """The failures of a tree that no event of a span shows."""

    owners: dict[int, int]  # the index of the activation that gets an event of the failure, by failed span
    runs: dict[str, spans.Span]  # the span with which the whole run failed, by the agent that stops with it
    last: dict[str, float]  # the time of the last failure that was assigned to the agent, by agent


def find_failures(tree: Tree, roles: SpanRoles, team: Team) -> Failures:
    """Return the failures of a tree that no event of a span shows."""
    failures = Failures({}, {}, {})
    failed = [index for index, span in enumerate(tree.spans) if span.has_failed]
    if not failed:
        return failures
    unspawned = sorted(
        (activation.latest, index)
        for index, activation in enumerate(team.activations)
        if activation.spawner == NO_INDEX
    )
    stopping = [(time, index) for time, index in unspawned if _stops(team.activations[index])]

    def assign(span: int, candidates: list[tuple[float, int]]) -> int:
        """Return the activation that ended last before a failure, or else the first one; `NO_INDEX` without any."""
        if not candidates:
            return NO_INDEX
        time = tree.end(span)
        _, owner = candidates[max(bisect_right(candidates, time, key=itemgetter(0)) - 1, 0)]
        agent = team.activations[owner].agent
        failures.last[agent] = max(failures.last.get(agent, time), time)
        return owner

    for index in _unshown_failures(set(failed), tree, roles, team):
        owner = team.owner[index]
        if owner == NO_INDEX:
            owner = assign(index, unspawned)
        if owner != NO_INDEX:
            failures.owners[index] = owner
    for index in failed:
        if tree.parents[index] == NO_INDEX and team.owner[index] == NO_INDEX:
            owner = assign(index, stopping)
            if owner != NO_INDEX:
                failures.runs[team.activations[owner].agent] = tree.spans[index]
    return failures


def _unshown_failures(failed: set[int], tree: Tree, roles: SpanRoles, team: Team) -> Iterator[int]:
    """Yield the innermost failed spans whose failure no event shows: neither their own nor the end of the agent."""

    def has_event(index: int) -> bool:
        """Return True if an event shows how a span ended."""
        kind = roles.kinds[index]
        if kind is AGENT:
            activation = team.activations[team.owner[index]]
            returns = activation.parent != NO_INDEX and activation.end is not None and not activation.outgoing
            return returns or _stops(activation)
        if kind is TOOL:
            return index in team.spawning_tools or (not roles.has_agents[index] and tree.ends[index] is not None)
        return kind is not CHAIN

    is_shown = [False] * (len(tree.spans) + 1)  # True if the failure of the span, or of a span inside it, is shown
    for index in reversed(tree.order):
        if index in failed and not is_shown[index]:
            is_shown[index] = True
            owner = team.owner[index]
            agent_span = team.activations[owner].span if owner != NO_INDEX else NO_INDEX
            if not has_event(index) and not (agent_span in failed and has_event(agent_span)):
                yield index
        if is_shown[index]:
            is_shown[tree.parents[index]] = True


def _stops(activation: Activation) -> bool:
    """Return True if the agent of an activation, which no agent spawned, stops at its end."""
    is_end = activation.is_last and activation.end is not None and not activation.outgoing
    return is_end and activation.spawner == NO_INDEX
