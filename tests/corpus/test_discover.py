"""`corpus discover` against local services: what it asks, what it takes for new, what it records, how it goes on."""

import json
import random
import signal
import time
from collections.abc import Iterator
from hashlib import sha1
from pathlib import Path

import pytest

from orchtrace_corpus.corpus.intake import papers as intake
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.metadata import Metadata
from orchtrace_corpus.corpus.model.records import Paper
from orchtrace_corpus.corpus.model.searches import Maker, Run, Search
from tests.conftest import Result, run_corpus
from tests.corpus import processes
from tests.corpus.arxiv_server import ArxivServer, access_denied, busy, cut, fine, rate_exceeded, record, sending
from tests.corpus.files import FIRST_OF_MARCH, write_data
from tests.corpus.openalex_server import OpenAlexServer, work
from tests.effort import mostly_slow
from tests.loopback import loopback_only  # noqa: F401 - guards every test here

PROTOCOL = """\
kind: A walk through gardens.
day: "2023-06-07"
source: https://example.org/walk
query_field: stage
sources: [arXiv, OpenAlex]
include:
  - {id: open, rule: It is open to visitors.}
exclude:
  - {id: shut, rule: It is a car park.}
search_from: "2024-01-01"
search_categories: [cs.MA, cs.AI]
citing: [size=small]
citing_least: 2
families:
  - {id: beds, label: Beds, terms: [bed]}
  - {id: ways, label: Ways, terms: [path]}
queries:
  - {name: gate, family: beds, query: all:garden AND (ti:rose OR ti:bed), by: ours}
  - {name: path, family: ways, query: ti:path OR ti:bed, by: ours}
update: [Walk again next year.]
"""
CANDIDATE = """\
- key: moss-garden
  title: A Bed of Moss
  arxiv_id: "2312.00005"
  urls: [https://arxiv.org/abs/2312.00005]
  proposal: include
  reason: It needs no shears.
  found: "2023-12-02"
"""
JANUARY = {"published": "2024-01-10T10:00:00Z", "updated": "2024-01-10T10:00:00Z", "abstract": "On a garden."}
ARXIV = [
    record("2401.00011", title="A Rose Bed for Beginners", authors=("Rosa Beet", "Tom Garten"), **JANUARY),
    record("2401.00012", title="The Path not Taken", **JANUARY),
    record("2401.00013", title="Röses: a Garden in Four Beds", **JANUARY),  # that of rose-garden
    record("2401.00014", title="A bed of moss", doi="10.1000/moss", **JANUARY),
    record("2001.00009", title="Window Box and Bed", **JANUARY),  # excluded under another title
    record("2312.00005", title="A Bed of Moss", **JANUARY),  # awaits a decision
    record("2401.00015", title="Bed of Nails", **{**JANUARY, "categories": ("cs.RO",), "primary_category": "cs.RO"}),
    record("2401.00016", title="Bed of Yesteryear", **{**JANUARY, "published": "2023-12-31T10:00:00Z"}),
    record("2402.00017", title="Bed of Tomorrow", **{**JANUARY, "published": "2024-03-01T10:00:00Z"}),
]


