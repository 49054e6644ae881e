"""`corpus tag` and `corpus remove`: one record changed, everything else as it was."""

import io
import os
import pty
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from orchtrace_corpus.corpus.model import store
from tests.conftest import ROOT, run_corpus
from tests.corpus import processes
from tests.corpus.files import edit

pytestmark = pytest.mark.usefixtures("in_root")


def texts(root: Path) -> dict[str, str]:
    return {name: (root / name).read_text(encoding="utf-8") for name in (store.PAPERS, store.EXCLUSIONS)}


@pytest.mark.parametrize(
    ("words", "name", "changes"),
    [
        (["rose-garden", "style=cottage"], store.PAPERS, [("style: formal", "style: cottage")]),
        (["rose-garden", "style=Gravel"], store.PAPERS, [("style: formal", "style: gravel")]),
        (["rose-garden", "style=S3"], store.PAPERS, [("style: formal", "style: gravel")]),
        (["rose-garden", "style=NA"], store.PAPERS, [("style: formal", "style: NA")]),
        (["2101.00001", "size=large"], store.PAPERS, [("size: small", "size: large")]),
        (
            ["rose-garden", "water=weekly"],
            store.PAPERS,
            [("care: {water: daily, prune: weekly}", "care: {water: weekly, prune: weekly}")],
        ),
        (
            ["rose-garden", "C1=weekly", "prune="],
            store.PAPERS,
            [("care: {water: daily, prune: weekly}", "care: {water: weekly}")],
        ),
        (["rose-garden", "care=none"], store.PAPERS, [("care: {water: daily, prune: weekly}", "care: {}")]),
        (
            ["terminal-yard", "care=none", "water=weekly"],
            store.PAPERS,
            [("care: {prune: weekly}\n  tools: NA", "care: {water: weekly}\n  tools: NA")],
        ),
        (
            ["terminal-yard", "water=weekly"],
            store.PAPERS,
            [("care: {prune: weekly}\n  tools: NA", "care: {water: weekly, prune: weekly}\n  tools: NA")],
        ),
        (["rose-garden", "tools=rake"], store.PAPERS, [("tools: [spade, shears]", "tools: [rake]")]),
        (["terminal-yard", "tools=rake, spade"], store.PAPERS, [("tools: NA", "tools: [rake, spade]")]),
        (["rose-garden", "tools=NA"], store.PAPERS, [("tools: [spade, shears]", "tools: NA")]),
        (["rose-garden", "tools="], store.PAPERS, [("  tools: [spade, shears]\n", "")]),
        (
            ["long-grass", "tools=rake", "style=cottage"],
            store.PAPERS,
            [("style: meadow", "style: cottage"), ("care: {}\n", "care: {}\n  tools: [rake]\n")],
        ),
        (["E003", "stage=gate"], store.EXCLUSIONS, [("stage: path", "stage: gate")]),
    ],
)
def test_tags_are_set(root: Path, words: list[str], name: str, changes: list[tuple[str, str]]) -> None:
    wanted = texts(root)
    for old, new in changes:
        wanted[name] = wanted[name].replace(old, new, 1)

    result = run_corpus("tag", *words)

    assert (result.code, texts(root)) == (0, wanted)
    assert result.stdout.startswith(f"--- a/{name}\n+++ b/{name}\n")


def test_comments_beside_tags_stay(root: Path) -> None:
    edit(root, "style: formal", "# by the plan\n  style: formal  # see page 3")

    run_corpus("tag", "rose-garden", "style=gravel", "size=large")

    assert "  # by the plan\n  style: gravel  # see page 3\n" in texts(root)[store.PAPERS]


