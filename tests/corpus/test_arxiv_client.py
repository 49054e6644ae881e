"""The client against a server that answers as arXiv does: few requests, spaced, resumable, no miss confused with another."""

import email.utils
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.base import budget
from orchtrace_corpus.base.errors import ExitCode, UpstreamError
from orchtrace_corpus.base.progress import Progress
from orchtrace_corpus.corpus.sources import http
from orchtrace_corpus.corpus.sources.arxiv import client
from orchtrace_corpus.corpus.sources.arxiv.client import MAX_AGE_SECONDS, SPACING_SECONDS, Answer, Client
from orchtrace_corpus.corpus.sources.http import HttpError, Transport
from tests.conftest import ROOT
from tests.corpus import arxiv_feeds, processes
from tests.corpus.arxiv_feeds import error_feed
from tests.corpus.arxiv_server import (
    ArxivServer,
    Era,
    Fault,
    access_denied,
    busy,
    cut,
    empty,
    error_feed_200,
    fine,
    rate_exceeded,
    record,
    records,
    redirect,
    reset,
    sending,
    short,
    slow,
    trickle,
    unreadable_400,
)
from tests.corpus.test_arxiv_cache import FakeClock
from tests.effort import mostly_slow
from tests.loopback import loopback_only  # noqa: F401 - guards every test here

IDS = [paper.arxiv_id for paper in records(84)]
MANY = [paper.arxiv_id for paper in records(250)]

NO_MISS: dict[str, tuple[str, ...]] = dict.fromkeys(("missing", "malformed", "throttled", "unparseable", "unasked"), ())


@pytest.fixture
def server() -> Iterator[ArxivServer]:
    with ArxivServer([*records(250), record("math/0309136")]) as running:
        yield running


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def make(server: ArxivServer, clock: FakeClock, tmp_path: Path) -> Callable[..., Client]:
    """Makes a client of the server whose waits take no time."""

    def client(url: str = "", **options: Any) -> Client:
        return Client(url or server.url, cache_folder=str(tmp_path), **{"clock": clock, **options})

    return client


def misses(answer: Answer) -> dict[str, tuple[str, ...]]:
    """The ids without a description, by why."""
    return {name: getattr(answer, name) for name in NO_MISS}


# What is asked


@pytest.mark.parametrize("era", Era)
def test_a_whole_pool_is_one_request(server: ArxivServer, make: Callable[..., Client], era: Era) -> None:
    server.era = era

    answer = make().fetch(IDS)

    assert [answer.found[name].title for name in IDS] == [f"Toy Paper {number}" for number in range(1, 85)]
    assert misses(answer) == NO_MISS
    assert answer.is_complete
    assert [len(request.ids) for request in server.requests] == [84]
    assert server.requests[0].path == f"/api/query?id_list={','.join(IDS)}&max_results=84"


def test_more_papers_take_a_request_for_each_hundred_three_seconds_apart(
    server: ArxivServer, make: Callable[..., Client], clock: FakeClock
) -> None:
    make().fetch(MANY)

    assert [len(request.ids) for request in server.requests] == [100, 100, 50]
    assert len({request.port for request in server.requests}) == 1
    assert sum(clock.slept) == 6.0


def test_what_was_answered_is_not_asked_again_for_a_day(
    server: ArxivServer, make: Callable[..., Client], clock: FakeClock
) -> None:
    first = make().fetch(IDS)
    clock.now += 86_390

    assert make().fetch(IDS) == first
    assert len(server.requests) == 1
    clock.now += 20
    assert make().fetch(IDS) == first
    assert len(server.requests) == 2


def test_refreshing_asks_again_and_keeps_what_comes(server: ArxivServer, make: Callable[..., Client]) -> None:
    make().fetch(IDS[:1])
    server.papers[IDS[0]].append(record(IDS[0], version=2))

    assert make().fetch(IDS[:1]).found[IDS[0]].version == 1
    assert make(refresh=True).fetch(IDS[:1]).found[IDS[0]].version == 2
    assert make().fetch(IDS[:1]).found[IDS[0]].version == 2
    assert len(server.requests) == 2


