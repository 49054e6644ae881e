"""What a change means: a prepared history told whole, changes without meaning, git and its ways to fail."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.api import Corpus, load
from orchtrace_corpus.pool.attributes import paper_attributes
from orchtrace_corpus.pool.difference import Difference, State, compare
from orchtrace_corpus.pool.model import Paper, Pool
from orchtrace_corpus.pool.statistics import count
from orchtrace_corpus.render import difference as render
from tests.conftest import ROOT, TOY, run_corpus

Edit = Callable[[str, str, str], None]

ROCK_GARDEN = """
- key: rock-garden
  title: "Stones | *and* @moss #1"
  authors: ["Stone, Sten"]
  year: 2024
  venue: Beds 2024
  urls: [https://example.org/rocks]
  style: gravel
  care: {}
  size: large
  summary: Piles stones.
  added: "2024-01-01"
"""
SECOND_EXCLUSION = """
- id: E004
  title: A Lawn
  identifier: LAWN
  url: https://example.org/lawn
  stage: gate
  screened: "2024-01-02"
  reason: Only grass.
"""


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose only commit is the toy corpus, in a folder of its own below the top."""
    folder = tmp_path / "repository" / "garden"
    shutil.copytree(TOY / "data", folder / "data")
    git(tmp_path, "init", "--quiet", "--initial-branch", "main", "repository")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "Begin")
    return folder


def edit(folder: Path, name: str, old: str, new: str) -> None:
    path = folder / "data" / f"{name}.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def append(folder: Path, name: str, text: str) -> None:
    with (folder / "data" / f"{name}.yaml").open("a", encoding="utf-8") as file:
        file.write(text)


def diff(folder: Path, *words: str) -> str:
    result = run_corpus("--root", str(folder), "diff", *words)
    assert (result.code, result.stderr) == (0, "")
    return result.stdout


def test_a_prepared_history_is_told_whole(repository: Path) -> None:
    append(repository, "papers", ROCK_GARDEN)
    edit(repository, "papers", "style: meadow", "style: cottage")
    edit(repository, "papers", "care: {water: weekly}", "care: {water: daily, prune: daily}")
    edit(repository, "papers", "venue: Journal of Beds", "venue: Journal of Flower Beds")
    edit(repository, "papers", "summary: Lays out four beds of roses.", "summary: Lays out beds of roses.")
    append(repository, "exclusions", SECOND_EXCLUSION)
    git(repository, "commit", "--quiet", "--all", "--message", "Change")

    assert diff(repository, "HEAD~1", "HEAD", "--format", "markdown") == (
        "<!-- corpus diff -->\n"
        "**1 paper added, 2 retagged, 1 corrected, 1 exclusion added, 2 findings new.**\n"
        "\n"
        "### Papers added\n"
        "\n"
        "- rock-garden: Stones \\| \\*and\\* @\u2060moss #\u20601 (style gravel, care none arises, size large)\n"
        "\n"
        "### Papers retagged\n"
        "\n"
        "- long-grass: style: meadow -> cottage\n"
        "- mixed-borders: care: water weekly -> water daily, prune daily\n"
        "\n"
        "### Papers corrected\n"
        "\n"
        "- rose-garden: venue: Journal of Beds -> Journal of Flower Beds; summary reworded\n"
        "\n"
        "### Exclusions added\n"
        "\n"
        "- E004: A Lawn (Only grass.)\n"
        "\n"
        "### Findings new\n"
        "\n"
        "- data/papers.yaml: E101 Daily care needs an item of evidence "
        "(rule 'daily-care-needs-evidence' of the taxonomy) \\[mixed-borders\\]\n"
        "- data/papers.yaml: E102 A large garden of late needs some evidence "
        "(rule 'new-large-garden-needs-evidence' of the taxonomy) \\[rock-garden\\]\n"
        "\n"
        "### Counts\n"
        "\n"
        "| field | value      | before | after | change |\n"
        "| ----- | ---------- | -----: | ----: | ------ |\n"
        "| total | papers     |      4 |     5 | +1     |\n"
        "| total | exclusions |      2 |     3 | +1     |\n"
        "| style | cottage    |      1 |     2 | +1     |\n"
        "| style | meadow     |      1 |     0 | -1     |\n"
        "| style | gravel     |      0 |     1 | +1     |\n"
        "| care  | prune      |      2 |     3 | +1     |\n"
        "| size  | large      |      1 |     2 | +1     |\n"
        "| stage | gate       |      1 |     2 | +1     |\n"
        "\n"
        "### Cells that fill or empty\n"
        "\n"
        "| fields       | values          | before | after |         |\n"
        "| ------------ | --------------- | -----: | ----: | ------- |\n"
        "| style x size | cottage x large |      0 |     1 | fills   |\n"
        "| style x size | meadow x large  |      1 |     0 | empties |\n"
        "| style x size | gravel x large  |      0 |     1 | fills   |\n"
        "| water        | weekly          |      1 |     0 | empties |\n"
        "| prune        | daily           |      0 |     1 | fills   |\n"
    )


