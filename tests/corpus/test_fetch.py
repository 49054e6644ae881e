"""`corpus fetch` against a local server: what it reports, what it writes, and what it says when arXiv does not answer."""

import json
import shutil
import signal
import time
from pathlib import Path

import pytest

from orchtrace_corpus.corpus.model.metadata import Metadata
from tests.conftest import ROOT, TOY, Result, run_corpus
from tests.corpus import arxiv_server as faults
from tests.corpus import processes
from tests.corpus.arxiv_server import ArxivServer, record
from tests.corpus.files import contents, edit
from tests.corpus.processes import LIGHT, loaded
from tests.loopback import loopback_only  # noqa: F401 - guards every test here

ROSES = record(
    "2101.00001",
    title="Röses: A Garden in Four Beds",
    authors=("Änne Müller", "Tom O'Neill", "Zoë Last"),
    doi="10.5555/roses.1",
    published="2021-01-01T09:00:00Z",
    updated="2021-01-01T09:00:00Z",
)
GRASS = record("2302.00002", title="Long Grass and How to Keep It", authors=("Meadow Team",))


ARXIV = [ROSES, GRASS]


@pytest.fixture
def root(root: Path, in_root: None, empty_cache: None, server: ArxivServer) -> Path:
    """Let the toy corpus be used with a local arXiv that says what its records say."""
    return root


def fetch(*arguments: str) -> Result:
    return run_corpus("fetch", *arguments)


def update(server: ArxivServer, paper: Metadata, **changes: object) -> Metadata:
    """Let the server have another newest version of a paper."""
    newest = paper._replace(**changes)  # type: ignore[arg-type]
    server.papers[paper.arxiv_id] = [newest]
    return newest


def test_nothing_has_changed(root: Path, server: ArxivServer) -> None:
    before = contents(root)

    assert fetch() == (0, "", "no problems in 2 papers of arXiv\n")
    assert contents(root) == before
    assert [request.ids for request in server.requests] == [("2101.00001", "2302.00002")]


def test_drift_is_reported_at_its_field_and_nothing_is_written(root: Path, server: ArxivServer) -> None:
    before = contents(root)
    update(server, ROSES, title="Röses: A Garden in Five Beds", authors=("Tom O'Neill", "Änne Müller", "Zoë Last"))
    update(server, GRASS, doi="10.5555/grass", journal_ref="J. Grass 2")

    result = fetch()

    assert result == (
        0,
        "data/papers.yaml:3:10: A103 warning: the title on arXiv is 'Röses: A Garden in Five Beds' [rose-garden]\n"
        "data/papers.yaml:4:12: A105 warning: the authors differ: the order on arXiv is 'Tom O'Neill', 'Änne Müller', "
        "'Zoë Last' [rose-garden]\n"
        "data/papers.yaml:28:10: A110 warning: arXiv gives the journal reference 'J. Grass 2'; the venue is 'arXiv' "
        "[long-grass]\n"
        "data/papers.yaml:29:13: A111 warning: arXiv gives the DOI '10.5555/grass'; add it as doi [long-grass]\n",
        "4 warnings in 2 papers of arXiv\n",
    )
    assert contents(root) == before
    assert fetch("--strict").code == 1


def test_the_story_of_a_paper_that_was_withdrawn_and_restored(root: Path, server: ArxivServer) -> None:
    assert fetch("--write").code == 0
    first = contents(root)

    update(server, ROSES, version=2, updated="2021-02-13T10:00:00Z", comment="withdrawn by Tom O'Neill")
    suspected = fetch("--write", "--refresh")
    assert [line.split()[1] for line in suspected.stdout.splitlines()] == ["A107", "A108"]
    assert "suspected withdrawal: version 2 says 'withdrawn by Tom O'Neill'" in suspected.stdout
    assert '+      "version": 2,\n' in suspected.stderr
    assert contents(root)["data/papers.yaml"] == first["data/papers.yaml"]

    again = fetch("--refresh")
    assert [line.split()[1] for line in again.stdout.splitlines()] == ["A108"], (
        "it stays suspected, the version is known"
    )

    update(server, ROSES, version=3, updated="2021-03-12T10:00:00Z")
    restored = fetch("--write", "--refresh")
    assert [line.split()[1] for line in restored.stdout.splitlines()] == ["A107", "A109"]
    assert "the suspected withdrawal (version 2) is taken back: version 3 says nothing of it" in restored.stdout

    assert fetch("--refresh") == (0, "", "no problems in 2 papers of arXiv\n")


