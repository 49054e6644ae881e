"""Finds records by words, by key and by identifier, without regard to case and accents, and sorts records."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from math import log

from orchtrace_corpus.base.annotations import TYPE_CHECKING, Generic, TypeAlias, TypeVar
from orchtrace_corpus.base.identifiers import IdentifierKind, recognise
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.analysis.attributes import Attributes, ValueKind, find
from orchtrace_corpus.corpus.model.field_table import FieldKind, RecordField, SearchPart, field_label, value_texts
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Pool, Record, Tag
from orchtrace_corpus.corpus.model.taxonomy import Facet, Role, Taxonomy

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.model.candidates import Candidate


def fold(text: str) -> str:
    """Return a text without case and accents, so that spellings can be compared."""
    if text.isascii():
        return text.lower()
    characters = unicodedata.normalize("NFKD", text.casefold())  # accents are characters of their own here
    return "".join(character for character in characters if not unicodedata.combining(character))


_WEIGHTS = {
    SearchPart.TITLE: 10.0,
    SearchPart.KEY: 9.0,
    SearchPart.IDENTIFIER: 8.0,
    SearchPart.TAG: 7.0,
    SearchPart.SYNONYM: 6.5,
    SearchPart.NAME: 6.0,
    SearchPart.SUMMARY: 5.0,
    SearchPart.METHOD: 5.0,
    SearchPart.FACET: 3.0,
    SearchPart.EVIDENCE: 3.0,
    SearchPart.REASON: 3.0,
    SearchPart.NOTES: 2.0,
    SearchPart.DEFINITION: 1.5,
}
"""The weight of a word by the part of a record in which it is found."""

_SAME_STEM = 0.95  # `stops` for `stopping`
_BEGINNING = 0.9  # of a longer word: `orchestra` for `orchestration`
_INSIDE = 0.4  # a longer word: `GRPO` for `MAGRPO`


class WordMatch(NamedTuple):
    """A word of a search, and the part of a record in which it was found.

    Attributes:
        field: The field of a tag, facet or definition; else empty.
        value: The record's term in this field, or the level of a term with levels; empty if there are several.
        is_same: True for the exact word; False for another form of it, or a part of a longer word.
    """

    word: str
    part: SearchPart
    field: str = ""
    value: str = ""
    is_same: bool = True


RecordType = TypeVar("RecordType")


class Hit(NamedTuple, Generic[RecordType]):
    """A record with the best match of each word of a search, in their order, and the words that it does not have."""

    record: RecordType
    matches: tuple[WordMatch, ...]
    missing: tuple[str, ...] = ()


class _Text(NamedTuple):
    """A text of a record, without case and accents; `loss` is subtracted from the weight of its part."""

    part: SearchPart
    text: str
    field: str = ""
    value: str = ""
    loss: float = 0.0


def search(
    pool: Pool, candidates: "Sequence[Candidate]", words: Sequence[str]
) -> "tuple[tuple[Hit[Paper], ...], tuple[Hit[Exclusion], ...], tuple[Hit[Candidate], ...]]":
    """Return the papers, exclusions and candidates that have every word; if none has, the records with most words.

    A word is found in each of its forms, such as `stop` in `stopping`, and inside longer words. The best records come
    first. The weight of a word depends on the part in which it is found, and is larger if few records have the word;
    adjacent words add half of their weight. Characters other than letters and digits separate words.
    """
    wanted = [(word, stem(word)) for text in words for word in _WORD.findall(fold(text))]
    texts_of = _text_reader(pool.taxonomy)
    papers = _rank(pool.papers, texts_of, wanted)
    excluded = _rank(pool.exclusions, texts_of, wanted)
    awaiting = _rank(candidates, texts_of, wanted)
    missing_counts = [len(hit.missing) for hits in (papers, excluded, awaiting) for hit in hits]
    fewest = min(missing_counts, default=0)

    def best(hits: Sequence[Hit[RecordType]]) -> tuple[Hit[RecordType], ...]:
        return tuple(hit for hit in hits if len(hit.missing) == fewest)

    return best(papers), best(excluded), best(awaiting)


def direct_hits(hits: Sequence[Hit[RecordType]]) -> tuple[Hit[RecordType], ...]:
    """Return the hits that have a word elsewhere than in the name of a field or in a definition."""
    indirect = (SearchPart.FACET, SearchPart.DEFINITION)
    return tuple(hit for hit in hits if any(match.part not in indirect for match in hit.matches))


def near_words(
    pool: Pool, candidates: "Sequence[Candidate]", words: Sequence[str], only_swapped: Container[str] = ()
) -> tuple[str, ...]:
    """Return words of records that are similar to words of a search, if no record has the latter.

    Words with two adjacent letters swapped come before others. The words in `only_swapped` have no other similar words.
    """
    from difflib import get_close_matches  # only after a mistake

    texts_of = _text_reader(pool.taxonomy)
    texts = (text for record in (*pool.records, *candidates) for text in texts_of(record))
    record_words = dict.fromkeys(word for text in texts for word in _WORD.findall(text.text))
    similar: list[str] = []
    for word in (word for text in words for word in _WORD.findall(fold(text))):
        if word in record_words:
            continue
        swapped = [word[:index] + word[index + 1] + word[index] + word[index + 2 :] for index in range(len(word) - 1)]
        near = [other for other in swapped if other in record_words]
        if not near and word not in only_swapped:
            near = get_close_matches(word, record_words, n=1, cutoff=0.8)
        similar += near
    return tuple(similar)


_WORD = re.compile(r"[^\W_]+")
_BARE_ENDINGS = (
    "atively ations ically izations isations ization isation ation ative ators ating izers izing ising ments ator ated "
    "ates izer ized izes ised ises ment ical ings ate ize ise ing ies ied ers ed er es ly s"
)
ENDINGS = (("ifications", "if"), ("ification", "if"), *((ending, "") for ending in _BARE_ENDINGS.split()))
"""The endings that `stem` looks for, in this order, each with the text that replaces it."""


def stem(word: str) -> str:
    """Return the beginning that the forms of a folded English word share: `termin` for `termination`."""
    if not word.isascii() or not word.isalpha():
        return word
    for ending, replacement in ENDINGS:
        if not word.endswith(ending) or word.endswith(("ss", "eed")):
            continue
        root = word[: -len(ending)] + replacement
        has_vowel = not {*"aeiouy"}.isdisjoint(root)
        if len(root) >= 3 and has_vowel:
            is_doubled = len(root) > 3 and root[-1] == root[-2] and root[-1] not in "lsz"
            word = root[:-1] if is_doubled else root
            break
    has_final_vowel = len(word) > 3 and word[-1] in "eiy"
    return word[:-1] if has_final_vowel else word


def _rank(
    records: Sequence[RecordType], texts_of: Callable[[RecordType], Iterable[_Text]], wanted: Sequence[tuple[str, str]]
) -> tuple[Hit[RecordType], ...]:
    """Return the records that have some of the words, the best first; `wanted` has each word with its stem."""

    @cache  # texts have many words in common
    def compare(word: str, root: str, other: str) -> float:
        """Return how well a word of a text matches a word of the search with its stem, from 0 to 1."""
        if stem(other) == root:
            return 1.0 if other == word else _SAME_STEM
        if word not in other or (len(word) <= 2 and word.isascii()):
            return 0.0
        return _BEGINNING if other.startswith(word) else _INSIDE

    entries: list[tuple[RecordType, dict[int, tuple[float, WordMatch]], float]] = []
    for record in records:
        best: dict[int, tuple[float, WordMatch]] = {}  # weight and match, by the index of the word in `wanted`
        adjacent_weight = 0.0  # the largest weight of a text in which two words are adjacent
        for text in texts_of(record):
            weight = _WEIGHTS[text.part] - text.loss
            contained = [index for index, (_, root) in enumerate(wanted) if root in text.text]  # fast, and mostly empty
            text_words = _WORD.findall(text.text) if contained else []
            positions: dict[int, set[int]] = {}  # in the text, by the index of the word
            for index in contained:
                word, root = wanted[index]
                highest = 0.0
                for position, text_word in enumerate(text_words):
                    if similarity := compare(word, root, text_word):
                        highest = max(highest, similarity)
                        positions.setdefault(index, set()).add(position)
                is_better = index not in best or weight * highest > best[index][0]
                if highest and is_better:
                    match = WordMatch(word, text.part, text.field, text.value, is_same=highest == 1.0)
                    best[index] = (weight * highest, match)
            for index, word_positions in positions.items():
                following = {position + 1 for position in word_positions}
                if not following.isdisjoint(positions.get(index + 1, ())):
                    adjacent_weight = max(adjacent_weight, weight)
        if best:
            entries.append((record, dict(sorted(best.items())), adjacent_weight))
    record_counts = Counter(index for _, best, _ in entries for index in best)
    rarity = [log(1 + len(records) / (record_counts[index] or 1)) for index in range(len(wanted))]
    ranked = []
    for record, best, adjacent_weight in entries:
        score = sum(weight * rarity[index] for index, (weight, _) in best.items()) + adjacent_weight / 2 * max(rarity)
        missing = tuple(word for index, (word, _) in enumerate(wanted) if index not in best)
        hit = Hit(record, tuple(match for _, match in best.values()), missing)
        ranked.append((len(missing), -score, hit))
    ranked.sort(key=lambda entry: entry[:2])
    return tuple(hit for _, _, hit in ranked)


FieldsByPart: TypeAlias = Mapping[SearchPart, Sequence[RecordField]]


def fields_by_part(taxonomy: Taxonomy) -> FieldsByPart:
    """Return the fields of papers that are searched, by the part of a record that they belong to."""
    parts: dict[SearchPart, list[RecordField]] = {}
    for field in taxonomy.paper_fields:
        if field.search is not None:
            parts.setdefault(field.search, []).append(field)
    return parts


def _text_reader(taxonomy: Taxonomy) -> "Callable[[Paper | Exclusion | Candidate], Iterator[_Text]]":
    """Return the function that yields the texts of a record."""
    facets = {facet.field: facet for facet in taxonomy.papers}
    exclusion_facets = {facet.field: facet for facet in taxonomy.exclusions}
    paper_fields = fields_by_part(taxonomy)

    def texts_of(record: "Paper | Exclusion | Candidate") -> Iterator[_Text]:
        if isinstance(record, Exclusion):
            yield _text(SearchPart.TITLE, record.title)
            yield _text(SearchPart.IDENTIFIER, record.id, record.identifier)
            yield _text(SearchPart.REASON, record.reason, record.near_miss)
            yield from _tag_texts(record.tags, exclusion_facets)
        elif isinstance(record, Paper):
            yield from _paper_texts(record, facets, paper_fields)
        else:
            yield from _paper_texts(record.paper, facets, paper_fields)
            yield _text(SearchPart.REASON, record.reason)
            for reading in record.readings:
                yield _text(SearchPart.EVIDENCE, reading.note)

    return texts_of


def _paper_texts(paper: Paper, facets: Mapping[str, Facet], fields: FieldsByPart) -> Iterator[_Text]:
    for part in (SearchPart.TITLE, SearchPart.KEY, SearchPart.IDENTIFIER):
        yield _field_text(part, paper, fields)
    yield from _tag_texts(paper.tags, facets)
    for part in (SearchPart.NAME, SearchPart.SUMMARY, SearchPart.METHOD):
        yield _field_text(part, paper, fields)
    for item in paper.evidence:
        yield _text(SearchPart.EVIDENCE, item.note)
    yield _field_text(SearchPart.NOTES, paper, fields)


def _field_text(part: SearchPart, paper: Paper, fields: FieldsByPart) -> _Text:
    """Return the fields of one part of a paper as one text; a flag that is set has its label as text."""
    texts: list[str] = []
    for field in fields.get(part, ()):
        value = paper.value(field.name)
        if field.kind is not FieldKind.FLAG:
            texts += value_texts(value)
        elif value:
            texts.append(field_label(field))
    return _text(part, *texts)


def _tag_texts(tags: Mapping[str, Tag], facets: Mapping[str, Facet]) -> Iterator[_Text]:
    """Yield the names of a record's tags, and the definitions of axes and of facets with evidence."""
    for field, tag in tags.items():
        facet = facets.get(field)
        if facet is None or not tag or tag == NOT_APPLICABLE:
            continue
        terms = {term.id: term for term in facet.terms}
        ranks = {level.id: rank for rank, level in enumerate(facet.levels)}
        is_defined = facet.role is Role.AXIS or facet.sourced
        single_term = tag if isinstance(tag, str) else ""
        yield _text(SearchPart.FACET, field, facet.label, field=field, value=single_term)
        if is_defined:
            yield _text(SearchPart.DEFINITION, facet.definition, field=field, value=single_term)
        terms_of_tag = (tag,) if isinstance(tag, str) else tag
        level_by_term = tag if isinstance(tag, Mapping) else dict.fromkeys(terms_of_tag, "")
        for name, level in level_by_term.items():
            term = terms.get(name)
            if term is None:
                continue
            tag_field, value = (name, level) if level else (field, name)
            names = (term.id, term.label, term.code, level)
            loss = ranks.get(level, 0) / 2  # a paper with the first level, such as `explicit`, comes before others
            yield _text(SearchPart.TAG, *names, field=tag_field, value=value, loss=loss)
            yield _text(SearchPart.SYNONYM, *term.synonyms, field=tag_field, value=value, loss=loss)
            if is_defined:
                yield _text(SearchPart.DEFINITION, term.definition, field=tag_field, value=value)


