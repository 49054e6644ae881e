"""Searches against a server that answers as arXiv does: everything found once, whatever happens between two pages."""

import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchtrace_corpus.base.errors import UpstreamError
from orchtrace_corpus.corpus.model.metadata import Metadata
from orchtrace_corpus.corpus.sources.arxiv import search
from orchtrace_corpus.corpus.sources.arxiv.client import Client
from orchtrace_corpus.corpus.sources.arxiv.search import Failure
from tests.corpus import arxiv_query, processes
from tests.corpus.arxiv_server import (
    ArxivServer,
    Fault,
    access_denied,
    busy,
    cut,
    empty,
    fine,
    rate_exceeded,
    record,
    reset,
    sending,
    short,
    short_page,
)
from tests.corpus.test_arxiv_cache import FakeClock
from tests.effort import mostly_slow
from tests.loopback import loopback_only  # noqa: F401 - guards every test here

TEAMS = 'ti:"toy team"'


def team(number: int, **more: object) -> Metadata:
    """A paper of a team, submitted so many minutes after the first."""
    moment = f"2026-05-{number // 1440 + 1:02}T{number // 60 % 24:02}:{number % 60:02}:00Z"
    values = {"title": f"A Toy Team of {number}", "published": moment, "updated": moment, **more}
    return record(f"2605.{number:05}", **values)  # type: ignore[arg-type]


def teams(count: int) -> list[Metadata]:
    return [team(number) for number in range(1, count + 1)]


@pytest.fixture
def server() -> Iterator[ArxivServer]:
    with ArxivServer([*teams(250), record("2605.09999", title="Something Else")]) as server:
        yield server


@pytest.fixture
def make(server: ArxivServer, tmp_path: Path) -> Callable[..., Client]:
    """Makes clients of the server that share a cache and wait for nothing."""

    def make_client(**options: object) -> Client:
        settings = {"cache_folder": str(tmp_path), "spacing_seconds": 0.0, "clock": FakeClock(), **options}
        return Client(server.url, **settings)  # type: ignore[arg-type]

    return make_client


def starts(server: ArxivServer) -> list[int]:
    """Where each page began that was asked for."""
    return [int(given["start"]) for given in server.searches]


def ids(client: Client, query: str = TEAMS) -> list[str]:
    """The answers to a query that must have some."""
    answer = client.search({"q": query})
    assert answer.failed == {}
    assert answer.found["q"].total == len(answer.found["q"].papers)
    return list(answer.found["q"].papers)


ALL = [paper.arxiv_id for paper in teams(250)]


def test_pages_begin_with_the_last_paper_of_the_one_before(make: Callable[..., Client], server: ArxivServer) -> None:
    assert ids(make()) == ALL
    assert starts(server) == [0, 99, 198]
    assert {(given["sortBy"], given["sortOrder"], given["max_results"]) for given in server.searches} == {
        ("submittedDate", "ascending", "100")
    }


def test_a_second_search_of_the_day_asks_nobody(make: Callable[..., Client], server: ArxivServer) -> None:
    first = ids(make())
    asked = len(server.requests)

    assert ids(make()) == first
    assert ids(make(offline=True)) == first
    assert len(server.requests) == asked
    assert ids(make(refresh=True)) == first
    assert len(server.requests) == 2 * asked


def test_counting_asks_once_for_each_query(make: Callable[..., Client], server: ArxivServer) -> None:
    answer = make().search({"teams": TEAMS, "none": "ti:nothing"}, count_only=True)

    assert {name: found.total for name, found in answer.found.items()} == {"teams": 250, "none": 0}
    assert [given["max_results"] for given in server.searches] == ["1", "1", "1"], "none at all is asked for twice"


@pytest.mark.parametrize(
    "faults",
    [
        [rate_exceeded(), fine(), busy("2"), busy()],
        [cut(), fine(), reset(), short(), cut(0.9)],
        [fine(), sending(b"<feed xmlns='http://www.w3.org/2005/Atom'><entry>"), sending(b"<a><b></a>")],
        [empty(), fine(), empty(), empty()],
        [short_page(40), fine(), short_page(0), short_page(99), short_page(3)],
        [sending(b""), fine(), sending(b"\0\1\2")],
    ],
    ids=["busy", "cut", "malformed", "empty", "short", "nothing"],
)
def test_whatever_goes_wrong_for_a_moment_everything_is_found_once(
    make: Callable[..., Client], server: ArxivServer, faults: list[Fault]
) -> None:
    server.faults = list(faults)

    assert ids(make()) == ALL
    assert server.faults == []


def remove_early(server: ArxivServer, number: int) -> None:
    if number == 1:
        del server.papers["2605.00050"]


def remove_early_and_add_late(server: ArxivServer, number: int) -> None:
    if number == 1:
        del server.papers["2605.00050"]
        server.papers["2605.00251"] = [team(251)]


def add_early(server: ArxivServer, number: int) -> None:
    if number == 1:
        server.papers["2605.01000"] = [team(1000, published="2026-05-01T00:10:30Z")]


def add_late(server: ArxivServer, number: int) -> None:
    if number == 2:
        server.papers["2605.00251"] = [team(251)]


@pytest.mark.parametrize("change", [remove_early, remove_early_and_add_late, add_early, add_late])
def test_a_result_set_that_changes_between_pages_is_found_whole(
    make: Callable[..., Client], server: ArxivServer, change: Callable[[ArxivServer, int], None]
) -> None:
    server.before_search = change

    found = make().search({"q": TEAMS}).found["q"]

    assert set(server.papers) - {"2605.09999"} <= found.papers.keys()
    assert len(found.papers) - found.total in (0, 1), "a paper that went meanwhile may have been seen before"


