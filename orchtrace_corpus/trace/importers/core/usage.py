"""Token counts as logs state them, and as the schema divides them into kinds."""

from collections.abc import Mapping
from typing import Any

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core.values import MAX_COUNT, count
from orchtrace_corpus.trace.model.import_report import ImportReport, LedgerLine
from orchtrace_corpus.trace.model.trace import Tokens


class Usage(NamedTuple):
    """Token counts as most formats have them; None for a count that is unknown."""

    input: int | None = None  # includes what was read from or written to a cache
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    total: int | None = None  # for a log that does not divide it

    @property
    def is_known(self) -> bool:
        """Return True if the input or the output is known."""
        return self.input is not None or self.output is not None


def counts(stated: tuple[Any, ...]) -> tuple[int | None, ...]:
    """Return stated token counts with None for values that are no count; the same tuple if all are counts."""
    for value in stated:
        if value is not None and (type(value) is not int or not 0 <= value <= MAX_COUNT):
            return tuple(map(count, stated))
    return stated


_OF_INPUT = {"prompt_token_details", "prompt_tokens_details", "input_token_details", "input_tokens_details"}
_OF_OUTPUT = {"completion_token_details", "completion_tokens_details", "output_token_details", "output_tokens_details"}
_APART = frozenset(("cache_creation_input_tokens", "cache_read_input_tokens"))
"""The fields of Anthropic's usage, whose input excludes them."""


def usage_of_service(stated: Mapping[str, Any]) -> Usage:
    """Return the usage in a service's answer, by the names of OpenAI, Anthropic, Google or LangChain."""
    of_input, of_output = dict[str, Any](), dict[str, Any]()
    for member, details in stated.items():
        if type(details) is dict and member in _OF_INPUT:
            of_input.update(details)
        elif type(details) is dict and member in _OF_OUTPUT:
            of_output.update(details)
    prompt = _first(stated, "input_tokens", "prompt_tokens", "promptTokenCount")
    output = _first(stated, "output_tokens", "completion_tokens", "candidatesTokenCount")
    cached = _first(stated, "cache_read_input_tokens", "cache_read_tokens", "cachedContentTokenCount")
    if cached is None:
        cached = _first(of_input, "cache_read", "cached_tokens", "cached_input_tokens", others=stated)
    names = "cache_creation_input_tokens", "cache_write_tokens", "cache_creation", "cache_write_input_tokens"
    written = _first(stated, *names, others=of_input)
    reasoning = _first(stated, "reasoning_tokens", "reasoning", "thoughtsTokenCount", others=of_output)
    if prompt is not None and not _APART.isdisjoint(stated):
        prompt += (cached or 0) + (written or 0)
    if output is not None and "candidatesTokenCount" in stated:  # Google states it without thoughts
        output += reasoning or 0
    return Usage(prompt, output, cached, written, reasoning, count(stated.get("total_tokens")))


def _first(values: Mapping[str, Any], *names: str, others: Mapping[str, Any] = {}) -> int | None:
    """Return the count of the first of several members that is there, in the values or else in others."""
    for name in names:
        value = values[name] if name in values else others.get(name)
        if value is not None:
            return count(value)
    return None


def divided(
    usage: tuple[int | None, ...], report: ImportReport, caches_apart: bool = False, reasoning_apart: bool = False
) -> Tokens:
    """Return the first five counts of a `Usage` as the schema has them.

    Most formats define the input with all that was read from or written to a cache, the output with hidden reasoning
    (OpenTelemetry GenAI, attributes `gen_ai.usage.*`; LangChain, `UsageMetadata`; OpenAI, `usage`); `caches_apart` and
    `reasoning_apart` say that a format does not. Figures that contradict this are taken to be apart, and reported.
    """
    input_tokens, output, cache_read, written, reasoning = usage[:5]
    if not caches_apart and input_tokens is not None and (cache_read or written):
        cached = (cache_read or 0) + (written or 0)
        if cached > input_tokens:
            report.enter(LedgerLine.EXCLUSIVE_INPUT, input=input_tokens, cached=cached)
        else:
            input_tokens -= cached
    if reasoning and output is not None:
        if reasoning_apart:
            output += reasoning
        elif reasoning > output:
            report.enter(LedgerLine.HIDDEN_REASONING, output=output, reasoning=reasoning)
            output += reasoning
    return Tokens(input_tokens, output, cache_read, written, reasoning)
