"""Text that looks like other text: words with letters of several scripts, hosts beyond ASCII, invisible characters.

As in "Highly Restrictive" of https://www.unicode.org/reports/tr39/, a word may combine Latin letters with Chinese,
Japanese and Korean ones. A word of a single script is never reported.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from functools import lru_cache

from orchtrace_corpus.base.named_tuples import NamedTuple

_LATIN, _EAST_ASIAN = "LATIN", "EAST ASIAN"
_GROUPS = dict.fromkeys(
    ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "HALFWIDTH", "IDEOGRAPHIC"), _EAST_ASIAN
) | {"FEMININE": _LATIN, "MASCULINE": _LATIN, "MICRO": "GREEK", "OHM": "GREEK"}
"""Scripts by the first word of their characters' names; for other characters, the word is the script."""

_FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
"""Invisible letters and marks."""

_JOINERS = "\u200c\u200d\ufe0e\ufe0f"
"""Parts of words in some scripts, and of emoji; invisible after a Latin letter."""

_MAX_NAMED = 4
"""The number of characters that are named by their code points."""


class Oddity(StrEnum):
    """The ways in which text looks like other text."""

    SCRIPTS = "scripts"
    HOST = "host"
    INVISIBLE = "invisible"


class OddPart(NamedTuple):
    """A word, a host or an invisible character, with the characters that make it look like other text."""

    kind: Oddity
    text: str
    characters: tuple[str, ...]


def code_points(characters: Iterable[str]) -> str:
    """Return the code points and names of the first different characters, as ASCII text."""
    different = list(dict.fromkeys(characters))
    names = ", ".join(f"U+{ord(c):04X} {unicodedata.name(c, '')}".rstrip() for c in different[:_MAX_NAMED])
    others = len(different) - _MAX_NAMED
    return f"{names} and {others} more" if others > 0 else names


def odd_parts(text: str, beyond_ascii: Collection[str] | None = None) -> Iterator[OddPart]:
    """Yield the parts of a text that look like other text; `beyond_ascii` are its non-ASCII characters, if known."""
    if text.isascii():
        return
    hosts = set[int]()
    at = 0
    for part in text.split("://"):
        if at and not part.isascii():
            host = re.split(r"[\s/?#\"'<>]", part, maxsplit=1)[0]
            if not host.isascii():
                hosts.update(range(at, at + len(host)))
                yield OddPart(Oddity.HOST, host, tuple(dict.fromkeys(c for c in host if not c.isascii())))
        at += len(part) + len("://")
    characters = set(text) if beyond_ascii is None else beyond_ascii
    suspects = "".join(sorted(filter(_is_suspect, characters)))
    end = 0
    for match in re.finditer(f"[{re.escape(suspects)}]", text) if suspects else ():
        at, character = match.start(), match[0]
        if character in _FILLERS + _JOINERS:
            if character in _FILLERS or _script(text[at - 1 : at]) == _LATIN:
                yield OddPart(Oddity.INVISIBLE, character, (character,))
        elif at >= end and at not in hosts:
            start, end = _word(text, at)
            word = text[start:end]
            scripts = {_script(letter) for letter in word} - {""}
            if len(scripts) > 1 and not scripts <= {_LATIN, _EAST_ASIAN}:
                letters = dict.fromkeys(letter for letter in word if _script(letter) not in ("", _LATIN))
                yield OddPart(Oddity.SCRIPTS, word, tuple(letters))


def _is_suspect(character: str) -> bool:
    return character in _FILLERS + _JOINERS or _script(character) not in ("", _LATIN, _EAST_ASIAN)


@lru_cache(4096)
def _script(character: str) -> str:
    """Return the script of a letter; empty for marks, for modifier letters, and for characters that are no letters."""
    if not character or unicodedata.category(character) not in ("Lu", "Ll", "Lt", "Lo"):
        return ""
    name = unicodedata.name(character, "").partition(" ")[0]
    return _GROUPS.get(name, name)


def _word(text: str, at: int) -> tuple[int, int]:
    """Return the start and end of the word around an index."""
    start = end = at
    while start and _is_of_word(text[start - 1]):
        start -= 1
    while end < len(text) and _is_of_word(text[end]):
        end += 1
    return start, end


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character in _JOINERS or unicodedata.category(character).startswith("M")
