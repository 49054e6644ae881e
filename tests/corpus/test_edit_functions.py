"""The changes of a corpus as functions: values in, a judgement and an outcome out, and nothing printed."""

import shutil
from pathlib import Path

import pytest

from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.corpus import Details, add
from orchtrace_corpus.corpus.edit import proposal as edit
from orchtrace_corpus.corpus.edit.proposal import find_target, judge, load_editable, write
from orchtrace_corpus.corpus.edit.tags import tag
from orchtrace_corpus.corpus.model import store
from tests.conftest import run_corpus

pytestmark = pytest.mark.usefixtures("in_root", "on_first_of_march")

DETAILS = Details(title="A Hedge", authors="Doe, Jo", year=2024, venue="Garden Letters")
TAGS = {"style": "formal", "care": "water=weekly", "size": "small"}
OPTIONS = ["--title", "A Hedge", "--authors", "Doe, Jo", "--year", "2024", "--venue", "Garden Letters"]


def texts(root: Path) -> tuple[str, str]:
    return (root / store.PAPERS).read_text(), (root / store.EXCLUSIONS).read_text()


def test_add_writes_what_the_command_writes(root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    by_command = tmp_path / "other"
    shutil.copytree(root, by_command)

    added = add(["https://example.org/hedge"], DETAILS, TAGS, root=str(root))
    assert capfd.readouterr() == ("", "")
    options = [word for field, value in TAGS.items() for word in (f"--{field}", value)]
    result = run_corpus(
        "--root", str(by_command), "add", "https://example.org/hedge", "--no-fetch", "--yes", *OPTIONS, *options
    )

    assert added.judgement is not None
    assert (added.refused, added.written, result.code) == ((), (store.PAPERS,), 0)
    assert texts(root) == texts(by_command)
    assert added.judgement.diff == result.stdout


def test_a_dry_run_judges_and_writes_nothing(root: Path) -> None:
    before = texts(root)

    added = add(["https://example.org/hedge"], DETAILS, {**TAGS, "care": {}}, dry_run=True, root=str(root))

    assert added.judgement is not None
    assert (added.written, added.judgement.is_allowed) == ((), True)
    assert [paper.key for paper in added.judgement.proposal.added] == ["hedge"]
    assert texts(root) == before


def test_what_the_corpus_has_is_refused_as_a_value(root: Path) -> None:
    added = add(["2302.00002"], DETAILS, TAGS, root=str(root))

    assert added.judgement is None
    assert [one.match.record.key for one in added.refused if one.match] == ["long-grass"]


def test_what_is_missing_or_unknown_is_named(root: Path) -> None:
    with pytest.raises(CommandUseError, match=r"^missing for https://example\.org/hedge: authors, style, care, size$"):
        add(["https://example.org/hedge"], DETAILS._replace(authors=""), root=str(root))
    with pytest.raises(CommandUseError, match=r"^unknown axis or facet 'stile'"):
        add(["https://example.org/hedge"], DETAILS, {"stile": "formal"}, root=str(root))


def test_an_edit_that_brings_an_error_is_judged_and_not_written(root: Path) -> None:
    corpus, before = load_editable(str(root)), texts(root)
    proposal = tag(corpus, find_target(corpus.pool, "long-grass"), ["size=small"])

    judgement = judge(corpus, proposal)

    assert [finding.code for finding in judgement.new_findings] == ["X101"]
    assert (judgement.is_allowed, write(judgement), texts(root)) == (False, (), before)


def test_a_proposal_names_what_it_removes(root: Path) -> None:
    corpus = load_editable(str(root))
    target = find_target(corpus.pool, "long-grass")

    proposal = edit.remove(corpus, [target])

    assert (proposal.removed, list(proposal.texts)) == ((target.record,), [store.PAPERS])
    assert write(judge(corpus, proposal)) == (store.PAPERS,)


def test_without_a_folder_the_nearest_corpus_is_meant_and_never_the_bundled_one(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert add(["https://example.org/hedge"], DETAILS, TAGS, dry_run=True).judgement is not None
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(DataFileError, match=r"^no data/papers\.yaml here or in any folder above\n"):
        add(["https://example.org/hedge"], DETAILS, TAGS)
