"""Renews the shapes of keys that importers cut out of names, from the rules of Betterleaks.

    python scripts/secret_shapes.py VERSION [FILE]

VERSION is a tag of https://github.com/betterleaks/betterleaks, the successor of gitleaks by the same author, under the
MIT licence; FILE its config/betterleaks.toml, which is fetched if none is named. Rules stay that know a key by a mark:
letters that it begins with, or the name of its service before it. Left out are those of what is no secret, such as the
id of a client, those that read a whole file, and those whose mark every hash could hold.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from itertools import zip_longest
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
"""How rules ask for the end of a key. Names go on behind a key, as `.jsonl` does."""

CLASS = r"(\[\^?\]?(?:\\.|[^\]\\])*\])"
NOT_SECRET = re.compile(
    r"-(?:id|url|host|name|public-key)(?:\.\d)?$|^generic|^jwt|^private-key$|^artifactory-jfrog-url"
)
"""Rules of what may be known, and those that `privacy.py` has in a form for names."""

READS_MORE = re.compile(r"\.\*|\[\\s\\S|\(\?s|\[\^[^\]]+\][+*]|\(\?:\.\|")
"""Parts of rules that look through a file."""

NAMED = "(?:=|>|:{1,3}=|"
"""How rules go on behind the name of a service."""


def main(arguments: list[str]) -> int:
    """Write the shapes of a release."""
    version, *files = arguments
    if files:
        text = Path(files[0]).read_text(encoding="utf-8")
    else:
        import requests

        address = f"{REPOSITORY.replace('github.com', 'raw.githubusercontent.com')}/{version}/config/betterleaks.toml"
        answer = requests.get(address, timeout=60)
        answer.raise_for_status()
        text = answer.text
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
    """Yield the rules that know a key by its mark, each as a pattern of Python, with the marks in lower case."""
    for rule in rules:
        pattern, marks = rule.get("regex"), rule.get("keywords", [])
        if not pattern or rule.get("skipReport") or NOT_SECRET.search(rule["id"]) or READS_MORE.search(pattern):
            continue
        if all(len(mark) >= 3 and not re.fullmatch("[0-9a-f]+|[a-z0-9]{3}", mark) for mark in marks):
            converted = python_pattern(pattern)
            shape = {"id": rule["id"], "marks": marks, "pattern": converted}
            shape |= {"is_loose": True} if re.search(r"\[[^\]]*(?:\\w|_|\\-|-\])", converted) else {}
            yield shape | ({"is_named": True} if NAMED in converted else {})


def python_pattern(pattern: str) -> str:
    """Return a pattern of Go's RE2 as one of Python, without groups, for a key in the middle of a name."""
    while end := next((end for end in ENDS if pattern.endswith(end)), ""):
        pattern = pattern.removesuffix(end)
    for old, new in (("[[:alnum:]]", "[A-Za-z0-9]"), (r"\z", r"\Z")):
        pattern = pattern.replace(old, new)
    pattern = re.sub(r"^((?:\(\?i:)?)\\b", r"\1(?<![A-Za-z])", with_scoped_flags(pattern))
    parts = re.split(CLASS, pattern)
    groups = (re.sub(r"\(\?P<\w+>|(?<!\\)\((?!\?)", "(?:", part) for part in parts[::2])
    return "".join(part for pair in zip_longest(groups, parts[1::2], fillvalue="") for part in pair)


def with_scoped_flags(pattern: str) -> str:
    """Return a pattern in which each `(?i)` is a group up to the end of the one around it; RE2 has them anywhere."""
    at = pattern.rfind("(?i)")
    while at >= 0:
        depth, end = 0, at + 4
        while end < len(pattern) and depth >= 0:
            if pattern[end] == "\\":
                end += 1
            elif pattern[end] == "[":
                end = re.compile(CLASS).match(pattern, end).end() - 1  # type: ignore[union-attr]
            depth += {"(": 1, ")": -1}.get(pattern[end], 0)
            end += 1
        end -= depth < 0
        pattern = f"{pattern[:at]}(?i:{pattern[at + 4 : end]}){pattern[end:]}"
        at = pattern.rfind("(?i)")
    return pattern


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
