"""What each span of a tree stands for, once its relatives are known.

Formats name spans for what the program was doing. Some of these are wrappers: a trace that calls itself an agent,
a model call of a framework around the same call of a client, the nodes of a graph that is one agent's loop.
"""

from collections.abc import Sequence

from orchtrace_corpus.trace.importers.spans.span import Kind
from orchtrace_corpus.trace.importers.spans.tree import NOBODY, Tree

_LOOP_NODES = frozenset(
    {"agent", "model", "model_request", "call_model", "tools", "pre_model_hook", "post_model_hook"}
    | {"generate_structured_response"}
)
"""The nodes of LangGraph's and LangChain's own agent; those of middleware have a dot in their names."""

_LOOP_MODELS = frozenset({"agent", "model", "model_request", "call_model"})
_NO_NAME = frozenset({"", "LangGraph"})

_ACTS = frozenset({Kind.INFERENCE, Kind.TOOL, Kind.HANDOFF, Kind.GUARDRAIL})


class Meanings:
    """What spans stand for, by their number.

    Attributes:
        kinds: What each stands for.
        names: What each agent or tool is called.
        has_agents: Whether an agent's span lies below.
        has_acts: Whether anything that an agent does lies below.
        silent: The LangGraph tasks that only compute, without a model or a tool.
    """

    def __init__(self, of: Tree) -> None:
        self.kinds = [span.kind for span in of.spans]
        self.names = [span.name for span in of.spans]
        self.has_agents = [False] * len(of.spans)
        self.has_acts = [False] * len(of.spans)
        self.silent: set[int] = set()
        tasks = _tasks(of)
        self._cast_nodes(of, tasks)
        self._look_below(of, tasks)
        self._join_namesakes(of)

    def _cast_nodes(self, of: Tree, tasks: Sequence[int]) -> None:
        """Make agents of the nodes of graphs; of a graph that is one agent's loop, make one."""
        nodes_of: dict[int, list[int]] = {}
        for number in tasks:
            nodes_of.setdefault(of.parents[number], []).append(number)
        for graph, nodes in nodes_of.items():
            names = {task.node for number in nodes if (task := of.spans[number].task)}
            if names & _LOOP_MODELS and all(name in _LOOP_NODES or "." in name for name in names):
                if graph != NOBODY and self.kinds[graph] is Kind.CHAIN:
                    self._cast_loop(of, graph)
                continue
            for number in nodes:
                task = of.spans[number].task
                if task and self.kinds[number] is Kind.CHAIN:
                    self.kinds[number], self.names[number] = Kind.AGENT, task.node

    def _cast_loop(self, of: Tree, graph: int) -> None:
        span = of.spans[graph]
        name = span.agent or span.name
        if name in _NO_NAME and span.task:
            return  # it has no name of its own, and the node around it is the agent
        self.kinds[graph], self.names[graph] = Kind.AGENT, name

    def _look_below(self, of: Tree, tasks: Sequence[int]) -> None:
        """Unmask what only wraps something else, children first."""
        count = len(of.spans)
        has_calls, has_named, is_task = [False] * count, [False] * count, [False] * count
        for number in tasks:
            is_task[number] = True
        for number in reversed(of.order):
            span, kind, acts = of.spans[number], self.kinds[number], self.has_acts[number]
            if kind is Kind.INFERENCE and has_calls[number]:
                kind = Kind.CHAIN
            elif kind is Kind.HANDOFF and self.has_agents[number]:
                kind = Kind.TOOL
            elif kind is Kind.AGENT and not acts and not self.has_agents[number]:
                if is_task[number]:
                    self.silent.add(number)
                    kind = Kind.CHAIN
                elif span.end is None:
                    kind = Kind.CHAIN
            elif kind is Kind.AGENT and has_named[number] and not span.is_named and not is_task[number]:
                kind = Kind.CHAIN
            self.kinds[number] = kind
            parent = of.parents[number]
            if parent != NOBODY:
                self.has_agents[parent] |= self.has_agents[number] or kind is Kind.AGENT
                self.has_acts[parent] |= acts or kind in _ACTS
                has_calls[parent] |= has_calls[number] or kind is Kind.INFERENCE
                has_named[parent] |= has_named[number] or (kind is Kind.AGENT and span.is_named)

    def _join_namesakes(self, of: Tree) -> None:
        """Two instrumentations see one agent: a span of the same name inside is the same agent at work."""
        agent_of = [""] * len(of.spans)
        for number in of.order:
            parent = of.parents[number]
            around = agent_of[parent] if parent != NOBODY else ""
            kind = self.kinds[number]
            if kind is Kind.AGENT:
                if around == self.names[number] and around:
                    self.kinds[number] = Kind.CHAIN
                around = self.names[number]
            elif kind is Kind.TOOL:
                around = ""
            agent_of[number] = around


def _tasks(of: Tree) -> list[int]:
    """The spans with which a LangGraph task begins: those whose namespace is not that of the span around them."""
    found = []
    around = [""] * len(of.spans)
    for number in of.order:
        parent, task = of.parents[number], of.spans[number].task
        outer = around[parent] if parent != NOBODY else ""
        if task is not None and task.namespace != outer:
            found.append(number)
        around[number] = task.namespace if task is not None else outer
    return found
