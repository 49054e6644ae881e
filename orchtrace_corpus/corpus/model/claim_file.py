"""The claims of a corpus about itself, decoded from `data/claims.yaml`; `analysis.claims` evaluates them."""

from collections.abc import Callable
from collections.abc import Mapping as MappingType
from enum import StrEnum
from functools import cache, partial

from orchtrace_corpus.base.annotations import TYPE_CHECKING, Any
from orchtrace_corpus.base.findings import Finding, Location, quote
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile import decoders
from orchtrace_corpus.base.yamlfile.decoders import Decoder, Report, Schema, decode_record
from orchtrace_corpus.base.yamlfile.reader import Mapping, Node, Scalar, YamlFile
from orchtrace_corpus.corpus.model import fields
from orchtrace_corpus.corpus.model.records import Entries, Places
from orchtrace_corpus.corpus.model.taxonomy import Condition, conditions

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.model.scale import Observation


class Over(StrEnum):
    """The kinds of records that a claim can be about."""

    PAPERS = "papers"
    EXCLUSIONS = "exclusions"
    SCALE = "scale"


class PoolName(StrEnum):
    """The pools that a claim can be judged over; the last is that of today with candidates proposed for inclusion."""

    PUBLISHED = "published"
    TODAY = "today"
    CANDIDATES = "candidates"


class Strength(StrEnum):
    """The weight of counter-evidence."""

    WEAK = "weak"
    MODERATE = "moderate"
    STRONG = "strong"


class Bounds(NamedTuple):
    """The bounds of a number, both included; None leaves an end open."""

    low: int | None = None
    high: int | None = None


class Number(NamedTuple):
    """A number of records."""

    bounds: Bounds


class Share(NamedTuple):
    """A share of the records that pass the filters `of`. Bounds are in hundredths of a per cent."""

    bounds: Bounds
    of: tuple[Condition, ...] = ()


class Keys(NamedTuple):
    """Exactly these records, by key or id."""

    keys: tuple[str, ...]


class Counts(NamedTuple):
    """A number of records for each of some values of a field."""

    by: str
    counts: MappingType[str, int]


class Values(NamedTuple):
    """These records, each with its value of a field."""

    by: str
    values: MappingType[str, str]


class AuditSheet(NamedTuple):
    """A coding sheet by its path below the corpus's folder, and its text; None where it cannot be read."""

    path: str
    text: str | None = None


class Agreement(NamedTuple):
    """The agreement of two readers; with one sheet, the corpus is the other reader.

    `agreement` has the numbers of equal and of all cells by column, or under the empty text over all columns.
    """

    sheets: tuple[AuditSheet, ...]
    agreement: MappingType[str, tuple[int, int]]


Expectation = Number | Share | Keys | Counts | Values | Agreement


class NarrowReading(NamedTuple):
    """The records of a claim that a stricter reading counts, with its reason."""

    name: str
    keys: tuple[str, ...]
    why: str


class Counter(NamedTuple):
    """Counter-evidence to a claim: a note with its source, and the records concerned, if any."""

    note: str
    strength: Strength
    source: str
    rows: tuple[str, ...] = ()


class Claim(NamedTuple):
    """A sentence about the corpus, and the expectation that must hold for it to be true.

    Attributes:
        id: The claim's name, unique among claims.
        claim: The sentence.
        expect: The expectation about the records that pass `where`.
        boundary: What the sentence does not say.
        source: Where the claim was made, or what it rests on.
        scope: Filters that select the records that the claim is about, such as those of the published pool.
        where: Filters that select among the records in `scope`.
        only: The one pool over which the sentence makes sense, such as that of a count; None if it does over each.
        observations: The observations of a claim over scale.
    """

    id: str
    claim: str
    expect: Expectation
    boundary: str
    source: str
    over: tuple[Over, ...] = (Over.PAPERS,)
    scope: tuple[Condition, ...] = ()
    where: tuple[Condition, ...] = ()
    readings: tuple[NarrowReading, ...] = ()
    counter: tuple[Counter, ...] = ()
    only: PoolName | None = None
    observations: "tuple[Observation, ...]" = ()

    @property
    def is_exact(self) -> bool:
        """Return True if the claim counts or names its records exactly, so that any addition outdates it."""
        bounds = self.expect.bounds if isinstance(self.expect, Number) else Bounds()
        return isinstance(self.expect, (Keys, Counts)) or bounds.low == bounds.high not in (None, 0)