def test_offline_answers_are_those_of_the_cache_of_any_age(
    server: ArxivServer, make: Callable[..., Client], clock: FakeClock
) -> None:
    make().fetch(IDS[:2])
    clock.now += 10_000_000

    answer = make(offline=True).fetch([*IDS[:3], "nonsense"])

    assert list(answer.found) == IDS[:2]
    assert misses(answer) == {**NO_MISS, "unasked": (IDS[2],), "malformed": ("nonsense",)}
    assert not answer.is_complete
    assert len(server.requests) == 1


def test_offline_touches_nothing(tmp_path: Path) -> None:
    Client(cache_folder=str(tmp_path / "none"), offline=True).fetch(IDS)

    assert not (tmp_path / "none").exists()


def test_nothing_is_asked_about_nothing(server: ArxivServer, make: Callable[..., Client], tmp_path: Path) -> None:
    assert make().fetch([]) == Answer({})
    assert make().fetch(["nonsense", "10.1000/x"]).malformed == ("nonsense", "10.1000/x")
    assert server.requests == []
    assert list(tmp_path.iterdir()) == []


def test_a_mirrors_answers_are_not_those_of_another_service(server: ArxivServer, make: Callable[..., Client]) -> None:
    with ArxivServer([record(IDS[0], title="Elsewhere")]) as other:
        assert make(other.url).fetch(IDS[:1]).found[IDS[0]].title == "Elsewhere"
        assert make().fetch(IDS[:1]).found[IDS[0]].title == "Toy Paper 1"
        assert make(other.url, offline=True).fetch(IDS[:1]).found[IDS[0]].title == "Elsewhere"


def test_every_spelling_finds_its_paper_and_every_id_has_one_outcome(
    server: ArxivServer, make: Callable[..., Client]
) -> None:
    given = [
        "2401.00001",
        "arXiv:2401.00001",
        "https://arxiv.org/abs/2401.00002v1",
        "math.GT/0309136",
        "2401.99999",
        "x",
    ]

    answer = make().fetch([*given, given[0]])

    assert {name: (paper.arxiv_id, paper.version) for name, paper in answer.found.items()} == {
        "2401.00001": ("2401.00001", 1),
        "arXiv:2401.00001": ("2401.00001", 1),
        "https://arxiv.org/abs/2401.00002v1": ("2401.00002", 1),
        "math.GT/0309136": ("math/0309136", 1),
    }
    assert misses(answer) == {**NO_MISS, "missing": ("2401.99999",), "malformed": ("x",)}
    assert sorted(server.asked) == ["2401.00001", "2401.00002v1", "2401.99999", "math/0309136"]


def test_versions_are_told_apart_and_kept_apart(server: ArxivServer, make: Callable[..., Client]) -> None:
    server.papers["2401.00001"] = [record("2401.00001", version=n, title=f"Draft {n}") for n in (1, 2, 3)]
    given = ["2401.00001v1", "2401.00001", "2401.00001v2", "2401.00001v4"]

    for _ in range(2):
        answer = make().fetch(given)
        assert {name: paper.title for name, paper in answer.found.items()} == {
            "2401.00001v1": "Draft 1",
            "2401.00001": "Draft 3",
            "2401.00001v2": "Draft 2",
        }
        assert answer.missing == ("2401.00001v4",)
    assert [request.ids for request in server.requests] == [
        ("2401.00001",),
        ("2401.00001v1", "2401.00001v2", "2401.00001v4"),
        ("2401.00001v4",),
    ]


def test_an_answer_about_other_papers_is_none(server: ArxivServer, make: Callable[..., Client]) -> None:
    server.faults = [redirect("/moved?id_list=2401.00009")]

    answer = make().fetch(["2401.00001"])

    assert (answer.found, answer.missing) == ({}, ("2401.00001",))


# Misses


def test_an_id_that_the_service_refuses_is_named_and_the_rest_is_asked_for_again(
    server: ArxivServer, make: Callable[..., Client]
) -> None:
    server.refused = {IDS[3], IDS[7]}
    server.faults = [fine(), error_feed_200()]

    answer = make().fetch(IDS)

    assert misses(answer) == {**NO_MISS, "malformed": (IDS[3], IDS[7])}
    assert len(answer.found) == 82
    assert answer.is_complete
    assert answer.messages == (f"127.0.0.1 takes '{IDS[3]}' for no id", f"127.0.0.1 takes '{IDS[7]}' for no id")
    assert [len(request.ids) for request in server.requests] == [84, 83, 82]


