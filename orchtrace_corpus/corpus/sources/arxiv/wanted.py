"""What is asked for: ids in any spelling, in the one in which arXiv looks them up.

arXiv only looks whether something in a text is like an id, and then looks the whole text up: a prefix
or a blank finds nothing and says nothing. So ids are validated and normalised here.
"""

import re

from orchtrace_corpus.base.identifiers import IdentifierKind, recognise


def asked_form(text: str) -> str | None:
    """The id in a text as arXiv is asked for it, with its version if it names one; None if there is none.

    The subject class of an old id, as in `math.GT/0309136`, is left out: arXiv stores ids without it.
    """
    identifier = recognise(text) if text.isascii() else None
    if identifier is None or identifier.kind is not IdentifierKind.ARXIV:
        return None
    after = text.partition(identifier.value)[2]
    match = re.match(r"v(\d+)", after)
    if match and not re.fullmatch(r"[1-9]\d{0,3}", match[1]):
        return None
    return stored_form(identifier.value) + (match[0] if match else "")


def stored_form(arxiv_id: str) -> str:
    """An id as arXiv stores it: without a subject class."""
    return re.sub(r"^([a-z-]+)\.[A-Z]{2}/", r"\1/", arxiv_id)


def is_versioned(asked: str) -> bool:
    """Whether an id, as arXiv is asked for it, names a version."""
    return re.search(r"v\d+$", asked) is not None
