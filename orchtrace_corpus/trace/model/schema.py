"""The JSON Schema of traces, as the package carries it, and its errors in words that say what to write instead."""

import json
from functools import cache
from typing import Any

from orchtrace_corpus.base.files import text_beside
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.trace.model.json_text import Oversized

_KINDS = {"object": "an object", "array": "a list", "string": "text", "number": "a number", "integer": "a whole number"}
_KINDS |= {"boolean": "true or false", "null": "null"}


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of traces."""
    text = text_beside(__file__, "schema.json")
    return dict(json.loads(text))


def describe(error: Any) -> tuple[str, str, str]:
    """The code and message of a problem, and the member of the value that it is about, if it is about one.

    Args:
        error: A `jsonschema.ValidationError`; the `validator_value` of one of `required` is the name that is missing.
    """
    keyword, wanted, found = error.validator, error.validator_value, error.instance
    if isinstance(found, Oversized):
        return "T104", f"{quote(found.word)} is too large for a number", ""
    if keyword == "required":
        return "T111", f"missing field {quote(wanted)}", ""
    if keyword == "type":
        kinds = [wanted] if isinstance(wanted, str) else wanted
        expected = " or ".join(_KINDS[kind] for kind in kinds)
        return "T112", f"expected {expected}, got {_shown(found)}", ""
    if keyword == "additionalProperties":
        known = list(error.schema["properties"])
        unknown = next(name for name in found if name not in known)
        return "T113", f"unknown field {quote(unknown)}{suggestion(unknown, known, always_list=False)}", unknown
    if keyword == "enum":
        text = found if isinstance(found, str) else _shown(found)
        return "T114", f"unknown word {quote(text)}{suggestion(text, wanted)}", ""
    if keyword == "minLength":
        return "T115", "empty", ""
    if keyword == "minItems":
        return "T115", "empty; there is at least one", ""
    bound = {"minimum": "at least", "maximum": "at most"}[keyword]
    return "T115", f"{_shown(found)} is out of range; {bound} {wanted}", ""


def _shown(value: Any) -> str:
    """A wrong value in a few words."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return str(value)
