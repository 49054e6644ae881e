"""`corpus trace dataset`: the commands about many traces at once."""

import typer

from orchtrace_corpus.cli.lazy import Command, LazyGroup

COMMANDS: dict[str, dict[str, Command]] = {
    "Commands": {
        "build": Command("trace.dataset.build", "Bring logs and traces into the tables of a dataset, many at once."),
        "stats": Command(
            "trace.dataset.stats", "Describe the traces of a dataset: measures, decisions, tokens, outliers."
        ),
        "sql": Command("trace.dataset.sql", "Ask the tables of a dataset a question in SQL."),
    },
}
"""All commands by name, under the heading of `corpus trace dataset --help`."""


class _Commands(LazyGroup):
    table = COMMANDS


app = typer.Typer(
    cls=_Commands,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def dataset() -> None:
    """Bring many logs into tables, and describe and query them there.

    The tables are Parquet files, which docs/dataset.md describes. Needs the extra `scale`.

    \b
    Examples:
      corpus trace dataset build data/traces -o dataset
      corpus trace dataset stats dataset --by topology
      corpus trace dataset sql dataset "SELECT topology, count(*) FROM traces GROUP BY topology"
    """