def test_a_service_that_refuses_everything_is_not_asked_for_ever(
    server: ArxivServer, make: Callable[..., Client]
) -> None:
    server.refused = set(IDS)

    answer = make().fetch(IDS)

    assert len(answer.malformed) == client.MAX_REFUSALS
    assert len(answer.unparseable) == 84 - client.MAX_REFUSALS
    assert len(server.requests) == client.MAX_REFUSALS + 1


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (unreadable_400(), "the query was refused: 'Invalid query string'"),
        (sending(b"<html><title>Bad</title></html>", 400), "instead of a feed came a web page: 'Bad'"),
        (sending(b"", 400), "instead of a feed came nothing"),
        (sending(error_feed("incorrect id format for x", "x", Era.CURRENT), 400), "the query was refused: 'incorrect id format for x'"),
    ],
)  # fmt: skip
def test_a_refusal_that_names_no_id_is_not_repeated(
    server: ArxivServer, make: Callable[..., Client], fault: Fault, reason: str
) -> None:
    server.faults = [fault]

    answer = make().fetch(MANY)

    assert misses(answer) == {**NO_MISS, "unparseable": tuple(MANY[:100])}
    assert len(answer.found) == 150
    assert answer.messages == (f"no answer from 127.0.0.1 about 100 papers: {reason}",)
    assert len(server.requests) == 3


def test_a_feed_with_status_400_is_a_refusal_all_the_same(server: ArxivServer, make: Callable[..., Client]) -> None:
    server.faults = [sending(arxiv_feeds.feed([]), 400)]

    assert make().fetch(IDS[:2]).unparseable == tuple(IDS[:2])
    assert len(server.requests) == 1


def test_an_id_that_was_never_found_is_asked_for_once(server: ArxivServer, make: Callable[..., Client]) -> None:
    assert make().fetch([IDS[0], "2401.99999"]).missing == ("2401.99999",)
    assert server.asked == [IDS[0], "2401.99999"]


def test_an_id_that_was_found_before_is_asked_for_again_before_it_is_missing(
    server: ArxivServer, make: Callable[..., Client]
) -> None:
    make().fetch(IDS[:1])
    gone, again = IDS[0], IDS[1]
    del server.papers[gone]
    flickering = server.papers.pop(again)
    answers = []

    def appear(progress: Progress) -> None:
        if len(server.requests) == 2:  # the first answer of this run has come without it
            server.papers[again] = flickering

    answers.append(make(refresh=True).fetch([gone, again, *IDS[2:5]], known=[f"arXiv:{again}"], progress=appear))

    assert misses(answers[0]) == {**NO_MISS, "missing": (gone,)}
    assert again in answers[0].found
    assert [request.ids for request in server.requests[1:]] == [(gone, again, *IDS[2:5]), (gone, again)]
    assert make(offline=True).fetch([gone]).missing == (gone,), "what the cache had of it is no answer any more"


def test_a_paper_that_is_missing_is_asked_for_again_and_may_come_back(
    server: ArxivServer, make: Callable[..., Client]
) -> None:
    make().fetch(IDS[:1])
    gone = server.papers.pop(IDS[0])
    make(refresh=True).fetch(IDS[:1])

    assert make().fetch(IDS[:1]).missing == (IDS[0],), "within a day of the answer that there was"
    server.papers[IDS[0]] = gone
    assert make().fetch(IDS[:1]).found[IDS[0]].title == "Toy Paper 1"
    assert make(offline=True).fetch(IDS[:1]).found[IDS[0]].title == "Toy Paper 1"


def test_an_answer_without_any_entry_is_not_believed_at_once(server: ArxivServer, make: Callable[..., Client]) -> None:
    server.faults = [empty()]

    assert len(make().fetch(IDS).found) == 84
    assert [len(request.ids) for request in server.requests] == [84, 84]


def test_a_second_question_that_fails_leaves_no_false_miss(server: ArxivServer, make: Callable[..., Client]) -> None:
    server.faults = [empty()]
    server.always = rate_exceeded()

    assert misses(make().fetch(IDS)) == {**NO_MISS, "throttled": tuple(IDS)}