def test_a_page_that_repeats_papers_of_the_one_before_costs_another_round(
    make: Callable[..., Client], server: ArxivServer
) -> None:
    first = arxiv_page(server, 0, 100)
    server.faults = [fine(), sending(first)]

    assert ids(make()) == ALL
    assert starts(server) == [0, 0, 99, 198], "the repeated page was none of the server's own"


def arxiv_page(server: ArxivServer, start: int, size: int) -> bytes:
    from tests.corpus.arxiv_feeds import feed

    return feed(teams(250)[start : start + size], total=250)


def test_answers_that_never_settle_are_said_to_and_end_by_themselves(
    make: Callable[..., Client], server: ArxivServer
) -> None:
    def rotate(server: ArxivServer, number: int) -> None:
        server.papers = {f"2605.{index:05}": [team(index)] for index in range(number * 300 + 1, number * 300 + 251)}

    server.before_search = rotate

    answer = make().search({"q": TEAMS})

    assert answer.found == {}
    assert answer.failed["q"][0] is Failure.UNSETTLED
    assert len(server.searches) == 2 * search.MAX_PASSES


def test_a_refused_query_is_not_repeated_and_the_others_are_answered(
    make: Callable[..., Client], server: ArxivServer
) -> None:
    answer = make().search({"bad": "ti:(", "good": TEAMS})

    assert list(answer.found["good"].papers) == ALL
    assert answer.failed["bad"][0] is Failure.REFUSED
    assert [given["search_query"] for given in server.searches].count("ti:(") == 1


def test_a_service_that_stays_busy_is_left_alone_and_what_was_found_is_kept(
    make: Callable[..., Client], server: ArxivServer
) -> None:
    server.faults = [fine()] * 3
    server.always = busy()

    answer = make().search({"first": TEAMS, "second": "ti:garden", "third": "ti:rose"})

    assert list(answer.found) == ["first"]
    assert {name: failure for name, (failure, _) in answer.failed.items()} == {
        "second": Failure.THROTTLED,
        "third": Failure.THROTTLED,
    }
    server.always = None
    before = len(server.requests)
    assert list(make().search({"first": TEAMS}).found) == ["first"]
    assert len(server.requests) == before


def test_a_service_that_refuses_us_ends_the_run(make: Callable[..., Client], server: ArxivServer) -> None:
    server.always = access_denied()

    with pytest.raises(UpstreamError, match="refuses to answer"):
        make().search({"q": TEAMS})


def test_too_many_answers_are_not_paged_through(
    make: Callable[..., Client], server: ArxivServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MAX_RESULTS", 200)

    answer = make().search({"q": TEAMS})

    assert answer.failed["q"][0] is Failure.TOO_MANY
    assert starts(server) == [0]


def test_an_entry_that_describes_no_paper_is_reported_and_the_rest_is_found(
    make: Callable[..., Client], server: ArxivServer
) -> None:
    server.papers["2605.00120"] = [team(120, title="")]

    answer = make().search({"q": 'all:"we make a toy" AND cat:cs.MA AND submittedDate:[202605010000 TO 202605312359]'})

    assert len(answer.found["q"].papers) == 249
    assert answer.found["q"].messages == ("the entry of 2605.00120 has no usable title",)


def test_offline_without_pages_is_unasked(make: Callable[..., Client]) -> None:
    assert make(offline=True).search({"q": TEAMS}).failed["q"][0] is Failure.UNASKED


@pytest.mark.parametrize("seed", mostly_slow(range(10), [3]))
def test_a_killed_run_goes_on_where_it_was_without_asking_again(server: ArxivServer, tmp_path: Path, seed: int) -> None:
    """A page whose answer was on its way when the process was killed is all that may be asked for twice."""
    moment = random.Random(seed).randrange(1, 9)
    client = Client(server.url, cache_folder=str(tmp_path), spacing_seconds=0.01)
    child = processes.fork(client.search, {"a": TEAMS, "b": "ti:toy"})
    while len(server.searches) < min(moment, 6) and child.is_alive():
        time.sleep(0.002)
    processes.killed(child, signal.SIGKILL)

    found = client.search({"a": TEAMS, "b": "ti:toy"}).found

    assert [len(found[name].papers) for name in "ab"] == [250, 250]
    asked = [(given["search_query"], given["start"]) for given in server.searches]
    assert len(set(asked)) == 6
    assert len(asked) <= 7


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("ti:agent", ["a", "b"]),
        ("ti:agents AND ti:team", ["b"]),
        ('ti:"multi-agent teams"', ["b"]),
        ("ti:agent ANDNOT ti:team", ["a"]),
        ("ti:rose OR ti:team", ["b", "c"]),
        ("ti:rose ti:team", ["b", "c"]),
        ("ti:agent AND (abs:garden OR abs:forest)", ["a"]),
        ("all:ada", ["a", "b", "c"]),
        ("cat:cs.CL", ["c"]),
        ("ti:agent AND submittedDate:[202601010000 TO 202601312359]", ["a"]),
    ],
)
def test_the_server_evaluates_fields_operators_phrases_stems_and_days(query: str, expected: list[str]) -> None:
    papers = {
        "a": record("2601.00001", title="An Agent", abstract="In a garden.", published="2026-01-05T10:00:00Z"),
        "b": record("2602.00001", title="Multi-Agent Team", published="2026-02-05T10:00:00Z"),
        "c": record("2602.00002", title="Roses", categories=("cs.CL",), published="2026-02-06T10:00:00Z"),
    }
    matches = arxiv_query.parse(query)

    assert [name for name, paper in papers.items() if matches(paper)] == expected