def test_texts_are_set_like_tags(root: Path) -> None:
    before = texts(root)

    assert run_corpus("tag", "terminal-yard", "summary=Paves a yard, once.", "notes=It was dug up.").code == 0
    assert run_corpus("tag", "E001", "reason=It is a window.").code == 0
    assert "M109 warning: no summary yet" in run_corpus("tag", "terminal-yard", "summary=", "--dry-run").stderr
    assert run_corpus("tag", "E001", "reason=").code == 1, "a reason is not taken away"

    old = '  summary: Describes a yard.\n  added: "2021-05-01"\n'
    new = '  summary: Paves a yard, once.\n  added: "2021-05-01"\n  notes: It was dug up.\n'
    assert texts(root)[store.PAPERS] == before[store.PAPERS].replace(old, new)
    reasons = ("  reason: Too small to count as a garden.\n", "  reason: It is a window.\n")
    assert texts(root)[store.EXCLUSIONS] == before[store.EXCLUSIONS].replace(*reasons)


@pytest.mark.parametrize("words", [["rose-garden", "style=formal"], ["rose-garden", "tools=spade,shears", "C1=daily"]])
def test_tags_that_are_there_already_change_nothing(root: Path, words: list[str]) -> None:
    before = texts(root)

    assert run_corpus("tag", *words) == (0, "", "corpus: nothing changes\n")
    assert texts(root) == before


def test_an_option_of_add_gets_a_hint_at_the_form_of_tag(root: Path) -> None:
    told = "Fields are set without an option: corpus tag KEY field=value\n"

    for words in (("--set", "code=https://example.org/code"), ("--style", "formal")):
        result = run_corpus("tag", "rose-garden", *words)
        assert result.code == 2
        assert result.stderr.endswith(f"No such option: {words[0]}\n{told}")
    assert told not in run_corpus("tag", "rose-garden", "--evidence").stderr
    assert "Rows" in run_corpus("tag", "rose-garden", "Notes=Rows.", "--dry-run").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rose-garden"], "there is nothing to set\nWrite field=value; corpus terms shows the fields.\n"),
        (["rose-garden", "formal"], "'formal' sets no tag\nWrite field=value; corpus terms shows the fields.\n"),
        (["rose-garden", "style==formal"], "'style==formal' sets no tag\n"),
        (
            ["rose-garden", "stile=formal"],
            "unknown field 'stile' (did you mean 'style'? allowed: style, care, tools, size, water, prune, venue_year, "
            "proceedings, code, base_models, algorithm, algorithm_note, benchmarks, benchmarks_note, summary, notes)\n"
            "corpus terms shows the fields, corpus terms FIELD the terms of one.\n",
        ),
        (["rose-garden", "bencmarks=GAIA"], "unknown field 'bencmarks' (did you mean 'benchmarks'? "),
        (
            ["rose-garden", "style=fromal"],
            "unknown style 'fromal' (did you mean 'formal'? allowed: formal, cottage, meadow, gravel, NA)\n"
            "  formal: Straight lines.\n  cottage: Mixed borders.\n  meadow: Long grass.\n  gravel: Stones.\n",
        ),
        (["rose-garden", "style=S2"], "'S2' is the code of 2 terms of style: cottage, meadow\nName one of them.\n"),
        (
            ["rose-garden", "tools=spade,hoe"],
            "unknown tools 'hoe' (allowed: spade, rake, shears, NA)\n  spade: A spade.\n",
        ),
        (["rose-garden", "tools=NA,spade"], "NA in tools must stand alone"),
        (
            ["rose-garden", "water=hourly"],
            "unknown level of care 'hourly' (allowed: daily, weekly, none)\n  daily: Every day.\n  weekly: Every week.\n",
        ),
        (["rose-garden", "care=daily"], "'daily' is not part of care\nWrite TERM=LEVEL, such as water=daily, or none."),
        (
            ["rose-garden", "care="],
            "care is required and cannot be taken away\nWrite care=none where no term arises.\n",
        ),
        (
            ["rose-garden", "style="],
            "style is required and cannot be taken away\nSet another term; corpus terms style shows them.\n",
        ),
        (["rose-garden", "size=small", "size=large"], "size is set twice\n"),
        (["rose-garden", "C1=daily", "water="], "water is set twice\n"),
        (["rose-garden", "title=Roses"], "title is not a tag but another field\nChange it in the file itself; corpus "),
        (
            ["rose-garden", "waive=I105"],
            "waive is not a tag but another field\n"
            "Write it into the record in the file: waive: [{code: CODE, why: ...}]\n",
        ),
        (["rose-garden", "evidence=X"], "evidence is not a tag but another field\nAdd an item of evidence: --evidence"),
        (["E001", "style=formal"], "unknown field 'style' (did you mean 'stage'? allowed: stage, reason)\n"),
        (["rose-garden", "level=photo"], "level is not a tag but another field\n"),
        (["roses", "style=formal"], "no record 'roses'\nDid you mean: rose-garden (Röses: A Garden in Four Beds)?\n"),
        (["zzz", "style=formal"], "no record 'zzz'\nTry: corpus search WORDS, or corpus list.\n"),
        (["rose-garden", "st\x1bile=formal"], "'st\\x1bile=formal' sets no tag\n"),
    ],
)
def test_wrong_use_ends_with_2_and_says_what_is_right(root: Path, words: list[str], message: str) -> None:
    before = texts(root)

    result = run_corpus("tag", *words)

    assert (result.code, result.stdout) == (2, "")
    assert message in result.stderr
    assert texts(root) == before


