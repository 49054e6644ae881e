"""`corpus add` as a contributor meets it: a local arXiv, a real terminal, a copy of the real corpus."""

import io
import json
import re
import shlex
import shutil
import signal
import sys
import textwrap
import time
from pathlib import Path

import pytest

import orchtrace_corpus as oc
from orchtrace_corpus.corpus.formats.issue_form import MAX_BODY_BYTES
from orchtrace_corpus.corpus.sources.arxiv.client import Client
from tests.conftest import ROOT, Result, run_corpus
from tests.corpus import arxiv_server as faults
from tests.corpus import processes
from tests.corpus.arxiv_server import ArxivServer, record
from tests.corpus.files import contents
from tests.corpus.test_candidates import MOSS
from tests.corpus.test_registries import CROSSREF, Registry, registry  # noqa: F401
from tests.loopback import loopback_only  # noqa: F401 - guards every test here
from tests.terminal import Terminal

HEDGES = record(
    "2401.00007",
    version=2,
    title="HEDGE: Cutting in Straight Lines",
    authors=("Änne Müller", "Tom O'Neill"),
    published="2024-01-08T09:00:00Z",
)
PONDS = record("2401.00008", title="Ponds without Fish", authors=("Pond Team",), published="2024-01-09T09:00:00Z")
YARD = record("2401.00009", title="The yard", authors=("Anon Ymous",))
TAGS = ("--style", "formal", "--care", "none", "--size", "small")
WORDS = ("arbour", "bench", "compost", "ditch", "edging", "fern", "gate", "hoe", "ivy", "jasmine", "kale", "lawn")

ADDED = """\
--- a/data/papers.yaml
+++ b/data/papers.yaml
@@ @@
   size: small
   summary: Describes a yard.
   added: "2021-05-01"
+
+- key: hedge
+  title: "HEDGE: Cutting in Straight Lines"
+  authors: ["Müller, Änne", "O'Neill, Tom"]
+  year: 2024
+  venue: arXiv
+  arxiv_id: "2401.00007"
+  urls: [https://arxiv.org/abs/2401.00007]
+  style: formal
+  care: {}
+  size: small
+  added: "2024-03-01"
"""


ARXIV = [HEDGES, PONDS, YARD]


@pytest.fixture
def root(root: Path, in_root: None, empty_cache: None, on_first_of_march: None, server: ArxivServer) -> Path:
    """Let the toy corpus and the local arXiv be used on the first of March 2024."""
    return root


def add(*arguments: str) -> Result:
    return run_corpus("add", *arguments)


def unnumbered(text: str) -> str:
    """A diff, or findings, without the numbers of lines."""
    return re.sub(r"(?<=@@ ).+(?= @@)|(?<=yaml:)\d+:\d+(?=: )", "", text).replace("@@  @@", "@@ @@")


def paper(root: Path, key: str) -> oc.Paper:
    return oc.load(str(root))[key]


def test_a_paper_is_added_at_the_end_and_nothing_else_changes(root: Path, server: ArxivServer) -> None:
    before = (root / "data" / "papers.yaml").read_text(encoding="utf-8")

    result = add("arXiv:2401.00007v1", *TAGS)

    assert (result.code, unnumbered(result.stdout)) == (0, ADDED)
    assert result.stderr == (
        "corpus: the edit brings 1 warning:\n"
        "data/papers.yaml:64:3: M109 warning: no summary yet; say in one sentence what it does: corpus tag hedge "
        "summary=... [hedge]\n"
        "wrote data/papers.yaml\n"
        "corpus build regenerates the rest; CONTRIBUTING.md says whether to commit it\n"
        "added hedge: HEDGE: Cutting in Straight Lines\n"
    )
    text = (root / "data" / "papers.yaml").read_text(encoding="utf-8")
    assert text.startswith(before)
    assert [request.ids for request in server.requests] == [("2401.00007",)]
    assert run_corpus("check", "form").code == 0


def test_a_summary_gets_the_period_that_it_was_left_without(root: Path) -> None:
    assert add("2401.00007", *TAGS, "--summary", " Cuts hedges").stderr.startswith("wrote data/papers.yaml\n")
    assert paper(root, "hedge").summary == "Cuts hedges."


def test_everything_can_be_said_in_options(root: Path) -> None:
    result = add(
        *("2401.00007", "--key", "hedges", "--title", "Hedges", "--authors", "Doe, Jo; Roe, Al and others"),
        *(
            "--year",
            "2025",
            "--venue",
            "Beds 2025",
            "--affiliation",
            "Garden School",
            "--url",
            "https://example.org/code",
        ),
        *(
            "--summary",
            "Cuts hedges.",
            "--notes",
            "Seen once.",
            "--style",
            "S1",
            "--water",
            "daily",
            "--tools",
            "spade,rake",
        ),
        *("--tag", "size=large", "--evidence", "It is watered.", "--evidence-source", "https://example.org/seen"),
        *("--evidence-tags", "care,style", "--evidence-level", "photo", "--evidence-confidence", "low"),
    )

    assert (result.code, result.stderr.splitlines()[0]) == (0, "wrote data/papers.yaml")
    assert paper(root, "hedges") == oc.Paper(
        key="hedges",
        title="Hedges",
        authors=("Doe, Jo", "Roe, Al", "others"),
        affiliation="Garden School",
        year=2025,
        venue="Beds 2025",
        arxiv_id="2401.00007",
        urls=("https://arxiv.org/abs/2401.00007", "https://example.org/code"),
        tags={"style": "formal", "care": {"water": "daily"}, "tools": ("spade", "rake"), "size": "large"},
        summary="Cuts hedges.",
        evidence=(oc.Evidence(("care", "style"), "It is watered.", "https://example.org/seen", "photo", "low"),),
        added="2024-03-01",
        notes="Seen once.",
    )


def test_evidence_is_about_the_axes_and_the_version_read_unless_said_otherwise(root: Path) -> None:
    result = add(
        *("2401.00007", "--style", "NA", "--water", "daily", "--size", "small", "--evidence", "It is watered."),
        *("--evidence-level", "visit", "--evidence-confidence", "high"),
    )

    assert result.code == 0
    (item,) = paper(root, "hedge").evidence
    assert (item.tags, item.source) == (("care",), "https://arxiv.org/abs/2401.00007v2")


