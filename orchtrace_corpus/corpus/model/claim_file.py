"""The claims of a corpus about itself, decoded from `data/claims.yaml`; `analysis.claims` evaluates them."""

import re
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
    """A pool over which a claim can be evaluated."""

    PUBLISHED = "published"
    TODAY = "today"
    CANDIDATES = "candidates"
    """The pool of today, and the candidates that are proposed for inclusion."""


class Strength(StrEnum):
    """The weight of counter-evidence against a claim."""

    WEAK = "weak"
    MODERATE = "moderate"
    STRONG = "strong"


class Bounds(NamedTuple):
    """The smallest and the largest allowed number; None means no bound."""

    low: int | None = None
    high: int | None = None


class Number(NamedTuple):
    """The expectation that the number of records is within bounds."""

    bounds: Bounds


class Share(NamedTuple):
    """The expectation that a share is within bounds, which are in hundredths of a per cent.

    The share is that of the claim's records among the records that pass the filters `of`.
    """

    bounds: Bounds
    of: tuple[Condition, ...] = ()


class Keys(NamedTuple):
    """The expectation that the records are exactly these, by key or id."""

    keys: tuple[str, ...]


class Counts(NamedTuple):
    """The expectation of a number of records for each value of the field `by` in `counts`."""

    by: str
    counts: MappingType[str, int]


class Values(NamedTuple):
    """The expectation of these records, each with its value of the field `by`."""

    by: str
    values: MappingType[str, str]


class AuditSheet(NamedTuple):
    """A coding sheet: its path below the corpus's folder, and its text (None if it cannot be read)."""

    path: str
    text: str | None = None


class Agreement(NamedTuple):
    """The expectation of an agreement between two readers; with one sheet, the corpus is the second reader.

    `agreement` has pairs, the number of equal cells and of all cells, by column. Its key `""` means all columns.
    """

    sheets: tuple[AuditSheet, ...]
    agreement: MappingType[str, tuple[int, int]]


Expectation = Number | Share | Keys | Counts | Values | Agreement


class NarrowReading(NamedTuple):
    """A stricter reading of a claim: the records that it counts, and its reason."""

    name: str
    keys: tuple[str, ...]
    why: str


class Counter(NamedTuple):
    """Counter-evidence to a claim: a note with its source, and the keys or ids of the records that it is about."""

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
        boundary: A caveat, such as "A count of what was retained, not of the field."
        source: Where the claim was made, or the data for it.
        over: The kinds of records that the claim is about.
        scope: Filters for the records that the claim is about, such as those of the published pool.
        where: Further filters among the records in `scope`.
        readings: Stricter readings of the sentence.
        counter: The counter-evidence.
        only: The only pool over which the sentence makes sense, such as a count; None if it makes sense over all.
        observations: The observations of `data/scale.yaml`, if the claim is over scale.
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
        """True if the claim counts or names its records exactly, so that any new record outdates it."""
        if isinstance(self.expect, Number):
            low, high = self.expect.bounds
            return low == high and low not in (None, 0)
        return isinstance(self.expect, (Keys, Counts))


class ClaimFile(NamedTuple):
    """The claims of a corpus without errors, their places, and the findings of the file.

    `unread` has the ids of the claims with errors; an empty text for one without an id. These claims are not evaluated:
    without a filter that could not be read, a claim would be about too many records.
    """

    claims: tuple[Claim, ...] = ()
    places: Places | None = None
    findings: tuple[Finding, ...] = ()
    unread: tuple[str, ...] = ()

    def locate(self, index: int, *path: str | int) -> Location:
        """Return the place of a value in the claim at an index of `claims`."""
        if self.places is None:
            raise IndexError(index)
        return self.places.locate(index, *path)


