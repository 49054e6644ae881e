"""The agents of a span tree: who acts when, who brought whom into being, who took over from whom.

An agent's span is one activation of it: a time in which it is at work. An agent that is called like a tool, or
lies within another's span, is a new agent each time. One that takes over by a handoff, or by the edge of a graph,
may be at work again later under the same name.
"""

from heapq import heappop, heappush

from orchtrace_corpus.trace.importers.core.identity import Names
from orchtrace_corpus.trace.importers.core.privacy import masked
from orchtrace_corpus.trace.importers.spans.kinds import Meanings
from orchtrace_corpus.trace.importers.spans.span import Bundle, Kind
from orchtrace_corpus.trace.importers.spans.transfers import Transfer, transfers
from orchtrace_corpus.trace.importers.spans.tree import NOBODY, Tree
from orchtrace_corpus.trace.model.import_report import ImportReport


class Activation:
    """An agent at work for a time.

    Attributes:
        span: The number of its span; `NOBODY` where acts belong to no agent's span.
        name: The agent's name.
        start: When it began.
        end: When it ended; None where the log does not say.
        earliest: When the first of all that happens within began.
        latest: When the last of it began or ended.
        parent: The number of the activation that it lies in, or `NOBODY`.
        wrapper: The number of the tool's or guardrail's span between it and that activation, or `NOBODY`.
        agent: The agent's id in the trace.
        spawner: The number of the activation that brought the agent into being, or `NOBODY`.
        is_first: Whether it is the agent's first.
        is_last: Whether it is the agent's last.
        incoming: What passed control to it.
        outgoing: What it passed control on by.
    """

    def __init__(self, span: int, name: str, start: float, end: float | None, earliest: float, latest: float) -> None:
        self.span = span
        self.name = name
        self.start = start
        self.end = end
        self.earliest = earliest
        self.latest = latest
        self.parent = NOBODY
        self.wrapper = NOBODY
        self.agent = ""
        self.spawner = NOBODY
        self.is_first = False
        self.is_last = False
        self.incoming: list[Transfer] = []
        self.outgoing: list[Transfer] = []


