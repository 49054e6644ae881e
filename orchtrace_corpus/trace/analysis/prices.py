"""What tokens cost: a dated price table that the user gives. None is shipped, since prices change and differ.

The table is YAML, or JSON, in US dollars for a million tokens:

    date: 2026-05-04
    currency: USD
    models:
      some-model: {input: 3, output: 15, cache_read: 0.3, cache_write: 3.75}
      another-model: {input: 0.5, output: 2}

A model that the table names without the date of its snapshot stands for all its snapshots: `some-model` for
`some-model-20260101`, too. Reasoning is a part of the output, and paid as such. A cost is null where it is not
known: the model or a kind of its tokens has no price, or the log gives no input and no output.
"""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from math import inf
from typing import NamedTuple

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.findings import printable, quote, suggestion
from orchtrace_corpus.base.yamlfile.reader import Mapping as MappingNode
from orchtrace_corpus.base.yamlfile.reader import Node, Scalar, YamlFile, read
from orchtrace_corpus.trace.measures.measure import ASKED
from orchtrace_corpus.trace.model.trace import Tokens, Trace, by_kind

KINDS = ("input", "output", "cache_read", "cache_write")
"""The kinds of tokens that have a price; those of reasoning are part of the output."""

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

    def of(self, model: str) -> Mapping[str, float] | None:
        """The prices of a model, or of the model whose dated snapshot it is; None where it has none."""
        return self.models.get(self.name_of(model))

    def name_of(self, model: str) -> str:
        """What the table calls a model, if it has it: by its own name, else by that without the date."""
        snapshot = None if model in self.models else re.fullmatch(_SNAPSHOT, model)
        return snapshot[1] if snapshot else model

    def cost(self, model: str, tokens: Mapping[str, float | None]) -> float | None:
        """What tokens of a model cost in US dollars; None where they, or the price of any of them, are unknown.

        Args:
            model: The model.
            tokens: Its tokens by kind. A log that knows no cache, or a model that writes nothing, has no such
                kind; one that is there but null is unknown.
        """
        prices = self.of(model)
        stated = [kind for kind in KINDS if kind in tokens]
        if prices is None or not stated or any(tokens[kind] is None for kind in stated):
            return None
        spent = {kind: tokens[kind] or 0 for kind in stated}
        if any(number and kind not in prices for kind, number in spent.items()):
            return None
        return round(sum(number * prices[kind] for kind, number in spent.items() if number) / 1_000_000, 9)


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
        raise _error(file, fields["date"], f"{quote(day)} is no date such as 2026-05-04")
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


def apply(prices: Prices, trace: Trace) -> None:
    """Put costs on the events of a trace, and say in its report by which prices, and what has none.

    The report's `prices` has the day of the table, the first and the last day of the run, how many events have a
    cost, how many have none, by model, and which models of the table the run does not have. Costs that the trace
    had before are not mixed with these.

    Args:
        prices: The prices.
        trace: The trace.
    """
    priced = 0
    unpriced: dict[str, int] = {}
    met = {prices.name_of(event.model) for event in trace.events}
    for event in trace.events:
        event.cost_usd = None
        tokens = event.tokens
        if not isinstance(tokens, Tokens) or event.copied_context:
            continue
        is_whole = event.type not in ASKED or (tokens.input is not None and tokens.output is not None)
        event.cost_usd = prices.cost(event.model, by_kind(tokens)) if is_whole else None
        if event.cost_usd is None:
            name = event.model or "(no model)"
            unpriced[name] = unpriced.get(name, 0) + 1
        else:
            priced += 1
    used = {"date": prices.date, "currency": "USD", **_days(trace), "events": priced, "without": unpriced}
    used["unused"] = [model for model in prices.models if model not in met]
    trace.import_report["prices"] = used


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
        raise _error(file, node, f"{quote(node.text)} is no price: dollars for a million tokens, such as 2.5")
    return amount


def _error(file: YamlFile, node: Node | None, message: str) -> DataFileError:
    return DataFileError(f"{file.location(node.at if node is not None else 0)}: {message}", _HINT)
