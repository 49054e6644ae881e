"""The commands for other formats (`export`, `cite`, `import`), and for versions of the data (`diff`, `merge-file`)."""

import os
import sys
from collections.abc import Iterable
from enum import StrEnum

from orchtrace_corpus.base.annotations import Annotated, Any, TypeAlias, assert_never
from orchtrace_corpus.base.commands.declarations import Argument, Context, Option
from orchtrace_corpus.base.commands.options import DryRun
from orchtrace_corpus.base.dates import today
from orchtrace_corpus.base.errors import CommandUseError, CorpusError, DataFileError, ExitCode
from orchtrace_corpus.base.files import locked, remove_temporary_files, write_atomic
from orchtrace_corpus.base.findings import printable, quote
from orchtrace_corpus.base.text.layout import MAX_LINES, first_and_more, first_names_and_more, pluralize
from orchtrace_corpus.base.text.table import envelope
from orchtrace_corpus.base.yamlfile import reader
from orchtrace_corpus.corpus.analysis.attributes import exclusion_attributes
from orchtrace_corpus.corpus.analysis.matching import RecordIndex
from orchtrace_corpus.corpus.analysis.query import Operator, parse
from orchtrace_corpus.corpus.build import canonical_document
from orchtrace_corpus.corpus.cli import offers
from orchtrace_corpus.corpus.cli.options import Reading, Where, argument, option
from orchtrace_corpus.corpus.cli.outcome import apply
from orchtrace_corpus.corpus.cli.session import CorpusSession, paper_query
from orchtrace_corpus.corpus.edit.edits import raw_records
from orchtrace_corpus.corpus.edit.merge import merge
from orchtrace_corpus.corpus.edit.proposal import Proposal, find_papers, load_editable
from orchtrace_corpus.corpus.edit.three_way import ThreeWay, merge_arxiv, merge_versions
from orchtrace_corpus.corpus.formats import registry
from orchtrace_corpus.corpus.intake.lookup import describe_candidate, similar_title_remarks
from orchtrace_corpus.corpus.intake.papers import describe_match, from_item
from orchtrace_corpus.corpus.model import metadata, store
from orchtrace_corpus.corpus.model.records import Paper, ReadingName, in_published_order
from orchtrace_corpus.corpus.render import difference as render
from orchtrace_corpus.corpus.render.comment import comment
from orchtrace_corpus.corpus.states import compare_states, find_proposal

_STANDARD_STREAM = "-"
OutputFile: TypeAlias = Annotated[
    str, Option("--output", "-o", metavar="FILE", help="Write to a file instead of standard output.")
]


def _format_argument(names: Iterable[str]) -> Argument:
    return argument("FORMAT|FILE", f"One of {', '.join(names)}; or a file with a known ending.", offers.formats)


