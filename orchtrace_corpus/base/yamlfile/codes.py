"""The rules of the reader: what is no YAML that we read."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from orchtrace_corpus.base.findings import Section, register

if TYPE_CHECKING:
    from orchtrace_corpus.base.rulebook import Entry


def _entries() -> "Mapping[str, Entry]":
    from orchtrace_corpus.base.yamlfile.rulebook import ENTRIES

    return ENTRIES


register(
    errors={
        # Y: the file is not the YAML that we read
        "Y101": "not UTF-8",
        "Y102": "byte order mark",
        "Y103": "forbidden character",
        "Y104": "syntax error",
        "Y105": "key given twice",
        "Y106": "anchor",
        "Y107": "alias",
        "Y108": "tag",
        "Y109": "merge key",
        "Y110": "more than one document, or a directive",
        "Y111": "nested too deeply",
        "Y112": "file too large",
        "Y113": "key that is not plain text",
        "Y114": "nothing in the file",
    },
    warnings={},
    sections={
        "Y": Section(0, "Syntax", _entries),
    },
)
