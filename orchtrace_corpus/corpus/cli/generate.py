"""The commands that check the data and write what is made from it (`validate`, `fmt`, `build`, ...), and `init`.

What makes files is imported where it is called: `validate` has to start fast.
"""

import os
import shlex
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from orchtrace_corpus.base.commands.declarations import Argument, Context, Option
from orchtrace_corpus.base.commands.options import Check, FindingsForm, Strict
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.findings import FindingsFormat
from orchtrace_corpus.corpus.cli import offers, reports
from orchtrace_corpus.corpus.cli.options import argument, option
from orchtrace_corpus.corpus.cli.reports import write_or_check
from orchtrace_corpus.corpus.cli.session import CorpusSession

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.build import Document


def validate(
    ctx: Context,
    wanted: Annotated[
        list[str] | None, option("--select", "CODE", "Only these codes, such as D or V1 (repeatable).", offers.codes)
    ] = None,
    ignored: Annotated[
        list[str] | None, option("--ignore", "CODE", "Exclude these codes (repeatable).", offers.codes)
    ] = None,
    fix: Annotated[
        bool, Option("--fix", help="Fix what needs no decision, show the diff, then report the rest.")
    ] = False,
    strict: Strict = False,
    max_findings: Annotated[
        int, Option("--max-findings", metavar="N", min=0, help="Show at most N findings; 0 shows all.")
    ] = 0,
    output_format: FindingsForm = FindingsFormat.TEXT,
) -> int:
    """Report every error in the data, with its line.

    Each finding is a line "file:line:column: CODE message [record]"; "corpus rule CODE" explains it.
    Exit code 0: nothing wrong, or warnings only; 1: errors; 3: a file is not readable as YAML. Syntax
    errors (Y) are always shown, because they hide other errors.

    \b
    Examples:
      corpus validate
      corpus validate --strict --ignore M105
      corpus validate --select D --max-findings 20
      corpus validate --format github
      corpus validate --fix --select M106
      corpus --root path/to/corpus validate
    """
    session = CorpusSession(*ctx.obj)
    return reports.validate(session, wanted or (), ignored or (), fix, strict, max_findings, output_format)


def fmt(ctx: Context, check: Check = False) -> int:
    """Write the data files in canonical form.

    Sorts papers by key where the taxonomy says "by_key: true", puts fields in order, writes one line for
    each scalar, and quotes only where needed. Comments are kept at the head of the file, before a
    record, before a field, and at the end of a line.

    \b
    Examples:
      corpus fmt --check
    """
    from orchtrace_corpus.corpus import build as builder

    return _generate(ctx, lambda session: builder.data_documents(session.files), check, "corpus fmt")


class BuildPart(StrEnum):
    """The kinds of generated files that can be regenerated alone."""

    README = "readme"
    FIGURES = "figures"
    SCHEMA = "schema"


def build(
    ctx: Context,
    parts: Annotated[
        list[BuildPart] | None, Argument(metavar="[PART]...", help=f"Only these: {', '.join(BuildPart)}.")
    ] = None,
    check: Check = False,
) -> int:
    """Regenerate every generated file, or one kind of them.

    Regenerates the marked regions of README.md, docs/list, docs/STATS.md, the JSON Schemas in docs/schema,
    docs/figures.md and the figures in docs/figures. Generated pages and figures that are no longer needed are
    removed. Data files are not changed: see "corpus fmt". "corpus build readme" is the same as "corpus
    readme"; figures and schema work in the same way.

    \b
    Examples:
      corpus build --check
      corpus build readme figures --check
    """
    if parts:
        alone: dict[BuildPart, Callable[[Context], int]] = {
            BuildPart.README: lambda ctx: readme(ctx, check),
            BuildPart.FIGURES: lambda ctx: figures(ctx, check=check),
            BuildPart.SCHEMA: lambda ctx: schema(ctx, check),
        }
        return max(alone[part](ctx) for part in dict.fromkeys(parts))
    from orchtrace_corpus.corpus import build as builder
    from orchtrace_corpus.corpus.analysis.statistics import summarise

    return _generate(
        ctx, lambda session: builder.generated(session.files, summarise(session.pool())), check, "corpus build"
    )