def decode_claims(
    file: YamlFile | None, read_sheet: Callable[[str], str | None], scale: "Entries[Observation]"
) -> ClaimFile:
    """Decode the claims; `read_sheet` and `scale` give the coding sheets and observations that claims compare."""
    if file is None:
        return ClaimFile()
    report = Report(file)
    read_once = cache(read_sheet)  # several claims can name one sheet
    claims, starts, unread = [], [], []
    ids: set[str] = set()
    count_before = len(file.findings)
    for node in file.records():
        report.record = ""
        values = decode_record(node, _CLAIM, report) or {}
        claim_id = values.get("id")
        if claim_id in ids and type(node) is Mapping:
            report.add("C105", node.entries["id"][1].at, f"claim id {quote(claim_id)} is used twice; give each its own")
        if claim_id is not None:
            ids.add(claim_id)
        is_whole = values.keys() >= set(_CLAIM.required) and None not in values.values() and node.at != file.cut_off
        if is_whole and len(file.findings) == count_before:
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
        count_before = len(file.findings)
    return ClaimFile(tuple(claims), Places(file, starts), tuple(file.findings), tuple(unread))


def _over(node: Node, report: Report) -> Any:
    """Decode one kind of record, or a list of kinds."""
    decode_kind = fields.terms("over", "kind of record", tuple(Over), code="C102")
    if type(node) is Scalar:
        kind = decode_kind(node, report)
        return None if kind is None else (kind,)
    return fields.term_list("over", decode_kind)(node, report)


_EXPECTATION_FORMS = (
    "the word 'empty' where there must be none, or a mapping such as {count: 2} with one of "
    "count, at_least, at_most, share, keys, counts with by, values with by, agreement with sheets"
)


def _expectation(node: Node, report: Report) -> Expectation | None:
    """Decode the `expect` of a claim by its fields; `_EXPECTATIONS` has the allowed ones."""
    if type(node) is Scalar and node.text == "empty":
        return Number(Bounds(0, 0))
    if type(node) is not Mapping:
        report.add("F103", node.at, f"'expect' must be {_EXPECTATION_FORMS}, not {decoders.kind_of(node)}")
        return None
    schema_and_build = _SCHEMAS_BY_FIELDS.get(frozenset(node.entries))
    if schema_and_build is None:
        names = ", ".join(quote(name) for name in node.entries) or "nothing"
        report.add("C102", node.at, f"'expect' must be {_EXPECTATION_FORMS}, not a mapping of {names}")
        return None
    schema, build = schema_and_build
    expectation: Expectation | None = decoders.decode_value(node, schema, build, report)
    return expectation


def _parse_ratio(text: str) -> tuple[int, int]:
    ratio = re.fullmatch(r"(\d{1,9}) of (\d{1,9})", text, re.ASCII)
    if ratio is None:
        raise ValueError(f"{quote(text)} says no agreement: write 31 of 32")
    return int(ratio[1]), int(ratio[2])


def _parse_percentage(text: str) -> int:
    """Return a percentage with at most two decimals in hundredths of a per cent."""
    percentage = re.fullmatch(r"\s*(\d+)(?:\.(\d{0,2}))?\s*%", text, re.ASCII)
    if percentage is not None:
        decimals = percentage[2] or ""
        hundredths = int(percentage[1]) * 100 + int(decimals.ljust(2, "0"))
        if hundredths <= 10_000:
            return hundredths
    raise ValueError(f"{quote(text)} is not a percentage: write 10%, or 2.5%")


# Each returns the decoder of a field, by its name: `_natural("count")` decodes the field `count`.
_natural = partial(fields.natural, code="C102", problem="{} is not a number of records: write digits")
_ratio = partial(decoders.parsed, code="C102", parse=_parse_ratio)
_percent = partial(decoders.parsed, code="C102", parse=_parse_percentage)


def _agreement(node: Node, report: Report) -> dict[str, tuple[int, int]] | None:
    """Decode `Agreement.agreement`: a ratio over all columns, or a mapping from columns to ratios."""
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
    for path in paths:
        if path.startswith("/") or ".." in path.split("/"):
            report.add("C102", node.at, f"{quote(path)} is not a path below the corpus, such as data/audits/one.csv")
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


_SHARE = Schema(
    "a share", "", {"at_least": _percent("at_least"), "at_most": _percent("at_most"), "of": conditions("of")}, ()
)
# Fields of `expect` with their decoders, and the function that makes the expectation of their values.
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
_SCHEMAS_BY_FIELDS = {
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
    # Claims that make sense over a later pool make sense over all, so `published` is the only choice.
    only=fields.terms("only", "pool", (PoolName.PUBLISHED,), code="C102"),
    observations=None,  # no field of the file
)
