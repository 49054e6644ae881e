"""Computes the costs of tokens from a dated price table of the user, or from the package genai-prices.

This package has no price table of its own, since prices change and differ. The user's table is YAML or JSON, in US
dollars for a million tokens:

    date: 2026-05-04
    currency: USD
    models:
      some-model: {input: 3, output: 15, cache_read: 0.3, cache_write: 3.75, cache_write_1h: 6}
      another-model: {input: 0.5, output: 2}

Tokens written to a cache for an hour cost `cache_write_1h`. If the table has no such price, they cost `cache_write`,
and the total is "at least".

A model without a date in the table stands for all its dated snapshots: `some-model` also for `some-model-20260101`.
Reasoning is a part of the output, with the same price. A cost is null if it is unknown: the model or a kind of its
tokens has no price, or the log states no input or no output.
"""

import re
from collections.abc import Callable, Mapping
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
"""The kinds of tokens that have a price; reasoning is a part of the output."""

_HOUR = "cache_write_1h"

_HINT = "docs/importers.md shows a price table."
_AMOUNT = r"[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?"
_SNAPSHOT = r"(.+?)[-@](?:\d{8}|\d{4}-\d{2}-\d{2})"


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

    def of(self, model: str) -> Mapping[str, float] | None:
        """Return the prices of a model, or of the model whose dated snapshot it is; None if it has none."""
        return self.models.get(self.name_of(model))

    def name_of(self, model: str) -> str:
        """Return the name of a model, without the date of a snapshot that the table does not name."""
        snapshot = None if model in self.models else re.fullmatch(_SNAPSHOT, model)
        return snapshot[1] if snapshot else model

    def cost(self, model: str, tokens: Mapping[str, float | None], moment: datetime | None = None) -> float | None:
        """Return the cost of a model's tokens in US dollars; None if a count or a price is unknown.

        A kind that is missing among the tokens was not used. The prices are the same at all moments.
        """
        del moment
        prices = self.of(model)
        amounts = _disjoint_amounts(tokens)
        if prices is None or amounts is None:
            return None
        if _HOUR not in prices:
            amounts = _without_hour(amounts)
        if any(amount and kind not in prices for kind, amount in amounts.items()):
            return None
        return round(sum(amount * prices[kind] for kind, amount in amounts.items() if amount) / 1_000_000, 9)

    def has_hour(self, model: str, moment: datetime | None = None) -> bool:
        """Return True if the table has a price of a model for cache writes for an hour."""
        del moment
        return _HOUR in (self.of(model) or {})


class PackagePrices(NamedTuple):
    """The prices of the package genai-prices, which knows many names of models, and tiers and changes of prices.

    The tier of an answer depends on the size of its context, and the price on the time of the answer.

    Attributes:
        date: The day of the last change of a price so far.
        source: The package and its version.
        models: Empty, since the package prices far more models than any run has.
    """

    date: str
    source: str
    models: Mapping[str, Mapping[str, float]] = {}

    def name_of(self, model: str) -> str:
        """Return the model unchanged, since the package recognises its names."""
        return model

    def cost(self, model: str, tokens: Mapping[str, float | None], moment: datetime | None = None) -> float | None:
        """Return the cost of a model's tokens, as `Prices` does, at a moment, or else at the day of the table."""
        from genai_prices import Usage

        moment = moment or datetime.fromisoformat(self.date).replace(tzinfo=UTC)
        provider_and_model, amounts = _look_up(model), _disjoint_amounts(tokens)
        if provider_and_model is None or amounts is None:
            return None
        provider, known_model = provider_and_model
        prices = known_model.get_prices(moment)
        if getattr(prices, f"{_HOUR}_mtok", None) is None:
            amounts = _without_hour(amounts)
        if any(amount and getattr(prices, f"{kind}_mtok", None) is None for kind, amount in amounts.items()):
            return None
        counts = {kind: int(amounts.get(kind, 0)) for kind in KINDS}
        written = counts["cache_write"] + counts[_HOUR]  # the package counts one-hour writes as cache writes, too
        usage = Usage(
            input_tokens=counts["input"] + counts["cache_read"] + written,  # and all cache tokens as input, too
            cache_read_tokens=counts["cache_read"],
            cache_write_tokens=written,
            output_tokens=counts["output"],
            **({f"{_HOUR}_tokens": counts[_HOUR]} if counts[_HOUR] else {}),
        )
        return round(float(known_model.calc_price(usage, provider, genai_request_timestamp=moment).total_price), 9)

    def has_hour(self, model: str, moment: datetime | None = None) -> bool:
        """Return True if the package has a price of a model for cache writes for an hour."""
        provider_and_model = _look_up(model)
        if provider_and_model is None:
            return False
        moment = moment or datetime.fromisoformat(self.date).replace(tzinfo=UTC)
        return getattr(provider_and_model[1].get_prices(moment), f"{_HOUR}_mtok", None) is not None