def export(
    ctx: Context,
    name: Annotated[str, _format_argument(registry.FORMATS)],
    keys: Annotated[list[str] | None, argument("[KEY]...", "Only these papers.", offers.keys)] = None,
    profile: Annotated[str, option("--profile", "NAME", "A variant of the format; see docs/formats.md.")] = "",
    where: Where = None,
    reading: Reading = ReadingName.PUBLISHED,
    exclusions: Annotated[bool, Option("--exclusions", help="The exclusions, in their published form.")] = False,
    output: OutputFile = _STANDARD_STREAM,
) -> int:
    """Write papers in another format.

    A file name with a known ending needs no FORMAT. bibtex has the profiles bibtex (LaTeX for letters beyond
    ASCII), biblatex (Unicode) and tagged (with tags as keywords, for reference managers); csv has full (every
    field) and published (the survey's table). "corpus import" reads all formats except parquet. A citation
    contains the year and name of the proceedings if known; fields that the format cannot hold are reported.
    An unknown key is an error, as an argument and in --where key=.

    \b
    Examples:
      corpus export bibtex
      corpus export bibtex puppeteer halo
      corpus export papers.bib --where "year>=2025"
      corpus export bibtex --profile tagged --where reward_family=orchestration
      corpus export csv --profile published --where published=yes
      corpus export csv --profile published --exclusions
      corpus export csl -o papers.json
    """
    session = CorpusSession(*ctx.obj)
    if _is_file(name):
        if output != _STANDARD_STREAM:
            raise CommandUseError("the export would have two files", f"Write: corpus export FORMAT -o {output}")
        form, output = registry.find_by_ending(name), name
    else:
        form = registry.find(name)
    profile = form.require_profile(profile)
    to_stdout = output == _STANDARD_STREAM
    if form.is_binary and to_stdout and sys.stdout.isatty():
        raise CommandUseError(f"{form.label} is not text for a terminal", f"Write it to a file: -o papers.{form.name}")
    root = session.root_folder()
    if not to_stdout:
        _refuse_target(output, root)
    if keys and (where or exclusions):
        raise CommandUseError("keys name the papers of the export", "Leave out --where and --exclusions.")
    as_published = session.pool()
    pool = session.pool_by_reading(as_published, reading, "contested")
    content: str | bytes
    papers: tuple[Paper, ...] = ()
    if exclusions:
        records = parse(where or [], exclusion_attributes(pool.taxonomy)).select(pool.exclusions)
        content = form.write_exclusions(records, pool.taxonomy, profile)
        count = pluralize(len(records), "exclusion")
    else:
        query = paper_query(where or [], pool.taxonomy)
        for condition in query.filters:
            if condition.attribute.name == "key" and condition.operator is Operator.EQUAL:
                find_papers(pool, condition.alternatives)
        papers = find_papers(pool, keys) if keys else query.select(pool.papers)
        if profile == "published":
            papers = in_published_order(papers, pool.published)
        metadata_by_id = session.files.arxiv if form.has_categories else {}
        categories = {arxiv_id: paper.primary_category for arxiv_id, paper in metadata_by_id.items()}
        content = form.write(papers, pool.taxonomy, profile, categories)
        count = pool.taxonomy.noun.counted(len(papers))
    if not to_stdout:
        write_atomic(output, content)
    elif isinstance(content, str) and sys.stdout.isatty():
        session.output.write(content)
    else:  # UTF-8, whatever the terminal's encoding is
        session.output.write_bytes(content.encode() if isinstance(content, str) else content)
    if not to_stdout:
        count = f"wrote {printable(output, limit=300)}: {count}"
    session.output.note(count)
    if not papers and not exclusions:
        session.note_no_paper(query, as_published, reading)
    if left_out := form.left_out(papers, pool.taxonomy):
        fields = ", ".join(f"{field} ({pool.taxonomy.noun.counted(count)})" for field, count in left_out.items())
        session.output.note(f"{form.label} has no place for {fields}")
    if profile == "bibtex" and isinstance(content, str) and not content.isascii():
        session.output.note("Some letters have no command of LaTeX's own and stay as they are; pdflatex may lack them.")
    return ExitCode.DONE


class CitationForm(StrEnum):
    """The forms of a citation."""

    BIBTEX = "bibtex"
    APA = "apa"
    CSL = "csl"


