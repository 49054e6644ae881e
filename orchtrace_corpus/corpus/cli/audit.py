"""The commands for second readers: `audit sample` and `audit compare` for sheets, `dispute` for a single reading."""

import os
from collections.abc import Mapping, Sequence
from typing import Annotated

from orchtrace_corpus.base.commands.declarations import Argument, Command, CommandGroup, Context, Option
from orchtrace_corpus.base.commands.options import DryRun, OutputFormat, refuse_together
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, DataFileError, ExitCode, InvalidCorpusError
from orchtrace_corpus.base.files import new_file
from orchtrace_corpus.base.findings import Finding, has_errors, quote, suggestion
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text import findings as findings_render
from orchtrace_corpus.base.text.layout import first_and_more, pluralize
from orchtrace_corpus.base.yamlfile.reader import read_bytes
from orchtrace_corpus.corpus.analysis import agreement, coding
from orchtrace_corpus.corpus.analysis.attributes import find, paper_attributes
from orchtrace_corpus.corpus.analysis.coding import Sheet
from orchtrace_corpus.corpus.cli import offers
from orchtrace_corpus.corpus.cli.options import Where, argument, option
from orchtrace_corpus.corpus.cli.outcome import apply
from orchtrace_corpus.corpus.cli.session import CorpusSession, paper_query
from orchtrace_corpus.corpus.edit import tags
from orchtrace_corpus.corpus.edit.edits import edit_file
from orchtrace_corpus.corpus.edit.proposal import Proposal, find_target, load_editable
from orchtrace_corpus.corpus.intake.screening import TEXT_COLUMNS, is_screening_sheet, sheet_columns, sheet_keys
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.disputes import disputable, value_of, values_for
from orchtrace_corpus.corpus.model.fields import url_problem
from orchtrace_corpus.corpus.model.records import Paper, Pool
from orchtrace_corpus.corpus.model.tagging import read_level, read_term, sentence
from orchtrace_corpus.corpus.model.taxonomy import Kind
from orchtrace_corpus.corpus.render import agreement as render


def audit(ctx: Context) -> Session:
    """Draw a sample for a second reader, and measure agreement.

    \b
    Examples:
      corpus audit sample --n 32 --stratify category
      corpus audit compare data/audits/sub-decisions-1.csv --merge learned=explicit,implicit
    """
    return ctx.obj


app = CommandGroup(
    {
        "Commands": {
            "sample": Command("corpus.cli.audit:sample", "Write a blinded coding sheet."),
            "compare": Command("corpus.cli.audit:compare", "Measure how far readers agree."),
        }
    },
    audit,
)


def sample(
    ctx: Context,
    size: Annotated[int, Option("--n", min=1, help="The number of papers.")] = 32,
    stratify: Annotated[
        str, option("--stratify", "FIELD", "Sample in proportion to the terms of this field.", offers.fields)
    ] = "",
    include_sparse: Annotated[
        bool, Option("--include-sparse", help="Include every paper with a sparse term of an axis (at most 2 papers).")
    ] = False,
    seed: Annotated[int, Option("--seed", help="The seed of the sample.")] = 0,
    fields: Annotated[
        str, option("--fields", "A,B,...", "The fields to code (default: every facet).", offers.fields)
    ] = "",
    where: Where = None,
    output: Annotated[str, Option("--output", "-o", metavar="FILE", help="Write to a new file.")] = "",
) -> int:
    """Write a blinded coding sheet: titles and links, and an empty column for each field to code.

    The sheet is a CSV file. The reader fills in terms as "corpus terms" defines them, "none" for a
    sub-decision that does not arise, and leaves uncoded cells empty. The sample depends only on the
    seed and the corpus.

    \b
    Examples:
      corpus audit sample
      corpus audit sample --n 20 --stratify category --include-sparse
      corpus audit sample --where tier=core --fields reward_family,stop --seed 7
    """
    session = CorpusSession(*ctx.obj)
    pool = session.pool()
    attributes = paper_attributes(pool.taxonomy)
    papers = paper_query(where or [], pool.taxonomy).select(pool.papers)
    if not papers:
        raise CommandUseError(f"no {pool.taxonomy.noun.one} passes the filters, so there is nothing to draw")
    axes = [facet.field for facet in pool.taxonomy.axes]
    always = coding.sparse_papers(papers, attributes, axes, 2) if include_sparse else ()
    strata = find(stratify, attributes) if stratify else None
    drawn = coding.sample(papers, size, stratify=strata, always=always, seed=seed)
    text = coding.blank_sheet(drawn, coding.select_columns(pool.taxonomy, fields))
    if output:
        write_new(output, text)
    else:
        session.output.write(text)
    session.output.note(f"{len(drawn)} of {pool.taxonomy.noun.counted(len(papers))}; definitions: corpus terms FIELD")
    return ExitCode.DONE


