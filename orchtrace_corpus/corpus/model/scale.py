"""Published sizes of systems in use and of experiments, decoded from `data/scale.yaml`.

Numbers from vendors are reports that no outsider can check, so none of them counts as verified.
"""

from collections.abc import Collection, Iterator, Sequence
from enum import StrEnum

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.base.findings import near_suggestion, quote
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile import decoders
from orchtrace_corpus.base.yamlfile.decoders import Report, decode_record
from orchtrace_corpus.base.yamlfile.reader import Mapping, YamlFile
from orchtrace_corpus.corpus.model import fields
from orchtrace_corpus.corpus.model.records import Entries, Places
from orchtrace_corpus.corpus.model.taxonomy import PAPER_NOUN, Noun

_MAX_DIGITS = 16
"""The characters of a number: beyond that, it is not exact in the computer, either."""

UNKNOWN = "unknown"
"""The value of an observation for which no number was found."""


class Group(StrEnum):
    """The group of a system: in use, or trained and evaluated in a publication."""

    DEPLOYMENT = "deployment"
    ACADEMIC = "academic"


class Phase(StrEnum):
    """The phase of a number: training, evaluation, or a limit that no run may exceed."""

    TRAINING = "training"
    EVALUATION = "evaluation"
    LIMIT = "limit"


class Support(StrEnum):
    """The kind of source that a number was read in; `CODE` is the authors' own, at a commit."""

    PAPER = "paper"
    CODE = "code"
    PAPER_COPY = "paper_copy"
    VENDOR = "vendor"
    VENDOR_COPY = "vendor_copy"
    THIRD_PARTY = "third_party"


BOUNDS = {"<=": "up to", ">=": "at least", "<": "under", "~": "about"}
"""The signs before a number, and their words; a number without one is exact."""


class Amount(NamedTuple):
    """A number or a range, both ends included; `high` equals `low` for a single number.

    `bound` is one of `BOUNDS`, or empty.
    """

    low: float
    high: float
    bound: str = ""


class Observation(NamedTuple):
    """A number about the scale of a system or method, or the fact that none is published.

    Attributes:
        quantity: What is counted; observations of one quantity can be compared.
        value: The number; None if none was found.
        evidence: The kind of source that it was read in.
        verified: Whether the number was read in the publication itself, or in its code.
        record: The key of the paper, if it is in the pool.
        quote: The line of the source that says it.
        published: Whether its paper is in the published pool; None without a paper, or where that is unknown.
    """

    system: str
    group: Group
    quantity: str
    value: Amount | None
    unit: str
    evidence: Support
    sources: tuple[str, ...]
    verified: bool
    record: str | None = None
    phase: Phase | None = None
    quote: str | None = None
    note: str | None = None
    published: bool | None = None

    @property
    def name(self) -> str:
        """Return the name of the observation, which no other has."""
        phase = "" if self.phase is None else f", {self.phase}"
        return f"{self.system}: {self.quantity}{phase}"

    @property
    def is_limit(self) -> bool:
        """Return True if the source gives a limit and no count."""
        return self.phase is Phase.LIMIT or (self.value is not None and self.value.bound in ("<=", "<"))

    @property
    def is_second_hand(self) -> bool:
        """Return True if the number was read in a copy or a report of somebody else."""
        return self.evidence in (Support.PAPER_COPY, Support.VENDOR_COPY, Support.THIRD_PARTY)


class Comparison(NamedTuple):
    """The observations of one quantity, in use against published."""

    quantity: str
    deployments: tuple[Observation, ...]
    academic: tuple[Observation, ...]


def decode_scale(file: YamlFile | None, keys: Collection[str] | None, noun: Noun = PAPER_NOUN) -> Entries[Observation]:
    """Decode a list of observations, if there is one; `keys` are those of the papers, None if some are unknown."""
    if file is None:
        return Entries("what is known of scale has")
    report = Report(file)
    observations, starts = [], []
    given_before: set[tuple[str | None, ...]] = set()
    for node in file.records():
        report.record = ""
        values = decode_record(node, OBSERVATION, report)
        if values is None or type(node) is not Mapping:
            continue
        for field, code, message in _problems(values, given_before, keys, noun.one):
            report.add(code, node.entries[field][1].at, message)
        if None not in values.values() and values.keys() >= set(OBSERVATION.required):
            value = None if values["value"] == UNKNOWN else values["value"]
            observations.append(Observation(**{**values, "value": value}))
            starts.append(node.at)
    findings = sorted(file.findings, key=lambda finding: (finding.location, finding.code, finding.message))
    return Entries("what is known of scale has", observations, Places(file, starts), findings)


