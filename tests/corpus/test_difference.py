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
from jsonschema import Draft202012Validator

from orchtrace_corpus.corpus.analysis.attributes import paper_attributes
from orchtrace_corpus.corpus.analysis.difference import Difference, Shift, State, compare
from orchtrace_corpus.corpus.analysis.record_changes import Action
from orchtrace_corpus.corpus.analysis.statistics import count, count_levels
from orchtrace_corpus.corpus.api import load
from orchtrace_corpus.corpus.model.record_fields import fields
from orchtrace_corpus.corpus.model.records import Paper, Pool, Record
from orchtrace_corpus.corpus.render.comment import MOST_BYTES, comment
from orchtrace_corpus.corpus.render.difference import as_document
from tests.conftest import ROOT, TOY, copy_published, run_corpus
from tests.effort import mostly_slow

SCHEMA = json.loads((ROOT / "docs" / "schema" / "diff.schema.json").read_text(encoding="utf-8"))

NAMES = {"data/papers.yaml": ("key",), "data/exclusions.yaml": ("id",)}

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


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose only commit is the toy corpus, in a folder of its own below the top."""
    top = tmp_path_factory.mktemp("committed") / "repository"
    shutil.copytree(TOY / "data", top / "garden" / "data")
    git(top, "init", "--quiet", "--initial-branch", "main")
    git(top, "add", ".")
    git(top, "commit", "--quiet", "--message", "Begin")
    return top


@pytest.fixture
def repository(tmp_path: Path, committed: Path) -> Path:
    """The corpus in a copy of that repository."""
    shutil.copytree(committed, tmp_path / "repository")
    return tmp_path / "repository" / "garden"


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
    if "json" in words:
        document = json.loads(result.stdout)
        assert [error.message for error in Draft202012Validator(SCHEMA).iter_errors(document)] == []
    return result.stdout


def test_a_prepared_history_is_told_whole(repository: Path) -> None:
    append(repository, "papers", ROCK_GARDEN)
    edit(repository, "papers", "style: meadow", "style: cottage")
    edit(repository, "papers", "care: {water: weekly}", "care: {water: daily, prune: daily}")
    edit(repository, "papers", "venue: Journal of Beds", "venue: Journal of Flower Beds")
    edit(repository, "papers", "summary: Lays out four beds of roses.", "summary: Lays out beds of roses.")
    append(repository, "exclusions", SECOND_EXCLUSION)
    git(repository, "commit", "--quiet", "--all", "--message", "Change")
    before, after = (git(repository, "rev-parse", name)[:10] for name in ("HEAD~1", "HEAD"))

    assert diff(repository, "HEAD~1", "HEAD", "--format", "markdown") == (
        "<!-- corpus diff -->\n"
        "**papers: 3 changed, 1 added; exclusions: 1 added; 2 findings new.**\n"
        "\n"
        f"Compared: `HEAD~1 ({before})` with `HEAD ({after})`.\n"
        "\n"
        "### Papers changed\n"
        "\n"
        "- `rose-garden`\n"
        "  - `venue`: `Journal of Beds` → `Journal of Flower Beds`\n"
        "  - `summary`: `Lays out four beds of roses.` → `Lays out beds of roses.`\n"
        "- `long-grass`: `style`: `meadow` → `cottage`\n"
        "- `mixed-borders`\n"
        "  - `care.water`: `weekly` → `daily`\n"
        "  - `care.prune` added: `daily`\n"
        "\n"
        "### To be judged by a person\n"
        "\n"
        "- `rose-garden`: title, year, venue and identifiers are those of the work; "
        "summary and notes are right, and sentences of our own\n"
        "- `long-grass`, `mixed-borders`: the tags say what the sources say, by the definitions of the terms\n"
        "\n"
        "### Findings new\n"
        "\n"
        "- `data/papers.yaml`: `E101` `Daily care needs an item of evidence "
        "(rule 'daily-care-needs-evidence' of the taxonomy)` [`mixed-borders`]\n"
        "- `data/papers.yaml`: `E102` `A large garden of late needs some evidence "
        "(rule 'new-large-garden-needs-evidence' of the taxonomy)` [`rock-garden`]\n"
        "\n"
        "### Papers added\n"
        "\n"
        "- `rock-garden`\n"
        "  - `key`: `rock-garden`\n"
        "  - `title`: `Stones | *and* @moss #1`\n"
        "  - `authors`: `Stone, Sten`\n"
        "  - `year`: `2024`\n"
        "  - `venue`: `Beds 2024`\n"
        "  - `urls`: `https://example.org/rocks`\n"
        "  - `style`: `gravel`\n"
        "  - `care`: (empty)\n"
        "  - `size`: `large`\n"
        "  - `summary`: `Piles stones.`\n"
        "  - `added`: `2024-01-01`\n"
        "\n"
        "### Exclusions added\n"
        "\n"
        "- `E004`\n"
        "  - `id`: `E004`\n"
        "  - `title`: `A Lawn`\n"
        "  - `identifier`: `LAWN`\n"
        "  - `url`: `https://example.org/lawn`\n"
        "  - `stage`: `gate`\n"
        "  - `screened`: `2024-01-02`\n"
        "  - `reason`: `Only grass.`\n"
        "\n"
        "### To be judged of what is new\n"
        "\n"
        "- `rock-garden`: title, year, venue and identifiers are those of the work; the authors are these, in this "
        "order; the links lead to this very work; the tags say what the sources say, by the definitions of the terms; "
        "summary and notes are right, and sentences of our own\n"
        "- `E004`: title, year, venue and identifiers are those of the work; the links lead to this very work; "
        "the tags say what the sources say, by the definitions of the terms; the reason is right, and enough\n"
        "\n"
        "### Counts\n"
        "\n"
        "```\n"
        "field  value       before  after  change\n"
        "total  papers           4      5  +1\n"
        "total  exclusions       2      3  +1\n"
        "style  cottage          1      2  +1\n"
        "style  meadow           1      0  -1\n"
        "style  gravel           0      1  +1\n"
        "water  daily            1      2  +1\n"
        "water  weekly           1      0  -1\n"
        "prune  daily            0      1  +1\n"
        "size   large            1      2  +1\n"
        "stage  gate             1      2  +1\n"
        "```\n"
        "\n"
        "### Cells\n"
        "\n"
        "```\n"
        "fields        values           before  after  what\n"
        "style x size  cottage x large       0      1  fills\n"
        "style x size  meadow x large        1      0  empties\n"
        "style x size  gravel x large        0      1  fills\n"
        "water         daily                 1      2  more than one now\n"
        "water         weekly                1      0  empties\n"
        "prune         daily                 0      1  fills\n"
        "```\n"
    )


def test_the_same_on_a_terminal_and_for_programs(repository: Path) -> None:
    edit(repository, "papers", "style: meadow", "style: cottage")

    assert diff(repository, "HEAD").startswith(
        "papers: 1 changed.\n\nPapers changed\n  long-grass: style: meadow -> cottage\n"
    )
    document = json.loads(diff(repository, "HEAD", "--format", "json"))
    assert (document["schema"], document["has_meaning"]) == ("orchtrace-corpus/diff", True)
    (file,) = document["files"]
    assert (file["path"], file["subject"], file["asides"]) == ("data/papers.yaml", "papers", [])
    assert file["records"] == [
        {"name": "long-grass", "was": "long-grass", "change": "changed", "line": 24, "values": [
            {"path": ["style"], "before": "meadow", "after": "cottage", "line": 31}]},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "old", "new", "message", "told"),
    [
        ("papers", "# A made-up corpus", "# Another remark on a corpus", "comments or the order of records",
         "Changed without another meaning\n  data/papers.yaml: comments: # [-A made-up-]{+Another remark on a+} corpus for the tests.\n"),
        ("papers", "tools: [spade, shears]", "tools: [shears, spade]", "comments or the order of records",
         "Changed without another meaning\n  data/papers.yaml: rose-garden.tools: {+shears+}; spade; [-shears-] (the same in another order)\n"),
        ("papers", "style: formal", "style: \"formal\"  # indeed", "comments or the order of records",
         "Changed without another meaning\n  data/papers.yaml: comments: # A made-up corpus for the tests.; {+# indeed+}\n"),
        ("taxonomy", "title: A toy garden", "title: 'A toy garden'", "the layout", ""),
        ("papers", "year: 2021\n  venue: Journal of Beds", "venue: Journal of Beds\n  year: 2021", "the layout", ""),
    ],
)  # fmt: skip
def test_comments_and_layout_have_no_meaning(
    repository: Path, name: str, old: str, new: str, message: str, told: str
) -> None:
    edit(repository, name, old, new)

    assert diff(repository, "HEAD") == f"No change in meaning: only {message} changed.\n" + "\n" * bool(told) + told
    shown = diff(repository, "HEAD", "--format", "markdown")
    assert shown.startswith(f"<!-- corpus diff -->\n**No change in meaning: only {message} changed.**\n")
    assert run_corpus("--root", str(repository), "diff", "HEAD", "--exit-code").code == 0


def test_the_order_of_records_has_no_meaning(repository: Path) -> None:
    path = repository / "data" / "papers.yaml"
    head, *records = re.split(r"(?m)^(?=- key)", path.read_text(encoding="utf-8"))
    path.write_text(head + "\n".join(record.rstrip("\n") + "\n" for record in reversed(records)), encoding="utf-8")

    assert diff(repository, "HEAD") == (
        "No change in meaning: only comments or the order of records changed.\n"
        "\n"
        "Changed without another meaning\n"
        "  data/papers.yaml: order: {+terminal-yard+}; {+mixed-borders+}; {+long-grass+}; rose-garden;\n"
        "    [-long-grass-]; [-mixed-borders-]; [-terminal-yard-] (the same in another order)\n"
    )


def test_no_change_at_all(repository: Path) -> None:
    assert diff(repository, "HEAD") == "No change: the data is the same.\n"


def test_a_new_key_is_a_new_name(repository: Path) -> None:
    edit(repository, "papers", "- key: long-grass", "- key: tall-grass")

    assert diff(repository, "HEAD") == (
        "papers: 1 changed.\n"
        "\n"
        "Papers changed\n"
        "  tall-grass, until now long-grass: key: long-grass -> tall-grass\n"
        "\n"
        "To be judged by a person\n"
        "  tall-grass: there is a reason for each change, and what is now is right\n"
    )


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

    assert "Papers added\n  rock-garden, promoted from E003\n    key: rock-garden\n    title: A Car Park\n" in shown
    assert (
        "Papers removed\n  mixed-borders, excluded as E004\n    key: mixed-borders\n    title: Borders without Lines\n"
        in shown
    )
    assert "  mixed-borders: there is a reason to remove it\n" in shown


def test_changes_of_the_vocabulary_are_told(repository: Path) -> None:
    edit(repository, "taxonomy", "{id: gravel, code: S3, label: Gravel, definition: Stones.}",
         "{id: gravel, code: S3, label: Gravel, definition: Small stones.}\n      - {id: moss, code: S4, label: Moss, definition: Moss.}")  # fmt: skip

    assert diff(repository, "HEAD") == (
        "taxonomy: 2 changed.\n"
        "\n"
        "Taxonomy changed\n"
        "  data/taxonomy.yaml\n"
        "    papers[style].terms[gravel].definition: Stones. -> Small stones.\n"
        "    papers[style].terms[moss] added: id: moss; code: S4; label: Moss; definition: Moss.\n"
        "\n"
        "To be judged by a person\n"
        "  data/taxonomy.yaml: there is a reason for each change, and what is now is right\n"
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

    assert diff(repository, "empty", "main").startswith(
        f"taxonomy: 6 added; papers: 4 added; exclusions: 2 added.\nThere is no data/papers.yaml in empty ({git(repository, 'rev-parse', 'empty')[:10]}).\n"
    )
    assert diff(repository, "main", "empty").startswith(
        "taxonomy: 6 removed; papers: 4 removed; exclusions: 2 removed.\n"
    )


def test_three_dots_compare_with_where_the_two_parted(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "-b", "mine")
    edit(repository, "papers", "size: large", "size: small")
    git(repository, "commit", "--quiet", "--all", "--message", "Mine")
    git(repository, "checkout", "--quiet", "main")
    edit(repository, "papers", "style: meadow", "style: cottage")
    git(repository, "commit", "--quiet", "--all", "--message", "Theirs")

    assert diff(repository, "main...mine").startswith(
        "papers: 1 changed; 1 finding new.\n\nPapers changed\n  long-grass: size: large -> small\n"
    )


def test_claims_on_the_agreement_of_readers_are_judged_by_the_sheets_of_each_revision(repository: Path) -> None:
    """Whatever stands in the working tree."""
    sheet = repository / "data" / "audits" / "one.csv"
    sheet.parent.mkdir()
    sheet.write_text("key,style\nrose-garden,formal\nlong-grass,meadow\n", encoding="utf-8")
    (repository / "data" / "claims.yaml").write_text(
        "- id: agree\n  claim: Readers agree.\n  over: papers\n"
        "  expect: {sheets: [data/audits/one.csv], agreement: 2 of 2}\n  boundary: Here.\n  source: Seen.\n",
        encoding="utf-8",
    )
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "--message", "Sheets")
    git(repository, "checkout", "--quiet", "-b", "mine")
    sheet.write_text("key,style\nrose-garden,gravel\nlong-grass,meadow\n", encoding="utf-8")
    git(repository, "commit", "--quiet", "--all", "--message", "Mine")
    git(repository, "checkout", "--quiet", "main")

    assert "Claims broken\n  agree fails: expected 2 of 2; found 1 of 2." in diff(repository, "main...mine")


def test_two_folders_need_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(TOY / "data", tmp_path / "other" / "data")
    edit(tmp_path / "other", "papers", "style: meadow", "style: cottage")
    monkeypatch.setenv("PATH", "")

    assert diff(TOY, str(TOY), str(tmp_path / "other")).startswith("papers: 1 changed.")
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
    assert diff(shallow, first).startswith("papers: 1 changed.")
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

    assert diff(repository, "HEAD").startswith("papers: 1 changed.")


def commit_link(folder: Path, target: str, name: str = "data/papers.yaml") -> None:
    """Commit a symbolic link in the place of a file or folder, and return to the commit before."""
    path = folder / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    os.symlink(target, path)
    git(folder, "add", "--all", ".")
    git(folder, "commit", "--quiet", "--message", "Link")
    git(folder, "checkout", "--quiet", "HEAD~1")


def test_a_link_out_of_a_revision_is_not_followed(repository: Path) -> None:
    commit_link(repository, "/etc/hostname")

    linked = run_corpus("--root", str(repository), "diff", "main")
    assert linked.code == 3
    assert "is a symbolic link to no file of that revision\nCompare two folders instead." in linked.stderr


@pytest.mark.parametrize("name", ["data/papers.yaml", "data"])
def test_a_link_within_a_revision_is_followed(repository: Path, name: str) -> None:
    kept = repository / "kept"
    shutil.copytree(repository / "data", kept)
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "--message", "Keep")
    commit_link(repository, "kept" if name == "data" else "../kept/papers.yaml", name)

    assert diff(repository, "HEAD", "main") == "No change: the data is the same.\n"


def test_data_that_is_elsewhere_is_not_taken_for_none(repository: Path, tmp_path: Path) -> None:
    module = tmp_path / "module"
    shutil.copytree(TOY / "data", module)
    git(module, "init", "--quiet")
    git(module, "add", ".")
    git(module, "commit", "--quiet", "--message", "Data")
    git(repository, "rm", "--quiet", "-r", "--cached", "data")
    shutil.rmtree(repository / "data")
    add = ("submodule", "--quiet", "add", str(module), "garden/data")
    git(repository.parent, "-c", "protocol.file.allow=always", *add)
    git(repository, "commit", "--quiet", "--message", "Module")

    elsewhere = run_corpus("--root", str(repository), "diff", "HEAD")
    assert (elsewhere.code, elsewhere.stdout) == (3, "")
    assert "is a submodule, whose files are in another repository" in elsewhere.stderr

    (repository / "data" / "papers.yaml").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    pointer = run_corpus("--root", str(repository), "diff", "HEAD~1")
    assert (pointer.code, pointer.stdout) == (3, "")
    assert "data/papers.yaml of the working tree is a pointer of Git LFS" in pointer.stderr


def test_a_partial_clone_asks_nobody_for_what_it_lacks(repository: Path, tmp_path: Path) -> None:
    git(repository, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "--quiet", "--filter=blob:none", f"file://{repository.parent}", "partial")
    edit(repository, "papers", "style: meadow", "style: cottage")
    git(repository, "commit", "--quiet", "--all", "--message", "More")
    partial = tmp_path / "partial" / "garden"
    git(partial, "fetch", "--quiet")

    assert run_corpus("--root", str(partial), "diff", "origin/main") == (
        3,
        "",
        "corpus: this partial clone lacks a part of the revision\nBring it with: git fetch --refetch origin\n",
    )


def test_the_history_of_this_repository_is_read() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no history here")

    assert run_corpus("--root", str(ROOT), "diff", "HEAD").code == 0


def state(pool: Pool) -> State:
    """The state of a corpus with these records, as far as it does not depend on its files."""
    records: dict[str, tuple[Record, ...]] = {"data/papers.yaml": pool.papers, "data/exclusions.yaml": pool.exclusions}
    texts = {
        path: json.dumps([dict(fields(one, pool.taxonomy)) for one in group], indent=1, ensure_ascii=False)
        for path, group in records.items()
    }
    return State(pool, (), (), {path: text.encode() for path, text in texts.items()})


def numbers(shifts: tuple[Shift, ...]) -> set[tuple[tuple[str, ...], tuple[str, ...], int, int]]:
    return {(shift.fields, shift.values, shift.before, shift.after) for shift in shifts}


TOY_POOL = Pool(load(str(TOY)).taxonomy, load(str(TOY)).papers, load(str(TOY)).exclusions)


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    papers: list[Paper] = draw(st.lists(st.sampled_from(TOY_POOL.papers), unique_by=lambda paper: paper.key))
    styles = st.sampled_from(["formal", "cottage", "meadow", "gravel", "NA"])
    cares = st.dictionaries(st.sampled_from(["water", "prune"]), st.sampled_from(["daily", "weekly"]))
    changed = [paper._replace(tags={**paper.tags, "style": draw(styles), "care": draw(cares)}) for paper in papers]
    return TOY_POOL._replace(papers=tuple(changed))


@given(pools())
def test_a_corpus_does_not_differ_from_itself(pool: Pool) -> None:
    change = compare(state(pool), state(pool), NAMES)

    assert not change.has_meaning
    assert (change.counts, change.cells) == ((), ())


@given(pools(), pools())
def test_a_difference_backwards_is_its_mirror(one: Pool, other: Pool) -> None:
    forth, back = compare(state(one), state(other), NAMES), compare(state(other), state(one), NAMES)

    def keys(papers: tuple[Paper, ...]) -> set[str]:
        return {paper.key for paper in papers}

    assert keys(forth.added) == keys(back.removed)
    assert keys(forth.removed) == keys(back.added)
    for there, here in ((forth.counts, back.counts), (forth.cells, back.cells), (forth.totals, back.totals)):
        assert numbers(there) == {(field, value, after, before) for field, value, before, after in numbers(here)}

    def values(change: Difference, *, is_back: bool = False) -> set[object]:
        sides = [
            (record.name, record.was, value.path, *map(repr, (value.before, value.after)[:: -1 if is_back else 1]))
            for file in change.files
            for record in file.records
            if record.change is Action.CHANGED
            for value in record.values
        ]
        return set(sides)

    assert values(forth) == values(back, is_back=True)


@given(pools(), pools())
def test_counts_before_and_after_are_those_of_the_statistics(one: Pool, other: Pool) -> None:
    attributes = paper_attributes(TOY_POOL.taxonomy)
    shifted = {(s.fields[0], s.values[0]): (s.before, s.after) for s in compare(state(one), state(other), NAMES).counts}
    care = next(facet for facet in TOY_POOL.taxonomy.papers if facet.levels)
    levels = [count_levels(pool.papers, care).counts for pool in (one, other)]
    expected = {
        (term, level): tuple(counts[term][level] for counts in levels)
        for term in ("water", "prune")
        for level in ("daily", "weekly")
    }
    for field in ("style", "tools", "size"):
        old, new = (count(pool.papers, attributes[field]).counts for pool in (one, other))
        expected |= {(field, value): (old.get(value, 0), new.get(value, 0)) for value in attributes[field].allowed}

    assert shifted == {name: pair for name, pair in expected.items() if pair[0] != pair[1]}


def test_a_cell_that_gets_or_loses_its_only_paper_is_told() -> None:
    first, *_, last = TOY_POOL.papers
    twin = last._replace(key="twin", title="Another", urls=("https://example.org/twin",))
    one = TOY_POOL._replace(papers=(first, last._replace(tags={**last.tags, "style": "formal"})))
    other = TOY_POOL._replace(papers=(first, twin._replace(tags={**last.tags, "style": "gravel"})))

    turns = {shift.values: shift.turn for shift in compare(state(one), state(other), NAMES).cells}
    assert turns == {("formal", "small"): "one left", ("gravel", "small"): "fills"}
    back = {shift.values: shift.turn for shift in compare(state(other), state(one), NAMES).cells}
    assert back == {("formal", "small"): "more than one now", ("gravel", "small"): "empties"}


def test_a_key_given_to_another_paper_is_no_correction() -> None:
    first, second, *_ = TOY_POOL.papers
    new = first._replace(key="new-name")
    taken = second._replace(key=first.key, title="Something else", urls=("https://example.org/else",), arxiv_id=None)
    change = compare(state(TOY_POOL._replace(papers=(first,))), state(TOY_POOL._replace(papers=(taken, new))), NAMES)

    assert [paper.title for paper in change.added] == ["Something else"]
    (file,) = change.files
    assert [(record.was, record.name) for record in file.records if record.was] == [("rose-garden", "new-name")]


def test_many_papers_retagged_alike_are_told_together(repository: Path) -> None:
    path = repository / "data" / "papers.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("size: small", "size: large"), encoding="utf-8")

    assert diff(repository, "HEAD").startswith(
        "papers: 3 changed.\n\nPapers changed\n  3 papers: rose-garden, mixed-borders, terminal-yard: size: small -> large\n"
    )


def test_what_a_syntax_error_hides_is_not_said_to_be_gone(repository: Path) -> None:
    edit(repository, "papers", "title: Long Grass and How to Keep It", 'title: "Long Grass')

    assert diff(repository, "HEAD") == (
        "papers: 1 changed; 1 finding new.\n"
        "Not all of the working tree could be read (1 error): counts are of what could, and no claim is\n"
        "judged.\n"
        "\n"
        "Papers changed\n"
        '  data/papers.yaml: line 25: title: Long Grass and How to Keep It -> title: "Long Grass\n'
        "\n"
        "To be judged by a person\n"
        "  data/papers.yaml: there is a reason for each change, and what is now is right\n"
        "\n"
        "Findings new\n"
        "  data/papers.yaml: Y104 not valid YAML: a closing quote is missing; the rest of the file was not\n"
        "    read\n"
    )
    git(repository, "commit", "--quiet", "--all", "--message", "Break")
    assert diff(repository, "HEAD", "HEAD~1").startswith("papers: 1 changed; 1 finding gone.\n")


def test_what_is_no_term_is_told_as_it_stands(repository: Path) -> None:
    edit(repository, "papers", "style: meadow", "style: medow")
    edit(repository, "papers", "level: visit", "level: vist")

    assert (
        "Papers changed\n  rose-garden: evidence[1: The gardener waters every day.].level: visit -> vist\n  long-grass: style: meadow -> medow\n"
    ) in diff(repository, "HEAD")


def test_a_broken_or_absent_taxonomy_gives_way_to_the_other(repository: Path) -> None:
    edit(repository, "taxonomy", "title: A toy garden", "titel: A toy garden")
    edit(repository, "papers", "style: meadow", "style: cottage")
    shown = diff(repository, "HEAD")
    assert "The taxonomy of the working tree has errors; its records are read by that of HEAD (" in shown
    assert "long-grass: style: meadow -> cottage" in shown
    assert "data/taxonomy.yaml: F102 unknown field 'titel'" in shown

    (repository / "data" / "taxonomy.yaml").unlink()
    shown = diff(repository, "HEAD").replace("HEAD\n(", "HEAD (")
    assert "There is no data/taxonomy.yaml in the working tree; its records are read by that of HEAD (" in shown
    assert "long-grass: style: meadow -> cottage" in shown
    git(repository, "commit", "--quiet", "--all", "--message", "Remove")
    neither = run_corpus("--root", str(repository), "diff", "HEAD")
    assert neither.code == 3
    assert "holds a taxonomy that can be read" in neither.stderr


def test_a_field_of_another_kind_is_counted_by_each_vocabulary(repository: Path) -> None:
    path = repository / "data" / "taxonomy.yaml"
    text = path.read_text(encoding="utf-8").replace("kind: levels", "kind: many")
    path.write_text(re.sub(r"(?s)    levels:\n.*?Every week\.}\n", "", text), encoding="utf-8")
    path = repository / "data" / "papers.yaml"
    text = re.sub(r"care: {(\w+): \w+(?:, (\w+): \w+)?}", r"care: [\1, \2]", path.read_text(encoding="utf-8"))
    path.write_text(text.replace(", ]", "]").replace("care: {}", "care: [water]"), encoding="utf-8")

    document = json.loads(diff(repository, "HEAD", "--format", "json"))
    counts = {(*one["fields"], *one["values"]): (one["before"], one["after"]) for one in document["counts"]}
    assert counts[("water", "weekly")] == (1, 0)
    assert counts[("care", "water")] == (2, 3)
    assert "papers[care].kind: levels -> many" in diff(repository, "HEAD")


def test_other_files_of_the_corpus_are_not_passed_over(repository: Path) -> None:
    (repository / "data" / "traces").mkdir()
    (repository / "data" / "traces" / "one.json").write_text("{}")
    (repository / "data" / "disputes.yaml").write_text("# None yet.\n[]\n")
    (repository / "data" / ".papers.yaml.swp").write_text("x")
    shown = (
        "disputes: 1 added; traces: 1 added.\n"
        "\n"
        "Disputes added\n"
        "  data/disputes.yaml: file: 15 bytes, SHA-256\n"
        "    060e898dbaa4d6776b68af4d262efd671b5ef80e480213db77a319f02d93961c\n"
        "\n"
        "Traces added\n"
        "  data/traces/one.json: file: 2 bytes, SHA-256\n"
        "    44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a\n"
    )
    assert diff(repository, "HEAD") == shown

    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "--message", "More")
    assert diff(repository, "HEAD~1", "HEAD") == shown
    (repository / "data" / "disputes.yaml").write_text("# None.\n[]\n")
    assert diff(repository, "HEAD") == (
        "No change in meaning: only comments or the order of records changed.\n"
        "\n"
        "Changed without another meaning\n"
        "  data/disputes.yaml: comments: # None yet. -> # None.\n"
    )


def test_evidence_is_shown_item_by_item_and_its_order_has_no_meaning(repository: Path) -> None:
    second = """    - tags: [size]
      note: It is small.
      source: https://example.org/roses
      level: visit
      confidence: high
