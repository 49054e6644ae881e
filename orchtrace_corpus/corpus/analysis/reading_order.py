"""The order in which candidates are best read: by date, or by their likelihood of inclusion.

The likelihood comes from a classifier that is trained on the titles, and stored abstracts, of included and excluded
records: TF-IDF of words and pairs of words, and logistic regression with balanced classes, by scikit-learn. Summaries,
tags and reasons are not used. The words that weigh most for a candidate explain its rank.
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
"""The smallest number of included records, and of excluded ones, to train a classifier with."""

_WORDS_SHOWN = 5
_STOP_WORDS = frozenset(
    "a an and are as at be by can for from how in into is it its new of on or our over than that the their these this "
    "to toward towards under via we what when which while with without".split()
)


class Score(NamedTuple):
    """The likelihood that a text is included, and the words that explain it.

    Attributes:
        likelihood: From 0 to 1, uncalibrated.
        words: The words with the largest shares of the log odds, with these shares, largest first.
    """

    likelihood: float
    words: tuple[tuple[str, float], ...]


def text_of(record: Record, abstracts: Mapping[str, str]) -> str:
    """Return the title of a record, with its abstract if there is one; `abstracts` has them by arXiv id."""
    arxiv_id = record.arxiv_id if isinstance(record, Paper) else record.identifier.removeprefix("arXiv:")
    return f"{record.title}. {abstracts.get(arxiv_id or '', '')}".strip()


def training_texts(pool: Pool, abstracts: Mapping[str, str]) -> tuple[list[str], list[bool]]:
    """Return the texts of papers and exclusions, and for each text True if the record was included."""
    excluded = [record for record in pool.exclusions if not record.promoted_to]
    records: list[Record] = [*pool.papers, *excluded]
    texts = [text_of(record, abstracts) for record in records]
    return texts, [isinstance(record, Paper) for record in records]


def likely(
    candidates: "Sequence[Candidate]", pool: Pool, abstracts: Mapping[str, str]
) -> "list[tuple[Candidate, Score]]":
    """Return the candidates with their scores, the likeliest first; raise the same errors as `rank`."""
    texts, included = training_texts(pool, abstracts)
    scores = rank(texts, included, [text_of(candidate.paper, abstracts) for candidate in candidates])
    return sorted(zip(candidates, scores, strict=True), key=lambda pair: -pair[1].likelihood)


def by_date(candidates: "Sequence[Candidate]") -> "list[Candidate]":
    """Return the candidates with the newest first, by arXiv id or else by year."""

    def date(candidate: "Candidate") -> str:
        arxiv_id = candidate.paper.arxiv_id or ""
        if re.match(r"\d{4}\.", arxiv_id):  # year and month, and a number that increases within the month
            return f"20{arxiv_id[:2]}-{arxiv_id[2:]}"
        return str(candidate.paper.year)

    return sorted(candidates, key=date, reverse=True)


def rank(texts: Sequence[str], included: Sequence[bool], others: Sequence[str]) -> list[Score]:
    """Train a classifier on texts that were `included` or not, and return the scores of `others`.

    Raises:
        CommandUseError: Fewer than `FEWEST` texts were included, or fewer were not.
        MissingLibraryError: scikit-learn is not installed.
    """
    included_count = sum(included)
    if min(included_count, len(included) - included_count) < FEWEST:
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
    names = vectorizer.get_feature_names_out()
    weights = model.coef_[0]  # by column of the matrix, like the names
    vectors = vectorizer.transform(others)
    likelihoods = model.predict_proba(vectors)[:, 1]  # column 1 is the likelihood of inclusion
    return [Score(float(value), _words(vectors[row], names, weights)) for row, value in enumerate(likelihoods)]


def _words(row: Any, names: Any, weights: Any) -> tuple[tuple[str, float], ...]:
    """Return the words of a row of the matrix that change its score most, with their shares, largest first."""
    shares = {}
    for column, value in zip(row.indices, row.data, strict=True):
        share = float(value * weights[column])
        if abs(share) >= 0.001:
            shares[str(names[column])] = round(share, 3)
    strongest = sorted(shares.items(), key=lambda pair: (-abs(pair[1]), pair[0]))
    return tuple(strongest[:_WORDS_SHOWN])


@lru_cache(maxsize=8192)
def _tokens(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case, without stop words and without plural endings."""
    words = [word for word in re.findall(r"[^\W_]+", text.casefold()) if word not in _STOP_WORDS and len(word) > 1]
    return tuple(re.sub(r"(?<=..[^sui])s$", "", word) for word in words)


class Similarity:
    """Finds the records that are most similar to a text, by the cosine of TF-IDF vectors; needs no library."""

    def __init__(self, records: Sequence[Record], abstracts: Mapping[str, str]) -> None:
        self._records = records
        counts = [Counter(_tokens(text_of(record, abstracts))) for record in records]
        record_counts = Counter(word for words in counts for word in words)  # the records that have a word
        self._rarity = {word: log((1 + len(records)) / (1 + count)) + 1 for word, count in record_counts.items()}
        self._vectors = [self._vector(words) for words in counts]

    def nearest(
        self, text: str, limit: int, accept: Callable[[Record], bool] = lambda _: True
    ) -> list[tuple[Record, float]]:
        """Return up to `limit` accepted records with their similarity to a text, above 0 and up to 1, largest first."""
        vector = self._vector(Counter(_tokens(text)))
        pairs: list[tuple[Record, float]] = []
        for record, other in zip(self._records, self._vectors, strict=True):
            if accept(record):
                similarity = sum(weight * other.get(word, 0.0) for word, weight in vector.items())
                pairs.append((record, similarity))
        pairs.sort(key=lambda pair: -pair[1])
        return [(record, similarity) for record, similarity in pairs[:limit] if similarity > 0]

    def _vector(self, word_counts: Counter[str]) -> dict[str, float]:
        """Return the weights of words, scaled to length 1; empty if no record has any of them."""
        weights = {word: (1 + log(count)) * self._rarity.get(word, 0.0) for word, count in word_counts.items()}
        length = sqrt(sum(weight * weight for weight in weights.values()))
        return {word: weight / length for word, weight in weights.items()} if length else {}


def is_excluded(record: Record) -> bool:
    """Return True for an exclusion that did not become a paper later."""
    return isinstance(record, Exclusion) and not record.promoted_to