EVIDENCE = ["--evidence", "The photo shows it.", "--evidence-source", "https://example.org/photo"]
FACETS = ["--evidence-level", "photo", "--evidence-confidence", "low"]


def test_evidence_comes_with_the_tags_that_need_it(root: Path) -> None:
    refused = run_corpus("tag", "mixed-borders", "water=daily")
    result = run_corpus("tag", "mixed-borders", "water=daily", "style=formal", *EVIDENCE, *FACETS)

    assert (refused.code, refused.stdout) == (1, "")
    assert "E101 Daily care needs an item of evidence (rule 'daily-care-needs-evidence'" in refused.stderr
    assert result == (
        0,
        """\
--- a/data/papers.yaml
+++ b/data/papers.yaml
@@ -41,11 +41,17 @@
   year: 2023
   venue: Beds 2023
   urls: [https://example.org/borders]
-  style: cottage
-  care: {water: weekly}
+  style: formal
+  care: {water: daily}
   tools: [rake]
   size: small
   summary: Plants mixed borders, 𝒜 to 𝒵.
+  evidence:
+    - tags: [care, style]
+      note: The photo shows it.
+      source: https://example.org/photo
+      level: photo
+      confidence: low
   added: "2023-06-07"
\x20
 - key: terminal-yard
""",
        "wrote data/papers.yaml\ncorpus build regenerates the rest; CONTRIBUTING.md says whether to commit it\n",
    )


PUBLISHED = 'day: "2023-12-31"\nsource: https://example.org/survey\npapers: [rose-garden, long-grass, mixed-borders]\n'


@pytest.fixture
def published(root: Path) -> Path:
    """The toy corpus, most of it published with the style and without the size."""
    (root / "data" / "published.yaml").write_text(PUBLISHED, encoding="utf-8")
    with (root / "data" / "taxonomy.yaml").open("a", encoding="utf-8") as file:
        file.write("published:\n  - {column: style, field: style}\n")
    return root


@pytest.mark.usefixtures("published")
def test_a_change_of_a_published_tag_is_refused_with_the_dispute_to_type_instead(published: Path) -> None:
    before = (published / "data" / "papers.yaml").read_bytes()
    refused = "corpus: rose-garden is in the published pool, whose tags stay as published: style\n"
    refused += "Record the other reading instead:\ncorpus dispute rose-garden style=gravel "
    written = "wrote data/papers.yaml\ncorpus build regenerates the rest; CONTRIBUTING.md says whether to commit it\n"

    for words in (("style=gravel",), ("size=large", "style=gravel"), ("style=gravel", "--dry-run")):
        assert run_corpus("tag", "rose-garden", *words) == (2, "", f"{refused}--why TEXT --source URL\n")
    with_evidence = run_corpus("tag", "rose-garden", "style=gravel", *EVIDENCE, *FACETS).stderr
    assert with_evidence == f"{refused}--why 'The photo shows it.' --source https://example.org/photo\n"
    assert (published / "data" / "papers.yaml").read_bytes() == before
    assert run_corpus("tag", "rose-garden", "style=formal").code == 0
    assert run_corpus(*shlex.split(with_evidence.splitlines()[-1])[1:]).code == 0
    assert run_corpus("check", "data").code == 0
    for words in (("rose-garden", "size=large"), ("terminal-yard", "style=gravel")):
        assert run_corpus("tag", *words).stderr == written, "not published: the field, the paper"