def cite(
    ctx: Context,
    keys: Annotated[list[str], Argument(metavar="KEY...", help="A key, arXiv id, DOI or URL.", offers=offers.keys)],
    form: Annotated[CitationForm, Option("--format", "-f", help="The form of the citation.")] = CitationForm.BIBTEX,
    output: OutputFile = _STANDARD_STREAM,
) -> int:
    """Cite papers: BibTeX, APA or CSL-JSON.

    References in the style of the APA follow its 7th edition, but titles keep the capitals in which they are
    written, where the APA asks for sentence case. "corpus export" writes more formats and variants.

    \b
    Examples:
      corpus cite puppeteer
      corpus cite puppeteer halo --format apa
      corpus cite puppeteer halo -o references.bib
    """
    session = CorpusSession(*ctx.obj)
    if output != _STANDARD_STREAM:
        _refuse_target(output, session.root_folder())
    pool = session.pool_despite_errors()
    papers = find_papers(pool, keys)
    if form is CitationForm.APA:
        from orchtrace_corpus.corpus.formats.citation import apa

        text = "".join(f"{apa(paper)}\n" for paper in papers)
    else:
        categories = {arxiv_id: paper.primary_category for arxiv_id, paper in session.files.arxiv.items()}
        text = str(registry.find(form).write(papers, pool.taxonomy, "", categories))
    if output == _STANDARD_STREAM:
        session.output.write(text)
    else:
        write_atomic(output, text)
        session.output.note(f"wrote {printable(output, limit=300)}: {pool.taxonomy.noun.counted(len(papers))}")
    return ExitCode.DONE


def _refuse_target(path: str, root: str) -> None:
    """Raise an error if a path is in the corpus's data, is not a file, or is in a folder that does not exist."""
    target = os.path.realpath(path)
    data = os.path.join(os.path.realpath(root), "data")
    if os.path.exists(target) and os.path.commonpath((target, data)) == data:
        raise CommandUseError(f"{quote(path)} is one of the corpus's own files", "Choose another name for the export.")
    if os.path.exists(target) and not os.path.isfile(target):
        hint = "Leave out -o to write to standard output." if not os.path.isdir(target) else "Name a file in it."
        raise CommandUseError(f"{quote(path)} is not a file", hint)
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise DataFileError(f"there is no folder {quote(os.path.dirname(path))}", "Create it first.")


def import_(
    ctx: Context,
    name: Annotated[str, _format_argument(registry.readable_formats())],
    path: Annotated[str, argument("[FILE]", "After a format: the file, or - for standard input.")] = _STANDARD_STREAM,
    profile: Annotated[str, option("--profile", "NAME", "The variant of the format, as for corpus export.")] = "",
    dry_run: DryRun = False,
) -> int:
    """Update records from a table or another file.

    A file with a known ending needs no FORMAT. Papers are matched by key: fields of the file that differ are
    updated, all others stay. A new paper is added if it has all that a paper needs; "corpus add FILE" asks for
    what is missing, and "corpus add FILE --to candidates" takes a whole library in. Nothing is written unless
    the whole file is valid.

    \b
    Examples:
      corpus import table.csv --profile published --dry-run
      corpus import jsonl papers.jsonl
    """
    session = CorpusSession(*ctx.obj)
    is_format_named = not (path == _STANDARD_STREAM and _is_file(name))
    if is_format_named:
        form = registry.find(name, to_read=True)
    else:
        path = name
        form = registry.find_by_ending(path)
    if path != _STANDARD_STREAM:
        data = reader.read_bytes(path, path)
    elif sys.stdin is None or sys.stdin.isatty():
        raise CommandUseError("there is nothing on standard input", "Name a file, or pipe one in.")
    else:
        data = sys.stdin.buffer.read()
    if not is_format_named:  # two formats can have the same ending; the content decides
        form = registry.find_by_ending(path, data)
    corpus = load_editable(session.writable_root())
    source = "<standard input>" if path == _STANDARD_STREAM else path
    items = form.read(data, corpus.pool.taxonomy, profile, source)
    source = printable(source, limit=300)
    if not items:
        raise DataFileError(f"there are no entries in {source}", "Nothing was imported.")
    records = RecordIndex([*corpus.pool.papers, *corpus.pool.exclusions])
    candidates = RecordIndex(candidate.paper for candidate in corpus.candidates.items)
    keys = {key for paper in corpus.pool.papers for key in (paper.key, paper.cite_key)}
    remarks: dict[int, str] = {}  # on new papers, by line; `corpus add` makes the same remarks
    for item in items:
        if item.values.get("key") in keys:
            continue
        paper = from_item(item)
        if match := records.find(paper):
            remarks[item.line] = describe_match(match, corpus.pool.taxonomy.noun.one)
            continue
        if remark := describe_candidate(paper, candidates):
            remarks[item.line] = remark
        for remark in similar_title_remarks(paper, records):
            session.output.tell(f"corpus: {source}:{item.line}: {remark}")
    merged = merge(corpus.file(store.PAPERS), items, corpus.pool.taxonomy, today().isoformat(), remarks)
    for line in sorted(remarks.keys() - {problem.line for problem in merged.problems}):
        session.output.tell(f"corpus: {source}:{line}: {remarks[line]}")
    if merged.problems:
        problems = [f"{source}:{problem.line}: {problem.message}" for problem in merged.problems]
        head = "corpus: nothing was written, since some records cannot be imported:"
        session.output.tell("\n".join((head, *first_and_more(problems, MAX_LINES, "and {:,} more"))))
        return ExitCode.FINDINGS
    origins = {key: f"{source}:{line}" for key, line in merged.lines.items()}
    code = apply(session, corpus, Proposal({store.PAPERS: merged.text}), dry_run=dry_run, origins=origins)
    if code == ExitCode.DONE:
        updated, added, unchanged = len(merged.updated), len(merged.added), len(merged.unchanged)
        session.output.note(f"{updated} updated, {added} added, {unchanged} unchanged")
        if merged.blank:
            fields = [f"{field} of {printable(key)}" for key, field in merged.blank]
            singular, plural = "empty cell changes nothing: the record", "empty cells change nothing: the records"
            keeps = pluralize(len(fields), f"{singular} keeps", f"{plural} keep")
            advice = "To take a field away, remove it in data/papers.yaml; an optional tag: corpus tag KEY FIELD="
            session.output.note(f"corpus: {keeps} {first_names_and_more(fields, 3, ' and {} more')}\n{advice}")
    return code