class ClaimFile(NamedTuple):
    """The claims of a corpus as read: those without mistakes, their places, and the mistakes.

    `unread` has the ids of claims with mistakes, as they are written; an empty text for a claim without an id. Such a
    claim is not judged: without a filter whose name is misspelt, it would look for all records.
    """

    claims: tuple[Claim, ...] = ()
    places: Places | None = None
    findings: tuple[Finding, ...] = ()
    unread: tuple[str, ...] = ()

    def locate(self, index: int, *path: str | int) -> Location:
        """Return the place of a value in the claim at an index."""
        if self.places is None:
            raise IndexError(index)
        return self.places.locate(index, *path)


def decode_claims(
    file: YamlFile | None, read_sheet: Callable[[str], str | None], scale: "Entries[Observation]"
) -> ClaimFile:
    """Decode a list of claims, if there is one; `read_sheet` and `scale` give the data that some of them rest on."""
    if file is None:
        return ClaimFile()
    report = Report(file)
    read_once = cache(read_sheet)
    claims, starts, unread = [], [], []
    ids: set[str] = set()
    reported = len(file.findings)
    for node in file.records():
        report.record = ""
        values = decode_record(node, _CLAIM, report) or {}
        name = values.get("id")
        if name in ids and type(node) is Mapping:
            report.add("C105", node.entries["id"][1].at, f"claim id {quote(name)} is used twice; give each its own")
        ids.update(() if name is None else (name,))
        is_whole = values.keys() >= set(_CLAIM.required) and None not in values.values() and node.at != file.cut_off
        if is_whole and len(file.findings) == reported:
            claim = Claim(**values)
            if Over.SCALE in claim.over:
                claim = claim._replace(observations=scale.items)
            if isinstance(claim.expect, Agreement):
                sheets = tuple(sheet._replace(text=read_once(sheet.path)) for sheet in claim.expect.sheets)
                claim = claim._replace(expect=claim.expect._replace(sheets=sheets))
            claims.append(claim)
            starts.append(node.at)
        else:
            unread.append(report.record)
        reported = len(file.findings)
    return ClaimFile(tuple(claims), Places(file, starts), tuple(file.findings), tuple(unread))


def _over(node: Node, report: Report) -> Any:
    decode_kind = fields.terms("over", "kind of record", tuple(Over), code="C102")
    if type(node) is Scalar:
        kind = decode_kind(node, report)
        return None if kind is None else (kind,)
    return fields.term_list("over", decode_kind)(node, report)


def _expectation(node: Node, report: Report) -> Expectation | None:
    if type(node) is Scalar and node.text == "empty":
        return Number(Bounds(0, 0))
    if type(node) is not Mapping:
        report.add("F103", node.at, f"'expect' must be {_FORMS}, not {decoders.kind_of(node)}")
        return None
    form = _BY_FIELDS.get(frozenset(node.entries))
    if form is None:
        names = ", ".join(quote(name) for name in node.entries)
        report.add("C102", node.at, f"'expect' must be {_FORMS}, not a mapping of {names or 'nothing'}")
        return None
    schema, build = form
    values = decode_record(node, schema, report)
    return None if values is None or None in values.values() else build(**values)


def _parse_ratio(text: str) -> tuple[int, int]:
    equal, _, total = text.partition(" of ")
    if all(part.isascii() and part.isdigit() and len(part) < 10 for part in (equal, total)):
        return int(equal), int(total)
    raise ValueError(f"{quote(text)} says no agreement: write 31 of 32")


