"""Computes the costs of tokens from a dated price table of the user, or from the package genai-prices.

There is no built-in price table, since prices change and differ. The user's table is YAML or JSON, in US dollars for a
million tokens:

    date: 2026-05-04
    currency: USD
    models:
      some-model: {input: 3, output: 15, cache_read: 0.3, cache_write: 3.75, cache_write_1h: 6}
      another-model: {input: 0.5, output: 2}

Tokens written to a cache for an hour cost `cache_write_1h`. If the table has no such price, they cost `cache_write`,
and the total is a lower bound.

The prices of a model without a date also hold for its dated snapshots: those of `some-model` for `some-model-20260101`.
Reasoning tokens are a part of the output tokens, with the same price. A cost is null (unknown) if the model or one of
its kinds of tokens has no price, or if the log does not state both the input and the output of a model answer.
"""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from functools import cache
from math import inf
from typing import Any, TypeAlias

from orchtrace_corpus.base.errors import DataFileError, MissingLibraryError
from orchtrace_corpus.base.findings import printable, quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.reader import Mapping as MappingNode
from orchtrace_corpus.base.yamlfile.reader import Node, Scalar, YamlFile, read
from orchtrace_corpus.trace.measures.measure import ANSWER_TYPES
from orchtrace_corpus.trace.model.import_report import ImportReport, has_all_costs, report_of
from orchtrace_corpus.trace.model.terms import SECONDS
from orchtrace_corpus.trace.model.trace import Tokens, Trace, by_kind

KINDS = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
"""The kinds of tokens that have a price."""

_HOUR = "cache_write_1h"

_HINT = "docs/importers.md shows a price table."
_PRICE_PATTERN = r"[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?"
_SNAPSHOT_PATTERN = r"(.+?)[-@](?:\d{8}|\d{4}-\d{2}-\d{2})"  # a model's name and the date of a snapshot


class Prices(NamedTuple):
    """A price table.

    Attributes:
        date: The day of the prices.
        models: For each model, the price of a million tokens by kind, in US dollars.
        source: The package that the prices are from; empty for a table of the user.
    """

    date: str
    models: Mapping[str, Mapping[str, float]]
    source: str = ""

    def table_name(self, model: str) -> str:
        """Return the name of a model in the table, where a dated snapshot may have the name of its model."""
        if model not in self.models:
            snapshot = re.fullmatch(_SNAPSHOT_PATTERN, model)
            if snapshot:
                return snapshot[1]
        return model

    def model_prices(self, model: str) -> Mapping[str, float] | None:
        """Return the prices of a model or of a dated snapshot, by kind of token; None if the table has none."""
        return self.models.get(self.table_name(model))

    def cost(self, model: str, tokens: Mapping[str, float | None], moment: datetime | None = None) -> float | None:
        """Return the cost of a model's tokens in US dollars; None if a count or a price is unknown.

        Tokens of a kind that is not among the keys were not used. A count of None is unknown.
        """
        del moment  # a table has one price for all moments
        prices = self.model_prices(model)
        amounts = _disjoint_amounts(tokens)
        if prices is None or amounts is None:
            return None
        if _HOUR not in prices:
            amounts = _hour_as_cache_write(amounts)
        if any(amount and kind not in prices for kind, amount in amounts.items()):
            return None
        return round(sum(amount * prices[kind] for kind, amount in amounts.items() if amount) / 1_000_000, 9)

    def has_hour_price(self, model: str, moment: datetime | None = None) -> bool:
        """Return True if the table has a price of a model for cache writes for an hour."""
        del moment  # a table has one price for all moments
        prices = self.model_prices(model)
        return prices is not None and _HOUR in prices


class PackagePrices(NamedTuple):
    """The prices of the package genai-prices.

    It has price tiers, which depend on the size of an answer's context, and prices that change with time.

    Attributes:
        date: The day of the last change of a price up to today.
        source: The package and its version.
        models: Empty; a table lists its models here, but the package prices far more models than any run has.
    """

    date: str
    source: str
    models: Mapping[str, Mapping[str, float]] = {}

    def table_name(self, model: str) -> str:
        """Return the model unchanged, since the package recognises snapshots itself."""
        return model

    def cost(self, model: str, tokens: Mapping[str, float | None], moment: datetime | None = None) -> float | None:
        """Return the cost of a model's tokens in US dollars at a moment; None if a count or a price is unknown.

        Without a moment, the prices are those of the day `date`.
        """
        from genai_prices import Usage

        provider_and_model = _look_up(model)
        amounts = _disjoint_amounts(tokens)
        if provider_and_model is None or amounts is None:
            return None
        provider, known_model = provider_and_model
        moment = moment or self._day()
        prices = known_model.get_prices(moment)
        if getattr(prices, f"{_HOUR}_mtok", None) is None:
            amounts = _hour_as_cache_write(amounts)
        if any(amount and getattr(prices, f"{kind}_mtok", None) is None for kind, amount in amounts.items()):
            return None
        counts = {kind: int(amounts.get(kind, 0)) for kind in KINDS}
        cache_write = counts["cache_write"] + counts[_HOUR]  # the package counts one-hour writes as both
        hour_tokens = {f"{_HOUR}_tokens": counts[_HOUR]} if counts[_HOUR] else {}
        usage = Usage(
            input_tokens=counts["input"] + counts["cache_read"] + cache_write,  # input, as the package counts it
            cache_read_tokens=counts["cache_read"],
            cache_write_tokens=cache_write,
            output_tokens=counts["output"],
            **hour_tokens,
        )
        price = known_model.calc_price(usage, provider, genai_request_timestamp=moment)
        return round(float(price.total_price), 9)

    def has_hour_price(self, model: str, moment: datetime | None = None) -> bool:
        """Return True if the package has a price of a model for cache writes for an hour."""
        provider_and_model = _look_up(model)
        if provider_and_model is None:
            return False
        _, known_model = provider_and_model
        prices = known_model.get_prices(moment or self._day())
        return getattr(prices, f"{_HOUR}_mtok", None) is not None

    def _day(self) -> datetime:
        return datetime.fromisoformat(self.date).replace(tzinfo=UTC)


