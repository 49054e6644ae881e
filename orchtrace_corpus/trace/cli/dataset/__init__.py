"""`corpus trace dataset`: the commands about many traces at once."""

from orchtrace_corpus.base.commands.lazy import Command, group

COMMANDS: dict[str, dict[str, Command]] = {
    "Commands": {
        "build": Command(
            "trace.cli.dataset.build", "Bring logs and traces into the tables of a dataset, many at once."
        ),
        "stats": Command(
            "trace.cli.dataset.stats", "Describe the traces of a dataset: measures, decisions, tokens, outliers."
        ),
        "sql": Command("trace.cli.dataset.sql", "Ask the tables of a dataset a question in SQL."),
    },
}
"""All commands by name, under the heading of `corpus trace dataset --help`."""


app = group(COMMANDS)


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
