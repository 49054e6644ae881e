"""`corpus diff`."""

from enum import StrEnum
from typing import Annotated, assert_never

import typer

from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.base.text.table import envelope
from orchtrace_corpus.corpus.cli.session import CorpusSession
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