def test_the_same_on_a_terminal_and_for_programs(repository: Path) -> None:
    edit(repository, "papers", "style: meadow", "style: cottage")

    assert diff(repository, "HEAD").startswith(
        "1 retagged.\n\nPapers retagged\n  long-grass: style: meadow -> cottage\n"
    )
    document = json.loads(diff(repository, "HEAD", "--format", "json"))
    assert (document["schema"], document["has_meaning"]) == ("orchtrace-corpus/diff", True)
    assert document["papers"]["changed"] == [
        {"name": "long-grass", "was": "long-grass", "changes": [
            {"field": "style", "before": "meadow", "after": "cottage"}]},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("papers", "# A made-up corpus", "# Another remark on a corpus", "only comments or layout changed"),
        ("papers", "year: 2021\n  venue: Journal of Beds", "venue: Journal of Beds\n  year: 2021",
         "only comments or layout changed"),
    ],
)  # fmt: skip
def test_comments_and_layout_have_no_meaning(repository: Path, name: str, old: str, new: str, message: str) -> None:
    edit(repository, name, old, new)

    assert diff(repository, "HEAD") == f"No change in meaning: {message}.\n"
    assert (
        diff(repository, "HEAD", "--format", "markdown") == f"<!-- corpus diff -->\nNo change in meaning: {message}.\n"
    )
    assert run_corpus("--root", str(repository), "diff", "HEAD", "--exit-code").code == 0


def test_the_order_of_records_has_no_meaning(repository: Path) -> None:
    path = repository / "data" / "papers.yaml"
    head, *records = re.split(r"(?m)^(?=- key)", path.read_text(encoding="utf-8"))
    path.write_text(head + "\n".join(record.rstrip("\n") + "\n" for record in reversed(records)), encoding="utf-8")

    assert diff(repository, "HEAD") == "No change in meaning: only the order of records changed.\n"


def test_no_change_at_all(repository: Path) -> None:
    assert diff(repository, "HEAD") == "No change: the data is the same, byte for byte.\n"


def test_a_new_key_is_a_new_name(repository: Path) -> None:
    edit(repository, "papers", "- key: long-grass", "- key: tall-grass")

    assert diff(repository, "HEAD") == ("1 renamed.\n\nPapers corrected\n  tall-grass: key: long-grass -> tall-grass\n")


def test_promotion_and_demotion_are_told_as_such(repository: Path) -> None:
    append(repository, "papers", ROCK_GARDEN.replace("Stones | *and* @moss #1", "A Car Park"))
    edit(
        repository,
        "exclusions",
        "reason: Nothing grows there.",
        "reason: Nothing grows there.\n  promoted_to: rock-garden",
    )
    text = (repository / "data" / "papers.yaml").read_text(encoding="utf-8")
    kept = re.sub(r"(?s)- key: mixed-borders.*?(?=- key)", "", text)
    (repository / "data" / "papers.yaml").write_text(kept, encoding="utf-8")
    append(repository, "exclusions", SECOND_EXCLUSION.replace("A Lawn", "Borders without Lines"))
    shown = diff(repository, "HEAD")

    assert "rock-garden: A Car Park, promoted from E003" in shown
    assert "mixed-borders: Borders without Lines, excluded as E004" in shown


def test_changes_of_the_vocabulary_are_told(repository: Path) -> None:
    edit(repository, "taxonomy", "{id: gravel, code: S3, label: Gravel, definition: Stones.}",
         "{id: gravel, code: S3, label: Gravel, definition: Small stones.}\n      - {id: moss, code: S4, label: Moss, definition: Moss.}")  # fmt: skip

    assert diff(repository, "HEAD") == (
        "2 changes of the taxonomy.\n"
        "\n"
        "Taxonomy\n"
        "  Term moss of style is new.\n"
        "  Term gravel of style has another definition.\n"
    )