AnyPrices: TypeAlias = Prices | PackagePrices


def load_package(today: date) -> PackagePrices:
    """Return the prices of the package genai-prices.

    Raises:
        DataFileError: The package is not installed.
    """
    try:
        from genai_prices import __version__
        from genai_prices.data_snapshot import get_snapshot
    except ImportError as error:
        hint = f"{MissingLibraryError('--cost', 'genai-prices', 'prices').hint}\nOr give a table: --prices FILE"
        raise DataFileError("the package genai-prices, which knows prices, is not installed", hint) from error
    change_days: list[date] = []
    for provider in get_snapshot().providers:
        for model in provider.models:
            if not isinstance(model.prices, list):
                continue  # its prices have never changed
            for conditional_price in model.prices:
                day = getattr(conditional_price.constraint, "start_date", None)
                if isinstance(day, date) and day <= today:
                    change_days.append(day)
    last_change = max(change_days, default=today)
    return PackagePrices(last_change.isoformat(), f"genai-prices {__version__}")


@cache
def _look_up(model: str) -> tuple[Any, Any] | None:
    """Return the provider and the model that the package finds by a name; None if it does not know the model."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        provider_and_model: tuple[Any, Any] = get_snapshot().find_provider_model(model, None, None, None)
    except LookupError:
        return None
    return provider_and_model


def _disjoint_amounts(tokens: Mapping[str, float | None]) -> dict[str, float] | None:
    """Return the tokens by kind, each counted once; None if there are none or the count of a kind is unknown."""
    amounts: dict[str, float] = {}
    for kind in KINDS:
        if kind in tokens:
            amount = tokens[kind]
            if amount is None:
                return None
            amounts[kind] = amount
    if not amounts:
        return None
    if _HOUR in amounts:  # logs count one-hour writes as cache writes, too
        amounts["cache_write"] = max(amounts.get("cache_write", 0.0) - amounts[_HOUR], 0.0)
    return amounts


def _hour_as_cache_write(amounts: dict[str, float]) -> dict[str, float]:
    """Return the tokens with one-hour cache writes counted as ordinary cache writes."""
    if _HOUR not in amounts:
        return amounts
    return {**amounts, "cache_write": amounts.get("cache_write", 0.0) + amounts[_HOUR], _HOUR: 0.0}


def load(path: str) -> Prices:
    """Read a price table.

    Raises:
        DataFileError: The file cannot be read, or has mistakes; the message says where.
    """
    file = read(path, printable(path, limit=300))
    root = file.root()
    if any(finding.code == "Y114" for finding in file.findings):  # an empty file
        raise _error(file, None, "the price table is empty")
    if file.findings:
        raise DataFileError("\n".join(map(str, file.findings[:5])), _HINT)
    names = ("date", "currency", "models")
    fields = _fields(file, root, "the price table", names)
    if missing := [name for name in names if name not in fields]:
        raise _error(file, root, f"the price table has no {quote(missing[0])}")
    day = _text(file, fields["date"], "date")
    currency = _text(file, fields["currency"], "currency")
    if not _is_date(day):
        raise _error(file, fields["date"], f"{quote(day)} is not a date such as 2026-05-04")
    if currency != "USD":
        raise _error(file, fields["currency"], f"prices are in USD, not in {quote(currency)}")
    nodes = _fields(file, fields["models"], "models", ())
    if not nodes:
        raise _error(file, fields["models"], "'models' names no model")
    models = {}
    for model, node in nodes.items():
        prices = _fields(file, node, f"the prices of {quote(model)}", KINDS)
        models[model] = {kind: _price(file, price) for kind, price in prices.items()}
    return Prices(day, models)


def apply(prices: AnyPrices, trace: Trace) -> None:
    """Replace the costs of the events of a trace, and describe the prices in its import report.

    The report's `prices` has these keys:

    - `date`, `source`, `currency`: those of the prices.
    - `first_day`, `last_day`: the days of the run.
    - `events`: the number of events with a cost.
    - `without`: the number of events without a cost, by model.
    - `without_hour`: the number of events with a cost, but without a price for one-hour cache writes, by model.
    - `unused`: the models of the table that the run does not have.
    - `stated_usd`, `has_all_stated`: the sum of the costs that the log states; True if it states that of every answer.
    """
    stated_cost = _stated_cost(trace)  # read first, since the costs are replaced below
    priced_events = 0
    unpriced: dict[str, int] = {}
    without_hour: dict[str, int] = {}
    epoch = _epoch(trace)
    seconds = SECONDS[trace.clock.unit]
    used_models = {prices.table_name(event.model) for event in trace.events}
    for event in trace.events:
        event.cost_usd = None
        tokens = event.tokens
        if not isinstance(tokens, Tokens) or event.copied_context:
            continue
        has_counts = event.type not in ANSWER_TYPES or (tokens.input is not None and tokens.output is not None)
        amounts = by_kind(tokens)
        moment = _moment(epoch, event.t * seconds)
        if has_counts and amounts and not any(amounts.values()):
            event.cost_usd = 0.0  # whatever the price is
        elif has_counts:
            event.cost_usd = prices.cost(event.model, amounts, moment)
        model = event.model or "(no model)"
        if event.cost_usd is None:
            unpriced[model] = unpriced.get(model, 0) + 1
            continue
        priced_events += 1
        if tokens.cache_write_1h and not prices.has_hour_price(event.model, moment):
            without_hour[model] = without_hour.get(model, 0) + 1
    report = {"date": prices.date, "currency": "USD", **_days(trace), "events": priced_events, "without": unpriced}
    if without_hour:
        report["without_hour"] = without_hour
    if prices.source:
        report["source"] = prices.source
    report["unused"] = [model for model in prices.models if model not in used_models]
    trace.import_report["prices"] = report | stated_cost


def _stated_cost(trace: Trace) -> dict[str, Any]:
    """Return the entries of the report for the cost that the log states; empty if the log states none."""
    previous = (report_of(trace) or ImportReport()).prices
    if previous is not None:  # the events have computed costs already; the earlier report has the stated one
        total, has_all = previous.stated_usd, previous.has_all_stated
    else:
        costs = [event.cost_usd for event in trace.events if event.cost_usd is not None and not event.copied_context]
        total = sum(costs) if costs else None
        has_all = has_all_costs(trace)
    if total is None:
        return {}
    return {"stated_usd": round(total, 9), "has_all_stated": has_all}


def _epoch(trace: Trace) -> datetime | None:
    """Return the date and time at which the clock of a trace is 0, in UTC; None if it has no valid date."""
    try:
        return datetime.fromisoformat(trace.clock.epoch or "").astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _moment(epoch: datetime | None, seconds: float) -> datetime | None:
    """Return the date and time some seconds after an epoch; None without an epoch, or beyond the calendar."""
    if epoch is None:
        return None
    try:
        return epoch + timedelta(seconds=seconds)
    except OverflowError:
        return None


def _days(trace: Trace) -> dict[str, str]:
    """Return the entries of the report for the first and the last day of a run, in UTC; empty if it has no date."""
    first = _epoch(trace)
    if first is None:
        return {}
    try:
        last = first + timedelta(seconds=trace.costs.get("wall_clock_s") or 0.0)
    except (ValueError, OverflowError, TypeError):
        return {}
    return {"first_day": first.date().isoformat(), "last_day": last.date().isoformat()}


def _fields(file: YamlFile, node: Node | None, subject: str, allowed: tuple[str, ...]) -> dict[str, Node]:
    """Return the values of a mapping by name; an empty `allowed` allows every name."""
    if not isinstance(node, MappingNode):
        raise _error(file, node, f"{subject} must be a mapping of names to values")
    for name, (at, _) in node.entries.items():
        if allowed and name not in allowed:
            message = f"{file.location(at)}: {subject}: unknown {quote(name)}{suggestion(name, allowed)}"
            raise DataFileError(message, _HINT)
    return {name: value for name, (_, value) in node.entries.items()}


def _text(file: YamlFile, node: Node, name: str) -> str:
    if not isinstance(node, Scalar):
        raise _error(file, node, f"{quote(name)} must be text")
    return node.text


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _price(file: YamlFile, node: Node) -> float:
    if not isinstance(node, Scalar):
        message = "a price is one number; of prices in tiers, or by the hour, give the one that holds for your runs"
        raise _error(file, node, message)
    amount = float(node.text) if re.fullmatch(_PRICE_PATTERN, node.text) else inf
    if amount == inf:  # not a number, or too large for one
        raise _error(file, node, f"{quote(node.text)} is not a price: dollars for a million tokens, such as 2.5")
    return amount


def _error(file: YamlFile, node: Node | None, message: str) -> DataFileError:
    """Return an error at the place of a node, or at the start of the file without one."""
    location = file.location(node.at if node is not None else 0)
    return DataFileError(f"{location}: {message}", _HINT)