def compare(
    ctx: Context,
    sheets: Annotated[list[str], Argument(metavar="SHEET...", help="Coding sheets, one for each reader.")],
    with_corpus: Annotated[
        bool, Option("--with-corpus", help="Count the corpus's own tags as a reader, too (always for one sheet).")
    ] = False,
    merge: Annotated[
        list[str] | None, option("--merge", "NAME=TERM,TERM", "Treat several terms as one (repeatable).")
    ] = None,
    resamples: Annotated[
        int, Option("--resamples", min=0, max=100_000, help="Bootstrap resamples for the intervals; 0: none.")
    ] = 1000,
    seed: Annotated[int, Option("--seed", help="The seed of the resampling.")] = 0,
    record: Annotated[
        bool, Option("--record", help="Write disagreements with the corpus to data/disputes.yaml instead.")
    ] = False,
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """Measure how far readers agree: observed agreement, Cohen's kappa, Krippendorff's alpha.

    With one sheet, the corpus is the other reader. Columns are those of the corpus or of the published table.
    Problems of a sheet are listed on standard error and count as not coded (exit code 1 if any is an error; 3
    if a file is not a sheet). The name of a --merge may appear in the sheets, too, where a reader coded on a
    coarser scale. --record changes no tag: it saves the other readings as open disputes, which marks the tags
    as contested. Sheets of "corpus screen" are compared by their decisions, too.

    \b
    Examples:
      corpus audit compare data/audits/sub-decisions-1.csv --merge learned=explicit,implicit
      corpus audit compare data/audits/sub-decisions-1.csv data/audits/sub-decisions-2.csv \
--merge learned=explicit,implicit
    """
    session = CorpusSession(*ctx.obj)
    refuse_together(record=record, with_corpus=with_corpus)
    pool = session.pool()
    columns = coding.columns(pool.taxonomy)
    merges = coding.read_merges(merge or [], columns)
    if len(set(sheets)) < len(sheets):
        raise CommandUseError("a sheet is named twice; each reader needs a sheet of their own")
    names_by_path = coding.name_readers(sheets)
    texts = {path: read_sheet(path) for path in sheets}
    is_screening = all(map(is_screening_sheet, texts.values()))
    if is_screening and len(sheets) < 2:
        raise CommandUseError(f"{sheets[0]} is a sheet of screening, and needs a second reader's", "Name two sheets.")
    if is_screening:
        columns = sheet_columns(pool.taxonomy)
    merged_columns = coding.allow_merged_terms(columns, merges)
    readers: list[Sheet] = []
    findings: list[Finding] = []
    for path, text in texts.items():
        if is_screening:
            sheet, problems = coding.decode(text, path, merged_columns, sheet_keys(text), also=TEXT_COLUMNS)
        else:
            sheet, problems = coding.decode(text, path, merged_columns, [paper.key for paper in pool.papers])
        readers.append(sheet)
        findings += problems
    if not is_screening:
        findings += coding.missing_cells(readers)
    readers = [reader._replace(name=names_by_path[reader.name]) for reader in readers]
    if any(finding.code == "K101" for finding in findings):  # a header is wrong
        session.output.tell("\n".join(str(finding) for finding in findings))
        return ExitCode.UNREADABLE
    if record and not is_screening:
        _tell_findings(session, findings)
        # Sources are paths in the corpus's folder, or names of files outside it.
        paths = (os.path.relpath(path, session.root_folder()) for path in sheets)
        sources = (os.path.basename(path) if path.startswith(os.pardir) else path for path in paths)
        code = _record_disputes(session, pool, readers, merges, " and ".join(sources))
        return ExitCode.FINDINGS if has_errors(findings) else code
    if not is_screening:
        findings += coding.missing_rows(readers)
        if with_corpus or len(readers) == 1:
            coded_keys = {key for sheet in readers for key in sheet.codes}
            readers.append(coding.tags_as_sheet([paper for paper in pool.papers if paper.key in coded_keys], columns))
    _tell_findings(session, findings)
    merged_sheets = [coding.merge_terms(reader, columns, merges) for reader in readers]
    agreements = agreement.compare(merged_sheets, columns, resamples=resamples, seed=seed)
    names = [reader.name for reader in readers]
    unknown_codes = sum(finding.code == "K105" for finding in findings)
    remarks = [f"{reader.name}: {remark}" for reader in readers for remark in reader.remarks]
    if agreements:
        session.show_report(
            {Format.JSON: lambda: render.document(agreements, names, unknown_codes, remarks)},
            lambda: render.tables(agreements, names, unknown_codes, remarks),
            "audit",
            output_format,
        )
    else:
        session.output.note("corpus: no cell was coded by two readers")
    return ExitCode.FINDINGS if has_errors(findings) else ExitCode.DONE


def _tell_findings(session: CorpusSession, findings: Sequence[Finding]) -> None:
    for line in first_and_more([str(finding) for finding in findings], 20, "… and {} more"):
        session.output.tell(line)
    if any(finding.code == "K105" for finding in findings):
        hint = "Unknown codes count as not coded; --merge NAME=TERM,TERM makes a name for terms taken as one."
        session.output.tell(hint)
    if findings:
        session.output.note(f"{findings_render.summary(findings)} in the sheets; corpus rule K explains them")


def dispute(
    ctx: Context,
    name: Annotated[str, Argument(metavar="KEY", help="The paper: its key, arXiv id, DOI or URL.", offers=offers.keys)],
    word: Annotated[str, argument("FIELD=VALUE", "The tag, and the other reading of it.", offers.filters)],
    why: Annotated[str, option("--why", "TEXT", "What speaks for the reading, in one sentence.")],
    source: Annotated[str, option("--source", "URL", "Where: the address of the source.")],
    by: Annotated[str, option("--by", "NAME", "Who reads it so.")] = "a reader of the source",
    dry_run: DryRun = False,
) -> int:
    """Record another reading of a tag that stays as it is.

    The tag is marked as contested. Tags of the published pool stay as published; "corpus tag" corrects the tag of a
    later paper.

    \b
    Examples:
      corpus dispute maporl scenario=research --why "It is tested on research questions alone." \
--source https://arxiv.org/abs/2502.18439v1 --dry-run
    """
    session = CorpusSession(*ctx.obj)
    pool = session.pool()
    paper = find_target(pool, name).record
    field, _, text = word.partition("=")
    field = field.strip().replace("-", "_")
    facets = disputable(pool.taxonomy)
    if field not in facets or not isinstance(paper, Paper):
        raise CommandUseError(f"{quote(field)} of {paper.name} cannot be disputed{suggestion(field, list(facets))}")
    facet = facets[field]
    present = value_of(paper, facet, field)
    read_value = read_level if facet.kind is Kind.LEVELS else read_term
    values = {read_value(facet, part) for part in text.split(",")}
    reading = f"{field}={','.join(value for value in values_for(facet) if value in values)}"
    if not present:
        raise CommandUseError(f"{paper.key} has no {field} to dispute", f"Set it: corpus tag {paper.key} {reading}")
    if present in values:
        raise CommandUseError(f"{field} of {paper.key} stands as {present} already", "Give a reading that is another.")
    if problem := url_problem(source):
        raise CommandUseError(f"--source {quote(source)} {problem}")
    codes = {paper.key: {field: reading.partition("=")[2]}}
    sheet = Sheet(by, codes, notes={paper.key: sentence(why.strip())})
    description = f"{reading} of {paper.key} by {by}"
    return _record_disputes(session, pool, [sheet], {}, source, single_reading=description, dry_run=dry_run)


def _record_disputes(
    session: CorpusSession,
    pool: Pool,
    sheets: Sequence[Sheet],
    merges: Mapping[str, Sequence[str]],
    source: str,
    *,
    single_reading: str = "",
    dry_run: bool = False,
) -> int:
    """Record the values of sheets that differ from the corpus as disputes; `single_reading` describes a single one."""
    corpus = load_editable(session.writable_root())
    present = corpus.disputes
    if present.findings:
        raise InvalidCorpusError("\n".join((f"{store.DISPUTES} has errors:", *map(str, present.findings))))
    corpus_sheet = coding.tags_as_sheet(pool.papers, coding.columns(pool.taxonomy))
    proposed = tags.propose_disputes(
        corpus_sheet, sheets, merges, present.items, pool.taxonomy, source, by_name=bool(single_reading)
    )
    if single_reading and not proposed.added and not proposed.extended:
        hint = f"To change its argument, edit {store.DISPUTES}; for another reader, add --by NAME."
        raise CommandUseError(f"this reading is recorded already: {single_reading}", hint)
    for key, column in proposed.left_out:
        session.output.tell(f"corpus: {key}: {column} has several terms, and cannot be disputed as one")
    texts: dict[str, str] = {}
    if proposed.added or proposed.extended:
        texts[store.DISPUTES] = edit_file(corpus, store.DISPUTES, changes=proposed.extended, added=proposed.added)
    session.output.note(f"{pluralize(len(proposed.added), 'new dispute')}, {len(proposed.extended)} with new readings")
    return apply(session, corpus, Proposal(texts), dry_run=dry_run)


def read_sheet(path: str) -> str:
    """Return the text of a reader's sheet; raise a `DataFileError` if it cannot be read, or is not UTF-8."""
    try:
        return read_bytes(path, path, 64 * 1024 * 1024).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataFileError(f"cannot read {quote(path)}: not UTF-8", "Save the sheet as CSV in UTF-8.") from error


def write_new(path: str, text: str) -> None:
    """Write a sheet to a new file; raise a `DataFileError` if the file exists, since it may hold a reader's work."""
    try:
        with new_file(path) as file:
            file.write(text)
    except FileExistsError as error:
        message = f"{quote(path)} exists already, and may hold a reader's work"
        raise DataFileError(message, "Choose a new name.") from error
    except OSError as error:
        raise DataFileError(f"cannot write {quote(path)}: {error.strerror}") from error
