"""What hooks and continuous integration run over and over, and what newcomers type first, without Typer.

Importing Typer takes longer than what these commands do. An invocation with any other option, or with a wrong
argument, is none of these: Typer reads it.
"""

from collections.abc import Callable, Sequence

from orchtrace_corpus.base.commands.output import Output
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import ExitCode


def find(arguments: Sequence[str]) -> Callable[[Output], int] | None:
    """What runs an invocation; None if Typer is needed for it."""
    match list(arguments):
        case ["check"]:
            return _check
        case ["validate"]:
            return _validate
        case ["stats"]:
            return _stats
        case ["trace", "validate", *paths] if paths and not any(path.startswith("-") for path in paths):
            return lambda output: _validate_traces(output, paths)
    return None


def _check(output: Output) -> int:
    from orchtrace_corpus.cli.checking import check_all
    from orchtrace_corpus.corpus.cli.session import CorpusSession

    return check_all(CorpusSession(output, ""))


def _validate(output: Output) -> int:
    from orchtrace_corpus.corpus.cli.session import CorpusSession
    from orchtrace_corpus.corpus.cli.validation import report

    return report(CorpusSession(output, ""))


def _stats(output: Output) -> int:
    from orchtrace_corpus.corpus.analysis.statistics import summarise
    from orchtrace_corpus.corpus.cli.session import CorpusSession
    from orchtrace_corpus.corpus.render import statistics_page

    summary = summarise(CorpusSession(output, "").pool())
    output.show(statistics_page.page(summary, output.width or statistics_page.PIPE_WIDTH, output.glyphs))
    return ExitCode.DONE


def _validate_traces(output: Output, paths: Sequence[str]) -> int:
    from orchtrace_corpus.trace.cli.loading import report

    return report(Session(output, ""), paths)