def test_several_papers_are_asked_for_at_once_and_each_has_its_verdict(root: Path, server: ArxivServer) -> None:
    result = add("2401.00007", "2101.00001", "2401.00008", "2001.00009", "https://arxiv.org/abs/2401.00007v2", *TAGS)

    assert result.code == 1
    assert [request.ids for request in server.requests] == [("2401.00007", "2401.00008")]
    assert result.stderr.splitlines()[:3] == [
        "corpus: 2101.00001 was not added: in the pool already as 'rose-garden', known by its identifier arXiv:2101.00001; "
        "see corpus show rose-garden",
        "corpus: 2001.00009 was not added: excluded as E001 on 2023-01-01, stage: gate: Too small to count as a garden. It is "
        "known by its identifier arXiv:2001.00009; to take it in after all: corpus add E001",
        "corpus: https://arxiv.org/abs/2401.00007v2 was not added: named twice: '2401.00007' has the same identifier, "
        "'arXiv:2401.00007'",
    ]
    assert "added hedge: " in result.stderr
    assert "added ponds-without-fish: " in result.stderr
    assert result.stderr.endswith("\n2 added, 2 already known, 1 not added\n")
    assert [each.key for each in oc.load(str(root)).papers[4:]] == ["hedge", "ponds-without-fish"]


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [
        ("https://doi.org/10.5555/ROSES.1", 1, "in the pool already as 'rose-garden', known by its identifier DOI:"),
        ("http://www.example.org/yard/", 1, "in the pool already as 'terminal-yard', known by its address https://"),
        ("terminal-yard", 1, "in the pool already as 'terminal-yard', "),
        (
            "2401.00009",
            1,
            "in the pool already as 'terminal-yard', known by its title, 'The Yard'; if it is another work",
        ),
        ("2401.99999", 1, "arXiv has no paper 2401.99999"),
        ("2101.0001", 2, "did you mean 2101.00001, which is in the pool as 'rose-garden'?"),
        ("", 2, "'' is not an arXiv id, DOI, OpenReview or ACL id, or web address"),
        ("roses", 2, "'roses' is not an arXiv id, DOI, OpenReview or ACL id, or web address"),
        ("ftp://example.org/x", 2, "is not a web address; begin it with https://"),
    ],
)
def test_what_is_known_or_no_paper_is_refused_with_the_reason(name: str, code: int, reason: str, root: Path) -> None:
    before = contents(root)

    result = add(name, *TAGS)

    assert (result.code, result.stdout) == (code, "")
    assert result.stderr.startswith(f"corpus: {name} was not added: ")
    assert reason in result.stderr
    assert contents(root) == before


def test_two_arxiv_ids_with_nearly_one_title_are_two_works_and_it_is_said(root: Path, server: ArxivServer) -> None:
    server.papers["2401.00019"] = [record("2401.00019", title="Röses: A Garden with Four Beds", authors=("Ada Toy",))]

    result = add("2401.00019", *TAGS)

    remark = "corpus: 2401.00019: its title is nearly that of rose-garden, which has another arXiv id; compare them\n"
    assert (result.code, remark in result.stderr) == (0, True)


def test_a_title_may_be_that_of_another_work_but_an_identifier_may_not(root: Path) -> None:
    assert add("2401.00009", *TAGS, "--despite-title").code == 0
    assert paper(root, "yard").title == "The yard"
    assert add("2101.00001", *TAGS, "--despite-title").code == 1


def test_what_is_missing_is_said_at_once_with_what_is_allowed(root: Path) -> None:
    result = add("https://example.org/new", "--style", "meadow")

    assert (
        result
        == (
            2,
            "",
            "corpus: missing for https://example.org/new:\n"
            "  --title TEXT\n"
            "  --authors NAMES\n"
            "  --year YEAR\n"
            "  --venue TEXT\n"
            "  --care TERM=LEVEL,...  water, prune, each at daily, weekly; or none\n"
            "  --size TERM  small, large\n"
            "  --evidence NOTE  if the tags ask for it: Daily care needs an item of evidence.\n"  # which care is not said yet
            "  --evidence-level TERM  if the tags ask for it: visit, photo\n"
            "  --evidence-confidence TERM  if the tags ask for it: high, low\n",
        )
    )
    given = ("--title", "New", "--authors", "Doe, Jo", "--year", "2025", "--venue", "Beds", "--size", "small")
    undemanded = add("https://example.org/new", "--style", "meadow", *given, "--water", "weekly")
    assert "--evidence" not in undemanded.stderr


def test_evidence_that_the_taxonomy_demands_is_missed_before_anything_is_written(root: Path) -> None:
    result = add("2401.00007", "--style", "formal", "--water", "daily", "--size", "small")

    assert (result.code, result.stdout) == (2, "")
    assert result.stderr == (
        "corpus: missing for 2401.00007:\n"
        "  --evidence NOTE  Daily care needs an item of evidence.\n"
        "  --evidence-level TERM  visit, photo\n"
        "  --evidence-confidence TERM  high, low\n"
    )
    more = add("2401.00007", *TAGS, "--evidence", "Seen.")
    assert more.code == 2
    assert "  --evidence-level TERM  visit, photo\n  --evidence-confidence TERM  high, low\n" in more.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name a paper to add\nWrite an arXiv id, a DOI or an address: corpus add 2605.08686\n"),
        (
            ["--title", "A Team", "--no-fetch"],
            "name a paper to add\nWithout an arXiv id or a DOI, give the address of a page that describes it: "
            'corpus add https://example.org/team --title "A Team" --year 2026\n',
        ),
        (["2401.00007", "2401.00008", "--title", "X", "--key", "x"], "--key, --title can be true of one paper only"),
        (
            ["2401.00007", "--key", "No Key"],
            "'No Key' is not a valid key: use lower-case letters, digits and single hyphens",
        ),
        (["2401.00007", "--key", "long-grass"], "'long-grass' is the key of another paper"),
        (["2401.00007", "--style", "frmal"], "unknown style 'frmal' (did you mean 'formal'?"),
        (["2401.00007", "--water", "dayly"], "unknown level of care 'dayly' (did you mean 'daily'?"),
        (
            ["2401.00007", "--water", "daily", "--care", "water=weekly"],
            "water of care is given twice: weekly and daily",
        ),
        (["2401.00007", "--tag", "stile=formal"], "unknown axis or facet 'stile' (did you mean 'style'?"),
        (["2401.00007", "--tag", "style"], "--tag 'style' names no value"),
        (["2401.00007", "--evidence-level", "photo"], "an item of evidence needs a note"),
        (
            ["2401.00007", "--evidence", "X", "--evidence-tags", "stile"],
            "evidence cannot support 'stile' (did you mean",
        ),
        (["2401.00007", "--arxiv-url", "nowhere"], "is not the address of a service"),
        (["2401.00007", "--from-issue", "x.md"], "--from-issue names the paper itself"),
    ],
)
def test_wrong_use_ends_with_2_and_changes_nothing(words: list[str], message: str, root: Path) -> None:
    before = contents(root)

    result = add(*words)

    assert (result.code, result.stdout) == (2, "")
    assert message in result.stderr
    assert contents(root) == before