def _is_file(name: str) -> bool:
    """Return True if a word given as a format names a file: it has a suffix or a folder."""
    return name.lower() not in registry.FORMATS and ("." in name or os.sep in name)


class DiffFormat(StrEnum):
    """The forms of a difference."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


def diff(
    ctx: Context,
    base: Annotated[str, Argument(metavar="BASE", help="A folder with a corpus, or a git revision.")],
    head: Annotated[str, argument("[HEAD]", "Another folder or revision (default: the corpus as it is now).")] = "",
    exit_code: Annotated[bool, Option("--exit-code", help="Exit with 1 if anything changed in meaning.")] = False,
    output_format: Annotated[DiffFormat, Option("--format", "-f", help="The output format.")] = (DiffFormat.TEXT),
) -> int:
    """Report what a change to the data means: papers, tags, counts, claims.

    Shows every value that changed in any data file, with what was and what is, new records in full, and points that
    need human judgement. Reordered records and changed comments are shown, but have no meaning; the layout is ignored.
    BASE...HEAD compares HEAD with the common ancestor of both, as a pull request does, names the files that it changes
    outside data/, and refuses data files that are links, executables or submodules; with --format markdown it prints
    the comment that the workflow posts on a pull request. Nothing is fetched: if the clone lacks a commit, the message
    gives the command that gets it (exit code 3).

    \b
    Examples:
      corpus diff HEAD
      corpus diff main...HEAD --format markdown
      corpus diff path/to/corpus .
    """
    session = CorpusSession(*ctx.obj)
    try:
        change = compare_states(base, head, session.root_folder)
    except CorpusError as error:
        if output_format is not DiffFormat.TEXT and (proposal := find_proposal(base, head, session.root_folder)):
            first, last = map(str, proposal.revisions)
            refusal = render.refusal((first, last), proposal.outside, str(error))
            _write_difference(session, output_format, refusal)  # CI posts it as the comment on a pull request
        raise
    _write_difference(session, output_format, render.as_document(change))
    return ExitCode.FINDINGS if exit_code and change.has_meaning else ExitCode.DONE


def _write_difference(session: CorpusSession, output_format: DiffFormat, document: dict[str, Any]) -> None:
    match output_format:
        case DiffFormat.TEXT:
            session.output.show(render.text(document, session.output.width))
        case DiffFormat.MARKDOWN:
            session.output.write(comment(document))
        case DiffFormat.JSON:
            session.output.write(envelope("diff", document))  # described by docs/schema/diff.schema.json
        case _:
            assert_never(output_format)


def merge_file(
    ctx: Context,
    base: Annotated[str, Argument(metavar="BASE", help="The version that both sides come from.")],
    ours: Annotated[str, Argument(metavar="OURS", help="Our version, which becomes the merged one.")],
    theirs: Annotated[str, Argument(metavar="THEIRS", help="The other version.")],
) -> int:
    """Merge three versions of a data file, for git.

    This is a merge driver of git. It merges records of papers.yaml, candidates.yaml, exclusions.yaml and
    disputes.yaml field by field, sub_decisions level by level, and arxiv.json paper by paper; it keeps the runs of
    both sides of searches.yaml. The result is written to OURS. If both sides have a new exclusion with the same id,
    theirs gets another one. If both sides changed a field, OURS contains both values between git's marks, each
    conflict is named, and the exit code is 1. To use it, set the driver as below, and add the line
    "data/papers.yaml merge=corpus" to .gitattributes:

    git config merge.corpus.driver "corpus merge-file %O %A %B"

    \b
    Examples:
      corpus merge-file data/papers.yaml data/papers.yaml data/papers.yaml
    """
    session = CorpusSession(*ctx.obj)
    try:
        name, merged = _merge_files(session, [reader.read(path, path) for path in (base, ours, theirs)])
    except CorpusError:
        from orchtrace_corpus.corpus.sources import revisions

        revisions.merge_texts(ours, base, theirs)  # line by line, as git itself merges files
        raise
    for old, new in merged.ids.items():
        session.output.tell(f"corpus: {name}: {old} of theirs is {new} now; ours has that id for another work")
    for conflict in merged.conflicts:
        if conflict.fields:
            verb = "added it, with different" if conflict.is_new else "changed"
            cause = f"both sides {verb} {', '.join(conflict.fields)}"
        else:
            cause = "one side changed it, the other removed it"
        session.output.tell(f"corpus: {name}: {printable(conflict.name)}: {cause}; decide between the marks")
    folder = os.path.dirname(os.path.abspath(ours))
    with locked(folder):
        remove_temporary_files(folder)
        write_atomic(ours, merged.text)
    return ExitCode.FINDINGS if merged.conflicts else ExitCode.DONE


def _merge_files(session: CorpusSession, files: list[reader.YamlFile]) -> tuple[str, ThreeWay]:
    """Return the path of the data file, and its three versions merged; raise a `DataFileError` if one has errors."""
    for file in files:
        if file.findings:
            raise DataFileError(f"{file.path} cannot be merged: it has errors", "See corpus check data.")
    if any(file.text.startswith("{") for file in files):  # of the data files, only arxiv.json is JSON
        base, ours, theirs = (metadata.decode(file.text, file.path) if file.text.strip() else {} for file in files)
        return store.ARXIV, merge_arxiv(base, ours, theirs)
    fields: set[str] = set()
    for file in files:
        for record in raw_records(file):
            fields.update(record)
    styles = {row: session.files.style(row.path) for row in store.DATA_FILES if row.style}
    # git does not tell which data file it is: the one with the fewest unknown fields.
    row = min(styles, key=lambda row: len(fields.difference(styles[row].order)))
    style = styles[row]
    versions = [file.text for file in files]
    if row.is_formatted:
        for index, file in enumerate(files):
            if file.text.strip():
                versions[index] = canonical_document(file.path, file, style).wanted
    return row.path, merge_versions(style, row.key_fields, *versions)
