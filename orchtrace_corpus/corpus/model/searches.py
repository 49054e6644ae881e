"""Runs of searches and their results (`data/searches.yaml`), and the syntax of queries.

A run keeps counts and the names of new papers, but no decisions: `analysis.flow` takes these from the corpus.
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
"""The sources of searches by the names that the protocol and the runs have for them."""

FIELDS = ("ti", "au", "abs", "co", "jr", "cat", "rn", "all")
"""The fields that a term of a query can name, by arXiv's user manual."""

_TOKEN = (
    r"\s*(?:(?P<open>\()|(?P<close>\))|(?P<operator>AND|OR|ANDNOT)(?![\w:\"])"
    r'|(?P<term>(?P<field>[A-Za-z]+):(?:"(?P<phrase>[^"]*)"|\[(?P<span>[^\]]*)\]|(?P<word>[^\s()"\[\]:]+))))'
)


class Maker(StrEnum):
    """The maker of a run: a command, or a person by hand."""

    DISCOVER = "discover"
    IMPORT = "import"
    HAND = "hand"


class Search(NamedTuple):
    """One search of a run, from one day to another.

    Attributes:
        query: The name of the query.
        source: The service or file that was searched, such as `arXiv`.
        new: The number of new results; a result of several searches of the run counts for the first.
        asked: The query string as it was sent.
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
        repeated: The number of results that other searches of the run had found.
        in_pool, in_log, in_candidates: The numbers of results that were known already, by where they were known.
        refused: The number of results that could not be recorded, such as those without a usable title.
        new: The new papers, each by its first identifier, else its address, else its title.
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
        """Return the number of results; None if they were not counted."""
        counts = [search.found for search in self.searches]
        return None if None in counts else sum(count or 0 for count in counts)

    @property
    def known(self) -> int:
        """Return how many of them were in the corpus already."""
        return self.in_pool + self.in_log + self.in_candidates


COUNTS = ("repeated", "in_pool", "in_log", "in_candidates", "refused")
"""The fields of a run that say what became of records that were not new."""


def decode_searches(file: YamlFile | None, noun: Noun = PAPER_NOUN) -> Entries[Run]:
    """Decode a list of runs, if there is one; problems become findings."""
    if file is None:
        return Entries("the searches have")

    def is_sound(run: Run, node: Mapping, report: Report) -> bool:
        """Report a run whose counts do not add up."""
        at = node.entries["searches"][1].at
        each = sum(search.new for search in run.searches)
        whole = run.repeated + run.known + run.refused + len(run.new)
        if each != len(run.new):
            message = (
                f"the searches have {each} new {noun.many}, and 'new' lists {len(run.new)}; correct one of the two"
            )
            report.add("B107", at, message)
        elif run.found is not None and run.found != whole:
            message = f"{run.found} records were found, and {whole} are repeated, known, refused or new"
            report.add("B107", at, f"{message}; correct the counts")
        return True

    return decode_entries("the searches have", file, _run_schema(), Run, is_sound)


def _run_schema() -> Schema:
    search = decoders.schema_of(
        Search,
        "a search",
        new=count("new"),
        since=None,
        until=None,
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
    """Return the written form of runs."""
    bare = frozenset(("found", "new", *COUNTS))
    return Style(tuple(_run_schema().decoders), bare)


def run_fields(run: Run) -> dict[str, Any]:
    """Return a run as its YAML fields, in canonical order; zeros and absent values are left out."""
    searches = []
    for search in run.searches:
        values: dict[str, object] = {"query": search.query, "source": search.source, "from": search.since}
        values |= {"to": search.until, "asked": search.asked, "found": search.found, "new": search.new}
        searches.append({name: value for name, value in values.items() if value is not None})
    counts = {name: number for name in COUNTS if (number := getattr(run, name))}
    new = {"new": list(run.new)} if run.new else {}
    return {"day": run.day, "by": run.by.value, "searches": searches, **counts, **new}


def last_day(runs: Iterable[Run], query: str, source: str) -> str | None:
    """Return the last day that searches of a query at a source have covered; None without any."""
    searches = (search for run in runs for search in run.searches if (search.query, search.source) == (query, source))
    return max((search.until for search in searches if search.until), default=None)


class QuerySyntaxError(ValueError):
    """A query string that arXiv cannot read, or reads differently than people do; `at` is the place in it."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at


def check_query(query: str) -> None:
    """Raise `QuerySyntaxError` if a string is no query of arXiv's API.

    The grammar of the manual (https://info.arxiv.org/help/api/user-manual.html#query_details), with operators between
    all terms, since arXiv takes a missing one for OR, and parentheses where AND or ANDNOT meet OR:

        query = part {("AND" | "ANDNOT") part} | part {"OR" part}
        part  = "(" query ")" | field ":" (word | phrase) | "submittedDate:[" digits " TO " digits "]"
    """
    # For the whole and each open parenthesis: whether its operators are OR, and whether a part comes next.
    levels: list[tuple[set[bool], bool]] = [(set(), True)]
    at = 0
    while query[at:].strip():
        token = re.match(_TOKEN, query[at:])
        begin = at + len(query[at:]) - len(query[at:].lstrip())
        if token is None:
            rest = query[begin:].split()[0]
            raise QuerySyntaxError(begin, f"{quote(rest)} is not a term; write a field before it, such as all:{rest}")
        operators, wants_part = levels[-1]
        if token["operator"]:
            if wants_part:
                raise QuerySyntaxError(begin, f"{token['operator']} has nothing before it")
            operators.add(token["operator"] == "OR")
            if len(operators) > 1:
                raise QuerySyntaxError(begin, "OR stands beside AND or ANDNOT; put one of them in parentheses")
            levels[-1] = (operators, True)
        elif token["close"]:
            if wants_part or len(levels) == 1:
                raise QuerySyntaxError(begin, "')' closes nothing" if len(levels) == 1 else "')' follows no term")
            levels.pop()
        else:
            if not wants_part:
                raise QuerySyntaxError(begin, "an operator is missing; write AND, OR or ANDNOT")
            levels[-1] = (operators, False)
            if token["open"]:
                levels.append((set(), True))
            else:
                _check_term(token, begin)
        at += token.end()
    if levels[-1][1]:
        raise QuerySyntaxError(len(query), "a term is missing at the end")
    if len(levels) > 1:
        raise QuerySyntaxError(len(query), "a '(' is not closed")


def _check_term(token: re.Match[str], at: int) -> None:
    """Refuse an unknown field, and a value without a letter or digit."""
    field, span = token["field"], token["span"]
    if field == "submittedDate":
        if span is None or not re.fullmatch(r"\d{8}(?:\d{4})? TO \d{8}(?:\d{4})?", span, re.ASCII):
            raise QuerySyntaxError(at, "submittedDate takes [YYYYMMDDHHMM TO YYYYMMDDHHMM]")
    elif field not in FIELDS:
        raise QuerySyntaxError(at, f"there is no field {quote(field)}; fields: {', '.join(FIELDS)}, submittedDate")
    elif not re.search(r"\w", token["phrase"] or token["word"] or ""):
        raise QuerySyntaxError(at, f"{field} looks for nothing")
