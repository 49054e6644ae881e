"""YAML as text with places: read strictly, written in canonical form, edited in place. Only this package uses PyYAML.

The rules whose codes begin with Y say what YAML is not accepted. `rules.toml` explains each.
"""

from orchtrace_corpus.base.findings import register

register(
    __file__,
    errors={
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
        "Y115": "text too long to read",
        "Y116": "text cut off by a comment",
        "Y117": "list item read as text",
        "Y118": "more problems than are shown",
    },
    warnings={},
    sections={"Y": "Syntax"},
    rank=0,
)