def test_what_would_bring_an_error_is_not_written(root: Path) -> None:
    before = contents(root)

    result = add("2401.00007", "--style", "meadow", "--care", "none", "--size", "small")

    assert result.code == 1
    assert (
        "X101 A meadow needs room, so its size is large (rule 'meadow-is-large' of the taxonomy) [hedge]"
        in result.stderr
    )
    assert contents(root) == before


def test_a_dry_run_shows_the_diff_and_writes_nothing(root: Path) -> None:
    before = contents(root)

    result = add("2401.00007", *TAGS, "--dry-run")

    assert (result.code, unnumbered(result.stdout)) == (0, ADDED)
    assert contents(root) == before


def test_without_fetching_the_options_say_it_all(root: Path, server: ArxivServer) -> None:
    said = ("--title", "A Wall", "--authors", "Doe, Jo", "--year", "2024", "--venue", "Blog")

    assert add("2401.00011", "--no-fetch", *said, *TAGS).code == 0
    assert add("example.org/fence", "--title", "A Fence", *said[2:], *TAGS).code == 0
    assert server.requests == []
    assert paper(root, "wall").arxiv_id == "2401.00011"
    assert paper(root, "fence").urls == ("https://example.org/fence",)


def test_simultaneous_additions_of_different_papers_all_succeed(root: Path) -> None:
    said = ("--authors", "Doe, Jo", "--year", "2024", "--venue", "Blog", *TAGS)
    children = [
        processes.fork(processes.command, "add", f"example.org/{word}", "--title", f"A {word}", "--key", word, *said)
        for word in WORDS
    ]
    for child in children:
        child.join(120)

    assert [child.exitcode for child in children] == [0] * len(WORDS)
    assert set(WORDS) <= {one.key for one in oc.load(str(root)).papers}
    assert run_corpus("check", "form").code == 0


def test_simultaneous_additions_of_one_paper_add_it_once(root: Path) -> None:
    said = ("--title", "A Wall", "--authors", "Doe, Jo", "--year", "2024", "--venue", "Blog", *TAGS)
    children = [processes.fork(processes.command, "add", "example.org/wall", *said) for _ in range(4)]
    for child in children:
        child.join(120)

    assert sorted(child.exitcode or 0 for child in children) == [0, 1, 1, 1]
    assert [one.key for one in oc.load(str(root)).papers].count("wall") == 1