def test_write_takes_over_what_needs_no_decision_and_shows_the_diff(root: Path, server: ArxivServer) -> None:
    edit(root, 'authors: ["{Meadow Team}"]', 'authors: ["Meadow, Max"]  # as printed')
    edit(root, '  arxiv_id: "2302.00002"\n', '  # the preprint\n  arxiv_id: "2302.00002"\n')
    before = (root / "data" / "papers.yaml").read_text(encoding="utf-8")
    update(server, ROSES, title="Röses: A $\\lambda$-Garden", authors=("Zoë Last", "Änne Müller"), doi="10.5555/other")
    update(
        server,
        GRASS,
        version=4,
        title="Long Grass and how to keep it",
        authors=("Max Meadow", "Ludwig van Beethoven"),
        doi="10.5555/grass",
        journal_ref="J. Grass 2",
    )

    result = fetch("--write")

    expected = before
    for old, new in {
        'title: "Röses: A Garden in Four Beds"': 'title: "Röses: A λ-Garden"',
        'authors: ["Meadow, Max"]  # as printed': 'authors: ["Meadow, Max", "van Beethoven, Ludwig"]  # as printed',
        '  # the preprint\n  arxiv_id: "2302.00002"\n': '  # the preprint\n  arxiv_id: "2302.00002"\n  doi: 10.5555/grass\n',
    }.items():
        assert old in expected
        expected = expected.replace(old, new)
    assert (root / "data" / "papers.yaml").read_text(encoding="utf-8") == expected
    assert [line.split()[1] for line in result.stdout.splitlines()] == ["A105", "A111", "A104", "A110"]
    assert '-  title: "Röses: A Garden in Four Beds"\n+  title: "Röses: A λ-Garden"\n' in result.stderr
    assert "+++ b/data/arxiv.json\n" in result.stderr
    assert "wrote data/papers.yaml\nwrote data/arxiv.json\n" in result.stderr
    assert run_corpus("check", "data").code == 0
    assert '"version": 4' in (root / "data" / "arxiv.json").read_text(encoding="utf-8")


def test_writing_twice_changes_nothing(root: Path, server: ArxivServer) -> None:
    update(server, ROSES, title="Röses: A Garden in Five Beds")
    fetch("--write")
    once = contents(root)

    result = fetch("--write", "--refresh")

    assert contents(root) == once
    assert result == (0, "", "corpus: nothing changes\nno problems in 2 papers of arXiv\n")


def test_a_published_title_is_kept_where_the_record_waives_the_drift(root: Path, server: ArxivServer) -> None:
    edit(root, "  added:", '  waive:\n    - {code: A103, why: "The journal has another title."}\n  added:')
    update(server, ROSES, title="Röses: A Garden in Five Beds")
    before = (root / "data" / "papers.yaml").read_bytes()

    assert fetch("--write").stdout == ""
    assert (root / "data" / "papers.yaml").read_bytes() == before
    assert run_corpus("check", "data", "--strict").code == 0

    update(server, ROSES)
    leftover = fetch("--refresh")
    assert "F112 warning: nothing in the record raises A103; remove the waiver [rose-garden]" in leftover.stdout


