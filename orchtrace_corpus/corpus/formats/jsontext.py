"""JSON read strictly, with the line on which each record begins.

Python's reader takes a name given twice, `NaN` and half of a surrogate pair; here they are problems.
"""

import json
import re
from typing import Any

from orchtrace_corpus.base.findings import printable, quote
from orchtrace_corpus.corpus.formats import Problem
from orchtrace_corpus.corpus.model.record_fields import Value


class JsonError(ValueError):
    """A text is not JSON as we read it. `line` counts from 1."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


def parsed(text: str) -> Any:
    """The value that a text consists of.

    Raises:
        JsonError: It is not JSON, or something that Python alone takes for JSON.
    """
    try:
        return json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise JsonError(f"not valid JSON: {error.msg}", error.lineno) from error
    except RecursionError as error:
        raise JsonError("not valid JSON: nested too deeply") from error
    except JsonError:
        raise
    except ValueError as error:  # a number of more digits than Python reads
        raise JsonError(f"not valid JSON: {error}") from error


def item_lines(text: str, start: str) -> list[int]:
    """The lines on which the items of a list begin.

    Args:
        text: Valid JSON.
        start: A pattern that ends behind the list's opening bracket.
    """
    found = re.search(start, text)
    at, lines = found.end() if found else len(text), []
    decoder = json.JSONDecoder()
    while (item := re.compile(r"[\s,]*(?=[^\s,\]])").match(text, at)) is not None:
        lines.append(text.count("\n", 0, item.end()) + 1)
        at = decoder.raw_decode(text, item.end())[1]
    return lines


def record(value: object, line: int, problems: list[Problem]) -> dict[str, Value]:
    """The fields of a record, empty lists left out; what is wrong with them goes to `problems`."""
    if not isinstance(value, dict):
        problems.append(Problem(line, "a record must be an object of fields"))
        return {}
    for name, part in value.items():
        problem = problem_with(name) or problem_with(part)
        if problem:
            problems.append(Problem(line, f"{printable(name)} {problem}"))
    return {name: part for name, part in value.items() if part != []}


def problem_with(value: object) -> str:
    """What keeps a value from being one of a record; empty where nothing does."""
    if isinstance(value, str):
        return "holds half of a surrogate pair, which is no character" if re.search("[\ud800-\udfff]", value) else ""
    if isinstance(value, (dict, list)):
        parts = (*value, *value.values()) if isinstance(value, dict) else value
        return next((problem for part in parts if (problem := problem_with(part))), "")
    if isinstance(value, int) and not isinstance(value, bool):
        return ""
    return f"is {json.dumps(value)}; write a text in quotes, or leave the field out"


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise JsonError(f"{quote(twice)} is given twice in one object")
    return found


def _refuse(constant: str) -> None:
    raise JsonError(f"{constant} is no number of JSON")