def test_offline_works_from_what_was_answered_before(root: Path, server: ArxivServer) -> None:
    result = add("2401.00007", *TAGS, "--offline")

    assert (result.code, result.stdout, server.requests) == (4, "", [])
    assert result.stderr == (
        "corpus: 2401.00007 was not added: there is no stored answer for it; omit --offline\n"
        "To do without the service, add --no-fetch, and give what is missing:\n"
        "  --title TEXT\n  --authors NAMES\n  --year YEAR\n  --venue TEXT\n"
    )
    assert add("2401.00007", *TAGS, "--offline", "--title", "A", "--authors", "Doe, Jo", "--year", "2024").stderr == (
        "corpus: 2401.00007 was not added: there is no stored answer for it; omit --offline\n"
        "To do without the service, add --no-fetch, and give what is missing:\n  --venue TEXT\n"
    )
    assert add("2401.00007").code == 2  # looked up, and then incomplete
    assert add("2401.00007", *TAGS, "--offline").code == 0
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (faults.busy(), "arXiv did not answer for it; try again later"),
        (faults.cut(), "arXiv did not answer for it; try again later"),
        (faults.access_denied(), "To do without the service, add --no-fetch, and give what is missing:"),
    ],
)
def test_an_arxiv_that_does_not_answer_ends_with_4(
    fault: faults.Fault, reason: str, root: Path, server: ArxivServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(root)
    server.always = fault
    monkeypatch.setitem(Client.__init__.__kwdefaults__, "patience_seconds", 0.05)

    result = add("2401.00007", "2101.00001", *TAGS)

    assert (result.code, result.stdout) == (4, "")
    assert "2401.00007 was not added: " in result.stderr
    assert "2101.00001 was not added: in the pool already" in result.stderr
    assert reason in result.stderr
    assert contents(root) == before


def test_a_doi_is_looked_up_at_its_registry(root: Path, registry: Registry) -> None:
    registry.answers["/10.5555/beds.2"] = (200, {"Content-Type": "application/json"}, json.dumps(CROSSREF).encode())

    result = add("https://doi.org/10.5555/BEDS.2", *TAGS, "--title", "The Beds of 2024", "--year", "2024")

    assert result.code == 0
    beds = paper(root, "beds-2024")
    assert (beds.doi, beds.year, beds.venue, beds.urls) == (
        "10.5555/beds.2",
        2024,
        "Journal of Beds",
        ("https://doi.org/10.5555/beds.2",),
    )
    assert beds.authors == ("Müller, Änne", "van Beethoven, Ludwig", "King, Jr., Martin", "Garden Team")
    unknown = add("10.5555/nothing", *TAGS)
    assert (unknown.code, "there is no doi '10.5555/nothing'" in unknown.stderr) == (1, True)
    assert add("10.5555/offline", *TAGS, "--offline").code == 4


def test_a_registry_that_does_not_answer_ends_with_4(root: Path, registry: Registry) -> None:
    registry.answers["/10.5555/beds.2"] = (503, {}, b"later")

    result = add("10.5555/beds.2", *TAGS)

    assert (result.code, result.stdout) == (4, "")
    assert "answered with HTTP 503. Try again later\nTo do without the service, add --no-fetch" in result.stderr


BIBTEX = r"""
@article{walls2024, title={{Walls}: On $\alpha$-Brick}, author={M{\"u}ller, {\"A}nne and {Wall Team}}, year=2024,
  journal={Journal of Walls}, doi={10.5555/walls}, url={https://example.org/walls}}
@misc{yard, title={The {Yard}}, author={Anonymous}, year=1999, url={https://example.org/other-yard}}
@misc{DBLP:grass, title={Cut Grass}, author={Doe, Jo}, year=2024, eprint={2401.12345}, archiveprefix={arXiv}}
@misc{slip, title={A Slip}, author={Doe, Jo}, year=2024, eprint={2401.1234}, archiveprefix={arXiv}}
"""


def test_every_entry_of_a_bibtex_file_has_its_own_verdict(root: Path, server: ArxivServer) -> None:
    (root / "refs.bib").write_text(BIBTEX, encoding="utf-8")

    result = add("refs.bib", *TAGS)

    assert (result.code, server.requests) == (2, [])
    assert (
        "corpus: refs.bib:4 was not added: in the pool already as 'terminal-yard', known by its title" in result.stderr
    )
    assert "corpus: refs.bib:6 was not added: '2401.1234' is not an arXiv id" in result.stderr
    walls, grass = paper(root, "walls2024"), paper(root, "cut-grass")
    assert (walls.title, walls.authors) == ("Walls: On α-Brick", ("Müller, Änne", "{Wall Team}"))
    assert (walls.doi, walls.venue, walls.urls) == ("10.5555/walls", "Journal of Walls", ("https://example.org/walls",))
    assert (grass.arxiv_id, grass.venue, grass.urls) == ("2401.12345", "arXiv", ("https://arxiv.org/abs/2401.12345",))


TAGGED = """
@misc{dogs, title={Dogs in the Garden}, author={Doe, Jo}, year=2024, howpublished={Blog}, url={https://example.org/dogs},
  keywords={pets, style=S3, water=weekly; prune=none, size=large, tools=spade, tools=rake, colour=red}, annotation={Lets dogs in.}}
@misc{cats, title={Cats on the Wall}, author={Doe, Jo}, year=2024, howpublished={Blog}, url={https://example.org/cats},
  keywords={style=cottage}}
@misc{fish, title={Fish in the Pond}, author={Doe, Jo}, year=2024, howpublished={Blog}, url={https://example.org/fish},
  keywords={size=huge}}
"""


def test_each_entry_of_a_bibtex_file_brings_its_own_tags(root: Path) -> None:
    (root / "refs.bib").write_text(TAGGED, encoding="utf-8")
    refused = "corpus: refs.bib:6 was not added: its keywords: unknown size 'huge' (allowed: small, large)\n"

    assert add("refs.bib", "--care", "prune=weekly") == (
        2,
        "",
        f"{refused}corpus: missing for refs.bib:4:\n  --size TERM  small, large\n",
    )
    result = add("refs.bib", "--care", "prune=weekly", "--tag", "size=small")

    assert (result.code, result.stderr.startswith(refused)) == (2, True)
    dogs, cats = paper(root, "dogs"), paper(root, "cats")
    assert dogs.tags == {"style": "gravel", "care": {"prune": "weekly"}, "tools": ("spade", "rake"), "size": "small"}
    assert cats.tags == {"style": "cottage", "care": {"prune": "weekly"}, "size": "small"}
    assert (dogs.summary, cats.summary) == ("Lets dogs in.", "")


def test_a_key_made_for_one_entry_is_not_that_of_another(root: Path) -> None:
    entry = (
        "author={{Doe, Jo}}, year=2024, journal={{Beds}}, volume=7, number=2, pages={{1--9}}, url={{https://e.org/{}}}"
    )
    first = f"@article{{DBLP:x/y, title={{Lake: Water}}, {entry.format('a')}}}\n"
    second = f"@article{{lake, title={{Another Pond}}, {entry.format('b')}}}\n"
    (root / "refs.bib").write_text(first + second, encoding="utf-8")

    assert add("refs.bib", *TAGS).code == 0

    written = run_corpus("export", "bibtex", "--where", "year=2024").stdout
    assert re.findall(r"@(\w+)\{(.*),", written) == [("article", "DBLP:x/y"), ("article", "lake")]
    assert written.count("pages         = {1--9}") == written.count("volume        = {7}") == 2


def test_what_was_exported_with_its_tags_is_added_with_them(root: Path) -> None:
    assert run_corpus("export", "bibtex", "--profile", "tagged", "-o", "all.bib", "--where", "care=").code == 0
    before = paper(root, "long-grass")
    assert run_corpus("remove", "long-grass", "--yes").code == 0

    assert add("all.bib", "--care", "none").code == 0

    after = paper(root, "long-grass")
    assert (after.tags, after.summary) == (before.tags, before.summary)


def test_all_problems_of_a_paper_are_told_at_once(root: Path, server: ArxivServer) -> None:
    before = contents(root)
    words = ("--style", "japanese", "--water", "hourly", "--tag", "colour=red", "--tag", "size", "--key", "A b")
    details = ("--set", "colour=red", "--set", "venue_year=24", "--evidence-level", "rumour", "--evidence-tags", "a,,b")

    result = add("2401.00007", *words, *details)

    assert (result.code, result.stdout, server.requests, contents(root) == before) == (2, "", [], True)
    assert (
        result.stderr
        == """\
corpus: 9 problems, so nothing was written:
- unknown style 'japanese' (allowed: formal, cottage, meadow, gravel, NA)
- unknown level of care 'hourly' (allowed: daily, weekly, none)
- unknown level 'rumour' (allowed: visit, photo)
- unknown axis or facet 'colour' (allowed: style, care, tools, size)
- --tag 'size' names no value
  Write --tag FIELD=VALUE.
- a name is missing between commas
- --set 'colour=red' sets no field (allowed: venue_year, proceedings, code, base_models, algorithm, algorithm_note, benchmarks, \
benchmarks_note)
  Write --set FIELD=VALUE.
- venue_year '24' is not a year
  Write four digits.
- 'A b' is not a valid key: use lower-case letters, digits and single hyphens
"""
    )


def test_a_mistake_hides_no_other_one(root: Path, server: ArxivServer) -> None:
    words = ("--care", "watr=daily,prune=hourly", "--authors", "Ada Example, Ben Sample", "--year", "20225")
    sets = ("--set", "algoritm=PPO", "--set", "algorithm=PPO", "--set", "algorithm=GRPO")

    result = add("https://example.org/a", "--title", "A", "--venue", "Beds", *words, *sets, "--style", "formal")

    assert (result.code, result.stdout, server.requests) == (2, "", [])
    assert (
        result.stderr
        == """\
corpus: 7 problems, so nothing was written:
- unknown term of care 'watr' (did you mean 'water'? allowed: water, prune)
- unknown level of care 'hourly' (allowed: daily, weekly, none)
- 'Ada Example, Ben Sample' is not an author's name: a comma stands between family and given name only
  Write ";" or " and " between authors: "Example, Ada; Sample, Ben". If it is one: "Ada Example, Ben Sample;"
- --set 'algoritm=PPO' sets no field (did you mean 'algorithm'? allowed: venue_year, proceedings, code, base_models, \
algorithm, algorithm_note, benchmarks, benchmarks_note)
  Write --set FIELD=VALUE.
- algorithm is set twice
  Set it once; write several as a,b.
- --year 20225 is not a year
  Write four digits.
- missing for https://example.org/a:
    --size TERM  small, large
"""
    )


def test_what_is_missing_is_told_beside_what_is_wrong(root: Path, server: ArxivServer) -> None:
    wrong = "unknown style 'japanese' (allowed: formal, cottage, meadow, gravel, NA)\n"
    missing = "missing for 2401.00007:\n    --size TERM  small, large\n"

    assert add("2401.00007", "--care", "none", "--size", "small", "--style", "japanese").stderr == f"corpus: {wrong}"
    assert add("rose-garden", "2401.00007", "--care", "none", "--style", "japanese").stderr == (
        "corpus: rose-garden was not added: in the pool already as 'rose-garden', known by its identifier "
        "arXiv:2101.00001; see corpus show rose-garden\n"
        f"corpus: 2 problems, so nothing was written:\n- {wrong}- {missing}"
    )
    bare = add("https://example.org/a", "--no-fetch", "--care", "none", "--style", "japanese").stderr
    assert bare.endswith(
        f"- {wrong}- missing for https://example.org/a:\n    --title TEXT\n    --authors NAMES\n"
        "    --year YEAR\n    --venue TEXT\n    --size TERM  small, large\n"
    )
    assert run_corpus("exclude", "2401.00007", "--stage", "roof").stderr == (
        "corpus: 2 problems, so nothing was written:\n- unknown stage 'roof' (allowed: gate, path)\n"
        "- missing for 2401.00007:\n    --reason TEXT  why it is left out, in one sentence\n"
    )
    assert server.requests == []


def test_a_bibtex_file_that_cannot_be_read_ends_with_3(root: Path) -> None:
    (root / "broken.bib").write_text("@article{a, title={A}, title={B}}", encoding="utf-8")
    before = contents(root)

    assert add("missing.bib", *TAGS).stderr == "corpus: cannot read missing.bib: No such file or directory\n"
    assert add("missing.bib", *TAGS).code == 3
    assert (add("broken.bib", *TAGS).code, contents(root) == before) == (3, True)
    (root / "large.bib").write_bytes(b" " * (16 * 2**20 + 1))
    assert add("large.bib", *TAGS).stderr == (
        "corpus: large.bib is larger than 16 MiB\n"
        "Set ORCHTRACE_MAX_BODY_BYTES to a higher number, if you trust the input.\n"
    )
    assert add("https://example.org/refs.bib", *TAGS).code == 2  # an address, which is asked nothing


def issue(root: Path, text: str) -> str:
    (root / "issue.md").write_text(text, encoding="utf-8", newline="")
    return "issue.md"


ISSUE = """### arXiv id, DOI or address\r
\r
<https://arxiv.org/abs/2401.00007>\r
\r
### Style\r
\r
Formal (formal)\r
\r
### Care: Watering\r
\r
Daily (daily)\r
\r
### Size\r
\r
Small (small)\r
\r
### Summary\r
\r
Cuts <b>hedges</b>\r
- key: evil\r
  `and` [more](javascript:alert(1)) <!-- corpus:begin list -->.\r
\r
### Evidence\r
\r
It is $n$ times watered.\r
\r
### Evidence level\r
\r
Visit (visit)\r
\r
### Confidence\r
\r
High (high)\r
\r
### Key\r
\r
evil\r
"""


def test_an_issue_with_hostile_markdown_adds_nothing_but_text(root: Path) -> None:
    result = add("--from-issue", issue(root, ISSUE))

    assert result.code == 0
    assert [each.key for each in oc.load(str(root)).papers[4:]] == ["hedge"]
    hedge = paper(root, "hedge")
    assert hedge.summary == "Cuts hedges - key: evil and more ."
    assert hedge.tags == {"style": "formal", "care": {"water": "daily"}, "size": "small"}
    assert hedge.evidence[0].note == "It is n times watered."
    assert hedge.evidence[0].source == "https://arxiv.org/abs/2401.00007v2"
    assert "corpus: 'Key' is not a question of the form\n" in result.stderr
    assert (
        "corpus: the answer to 'Summary' had markup, and is now 'Cuts hedges - key: evil and more .'\n" in result.stderr
    )


def test_options_go_before_what_an_issue_says_and_fill_what_it_leaves_open(root: Path) -> None:
    path = issue(root, "### arXiv id, DOI or address\n2401.00007\n### Style\nformal\n### Year\nlast\n")

    result = add("--from-issue", path, "--style", "cottage", "--care", "none", "--size", "large")

    assert result.code == 0
    assert paper(root, "hedge").tags == {"style": "cottage", "care": {}, "size": "large"}
    assert "corpus: the answer to 'Year' is left out: it has not four digits\n" in result.stderr


def test_an_issue_may_come_through_a_pipe(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "### arXiv id, DOI or address\n2401.00007\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(body.encode())))

    done = add("--from-issue", "-", *TAGS)

    assert (done.code, unnumbered(done.stdout)) == (0, ADDED)


def test_an_issue_never_names_a_file(root: Path) -> None:
    (root / "refs.bib").write_text(BIBTEX, encoding="utf-8")
    before = contents(root)

    result = add("--from-issue", issue(root, "### arXiv id, DOI or address\nrefs.bib\n"), *TAGS)

    assert result.code == 2
    assert {name: text for name, text in contents(root).items() if name != "issue.md"} == before


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (b"x" * (MAX_BODY_BYTES + 1), 3, "issue.md is larger than any issue: 256 KiB"),
        (b"\xff\xfe", 3, "cannot read issue.md: not UTF-8"),
        (b"", 2, "issue.md names no paper"),
        (b"### Title\n\nHello\n", 2, "issue.md names no paper"),
    ],
)
def test_what_is_no_issue_is_refused(data: bytes, code: int, message: str, root: Path) -> None:
    (root / "issue.md").write_bytes(data)

    result = add("--from-issue", "issue.md")

    assert (result.code, result.stdout) == (code, "")
    assert message in result.stderr
    assert add("--from-issue", "missing.md").code == 3