def test_findings_that_come_and_go_are_told_without_their_lines(repository: Path) -> None:
    edit(repository, "papers", "# A made-up corpus for the tests.\n", "")
    edit(repository, "papers", "style: meadow", "style: medow")
    shown = diff(repository, "HEAD")

    assert "Findings new\n  data/papers.yaml: V102 unknown style 'medow' (did you mean 'meadow'?" in shown
    git(repository, "commit", "--quiet", "--all", "--message", "Break")
    edit(repository, "papers", "style: medow", "style: meadow")
    assert "Findings gone\n  data/papers.yaml: V102 unknown style 'medow'" in diff(repository, "HEAD")


def test_a_base_without_data_makes_everything_new(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "--orphan", "empty")
    git(repository, "rm", "--quiet", "-r", "--cached", ".")
    git(repository, "commit", "--quiet", "--allow-empty", "--message", "Nothing")
    git(repository, "checkout", "--quiet", "--force", "main")

    assert diff(repository, "empty", "main").startswith("4 papers added, 2 exclusions added.\n")
    assert diff(repository, "main", "empty").startswith("4 papers removed, 2 exclusions removed.\n")


def test_three_dots_compare_with_where_the_two_parted(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "-b", "mine")
    edit(repository, "papers", "size: large", "size: small")
    git(repository, "commit", "--quiet", "--all", "--message", "Mine")
    git(repository, "checkout", "--quiet", "main")
    edit(repository, "papers", "style: meadow", "style: cottage")
    git(repository, "commit", "--quiet", "--all", "--message", "Theirs")

    assert diff(repository, "main...mine").startswith(
        "1 retagged, 1 finding new.\n\nPapers retagged\n  long-grass: size: large -> small\n"
    )


def test_two_folders_need_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(TOY / "data", tmp_path / "other" / "data")
    edit(tmp_path / "other", "papers", "style: meadow", "style: cottage")
    monkeypatch.setenv("PATH", "")

    assert diff(TOY, str(TOY), str(tmp_path / "other")).startswith("1 retagged.")
    result = run_corpus("--root", str(TOY), "diff", "HEAD")
    assert (result.code, result.stdout) == (3, "")
    assert "git is not installed" in result.stderr


def test_what_git_does_not_have_ends_with_3_and_the_way_to_get_it(repository: Path, tmp_path: Path) -> None:
    edit(repository, "papers", "style: meadow", "style: cottage")
    git(repository, "commit", "--quiet", "--all", "--message", "More")
    first = git(repository, "rev-parse", "HEAD~1")
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{repository.parent}", "shallow")
    shallow = tmp_path / "shallow" / "garden"

    lacking = run_corpus("--root", str(shallow), "diff", first)
    assert (lacking.code, lacking.stdout) == (3, "")
    assert lacking.stderr == (
        f"corpus: there is no commit '{first}' in this clone\n"
        f"The clone is shallow; bring the commit with: git fetch --depth=1 origin {first}\n"
    )
    git(shallow, "fetch", "--quiet", "--depth=1", "origin", first)
    assert diff(shallow, first).startswith("1 retagged.")
    for words in (["nonsense"], ["--", "--output=x"]):
        result = run_corpus("--root", str(repository), "diff", *words)
        assert (result.code, result.stdout) == (3, "")
        assert "there is no commit" in result.stderr
    assert not list(repository.rglob("x"))


def test_a_folder_outside_any_repository_is_said_to_be(tmp_path: Path) -> None:
    shutil.copytree(TOY / "data", tmp_path / "data")
    result = run_corpus("--root", str(tmp_path), "diff", "HEAD")

    assert result.code == 3
    assert "is in no git repository\nCompare two folders instead." in result.stderr