def test_an_entry_that_cannot_be_read_is_no_miss(server: ArxivServer, make: Callable[..., Client]) -> None:
    server.papers[IDS[0]] = [record(IDS[0], title=" ")]

    answer = make().fetch([IDS[0], IDS[1], "2401.99999"])

    assert misses(answer) == {**NO_MISS, "unparseable": (IDS[0],), "missing": ("2401.99999",)}
    assert answer.messages == (f"the entry of {IDS[0]} has no usable title",)


def test_an_entry_of_no_paper_may_be_that_of_any(server: ArxivServer, make: Callable[..., Client]) -> None:
    server.papers[IDS[0]] = [record("nonsense")]

    answer = make().fetch([IDS[0], IDS[1], "2401.99999"])

    assert misses(answer) == {**NO_MISS, "unparseable": (IDS[0], "2401.99999")}
    assert IDS[1] in answer.found


# Trouble


@pytest.mark.parametrize(
    ("faults", "waits"),
    [
        ([rate_exceeded(), rate_exceeded()], [(30, 37.5), (60, 75)]),
        ([rate_exceeded("40")], [(40, 40)]),
        ([rate_exceeded("2")], [(30, 37.5)]),
        ([rate_exceeded("soon")], [(30, 37.5)]),
        ([busy(), sending(b"", 502)], [(30, 37.5), (60, 75)]),
        ([sending(b"", 500), reset(), short()], [(30, 37.5), (6, 7.5), (3, 3.75)]),
        ([reset(), reset(), reset()], [(3, 3.75), (6, 7.5), (12, 15)]),
        ([cut(0.3)], [(3, 3.75)]),
        ([short(0.9), sending(b""), sending(b"<feed")], [(3, 3.75), (6, 7.5), (12, 15)]),
        ([sending(b"Please wait", content_type="text/plain"), access_denied(200)], [(3, 3.75), (6, 7.5)]),
    ],
    ids=["429", "retry-after", "short-retry-after", "bad-retry-after", "5xx", "mixed", "reset", "cut", "unreadable", "page"],
)  # fmt: skip
def test_trouble_of_the_moment_is_waited_for(
    server: ArxivServer, make: Callable[..., Client], faults: list[Fault], waits: list[tuple[float, float]]
) -> None:
    server.faults = list(faults)
    seen: list[Progress] = []

    answer = make().fetch(IDS, progress=seen.append)

    assert (len(answer.found), answer.messages) == (84, ())
    assert len(server.requests) == len(faults) + 1
    longest: list[float] = []
    for before, now in pairwise([Progress(0, 0), *seen]):
        if now.reason and now.waiting_seconds > before.waiting_seconds:
            longest.append(now.waiting_seconds)
    assert len(longest) == len(waits)
    assert all(low <= wait <= high for wait, (low, high) in zip(longest, waits, strict=True)), longest


def test_a_time_to_wait_until_is_kept_to(server: ArxivServer, make: Callable[..., Client], clock: FakeClock) -> None:
    server.faults = [rate_exceeded(email.utils.formatdate(clock.now + 100, usegmt=True))]

    assert len(make().fetch(IDS).found) == 84
    assert 99 <= sum(clock.slept) <= 101


def test_patience_has_an_end_and_what_came_before_is_kept(
    server: ArxivServer, make: Callable[..., Client], clock: FakeClock
) -> None:
    server.faults = [fine()]
    server.always = rate_exceeded()

    answer = make().fetch(MANY)

    assert list(answer.found) == MANY[:100]
    assert misses(answer) == {**NO_MISS, "throttled": tuple(MANY[100:])}
    assert not answer.is_complete
    assert answer.messages == ("no answer from 127.0.0.1 about 150 papers: HTTP 429 (plain text: 'Rate exceeded.')",)
    assert 300 < sum(clock.slept) < 620
    server.always = None
    assert len(make().fetch(MANY).found) == 250
    assert set(server.requests[-2].ids) | set(server.requests[-1].ids) == set(MANY[100:])


@pytest.mark.parametrize(
    ("retry_after", "seconds"), [("3600", "3600"), ("99999999999", "99999999999"), ("9" * 5000, "1000000000000")]
)
def test_a_wait_that_is_asked_for_and_too_long_is_not_begun(
    server: ArxivServer, make: Callable[..., Client], clock: FakeClock, retry_after: str, seconds: str
) -> None:
    server.always = rate_exceeded(retry_after)

    answer = make().fetch(IDS)

    assert answer.throttled == tuple(IDS)
    assert answer.messages[0].endswith(f"HTTP 429 (plain text: 'Rate exceeded.'); it asks to wait {seconds} s")
    assert (len(server.requests), sum(clock.slept)) == (1, 0)


