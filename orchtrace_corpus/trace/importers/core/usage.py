"""Token counts: read them as logs state them, and divide them into the kinds of a trace."""

from collections.abc import Mapping
from typing import Any

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core.values import MAX_COUNT, as_count
from orchtrace_corpus.trace.model.import_report import ImportReport, LedgerLine
from orchtrace_corpus.trace.model.trace import Tokens


class Usage(NamedTuple):
    """Token counts as most formats state them; None for an unknown count."""

    input: int | None = None  # includes `cache_read` and `cache_write`
    output: int | None = None  # includes `reasoning`
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    total: int | None = None  # the total that the log states

    @property
    def is_known(self) -> bool:
        """Return True if the input or the output is known."""
        return self.input is not None or self.output is not None


def counts(stated: tuple[Any, ...]) -> tuple[int | None, ...]:
    """Return stated token counts, with None for a value that is no count; the same tuple if there is no such value."""
    for value in stated:
        if value is not None and (type(value) is not int or not 0 <= value <= MAX_COUNT):
            return tuple(map(as_count, stated))
    return stated


_INPUT_DETAILS = {"prompt_token_details", "prompt_tokens_details", "input_token_details", "input_tokens_details"}
_OUTPUT_DETAILS = {
    "completion_token_details", "completion_tokens_details", "output_token_details", "output_tokens_details"
}  # fmt: skip
_ANTHROPIC_CACHES = frozenset(("cache_creation_input_tokens", "cache_read_input_tokens"))
"""The members by which Anthropic's usage is recognised. Its input excludes them."""


def usage_of_service(stated: Mapping[str, Any]) -> Usage:
    """Return the usage that OpenAI, Anthropic, Google or LangChain states, each with its own member names."""
    input_details, output_details = dict[str, Any](), dict[str, Any]()
    for member, details in stated.items():
        if type(details) is dict and member in _INPUT_DETAILS:
            input_details.update(details)
        elif type(details) is dict and member in _OUTPUT_DETAILS:
            output_details.update(details)
    input_tokens = _first(stated, "input_tokens", "prompt_tokens", "promptTokenCount")
    output = _first(stated, "output_tokens", "completion_tokens", "candidatesTokenCount")
    cached = _first(stated, "cache_read_input_tokens", "cache_read_tokens", "cachedContentTokenCount")
    if cached is None:
        cached = _first(input_details, "cache_read", "cached_tokens", "cached_input_tokens", others=stated)
    names = "cache_creation_input_tokens", "cache_write_tokens", "cache_creation", "cache_write_input_tokens"
    written = _first(stated, *names, others=input_details)
    reasoning = _first(stated, "reasoning_tokens", "reasoning", "thoughtsTokenCount", others=output_details)
    if input_tokens is not None and not _ANTHROPIC_CACHES.isdisjoint(stated):
        input_tokens += (cached or 0) + (written or 0)
    if output is not None and "candidatesTokenCount" in stated:  # Google's output excludes reasoning
        output += reasoning or 0
    return Usage(input_tokens, output, cached, written, reasoning, total=as_count(stated.get("total_tokens")))


def _first(values: Mapping[str, Any], *names: str, others: Mapping[str, Any] = {}) -> int | None:
    """Return the count under the first of these names that has a value, in `values` or else in `others`."""
    for name in names:
        value = values[name] if name in values else others.get(name)
        if value is not None:
            return as_count(value)
    return None


def divided(
    usage: tuple[int | None, ...], report: ImportReport, caches_apart: bool = False, reasoning_apart: bool = False
) -> Tokens:
    """Return the first five counts of a `Usage` as the tokens of an event, whose input excludes cached tokens.

    In most formats, the input includes the tokens read from and written to caches, and the output includes reasoning
    (OpenTelemetry GenAI, `gen_ai.usage.*`; LangChain, `UsageMetadata`; OpenAI, `usage`). `caches_apart` and
    `reasoning_apart` are True for a format that excludes them. If the input or the output is too small to include
    them, they are treated as excluded, too, and the report notes that.
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