def readme(ctx: Context, check: Check = False) -> int:
    """Regenerate the list and the tables in README.md.

    Writes only between the marks "<!-- corpus:begin NAME -->" and "<!-- corpus:end NAME -->". Regions:
    contents, counts, page, list, terms FIELD, papers FILTER, claims, figures NAME.

    \b
    Examples:
      corpus readme --check
    """
    return reports.readme(CorpusSession(*ctx.obj), check)


def figures(
    ctx: Context,
    names: Annotated[list[str] | None, argument("[NAME]...", "Only these figures.")] = None,
    check: Check = False,
) -> int:
    """Draw the figures, and the page that shows them.

    Writes docs/figures/NAME.svg, for light and dark screens, and docs/figures.md: a heat map of the
    first pair of fields that the taxonomy crosses, every axis and facet, papers by year, the flow of
    screening, and the scale of systems if data/scale.yaml exists. A region "figures NAME ..." in
    README.md shows some of them.

    \b
    Examples:
      corpus figures --check
      corpus figures papers-by-year --check
    """
    from orchtrace_corpus.corpus import build as builder
    from orchtrace_corpus.corpus.analysis.statistics import summarise

    session = CorpusSession(*ctx.obj)
    root = session.writable_root()
    source = builder.figure_source(session.files, summarise(session.pool()))
    documents = builder.figure_documents(root, source, names or [])
    mend = " ".join(("corpus figures", *(names or [])))
    return write_or_check(session, root, documents, check=check, mend=mend)


def schema(ctx: Context, check: Check = False) -> int:
    """Write the JSON Schemas of the data files, for editors.

    Made from the taxonomy, so that an editor with a YAML language server completes tags and marks errors. The
    first line of each data file names its schema.

    \b
    Examples:
      corpus schema --check
    """
    from orchtrace_corpus.corpus import build as builder

    return _generate(ctx, lambda session: builder.schema_documents(session.files), check, "corpus schema")


def init(
    ctx: Context,
    directory: Annotated[str, Argument(metavar="DIR", help="The new corpus's folder; created if missing.")],
) -> int:
    """Start a corpus of your own, with your own axes.

    Writes a small example that passes "corpus check": three papers, one exclusion, a taxonomy with
    explanations, a README, and a check for pull requests. Existing files are never overwritten.

    \b
    Examples:
      corpus init my-survey
      corpus --root my-survey stats
    """
    from orchtrace_corpus.corpus.build import new_corpus
    from orchtrace_corpus.corpus.scaffold import scaffold

    settings: Session = ctx.obj
    if settings.root:
        raise CommandUseError("init makes a new corpus and takes no --root", "Write: corpus init DIR")
    if not directory:
        raise CommandUseError("the folder's name is empty", "Write: corpus init DIR")
    files = new_corpus()
    scaffold(directory, files)
    for name in files:
        path = os.path.join(directory, name)
        settings.output.write(f"{printable(path, limit=len(path))}\n")
    commands = ["corpus check", "corpus stats", "corpus terms"]
    if not os.path.samefile(directory, os.curdir):
        commands = [f"cd {shlex.quote(directory)}", *commands[:2]]
    settings.output.note("\n".join(("Next:", *(f"  {command}" for command in commands))))
    settings.output.note("Then make data/taxonomy.yaml yours; its comments say how.")
    if "file://" in files["requirements.txt"]:
        example = "orchtrace-corpus @ git+https://ADDRESS@COMMIT"
        settings.output.note(f"requirements.txt names a folder of this machine; before you share, write: {example}")
    return ExitCode.DONE


def _generate(ctx: Context, make: "Callable[[CorpusSession], Sequence[Document]]", check: bool, mend: str) -> int:
    session = CorpusSession(*ctx.obj)
    root = session.writable_root()
    return write_or_check(session, root, make(session), check=check, mend=mend)
