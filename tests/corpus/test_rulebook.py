"""The rulebook: complete, true (each bad excerpt breaks its rule, each good one does not), and printed in full."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from document import rule_pages

from orchtrace_corpus.base.findings import RULES, SECTIONS, explanations
from orchtrace_corpus.base.text import rules as render
from orchtrace_corpus.base.yamlfile.reader import Mapping, Node, Sequence, YamlFile
from orchtrace_corpus.corpus.api import validate
from tests.conftest import ROOT, run_corpus, run_toy
from tests.corpus.processes import loaded

ENTRIES = {code: entry for section in SECTIONS.values() for code, entry in explanations(section.file).items()}
SYNTAX = [code for code in RULES if code.startswith("Y")]
ELSEWHERE = {
    "A",
    "B",
    "C",
    "K",
    "L",
    "P",
    "T",
}  # not of the data files: the tests of the commands that find them try their excerpts
NOT_TO_BE_SHOWN = {"Y101", "Y112", "Y115", "Y118"}  # bytes that are no text; megabytes; 10,001 mistakes

EVIDENCE = {
    "tags": ["reward_family", "credit_unit", "sub_decisions", "topology"],
    "note": "It says so.",
    "source": "https://example.org/p",
    "level": "code",
    "confidence": "high",
}
PAPER = {
    "authors": ["Doe, Jane"],
    "year": "2025",
    "venue": "Workshop",
    "category": "rl_method",
    "tier": "core",
    "rl": "full",
    "reward_family": "NA",
    "credit_unit": "NA",
    "sub_decisions": {},
    "topology": "NA",
    "scenario": "general",
    "verified": "full",
    "summary": "Studies agents.",
    "evidence": [EVIDENCE],
    "added": "2026-05-04",
}
EXCLUSION = {
    "source": "arXiv",
    "query_family": "orchestration",
    "stage": "abstract_screen",
    "screened": "2026-04-26",
    "reason": "Nothing is trained.",
}

CANDIDATE = {"proposal": "include", "reason": "It trains a team.", "found": "2026-05-04"}
READING = {"level": "paper", "confidence": "high"}
OBSERVATION = {
    "group": "deployment",
    "quantity": "agents",
    "value": "16",
    "unit": "agents",
    "evidence": "paper",
    "sources": ["https://example.org/s"],
    "verified": "true",
}


def value(node: Node) -> Any:
    if isinstance(node, Mapping):
        return {key: value(inner) for key, (_, inner) in node.entries.items()}
    return [value(inner) for inner in node.items] if isinstance(node, Sequence) else node.text


def files(excerpt: str) -> dict[str, Any]:
    """The excerpt's records by the name of their data file."""
    parts = re.split(r"^# data/(\w+)\.yaml\n", excerpt, flags=re.M)
    named = dict(zip(parts[1::2], parts[2::2], strict=True)) if len(parts) > 1 else {"": excerpt}
    content = {}
    for name, text in named.items():
        file = YamlFile("excerpt", text.encode())
        node = file.root()
        assert node is not None, (text, file.findings)
        read = value(node)
        records = [read] if isinstance(read, dict) else read
        if not name:
            name = "taxonomy" if "rules" in records[0] else "exclusions" if "id" in records[0] else "papers"
        content[name] = read if name in ("taxonomy", "published") else records
    return content


def codes_of(excerpt: str, code: str, tmp_path: Path) -> set[str]:
    """The codes that the excerpt raises, its records filled up with what they leave out."""
    content = files(excerpt)
    root = tmp_path / "corpus"
    shutil.copytree(
        ROOT / "data", root / "data", ignore=shutil.ignore_patterns("audits", "rewards", "traces", "papers*")
    )
    papers, exclusions = [], []
    for number, given in enumerate(content.get("papers", [])):
        unique = {"key": f"p-{number}", "title": f"Paper {number}", "urls": [f"https://example.org/p/{number}"]}
        papers.append({**unique, **PAPER, **given})
        for field in {"F101": ("venue",), "E102": ("evidence",)}.get(code, ()):
            if field not in given:
                del papers[-1][field]
    for number, given in enumerate(content.get("exclusions", [])):
        name = f"E{900 + number}"
        unique = {"id": name, "title": f"Title {name}", "identifier": name, "url": f"https://example.org/x/{name}"}
        exclusions.append({**unique, **EXCLUSION, **given})
    if "taxonomy" in content:
        text = (ROOT / "data" / "taxonomy.yaml").read_text(encoding="utf-8").partition("\nrules:\n")[0]
        written = text + "\nrules: " + json.dumps(content["taxonomy"].get("rules", []))
        if "sketch" in content["taxonomy"]:
            written = re.sub(
                r"(?m)sketch: .*$", f"sketch: {json.dumps(content['taxonomy']['sketch'])}", written, count=1
            )
        (root / "data" / "taxonomy.yaml").write_text(written, encoding="utf-8")
    (root / "data" / "published.yaml").unlink()
    if "published" in content:
        (root / "data" / "published.yaml").write_text(json.dumps(content["published"]), encoding="utf-8")
    candidates = []
    for given in content.get("candidates", []):
        candidates.append({"title": given["key"], **CANDIDATE, **given})
        candidates[-1]["readings"] = [{**READING, **reading} for reading in given.get("readings", [])]
    observations = [
        {**OBSERVATION, "system": f"System {n}", **given} for n, given in enumerate(content.get("scale", []))
    ]
    written_out = {"papers": papers, "exclusions": exclusions, "candidates": candidates, "scale": observations}
    for name, records in written_out.items():
        path = root / "data" / f"{name}.yaml"
        path.write_text(json.dumps(records, ensure_ascii=False), encoding="utf-8")
    return {finding.code for finding in validate(str(root))}