AnyPrices: TypeAlias = Prices | PackagePrices


def load_package(today: date) -> PackagePrices:
    """Return the prices of the package genai-prices; changes after today do not count for their date."""
    try:
        from genai_prices import __version__
        from genai_prices.data_snapshot import get_snapshot
    except ImportError as error:
        hint = f"{MissingLibraryError('--cost', 'genai-prices', 'prices').hint}\nOr give a table: --prices FILE"
        raise DataFileError("the package genai-prices, which knows prices, is not installed", hint) from error
    changes = (
        start
        for provider in get_snapshot().providers
        for model in provider.models
        if isinstance(model.prices, list)
        for change in model.prices
        if isinstance(start := getattr(change.constraint, "start_date", None), date)
    )
    last = max((day for day in changes if day <= today), default=today)
    return PackagePrices(last.isoformat(), f"genai-prices {__version__}")


@cache
def _look_up(model: str) -> tuple[Any, Any] | None:
    """Return the provider of a model, and the model, as the package has them; None if it does not know the model."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        provider_and_model: tuple[Any, Any] = get_snapshot().find_provider_model(model, None, None, None)
    except LookupError:
        return None
    return provider_and_model


def _disjoint_amounts(tokens: Mapping[str, float | None]) -> dict[str, float] | None:
    """Return the tokens by kind, each counted once; None if none are stated, or the amount of a kind is unknown."""
    stated = {kind: tokens[kind] for kind in KINDS if kind in tokens}
    amounts = {kind: amount for kind, amount in stated.items() if amount is not None}
    if not amounts or len(amounts) < len(stated):
        return None
    if _HOUR in amounts:  # logs count one-hour writes as cache writes, too
        amounts["cache_write"] = max(amounts.get("cache_write", 0.0) - amounts[_HOUR], 0.0)
    return amounts


def _without_hour(amounts: dict[str, float]) -> dict[str, float]:
    """Return the tokens with one-hour cache writes as ordinary cache writes."""
    if _HOUR not in amounts:
        return amounts
    return {**amounts, "cache_write": amounts.get("cache_write", 0.0) + amounts[_HOUR], _HOUR: 0.0}


def load(path: str) -> Prices:
    """Read a price table; an error says where its mistake is."""
    file = read(path, printable(path, limit=300))
    root = file.root()
    if any(finding.code == "Y114" for finding in file.findings):
        raise _error(file, None, "the price table is empty")
    if file.findings:
        raise DataFileError("\n".join(map(str, file.findings[:5])), _HINT)
    names = ("date", "currency", "models")
    fields = _fields(file, root, "the price table", names)
    if missing := [name for name in names if name not in fields]:
        raise _error(file, root, f"the price table has no {quote(missing[0])}")
    day, currency = (_text(file, fields[name], name) for name in ("date", "currency"))
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
    """Set the costs of the events of a trace, and describe the prices in its import report.

    The report's `prices` has the day and the source of the prices, the first and the last day of the run, the number
    of events with a cost, the numbers of those without by model and of those without a price for one-hour cache
    writes, and the models of the table that the run does not have. Costs that the trace had before are replaced; the
    report has the sum of those that its log states.
    """
    stated = _stated_cost(trace)
    priced = 0
    unpriced: dict[str, int] = {}
    without_hour: dict[str, int] = {}
    moment_of = _moments(trace)
    models = {prices.name_of(event.model) for event in trace.events}
    for event in trace.events:
        event.cost_usd = None
        tokens = event.tokens
        if not isinstance(tokens, Tokens) or event.copied_context:
            continue
        is_whole = event.type not in ANSWER_TYPES or (tokens.input is not None and tokens.output is not None)
        amounts, moment = by_kind(tokens), moment_of(event.t)
        if is_whole and amounts and not any(amounts.values()):
            event.cost_usd = 0.0  # whatever the price is
        elif is_whole:
            event.cost_usd = prices.cost(event.model, amounts, moment)
        name = event.model or "(no model)"
        if event.cost_usd is None:
            unpriced[name] = unpriced.get(name, 0) + 1
            continue
        priced += 1
        if tokens.cache_write_1h and not prices.has_hour(event.model, moment):
            without_hour[name] = without_hour.get(name, 0) + 1
    report = {"date": prices.date, "currency": "USD", **_days(trace), "events": priced, "without": unpriced}
    if without_hour:
        report["without_hour"] = without_hour
    if prices.source:
        report["source"] = prices.source
    report["unused"] = [model for model in prices.models if model not in models]
    trace.import_report["prices"] = report | stated


def _stated_cost(trace: Trace) -> dict[str, Any]:
    """Return the cost that the log of a trace states, for the report; empty if it states none."""
    previous = (report_of(trace) or ImportReport()).prices
    if previous is not None:
        total, is_whole = previous.stated_usd, previous.has_all_stated
    else:
        costs = [event.cost_usd for event in trace.events if event.cost_usd is not None and not event.copied_context]
        total, is_whole = (sum(costs) if costs else None), has_all_costs(trace)
    return {} if total is None else {"stated_usd": round(total, 9), "has_all_stated": is_whole}


def _moments(trace: Trace) -> Callable[[float], datetime | None]:
    """Return a function from a time of a trace to its date and time; None without a date, or beyond the calendar."""
    seconds = SECONDS[trace.clock.unit]
    try:
        first = datetime.fromisoformat(trace.clock.epoch or "").astimezone(UTC)
    except (ValueError, OverflowError):
        return lambda _: None

    def moment_of(time: float) -> datetime | None:
        try:
            return first + timedelta(seconds=time * seconds)
        except OverflowError:
            return None

    return moment_of


def _days(trace: Trace) -> dict[str, str]:
    """Return the first and the last day of a run, in UTC; empty if it has no date."""
    try:
        first = datetime.fromisoformat(trace.clock.epoch or "").astimezone(UTC)
        last = first + timedelta(seconds=trace.costs.get("wall_clock_s") or 0.0)
    except (ValueError, OverflowError, TypeError):
        return {}
    return {"first_day": first.date().isoformat(), "last_day": last.date().isoformat()}


def _fields(file: YamlFile, node: Node | None, what: str, allowed: tuple[str, ...]) -> dict[str, Node]:
    if not isinstance(node, MappingNode):
        raise _error(file, node, f"{what} must be a mapping of names to values")
    for name, (at, _) in node.entries.items():
        if allowed and name not in allowed:
            message = f"{file.location(at)}: {what}: unknown {quote(name)}{suggestion(name, allowed)}"
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
    amount = float(node.text) if re.fullmatch(_AMOUNT, node.text) else inf
    if amount == inf:
        raise _error(file, node, f"{quote(node.text)} is not a price: dollars for a million tokens, such as 2.5")
    return amount


def _error(file: YamlFile, node: Node | None, message: str) -> DataFileError:
    return DataFileError(f"{file.location(node.at if node is not None else 0)}: {message}", _HINT)
