"""The edit path that all changing commands share: judged whole, written whole, shown as a diff."""

import errno
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

from orchtrace_corpus.base.errors import CommandUseError, DataFileError, MalformedCorpusError
from orchtrace_corpus.base.yamlfile.splice import remove_record
from orchtrace_corpus.corpus.edit.edits import change_records
from orchtrace_corpus.corpus.edit.proposal import Proposal, find_target, judge, load_editable, write
from orchtrace_corpus.corpus.model import store
from tests.conftest import run_corpus
from tests.corpus import processes
from tests.corpus.files import contents, edit

pytestmark = pytest.mark.usefixtures("in_root")


def edit_texts(root: Path, texts: dict[str, str]) -> tuple[str, ...]:
    return write(judge(load_editable(str(root)), Proposal(texts)))


def test_the_diff_is_data_and_the_rest_is_talk(root: Path) -> None:
    before = contents(root)

    assert run_corpus("tag", "long-grass", "size=small", "style=cottage") == (
        0,
        """\
--- a/data/papers.yaml
+++ b/data/papers.yaml
@@ -28,9 +28,9 @@
   venue: arXiv
   arxiv_id: "2302.00002"
   urls: [https://example.org/grass]
-  style: meadow
+  style: cottage
   care: {}
-  size: large
+  size: small
   summary: Keeps a meadow without any tool.
   added: "2023-02-03"
   notes: Seen in summer only.
""",
        "wrote data/papers.yaml\ncorpus build regenerates the rest; CONTRIBUTING.md says whether to commit it\n",
    )
    assert {name for name, data in contents(root).items() if before[name] != data} == {store.PAPERS}


def test_an_edit_that_brings_an_error_is_not_written(root: Path) -> None:
    before = contents(root)

    result = run_corpus("tag", "long-grass", "size=small")

    assert result == (
        1,
        "",
        "corpus: the edit would bring 1 error, so nothing was written; lines are counted with the edit made:\n"
        "data/papers.yaml:33:9: X101 A meadow needs room, so its size is large (rule 'meadow-is-large' of the "
        "taxonomy) [long-grass]\n",
    )
    assert contents(root) == before


def test_a_dry_run_shows_the_diff_and_what_it_would_bring(root: Path) -> None:
    before = contents(root)

    wrong = run_corpus("tag", "long-grass", "size=small", "--dry-run")
    doubtful = run_corpus("tag", "mixed-borders", "style=gravel", "size=large", "--dry-run")
    right = run_corpus("tag", "terminal-yard", "size=large", "--dry-run")

    assert (wrong.code, "-  size: large\n+  size: small\n" in wrong.stdout) == (1, True)
    assert (doubtful.code, doubtful.stdout.count("\n+ "), doubtful.stderr) == (
        0,
        2,
        "corpus: the edit would bring 1 warning; lines are counted with the edit made:\n"
        "data/papers.yaml:47:9: X102 warning: A gravel garden is mostly small (rule 'gravel-is-small' of the "
        "taxonomy) [mixed-borders]\n"
        "corpus: nothing was written (--dry-run)\n",
    )
    assert (right.code, right.stderr) == (0, "corpus: nothing was written (--dry-run)\n")
    assert contents(root) == before


def test_new_warnings_are_told_and_do_not_stop_an_edit(root: Path) -> None:
    result = run_corpus("tag", "mixed-borders", "style=gravel", "size=large")

    assert result.code == 0
    assert result.stderr == (
        "corpus: the edit brings 1 warning:\n"
        "data/papers.yaml:47:9: X102 warning: A gravel garden is mostly small (rule 'gravel-is-small' of the "
        "taxonomy) [mixed-borders]\n"
        "wrote data/papers.yaml\n"
        "corpus build regenerates the rest; CONTRIBUTING.md says whether to commit it\n"
    )


def test_what_was_wrong_before_does_not_stand_in_the_way(root: Path) -> None:
    edit(root, "style: meadow", "style: medow")
    edit(root, "key: mixed-borders", "key: terminal-yard")
    edit(root, "url: https://example.org/cars", "url: https://example.org/borders", store.EXCLUSIONS)
    assert run_corpus("check", "data").code == 1

    inside = run_corpus("tag", "rose-garden", "tools=")
    os.chdir("/")
    outside = run_corpus("--root", str(root), "tag", "rose-garden", "tools=rake")

    assert (inside.code, "brings" in inside.stderr) == (0, False)
    assert (outside.code, "brings" in outside.stderr) == (0, False)


def test_an_edit_can_mend_what_is_wrong(root: Path) -> None:
    edit(root, "care: {water: weekly}", "care: {water: never, prune: weekly}")

    result = run_corpus("tag", "mixed-borders", "water=weekly")

    assert (result.code, run_corpus("check", "data").code) == (0, 0)
    assert "+  care: {water: weekly, prune: weekly}\n" in result.stdout


@pytest.mark.parametrize(
    ("name", "old", "new", "place"),
    [
        (store.PAPERS, "care: {}", "care: {", "data/papers.yaml:32:9: Y104"),
        (store.EXCLUSIONS, "stage: gate", "stage: &g gate", "data/exclusions.yaml:5:10: Y106"),
        (store.PAPERS, "- key: long-grass", "- a stray word\n- key: long-grass", "data/papers.yaml:24:3: F103"),
        (store.TAXONOMY, "kind: single", "kind: sngle", "data/taxonomy.yaml:5:11: V102"),
    ],
)
def test_a_file_that_cannot_be_read_whole_is_not_edited(root: Path, name: str, old: str, new: str, place: str) -> None:
    edit(root, old, new, name)
    before = contents(root)

    result = run_corpus("tag", "rose-garden", "size=large")

    assert (result.code, result.stdout) == (3, "")
    assert result.stderr.startswith(f"corpus: the data cannot be edited before this is fixed:\n{place} ")
    assert contents(root) == before


