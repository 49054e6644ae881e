"""Runs of searches and their results (`data/searches.yaml`), and the syntax of queries.

A run holds counts and the names of new papers, but not the decisions on them: `analysis.flow` reads these from the
corpus.
"""

import re
from collections.abc import Iterable
from enum import StrEnum

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile import decoders
from orchtrace_corpus.base.yamlfile.decoders import Report, Schema
from orchtrace_corpus.base.yamlfile.reader import Mapping, YamlFile
from orchtrace_corpus.base.yamlfile.writer import Style
from orchtrace_corpus.corpus.model import fields
from orchtrace_corpus.corpus.model.records import Entries, decode_entries
from orchtrace_corpus.corpus.model.taxonomy import PAPER_NOUN, Noun

ARXIV = "arXiv"
OPENALEX = "OpenAlex"
"""The names of these sources in runs and in the protocol."""

FIELDS = ("ti", "au", "abs", "co", "jr", "cat", "rn", "all")
"""The fields that a term of a query can name, by arXiv's user manual."""

# A parenthesis, an operator, or a term such as all:word, ti:"a phrase" and submittedDate:[from TO to].
_TOKEN = (
    r"\s*(?:(?P<open>\()|(?P<close>\))|(?P<operator>AND|OR|ANDNOT)(?![\w:\"])"
    r'|(?P<term>(?P<field>[A-Za-z]+):(?:"(?P<phrase>[^"]*)"|\[(?P<span>[^\]]*)\]|(?P<word>[^\s()"\[\]:]+))))'
)


class Maker(StrEnum):
    """The command that recorded a run, or `hand` for a person."""

    DISCOVER = "discover"
    IMPORT = "import"
    HAND = "hand"


class Search(NamedTuple):
    """One search of a run.

    Attributes:
        query: The name of the query.
        source: The service or file that was searched, such as `arXiv`.
        new: The number of new results; a result of several searches of the run counts for the first of them.
        since, until: The first and the last day that was searched, as `YYYY-MM-DD`.
        asked: The query string that was sent.
        found: The number of results; None if it was not counted.
    """

    query: str
    source: str
    new: int
    since: str | None = None
    until: str | None = None
    asked: str | None = None
    found: int | None = None


class Run(NamedTuple):
    """One run of searches.

    Attributes:
        repeated: The number of results that an earlier search of the run had found.
        in_pool, in_log, in_candidates: The number of results that were papers, exclusions or candidates already.
        refused: The number of results that could not be recorded, such as those without a usable title.
        new: The new papers, each by its first identifier, or its URL without one, or its title without both.
    """

    day: str
    by: Maker
    searches: tuple[Search, ...]
    repeated: int = 0
    in_pool: int = 0
    in_log: int = 0
    in_candidates: int = 0
    refused: int = 0
    new: tuple[str, ...] = ()

    @property
    def found(self) -> int | None:
        """The number of results; None if a search did not count them."""
        total = 0
        for search in self.searches:
            if search.found is None:
                return None
            total += search.found
        return total

    @property
    def known(self) -> int:
        """The number of results that were in the corpus already."""
        return self.in_pool + self.in_log + self.in_candidates


COUNTS = ("repeated", "in_pool", "in_log", "in_candidates", "refused")
"""The fields of a run that count the results that are not new papers."""


def decode_searches(file: YamlFile | None, noun: Noun = PAPER_NOUN) -> Entries[Run]:
    """Decode the runs, and report those whose counts do not add up."""
    if file is None:
        return Entries("the searches have")

    def check_counts(run: Run, node: Mapping, report: Report) -> bool:
        at = node.entries["searches"][1].at
        new = sum(search.new for search in run.searches)
        total = run.repeated + run.known + run.refused + len(run.new)
        if new != len(run.new):
            counts = f"the searches have {new} new {noun.many}, and 'new' lists {len(run.new)}"
            report.add("B107", at, f"{counts}; correct one of the two")
        elif run.found is not None and run.found != total:
            counts = f"{run.found} records were found, and {total} are repeated, known, refused or new"
            report.add("B107", at, f"{counts}; correct the counts")
        return True  # keep the run: it can be decoded

    return decode_entries("the searches have", file, _run_schema(), Run, check_counts)


def _run_schema() -> Schema:
    search = decoders.schema_of(
        Search,
        "a search",
        new=count("new"),
        since=None,
        until=None,  # the file has `from` and `to` instead
        found=count("found"),
        **{name: decoders.iso_date(name) for name in ("from", "to")},
    )
    return decoders.schema_of(
        Run,
        "a run",
        day=decoders.iso_date("day"),
        searches=decoders.record_list("searches", search, _search),
        **{name: count(name) for name in COUNTS},
    )


