"""The command table, and Typer's way to run one of its commands: its errors become messages and exit codes here.

A command's module is imported when the command is called, not before.
"""

import sys
from typing import Annotated, Any, TypeAlias

import typer

from orchtrace_corpus.base import __version__
from orchtrace_corpus.base.commands.lazy import Command, group
from orchtrace_corpus.base.commands.output import CORPUS, Output
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import ExitCode

COMMANDS: dict[str, dict[str, Command]] = {
    "Look": {
        "stats": Command("corpus.cli.counts:stats", "Count the corpus: one page, one field, or two fields crossed."),
        "gaps": Command("corpus.cli.counts:gaps", "Show which cells of two axes are empty or sparse."),
        "list": Command("corpus.cli.records:list_records", "List papers, or exclusions, that pass filters."),
        "show": Command("cli.designs:show", "Show records by key, arXiv id, DOI or URL."),
        "search": Command("corpus.cli.records:search", "Find records by words."),
        "terms": Command("cli.designs:terms", "Show the fields and the terms they are tagged with."),
        "candidates": Command("corpus.cli.records:candidates", "List what was found and awaits a decision."),
        "claims": Command("corpus.cli.audit:claims", "Hold what the corpus claims about itself against its records."),
        "scale": Command(
            "corpus.cli.counts:scale", "Compare how large systems in use are with how large experiments are."
        ),
    },
    "Keep true": {
        "check": Command("cli.commands:check", "Run everything that CI asks, in one process."),
        "validate": Command("corpus.cli.generate:validate", "Report every mistake in the data, at its line."),
        "fmt": Command("corpus.cli.generate:fmt", "Write the data files in canonical form."),
        "build": Command("corpus.cli.generate:build", "Regenerate every generated file."),
        "readme": Command("corpus.cli.generate:readme", "Regenerate the list and the tables in README.md."),
        "figures": Command("corpus.cli.generate:figures", "Draw the figures, and the page that shows them."),
        "schema": Command("corpus.cli.generate:schema", "Write the JSON Schemas of the data files, for editors."),
        "audit": Command("corpus.cli.audit", "Draw a sample for a second reader, and measure how far readers agree."),
        "rule": Command("cli.commands:rule", "Explain a rule: why it exists, what breaks it, and the same mended."),
    },
    "Change": {
        "add": Command("corpus.cli.change:add", "Add papers to the pool."),
        "exclude": Command(
            "corpus.cli.change:exclude", "Put a paper on record that was screened and left out, with the reason."
        ),
        "screen": Command("corpus.cli.screen:screen", "Decide on candidates, one after another."),
        "promote": Command(
            "corpus.cli.change:promote",
            "Take an excluded paper into the pool; the exclusion stays, and says what it became.",
        ),
        "demote": Command(
            "corpus.cli.change:demote",
            "Take a paper out of the pool and put it on record as excluded, with the reason.",
        ),
        "tag": Command("corpus.cli.change:tag", "Set tags of one record."),
        "import": Command(
            "corpus.cli.exchange:import_", "Bring records of another format into the pool, or among the candidates."
        ),
        "remove": Command("corpus.cli.change:remove", "Remove one record, and the comments directly above it."),
        "merge-file": Command("corpus.cli.exchange:merge_file", "Merge three versions of a data file, for git."),
        "fetch": Command(
            "corpus.cli.upstream:fetch",
            "Ask arXiv about the papers that have an arXiv id, and report what has changed.",
        ),
        "discover": Command(
            "corpus.cli.discover:discover", "Look for new papers by the protocol, and put them down as candidates."
        ),
        "links": Command("corpus.cli.upstream:links", "Look for dead links: try each address once, politely."),
        "init": Command("corpus.cli.generate:init", "Start a corpus of your own, with your own axes."),
    },
    "Hand on": {
        "export": Command("corpus.cli.exchange:export", "Write papers in another format."),
        "site": Command("corpus.cli.site:site", "Write the corpus as a static site."),
        "diff": Command(
            "corpus.cli.exchange:diff",
            "Say what a change to the data means: papers, tags, counts, cells, claims and findings.",
        ),
    },
    "Traces": {
        "trace": Command("trace.cli.group", "Check, replay, measure and label traces of agent teams."),
    },
}
"""All commands by name, in the groups in which `--help` shows them."""

# Typer raises Click's errors, and has at times carried a Click of its own inside: reach the base
# of them through a class that Typer exports.
_ClickError: Any = typer.BadParameter.__mro__[2]

GLOBAL_OPTIONS = {"--root": " DIR", "--quiet": "", "--no-color": "", "--version": ""}
"""The options that stand before the command, with the form of their value."""


_EPILOG = "Each command has its own --help with examples."

app = group(COMMANDS, pretty_exceptions_enable=False, epilog=_EPILOG)


def _print_version(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        ctx.obj.write(f"{ctx.obj.program} {__version__}\n")
        raise typer.Exit


Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="Leave out remarks on standard error.")]
NoColor: TypeAlias = Annotated[bool, typer.Option("--no-color", help="No colours (also: NO_COLOR).")]
Version: TypeAlias = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
]


@app.callback()
def corpus(
    ctx: typer.Context,
    root: Annotated[
        str, typer.Option(metavar="DIR", help="The corpus's folder (else the nearest above, else the bundled one).")
    ] = "",
    quiet: Quiet = False,
    no_color: NoColor = False,
    version: Version = False,
) -> None:
    """Keep a tagged literature corpus true: count it, query it, find its gaps and its mistakes."""
    del version
    output: Output = ctx.obj
    output.quiet = quiet
    output.color = output.color and not no_color
    ctx.obj = Session(output, root)


def _orchtrace() -> typer.Typer:
    """The group `trace` as a program of its own, with the global options that concern it."""
    from orchtrace_corpus.trace.cli import group as traces

    program = group(
        traces.COMMANDS, pretty_exceptions_enable=False, epilog="Each command has its own --help with examples."
    )

    @program.callback()
    def orchtrace(
        ctx: typer.Context, quiet: Quiet = False, no_color: NoColor = False, version: Version = False
    ) -> None:
        """Say where the time and the money of runs of agent teams went: read their logs, check, measure, compare.

        \b
        Examples:
          orchtrace doctor
          orchtrace doctor path/to/logs
          orchtrace show path/to/logs
        """
        corpus(ctx, "", quiet, no_color, version)

    return program


def run(arguments: list[str], output: Output) -> int:
    """Run a command and return its exit code; errors of use are told on standard error."""
    try:
        chosen = app if output.program == CORPUS else _orchtrace()
        command = typer.main.get_command(chosen)
        code = command.main(args=arguments, prog_name=output.program, standalone_mode=False, obj=output)
    except typer.Abort:
        return ExitCode.INTERRUPTED
    except _ClickError as error:
        option = str(getattr(error, "option_name", ""))
        if option in GLOBAL_OPTIONS:
            form = f"{output.program} {option}{GLOBAL_OPTIONS[option]} COMMAND"
            output.tell(f"corpus: {option} is a global option; write it before the command: {form}")
            return ExitCode.USAGE
        error.show(file=sys.stderr)
        # The words that have no option in front of them.
        bare = [word for before, word in zip(["", *arguments], arguments, strict=False) if not before.startswith("-")]
        if not option and any(word[:1] != "-" and not {*"=<>~"}.isdisjoint(word) for word in bare):
            output.tell("A filter needs --where in front of it.")
        return int(error.exit_code)
    if code == ExitCode.INTERRUPTED:
        output.tell("corpus: interrupted")
    return int(code or ExitCode.DONE)