ANSWERS = (
    ("Venue, such as NeurIPS 2025 [arXiv]: ", "Hedge Days 2024"),
    ("style, ? explains: ", "?"),
    ("style, ? explains: ", "frmal"),
    ("style, ? explains: ", "1"),
    ("water (C1) [does not arise], ? explains: ", "daily"),
    ("prune (C2) [does not arise], ? explains: ", ""),
    ("tools, several with commas [leave out], ? explains: ", "2, spade"),
    ("size, ? explains: ", ""),
    ("size, ? explains: ", "Small"),
    ("Summary, one sentence of your own [leave out]: ", "Cuts hedges straight."),
    ("Evidence: what in the source supports the tags: ", ""),
    ("Evidence: what in the source supports the tags: ", "It is watered."),
    ("Source of the evidence [https://arxiv.org/abs/2401.00007v2]: ", "there"),
    ("Source of the evidence [https://arxiv.org/abs/2401.00007v2]: ", ""),
    ("level, ? explains: ", "2"),
    ("confidence, ? explains: ", "high"),
    ("Key [hedge]: ", "long-grass"),
    ("Key [hedge]: ", "Hedge!"),
    ("Key [hedge]: ", ""),
)


def test_at_a_terminal_what_is_missing_is_asked_for(root: Path) -> None:
    terminal = Terminal("2401.00007")
    terminal.answer(ANSWERS)

    assert terminal.end() == 0
    hedge = paper(root, "hedge")
    assert hedge.tags == {
        "style": "formal",
        "care": {"water": "daily"},
        "tools": ("rake", "spade"),
        "size": "small",
    }
    assert hedge.summary == "Cuts hedges straight."
    assert hedge.venue == "Hedge Days 2024"
    assert hedge.evidence == (
        oc.Evidence(("style", "care"), "It is watered.", "https://arxiv.org/abs/2401.00007v2", "photo", "high"),
    )
    for said in (
        "HEDGE: Cutting in Straight Lines\nMüller, Änne; O'Neill, Tom\n2024\narXiv\n",
        "Style: How the garden is laid out.\n  1 formal 2 cottage 3 meadow 4 gravel 5 NA\n",
        "  cottage: Mixed borders.\n",
        "unknown style 'frmal' (did you mean 'formal'?",
        "An answer is needed here: a number or a name.\n",
        "Daily care needs an item of evidence.\n",
        "This is not a web address; begin it with https://.\n",
        "long-grass is the key of another paper.\n",
        "Use lower-case letters, digits and single hyphens.\n",
    ):
        assert said in terminal.shown


