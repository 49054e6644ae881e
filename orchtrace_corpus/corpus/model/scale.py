"""Published sizes of systems in use and of experiments, decoded from `data/scale.yaml`.

Nobody else can check a vendor's number, so no such number counts as verified.
"""

import re
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

_MAX_NUMBER_LENGTH = 16
"""The largest length of a number, in characters: a float cannot hold more digits exactly."""

UNKNOWN = "unknown"
"""The value in the file if no number was found."""


class Group(StrEnum):
    """The group of a system: in use by people, or only trained and evaluated in a publication."""

    DEPLOYMENT = "deployment"
    ACADEMIC = "academic"


class Phase(StrEnum):
    """The phase in which a number was counted; `LIMIT` is a maximum that the program allows."""

    TRAINING = "training"
    EVALUATION = "evaluation"
    LIMIT = "limit"


class Support(StrEnum):
    """The kind of source in which a number was read; `CODE` is a commit of the authors' code."""

    PAPER = "paper"
    CODE = "code"
    PAPER_COPY = "paper_copy"
    VENDOR = "vendor"
    VENDOR_COPY = "vendor_copy"
    THIRD_PARTY = "third_party"


BOUNDS = {"<=": "up to", ">=": "at least", "<": "under", "~": "about"}
"""The signs before a number, and the words for them; a number without a sign is exact. `parse_amount` tries them in
order, so `<=` precedes `<`."""


class Amount(NamedTuple):
    """A range with both ends included, or a single number if `low` equals `high`; `bound` is a sign or empty."""

    low: float
    high: float
    bound: str = ""


class Observation(NamedTuple):
    """A number about the scale of a system or method, or the fact that none is published.

    Attributes:
        quantity: What is counted; observations of one quantity can be compared.
        value: The number; None if no number was found.
        evidence: The kind of source in which it was read.
        verified: Whether the number was read in the publication itself, or in its code.
        record: The key of the paper, if it is in the pool.
        quote: The line of the source with the number.
        published: Whether the paper is in the published pool; None if this is unknown, or without a paper.
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
        """The unique name of the observation."""
        phase = "" if self.phase is None else f", {self.phase}"
        return f"{self.system}: {self.quantity}{phase}"

    @property
    def is_limit(self) -> bool:
        """True if the source gives a limit and no count."""
        return self.phase is Phase.LIMIT or (self.value is not None and self.value.bound in ("<=", "<"))

    @property
    def is_second_hand(self) -> bool:
        """True if the number was read in a copy of the source, or in a report by somebody else."""
        return self.evidence in (Support.PAPER_COPY, Support.VENDOR_COPY, Support.THIRD_PARTY)


class Comparison(NamedTuple):
    """The observations of one quantity: those of systems in use, and those of experiments."""

    quantity: str
    deployments: tuple[Observation, ...]
    academic: tuple[Observation, ...]


def decode_scale(file: YamlFile | None, keys: Collection[str] | None, noun: Noun = PAPER_NOUN) -> Entries[Observation]:
    """Decode the observations; `keys` are the keys of the papers, None if some are unknown."""
    if file is None:
        return Entries("what is known of scale has")
    report = Report(file)
    observations, starts = [], []
    names_before: set[tuple[str | None, ...]] = set()
    for node in file.records():
        report.record = ""
        values = decode_record(node, OBSERVATION, report)
        if values is None or type(node) is not Mapping:
            continue
        for field, code, message in _problems(values, names_before, keys, noun.one):
            report.add(code, node.entries[field][1].at, message)
        if None not in values.values() and values.keys() >= set(OBSERVATION.required):
            value = None if values["value"] == UNKNOWN else values["value"]
            observations.append(Observation(**{**values, "value": value}))
            starts.append(node.at)
    findings = sorted(file.findings, key=lambda finding: (finding.location, finding.code, finding.message))
    return Entries("what is known of scale has", observations, Places(file, starts), findings)


def _problems(
    values: dict[str, Any], names_before: set[tuple[str | None, ...]], keys: Collection[str] | None, noun: str
) -> Iterator[tuple[str, str, str]]:
    """Yield the field, code and message of each problem of an observation, and add its name to `names_before`."""
    system = values.get("system")
    quantity = values.get("quantity")
    phase = values.get("phase")
    record = values.get("record")
    evidence = values.get("evidence")
    if system is not None and quantity is not None:
        name = (system, quantity, phase)
        if name in names_before:
            when = "" if phase is None else f" in the phase {quote(phase)}"
            message = f"the {quote(quantity)} of {quote(system)} are given twice{when}; keep one, or name what differs"
            yield "quantity", "S102", message
        names_before.add(name)
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
    """Return the quantities that were observed for systems in use and for experiments, in the order of the file."""
    comparisons = []
    for quantity in dict.fromkeys(observation.quantity for observation in observations):
        comparable = [observation for observation in observations if observation.quantity == quantity]
        deployments = tuple(observation for observation in comparable if observation.group is Group.DEPLOYMENT)
        academic = tuple(observation for observation in comparable if observation.group is Group.ACADEMIC)
        if deployments and academic:
            comparisons.append(Comparison(quantity, deployments, academic))
    return tuple(comparisons)


def span(observations: Sequence[Observation]) -> Amount | None:
    """Return the range from the smallest to the largest number; None if no observation has a number."""
    amounts = [observation.value for observation in observations if observation.value]
    if not amounts:
        return None
    return Amount(min(amount.low for amount in amounts), max(amount.high for amount in amounts))


def parse_amount(text: str) -> Amount | None:
    """Read an amount, such as `16`, `3-5`, `<=300` or `~2000`; return None if the text is no amount."""
    bound = ""
    for sign in BOUNDS:
        if text.startswith(sign):
            bound = sign
            break
    low, dash, high = text.removeprefix(bound).partition("-")
    if not dash:
        high = low
    if not _is_number(low) or not _is_number(high):
        return None
    amount = Amount(float(low), float(high), bound)
    return amount if amount.low <= amount.high else None


def _is_number(text: str) -> bool:
    return len(text) <= _MAX_NUMBER_LENGTH and re.fullmatch(r"\d+(\.\d+)?", text, re.ASCII) is not None


def _amount_or_unknown(text: str) -> Amount | str:
    amount = UNKNOWN if text == UNKNOWN else parse_amount(text)
    if amount is None:
        fix = f"write a number, a range such as 3-5, either after <=, <, >= or ~, or {UNKNOWN}"
        raise ValueError(f"{quote(text)} is not an amount: {fix}")
    return amount


OBSERVATION = decoders.schema_of(
    Observation,
    "an observation",
    "system",
    value=decoders.parsed("value", "S101", _amount_or_unknown),
    sources=fields.url_list("sources"),
    record=fields.key("record"),
    published=None,
)
"""The fields of an observation."""
