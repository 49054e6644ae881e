"""Prices tokens by a dated table of the user, or by those of the package genai-prices.

None is shipped with us, since prices change and differ. The user's table is YAML, or JSON, in US dollars for a
million tokens:

    date: 2026-05-04
    currency: USD
    models:
      some-model: {input: 3, output: 15, cache_read: 0.3, cache_write: 3.75, cache_write_1h: 6}
      another-model: {input: 0.5, output: 2}

What is written to a cache that keeps it for an hour costs `cache_write_1h`. Where the table has none, it is priced by
`cache_write`, and the cost is "at least".

A model that the table names without the date of its snapshot stands for all its snapshots: `some-model` for
`some-model-20260101`, too. Reasoning is a part of the output, and paid as such. A cost is null where it is not
known: the model or a kind of its tokens has no price, or the log gives no input and no output.
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
from orchtrace_corpus.trace.measures.measure import ASKED
from orchtrace_corpus.trace.model.import_report import ImportReport, has_all_costs, report_of
from orchtrace_corpus.trace.model.trace import Tokens, Trace, by_kind
from orchtrace_corpus.trace.view.timing import SECONDS

KINDS = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
"""The kinds of tokens that have a price; those of reasoning are part of the output."""

_HOUR = "cache_write_1h"

_HINT = "docs/importers.md shows a price table."
_AMOUNT = r"[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?"
_SNAPSHOT = r"(.+?)[-@](?:\d{8}|\d{4}-\d{2}-\d{2})"


class Prices(NamedTuple):
    """A price table.

    Attributes:
        date: The day of which the prices are.
        models: For each model the price of a million tokens by kind, in US dollars.
    """

    date: str
    models: Mapping[str, Mapping[str, float]]

    @property
    def source(self) -> str:
        """Return the maintainer of the table; empty, since it is the user."""
        return ""

    def of(self, model: str) -> Mapping[str, float] | None:
        """The prices of a model, or of the model whose dated snapshot it is; None where it has none."""
        return self.models.get(self.name_of(model))

    def name_of(self, model: str) -> str:
        """Return the name of a model in the table, with or without its date; empty if the table lacks it."""
        snapshot = None if model in self.models else re.fullmatch(_SNAPSHOT, model)
        return snapshot[1] if snapshot else model

    def cost(self, model: str, tokens: Mapping[str, float | None], moment: datetime | None = None) -> float | None:
        """Return the cost of a model's tokens in US dollars; None if a count or a price is unknown.

        Args:
            model: The model.
            tokens: Its tokens by kind. A log that knows no cache, or a model that writes nothing, has no such
                kind; one that is there but null is unknown.
            moment: When they were spent, which makes no difference to this table.
        """
        del moment
        prices = self.of(model)
        spent = _known(tokens)
        if prices is None or spent is None:
            return None
        if _HOUR not in prices:
            spent = _without_hour(spent)
        if any(number and kind not in prices for kind, number in spent.items()):
            return None
        return round(sum(number * prices[kind] for kind, number in spent.items() if number) / 1_000_000, 9)

    def has_hour(self, model: str, moment: datetime | None = None) -> bool:
        """Return True if the table has a price of a model for what caches keep for an hour."""
        del moment
        return _HOUR in (self.of(model) or {})


class PackagePrices(NamedTuple):
    """The prices of the package genai-prices, which names models by many names, and knows tiers and changes.

    A tier is that of one answer by its context; the price is the one of the time of the answer.

    Attributes:
        date: The day of the last change of a price that the package knows, and that has come.
        source: The package and its version.
    """

    date: str
    source: str

    @property
    def models(self) -> Mapping[str, Mapping[str, float]]:
        """No table of models that a run could lack."""
        return {}

    def name_of(self, model: str) -> str:
        """The model as it is: the package knows it by its own rules."""
        return model

    def cost(self, model: str, tokens: Mapping[str, float | None], moment: datetime | None = None) -> float | None:
        """Return the cost of a model's tokens in US dollars; None if a count or a price is unknown.

        Args:
            model: The model.
            tokens: Its tokens by kind, as for `Prices`.
            moment: When they were spent; the day of the table where that is unknown.
        """
        from genai_prices import Usage

        moment = moment or datetime.fromisoformat(self.date).replace(tzinfo=UTC)
        found, spent = _looked_up(model), _known(tokens)
        if found is None or spent is None:
            return None
        provider, known = found
        prices = known.get_prices(moment)
        if getattr(prices, f"{_HOUR}_mtok", None) is None:
            spent = _without_hour(spent)
        if any(number and getattr(prices, f"{kind}_mtok", None) is None for kind, number in spent.items()):
            return None
        number = {kind: int(spent.get(kind, 0)) for kind in KINDS}
        written = number["cache_write"] + number[_HOUR]  # which the package counts with the part that it is of
        usage = Usage(
            input_tokens=number["input"] + number["cache_read"] + written,  # and caches as input
            cache_read_tokens=number["cache_read"],
            cache_write_tokens=written,
            output_tokens=number["output"],
            **({f"{_HOUR}_tokens": number[_HOUR]} if number[_HOUR] else {}),
        )
        return round(float(known.calc_price(usage, provider, genai_request_timestamp=moment).total_price), 9)

    def has_hour(self, model: str, moment: datetime | None = None) -> bool:
        """Return True if the package has a price of a model for what caches keep for an hour."""
        found = _looked_up(model)
        moment = moment or datetime.fromisoformat(self.date).replace(tzinfo=UTC)
        return found is not None and getattr(found[1].get_prices(moment), f"{_HOUR}_mtok", None) is not None


AnyPrices: TypeAlias = Prices | PackagePrices
"""A source of prices."""


def load_package(today: date) -> PackagePrices:
    """The prices of the package genai-prices, which the extra `prices` installs.

    Args:
        today: The day; changes that are announced for later are not what the prices are of.

    Raises:
        DataFileError: The package is not installed.
    """
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
def _looked_up(model: str) -> tuple[Any, Any] | None:
    """The provider of a model and what the package knows of the model; None where it knows neither."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        found: tuple[Any, Any] = get_snapshot().find_provider_model(model, None, None, None)
    except LookupError:
        return None
    return found


