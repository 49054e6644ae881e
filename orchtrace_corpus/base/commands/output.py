"""Standard output is data, standard error is talk: how both are written."""

import errno
import os
import sys
from collections.abc import Callable, Sequence

from orchtrace_corpus.base.errors import OutputError
from orchtrace_corpus.base.text.layout import ASCII, UNICODE, Glyphs, Line, plain

CORPUS = "corpus"
"""The name of the program; `orchtrace` is its group `trace`, and uses its own name."""


class Output:
    """The output of a command: its streams, width and colours.

    Attributes:
        quiet: Leave out what is neither a result nor an error.
        color: Whether colours are wanted, if there is a terminal to show them.
        is_closed: Whether nobody reads standard output any longer.
        is_partial: Whether something that was asked for is not in the output, which ends with findings then.
        program: The name under which the program was started.
        session: The session that has read a corpus. The two hold each other, so that the corpus stays until the process
            ends: taking it apart takes a fiftieth of a check.
    """

    session: object = None

    def __init__(self, program: str = CORPUS) -> None:
        self.program = program
        self.quiet = False
        self.color = "NO_COLOR" not in os.environ
        self.is_closed = False
        self.is_partial = False
        self._noted: set[str] = set()

    @property
    def width(self) -> int | None:
        """The terminal's width in cells; None where output goes to a file or a pipe."""
        if not sys.stdout.isatty():
            return None
        import shutil  # brings every packer of the standard library, for which files and pipes have no use

        return shutil.get_terminal_size().columns

    @property
    def talk_width(self) -> int | None:
        """The cells of the terminal that standard error goes to; None where it goes elsewhere."""
        if sys.stderr is None or not sys.stderr.isatty():
            return None
        asked = os.environ.get("COLUMNS", "")
        columns = int(asked) if asked.isdecimal() else os.get_terminal_size(sys.stderr.fileno()).columns
        return columns or None  # some terminals do not know theirs

    @property
    def glyphs(self) -> Glyphs:
        """The characters to draw with."""
        return UNICODE if _is_unicode(sys.stdout.encoding) else ASCII

    def show(self, lines: Sequence[Line]) -> None:
        """Write styled lines, with colours only on a terminal."""
        if self.color and sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
            from orchtrace_corpus.base.text import console

            console.write(lines)
        else:
            self.write(plain(lines))

    def write(self, text: str) -> None:
        """Write text as it is; what the output's encoding lacks is escaped.

        Raises:
            OutputError: The text cannot be written, for instance because the disk is full.
        """
        if not _is_unicode(sys.stdout.encoding):
            text = text.encode(sys.stdout.encoding, "backslashreplace").decode(sys.stdout.encoding)
        self._try(sys.stdout.write, text)

    def write_bytes(self, data: bytes) -> None:
        """Write bytes as they are; errors as for `write`."""
        self._try(sys.stdout.buffer.write, data)

    def flush(self) -> None:
        """See that everything written has arrived; errors as for `write`."""
        self._try(sys.stdout.flush)

    def tell(self, text: str) -> None:
        """Say something on standard error."""
        self.prompt(f"{self.renamed(text)}\n")

    def renamed(self, text: str) -> str:
        """A text that speaks of commands, under the name by which the program was started."""
        if self.program == CORPUS:
            return text
        return text.replace("corpus trace ", f"{self.program} ").replace("corpus: ", f"{self.program}: ", 1)

    def prompt(self, text: str) -> None:
        """Say something on standard error that an answer follows on the same line."""
        if sys.stderr is not None:
            encoding = sys.stderr.encoding or "ascii"
            sys.stderr.write(text.encode(encoding, "backslashreplace").decode(encoding))
            sys.stderr.flush()

    def note(self, text: str) -> None:
        """Say something that `--quiet` leaves out."""
        if not self.quiet:
            self.tell(text)

    def note_once(self, text: str) -> None:
        """Say something that `--quiet` leaves out, unless it was said this way before."""
        if text not in self._noted:
            self._noted.add(text)
            self.note(text)

    def abandon(self) -> None:
        """Send whatever is still buffered nowhere, so that the interpreter's own flush cannot fail."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def _try(self, write: Callable[..., object], *content: str | bytes) -> None:
        try:
            write(*content)
        except OSError as error:
            self.abandon()
            self.is_closed = True
            # A reader that has seen enough, say `head`, is no failure: the command ends as it would have.
            if error.errno != errno.EPIPE:
                raise OutputError(f"cannot write the output: {error.strerror}") from error


def _is_unicode(encoding: str | None) -> bool:
    return (encoding or "").lower().replace("-", "").startswith("utf")
