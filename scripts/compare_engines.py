"""Compute the statistics of a dataset on Spark and on DuckDB, from the same expressions, and compare every row.

    python -m pip install pyspark     # and a Java runtime
    python scripts/compare_engines.py DIR [--by system,topology]

The Spark is a local one, in this process; the exit code is 1 if any row differs.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from math import isnan
from typing import Any

from orchtrace_corpus.trace.dataset import statistics
from orchtrace_corpus.trace.dataset.folder import Folder
from orchtrace_corpus.trace.dataset.tables import open_tables

Rows = list[tuple[Any, ...]]


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="the dataset")
    parser.add_argument("--by", default="", help="columns of traces, with commas between them")
    arguments = parser.parse_args()
    by = arguments.by.split(",") if arguments.by else []
    ours, theirs = on_duckdb(arguments.folder, by), on_spark(arguments.folder, by)
    for name, rows in ours.items():
        print(f"{name}: {len(rows)} rows, {'the same' if rows == theirs[name] else 'DIFFERENT'}")
    sys.exit(ours != theirs)


def expressions(table: Callable[[str], Any], by: Sequence[str]) -> dict[str, Any]:
    """All statistics over the tables of an engine."""
    traces, events = table("traces"), table("events")
    return {
        "overview": statistics.overview(traces),
        "distributions": statistics.distributions(traces, by),
        "coverage": statistics.coverage(traces, by),
        "models": statistics.models(traces, events, by),
        "outliers": statistics.outliers(traces, by),
    }


def on_duckdb(folder: str, by: Sequence[str]) -> dict[str, Rows]:
    """The statistics as `corpus trace dataset stats` computes them."""
    import ibis

    with open_tables(Folder(folder).parts()) as tables:
        return {
            name: ordered(row for batch in tables.run(str(ibis.to_sql(one, dialect="duckdb"))).batches for row in batch)
            for name, one in expressions(statistics.declared, by).items()
        }


def on_spark(folder: str, by: Sequence[str]) -> dict[str, Rows]:
    """The same on a local Spark."""
    import ibis
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[*]").config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.ui.enabled", "false")
    connection = ibis.pyspark.connect(builder.config("spark.sql.session.timeZone", "UTC").getOrCreate())
    found = expressions(lambda name: connection.read_parquet(f"{folder}/{name}", table_name=name), by)
    return {name: ordered(tuple(row.values()) for row in one.to_pyarrow().to_pylist()) for name, one in found.items()}


def ordered(rows: Any) -> Rows:
    """Rows in an order of their own, with figures as far as engines agree on them."""
    return sorted((tuple(map(plain, row)) for row in rows), key=repr)


def plain(value: Any) -> Any:
    """A figure to twelve digits; no number is none."""
    if isinstance(value, float):
        return None if isnan(value) else float(f"{value:.12g}")
    return tuple(map(plain, value)) if isinstance(value, (list, tuple)) else value


if __name__ == "__main__":
    main()