def test_at_a_terminal_a_paper_that_cannot_be_looked_up_is_asked_for_at_once(root: Path) -> None:
    terminal = Terminal("2401.00007", "--offline", "--tools", "NA", *TAGS)
    terminal.answer(
        (("Title: ", "Hedges"), ("Authors, as Family, Given; Family, Given: ", "Doe, Jo"), ("Year: ", "2024"))
    )
    terminal.answer((("Venue, such as NeurIPS 2025: ", "arXiv"), ("your own [leave out]: ", "")))
    terminal.answer((("supports the tags, or Enter: ", ""), ("Key [hedges]: ", "")))

    assert terminal.end() == 0
    assert "2401.00007 could not be looked up: there is no stored answer for it; omit --offline; you are asked" in (
        terminal.shown
    )
    hedges = paper(root, "hedges")
    assert (hedges.title, hedges.arxiv_id, hedges.year, hedges.summary) == ("Hedges", "2401.00007", 2024, "")


def test_of_a_candidate_only_what_is_open_is_asked_with_the_readings_at_hand(root: Path) -> None:
    (root / "data" / "candidates.yaml").write_text(MOSS, encoding="utf-8")
    terminal = Terminal("moss-garden")
    terminal.answer(
        (
            ("Authors, as Family, Given; Family, Given: ", "Moss, Max"),
            ("Venue, such as NeurIPS 2025: ", "Moss 2023"),
            ("water (C1), ? explains: ", ""),
            ("water (C1), ? explains: ", "daily"),
            ("tools, several with commas [leave out], ? explains: ", ""),
            ("size, ? explains: ", "small"),
            ("Summary, one sentence of your own [leave out]: ", "Keeps moss."),
            ("Evidence: what in the source supports the tags, or Enter: ", ""),
            ("Key [moss-garden]: ", ""),
        )
    )

    assert terminal.end() == 0
    moss = paper(root, "moss-garden")
    assert moss.tags == {"style": "cottage", "care": {"water": "daily"}, "size": "small"}
    assert [item.verdict.value for item in moss.evidence] == [
        "supported",
        "supported",
        "supported",
        "partly",
        "contradicted",
    ]
    assert "Readers have read it, so an answer is needed: a level, or none.\n" in terminal.shown
    assert (
        "Size: How large it is.\n  first reader reads size small\n  second reader reads size large\n  1 small 2 large\n"
    ) in terminal.shown
    assert (root / "data" / "candidates.yaml").read_text(encoding="utf-8") == "[]\n"


def test_that_a_field_does_not_apply_is_never_proposed(root: Path) -> None:
    terminal = Terminal("2401.00007", "--venue", "Hedge Days 2024")
    terminal.answer((("style, ? explains: ", ""), ("style, ? explains: ", "NA")))
    terminal.until("water (C1) [does not arise], ? explains: ")
    terminal.press(b"\x03")

    assert terminal.end() == 130
    assert "An answer is needed here: a number or a name.\n" in terminal.shown
    assert "--venue 'Hedge Days 2024' --style NA\n" in terminal.shown


def test_yes_takes_what_is_proposed_without_a_question(root: Path) -> None:
    terminal = Terminal("2401.00007", "--yes", *TAGS)

    assert terminal.end() == 0
    assert "explains" not in terminal.shown
    assert paper(root, "hedge").summary == ""


@pytest.mark.parametrize("keys", [b"\x03", b"\x04"], ids=["Ctrl-C", "end of input"])
def test_whoever_stops_before_the_last_answer_has_written_nothing(keys: bytes, root: Path) -> None:
    before = contents(root)
    terminal = Terminal("2401.00007")
    terminal.answer(ANSWERS[:6])
    terminal.until(ANSWERS[6][0])
    terminal.press(keys)

    assert terminal.end() == 130
    assert terminal.shown.endswith(
        "Your answers, to try again: corpus add 2401.00007 --venue 'Hedge Days 2024' --style formal --care water=daily\ncorpus: interrupted\n"
    )
    assert contents(root) == before


def test_whoever_stops_before_the_first_answer_is_told_nothing_to_repeat(root: Path) -> None:
    terminal = Terminal("2401.00007")
    terminal.until(ANSWERS[0][0])
    terminal.press(b"\x03")

    assert terminal.end() == 130
    assert "to try again" not in terminal.shown


def repeated(shown: str) -> list[list[str]]:
    """The words of the commands that repeat answers, behind `corpus add`."""
    lines = [line for line in shown.splitlines() if line.startswith("Your answers, to try again: ")]
    return [shlex.split(line.partition("corpus add ")[2]) for line in lines]


