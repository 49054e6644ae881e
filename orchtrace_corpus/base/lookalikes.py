"""Find text that looks like other text: words that mix scripts, hosts beyond ASCII, invisible characters.

A word may combine Latin letters with Chinese, Japanese and Korean ones, as in the level "Highly Restrictive" of
https://www.unicode.org/reports/tr39/. A word of a single script is never reported.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from functools import lru_cache

from orchtrace_corpus.base.named_tuples import NamedTuple

_LATIN = "LATIN"
_EAST_ASIAN = "EAST ASIAN"
_EAST_ASIAN_WORDS = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "HALFWIDTH", "IDEOGRAPHIC")
_SCRIPTS_BY_WORD = {
    **dict.fromkeys(_EAST_ASIAN_WORDS, _EAST_ASIAN),
    "FEMININE": _LATIN,
    "MASCULINE": _LATIN,
    "MICRO": "GREEK",
    "OHM": "GREEK",
}
"""Scripts by the first word of a character's name. A first word that is not listed is itself the name of a script."""

_FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
"""Invisible letters and marks."""

_JOINERS = "\u200c\u200d\ufe0e\ufe0f"
"""Characters that are needed in words of some scripts and in emoji. After a Latin letter they have no effect."""

_MAX_NAMED = 4
"""The number of characters that a message names."""


class Oddity(StrEnum):
    """The ways in which a part of a text looks like other text."""

    SCRIPTS = "scripts"
    HOST = "host"
    INVISIBLE = "invisible"


class OddPart(NamedTuple):
    """A part of a text that looks like other text: a word, a host or an invisible character.

    `characters` are the characters that make it look so.
    """

    kind: Oddity
    text: str
    characters: tuple[str, ...]


def code_points(characters: Iterable[str]) -> str:
    """Return the code points and names of characters, each once and only the first ones, as ASCII text."""
    distinct = list(dict.fromkeys(characters))
    names = ", ".join(f"U+{ord(c):04X} {unicodedata.name(c, '')}".rstrip() for c in distinct[:_MAX_NAMED])
    if len(distinct) > _MAX_NAMED:
        return f"{names} and {len(distinct) - _MAX_NAMED} more"
    return names


def odd_parts(text: str, beyond_ascii: Collection[str] | None = None) -> Iterator[OddPart]:
    """Yield the parts of a text that look like other text.

    Args:
        text: The text.
        beyond_ascii: The different characters of the text that are not ASCII, if the caller knows them: this is faster.
    """
    if text.isascii():
        return
    host_indices = set[int]()
    index = 0
    for part in text.split("://"):
        if index and not part.isascii():  # the first part is not after a "://"
            host = re.split(r"[\s/?#\"'<>]", part, maxsplit=1)[0]
            if not host.isascii():
                host_indices.update(range(index, index + len(host)))
                yield OddPart(Oddity.HOST, host, tuple(dict.fromkeys(c for c in host if not c.isascii())))
        index += len(part) + len("://")
    characters = set(text) if beyond_ascii is None else beyond_ascii
    suspects = "".join(sorted(filter(_is_suspect, characters)))
    if not suspects:
        return
    end = 0  # of the last word with a suspect
    for match in re.finditer(f"[{re.escape(suspects)}]", text):
        index = match.start()
        character = match[0]
        if character in _FILLERS + _JOINERS:
            if character in _FILLERS or _script(text[index - 1 : index]) == _LATIN:
                yield OddPart(Oddity.INVISIBLE, character, (character,))
        elif index >= end and index not in host_indices:
            start, end = _find_word(text, index)
            word = text[start:end]
            scripts = {_script(letter) for letter in word} - {""}
            if len(scripts) > 1 and not scripts <= {_LATIN, _EAST_ASIAN}:
                letters = dict.fromkeys(letter for letter in word if _script(letter) not in ("", _LATIN))
                yield OddPart(Oddity.SCRIPTS, word, tuple(letters))


def _is_suspect(character: str) -> bool:
    """Return True for an invisible character, and for a letter that may look like one of another script."""
    return character in _FILLERS + _JOINERS or _script(character) not in ("", _LATIN, _EAST_ASIAN)


@lru_cache(4096)
def _script(character: str) -> str:
    """Return the script of a letter; empty for a mark, a modifier letter or any other character, and for no text."""
    if not character or unicodedata.category(character) not in ("Lu", "Ll", "Lt", "Lo"):
        return ""
    first_word, _, _ = unicodedata.name(character, "").partition(" ")
    return _SCRIPTS_BY_WORD.get(first_word, first_word)


def _find_word(text: str, index: int) -> tuple[int, int]:
    """Return the start and the end of the word around an index."""
    start = end = index
    while start and _can_be_in_word(text[start - 1]):
        start -= 1
    while end < len(text) and _can_be_in_word(text[end]):
        end += 1
    return start, end


def _can_be_in_word(character: str) -> bool:
    is_mark = unicodedata.category(character).startswith("M")
    return character.isalnum() or character in _JOINERS or is_mark
