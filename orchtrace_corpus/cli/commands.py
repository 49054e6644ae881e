"""The commands that are about both wings: `check`, `rule`."""

from typing import Annotated

from orchtrace_corpus.base.commands.declarations import Argument, Context, Option
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.findings import codes, quote
from orchtrace_corpus.base.text import rules as render
from orchtrace_corpus.cli.checking import Stale, check_all
from orchtrace_corpus.corpus.cli import offers

_WIDTH = 100


def check(
    ctx: Context,
    stale: Annotated[Stale, Option(help="Whether stale generated files are errors.", show_default=True)] = Stale.ERROR,
) -> int:
    """Run every check of CI, in one process.

    Validates the data, compares it with its canonical form, compares every generated file with what
    "corpus build" would write, and validates the traces in data/traces. Shows one line for each part,
    with the command that fixes it, and exits with the worst code. For pull requests that change only
    data, "--stale notice" reports stale generated files without failing.

    \b
    Examples:
      corpus check
      corpus check --stale notice
    """
    from orchtrace_corpus.corpus.cli.session import CorpusSession

    return check_all(CorpusSession(*ctx.obj), stale)


def rule(
    ctx: Context,
    code: Annotated[
        str,
        Argument(
            metavar="[CODE]", help="A code, or the beginning of several.", show_default=False, offers=offers.codes
        ),
    ] = "",
    every: Annotated[bool, Option("--all", help="Explain every rule.")] = False,
) -> int:
    """Explain a rule: why it exists, what breaks it, and how to fix it.

    The excerpts name fields and terms of the corpus that comes with the tool.

    \b
    Examples:
      corpus rule V102
      corpus rule D
      corpus rule --all
    """
    # The wings register their rules when they are imported, and so does the reader of YAML.
    import orchtrace_corpus.base.yamlfile
    import orchtrace_corpus.corpus
    import orchtrace_corpus.trace  # noqa: F401

    session: Session = ctx.obj
    if every and code:
        raise CommandUseError(f"--all explains {quote(code)}, too; give one of the two")
    if not every and not code:
        hint = "Name a code, such as corpus rule V102, or see them all: corpus rule --all"
        raise CommandUseError("which rule?", hint)
    chosen = [known for known in render.ordered() if every or known in codes(code)]
    session.output.show(render.lines(chosen, min(session.output.width or _WIDTH, _WIDTH)))
    return ExitCode.DONE
