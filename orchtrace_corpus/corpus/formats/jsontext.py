"""Records from JSON: the line on which each begins, and what keeps a value from being one of a record."""

import json
import re
from collections.abc import Iterator

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.corpus.formats import Problem
from orchtrace_corpus.corpus.model.record_fields import Value


def item_lines(text: str, path: tuple[str, ...]) -> Iterator[int]:
    """The lines on which the items of a list begin, from the first on.

    Args:
        text: Valid JSON.
        path: The names that lead to the list.
    """
    from itertools import count

    from orchtrace_corpus.base.json_places import Places

    whole = re.sub(r"\\u[dD][89a-fA-F]..", r"\\ufffd", text)  # a half of a pair, which has another place to be reported
    places = Places(whole.encode(), "")
    return (places.line((*path, number)) for number in count())


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
    parts = [value]
    while parts:
        part = parts.pop()
        if isinstance(part, str):
            if re.search("[\ud800-\udfff]", part):
                return "holds half of a surrogate pair, which is no character"
        elif isinstance(part, (dict, list)):
            parts += reversed((*part, *part.values()) if isinstance(part, dict) else part)
        elif not isinstance(part, int) or isinstance(part, bool):
            return f"is {json.dumps(part)}; write a text in quotes, or leave the field out"
    return ""