def test_the_published_value_is_that_of_the_last_commit(published: Path) -> None:
    for words in ("init -q", "add -A", "-c user.name=n -c user.email=e commit -qm all"):
        subprocess.run(["git", *words.split()], cwd=published, check=True)

    edit(published, "  style: formal\n", "  style: gravel\n")

    assert run_corpus("tag", "rose-garden", "style=cottage").code == 2
    assert run_corpus("tag", "rose-garden", "style=formal").code == 0


def test_a_published_tag_that_changes_is_to_be_judged(published: Path) -> None:
    shutil.copytree(published, published.parent / "before")
    edit(published, "  style: formal\n", "  style: gravel\n")
    assert run_corpus("tag", "mixed-borders", "size=large").code == 0

    said = " ".join(run_corpus("diff", "../before", ".").stdout.split())

    tags = "the tags say what the sources say, by the definitions of the terms"
    rule = "tags of the published pool stay as published, another reading is a dispute"
    assert f"To be judged by a person rose-garden: {tags}; {rule} mixed-borders: {tags} Counts" in said


def test_evidence_for_the_old_value_is_told_also_beside_new_evidence(root: Path) -> None:
    written = "wrote data/papers.yaml\ncorpus build regenerates the rest; CONTRIBUTING.md says whether to commit it\n"
    told = "corpus: evidence 1 of rose-garden is for the old value; change it, or add --evidence\n"

    assert run_corpus("tag", "rose-garden", "water=weekly").stderr == written + told
    assert run_corpus("tag", "rose-garden", "size=large").stderr == written
    assert run_corpus("tag", "rose-garden", "water=daily", *EVIDENCE, *FACETS).stderr == written + (
        "corpus: evidence 1 of rose-garden is older than the new value; see in data/papers.yaml whether it fits\n"
    )
    edit(root, "      confidence: high\n", "      confidence: high\n      verdict: contradicted\n")
    assert run_corpus("tag", "rose-garden", "prune=").stderr.endswith(told.replace("evidence 1", "evidence 2"))


def test_evidence_is_added_to_what_there_is(root: Path) -> None:
    edit(root, "      confidence: high\n", "      confidence: high  # quite\n")

    result = run_corpus(
        "tag", "rose-garden", "--evidence-tags", "style,size", "--evidence-location", "p. 3", *EVIDENCE, *FACETS
    )

    assert result.code == 0
    assert "".join(line[1:] for line in result.stdout.splitlines(keepends=True) if line[0] in " +") == (
        "++ b/data/papers.yaml\n"
        "      source: https://example.org/roses\n"
        "      level: visit\n"
        "      confidence: high  # quite\n"
        "    - tags: [style, size]\n"
        "      note: The photo shows it.\n"
        "      source: https://example.org/photo\n"
        "      location: p. 3\n"
        "      level: photo\n"
        "      confidence: low\n"
        '  added: "2021-05-01"\n'
        "\n"
        "- key: long-grass\n"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rose-garden", "size=large", *FACETS], "an item of evidence needs a note\nSay with --evidence what in the"),
        (["rose-garden", "size=large", "--evidence-tags", "size"], "an item of evidence needs a note\n"),
        (
            ["rose-garden", "size=large", "--evidence", "It is."],
            "an item of evidence needs source, level, confidence\n"
            "Add --evidence-source, --evidence-level, --evidence-confidence.\n",
        ),
        (["rose-garden", *EVIDENCE, *FACETS], "an item of evidence names the tags that it supports\nName them with"),
        (
            ["rose-garden", *EVIDENCE, *FACETS, "--evidence-tags", "colour"],
            "evidence cannot support 'colour' (allowed: style, care, tools, size, code, base_models, algorithm, "
            "algorithm_note, benchmarks, benchmarks_note)\n",
        ),
        (["rose-garden", *EVIDENCE, "--evidence-level", "foto"], "unknown level 'foto' (did you mean 'photo'? "),
        (["E001", *EVIDENCE, *FACETS], "E001 is an exclusion, which has a reason instead of evidence\n"),
    ],
)
def test_incomplete_evidence_is_refused(root: Path, words: list[str], message: str) -> None:
    result = run_corpus("tag", *words)

    assert (result.code, result.stdout) == (2, "")
    assert message in result.stderr


