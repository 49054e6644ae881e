"""Create the records of new papers from the answers of services or from files, and propose their keys.

A new record has no tags and no summary, which only a person can decide.
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
from orchtrace_corpus.corpus.analysis.matching import MAX_NAME_WORDS, Match, Sign, identifier_text, identifiers_of
from orchtrace_corpus.corpus.analysis.query import parse_conditions
from orchtrace_corpus.corpus.edit.fixes import FIXES
from orchtrace_corpus.corpus.formats import Item, complete_item
from orchtrace_corpus.corpus.model.author_names import bibtex_author, without_separators
from orchtrace_corpus.corpus.model.fields import is_cite_key, is_key, url_problem
from orchtrace_corpus.corpus.model.metadata import Metadata, suspected_withdrawal
from orchtrace_corpus.corpus.model.record_fields import Value
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Pool
from orchtrace_corpus.corpus.model.taxonomy import ANY_EVIDENCE, TagRule, Taxonomy
from orchtrace_corpus.corpus.rules.texts import LATEX

PREPRINT = "arXiv"
"""The venue of a paper that is only known to be on arXiv."""

_MAX_KEY_WORDS = 3
_SMALL_WORDS = frozenset("a an and as at by for from in into is of on or the to towards via when with your".split())
_ARXIV_LIKE = (
    r"(?i:(?:https?://)?(?:\w+\.)*arxiv\.org/\w+/|arxiv:\s*)?(?P<month>\d{4})\.?(?P<number>\d{3,6})(?:v\d+)?(?:\.pdf)?"
)


def from_metadata(metadata: Metadata) -> Paper:
    """Return arXiv's metadata as a record.

    The year is that of the first version or of the id, whichever is later: arXiv assigns an id when it announces the
    paper, which can be in the next year.
    """
    doi = recognise(metadata.doi) if metadata.doi else None
    return Paper(
        title=plain_text(metadata.title),
        authors=tuple(bibtex_author(plain_text(name)) for name in without_separators(metadata.authors)),
        year=max(int(metadata.published[:4]), arxiv_year(metadata.arxiv_id)),
        venue=PREPRINT,
        arxiv_id=metadata.arxiv_id,
        doi=doi.value if doi is not None and doi.kind is IdentifierKind.DOI else None,
        urls=(ADDRESSES[IdentifierKind.ARXIV] + metadata.arxiv_id,),
    )


def from_fields(values: Mapping[str, Value]) -> Paper:
    """Return the fields from a registry or a file as a record, without values of a wrong type or form.

    The first URL of a paper on arXiv is its page there. A paper without a URL gets the page of an identifier.
    """
    paper = Paper(
        title=plain_text(str(values.get("title", ""))),
        venue=plain_text(str(values.get("venue", ""))),
        authors=tuple(plain_text(name) for name in _text_items(values, "authors")),
    )
    year = str(values.get("year", ""))
    if re.fullmatch(r"[0-9]{4}", year):
        paper = paper._replace(year=int(year))
    urls = [url for url in _text_items(values, "urls") if not url_problem(url)]
    for kind in IdentifierKind:
        value = str(values.get(kind.value, ""))
        if is_normal(kind, value):
            paper = with_identifier(paper, Identifier(kind, value))
            if kind is IdentifierKind.ARXIV or not urls:
                urls.insert(0, ADDRESSES[kind] + value)
    return paper._replace(urls=tuple(dict.fromkeys(urls)))


def from_item(item: Item) -> Paper:
    """Return an item of a file as a record."""
    values, _ = complete_item(item, None)
    return from_entry(values, item.annotation)


def from_entry(values: Mapping[str, Value], annotation: str) -> Paper:
    """Return the values of an entry in a file as a record, even identifiers of a wrong form.

    A key that is not valid as a key of the corpus becomes the `cite_key`.
    """
    key, bibtex = str(values.get("key", "")), values.get("bibtex")
    identifiers: dict[str, Any] = {
        kind.value: str(values[kind.value]) for kind in IdentifierKind if values.get(kind.value)
    }
    return from_fields(values)._replace(
        **identifiers,
        key=key if is_key(key) else "",
        cite_key=key if is_cite_key(key) and not is_key(key) else None,
        bibtex={name: str(latex) for name, latex in bibtex.items()} if isinstance(bibtex, Mapping) else {},
        summary=plain_text(annotation),
    )


def with_identifier(paper: Paper, identifier: Identifier) -> Paper:
    """Return the record with the identifier in the field of its kind."""
    fields: dict[str, Any] = {identifier.kind.value: identifier.value}
    return paper._replace(**fields)


def from_exclusion(exclusion: Exclusion) -> Paper:
    """Return an exclusion as the record of a paper, with its title, URL and identifier."""
    paper = Paper(title=exclusion.title, urls=(exclusion.url,))
    for identifier in (recognise_url(exclusion.url), recognise(exclusion.identifier)):
        if identifier is not None:
            paper = with_identifier(paper, identifier)
    return paper


def exclusion_identifier(paper: Paper) -> str:
    """Return the `identifier` of a paper as an exclusion: `arXiv:2305.14325`, or words of the title, `CAR-PARK`."""
    return identifier_text(paper) or key_for(paper, ()).upper()


def metadata_remarks(metadata: Metadata) -> Iterator[str]:
    """Yield remarks on arXiv's metadata for the person who adds the paper."""
    if words := suspected_withdrawal(metadata):
        yield f"it seems to be withdrawn: {quote(words)}"
    if metadata.journal_ref:
        yield f"arXiv names a place of publication, {quote(metadata.journal_ref)}; if that is right, give it as --venue"
    if re.search(LATEX, metadata.title):
        yield f"arXiv's title has TeX, {quote(metadata.title)}, read as {quote(plain_text(metadata.title))}"