def test_a_change_that_no_record_can_hold_is_left_out_and_the_rest_is_written(root: Path, server: ArxivServer) -> None:
    update(server, ROSES, title="Röses: A Garden <script>x</script>")
    update(server, GRASS, title="Long Grass Kept")

    result = fetch("--write")

    text = (root / "data" / "papers.yaml").read_text(encoding="utf-8")
    assert 'title: "Röses: A Garden in Four Beds"' in text
    assert "title: Long Grass Kept" in text
    assert [line.split()[1] for line in result.stdout.splitlines()] == ["A103"]
    assert result.code == 0


def test_an_id_of_another_work_is_an_error_and_nothing_is_taken_from_it(root: Path, server: ArxivServer) -> None:
    update(server, ROSES, title="Dark Matter in Dwarf Galaxies", authors=("Maria Costa",), doi="10.5555/stars")
    before = (root / "data" / "papers.yaml").read_bytes()

    result = fetch("--write")

    assert (result.code, result.stdout.count(": A")) == (1, 1)
    assert "A101 arXiv id '2101.00001' is that of 'Dark Matter in Dwarf Galaxies'" in result.stdout
    assert (root / "data" / "papers.yaml").read_bytes() == before


def test_some_papers_by_name(root: Path, server: ArxivServer) -> None:
    assert fetch("https://arxiv.org/abs/2302.00002v1").code == 0
    assert server.asked == ["2302.00002"]


@pytest.mark.parametrize(
    ("names", "code", "message"),
    [
        (
            ["rose-gardn"],
            2,
            "corpus: no record 'rose-gardn'\nDid you mean: rose-garden (Röses: A Garden in Four Beds)?\n",
        ),
        (["E001"], 2, "corpus: E001 is an exclusion, not a paper\n"),
        (["mixed-borders"], 0, "none of these papers has an arXiv id\n"),
    ],
)
def test_names_that_cannot_be_fetched(
    names: list[str], code: int, message: str, root: Path, server: ArxivServer
) -> None:
    assert fetch(*names) == (code, "", message)
    assert server.requests == []


def test_a_corpus_without_arxiv_ids(root: Path, server: ArxivServer) -> None:
    path = root / "data" / "papers.yaml"
    lines = [line for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if "arxiv_id" not in line]
    path.write_text("".join(lines), encoding="utf-8")

    assert fetch() == (0, "", "no paper has an arXiv id\n")
    assert server.requests == []


def test_one_paper_written_keeps_what_is_known_of_the_others(root: Path, server: ArxivServer) -> None:
    fetch("--write")
    update(server, GRASS, version=2)

    fetch("--write", "--refresh", "long-grass")

    known = json.loads((root / "data" / "arxiv.json").read_text(encoding="utf-8"))["papers"]
    assert {name: paper["version"] for name, paper in known.items()} == {"2101.00001": 1, "2302.00002": 2}


def test_what_is_known_of_papers_that_have_gone_goes(root: Path, server: ArxivServer) -> None:
    fetch("--write")
    edit(root, '  arxiv_id: "2302.00002"\n', "")

    fetch("--write")

    assert list(json.loads((root / "data" / "arxiv.json").read_text(encoding="utf-8"))["papers"]) == ["2101.00001"]


def test_a_missing_id_is_asked_for_again_if_it_was_there_before(root: Path, server: ArxivServer) -> None:
    fetch("--write")
    del server.papers["2302.00002"]
    server.requests.clear()

    result = fetch("--refresh")

    assert result.code == 0
    assert result.stdout == (
        "data/papers.yaml:29:13: A102 warning: arXiv has no paper '2302.00002', although it had 'Long Grass and How to "
        "Keep It' before; fix the id [long-grass]\n"
    )
    assert server.asked.count("2302.00002") == 2


