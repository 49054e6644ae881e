"""Answers of models that several sessions have, copied when one was forked or resumed: sums count each once."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import astuple

from orchtrace_corpus.trace.model.events import total
from orchtrace_corpus.trace.model.trace import Tokens, Trace

_COPYING = frozenset(("claude-code",))
"""The programs that copy answers when a session is forked or resumed."""


class Spent(Struct, frozen=True):
    """The tokens and the cost of one answer.

    Attributes:
        tokens: Its tokens by kind.
        model: Its model.
        usd: Its cost in US dollars; None where that is unknown.
        place: Where it is counted, as whoever adds it says; of copies that are alike, the one that is last counts.
    """

    tokens: Tokens
    model: str
    usd: float | None
    place: tuple[object, ...] = ()


class Shared:
    """Finds the answers that several sessions have, so that a sum counts each once, whatever the order of sessions.

    Copies of an answer may differ where a log was cut off: the one of most tokens counts.

    Attributes:
        answers: How many copies were taken off.
        tokens: Their tokens.
        usd: Their cost in US dollars; None where none is known.
        without_ids: How many answers have no ids, of a program that copies answers: they may be copies, too.
    """

    def __init__(self) -> None:
        self._known: dict[int, Spent] = {}
        self.answers = self.without_ids = 0
        self.tokens = 0.0
        self.usd: float | None = None

    def add(
        self, trace: Trace, ids: Mapping[int, str], places: Mapping[int, tuple[object, ...]] | None = None
    ) -> list[Spent]:
        """Add the answers of a session.

        Args:
            trace: The session.
            ids: The ids of its answers, by the numbers of their events.
            places: Where they are counted, likewise.

        Returns:
            What sums over the sessions have too much by it.
        """
        copies = []
        events, known = trace.events, self._known
        counted = 0
        for index, of in ids.items():
            event = events[index]
            if event.copied_context or not isinstance(event.tokens, Tokens):
                continue
            counted += 1
            place = places.get(index, ()) if places else ()
            one, mark = Spent(event.tokens, event.model, event.cost_usd, place), hash(of)
            before = known.get(mark)
            if before is not None:
                copies.append(min(before, one, key=_order))
                one = max(before, one, key=_order)
            known[mark] = one
        if trace.system in _COPYING:
            spent = [event.copied_context for event in events if isinstance(event.tokens, Tokens)]
            self.without_ids += spent.count(False) - counted
        self.answers += len(copies)
        self.tokens += sum(total(one.tokens) for one in copies)
        prices = [copy.usd for copy in copies if copy.usd is not None]
        self.usd = sum(prices) + (self.usd or 0.0) if prices else self.usd
        return copies


def _order(spent: Spent) -> tuple[object, ...]:
    """By what copies of an answer are put in order, whichever comes first; datasets order them likewise."""
    kinds = (-1 if number is None else number for number in astuple(spent.tokens))
    return total(spent.tokens), *kinds, spent.usd or 0.0, spent.model, spent.place
