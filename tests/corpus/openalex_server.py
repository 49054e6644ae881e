"""A server on loopback that answers as OpenAlex does: single works, lists by filter with cursors, keys, troubles."""

import base64
import json
import re
import threading
from collections.abc import Iterable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

_HOME = "https://openalex.org/"


def work(
    name: str,
    title: str,
    *,
    doi: str = "",
    arxiv_id: str = "",
    cites: Sequence[str] = (),
    references: Sequence[str] = (),
    date: str = "2023-01-01",
) -> dict[str, Any]:
    """A work; `references` are what it cites, `cites` are papers of ours that it cites, which is the same."""
    page = f"https://arxiv.org/abs/{arxiv_id}" if arxiv_id else f"https://example.org/{name}"
    return {
        "id": f"{_HOME}{name}",
        "doi": f"https://doi.org/{doi}" if doi else None,
        "title": title,
        "publication_date": date,
        "ids": {"openalex": f"{_HOME}{name}"},
        "locations": [{"landing_page_url": page}, {"landing_page_url": None}, None],
        "authorships": [{"author": {"display_name": "Flora Bunda"}}, {"author": None}],
        "referenced_works": [f"{_HOME}{one}" for one in (*cites, *references)],
    }


class OpenAlexServer:
    """The server; listens from the beginning of a `with` to its end.

    Attributes:
        works: By id.
        keys: The keys that came with each request.
        paths: Path and query of each request that was answered, without its key.
        faults: What goes wrong with the next requests: a status, `cut`, `malformed` or `list`.
        always: What goes wrong with every other; `elsewhere` redirects to another host.
    """

    def __init__(self, works: Iterable[dict[str, Any]], key: str) -> None:
        self.works = {one["id"]: one for one in works}
        self.key = key
        self.keys: list[list[str]] = []
        self.paths: list[str] = []
        self.faults: list[int | str] = []
        self.always: int | str = ""
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.openalex = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> "OpenAlexServer":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def answer(self, path: str, given: dict[str, list[str]]) -> tuple[int, Any]:
        """The status and the document for a request."""
        if given.get("api_key") != [self.key]:
            return 401, {"error": "Unauthorized", "message": "no such key"}
        if path.startswith("/works/doi:"):
            doi = f"https://doi.org/{unquote(path.removeprefix('/works/doi:'))}".lower()
            found = next((one for one in self.works.values() if (one["doi"] or "").lower() == doi), None)
            return (200, found) if found else (404, {"error": "Not Found"})
        condition = given.get("filter", [""])[0]
        if cited := re.fullmatch(r"cites:(W\d+),from_publication_date:(\d{4}-\d\d-\d\d)", condition):
            listed = [
                one
                for one in self.works.values()
                if f"{_HOME}{cited[1]}" in one["referenced_works"] and one["publication_date"] >= cited[2]
            ]
        elif named := re.fullmatch(r"ids\.openalex:(W\d+(?:\|W\d+)*)", condition):
            listed = [one for name in named[1].split("|") if (one := self.works.get(f"{_HOME}{name}"))]
        else:
            return 400, {"error": "Invalid query parameters error.", "message": f"no such filter: {condition}"}
        size, cursor = int(given["per_page"][0]), given["cursor"][0]
        start = 0 if cursor == "*" else int(base64.b64decode(cursor))
        following = base64.b64encode(str(start + size).encode()).decode() if listed[start : start + size] else None
        return 200, {
            "meta": {"count": len(listed), "next_cursor": following},
            "results": listed[start : start + size],
        }


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    openalex: OpenAlexServer


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 10

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Nothing."""

    def do_GET(self) -> None:
        openalex = self.server.openalex
        parts = urlsplit(self.path)
        given = parse_qs(parts.query)
        fault = openalex.faults.pop(0) if openalex.faults else openalex.always
        status, document = openalex.answer(parts.path, given)
        openalex.keys.append(given.get("api_key", []))
        body = json.dumps(document).encode()
        headers = {}
        if isinstance(fault, int):
            status, body = fault, json.dumps({"message": f"{self.path} is too much"}).encode()
        elif fault == "malformed":
            body = b'{"results": ['
        elif fault == "list":
            body = b"[]"
        elif fault == "elsewhere":
            status, headers = 302, {"Location": f"https://example.org{self.path}"}
        if not fault:
            openalex.paths.append(re.sub(r"[?&]api_key=[^&]*", "", self.path))
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if fault == "cut" else body)
        self.close_connection = fault == "cut"