def plain_text(text: str) -> str:
    """Return a text from a service or file as records need it: on one line, without invisible characters and TeX."""
    text = " ".join("".join(c for c in text if c.isprintable() or c.isspace()).split())
    if not re.search(LATEX, text):
        return text
    # TeX without a Unicode form is removed; `metadata_remarks` quotes the original.
    decoded = FIXES["M103"](text, "title") or re.sub(r"\\[A-Za-z]+|[\\${}^]", " ", text)
    return " ".join(decoded.split())


def describe_match(match: Match, noun: str = "paper") -> str:
    """Return a message about the record that a paper matches, and about what they have in common."""
    record = match.record
    shared = f", {quote(match.shared)}" if match.sign is Sign.TITLE else f" {match.shared}"
    common = f"known by its {match.sign}{shared}"
    if isinstance(record, Paper):
        return f"in the pool already as {quote(record.key)}, {common}"
    tags = "".join(f", {field}: {tag}" for field, tag in record.tags.items())
    reason = f"excluded as {record.id} on {record.screened}{tags}: {record.reason.rstrip('.')}."
    promotion = f" It became the {noun} {quote(record.promoted_to)}." if record.promoted_to else ""
    return f"{reason}{promotion} It is {common}"


def arxiv_misspelling(name: str, pool: Pool) -> str:
    """Return the problem with a name that looks like an arXiv id but is none; empty for any other name.

    An id has five digits after the period since January 2015, four before
    (https://info.arxiv.org/help/arxiv_identifier.html).
    """
    match = re.fullmatch(_ARXIV_LIKE, name.strip(), re.ASCII)
    if match is None:
        return ""
    month, number = match["month"], match["number"]
    digits = 5 if month >= "1501" else 4
    if len(number) == digits and recognise(name) is not None:
        return ""
    question = _did_you_mean(month, number, digits, pool)
    if not 1 <= int(month[2:]) <= 12:
        problem = f"it begins with year and month, and {month[2:]} is not a month"
        return f"{quote(name)} is not an arXiv id: {problem}{question}"
    return f"{quote(name)} is not an arXiv id, which is YYMM, a period and {digits} digits{question}"


def key_for(paper: Paper, used_keys: Collection[str]) -> str:
    """Return a key that is not in use, from the name before the title's colon, else from its first words.

    If that key is in use, the year is added, and then a number.
    """
    name = re.split(r"[?!] ", paper.title.partition(": ")[0])[-1]
    words = _key_words(name) if ": " in paper.title else []
    if not words or len(words) > MAX_NAME_WORDS:
        all_words = _key_words(paper.title)
        words = [word for word in all_words if word not in _SMALL_WORDS] or all_words
        words = words[:_MAX_KEY_WORDS]
    family_name = paper.first_author.partition(",")[0]
    stem = "-".join(words)[:60].strip("-") or "-".join(_key_words(family_name)) or "paper"
    with_year = f"{stem}-{paper.year}" if paper.year else stem
    keys = chain((stem, with_year), (f"{with_year}-{number}" for number in count(2)))
    return next(key for key in keys if key not in used_keys)


