"""What `corpus validate`, `corpus list` and `corpus readme` show, without Typer.

What only one of them needs is imported there: start-up is most of the time of a command.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchtrace_corpus.base.errors import DataFileError, ExitCode
from orchtrace_corpus.base.findings import has_errors, is_malformed, printable
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text import findings as render
from orchtrace_corpus.base.text.findings import FindingsFormat
from orchtrace_corpus.base.text.layout import pluralize
from orchtrace_corpus.base.text.table import envelope
from orchtrace_corpus.corpus.cli.session import CorpusSession, paper_query
from orchtrace_corpus.corpus.model.records import ReadingName

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.build import Document
    from orchtrace_corpus.corpus.model.records import Record


def validate(
    session: CorpusSession,
    wanted: Sequence[str] = (),
    ignored: Sequence[str] = (),
    fix: bool = False,
    strict: bool = False,
    max_findings: int = 0,
    form: FindingsFormat = FindingsFormat.TEXT,
) -> ExitCode:
    """Show every mistake in the data, and return the exit code.

    Args:
        session: The corpus, and where the output goes.
        wanted: Codes, or beginnings of codes, several of them in a text if there are commas in it; all if empty.
        ignored: Those that are left out.
        fix: Whether to mend first what needs no decision.
        strict: Whether warnings fail, too.
        max_findings: How many are shown; 0 for all.
        form: The form of the output.

    Raises:
        CommandUseError: Options contradict each other.
        CorpusError: There is no corpus, or it cannot be read.
    """
    from orchtrace_corpus.corpus.checks import find_problems, fixed_documents

    root = session.writable_root()
    for _ in range(5 if fix else 0):
        from orchtrace_corpus.corpus import build

        documents = fixed_documents(root, wanted, ignored)
        for document in documents:
            session.output.tell(document.diff.rstrip("\n"))
        for name in build.write(root, documents):
            session.output.note(f"fixed {name}")
        if not documents:
            break
    validation = find_problems(root, wanted, ignored)
    findings, pool = validation.findings, validation.pool
    limit = max_findings or len(findings)
    session.show_findings(findings, form, limit)
    if len(findings) > limit:
        session.output.note(f"… and {len(findings) - limit} more; --max-findings {limit} leaves them out")
    checked = "the taxonomy"
    if pool is not None:
        counts = [pool.taxonomy.noun.counted(len(pool.papers)), pluralize(len(pool.exclusions), "exclusion")]
        counts += [pluralize(validation.candidates, "candidate")] * bool(validation.candidates)
        checked = " and ".join((", ".join(counts[:-1]), counts[-1]))
    others = f"; {validation.left_out} more left out by --select or --ignore" if validation.left_out else ""
    session.output.note(f"{render.summary(findings)} in {checked}{others}")
    if not fix and validation.is_fixable:
        session.output.note("Some of these can be fixed automatically: corpus validate --fix")
    if is_malformed(findings):
        return ExitCode.UNREADABLE
    return ExitCode.FINDINGS if has_errors(findings) or (strict and findings) else ExitCode.DONE


def list_records(
    session: CorpusSession,
    where: Sequence[str] = (),
    exclusions: bool = False,
    sort: str = "",
    columns: str = "",
    limit: int | None = None,
    reading: ReadingName = ReadingName.PUBLISHED,
    output_format: Format = Format.TABLE,
) -> ExitCode:
    """List papers, or exclusions, and return the exit code.

    Args:
        session: The corpus, and where the output goes.
        where: The filters that they must all pass.
        exclusions: Whether to list exclusions instead of papers.
        sort: The column to sort by, after `-` for falling order; the order of the file if empty.
        columns: The columns, between commas, or `all`; the tags that a reader asks for first if empty.
        limit: How many rows are shown at most.
        reading: Whose tags papers are filtered and shown by.
        output_format: The form of the output.

    Raises:
        CommandUseError: A filter or a column does not exist.
        CorpusError: There is no corpus, or it has errors.
    """
    from orchtrace_corpus.corpus.analysis.attributes import CONTESTED, exclusion_attributes, find_all, paper_attributes
    from orchtrace_corpus.corpus.analysis.query import parse
    from orchtrace_corpus.corpus.render.records import listing, whole_mapping

    as_published = session.pool()
    taxonomy = as_published.taxonomy
    if exclusions:
        attributes = exclusion_attributes(taxonomy)
        query = parse(where, attributes)
        facets = () if output_format is Format.TABLE else (facet.field for facet in taxonomy.exclusions)
        names: tuple[str, ...] = ("id", *facets)
    else:
        attributes = paper_attributes(taxonomy, marked=True)
        query = paper_query(where, taxonomy)
        axes = (axis.field for axis in taxonomy.axes if axis.kind != "levels")
        is_narrow = output_format is Format.TABLE and (session.output.width or 100) < 100  # too few cells for axes, too
        has_others = any(condition.attribute.terms for condition in query.filters)
        names = ("key", "year", *(() if is_narrow and has_others else axes))
    asked = tuple(condition.attribute.name for condition in query.filters if condition.attribute.terms)
    is_data, is_read = output_format is Format.JSON and not columns, output_format in (Format.TABLE, Format.MARKDOWN)
    is_marked = not exclusions and (bool(asked) or is_data or columns == "all")
    pool = session.read_by(as_published, reading, columns, sort, *((CONTESTED,) if is_marked else ()))
    is_column = not is_read and any(paper.contested for paper in pool.papers)
    names = (*dict.fromkeys((*names, *asked, *((CONTESTED,) if is_column else ()))), "title")
    names += ("reason",) if exclusions else ()
    if columns and columns != "all":
        from orchtrace_corpus.base.commands.options import split_names

        names = tuple("id" if exclusions and name == "key" else name for name in split_names(columns))
    shown = tuple(attributes.values()) if columns == "all" else find_all(names, attributes, "column")
    records: Sequence[Record] = query.select(pool.exclusions if exclusions else pool.papers)
    total = len(records)
    if sort:
        from orchtrace_corpus.corpus.analysis.search import sort_records

        records = sort_records(records, sort, attributes)
    records = records[:limit]
    if is_data:
        session.output.write(envelope("list", {"records": [whole_mapping(record) for record in records]}))
    else:
        table = listing("exclusions" if exclusions else "papers", records, shown, marked=asked if is_read else ())
        session.show_tables([table._replace(wrapped="reason")], "list", output_format)
        if output_format is Format.TABLE and len(shown) * 6 > (session.output.width or len(shown) * 6):
            session.output.note(f"corpus: {len(shown)} columns are too many for this terminal; use --format csv")
    left_out = f", {len(records)} shown" if len(records) < total else ""
    shown_total = pluralize(total, "exclusion") if exclusions else taxonomy.noun.counted(total)
    session.output.note(f"{shown_total}{left_out}")
    if query.filters and not total and not exclusions:
        session.note_no_paper(query, as_published, reading)
    if not records and any(", " in text for text in where):
        session.output.note("A comma separates alternatives; for one inside a value write: --where 'field=\"a, b\"'")
    return ExitCode.DONE


def readme(session: CorpusSession, check: bool = False) -> ExitCode:
    """Write the regions of README.md, or show what would change, and return the exit code.

    Raises:
        CorpusError: There is no corpus or no README, or one of them has errors.
    """
    from orchtrace_corpus.corpus import build

    root = session.writable_root()
    session.pool()  # whose errors come first
    documents = build.readme_documents(session.files)
    if not documents:
        raise DataFileError(f"there is no {build.README} in {root}", "Write one with a region: corpus readme --help")
    return write_or_check(session, root, documents, check=check, mend="corpus readme")


def write_or_check(
    session: CorpusSession, root: str, documents: "Sequence[Document]", *, check: bool, mend: str
) -> ExitCode:
    """Write what is stale and say so; or, to check, show what would change and how to mend it."""
    from orchtrace_corpus.corpus.build import README, write
    from orchtrace_corpus.corpus.readme import SIZE_LIMIT_BYTES

    for document in documents:
        if document.name == README and len(document.wanted.encode()) > SIZE_LIMIT_BYTES:
            session.output.note(f"corpus: {README} is larger than 512 KiB; GitHub will cut it off")
            session.output.note(
                "To fix: leave out regions such as terms; sections with own_page: false can be pages, too"
            )
    orphans = {document.name for document in documents if document.is_orphan}
    if not check:
        for name in write(root, documents):
            session.output.note(f"{'removed' if name in orphans else 'wrote'} {printable(name, limit=300)}")
        return ExitCode.DONE
    stale = [document for document in documents if document.is_stale]
    for document in stale:
        session.output.write("" if document.is_orphan else document.diff)
    for document in stale:
        if document.is_orphan:
            problem = "is no longer made"
        elif document.differs_in_line_ends:
            problem = "has CRLF line ends, not LF"
        else:
            problem = "is not up to date"
        session.output.tell(f"corpus: {printable(document.name, limit=300)} {problem}; to mend: {mend}")
    return ExitCode.FINDINGS if stale else ExitCode.DONE
