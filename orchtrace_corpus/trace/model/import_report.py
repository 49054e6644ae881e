"""The import report of a trace as typed values, as far as what is shown of it goes; importers.report makes it."""

import msgspec
from msgspec import Struct

from orchtrace_corpus.trace.model.trace import Trace

_MISSING = "unknown: "
_UNSURE = "the least it can be"


class Noted(Struct):
    """Something that was met a number of times, with some of the places."""

    number: int
    for_example: tuple[str, ...] = ()


class Line(Struct):
    """A line of the token ledger: how many usage records, and their tokens by kind."""

    records: int
    tokens: dict[str, float]


class Prices(Struct):
    """By which prices a trace has costs.

    Attributes:
        date: Of which day they are.
        last_day: The last day of the run; empty where that is unknown.
        without: How many events have no cost, by model.
        unused: The models of the table that the run does not have.
    """

    date: str
    last_day: str = ""
    without: dict[str, int] = {}
    unused: tuple[str, ...] = ()


class ImportReport(Struct):
    """What became of the records of a log."""

    dropped: dict[str, Noted] = {}
    unknown_kinds: dict[str, int] = {}
    problems: dict[str, Noted] = {}
    token_ledger: dict[str, Line] = {}
    prices: Prices | None = None

    def missing(self) -> dict[str, int]:
        """What the ledger has no tokens of, and of how many such records it knows."""
        known = {
            what.partition(": ")[2]: line.records
            for what, line in self.token_ledger.items()
            if what.startswith(_MISSING)
        }
        return {what: records for what, records in known.items() if records}

    def unsure(self) -> list[str]:
        """What is counted, but may be more."""
        return [what.partition(": ")[2] for what in self.token_ledger if _UNSURE in what]


def report_of(trace: Trace) -> ImportReport | None:
    """The import report of a trace, empty where it has none; None where it is in the form of another program."""
    try:
        return msgspec.convert(trace.import_report, ImportReport)
    except msgspec.ValidationError:
        return None


def has_all_tokens(trace: Trace) -> bool:
    """Whether the tokens of the events are all that were spent, as far as the trace and its report say."""
    report = report_of(trace) or ImportReport()
    return trace.costs.get("tokens") is not None and not report.missing() and not report.unsure()
