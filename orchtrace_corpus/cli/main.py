"""Run a command, and turn its result or error into an exit code; no other module does that."""

import os
import sys

from orchtrace_corpus.base.commands import plain
from orchtrace_corpus.base.commands.output import CORPUS, Output
from orchtrace_corpus.base.errors import CorpusError, ExitCode
from orchtrace_corpus.cli.table import program


def run(arguments: list[str], name: str = CORPUS) -> int:
    """Run a command of `corpus` or `orchtrace`, report errors on standard error, and return the exit code."""
    if sys.stdout is None:  # it was closed before the start
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    output = Output(name)
    try:
        instruction = os.environ.get(f"_{name.upper()}_COMPLETE")  # set by the script of a shell
        if instruction is not None:
            from orchtrace_corpus.cli import completion

            code = completion.answer(instruction, output)
        else:
            code = plain.run(program(name), arguments, output)
        if code is None:  # Typer is needed, to report an error or to install completion
            from orchtrace_corpus.cli import app

            code = app.run(arguments, output)
        output.flush()
        if output.is_partial and code == ExitCode.DONE:
            code = ExitCode.FINDINGS
    except SystemExit:  # Typer raises it if it writes its help to a closed pipe
        output.abandon()
        code = ExitCode.DONE
    except CorpusError as error:
        output.tell(f"corpus: {error}")
        code = error.exit_code
    except KeyboardInterrupt:
        output.tell("corpus: interrupted")
        code = ExitCode.INTERRUPTED
    except Exception as error:  # no other code may catch unexpected errors
        output.tell(_report_bug(error))
        code = ExitCode.BUG
    return int(code)


def _report_bug(error: Exception) -> str:
    """Write the traceback of an unexpected error to a file, and return a message that names the file."""
    import tempfile
    import traceback

    from orchtrace_corpus.base import __version__

    name = type(error).__name__
    with tempfile.NamedTemporaryFile("w", prefix="corpus-bug-", suffix=".txt", delete=False, encoding="utf-8") as file:
        file.write(f"orchtrace-corpus {__version__}, Python {sys.version}, {os.name}\n\n")
        file.write("".join(traceback.format_exception(error)))
    return f"corpus: a bug of ours ({name}); please report it with the traceback in {file.name}"
