"""The proxy `reach`: the share of a run's result that a coalition could have produced, by the trace's graph alone.

The game is over the result of the run and all events that led to it. An event needs the player that owns it, and all
players that the events before it need. A coalition can produce the event if it has all these players. The value of a
coalition is the share of the events that it can produce, times the outcome of the run.

This value is a sum of unanimity games, one for each event. In a unanimity game, the Shapley value is equal for all
needed players: if an event needs k players, each gets 1/k of it (L. S. Shapley, "A value for n-person games", 1953, by
additivity, symmetry and dummy). So the Shapley values are exact for any number of players, without values of
coalitions. The difference reward of a player is the share of the events that need the player.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.trace.credit.methods import Share
from orchtrace_corpus.trace.model.terms import EventType
from orchtrace_corpus.trace.view import TraceView

MAX_ADDED = 50_000_000
"""The largest number of added players over all events (see `_NeededPlayers`); more would take too long."""

MAX_BYTES = 2**30
"""The largest size in memory of the sets of needed players at one time; a set takes one bit for each player."""

_NO_PLAYER = -1  # the owner of an event that no player owns
_NO_BASE = -1  # the base of an event without sources (see `_NeededPlayers`)


class Reach:
    """The game of the proxy, as the module describes it.

    The result is the last aggregate, or without one the last return, or without either the last event. Events that no
    player owns count for nothing, but pass on the players that they need. A player that owns no event of the game gets
    no credit.

    Args:
        view: A trace without errors.
        players: The indices of each player's events, by the name of the player.
        outcome: The value of the whole team, such as a reward.

    Attributes:
        players: The names of the players. Other attributes refer to a player by its index in this list.
        owned_event_count: The number of events in the game that belong to a player.

    Raises:
        CycleError: The edges form a cycle.
    """

    def __init__(self, view: TraceView, players: Mapping[str, Sequence[int]], outcome: float) -> None:
        trace, graph = view.trace, view.graph
        self._sources: list[list[int]] = [[] for _ in trace.events]  # for each event, those before it along edges
        for source, target in zip(graph.sources, graph.targets, strict=True):
            self._sources[target].append(source)
        last_by_type = {trace.events[index].type: index for index in view.sequence}
        if EventType.AGGREGATE in last_by_type:
            result = last_by_type[EventType.AGGREGATE]
        elif EventType.RETURN in last_by_type:
            result = last_by_type[EventType.RETURN]
        else:
            result = view.sequence[-1]
        self._game_events = _events_up_to(result, self._sources)
        self.players = list(players)
        self._owners = [_NO_PLAYER] * len(trace.events)
        self._owns_one_event = [len(indices) == 1 for indices in players.values()]
        for player, indices in enumerate(players.values()):
            for index in indices:
                self._owners[index] = player
        self._outcome = outcome
        self.owned_event_count = sum(self._owners[index] != _NO_PLAYER for index in self._game_events)

    @property
    def whole(self) -> float:
        """The value of the whole team: the outcome, or zero if no player owns an event of the game."""
        return self._outcome if self.owned_event_count else 0.0

    def shapley(self) -> dict[str, Share]:
        """Return the exact Shapley value of each player.

        Raises:
            CommandUseError: Too many players depend on too many others.
        """
        return self._divide(lambda needed_count: 1.0 / needed_count)

    def difference_rewards(self) -> dict[str, Share]:
        """Return, for each player, the value of the team less its value without the player.

        Raises:
            CommandUseError: Too many players depend on too many others.
        """
        return self._divide(lambda _: 1.0)

    def _divide(self, weigh: Callable[[int], float]) -> dict[str, Share]:
        """Return each player's share of the outcome: the sum of the weights of the events that need the player.

        `weigh` returns the weight of an event from the number of players that it needs. A player that the base of an
        event needs is stored only with the base (see `_NeededPlayers`). The weights are therefore summed up from the
        result backwards, and each event passes its weight on to its base. For a chain of events, this takes time linear
        in its length.
        """
        needed = _NeededPlayers(self._sources, self._game_events)
        weights: dict[int, float] = {}
        for index in self._game_events:
            player = self._owners[index]
            is_owned = player != _NO_PLAYER
            needed_count = needed.add(index, player, is_only_event=is_owned and self._owns_one_event[player])
            weights[index] = weigh(needed_count) if is_owned else 0.0
        sums = [0.0] * len(self.players)
        for index in reversed(self._game_events):
            weight = weights.pop(index)
            if weight:
                for player in needed.added[index]:
                    sums[player] += weight
                base = needed.base[index]
                if base != _NO_BASE:
                    weights[base] += weight
        if not self.owned_event_count:
            return {name: Share(0.0) for name in self.players}
        shares = [Share(self._outcome * (weight / self.owned_event_count)) for weight in sums]
        return dict(zip(self.players, shares, strict=True))


class _NeededPlayers:
    """The players that each event needs.

    An event needs all players that its sources need. To save memory, an event stores only its base, which is the source
    that needs the most players, and the players added to those of the base. While further events depend on an event,
    its full set of players is kept, too, as the bits of an integer.

    Attributes:
        base: The base of each event; `_NO_BASE` for an event without sources.
        added: The players that each event needs and its base does not.
    """

    def __init__(self, sources: Sequence[Sequence[int]], game_events: Sequence[int]) -> None:
        self._sources = sources
        self._sets: dict[int, int] = {}
        self._sizes: dict[int, int] = {}
        self._remaining_uses: dict[int, int] = dict.fromkeys(game_events, 0)  # by events that are not stored yet
        for index in game_events:
            for source in sources[index]:
                self._remaining_uses[source] += 1
        self._bytes = 0
        self._added_count = 0
        self.base: dict[int, int] = {}
        self.added: dict[int, Sequence[int]] = {}

    def add(self, index: int, player: int, *, is_only_event: bool) -> int:
        """Store the players that an event needs, and return their number. All its sources must be stored already.

        `player` is the owner of the event, or `_NO_PLAYER`. `is_only_event` says that the player owns no other event,
        so that no source can need it: the test for it would take time linear in the number of players.
        """
        sources = self._sources[index]
        base = max(sources, key=self._sizes.__getitem__, default=_NO_BASE)
        base_set = 0
        base_size = 0
        if base != _NO_BASE:
            base_set = self._sets[base]
            base_size = self._sizes[base]
        needed = base_set
        for source in sources:
            if source != base and self._sets[source] is not base_set:
                needed |= self._sets[source]
        added: list[int] = []
        if needed is not base_set and needed != base_set:  # `is not` is fast for the usual case of one source
            added = list(_members(needed & ~base_set))
        self._added_count += len(added)
        if player != _NO_PLAYER and (is_only_event or not needed >> player & 1):
            needed |= 1 << player
            added.append(player)
        self.base[index] = base
        self.added[index] = tuple(added)
        size = base_size + len(added)
        self._sizes[index] = size
        self._sets[index] = needed
        self._bytes += needed.bit_length() // 8
        for source in sources:
            self._remaining_uses[source] -= 1
            if not self._remaining_uses[source]:
                self._bytes -= self._sets.pop(source).bit_length() // 8
        if self._added_count > MAX_ADDED or self._bytes > MAX_BYTES:
            raise CommandUseError(
                "too many parts of the trace depend on too many others for the proxy `reach`",
                "Divide among fewer and larger parts: --unit agent, or --unit role.",
            )
        return size


def _members(players: int) -> Iterator[int]:
    """Yield the players of a set, which is the bits of an integer, in ascending order."""
    bits = bin(players)[:1:-1]  # without the prefix "0b", the lowest bit first
    player = bits.find("1")
    while player >= 0:
        yield player
        player = bits.find("1", player + 1)


def _events_up_to(result: int, sources: Sequence[Sequence[int]]) -> list[int]:
    """Return an event and all events that led to it, each after its sources.

    The search is depth first, so that `_NeededPlayers` keeps few sets in memory at one time.
    """
    ordered: list[int] = []
    entered = {result}
    path = [(result, iter(sources[result]))]  # each event with those of its sources that are still to be visited
    while path:
        index, remaining = path[-1]
        next_source = None
        for source in remaining:
            if source not in entered:
                next_source = source
                break
        if next_source is None:
            ordered.append(index)
            path.pop()
        else:
            entered.add(next_source)
            path.append((next_source, iter(sources[next_source])))
    return ordered
