"""The command table. A command's module is imported when the command is called, not before."""

from typing import Annotated

import typer

from orchtrace_corpus.cli.invoked import Session
from orchtrace_corpus.cli.lazy import Command, LazyGroup
from orchtrace_corpus.cli.output import Output
from orchtrace_corpus.version import __version__

COMMANDS: dict[str, dict[str, Command]] = {
    "Look": {
        "stats": Command("stats", "Count the corpus: one page, one field, or two fields crossed."),
        "gaps": Command("gaps", "Show which cells of two axes are empty or sparse."),
        "list": Command("listing", "List papers, or exclusions, that pass filters."),
        "show": Command("show", "Show records by key, arXiv id, DOI or URL."),
        "search": Command("search", "Find records by words."),
        "terms": Command("terms", "Show the fields and the terms they are tagged with."),
        "claims": Command("claims", "Hold what the corpus claims about itself against its records."),
        "scale": Command("scale", "Compare how large systems in use are with how large experiments are."),
    },
    "Keep true": {
        "check": Command("check", "Run everything that CI asks, in one process."),
        "validate": Command("validate", "Report every mistake in the data, at its line."),
        "fmt": Command("fmt", "Write the data files in canonical form."),
        "build": Command("build", "Regenerate every generated file."),
        "readme": Command("readme", "Regenerate the list and the tables in README.md."),
        "figures": Command("figures", "Draw the figures, and the page that shows them."),
        "schema": Command("schema", "Write the JSON Schemas of the data files, for editors."),
        "audit": Command("audit", "Draw a sample for a second reader, and measure how far readers agree."),
        "rule": Command("rule", "Explain a rule: why it exists, what breaks it, and the same mended."),
    },
    "Change": {
        "add": Command("add", "Add papers to the pool."),
        "exclude": Command("exclude", "Put a paper on record that was screened and left out, with the reason."),
        "promote": Command(
            "promote", "Take an excluded paper into the pool; the exclusion stays, and says what it became."
        ),
        "demote": Command("demote", "Take a paper out of the pool and put it on record as excluded, with the reason."),
        "tag": Command("tag", "Set tags of one record."),
        "import": Command("importing", "Bring records of another format into the pool."),
        "remove": Command("remove", "Remove one record, and the comments directly above it."),
        "fetch": Command("fetch", "Ask arXiv about the papers that have an arXiv id, and report what has changed."),
        "links": Command("links", "Look for dead links: try each address once, politely."),
        "init": Command("init", "Start a corpus of your own, with your own axes."),
    },
    "Hand on": {
        "export": Command("export", "Write papers in another format."),
        "diff": Command(
            "difference", "Say what a change to the data means: papers, tags, counts, cells, claims and findings."
        ),
    },
    "Traces": {
        "trace": Command("trace.group", "Check, replay, measure and label traces of agent teams."),
    },
}
"""All commands by name, in the groups in which `--help` shows them."""

GLOBAL_OPTIONS = {"--root": " DIR", "--quiet": "", "--no-color": "", "--version": ""}
"""The options that stand before the command, with the form of their value."""


class _Commands(LazyGroup):
    table = COMMANDS


app = typer.Typer(
    cls=_Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Each command has its own --help with examples.",
)


def _print_version(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        ctx.obj.write(f"corpus {__version__}\n")
        raise typer.Exit


@app.callback()
def corpus(
    ctx: typer.Context,
    root: Annotated[
        str, typer.Option(metavar="DIR", help="The corpus's folder (else the nearest above, else the bundled one).")
    ] = "",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Leave out remarks on standard error.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colours (also: NO_COLOR).")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Keep a tagged literature corpus true: count it, query it, find its gaps and its mistakes."""
    del version
    output: Output = ctx.obj
    output.quiet = quiet
    output.color = output.color and not no_color
    ctx.obj = Session(output, root)