def test_a_paper_is_removed_with_its_own_comments(root: Path) -> None:
    edit(root, "- key: long-grass", "# The one with the photos.\n- key: long-grass")
    before = texts(root)[store.PAPERS]
    begin, end = before.index("# The one"), before.index("- key: mixed-borders")

    result = run_corpus("remove", "long-grass", "--yes")

    assert result.code == 0
    assert texts(root)[store.PAPERS] == before[:begin] + before[end:]
    assert result.stdout == (
        "--- a/data/papers.yaml\n+++ b/data/papers.yaml\n@@ -21,21 +21,6 @@\n       confidence: high\n"
        '   added: "2021-05-01"\n \n'
        + "".join(f"-{line}\n" for line in before[begin:end].splitlines())
        + ' - key: mixed-borders\n   title: Borders without Lines\n   authors: ["李, 明"]\n'
    )
    assert (
        result.stderr
        == "wrote data/papers.yaml\ncorpus build regenerates the rest; CONTRIBUTING.md says whether to commit it\n"
    )


def test_several_records_are_removed_in_one_edit(root: Path) -> None:
    before = texts(root)
    begin, end = before[store.PAPERS].index("- key: long-grass"), before[store.PAPERS].index("- key: terminal-yard")

    refused = run_corpus("remove", "mixed-borders", "rose-gardn", "--yes")
    assert (refused.code, texts(root)) == (2, before)
    result = run_corpus("remove", "mixed-borders", "E001", "long-grass", "mixed-borders", "--yes")

    assert result.code == 0
    assert texts(root)[store.PAPERS] == before[store.PAPERS][:begin] + before[store.PAPERS][end:]
    assert "E001" not in texts(root)[store.EXCLUSIONS]


def test_the_newest_exclusions_go_together_only_where_no_id_would_be_given_again(root: Path) -> None:
    before = texts(root)

    assert run_corpus("remove", "E001", "E003", "--yes", "--unpublished") == (
        2,
        "",
        "corpus: E003 keeps the ids below it from being given again: E001 was used before\n"
        "Correct the record in data/exclusions.yaml instead.\n",
    )
    assert texts(root) == before


def test_the_head_of_the_file_stays_and_so_does_an_empty_list(root: Path) -> None:
    for key in ("rose-garden", "long-grass", "mixed-borders", "terminal-yard"):
        assert run_corpus("remove", key, "-y").code == 0

    assert texts(root)[store.PAPERS] == "# A made-up corpus for the tests.\n[]\n"
    assert run_corpus("check", "data").code == 0


def test_a_dry_run_removes_nothing_and_asks_nothing(root: Path) -> None:
    before = texts(root)

    result = run_corpus("remove", "E001", "--dry-run")

    assert (result.code, result.stderr) == (0, "corpus: nothing was written (--dry-run)\n")
    assert result.stdout.count("\n-") == 8
    assert texts(root) == before


def test_without_a_terminal_somebody_must_have_said_yes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = texts(root)
    monkeypatch.setattr("sys.stdin", None)

    assert run_corpus("remove", "long-grass") == (
        2,
        "",
        "corpus: remove asks first, and this is not a terminal\nAdd --yes, or --dry-run.\n",
    )
    assert texts(root) == before


