"""Reports what an import did with every record of a log."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.layout import wrap
from orchtrace_corpus.trace.measures.shared_answers import Shared
from orchtrace_corpus.trace.model.import_report import ImportReport, Outcome, Prices, report_of
from orchtrace_corpus.trace.model.trace import Tokens, Trace, by_kind
from orchtrace_corpus.trace.render import ledger as trace_ledger
from orchtrace_corpus.trace.render.ledger import Row
from orchtrace_corpus.trace.render.names import money

_Key = TypeVar("_Key")
_PIPE_WIDTH = 100
_LEAST_WIDTH = 20
_MOST_SHOWN = 8
_COPIES = "taken off: answers that another session of this import has (same message.id and requestId)"
_KINDS = {
    "dropped": "Left out:",
    "passed_over": "Skipped, because they say nothing about agents, calls or tokens:",
    "unknown_kinds": "Left out, because their kind is unknown:",
    "problems": "Problems:",
}


class Tally:
    """The reports of several imports, added up.

    Attributes:
        traces: How many traces were added.
    """

    def __init__(self) -> None:
        self.traces = 0
        self._events = 0
        self._read = self._repaired = self._out_of_order = 0
        self._kinds: dict[str, Counter[str]] = {name: Counter() for name in _KINDS}
        self._examples: dict[str, str] = {}
        self._ledger: dict[tuple[str, str], Row] = {}
        self._shares: dict[str, dict[str, Row]] = {"session": {}, "agent": {}, "model": {}}
        self._unknown: Counter[str] = Counter()
        self._prices: Prices | None = None
        self._shared = Shared()

    def add(self, trace: Trace, answers: Mapping[int, str]) -> None:
        """Add the report of one trace, as an importer has made it.

        Args:
            trace: The trace.
            answers: The ids of its answers, by the numbers of their events.
        """
        report = report_of(trace) or ImportReport()
        self.traces += 1
        self._events += len(trace.events)
        self._read += report.records_read
        self._repaired += report.repaired
        self._out_of_order += report.out_of_order
        self._kinds["passed_over"].update(report.passed_over)
        self._kinds["unknown_kinds"].update(report.unknown_kinds)
        for kinds, places in (("dropped", report.dropped), ("problems", report.problems)):
            for kind, noted in places.items():
                self._kinds[kinds][kind] += noted.number
                if noted.for_example:
                    self._examples.setdefault(kind, noted.for_example[0])
        for entry in report.entries():
            row = Row(entry.what or entry.outcome, entry.records, entry.tokens, outcome=entry.outcome)
            _add(self._ledger, (entry.outcome, entry.what), row)
        if reason := trace.reasons.get("costs.tokens"):
            self._unknown[reason] += 1
        if report.prices is not None:
            self._add_prices(report.prices)
        spent: dict[tuple[str, str], Row] = {}  # by the agents and the models
        for event in trace.events:
            if isinstance(event.tokens, Tokens) and not event.copied_context:
                _add(spent, (event.agent, event.model), Row("", None, by_kind(event.tokens), event.cost_usd))
        for (agent, model), row in spent.items():
            _add(self._shares["session"], f"{self.traces}", row._replace(name=trace.trace_id))
            _add(self._shares["agent"], agent, row._replace(name=agent))
            _add(self._shares["model"], model, row._replace(name=model or "(not named)"))
        for copy in self._shared.add(trace, answers):
            less = {kind: -number for kind, number in by_kind(copy.tokens).items()}
            usd = None if copy.usd is None else -copy.usd
            _add(self._shares["model"], copy.model, Row("", None, less, usd))
            _add(self._ledger, (Outcome.COUNTED, _COPIES), Row(_COPIES, -1, less, outcome=Outcome.COUNTED))

    def _add_prices(self, prices: Prices) -> None:
        known = self._prices or Prices(prices.date, prices.source, unused=prices.unused)
        for model, number in prices.without.items():
            known.without[model] = known.without.get(model, 0) + number
        for model, number in prices.without_hour.items():
            known.without_hour[model] = known.without_hour.get(model, 0) + number
        known.unused = [model for model in known.unused if model in prices.unused]
        known.date, known.last_day = prices.date, max(known.last_day, prices.last_day)
        if prices.stated_usd is not None:
            known.stated_usd = (known.stated_usd or 0.0) + prices.stated_usd
        known.has_all_stated = known.has_all_stated and prices.has_all_stated
        self._prices = known

    def lines(self, width: int | None) -> list[str]:
        """The reports in words, in lines that fit the width; None for no terminal."""
        room = max(width or _PIPE_WIDTH, _LEAST_WIDTH)
        found = [part for said in self._said() for part in wrap(said, room, rest="  ")]
        for name, words in _KINDS.items():
            if self._kinds[name]:
                found += [*wrap(words, room), *self._listed(self._kinds[name], room)]
        ledger = list(self._ledger.values())
        by = ("session", "model") if self.traces > 1 else ("agent", "model")
        shares = {f"By {name}": list(self._shares[name].values()) for name in by}
        found += trace_ledger.lines(ledger, shares, room)
        rest = (*self._conserved(ledger), *self._unsure_copies(), *self._unknown_totals(), *self._cost())
        return [*found, *(part for said in rest for part in wrap(said, room, rest="  "))]

    def _said(self) -> Iterator[str]:
        read, made = noun(self._read, "record"), noun(self._events, "event")
        yield f"{noun(self.traces, 'trace')}: {read} read, {made} created."
        if number := self._out_of_order:
            verb = "is" if number == 1 else "are"
            yield f"{noun(number, 'record')} {verb} of an earlier time than the one before: sorted by time."
        if self._repaired:
            yield f"{noun(self._repaired, 'record')} had bytes that are not UTF-8, which were replaced."

    def _listed(self, known: Mapping[str, int], room: int) -> Iterator[str]:
        shown = sorted(known.items(), key=lambda pair: (-pair[1], pair[0]))[:_MOST_SHOWN]
        width = max(len(f"{number:,}") for _, number in shown) + 4
        for what, number in shown:
            example = self._examples.get(what)
            place = f" (such as {printable(example, limit=120)})" if example else ""
            text = printable(what, limit=120) + place
            yield from wrap(text, room, first=f"{number:>{width},}  ", rest=" " * (width + 2))
        if len(known) > _MOST_SHOWN:
            more = sum(known.values()) - sum(number for _, number in shown)
            yield f"{more:>{width},}  of {noun(len(known) - _MOST_SHOWN, 'more kind')}"

    def _conserved(self, ledger: list[Row]) -> Iterator[str]:
        """A warning where the events do not have what the ledger counted; no importer should ever need it."""
        events = sum(row.total for row in self._shares["model"].values())
        if trace_ledger.counted(ledger) != events:
            stated = f"{trace_ledger.counted(ledger):,.15g}"
            yield f"The ledger does not add up: it counts {stated} tokens, and the events have {events:,.15g}."

    def _unsure_copies(self) -> Iterator[str]:
        if self.traces > 1 and (number := self._shared.without_ids):
            verb, them = ("has", "it") if number == 1 else ("have", "them")
            yield f"{noun(number, 'answer')} {verb} no ids: other sessions may have {them}, too."

    def _unknown_totals(self) -> Iterator[str]:
        if self.traces == 1:
            for reason in self._unknown:
                yield f"The total is unknown: {printable(reason, limit=200)}"
        elif self._unknown:
            number = sum(self._unknown.values())
            each = "it says" if number == 1 else "each says"
            yield f"The total is unknown in {noun(number, 'trace')}; {each} why, under `reasons`."

    def _cost(self) -> Iterator[str]:
        spent = [row.usd for row in self._shares["model"].values() if row.usd is not None]
        if not self._prices:
            if spent:
                yield f"Cost as the logs state it: {'at least ' if self._unknown else ''}{money(sum(spent))} USD."
            return
        without = self._prices.without
        is_least = bool(without or self._prices.without_hour or self._unknown)
        total = f"{'at least ' if is_least else ''}{money(sum(spent))} USD" if spent else "unknown"
        yield f"Cost at {prices_of(self._prices.date, self._prices.last_day, self._prices.source)}: {total}."
        if self._prices.stated_usd is not None:
            least = "" if self._prices.has_all_stated else "at least "
            yield f"The logs state {least}{money(self._prices.stated_usd)} USD."
        if without:
            ordered = sorted(without.items(), key=lambda pair: (-pair[1], pair[0]))
            named = [f"{printable(model)} ({noun(number, 'event')})" for model, number in ordered[:_MOST_SHOWN]]
            more = [noun(len(ordered) - _MOST_SHOWN, "more model")] if len(ordered) > _MOST_SHOWN else []
            yield f"Not in the cost, because a price or a count is missing: {', '.join([*named, *more])}."
            if self._prices.unused:
                yield f"{unused_prices(self._prices.unused)}."
        if self._prices.without_hour:
            yield without_hour(sorted(self._prices.without_hour))


def prices_of(day: str, last_day: str, source: str = "") -> str:
    """Of which day prices are, and whether what they are applied to ran later or earlier, since prices change.

    Prices that a package keeps are those of the run's own days, as far as it knows changes.
    """
    date, last = printable(day), printable(last_day)
    if source:
        return f"the prices of {printable(source)}, which knows changes until {date}"
    if not last or last == date:
        return f"the prices of {date}"
    return f"the prices of {date}, {'older' if last > date else 'newer'} than the run of {last}"


def unused_prices(models: Sequence[str]) -> str:
    """Name the models of a price table that a run does not have; one may be a misspelt name of a model that it has."""
    named = ", ".join(printable(model) for model in models[:_MOST_SHOWN])
    more = ", …" if len(models) > _MOST_SHOWN else ""
    return f"The price table names {named}{more}, of which the run has no event"


def without_hour(models: Sequence[str]) -> str:
    """Name the models without a price for one-hour cache writes."""
    named = ", ".join(printable(model) for model in models[:_MOST_SHOWN])
    more = ", …" if len(models) > _MOST_SHOWN else ""
    return f"Cache writes kept for an hour are priced as kept for five minutes, without a price of {named}{more}."


def noun(number: int, name: str) -> str:
    """A number with its noun, such as `1 trace` or `2,000 traces`."""
    return f"{number:,} {name}" if number == 1 else f"{number:,} {name}s"


def _add(known: dict[_Key, Row], key: _Key, row: Row) -> None:
    """Add a row to that of a key, whose tokens are its own."""
    before = known.get(key)
    if before is None:
        before = known[key] = row._replace(tokens={}, records=None, usd=None)
    for kind, number in row.tokens.items():
        before.tokens[kind] = before.tokens.get(kind, 0) + (number or 0)
    if row.records is not None or row.usd is not None:
        records = before.records if row.records is None else (before.records or 0) + row.records
        usd = before.usd if row.usd is None else (before.usd or 0.0) + row.usd
        known[key] = before._replace(records=records, usd=usd)
