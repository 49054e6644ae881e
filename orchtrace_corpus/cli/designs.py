"""Where the pool and the rewards of traces meet: `corpus show` and `corpus terms` name what computes a reward.

A specification of a published reward has the key of its paper for a name; here the two are joined, and nowhere else.
"""

from typing import TYPE_CHECKING

from orchtrace_corpus.base.commands.declarations import Context, like
from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.base.files import installed_path
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text.layout import line, wrap
from orchtrace_corpus.corpus.cli.session import CorpusSession

if TYPE_CHECKING:
    from orchtrace_corpus.trace.rewards import Spec

_AXIS = "reward_family"


@like("corpus.cli.records:show")
def show(ctx: Context, names: list[str], output_format: Format = Format.TABLE) -> int:
    """The command `show`; below records whose reward is specified, how to compute it on a run."""
    from orchtrace_corpus.corpus.cli import records

    session = CorpusSession(*ctx.obj)
    for record in records.show_found(session, names, output_format):
        if output_format is Format.TABLE and installed_path(f"data/rewards/{record.name}.yaml"):
            text = f"Its reward on a run: corpus trace reward RUN --spec {record.name}"
            shown = wrap(session.output.renamed(text), session.output.width) if session.output.width else (text,)
            session.output.show([(), *(line(part) for part in shown)])
    return ExitCode.DONE


@like("corpus.cli.terms:terms")
def terms(ctx: Context, axis: str = "", sort: str = "", columns: str = "", output_format: Format = Format.TABLE) -> int:
    """The command `terms`; below the reward families, what computes each on a run, and whose rewards are specified."""
    from orchtrace_corpus.corpus.cli import terms as vocabulary

    code = vocabulary.terms(ctx, axis, sort, columns, output_format)
    if axis == _AXIS and output_format is Format.TABLE:
        from orchtrace_corpus.base.text.table import Table
        from orchtrace_corpus.trace.rewards import FUNCTIONS, load, published
        from orchtrace_corpus.trace.rewards.terms import FAMILIES

        session = CorpusSession(*ctx.obj)
        keys = {paper.key for paper in session.pool_as_read().papers}
        specs = [load(name) for name in published() if name in keys]
        functions = {
            family: [one.name for one in FUNCTIONS.values() if one.family in (family, "")] for family in FAMILIES
        }
        designs = {family: [spec.name for spec in specs if _has(spec, family)] for family in FAMILIES}
        notes = (
            "A design stands at each family that a term of it has; its paper is tagged with one, as counted above.",
            "Compute them with corpus trace reward RUN --family CODE, or --spec DESIGN; see docs/rewards.md.",
        )
        tables = [
            Table(
                "rewards", title, ("code", name), tuple((code, ", ".join(one) or None) for code, one in rows.items()),
                foot, wrapped=name,
            )
            for title, name, rows, foot in (
                ("On a run", "functions", functions, ()),
                ("Published designs by their terms", "designs", designs, notes),
            )
        ]  # fmt: skip
        session.output.show([()])
        session.show_tables(tables, "terms", Format.TABLE)
    return code


def _has(spec: "Spec", family: str) -> bool:
    """Whether a term of a specification is of a family; what has terms of several is hybrid."""
    return family in spec.families or (family == "R8" and len(spec.families) > 1)
