"""The command `corpus trace reward`."""

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
from orchtrace_corpus.base.text.table import csv, envelope
from orchtrace_corpus.trace.cli import loading, logs
from orchtrace_corpus.trace.cli.arguments import Files, OutcomesFile, SessionName
from orchtrace_corpus.trace.cli.loading import RunDocument, derive_each, with_outcomes
from orchtrace_corpus.trace.render import rewards as render
from orchtrace_corpus.trace.rewards import Spec, load, spec_of_families
from orchtrace_corpus.trace.rewards.comparison import compare


class By(StrEnum):
    """The parts of a run or of a reward that a table lists."""

    TERM = "term"
    AGENT = "agent"
    EVENT = "event"


def reward(
    ctx: Context,
    paths: Files,
    name: SessionName = "",
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
    specs = [load(name_or_file) for name_or_file in spec] if spec else [spec_of_families(families)]
    if len({each.name for each in specs}) < len(specs):
        raise CommandUseError("two specifications have one name", "Name different ones, or rename a file.")
    outcomes = logs.load_outcomes(outcomes_file)
    runs = with_outcomes(loading.documents_of(session, paths, name), outcomes)
    first_runs = list(islice(runs, 2))  # one more than one, to know if there are several
    code = ExitCode.DONE
    if len(first_runs) == 1:
        code = _show_one(session, first_runs[0], specs, by, output_format, is_design=bool(spec))
    elif by is not By.TERM:
        raise CommandUseError(f"--by {by} shows one run, and these are several", "Name one file, or --session NAME.")
    else:
        _show_several(session, chain(first_runs, runs), specs, output_format, is_design=bool(spec))
    logs.report_unused(session, outcomes)
    return code


def _show_one(
    session: Session, document: RunDocument, specs: Sequence[Spec], by: By, output_format: Format, *, is_design: bool
) -> ExitCode:
    """Show the rewards of one run; if it has none, say why.

    `is_design` is True for a design that the user names, and False for the functions of reward families.
    """
    (run,) = derive_each(session, [document], partial(render.run_rewards, specs, with_names=by is By.AGENT))
    exact = output_format.is_exact
    if output_format is Format.JSON:
        session.output.write(envelope("trace-rewards", {"traces": [render.data(specs, run, is_design=is_design)]}))
    else:
        if by is not By.TERM and exact:
            tables = [render.exact_shares(specs, run, by)]
        elif by is not By.TERM:
            tables = render.share_tables(specs, run, by, is_design=is_design)
        elif is_design:
            tables = render.term_tables(specs, run, exact=exact)
        else:
            tables = [render.functions_table(specs[0], run, exact=exact)]
        session.show_tables(tables, "trace-rewards", output_format)
    refusal = render.refusal(run, is_design=is_design)
    if refusal:
        session.output.tell(f"corpus: no reward: {refusal}")
        return ExitCode.FINDINGS
    return ExitCode.DONE


def _show_several(
    session: Session, runs: Iterator[RunDocument], specs: Sequence[Spec], output_format: Format, *, is_design: bool
) -> None:
    """Show the rewards of several runs, a row for each; two specifications are compared."""
    exact = output_format.is_exact
    if len(specs) == 2:
        figures = list(derive_each(session, runs, partial(render.run_figures, specs)))
        first_rewards = [run.figures[0][0] for run in figures]  # a specification's reward comes before its terms
        second_rewards = [run.figures[1][0] for run in figures]
        comparison = compare(first_rewards, second_rewards, [run.task_id for run in figures])
        if output_format is Format.JSON:
            content = render.comparison_data(comparison, figures)
            session.output.write(envelope("trace-rewards-compared", content))
            return
        tables = render.comparison_tables(specs, figures, comparison, exact=exact)
        if output_format is Format.CSV:
            tables = tables[:1]  # that of the runs; the others have other columns
        session.show_tables(tables, "trace-rewards", output_format)
    elif output_format is Format.JSON:
        rewards = list(derive_each(session, runs, partial(render.run_data, specs, is_design)))
        session.output.write(envelope("trace-rewards", {"traces": rewards}))
    elif output_format is Format.CSV:
        # Worker processes return lines: they are smaller than cells, and faster to send.
        lines = derive_each(session, runs, partial(render.run_csv, specs, is_design))
        session.output.write(csv(render.runs_columns(specs, is_design=is_design), ()) + "".join(lines))
    else:
        figures = list(derive_each(session, runs, partial(render.run_figures, specs)))
        table = render.runs_table(specs, figures, is_design=is_design, exact=exact)
        session.show_tables([table], "trace-rewards", output_format)