"""
    edit(repository, "papers", "  evidence:\n", f"  evidence:\n{second}")
    assert (
        "Papers changed\n"
        "  rose-garden: evidence[1] added: tags: (size); note: It is small.; source:\n"
        "    https://example.org/roses; level: visit; confidence: high\n"
        "\n"
        "To be judged by a person\n"
        "  rose-garden: each source exists, and says what its note says; level and confidence fit each source\n"
    ) in diff(repository, "HEAD")
    git(repository, "commit", "--quiet", "--all", "--message", "More")
    edit(repository, "papers", "level: visit", "level: photo")
    assert (
        "  rose-garden: evidence[1: It is small.].level: visit -> photo\n"
        "\n"
        "To be judged by a person\n"
        "  rose-garden: level and confidence fit each source\n"
    ) in diff(repository, "HEAD")
    edit(repository, "papers", "source: https://example.org/roses", "source: https://example.org/other")
    assert (
        "  rose-garden\n"
        "    evidence[1: It is small.].source: https://example.org/[-roses-]{+other+}\n"
        "    evidence[1: It is small.].level: visit -> photo\n"
    ) in diff(repository, "HEAD")
    git(repository, "checkout", "--quiet", ".")
    edit(repository, "papers", second, "")
    edit(repository, "papers", '  added: "2021-05-01"', f'{second}  added: "2021-05-01"')
    assert diff(repository, "HEAD") == (
        "No change in meaning: only comments or the order of records changed.\n"
        "\n"
        "Changed without another meaning\n"
        "  data/papers.yaml: rose-garden.evidence.order: {+[2]+}; [1]; [-[2]-] (the same in another order)\n"
    )


def test_words_that_name_no_one_commit(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "--orphan", "other")
    git(repository, "commit", "--quiet", "--message", "Else")
    tree = git(repository, "rev-parse", "HEAD^{tree}")
    expected = {
        "main...other": "have no commit in common here",
        tree: f"there is no commit '{tree}' in this clone\nBring the commit with: git fetch --depth=1 origin {tree}",
        "HEAD\nHEAD": "there is no commit 'HEAD\\nHEAD' in this clone",
        "../nowhere": "Nor is it a folder that holds data/papers.yaml.",
    }
    for words, message in expected.items():
        result = run_corpus("--root", str(repository), "diff", words)
        assert (words, result.code, result.stdout) == (words, 3, "")
        assert message in result.stderr


def test_two_states_without_data_cannot_be_compared(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "--orphan", "empty")
    git(repository, "rm", "--quiet", "-r", "--cached", ".")
    git(repository, "commit", "--quiet", "--allow-empty", "--message", "Nothing")
    result = run_corpus("--root", str(repository), "diff", "empty", "HEAD")

    assert (result.code, result.stdout) == (3, "")
    assert "holds data/papers.yaml" in result.stderr


def test_two_dots_name_both_ends(repository: Path) -> None:
    edit(repository, "papers", "size: large", "size: small")
    git(repository, "commit", "--quiet", "--all", "--message", "More")

    assert diff(repository, "HEAD~1..HEAD") == diff(repository, "HEAD~1", "HEAD")
    assert diff(repository, "HEAD~1..") == diff(repository, "HEAD~1", "HEAD")


def test_exit_code_tells_a_change_in_meaning(repository: Path) -> None:
    assert run_corpus("--root", str(repository), "diff", "HEAD", "--exit-code").code == 0
    edit(repository, "papers", "size: large", "size: small")
    assert run_corpus("--root", str(repository), "diff", "HEAD", "--exit-code").code == 1


@pytest.mark.parametrize("title", mostly_slow([sign * 400 for sign in "x字@<"], ["字" * 400, "<" * 400]))
def test_a_comment_is_no_longer_than_github_takes_and_leaves_no_part_out(title: str) -> None:
    many = tuple(
        TOY_POOL.papers[0]._replace(key=f"p{n}", title=f"Title {n} {title}", arxiv_id=None, doi=None,
                                    urls=(f"https://example.org/{n}",)) for n in range(400)
    )  # fmt: skip
    change = compare(state(TOY_POOL), state(TOY_POOL._replace(papers=(*TOY_POOL.papers[1:], *many))), NAMES)
    shown = comment(as_document(change))

    assert len(shown.encode()) <= MOST_BYTES
    assert shown.count("<details>") == shown.count("</details>") > 0
    assert "### Papers removed" in shown
    assert "### Counts" in shown
    assert re.search(r"\n… and \d+ more lines of \d+ entries: `data/papers.yaml:\d+`, .* and \d+ more places\n", shown)
    assert shown.endswith(
        "\nThis comment is full: each part ends with what is left out of it. `corpus diff` shows all of it.\n"
    )


def test_claims_are_held_against_both_sides(repository: Path) -> None:
    claim = """
