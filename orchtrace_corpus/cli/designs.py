"""The commands `corpus show` and `corpus terms`. They also name the reward designs that can be computed for a trace.

The reward of a paper has a specification under the key of the paper. Only this module brings papers and specifications
together.
"""

from orchtrace_corpus.base.annotations import TYPE_CHECKING, Annotated
from orchtrace_corpus.base.commands.declarations import Argument, Context
from orchtrace_corpus.base.commands.options import OutputFormat
from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.base.files import installed_path
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text.layout import line, wrap
from orchtrace_corpus.corpus.cli import offers
from orchtrace_corpus.corpus.cli.options import Columns, Sort, argument
from orchtrace_corpus.corpus.cli.session import CorpusSession

if TYPE_CHECKING:
    from orchtrace_corpus.trace.rewards import Spec

_REWARD_FAMILY = "reward_family"


def show(
    ctx: Context,
    names: Annotated[
        list[str], Argument(metavar="KEY...", help="A key, exclusion id, arXiv id, DOI or URL.", offers=offers.keys)
    ],
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """Show records by key, arXiv id, DOI or URL.

    Identifiers are accepted in every usual spelling, and keys in any case. Exclusions and candidates are found,
    too. A paper is shown with the evidence for its sourced fields, and the disputes about it; a candidate with
    every reading.

    \b
    Examples:
      corpus show puppeteer
      corpus show arXiv:2505.19591v2
      corpus show https://arxiv.org/abs/2505.19591
      corpus show E007
      corpus show c3 puppeteer --format json
    """
    from orchtrace_corpus.corpus.cli import records

    session = CorpusSession(*ctx.obj)
    for record in records.show_records(session, names, output_format):
        if output_format is Format.TABLE and installed_path(f"data/rewards/{record.name}.yaml"):
            text = f"Its reward on a run: corpus trace reward RUN --spec {record.name}"
            lines = [text]
            if session.output.width:
                lines = wrap(session.output.renamed(text), session.output.width)
            session.output.show([(), *map(line, lines)])
    return ExitCode.DONE


def terms(
    ctx: Context,
    axis: Annotated[
        str, argument("[FIELD]", "A field, or a term by its name or code, with definitions.", offers.fields)
    ] = "",
    sort: Sort = "",
    columns: Columns = "",
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """Show the fields and the terms they are tagged with.

    \b
    Examples:
      corpus terms
      corpus terms credit_unit
      corpus terms stop
      corpus terms R7
      corpus terms stage --sort -count
      corpus terms --format csv
    """
    from orchtrace_corpus.corpus.cli import terms as vocabulary

    session = CorpusSession(*ctx.obj)
    vocabulary.show_terms(session, axis, sort, columns, output_format)
    if axis == _REWARD_FAMILY and output_format is Format.TABLE:
        _show_reward_designs(session)
    return ExitCode.DONE


def _show_reward_designs(session: CorpusSession) -> None:
    """Show two tables by reward family: of the reward functions, and of the published designs."""
    from orchtrace_corpus.base.text.table import Cell, Table
    from orchtrace_corpus.trace.rewards import FUNCTIONS, load, published
    from orchtrace_corpus.trace.rewards.terms import FAMILIES

    keys = {paper.key for paper in session.pool_despite_errors().papers}
    specs = [load(name) for name in published() if name in keys]
    function_rows: list[tuple[Cell, ...]] = []
    design_rows: list[tuple[Cell, ...]] = []
    for family in FAMILIES:
        # A function without a family can be used in all of them.
        functions = [function.name for function in FUNCTIONS.values() if function.family in (family, "")]
        function_rows.append((family, ", ".join(functions) or None))
        designs = [spec.name for spec in specs if _has_family(spec, family)]
        design_rows.append((family, ", ".join(designs) or None))
    notes = (
        "A design stands at each family that a term of it has; its paper is tagged with one, as counted above.",
        "Compute them with corpus trace reward RUN --family CODE, or --spec DESIGN; see docs/rewards.md.",
    )
    function_table = Table("rewards", "On a run", ("code", "functions"), tuple(function_rows), wrapped="functions")
    title = "Published designs by their terms"
    design_table = Table("rewards", title, ("code", "designs"), tuple(design_rows), notes, wrapped="designs")
    session.output.show([()])  # a blank line
    session.show_tables([function_table, design_table], "terms", Format.TABLE)


def _has_family(spec: "Spec", family: str) -> bool:
    """Return True if a design has a term of a family; a design with terms of several families is hybrid (R8)."""
    return family in spec.families or (family == "R8" and len(spec.families) > 1)
