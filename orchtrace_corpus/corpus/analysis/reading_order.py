"""The order in which candidates are best read.

The likely order is that of a classifier trained on the titles, and stored abstracts, of included and excluded records:
TF-IDF of words and pairs of words, and logistic regression with balanced classes, by scikit-learn. It does not use our
own summaries, tags or reasons. A place in the order is explained by the words that weigh most in it.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import log, sqrt

from orchtrace_corpus.base.annotations import TYPE_CHECKING, Any
from orchtrace_corpus.base.errors import CommandUseError, MissingLibraryError
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Pool, Record

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.model.candidates import Candidate

FEWEST = 5
"""The fewest included and excluded records with which a classifier is trained."""

_WORDS_SHOWN = 5
_STOP = frozenset(
    "a an and are as at be by can for from how in into is it its new of on or our over than that the their these this "
    "to toward towards under via we what when which while with without".split()
)


class Place(NamedTuple):
    """The uncalibrated likelihood of inclusion of a text, and the words with the largest shares of its log odds."""

    score: float
    words: tuple[tuple[str, float], ...]


def text_of(record: Record, abstracts: Mapping[str, str]) -> str:
    """Return the title of a record, with its abstract if there is one for its arXiv id."""
    arxiv_id = record.arxiv_id if isinstance(record, Paper) else record.identifier.removeprefix("arXiv:")
    return f"{record.title}. {abstracts.get(arxiv_id or '', '')}".strip()


def training_texts(pool: Pool, abstracts: Mapping[str, str]) -> tuple[list[str], list[bool]]:
    """Return the texts of all decided records, and whether each was included."""
    excluded = [record for record in pool.exclusions if not record.promoted_to]
    records: list[Record] = [*pool.papers, *excluded]
    return [text_of(record, abstracts) for record in records], [isinstance(record, Paper) for record in records]


def likely(
    candidates: "Sequence[Candidate]", pool: Pool, abstracts: Mapping[str, str]
) -> "list[tuple[Candidate, Place]]":
    """Return the candidates in the likely order, each with its place; errors as for `rank`."""
    places = rank(*training_texts(pool, abstracts), [text_of(candidate.paper, abstracts) for candidate in candidates])
    return sorted(zip(candidates, places, strict=True), key=lambda pair: -pair[1].score)


def by_date(candidates: "Sequence[Candidate]") -> "list[Candidate]":
    """Return the candidates with the newest first, by arXiv id, which increases within a month, else by year."""

    def moment(candidate: "Candidate") -> str:
        arxiv_id = candidate.paper.arxiv_id or ""
        return f"20{arxiv_id[:2]}-{arxiv_id[2:]}" if re.match(r"\d{4}\.", arxiv_id) else str(candidate.paper.year)

    return sorted(candidates, key=moment, reverse=True)


def rank(texts: Sequence[str], included: Sequence[bool], others: Sequence[str]) -> list[Place]:
    """Return the places of `others`, by a classifier that is trained on texts that were included or not.

    Raises:
        CommandUseError: There are fewer than `FEWEST` texts of either kind.
        MissingLibraryError: scikit-learn is not installed.
    """
    if min(sum(included), len(included) - sum(included)) < FEWEST:
        message = f"the likely order needs at least {FEWEST} included and {FEWEST} excluded records to learn from"
        raise CommandUseError(message, "Write --order date.")
    if not others:
        return []
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise MissingLibraryError("the likely order", "scikit-learn", "screen") from error
    vectorizer = TfidfVectorizer(
        tokenizer=_tokens, preprocessor=str, token_pattern=None, ngram_range=(1, 2), sublinear_tf=True
    )
    matrix = vectorizer.fit_transform(texts)
    model = LogisticRegression(class_weight="balanced", C=10.0, max_iter=1000, random_state=0)
    model.fit(matrix, list(included))
    names, weights = vectorizer.get_feature_names_out(), model.coef_[0]
    placed = vectorizer.transform(others)
    scores = model.predict_proba(placed)[:, 1]
    return [Place(float(score), _words(placed[row], names, weights)) for row, score in enumerate(scores)]


def _words(row: Any, names: Any, weights: Any) -> tuple[tuple[str, float], ...]:
    """Return the words of a row of the matrix that change its score most, the strongest first."""
    pairs = zip(row.indices, row.data, strict=True)
    shares = [(str(names[column]), float(value * weights[column])) for column, value in pairs]
    rounded = [(word, round(share, 3)) for word, share in shares if abs(share) >= 0.001]
    return tuple(sorted(rounded, key=lambda pair: (-abs(pair[1]), pair[0]))[:_WORDS_SHOWN])


@lru_cache(maxsize=8192)
def _tokens(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case, without the commonest words and without plural endings."""
    words = [word for word in re.findall(r"[^\W_]+", text.casefold()) if word not in _STOP and len(word) > 1]
    return tuple(re.sub(r"(?<=..[^sui])s$", "", word) for word in words)


class Similarity:
    """Finds the records that are most similar to a text, by the cosine of TF-IDF vectors, without a library."""

    def __init__(self, records: Sequence[Record], abstracts: Mapping[str, str]) -> None:
        self._records = records
        counts = [Counter(_tokens(text_of(record, abstracts))) for record in records]
        frequencies = Counter(word for words in counts for word in words)
        self._rarity = {word: log((1 + len(records)) / (1 + count)) + 1 for word, count in frequencies.items()}
        self._vectors = [self._vector(words) for words in counts]

    def nearest(
        self, text: str, limit: int, accept: Callable[[Record], bool] = lambda _: True
    ) -> list[tuple[Record, float]]:
        """Return up to `number` records that are most similar to a text, each with its similarity above 0, up to 1."""
        vector = self._vector(Counter(_tokens(text)))
        pairs: list[tuple[Record, float]] = []
        for record, other in zip(self._records, self._vectors, strict=True):
            if accept(record):
                pairs.append((record, sum(weight * other.get(word, 0.0) for word, weight in vector.items())))
        pairs.sort(key=lambda pair: -pair[1])
        return [(record, likeness) for record, likeness in pairs[:limit] if likeness > 0]

    def _vector(self, words: Counter[str]) -> dict[str, float]:
        weights = {word: (1 + log(count)) * self._rarity.get(word, 0.0) for word, count in words.items()}
        length = sqrt(sum(weight * weight for weight in weights.values()))
        return {word: weight / length for word, weight in weights.items()} if length else {}


def is_excluded(record: Record) -> bool:
    """Return True for an exclusion that was not included later."""
    return isinstance(record, Exclusion) and not record.promoted_to