def test_answers_are_given_back_when_the_data_has_changed_meanwhile(root: Path) -> None:
    terminal = Terminal("2401.00007", "--dry-run", "--no-fetch", "--title", "It's a Hedge", "--year", "2024")
    told = (("Authors, as Family, Given; Family, Given: ", "Ada Example, Ben Sample"),)
    terminal.answer((*told, ("Authors, as Family, Given; Family, Given: ", "Example, Ada; Sample, Ben")))
    terminal.answer((("Venue, such as NeurIPS 2025: ", "A & B"), *ANSWERS[3:9], ("[leave out]: ", ""), *ANSWERS[11:12]))
    terminal.answer((("Source of the evidence [https://arxiv.org/abs/2401.00007]: ", ""), *ANSWERS[14:16]))
    terminal.until("]: ")
    path = root / "data" / "papers.yaml"
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    terminal.press(b"hedge\n")
    terminal.end()
    (words,) = repeated(terminal.shown)

    assert words == [
        *("2401.00007", "--title", "It's a Hedge", "--year", "2024", "--no-fetch"),
        *("--authors", "Example, Ada; Sample, Ben", "--venue", "A & B", "--style", "formal", "--care", "water=daily"),
        *("--tools", "rake,spade", "--size", "small", "--evidence", "It is watered."),
        *("--evidence-source", "https://arxiv.org/abs/2401.00007", "--evidence-level", "photo"),
        *("--evidence-confidence", "high", "--key", "hedge"),
    ]
    assert add(*words).code == 0
    assert paper(root, "hedge").authors == ("Example, Ada", "Sample, Ben")


def test_answers_about_entries_of_a_file_are_given_back_without_the_file(root: Path) -> None:
    (root / "two.bib").write_text(
        "@misc{leaf, title={Leaves}, author={Example, Ada}, year={2024}, howpublished={Blog},\n"
        "  url={https://example.org/leaves}}\n"
        "@misc{bark, title={Bark}, author={Example, Ada}, year={2024}, howpublished={Blog}}\n",
        encoding="utf-8",
    )
    terminal = Terminal("two.bib", "--care", "none", "--tools", "NA", "--size", "small")
    terminal.answer((ANSWERS[3], ("Summary, one sentence of your own [leave out]: ", "Leaves fall.")))
    terminal.answer((("supports the tags, or Enter: ", ""), ("Key [leaf]: ", "")))
    terminal.answer((("Address: ", "https://example.org/bark"), ANSWERS[3]))
    terminal.until("your own [leave out]: ")
    terminal.press(b"\x03")
    terminal.end()

    own = ["--no-fetch", "--title", "Leaves", "--authors", "Example, Ada;", "--year", "2024", "--venue", "Blog"]
    given = ["--care", "none", "--tools", "NA", "--size", "small"]
    assert repeated(terminal.shown) == [
        ["https://example.org/leaves", *own, *given, "--style", "formal", "--summary", "Leaves fall.", "--key", "leaf"],
        ["https://example.org/bark", *own[:2], "Bark", *own[3:], *given, "--style", "formal"],
    ]
    for words in repeated(terminal.shown):
        assert add(*words).code == 0


def test_answers_that_the_data_cannot_hold_are_given_back_as_a_command(root: Path) -> None:
    before = contents(root)
    terminal = Terminal(
        "2401.00007", "--style", "meadow", "--care", "water=weekly", "--tools", "NA", "--summary", "Cuts."
    )
    terminal.answer((("2025 [arXiv]: ", ""), ("size, ? explains: ", "small")))
    terminal.answer((("supports the tags, or Enter: ", ""), ("Key [hedge]: ", "")))

    assert terminal.end() == 1
    assert contents(root) == before
    (command,) = [line for line in terminal.shown.splitlines() if line.startswith("Your answers, to try again: ")]
    words = shlex.split(command.partition("corpus add ")[2])
    assert words == [
        *("2401.00007", "--summary", "Cuts.", "--style", "meadow", "--care", "water=weekly", "--tools", "NA"),
        *("--size", "small", "--key", "hedge"),
    ]
    words[words.index("small")] = "large"
    assert add(*words).code == 0


def test_the_options_are_those_of_the_corpus_that_the_command_is_about(root: Path, tmp_path: Path) -> None:
    toy = " ".join(add("--help").stdout.split())
    real = run_corpus("--root", str(ROOT), "add", "--help").stdout

    assert 'Tags (see "corpus terms FIELD"): --style, --care, --water, --prune, --tools, --size' in toy
    assert 'Evidence (see "corpus terms FIELD"): --evidence-level,' in toy
    assert "--credit-unit" not in toy
    assert len(real.splitlines()) <= 60
    assert "--credit-unit" in real
    assert run_corpus("--root", str(ROOT), "add", "--help").stdout == real
    (root / "data" / "taxonomy.yaml").write_text("title: [", encoding="utf-8")
    broken = add("--help")
    assert (broken.code, "--tag FIELD=VALUE" in broken.stdout, "--style" in broken.stdout) == (0, True, False)
    assert add("2401.00007").code == 3


@pytest.mark.parametrize(
    ("name", "profile"),
    [("x.bib", "tagged"), ("x.ris", ""), ("x.csl.json", ""), ("x.csv", ""), ("x.json", ""), ("x.jsonl", "")],
)
def test_a_file_of_any_format_gives_what_it_has_of_a_record(root: Path, name: str, profile: str) -> None:
    before = paper(root, "rose-garden")
    assert run_corpus("export", name, "--where", "key=rose-garden", "--profile", profile).code == 0
    assert run_corpus("remove", "rose-garden", "--yes").code == 0

    is_citation = name not in ("x.csv", "x.json", "x.jsonl")
    evidence = ("--evidence", "Seen daily.", "--evidence-level", "visit", "--evidence-confidence", "high")
    assert add(name, "--no-fetch", *(evidence if is_citation else ())).code == 0

    after = paper(root, "rose-garden")
    arxiv = "https://arxiv.org/abs/2101.00001"
    if is_citation:  # which has no place for evidence, affiliations and further addresses
        assert (after.authors, after.year, after.doi, after.tags) == (before.authors, 2021, before.doi, before.tags)
        assert (after.title, after.summary, after.urls[0]) == (before.title, before.summary, arxiv)
    else:
        assert after == before._replace(added="2024-03-01", urls=(arxiv, *before.urls))


def test_a_wrong_value_of_a_table_is_named_with_its_line(root: Path) -> None:
    (root / "x.csv").write_text("key,title,year,size\nshed,A Shed,2020,huge\n", encoding="utf-8")

    result = add("x.csv", "--no-fetch")

    assert (result.code, result.stdout) == (2, "")
    assert "x.csv:2 was not added: V102 unknown size 'huge' (allowed: small, large)" in result.stderr


def test_a_facet_with_the_name_of_an_option_is_reached_by_tag(root: Path) -> None:
    for name in ("taxonomy.yaml", "papers.yaml"):
        path = root / "data" / name
        path.write_text(path.read_text(encoding="utf-8").replace("size:", "yes:").replace("field: size", "field: yes"))
    taxonomy = root / "data" / "taxonomy.yaml"
    text = taxonomy.read_text(encoding="utf-8").replace("style, size", "style, yes").replace("{yes:", "{yes:")
    taxonomy.write_text(text, encoding="utf-8")

    result = add("2401.00007", "--style", "formal", "--care", "none", "--tag", "yes=small")

    assert result.code == 0
    assert paper(root, "hedge").tags["yes"] == "small"