def propose_key(paper: Paper, used_keys: Collection[str], reserved: Collection[str] = ()) -> str:
    """Return the paper's own key if it is not in use, else a new key, which is not `reserved` for other papers."""
    if paper.key and paper.key not in used_keys:
        return paper.key
    return key_for(paper, {*used_keys, *reserved})


def unmet_demands(paper: Paper, taxonomy: Taxonomy, open_fields: Collection[str] = ()) -> list[TagRule]:
    """Return the rules of the taxonomy that demand evidence which a paper does not have.

    A rule with a condition on one of `open_fields`, which are still to be tagged, counts as well.
    """
    attributes = paper_attributes(taxonomy)
    supported = {field for item in paper.evidence if item.is_evidence for field in item.tags}
    all_fields = {facet.field for facet in taxonomy.papers}
    unmet = []
    for rule in taxonomy.rules:
        if rule.evidence and rule.severity is Severity.ERROR:
            demanded = all_fields if rule.evidence == (ANY_EVIDENCE,) else set(rule.evidence)
            with suppress(CommandUseError):  # a check reports a condition that cannot be parsed
                query = parse_conditions(rule.when, attributes)
                may_match = any(condition.attribute.name in open_fields for condition in query.filters)
                if (may_match or query.matches(paper)) and demanded.isdisjoint(supported):
                    unmet.append(rule)
    return unmet


def next_exclusion_id(exclusions: Sequence[Exclusion], text: str) -> str:
    """Return the id of a new exclusion, which is above all ids of exclusions and above those that the text mentions.

    A number that is 100 or more above the ids of exclusions is not an id (`E2024`), nor is the code of a rule (`E104`).
    """
    highest = max((int(exclusion.id[1:]) for exclusion in exclusions), default=0)
    mentioned = (int(name[1:]) for name in re.findall(r"\bE\d{3,6}\b", text, re.ASCII) if name not in RULES)
    used = [highest, *(number for number in mentioned if number < highest + 100)]
    return f"E{max(used) + 1:03d}"


def _text_items(values: Mapping[str, Value], name: str) -> list[str]:
    """Return the items of a list as texts; empty for a value that is not a list."""
    items = values.get(name, ())
    return [str(item) for item in items] if isinstance(items, (list, tuple)) else []


def _did_you_mean(month: str, number: str, digits: int, pool: Pool) -> str:
    """Return the end of a message: the arXiv id that was probably meant, and its record; empty without a guess."""
    records = {paper.arxiv_id: f"in the pool as {quote(paper.key)}" for paper in pool.papers if paper.arxiv_id}
    for exclusion in pool.exclusions:
        for identifier in identifiers_of(exclusion):
            if identifier.kind is IdentifierKind.ARXIV:
                records.setdefault(identifier.value, f"excluded as {exclusion.id}")
    padded: list[str] = []  # with the zero that may be missing, at each position
    if digits - len(number) == 1:
        padded = [f"{month}.{number[:index]}0{number[index:]}" for index in range(len(number) + 1)]
    padded = [name for name in padded if is_normal(IdentifierKind.ARXIV, name)]
    guesses = [name for name in padded if name in records]
    guesses += get_close_matches(f"{month}.{number}", records, n=1, cutoff=0.9) or padded
    if not guesses:
        return ""
    guess = guesses[0]
    return f"; did you mean {guess}, which is {records[guess]}?" if guess in records else f"; did you mean {guess}?"


def _key_words(text: str) -> list[str]:
    """Return the words of a text in lower-case ASCII, such as `beta-vae` for `β-VAE`."""
    text = spell_greek(unicodedata.normalize("NFKD", text)).casefold()
    words = re.sub("['\u2019]", "", text).split()
    ascii_words = ("-".join(re.findall(r"[a-z0-9]+", word, re.ASCII)) for word in words)
    return [word for word in ascii_words if word]


def spell_greek(text: str) -> str:
    """Return a text in form NFD or NFKD with Greek letters by name (`BETA`), and without combining characters."""
    names = ((c, unicodedata.name(c, "")) for c in text if not unicodedata.combining(c))
    return "".join(name.rpartition(" ")[2] if name.startswith("GREEK ") else c for c, name in names)
