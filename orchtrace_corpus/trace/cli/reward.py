"""`corpus trace reward`."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import partial
from itertools import chain, islice
from typing import Annotated

from orchtrace_corpus.base.commands.declarations import Context, Option
from orchtrace_corpus.base.commands.options import OutputFormat, refuse_together, split_names
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text.table import Table, csv, envelope
from orchtrace_corpus.trace.cli import loading, logs
from orchtrace_corpus.trace.cli.arguments import Files, Name, OutcomesFile
from orchtrace_corpus.trace.cli.loading import Judged, derive_each, judged
from orchtrace_corpus.trace.render import rewards as render
from orchtrace_corpus.trace.rewards import Spec, load, of_families
from orchtrace_corpus.trace.rewards.comparison import compare


class By(StrEnum):
    """The key by which a reward is shown."""

    TERM = "term"
    AGENT = "agent"
    EVENT = "event"


def reward(
    ctx: Context,
    paths: Files,
    name: Name = "",
    family: Annotated[
        str, Option("--family", metavar="R1,...,R8", help="The functions of these reward families only.")
    ] = "",
    spec: Annotated[
        list[str] | None,
        Option("--spec", metavar="NAME|FILE", help="A published reward, or a file; twice to compare two."),
    ] = None,
    by: Annotated[By, Option("--by", help="Show the reward by term, agent or event.")] = By.TERM,
    outcomes_file: OutcomesFile = "",
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """Compute rewards of runs: the functions of eight families, or a published design.

    Without --spec, shows every function with its value, or what to add to get one. --spec names a reward
    such as kimi-k2-5, or a YAML file of your own: its terms, weighted, add up to the reward. Two specs are
    compared over several runs of a task: which runs they rank differently, and what each pays for.
    docs/rewards.md gives the formulas, and the sources of the ten published designs.

    Logs contain no rewards: --outcomes gives those of runs, agents and events. Exit code 1: an outcome belongs
    to no run, or the only run given has no reward; of several runs, some may have none.

    \b
    Examples:
      corpus trace reward data/traces/swarm.json
      corpus trace reward data/traces/swarm.json --family R7
      corpus trace reward data/traces/swarm.json --spec kimi-k2-5 --by agent
      corpus trace reward data/traces --spec kimi-k2-5 --spec agent-qmix2026
    """
    session = Session(*ctx.obj)
    refuse_together(family=bool(family), spec=bool(spec))
    families = split_names(family) if family else ()
    specs = [load(one) for one in spec] if spec else [of_families(families)]
    if len({one.name for one in specs}) < len(specs):
        raise CommandUseError("two specifications have one name", "Name different ones, or rename a file.")
    known = logs.outcomes(outcomes_file)
    given = judged(loading.documents_of(session, paths, name), known)
    first = list(islice(given, 2))
    is_refused = False
    if len(first) == 1:
        is_refused = not _show_one(session, first[0], specs, by, output_format, is_design=bool(spec))
    elif by is not By.TERM:
        raise CommandUseError(f"--by {by} shows one run, and these are several", "Name one file, or --session NAME.")
    else:
        _show_several(session, chain(first, given), specs, output_format, is_design=bool(spec))
    logs.tell_unused(session, known)
    return ExitCode.FINDINGS if is_refused else ExitCode.DONE


def _show_one(
    session: Session, one: Judged, specs: Sequence[Spec], by: By, output_format: Format, *, is_design: bool
) -> bool:
    """Show what a run is paid; whether it has any reward, else why not is said as well."""
    (paid,) = derive_each(session, [one], partial(render.present, specs, named=by is By.AGENT))
    refusal = render.refusal(paid, is_design=is_design)
    if output_format is Format.JSON:
        session.output.write(envelope("trace-rewards", {"traces": [render.data(specs, paid, is_design=is_design)]}))
    else:
        tables = _tables(specs, paid, by, exact=output_format.is_exact, is_design=is_design)
        session.show_tables(tables, "trace-rewards", output_format)
    if refusal:
        session.output.tell(f"corpus: no reward: {refusal}")
    return not refusal


def _tables(specs: Sequence[Spec], paid: render.Paid, by: By, *, exact: bool, is_design: bool) -> Sequence[Table]:
    if by is not By.TERM:
        exact_table = [render.exact_shares(specs, paid, by)] if exact else []
        return exact_table or render.shares(specs, paid, by, is_design=is_design)
    return render.terms(specs, paid, exact=exact) if is_design else [render.functions(specs[0], paid, exact=exact)]


def _show_several(
    session: Session, judged_traces: Iterator[Judged], specs: Sequence[Spec], output_format: Format, *, is_design: bool
) -> None:
    if len(specs) == 2:
        values = list(derive_each(session, judged_traces, partial(render.present_short, specs)))
        found = compare(
            [value.values[0][0] for value in values],
            [one.values[1][0] for one in values],
            [one.task_id for one in values],
        )
        if output_format is Format.JSON:
            session.output.write(envelope("trace-rewards-compared", render.compared_data(found, values)))
            return
        tables = render.compared(specs, values, found, exact=output_format.is_exact)
        session.show_tables(tables[:1] if output_format is Format.CSV else tables, "trace-rewards", output_format)
    elif output_format is Format.JSON:
        each = derive_each(session, judged_traces, partial(render.present_data, specs, is_design))
        session.output.write(envelope("trace-rewards", {"traces": list(each)}))
    elif output_format is Format.CSV:  # lines take less to send, and to hold, than cells
        lines = derive_each(session, judged_traces, partial(render.present_csv, specs, is_design))
        session.output.write(csv(render.columns(specs, is_design=is_design), ()) + "".join(lines))
    else:
        values = list(derive_each(session, judged_traces, partial(render.present_short, specs)))
        table = render.runs(specs, values, is_design=is_design, exact=output_format.is_exact)
        session.show_tables([table], "trace-rewards", output_format)