def text_without_tags(paper: Paper, fields: FieldsByPart) -> str:
    """Return the searched texts of a paper except those of its tags, folded and joined by line breaks."""
    return "\n".join(text.text for text in _paper_texts(paper, {}, fields) if text.text)


def text_of_tag(facet: Facet, tag: Tag) -> str:
    """Return the searched texts of a tag, folded and joined by line breaks."""
    return "\n".join(text.text for text in _tag_texts({facet.field: tag}, {facet.field: facet}) if text.text)


def _text(part: SearchPart, *texts: str | None, field: str = "", value: str = "", loss: float = 0.0) -> _Text:
    return _Text(part, fold("\n".join(text for text in texts if text)), field, value, loss)


def find_records(pool: Pool, name: str) -> tuple[Record, ...]:
    """Return the records with a key or an exclusion id in any case, an identifier in any spelling, or a URL."""
    identifier = recognise(name)
    address = name.strip().rstrip("/")
    wanted = name.strip().casefold() or None  # None equals no key

    def is_called(record: Record) -> bool:
        urls = record.urls if isinstance(record, Paper) else (record.url,)
        cite_key = getattr(record, "cite_key", None) or ""
        if wanted in (record.name.casefold(), cite_key.casefold()):
            return True
        if address in [url.rstrip("/") for url in urls]:
            return True
        if identifier is None:
            return False
        if isinstance(record, Paper):
            return bool(getattr(record, identifier.kind.value) == identifier.value)
        return identifier in (recognise(record.identifier), recognise(record.url))

    return tuple(record for record in pool.records if is_called(record))