def test_a_corpus_that_cannot_be_read_is_not_added_to(root: Path) -> None:
    path = root / "data" / "papers.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("style: formal", "style: [formal"), encoding="utf-8")

    assert add("2401.00007", *TAGS).code == 3


def test_the_walk_of_the_real_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the issue asks for: added, built, checked; and each refusal with its reason."""
    root = tmp_path / "corpus"
    shutil.copytree(ROOT / "data", root / "data")
    monkeypatch.chdir(root)
    monkeypatch.setenv("ORCHTRACE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ORCHTRACE_ARXIV_SPACING", "0.0001")
    title = "QUILL: Teaching Teams When to Stop"
    papers = [
        record("2605.98686", title=title, authors=("Ada Example",)),
        record("2605.98687", title="Scaling Long-Horizon LLM Agent via Context Folding"),
    ]
    before = (root / "data" / "papers.yaml").read_text(encoding="utf-8")
    with ArxivServer(papers) as server:
        monkeypatch.setenv("ORCHTRACE_ARXIV_URL", server.url)
        result = add(
            *("2605.98686", "--category", "rl_method", "--tier", "supporting", "--rl", "full", "--yes"),
            *("--reward-family", "orchestration", "--credit-unit", "orchestrator", "--stop", "explicit"),
            *("--topology", "centralized", "--scenario", "general", "--verified", "full"),
            *("--evidence", "The reward has a term for the last step.", "--evidence-level", "paper"),
            *("--evidence-confidence", "high"),
        )
        assert result.code == 0, result.stderr
        after = (root / "data" / "papers.yaml").read_text(encoding="utf-8")
        start, end = after.index("- key: quill\n"), after.index("- key: react2023\n")
        assert (after[:start] + after[end:], after[:start].count("\n- key")) == (before, 63)
        assert run_corpus("build").code == 0
        check = run_corpus("check")
        assert (check.code, "M109 warning" in check.stdout) == (0, True), check.stdout
        assert "\n-" not in result.stdout  # its own lines alone: nothing is taken away
        for name, code, reason in (
            ("2308.00352", 1, "excluded as E007 on 2026-04-26"),
            ("https://arxiv.org/pdf/2308.00352v7.pdf", 1, "corpus add E007"),
            ("2508.4652", 2, "did you mean 2508.04652, which is in the pool as 'magrpo'?"),
            ("2605.98687", 1, "in the pool already as 'context-folding', known by its title"),
            ("doi:10.48550/arXiv.2508.04652", 1, "in the pool already as 'magrpo', known by its identifier"),
        ):
            refused = add(name)
            assert (refused.code, refused.stdout) == (code, ""), name
            assert reason in refused.stderr
    assert (root / "data" / "papers.yaml").read_text(encoding="utf-8") == after


def test_the_record_in_the_guide_is_the_one_that_its_command_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    command = guide[guide.index("corpus add 2601.01234") :].partition("   ```")[0].replace("\\\n", "")
    shown = textwrap.dedent(guide.partition("   ```yaml\n")[2].partition("   ```")[0])
    shutil.copytree(ROOT / "data", tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORCHTRACE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1796083200")  # 2026-12-01
    paper = record(
        "2601.01234", title="A Team That Stops", authors=("Jo Doe", "Al Roe"), published="2026-01-05T09:00:00Z"
    )
    with ArxivServer([paper]) as server:
        monkeypatch.setenv("ORCHTRACE_ARXIV_URL", server.url)

        assert run_corpus(*shlex.split(command)[1:]).code == 0

    assert f"\n{shown}\n" in (tmp_path / "data" / "papers.yaml").read_text(encoding="utf-8")


def test_an_interrupt_while_arxiv_is_asked_writes_nothing(root: Path, server: ArxivServer, tmp_path: Path) -> None:
    before = contents(root)
    server.always = faults.slow(30)
    with open(tmp_path / "said", "w") as said:
        child = processes.fork(processes.command, "add", "2401.00007", *TAGS, files=[said.fileno()] * 3)
    while not server.requests:
        assert child.is_alive()
        time.sleep(0.005)

    assert processes.killed(child, signal.SIGINT) == 130
    assert (tmp_path / "said").read_text(encoding="utf-8") == "corpus: interrupted\n"
    assert contents(root) == before


@pytest.mark.parametrize(
    ("text", "authors"),
    [
        ("Example,Ada", ("Example, Ada",)),
        ("Example, Ada; Sample, Ben; others", ("Example, Ada", "Sample, Ben", "others")),
        ("Example, Ada and Sample, Ben", ("Example, Ada", "Sample, Ben")),
        ("van der Berg, Jan Willem", ("van der Berg, Jan Willem",)),
        ("García Márquez, Gabriel José;", ("García Márquez, Gabriel José",)),
        ("García Márquez, Gabriel José; Sample, Ben", ("García Márquez, Gabriel José", "Sample, Ben")),
        ("King, Jr., Martin Luther", ("King, Jr., Martin Luther",)),
        ("Pond Team", ("Pond Team",)),
    ],
)
def test_authors_are_read_as_typed(root: Path, text: str, authors: tuple[str, ...]) -> None:
    given = ("--no-fetch", "--title", "Leaves", "--authors", text, "--year", "2024", "--venue", "Blog", *TAGS)

    assert add("https://example.org/leaves", *given).code == 0
    assert paper(root, "leaves").authors == authors


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Ada Example, Ben Sample", "Ada Example, Ben Sample"),
        ("Ada Example, Ben Sample, Cy Test", "Ada Example, Ben Sample, Cy Test"),
        ("Example, Ada, Sample, Ben", "Example, Ada, Sample, Ben"),
        ("Ada Example, Ben Sample and Cy Test", "Ada Example, Ben Sample"),
        ("Example, Ada; ,", ","),
    ],
)
def test_commas_between_authors_are_refused_with_what_is_expected(root: Path, text: str, name: str) -> None:
    before = contents(root)
    given = ("--no-fetch", "--title", "Leaves", "--authors", text, "--year", "2024", "--venue", "Blog", *TAGS)

    result = add("https://example.org/leaves", *given)

    assert (result.code, result.stdout) == (2, "")
    assert f"'{name}' is not an author's name: a comma stands between family and given name only\n" in result.stderr
    assert 'Write ";" or " and " between authors: "Example, Ada; Sample, Ben"' in result.stderr
    assert contents(root) == before


def test_a_bibtex_file_without_entries_is_said_to_be_one(root: Path) -> None:
    (root / "empty.bib").write_text("% nothing\n", encoding="utf-8")

    assert add("empty.bib") == (3, "", "corpus: there are no entries in empty.bib\nNothing can be added.\n")