def _search(**values: Any) -> Search:
    return Search(since=values.pop("from", None), until=values.pop("to", None), **values)


def count(name: str) -> decoders.Decoder:
    """Return the decoder of a field that holds a count."""
    return fields.natural(name, "F103", f"{quote(name)} must be a count such as 12, not {{}}")


def search_style() -> Style:
    """Return the style in which runs are written."""
    return Style(tuple(_run_schema().decoders), frozenset(("found", "new", *COUNTS)))


def run_fields(run: Run) -> dict[str, Any]:
    """Return a run as its YAML fields, in canonical order; zeros and absent values are left out."""
    searches = []
    for search in run.searches:
        values: dict[str, object] = {"query": search.query, "source": search.source, "from": search.since}
        values |= {"to": search.until, "asked": search.asked, "found": search.found, "new": search.new}
        searches.append({name: value for name, value in values.items() if value is not None})
    present: dict[str, Any] = {"day": run.day, "by": run.by.value, "searches": searches}
    present |= {name: getattr(run, name) for name in COUNTS if getattr(run, name)}
    if run.new:
        present["new"] = list(run.new)
    return present


def last_day(runs: Iterable[Run], query: str, source: str) -> str | None:
    """Return the last day for which a query was searched at a source, as `YYYY-MM-DD`; None if it never was."""
    searches = [search for run in runs for search in run.searches if search.query == query and search.source == source]
    return max((search.until for search in searches if search.until), default=None)


class QuerySyntaxError(ValueError):
    """A query string that arXiv refuses or understands differently than people; `at` is an index in it."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at


def check_query(query: str) -> None:
    """Raise `QuerySyntaxError` if a string is no query of arXiv's API.

    The grammar is that of the manual (https://info.arxiv.org/help/api/user-manual.html#query_details), with two
    additions: an operator between all terms, because arXiv reads a missing one as OR, and parentheses around AND or
    ANDNOT if they meet OR.

        query = part {("AND" | "ANDNOT") part} | part {"OR" part}
        part  = "(" query ")" | field ":" (word | phrase) | "submittedDate:[" digits " TO " digits "]"
    """
    operators_by_level: list[set[str]] = [set()]  # of the whole query, then of each open parenthesis
    expects_part = True
    at = 0
    while query[at:].strip():
        token = re.match(_TOKEN, query[at:])
        token_at = len(query) - len(query[at:].lstrip())
        if token is None:
            word = query[token_at:].split()[0]
            message = f"{quote(word)} is not a term; write a field before it, such as all:{word}"
            raise QuerySyntaxError(token_at, message)
        if token["operator"]:
            if expects_part:
                raise QuerySyntaxError(token_at, f"{token['operator']} has nothing before it")
            operators = operators_by_level[-1]
            operators.add(token["operator"])
            if "OR" in operators and len(operators) > 1:
                raise QuerySyntaxError(token_at, "OR stands beside AND or ANDNOT; put one of them in parentheses")
            expects_part = True
        elif token["close"]:
            if len(operators_by_level) == 1:
                raise QuerySyntaxError(token_at, "')' closes nothing")
            if expects_part:
                raise QuerySyntaxError(token_at, "')' follows no term")
            operators_by_level.pop()
        else:
            if not expects_part:
                raise QuerySyntaxError(token_at, "an operator is missing; write AND, OR or ANDNOT")
            if token["open"]:
                operators_by_level.append(set())
            else:
                _check_term(token, token_at)
                expects_part = False
        at += token.end()
    if expects_part:
        raise QuerySyntaxError(len(query), "a term is missing at the end")
    if len(operators_by_level) > 1:
        raise QuerySyntaxError(len(query), "a '(' is not closed")


def _check_term(token: re.Match[str], at: int) -> None:
    """Refuse an unknown field, and a value without a letter or digit."""
    field = token["field"]
    span = token["span"]
    if field == "submittedDate":
        if span is None or not re.fullmatch(r"\d{8}(?:\d{4})? TO \d{8}(?:\d{4})?", span, re.ASCII):
            raise QuerySyntaxError(at, "submittedDate takes [YYYYMMDDHHMM TO YYYYMMDDHHMM]")
    elif field not in FIELDS:
        raise QuerySyntaxError(at, f"there is no field {quote(field)}; fields: {', '.join(FIELDS)}, submittedDate")
    elif not re.search(r"\w", token["phrase"] or token["word"] or ""):
        raise QuerySyntaxError(at, f"{field} looks for nothing")