@pytest.mark.parametrize(
    ("answer", "code", "removed", "said"),
    [
        (
            "y\n",
            0,
            True,
            "wrote data/papers.yaml\ncorpus build regenerates the rest; CONTRIBUTING.md says whether to commit it\n",
        ),
        ("\n", 0, False, "corpus: nothing was removed\n"),
        ("\x04", 0, False, "corpus: nothing was removed\n"),
        ("\x03", 130, False, "corpus: interrupted\n"),
    ],
)
def test_on_a_terminal_it_asks(root: Path, answer: str, code: int, removed: bool, said: str) -> None:
    controller, terminal = pty.openpty()
    before = texts(root)
    (stdout, out), (stderr, err) = os.pipe(), os.pipe()
    child = processes.fork(processes.command, "remove", "long-grass", files=[terminal, out, err], terminal=True)
    for file in (terminal, out, err):
        os.close(file)
    question = b"Remove long-grass (Long Grass and How to Keep It) from data/papers.yaml? [y/N] "
    with open(stdout, "rb") as written, open(stderr, "rb", buffering=0) as told:
        assert told.read(len(question)) == question
        while child.is_alive():  # an interrupt just before it reads is seen at the next one only, as by any Python
            os.write(controller, answer.encode())
            child.join(5)
        assert told.readall().decode() == said
        is_printed = bool(written.read())
    os.close(controller)

    assert (child.exitcode, texts(root) != before, is_printed) == (code, removed, removed)


def test_a_promoted_paper_is_not_removed_from_under_its_exclusion(root: Path) -> None:
    edit(
        root,
        "reason: Nothing grows there.",
        "reason: Nothing grows there.\n  promoted_to: long-grass",
        store.EXCLUSIONS,
    )
    before = texts(root)

    assert run_corpus("remove", "long-grass", "--yes") == (
        2,
        "",
        "corpus: long-grass was promoted from E003, which would lead nowhere\n"
        "To take it back: corpus exclude long-grass\n",
    )
    assert texts(root) == before


def test_ids_of_exclusions_are_never_free_again(root: Path) -> None:
    newest = run_corpus("remove", "E003", "--yes")
    mistaken = run_corpus("remove", "E003", "--yes", "--unpublished")

    assert newest == (
        2,
        "",
        "corpus: E003 is the newest exclusion, and the next would be given its id, which may be cited\n"
        "Correct the record in data/exclusions.yaml; or add --unpublished, if nobody has seen the id.\n",
    )
    # E002 was there once, and is kept from coming back by E003.
    assert mistaken == (
        2,
        "",
        "corpus: E003 keeps the ids below it from being given again: E002 was used before\n"
        "Correct the record in data/exclusions.yaml instead.\n",
    )
    assert run_corpus("remove", "E001", "--yes").code == 0


def test_an_exclusion_made_by_mistake_can_be_taken_back(root: Path) -> None:
    before = texts(root)
    edit(
        root,
        "reason: Nothing grows there.\n",
        "reason: Nothing grows there.\n\n"
        "- id: E004\n  title: A Roof\n  identifier: ROOF\n  url: https://example.org/roof\n  stage: gate\n"
        '  screened: "2023-01-03"\n  reason: Too high up.\n',
        store.EXCLUSIONS,
    )

    assert run_corpus("remove", "E004", "--yes", "--unpublished").code == 0
    assert texts(root) == before


CLAIMS = """\
- id: gardens
  claim: There are four gardens.
  expect: {count: 4}
  boundary: Beds are none.
  source: https://example.org/gardens
- id: formal
  claim: One garden is formal.
  where: {style: formal}
  expect: {count: 1}
  boundary: Beds are none.
  source: https://example.org/gardens
"""
DISPUTES = """\
- record: rose-garden
  tag: size
  stands: small
  readings: {small: first reader, large: second reader}
  why: The beds are small.
  source: https://example.org/sizes
"""
SCALE = """\
- system: Rose Garden
  record: rose-garden
  group: academic
  quantity: beds
  value: 3
  unit: beds
  evidence: paper
  sources: [https://example.org/roses]
  verified: true
"""


