"""The command `corpus trace checklist`."""

import os
from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any

from orchtrace_corpus.base.commands.declarations import Argument, Context
from orchtrace_corpus.base.commands.options import OutputFormat, split_names
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, DataFileError, ExitCode
from orchtrace_corpus.base.findings import quote_path
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.trace.analysis.marks import Marks
from orchtrace_corpus.trace.cli import logs
from orchtrace_corpus.trace.cli.arguments import Effectful, OutcomesFile, SessionName, Untrusted
from orchtrace_corpus.trace.cli.loading import derive_each, documents_of, with_outcomes


def checklist(
    ctx: Context,
    paths: Annotated[
        list[str],
        Argument(
            metavar="RUN|DATASET...", help="Traces, logs, folders of them; or one dataset of corpus trace dataset."
        ),
    ],
    name: SessionName = "",
    untrusted: Untrusted = "",
    effectful: Effectful = "",
    outcomes_file: OutcomesFile = "",
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """Show which items that a paper should report can be recomputed from traces, and what to log for the rest.

    Items are about reward, credit, parallelism, cost, safety, stopping, sub-decisions and setting. For several
    traces, or a dataset, counts the traces from which each item can be recomputed, fully, partly or not at all.
    docs/checklist.md says what each item rests on. Exit code 1: a trace was left out, or an outcome belongs to no
    run.

    \b
    Examples:
      corpus trace checklist data/traces/swarm.json
      corpus trace checklist path/to/logs --untrusted web_fetch,read_email
      corpus trace checklist data/traces --format markdown
    """
    from orchtrace_corpus.trace.diagnosis.checklist import check, facts_of
    from orchtrace_corpus.trace.render import checklist as render

    session = Session(*ctx.obj)
    if any(map(_is_dataset, paths)):
        if len(paths) > 1 or name or untrusted or effectful or outcomes_file:
            raise CommandUseError("of a dataset, give the folder alone, and of the options --format")
        facts = list(_facts_of_dataset(paths[0]))
        if not facts:
            raise DataFileError(f"the dataset {quote_path(paths[0])} has no trace")
    else:
        outcomes = logs.load_outcomes(outcomes_file)
        # None for the tools with side effects: those that the trace names.
        marks = Marks(split_names(untrusted) if untrusted else (), split_names(effectful) if effectful else None)
        runs = with_outcomes(documents_of(session, paths, name), outcomes)
        facts = list(derive_each(session, runs, partial(facts_of, marks)))
        logs.report_unused(session, outcomes)
    items = check(facts)
    if output_format is Format.JSON:
        from orchtrace_corpus.base.text.table import envelope

        session.output.write(envelope("trace-checklist", render.data(items, len(facts))))
        return ExitCode.DONE
    if output_format.is_exact:
        table = render.exact_table(items)
    else:
        table = render.table(items, facts[0]["trace_id"], len(facts))
    session.show_tables([table], "trace-checklist", output_format)
    return ExitCode.DONE


def _is_dataset(path: str) -> bool:
    """Return True if a folder has the tables of a dataset."""
    traces = os.path.join(path, "traces")
    return os.path.isdir(traces) and any(file.endswith(".parquet") for file in os.listdir(traces))


def _facts_of_dataset(path: str) -> Iterator[dict[str, Any]]:
    """Yield the facts of each trace of a dataset."""
    from orchtrace_corpus.trace.dataset.folder import Folder
    from orchtrace_corpus.trace.dataset.tables import open_tables
    from orchtrace_corpus.trace.diagnosis.checklist import COLUMNS, COUNTS, needed_reasons

    names = (*COLUMNS, "refused", *COUNTS)
    counts = ", ".join(f"count(*) FILTER (WHERE {condition}) AS {name}" for name, condition in COUNTS.items())
    columns = ", ".join(f'"{name}"' for name in names)
    query = f"SELECT {columns} FROM traces JOIN (SELECT trace, {counts} FROM events GROUP BY trace) USING (trace)"
    with open_tables(Folder(path).parts()) as tables:
        for batch in tables.run(query).batches:
            for row in batch:
                facts = dict(zip(names, row, strict=True))
                yield {**facts, "refused": needed_reasons(dict(facts["refused"] or {}))}