def test_a_hook_s_environment_does_not_mislead(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", str(ROOT / ".git"))
    edit(repository, "papers", "style: meadow", "style: cottage")

    assert diff(repository, "HEAD").startswith("1 retagged.")


def test_a_link_in_a_revision_is_not_followed(repository: Path) -> None:
    (repository / "data" / "papers.yaml").unlink()
    os.symlink("/etc/hostname", repository / "data" / "papers.yaml")
    git(repository, "commit", "--quiet", "--all", "--message", "Link")
    result = run_corpus("--root", str(TOY), "diff", "HEAD")
    assert result.code == 0
    git(repository, "checkout", "--quiet", "HEAD~1")

    linked = run_corpus("--root", str(repository), "diff", "main")
    assert linked.code == 3
    assert "data/papers.yaml is no plain file" in linked.stderr


def test_the_history_of_this_repository_is_read() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no history here")

    assert run_corpus("--root", str(ROOT), "diff", "HEAD").code == 0


def state(pool: Pool) -> State:
    return State(pool, (), (), {})


TOY_POOL = Pool(load(str(TOY)).taxonomy, load(str(TOY)).papers, load(str(TOY)).exclusions)


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    papers: list[Paper] = draw(st.lists(st.sampled_from(TOY_POOL.papers), unique_by=lambda paper: paper.key))
    styles = st.sampled_from(["formal", "cottage", "meadow", "gravel", "NA"])
    changed = [paper._replace(tags={**paper.tags, "style": draw(styles)}) for paper in papers]
    return TOY_POOL._replace(papers=tuple(changed))


@given(pools())
def test_a_corpus_does_not_differ_from_itself(pool: Pool) -> None:
    change = compare(state(pool), state(pool))

    assert not change.has_meaning
    assert (change.counts, change.cells) == ((), ())


@given(pools(), pools())
def test_a_difference_backwards_is_its_mirror(one: Pool, other: Pool) -> None:
    forth, back = compare(state(one), state(other)), compare(state(other), state(one))

    def keys(papers: tuple[Paper, ...]) -> set[str]:
        return {paper.key for paper in papers}

    assert keys(forth.added) == keys(back.removed)
    assert keys(forth.removed) == keys(back.added)
    assert {(s.field, s.value, s.before, s.after) for s in forth.counts} == {
        (s.field, s.value, s.after, s.before) for s in back.counts
    }
    assert {(s.field, s.value, s.before, s.after) for s in forth.cells} == {
        (s.field, s.value, s.after, s.before) for s in back.cells
    }


@given(pools(), pools())
def test_counts_before_and_after_are_those_of_the_statistics(one: Pool, other: Pool) -> None:
    style = paper_attributes(TOY_POOL.taxonomy)["style"]
    old, new = count(one.papers, style).counts, count(other.papers, style).counts
    shifts = {
        s.value[0]: (s.before, s.after) for s in compare(state(one), state(other)).counts if s.field == ("style",)
    }

    assert shifts == {
        value: (old.get(value, 0), new.get(value, 0))
        for value in {*old, *new}
        if old.get(value, 0) != new.get(value, 0)
    }


@given(st.text(max_size=60))
def test_no_title_becomes_markup_in_a_comment(title: str) -> None:
    paper = TOY_POOL.papers[0]._replace(key="hostile", title=title or "-", urls=("https://example.org/hostile",),
                                        arxiv_id=None, doi=None)  # fmt: skip
    change = compare(state(TOY_POOL), state(TOY_POOL._replace(papers=(*TOY_POOL.papers, paper))))
    comment = render.markdown_comment(change, TOY_POOL.taxonomy)

    body = comment.split("### Papers added\n\n")[1].split("\n\n###")[0]
    assert body.count("\n") == 0
    assert re.search(r"(?<!\\)[`*\[\]<|~]|@\w|#\d|://|www\.", body.replace("style x size", "")) is None


def test_a_comment_is_no_longer_than_github_takes() -> None:
    many = tuple(
        TOY_POOL.papers[0]._replace(key=f"p{n}", title=f"Title {n} " + "x" * 400, arxiv_id=None, doi=None,
                                    urls=(f"https://example.org/{n}",)) for n in range(400)
    )  # fmt: skip
    change: Difference = compare(state(TOY_POOL), state(TOY_POOL._replace(papers=(*TOY_POOL.papers, *many))))
    comment = render.markdown_comment(change, TOY_POOL.taxonomy)

    assert len(comment) < 65_536
    assert comment.count("<details>") == comment.count("</details>")
    assert comment.endswith("See `corpus diff`.\n")


def test_claims_that_a_change_breaks_are_named(tmp_path: Path, real: Corpus) -> None:
    shutil.copytree(ROOT / "data", tmp_path / "data")
    edit(tmp_path, "papers", "credit_unit: message", "credit_unit: turn")
    shown = run_corpus("--root", str(tmp_path), "diff", str(ROOT), str(tmp_path)).stdout

    assert "claims broken" in shown.splitlines()[0]
    assert re.search(r"Claims broken\n  credit-units fails: expected .*", shown)
    assert re.search(r"\n\d+ claims are as before\.\n$", shown)
