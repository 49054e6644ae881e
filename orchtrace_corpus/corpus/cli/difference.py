"""The commands on versions of the data: `corpus diff` and `merge-file`."""

from enum import StrEnum
from typing import Annotated, assert_never

import typer

from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.base.files import write_atomic
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.table import envelope
from orchtrace_corpus.base.yamlfile import reader
from orchtrace_corpus.corpus.build import canonical_document
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.edit.edits import raw_records
from orchtrace_corpus.corpus.edit.three_way import merge_versions
from orchtrace_corpus.corpus.model.record_fields import exclusion_style, paper_style
from orchtrace_corpus.corpus.render import difference as render
from orchtrace_corpus.corpus.render import difference_data
from orchtrace_corpus.corpus.render.comment import comment
from orchtrace_corpus.corpus.states import compare_states

_VERSION = 2
"""The version of docs/schema/diff.schema.json."""


class DiffFormat(StrEnum):
    """The forms of a difference."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


def diff(
    ctx: typer.Context,
    base: Annotated[str, typer.Argument(metavar="BASE", help="A folder with a corpus, or a git revision.")],
    head: Annotated[
        str, typer.Argument(metavar="[HEAD]", help="Another; without it, the corpus as it is.", show_default=False)
    ] = "",
    exit_code: Annotated[bool, typer.Option("--exit-code", help="End with 1 if anything changed in meaning.")] = False,
    output_format: Annotated[DiffFormat, typer.Option("--format", "-f", help="The form of the output.")] = (
        DiffFormat.TEXT
    ),
) -> int:
    """Say what a change to the data means: papers, tags, counts, cells, claims and findings.

    Added records are shown whole, changed ones with old and new values, and what only a person can
    judge is listed. The order of records, comments and layout have no meaning. BASE...HEAD stands for what HEAD has
    changed since the two parted, as in a pull request. Nothing is fetched: a commit that the clone
    lacks is named, with the command that brings it (exit code 3).

    \b
    Examples:
      corpus diff HEAD
      corpus diff HEAD --format markdown
      corpus diff path/to/corpus .
    """
    session = CorpusSession(*ctx.obj)
    change = compare_states(base, head, session.root_folder)
    document = difference_data.document(change)
    match output_format:
        case DiffFormat.TEXT:
            session.output.show(render.text(document, session.output.width))
        case DiffFormat.MARKDOWN:
            session.output.write(comment(document))
        case DiffFormat.JSON:
            session.output.write(envelope("diff", document, version=_VERSION))
        case _:
            assert_never(output_format)
    return ExitCode.FINDINGS if exit_code and change.has_meaning else ExitCode.DONE


def merge_file(
    ctx: typer.Context,
    base: Annotated[str, typer.Argument(metavar="BASE", help="The version that both sides come from.")],
    ours: Annotated[str, typer.Argument(metavar="OURS", help="Our version, which becomes the merged one.")],
    theirs: Annotated[str, typer.Argument(metavar="THEIRS", help="The other version.")],
) -> int:
    """Merge three versions of a data file, for git.

    A merge driver for papers.yaml and exclusions.yaml, by the keys of records. What one side added,
    changed or removed is taken, field by field, and OURS is written in canonical form. Where both
    sides gave a field different values, OURS stays as it is, each conflict is named, and the exit
    code is 1. To let git call it, in a clone whose .gitattributes has the line
    "data/papers.yaml merge=corpus":

    git config merge.corpus.driver "corpus merge-file %O %A %B"

    \b
    Examples:
      corpus merge-file data/papers.yaml data/papers.yaml data/papers.yaml
    """
    session = CorpusSession(*ctx.obj)
    taxonomy = session.taxonomy()
    files = [reader.read(path, path) for path in (base, ours, theirs)]
    is_log = any(record.get("id") for file in files for record in raw_records(file))
    style = (exclusion_style if is_log else paper_style)(taxonomy)
    versions = [canonical_document(file.path, file, style).wanted if file.text.strip() else "" for file in files]
    merged = merge_versions(style, *versions)
    for conflict in merged.conflicts:
        what = f"both sides changed {', '.join(conflict.fields)}" if conflict.fields else "one side removed it"
        session.output.tell(f"corpus: {printable(conflict.name)}: {what}; decide by hand")
    if merged.conflicts:
        return ExitCode.FINDINGS
    write_atomic(ours, merged.text)
    return ExitCode.DONE