def _problems(
    values: dict[str, Any], given_before: set[tuple[str | None, ...]], keys: Collection[str] | None, noun: str
) -> Iterator[tuple[str, str, str]]:
    """Yield a field, a code and a message for each contradiction in an observation, or to those in `seen`."""
    system, quantity, record, evidence = (values.get(name) for name in ("system", "quantity", "record", "evidence"))
    if system is not None and quantity is not None:
        phase = values.get("phase")
        if (system, quantity, phase) in given_before:
            when = "" if phase is None else f" in the phase {quote(phase)}"
            message = f"the {quote(quantity)} of {quote(system)} are given twice{when}; keep one, or name what differs"
            yield "quantity", "S102", message
        given_before.add((system, quantity, phase))
    if record is not None and keys is not None and record not in keys:
        near = near_suggestion(record, list(keys))
        fix = f"name the {noun} that the system is in the pool as, or leave the field out"
        yield "record", "S103", f"there is no {noun} {quote(record)}{near}; {fix}"
    if values.get("verified") and values.get("value") == UNKNOWN:
        yield "verified", "S104", "what is unknown cannot be verified; write verified: false"
    elif values.get("verified") and evidence not in (None, Support.PAPER, Support.CODE):
        primary = f"{quote(Support.PAPER)} or {quote(Support.CODE)}"
        fix = f"only evidence {primary} can be verified; write verified: false"
        yield "verified", "S104", f"evidence {quote(evidence)} is a report: {fix}"


def compare(observations: Sequence[Observation]) -> tuple[Comparison, ...]:
    """Return the quantities that are known for systems in use and for experiments, in the order of the file."""
    comparisons = []
    for quantity in dict.fromkeys(observation.quantity for observation in observations):
        alike = [observation for observation in observations if observation.quantity == quantity]
        comparisons.append(Comparison(quantity, *(tuple(o for o in alike if o.group is group) for group in Group)))
    return tuple(comparison for comparison in comparisons if comparison.deployments and comparison.academic)


def span(observations: Sequence[Observation]) -> Amount | None:
    """Return the smallest and the largest known number; None if none is known."""
    amounts = [observation.value for observation in observations if observation.value]
    if not amounts:
        return None
    return Amount(min(amount.low for amount in amounts), max(amount.high for amount in amounts))


def parse_amount(text: str) -> Amount | None:
    """Read an amount, such as `16`, `3-5`, `<=300` or `~2000`; None if the text is none."""
    bound = next((bound for bound in BOUNDS if text.startswith(bound)), "")
    ends = text.removeprefix(bound).split("-")
    if len(ends) > 2 or not all(map(_is_number, ends)):
        return None
    amount = Amount(float(ends[0]), float(ends[-1]), bound)
    return amount if amount.low <= amount.high else None


def _is_number(text: str) -> bool:
    """Return True if the text is digits, with or without a point among them."""
    return len(text) <= _MAX_DIGITS and text.isascii() and all(part.isdigit() for part in text.split(".", 1))


def _known_amount(text: str) -> Amount | str:
    amount = UNKNOWN if text == UNKNOWN else parse_amount(text)
    if amount is None:
        fix = f"write a number, a range such as 3-5, either after <=, <, >= or ~, or {UNKNOWN}"
        raise ValueError(f"{quote(text)} is not an amount: {fix}")
    return amount


OBSERVATION = decoders.schema_of(
    Observation,
    "an observation",
    "system",
    value=decoders.parsed("value", "S101", _known_amount),
    sources=fields.url_list("sources"),
    record=fields.key("record"),
    published=None,
)
"""The fields of an observation."""
