"""Rules about the published table: each value of the corpus that differs from it needs a row in the corrections."""

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
    """Yield findings about rows of papers that were not published, repeated rows, and missing rows."""
    if bibliography.rows is None:
        return
    keys: dict[str, None] = {}  # in the published order; a dictionary, because every row is looked up
    if loaded.pool is not None and loaded.pool.published is not None:
        keys = dict.fromkeys(loaded.pool.published.papers)
    noun = loaded.noun.one
    lines_by_key: dict[str, int] = {}
    problems = []
    for row in bibliography.rows:
        if row.key not in keys:
            near = near_suggestion(row.key, sorted(keys))
            problems.append((f"there is no published {noun} {quote(row.key)}{near}", row.line, row.key))
        elif row.key in lines_by_key:
            message = f"{quote(row.key)} stands on line {lines_by_key[row.key]}, too; remove one of the rows"
            problems.append((message, row.line, row.key))
        lines_by_key.setdefault(row.key, row.line)
    missing = [key for key in keys if key not in lines_by_key]
    problems += [(f"missing row of the published {noun} {quote(key)}", 1, key) for key in missing]
    for message, line, key in problems:
        yield Finding("P101", message, Location(bibliography.published_path, line, column=1), key)


def _check_papers(bibliography: PublishedBibliography, loaded: Loaded) -> Iterator[Finding]:
    """Yield findings about fields of papers that differ from the published table without a correction."""
    corrected = {(row.record, row.field, row.published, row.now) for row in bibliography.corrections}
    rows_by_key = {row.key: row for row in bibliography.rows or ()}
    for index, paper in enumerate(loaded.papers):
        row = rows_by_key.get(paper.key)
        if row is None:
            continue
        for field in COMPARED:
            if field not in row.values and field not in IDENTIFIERS:
                continue
            path: Path = ("authors", 0) if field == "first_author" else (field,)
            for published, now in _differences(row, paper, field):
                if (paper.key, field, published, now) not in corrected:
                    message = _missing_correction(paper.key, field, published, now)
                    yield Finding("P102", message, loaded.paper_places.locate(index, *path), paper.key)


def _differences(row: PublishedRow, paper: Paper, field: str) -> Iterator[tuple[str, str]]:
    """Yield the published and the current value if they differ; for `urls`, each URL that was added or removed."""
    published = row.values.get(field, "")
    if field == "urls":
        published_urls = published.split(URL_SEPARATOR) if published else []
        yield from (("", url) for url in paper.urls if url not in published_urls)
        yield from ((url, "") for url in published_urls if url not in paper.urls)
    elif _text_of(paper, field) != published:
        yield published, _text_of(paper, field)


def _text_of(paper: Paper, field: str) -> str:
    """Return the value of a field in `COMPARED` other than `urls`, as the published table writes it."""
    return str(getattr(paper, field) or "")


def _missing_correction(key: str, field: str, published: str, now: str) -> str:
    """Return the message about a value that differs from the published one without a correction."""
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
    """Yield findings about corrections that the data or the published table contradicts."""
    papers_by_key = {paper.key: paper for paper in loaded.papers}
    rows_by_key = {row.key: row for row in bibliography.rows or ()}
    first_lines: dict[tuple[str, ...], int] = {}
    for correction in bibliography.corrections:
        paper = papers_by_key.get(correction.record)
        if paper is None:
            near = near_suggestion(correction.record, sorted(papers_by_key))
            problem = f"there is no {loaded.noun.one} {quote(correction.record)}{near}"
        else:
            problem = _problem_of(correction, paper, rows_by_key.get(correction.record))
        subject: tuple[str, ...] = (correction.record, correction.field)
        if correction.field == "urls":  # several URLs of a paper can be corrected
            subject += (correction.published, correction.now)
        first_line = first_lines.setdefault(subject, correction.line)
        if first_line != correction.line and not problem:
            problem = f"{correction.field} is corrected on line {first_line}, too; keep one row"
        if problem:
            place = Location(bibliography.corrections_path, correction.line, 1)
            yield Finding("P103", problem, place, correction.record)


def _problem_of(correction: Correction, paper: Paper, row: PublishedRow | None) -> str:
    """Return the error about a correction of a paper; empty if there is none."""
    field = correction.field
    correctable = [name for name in COMPARED if name != "year"]
    if field not in correctable:
        return f"{quote(field)} is no field that is corrected; name one of {', '.join(correctable)}"
    if not correction.source:
        return f"the correction of {field} has no source"
    if correction.published == correction.now:
        return f"{field} is the same as published; remove the row"
    if field == "urls":
        published_urls = row.values.get("urls", "").split(URL_SEPARATOR) if row else [correction.published]
        if correction.now and correction.now not in paper.urls:
            return f"the record has no address {quote(correction.now)}"
        if correction.published and correction.published not in published_urls:
            return f"no address {quote(correction.published)} was published"
        return ""
    now = _text_of(paper, field)
    if now != correction.now:
        return f"the record's {field} is {quote(now)}, not {quote(correction.now)}; write what it is now"
    published = row.values.get(field, "") if row else correction.published
    if published != correction.published:
        return f"{field} was published as {quote(published)}, not {quote(correction.published)}"
    return ""
