"""`build` writes, `check` compares, and nothing that changes in the data goes unnoticed."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchtrace_corpus.base.commands.output import Output
from tests.conftest import ROOT, run_corpus
from tests.corpus.files import contents, edit
from tests.effort import mostly_slow

README = """\
# Toy

<!-- corpus:begin counts -->
<!-- corpus:end counts -->

<!-- corpus:begin list -->
<!-- corpus:end list -->
"""


@pytest.fixture
def root(root: Path) -> Path:
    """Build the toy corpus."""
    (root / "README.md").write_text(README, encoding="utf-8")
    assert run_corpus("--root", str(root), "check", "form", "--fix").code == 0
    assert run_corpus("--root", str(root), "build").code == 0
    return root


def test_the_repository_itself_is_built() -> None:
    result = run_corpus("--root", str(ROOT), "check")

    assert (result.code, [line.split()[:2] for line in result.stdout.splitlines()]) == (
        0,
        [
            [name, "ok"]
            for name in (
                "data",
                "evidence",
                "claims",
                "disputes",
                "published",
                "codebook",
                "protocol",
                "searches",
                "form",
                "build",
                "traces",
                "rewards",
            )
        ],
    )


def test_build_writes_what_check_asks_for(root: Path) -> None:
    assert set(contents(root)) == {
        "README.md",
        "data/exclusions.yaml",
        "data/papers.yaml",
        "data/taxonomy.yaml",
        "docs/STATS.md",
        "docs/figures.md",
        "docs/figures/care.svg",
        "docs/figures/papers-by-year.svg",
        "docs/figures/screening-flow.svg",
        "docs/figures/size.svg",
        "docs/figures/style-by-size.svg",
        "docs/figures/style.svg",
        "docs/figures/tools.svg",
        "docs/schema/exclusions.schema.json",
        "docs/schema/papers.schema.json",
    }
    assert run_corpus("--root", str(root), "check").code == 0


def test_building_twice_changes_nothing(root: Path) -> None:
    before = contents(root)

    result = run_corpus("--root", str(root), "build")

    assert (result.code, result.stdout, result.stderr) == (0, "", "")
    assert contents(root) == before


def test_building_elsewhere_gives_the_same_bytes(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "ein anderer Ört"
    shutil.copytree(root, other)
    for name in ("README.md", "docs/STATS.md"):
        (other / name).unlink() if name != "README.md" else (other / name).write_text(README, encoding="utf-8")
    settings = {**os.environ, "LC_ALL": "C", "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "77", "PYTHONUTF8": "0"}

    subprocess.run([sys.executable, "-m", "orchtrace_corpus", "build"], cwd=other, env=settings, check=True)

    assert contents(other) == contents(root)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("title: The Yard", "title: The Back Yard"),
        ("style: cottage", "style: gravel"),
        ("{water: weekly}", "{prune: weekly}"),
        ("summary: Describes a yard.", "summary: Describes one yard."),
        ("https://example.org/yard", "https://example.org/backyard"),
        ("venue: Report", "venue: Reports"),
        ("year: 1999", "year: 1998"),
    ],
)
def test_a_changed_field_makes_every_check_fail_and_name_the_mend(root: Path, old: str, new: str) -> None:
    edit(root, old, new)

    check = run_corpus("--root", str(root), "check")
    readme = run_corpus("--root", str(root), "build", "readme", "--check")

    assert check.code == readme.code == 1
    assert re.search(
        r"^build     failed \d+ generated files? (is|are) stale; run corpus build, or check --stale notice for a pull request: README.md \(region",
        check.stdout,
        re.M,
    )
    assert "+++" not in check.stdout
    assert "corpus: README.md is not up to date; to fix: corpus build readme" in readme.stderr
    assert "+++ b/README.md" in readme.stdout
    assert run_corpus("--root", str(root), "build").code == 0
    assert run_corpus("--root", str(root), "check").code == 0


def test_a_retagged_paper_makes_the_statistics_stale(root: Path) -> None:
    edit(root, "size: small", "size: large")

    result = run_corpus("--root", str(root), "build", "stats", "--check")

    assert result.code == 1
    assert "docs/STATS.md is not up to date; to fix: corpus build stats" in result.stderr
    assert run_corpus("--root", str(root), "build", "stats").code == 0
    assert run_corpus("--root", str(root), "build", "stats", "--check").code == 0


def test_an_added_and_a_removed_record_make_check_fail(root: Path) -> None:
    original = (root / "data" / "papers.yaml").read_text(encoding="utf-8")
    blocks = original.split("\n\n")
    (root / "data" / "papers.yaml").write_text("\n\n".join(blocks[:-1]) + "\n", encoding="utf-8")
    assert run_corpus("--root", str(root), "check").code == 1
    added = blocks[-1].replace("terminal-yard", "second-yard").replace("The Yard", "Two").replace("org/yard", "org/two")
    (root / "data" / "papers.yaml").write_text(f"{original}\n{added}", encoding="utf-8")
    result = run_corpus("--root", str(root), "check")

    assert result.code == 1
    assert "docs/STATS.md" in result.stdout


def test_check_says_once_what_many_records_have_in_common_and_validate_names_each(root: Path) -> None:
    edit(root, "{id: small,", "{id: little,", "data/taxonomy.yaml")

    told = run_corpus("--root", str(root), "check").stdout.splitlines()
    each = run_corpus("--root", str(root), "check", "data").stdout.splitlines()

    lines = [line.split(":")[1] for line in each if "V102 unknown size 'small'" in line]
    assert told[:2] == [each[0], f"  also on 2 lines: {lines[1]}, {lines[2]}; corpus check data names each"]
    assert len(lines) == 3
    assert sum("V102" in line for line in told) == 1


def test_check_names_every_line_itself_of_what_validate_does_not_ask(root: Path) -> None:
    keys = ("a", "b", "c", "d", "e")
    rows = (
        "- {record: %s, tag: style, stands: formal, readings: {formal: us, rock: them}, why: It is., source: A book}\n"
    )
    (root / "data" / "disputes.yaml").write_text("".join(rows % key for key in keys), encoding="utf-8")

    told = run_corpus("--root", str(root), "check").stdout.splitlines()
    assert [line.split(":", 1)[1] for line in told[:1]] == [
        "1:66: C203 style has no value 'rock' (allowed: formal, cottage, meadow, gravel, NA) [a]"
    ]
    assert told[1] == "  also on 4 lines: 2, 3, 4, 5"
    assert "C203" not in run_corpus("--root", str(root), "check", "data").stdout


def test_check_breaks_lines_at_blanks_to_the_width_of_a_terminal(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(root, "{id: small,", "{id: little,", "data/taxonomy.yaml")
    monkeypatch.chdir(root)
    monkeypatch.setattr(Output, "width", 60)

    assert run_corpus("check").stdout.splitlines() == [
        "data/papers.yaml:14:9: V102 unknown size 'small' (allowed:",
        "  little, large) [rose-garden]",
        "  also on 2 lines: 47, 60; corpus check data names each",
        "data/taxonomy.yaml:81:15: X103 rule 'gravel-is-small': size",
        "  has no value 'small' (allowed: little, large)",
        "  [gravel-is-small]",
        "data      failed 4 errors; to fix: see above",
        "form      skipped: the data has errors",
        "build     skipped: the data has errors",
    ]


def test_a_hand_edit_inside_a_region_is_named(root: Path) -> None:
    edit(root, "The Yard", "My Yard", "README.md")

    result = run_corpus("--root", str(root), "check")

    assert result.code == 1
    assert (
        "build     failed 1 generated file is stale; run corpus build, or check --stale notice for a pull request: README.md (region list)\n"
        in result.stdout
    )
    assert "-- [My Yard]" in run_corpus("--root", str(root), "build", "--check").stdout


def test_a_hand_edit_outside_the_regions_is_kept(root: Path) -> None:
    edit(root, "# Toy\n", "# Toy\n\nBy hand, é.\n", "README.md")

    assert run_corpus("--root", str(root), "check").code == 0
    edit(root, "style: cottage", "style: gravel")
    assert run_corpus("--root", str(root), "build").code == 0
    assert (root / "README.md").read_text(encoding="utf-8").startswith("# Toy\n\nBy hand, é.\n")


def test_check_of_broken_data_stops_there(root: Path) -> None:
    edit(root, "style: cottage", "style: cotage")

    result = run_corpus("--root", str(root), "check")

    assert result.code == 1
    assert "V102 unknown style 'cotage'" in result.stdout
    assert re.findall(r"^(\w+) +(\w+)", result.stdout, re.MULTILINE)[-3:] == [
        ("data", "failed"),
        ("form", "skipped"),
        ("build", "skipped"),
    ]


def test_fmt_mends_and_check_says_so(root: Path) -> None:
    edit(root, "  year: 1999\n  venue: Report\n", "  venue:   'Report'\n  year: 1999\n")

    checked = run_corpus("--root", str(root), "check", "form")
    assert checked.code == 1
    assert "-  venue:   'Report'" in checked.stdout
    assert "form      failed" in run_corpus("--root", str(root), "check").stdout
    fixed = run_corpus("--root", str(root), "check", "form", "--fix")
    assert (fixed.code, fixed.stderr) == (0, "wrote data/papers.yaml\n")
    assert run_corpus("--root", str(root), "check").code == 0


def test_fix_writes_values_and_form_and_then_checks_everything(root: Path) -> None:
    edit(root, "summary: Describes a yard.", "summary: Describes a yard")
    edit(root, "  year: 1999\n  venue: Report\n", "  venue:   'Report'\n  year: 1999\n")
    edit(root, "style: cottage", "style: cotage")

    broken = run_corpus("--root", str(root), "check", "--fix")
    assert (broken.code, broken.stderr.splitlines()[-1]) == (1, "fixed data/papers.yaml"), "the form waits for the rest"
    edit(root, "style: cotage", "style: cottage")
    fixed = run_corpus("--root", str(root), "check", "--fix")

    assert (fixed.code, fixed.stderr) == (0, "wrote data/papers.yaml\n")
    assert fixed.stdout == "data      ok     no problems\nform      ok     up to date\nbuild     ok     up to date\n"


def test_fix_of_chosen_codes_leaves_the_form(root: Path) -> None:
    edit(root, "  year: 1999\n  venue: Report\n", "  venue:   'Report'\n  year: 1999\n")

    result = run_corpus("--root", str(root), "check", "--fix", "--select", "M106")

    assert (result.code, "form      failed" in result.stdout, result.stderr) == (1, True, "")


def test_a_form_for_programs_has_the_findings_of_all_parts(root: Path) -> None:
    edit(root, "summary: Describes a yard.", "summary: Describes a yard")
    text = run_corpus("--root", str(root), "check", "--strict")

    result = run_corpus("--root", str(root), "check", "--strict", "--format", "json")

    findings = json.loads(result.stdout)["findings"]
    lines = [line for line in text.stdout.splitlines() if not line.startswith(str(root))]
    assert (result.code, result.stderr.splitlines()) == (text.code, lines) == (1, lines)
    assert {finding["code"] for finding in findings} == set(re.findall(r": ([A-Z]\d+) ", text.stdout)) != set()
    ignored = run_corpus("--root", str(root), "check", "--format", "json", *(f"--ignore={f['code']}" for f in findings))
    assert json.loads(ignored.stdout)["findings"] == []


def test_the_form_has_no_findings_to_choose(root: Path) -> None:
    result = run_corpus("--root", str(root), "check", "form", "--select", "D")

    assert (result.code, "check form has no findings, only a difference" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("word", "command"),
    [
        ("validate", "corpus check data"),
        ("fmt", "corpus check --fix"),
        ("readme", "corpus build readme"),
        ("schema", "corpus build schema"),
    ],
)
def test_a_folded_command_is_hinted_at(word: str, command: str) -> None:
    assert run_corpus(word) == (2, "", f"corpus: there is no command '{word}'\nUse: {command}\n")


def test_fmt_refuses_what_it_cannot_keep(root: Path) -> None:
    edit(root, "  authors: [Anonymous]\n", "  authors:\n    # inside\n    - Anonymous\n")

    result = run_corpus("--root", str(root), "check", "form", "--fix")

    assert result.code == 3
    assert re.search(r"papers\.yaml:\d+:5: this comment has no place in the canonical form\nMove it", result.stderr)


def test_without_a_readme_only_the_readme_command_complains(root: Path) -> None:
    (root / "README.md").unlink()

    assert run_corpus("--root", str(root), "check").code == 0
    result = run_corpus("--root", str(root), "build", "readme")
    assert (result.code, "there is no README.md" in result.stderr) == (3, True)


def test_the_bundled_corpus_is_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    for command in ("check form --fix", "check --fix", "build", "build readme"):
        result = run_corpus(*command.split())
        assert result.code == 3
        assert "no data/papers.yaml here or in any folder above" in result.stderr


@pytest.mark.parametrize("moment", mostly_slow([0.02, 0.06, 0.09, 0.1, 0.11, 0.12, 0.13, 0.14, 0.16, 0.2], [0.1]))
@pytest.mark.parametrize("command", ["build", "check form --fix"])
def test_a_killed_command_leaves_whole_files(root: Path, command: str, moment: float) -> None:
    edit(root, "  year: 1999\n  venue: Report\n", "  venue: Reports\n  year: 1998\n")
    before = contents(root)
    child = subprocess.Popen(
        [sys.executable, "-m", "orchtrace_corpus", *command.split()], cwd=root, stderr=subprocess.DEVNULL
    )
    time.sleep(moment)
    child.send_signal(signal.SIGKILL)
    child.wait()
    left = contents(root)

    assert run_corpus("--root", str(root), *command.split()).code == 0
    after = contents(root)
    for name, data in left.items():
        if not Path(name).name.startswith(".corpus-"):
            assert data in (before.get(name), after[name]), name


def test_a_readme_that_github_would_cut_is_said_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchtrace_corpus.corpus.readme.SIZE_LIMIT_BYTES", 200)
    assert run_corpus("--root", str(root), "build").code == 0

    for command in (["build", "readme", "--check"], ["build", "--check"]):
        assert run_corpus("--root", str(root), *command).stderr == (
            "corpus: README.md is larger than 512 KiB; GitHub will cut it off\n"
            "To fix: leave out regions such as terms; sections with own_page: false can be pages, too\n"
        )
    assert sorted(path.name for path in (root / "docs" / "list").iterdir()) == ["large.md", "small.md"]

    edit(root, "title: The Yard", "title: The Back Yard")
    stale = run_corpus("--root", str(root), "build", "readme", "--check").stderr
    assert stale.endswith("corpus: docs/list/small.md is not up to date; to fix: corpus build readme\n")


def test_a_section_with_a_page_of_its_own_is_built_checked_and_removed_when_it_goes(root: Path) -> None:
    small = "{id: small, label: Small, definition: Up to an acre."
    edit(root, small + "}", small + ", own_page: true}", "data/taxonomy.yaml")
    page = root / "docs" / "list" / "small.md"

    built = run_corpus("--root", str(root), "build")
    assert (built.code, built.stderr) == (0, "wrote README.md\nwrote docs/list/small.md\n")
    assert page.read_text(encoding="utf-8").startswith(
        "# Small\n\n<!-- Generated from data/ by `corpus build`; do not edit. -->"
    )
    assert "[3 papers](docs/list/small.md)" in (root / "README.md").read_text(encoding="utf-8")
    page.write_text("# Small\n", encoding="utf-8")
    checked = run_corpus("--root", str(root), "build", "readme", "--check")
    assert (checked.code, checked.stderr) == (
        1,
        "corpus: docs/list/small.md is not up to date; to fix: corpus build readme\n",
    )
    run_corpus("--root", str(root), "build", "readme")
    edit(root, ", own_page: true", "", "data/taxonomy.yaml")
    own = page.with_name("own.md")
    own.write_text("# Small\n\nWritten by hand.\n", encoding="utf-8")
    run_corpus("--root", str(root), "build", "stats")
    checked, compared = run_corpus("--root", str(root), "check"), run_corpus("--root", str(root), "build", "--check")
    assert (checked.code, compared.code) == (1, 1)
    assert "README.md (region list), docs/list/small.md (no longer made)" in checked.stdout
    assert "corpus: docs/list/small.md is no longer made; to fix: corpus build\n" in compared.stderr
    assert "--- a/docs/list/small.md" not in compared.stdout
    assert run_corpus("--root", str(root), "build").stderr == "wrote README.md\nremoved docs/list/small.md\n"
    assert (page.exists(), own.exists()) == (False, True)
    assert run_corpus("--root", str(root), "build", "--check") == (0, "", "")


@pytest.mark.posix
@pytest.mark.parametrize("is_dangling", [False, True])
def test_what_is_generated_never_follows_a_link_out_of_the_corpus(root: Path, is_dangling: bool) -> None:
    outside = root.parent / "theirs.md"
    if not is_dangling:
        outside.write_text("theirs\n", encoding="utf-8")
    (root / "docs" / "STATS.md").unlink()
    (root / "docs" / "STATS.md").symlink_to(outside)

    build, check = (run_corpus("--root", str(root), name) for name in ("build", "check"))

    assert (build.code, check.code) == (3, 3)
    assert "docs/STATS.md leads out of the corpus" in build.stderr
    assert "build     failed docs/STATS.md leads out of the corpus" in check.stdout
    assert "corpus build" not in check.stdout
    assert outside.exists() is not is_dangling
    assert is_dangling or outside.read_text(encoding="utf-8") == "theirs\n"


STALE = """\
data      ok     no problems
form      ok     up to date
build     {} 4 generated files are stale; {}: README.md (region list), docs/STATS.md, docs/figures.md, \
docs/figures/papers-by-year.svg
"""


def test_what_is_merely_stale_is_one_line_and_with_a_notice_no_error(root: Path) -> None:
    edit(root, "year: 1999", "year: 1998")

    strict, lenient = (run_corpus("--root", str(root), "check", *words) for words in ([], ["--stale", "notice"]))

    assert (strict.code, strict.stdout) == (
        1,
        STALE.format("failed", "run corpus build, or check --stale notice for a pull request"),
    )
    assert (lenient.code, lenient.stdout) == (
        0,
        STALE.format("stale ", "nothing to commit, they are regenerated after the merge"),
    )


def test_many_stale_files_are_named_in_part(root: Path) -> None:
    shutil.rmtree(root / "docs")

    result = run_corpus("--root", str(root), "check", "--stale", "notice")

    assert result.code == 0
    assert result.stdout.splitlines()[-1] == (
        "build     stale  11 generated files are stale; nothing to commit, they are regenerated after the merge: "
        "docs/STATS.md (missing), "
        "docs/schema/papers.schema.json (missing), docs/schema/exclusions.schema.json (missing), "
        "docs/figures.md (missing) and 7 more"
    )


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("style: cottage", "style: cotage", "data      failed"),
        ("  venue: Report\n", "  venue:   Report\n", "form      failed not in canonical form: data/papers.yaml"),
    ],
)
def test_a_notice_of_what_is_stale_excuses_nothing_that_is_wrong(root: Path, old: str, new: str, part: str) -> None:
    edit(root, old, new)
    edit(root, "year: 1999", "year: 1998")

    result = run_corpus("--root", str(root), "check", "--stale", "notice")

    assert (result.code, part in result.stdout) == (1, True)


def clone(root: Path, path: Path, autocrlf: str) -> Path:
    """A clone of a corpus by a git that converts line ends as told."""
    environment = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    person = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    for words in (
        ("init", "-q", str(root)),
        ("-C", str(root), "add", "."),
        ("-C", str(root), *person, "commit", "-q", "-m", "a corpus"),
        ("clone", "-q", "-c", f"core.autocrlf={autocrlf}", str(root), str(path)),
    ):
        subprocess.run(["git", *words], check=True, capture_output=True, env=environment)
    return path


def to_crlf(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


@pytest.mark.parametrize("autocrlf", ["true", "input"])
@pytest.mark.parametrize("source", [ROOT, ROOT / "orchtrace_corpus" / "corpus" / "templates"])
def test_a_clone_has_the_bytes_that_were_committed_whatever_git_converts(
    root: Path, tmp_path: Path, autocrlf: str, source: Path
) -> None:
    shutil.copy(source / ".gitattributes", root)
    before = contents(root)

    cloned = clone(root, tmp_path / "clone", autocrlf)

    kept = {name: data for name, data in contents(cloned).items() if not name.startswith(".git/")}
    assert kept == before
    assert run_corpus("--root", str(cloned), "check").code == 0


def test_a_clone_with_other_line_ends_has_one_finding_that_names_what_mends_it(root: Path, tmp_path: Path) -> None:
    before = contents(root)
    cloned = clone(root, tmp_path / "clone", "true")

    result = run_corpus("--root", str(cloned), "check")

    failed = [line for line in result.stdout.splitlines() if "ok  " not in line]
    assert (result.code, failed) == (
        1,
        [
            "line ends failed 15 files have CRLF line ends, not LF: data/papers.yaml, data/exclusions.yaml, "
            "data/taxonomy.yaml, README.md and 11 more; to fix: corpus check --fix, then corpus build; with '* text=auto eol=lf' "
            "in .gitattributes, git writes LF"
        ],
    )
    assert run_corpus("--root", str(cloned), "check", "form", "--fix").code == 0
    assert run_corpus("--root", str(cloned), "build").code == 0
    assert {name: data for name, data in contents(cloned).items() if not name.startswith(".git/")} == before


def test_what_differs_besides_line_ends_is_shown_without_them(root: Path) -> None:
    edit(root, "year: 2021", 'year: "2021"')
    to_crlf(root / "data" / "papers.yaml")

    result = run_corpus("--root", str(root), "check", "form")

    assert [line for line in result.stdout.splitlines() if line[:1] in "+-"] == [
        "--- a/data/papers.yaml",
        "+++ b/data/papers.yaml",
        '-  year: "2021"',
        "+  year: 2021",
    ]
    assert (result.code, result.stderr) == (
        1,
        "corpus: data/papers.yaml is not up to date; to fix: corpus check --fix\n",
    )


def test_fmt_reports_line_ends_without_a_difference_of_every_line(root: Path) -> None:
    to_crlf(root / "data" / "papers.yaml")
    to_crlf(root / "data" / "taxonomy.yaml")

    result = run_corpus("--root", str(root), "check", "form")

    assert (result.code, result.stdout, result.stderr) == (
        1,
        "",
        "corpus: data/papers.yaml has CRLF line ends, not LF; to fix: corpus check --fix\n"
        "corpus: data/taxonomy.yaml has CRLF line ends, not LF; to fix: corpus check --fix\n",
    )
