"""The proxy `reach`: the share of a run's result that a coalition could have produced, by the trace's graph alone.

The result and all events that led to it are the events of the game. An event needs its own player and the players of
all events it depends on; a coalition can produce the event if it has all of them. The value of a coalition is
therefore a sum of unanimity games, one for each event. The Shapley value of such a game is equal for all its players:
each of the k players that an event needs gets 1/k of it (L. S. Shapley, "A value for n-person games", 1953, by
additivity, symmetry and dummy). This is exact for any number of players, and needs no values of coalitions. The
difference reward of a player is the share of the events that need the player.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.trace.credit.methods import Share
from orchtrace_corpus.trace.model.terms import EventType
from orchtrace_corpus.trace.view import TraceView

MAX_ADDED = 50_000_000
"""The largest total of players that events need beyond those of their base; with more, the division takes too long."""

MAX_BYTES = 2**30
"""The largest size in memory of the sets of needed players at one time; a set takes one bit for each player."""


class Reach:
    """The game of the proxy: players own events, and a coalition produces a share of the events behind the result.

    The result is the last aggregate, else the last return, else the last event. The game has the result and all events
    that led to it along edges. A coalition produces an event if it has the event's player and produces everything that
    the event depends on. Events without a player need no player. The value of the whole team is the outcome; a player
    without an event that led to the result gets nothing.

    Args:
        view: A trace without errors.
        players: The indices of each player's events, by the name of the player.
        outcome: The value of the whole team, such as a reward.

    Attributes:
        players: The names of the players.
        owned_events: The number of events in the game that belong to a player.

    Raises:
        CycleError: The edges form a cycle.
    """

    def __init__(self, view: TraceView, players: Mapping[str, Sequence[int]], outcome: float) -> None:
        trace, graph = view.trace, view.graph
        self._incoming: list[list[int]] = [[] for _ in trace.events]
        for source, target in zip(graph.sources, graph.targets, strict=True):
            self._incoming[target].append(source)
        last = {trace.events[index].type: index for index in view.sequence}
        result = last.get(EventType.AGGREGATE, last.get(EventType.RETURN, view.sequence[-1]))
        self._ordered = _with_causes(result, self._incoming)
        self.players = list(players)
        self._owner = [-1] * len(trace.events)
        self._is_single = [len(indices) == 1 for indices in players.values()]
        for player, indices in enumerate(players.values()):
            for index in indices:
                self._owner[index] = player
        self._outcome = outcome
        self.owned_events = sum(self._owner[index] >= 0 for index in self._ordered)

    @property
    def whole(self) -> float:
        """Return the value of the whole team: the outcome, or zero if no player owns an event of the game."""
        return self._outcome if self.owned_events else 0.0

    def shapley(self) -> dict[str, Share]:
        """Return the exact Shapley value of each player.

        Raises:
            CommandUseError: Too many players depend on too many others.
        """
        return self._divide(lambda needed: 1.0 / needed)

    def difference_rewards(self) -> dict[str, Share]:
        """Return, for each player, by how much the value of the team falls without that player.

        Raises:
            CommandUseError: Too many players depend on too many others.
        """
        return self._divide(lambda _: 1.0)

    def _divide(self, weigh: Callable[[int], float]) -> dict[str, Share]:
        """Return each player's share of the outcome: the sum of the weights of the events that need the player.

        `weigh` returns the weight of an event from the number of players it needs. An event stores only the players
        that its base does not need; its weight is added to the base when the weights are summed up. This takes time
        linear in the length of a chain of events.
        """
        needs = _Needs(self._incoming, self._ordered)
        weights: dict[int, float] = {}
        for index in self._ordered:
            player = self._owner[index]
            count = needs.add(index, player, is_new=player >= 0 and self._is_single[player])
            weights[index] = weigh(count) if player >= 0 else 0.0
        sums = [0.0] * len(self.players)
        for index in reversed(self._ordered):
            weight = weights.pop(index)
            if weight:
                for player in needs.added[index]:
                    sums[player] += weight
                if needs.base[index] >= 0:
                    weights[needs.base[index]] += weight
        if not self.owned_events:
            return {name: Share(0.0) for name in self.players}
        shares = [Share(self._outcome * (weight / self.owned_events)) for weight in sums]
        return dict(zip(self.players, shares, strict=True))


class _Needs:
    """The players that each event needs, stored as those of its base and those added to them.

    The base of an event is the source that needs the most players; -1 if the event has no source. Sets of players are
    the bits of an integer.
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
        self._added_count = 0
        self.base: dict[int, int] = {}
        self.added: dict[int, Sequence[int]] = {}

    def add(self, index: int, player: int, *, is_new: bool) -> int:
        """Store the players that an event needs, after those of all its sources, and return their number.

        `player` is the owner of the event, or -1. `is_new` means that the owner owns no earlier event.
        """
        sources = self._incoming[index]
        base = max(sources, key=self._sizes.__getitem__, default=-1)
        needed = base_needs = self._sets[base] if base >= 0 else 0
        for source in sources:
            if source != base and self._sets[source] is not base_needs:
                needed |= self._sets[source]
        added: list[int] = []
        if needed is not base_needs and needed != base_needs:
            added = list(_members(needed & ~base_needs))
        self._added_count += len(added)
        if player >= 0 and (is_new or not needed >> player & 1):
            needed |= 1 << player
            added.append(player)
        self.base[index], self.added[index] = base, tuple(added)
        self._sizes[index] = size = (self._sizes[base] if base >= 0 else 0) + len(added)
        self._sets[index] = needed  # kept until all events that depend on this one are stored
        self._bytes += needed.bit_length() // 8
        for source in sources:
            self._waiting[source] -= 1
            if not self._waiting[source]:
                self._bytes -= self._sets.pop(source).bit_length() // 8
        if self._added_count > MAX_ADDED or self._bytes > MAX_BYTES:
            raise CommandUseError(
                "too many parts of the trace depend on too many others for the proxy `reach`",
                "Divide among fewer and larger parts: --unit agent, or --unit role.",
            )
        return size


def _members(needed: int) -> Iterator[int]:
    """Yield the players of a set in ascending order."""
    bits = bin(needed)[:1:-1]
    player = bits.find("1")
    while player >= 0:
        yield player
        player = bits.find("1", player + 1)


def _with_causes(result: int, incoming: Sequence[Sequence[int]]) -> list[int]:
    """Return an event and all events that led to it, each after its sources.

    Depth first, so that `_Needs` keeps few sets in memory at one time.
    """
    ordered: list[int] = []
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
            ordered.append(index)
            path.pop()
    return ordered