@pytest.mark.parametrize("later", [(), ("--offline",), ("--write",)])
def test_a_paper_that_arxiv_has_dropped_stays_missing_in_later_runs(
    root: Path, server: ArxivServer, later: tuple[str, ...]
) -> None:
    fetch("--write")
    del server.papers["2302.00002"]
    told = fetch("--refresh").stdout

    assert "A102" in told
    assert fetch(*later).stdout == told


def test_an_empty_answer_by_mistake_is_no_drift(root: Path, server: ArxivServer) -> None:
    server.faults = [faults.empty()]

    assert fetch() == (0, "", "no problems in 2 papers of arXiv\n")


def test_offline_answers_from_the_cache(root: Path, server: ArxivServer) -> None:
    update(server, ROSES, title="Röses: A Garden in Five Beds")
    online = fetch()
    server.requests.clear()

    assert fetch("--offline") == online
    assert server.requests == []


def test_offline_answers_from_the_corpus_where_nothing_is_cached(
    root: Path, server: ArxivServer, tmp_path: Path
) -> None:
    fetch("--write")
    shutil.rmtree(tmp_path / "cache")
    edit(root, "Long Grass and How to Keep It", "Long Grass and How to Mow It")

    result = fetch("--offline")

    assert (result.code, [line.split()[1] for line in result.stdout.splitlines()]) == (0, ["A103"])
    assert not (tmp_path / "cache").exists()


def test_offline_with_nothing_kept_says_so(root: Path, server: ArxivServer) -> None:
    assert fetch("--offline") == (
        4,
        "",
        "corpus: nothing is kept of 2 papers with an arXiv id\nRun corpus fetch with a network first.\n",
    )
    assert server.requests == []


def test_offline_with_some_of_it_kept_reports_that(root: Path, server: ArxivServer) -> None:
    fetch("long-grass")

    assert fetch("--offline") == (
        4,
        "",
        "no problems in 1 paper of arXiv\n"
        "corpus: nothing is kept of 1 paper: 2101.00001\nRun corpus fetch without --offline.\n",
    )


