"""The ids that arXiv is asked for, and its answers on disk: one file for each id, for later runs and offline ones.

arXiv only looks whether something in a text is like an id, and then looks the whole text up: a prefix or a blank finds
nothing and says nothing. So ids are validated and normalised here.

Files lie in a folder of the service that answered, so that a mirror's answers never pass for arXiv's. Each is written
as a whole. One that cannot be read, or is not ours, is none: the id is asked for again, and the file replaced.
"""

import os
import re

from orchtrace_corpus.base.identifiers import IdentifierKind, recognise
from orchtrace_corpus.corpus.model.metadata import Metadata
from orchtrace_corpus.corpus.sources.limiter import AnswerFolder


def asked_form(text: str) -> str | None:
    """Return the id in a text as arXiv is asked for it, with its version if it names one; None if there is none.

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
    """Return an id as arXiv stores it: without a subject class."""
    return re.sub(r"^([a-z-]+)\.[A-Z]{2}/", r"\1/", arxiv_id)


def is_versioned(asked: str) -> bool:
    """Return True if an id, as arXiv is asked for it, names a version."""
    return re.search(r"v\d+$", asked) is not None


class Cache(AnswerFolder):
    """The answers of one service about papers."""

    def read(self, asked: str, max_age_seconds: float | None = None) -> Metadata | None:
        """Return the answer kept for an id, with its version if it was asked for with one; None if there is none.

        Args:
            asked: The id as the service is asked for it.
            max_age_seconds: The oldest answer to give; None for any age.
        """
        metadata = self.read_answer(asked, Metadata, max_age_seconds)
        if metadata is None:
            return None
        name = stored_form(metadata.arxiv_id)
        return metadata if asked in (name, f"{name}v{metadata.version}") else None

    def is_missing(self, asked: str) -> bool:
        """Return True if the last answer was that there is no such paper. Online, it is asked for again."""
        return self.read_answer(asked, bool) is False

    def write(self, asked: str, metadata: Metadata | None) -> None:
        """Keep an answer; None where there is no such paper, which ends what was kept of one.

        Raises:
            CacheError: The disk does not allow it.
        """
        self.write_answer(asked, metadata or False)

    def path_of(self, asked: str) -> str:
        """Return the file of an id: ids have no underscore, and of what may not stand in a name only the slash."""
        return os.path.join(self.folder, f"{asked.replace('/', '_')}.json")
