"""Look-ups at other registries: what they say becomes a proposal, and what they should not say does no harm."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.base.errors import CommandUseError, UpstreamError
from orchtrace_corpus.base.identifiers import Identifier, IdentifierKind
from orchtrace_corpus.corpus.sources import registries
from orchtrace_corpus.corpus.sources.http import Response, Transport
from orchtrace_corpus.corpus.sources.registries import SERVICES, lookup
from tests.loopback import loopback_only  # noqa: F401 - guards every test here

DOI = Identifier(IdentifierKind.DOI, "10.5555/roses.1")
ACL = Identifier(IdentifierKind.ACL, "2025.acl-long.421")
OPENREVIEW = Identifier(IdentifierKind.OPENREVIEW, "aB3_cdEfGh")

CROSSREF = {
    "title": ["The <i>Röses</i> &amp; Beds\n   of a Garden"],
    "author": [
        {"family": "Müller", "given": "Änne", "sequence": "first"},
        {"family": "Beethoven", "given": "Ludwig", "non-dropping-particle": "van"},
        {"family": "King", "given": "Martin", "suffix": "Jr."},
        {"name": "Garden Team"},
    ],
    "issued": {"date-parts": [[2026, 3, 1]]},
    "container-title": ["Journal of Beds"],
    "publisher": "Beds Ltd",
}
DATACITE = {
    "title": "A Garden as Data",
    "author": [{"family": "O'Neill", "given": "Tom"}, {"literal": "Garden Team"}],
    "issued": {"date-parts": [["2024"]]},
    "publisher": "Zenodo",
}
BIBTEX = r"""
@inproceedings{muller-oneill-2025-roses,
    title = "{R}{\"o}ses: A Garden in $n$ Beds with 95\% Less {W}ater",
    author = {M{\"u}ller, {\"A}nne  and
      O'Neill, Tom},
    booktitle = "Proceedings of the 63rd Annual Meeting (Volume 1: Long Papers)",
    month = jul,
    year = "2025",
    url = "https://aclanthology.org/2025.acl-long.421/",
    doi = "10.18653/V1/2025.acl-long.421",
}
"""
NOTE = {
    "id": "aB3_cdEfGh",
    "cdate": 1_735_732_800_000,
    "content": {
        "title": {"value": "Röses: A Garden"},
        "authors": {"value": ["Änne Müller", "Tom O'Neill"]},
        "venue": {"value": "ICLR 2026 Poster"},
        "venueid": {"value": "ICLR.cc/2026/Conference"},
    },
}


class Registry:
    """A server on loopback that answers each path as it was told to."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.asked: list[tuple[str, str]] = []
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *arguments: Any) -> None:
                pass

            def do_GET(self) -> None:
                registry.asked.append((self.path, self.headers.get("Accept", "")))
                status, headers, body = registry.answers.get(self.path, (404, {}, b"not here"))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def say(self, path: str, content: object, status: int = 200, **headers: str) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.answers[path] = (status, {"Content-Type": "application/json", **headers}, body)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    registry = Registry()
    for variable, _ in SERVICES.values():
        monkeypatch.setenv(variable, f"{registry.url}/")
    yield registry
    registry.server.shutdown()
    registry.server.server_close()


def looked_up(identifier: Identifier) -> Any:
    with Transport(answer_seconds=5) as transport:
        return lookup(identifier, transport)


def test_a_doi_of_crossref(registry: Registry) -> None:
    registry.say("/10.5555/roses.1", CROSSREF)

    assert looked_up(DOI) == {
        "title": "The Röses & Beds of a Garden",
        "authors": ["Müller, Änne", "van Beethoven, Ludwig", "King, Jr., Martin", "Garden Team"],
        "year": 2026,
        "venue": "Journal of Beds",
        "doi": "10.5555/roses.1",
        "urls": ["https://doi.org/10.5555/roses.1"],
    }
    assert registry.asked == [("/10.5555/roses.1", "application/vnd.citationstyles.csl+json")]


def test_a_doi_of_datacite(registry: Registry) -> None:
    registry.say("/10.5555/roses.1", DATACITE)

    assert looked_up(DOI) == {
        "title": "A Garden as Data",
        "authors": ["O'Neill, Tom", "Garden Team"],
        "year": 2024,
        "venue": "Zenodo",
        "doi": "10.5555/roses.1",
        "urls": ["https://doi.org/10.5555/roses.1"],
    }


def test_a_doi_with_characters_that_addresses_have_no_room_for(registry: Registry) -> None:
    registry.say("/10.5555/a%3Cb%3E%23c%3Fd%25", DATACITE)

    assert looked_up(Identifier(IdentifierKind.DOI, "10.5555/a<b>#c?d%"))["year"] == 2024


def test_a_paper_of_the_anthology(registry: Registry) -> None:
    registry.say("/2025.acl-long.421.bib", BIBTEX.encode())

    assert looked_up(ACL) == {
        "title": "Röses: A Garden in n Beds with 95% Less Water",
        "authors": ["Müller, Änne", "O'Neill, Tom"],
        "year": 2025,
        "venue": "Proceedings of the 63rd Annual Meeting (Volume 1: Long Papers)",
        "doi": "10.18653/v1/2025.acl-long.421",
        "acl_id": "2025.acl-long.421",
        "urls": ["https://aclanthology.org/2025.acl-long.421"],
    }


def test_a_forum_of_openreview(registry: Registry) -> None:
    registry.say("/notes?id=aB3_cdEfGh", {"notes": [NOTE], "count": 1})

    assert looked_up(OPENREVIEW) == {
        "title": "Röses: A Garden",
        "authors": ["Müller, Änne", "O'Neill, Tom"],
        "year": 2026,
        "venue": "ICLR 2026 Poster",
        "openreview_id": "aB3_cdEfGh",
        "urls": ["https://openreview.net/forum?id=aB3_cdEfGh"],
    }


def test_an_old_forum_is_at_the_second_address(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHTRACE_OPENREVIEW_URL", f"{registry.url}/new {registry.url}/old")
    registry.say("/new/notes?id=aB3_cdEfGh", {"notes": [], "count": 0})
    old = {"content": {"title": "An Old Garden", "authors": ["Tom O'Neill"]}, "cdate": 1_500_000_000_000}
    registry.say("/old/notes?id=aB3_cdEfGh", {"notes": [old]})

    assert looked_up(OPENREVIEW) == {
        "title": "An Old Garden",
        "authors": ["O'Neill, Tom"],
        "year": 2017,
        "openreview_id": "aB3_cdEfGh",
        "urls": ["https://openreview.net/forum?id=aB3_cdEfGh"],
    }


@pytest.mark.parametrize("identifier", [DOI, ACL, OPENREVIEW])
def test_what_a_registry_does_not_know_is_none(identifier: Identifier, registry: Registry) -> None:
    assert looked_up(identifier) is None


@pytest.mark.parametrize("identifier", [DOI, ACL, OPENREVIEW])
@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (200, b"<html>Please log in</html>", "answered with 'application/json' that is not "),
        (200, b"[" * 100_000, "answered with 'application/json' that is not "),
        (200, b'{"notes": [{"content": {}}]}', "answered with 'application/json' that is not "),
        (429, b"slow down", "answered with HTTP 429\nTry again later."),
        (503, b"", "answered with HTTP 503\nTry again later."),
        (403, b"", "answered with HTTP 403"),
    ],
)
def test_what_is_no_metadata_is_an_error_that_says_so(
    identifier: Identifier, status: int, body: bytes, message: str, registry: Registry
) -> None:
    for path in ("/10.5555/roses.1", "/2025.acl-long.421.bib", "/notes?id=aB3_cdEfGh"):
        registry.say(path, body, status)

    with pytest.raises(UpstreamError) as caught:
        looked_up(identifier)

    assert message in str(caught.value)
    assert registry.url.removeprefix("http://") in str(caught.value)