def test_a_service_that_cannot_be_reached(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHTRACE_ARXIV_URL", "http://127.0.0.1:9/api/query")

    result = fetch()

    assert (result.code, result.stdout) == (4, "")
    assert "could not be asked about 2 papers" in result.stderr
    assert "--offline answers from the cache alone." in result.stderr
    assert run_corpus("check", "data").code == 0


def test_a_service_that_breaks_off_leaves_a_partial_report(root: Path, server: ArxivServer) -> None:
    update(server, GRASS, title="Long Grass Kept")
    fetch("long-grass")
    server.always = faults.access_denied()
    before = contents(root)

    result = fetch("--write")

    assert (result.code, [line.split()[1] for line in result.stdout.splitlines()]) == (4, ["A103"])
    assert "not every request succeeded; the report uses answers of earlier runs" in result.stderr
    assert "refuses to answer: HTTP 403" in result.stderr
    assert contents(root) == before, "nothing is written of a half-known corpus"


@pytest.mark.parametrize("fault", [faults.rate_exceeded(), faults.busy(), faults.sending(b"<feed>")])
@pytest.mark.parametrize("has_cache", [True, False])
def test_what_was_kept_is_reported_where_arxiv_has_no_answer(
    fault: faults.Fault, has_cache: bool, root: Path, server: ArxivServer, tmp_path: Path
) -> None:
    fetch("--write")
    edit(root, "Long Grass and How to Keep It", "Long Grass and How to Mow It")
    if not has_cache:
        shutil.rmtree(tmp_path / "cache")
    server.always = fault
    before = contents(root)

    result = fetch("--refresh", "--write")

    assert (result.code, [line.split()[1] for line in result.stdout.splitlines()]) == (4, ["A103"])
    assert "1 warning in 2 papers of arXiv\n" in result.stderr
    assert "The report has 2 of them, as kept from earlier runs.\n" in result.stderr
    assert contents(root) == before, "what is not said now is not written"


@pytest.mark.parametrize(
    ("fault", "messages"),
    [
        (faults.rate_exceeded(), ["arXiv did not answer for 2 papers: 2101.00001, 2302.00002", "HTTP 429"]),
        (faults.sending(b"<feed>"), ["arXiv's answer could not be read about 2 papers: 2101.00001, 2302.00002"]),
    ],
)
def test_what_arxiv_does_not_answer_is_told_apart(
    fault: faults.Fault, messages: list[str], root: Path, server: ArxivServer
) -> None:
    server.always = fault

    result = fetch()

    assert (result.code, result.stdout) == (4, "")
    assert "0 papers" not in result.stderr
    for message in messages:
        assert message in result.stderr


def test_an_id_that_arxiv_takes_for_none(root: Path, server: ArxivServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "_LIKE_AN_ID", r"2302.*")

    result = fetch()

    assert result.code == 0
    assert "A102 warning: arXiv takes '2101.00001' for no id at all; fix the id [rose-garden]" in result.stdout
    assert "1 warning in 2 papers of arXiv\n" in result.stderr


def test_another_service_by_option(root: Path, server: ArxivServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHTRACE_ARXIV_URL", "http://127.0.0.1:9/api/query")

    assert fetch("--arxiv-url", server.url).code == 0
    assert fetch("--arxiv-url", "ftp://x").code == 2


def test_findings_for_programs_stay_alone_on_standard_output(root: Path, server: ArxivServer) -> None:
    update(server, ROSES, title="Röses: A Garden in Five Beds", version=2)

    document = json.loads(fetch("--write", "--format", "json").stdout)

    assert document["schema"] == "orchtrace-corpus/findings"
    update(server, ROSES, version=3)
    github = fetch("--refresh", "--format", "github").stdout
    assert github.startswith("::warning file=data/papers.yaml,line=3,col=10,title=A103 title other than on arXiv::")
    assert json.loads(fetch("--format", "sarif").stdout)["version"] == "2.1.0"


def test_a_broken_file_of_known_answers_breaks_fetch_alone(root: Path) -> None:
    (root / "data" / "arxiv.json").write_text('{"schema": 1}', encoding="utf-8")

    result = fetch()

    assert (result.code, result.stdout) == (3, "")
    assert result.stderr == (
        "corpus: data/arxiv.json: the document lacks version\n"
        "Restore the file from git, or remove it and run corpus fetch --write.\n"
    )
    for command in ("check data", "stats", "list", "check form", "build"):
        assert run_corpus(*command.split()).code == 0
    check = run_corpus("check")
    assert check.code == 3
    assert "arxiv     failed data/arxiv.json: the document lacks version" in check.stdout


def test_known_answers_that_are_no_text_or_no_file(root: Path) -> None:
    path = root / "data" / "arxiv.json"
    path.write_bytes(b"\xff")
    assert fetch() == (3, "", "corpus: cannot read data/arxiv.json: not UTF-8\n")

    path.unlink()
    path.mkdir()
    assert fetch() == (3, "", "corpus: cannot read data/arxiv.json: Is a directory\n")


def test_a_corpus_with_errors_can_be_fetched_and_gets_no_new_ones(root: Path, server: ArxivServer) -> None:
    edit(root, "style: formal", "style: frmal")
    update(server, GRASS, title="Long Grass Kept")

    assert fetch("--write").code == 0
    assert "title: Long Grass Kept" in (root / "data" / "papers.yaml").read_text(encoding="utf-8")

    edit(root, "  size: large", "  size: [large")
    broken = fetch()
    assert (broken.code, broken.stdout) == (3, "")
    assert "Y104" in broken.stderr


def test_check_asks_for_the_canonical_form_which_fetch_restores_offline(root: Path) -> None:
    for command in (("fetch", "--write"), ("check", "form", "--fix"), ("build",)):
        assert run_corpus(*command).code == 0
    path = root / "data" / "arxiv.json"
    written = path.read_bytes()
    assert "arxiv     ok     up to date\n" in run_corpus("check").stdout
    path.write_text(json.dumps(json.loads(written)), encoding="utf-8")

    check = run_corpus("check")

    assert check.code == 1
    assert "data/arxiv.json; to fix: corpus fetch --offline --write\n" in check.stdout
    assert run_corpus("fetch", "--offline", "--write").code == 0
    assert path.read_bytes() == written


def test_the_bundled_corpus_is_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    result = fetch("--write", "--offline")

    assert (result.code, result.stdout) == (3, "")
    assert "no data/papers.yaml here or in any folder above" in result.stderr


def test_the_papers_of_this_repository_are_asked_for_in_one_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from orchtrace_corpus.corpus.api import load
    from tests.corpus.arxiv_server import records_of

    shutil.copytree(ROOT / "data", tmp_path / "data")
    monkeypatch.setenv("ORCHTRACE_CACHE", str(tmp_path / "cache"))
    with ArxivServer(records_of(load(str(ROOT)).papers)) as server:
        result = run_corpus("--root", str(tmp_path), "fetch", "--write", "--arxiv-url", server.url)

        assert len(server.requests) == 1
    assert result.code == 0
    assert (tmp_path / "data" / "papers.yaml").read_bytes() == (ROOT / "data" / "papers.yaml").read_bytes()


def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    papers = [record(f"2401.{number:05}", title=f"Toy Paper {number}") for number in range(1, 151)]
    (tmp_path / "data").mkdir()
    for name in ("taxonomy", "exclusions"):
        shutil.copyfile(TOY / "data" / f"{name}.yaml", tmp_path / "data" / f"{name}.yaml")
    entry = (
        "- {{key: p-{n}, title: Toy Paper {n}, authors: ['Toy, Ada'], year: 2024, venue: arXiv, arxiv_id: '{id}', "
        "urls: ['https://example.org/{n}'], style: NA, care: {{}}, size: small, summary: A toy., added: '2024-05-05'}}\n"
    )
    text = "".join(entry.format(n=number, id=paper.arxiv_id) for number, paper in enumerate(papers, 1))
    (tmp_path / "data" / "papers.yaml").write_text(text, encoding="utf-8")
    with ArxivServer(papers) as server:
        monkeypatch.setenv("ORCHTRACE_ARXIV_URL", server.url)
        monkeypatch.setenv("ORCHTRACE_ARXIV_SPACING", "0.0001")
        monkeypatch.setenv("ORCHTRACE_CACHE", str(tmp_path / "cache"))
        server.faults = [faults.fine(), faults.slow(60)]
        with open(tmp_path / "said", "w") as said:
            child = processes.fork(processes.command, "--root", str(tmp_path), "fetch", files=[said.fileno()] * 3)
        deadline = time.monotonic() + 20
        while len(server.requests) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert processes.killed(child, signal.SIGINT) == 130
        assert (tmp_path / "said").read_text(encoding="utf-8") == "corpus: interrupted\n"
        first = set(server.requests[0].ids)
        server.requests.clear()

        assert run_corpus("--root", str(tmp_path), "fetch").code == 0
        assert first.isdisjoint(server.asked)
        assert len(server.asked) == 50


def test_asking_others_costs_other_commands_nothing() -> None:
    for command in LIGHT:
        asking = ("orchtrace_corpus.corpus.sources", "requests", "defusedxml", "pylatexenc")
        told = ("orchtrace_corpus.corpus.intake.drift", "orchtrace_corpus.corpus.model.metadata")
        assert [name for name in loaded()[command] if name.startswith(asking) or name in told] == [], command


def test_help_on_asking_others_loads_nothing_heavy() -> None:
    for command in ("fetch --help", "links --help"):
        assert not {"requests", "defusedxml", "pylatexenc", "bibtexparser"} & loaded()[command], command
