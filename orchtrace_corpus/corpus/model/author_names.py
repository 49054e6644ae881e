"""Comparison of author lists: a record's `Family, Given` with the `Given Family` of arXiv.

`Christian Schroeder de Witt` does not show where the family name begins, so no name of arXiv is split: the family name
of the record is looked for in it, and the remaining words are the given name.
"""

import re
import unicodedata
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from itertools import product

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import printable, quote
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.model.fields import OTHERS, bare_author, is_collective

_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe"})
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
_PARTICLES = frozenset("al bin da dal de del della der di dos du el la le van von den ten ter zu zur".split())
_SUFFIXES = frozenset(("jr", "sr", "ii", "iii", "iv"))
_COLLECTIVE_WORDS = frozenset(
    "ai collaboration consortium foundation group initiative lab labs project research team".split()
)


class Likeness(IntEnum):
    """The result of comparing two names: other people, one person in two spellings, or the same name."""

    OTHER = 0
    FORM = 1
    SAME = 2


class Comparison(NamedTuple):
    """The differences between a record's author list and another list.

    Attributes:
        unlisted: The record's authors that are missing from the other list, with their index in the record.
        absent: The other list's authors that are missing from the record. Empty if the record's list is shortened, or
            names only collectives, which stand for their members.
        is_reordered: Whether the authors in both lists have another order or, in a shortened list, are not the first.
        has_needless_others: Whether the record ends in `others` although the other list has no more names.
        respelled: Authors that the other list spells differently: their index in the record, and the other spelling.
    """

    unlisted: tuple[tuple[int, str], ...]
    absent: tuple[str, ...]
    is_reordered: bool
    has_needless_others: bool
    respelled: tuple[tuple[int, str], ...]


def parse_authors(text: str) -> tuple[str, ...]:
    """Return authors as people type them: `Family, Given; Family, Given`, or joined by `and` as in BibTeX.

    Raises:
        CommandUseError: A comma seems to separate two authors: a name has several commas, or one between two names of
            two words, as in `Ada Example, Ben Sample`. A semicolon at the end marks a single author.
    """
    names = [name.strip() for name in re.split(r"(?:;|\s+and\s+)(?![^{}]*\})", text) if name.strip()]
    authors = []
    for name in names:
        if is_collective(name):
            authors.append(name)
            continue
        parts = [part.strip() for part in name.split(",")]
        has_suffix = len(parts) == 3 and parts[1].rstrip(".").casefold() in _SUFFIXES
        words = [part.split() for part in parts]
        has_particle = bool(words[0]) and words[0][0].casefold() in _PARTICLES
        is_pair = len(parts) == 2 and min(map(len, words)) > 1 and not has_particle and ";" not in text
        if (len(parts) > 2 and not has_suffix) or is_pair or not all(parts):
            message = f"{quote(name)} is not an author's name: a comma stands between family and given name only"
            hint = 'Write ";" or " and " between authors: "Example, Ada; Sample, Ben".'
            if is_pair and len(names) == 1:
                hint += f' If it is one: "{printable(name)};"'
            raise CommandUseError(message, hint)
        authors.append(", ".join(parts))
    return tuple(authors)


def compare(listed: Sequence[str], actual: Sequence[str]) -> Comparison:
    """Compare a record's authors (`listed`), in BibTeX form, with the authors of arXiv (`actual`)."""
    is_shortened = bool(listed) and listed[-1] == OTHERS
    our_names = [bare_author(name) for name in listed]
    if is_shortened:
        del our_names[-1]
    their_names = without_separators(actual)
    matches = _match_people(our_names, their_names)
    unlisted = tuple((index, listed[index]) for index, match in enumerate(matches) if match is None)
    found = [match for match in matches if match is not None]
    has_only_collectives = not unlisted and not any("," in name for name in our_names)
    absent: tuple[str, ...] = ()
    if not is_shortened and not has_only_collectives:
        absent = tuple(name for match, name in enumerate(their_names) if match not in found)
    is_reordered = found != sorted(found)
    if is_shortened and not unlisted:
        is_reordered = found != list(range(len(found)))
    respelled = []
    for index, match in enumerate(matches):
        if match is not None and likeness(our_names[index], their_names[match]) is Likeness.FORM:
            respelled.append((index, their_names[match]))
    has_needless_others = is_shortened and len(their_names) <= len(our_names)
    return Comparison(unlisted, absent, is_reordered, has_needless_others, tuple(respelled))


def likeness(listed: str, actual: str) -> Likeness:
    """Compare a record's author, in BibTeX form, with a `Given Family` of another list."""
    author = bare_author(listed)
    if _given_name_first(author) == _without_commas(actual):
        return Likeness.SAME
    family, _, given = author.partition(",")
    for family_words, given_words in zip(_folded_words(family), _folded_words(given), strict=True):
        for words in _folded_words(actual):
            if _is_other_form(family_words, given_words, words):
                return Likeness.FORM
    return Likeness.OTHER


