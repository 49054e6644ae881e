"""Turns results into text: tables and pages for people, JSON and CSV for programs.

Renderers return strings or styled lines; none prints. `console` alone knows rich.
"""

from enum import StrEnum


class Format(StrEnum):
    """The forms of a report of data."""

    TABLE = "table"
    MARKDOWN = "markdown"
    JSON = "json"
    CSV = "csv"
