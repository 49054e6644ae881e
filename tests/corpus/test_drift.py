"""Drift: what arXiv says otherwise than a record, or otherwise than before, and what of it is fixed without asking."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.base.findings import RULES, Finding, explanation
from orchtrace_corpus.base.yamlfile.reader import Mapping, Node, Sequence, YamlFile
from orchtrace_corpus.corpus.intake.drift import PERSISTENT, Answers, find_drift, plain_text, propose_changes
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.author_names import Likeness, bibtex_author, compare, likeness, merge_authors
from orchtrace_corpus.corpus.model.metadata import Metadata
from orchtrace_corpus.corpus.model.records import Loaded, Paper
from tests.conftest import ROOT, TOY, run_corpus

ID = "2101.00001"
ROSES = Metadata(
    ID,
    1,
    "Röses: A Garden in Four Beds",
    ("Änne Müller", "Tom O'Neill", "Zoë Last"),
    "We lay out four beds.",
    "2021-01-01T09:00:00Z",
    "2021-01-01T09:00:00Z",
    "cs.MA",
    ("cs.MA",),
)


def corpus(tmp_path: Path, **fields: str) -> Loaded:
    """The toy corpus, with fields of `rose-garden` replaced or added, as YAML."""
    root = tmp_path / "corpus"
    shutil.copytree(TOY, root, dirs_exist_ok=True)
    path = root / "data" / "papers.yaml"
    head, mark, tail = path.read_text(encoding="utf-8").partition("\n\n")
    for field, value in fields.items():
        line = f"\n  {field}: {value}"
        head, count = re.subn(rf"\n  {field}: .*", line.replace("\\", r"\\"), head)
        head += "" if count else line
    path.write_text(head + mark + tail, encoding="utf-8")
    loaded = store.CorpusFiles(str(root)).loaded
    assert loaded.findings == ()
    return loaded


def told(loaded: Loaded, answer: Metadata, before: Metadata | None = None) -> list[str]:
    """The drift of `rose-garden`, as `LINE CODE message`."""
    found = find_drift(loaded, Answers({ID: answer}), {ID: before} if before else {})
    return [f"{finding.location.line} {finding.code} {finding.message}" for finding in found]


def offered(loaded: Loaded, answer: Metadata) -> dict[str, Any]:
    """What would be written into `rose-garden`."""
    found = find_drift(loaded, Answers({ID: answer}), {})
    return propose_changes(loaded.papers[0], answer, {finding.code for finding in found})


def test_nothing_drifts_where_both_say_the_same(tmp_path: Path) -> None:
    assert told(corpus(tmp_path), ROSES, ROSES) == []


def test_papers_that_were_not_asked_for_are_passed_over(tmp_path: Path) -> None:
    assert list(find_drift(corpus(tmp_path), Answers({}), {ID: ROSES})) == []


@pytest.mark.parametrize(
    ("title", "told_title", "code"),
    [
        ("The τ-bench of Gardens", r"The $\tau$-bench  of {G}ardens", ""),
        ("The τ-bench of Gardens", "The τ‐bench of Gardens", ""),
        ("Gré's 95% of Beds & Paths", "Gr\\'{e}’s 95% of Beds & Paths", ""),
        ("Ｗide Beds", "Wide Beds", ""),
        ("Beds for $5 or $10", "Beds for $5 or $10", ""),
        ("The tau-bench of Gardens", r"The $\tau$-bench of Gardens", "A104"),
        ("The BEDS² of Gardens", "The Beds$^2$ of Gardens", "A104"),
        ("Beds: A Garden", "Beds — a garden.", "A104"),
        ("Roses in Beds", "Röses in Beds", "A104"),
        ("Roses in Beds", "Roses in Five Beds", "A103"),
        ("Roses in 2 Beds", "Roses in 3 Beds", "A103"),
    ],
)
def test_titles_are_compared_without_tex_width_and_typography(
    title: str, told_title: str, code: str, tmp_path: Path
) -> None:
    loaded = corpus(tmp_path, title=f"'{title.replace(chr(39), chr(39) * 2)}'")

    assert [line.split()[1] for line in told(loaded, ROSES._replace(title=told_title))] == ([code] if code else [])


@pytest.mark.parametrize(
    ("authors", "actual", "message"),
    [
        ('["Müller, Änne", "O\'Neill, Tom"]', "Änne Müller, Tom O'Neill", ""),
        ('["Müller, Änne"]', "Änne Müller, :, Tom O'Neill", "A105 the authors differ: arXiv adds 'Tom O'Neill'"),
        ('["Müller, Änne", others]', "Änne Müller, Tom O'Neill", ""),
        (
            '["Müller, Änne", others]',
            "Änne Müller",
            "A105 the authors differ: 'others' stands for nobody: arXiv lists 1",
        ),
        (
            '["Müller, Änne", others]',
            "Tom O'Neill, Änne Müller",
            "A105 the authors differ: the order on arXiv is 'Tom O'Neill', 'Änne Müller'",
        ),
        (
            '["O\'Neill, Tom", "Müller, Änne"]',
            "Änne Müller, Tom O'Neill",
            "A105 the authors differ: the order on arXiv is 'Änne Müller', 'Tom O'Neill'",
        ),
        (
            '["Müller, Änne", "Nobody, Jim"]',
            "Änne Müller, Tom O'Neill",
            "A105 the authors differ: arXiv does not list 'Nobody, Jim'; arXiv adds 'Tom O'Neill'",
        ),
        (
            '["Müller, Änne"]',
            "Änne Müller, A A, B B, C C, D D",
            "A105 the authors differ: arXiv adds 'A A', 'B B', 'C C' and 1 more",
        ),
        (
            '["Fung, May", "Müller, A."]',
            "Yi R. (May) Fung, Anne Muller",
            "A106 given names are written otherwise on arXiv: 'Fung, May' is 'Yi R. (May) Fung', 'Müller, A.' is 'Anne Muller'",
        ),
        ("[Garden Team]", "Garden Team", ""),
        ("[Garden Team]", "Garden Team, Änne Müller", ""),
        (
            "[Garden Team]",
            "Änne Müller",
            "A105 the authors differ: arXiv does not list 'Garden Team'; arXiv adds 'Änne Müller'",
        ),
        (
            '[Garden Team, "Müller, Änne"]',
            "Garden Team, Änne Müller, Tom O'Neill",
            "A105 the authors differ: arXiv adds 'Tom O'Neill'",
        ),
        (
            '["Zhang, Wei"]',
            "Li Zhang",
            "A105 the authors differ: arXiv does not list 'Zhang, Wei'; arXiv adds 'Li Zhang'",
        ),
    ],
)
def test_authors_are_compared_by_person_number_and_order(
    authors: str, actual: str, message: str, tmp_path: Path
) -> None:
    found = told(corpus(tmp_path, authors=authors), ROSES._replace(authors=tuple(actual.split(", "))))

    assert [line.partition(" ")[2] for line in found] == ([message] if message else [])


@pytest.mark.parametrize(
    ("listed", "actual", "expected"),
    [
        ("Fung, Yi R.", "Yi R. Fung", Likeness.SAME),
        ("Schroeder de Witt, Christian", "Christian Schroeder de Witt", Likeness.SAME),
        ("de Witt, Christian Schroeder", "Christian Schroeder de Witt", Likeness.SAME),
        ("Smith, Jr., John", "John Smith, Jr.", Likeness.SAME),
        ("Kimi Team", "Kimi Team", Likeness.SAME),
        ("Kimi Team", "Kimi team", Likeness.FORM),
        ("{Kimi Team}", "Kimi Team", Likeness.SAME),
        ("{Kimi Team}", "Kimi team", Likeness.FORM),
        ("Fung, May", "Yi R. (May) Fung", Likeness.FORM),
        ("Dang, Y.", "Yufan Dang", Likeness.FORM),
        ("Müller, Änne", "Aenne Mueller", Likeness.FORM),
        ("Ørsted, Hans", "Hans Orsted", Likeness.FORM),
        ("Łukasz, Jan", "Jan Lukasz", Likeness.FORM),
        ("李, 明", "李明", Likeness.FORM),
        ("Fang, Zhouhua", "Fang Zhouhua", Likeness.FORM),
        ("O'Neill, Tom", "Tom O’Neill", Likeness.FORM),
        ("Zhang, Li", "Lin Zhang", Likeness.OTHER),
        ("Xu, Yue", "Yu Xu", Likeness.OTHER),
        ("OpenAI", "Sam OpenAI", Likeness.OTHER),
    ],
)
def test_one_person_under_two_names(listed: str, actual: str, expected: Likeness) -> None:
    assert likeness(listed, actual) is expected


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("Yufan Dang", "Dang, Yufan"),
        ("Yi R. (May) Fung", "Fung, Yi R. (May)"),
        ("Ludwig van Beethoven", "van Beethoven, Ludwig"),
        ("Maria de la Cruz", "de la Cruz, Maria"),
        ("Martin Luther King Jr.", "King, Jr., Martin Luther"),
        ("Kimi Team", "{Kimi Team}"),
        ("DeepSeek-AI", "DeepSeek-AI"),
    ],
)
def test_a_new_name_is_split_as_bibtex_would(name: str, written: str) -> None:
    assert bibtex_author(name) == written
    assert likeness(written, name) is Likeness.SAME


NAMES = st.lists(
    st.sampled_from(["Ann Lee", "Bo Li", "Cy van Dam", "Garden Team", "Dee Lee", "Änne Müller"]), max_size=5, min_size=1
)


@given(NAMES, NAMES)
def test_a_rewritten_list_does_not_differ_any_more(old: list[str], new: list[str]) -> None:
    listed = tuple(bibtex_author(name) for name in old)

    after = merge_authors(listed, new)

    assert not any(compare(after, new)[:4])
    assert len(after) == len(new)
    if any("," in name for name in listed):  # collectives alone stand for their members
        assert any(compare(listed, new)[:4]) == (old != new)


@given(st.text(st.sampled_from("\\${}^_%~&#a é\n-`'[]")))
def test_no_title_is_too_broken_to_be_compared(text: str) -> None:
    assert "\n" not in plain_text(text)
    assert plain_text(plain_text("a simple title")) == "a simple title"


def test_an_id_that_leads_to_another_work_is_an_error(tmp_path: Path) -> None:
    answer = ROSES._replace(title="Dark Matter in Dwarf Galaxies", authors=("Maria Costa",), doi="10.5555/stars")

    loaded = corpus(tmp_path)

    assert told(loaded, answer) == [
        "8 A101 arXiv id '2101.00001' is that of 'Dark Matter in Dwarf Galaxies' by 'Maria Costa'; fix the id"
    ]
    assert offered(loaded, answer) == {}


def test_a_renamed_paper_or_one_with_wrong_authors_is_not_another_work(tmp_path: Path) -> None:
    loaded = corpus(tmp_path)
    renamed = ROSES._replace(title="Pruning by the Moon")
    retold = ROSES._replace(authors=("Somebody Else",))

    assert [line.split()[1] for line in told(loaded, renamed)] == ["A103"]
    assert [line.split()[1] for line in told(loaded, retold)] == ["A105"]


@pytest.mark.parametrize(
    ("answers", "known", "message"),
    [
        (Answers({}, missing=[ID]), {}, "arXiv has no paper '2101.00001'; fix the id"),
        (
            Answers({}, missing=[ID]),
            {ID: ROSES},
            "arXiv has no paper '2101.00001', although it had 'Röses: A Garden in Four Beds' before; fix the id",
        ),
        (Answers({}, refused=[ID]), {}, "arXiv takes '2101.00001' for no id at all; fix the id"),
    ],
)
def test_an_id_without_a_paper(answers: Answers, known: dict[str, Metadata], message: str, tmp_path: Path) -> None:
    assert [(finding.code, finding.message) for finding in find_drift(corpus(tmp_path), answers, known)] == [
        ("A102", message)
    ]


def test_renamed_in_a_later_version_under_the_same_id(tmp_path: Path) -> None:
    loaded = corpus(tmp_path)
    answer = ROSES._replace(version=2, title="Röses: A Garden in Five Beds", updated="2021-04-05T06:07:08Z")

    assert told(loaded, answer, ROSES) == [
        "3 A103 the title on arXiv is 'Röses: A Garden in Five Beds'",
        "8 A107 version 2 of 2021-04-05 is new; known was version 1: see that tags and evidence still hold",
    ]
    assert offered(loaded, answer) == {"title": "Röses: A Garden in Five Beds"}


def test_an_author_added_in_a_later_version(tmp_path: Path) -> None:
    loaded = corpus(tmp_path, authors='["Müller, Ä.", "O\'Neill, Tom"]')
    answer = ROSES._replace(version=2, authors=("Änne Müller", "Tianle van Chen", "Tom O'Neill"))

    assert [line.partition(" ")[2] for line in told(loaded, answer)] == [
        "A105 the authors differ: arXiv adds 'Tianle van Chen'"
    ]
    assert offered(loaded, answer) == {"authors": ("Müller, Ä.", "van Chen, Tianle", "O'Neill, Tom")}


def test_a_collective_is_never_rewritten_and_anonymous_is(tmp_path: Path) -> None:
    answer = ROSES._replace(authors=("Änne Müller",))

    assert offered(corpus(tmp_path / "a", authors="[Garden Team]"), answer) == {}
    assert offered(corpus(tmp_path / "b", authors="[Anonymous]"), answer) == {"authors": ("Müller, Änne",)}


def test_a_list_cut_short_is_never_merge_authors(tmp_path: Path) -> None:
    loaded = corpus(tmp_path)
    answer = ROSES._replace(authors=("Tom O'Neill", "Änne Müller", "Zoë Last"))

    assert [line.split()[1] for line in told(loaded, answer)] == ["A105"]
    assert offered(loaded, answer) == {}


def test_withdrawn_then_restored(tmp_path: Path) -> None:
    loaded = corpus(tmp_path)
    withdrawn = ROSES._replace(
        version=2, title="Röses", comment="12 pages. This paper has been withdrawn by Tom O'Neill. Sorry."
    )
    restored = ROSES._replace(version=3, comment="12 pages")

    suspected = (
        "8 A108 suspected withdrawal: version 2 says 'This paper has been withdrawn by Tom O'Neill.'; read "
        "https://arxiv.org/abs/2101.00001v2, then say in notes what is left of the paper"
    )
    assert suspected in told(loaded, withdrawn, ROSES)
    assert suspected in told(loaded, withdrawn, withdrawn), "it stays suspected"
    assert offered(loaded, withdrawn) == {}, "nothing is taken from what may be withdrawn"
    assert told(loaded, restored, withdrawn) == [
        "8 A107 version 3 of 2021-01-01 is new; known was version 2: see that tags and evidence still hold",
        "8 A109 the suspected withdrawal (version 2) is taken back: version 3 says nothing of it",
    ]
    assert told(loaded, restored, restored) == []


def test_an_answer_older_than_what_is_known_is_no_news(tmp_path: Path) -> None:
    before = ROSES._replace(version=3, primary_category="cs.AI", journal_ref="J", comment="Withdrawn")

    assert told(corpus(tmp_path), ROSES, before) == []


@pytest.mark.parametrize(
    ("venue", "before", "expected"),
    [
        ("arXiv", None, True),
        ("arXiv (submitted)", "J. Beds 3", True),
        ("Journal of Beds", None, False),
        ("Journal of Beds", "", True),
        ("Journal of Beds", "J. Beds 3", False),
    ],
)
def test_a_journal_reference_that_the_record_lacks_or_that_is_new(
    venue: str, before: str | None, expected: bool, tmp_path: Path
) -> None:
    known = None if before is None else ROSES._replace(journal_ref=before or None)

    found = told(corpus(tmp_path, venue=venue), ROSES._replace(journal_ref="J. Beds 3"), known)

    assert [line.split()[1] for line in found] == ["A110"] * expected


def test_a_doi_that_the_record_lacks_is_offered_and_another_one_is_not(tmp_path: Path) -> None:
    answer = ROSES._replace(doi="10.5555/roses.2")
    loaded = corpus(tmp_path)
    without = loaded.papers[0]._replace(doi=None)

    assert told(loaded, answer) == [
        "9 A111 DOI '10.5555/roses.1' is '10.5555/roses.2' on arXiv; fix it, or waive this with the reason"
    ]
    assert offered(loaded, answer) == {}
    assert propose_changes(without, answer, {"A111"}) == {"doi": "10.5555/roses.2"}
    assert propose_changes(without, ROSES._replace(doi="see paper"), {"A111"}) == {}


def test_the_primary_category_changed(tmp_path: Path) -> None:
    answer = ROSES._replace(primary_category="cs.AI", categories=("cs.AI", "cs.MA"))

    assert told(corpus(tmp_path), answer, ROSES) == ["8 A112 the primary category is now 'cs.AI'; it was 'cs.MA'"]


def test_a_title_that_only_latex_can_say_is_reported_but_not_offered() -> None:
    paper = Paper(key="x", title="Beds")

    assert propose_changes(paper, ROSES._replace(title="Beds $\\frac{n}{2}$ \\foo{x}"), {"A103"}) == {}
    assert propose_changes(paper, ROSES._replace(title="Beds of $\\lambda$"), {"A103"}) == {"title": "Beds of λ"}


def test_text_of_arxiv_reaches_no_terminal(tmp_path: Path) -> None:
    evil = "\x1b[31m\x9b"
    answer = ROSES._replace(
        version=2,
        title=f"Röses: A Garden {evil}",
        authors=(f"Änne Müller {evil}",),
        comment=f"withdrawn by {evil}",
        journal_ref=evil,
    )

    found = told(corpus(tmp_path, venue="arXiv"), answer, ROSES._replace(primary_category=evil))

    assert len(found) > 4
    assert all(line.isprintable() for line in found)


def values(node: Node) -> Any:
    if isinstance(node, Mapping):
        return {key: values(inner) for key, (_, inner) in node.entries.items()}
    return tuple(values(inner) for inner in node.items) if isinstance(node, Sequence) else node.text


def typed(fields: dict[str, Any], base: Metadata) -> Metadata:
    fields = {name: int(value) if name == "version" else value for name, value in fields.items()}
    primary = fields.get("primary_category", "cs.MA")
    return base._replace(**{"categories": (primary,), **fields})


def found_in(excerpt: str, tmp_path: Path) -> list[Finding]:
    """The drift of an excerpt of the rulebook: a record, what arXiv says of it, and what it said before."""
    parts = re.split(r"^# (data/papers\.yaml|data/arxiv\.json|arXiv)\n", excerpt, flags=re.M)
    given_parts = {}
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        node = YamlFile("excerpt", text.encode()).root()
        assert node is not None
        given_parts[name] = values(node)
    record, says = given_parts["data/papers.yaml"], given_parts["arXiv"]
    shared = {"title": "Agents", "authors": ("Dang, Yufan",), "venue": "Workshop", "key": "x"}
    paper = Paper(**{**shared, **record})
    names = tuple(" ".join(reversed(name.split(", "))) for name in paper.authors)
    base = ROSES._replace(arxiv_id=paper.arxiv_id or "", title=paper.title, authors=names)
    known = {name: typed(fields, base) for name, fields in given_parts.get("data/arxiv.json", {}).items()}
    loaded = corpus(tmp_path)
    assert loaded.pool is not None
    loaded = loaded._replace(pool=loaded.pool._replace(papers=(paper,)))
    name = base.arxiv_id
    answers = Answers({name: typed(says, base)}) if says else Answers({}, missing=[name])
    return list(find_drift(loaded, answers, known))


@pytest.mark.parametrize("code", [code for code in RULES if code.startswith("A")])
def test_the_bad_excerpt_of_the_rulebook_breaks_its_rule_alone_and_the_good_one_none(code: str, tmp_path: Path) -> None:
    assert [finding.code for finding in found_in(explanation(code).bad, tmp_path)] == [code]
    assert found_in(explanation(code).good, tmp_path) == []


def test_the_codes_that_persist_are_warnings_of_drift() -> None:
    assert PERSISTENT.issubset(code for code in RULES if code.startswith("A"))
    assert "A101" not in PERSISTENT


def test_validate_lets_waivers_of_drift_and_of_dead_links_stand(tmp_path: Path) -> None:
    shutil.copytree(TOY, tmp_path / "corpus")
    path = tmp_path / "corpus" / "data" / "papers.yaml"
    waivers = "\n".join(f'    - {{code: {code}, why: "Published under another title."}}' for code in ("A103", "L101"))
    text = path.read_text(encoding="utf-8").replace("  added:", f"  waive:\n{waivers}\n  added:", 1)
    path.write_text(text, encoding="utf-8")

    result = run_corpus("--root", str(tmp_path / "corpus"), "check", "data")

    assert (result.code, result.stdout) == (0, "")


def test_drift_needs_no_tex_library_where_there_is_no_tex() -> None:
    import subprocess
    import sys

    program = (
        "import sys; from orchtrace_corpus.corpus.intake.drift import plain_text; plain_text('A plain title'); "
        "sys.exit('pylatexenc' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT).returncode == 0