def _parse_percentage(text: str) -> int:
    """Return a percentage with at most two decimals in hundredths of a per cent."""
    whole, _, decimals = text.removesuffix("%").strip().partition(".")
    digits = whole + decimals
    if text.endswith("%") and whole and len(decimals) < 3 and digits.isascii() and digits.isdigit():
        hundredths = int(whole) * 100 + int((decimals + "00")[:2])
        if hundredths <= 10_000:
            return hundredths
    raise ValueError(f"{quote(text)} is not a percentage: write 10%, or 2.5%")


_natural = partial(fields.natural, code="C102", problem="{} is not a number of records: write digits")
_ratio = partial(decoders.parsed, code="C102", parse=_parse_ratio)
_percent = partial(decoders.parsed, code="C102", parse=_parse_percentage)


def _agreement(node: Node, report: Report) -> dict[str, tuple[int, int]] | None:
    if type(node) is Scalar:
        overall = _ratio("agreement")(node, report)
        return None if overall is None else {"": overall}
    by_column: dict[str, tuple[int, int]] | None = decoders.by_name("agreement", _ratio("an agreement"))(node, report)
    return by_column


def _sheets(node: Node, report: Report) -> tuple[AuditSheet, ...] | None:
    paths = decoders.text_list("sheets")(node, report)
    if paths is None:
        return None
    if len(paths) > 2:
        report.add("C102", node.at, "agreement is between two readers: name one sheet, or two")
        return None
    wrong = [path for path in paths if path.startswith("/") or ".." in path.split("/")]
    if wrong:
        report.add("C102", node.at, f"{quote(wrong[0])} is not a path below the corpus, such as data/audits/one.csv")
        return None
    return tuple(map(AuditSheet, paths))


def _share(node: Node, report: Report) -> Share | None:
    values = decode_record(node, _SHARE, report)
    if values is None or None in values.values():
        return None
    if values.keys().isdisjoint(("at_least", "at_most")):
        report.add("F101", node.at, "missing field 'at_least' or 'at_most', which bounds the share")
        return None
    return Share(Bounds(values.get("at_least"), values.get("at_most")), values.get("of", ()))


_FORMS = (
    "the word 'empty' where there must be none, or a mapping such as {count: 2} with one of "
    "count, at_least, at_most, share, keys, counts with by, values with by, agreement with sheets"
)
_SHARE = Schema(
    "a share", "", {"at_least": _percent("at_least"), "at_most": _percent("at_most"), "of": conditions("of")}, ()
)
_EXPECTATIONS: tuple[tuple[dict[str, Decoder], Callable[..., Expectation]], ...] = (
    ({"count": _natural("count")}, lambda count: Number(Bounds(count, count))),
    ({"at_least": _natural("at_least")}, lambda at_least: Number(Bounds(at_least, None))),
    ({"at_most": _natural("at_most")}, lambda at_most: Number(Bounds(None, at_most))),
    (
        {"at_least": _natural("at_least"), "at_most": _natural("at_most")},
        lambda at_least, at_most: Number(Bounds(at_least, at_most)),
    ),
    ({"share": _share}, lambda share: share),
    ({"keys": decoders.text_list("keys")}, Keys),
    ({"by": decoders.text("by"), "counts": decoders.by_name("counts", _natural("a count"))}, Counts),
    ({"by": decoders.text("by"), "values": decoders.by_name("values", decoders.text("a value"))}, Values),
    ({"sheets": _sheets, "agreement": _agreement}, Agreement),
)
_BY_FIELDS = {
    frozenset(decoders): (Schema("an expectation", "", decoders, tuple(decoders)), build)
    for decoders, build in _EXPECTATIONS
}
_CLAIM = decoders.schema_of(
    Claim,
    "a claim",
    "id",
    id=fields.key("claim id"),
    expect=_expectation,
    over=_over,
    scope=conditions("scope"),
    where=conditions("where"),
    readings=decoders.records_of("readings", NarrowReading, "a reading"),
    counter=decoders.records_of(
        "counter",
        Counter,
        "an item of counter-evidence",
        strength=decoders.choice("strength", Strength, code="C102"),
    ),
    # Every claim makes sense over the pool of today that makes none over another.
    only=fields.terms("only", "pool", (PoolName.PUBLISHED,), code="C102"),
    observations=None,
)
