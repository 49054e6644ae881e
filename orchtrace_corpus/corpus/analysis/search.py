"""Finds records by words, by key and by identifier, whatever their case and accents, and sorts records."""

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


def folded(text: str) -> str:
    """Return a text without case and accents, for comparing."""
    if text.isascii():
        return text.lower()
    return "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))


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
_STEM, _INSIDE = 0.95, 0.4
"""The weights of another form of a word (`stops` for `stopping`) and of a longer word (`MAGRPO` for `GRPO`)."""


class Found(NamedTuple):
    """A place in which a word of a search was found.

    Attributes:
        field: The field of a tag, facet or definition; else empty.
        value: The record's term in this field, or the level of a term with levels; empty if there are several.
        is_same: Whether it is the exact word, not another form of it or a part of a longer one.
    """

    word: str
    part: SearchPart
    field: str = ""
    value: str = ""
    is_same: bool = True


RecordType = TypeVar("RecordType")


class Hit(NamedTuple, Generic[RecordType]):
    """A record with the places of the words of a search, in their order, and the words that it does not have."""

    record: RecordType
    found: tuple[Found, ...]
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
    """Return the papers, exclusions and candidates that have every word, or else those that have most of the words.

    A word is found in each of its forms, such as `stop` in `stopping`, and inside longer words. The best records come
    first: a word weighs by the part in which it is found, and more if few records have it; adjacent words weigh half
    as much again. Characters other than letters and digits separate words.
    """
    wanted = [(word, stem(word)) for text in words for word in _WORD.findall(folded(text))]
    texts_of = _text_reader(pool.taxonomy)
    papers = _scored(pool.papers, texts_of, wanted)
    excluded = _scored(pool.exclusions, texts_of, wanted)
    awaiting = _scored(candidates, texts_of, wanted)
    least = min((len(hit.missing) for hits in (papers, excluded, awaiting) for hit in hits), default=0)

    def best(hits: Sequence[Hit[RecordType]]) -> tuple[Hit[RecordType], ...]:
        return tuple(hit for hit in hits if len(hit.missing) == least)

    return best(papers), best(excluded), best(awaiting)


def direct(hits: Sequence[Hit[RecordType]]) -> tuple[Hit[RecordType], ...]:
    """Return the hits that have a word elsewhere than in the name of a field or in a definition."""
    indirect = (SearchPart.FACET, SearchPart.DEFINITION)
    return tuple(hit for hit in hits if any(place.part not in indirect for place in hit.found))


def near_words(
    pool: Pool, candidates: "Sequence[Candidate]", words: Sequence[str], only_swapped: Container[str] = ()
) -> tuple[str, ...]:
    """Return words of records near unknown words: with two letters swapped, else the most similar one if it may be."""
    from difflib import get_close_matches  # only after a mistake

    texts_of = _text_reader(pool.taxonomy)
    texts = (text for record in (*pool.records, *candidates) for text in texts_of(record))
    record_words = dict.fromkeys(word for text in texts for word in _WORD.findall(text.text))
    near: list[str] = []
    for word in (word for text in words for word in _WORD.findall(folded(text)) if word not in record_words):
        swapped = (word[:n] + word[n : n + 2][::-1] + word[n + 2 :] for n in range(len(word) - 1))
        meant = [other for other in swapped if other in record_words]
        near += meant if meant or word in only_swapped else get_close_matches(word, record_words, n=1, cutoff=0.8)
    return tuple(near)


_WORD = re.compile(r"[^\W_]+")
_BARE_ENDINGS = (
    "atively ations ically izations isations ization isation ation ative ators ating izers izing ising ments ator ated "
    "ates izer ized izes ised ises ment ical ings ate ize ise ing ies ied ers ed er es ly s"
)
ENDINGS = (("ifications", "if"), ("ification", "if"), *((ending, "") for ending in _BARE_ENDINGS.split()))
"""The endings that `stem` replaces; the first that leaves three letters counts."""


def stem(word: str) -> str:
    """Return the beginning that the forms of a folded English word share: `termin` for `termination`."""
    if not word.isascii() or not word.isalpha():
        return word
    for ending, rest in ENDINGS:
        if not word.endswith(ending) or word.endswith(("ss", "eed")):
            continue
        root = word[: -len(ending)] + rest
        if len(root) >= 3 and not {*"aeiouy"}.isdisjoint(root):
            is_doubled = len(root) > 3 and root[-1] == root[-2] and root[-1] not in "lsz"
            word = root[:-1] if is_doubled else root
            break
    return word[:-1] if len(word) > 3 and word[-1] in "eiy" else word


