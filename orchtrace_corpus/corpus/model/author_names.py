"""Comparison of author lists: a record's `Family, Given` with the `Given Family` of arXiv.

`Christian Schroeder de Witt` does not show where the family name begins, so no name of arXiv is split: the record
gives the family name, and the rest of the other name is the given name.
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
_COLLECTIVE = frozenset(
    "ai collaboration consortium foundation group initiative lab labs project research team".split()
)


class Likeness(IntEnum):
    """The agreement of two spellings of a name."""

    OTHER = 0
    FORM = 1
    SAME = 2


class Comparison(NamedTuple):
    """The differences between a record's author list and another list.

    Attributes:
        foreign: The record's authors that are missing from the other list, by their number in the record.
        absent: The other list's authors that are missing from the record; none for a list cut short, nor for
            collectives alone, which stand for their members.
        reordered: Whether the authors in both have another order or, in a list cut short, are not the first.
        nobody: Whether the record ends in `others` although the other list has no more names.
        forms: The authors with other given names or accents, by their number in the record, in the other spelling.
    """

    foreign: tuple[tuple[int, str], ...]
    absent: tuple[str, ...]
    reordered: bool
    nobody: bool
    forms: tuple[tuple[int, str], ...]


def parse_authors(text: str) -> tuple[str, ...]:
    """Return authors as people type them: `Family, Given; Family, Given`, or joined by `and` as in BibTeX.

    `CommandUseError` refuses commas that seem to separate names: several in one name, or one between two names of two
    words, as in `Ada Example, Ben Sample`. A semicolon at the end marks a single author.
    """
    names = [name.strip() for name in re.split(r"(?:;|\s+and\s+)(?![^{}]*\})", text) if name.strip()]
    for name in names:
        if is_collective(name):
            continue
        parts = [part.strip() for part in name.split(",")]
        has_suffix = len(parts) == 3 and parts[1].rstrip(".").casefold() in _SUFFIXES
        sides = [part.split() for part in parts]
        is_particle = bool(sides[0]) and sides[0][0].casefold() in _PARTICLES
        is_pair = len(sides) == 2 and all(len(side) > 1 for side in sides) and ";" not in text and not is_particle
        if (len(parts) > 2 and not has_suffix) or is_pair or not all(parts):
            message = f"{quote(name)} is not an author's name: a comma stands between family and given name only"
            fix = 'Write ";" or " and " between authors: "Example, Ada; Sample, Ben"'
            single = f'. If it is one: "{printable(name)};"' if is_pair and len(names) == 1 else "."
            raise CommandUseError(message, fix + single)
    return tuple(name if is_collective(name) else ", ".join(part.strip() for part in name.split(",")) for name in names)


def compare(listed: Sequence[str], actual: Sequence[str]) -> Comparison:
    """Compare a record's authors, in BibTeX form, with those of arXiv; of a list cut short, only its beginning."""
    cut_short = bool(listed) and listed[-1] == OTHERS
    our_names = [bare_author(name) for name in (listed[:-1] if cut_short else listed)]
    their_names = people(actual)
    pairs = _paired(our_names, their_names)
    foreign = tuple((index, listed[index]) for index, other in enumerate(pairs) if other is None)
    matches = [other for other in pairs if other is not None]
    is_open = cut_short or (not foreign and not any("," in name for name in our_names))
    absent = () if is_open else tuple(name for other, name in enumerate(their_names) if other not in matches)
    reordered = matches != sorted(matches) or (cut_short and not foreign and matches != list(range(len(matches))))
    in_both = ((index, their_names[other]) for index, other in enumerate(pairs) if other is not None)
    forms = tuple((index, name) for index, name in in_both if likeness(our_names[index], name) is Likeness.FORM)
    return Comparison(foreign, absent, reordered, cut_short and len(their_names) <= len(our_names), forms)


def likeness(listed: str, actual: str) -> Likeness:
    """Return how far a record's author, in BibTeX form, agrees with a `Given Family` of another list."""
    if _in_order(bare_author(listed)) == _spoken(actual):
        return Likeness.SAME
    family, *given = bare_author(listed).split(",")
    spellings = zip(_variants(family), _variants(" ".join(given)), strict=True)
    is_form = any(_is_form(*spelling, words) for spelling in spellings for words in _variants(actual))
    return Likeness.FORM if is_form else Likeness.OTHER