def without_separators(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names that have a letter: arXiv lists a bare colon between a collective and its members."""
    return tuple(name for name in names if any(character.isalpha() for character in name))


def bibtex_author(name: str) -> str:
    """Return a name in BibTeX form, split as BibTeX does; a collective of several words stays whole, in braces.

    The family name is the last word with the particles before it: `Ludwig van Beethoven` becomes
    `van Beethoven, Ludwig`. A person has to check family names of several words.
    """
    words = name.split()
    folded = [word.casefold().strip(".") for word in words]
    if len(words) < 2:
        return " ".join(words)
    if not _COLLECTIVE_WORDS.isdisjoint(folded):
        return f"{{{' '.join(words)}}}"
    family_end = len(words)
    if len(words) > 2 and folded[-1] in _SUFFIXES:
        family_end -= 1
    family_start = family_end - 1
    while family_start > 1 and words[family_start - 1] in _PARTICLES:
        family_start -= 1
    parts = (words[family_start:family_end], words[family_end:], words[:family_start])  # family, suffix, given
    return ", ".join(" ".join(part) for part in parts if part)


def merge_authors(listed: Sequence[str], actual: Sequence[str]) -> tuple[str, ...]:
    """Return arXiv's authors in BibTeX form; an author of the record keeps the record's spelling."""
    our_names = [name for name in listed if name != OTHERS]
    their_names = without_separators(actual)
    matches = _match_people([bare_author(name) for name in our_names], their_names)
    our_spellings = dict(zip(matches, our_names, strict=True))
    return tuple(our_spellings.get(index, bibtex_author(name)) for index, name in enumerate(their_names))


def have_common_author(listed: Sequence[str], actual: Sequence[str]) -> bool:
    """Return True if a family name or collective of a record is in one of the other names."""
    other_names = [set(words) for name in actual for words in _folded_words(name)]
    for name in listed:
        family, _, _ = name.partition(",")
        for words in _folded_words(family):
            if words and any(other_name.issuperset(words) for other_name in other_names):
                return True
    return False


def _match_people(our_names: Sequence[str], their_names: Sequence[str]) -> list[int | None]:
    """Return for each of our names the index of the same person in their names; None if they do not have the person.

    Equal names are matched first. An index is used once, and the same position in both lists is preferred.
    """
    matches: list[int | None] = [None] * len(our_names)
    free = dict.fromkeys(range(len(their_names)))
    indexes_by_name: dict[str, list[int]] = {}
    for index, name in enumerate(their_names):
        indexes_by_name.setdefault(_without_commas(name), []).append(index)
    for position, name in enumerate(our_names):
        equal = indexes_by_name.get(_given_name_first(name))
        if equal:
            match = position if position in equal else equal[0]
            equal.remove(match)
            matches[position] = match
            del free[match]
    for position, name in enumerate(our_names):
        if matches[position] is not None:
            continue
        candidates = [position, *free] if position in free else [*free]
        for match in candidates:
            if likeness(name, their_names[match]):
                matches[position] = match
                del free[match]
                break
    return matches


def _given_name_first(author: str) -> str:
    """Return a name in BibTeX form, `Family, Suffix, Given`, as `Given Family Suffix`."""
    family, *other_parts = author.split(",")
    return " ".join(" ".join((*other_parts[-1:], family, *other_parts[:-1])).split())


def _without_commas(name: str) -> str:
    return " ".join(name.replace(",", " ").split())


def _is_other_form(family: tuple[str, ...], given: tuple[str, ...], words: tuple[str, ...]) -> bool:
    """Return True if a family name and a given name, in words, can be the same person as the name in `words`."""
    if sorted((*family, *given)) == sorted(words):
        return True
    if "".join(words) in ("".join((*given, *family)), "".join((*family, *given))):  # as in Li Ming and Liming
        return True
    family_start = len(words)
    while family_start >= 0 and words[family_start : family_start + len(family)] != family:
        family_start -= 1
    if family_start < 0 or not given:  # a collective is not a person with its name as family name
        return False
    other_given = words[:family_start] + words[family_start + len(family) :]
    if not other_given or "".join(other_given) == "".join(given):
        return True
    for pair in product(given, other_given):
        short, long = sorted(pair, key=len)
        if short == long or (long.startswith(short) and len(short) != 2):  # an initial, or Sam and Samuel
            return True
    return False


@lru_cache(maxsize=4096)
def _folded_words(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words of a name twice, without case, accents and punctuation: with `ü` as `u`, and as `ue`."""
    lowered = unicodedata.normalize("NFC", name).casefold()
    return _ascii_words(lowered), _ascii_words(lowered.translate(_UMLAUTS))


def _ascii_words(text: str) -> tuple[str, ...]:
    decomposed = unicodedata.normalize("NFKD", text)  # an accent becomes a character of its own
    letters = "".join(character for character in decomposed if not unicodedata.combining(character))
    without_apostrophes = re.sub(r"['\u2019]", "", letters.translate(_LETTERS))
    return tuple(word for word in re.split(r"[\W_]+", without_apostrophes) if word)
