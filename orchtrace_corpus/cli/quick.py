"""What hooks and continuous integration run over and over, without Typer.

Importing Typer takes longer than what these commands do. An invocation with any option, or with a wrong argument, is
none of these: Typer reads it.
"""

from collections.abc import Callable, Sequence

from orchtrace_corpus.base.commands.output import Output
from orchtrace_corpus.base.commands.session import Session


def find(arguments: Sequence[str]) -> Callable[[Output], int] | None:
    """What runs an invocation; None if Typer is needed for it."""
    match list(arguments):
        case ["check"]:
            return _check
        case ["validate"]:
            return _validate
        case ["trace", "validate", *paths] if paths and not any(path.startswith("-") for path in paths):
            return lambda output: _validate_traces(output, paths)
    return None


def _check(output: Output) -> int:
    from orchtrace_corpus.cli.checking import check
    from orchtrace_corpus.corpus.cli.session import CorpusSession

    return check(CorpusSession(output, ""))


def _validate(output: Output) -> int:
    from orchtrace_corpus.corpus.cli.session import CorpusSession
    from orchtrace_corpus.corpus.cli.validating import Options, report

    return report(CorpusSession(output, ""), Options())


def _validate_traces(output: Output, paths: Sequence[str]) -> int:
    from orchtrace_corpus.trace.cli.loading import Options, report

    return report(Session(output, ""), paths, Options())