def test_patience_is_the_callers_to_give(server: ArxivServer, make: Callable[..., Client], clock: FakeClock) -> None:
    server.always = reset()

    assert make(patience_seconds=20.0).fetch(IDS).throttled == tuple(IDS)
    assert sum(clock.slept) < 30


@pytest.mark.parametrize(
    ("fault", "outcome", "requests", "reason"),
    [
        (cut(), "throttled", 8, r"broke the connection: IncompleteRead\(\d+ bytes read, \d+ more expected\)"),
        (reset(), "throttled", 8, "broke the connection: connection reset by peer"),
        (busy(), "throttled", 5, r"HTTP 503 \(a web page: '503 Service Unavailable'\)"),
        (short(), "unparseable", 4, "instead of a feed came a part of one"),
        (sending(b"<a>&nbsp;"), "unparseable", 4, "instead of a feed came malformed XML"),
        (sending(b""), "unparseable", 4, "instead of a feed came nothing"),
        (sending(b"<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>"), "unparseable", 1, "XML with declarations of its own"),
        (sending(b"<rss/>"), "unparseable", 1, "instead of a feed came other XML"),
    ],
)
def test_trouble_without_end_is_given_up_and_said(
    server: ArxivServer, make: Callable[..., Client], fault: Fault, outcome: str, requests: int, reason: str
) -> None:
    server.always = fault

    answer = make().fetch(IDS)

    assert misses(answer) == {**NO_MISS, outcome: tuple(IDS)}
    assert re.search(reason, answer.messages[0])
    assert answer.messages[0].isprintable()
    assert len(server.requests) <= requests


@pytest.mark.parametrize(("fault", "reason"), [(slow(9), "in time"), (trickle(0.02), "had no end after 0.1 s")])
def test_a_service_that_takes_for_ever_is_given_up(
    server: ArxivServer, make: Callable[..., Client], fault: Fault, reason: str
) -> None:
    server.always = fault

    answer = make(open_transport=lambda: Transport(answer_seconds=0.1)).fetch(IDS)

    assert answer.throttled == tuple(IDS)
    assert reason in answer.messages[0]


@pytest.mark.parametrize(
    ("fault", "requests", "message"),
    [
        (access_denied(), 1, "127.0.0.1 refuses to answer: HTTP 403 (a web page: 'Access Denied')\nWait an hour"),
        (
            access_denied(200),
            4,
            "127.0.0.1 sends something else than metadata: HTTP 200 (a web page: 'Access Denied')\nThe login page of",
        ),
        (sending(b"Not Acceptable", 406), 1, "127.0.0.1 refuses to answer: HTTP 406 (plain text: 'Not Acceptable')\nWait"),
        (sending(b"", 404), 1, "127.0.0.1 refuses to answer: HTTP 404 (nothing)\nWait"),
        (redirect(""), 1, "127.0.0.1 refuses to answer: HTTP 301 (nothing)\nWait"),
        (sending(arxiv_feeds.feed([]), 401), 1, "127.0.0.1 refuses to answer: HTTP 401\nIt does not take the key, or wants one"),
    ],
    ids=["403", "200", "406", "404", "301", "401"],
)  # fmt: skip
def test_a_service_that_refuses_us_is_left_alone(
    server: ArxivServer, make: Callable[..., Client], fault: Fault, requests: int, message: str
) -> None:
    server.faults = [fine()]
    server.always = fault

    with pytest.raises(UpstreamError) as caught:
        make().fetch(MANY)

    assert str(caught.value).startswith(message)
    assert caught.value.exit_code is ExitCode.UPSTREAM
    assert len(server.requests) == 1 + requests
    assert len(make(offline=True).fetch(MANY).found) == 100


def test_a_redirect_to_another_host_is_not_followed(server: ArxivServer, make: Callable[..., Client]) -> None:
    server.always = redirect("https://example.org/api/query")

    with pytest.raises(HttpError, match=r"redirects to 'https://example.org/api/query', which is another host; it was"):
        make().fetch(IDS)

    assert len(server.requests) == 1


