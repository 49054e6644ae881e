"""The sweep for dead links: what each behaviour of a server means, how politely it is asked, what is remembered."""

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.base.findings import RULES, explanation
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.fields import url_problem
from orchtrace_corpus.corpus.sources import links as source
from orchtrace_corpus.corpus.sources.http_session import USER_AGENT
from orchtrace_corpus.corpus.sources.links import (
    LinkChecker,
    LinkOutcome,
    Verdict,
    find_problems,
    is_arxiv_address,
    is_public_host,
    list_links,
    sample_urls,
)
from tests.conftest import TOY, Result, run_corpus
from tests.loopback import loopback_only  # noqa: F401 - guards every test here


class Site:
    """A web server on loopback whose pages behave as their names say, and that remembers who asked when."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, float, str]] = []
        self.busy = 0
        self.closing = threading.Event()
        self.most_busy = 0
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments: Any) -> None:
                pass

            def do_GET(self) -> None:
                site.busy += 1
                site.most_busy = max(site.most_busy, site.busy)
                agent = self.headers.get("User-Agent", "") + self.headers.get("Authorization", "")
                site.requests.append((self.command, self.path, time.monotonic(), agent))
                try:
                    site.respond(self)
                finally:
                    site.busy -= 1

            def do_HEAD(self) -> None:
                self.do_GET()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def respond(self, handler: BaseHTTPRequestHandler) -> None:
        name, _, rest = handler.path[1:].replace("%5B", "[").partition("/")
        if name == "drop":
            handler.close_connection = True
            handler.connection.close()
            return
        if name == "slow":
            time.sleep(0.6)
        if name == "no-head":
            name = rest if handler.command == "HEAD" else "200"
        if name == "drop-head":
            if handler.command == "HEAD":
                handler.close_connection = True
                handler.connection.close()
                return
            name = "200"
        status = int(name) if name.isdigit() else 200
        handler.send_response(status)
        if status in (301, 302, 303, 307, 308) and rest:
            handler.send_header("Location", rest if "://" in rest else f"/{rest}")
        endless = name == "301" and rest == "endless"
        handler.send_header("Content-Length", str(10**12) if endless else "0")
        handler.end_headers()
        with suppress(OSError):
            while endless and not self.closing.wait(0.01):
                handler.wfile.write(b"x" * 1000)

    def paths(self, method: str) -> list[str]:
        return [path for this, path, _, _ in self.requests if this == method]


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.closing.set()
    site.server.shutdown()
    site.server.server_close()


def checker(folder: Path, **options: Any) -> LinkChecker:
    settings = {"pause_seconds": 0.0, "timeout_seconds": 0.3, "is_public": lambda host: True, **options}
    return LinkChecker(str(folder / "links"), **settings)


def tried(site: Site, folder: Path, *paths: str, **options: Any) -> list[LinkOutcome]:
    """The outcome of each path, in their order."""
    outcomes = dict(checker(folder, **options).check_all([f"{site.url}/{path}" for path in paths]))
    return [outcomes[f"{site.url}/{path}"] for path in paths]


@pytest.mark.parametrize(
    ("path", "verdict", "reason"),
    [
        ("page", Verdict.OK, "HTTP 200"),
        ("204", Verdict.OK, "HTTP 204"),
        ("404", Verdict.GONE, "HTTP 404"),
        ("410", Verdict.GONE, "HTTP 410"),
        ("401", Verdict.REFUSED, "HTTP 401"),
        ("403", Verdict.REFUSED, "HTTP 403"),
        ("429", Verdict.REFUSED, "HTTP 429"),
        ("451", Verdict.REFUSED, "HTTP 451"),
        ("500", Verdict.UNREACHABLE, "HTTP 500"),
        ("503", Verdict.UNREACHABLE, "HTTP 503"),
        ("no-head/404", Verdict.OK, "HTTP 200"),
        ("no-head/405", Verdict.OK, "HTTP 200"),
        ("no-head/403", Verdict.OK, "HTTP 200"),
        ("drop-head", Verdict.OK, "HTTP 200"),
        ("drop", Verdict.UNREACHABLE, "the connection failed"),
        ("slow", Verdict.UNREACHABLE, "no answer in time"),
        ("302/page", Verdict.OK, "HTTP 200"),
        ("302/404", Verdict.GONE, "HTTP 404"),
        ("301/404", Verdict.GONE, "HTTP 404"),
        ("301/302/page", Verdict.OK, "HTTP 200"),
        ("301", Verdict.UNREACHABLE, "HTTP 301 to nowhere"),
        ("301/ftp://example.org/x", Verdict.UNREACHABLE, "it leads to no web address"),
        ("301/http://[bad", Verdict.UNREACHABLE, "it leads to no web address"),
        ("301/http://", Verdict.UNREACHABLE, "more than 8 redirects"),
        ("302/" * 9 + "page", Verdict.UNREACHABLE, "more than 8 redirects"),
    ],
)
def test_what_an_answer_means(path: str, verdict: Verdict, reason: str, site: Site, tmp_path: Path) -> None:
    (outcome,) = tried(site, tmp_path, path)

    assert (outcome.verdict, outcome.reason, outcome.address) == (verdict, reason, "")


@pytest.mark.parametrize(
    ("path", "moved_to"),
    [
        ("301/page", "/page"),
        ("308/301/page", "/page"),
        ("301/page#there", "/page#there"),
        ("301/page%20x", "/page%20x"),
    ],
)
def test_a_page_that_has_moved_for_good_names_its_new_address(
    path: str, moved_to: str, site: Site, tmp_path: Path
) -> None:
    assert tried(site, tmp_path, path) == [LinkOutcome(Verdict.MOVED, "HTTP 200", f"{site.url}{moved_to}")]


def test_a_host_that_is_not_there_is_said_so(tmp_path: Path, loopback_only: list[str]) -> None:
    ((_, outcome),) = checker(tmp_path).check_all(["http://nothing.invalid/"])

    assert outcome == LinkOutcome(Verdict.UNREACHABLE, "there is no such host", answered=False)
    loopback_only.clear()


def test_a_page_that_answers_is_asked_for_once_and_not_read(site: Site, tmp_path: Path) -> None:
    tried(site, tmp_path, "page")

    assert [(method, path, agent) for method, path, _, agent in site.requests] == [("HEAD", "/page", USER_AGENT)]


def test_not_even_the_body_of_a_redirect_is_read(site: Site, tmp_path: Path) -> None:
    (outcome,) = tried(site, tmp_path, "301/endless")

    assert outcome.verdict is Verdict.MOVED


def test_no_password_file_is_consulted(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))

    tried(site, tmp_path, "page")

    assert site.requests[0][3] == USER_AGENT


def test_one_host_is_asked_one_thing_at_a_time_with_pauses(site: Site, tmp_path: Path) -> None:
    tried(site, tmp_path, "a", "b", "404", pause_seconds=0.1)

    moments = [moment for _, _, moment, _ in site.requests]
    assert len(moments) == 4
    assert min(later - earlier for earlier, later in pairwise(moments)) > 0.09
    assert site.most_busy == 1


def test_hosts_take_turns(site: Site, tmp_path: Path) -> None:
    other = site.url.replace("127.0.0.1", "localhost")
    urls = [f"{site.url}/{name}" for name in "abcd"] + [f"{other}/x", f"{other}/y"]

    list(checker(tmp_path).check_all(urls))

    assert site.paths("HEAD") == ["/a", "/x", "/b", "/c", "/y", "/d"]


def test_a_host_that_has_had_enough_is_asked_no_more(site: Site, tmp_path: Path) -> None:
    outcomes = tried(site, tmp_path, "429", "page", "z")

    assert outcomes[1:] == [LinkOutcome(Verdict.REFUSED, "HTTP 429 before", answered=False)] * 2
    assert len(site.requests) == 1
    assert tried(site, tmp_path, "page")[0].verdict is Verdict.OK, "the next run asks again"


def test_a_doi_that_leads_anywhere_is_good(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_DOI_RESOLVERS", ("127.0.0.1",))

    assert [outcome.verdict for outcome in tried(site, tmp_path, "302/403", "404")] == [Verdict.OK, Verdict.GONE]
    assert "/403" not in site.paths("HEAD")


def test_outcomes_are_remembered_for_a_time(site: Site, tmp_path: Path) -> None:
    now = [1_800_000_000.0]
    paths = ("page", "404", "403", "301/page", "500")

    first = tried(site, tmp_path, *paths, clock=lambda: now[0])
    asked = len(site.requests)
    again = tried(site, tmp_path, *paths, clock=lambda: now[0])

    assert again == first
    assert {path for _, path, _, _ in site.requests[asked:]} == {"/500"}, "only what was not reached"

    now[0] += 2 * 86400
    asked = len(site.requests)
    tried(site, tmp_path, *paths, clock=lambda: now[0])
    assert {path for _, path, _, _ in site.requests[asked:]} == {"/404", "/500"}

    asked = len(site.requests)
    tried(site, tmp_path, "page", clock=lambda: now[0], refresh=True)
    assert site.requests[asked:]


@pytest.mark.parametrize("damage", ["", "{}", "[]", "\x00", '{"verdict": "ok"}', '{"url": 3, "verdict": "good"}'])
def test_a_damaged_memory_is_no_memory(damage: str, site: Site, tmp_path: Path) -> None:
    tried(site, tmp_path, "page")
    (entry,) = (tmp_path / "links").iterdir()
    entry.write_text(damage)

    assert tried(site, tmp_path, "page")[0].verdict is Verdict.OK
    assert len(site.requests) == 2


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("169.254.169.254", False),
        ("::1", False),
        ("localhost", False),
        ("printer", False),
        ("printer.local", False),
        ("db.internal", False),
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
    ],
)
def test_the_network_around_us_is_never_asked(host: str, expected: bool) -> None:
    assert is_public_host(host) is expected


def test_a_name_that_stands_for_an_address_around_us_is_not_public(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(host: str, *_: object, **__: object) -> list[Any]:
        return [(0, 0, 0, "", (address, 0)) for address in {"mixed.example.org": ["93.184.216.34", "10.0.0.1"]}[host]]

    monkeypatch.setattr("socket.getaddrinfo", resolve)

    assert not is_public_host("mixed.example.org")


def test_a_redirect_into_the_network_around_us_is_not_followed(site: Site, tmp_path: Path) -> None:
    def is_public(host: str) -> bool:
        return host == "127.0.0.1"

    inside = site.url.replace("127.0.0.1", "localhost")

    (outcome,) = tried(site, tmp_path, f"302/{inside}/secret", is_public=is_public)

    assert (outcome.verdict, outcome.reason) == (Verdict.UNREACHABLE, "it leads to an address that is not public")
    assert "/secret" not in site.paths("HEAD")


def test_addresses_of_arxiv_are_left_to_fetch() -> None:
    assert is_arxiv_address("https://arxiv.org/abs/2101.00001")
    assert is_arxiv_address("http://export.arxiv.org/abs/2101.00001")
    assert not is_arxiv_address("https://notarxiv.org/abs/2101.00001")
    assert not is_arxiv_address("https://doi.org/10.48550/arXiv.2101.00001")


def test_a_sample_is_the_same_each_time_and_grows_by_what_it_lacks() -> None:
    urls = [f"https://example.org/{number}" for number in range(100)]

    ten = sample_urls(urls, 10)

    assert sample_urls(list(reversed(urls)), 10) == ten
    assert set(ten) < set(sample_urls(urls, 20))
    assert sample_urls(urls, 10, seed="week 2") != ten
    assert sample_urls(urls, 1000) == tuple(sorted(urls))
    assert len(set(sample_urls([*urls, "https://example.org/new"], 10)) - set(ten)) <= 1


def test_every_place_of_an_address_is_named() -> None:
    loaded = store.CorpusFiles(str(TOY)).loaded
    links = list(list_links(loaded))

    assert [(link.record, link.path) for link in links if link.url == "https://example.org/roses"] == [
        ("rose-garden", ("urls", 0)),
        ("rose-garden", ("evidence", 0, "source")),
    ]
    gone = {"https://example.org/roses": LinkOutcome(Verdict.GONE, "HTTP 404")}
    assert [(found.code, found.location.line) for found in find_problems(links, gone)] == [("L101", 10), ("L101", 19)]
    assert [link.record for link in list_links(loaded, {"long-grass"})] == ["long-grass"]
    assert [link.record for link in links][-2:] == ["E001", "E003"]


@pytest.mark.parametrize("code", [code for code in RULES if code.startswith("L")])
def test_the_excerpts_of_the_rulebook_hold_addresses(code: str) -> None:
    for excerpt in (explanation(code).bad, explanation(code).good):
        (url,) = re.fullmatch(r"urls: \[(.+)\]", excerpt).groups()  # type: ignore[union-attr]
        assert url_problem(url) == ""


def test_the_codes_of_links_are_all_used() -> None:
    loaded = store.CorpusFiles(str(TOY)).loaded
    outcomes = [LinkOutcome(verdict, "x", "y") for verdict in Verdict]
    found = {
        finding.code
        for outcome in outcomes
        for finding in find_problems(list(list_links(loaded)), {"https://example.org/grass": outcome})
    }

    assert found == {code for code in RULES if code.startswith("L")}


@pytest.fixture
def corpus(site: Site, root: Path, empty_cache: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The toy corpus with the pages of the site as its addresses, and a sweep that may ask them."""
    for name, pages in {
        "papers": {"roses/code": "403", "roses": "404", "grass": "301/new", "borders": "page", "yard": "drop"},
        "exclusions": {"cars": "302/page"},
    }.items():
        path = root / "data" / f"{name}.yaml"
        text = path.read_text(encoding="utf-8")
        for page, behaviour in pages.items():
            text = text.replace(f"https://example.org/{page}", f"{site.url}/{behaviour}")
        path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(source, "is_public_host", lambda host: host == "127.0.0.1")
    monkeypatch.setattr(source, "PAUSE_SECONDS", 0.0)
    monkeypatch.chdir(root)
    return root


