"""`corpus screen`: what it shows, what each key does, that nothing is lost, and two readers with spreadsheets."""

import signal
from pathlib import Path

import pytest
from screening_figures import measure

from orchtrace_corpus.corpus.analysis.reading_order import Similarity, by_date, rank
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.candidates import Candidate, Decision
from orchtrace_corpus.corpus.model.records import Exclusion, Paper
from tests.conftest import Result, run_corpus
from tests.corpus.files import write_data
from tests.corpus.test_discover import PROTOCOL
from tests.loopback import loopback_only  # noqa: F401 - guards every test here
from tests.terminal import Terminal

CANDIDATES = """\
# What awaits a decision.

- key: rose-bed
  title: A Rose Bed for Beginners
  authors: ["Beet, Rosa"]
  year: 2024
  venue: arXiv
  arxiv_id: "2401.00011"
  urls: [https://arxiv.org/abs/2401.00011]
  proposal: unread
  stage: gate
  found: "2024-02-01"
  found_by: [gate, cites rose-garden]

- key: window-shelf
  title: A Window Shelf
  authors: ["Glass, Ida"]
  year: 2024
  venue: arXiv
  arxiv_id: "2401.00012"
  urls: [https://arxiv.org/abs/2401.00012]
  proposal: unread
  found: "2024-02-01"
  found_by: [path]

- key: sand
  title: Sand
  urls: [https://example.org/sand]
  style: gravel  # as seen
  proposal: exclude
  reason: Nothing grows in sand.
  found: "2023-12-03"
"""
ARXIV = """\
{
  "schema": "orchtrace-corpus/arxiv",
  "version": 1,
  "papers": {
    "2401.00011": {
      "version": 1,
      "title": "A Rose Bed for Beginners",
      "authors": ["Rosa Beet"],
      "published": "2024-01-10T10:00:00Z",
      "updated": "2024-01-10T10:00:00Z",
      "primary_category": "cs.MA",
      "categories": ["cs.MA"],
      "abstract": "Roses in a bed, step by step."
    }
  }
}
"""