def _known(tokens: Mapping[str, float | None]) -> dict[str, float] | None:
    """The tokens by kind, none counted twice; None where none are stated, or one of the numbers is unknown."""
    stated = {kind: tokens[kind] for kind in KINDS if kind in tokens}
    spent = {kind: number for kind, number in stated.items() if number is not None}
    if not spent or len(spent) < len(stated):
        return None
    if _HOUR in spent:
        spent["cache_write"] = max(spent.get("cache_write", 0.0) - spent[_HOUR], 0.0)
    return spent


def _without_hour(spent: dict[str, float]) -> dict[str, float]:
    """The same tokens, all that was written to caches taken as kept for five minutes."""
    if _HOUR not in spent:
        return spent
    return {**spent, "cache_write": spent.get("cache_write", 0.0) + spent[_HOUR], _HOUR: 0.0}


def load(path: str) -> Prices:
    """Read a price table.

    Raises:
        DataFileError: It cannot be read, or says something else than it should; the message says where.
    """
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
    models = {}
    named = _fields(file, fields["models"], "models", ())
    if not named:
        raise _error(file, fields["models"], "'models' names no model")
    for model, node in named.items():
        prices = _fields(file, node, f"the prices of {quote(model)}", KINDS)
        models[model] = {kind: _amount(file, price) for kind, price in prices.items()}
    return Prices(day, models)


def apply(prices: AnyPrices, trace: Trace) -> None:
    """Put costs on the events of a trace, and say in its report by which prices, and what has none.

    The report's `prices` has the day of the table and whose it is, the first and the last day of the run, how many
    events have a cost, how many have none, by model, how many cost more since there is no price for caches that keep
    for an hour, and which models of the table the run does not have. Costs that the trace had before are not mixed with
    these; the report has the sum of those that its log states.

    Args:
        prices: The prices.
        trace: The trace.
    """
    stated = _stated(trace)
    priced = 0
    unpriced: dict[str, int] = {}
    hourless: dict[str, int] = {}
    moment_of = _moments(trace)
    met = {prices.name_of(event.model) for event in trace.events}
    for event in trace.events:
        event.cost_usd = None
        tokens = event.tokens
        if not isinstance(tokens, Tokens) or event.copied_context:
            continue
        is_whole = event.type not in ASKED or (tokens.input is not None and tokens.output is not None)
        spent, moment = by_kind(tokens), moment_of(event.t)
        if is_whole and spent and not any(spent.values()):
            event.cost_usd = 0.0  # whatever a token of the model costs, and whether or not a model was asked
        elif is_whole:
            event.cost_usd = prices.cost(event.model, spent, moment)
        name = event.model or "(no model)"
        if event.cost_usd is None:
            unpriced[name] = unpriced.get(name, 0) + 1
            continue
        priced += 1
        if tokens.cache_write_1h and not prices.has_hour(event.model, moment):
            hourless[name] = hourless.get(name, 0) + 1
    used = {"date": prices.date, "currency": "USD", **_days(trace), "events": priced, "without": unpriced}
    used |= {"without_hour": hourless} if hourless else {}
    used |= {"source": prices.source} if prices.source else {}
    used["unused"] = [model for model in prices.models if model not in met]
    trace.import_report["prices"] = used | stated


def _stated(trace: Trace) -> dict[str, Any]:
    """Return the cost that the log of a trace states, for the report; nothing if it states none."""
    known = (report_of(trace) or ImportReport()).prices
    if known is not None:
        total, is_whole = known.stated_usd, known.has_all_stated
    else:
        costs = [event.cost_usd for event in trace.events if event.cost_usd is not None and not event.copied_context]
        total, is_whole = (sum(costs) if costs else None), has_all_costs(trace)
    return {} if total is None else {"stated_usd": round(total, 9), "has_all_stated": is_whole}


def _moments(trace: Trace) -> Callable[[float], datetime | None]:
    """A function that says when a time of a trace was; None where the trace has no date, or the time no calendar."""
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
    """The first and the last day of a run, in UTC; nothing where it has no date."""
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


def _amount(file: YamlFile, node: Node) -> float:
    """A price.

    Raises:
        DataFileError: It is none, or one that depends on something else.
    """
    if not isinstance(node, Scalar):
        message = "a price is one number; of prices in tiers, or by the hour, give the one that holds for your runs"
        raise _error(file, node, message)
    amount = float(node.text) if re.fullmatch(_AMOUNT, node.text) else inf
    if amount == inf:
        raise _error(file, node, f"{quote(node.text)} is not a price: dollars for a million tokens, such as 2.5")
    return amount


def _error(file: YamlFile, node: Node | None, message: str) -> DataFileError:
    return DataFileError(f"{file.location(node.at if node is not None else 0)}: {message}", _HINT)
