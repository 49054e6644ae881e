"""The programs `corpus` and `orchtrace`: all commands by name. Neither the commands nor Typer are imported here."""

from orchtrace_corpus.base import __version__
from orchtrace_corpus.base.annotations import Annotated, TypeAlias
from orchtrace_corpus.base.commands.declarations import MORE, Command, CommandGroup, Context, Option
from orchtrace_corpus.base.commands.output import CORPUS
from orchtrace_corpus.base.commands.session import Session

COMMANDS: dict[str, dict[str, Command]] = {
    "Explore": {
        "stats": Command("corpus.cli.counts:stats", "Count the corpus: one page, one field, or two fields crossed."),
        "gaps": Command("corpus.cli.counts:gaps", "Show which cells of two axes are empty or sparse."),
        "list": Command("corpus.cli.records:list_records", "List papers or exclusions that match filters."),
        "show": Command("cli.designs:show", "Show records by key, arXiv id, DOI or URL."),
        "search": Command("corpus.cli.records:search", "Find records by words."),
        "terms": Command("cli.designs:terms", "Show the fields and the terms they are tagged with."),
    },
    "Maintain": {
        "check": Command("cli.commands:check", "Run every check of CI, in one process."),
        "build": Command("corpus.cli.generate:build", "Regenerate every generated file, or one kind of them."),
        "diff": Command(
            "corpus.cli.exchange:diff", "Report what a change to the data means: papers, tags, counts, claims."
        ),
    },
    "Edit": {
        "add": Command("corpus.cli.change:add", "Add papers to the pool."),
        "tag": Command("corpus.cli.change:tag", "Set tags of one record."),
    },
    "Export and traces": {
        "export": Command("corpus.cli.exchange:export", "Write papers in another format."),
        "site": Command("corpus.cli.generate:site", "Write the corpus as a static site."),
        "trace": Command("trace.cli.group", "Check, replay, measure and label traces of agent teams."),
    },
    MORE: {
        "claims": Command("corpus.cli.claims:claims", "Compare the claims about the corpus with its records."),
        "candidates": Command("corpus.cli.records:candidates", "List the papers that were found and await a decision."),
        "readings": Command("corpus.cli.records:readings", "List the tags for which readers agree on another value."),
        "cite": Command("corpus.cli.exchange:cite", "Cite papers: BibTeX, APA or CSL-JSON."),
        "scale": Command("corpus.cli.counts:scale", "Compare the size of deployed systems with that of experiments."),
        "figures": Command("corpus.cli.generate:figures", "Draw the figures, and the page that shows them."),
        "rule": Command("cli.commands:rule", "Explain a rule: why it exists, what breaks it, and how to fix it."),
        "audit": Command("corpus.cli.audit", "Draw a sample for a second reader, and measure agreement."),
        "dispute": Command("corpus.cli.audit:dispute", "Record another reading of a tag that stays as it is."),
        "exclude": Command("corpus.cli.change:exclude", "Record why a paper was excluded."),
        "screen": Command("corpus.cli.screen:screen", "Decide on candidates, one after another."),
        "remove": Command("corpus.cli.change:remove", "Remove records, and the comments directly above each."),
        "import": Command("corpus.cli.exchange:import_", "Update records from a table or another file."),
        "fetch": Command("corpus.cli.upstream:fetch", "Compare the records with arXiv, and report what has changed."),
        "discover": Command("corpus.cli.upstream:discover", "Search for new papers, and save them as candidates."),
        "links": Command("corpus.cli.upstream:links", "Look for dead links: try each address once."),
        "init": Command("corpus.cli.generate:init", "Start a corpus of your own, with your own axes."),
        "merge-file": Command("corpus.cli.exchange:merge_file", "Merge three versions of a data file, for git."),
    },
}
"""All commands by name, in the groups in which `--help` shows them."""

MOVED = {
    "validate": "corpus check data",
    "fmt": "corpus check --fix",
    "readme": "corpus build readme",
    "schema": "corpus build schema",
    "promote": "corpus add ID",
    "demote": "corpus exclude KEY",
}
"""Commands that do not exist but that users look for, each with the command to use."""

EPILOG = "Each command has its own --help with examples, which name records of the corpus that comes with the tool."

_TYPER_OPTIONS = {
    "--install-completion": "Install completion for the current shell.",
    "--show-completion": "Show completion for the current shell, to copy it or customize the installation.",
}

Quiet: TypeAlias = Annotated[bool, Option("--quiet", "-q", help="Suppress notes on standard error.")]
NoColor: TypeAlias = Annotated[bool, Option("--no-color", help="No colours (also: NO_COLOR).")]
Version: TypeAlias = Annotated[bool, Option("--version", help="Print the version.")]


def corpus(
    ctx: Context,
    root: Annotated[
        str,
        Option(
            "--root",
            metavar="DIR",
            help="The corpus folder (default: the nearest one above, else the bundled corpus).",
        ),
    ] = "",
    quiet: Quiet = False,
    no_color: NoColor = False,
    version: Version = False,
) -> Session | None:
    """Maintain a tagged literature corpus: count it, query it, and find its gaps and errors."""
    output = ctx.obj.output
    if version:
        output.write(f"{output.program} {__version__}\n")
        return None
    output.quiet = quiet
    output.color = output.color and not no_color
    return Session(output, root)


def orchtrace(
    ctx: Context, quiet: Quiet = False, no_color: NoColor = False, version: Version = False
) -> Session | None:
    """Show where the time and money of runs of agent teams went: read their logs, check, measure, compare.

    \b
    Examples:
      orchtrace doctor
      orchtrace doctor path/to/logs
      orchtrace show path/to/logs
    """
    return corpus(ctx, "", quiet, no_color, version)


def program(name: str) -> CommandGroup:
    """Return the program `corpus` or `orchtrace`. The commands of `orchtrace` are those of `corpus trace`."""
    if name == CORPUS:
        return CommandGroup(COMMANDS, corpus, EPILOG, added=_TYPER_OPTIONS, moved=MOVED)
    from orchtrace_corpus.trace.cli import group as trace_group

    epilog = "Each command has its own --help with examples."
    return CommandGroup(trace_group.COMMANDS, orchtrace, epilog, added=_TYPER_OPTIONS)
