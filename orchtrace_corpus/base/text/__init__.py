"""Results as text: tables and pages for people, JSON and CSV for programs.

Renderers return strings or styled lines and print nothing. Only `console` imports rich.
"""

from enum import StrEnum


class Format(StrEnum):
    """The formats of a report. `table.RENDERERS` has a renderer for each but `TABLE`, which `table.lines` renders."""

    TABLE = "table"
    MARKDOWN = "markdown"
    JSON = "json"
    CSV = "csv"
    LATEX = "latex"

    @property
    def is_exact(self) -> bool:
        """Return True if programs read the format, so that numbers keep every digit."""
        return self in (Format.JSON, Format.CSV)