def test_a_redirect_on_the_same_host_is_a_request_of_its_own(
    server: ArxivServer, make: Callable[..., Client], clock: FakeClock
) -> None:
    server.faults = [redirect(f"/moved?id_list={IDS[0]}", 307)]

    assert list(make().fetch(IDS[:1]).found) == IDS[:1]
    assert clock.slept == [1.0, 1.0, 1.0]


def test_a_service_that_is_not_there_is_said_soon(make: Callable[..., Client], clock: FakeClock) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/api/query"

        with pytest.raises(UpstreamError) as caught:
            make(url).fetch(IDS)

    assert str(caught.value) == (
        f"127.0.0.1 could not be asked about 84 papers: no connection to '{url}': connection refused\n"
        "Check the network and try again; --offline answers from the cache alone."
    )
    assert caught.value.exit_code is ExitCode.UPSTREAM
    assert sum(clock.slept) < 10


def test_without_a_network_the_message_says_so(
    clock: FakeClock,
    tmp_path: Path,
    loopback_only: list[str],
) -> None:
    with pytest.raises(
        UpstreamError,
        match=r"^arXiv could not be asked about 84 papers: no connection to "
        r"'https://export.arxiv.org/api/query': name or service not known\nCheck the network",
    ):
        Client(cache_folder=str(tmp_path), clock=clock).fetch(IDS)

    assert set(loopback_only) == {"export.arxiv.org"}
    assert len(loopback_only) == 3
    loopback_only.clear()


def test_an_address_that_is_too_long_is_halved(server: ArxivServer, make: Callable[..., Client]) -> None:
    server.longest_line_bytes = 400

    assert len(make().fetch(IDS).found) == 84
    assert [len(request.ids) for request in server.requests] == [84, 42, 21, 21, 21, 21]
    server.longest_line_bytes = 10
    answer = make(refresh=True).fetch(IDS[:2])
    assert answer.unparseable == tuple(IDS[:2])
    assert answer.messages[0] == "no answer from 127.0.0.1 about 1 paper: HTTP 414: the address is too long"


def test_an_answer_that_is_too_large_is_halved(server: ArxivServer, make: Callable[..., Client]) -> None:
    client = make(open_transport=lambda: Transport(max_body_bytes=20_000))

    assert len(client.fetch(IDS).found) == 84
    assert [len(request.ids) for request in server.requests][:3] == [84, 42, 21]


def test_a_feed_of_too_many_elements_is_halved(server: ArxivServer, make: Callable[..., Client]) -> None:
    server.faults = [sending(b"<a>" * 100)]

    assert len(make().fetch(IDS).found) == 84
    assert [len(request.ids) for request in server.requests] == [84, 42, 42]


# Processes

FETCHER = """
import sys
from orchtrace_corpus.corpus.sources.arxiv.client import Client
client = Client(sys.argv[1], cache_folder=sys.argv[2], spacing_seconds=float(sys.argv[3]))
print("ready", flush=True)
answer = client.fetch(sys.argv[4].split(","))
print(len(answer.found), flush=True)
"""


