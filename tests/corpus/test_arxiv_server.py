"""The local server does what arXiv's does; what is tested against it would otherwise prove nothing."""

import base64
import hashlib
import http.client
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.corpus.arxiv_server import (
    FAULTS,
    ArxivServer,
    Era,
    busy,
    cut,
    empty,
    error_feed_200,
    rate_exceeded,
    record,
    records,
    records_of,
    redirect,
    reset,
    slow,
    unreadable_400,
)
from tests.loopback import loopback_only  # noqa: F401 - guards every test here


@pytest.fixture
def server() -> Iterator[ArxivServer]:
    papers = [*records(30), record("2401.00001", version=2, comment="withdrawn"), record("math/0309136")]
    with ArxivServer(papers) as running:
        yield running


def ask(server: ArxivServer, query: str, data: bytes | None = None) -> tuple[int, str]:
    """Status and body of an answer, redirects followed."""
    try:
        with urllib.request.urlopen(f"{server.url}{query and '?'}{query}", data) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def found(body: str) -> list[str]:
    """The ids in a feed."""
    return re.findall(r"<id>http://arxiv.org/abs/(.+?)</id>", body)


def test_ids_are_looked_up_as_they_are_sent(server: ArxivServer) -> None:
    for asked, names in {
        "2401.00002": ["2401.00002v1"],
        "math/0309136": ["math/0309136v1"],
        "math.GT/0309136": [],
        "arXiv:2401.00002": [],
        "%202401.00002": [],
        "2401.00002junk": [],
        "1234.12345": [],
        "2401.99999": [],
    }.items():
        status, body = ask(server, f"id_list={asked}")
        assert (asked, status, found(body)) == (asked, 200, names)


def test_versions_are_found_by_number_and_the_newest_without(server: ArxivServer) -> None:
    for asked, names in {
        "2401.00001": {"2401.00001v2"},
        "2401.00001v1": {"2401.00001v1"},
        "2401.00001v3": set(),
        "2401.00001,2401.00001v1": {"2401.00001v1", "2401.00001v2"},
    }.items():
        assert set(found(ask(server, f"id_list={asked}")[1])) == names
    assert "<arxiv:comment>withdrawn</arxiv:comment>" in ask(server, "id_list=2401.00001")[1]


def test_the_first_malformed_id_fails_the_whole_request(server: ArxivServer) -> None:
    status, body = ask(server, "id_list=2401.00002,nonsense,also-nonsense&max_results=3")

    assert status == 400
    assert "<id>https://arxiv.org/api/errors#incorrect_id_format_for_nonsense</id>" in body
    assert "<summary>incorrect id format for nonsense</summary>" in body
    assert "also-nonsense" not in body
    assert ask(server, "id_list=2401.00002,")[0] == 400


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ("", 400, "Either a search_query or id_list must be specified for the classic API."),
        ("id_list=2401.00001&max_results=x", 400, "max_results must be an integer"),
        ("id_list=2401.00001&start=-1", 400, "start must be non-negative"),
        ("id_list=2401.00001&max_results=2001", 400, "max_results must be at most 2000"),
        ("id_list=2401.00001&max_results=0", 500, "500 Internal Server Error"),
    ],
)
def test_bad_queries_are_refused_with_its_messages(server: ArxivServer, query: str, status: int, message: str) -> None:
    answered, body = ask(server, query)

    assert answered == status
    assert message in body


def test_ten_results_come_unless_more_are_asked_for_and_in_another_order(server: ArxivServer) -> None:
    asked = [f"2401.{number:05}" for number in range(2, 27)]

    assert len(found(ask(server, f"id_list={','.join(asked)}")[1])) == 10
    names = found(ask(server, f"id_list={','.join(asked)}&max_results=25")[1])
    assert sorted(names) == [f"{name}v1" for name in asked]
    assert names != sorted(names)


def test_the_feed_is_signed_with_the_query(server: ArxivServer) -> None:
    body = ask(server, "id_list=2401.00001&max_results=7")[1]
    query = "search_query=&id_list=2401.00001&start=0&max_results=7"

    assert f"<title>arXiv Query: {query}</title>" in unescape(body)
    signature = base64.b64encode(hashlib.sha1(query.encode()).digest()).decode().removesuffix("=")
    assert f"<id>https://arxiv.org/api/{signature}</id>" in body