def sweep(*arguments: str) -> Result:
    return run_corpus("links", *arguments)


def test_a_sweep_reports_each_address_at_its_place(corpus: Path, site: Site) -> None:
    result = sweep()

    assert (result.code, result.stdout) == (
        0,
        f"data/papers.yaml:10:10: L101 warning: '{site.url}/404' is gone (HTTP 404); find where the page is now, or a "
        "copy in an archive [rose-garden]\n"
        f"data/papers.yaml:19:15: L101 warning: '{site.url}/404' is gone (HTTP 404); find where the page is now, or a "
        "copy in an archive [rose-garden]\n"
        f"data/papers.yaml:30:10: L102 warning: '{site.url}/301/new' has moved for good; write '{site.url}/new' "
        "[long-grass]\n"
        f"data/papers.yaml:56:10: L103 warning: '{site.url}/drop' cannot be reached (the connection failed); try it in "
        "a browser, and again another day [terminal-yard]\n",
    )
    assert result.stderr == (
        "4 warnings; 6 addresses tried, 0 taken from the cache: 2 ok, 1 moved, 1 gone, 1 refused, 1 unreachable\n"
        "1 address of arXiv is left to corpus fetch\n"
        f"refused, of which nothing is known: {site.url}/403\n"
    )
    assert all(agent.startswith("orchtrace-corpus/") for _, _, _, agent in site.requests)