@pytest.fixture
def root(
    root: Path,
    in_root: None,
    empty_cache: None,
    on_first_of_march: None,
    server: ArxivServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """Add a protocol and a candidate to the toy corpus."""
    write_data(root, protocol=PROTOCOL, candidates=CANDIDATE)
    monkeypatch.delenv("OPENALEX_API_KEY", raising=False)
    return root


def discover(*arguments: str) -> Result:
    return run_corpus("discover", *arguments)


def text(root: Path, name: str) -> str:
    return (root / "data" / name).read_text(encoding="utf-8")


def runs(root: Path) -> tuple[Run, ...]:
    return store.CorpusFiles(str(root)).searches.require()


GATE = (
    "(all:garden AND (ti:rose OR ti:bed)) AND (cat:cs.MA OR cat:cs.AI) AND submittedDate:[202401010000 TO 202402292359]"
)


def test_new_papers_become_candidates_and_what_is_known_is_counted(root: Path) -> None:
    result = discover()

    assert result == (
        0,
        "query  source  from        to          found  new\n"
        "gate   arXiv   2024-01-01  2024-02-29      5    1\n"
        "path   arXiv   2024-01-01  2024-02-29      6    1\n",
        "corpus: citations are left out: OPENALEX_API_KEY holds no key; one is free at openalex.org\n"
        "wrote data/candidates.yaml\n"
        "wrote data/searches.yaml\n"
        "wrote data/arxiv.json\n"
        "2 new candidates; left out: 1 in the pool, 1 excluded before, 1 among the candidates, 6 found more than once\n"
        "left out by a title that is the same, or nearly:\n"
        "  arXiv:2401.00013: Röses: a Garden in Four Beds (as rose-garden: Röses: A Garden in Four Beds)\n",
    )
    assert text(root, "candidates.yaml") == (
        f"{CANDIDATE}\n"
        "- key: path-not-taken\n"
        "  title: The Path not Taken\n"
        '  authors: ["Toy, Ada"]\n'
        "  year: 2024\n"
        "  venue: arXiv\n"
        '  arxiv_id: "2401.00012"\n'
        "  urls: [https://arxiv.org/abs/2401.00012]\n"
        "  proposal: unread\n"
        "  stage: path\n"
        '  found: "2024-03-01"\n'
        "  found_by: [path]\n"
        "\n"
        "- key: rose-bed-beginners\n"
        "  title: A Rose Bed for Beginners\n"
        '  authors: ["Beet, Rosa", "Garten, Tom"]\n'
        "  year: 2024\n"
        "  venue: arXiv\n"
        '  arxiv_id: "2401.00011"\n'
        "  urls: [https://arxiv.org/abs/2401.00011]\n"
        "  proposal: unread\n"
        "  stage: gate\n"
        '  found: "2024-03-01"\n'
        "  found_by: [gate, path]\n"
    )
    path = GATE.replace("(all:garden AND (ti:rose OR ti:bed))", "(ti:path OR ti:bed)")
    window = ("2024-01-01", "2024-02-29")
    assert runs(root) == (
        Run(
            "2024-03-01",
            Maker.DISCOVER,
            (Search("gate", "arXiv", 1, *window, GATE, 5), Search("path", "arXiv", 1, *window, path, 6)),
            repeated=6,  # "A bed of moss" is the published version of what awaits a decision
            in_pool=1,
            in_log=1,
            in_candidates=1,
            new=("arXiv:2401.00011", "arXiv:2401.00012"),
        ),
    )
    kept = json.loads(text(root, "arxiv.json"))["papers"]
    assert {name: paper["abstract"] for name, paper in kept.items()} == {
        "2401.00011": "On a garden.",
        "2401.00012": "On a garden.",
    }
    assert run_corpus("check").stdout.count("searches  ok     1 run\n") == 1


def test_a_second_run_finds_nothing_new_and_begins_where_the_last_one_ended(
    root: Path, server: ArxivServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    discover()
    before = text(root, "candidates.yaml")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(int(FIRST_OF_MARCH) + 86400))

    result = discover("--since", "last")

    assert result.code == 0
    assert result.stdout == (
        "query  source  from        to          found  new\n"
        "gate   arXiv   2024-02-15  2024-03-01      1    1\n"
        "path   arXiv   2024-02-15  2024-03-01      1    0\n"
    )
    assert "1 new candidate;" in result.stderr
    assert before in text(root, "candidates.yaml")
    assert [run.new for run in runs(root)][1] == ("arXiv:2402.00017",)
    assert all(given["search_query"].endswith("[202402150000 TO 202403012359]") for given in server.searches[-2:])


def test_what_a_person_has_decided_on_stays_decided(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    discover()
    run_corpus("exclude", "path-not-taken", "--stage", "path", "--reason", "It leads nowhere.", "--yes")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(int(FIRST_OF_MARCH) + 86400))

    result = discover("--since", "2024-01-01")

    assert "1 new candidate; left out: 1 in the pool, 2 excluded before, 2 among the candidates" in result.stderr
    assert run_corpus("check").stdout.count("searches  ok     2 runs\n") == 1


def test_a_paper_with_nearly_the_title_of_another_new_one_is_named(
    server: ArxivServer, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    title = "Roses for a Bed in a Rose Garden"
    twins = [record(f"2401.000{number}", title=title, **JANUARY) for number in range(21, 34)]
    with ArxivServer(twins) as other:
        monkeypatch.setenv("ORCHTRACE_ARXIV_URL", other.url)
        result = discover("--family", "gate")

    assert result.stderr.splitlines()[-14:] == [
        "1 new candidate; left out: 0 in the pool, 0 excluded before, 0 among the candidates, 12 found more than once",
        "left out by a title that is the same, or nearly:",
        *(f"  arXiv:2401.000{number}: {title} (as arXiv:2401.00021: {title})" for number in range(22, 34)),
    ]


def test_two_arxiv_ids_with_nearly_one_title_are_two_works(
    server: ArxivServer, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [record(f"2401.0002{number}", title=f"Roses for a Bed, Part {number}", **JANUARY) for number in (1, 2)]
    with ArxivServer(parts) as other:
        monkeypatch.setenv("ORCHTRACE_ARXIV_URL", other.url)
        result = discover("--family", "gate")

    assert result.stderr.splitlines()[-1].startswith("2 new candidates; left out: 0 in the pool")


@pytest.mark.parametrize("name", ["gate", "Gate", "beds", "Beds", "The Beds"])
def test_queries_are_named_by_themselves_or_by_id_or_label_of_their_family(root: Path, name: str) -> None:
    path = root / "data" / "protocol.yaml"
    path.write_text(PROTOCOL.replace("label: Beds", "label: the beds"), encoding="utf-8")

    result = discover("--dry-run", "--family", name, "--format", "csv")

    assert (result.code, result.stdout) == (0, f"query,answers,asked\ngate,5,{GATE}\n")


def test_a_dry_run_says_whether_citations_will_be_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without = discover("--dry-run").stderr
    monkeypatch.setenv("OPENALEX_API_KEY", "any")

    assert without == (
        "corpus: citations are left out: OPENALEX_API_KEY holds no key; one is free at openalex.org\n"
        "corpus: nothing was written (--dry-run)\n"
    )
    assert discover("--dry-run").stderr == (
        "1 paper whose citations are followed at OpenAlex\ncorpus: nothing was written (--dry-run)\n"
    )


def test_a_dry_run_shows_queries_and_counts_and_writes_nothing(root: Path, server: ArxivServer) -> None:
    before = {path: path.read_bytes() for path in root.rglob("*.yaml")}

    result = discover("--dry-run", "--family", "beds", "--format", "csv")

    assert result.stdout == f"query,answers,asked\ngate,5,{GATE}\n"
    assert result.stderr == "corpus: nothing was written (--dry-run)\n"
    assert [given["max_results"] for given in server.searches] == ["1"]
    assert {path: path.read_bytes() for path in root.rglob("*.yaml")} == before


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ("--family", "bed"),
            "there is no query or family 'bed' (did you mean 'beds'? allowed: gate, path, beds, ways)",
        ),
        (("--since", "March"), "--since 'March' is not a date\nWrite YYYY-MM-DD, or last."),
        (
            ("--since", "2024-03-01"),
            "--since 2024-03-01 is after 2024-02-29, the last day that is over\nName a day before.",
        ),
        (("--offline", "--refresh"), "--offline and --refresh contradict each other\nGive one of them."),
    ],
)
def test_words_that_cannot_be_are_refused(root: Path, words: tuple[str, ...], problem: str) -> None:
    assert discover(*words) == (2, "", f"corpus: {problem}\n")


