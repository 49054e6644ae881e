"""What an import did with every record of a log, and how it came to its token counts: for a sceptic to follow."""

from typing import Any

_MOST_EXAMPLES = 3
_MOST_KINDS = 100
_OTHERS = "(further kinds)"


class Report:
    """Counts of one import.

    Attributes:
        read: Records read.
        repaired: Records of which bytes that are no UTF-8 were replaced.
        out_of_order: Records whose time lies before that of the record in front of them.
        lost: Lines that could not be read, so that nobody knows what they say.
    """

    def __init__(self) -> None:
        self.read = 0
        self.repaired = 0
        self.out_of_order = 0
        self.lost = 0
        self._dropped: dict[str, list[Any]] = {}
        self._unknown: dict[str, int] = {}
        self._passed: dict[str, int] = {}
        self._problems: dict[str, list[Any]] = {}
        self._ledger: dict[str, dict[str, Any]] = {}

    def drop(self, why: str, file: str, line: int) -> None:
        """Note a record that was left out."""
        _note(self._dropped, why, f"{file}:{line}")

    def lose(self, why: str, file: str, line: int) -> None:
        """Note a line that could not be read: it may have reported tokens."""
        self.lost += 1
        self.drop(why, file, line)

    def unknown(self, kind: str) -> None:
        """Note a record of a kind that the importer does not know; it is left out."""
        _count(self._unknown, kind)

    def passed(self, kind: str) -> None:
        """Note a record of a kind that says nothing about agents, calls or tokens; it is passed over."""
        _count(self._passed, kind)

    def problem(self, what: str, where: str) -> None:
        """Note something about the log that a reader should know: a child without its parent, a clock that jumps."""
        _note(self._problems, what, where)

    def ledger(self, what: str, records: int = 1, **tokens: float) -> None:
        """Note what became of usage records: counted, deduplicated, left out because their leaves report, and so on.

        Args:
            what: One line of the ledger, always in the same words.
            records: How many usage records.
            tokens: Their tokens by kind: those counted, or those left out, as the line says.
        """
        entry = self._ledger.get(what)
        if entry is None:
            entry = self._ledger[what] = {"records": 0, "tokens": {}}
        entry["records"] += records
        known = entry["tokens"]
        for kind, number in tokens.items():
            known[kind] = known.get(kind, 0) + number

    def as_data(self) -> dict[str, Any]:
        """The report as the trace keeps it."""
        return {
            "records_read": self.read,
            "repaired": self.repaired,
            "out_of_order": self.out_of_order,
            "dropped": self._dropped_data(self._dropped),
            "passed_over": dict(sorted(self._passed.items())),
            "unknown_kinds": dict(sorted(self._unknown.items())),
            "problems": self._dropped_data(self._problems),
            "token_ledger": self._ledger,
        }

    @staticmethod
    def _dropped_data(noted: dict[str, list[Any]]) -> dict[str, dict[str, Any]]:
        return {what: {"number": number, "for_example": examples} for what, (number, examples) in noted.items()}


def _count(counts: dict[str, int], kind: str) -> None:
    """Count a kind; a log may make up more of them than anybody would read."""
    if kind not in counts and len(counts) >= _MOST_KINDS:
        kind = _OTHERS
    counts[kind] = counts.get(kind, 0) + 1


def _note(noted: dict[str, list[Any]], what: str, where: str) -> None:
    entry = noted.setdefault(what, [0, []])
    entry[0] += 1
    if len(entry[1]) < _MOST_EXAMPLES:
        entry[1].append(where)
