"""The proxy `reach`: what a coalition could have done of a run's making, judged by the trace's graph alone.

An event of the making needs the owners of all that it depends on, and its own. A coalition can do it if it has
them all. So the value of a coalition is a sum of unanimity games, one for each event, and the Shapley value of
such a game is even: each of the k players that an event needs gets 1/k of it (L. S. Shapley, "A value for
n-person games", 1953, by additivity, symmetry and dummy). That is exact for any number of players, and no
coalition has to be valued. The difference reward of a player is, likewise, the share of the events that need it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.trace.credit.methods import Share
from orchtrace_corpus.trace.model.terms import EventType
from orchtrace_corpus.trace.view import TraceView

MOST_JOINED = 50_000_000
"""So many players may be named where branches of the graph meet; with more, a division takes too long."""

MOST_BYTES = 2**30
"""The sets of needed players may take so much memory at one time; each takes a bit for each player."""


class Reach:
    """The game of the proxy: players own events, and a coalition achieves a share of the result's making.

    The result is the last aggregate, else the last return, else the last event. What led to it along edges is
    its making; an event of it is done if its player is in the coalition and everything that it depends on is
    done. Events of no player are always done. So the whole team has the outcome, nobody has what needs nobody,
    and whoever brings nothing to the result gets nothing.

    Args:
        view: A trace without errors.
        players: The numbers of each player's events.
        outcome: What the whole team has achieved, such as a reward.

    Attributes:
        players: The names of the players.
        owned: How many events of the making belong to anybody.

    Raises:
        CycleError: The edges go round in a circle.
    """

    def __init__(self, view: TraceView, players: Mapping[str, Sequence[int]], outcome: float) -> None:
        trace, of = view.trace, view.graph
        self._incoming: list[list[int]] = [[] for _ in trace.events]
        for source, target in zip(of.sources, of.targets, strict=True):
            self._incoming[target].append(source)
        last = {trace.events[index].type: index for index in view.sequence}
        result = last.get(EventType.AGGREGATE, last.get(EventType.RETURN, view.sequence[-1]))
        self._ordered = _making(result, self._incoming)
        self.players = list(players)
        self._owner = [-1] * len(trace.events)
        self._is_single = [len(indices) == 1 for indices in players.values()]
        for player, indices in enumerate(players.values()):
            for index in indices:
                self._owner[index] = player
        self._outcome = outcome
        self.owned = sum(self._owner[index] >= 0 for index in self._ordered)

    @property
    def whole(self) -> float:
        """Return the value of the whole team: the outcome, or zero if no player owns a part of it."""
        return self._outcome if self.owned else 0.0

    def shapley(self) -> dict[str, Share]:
        """The Shapley value of each player, exactly.

        Raises:
            CommandUseError: Too many players depend on too many others.
        """
        return self._divided(lambda needed: 1.0 / needed)

    def difference_rewards(self) -> dict[str, Share]:
        """Return the loss of the whole team without each player.

        Raises:
            CommandUseError: Too many players depend on too many others.
        """
        return self._divided(lambda _: 1.0)

    def _divided(self, weigh: Callable[[int], float]) -> dict[str, Share]:
        """For each player the sum of the weights of the events that need it, in shares of the outcome.

        An event needs whoever the largest of its sources needs, and a few more: only these are written down, and
        the weight of the event is handed to that source when all is summed up. So a chain takes no longer for
        being long. An event weighs by the number of players that it needs.
        """
        needs = _Needs(self._incoming, self._ordered)
        weights: dict[int, float] = {}
        for index in self._ordered:
            player = self._owner[index]
            needed = needs.add(index, player, is_new=player >= 0 and self._is_single[player])
            weights[index] = weigh(needed) if player >= 0 else 0.0
        sums = [0.0] * len(self.players)
        for index in reversed(self._ordered):
            weight = weights.pop(index)
            if weight:
                for player in needs.more[index]:
                    sums[player] += weight
                if needs.base[index] >= 0:
                    weights[needs.base[index]] += weight
        return {
            name: Share(self._outcome * (one / self.owned) if self.owned else 0.0)
            for name, one in zip(self.players, sums, strict=True)
        }


class _Needs:
    """Whom each event needs: those whom one of its sources needs, its base, and more. Sets are bits of an integer.

    The base is the source that needs the most players; -1 where there is none.
    """

    def __init__(self, incoming: Sequence[Sequence[int]], ordered: Sequence[int]) -> None:
        self._incoming = incoming
        self._sets: dict[int, int] = {}
        self._sizes: dict[int, int] = {}
        self._waiting: dict[int, int] = dict.fromkeys(ordered, 0)
        for index in ordered:
            for source in incoming[index]:
                self._waiting[source] += 1
        self._bytes = 0
        self._joined = 0
        self.base: dict[int, int] = {}
        self.more: dict[int, Sequence[int]] = {}

    def add(self, index: int, player: int, *, is_new: bool) -> int:
        """Find out whom an event needs, after all that it depends on; how many they are.

        Its owner is -1 where it has none, and new where it is known to own nothing that came before.
        """
        sources = self._incoming[index]
        base = max(sources, key=self._sizes.__getitem__, default=-1)
        needed = first = self._sets[base] if base >= 0 else 0
        for source in sources:
            if source != base and self._sets[source] is not first:
                needed |= self._sets[source]
        more = list(_members(needed & ~first)) if needed is not first and needed != first else []
        self._joined += len(more)
        if player >= 0 and (is_new or not needed >> player & 1):
            needed |= 1 << player
            more.append(player)
        self.base[index], self.more[index] = base, tuple(more)
        self._sizes[index] = size = (self._sizes[base] if base >= 0 else 0) + len(more)
        self._sets[index] = needed  # kept as long as an event waits for it
        self._bytes += needed.bit_length() // 8
        for source in sources:
            self._waiting[source] -= 1
            if not self._waiting[source]:
                self._bytes -= self._sets.pop(source).bit_length() // 8
        if self._joined > MOST_JOINED or self._bytes > MOST_BYTES:
            raise CommandUseError(
                "too many parts of the trace depend on too many others for the proxy `reach`",
                "Divide among fewer and larger parts: --unit agent, or --unit role.",
            )
        return size


def _members(needed: int) -> Iterator[int]:
    """The players of a set, rising."""
    bits = bin(needed)[:1:-1]
    place = bits.find("1")
    while place >= 0:
        yield place
        place = bits.find("1", place + 1)


def _making(result: int, incoming: Sequence[Sequence[int]]) -> list[int]:
    """An event and all that led to it, sources first; each branch to its end before the next, so that few are open."""
    found: dict[int, None] = {}
    entered = {result}
    path = [(result, iter(incoming[result]))]
    while path:
        index, sources = path[-1]
        for source in sources:
            if source not in entered:
                entered.add(source)
                path.append((source, iter(incoming[source])))
                break
        else:
            found[index] = None
            path.pop()
    return list(found)
