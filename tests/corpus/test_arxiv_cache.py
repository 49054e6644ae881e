"""What lies between a client and the network: ids, addresses, the cache and the limiter, whatever clocks and disks do."""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.corpus.model.metadata import Metadata
from orchtrace_corpus.corpus.sources.arxiv.client import (
    DEFAULT_URL,
    Cache,
    base_url,
    find_service,
    is_versioned,
    request_form,
    without_subject_class,
)
from orchtrace_corpus.corpus.sources.limiter import BusyError, CacheError, Clock, Limiter, default_folder
from tests.corpus import processes
from tests.corpus.arxiv_feeds import record

PAPER = record("2401.00001", title="Ünïcode 𝒜", version=2, doi="10.1000/x")
OLD_PAPER = record("math/0309136")


class FakeClock(Clock):
    """A clock that only moves when somebody sleeps, or sets it."""

    def __init__(self) -> None:
        self.now, self.up = 1_800_000_000.0, 5000.0
        self.slept: list[float] = []
        self.wall, self.steady, self.sleep = lambda: self.now, lambda: self.up, self._sleep

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        self.up += seconds


# Ids


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("2401.00001", "2401.00001"),
        (" arXiv:2401.00001v3 ", "2401.00001v3"),
        ("https://arxiv.org/abs/2401.00001v12#S1", "2401.00001v12"),
        ("https://arxiv.org/pdf/2401.00001v2.pdf", "2401.00001v2"),
        ("https://doi.org/10.48550/arXiv.2401.00001", "2401.00001"),
        ("math.GT/0309136", "math/0309136"),
        ("math.GT/0309136v2", "math/0309136v2"),
        ("cond-mat/9901001", "cond-mat/9901001"),
        ("2401.00001v0", None),
        ("2401.00001v12345", None),
        ("2401.00001,2401.00002", None),
        ("2401.00001&x=1", None),
        ("２401.00001", None),
        ("10.1000/x", None),
        ("", None),
    ],
)
def test_ids_are_asked_for_in_one_form(text: str, asked: str | None) -> None:
    assert request_form(text) == asked
    if asked:
        assert request_form(asked) == asked


@given(st.text(max_size=40))
def test_nothing_but_ids_is_ever_asked_for(text: str) -> None:
    asked = request_form(text)

    assert asked is None or set(asked) <= set("0123456789.-/vabcdefghijklmnopqrstuwxyz")


def test_versions_are_told_from_ids() -> None:
    assert [is_versioned(asked) for asked in ("2401.00001", "2401.00001v1", "solv-int/9901001")] == [False, True, False]
    assert without_subject_class("math.GT/0309136") == "math/0309136"


# Addresses


def test_the_address_is_that_of_the_option_else_the_environment_else_arxiv(monkeypatch: pytest.MonkeyPatch) -> None:
    assert base_url() == DEFAULT_URL
    monkeypatch.setenv("ORCHTRACE_ARXIV_URL", "http://mirror.example:8080/api/query/")
    assert base_url() == "http://mirror.example:8080/api/query"
    assert base_url("HTTP://127.0.0.1:1/q") == "http://127.0.0.1:1/q"
    assert base_url("http://[::1]:80/q") == "http://[::1]:80/q"


@pytest.mark.parametrize("url", ["http://export.arxiv.org/api/query", "https://EXPORT.arxiv.org:443/api/query/"])
def test_arxiv_is_asked_with_tls_without_being_told_so(url: str) -> None:
    assert base_url(url) == DEFAULT_URL


@pytest.mark.parametrize(
    "url",
    [
        "arxiv.org",
        "ftp://arxiv.org/x",
        "http://",
        "http://a/?x=1",
        "http://a/#x",
        "http://me:secret@a/",
        "http://a b/",
        "http://a:99999/",
        "http://[::1/",
        "http://é.org/",
        "http://a\n/",
        "http://../x\\y",
    ],
)
def test_what_is_no_address_of_a_service_is_wrong_use(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        CommandUseError, match=r"^the arXiv URL is not the address of a service: '.*'\nIt looks like https"
    ):
        base_url(url)
    monkeypatch.setenv("ORCHTRACE_ARXIV_URL", url)
    with pytest.raises(CommandUseError, match=r"^ORCHTRACE_ARXIV_URL is not the address") as caught:
        base_url()
    assert caught.value.exit_code is ExitCode.USAGE