def test_a_second_sweep_asks_only_for_what_was_not_reached(corpus: Path, site: Site) -> None:
    first = sweep()
    asked = len(site.requests)
    second = sweep()

    assert second.stdout == first.stdout
    assert "1 address tried, 5 taken from the cache" in second.stderr
    assert {path for _, path, _, _ in site.requests[asked:]} == {"/drop"}


def test_strict_makes_a_dead_link_fail(corpus: Path) -> None:
    assert sweep("--strict").code == 1
    assert sweep("--strict", "--where", "key=mixed-borders").code == 0


def test_a_sweep_of_some_papers_leaves_exclusions_out(corpus: Path, site: Site) -> None:
    result = sweep("--where", "size=large")

    assert result.stdout.count("\n") == 1
    assert site.paths("HEAD") == ["/301/new", "/new"]


def test_a_sample_is_swept(corpus: Path, site: Site) -> None:
    result = sweep("--sample", "2")

    assert "2 addresses tried" in result.stderr
    assert sweep("--sample", "2").stdout == result.stdout


def test_findings_for_programs(corpus: Path) -> None:
    document = json.loads(sweep("--format", "json").stdout)

    assert [found["code"] for found in document["findings"]] == ["L101", "L101", "L102", "L103"]
    assert sweep("--format", "github").stdout.count("::warning ") == 4


