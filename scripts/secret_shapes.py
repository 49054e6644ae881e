"""Update the shapes of secret keys that importers remove from names, from the rules of Betterleaks.

    python scripts/secret_shapes.py VERSION [FILE]

VERSION is a tag of https://github.com/betterleaks/betterleaks, the successor of gitleaks by the same author, under the
MIT licence. FILE is its config/betterleaks.toml, which is fetched if it is not given.

A rule is kept if it recognises a key by a mark: letters that the key begins with, or the name of its service before it.
Rules are left out if they find what is no secret, such as the id of a client; if they read a whole file; or if every
hash could contain their mark.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

REPOSITORY = "https://github.com/betterleaks/betterleaks"
LICENSE = (
    "MIT License. Copyright (c) 2026 Zachary Rice. Permission is hereby granted, free of charge, to any person"
    ' obtaining a copy of this software and associated documentation files (the "Software"), to deal in the '
    "Software without restriction, including without limitation the rights to use, copy, modify, merge, "
    "publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the "
    "Software is furnished to do so, subject to the following conditions: The above copyright notice and this "
    "permission notice shall be included in all copies or substantial portions of the Software. THE SOFTWARE "
    'IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE '
    "WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL "
    "THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN "
    "ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE"
    " OR OTHER DEALINGS IN THE SOFTWARE."
)
TARGET = Path(__file__).parents[1] / "orchtrace_corpus" / "trace" / "importers" / "core" / "secret_shapes.json"
ENDS = (
    r"""(?:\\?['"\x60]|[\s;]|\\[nr]|$)""",
    r"""(?:[\x60'"\s;]|\\[nr]|$)""",
    r"""(?:[\x60'"\s;]|\\[nr]|$|\b)""",
    r"(?:[^\w-]|\z)",
    r"(?:[^a-zA-Z0-9+/]|\z)",
    r"(?:[^A-Za-z0-9_-]|$)",
    r"\b",
)
"""The ends of rules, which require that a key ends there. They are removed, since names continue, as with `.jsonl`."""

CLASS = r"(\[\^?\]?(?:\\.|[^\]\\])*\])"
NOT_SECRET = re.compile(
    r"-(?:id|url|host|name|public-key)(?:\.\d)?$|^generic|^jwt|^private-key$|^artifactory-jfrog-url"
)
"""The ids of rules for what is no secret, and of rules that `privacy.py` has in a form for names."""

READS_MORE = re.compile(r"\.\*|\[\\s\\S|\(\?s|\[\^[^\]]+\][+*]|\(\?:\.\|")
"""Parts of rules that search a whole file."""

NAMED = "(?:=|>|:{1,3}=|"
"""The part of a rule that follows the name of a service."""


def main(arguments: list[str]) -> int:
    """Write the shapes of a release."""
    version, *files = arguments
    if files:
        text = Path(files[0]).read_text(encoding="utf-8")
    else:
        import requests

        address = f"{REPOSITORY.replace('github.com', 'raw.githubusercontent.com')}/{version}/config/betterleaks.toml"
        response = requests.get(address, timeout=60)
        response.raise_for_status()
        text = response.text
    shapes = sorted(shapes_of(tomllib.loads(text)["rules"]), key=lambda shape: str(shape["id"]))
    about = {
        "source": f"{REPOSITORY}/blob/{version}/config/betterleaks.toml",
        "version": version,
        "license": LICENSE,
        "renewed_by": "python scripts/secret_shapes.py VERSION",
    }
    lines = ",\n".join(f"    {json.dumps(shape)}" for shape in shapes)
    head = "".join(f"  {json.dumps(name)}: {json.dumps(value)},\n" for name, value in about.items())
    TARGET.write_text(f'{{\n{head}  "shapes": [\n{lines}\n  ]\n}}\n', encoding="utf-8")
    return 0


def shapes_of(rules: Iterable[dict[str, Any]]) -> Iterator[dict[str, object]]:
    """Yield the rules that recognise a key by its mark, each as a pattern of Python, with the marks in lower case."""
    for rule in rules:
        pattern, marks = rule.get("regex"), rule.get("keywords", [])
        if not pattern or rule.get("skipReport"):
            continue
        if NOT_SECRET.search(rule["id"]) or READS_MORE.search(pattern):
            continue
        if any(len(mark) < 3 or re.fullmatch("[0-9a-f]+|[a-z0-9]{3}", mark) for mark in marks):
            continue  # a hash could contain the mark
        converted = python_pattern(pattern)
        shape: dict[str, object] = {"id": rule["id"], "marks": marks, "pattern": converted}
        if re.search(r"\[[^\]]*(?:\\w|_|\\-|-\])", converted):  # a key may contain `_` or `-`, as words in names do
            shape["is_loose"] = True
        if NAMED in converted:
            shape["is_named"] = True
        yield shape


def python_pattern(pattern: str) -> str:
    """Return a pattern of Go's RE2 as a pattern of Python, without groups, for a key in the middle of a name."""
    ends = [end for end in ENDS if pattern.endswith(end)]
    while ends:
        pattern = pattern.removesuffix(ends[0])
        ends = [end for end in ENDS if pattern.endswith(end)]
    for old, new in (("[[:alnum:]]", "[A-Za-z0-9]"), (r"\z", r"\Z")):
        pattern = pattern.replace(old, new)
    pattern = re.sub(r"^((?:\(\?i:)?)\\b", r"\1(?<![A-Za-z])", with_scoped_flags(pattern))
    parts = re.split(CLASS, pattern)
    for place in range(0, len(parts), 2):  # those between are classes of characters, in which `(` is no group
        parts[place] = re.sub(r"\(\?P<\w+>|(?<!\\)\((?!\?)", "(?:", parts[place])
    return "".join(parts)


def with_scoped_flags(pattern: str) -> str:
    """Return a pattern in which each flag `(?i)` is replaced by a group with the flag.

    In RE2, the flag may be anywhere in a group, and holds up to the end of the group; Python does not allow that.
    """
    start = pattern.rfind("(?i)")
    while start >= 0:
        end = _end_of_group(pattern, start + len("(?i)"))
        pattern = f"{pattern[:start]}(?i:{pattern[start + len('(?i)') : end]}){pattern[end:]}"
        start = pattern.rfind("(?i)")
    return pattern


def _end_of_group(pattern: str, start: int) -> int:
    """Return the place of the parenthesis that closes the group around a place, or the end of the pattern."""
    depth = 0
    place = start
    while place < len(pattern):
        if pattern[place] == "\\":
            place += 1  # the character after it is no parenthesis
        elif pattern[place] == "[":
            place = re.compile(CLASS).match(pattern, place).end() - 1  # type: ignore[union-attr]
        elif pattern[place] == "(":
            depth += 1
        elif pattern[place] == ")":
            if depth == 0:
                return place
            depth -= 1
        place += 1
    return place


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