def _scored(
    records: Sequence[RecordType], texts_of: Callable[[RecordType], Iterable[_Text]], wanted: Sequence[tuple[str, str]]
) -> tuple[Hit[RecordType], ...]:
    """Return the records that have some of the words, the best first."""

    @cache
    def compare(word: str, root: str, other: str) -> float:
        if stem(other) == root:
            return 1.0 if other == word else _STEM
        if word not in other or (len(word) <= 2 and word.isascii()):
            return 0.0
        return 0.9 if other.startswith(word) else _INSIDE

    entries: list[tuple[RecordType, dict[int, tuple[float, Found]], float]] = []
    for record in records:
        best: dict[int, tuple[float, Found]] = {}  # the weight and place of each word, by its index
        adjacent = 0.0
        for text in texts_of(record):
            weight = _WEIGHTS[text.part] - text.loss
            contained = [index for index, (_, root) in enumerate(wanted) if root in text.text]
            others = _WORD.findall(text.text) if contained else []
            places: dict[int, set[int]] = {}
            for index in contained:
                word, root = wanted[index]
                most = 0.0
                for place, other in enumerate(others):
                    if similarity := compare(word, root, other):
                        most = max(most, similarity)
                        places.setdefault(index, set()).add(place)
                if most and (index not in best or weight * most > best[index][0]):
                    best[index] = (weight * most, Found(word, text.part, text.field, text.value, most == 1.0))
            follows = any({place + 1 for place in places[index]} & places.get(index + 1, set()) for index in places)
            adjacent = max(adjacent, weight * follows)
        if best:
            entries.append((record, dict(sorted(best.items())), adjacent))
    counts = Counter(index for _, best, _ in entries for index in best)
    rarity = [log(1 + len(records) / (counts[index] or 1)) for index in range(len(wanted))]
    ranked = []
    for record, best, adjacent in entries:
        score = sum(weight * rarity[index] for index, (weight, _) in best.items()) + adjacent / 2 * max(rarity)
        missing = tuple(word for index, (word, _) in enumerate(wanted) if index not in best)
        ranked.append((len(missing), -score, Hit(record, tuple(found for _, found in best.values()), missing)))
    ranked.sort(key=lambda entry: entry[:2])
    return tuple(hit for _, _, hit in ranked)


Searched: TypeAlias = Mapping[SearchPart, Sequence[RecordField]]
"""The fields of papers by the part of a record that they are searched as."""


def searched(taxonomy: Taxonomy) -> Searched:
    """Return the searched fields of papers by their part of a record."""
    parts: dict[SearchPart, list[RecordField]] = {}
    for field in taxonomy.paper_fields:
        if field.search is not None:
            parts.setdefault(field.search, []).append(field)
    return parts


def _text_reader(taxonomy: Taxonomy) -> "Callable[[Paper | Exclusion | Candidate], Iterator[_Text]]":
    """Return the function that yields the texts of a record."""
    facets = {facet.field: facet for facet in taxonomy.papers}
    exclusion_facets = {facet.field: facet for facet in taxonomy.exclusions}
    fields_by_part = searched(taxonomy)

    def texts_of(record: "Paper | Exclusion | Candidate") -> Iterator[_Text]:
        if isinstance(record, Exclusion):
            yield _text(SearchPart.TITLE, record.title)
            yield _text(SearchPart.IDENTIFIER, record.id, record.identifier)
            yield _text(SearchPart.REASON, record.reason, record.near_miss)
            yield from _tag_texts(record.tags, exclusion_facets)
        elif isinstance(record, Paper):
            yield from _paper_texts(record, facets, fields_by_part)
        else:
            yield from _paper_texts(record.paper, facets, fields_by_part)
            yield _text(SearchPart.REASON, record.reason)
            for reading in record.readings:
                yield _text(SearchPart.EVIDENCE, reading.note)

    return texts_of


def _paper_texts(paper: Paper, facets: Mapping[str, Facet], fields_by_part: Searched) -> Iterator[_Text]:
    for part in (SearchPart.TITLE, SearchPart.KEY, SearchPart.IDENTIFIER):
        yield _field_text(part, paper, fields_by_part)
    yield from _tag_texts(paper.tags, facets)
    for part in (SearchPart.NAME, SearchPart.SUMMARY, SearchPart.METHOD):
        yield _field_text(part, paper, fields_by_part)
    for item in paper.evidence:
        yield _text(SearchPart.EVIDENCE, item.note)
    yield _field_text(SearchPart.NOTES, paper, fields_by_part)


