"""Styled lines on a terminal. Only this module imports rich."""

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from orchtrace_corpus.base.text.layout import Line

# The styles of `layout.Span`, in the syntax of rich.
STYLES = {
    "": "",
    "heading": "bold",
    "muted": "dim",
    "bar": "cyan",
    "explicit": "green",
    "implicit": "yellow",
    "designed": "blue",
    "warning": "bold red",
    "key": "bold cyan",
    "heat0": "dim red",
    "heat1": "black on color(195)",
    "heat2": "black on color(159)",
    "heat3": "black on color(80)",
    "heat4": "white on color(24)",
}


def write(lines: Iterable[Line]) -> None:
    """Write styled lines to standard output, in as many colours as the terminal has."""
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    for line in lines:
        text = Text()
        for span in line:
            text.append(span.text, STYLES.get(span.style, ""))
        console.print(text)