def test_a_dead_link_can_be_waived(corpus: Path) -> None:
    path = corpus / "data" / "papers.yaml"
    waiver = '  waive:\n    - {code: L101, why: "Nobody has a copy."}\n  added:'
    path.write_text(path.read_text(encoding="utf-8").replace("  added:", waiver, 1), encoding="utf-8")

    assert "L101" not in sweep().stdout
    assert run_corpus("check", "data").code == 0


def test_without_a_network_nothing_is_said_about_links(
    corpus: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "is_public_host", lambda host: True)
    path = corpus / "data" / "papers.yaml"
    text = path.read_text(encoding="utf-8")
    for port, page in enumerate(("404", "301/new", "page", "drop", "403"), 2):
        text = text.replace(f"{site.url}/{page}", f"http://127.0.0.1:{port}/{page}")
    path.write_text(text, encoding="utf-8")

    result = sweep("--where", "size=small,large")

    assert (result.code, result.stdout) == (4, "")
    assert result.stderr == (
        "corpus: none of 5 addresses on 5 hosts could be reached\nIs there a network? Nothing is said about the links.\n"
    )


def test_no_addresses(corpus: Path) -> None:
    result = sweep("--where", "key=nothing")

    assert (result.code, result.stdout, result.stderr) == (0, "", "no addresses to try\n")


def test_an_address_that_would_write_to_the_terminal_does_not(
    corpus: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(301)
        handler.send_header("Location", "/\x1b[31mred")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    monkeypatch.setattr(site, "respond", respond)

    result = sweep()

    assert "\x1b" not in result.stdout + result.stderr
