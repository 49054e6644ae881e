"""Says where a syntax error was made, and what to do about it; parsers say where they noticed."""

from typing import Any

import yaml
from yaml._yaml import CParser


def explained(error: yaml.MarkedYAMLError, text: str) -> tuple[int, str]:
    """Where a syntax error was made, rather than where the parser noticed, and what to do about it."""
    at = _index(error.problem_mark or error.context_mark, 0)
    problem, context, hint = error.problem or "", error.context or "", ""
    conflict = next((text.find(sign) for sign in ("\n<<<<<<< ", "\n=======\n", "\n>>>>>>> ") if sign in text), -1)
    if conflict >= 0:
        return conflict + 1, "a merge conflict is left here; keep one side, or both, and remove the marks"
    opened, quoted = _open_at(text, at)
    if "quoted scalar" in context and "end of stream" in problem:
        at, problem = _index(error.context_mark, at), "a closing quote is missing"
    elif quoted is not None:
        at, problem = quoted, "a closing quote is missing"
    elif "expected ',' or" in problem or (opened is not None and "node content" in problem):
        at, problem = at if opened is None else opened, "a closing bracket or a comma is missing"
    elif "unknown escape character" in problem:
        at = at - 1 if text[at : at + 1] != "\\" and text[at - 1 : at] == "\\" else at
        problem, hint = "a backslash in double quotes", "write the character itself, such as é, or two backslashes"
    elif "could not find expected ':'" in problem:
        at, problem = _index(error.context_mark, at), "a ':' with a blank after it is missing"
    elif "mapping values are not allowed" in problem:
        hint = "a text with ': ' in it needs double quotes around it"
    elif "cannot start any token" in problem:
        hint = "indent with spaces, and quote a text that begins with a special character"
    elif "did not find expected" in problem:
        hint = "look at the indentation of this line and the one above, and at quotes"
    return at, f"{problem}; {hint}" if hint else problem


def _open_at(text: str, at: int) -> tuple[int | None, int | None]:
    """Read again up to an error: a bracket left open on an earlier line, and a quote that closes too late.

    A quoted text that runs over a line end and stops right before the error most likely lacks its own
    closing quote and took the next one.
    """
    parser = CParser(text)
    opened: list[int] = []
    last: Any = None
    try:
        while parser.check_event():
            event: Any = parser.get_event()
            if type(event) in (yaml.SequenceStartEvent, yaml.MappingStartEvent):
                opened.append(int(event.start_mark.index) if event.flow_style else -1)
            elif type(event) in (yaml.SequenceEndEvent, yaml.MappingEndEvent):
                opened.pop()
            elif type(event) is yaml.ScalarEvent:
                last = event
    except yaml.YAMLError:
        pass  # the error that is being explained
    is_stray = (
        last is not None
        and last.style in ("'", '"')
        and last.start_mark.line < last.end_mark.line
        and "\n" not in text[last.end_mark.index : at]
    )
    bracket = opened[-1] if opened and opened[-1] >= 0 and "\n" in text[opened[-1] : at] else None
    return bracket, int(last.start_mark.index) if is_stray else None


def _index(mark: Any, otherwise: int) -> int:
    return int(mark.index) if mark else otherwise