def test_the_old_service_answers_with_skeletons_and_refuses_with_200() -> None:
    with ArxivServer(records(1), era=Era.OLD) as server:
        body = ask(server, "id_list=2401.00001,2401.99999")[1]
        assert body.count("<entry>") == 2
        assert ">2</opensearch:totalResults>" in body
        status, body = ask(server, "id_list=nonsense")
        assert (status, "http://arxiv.org/api/errors#" in body) == (200, True)


def test_long_addresses_get_414_and_post_does_not(server: ArxivServer) -> None:
    query = "id_list=" + ",".join(f"2401.{number:05}" for number in range(1, 701)) + "&max_results=700"

    status, body = ask(server, query)
    assert (status, body) == (414, "<html><title>414 Request-URI Too Large</title></html>")
    status, body = ask(server, "", query.encode())
    assert (status, len(found(body))) == (200, 30)


def test_other_addresses_are_not_there(server: ArxivServer) -> None:
    server_url = server.url
    with pytest.raises(urllib.error.HTTPError, match="404") as caught:
        urllib.request.urlopen(f"{server_url}/search_query?id_list=2401.00001")
    caught.value.close()


def test_faults_come_in_order_and_then_no_more(server: ArxivServer) -> None:
    server.faults = [rate_exceeded(), rate_exceeded("5"), busy(), empty(), error_feed_200(), unreadable_400()]

    answers = [ask(server, "id_list=2401.00002,2401.00003") for _ in range(7)]

    assert [status for status, _ in answers] == [429, 429, 503, 200, 200, 400, 200]
    assert answers[0][1] == "Rate exceeded."
    assert found(answers[3][1]) == []
    assert "Invalid query string" in answers[5][1]
    assert len(found(answers[6][1])) == 2
    assert [request.ids for request in server.requests] == [("2401.00002", "2401.00003")] * 7


def test_connections_break_when_they_should(server: ArxivServer) -> None:
    server.faults = [cut(0.5), reset()]

    with pytest.raises(http.client.IncompleteRead):
        ask(server, "id_list=2401.00002")
    with pytest.raises((ConnectionResetError, urllib.error.URLError)):
        ask(server, "id_list=2401.00002")


def test_answers_are_late_when_they_should(server: ArxivServer, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(server.stopping, "wait", waited.append)
    server.faults = [slow(0.3)]

    assert ask(server, "id_list=2401.00002")[0] == 200
    assert waited == [0.3]


def test_redirects_lead_where_they_should(server: ArxivServer) -> None:
    server.faults = [redirect("/moved?id_list=2401.00002")]

    assert found(ask(server, "id_list=2401.00003")[1]) == ["2401.00002v1"]


def test_a_corpus_can_be_served_as_it_is_recorded() -> None:
    from orchtrace_corpus.corpus.api import load

    papers = [paper for paper in load(str(ROOT)).papers if paper.arxiv_id]
    served = records_of(papers)

    assert [paper.arxiv_id for paper in served] == [paper.arxiv_id for paper in papers]
    assert all("," not in name for paper in served[:1] for name in paper.authors)


def test_it_runs_by_hand(tmp_path: Path) -> None:
    (tmp_path / "records.json").write_text(
        '[{"arxiv_id": "2401.00001", "version": 1, "title": "T", "authors": ["A"], "abstract": "", "published": '
        '"2024-01-01T00:00:00Z", "updated": "2024-01-01T00:00:00Z", "primary_category": "cs.MA", "categories": ["cs.MA"]}]'
    )
    command = [
        sys.executable,
        "-m",
        "tests.corpus.arxiv_server",
        "--records",
        str(tmp_path / "records.json"),
        "--fault",
        "busy",
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        url = child.stdout.readline().removeprefix("ORCHTRACE_ARXIV_URL=").strip()
        with pytest.raises(urllib.error.HTTPError, match="503") as caught:
            urllib.request.urlopen(f"{url}?id_list=2401.00001")
        caught.value.close()
        with urllib.request.urlopen(f"{url}?id_list=2401.00001") as answer:
            assert found(answer.read().decode()) == ["2401.00001v1"]
        child.terminate()


def test_every_fault_has_a_name() -> None:
    assert all(name == made.__name__ for name, made in FAULTS.items())
