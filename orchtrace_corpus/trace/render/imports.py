"""The report of an import: the outcome of every record of a log."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.layout import wrap
from orchtrace_corpus.trace.measures.shared_answers import SharedAnswers
from orchtrace_corpus.trace.model.import_report import ImportReport, Outcome, Prices, report_of
from orchtrace_corpus.trace.model.trace import Tokens, Trace, by_kind
from orchtrace_corpus.trace.render import ledger as trace_ledger
from orchtrace_corpus.trace.render.ledger import Row
from orchtrace_corpus.trace.render.names import format_count, money

_Key = TypeVar("_Key")
_PIPE_WIDTH = 100
_MIN_WIDTH = 20
_MAX_ITEMS = 8
_COPIES = "taken off: answers that another session of this import has (same message.id and requestId)"
_HEADINGS = {
    "dropped": "Left out:",
    "skipped": "Skipped, because they say nothing about agents, calls or tokens:",
    "unknown_kinds": "Left out, because their kind is unknown:",
    "problems": "Problems:",
}
"""The headings of the counts of a report, by the field of the report."""


class Tally:
    """The reports of several imports, added up.

    Attributes:
        traces: The number of traces added.
    """

    def __init__(self) -> None:
        self.traces = 0
        self._events = 0
        self._read = self._repaired = self._out_of_order = 0  # numbers of records
        self._counts_by_field: dict[str, Counter[str]] = {field: Counter() for field in _HEADINGS}  # by kind of record
        self._examples: dict[str, str] = {}  # by kind of record
        self._ledger: dict[tuple[str, str], Row] = {}  # by outcome and kind of record
        self._shares: dict[str, dict[str, Row]] = {"session": {}, "agent": {}, "model": {}}
        self._unknown_totals: Counter[str] = Counter()  # traces by the reason why their total is unknown
        self._prices: Prices | None = None
        self._shared = SharedAnswers()

    def add(self, trace: Trace, answers: Mapping[int, str]) -> None:
        """Add the import report of a trace; `answers` are the ids of its answers, by the indices of their events."""
        report = report_of(trace) or ImportReport()
        self.traces += 1
        self._events += len(trace.events)
        self._read += report.records_read
        self._repaired += report.repaired
        self._out_of_order += report.out_of_order
        self._counts_by_field["skipped"].update(report.skipped)
        self._counts_by_field["unknown_kinds"].update(report.unknown_kinds)
        for field, drops in (("dropped", report.dropped), ("problems", report.problems)):
            for kind, drop in drops.items():
                self._counts_by_field[field][kind] += drop.number
                if drop.for_example:
                    self._examples.setdefault(kind, drop.for_example[0])
        for entry in report.entries():
            row = Row(entry.description or entry.outcome, entry.records, entry.tokens, outcome=entry.outcome)
            _add(self._ledger, (entry.outcome, entry.description), row)
        if reason := trace.reasons.get("costs.tokens"):
            self._unknown_totals[reason] += 1
        if report.prices is not None:
            self._add_prices(report.prices)
        sums: dict[tuple[str, str], Row] = {}  # by agent and model
        for event in trace.events:
            if isinstance(event.tokens, Tokens) and not event.copied_context:
                _add(sums, (event.agent, event.model), Row("", None, by_kind(event.tokens), event.cost_usd))
        for (agent, model), row in sums.items():
            # Sessions are told apart by their number, since several may have one id.
            _add(self._shares["session"], f"{self.traces}", row._replace(name=trace.trace_id))
            _add(self._shares["agent"], agent, row._replace(name=agent))
            _add(self._shares["model"], model, row._replace(name=model or "(not named)"))
        for copy in self._shared.add(trace, answers):  # negative rows take the copies off the sums
            tokens = {kind: -amount for kind, amount in by_kind(copy.tokens).items()}
            usd = None if copy.usd is None else -copy.usd
            _add(self._shares["model"], copy.model, Row("", None, tokens, usd))
            _add(self._ledger, (Outcome.COUNTED, _COPIES), Row(_COPIES, -1, tokens, outcome=Outcome.COUNTED))

    def _add_prices(self, prices: Prices) -> None:
        """Add the models without a price, and the costs that logs state; what is unused is unused in all traces."""
        total = self._prices
        if total is None:
            total = Prices(prices.date, prices.source, unused=prices.unused)
        for model, count in prices.without.items():
            total.without[model] = total.without.get(model, 0) + count
        for model, count in prices.without_hour.items():
            total.without_hour[model] = total.without_hour.get(model, 0) + count
        total.unused = [model for model in total.unused if model in prices.unused]
        total.date = prices.date
        total.last_day = max(total.last_day, prices.last_day)
        if prices.stated_usd is not None:
            total.stated_usd = (total.stated_usd or 0.0) + prices.stated_usd
        total.has_all_stated = total.has_all_stated and prices.has_all_stated
        self._prices = total

    def lines(self, width: int | None) -> list[str]:
        """Return the report as lines that fit a terminal of this width; None for no terminal."""
        room = max(width or _PIPE_WIDTH, _MIN_WIDTH)
        lines: list[str] = []
        for sentence in self._counts():
            lines += wrap(sentence, room, rest="  ")
        for field, heading in _HEADINGS.items():
            if self._counts_by_field[field]:
                lines += [*wrap(heading, room), *self._most_frequent(self._counts_by_field[field], room)]
        ledger = list(self._ledger.values())
        groupings = ("session", "model") if self.traces > 1 else ("agent", "model")
        shares = {f"By {grouping}": list(self._shares[grouping].values()) for grouping in groupings}
        lines += trace_ledger.lines(ledger, shares, room)
        for sentence in (*self._sentences_on_tokens(ledger), *self._cost()):
            lines += wrap(sentence, room, rest="  ")
        return lines

    def _counts(self) -> Iterator[str]:
        records, events = format_count(self._read, "record"), format_count(self._events, "event")
        yield f"{format_count(self.traces, 'trace')}: {records} read, {events} created."
        if self._out_of_order:
            verb = "is" if self._out_of_order == 1 else "are"
            records = format_count(self._out_of_order, "record")
            yield f"{records} {verb} of an earlier time than the one before: sorted by time."
        if self._repaired:
            yield f"{format_count(self._repaired, 'record')} had bytes that are not UTF-8, which were replaced."

    def _most_frequent(self, counts: Mapping[str, int], room: int) -> Iterator[str]:
        """Yield the most frequent kinds with their counts and perhaps an example, then the sum of the rest."""
        most_frequent = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MAX_ITEMS]
        width = max(len(f"{count:,}") for _, count in most_frequent) + 4
        for kind, count in most_frequent:
            text = printable(kind, limit=120)
            if example := self._examples.get(kind):
                text += f" (such as {printable(example, limit=120)})"
            yield from wrap(text, room, first=f"{count:>{width},}  ", rest=" " * (width + 2))
        if len(counts) > _MAX_ITEMS:
            rest = sum(counts.values()) - sum(count for _, count in most_frequent)
            yield f"{rest:>{width},}  of {format_count(len(counts) - _MAX_ITEMS, 'more kind')}"

    def _sentences_on_tokens(self, ledger: list[Row]) -> Iterator[str]:
        event_tokens = sum(row.total for row in self._shares["model"].values())
        ledger_tokens = trace_ledger.counted_tokens(ledger)
        if ledger_tokens != event_tokens:  # a mistake of an importer
            sums = f"it counts {ledger_tokens:,.15g} tokens, and the events have {event_tokens:,.15g}"
            yield f"The ledger does not add up: {sums}."
        if self.traces > 1:
            yield from answers_without_ids(self._shared)
        if self.traces == 1:
            for reason in self._unknown_totals:
                yield f"The total is unknown: {printable(reason, limit=200)}"
        elif self._unknown_totals:
            traces = sum(self._unknown_totals.values())
            says = "it says" if traces == 1 else "each says"
            yield f"The total is unknown in {format_count(traces, 'trace')}; {says} why, under `reasons`."

    def _cost(self) -> Iterator[str]:
        costs = [row.usd for row in self._shares["model"].values() if row.usd is not None]
        total = f"{money(sum(costs))} USD" if costs else "unknown"
        if not self._prices:
            if costs:
                least = "at least " if self._unknown_totals else ""
                yield f"Cost as the logs state it: {least}{total}."
            return
        without = self._prices.without
        if costs and (without or self._prices.without_hour or self._unknown_totals):
            total = f"at least {total}"
        yield f"Cost at {prices_of(self._prices.date, self._prices.last_day, self._prices.source)}: {total}."
        if self._prices.stated_usd is not None:
            least = "" if self._prices.has_all_stated else "at least "
            yield f"The logs state {least}{money(self._prices.stated_usd)} USD."
        if without:
            ordered = sorted(without.items(), key=lambda item: (-item[1], item[0]))
            models = [f"{printable(model)} ({format_count(count, 'event')})" for model, count in ordered[:_MAX_ITEMS]]
            if len(ordered) > _MAX_ITEMS:
                models.append(format_count(len(ordered) - _MAX_ITEMS, "more model"))
            yield f"Not in the cost, because a price or a count is missing: {', '.join(models)}."
            if self._prices.unused:
                yield f"{unused_prices(self._prices.unused)}."
        if self._prices.without_hour:
            yield without_hour(sorted(self._prices.without_hour))


def answers_without_ids(shared: SharedAnswers) -> Iterator[str]:
    """Yield a remark on sums over sessions if answers have no ids, so that copies of them cannot be found."""
    if shared.without_ids:
        verb, pronoun = ("has", "it") if shared.without_ids == 1 else ("have", "them")
        yield f"{format_count(shared.without_ids, 'answer')} {verb} no ids: other sessions may have {pronoun}, too."


def prices_of(day: str, last_day: str, source: str = "") -> str:
    """Describe prices by their day and source.

    Args:
        day: The day of the prices; with a source, the last day of which it knows price changes.
        last_day: The last day of the run; empty if unknown.
        source: The package that knows the prices of every day; empty for a table with prices of one day.
    """
    date, last = printable(day), printable(last_day)
    if source:
        return f"the prices of {printable(source)}, which knows changes until {date}"
    if not last or last == date:
        return f"the prices of {date}"
    age = "older" if last > date else "newer"
    return f"the prices of {date}, {age} than the run of {last}"


def unused_prices(models: Sequence[str]) -> str:
    """Name the models of a price table that a run does not have: a name may be misspelt."""
    return f"The price table names {_model_names(models)}, of which the run has no event"


def without_hour(models: Sequence[str]) -> str:
    """Name the models without a price for one-hour cache writes."""
    names = _model_names(models)
    return f"Cache writes kept for an hour are priced as kept for five minutes, without a price of {names}."


def _model_names(models: Sequence[str]) -> str:
    names = ", ".join(printable(model) for model in models[:_MAX_ITEMS])
    return f"{names}, …" if len(models) > _MAX_ITEMS else names


def _add(rows: dict[_Key, Row], key: _Key, row: Row) -> None:
    """Add the figures of a row to the row of a key; a new row keeps the name and the outcome."""
    total = rows.get(key)
    if total is None:
        total = row._replace(tokens={}, records=None, usd=None)
        rows[key] = total
    for kind, amount in row.tokens.items():
        total.tokens[kind] = total.tokens.get(kind, 0) + (amount or 0)
    if row.records is not None or row.usd is not None:
        records = total.records if row.records is None else (total.records or 0) + row.records
        usd = total.usd if row.usd is None else (total.usd or 0.0) + row.usd
        rows[key] = total._replace(records=records, usd=usd)