def people(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names that have a letter; arXiv sets a bare colon between a collective and its members."""
    return tuple(name for name in names if any(c.isalpha() for c in name))


def bibliographic(name: str) -> str:
    """Return a name in BibTeX form, split as BibTeX does; a collective of several words stays whole, in braces.

    The family name is the last word with the particles before it: `Ludwig van Beethoven` becomes
    `van Beethoven, Ludwig`. A person has to check family names of several words.
    """
    words = name.split()
    folded = [word.casefold().strip(".") for word in words]
    if len(words) > 1 and not _COLLECTIVE.isdisjoint(folded):
        return f"{{{' '.join(words)}}}"
    if len(words) < 2:
        return " ".join(words)
    end = len(words) - (len(words) > 2 and folded[-1] in _SUFFIXES)
    start = end - 1
    while start > 1 and words[start - 1] in _PARTICLES:
        start -= 1
    family, given, suffix = " ".join(words[start:end]), " ".join(words[:start]), " ".join(words[end:])
    return ", ".join(part for part in (family, suffix, given) if part)


def rewritten(listed: Sequence[str], actual: Sequence[str]) -> tuple[str, ...]:
    """Return the people of arXiv's list in BibTeX form, in the record's spelling if it has them."""
    our_names = [name for name in listed if name != OTHERS]
    their_names = people(actual)
    spellings = dict(zip(_paired([bare_author(name) for name in our_names], their_names), our_names, strict=True))
    return tuple(spellings.get(index, bibliographic(name)) for index, name in enumerate(their_names))


def share_somebody(listed: Sequence[str], actual: Sequence[str]) -> bool:
    """Return True if a family name or collective of a record is among the other names."""
    words = [set(variant) for name in actual for variant in _variants(name)]
    families = [set(variant) for name in listed for variant in _variants(name.partition(",")[0])]
    return any(family <= other for family in families if family for other in words)


def _paired(our_names: Sequence[str], their_names: Sequence[str]) -> list[int | None]:
    """Return for each of our names the index of theirs that is the same person, each at most once."""
    pairs: list[int | None] = [None] * len(our_names)
    free = dict.fromkeys(range(len(their_names)))
    spelled: dict[str, list[int]] = {}
    for other, name in enumerate(their_names):
        spelled.setdefault(_spoken(name), []).append(other)
    for index, name in enumerate(our_names):
        if same := spelled.get(_in_order(name)):
            pairs[index] = other = same.pop(same.index(index) if index in same else 0)
            del free[other]
    for index, name in enumerate(our_names):
        if pairs[index] is None:
            by_nearness = sorted(free, key=lambda other: other != index)
            alike = next((other for other in by_nearness if likeness(name, their_names[other])), None)
            if alike is not None:
                pairs[index] = alike
                del free[alike]
    return pairs


def _in_order(listed: str) -> str:
    """Return a name in BibTeX form as it is spoken: given names, family name, suffix."""
    family, *other_parts = listed.split(",")
    return " ".join(" ".join((*other_parts[-1:], family, *other_parts[:-1])).split())


def _spoken(name: str) -> str:
    return " ".join(name.replace(",", " ").split())


def _is_form(family: tuple[str, ...], given: tuple[str, ...], words: tuple[str, ...]) -> bool:
    joined = "".join(words)
    if sorted((*family, *given)) == sorted(words) or joined in ("".join((*given, *family)), "".join((*family, *given))):
        return True
    starts = (start for start in reversed(range(len(words) + 1)) if words[start : start + len(family)] == family)
    start = next(starts, None)
    if start is None or not given:  # a collective is no person of that name
        return False
    rest = words[:start] + words[start + len(family) :]
    if not rest or "".join(rest) == "".join(given):
        return True
    # One name, or one is the other's initial or beginning, such as Tom and Thomas.
    pairs = (sorted(pair, key=len) for pair in product(given, rest))
    return any(short == long or (long.startswith(short) and len(short) != 2) for short, long in pairs)


@lru_cache(maxsize=4096)
def _variants(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words of a name without case, accents and punctuation, with `ü` as `u` and as `ue`."""
    lowered = unicodedata.normalize("NFC", name).casefold()
    return _words(lowered), _words(lowered.translate(_UMLAUTS))


def _words(text: str) -> tuple[str, ...]:
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)).translate(_LETTERS)
    return tuple(word for word in re.split(r"[\W_]+", re.sub(r"['\u2019]", "", plain)) if word)