@pytest.mark.parametrize("host", ["arxiv.org", "export.arxiv.org", "ARXIV.org.", "x.arxiv.org"])
@pytest.mark.parametrize("spacing_seconds", [0, 2.9, None])
def test_arxiv_is_never_asked_more_often_than_its_terms_allow(
    host: str, spacing_seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCHTRACE_ARXIV_SPACING", "0")

    asked = find_service(base_url(f"https://{host}/api/query"), spacing_seconds)

    assert asked.spacing_seconds == 3.0
    assert asked.folder == "arxiv.org"
    assert asked.hosts == ("arxiv.org", "export.arxiv.org")


def test_a_mirror_is_asked_as_often_as_its_owner_says(monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = "https://notarxiv.org/api/query"

    assert find_service(mirror).spacing_seconds == 3.0
    assert find_service(mirror, 0.5).spacing_seconds == 0.5
    monkeypatch.setenv("ORCHTRACE_ARXIV_SPACING", "0.25")
    assert find_service(mirror).spacing_seconds == 0.25
    assert find_service(mirror).hosts == ()
    assert find_service(mirror).folder != find_service("https://notarxiv.org/query").folder
    assert find_service("https://arxiv.org/api/query", 10).spacing_seconds == 10


@pytest.mark.parametrize("given_text", ["x", "-1", "nan", "inf"])
def test_what_is_no_number_of_seconds_is_wrong_use(given_text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHTRACE_ARXIV_SPACING", given_text)

    with pytest.raises(CommandUseError, match=f"not a number of seconds: '{given_text}'"):
        find_service("http://127.0.0.1/")


# The cache


def test_answers_are_kept_by_id_and_by_version(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path / "new" / "folder"), FakeClock().wall)

    cache.write_answer("2401.00001", PAPER)
    cache.write_answer("math/0309136v1", OLD_PAPER)

    assert cache.read("2401.00001") == PAPER
    assert cache.read("2401.00001v2") is None
    assert cache.read("math/0309136v1") == OLD_PAPER
    assert cache.read("math/0309136") is None
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == [
        "2401.00001.json",
        "math_0309136v1.json",
    ]


def test_answers_grow_old(tmp_path: Path) -> None:
    clock = FakeClock()
    cache = Cache(str(tmp_path), clock.wall)
    cache.write_answer("2401.00001", PAPER)

    clock.now += 100
    assert cache.read("2401.00001", 100) == PAPER
    clock.now += 1
    assert cache.read("2401.00001", 100) is None
    assert cache.read("2401.00001") == PAPER


def test_an_answer_from_the_future_is_of_no_known_age(tmp_path: Path) -> None:
    clock = FakeClock()
    cache = Cache(str(tmp_path), clock.wall)
    cache.write_answer("2401.00001", PAPER)

    clock.now -= 10
    assert cache.read("2401.00001", 100) is None
    assert cache.read("2401.00001") == PAPER


def entry_with(path: Path, change: dict[str, Any]) -> bytes:
    """A kept answer with some of its values changed; a `metadata.` before a name reaches into it."""
    content = json.loads(path.read_text())
    for name, value in change.items():
        field = name.removeprefix("metadata.")
        if name == field:
            content[["form", "asked", "asked_at", "answer"].index(name)] = value
        elif field == "more":
            content[-1].append(value)
        else:
            content[-1][Metadata._fields.index(field)] = value
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b"9" * 5000,
        b"x" * (5 * 1024 * 1024),
        {"form": 1},
        {"asked": "2401.00002"},
        {"asked_at": "now"},
        {"asked_at": None},
        {"answer": None},
        {"answer": {}},
        {"answer": []},
        {"metadata.version": "2"},
        {"metadata.version": True},
        {"metadata.title": 3},
        {"metadata.authors": "Ada Toy"},
        {"metadata.authors": [None]},
        {"metadata.doi": 10.1},
        {"metadata.more": "x"},
        {"metadata.arxiv_id": "2401.00002"},
    ],
    ids=str,
)  # fmt: skip
def test_a_damaged_answer_is_none_and_is_replaced(tmp_path: Path, damage: bytes | dict[str, Any]) -> None:
    cache = Cache(str(tmp_path), FakeClock().wall)
    cache.write_answer("2401.00001", PAPER)
    path = tmp_path / "2401.00001.json"
    path.write_bytes(damage if isinstance(damage, bytes) else entry_with(path, damage))

    assert cache.read("2401.00001") is None
    cache.write_answer("2401.00001", PAPER)
    assert cache.read("2401.00001") == PAPER


def test_a_folder_in_the_place_of_an_answer_is_none(tmp_path: Path) -> None:
    (tmp_path / "2401.00001.json").mkdir()

    assert Cache(str(tmp_path), time.time).read("2401.00001") is None


def test_a_cache_that_cannot_be_written_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(
        CacheError, match=r"cannot write the cache .*file.*: .*\nName another folder with ORCHTRACE_CACHE"
    ):
        Cache(str(tmp_path / "file"), time.time).write_answer("2401.00001", PAPER)
    (tmp_path / "2401.00001.json").mkdir()
    with pytest.raises(CacheError, match="Is a directory"):
        Cache(str(tmp_path), time.time).write_answer("2401.00001", PAPER)


def test_the_folder_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert default_folder() == "/home/somebody/.cache/orchtrace-corpus"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_folder() == "/home/somebody/.cache/orchtrace-corpus"
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache")
    assert default_folder() == "/var/cache/orchtrace-corpus"
    monkeypatch.setenv("ORCHTRACE_CACHE", str(tmp_path))
    assert default_folder() == str(tmp_path)


# The limiter


def limiter(path: Path, clock: Clock, spacing_seconds: float = 3.0) -> Limiter:
    return Limiter(str(path), spacing_seconds, clock, lambda seconds, reason: None)


