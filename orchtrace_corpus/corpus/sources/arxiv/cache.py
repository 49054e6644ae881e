"""The ids that arXiv is asked for, and its answers on disk: one file for each id, for later runs and offline ones.

arXiv only looks whether something in a text is like an id, and then looks the whole text up: a prefix or a blank finds
nothing and says nothing. So ids are validated and normalised here.

Files lie in a folder of the service that answered, so that a mirror's answers never pass for arXiv's. Each is written
as a whole. One that cannot be read, or is not ours, is none: the id is asked for again, and the file replaced.
"""

import re
from typing import Any

from orchtrace_corpus.base.identifiers import IdentifierKind, recognise
from orchtrace_corpus.corpus.model.metadata import Metadata
from orchtrace_corpus.corpus.sources.limiter import AnswerFolder

_TEXTS = ("arxiv_id", "title", "abstract", "published", "updated", "primary_category")
_MAYBE_TEXTS = ("comment", "journal_ref", "doi")
_LISTS = ("authors", "categories")


def asked_form(text: str) -> str | None:
    """The id in a text as arXiv is asked for it, with its version if it names one; None if there is none.

    The subject class of an old id, as in `math.GT/0309136`, is left out: arXiv stores ids without it.
    """
    identifier = recognise(text) if text.isascii() else None
    if identifier is None or identifier.kind is not IdentifierKind.ARXIV:
        return None
    match = re.match(r"v(\d+)", text.partition(identifier.value)[2])
    if match and not re.fullmatch(r"[1-9]\d{0,3}", match[1]):
        return None
    return stored_form(identifier.value) + (match[0] if match else "")


def stored_form(arxiv_id: str) -> str:
    """An id as arXiv stores it: without a subject class."""
    return re.sub(r"^([a-z-]+)\.[A-Z]{2}/", r"\1/", arxiv_id)


def is_versioned(asked: str) -> bool:
    """Whether an id, as arXiv is asked for it, names a version."""
    return re.search(r"v\d+$", asked) is not None


class Cache(AnswerFolder):
    """The answers of one service about papers."""

    def read(self, asked: str, max_age_seconds: float | None = None) -> Metadata | None:
        """The answer kept for an id, with its version if it was asked for with one; None if there is none.

        Args:
            asked: The id as the service is asked for it.
            max_age_seconds: The oldest answer to give; None for any age. One from the future is of no
                known age.
        """
        try:
            return metadata_of(self.read_content(self._name(asked), asked, max_age_seconds)["metadata"], asked)
        except (ValueError, KeyError, TypeError):
            return None

    def is_missing(self, asked: str) -> bool:
        """Whether the last answer about an id was that there is no such paper. Online, it is asked for again."""
        return self.read_content(self._name(asked), asked).get("metadata", "") is None

    def write(self, asked: str, metadata: Metadata | None) -> None:
        """Keep an answer; None where there is no such paper, which ends what was kept of one.

        Raises:
            CacheError: The disk does not allow it.
        """
        self.write_content(self._name(asked), asked, {"metadata": None if metadata is None else metadata._asdict()})

    def _name(self, asked: str) -> str:
        # Ids have no underscore, and of what may not stand in a name only the slash.
        return asked.replace("/", "_")


def metadata_of(values: Any, asked: str) -> Metadata:
    """The metadata in a file; a `ValueError`, `KeyError` or `TypeError` where it is none, or of another paper."""
    typed = (
        type(values["version"]) is int
        and all(type(values[name]) is str for name in _TEXTS)
        and all(values[name] is None or type(values[name]) is str for name in _MAYBE_TEXTS)
        and all(type(values[name]) is list and all(type(item) is str for item in values[name]) for name in _LISTS)
    )
    if not typed:
        raise ValueError("not metadata of this form")
    metadata = Metadata(**{**values, **{name: tuple(values[name]) for name in _LISTS}})
    name = stored_form(metadata.arxiv_id)
    if asked not in (name, f"{name}v{metadata.version}"):
        raise ValueError("the entry of another paper")
    return metadata
