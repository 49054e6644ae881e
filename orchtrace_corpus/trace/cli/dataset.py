"""The commands below `corpus trace dataset`, about many traces at once."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from orchtrace_corpus.base.commands import progress
from orchtrace_corpus.base.commands.declarations import Argument, Command, CommandGroup, Context, Option
from orchtrace_corpus.base.commands.options import OutputFormat, split_names
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, DataFileError, ExitCode
from orchtrace_corpus.base.findings import printable, quote
from orchtrace_corpus.base.progress import Progress
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text import table as text_table
from orchtrace_corpus.base.workers import processors
from orchtrace_corpus.trace.cli import logs as trace_logs
from orchtrace_corpus.trace.cli.arguments import Cost, PriceTable
from orchtrace_corpus.trace.dataset import build as building
from orchtrace_corpus.trace.dataset.folder import Folder
from orchtrace_corpus.trace.dataset.plan import FORMATS
from orchtrace_corpus.trace.dataset.statistics import GROUPINGS, statistics
from orchtrace_corpus.trace.dataset.tables import open_tables
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.render import dataset as render

if TYPE_CHECKING:
    from orchtrace_corpus.trace.dataset.spark import Spark

_MAX_ROWS = 1000

EngineName = Annotated[
    Literal["local", "spark"], Option("--engine", help="Run on this machine, or on Spark (extra: spark).")
]
Master = Annotated[
    str,
    Option("--master", metavar="URL", help="The Spark master: local[*], spark://HOST:PORT, sc://HOST (Connect), ..."),
]
SparkConf = Annotated[list[str] | None, Option("--spark-conf", metavar="K=V", help="A Spark setting (repeatable).")]

COMMANDS: dict[str, dict[str, Command]] = {
    "Commands": {
        "build": Command("trace.cli.dataset:build", "Build the tables of a dataset from many logs and traces."),
        "stats": Command(
            "trace.cli.dataset:stats", "Describe the traces of a dataset: measures, decisions, tokens, outliers."
        ),
        "sql": Command("trace.cli.dataset:sql", "Query the tables of a dataset with SQL."),
    }
}
"""All commands by name, under the heading of `corpus trace dataset --help`."""


def dataset(ctx: Context) -> Session:
    """Build tables from many logs, and describe and query them.

    The tables are Parquet files, which docs/dataset.md describes. Needs the extra "scale".

    \b
    Examples:
      corpus trace dataset build data/traces -o dataset
      corpus trace dataset stats dataset --by topology
      corpus trace dataset sql dataset "SELECT topology, count(*) FROM traces GROUP BY topology"
    """
    return ctx.obj


app = CommandGroup(COMMANDS, dataset)


def build(
    ctx: Context,
    paths: Annotated[list[str], Argument(metavar="LOGS...", help="Logs, finished traces, or folders of them.")],
    output: Annotated[
        str, Option("--output", "-o", metavar="DIR", help="A new dataset, or an existing one to update.")
    ],
    jobs: Annotated[
        int | None,
        Option("--jobs", "-j", min=1, max=1024, help="The number of reading processes (default: one per processor)."),
    ] = None,
    form: Annotated[
        str, Option("--from", metavar="FORMAT", help=f"One of {', '.join(FORMATS)} (default: detected).")
    ] = "",
    price_table: PriceTable = "",
    is_cost: Cost = False,
    salt: Annotated[
        str,
        Option(
            "--salt", metavar="TEXT", help="The salt of the hashes of a new dataset (default: random, and kept in it)."
        ),
    ] = "",
    prune: Annotated[
        bool, Option("--prune", help="Remove sessions whose logs are gone or not named this time.")
    ] = False,
    engine: EngineName = "local",
    master: Master = "",
    spark_conf: SparkConf = None,
) -> int:
    """Build the tables of a dataset from many logs and traces.

    Several processes read the logs. A later run reads only what is new or has changed; an interrupted one
    continues, and repeats at most the unit that each process was working on. Unreadable logs are reported and
    skipped (exit code 1). Contents stay in the logs.

    \b
    Examples:
      corpus trace dataset build data/traces -o dataset
      corpus trace dataset build path/to/logs -o dataset --jobs 4
      corpus trace dataset build /shared/logs -o /shared/dataset --engine spark --master spark://host:7077
    """  # fmt: skip
    session = Session(*ctx.obj)
    prices = trace_logs.load_prices(price_table, is_wanted=is_cost)
    spark = _spark(engine, master, spark_conf or ())
    if spark is not None and jobs is not None:
        raise CommandUseError("--jobs is for the local engine", "Spark has --spark-conf spark.executor.cores=N.")
    done_count = total_count = 0  # of sources

    def report(done: int, total: int) -> None:
        nonlocal done_count, total_count
        done_count = done
        total_count = total
        if show is not None:
            show(Progress(done, total))

    try:
        with progress.show_progress(session.output, "sources") as show:
            executor = spark or building.LocalEngine(jobs or processors())
            outcome = building.build(
                paths, Folder(output), executor, report, form=form, prices=prices, salt=salt, prune=prune
            )
    except KeyboardInterrupt:
        counts = f"{done_count:,} of {total_count:,} sources were read"
        session.output.note(f"corpus: {counts}; finished units are kept; the same command goes on")
        raise
    for path in paths:
        for note in logs.find(path).skipped:
            session.output.note(f"corpus: {note}")
    for line in render.outcome_lines(outcome):
        session.output.note(line)
    if outcome.failures and not outcome.traces:
        name, reason = outcome.failures[0]
        raise DataFileError(f"no trace could be made of anything; {printable(name)}: {printable(reason, limit=300)}")
    return ExitCode.FINDINGS if outcome.failures else ExitCode.DONE


def _spark(engine: str, master: str, settings: Sequence[str]) -> "Spark | None":
    """Return Spark with the settings of the options; None for the local engine."""
    if engine == "local":
        if master or settings:
            raise CommandUseError("--master and --spark-conf are for --engine spark")
        return None
    if not master:
        raise CommandUseError("--engine spark needs --master URL", "On this machine alone: --master 'local[*]'.")
    values_by_name = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not name or not equals:
            raise CommandUseError(f"--spark-conf wants NAME=VALUE, not {quote(name)}")
        values_by_name[name] = value
    from orchtrace_corpus.trace.dataset.spark import Spark

    return Spark(master, values_by_name)


def stats(
    ctx: Context,
    folder: Annotated[str, Argument(metavar="DIR", help="The dataset.")],
    by: Annotated[str, Option("--by", metavar="A,B,...", help=f"Divide the traces by: {', '.join(GROUPINGS)}.")] = "",
    part: Annotated[
        Literal["all", "overview", "measures", "sub_decisions", "models", "outliers"],
        Option("--table", help="Show only this table; a CSV file then has one header."),
    ] = "all",
    output_format: OutputFormat = Format.TABLE,
    engine: EngineName = "local",
    master: Master = "",
    spark_conf: SparkConf = None,
) -> int:
    """Describe the traces of a dataset: measures, decisions, tokens, outliers.

    Shows the distribution of each measure, how many traces take each sub-decision, tokens and cost by model,
    and traces far outside their group. docs/dataset.md explains how each figure is computed.

    \b
    Examples:
      corpus trace dataset stats dataset
      corpus trace dataset stats dataset --by topology --table measures --format csv
    """
    session = Session(*ctx.obj)
    dataset_folder = Folder(folder)
    parts = dataset_folder.parts()
    spark = _spark(engine, master, spark_conf or ())
    groupings = split_names(by) if by else ()
    with spark.open_tables(parts) if spark else open_tables(parts) as tables:
        description = statistics(tables, groupings)
    if dataset_folder.is_unfinished:
        session.output.note(
            "corpus: a build is at work here, or was broken off; these are the traces that it has finished"
        )
    all_tables = render.tables(description, exact=output_format.is_exact)
    wanted = [table for table in all_tables if part in ("all", table.name)]
    width = session.output.width
    if output_format is Format.TABLE and width is not None:
        wanted = [render.narrow(table, width) for table in wanted]
    session.show_tables(wanted, "trace-dataset", output_format)
    return ExitCode.DONE


def sql(
    ctx: Context,
    folder: Annotated[str, Argument(metavar="DIR", help="The dataset.")],
    query: Annotated[str, Argument(metavar="QUERY", help="One read-only statement in DuckDB's SQL.")],
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """Query the tables of a dataset with SQL.

    The tables are traces, events, edges, agents and ledger; DESCRIBE events shows the columns of events. A
    query can read nothing else, and cannot write. DuckDB runs it on this machine: up to a million events, that
    is faster than Spark on the same processors; larger sizes were not measured.

    \b
    Examples:
      corpus trace dataset sql dataset "SELECT topology, count(*) FROM traces GROUP BY topology"
      corpus trace dataset sql dataset "DESCRIBE events" --format markdown
    """
    session = Session(*ctx.obj)
    with open_tables(Folder(folder).parts()) as tables:
        answer = tables.query(query)
        if output_format is Format.CSV:
            session.output.write(text_table.csv(render.query_table(answer.columns, ()).columns, ()))
            for batch in answer.batches:
                session.output.write(text_table.csv_rows(render.cells(batch, exact=True)))
        elif output_format is Format.JSON:
            for name in answer.columns:
                if answer.columns.count(name) > 1:
                    raise CommandUseError(f"two columns are called {quote(name)}", "Name them with AS.")
            records = []
            for batch in answer.batches:
                for row in batch:
                    values = map(render.as_json, row)
                    records.append(dict(zip(answer.columns, values, strict=True)))
            session.output.write(text_table.envelope("trace-sql", {"rows": records}))
        else:
            rows = []
            for batch in answer.batches:
                rows += batch
                if len(rows) > _MAX_ROWS:
                    break
            notes = []
            if len(rows) > _MAX_ROWS:
                notes.append(f"The first {_MAX_ROWS:,} rows; --format csv or json has all.")
            table = render.query_table(answer.columns, rows[:_MAX_ROWS], notes)
            session.show_tables([table], "trace-sql", output_format)
    return ExitCode.DONE
