"""Read the feeds of arXiv's query API, in the form that it had until November 2025 and in the present form.

Reference: the user manual (https://info.arxiv.org/help/api/user-manual.html), which still shows the old form. Answers
are not trusted: size, depth and number of elements are limited, and declarations are refused.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from xml.etree.ElementTree import Element, TreeBuilder

from orchtrace_corpus.base.budget import MAX_BODY_BYTES
from orchtrace_corpus.base.errors import UpstreamError
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.identifiers import IdentifierKind, is_normal, recognise
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.model.metadata import Metadata
from orchtrace_corpus.corpus.sources import http

MAX_ELEMENTS = 500_000
MAX_DEPTH = 16

_ATOM = "{http://www.w3.org/2005/Atom}"
_ARXIV = "{http://arxiv.org/schemas/atom}"
_OPENSEARCH = "{http://a9.com/-/spec/opensearch/1.1/}"

_ERROR_ID = r"https?://(?:[a-z]+\.)?arxiv\.org/api/errors(?:[#/?].*)?"
_ENTRY_ID = r"https?://[^/\s]+/abs/(.+)v([1-9][0-9]{0,3})"
# The old service gave MSC and ACM classes, such as 57M25 and I.2.11, as categories, too.
_CATEGORY = r"[a-z]+(?:-[a-z]+)*(?:\.[A-Za-z]+(?:-[a-z]+)*)?"

# Errors of a truncated document in expat.h: NO_ELEMENTS, UNCLOSED_TOKEN, PARTIAL_CHAR, UNCLOSED_CDATA_SECTION.
_TRUNCATION_CODES = (3, 5, 6, 20)


class Problem(NamedTuple):
    """An entry that cannot be read: its id, empty if unknown, and the reason."""

    arxiv_id: str
    message: str


class Feed(NamedTuple):
    """The content of a feed.

    Attributes:
        entries: The metadata of versions of papers, in any order.
        problems: The entries that cannot be read.
        total: The number of papers that match the query; None if the feed does not state it.
        size: The number of entries in the feed, with those that cannot be read.
    """

    entries: tuple[Metadata, ...]
    problems: tuple[Problem, ...] = ()
    total: int | None = None
    size: int = 0

    @property
    def messages(self) -> tuple[str, ...]:
        """The messages of the problems."""
        return tuple(problem.message for problem in self.problems)


class Received(StrEnum):
    """The kinds of answers that are not a feed, in words for messages."""

    NOTHING = "nothing"
    PAGE = "a web page"
    TEXT = "plain text"
    PART = "a part of one"
    MALFORMED = "malformed XML"
    DECLARATIONS = "XML with declarations of its own"
    OVERLONG = "more than any feed has"
    OTHER_XML = "other XML"


class FeedError(UpstreamError):
    """An answer without entries of papers."""


class UnreadableFeedError(FeedError):
    """The answer is not a feed but `received`; `detail` follows it in the message."""

    def __init__(self, received: Received, detail: str = "") -> None:
        super().__init__(f"instead of a feed came {received}{detail}")
        self.received, self.detail = received, detail


class RefusedQueryError(FeedError):
    """The service refuses the query: its reason, and the invalid id in the query; None for another reason."""

    def __init__(self, reason: str, bad_id: str | None) -> None:
        super().__init__(f"the query was refused: {quote(reason)}")
        self.reason, self.bad_id = reason, bad_id


def parse(body: bytes) -> Feed:
    """Read a feed. Entries without an id are left out: the old service sent them for papers that it did not have.

    Raises:
        UnreadableFeedError: The body is not a feed.
        RefusedQueryError: The query was refused.
    """
    root = _document(body)
    if root.tag != f"{_ATOM}feed":
        raise UnreadableFeedError(Received.OTHER_XML, f": its root is {quote(root.tag)}")
    entries: list[Metadata] = []
    problems: list[Problem] = []
    for element in root.iterfind(f"{_ATOM}entry"):
        entry_id = _text(element, f"{_ATOM}id")
        if re.fullmatch(_ERROR_ID, entry_id):
            summary = _text(element, f"{_ATOM}summary") or entry_id.partition("#")[2].replace("_", " ")
            match = re.fullmatch(r"incorrect id format for (.*)", summary)
            bad_id = match[1] if match else None
            raise RefusedQueryError(summary or "no reason given", bad_id)
        if not entry_id:
            continue
        entry = _entry(element, entry_id)
        if isinstance(entry, Problem):
            problems.append(entry)
        else:
            entries.append(entry)
    total_text = _text(root, f"{_OPENSEARCH}totalResults")
    total = int(total_text) if re.fullmatch(r"[0-9]{1,9}", total_text, re.ASCII) else None
    return Feed(tuple(entries), tuple(problems), total, size=len(entries) + len(problems))


class _BoundedBuilder(TreeBuilder):
    """Builds the tree of a document; raises `UnreadableFeedError` if it is too deep or too large."""

    _depth = _count = 0

    def start(self, tag: str, attrs: dict[str, str], /) -> Element:
        self._depth += 1
        self._count += 1
        if self._depth > MAX_DEPTH or self._count > MAX_ELEMENTS:
            raise UnreadableFeedError(Received.OVERLONG, f": {self._count:,} elements, {self._depth} deep")
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> Element:
        self._depth -= 1
        return super().end(tag)


def _document(body: bytes) -> Element:
    """Return the tree of an XML document without declarations; raise `UnreadableFeedError` for anything else."""
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import DefusedXMLParser, ParseError

    _refuse_other_than_xml(body)
    # arXiv has only ever sent UTF-8, so the encoding that the document names is ignored.
    parser = DefusedXMLParser(target=_BoundedBuilder(), encoding="utf-8", forbid_dtd=True)
    try:
        parser.feed(body)
        root: Element = parser.close()
    except DefusedXmlException as error:
        raise UnreadableFeedError(Received.DECLARATIONS) from error
    except ParseError as error:
        received = Received.PART if error.code in _TRUNCATION_CODES else Received.MALFORMED
        raise UnreadableFeedError(received, f": {error}") from error
    return root


def _refuse_other_than_xml(body: bytes) -> None:
    """Raise `UnreadableFeedError` if a body is too large, or begins unlike XML."""
    if len(body) > MAX_BODY_BYTES:
        raise UnreadableFeedError(Received.OVERLONG, f": {len(body):,} bytes")
    head = body[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()
    if not head:
        raise UnreadableFeedError(Received.NOTHING)
    text = head.decode("utf-8", "replace")
    if re.match(r"(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b", text, re.IGNORECASE | re.DOTALL):
        title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
        detail = f": {quote(_on_one_line(title[1]))}" if title else ""
        raise UnreadableFeedError(Received.PAGE, detail)
    if not head.startswith(b"<"):
        raise UnreadableFeedError(Received.TEXT, f": {quote(_on_one_line(text))}")


def _entry(element: Element, entry_id: str) -> Metadata | Problem:
    """Return the version of a paper that an entry describes, or the problem with it."""
    match = re.fullmatch(_ENTRY_ID, entry_id)
    if match is None or not match[1].isascii() or not is_normal(IdentifierKind.ARXIV, match[1]):
        return Problem("", f"the entry {quote(entry_id)} is not that of a paper")
    arxiv_id, version = match[1], int(match[2])
    categories = tuple(dict.fromkeys(_categories(element, f"{_ATOM}category")))
    primary_first = [*_categories(element, f"{_ARXIV}primary_category"), *categories]
    primary = primary_first[0] if primary_first else ""
    if primary and primary not in categories:
        categories = (primary, *categories)
    # A group's name is followed by an author ":", and then by its members.
    names = [_text(author, f"{_ATOM}name") for author in element.iterfind(f"{_ATOM}author")]
    names = [name for name in names if any(c.isalnum() for c in name)]
    doi_texts = " ".join(child.text or "" for child in element.iterfind(f"{_ARXIV}doi")).split()
    dois = [doi.value for doi in map(recognise, doi_texts) if doi and doi.kind is IdentifierKind.DOI]
    metadata = Metadata(
        arxiv_id,
        version,
        title=_text(element, f"{_ATOM}title"),
        authors=tuple(names),
        abstract=_text(element, f"{_ATOM}summary"),
        published=_time(_text(element, f"{_ATOM}published")),
        updated=_time(_text(element, f"{_ATOM}updated")),
        primary_category=primary,
        categories=categories,
        comment=_text(element, f"{_ARXIV}comment") or None,
        journal_ref=_text(element, f"{_ARXIV}journal_ref") or None,
        doi=dois[0] if dois else None,
    )
    required = ("title", "authors", "published", "updated", "primary_category")
    missing = [field for field in required if not getattr(metadata, field)]
    if missing:
        return Problem(arxiv_id, f"the entry of {arxiv_id} has no usable {' and no '.join(missing)}")
    return metadata


def _categories(element: Element, tag: str) -> Iterator[str]:
    """Yield the categories in the elements with a tag, except those of other classifications."""
    for category in element.iterfind(tag):
        term = _on_one_line(category.get("term", ""))
        if re.fullmatch(_CATEGORY, term):
            yield term


def _time(text: str) -> str:
    """Return a time as `YYYY-MM-DDTHH:MM:SSZ`; empty for a text that is not a time."""
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo:
            time = time.astimezone(UTC)
    except (ValueError, OverflowError):
        return ""
    return f"{time.replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def _text(element: Element, tag: str) -> str:
    """Return the text of the first child with a tag, on one line; empty without such a child."""
    return _on_one_line(element.findtext(tag) or "")


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


class FeedExchange(http.Exchange[Feed]):
    """A run of requests to a service with arXiv's query API."""

    accept = "application/atom+xml"

    def read(self, response: http.Response) -> Feed | http.Retry:
        """Return the feed in a response."""
        try:
            feed = parse(response.body)
        except UnreadableFeedError as error:
            if response.status == 400 or error.received in (Received.DECLARATIONS, Received.OTHER_XML):
                raise
            if error.received is Received.OVERLONG:
                raise http.TooLongError(str(error)) from error
            last_error: UpstreamError = error
            if error.received in (Received.PAGE, Received.TEXT):  # concerns all requests, not only this one
                last_error = http.refusal(self.service.name, response, self.describe(response))
            return http.Retry(last_error, self.service.spacing_seconds, http.MAX_RETRIES_UNREADABLE)
        if response.status == 400:
            raise RefusedQueryError("HTTP 400", None)
        return feed

    def describe(self, response: http.Response) -> str:
        """Return the status, and the reason if the body is not a feed."""
        try:
            parse(response.body)
        except UnreadableFeedError as error:
            return f"HTTP {response.status} ({error.received}{error.detail})"
        except FeedError as error:
            return f"HTTP {response.status} ({error})"
        return f"HTTP {response.status}"
