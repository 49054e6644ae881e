"""The published pool's bibliography against the published table: each difference needs its row of corrections."""

import csv
from collections.abc import Iterator
from io import StringIO

from orchtrace_corpus.base.findings import Finding, Location, near_suggestion, printable, quote
from orchtrace_corpus.corpus.model.corrections import (
    COMPARED,
    IDENTIFIERS,
    URL_SEPARATOR,
    Correction,
    PublishedBibliography,
    PublishedRow,
)
from orchtrace_corpus.corpus.model.records import Loaded, Paper, Path


def check(bibliography: PublishedBibliography, loaded: Loaded) -> tuple[Finding, ...]:
    """Return the problems of the published bibliography, file by file."""
    if bibliography.findings:
        return bibliography.findings
    return (
        *_check_rows(bibliography, loaded),
        *_check_papers(bibliography, loaded),
        *_check_corrections(bibliography, loaded),
    )


def _check_rows(bibliography: PublishedBibliography, loaded: Loaded) -> Iterator[Finding]:
    """Yield the rows of papers that were not published, repeated rows, and published papers without a row."""
    if bibliography.rows is None:
        return
    published = loaded.pool.published if loaded.pool is not None else None
    keys = dict.fromkeys(published.papers if published is not None else ())
    noun = loaded.noun.one
    lines: dict[str, int] = {}
    problems = []
    for row in bibliography.rows:
        if row.key not in keys:
            near = near_suggestion(row.key, sorted(keys))
            problems.append((f"there is no published {noun} {quote(row.key)}{near}", row.line, row.key))
        elif row.key in lines:
            message = f"{quote(row.key)} stands on line {lines[row.key]}, too; remove one of the rows"
            problems.append((message, row.line, row.key))
        lines.setdefault(row.key, row.line)
    problems += [(f"missing row of the published {noun} {quote(key)}", 1, key) for key in keys if key not in lines]
    for message, line, key in problems:
        yield Finding("P101", message, Location(bibliography.published_path, line, 1), key)


def _check_papers(bibliography: PublishedBibliography, loaded: Loaded) -> Iterator[Finding]:
    """Yield the fields of published papers that differ from the published table without a correction."""
    corrected = {(row.record, row.field, row.published, row.now) for row in bibliography.corrections}
    rows = {row.key: row for row in bibliography.rows or ()}
    for index, paper in enumerate(loaded.papers):
        row = rows.get(paper.key)
        if row is None:
            continue
        for field in COMPARED:
            if field not in row.values and field not in IDENTIFIERS:
                continue
            path: Path = ("authors", 0) if field == "first_author" else (field,)
            for published, now in _differences(row, paper, field):
                if (paper.key, field, published, now) not in corrected:
                    message = _uncorrected(paper.key, field, published, now)
                    yield Finding("P102", message, loaded.paper_places.locate(index, *path), paper.key)


def _differences(row: PublishedRow, paper: Paper, field: str) -> Iterator[tuple[str, str]]:
    """Yield the published value and the present one where they differ; of addresses, each that was added or removed."""
    published = row.values.get(field, "")
    if field != "urls":
        now = value_of(paper, field)
        if now != published:
            yield published, now
        return
    addresses = published.split(URL_SEPARATOR) if published else []
    yield from (("", address) for address in paper.urls if address not in addresses)
    yield from ((address, "") for address in addresses if address not in paper.urls)


def value_of(paper: Paper, field: str) -> str:
    """Return the text of a field that a published table can have, except `urls`; empty if it is absent."""
    return str(getattr(paper, field) or "")


def _uncorrected(key: str, field: str, published: str, now: str) -> str:
    """Return the message about a published value that changed."""
    if field == "year":
        return f"year was published as {published}, and stays so; write venue_year for citations"
    if not published:
        change = f"{field} {quote(now)} was not published"
    elif not now:
        change = f"{field} {quote(published)}, which was published, is missing"
    else:
        change = f"{field} was published as {quote(published)}"
    row = StringIO()
    csv.writer(row, lineterminator="").writerow((key, field, published, now, "SOURCE"))
    return f"{change}; restore it, or add to data/corrections.csv: {printable(row.getvalue(), limit=300)}"


def _check_corrections(bibliography: PublishedBibliography, loaded: Loaded) -> Iterator[Finding]:
    """Yield the corrections that the data or the published table contradicts."""
    papers = {paper.key: paper for paper in loaded.papers}
    rows = {row.key: row for row in bibliography.rows or ()}
    lines: dict[tuple[str, ...], int] = {}
    for correction in bibliography.corrections:
        paper = papers.get(correction.record)
        problem = _problem_of(correction, paper, rows.get(correction.record))
        if paper is None:
            near = near_suggestion(correction.record, sorted(papers))
            problem = f"there is no {loaded.noun.one} {quote(correction.record)}{near}"
        subject: tuple[str, ...] = (correction.record, correction.field)
        if correction.field == "urls":
            subject += (correction.published, correction.now)
        line = lines.setdefault(subject, correction.line)
        if line != correction.line and not problem:
            problem = f"{correction.field} is corrected on line {line}, too; keep one row"
        if problem:
            place = Location(bibliography.corrections_path, correction.line, 1)
            yield Finding("P103", problem, place, correction.record)


def _problem_of(correction: Correction, paper: Paper | None, row: PublishedRow | None) -> str:
    """Return the problem of a correction; empty without a problem."""
    field = correction.field
    if field not in COMPARED or field == "year":
        return f"{quote(field)} is no field that is corrected; name one of {', '.join(COMPARED).replace('year, ', '')}"
    if not correction.source:
        return f"the correction of {field} has no source"
    if correction.published == correction.now:
        return f"{field} is the same as published; remove the row"
    if paper is None:
        return ""
    if field == "urls":
        addresses = row.values.get("urls", "").split(URL_SEPARATOR) if row else [correction.published]
        if correction.now and correction.now not in paper.urls:
            return f"the record has no address {quote(correction.now)}"
        if correction.published and correction.published not in addresses:
            return f"no address {quote(correction.published)} was published"
        return ""
    now = value_of(paper, field)
    if now != correction.now:
        return f"the record's {field} is {quote(now)}, not {quote(correction.now)}; write what it is now"
    published = row.values.get(field, "") if row else correction.published
    if published != correction.published:
        return f"{field} was published as {quote(published)}, not {quote(correction.published)}"
    return ""