def nearest_records(pool: Pool, name: str) -> tuple[tuple[str, str], ...]:
    """Return the keys and titles of up to three records that a wrong name may stand for.

    Records that contain the name come first, then those with a similar key, a similar arXiv id, or a similar title.
    """
    from difflib import SequenceMatcher, get_close_matches  # only after a mistake

    wanted = fold(name.strip())
    if not wanted:
        return ()
    titles = {record.name: record.title for record in pool.records}
    folded_titles = {key: fold(title) for key, title in titles.items()}
    nearest = [key for key, title in folded_titles.items() if wanted in fold(key) or wanted in title]
    keys_by_folded_key = {fold(key): key for key in titles}
    nearest += [keys_by_folded_key[near] for near in get_close_matches(wanted, keys_by_folded_key, n=3, cutoff=0.6)]
    identifier = recognise(name)
    if identifier is not None and identifier.kind is IdentifierKind.ARXIV:
        keys_by_id = {paper.arxiv_id: paper.key for paper in pool.papers if paper.arxiv_id}
        nearest += [keys_by_id[near] for near in get_close_matches(identifier.value, keys_by_id, n=3, cutoff=0.85)]
    for key, title in folded_titles.items():
        if SequenceMatcher(None, wanted, title).quick_ratio() > 0.9:
            nearest.append(key)
    return tuple((key, titles[key]) for key in list(dict.fromkeys(nearest))[:3])


def describe_nearest_records(pool: Pool, name: str) -> str:
    """Return the second line of a message about an unknown name: the nearest records, or commands to find some."""
    near = [f"{key} ({title})" for key, title in nearest_records(pool, name)]
    if near:
        return f"Did you mean: {', '.join(near)}?"
    return "Try: corpus search WORD, corpus terms TERM or corpus list."


def sort_records(records: Sequence[RecordType], order: str, attributes: Attributes) -> tuple[RecordType, ...]:
    """Sort records by the name of an attribute, or by `-name` in descending order; those without a value come last.

    Terms sort in the taxonomy's order, numbers as numbers, text in any case.
    """
    attribute = find(order.removeprefix("-"), attributes, "column")
    with_value = [record for record in records if attribute.values(record)]
    without_value = [record for record in records if not attribute.values(record)]
    if attribute.terms:
        rank: Callable[[str], int | float | str] = attribute.allowed.index
    else:
        rank = float if attribute.kind is ValueKind.NUMBER else str.casefold
    with_value.sort(key=lambda record: tuple(map(rank, attribute.values(record))), reverse=order.startswith("-"))
    return (*with_value, *without_value)