def test_requests_begin_apart_within_a_turn_and_across_turns(tmp_path: Path) -> None:
    clock = FakeClock()
    starts = []
    for _ in range(2):
        with limiter(tmp_path / "lock", clock).turn(10) as turn:
            for _ in range(2):
                turn.begin()
                starts.append(clock.up)

    assert starts == [5000, 5003, 5006, 5009]


def test_the_time_that_a_request_takes_is_none_of_the_spacing(tmp_path: Path) -> None:
    clock = FakeClock()
    with limiter(tmp_path / "lock", clock).turn(10) as turn:
        turn.begin()
        clock.up += 2
        clock.now += 2
        turn.end()
        turn.begin()

    assert sum(clock.slept) == 3.0


def test_time_that_has_passed_is_not_waited_for_again(tmp_path: Path) -> None:
    clock = FakeClock()
    for pause in (2.0, 5.0, 0.0):
        with limiter(tmp_path / "lock", clock).turn(10) as turn:
            turn.begin()
        clock.now += pause
        clock.up += pause

    assert sum(clock.slept) == 1.0


@pytest.mark.parametrize(
    ("wall_step", "steady_step", "waited"),
    [
        (1.0, 1.0, 2.0),
        (3600.0, 1.0, 2.0),  # the clock was set forward meanwhile
        (-3600.0, 1.0, 3.0),  # or back
        (10.0, -4000.0, 0.0),  # the machine was started anew
        (1.0, -4000.0, 2.0),
        (-3600.0, -4000.0, 3.0),
        (3600.0, 3600.0, 0.0),
    ],
)
def test_clocks_may_jump_and_the_spacing_is_kept(
    tmp_path: Path, wall_step: float, steady_step: float, waited: float
) -> None:
    clock = FakeClock()
    with limiter(tmp_path / "lock", clock).turn(10) as turn:
        turn.begin()
    clock.now += wall_step
    clock.up += steady_step

    with limiter(tmp_path / "lock", clock).turn(10) as turn:
        turn.begin()

    assert sum(clock.slept) == pytest.approx(waited)


@pytest.mark.parametrize("content", ["x", "1 2 3", "nan nan", "inf 1", "\x00" * 42, "1"])
def test_a_damaged_lock_file_counts_as_a_request_just_now(tmp_path: Path, content: str) -> None:
    clock = FakeClock()
    (tmp_path / "lock").write_text(content)

    with limiter(tmp_path / "lock", clock).turn(10) as turn:
        turn.begin()
        turn.begin()

    assert sum(clock.slept) == 6.0


def test_only_one_process_has_its_turn(tmp_path: Path) -> None:
    clock = FakeClock()
    with limiter(tmp_path / "lock", Clock()).turn(10):
        with (
            pytest.raises(BusyError, match=r"^another process was asking for more than 10 s$"),
            limiter(tmp_path / "lock", clock).turn(10),
        ):
            raise AssertionError("never reached")
        assert sum(clock.slept) == pytest.approx(10, abs=0.1)

    with limiter(tmp_path / "lock", clock).turn(10):
        pass


def test_a_lock_that_cannot_be_made_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()

    turn = limiter(tmp_path / "lock", Clock(), 0.0).turn(1)
    with pytest.raises(CacheError, match=r"cannot write the cache .*lock"), turn as held:
        held.begin()


def hold_a_turn(lock: str) -> None:
    with Limiter(lock, 0.5, Clock(), lambda seconds, reason: None).turn(10) as turn:
        turn.begin()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        time.sleep(60)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_process_that_ends_leaves_its_turn_but_its_request_counts(tmp_path: Path, end: signal.Signals) -> None:
    reader, writer = os.pipe()
    child = processes.fork(hold_a_turn, str(tmp_path / "lock"), files=[writer, writer])
    os.close(writer)
    with open(reader, encoding="utf-8") as said:
        assert said.readline() == "ready\n"
        processes.killed(child, end)
    waits: list[float] = []
    clock = Clock()
    clock.sleep = lambda seconds: None
    with Limiter(str(tmp_path / "lock"), 60, clock, lambda seconds, reason: waits.append(seconds)).turn(0) as turn:
        turn.begin()

    assert 0 < waits[0] < 60


def test_that_there_is_no_such_paper_is_kept_until_there_is_one(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path), FakeClock().wall)
    assert not cache.is_missing("2401.00001")

    cache.write_answer("2401.00001", PAPER)
    cache.write_answer("2401.00001", False)
    assert (cache.read("2401.00001"), cache.is_missing("2401.00001")) == (None, True)
    assert not cache.is_missing("2401.00001v2")

    cache.write_answer("2401.00001", PAPER)
    assert (cache.read("2401.00001"), cache.is_missing("2401.00001")) == (PAPER, False)


@pytest.mark.parametrize("damage", [b"", b"[]", b"[2]", b'[2, "x", 0, false]', b"\xff"])
def test_a_damaged_answer_says_of_no_paper_that_it_is_missing(tmp_path: Path, damage: bytes) -> None:
    cache = Cache(str(tmp_path), FakeClock().wall)
    cache.write_answer("2401.00001", False)
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage)

    assert not cache.is_missing("2401.00001")
