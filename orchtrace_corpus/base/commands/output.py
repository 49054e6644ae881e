"""The output of a command: results on standard output, and all other messages on standard error."""

import errno
import os
import sys
from collections.abc import Callable, Sequence

from orchtrace_corpus.base.errors import OutputError
from orchtrace_corpus.base.text.layout import ASCII, UNICODE, Glyphs, Line, plain

CORPUS = "corpus"
"""The name of the program. The other program, `orchtrace`, has the commands of `corpus trace`."""


class Output:
    """The output of a command: its streams, width and colours.

    Attributes:
        program: The name under which the program was started: `corpus` or `orchtrace`.
        quiet: True to write only results and errors.
        color: True to write colours to a terminal.
        is_closed: True if the reader of standard output has closed it.
        is_partial: True if a requested result is missing in the output; the exit code is then that of findings.
        session: The session that has read a corpus; None if no corpus was read. It is only held here to save time: the
            session has this output, and this cycle keeps the corpus in memory until the process ends. To free it would
            take a fiftieth of the time of a check.
    """

    session: object = None

    def __init__(self, program: str = CORPUS) -> None:
        self.program = program
        self.quiet = False
        self.color = "NO_COLOR" not in os.environ
        self.is_closed = False
        self.is_partial = False
        self._notes: set[str] = set()  # those written by `note_once`

    @property
    def width(self) -> int | None:
        """The width of the terminal in cells; None if output goes to a file or a pipe."""
        if not sys.stdout.isatty():
            return None
        import shutil  # imported here, because it imports all compressors of the standard library

        return shutil.get_terminal_size().columns

    @property
    def stderr_width(self) -> int | None:
        """The width of the terminal in cells, for messages; None if standard error goes to a file or a pipe."""
        if sys.stderr is None or not sys.stderr.isatty():
            return None
        columns = os.environ.get("COLUMNS", "")
        width = int(columns) if columns.isdecimal() else os.get_terminal_size(sys.stderr.fileno()).columns
        return width or None  # some terminals report 0

    @property
    def glyphs(self) -> Glyphs:
        """The characters for pictures in text that the encoding of the output has."""
        return UNICODE if _is_unicode(sys.stdout.encoding) else ASCII

    def show(self, lines: Sequence[Line]) -> None:
        """Write styled lines, with colours only on a terminal."""
        if self.color and sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
            from orchtrace_corpus.base.text import console

            console.write(lines)
        else:
            self.write(plain(lines))

    def write(self, text: str) -> None:
        """Write text; escape characters that the encoding of the output does not have.

        Raises:
            OutputError: The text cannot be written, for example because the disk is full.
        """
        encoding = sys.stdout.encoding
        if not _is_unicode(encoding):
            text = text.encode(encoding, "backslashreplace").decode(encoding)
        self._call_stdout(sys.stdout.write, text)

    def write_bytes(self, data: bytes) -> None:
        """Write bytes; raise `OutputError` if that fails."""
        self._call_stdout(sys.stdout.buffer.write, data)

    def flush(self) -> None:
        """Flush standard output; raise `OutputError` if that fails."""
        self._call_stdout(sys.stdout.flush)

    def tell(self, text: str) -> None:
        """Write a line to standard error."""
        self.prompt(f"{self.renamed(text)}\n")

    def renamed(self, text: str) -> str:
        """Return a text with the name under which the program was started: `orchtrace show` for `corpus trace show`."""
        if self.program == CORPUS:
            return text
        text = text.replace("corpus trace ", f"{self.program} ")
        return text.replace("corpus: ", f"{self.program}: ", 1)  # at the beginning of a message

    def prompt(self, text: str) -> None:
        """Write to standard error without ending the line."""
        if sys.stderr is not None:
            encoding = sys.stderr.encoding or "ascii"
            sys.stderr.write(text.encode(encoding, "backslashreplace").decode(encoding))
            sys.stderr.flush()

    def note(self, text: str) -> None:
        """Write a line to standard error, unless `--quiet` is given."""
        if not self.quiet:
            self.tell(text)

    def note_once(self, text: str) -> None:
        """Write a line to standard error as `note` does, but only once."""
        if text not in self._notes:
            self._notes.add(text)
            self.note(text)

    def abandon(self) -> None:
        """Discard the buffered output, so that the interpreter's own flush at exit cannot fail."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def _call_stdout(self, method: Callable[..., object], *content: str | bytes) -> None:
        """Call a method of standard output, and treat its errors."""
        try:
            method(*content)
        except OSError as error:
            self.abandon()
            self.is_closed = True
            # A reader that closes the pipe early, such as `head`, is not an error.
            if error.errno != errno.EPIPE:
                raise OutputError(f"cannot write the output: {error.strerror}") from error


def _is_unicode(encoding: str | None) -> bool:
    return (encoding or "").lower().replace("-", "").startswith("utf")