@pytest.mark.parametrize(
    "broken",
    [
        BIBTEX + BIBTEX,
        BIBTEX.replace("roses,", "roses"),
        BIBTEX.rstrip().removesuffix("}"),
        BIBTEX.replace('year = "2025",', 'year = "2025", year = "2026",'),
        "@comment{nothing}",
    ],
)
def test_bibtex_that_cannot_be_read_whole_is_refused(broken: str, registry: Registry) -> None:
    registry.say("/2025.acl-long.421.bib", broken.encode())

    with pytest.raises(UpstreamError, match="is not"):
        looked_up(ACL)


def test_doi_org_may_send_us_to_an_agency_and_nowhere_else(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    other = registry.url.replace("127.0.0.1", "localhost")
    registry.say("/10.5555/roses.1", b"", 302, Location=f"{other}/agency")
    registry.say("/agency", DATACITE)

    with pytest.raises(UpstreamError, match="another host"):
        looked_up(DOI)
    assert [path for path, _ in registry.asked] == ["/10.5555/roses.1"]

    monkeypatch.setattr(registries, "AGENCIES", frozenset(["localhost"]))
    assert looked_up(DOI)["title"] == "A Garden as Data"


def test_an_address_of_a_registry_must_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHTRACE_DOI_URL", "file:///etc/passwd")

    with pytest.raises(CommandUseError, match="ORCHTRACE_DOI_URL is not a web address: 'file:///etc/passwd'"):
        looked_up(DOI)


def test_no_control_characters_come_through(registry: Registry) -> None:
    evil = "Garden \x1b[31m\u202e\x9b of <script>x</script> beds"
    registry.say("/10.5555/roses.1", {"title": evil, "author": [{"family": evil}], "publisher": evil})

    proposed = looked_up(DOI)

    assert proposed["title"] == "Garden [31m of x beds"
    assert all(text.isprintable() for text in (*proposed["authors"], proposed["venue"]))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["title", "author", "family", "given", "issued", "date-parts", "notes", "content", "value"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


class Saying(Transport):
    """A transport that asks nobody and always gets the same answer."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self.body = body

    def get(self, url: str, **_: Any) -> Response:
        return Response(200, url, {}, self.body)


@given(JSON | st.fixed_dictionaries({"title": st.text(), "notes": JSON, "author": JSON, "issued": JSON}))
def test_no_answer_is_too_odd(document: object) -> None:
    for identifier in (DOI, OPENREVIEW):
        try:
            proposed = lookup(identifier, Saying(json.dumps(document).encode()))
        except UpstreamError:
            continue
        assert proposed is None or (
            proposed["title"] and all(isinstance(value, (str, int, list)) for value in proposed.values())
        )


@given(st.text(st.sampled_from('@{}(),="\\\n artile#123')))
def test_no_bibtex_is_too_odd(text: str) -> None:
    try:
        proposed = lookup(ACL, Saying(text.encode()))
    except UpstreamError:
        return
    assert proposed is not None