def _field_text(part: SearchPart, paper: Paper, fields_by_part: Searched) -> _Text:
    """Return the fields of one part of a paper as one text, with the label of a flag that is set."""
    texts: list[str] = []
    for field in fields_by_part.get(part, ()):
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
        whole = tag if isinstance(tag, str) else ""
        yield _text(SearchPart.FACET, field, facet.label, field=field, value=whole)
        if is_defined:
            yield _text(SearchPart.DEFINITION, facet.definition, field=field, value=whole)
        levels = tag if isinstance(tag, Mapping) else dict.fromkeys((tag,) if isinstance(tag, str) else tag, "")
        for name, level in levels.items():
            term = terms.get(name)
            if term is None:
                continue
            tag_field, value = (name, level) if level else (field, name)
            names = (term.id, term.label, term.code, level)
            loss = ranks.get(level, 0) / 2  # a paper that trains a decision comes before others that take it
            yield _text(SearchPart.TAG, *names, field=tag_field, value=value, loss=loss)
            yield _text(SearchPart.SYNONYM, *term.synonyms, field=tag_field, value=value, loss=loss)
            if is_defined:
                yield _text(SearchPart.DEFINITION, term.definition, field=tag_field, value=value)


def texts_beside_tags(paper: Paper, fields_by_part: Searched) -> str:
    """Return the searched texts of a paper without those of its tags, without case and accents."""
    return "\n".join(text.text for text in _paper_texts(paper, {}, fields_by_part) if text.text)


def texts_of_tag(facet: Facet, tag: Tag) -> str:
    """Return the searched texts of a tag, without case and accents."""
    return "\n".join(text.text for text in _tag_texts({facet.field: tag}, {facet.field: facet}) if text.text)


def _text(part: SearchPart, *texts: str | None, field: str = "", value: str = "", loss: float = 0.0) -> _Text:
    return _Text(part, folded("\n".join(text for text in texts if text)), field, value, loss)


def find_records(pool: Pool, name: str) -> tuple[Record, ...]:
    """Return the records with a key or an exclusion id in any case, an identifier in any spelling, or a URL."""
    identifier = recognise(name)
    address = name.strip().rstrip("/")
    wanted = name.strip().casefold() or None

    def is_called(record: Record) -> bool:
        urls = record.urls if isinstance(record, Paper) else (record.url,)
        cite_key = getattr(record, "cite_key", None) or ""
        if wanted in (record.name.casefold(), cite_key.casefold()) or address in (url.rstrip("/") for url in urls):
            return True
        if isinstance(record, Paper):
            return identifier is not None and getattr(record, identifier.kind.value) == identifier.value
        return identifier is not None and identifier in (recognise(record.identifier), recognise(record.url))

    return tuple(record for record in pool.records if is_called(record))


def nearest_records(pool: Pool, name: str) -> tuple[tuple[str, str], ...]:
    """Return the keys and titles of three records that a wrong name may stand for, by part, spelling and title."""
    from difflib import SequenceMatcher, get_close_matches  # only after a mistake

    wanted = folded(name.strip())
    if not wanted:
        return ()
    titles = {record.name: record.title for record in pool.records}
    folded_titles = {key: folded(title) for key, title in titles.items()}
    nearest = [key for key, title in folded_titles.items() if wanted in folded(key) or wanted in title]
    keys = {folded(key): key for key in titles}
    nearest += [keys[near] for near in get_close_matches(wanted, keys, n=3, cutoff=0.6)]
    identifier = recognise(name)
    if identifier is not None and identifier.kind is IdentifierKind.ARXIV:
        ids = {paper.arxiv_id: paper.key for paper in pool.papers if paper.arxiv_id}
        nearest += [ids[near] for near in get_close_matches(identifier.value, ids, n=3, cutoff=0.85)]
    nearest += [k for k, title in folded_titles.items() if SequenceMatcher(None, wanted, title).quick_ratio() > 0.9]
    return tuple((key, titles[key]) for key in list(dict.fromkeys(nearest))[:3])


def describe_nearest_records(pool: Pool, name: str) -> str:
    """Return the second line of a message about an unknown name: the nearest records, or where to look."""
    near = [f"{key} ({title})" for key, title in nearest_records(pool, name)]
    return f"Did you mean: {', '.join(near)}?" if near else "Try: corpus search WORD, corpus terms TERM or corpus list."


def sort_records(records: Sequence[RecordType], order: str, attributes: Attributes) -> tuple[RecordType, ...]:
    """Sort records by the name of an attribute, or by `-name` in descending order; those without a value come last.

    Terms sort in the taxonomy's order, numbers as numbers, text in any case.
    """
    attribute = find(order.removeprefix("-"), attributes, "column")
    valued = [record for record in records if attribute.values(record)]
    if attribute.terms:
        rank: Callable[[str], int | float | str] = attribute.allowed.index
    else:
        rank = float if attribute.kind is ValueKind.NUMBER else str.casefold
    valued.sort(key=lambda record: tuple(map(rank, attribute.values(record))), reverse=order.startswith("-"))
    return (*valued, *(record for record in records if not attribute.values(record)))
