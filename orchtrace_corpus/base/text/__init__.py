"""Turns results into text: tables and pages for people, JSON and CSV for programs.

Renderers return strings or styled lines; none prints. `console` alone knows rich.
"""

from enum import StrEnum


class Format(StrEnum):
    """The forms of a report of data. `table.RENDERERS` has a renderer for each, except `TABLE`, which needs a width."""

    TABLE = "table"
    MARKDOWN = "markdown"
    JSON = "json"
    CSV = "csv"
    LATEX = "latex"

    @property
    def is_exact(self) -> bool:
        """Return True if programs read the format, so that figures keep every digit."""
        return self in (Format.JSON, Format.CSV)
