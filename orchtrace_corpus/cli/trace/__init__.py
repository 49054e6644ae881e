"""`corpus trace`: the commands about orchestration traces."""

import typer

from orchtrace_corpus.cli.lazy import Command, LazyGroup

COMMANDS: dict[str, dict[str, Command]] = {
    "Check": {
        "validate": Command(
            "trace.validate", "Report every mistake in traces: against the schema, and against the rules of the graph."
        ),
    },
    "Measure": {
        "measure": Command("trace.measure", "Measure traces: work and span, steps, team, tokens, errors."),
        "credit": Command(
            "trace.credit", "Divide a run's reward among its tokens, turns, messages, calls, agents or roles."
        ),
    },
}
"""All commands by name, under the headings of `corpus trace --help`."""


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
def trace() -> None:
    """Check, replay, measure and label traces of agent teams."""