def test_a_corpus_without_a_protocol_is_told_what_it_lacks(root: Path) -> None:
    (root / "data" / "protocol.yaml").unlink()

    assert discover() == (
        3,
        "",
        "corpus: this corpus has no data/protocol.yaml\ndocs/data.md of orchtrace-corpus describes it.\n",
    )


def test_a_new_corpus_can_be_searched_and_screened(
    server: ArxivServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", FIRST_OF_MARCH)
    monkeypatch.setenv("ORCHTRACE_CACHE", str(tmp_path / "cache"))
    title, own = (
        "A Benchmark of Retrieval-Augmented Generation",
        {"categories": ("cs.IR",), "primary_category": "cs.IR"},
    )
    day = {"published": "2024-02-10T10:00:00Z", "updated": "2024-02-10T10:00:00Z"}
    folder = tmp_path / "survey"
    assert run_corpus("init", str(folder)).code == 0
    monkeypatch.chdir(folder)
    with ArxivServer([record("2402.00031", title=title, abstract="", **day, **own)]) as other:
        monkeypatch.setenv("ORCHTRACE_ARXIV_URL", other.url)
        assert "1 new candidate; left out: 0 in the pool" in discover().stderr

    key = text(folder, "candidates.yaml").partition("key: ")[2].partition("\n")[0]
    sheet = f"key,decision,stage,reason\n{key},exclude,abstract_screen,no-retrieval\n"
    (folder / "first.csv").write_text(sheet, encoding="utf-8")
    assert run_corpus("screen", "--decisions", "first.csv") == (0, "", "0 included, 1 excluded, 0 for later\n")
    assert run_corpus("build").code == 0
    assert run_corpus("check").code == 0


def test_a_query_that_stays_without_answer_is_asked_about_its_whole_window_next_time(
    root: Path, server: ArxivServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.faults = [fine()]
    server.always = rate_exceeded()

    result = discover()

    assert result.code == 4
    assert result.stdout.splitlines()[1:] == ["gate   arXiv   2024-01-01  2024-02-29      5    1"]
    assert "corpus: no answer to the query path: HTTP 429 (plain text: 'Rate exceeded.')\n" in result.stderr
    assert result.stderr.endswith("Run the command again later; answers so far are stored.\n")
    assert [search.query for run in runs(root) for search in run.searches] == ["gate"]

    server.always = None
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(int(FIRST_OF_MARCH) + 86400))
    again = discover()

    assert again.code == 0
    assert "path   arXiv   2024-01-01  2024-03-01      7    1" in again.stdout


def test_a_service_that_refuses_us_ends_with_4_and_nothing_is_recorded(root: Path, server: ArxivServer) -> None:
    server.always = access_denied()

    result = discover()

    assert result.code == 4
    assert "corpus: 127.0.0.1 refuses to answer: HTTP 403 (a web page: 'Access Denied')" in result.stderr
    assert not (root / "data" / "searches.yaml").exists()
    assert text(root, "candidates.yaml") == CANDIDATE


def test_nobody_listening_ends_with_4(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHTRACE_ARXIV_URL", "http://127.0.0.1:9/api/query")

    result = discover()

    assert (result.code, result.stdout) == (4, "")
    assert "new candidates" not in result.stderr
    assert "could not be asked about the query" in result.stderr
    assert "--offline answers from the cache alone." in result.stderr


def test_troubles_of_the_moment_change_nothing(root: Path, server: ArxivServer) -> None:
    server.faults = [busy("0"), cut(), sending(b"<feed"), rate_exceeded(), fine(), cut(0.9)]

    assert discover().code == 0
    assert [run.new for run in runs(root)] == [("arXiv:2401.00011", "arXiv:2401.00012")]


HOSTILE = [
    "Bed <script>alert(1)</script> of Thorns",
    'Bed of "Thorns',
    "Bed \u202eof\u200b Thorns\u0007 and \x9bNettles",
    "Bed of [Thistles](javascript:alert(1)) &lt;img&gt;",
    "- key: evil\n  title: Bed of Brambles",
    "# Bed: {a: b, *c} &anchor !tag %",
    "Bed of `rm -rf`",
]


def test_hostile_titles_become_plain_text(root: Path, server: ArxivServer) -> None:
    for number, title in enumerate(HOSTILE):
        name = f"2402.0002{number}"
        server.papers[name] = [record(name, title=title, **JANUARY)]
    # The service cannot send some of these characters in XML: a body of its own carries what it can.
    server.papers["2402.00022"] = [record("2402.00022", title="Bed \u202eof\u200b Thorns \x9bNettles", **JANUARY)]

    result = discover("--family", "ways")

    assert result.code == 0
    file = store.CorpusFiles(str(root)).candidates
    assert file.findings == ()
    titles = {one.paper.arxiv_id: one.paper.title for one in file.items}
    assert [titles[f"2402.0002{number}"] for number in range(7)] == [
        "Bed alert(1) of Thorns",
        "Bed of Thorns",
        "Bed of Thorns Nettles",
        "Bed of [Thistles] (javascript:alert(1))",
        "- key: evil title: Bed of Brambles",
        "# Bed: {a: b, *c} &anchor !tag %",
        "Bed of rm -rf",
    ]
    assert run_corpus("check", "data").code == 0


def run_taxonomy(root: Path):  # type: ignore[no-untyped-def]
    pool = store.CorpusFiles(str(root)).loaded.pool
    assert pool is not None
    return pool.taxonomy


def test_what_cannot_be_recorded_is_said_and_the_rest_is(
    root: Path, server: ArxivServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search is on record with the paper as refused, and the exit code tells."""
    make = intake.from_metadata
    rose = "A Rose Bed for Beginners"

    def spoilt(metadata: Metadata) -> Paper:
        paper = make(metadata)
        return paper._replace(authors=("et al.",)) if paper.title == rose else paper

    monkeypatch.setattr(intake, "from_metadata", spoilt)

    result = discover("--family", "ways")

    assert result.code == 1
    assert (
        f"corpus: {rose} is left out: F109 'et al.' is not a name; write others for the names left out\n"
        in result.stderr
    )
    assert (runs(root)[0].refused, runs(root)[0].new) == (1, ("arXiv:2401.00012",))
    assert run_corpus("check", "data").code == 0


def test_comments_and_every_other_byte_of_the_file_stay(root: Path) -> None:
    path = root / "data" / "candidates.yaml"
    odd = f"# My candidates.\n\n{CANDIDATE.replace('found: ', 'found:   ').rstrip()}  # in a shop\n"
    path.write_text(odd, encoding="utf-8")

    assert discover().code == 0
    assert text(root, "candidates.yaml").startswith(odd)


@pytest.mark.parametrize("seed", mostly_slow(range(10), [3]))
def test_a_killed_run_is_taken_up_and_asks_nothing_twice(
    root: Path, server: ArxivServer, tmp_path: Path, seed: int
) -> None:
    """What is killed leaves whole files; the next run gives what one without trouble gives."""
    for number in range(100, 420):
        paper = record(f"2402.{number:05}", title=f"Bed {sha1(str(number).encode()).hexdigest()}", **JANUARY)
        server.papers[paper.arxiv_id] = [paper]
    generator = random.Random(seed)
    moment, delay = generator.randrange(0, 7), generator.random() * 0.3
    child = processes.fork(processes.command, "discover")
    while len(server.searches) < moment and child.is_alive():
        time.sleep(0.002)
    time.sleep(delay)
    processes.killed(child, signal.SIGKILL)
    asked = len(server.searches)

    done = discover()

    assert done.code == 0
    pages = [(given["search_query"], given["start"]) for given in server.searches]
    assert len(pages) <= len(set(pages)) + 1, "only the page that was on its way is asked for again"
    assert asked <= len(pages)
    assert done.stderr.count("found more than once") == 1
    new = [name for run in runs(root) for name in run.new]
    assert len(new) == len(set(new))
    assert {f"arXiv:2402.{number:05}" for number in range(100, 420)} <= set(new)
    assert not list(root.rglob(".corpus-*"))
    assert run_corpus("check", "data").code == 0


def test_start_up_of_other_commands_knows_nothing_of_searches() -> None:
    modules = processes.loaded()["check data"]

    assert [name for name in modules if ("search" in name and "orchtrace" in name) or "sklearn" in name] == []


# Citations


@pytest.fixture
def openalex(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAlexServer]:
    """A service that knows rose-garden and a paper beside it, with works that cite them."""
    papers = root / "data" / "papers.yaml"
    papers.write_text(
        papers.read_text(encoding="utf-8").replace(
            "  venue: Beds 2023\n", "  venue: Beds 2023\n  doi: 10.5555/borders\n"
        ),
        encoding="utf-8",
    )
    works = [
        work("W1", "Röses", doi="10.48550/arxiv.2101.00001", references=("W7", "W8")),
        work("W2", "Borders without Lines", doi="10.5555/borders", references=("W7", "W9")),
        work("W3", "Gardens of Today", doi="10.1000/today", cites=("W1", "W2"), date="2024-02-01"),
        work("W4", "Only Roses", cites=("W1",), date="2024-02-01"),
        work("W5", "Old Gardens", cites=("W1", "W2"), date="2020-02-01"),
        work("W6", "The Path not Taken, Published", arxiv_id="2401.00012", cites=("W1", "W2"), date="2024-02-01"),
        work("W7", "The First Garden", doi="10.1000/first", date="1999-01-01"),
        work("W8", "Of Roses", date="1999-01-01"),
        work("W9", "Of Borders", date="1999-01-01"),
    ]
    with OpenAlexServer(works, key="s3cret key+/") as server:
        monkeypatch.setenv("ORCHTRACE_OPENALEX_URL", server.url)
        monkeypatch.setenv("ORCHTRACE_OPENALEX_SPACING", "0.0001")
        monkeypatch.setenv("OPENALEX_API_KEY", "s3cret key+/")
        yield server


def test_citations_are_followed_in_both_directions_with_the_key_of_the_environment(
    root: Path, openalex: OpenAlexServer, tmp_path: Path
) -> None:
    result = discover()

    assert result.code == 0
    assert "citations  OpenAlex  2024-01-01  2024-02-29      3    2" in result.stdout
    pool = store.CorpusFiles(str(root)).candidates.items
    found = {one.paper.title: (one.found_by, one.paper.doi, one.paper.urls[0]) for one in pool}
    assert found["Gardens of Today"] == (
        ("cites mixed-borders", "cites rose-garden"),
        "10.1000/today",
        "https://doi.org/10.1000/today",
    ) or found["Gardens of Today"][0] == ("cites rose-garden", "cites mixed-borders")
    assert found["The First Garden"][0] == ("cited by rose-garden", "cited by mixed-borders")
    assert found["The Path not Taken"][0] == ("path", "cites rose-garden", "cites mixed-borders")
    assert {"Only Roses", "Old Gardens", "Of Roses"}.isdisjoint(found)
    assert all(keys == ["s3cret key+/"] for keys in openalex.keys)
    everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"s3cret" not in everything
    assert "s3cret" not in result.stdout + result.stderr


def test_pages_of_citing_works_go_by_cursor_and_each_is_asked_for_once(root: Path, openalex: OpenAlexServer) -> None:
    for number in range(230):
        one = work(
            f"W{1000 + number}",
            f"Garden {sha1(str(number).encode()).hexdigest()}",
            cites=("W1", "W2"),
            date="2024-02-02",
        )
        openalex.works[one["id"]] = one

    assert discover().code == 0
    asked = list(openalex.paths)
    assert discover("--since", "2024-01-01").code == 0

    assert len(runs(root)[0].new) == 230 + 4
    assert openalex.paths == asked, "within a day, the answers that are kept do"
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize(
    "faults",
    [[429], [403, 503], [500, "cut"], ["malformed", 429, "list"], ["cut", "cut"]],
    ids=["429", "403", "500", "malformed", "cut"],
)
def test_troubles_of_openalex_are_waited_out(root: Path, openalex: OpenAlexServer, faults: list[int | str]) -> None:
    openalex.faults = list(faults)

    assert discover().code == 0
    assert openalex.faults == []


@pytest.mark.parametrize("fault", [401, 400, 429, "malformed", "elsewhere"])
def test_an_openalex_that_does_not_answer_costs_nothing_but_the_citations(
    root: Path, openalex: OpenAlexServer, fault: int | str
) -> None:
    openalex.always = fault

    result = discover()

    assert result.code == 4
    assert "corpus: not every request succeeded; earlier answers are kept\n" in result.stderr
    assert "s3cret" not in result.stderr
    assert ("It does not take the key, or wants one;" in result.stderr) == (fault == 401)
    assert "citations" not in result.stdout
    assert runs(root)[0].new == ("arXiv:2401.00011", "arXiv:2401.00012")
