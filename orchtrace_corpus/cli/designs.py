"""Where the pool and the rewards of traces meet: `corpus show` and `corpus terms` name what computes a reward.

Specifications of rewards name papers by key, as text; here they are joined to records, and nowhere else.
"""

from functools import wraps
from typing import TYPE_CHECKING, Any

import typer

from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text.layout import line, wrap
from orchtrace_corpus.corpus.analysis import search as lookup
from orchtrace_corpus.corpus.cli import counts, records
from orchtrace_corpus.corpus.cli.session import CorpusSession

if TYPE_CHECKING:
    from orchtrace_corpus.trace.rewards import Spec

_AXIS = "reward_family"


@wraps(records.show)
def show(ctx: typer.Context, names: list[str], **options: Any) -> int:
    """The command `show`; below records whose reward is specified, how to compute it on a run."""
    code = records.show(ctx, names, **options)
    if options.get("output_format", Format.TABLE) is Format.TABLE:
        session = CorpusSession(*ctx.obj)
        pool = session.pool_as_read()
        keys = {record.name for name in names for record in lookup.find_records(pool, name)}
        for spec in _specs(keys):
            text = f"Its reward on a run, {_families(spec)}: corpus trace reward RUN --spec {spec.name}"
            shown = wrap(session.output.renamed(text), session.output.width) if session.output.width else (text,)
            session.output.show([(), *(line(part) for part in shown)])
    return code


@wraps(counts.terms)
def terms(ctx: typer.Context, axis: str = "", **options: Any) -> int:
    """The command `terms`; below the reward families, what computes each on a run, and whose rewards are specified."""
    code = counts.terms(ctx, axis, **options)
    if axis == _AXIS and options.get("output_format", Format.TABLE) is Format.TABLE:
        from orchtrace_corpus.base.text.table import Table
        from orchtrace_corpus.trace.rewards import FUNCTIONS
        from orchtrace_corpus.trace.rewards.terms import FAMILIES

        session = CorpusSession(*ctx.obj)
        specs = _specs({paper.key for paper in session.pool_as_read().papers})
        rows = tuple(
            (
                family,
                ", ".join(one.name for one in FUNCTIONS.values() if one.family in (family, "")),
                ", ".join(spec.name for spec in specs if _has(spec, family)) or None,
            )
            for family in FAMILIES
        )
        notes = ("Compute them with corpus trace reward RUN --family CODE, or --spec DESIGN; see docs/rewards.md.",)
        session.output.show([()])
        table = Table(
            "rewards", "On a run", ("code", "functions", "designs with such a term"), rows, notes, wrapped="functions"
        )
        session.show_tables([table], "terms", Format.TABLE)
    return code


def _specs(keys: set[str]) -> "list[Spec]":
    """The specified rewards of papers, by name."""
    from orchtrace_corpus.trace.rewards import load, published

    return [spec for spec in map(load, published()) if spec.paper in keys]


def _has(spec: "Spec", family: str) -> bool:
    """Whether a term of a specification is of a family; what has terms of several is hybrid."""
    return family in spec.families or (family == "R8" and len(spec.families) > 1)


def _families(spec: "Spec") -> str:
    return " + ".join(spec.families)