def test_every_rule_is_explained() -> None:
    assert set(ENTRIES) == set(RULES)
    assert {code[0] for code in RULES} == set(SECTIONS)


@pytest.mark.parametrize("code", [code for code in RULES if code not in SYNTAX and code[0] not in ELSEWHERE])
def test_the_bad_excerpt_breaks_its_rule_alone_and_the_good_one_none(code: str, tmp_path: Path) -> None:
    assert codes_of(ENTRIES[code].bad, code, tmp_path / "bad") == {code}
    assert codes_of(ENTRIES[code].good, code, tmp_path / "good") == set()


@pytest.mark.parametrize("code", [code for code in SYNTAX if code not in NOT_TO_BE_SHOWN])
def test_the_reader_refuses_the_bad_excerpt_and_takes_the_good_one(code: str) -> None:
    bad, good = YamlFile("bad", ENTRIES[code].bad.encode()), YamlFile("good", ENTRIES[code].good.encode())
    bad.root()
    good.root()

    assert {finding.code for finding in bad.findings} == {code}
    assert good.findings == []


def test_why_is_a_few_whole_sentences() -> None:
    for code in RULES:
        why = ENTRIES[code].why
        assert why[0].isupper() or why.startswith("`"), code
        assert why.endswith("."), code
        assert 30 < len(why) < 400, code


def test_a_rule_on_the_terminal() -> None:
    assert run_toy("rule", "v102") == (
        0,
        "V102 unknown term\n"
        "error, can be fixed automatically\n"
        "\n"
        "A word outside the vocabulary would open a class of its own in every count. `corpus terms FIELD`\n"
        "lists the words; a new one belongs in data/taxonomy.yaml. `corpus check --fix` corrects a term that\n"
        "is only written in other case.\n"
        "\n"
        "An error; cannot be waived.\n"
        "\n"
        "Instead of:\n"
        "    topology: heirarchical\n"
        "\n"
        "write:\n"
        "    topology: hierarchical\n",
        "",
    )


def test_all_rules_on_the_terminal() -> None:
    result = run_toy("rule", "--all")

    assert result.code == 0
    headings = re.findall(r"^([A-Z]\d{3}) ", result.stdout, re.M)
    assert headings == render.all_codes()
    assert all(line.isprintable() for line in result.stdout.splitlines())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("V109",), "there is no rule 'V109' (did you mean 'V10"),
        (("Q",), "there is no rule 'Q'"),
        ((), "which rule?\nName a code, such as corpus rule V102, or see them all: corpus rule --all"),
        (("V102", "--all"), "--all explains 'V102', too; give one of the two"),
    ],
)
def test_what_is_no_rule(words: tuple[str, ...], message: str) -> None:
    result = run_toy("rule", *words)

    assert (result.code, result.stdout) == (2, "")
    assert message in result.stderr


def test_the_index_links_every_rule_to_its_section() -> None:
    pages = rule_pages()

    links = re.findall(
        r"^\| \[(\w+)\]\((rules/[\w-]+\.md)#([^)]+)\) \| (error|warning) \|", pages["docs/rules.md"], re.M
    )
    headings = [
        (page.removeprefix("docs/"), re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-"))
        for page, text in pages.items()
        for heading in re.findall(r"^## (\w\d+ .+)$", text, re.M)
    ]
    assert [(page, anchor) for _, page, anchor, _ in links] == headings
    assert [code for code, *_ in links] == render.all_codes()
    assert [severity for *_, severity in links] == [RULES[code].severity for code in render.all_codes()]
    for text in pages.values():
        assert text.count("```") % 2 == 0
        assert "<think>" not in text


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("E102", "A record can waive it: waive: [{code: E102, why: ...}]"),
        ("L101", "A record can waive it: waive: [{code: L101, why: ...}]"),
        ("D101", "An error; cannot be waived."),
        ("F112", "Not about a record's content; cannot be waived."),
        ("K106", "Not about a record's content; cannot be waived."),
    ],
)
def test_a_rule_says_whether_a_record_can_waive_it(code: str, sentence: str) -> None:
    section = "".join(rule_pages().values()).partition(f"## {code} ")[2].partition("## ")[0]

    assert sentence in run_toy("rule", code).stdout.splitlines()
    assert sentence in section.splitlines()


def test_who_asks_for_waivers_is_shown_how_a_record_has_one() -> None:
    result = run_toy("rule", "waive")

    assert (result.code, result.stdout, result.stderr) == (
        2,
        "",
        "corpus: 'waive' is not a rule but a field of records\n"
        "A record says: waive: [{code: E102, why: ...}]; corpus rule CODE says whether a record can waive it.\n",
    )


def test_explaining_needs_no_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert run_corpus("rule", "D").code == 0


@pytest.mark.parametrize("words", ["stats", "list", "check data", "check data --format github", "terms"])
def test_commands_that_explain_nothing_do_not_load_the_rulebook(words: str) -> None:
    assert "tomllib" not in loaded()[words]