class Team:
    """The activations of a tree, and which span belongs to which.

    Attributes:
        activations: The activations; those of agents without spans come when their first act does.
        owner: For each span the number of the activation that it belongs to, or `NOBODY`; of an agent's span its own.
        bearer_owner: The same for spans that bear tokens though they lie in no agent's span and are no act.
        handoffs: For each handoff's span the number of the activation that took over.
        lone: The numbers of the tools' spans that wrap one agent, which stand for it.
    """

    def __init__(self, of: Tree, meanings: Meanings, bundle: Bundle, bearers: set[int], report: ImportReport) -> None:
        self.activations: list[Activation] = []
        self.owner = [NOBODY] * len(of.spans)
        self.bearer_owner: dict[int, int] = {}
        self._of = of
        self._meanings = meanings
        self._unnamed = masked(bundle.name) or "agent"
        self._spanless: dict[str, int] = {}
        self._find(bearers)
        found = transfers(of, meanings, self.owner, self._wrappers(), report)
        self.handoffs = {each.span: each.target for each in found if each.span != NOBODY}
        for each in found:
            self.activations[each.source].outgoing.append(each)
            self.activations[each.target].incoming.append(each)
        self._name_agents()
        initial: dict[int, int] = {}
        for activation in self.activations:
            if activation.wrapper != NOBODY and not activation.incoming:
                initial[activation.wrapper] = initial.get(activation.wrapper, 0) + 1
        self.lone = {wrapper for wrapper, number in initial.items() if number == 1}

    def _find(self, bearers: set[int]) -> None:
        """Give every agent's span an activation, and every act and bearer of tokens an owner."""
        of, kinds = self._of, self._meanings.kinds
        wrapper = [NOBODY] * len(of.spans)
        for number in of.order:
            parent, kind = of.parents[number], kinds[number]
            owner = self.owner[parent] if parent != NOBODY else NOBODY
            around = wrapper[parent] if parent != NOBODY else NOBODY
            if owner == NOBODY and kind not in (Kind.AGENT, Kind.CHAIN):
                owner = self._without_span(number)
            elif owner == NOBODY and kind is Kind.CHAIN and number in bearers:
                self.bearer_owner[number] = self._without_span(number)
            if kind is Kind.AGENT:
                name = masked(self._meanings.names[number]) or "agent"
                extent = of.earliest[number], of.latest[number]
                activation = Activation(number, name, of.starts[number], of.ends[number], *extent)
                activation.parent, activation.wrapper = owner, around
                owner, around = len(self.activations), NOBODY
                self.activations.append(activation)
            elif kind in (Kind.TOOL, Kind.GUARDRAIL) and self._meanings.has_agents[number]:
                around = number
            self.owner[number], wrapper[number] = owner, around

    def _without_span(self, number: int) -> int:
        """The activation of an agent that has no span, by the name that its act gives, else that of the run."""
        of = self._of
        name = masked(of.spans[number].agent) or self._unnamed
        if name not in self._spanless:
            self._spanless[name] = len(self.activations)
            start, last = of.earliest[number], of.latest[number]
            self.activations.append(Activation(NOBODY, name, start, last, start, last))
        activation = self.activations[self._spanless[name]]
        activation.start = activation.earliest = min(activation.earliest, of.earliest[number])
        activation.end = activation.latest = max(activation.latest, of.latest[number])
        return self._spanless[name]

    def _wrappers(self) -> dict[int, tuple[int, int]]:
        """Where each activation's span lies: in which activation, and below which tool."""
        return {each.span: (each.parent, each.wrapper) for each in self.activations if each.span != NOBODY}

    def _name_agents(self) -> None:
        """Give each activation its agent: a new one, or one of the same name that has finished and takes over again."""
        free: dict[tuple[int, int, int, str], list[tuple[float, int]]] = {}
        names = Names()
        last: dict[str, int] = {}
        order = sorted(range(len(self.activations)), key=self._by_time)
        for number in order:
            activation = self.activations[number]
            activation.spawner = self._spawner(number)
            is_new = activation.spawner != NOBODY and not self._is_transferred(activation)
            queues = [] if is_new else [free.setdefault(key, []) for key in self._places(activation)]
            agent = next((found for queue in queues if (found := self._finished(queue, activation, last))), "")
            if agent:
                before = self.activations[last[agent]]
                before.is_last = False
                activation.spawner = before.spawner
            else:
                agent = names.new(activation.name)
                activation.is_first = True
            activation.agent, activation.is_last = agent, True
            last[agent] = number
            for key in self._places(activation):
                heappush(free.setdefault(key, []), (activation.latest, number))

    def _by_time(self, number: int) -> tuple[float, float, str, int]:
        activation = self.activations[number]
        return activation.earliest, activation.latest, activation.name, number

    def _is_transferred(self, activation: Activation) -> bool:
        return any(not each.is_push for each in activation.incoming)

    def _spawner(self, number: int) -> int:
        activation = self.activations[number]
        pushed = next((each.source for each in activation.incoming if each.is_push), NOBODY)
        return pushed if pushed != NOBODY else activation.parent

    def _places(self, activation: Activation) -> list[tuple[int, int, int, str]]:
        """Where an agent of the same name may have been at work before: beside it first, then anywhere alike."""
        beside = self._of.parents[activation.span] if activation.span != NOBODY else NOBODY
        wide = (activation.parent, activation.wrapper)
        return [(*wide, beside, activation.name), (*wide, -2, activation.name)]

    def _finished(self, queue: list[tuple[float, int]], activation: Activation, last: dict[str, int]) -> str:
        """The agent of a queue that has finished first, if before the activation; it is taken from the queue."""
        while queue:
            latest, number = queue[0]
            agent = self.activations[number].agent
            if last[agent] != number:
                heappop(queue)  # it was at work since
            elif latest <= activation.earliest:
                heappop(queue)
                return agent
            else:
                break
        return ""
