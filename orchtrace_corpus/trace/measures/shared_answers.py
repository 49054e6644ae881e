"""Find model answers that are in several sessions, because one session was forked or resumed from another."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import astuple

from orchtrace_corpus.trace.model.events import total
from orchtrace_corpus.trace.model.trace import Tokens, Trace

_COPYING_PROGRAMS = frozenset(("claude-code",))
"""The programs that copy answers when a session is forked or resumed."""


class AnswerUsage(Struct, frozen=True):
    """The tokens and the cost of one answer.

    Attributes:
        tokens: The tokens by kind.
        model: The model.
        usd: The cost in US dollars; None if it is unknown.
        place: A sort key of the caller for the sums that contain it; of equal copies, the one with the largest counts.
    """

    tokens: Tokens
    model: str
    usd: float | None
    place: tuple[object, ...] = ()


class SharedAnswers:
    """Finds copies of answers, so that a sum counts each answer once. Sessions may be added in any order.

    Copies of an answer may differ if a log was cut off. The copy with the most tokens counts.

    Attributes:
        answers: The number of copies that do not count.
        tokens: The tokens of these copies.
        usd: The cost of these copies in US dollars; None if no cost is known.
        without_ids: The number of answers without ids in sessions of programs that copy answers; these may be copies.
    """

    def __init__(self) -> None:
        self._answers_by_hash: dict[int, AnswerUsage] = {}  # by the hash of the id, which takes less memory than the id
        self.answers = 0
        self.without_ids = 0
        self.tokens = 0.0
        self.usd: float | None = None

    def add(
        self, trace: Trace, ids: Mapping[int, str], places: Mapping[int, tuple[object, ...]] | None = None
    ) -> list[AnswerUsage]:
        """Add the answers of a session.

        Args:
            trace: The session.
            ids: The ids of its answers, by the indices of their events.
            places: The `AnswerUsage.place` of its answers, by the same indices.

        Returns:
            The copies that the caller must subtract from its sums.
        """
        copies = []
        events, answers = trace.events, self._answers_by_hash
        with_id = 0
        for index, answer_id in ids.items():
            event = events[index]
            if event.copied_context or not isinstance(event.tokens, Tokens):
                continue
            with_id += 1
            place = places.get(index, ()) if places else ()
            answer = AnswerUsage(event.tokens, event.model, event.cost_usd, place)
            key = hash(answer_id)
            earlier = answers.get(key)
            if earlier is not None:
                copies.append(min(earlier, answer, key=_order))
                answer = max(earlier, answer, key=_order)
            answers[key] = answer
        if trace.system in _COPYING_PROGRAMS:
            with_tokens = sum(isinstance(event.tokens, Tokens) and not event.copied_context for event in events)
            self.without_ids += with_tokens - with_id
        self.answers += len(copies)
        self.tokens += sum(total(copy.tokens) for copy in copies)
        costs = [copy.usd for copy in copies if copy.usd is not None]
        if costs:  # otherwise the cost remains unknown
            self.usd = sum(costs) + (self.usd or 0.0)
        return copies


def _order(answer: AnswerUsage) -> tuple[object, ...]:
    """Return the sort key of copies of an answer. The copy with the largest key counts; datasets use the same order."""
    counts = [-1 if count is None else count for count in astuple(answer.tokens)]
    return total(answer.tokens), *counts, answer.usd or 0.0, answer.model, answer.place