@pytest.fixture
def told(root: Path) -> Path:
    """The corpus with a file of claims, of disputes and of scale, about its records."""
    for name, text in (("claims", CLAIMS), ("disputes", DISPUTES), ("scale", SCALE)):
        (root / "data" / f"{name}.yaml").write_text(text, encoding="utf-8")
    assert run_corpus("claims").code == 0
    return root


def test_it_is_said_which_claims_disputes_and_rows_of_scale_a_removal_breaks(told: Path) -> None:
    result = run_corpus("remove", "rose-garden", "--yes")

    assert result.code == 0
    assert result.stderr == (
        "wrote data/papers.yaml\n"
        "corpus: the edit breaks 2 claims, 1 dispute and 1 row of scale: "
        "corpus check fails until that is fixed:\n"
        "data/claims.yaml:2:10: C101 claim fails: There are four gardens. Expected: 4; found: 3 [gardens]\n"
        "data/claims.yaml:7:10: C101 claim fails: One garden is formal. Expected: 1; found: 0 [formal]\n"
        "To fix: corpus claims gardens formal shows the records; data/claims.yaml says what is expected.\n"
        "data/disputes.yaml:1:11: C201 there is no paper 'rose-garden' [rose-garden]\n"
        "To fix: take what is disputed about rose-garden out of data/disputes.yaml.\n"
        "data/scale.yaml:2:11: S103 there is no paper 'rose-garden'; name the paper that the system is in the pool "
        "as, or leave the field out [Rose Garden]\n"
        "To fix: name another record in data/scale.yaml, or leave the field out.\n"
        "corpus build regenerates the rest; CONTRIBUTING.md says whether to commit it\n"
    )


def test_a_trial_says_what_the_edit_would_break(told: Path) -> None:
    result = run_corpus("tag", "rose-garden", "size=large", "style=cottage", "--dry-run")

    assert result.code == 0
    assert result.stderr == (
        "corpus: the edit would break 1 claim and 1 dispute, and corpus check would fail:\n"
        "data/claims.yaml:7:10: C101 claim fails: One garden is formal. Expected: 1; found: 0 [formal]\n"
        "To fix: corpus claims formal shows the records; data/claims.yaml says what is expected.\n"
        "data/disputes.yaml:3:11: C204 'small' does not stand, for 'rose-garden' has size 'large'; settle which of the "
        "two is right [rose-garden]\n"
        "To fix: write what rose-garden has now as 'stands' in data/disputes.yaml, with why.\n"
        "corpus: nothing was written (--dry-run)\n"
    )


def test_what_was_broken_before_is_not_told_again(told: Path) -> None:
    assert run_corpus("remove", "mixed-borders", "--yes").code == 0

    assert "breaks" not in run_corpus("remove", "long-grass", "--yes").stderr


def test_whoever_is_asked_knows_what_breaks(told: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = io.StringIO("n\n")
    monkeypatch.setattr(answers, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", answers)
    before = texts(told)

    result = run_corpus("remove", "rose-garden")

    question = result.stderr.index("Remove rose-garden")
    assert 0 <= result.stderr.index("the edit would break 2 claims") < question
    assert (result.code, result.stdout, texts(told)) == (0, "", before)


def test_what_a_removal_breaks_is_named_for_every_data_file(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "data", tmp_path / "data")

    told = run_corpus("--root", str(tmp_path), "remove", "puppeteer", "--yes").stderr

    paths = re.findall(r"^(data/[a-z]+\.[a-z]+):\d+:\d+: [A-Z]\d+ ", told.replace(f"{tmp_path}/", ""), re.MULTILINE)
    assert list(dict.fromkeys(paths)) == [
        "data/claims.yaml",
        "data/disputes.yaml",
        "data/published.yaml",
        "data/corrections.csv",
        "data/codebook.yaml",
        "data/scale.yaml",
    ]
    assert len(re.findall("^To fix: ", told, re.MULTILINE)) == 6