@pytest.fixture
def root(
    root: Path, in_root: None, empty_cache: None, on_first_of_march: None, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Add three candidates and a protocol to the toy corpus."""
    write_data(root, protocol=PROTOCOL, candidates=CANDIDATES)
    (root / "data" / "arxiv.json").write_text(ARXIV, encoding="utf-8")
    monkeypatch.setenv("NO_COLOR", "1")
    return root


def text(root: Path, name: str) -> str:
    return (root / "data" / f"{name}.yaml").read_text(encoding="utf-8")


def screen(*words: str) -> Result:
    return run_corpus("screen", *words)


@pytest.fixture
def terminal(root: Path) -> Terminal:
    """`corpus screen` at a terminal."""
    return Terminal(command="screen")


def ended(terminal: Terminal) -> str:
    """All that was shown, when the command has ended."""
    terminal.end()
    return terminal.shown


PROMPT = "i include, e exclude, l later, b back, ? rules, q quit: "
SUMMARY = "Summary, one sentence of your own [open]: "


def test_a_card_has_everything_at_hand(terminal: Terminal) -> None:
    terminal.answer([(f"[1/3] {PROMPT}", "q")])
    shown = ended(terminal)

    for line in (
        "A Window Shelf",
        "key         window-shelf",
        "by          Glass, Ida; arXiv 2024",
        "at          https://arxiv.org/abs/2401.00012",
        "found by    path",
        "abstract    None is stored; corpus discover stores abstracts.",
        "excluded    ",
        "E001: A Window Box. Too small to count as a garden.",
        "include if  It is open to visitors.",
        "exclude if  It is a car park.",
        "0 included, 0 excluded, 0 for later",
    ):
        assert line in shown


def test_the_abstract_is_shown_and_the_most_alike_records_with_their_tags(terminal: Terminal) -> None:
    terminal.answer([(f"[1/3] {PROMPT}", "l"), (f"[2/3] {PROMPT}", "q")])
    shown = ended(terminal)

    assert "found by    gate, cites rose-garden" in shown
    assert "abstract    Roses in a bed, step by step." in shown
    assert "rose-garden: Röses: A Garden in Four Beds. style" in shown
    assert "0 included, 0 excluded, 1 for later" in shown


def test_an_abstract_from_outside_moves_no_cursor(root: Path) -> None:
    path = root / "data" / "arxiv.json"
    path.write_text(ARXIV.replace("step by step", "\\u001b[2J\\u202estep\\u0007 by step"), encoding="utf-8")
    terminal = Terminal(command="screen")
    terminal.answer([(f"[1/3] {PROMPT}", "l"), (f"[2/3] {PROMPT}", "q")])

    assert "abstract    Roses in a bed, [2Jstep by step." in ended(terminal)


def test_excluding_takes_a_rule_by_its_number_and_asks_only_for_what_is_missing(root: Path, terminal: Terminal) -> None:
    before = text(root, "exclusions")
    terminal.answer(
        [(f"[1/3] {PROMPT}", "e"), ("Reason, a number or a sentence: ", "1"), ("stage, ? explains: ", "path")]
    )
    terminal.answer([(f"[2/3] {PROMPT}", "q")])

    assert "excluded as E004: A Window Shelf" in ended(terminal)
    assert text(root, "exclusions") == (
        f"{before}\n"
        "- id: E004\n"
        "  title: A Window Shelf\n"
        "  identifier: arXiv:2401.00012\n"
        "  url: https://arxiv.org/abs/2401.00012\n"
        "  stage: path\n"
        '  screened: "2024-03-01"\n'
        "  reason: It is a car park.\n"
    )
    start, end = CANDIDATES.index("- key: window-shelf"), CANDIDATES.index("- key: sand")
    assert text(root, "candidates") == CANDIDATES[:start] + CANDIDATES[end:]


def test_including_leaves_open_what_is_not_answered(root: Path, terminal: Terminal) -> None:
    terminal.answer([(f"[1/3] {PROMPT}", "i")])
    terminal.answer([("style [open], ? explains: ", "gravel"), ("water [open], ? explains: ", "none")])
    terminal.answer(
        [("prune [open], ? explains: ", ""), ("tools [open], ? explains: ", ""), ("size [open], ? explains: ", "")]
    )
    terminal.answer([(SUMMARY, ""), ("Reason, a number or a sentence: ", "It lets light in")])
    terminal.answer([(f"[2/3] {PROMPT}", "q")])

    shown = " ".join(ended(terminal).split())
    ways = "Enter leaves open what is [open]; b goes back to the question before; Ctrl-C stops, with this undecided"
    assert ways in shown
    assert "included; corpus add window-shelf asks for what is open, and for evidence" in shown
    old = CANDIDATES[CANDIDATES.index("- key: window-shelf") : CANDIDATES.index("- key: sand")]
    new = old.replace(
        "  proposal: unread\n",
        "  style: gravel\n  care: {water: none}\n  proposal: include\n  reason: It lets light in.\n",
    )
    new = new.replace("  found_by: [path]\n", '  found_by: [path]\n  screened: "2024-03-01"\n')
    assert text(root, "candidates") == CANDIDATES.replace(old, new)
    assert run_corpus("check", "data").code == 0


def test_what_lacks_nothing_becomes_a_paper(root: Path, terminal: Terminal) -> None:
    terminal.answer([(f"[1/3] {PROMPT}", "i")])
    for field, answer in (
        ("style", "gravel"),
        ("water", "weekly"),
        ("prune", "none"),
        ("tools", ""),
        ("size", "small"),
    ):
        terminal.answer([(f"{field} [open], ? explains: ", answer)])
    terminal.answer([(SUMMARY, "A shelf with plants"), (f"[2/3] {PROMPT}", "q")])

    hint = "; for evidence: corpus tag window-shelf --evidence NOTE"
    assert f"added window-shelf: A Window Shelf{hint}" in ended(terminal).replace("\r\n", " ")
    assert "- key: window-shelf\n  title: A Window Shelf\n" in text(root, "papers")
    assert "  summary: A shelf with plants.\n" in text(root, "papers")
    assert "window-shelf" not in text(root, "candidates")


def test_b_asks_the_question_before_again_and_at_the_first_decides_anew(root: Path, terminal: Terminal) -> None:
    style, water, prune = (f"{field} [open], ? explains: " for field in ("style", "water", "prune"))
    terminal.answer([(f"[1/3] {PROMPT}", "i"), (style, "b"), (f"[1/3] {PROMPT}", "i")])
    terminal.answer([(style, "formal"), (water, "wetly"), (water, "daily"), (prune, "b"), (water, "b")])
    terminal.answer([(style, "gravel"), (water, "none"), (prune, "b"), (water, "weekly"), (prune, "")])
    terminal.answer([("tools [open], ? explains: ", ""), ("size [open], ? explains: ", "")])
    terminal.answer([(SUMMARY, ""), ("Reason, a number or a sentence: ", "1"), (f"[2/3] {PROMPT}", "q")])

    shown = ended(terminal)
    assert shown.count("nothing was written: that was the first question") == 1
    assert (shown.count(style), shown.count(water), shown.count(prune)) == (3, 5, 3)
    assert "  style: gravel\n  care: {water: weekly}\n  proposal: include\n" in text(root, "candidates")


def test_a_candidate_without_evidence_stays_open_and_the_corpus_sound(root: Path, terminal: Terminal) -> None:
    terminal.answer([(f"[1/3] {PROMPT}", "i")])
    for field, answer in (("style", "gravel"), ("water", "daily"), ("prune", "none"), ("tools", ""), ("size", "small")):
        terminal.answer([(f"{field} [open], ? explains: ", answer)])
    terminal.answer([(SUMMARY, "A shelf with plants."), ("Reason, a number or a sentence: ", "1")])
    terminal.answer([(f"[2/3] {PROMPT}", "q")])

    assert "included; corpus add window-shelf asks for what is open" in ended(terminal)
    kept = text(root, "candidates")
    assert "  care: {water: daily, prune: none}\n  size: small\n  summary: A shelf with plants.\n" in kept
    assert run_corpus("check", "data").code == 0, "daily watering asks for evidence, which is given with the rest"


def test_the_rules_are_shown_first_and_again_when_asked_for(terminal: Terminal) -> None:
    terminal.answer([(f"[1/3] {PROMPT}", "l"), (f"[2/3] {PROMPT}", "?"), (f"[2/3] {PROMPT}", "q")])
    shown = ended(terminal)

    first, second = shown.split(f"[2/3] {PROMPT}")[:2]
    assert (first.count("include if"), second.count("include if")) == (1, 1)
    assert "A Rose Bed for Beginners" in first.split("include if")[1], "the second card came without rules"


def test_a_key_of_another_question_is_no_reason(root: Path, terminal: Terminal) -> None:
    terminal.answer([(f"[1/3] {PROMPT}", "e")])
    terminal.answer([("Reason, a number or a sentence: ", answer) for answer in ("?", "q", "7")])
    terminal.until("Reason, a number or a sentence: ")
    terminal.press(b"\x03")
    shown = ended(terminal)

    assert shown.count("  1 It is a car park.") == 2
    assert "A reason is needed: a number of the list, or a sentence." in shown
    assert "There is no rule 7." in shown
    assert text(root, "candidates") == CANDIDATES


def test_without_a_protocol_a_reason_is_a_sentence(root: Path) -> None:
    (root / "data" / "protocol.yaml").unlink()
    terminal = Terminal(command="screen")
    terminal.answer([(f"[1/3] {PROMPT}", "?"), (f"[1/3] {PROMPT}", "e")])
    terminal.answer([("Reason, a sentence: ", "1"), ("Reason, a sentence: ", "Too small.")])
    terminal.answer([("stage, ? explains: ", "path"), (f"[2/3] {PROMPT}", "q")])
    shown = ended(terminal)

    assert "this corpus has no data/protocol.yaml, which would have rules" in shown
    assert "A reason is needed: a sentence." in shown
    assert "  reason: Too small.\n" in text(root, "exclusions")


READ = """\
  summary: Sand and water.
  readings:
    - by: first reader
      tags: {style: gravel, water: daily}
      sources: [https://example.org/sand]
      note: It is watered.
      level: visit
      confidence: high
"""


def test_the_reason_on_record_is_offered_for_the_decision_that_it_is_of(root: Path, terminal: Terminal) -> None:
    before = text(root, "exclusions")
    terminal.answer([(f"[1/3] {PROMPT}", "l"), (f"[2/3] {PROMPT}", "l"), (f"[3/3] {PROMPT}", "e")])
    terminal.answer([("  proposed: Nothing grows in sand.\nReason, a number or a sentence [as proposed]: ", "")])
    terminal.answer([("stage, ? explains: ", "path")])

    assert "excluded as E004: Sand" in ended(terminal)
    assert text(root, "exclusions") == (
        f"{before}\n"
        "- id: E004\n"
        "  title: Sand\n"
        "  identifier: SAND\n"
        "  url: https://example.org/sand\n"
        "  stage: path\n"
        '  screened: "2024-03-01"\n'
        "  reason: Nothing grows in sand.\n"
    )


def test_the_reason_to_exclude_is_none_to_include_and_readings_stand_by_their_tags(root: Path) -> None:
    path = root / "data" / "candidates.yaml"
    path.write_text(CANDIDATES.replace("  style: gravel  # as seen\n", READ), encoding="utf-8")
    terminal = Terminal(command="screen")
    terminal.answer([(f"[1/3] {PROMPT}", "l"), (f"[2/3] {PROMPT}", "l"), (f"[3/3] {PROMPT}", "i")])
    terminal.answer([("style [open], ? explains: ", ""), ("water [open], ? explains: ", "daily")])
    terminal.answer([(f"{field} [open], ? explains: ", "") for field in ("prune", "tools", "size")])
    terminal.answer([("Reason, a number or a sentence: ", ""), ("Reason, a number or a sentence: ", "It is dry.")])
    shown = ended(terminal)

    assert "summary     Sand and water.\nreading     first reader: visit, high confidence; style gravel" in shown
    assert "  first reader reads style gravel\n  1 " in shown
    assert "  first reader reads water daily\n  1 " in shown
    assert "A reason is needed: a number of the list, or a sentence." in shown
    assert "  care: {water: daily}\n" in text(root, "candidates")
    assert "  proposal: include\n  reason: It is dry.\n" in text(root, "candidates")
    assert run_corpus("check", "data").code == 0


def test_going_back_takes_the_last_decision_back_to_the_byte(root: Path, terminal: Terminal) -> None:
    before = {path: path.read_bytes() for path in root.rglob("*.yaml")}
    terminal.answer([(f"[1/3] {PROMPT}", "l"), (f"[2/3] {PROMPT}", "e"), ("Reason, a number or a sentence: ", "1")])
    terminal.answer(
        [(f"[3/3] {PROMPT}", "b"), (f"[2/3] {PROMPT}", "b"), (f"[1/3] {PROMPT}", "b"), (f"[1/3] {PROMPT}", "q")]
    )

    shown = ended(terminal)
    assert "taken back: rose-bed" in shown
    assert "this is the first one" in shown
    assert {path: path.read_bytes() for path in root.rglob("*.yaml")} == before


@pytest.mark.parametrize("end", ["end of input", "interrupt", "killed"])
def test_whatever_ends_it_keeps_the_decisions_so_far(root: Path, terminal: Terminal, end: str) -> None:
    terminal.answer(
        [(f"[1/3] {PROMPT}", "l"), (f"[2/3] {PROMPT}", "e"), ("Reason, a number or a sentence: ", "Too thorny.")]
    )
    terminal.until(f"[3/3] {PROMPT}")
    if end == "killed":
        terminal.kill()
    else:
        terminal.press(b"\x04" if end == "end of input" else b"\x03")
    assert terminal.end() == (-signal.SIGKILL if end == "killed" else 130)

    assert "reason: Too thorny.\n" in text(root, "exclusions")
    assert "rose-bed" not in text(root, "candidates")
    assert run_corpus("check", "data").code == 0


def test_without_a_terminal_it_says_what_to_do(root: Path) -> None:
    assert screen() == (
        2,
        "",
        "corpus: screen asks questions, and this is not a terminal\n"
        "Write a sheet with --sheet FILE, and give it back with --decisions FILE.\n",
    )


@pytest.mark.usefixtures("root")
def test_filters_that_no_candidate_passes_are_told_from_nothing_to_decide_on() -> None:
    assert screen("--where", "year=1900") == (0, "", "no candidate passes the filters; without them, 3 to decide on\n")


def test_show_says_what_a_candidate_came_by_and_no_empty_reason(root: Path) -> None:
    shown = run_corpus("show", "rose-bed").stdout

    assert "\nfound     2024-02-01\nfound by  gate, cites rose-garden\nstage     gate\n" in shown
    assert "\nreason" not in shown


# Two readers


def test_a_sheet_has_an_empty_column_for_each_decision(root: Path) -> None:
    assert screen("--sheet", "first.csv") == (0, "", "wrote first.csv: 3 candidates\n")
    assert (root / "first.csv").read_text(encoding="utf-8") == (
        "key,title,links,abstract,decision,stage,reason\n"
        "window-shelf,A Window Shelf,https://arxiv.org/abs/2401.00012,,,,\n"
        'rose-bed,A Rose Bed for Beginners,https://arxiv.org/abs/2401.00011,"Roses in a bed, step by step.",,gate,\n'
        "sand,Sand,https://example.org/sand,,,,\n"
    )
    assert screen("--sheet", "first.csv").code == 3, "a reader's work is not overwritten"


def test_a_spreadsheet_takes_no_title_for_a_formula(root: Path) -> None:
    path = root / "data" / "candidates.yaml"
    path.write_text(CANDIDATES.replace("title: Sand\n", 'title: "=HYPERLINK(1)"\n'), encoding="utf-8")

    screen("--sheet", "first.csv")

    assert "sand,'=HYPERLINK(1),https" in (root / "first.csv").read_text(encoding="utf-8")


FIRST = """\
key,title,links,abstract,decision,stage,reason,style,water,prune,tools,size,summary
window-shelf,,,,include,,open,gravel,weekly,none,,small,A shelf with plants.
rose-bed,,,,exclude,path,Nothing but roses.,,,,,,
sand,,https://example.org/sand,,exclude,gate,shut,,,,,,
"""
SECOND = """\
key;decision;stage;reason
window-shelf;include;;It is light.
rose-bed;later;;
sand;exclude;path;It is sand.
"""


def test_decisions_on_which_two_readers_agree_are_taken_over(root: Path) -> None:
    (root / "first.csv").write_text(FIRST, encoding="utf-8")
    (root / "second.csv").write_text(SECOND, encoding="utf-8")

    result = screen("--decisions", "first.csv", "--decisions", "second.csv")

    assert result == (
        1,
        "",
        "corpus: rose-bed: the readers differ, so nothing is decided\n1 included, 1 excluded, 0 for later\n",
    )
    assert "  key: window-shelf" not in text(root, "candidates")
    assert "- key: window-shelf" in text(root, "papers")
    assert "  title: Sand\n  identifier: SAND\n  url: https://example.org/sand\n  stage: gate\n" in text(
        root, "exclusions"
    )
    assert "  reason: It is a car park.\n" in text(root, "exclusions"), "the id of a rule stands for it"
    assert "- key: rose-bed" in text(root, "candidates")
    assert run_corpus("check", "data").code == 0

    before = {path: path.read_bytes() for path in root.rglob("*.yaml")}
    again = screen("--decisions", "first.csv")
    assert again == (0, "", "0 included, 1 excluded, 0 for later, 2 decided before\n")
    changed = {path.name for path, old in before.items() if path.read_bytes() != old}
    assert changed == {"candidates.yaml", "exclusions.yaml"}, "rose-bed, which one reader decides on now"


def test_mistakes_of_a_sheet_are_reported_at_their_lines_and_the_rest_is_taken_over(root: Path) -> None:
    sheet = "key,decision,stage,reason\nwindow-shelf,maybe,,\nmoss,include,,x\nrose-bed,exclude,path,\nsand,exclude,roof,shut\n"
    (root / "first.csv").write_text(sheet, encoding="utf-8")

    result = screen("--decisions", "first.csv")

    assert result.code == 1
    assert [line.split(" ")[:2] for line in result.stderr.splitlines()[:3]] == [
        ["first.csv:2:1:", "K105"],
        ["first.csv:3:1:", "K103"],
        ["first.csv:5:1:", "K105"],
    ]
    assert "corpus: rose-bed: nothing was written: rose-bed has no reason\n" in result.stderr
    assert "corpus: sand: nothing was written: the log needs stage\nGive it in the sheet.\n" in result.stderr
    assert text(root, "candidates") == CANDIDATES


def test_of_a_sheet_without_keys_it_is_said_how_one_is_begun(root: Path) -> None:
    (root / "first.csv").write_text("decision,reason\ninclude,\n", encoding="utf-8")

    result = screen("--decisions", "first.csv")

    assert result.code == 3
    assert result.stderr == (
        "first.csv:1:1: K101 not a coding sheet: no column 'key', only 'decision', 'reason'; "
        "begin one with corpus screen --sheet FILE\n"
    )


def test_audit_measures_how_far_two_readers_agree(root: Path) -> None:
    (root / "first.csv").write_text(FIRST, encoding="utf-8")
    (root / "second.csv").write_text(SECOND, encoding="utf-8")

    result = run_corpus("audit", "compare", "first.csv", "second.csv", "--resamples", "0", "--format", "csv")

    rows = [line.split(",")[:3] for line in result.stdout.splitlines()]
    assert ["decision", "3", "0.667"] in rows
    one = run_corpus("audit", "compare", "first.csv")
    assert (one.code, one.stderr) == (
        2,
        "corpus: first.csv is a sheet of screening, and needs a second reader's\nName two sheets.\n",
    )


# The order


def made(title: str, arxiv_id: str = "") -> Candidate:
    return Candidate(
        Paper(key=title.lower().replace(" ", "-"), title=title, arxiv_id=arxiv_id or None), Decision.UNREAD
    )


def test_the_newest_come_first_by_id_and_else_by_year() -> None:
    old, new, last = made("Old", "2301.00001"), made("New", "2401.00001"), made("Last", "2401.10001")
    undated = Candidate(Paper(key="undated", title="Undated", year=2020), Decision.UNREAD)

    ordered = by_date([undated, old, new, last])

    assert [one.name for one in ordered] == ["last", "new", "old", "undated"]


TEXTS = [f"{word} of agents trained as a team" for word in "credit reward routing debate delegation".split()]
OTHERS = [f"{word} of a prompted product page" for word in "menu price login banner cookie".split()]


def test_the_likely_order_says_by_which_words() -> None:
    scores = rank(TEXTS + OTHERS, [True] * 5 + [False] * 5, ["A team of trained agents", "A product page"])

    assert scores[0].likelihood > 0.5 > scores[1].likelihood
    assert {"trained", "team"} <= {word for word, share in scores[0].words if share > 0}
    assert {"product", "page"} <= {word for word, share in scores[1].words if share < 0}


def test_an_order_is_measured_by_recall_and_saved_work() -> None:
    perfect, worst = measure([True] * 2 + [False] * 18), measure([False] * 18 + [True] * 2)

    assert perfect.recall == {0.1: 1.0, 0.2: 1.0, 0.5: 1.0}
    assert perfect.saved == pytest.approx(0.9 - 0.05)
    assert worst.recall == {0.1: 0.0, 0.2: 0.0, 0.5: 0.0}
    assert worst.saved == pytest.approx(-0.05)


def test_the_nearest_records_share_rare_words() -> None:
    papers = [Paper(title="Credit in Teams"), Paper(title="Credit of Banks"), Paper(title="Roses")]
    likeness = Similarity([*papers, Exclusion(title="Teams without Credit")], {})

    nearest = likeness.nearest("Teams and Credit", 2, lambda record: isinstance(record, Paper))

    assert [record.title for record, _ in nearest] == ["Credit in Teams", "Credit of Banks"]
    assert nearest[0][1] > nearest[1][1] > 0


def test_candidates_can_be_listed_in_either_order(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dated = run_corpus("candidates", "--order", "date", "--columns", "key", "--format", "csv")
    assert dated.stdout == "key\nwindow-shelf\nrose-bed\nsand\n"

    likely = run_corpus("candidates", "--order", "likely")
    assert (likely.code, likely.stderr) == (
        2,
        "corpus: the likely order needs at least 5 included and 5 excluded records to learn from\nWrite --order date.\n",
    )
    monkeypatch.setattr("orchtrace_corpus.corpus.analysis.reading_order.FEWEST", 2)
    shown = run_corpus("candidates", "--order", "likely", "--columns", "key", "--format", "csv").stdout.splitlines()
    assert shown[0] == "key,likely,by_words"
    assert shown[1].startswith("rose-bed,0.")
    assert "+bed" in shown[1]


def test_the_likely_order_names_what_it_lacks(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchtrace_corpus.corpus.analysis.reading_order.FEWEST", 2)
    monkeypatch.setitem(__import__("sys").modules, "sklearn.linear_model", None)

    result = run_corpus("candidates", "--order", "likely")

    assert result.code == 2
    assert result.stderr.startswith("corpus: the likely order needs scikit-learn, which is not installed\nInstall it: ")
    assert "[screen]" in result.stderr


def test_the_order_reads_no_words_of_our_own(root: Path) -> None:
    """Summaries, reasons, notes and tags of candidates and papers change nothing."""
    from orchtrace_corpus.corpus.analysis.reading_order import text_of, training_texts

    pool = store.CorpusFiles(str(root)).loaded.pool
    assert pool is not None
    own = pool._replace(
        papers=tuple(one._replace(summary="X", notes="Y", tags={}) for one in pool.papers),
        exclusions=tuple(one._replace(reason="Z", tags={}) for one in pool.exclusions),
    )
    assert training_texts(pool, {}) == training_texts(own, {})
    assert text_of(Paper(title="T", arxiv_id="2401.00001", summary="S"), {"2401.00001": "A"}) == "T. A"
