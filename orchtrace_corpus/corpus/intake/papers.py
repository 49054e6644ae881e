"""Records of new papers: from metadata or fields, with a proposed key; and messages about papers that are known.

Tags and the summary stay open: only a person can decide them.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from itertools import chain, count

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import RULES, Severity, quote
from orchtrace_corpus.base.identifiers import (
    ADDRESSES,
    Identifier,
    IdentifierKind,
    arxiv_year,
    is_normal,
    recognise,
    recognise_url,
)
from orchtrace_corpus.corpus.analysis.attributes import paper_attributes
from orchtrace_corpus.corpus.analysis.matching import LONGEST_NAME, Match, Sign, identifier_text, identifiers_of
from orchtrace_corpus.corpus.analysis.query import parse_conditions
from orchtrace_corpus.corpus.edit.fixes import FIXES
from orchtrace_corpus.corpus.formats import Item, complete_item
from orchtrace_corpus.corpus.model.author_names import bibliographic, people
from orchtrace_corpus.corpus.model.fields import is_cite_key, is_key, url_problem
from orchtrace_corpus.corpus.model.metadata import Metadata, suspected_withdrawal
from orchtrace_corpus.corpus.model.record_fields import Value
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Pool
from orchtrace_corpus.corpus.model.taxonomy import ANY_EVIDENCE, TagRule, Taxonomy
from orchtrace_corpus.corpus.rules.texts import LATEX

PREPRINT = "arXiv"
"""The venue of a paper for which no other is known than arXiv."""

_KEY_WORDS = 3
_SMALL_WORDS = frozenset("a an and as at by for from in into is of on or the to towards via when with your".split())
_ARXIV_LIKE = (
    r"(?i:(?:https?://)?(?:\w+\.)*arxiv\.org/\w+/|arxiv:\s*)?(?P<month>\d{4})\.?(?P<number>\d{3,6})(?:v\d+)?(?:\.pdf)?"
)


def from_metadata(metadata: Metadata) -> Paper:
    """Return a record of arXiv's metadata, without tags and summary.

    The year is that of the first version or of the id, whichever is later: an id is given on the day of announcement,
    which may be in the next year.
    """
    doi = recognise(metadata.doi) if metadata.doi else None
    return Paper(
        title=plain(metadata.title),
        authors=tuple(bibliographic(plain(name)) for name in people(metadata.authors)),
        year=max(int(metadata.published[:4]), arxiv_year(metadata.arxiv_id)),
        venue=PREPRINT,
        arxiv_id=metadata.arxiv_id,
        doi=doi.value if doi is not None and doi.kind is IdentifierKind.DOI else None,
        urls=(ADDRESSES[IdentifierKind.ARXIV] + metadata.arxiv_id,),
    )


def from_fields(values: Mapping[str, Value]) -> Paper:
    """Return a record of the fields from a registry or a file; values of another type become text or are left out.

    The first URL of a paper on arXiv is its page there.
    """
    title, venue = (plain(str(values.get(name, ""))) for name in ("title", "venue"))
    paper = Paper(title=title, venue=venue, authors=tuple(plain(name) for name in _items(values, "authors")))
    if re.fullmatch(r"[0-9]{4}", str(values.get("year", ""))):
        paper = paper._replace(year=int(str(values["year"])))
    urls = [url for url in _items(values, "urls") if not url_problem(url)]
    for kind in IdentifierKind:
        value = str(values.get(kind.value, ""))
        if is_normal(kind, value):
            paper = with_identifier(paper, Identifier(kind, value))
            if kind is IdentifierKind.ARXIV or not urls:
                urls.insert(0, ADDRESSES[kind] + value)
    return paper._replace(urls=tuple(dict.fromkeys(urls)))


def from_item(item: Item) -> Paper:
    """Return the record that an item of a file describes."""
    return from_entry(complete_item(item, None)[0], item.annotation)


def from_entry(values: Mapping[str, Value], annotation: str) -> Paper:
    """Return a record of the values in a file, unchecked; a key in another form than ours becomes its `cite_key`."""
    key, bibtex = str(values.get("key", "")), values.get("bibtex")
    ids: dict[str, Any] = {kind.value: str(values[kind.value]) for kind in IdentifierKind if values.get(kind.value)}
    return from_fields(values)._replace(
        **ids,
        key=key if is_key(key) else "",
        cite_key=key if is_cite_key(key) and not is_key(key) else None,
        bibtex={name: str(latex) for name, latex in bibtex.items()} if isinstance(bibtex, Mapping) else {},
        summary=plain(annotation),
    )


def with_identifier(paper: Paper, identifier: Identifier) -> Paper:
    """Return the record with an identifier in the field of its kind."""
    field: dict[str, Any] = {identifier.kind.value: identifier.value}
    return paper._replace(**field)


def from_exclusion(exclusion: Exclusion) -> Paper:
    """Return a record with the title, the URL and the identifier of an exclusion."""
    paper = Paper(title=exclusion.title, urls=(exclusion.url,))
    for identifier in (recognise_url(exclusion.url), recognise(exclusion.identifier)):
        if identifier is not None:
            paper = with_identifier(paper, identifier)
    return paper


def screened_identifier(paper: Paper) -> str:
    """Return the identifier of a paper as an exclusion, such as `arXiv:2305.14325`; else a name in capitals."""
    return identifier_text(paper) or key_for(paper, ()).upper()


def remarks(metadata: Metadata) -> Iterator[str]:
    """Yield remarks for the person who adds the paper."""
    if words := suspected_withdrawal(metadata):
        yield f"it seems to be withdrawn: {quote(words)}"
    if metadata.journal_ref:
        yield f"arXiv names a place of publication, {quote(metadata.journal_ref)}; if that is right, give it as --venue"
    if re.search(LATEX, metadata.title):
        yield f"arXiv's title has TeX, {quote(metadata.title)}, read as {quote(plain(metadata.title))}"


def plain(text: str) -> str:
    """Return a text from outside in the form of a record: one line of visible characters, TeX as Unicode."""
    text = " ".join("".join(c for c in text if c.isprintable() or c.isspace()).split())
    if not re.search(LATEX, text):
        return text
    # TeX without a Unicode form is removed; `remarks` quotes the original.
    decoded = FIXES["M103"](text, "title") or re.sub(r"\\[A-Za-z]+|[\\${}^]", " ", text)
    return " ".join(decoded.split())


def describe_match(match: Match, noun: str = "paper") -> str:
    """Describe the record that a paper matches, why it was excluded, and what both have in common."""
    record = match.record
    shared = f", {quote(match.shared)}" if match.sign is Sign.TITLE else f" {match.shared}"
    known = f"known by its {match.sign}{shared}"
    if isinstance(record, Paper):
        return f"in the pool already as {quote(record.key)}, {known}"
    tags = "".join(f", {field}: {tag}" for field, tag in record.tags.items())
    became = f" It became the {noun} {quote(record.promoted_to)}." if record.promoted_to else ""
    return f"excluded as {record.id} on {record.screened}{tags}: {record.reason.rstrip('.')}.{became} It is {known}"


def arxiv_misspelling(name: str, pool: Pool) -> str:
    """Return the problem of a misspelt arXiv id; empty if there is none.

    Since 2015 five digits follow the period, four before (https://info.arxiv.org/help/arxiv_identifier.html).
    """
    match = re.fullmatch(_ARXIV_LIKE, name.strip(), re.ASCII)
    if match is None:
        return ""
    month, number = match["month"], match["number"]
    digits = 5 if month >= "1501" else 4
    if len(number) == digits and recognise(name) is not None:
        return ""
    nearest = _nearest(month, number, digits, pool)
    if not 1 <= int(month[2:]) <= 12:
        problem = f"it begins with year and month, and {month[2:]} is not a month"
        return f"{quote(name)} is not an arXiv id: {problem}{nearest}"
    return f"{quote(name)} is not an arXiv id, which is YYMM, a period and {digits} digits{nearest}"


def key_for(paper: Paper, used_keys: Collection[str]) -> str:
    """Return a free key: the name before the title's colon, else its first words; then with the year, or a number."""
    head = re.split(r"[?!] ", paper.title.partition(": ")[0])[-1]
    words = _key_words(head) if ": " in paper.title else []
    if not words or len(words) > LONGEST_NAME:
        every = _key_words(paper.title)
        words = [word for word in every if word not in _SMALL_WORDS][:_KEY_WORDS] or every[:_KEY_WORDS]
    stem = "-".join(words)[:60].strip("-") or "-".join(_key_words(paper.first_author.partition(",")[0])) or "paper"
    dated = f"{stem}-{paper.year}" if paper.year else stem
    keys = chain((stem, dated), (f"{dated}-{number}" for number in count(2)))
    return next(key for key in keys if key not in used_keys)


def propose_key(paper: Paper, used_keys: Collection[str], reserved: Collection[str] = ()) -> str:
    """Return the paper's own key if it is free, else one of its title, which avoids keys that other papers bring."""
    return paper.key if paper.key and paper.key not in used_keys else key_for(paper, {*used_keys, *reserved})


def unmet_demands(paper: Paper, taxonomy: Taxonomy, missing: Collection[str] = ()) -> list[TagRule]:
    """Return the rules of the taxonomy that demand evidence which a paper does not have.

    A rule about a field in `missing`, which is still to be tagged, applies already. Validation reports a rule that
    cannot be applied.
    """
    attributes = paper_attributes(taxonomy)
    supported = {field for item in paper.evidence if item.is_evidence for field in item.tags}
    all_fields = {facet.field for facet in taxonomy.papers}
    unmet = []
    for rule in taxonomy.rules:
        if rule.evidence and rule.severity is Severity.ERROR:
            demanded = all_fields if rule.evidence == (ANY_EVIDENCE,) else set(rule.evidence)
            with suppress(CommandUseError):
                query = parse_conditions(rule.when, attributes)
                is_open = any(condition.attribute.name in missing for condition in query.filters)
                if (is_open or query.matches(paper)) and demanded.isdisjoint(supported):
                    unmet.append(rule)
    return unmet


def next_exclusion_id(exclusions: Sequence[Exclusion], text: str) -> str:
    """Return the next free id of an exclusion, above those in use, and above those that a text of the data mentions.

    A number that is 100 or more above those in use is no id (`E2024`), nor is the code of a rule (`E104`).
    """
    highest = max((int(exclusion.id[1:]) for exclusion in exclusions), default=0)
    mentioned = (int(name[1:]) for name in re.findall(r"\bE\d{3,6}\b", text, re.ASCII) if name not in RULES)
    return f"E{max([highest, *(number for number in mentioned if number < highest + 100)]) + 1:03d}"


def _items(values: Mapping[str, Value], name: str) -> list[str]:
    """Return a list's items as texts; none if the value is no list."""
    items = values.get(name, ())
    return [str(item) for item in items] if isinstance(items, (list, tuple)) else []


def _nearest(month: str, number: str, digits: int, pool: Pool) -> str:
    """Return the end of a message: the id that was probably meant, and its record."""
    records = {paper.arxiv_id: f"in the pool as {quote(paper.key)}" for paper in pool.papers if paper.arxiv_id}
    for exclusion in pool.exclusions:
        for identifier in identifiers_of(exclusion):
            if identifier.kind is IdentifierKind.ARXIV:
                records.setdefault(identifier.value, f"excluded as {exclusion.id}")
    padded = []
    if digits - len(number) == 1:
        padded = [f"{month}.{number[:at]}0{number[at:]}" for at in range(len(number) + 1)]
    padded = [name for name in padded if is_normal(IdentifierKind.ARXIV, name)]
    near = [name for name in padded if name in records]
    near += get_close_matches(f"{month}.{number}", records, n=1, cutoff=0.9) or padded
    if not near:
        return ""
    return f"; did you mean {near[0]}{f', which is {records[near[0]]}' if near[0] in records else ''}?"


def _key_words(text: str) -> list[str]:
    """Return the words of a text in lower-case ASCII, Greek letters by name, compounds with hyphens."""
    spelled = spell_greek(unicodedata.normalize("NFKD", text)).casefold()
    words = re.sub("['\u2019]", "", spelled).split()
    compounds = ("-".join(re.findall(r"[a-z0-9]+", word, re.ASCII)) for word in words)
    return [compound for compound in compounds if compound]


def spell_greek(text: str) -> str:
    """Return a decomposed text with Greek letters by name, and without combining characters."""
    names = ((c, unicodedata.name(c, "")) for c in text if not unicodedata.combining(c))
    return "".join(name.rpartition(" ")[2] if name.startswith("GREEK ") else c for c, name in names)
