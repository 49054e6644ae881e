"""What an issue form gives to `corpus add`."""

import sys
from typing import Any, NamedTuple

from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.corpus.cli.drafts import Words
from orchtrace_corpus.corpus.cli.facets import Given
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.formats.issue_form import LARGEST_BODY_BYTES, read
from orchtrace_corpus.corpus.intake.proposal import plain
from orchtrace_corpus.corpus.model.taxonomy import Taxonomy

_STANDARD_INPUT = "-"


class Issue(NamedTuple):
    """What an issue says: what it calls the paper, what it says of it, and its tags."""

    name: str
    words: Words
    tagged: Given


def read_issue(session: CorpusSession, path: str, taxonomy: Taxonomy) -> Issue:
    """Read the body of an issue, and say what could not be taken of it.

    Raises:
        CommandUseError: The issue names no paper.
        DataFileError: The file cannot be read, or is no body of an issue.
    """
    form = read(_body(path), taxonomy)
    for remark in form.remarks:
        session.output.tell(f"corpus: {remark}")
    texts: dict[str, Any] = {name: plain(text) for name, text in form.texts.items()}
    name = texts.pop("identifier", "")
    if not name:
        raise CommandUseError(
            f"{printable(path, limit=300)} names no paper", "Its form has a heading '### arXiv id, DOI or address'."
        )
    year = texts.pop("year", "")
    if year and not (len(year) == 4 and year.isascii() and year.isdigit()):
        session.output.tell("corpus: the answer to 'Year' is left out: it has not four digits")
        year = ""
    words = Words()._replace(**texts, year=int(year or 0))
    if words.note:
        return Issue(name, words, Given(form.tags, form.evidence))
    return Issue(name, words._replace(source=""), Given(form.tags, {}))


def _body(path: str) -> str:
    try:
        if path == _STANDARD_INPUT:
            data = sys.stdin.buffer.read(LARGEST_BODY_BYTES + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(LARGEST_BODY_BYTES + 1)
    except OSError as error:
        raise DataFileError(f"cannot read {printable(path, limit=300)}: {error.strerror}") from error
    if len(data) > LARGEST_BODY_BYTES:
        raise DataFileError(f"{printable(path, limit=300)} is larger than any issue: {LARGEST_BODY_BYTES // 1024} KiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataFileError(f"cannot read {printable(path, limit=300)}: not UTF-8") from error