- id: {id}
  claim: {sentence}
  where: {{style: {style}}}
  expect: {{count: 1}}
  boundary: In this garden.
  source: Seen.
"""
    (repository / "data" / "claims.yaml").write_text(
        claim.format(id="meadow", sentence="There is one meadow.", style="meadow")
        + claim.format(id="gravel", sentence="There is one gravel garden.", style="gravel")
        + claim.format(id="formal", sentence="There is one formal garden.", style="formal")
        + claim.format(id="dropped", sentence="Nobody says so any more.", style="NA")
    )
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "--message", "Claim")
    edit(repository, "papers", "style: meadow", "style: gravel")
    text = (repository / "data" / "claims.yaml").read_text().replace("one formal garden", "just one formal garden")
    text = text[: text.index("\n- id: dropped")] + claim.format(id="new", sentence="One is mixed.", style="cottage")
    (repository / "data" / "claims.yaml").write_text(text)

    assert diff(repository, "HEAD").partition("\nCounts")[0] == (
        "papers: 1 changed; claims: 1 changed, 1 removed, 1 added; 1 claim broken; 1 claim made true; 1 claim\n"
        "new.\n"
        "\n"
        "Claims broken\n"
        "  meadow fails: expected 1; found 0. There is one meadow.\n"
        "\n"
        "Papers changed\n"
        "  long-grass: style: meadow -> gravel\n"
        "\n"
        "Claims changed\n"
        "  formal: claim: There is one formal garden. -> There is just one formal garden.\n"
        "\n"
        "Claims removed\n"
        "  dropped\n"
        "    id: dropped\n"
        "    claim: Nobody says so any more.\n"
        "    where: style: NA\n"
        "    expect: count: 1\n"
        "    boundary: In this garden.\n"
        "    source: Seen.\n"
        "\n"
        "To be judged by a person\n"
        "  long-grass: the tags say what the sources say, by the definitions of the terms\n"
        "  data/claims.yaml formal: there is a reason for each change, and what is now is right\n"
        "  data/claims.yaml dropped: there is a reason to remove it\n"
        "\n"
        "Claims made true\n"
        "  gravel holds. There is one gravel garden.\n"
        "\n"
        "Claims new\n"
        "  new holds. One is mixed.\n"
        "\n"
        "Claims added\n"
        "  new\n"
        "    id: new\n"
        "    claim: One is mixed.\n"
        "    where: style: cottage\n"
        "    expect: count: 1\n"
        "    boundary: In this garden.\n"
        "    source: Seen.\n"
    )
    document = json.loads(diff(repository, "HEAD", "--format", "json"))
    assert [(one["id"], one["before"], one["after"]) for one in document["claims"]["changed"]] == [
        ("meadow", True, False),
        ("gravel", False, True),
        ("new", None, True),
    ]


def test_a_claim_that_cannot_be_read_is_not_said_to_be_gone_or_new(repository: Path) -> None:
    path = repository / "data" / "claims.yaml"
    path.write_text(
        "- id: meadow\n  claim: There is one meadow.\n  where: {style: meadow}\n  expect: {count: 1}\n"
        "  boundary: In this garden.\n  source: Seen.\n"
    )
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "--message", "Claim")
    edit(repository, "claims", "expect: {count: 1}", "expects: {count: 1}")
    forth = diff(repository, "HEAD")
    git(repository, "commit", "--quiet", "--all", "--message", "Break it")

    assert forth.startswith("claims: 1 changed; 2 findings new.\n")
    assert "Findings new\n  data/claims.yaml: F102 unknown field 'expects'" in forth
    assert "gone" not in forth
    edit(repository, "claims", "expects: {count: 1}", "expect: {count: 1}")
    assert diff(repository, "HEAD").startswith("claims: 1 changed; 2 findings gone.\n")
    edit(repository, "claims", "- id: meadow", "- id: [")
    assert "laim gone" not in diff(repository, "HEAD~1")
    edit(repository, "claims", "- id: [", "- identity: meadow")
    assert "laim gone" not in diff(repository, "HEAD~1"), "which claim it was is not known"


def test_disputes_and_observations_that_changed_are_named(repository: Path) -> None:
    dispute = (
        "- record: {0}\n  tag: size\n  stands: {1}\n  readings: {{small: first, large: second}}\n  why: Seen.\n"
        "  source: https://example.org/sizes\n"
    )
    path = repository / "data" / "disputes.yaml"
    path.write_text(dispute.format("rose-garden", "small") + dispute.format("long-grass", "large"))
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "--message", "Dispute")
    text = path.read_text().replace("why: Seen.", "why: Seen twice.\n  state: settled", 1)
    path.write_text(text[: text.index("- record: long-grass")] + dispute.format("mixed-borders", "small"))

    assert diff(repository, "HEAD").partition("\nTo be judged")[0] == (
        "disputes: 1 changed, 1 removed, 1 added.\n"
        "\n"
        "Disputes changed\n"
        "  rose-garden size\n"
        "    why: Seen. -> Seen twice.\n"
        "    state added: settled\n"
        "\n"
        "Disputes removed\n"
        "  long-grass size\n"
        "    record: long-grass\n"
        "    tag: size\n"
        "    stands: large\n"
        "    readings: small: first; large: second\n"
        "    why: Seen.\n"
        "    source: https://example.org/sizes\n"
    )


def test_the_schema_of_a_difference_describes_every_part_of_one(repository: Path) -> None:
    append(repository, "papers", ROCK_GARDEN)
    edit(repository, "papers", "style: meadow", "style: cottage")
    edit(repository, "papers", "size: small", "size: tiny")
    append(repository, "exclusions", SECOND_EXCLUSION)
    edit(repository, "taxonomy", "label: Gravel", "label: Gravel beds")
    document = json.loads(diff(repository, "HEAD", "--format", "json"))

    Draft202012Validator.check_schema(SCHEMA)
    assert {*SCHEMA["required"], *SCHEMA["anyOf"][0]["required"]} == set(document)
    assert set(SCHEMA["properties"]) - set(document) == {"refused"}
    for name in document:
        assert not Draft202012Validator(SCHEMA).is_valid({**document, name: 7}), name


def test_claims_that_a_change_breaks_are_named(tmp_path: Path) -> None:
    before, after = (copy_published(tmp_path / name) for name in ("before", "after"))
    edit(after, "papers", "credit_unit: message", "credit_unit: turn")
    shown = run_corpus("--root", str(after), "diff", str(before), str(after)).stdout

    assert "claims broken" in shown.splitlines()[0]
    assert re.search(r"Claims broken\n  credit-units fails: expected .*", shown)
    assert re.search(r"\n\d+ claims are as before\.\n$", shown)