def fetcher(server: ArxivServer, folder: Path, spacing_seconds: float, ids: list[str]) -> "subprocess.Popen[str]":
    """A process that fetches; its first line says that it begins."""
    command = [sys.executable, "-c", FETCHER, server.url, str(folder), str(spacing_seconds), ",".join(ids)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


@pytest.mark.parametrize("seed", mostly_slow(range(10), [3, 4]))
def test_a_killed_run_goes_on_where_it_was(
    server: ArxivServer, make: Callable[..., Client], tmp_path: Path, seed: int
) -> None:
    server.always = slow(0.02)
    child = processes.fork(Client(server.url, cache_folder=str(tmp_path), spacing_seconds=0.05).fetch, MANY)
    time.sleep(random.Random(seed).uniform(0.0, 0.4))
    processes.killed(child, signal.SIGINT if seed % 5 == 4 else signal.SIGKILL)
    had = set(make(offline=True, clock=None).fetch(MANY).found)
    before = len(server.asked)

    answer = make(clock=None, spacing_seconds=0.01).fetch(MANY)

    assert list(answer.found) == MANY
    assert set(server.asked[before:]) == set(MANY) - had
    assert list(tmp_path.rglob("*.tmp")) == []


def test_two_processes_keep_the_spacing_and_one_connection(server: ArxivServer, tmp_path: Path) -> None:
    server.always = slow(0.05)
    children = [fetcher(server, tmp_path, 0.3, ids) for ids in (MANY[:125], MANY[125:])]
    for child in children:
        with child:
            assert child.stdout is not None
            assert child.stdout.read() == "125\n"

    times = [request.time for request in server.requests]
    assert len(times) == 4
    assert all(later - earlier >= 0.3 for earlier, later in pairwise(times)), times


def test_what_another_process_is_asking_for_is_not_asked_for_twice(server: ArxivServer, tmp_path: Path) -> None:
    server.always = slow(0.5)
    children = [fetcher(server, tmp_path, 0.0, IDS) for _ in range(2)]
    for child in children:
        with child:
            assert child.stdout is not None
            assert child.stdout.read() == "84\n"

    assert len(server.requests) == 1


def test_a_turn_that_never_comes_is_said_so(server: ArxivServer, make: Callable[..., Client], tmp_path: Path) -> None:
    from filelock import FileLock

    make().fetch(IDS[:1])
    (lock,) = tmp_path.rglob("*.lock")
    with FileLock(lock):
        answer = make(patience_seconds=5.0).fetch(IDS)

    assert answer.throttled == tuple(IDS[1:])
    assert answer.messages == (
        "no answer from 127.0.0.1 about 83 papers: another process was asking for more than 5 s",
    )
    assert len(server.requests) == 1


def test_leftovers_of_killed_writers_are_swept(
    server: ArxivServer, make: Callable[..., Client], tmp_path: Path
) -> None:
    make().fetch(IDS[:1])
    (kept,) = tmp_path.rglob("2401.00001.json")
    (kept.parent / ".corpus-x.tmp").write_text("half")

    make().fetch(IDS[:2])

    assert sorted(path.name for path in kept.parent.iterdir()) == ["2401.00001.json", "2401.00002.json"]


def test_progress_is_told_from_beginning_to_end(server: ArxivServer, make: Callable[..., Client]) -> None:
    make().fetch(MANY[:20])
    server.faults = [fine(), rate_exceeded()]
    seen: list[Progress] = []

    make().fetch(MANY, progress=seen.append)

    assert seen[0] == Progress(20, 250)
    assert Progress(120, 250, 3.0) in seen
    assert any(told.reason == "HTTP 429 (plain text: 'Rate exceeded.')" and told.waiting_seconds > 29 for told in seen)
    assert seen[-1] == Progress(250, 250)
    assert [told.done for told in seen] == sorted(told.done for told in seen)


def test_importing_the_client_imports_no_network() -> None:
    code = (
        "import sys, orchtrace_corpus.corpus.sources.arxiv.client\n"
        "print([name for name in ('requests', 'urllib3', 'defusedxml', 'ssl', 'socket') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert result.stdout == "[]\n"


def test_the_document_states_the_numbers_in_force() -> None:
    text = re.sub(r"\s+", " ", (ROOT / "docs" / "arxiv.md").read_text(encoding="utf-8"))

    assert f"at least {SPACING_SECONDS:g} seconds from the end of one" in text
    assert f"never asked more often than every {SPACING_SECONDS:g} seconds" in text
    assert f"Up to {client.MAX_IDS} papers" in text
    assert f"not asked for again for {MAX_AGE_SECONDS / 3600:g} hours" in text
    first_seconds = http.BUSY_SPACINGS * SPACING_SECONDS
    assert (
        f"after about {first_seconds:g} s, then {2 * first_seconds:g} s, and so on, up to {http.MAX_RETRIES} times"
        in text
    )
    assert (
        f"no whole answer in {budget.REQUEST_SECONDS:g} s, redirects included | the same again after {SPACING_SECONDS:g} s"
        in text
    )
    assert f"or empty | the same again, up to {http.MAX_RETRIES_UNREADABLE} times" in text
    assert f"| {budget.TRIES_SECONDS / 60:g} minutes of such trouble" in text
    assert f"an answer of more than {budget.MAX_BODY_BYTES // 2**20} MiB" in text
    assert f"after {http.MAX_RETRIES_UNREACHABLE} further attempts" in text