def test_an_edit_by_somebody_else_is_not_overwritten(root: Path) -> None:
    corpus = load_editable(str(root))
    text = remove_record(corpus.file(store.PAPERS), 3)
    edit(root, "A Window Box", "A Windowbox", store.EXCLUSIONS)
    edit(root, "size: small", "size: large")
    before = contents(root)

    with pytest.raises(DataFileError, match=r"data/papers\.yaml was changed by somebody else meanwhile"):
        write(judge(corpus, Proposal({store.PAPERS: text})))

    assert contents(root) == before


def both_files(root: Path) -> dict[str, str]:
    """The texts of a demotion, as it were: a paper goes, an exclusion of it comes."""
    corpus = load_editable(str(root))
    excluded = corpus.file(store.EXCLUSIONS).text + (
        "\n- id: E004\n  title: The Yard\n  identifier: YARD\n  url: https://example.org/yard\n  stage: gate\n"
        '  screened: "2023-01-03"\n  reason: A yard is no garden.\n'
    )
    return {store.PAPERS: remove_record(corpus.file(store.PAPERS), 3), store.EXCLUSIONS: excluded}


def edit_until_killed(root: Path, renames: int) -> None:
    left, replace = iter(range(renames)), os.replace

    def replace_or_die(source: str, target: str) -> None:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target)

    os.replace = replace_or_die  # type: ignore[assignment]
    edit_texts(root, both_files(root))


@pytest.mark.parametrize("renames", [0, 1])
def test_a_kill_between_two_files_loses_no_record(root: Path, renames: int) -> None:
    texts = {name: text.encode() for name, text in both_files(root).items()}
    before = contents(root)

    child = processes.fork(edit_until_killed, root, renames)
    child.join(30)

    assert child.exitcode == -signal.SIGKILL
    after = {name: data for name, data in contents(root).items() if ".corpus-" not in name}
    assert after == (before if renames == 0 else {**before, store.EXCLUSIONS: texts[store.EXCLUSIONS]})
    # The same edit again, or what is left of it, goes through, and clears away what the killed one left.
    assert edit_texts(root, {name: text.decode() for name, text in texts.items()})
    assert contents(root) == {**before, **texts}


def test_a_disk_that_fills_up_between_two_files_changes_neither(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts, before = both_files(root), contents(root)
    room = [None]

    def sync(handle: int) -> None:
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        room.pop()

    monkeypatch.setattr(os, "fsync", sync)
    with pytest.raises(DataFileError) as raised:
        edit_texts(root, texts)

    assert str(raised.value) == (
        "cannot write data/papers.yaml: No space left on device\nNothing was changed; the file is as it was."
    )
    assert contents(root) == before


def test_a_read_only_folder_is_said_and_nothing_is_written(root: Path) -> None:
    # Root may write anywhere, so the attempt is made by a child that is nobody.
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    shutil.copytree(root, folder, dirs_exist_ok=True)
    (folder / "data").chmod(0o555)
    folder.chmod(0o755)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        if os.getuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        result = run_corpus("--root", str(folder), "tag", "rose-garden", "size=large")
        os.write(writer, repr(tuple(result)).encode())
        os._exit(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    left = contents(folder)
    (folder / "data").chmod(0o755)
    shutil.rmtree(folder)

    assert said == repr(
        (
            3,
            "",
            f"corpus: cannot write {os.path.relpath(folder)}/data/papers.yaml: Permission denied\n"
            "Nothing was changed; the file is as it was.\n",
        )
    )
    assert left == contents(root)


def test_a_record_is_named_by_key_or_id_before_anything_else(root: Path) -> None:
    pool = load_editable(str(root)).pool

    assert find_target(pool, "long-grass")[1:] == (1, store.PAPERS)
    assert find_target(pool, "E003")[1:] == (1, store.EXCLUSIONS)
    assert find_target(pool, "https://arxiv.org/abs/2302.00002v3").record.name == "long-grass"
    with pytest.raises(CommandUseError, match=r"no record 'long-gras'\nDid you mean: long-grass \(Long Grass"):
        find_target(pool, "long-gras")


def test_a_name_for_two_records_is_refused(root: Path) -> None:
    edit(root, "arXiv:2001.00009", "arXiv:2101.00001", store.EXCLUSIONS)

    assert run_corpus("tag", "2101.00001", "size=large") == (
        2,
        "",
        "corpus: '2101.00001' means 2 records: rose-garden, E001\nName one by its key or id.\n",
    )


def test_lines_keep_their_ends_and_a_file_its_missing_last_one(root: Path) -> None:
    text = (root / store.PAPERS).read_bytes().replace(b"\n", b"\r\n").removesuffix(b"\r\n")
    (root / store.PAPERS).write_bytes(text)

    assert run_corpus("tag", "terminal-yard", "tools=rake,spade").code == 0
    assert (root / store.PAPERS).read_bytes() == text.replace(b"tools: NA", b"tools: [rake, spade]")


def test_without_the_base_the_corpus_is_read_now(root: Path) -> None:
    corpus = load_editable(str(root))
    text = change_records(corpus.file(store.PAPERS), {0: {"size": "large"}}, store_style(corpus.pool))

    assert edit_texts(root, {store.PAPERS: text}) == (store.PAPERS,)
    edit(root, "care: {}", "care: {")
    with pytest.raises(MalformedCorpusError):
        edit_texts(root, {store.PAPERS: text})


def store_style(pool: object) -> object:
    from orchtrace_corpus.corpus.model.record_fields import paper_style

    return paper_style(pool.taxonomy)  # type: ignore[attr-defined]
