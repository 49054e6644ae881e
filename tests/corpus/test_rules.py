"""The rules across records: each is needed, each tolerates what is legitimate, each can be waived if it warns."""

import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import RULES, Finding, Severity
from orchtrace_corpus.base.identifiers import arxiv_year, recognise, recognise_url
from orchtrace_corpus.corpus import rules
from orchtrace_corpus.corpus.api import validate
from orchtrace_corpus.corpus.model.fields import url_problem
from orchtrace_corpus.corpus.model.records import folded_title, folded_url
from orchtrace_corpus.corpus.rules import CHECKS
from orchtrace_corpus.corpus.rules.texts import _MARKUP, LATEX
from tests.conftest import TOY
from tests.corpus.test_invalid_files import FILES, corpus_with, expectations
from tests.effort import assert_grows

CODES = {
    "check_keys": {"D101"},
    "check_exclusion_ids": {"D102"},
    "check_papers": {"D103", "D104", "D105"},
    "check_exclusions": {"D106", "D107", "D108"},
    "check_excluded_papers": {"D109", "D110"},
    "check_order": {"F118"},
    "check_promotions": {"F117"},
    "check_urls": {"I101"},
    "check_arxiv_years": {"I105"},
    "check_venue_years": {"I106"},
    "check_years": {"F115"},
    "check_days": {"F116"},
    "check_markup": {"M103", "M104"},
    "check_quotes": {"M107", "M108"},
    "check_names": {"M110"},
    "check_sentences": {"M105", "M106"},
    "check_placeholders": {"M109"},
    "check_lookalikes": {"M111", "M112", "M113"},
    "check_rules": {"X101", "X102", "X103", "E101", "E102"},
    "check_sparse": {"E103"},
    "check_sourced": {"E104"},
    "check_own_sources": {"E105"},
}


def broken_toy(tmp_path: Path, old: str, new: str, name: str = "papers.yaml") -> str:
    root = tmp_path / "corpus"
    if not root.exists():
        shutil.copytree(TOY, root)
    path = root / "data" / name
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, old
    path.write_text(text.replace(old, new), encoding="utf-8")
    return str(root)


def codes(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.code for finding in findings]


def test_every_check_says_which_codes_it_gives() -> None:
    assert [check.__name__ for check in CHECKS] == list(CODES)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_without_its_check_no_rule_is_enforced(
    check: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = CODES[check.__name__]
    paths = [path for path in FILES if given & {code for code, _, _ in expectations(path)}]
    assert given <= {code for path in paths for code, _, _ in expectations(path)}

    monkeypatch.setattr(rules, "CHECKS", tuple(other for other in CHECKS if other is not check))

    assert {code for path in paths for code in codes(validate(str(corpus_with(path, tmp_path))))} & given == set()


# What the rules tolerate


@pytest.mark.parametrize(
    "text",
    [
        "Costs $5 and $10",
        "Between US$5B and A$7B",
        "The set A \\ B",
        "Read in full [FINISH], *starred*, snake_case, __init__",
        "Rewards a < b, and p<0.05 & more",
        "From <think> to <answer>",
        "R&D at AT&T; more",
        "p(a|b) {x, y} ~ #1 ^2",
        "f [1] (see there)",
        "It's 5 o'clock",
    ],
)
def test_text_that_stays_text(text: str) -> None:
    assert re.search(LATEX, text) is None
    assert re.search(_MARKUP, text, re.IGNORECASE) is None


@pytest.mark.parametrize(
    "text", ["\\emph{x}", "{\\'e}", '\\"o', "$\\alpha$", "$k$", "``so''", "50\\% more", 'Gr{\\"u}n', "a \\& b"]
)
def test_latex(text: str) -> None:
    assert re.search(LATEX, text)


@pytest.mark.parametrize(
    "text",
    ["<script>", "<SCRIPT src=x", "</title>", "<b>", "<br/>", '<a href="x">', "<!-- x", "<?php", "[x](y)", "![x](y)"]
    + ["`x`", "&amp;", "&#39;", "&#x27;", "&eacute;", "<img src=x onerror=alert(1)>", "<svg/onload=alert(1)>"],
)
def test_markup(text: str) -> None:
    assert re.search(_MARKUP, text, re.IGNORECASE)


@pytest.mark.parametrize("pattern", [LATEX, _MARKUP], ids=["latex", "markup"])
@pytest.mark.parametrize("piece", ["$ ", "$a ", "``a", "<a ", "<a x", "&#1", "\\ ", "[("])
def test_patterns_take_no_time_on_hostile_text(pattern: str, piece: str) -> None:
    assert_grows(lambda number: partial(re.search, pattern, piece * number, re.IGNORECASE), 2_500, 20_000, 20)


@pytest.mark.parametrize(
    "url",
    ["https://example.org", "http://example.org:8080/a?b=c#d", "HTTPS://Example.org/@user/a(b)", "https://[::1]/a"]
    + ["https://example.org?at=a@b", "https://de.wikipedia.org/wiki/Köln"],
)
def test_web_addresses(url: str) -> None:
    assert url_problem(url) == ""


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("example.org/a", "begin it with https://"),
        ("javascript:alert(1)", "begin it with https://"),
        ("file:///etc/passwd", "begin it with https://"),
        ("https://example.org/a b", "holds a blank"),
        ("https://example.org/`a`", "write %60"),
        ("https://user:secret@example.org/", "user name or password"),
        ("https://user@example.org?a", "user name or password"),
        ("https://", "names no host"),
        ("https:///path", "names no host"),
    ],
)
def test_what_is_no_webaddress(url: str, problem: str) -> None:
    assert problem in url_problem(url)


@pytest.mark.parametrize(
    "url",
    ["https://arxiv.org/abs/2505.19591v2", "https://doi.org/10.5555/A", "https://openreview.net/forum?id=L0xZPXT3le"]
    + [
        "https://aclanthology.org/2022.acl-long.1/",
        "https://WWW.ARXIV.ORG/abs/2505.19591",
        "https://example.org/2505.1959",
    ],
)
def test_recognising_urls_is_recognising(url: str) -> None:
    assert recognise_url(url) == recognise(url)


@pytest.mark.parametrize(
    ("arxiv_id", "year"),
    [("2505.19591", 2025), ("0704.0001", 2007), ("math.GT/0309136", 2003), ("astro-ph/9901001", 1999)],
)
def test_the_year_of_an_arxiv_id(arxiv_id: str, year: int) -> None:
    assert arxiv_year(arxiv_id) == year


def test_spellings_of_one_url_and_of_one_title() -> None:
    assert len({folded_url(url) for url in ("http://www.Example.org/a/", "https://example.org/a")}) == 1
    assert len({folded_url(url) for url in ("https://example.org/a", "https://example.org/A")}) == 2
    assert len({folded_title(title) for title in ("Röses: A Garden", "roses - a GARDEN", "Roses, a garden!")}) == 1
    assert folded_title("李明") == "李明"


# Clock


def test_the_clock_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1672531200")  # 2023-01-01

    found = validate(str(TOY))
    assert codes(found) == ["F116", "F116"]
    assert [finding.record for finding in found] == ["long-grass", "mixed-borders"]

    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1577836800")  # 2020-01-01: next year may be that of a paper
    assert [(f.code, f.record) for f in validate(str(TOY)) if f.code == "F115"] == [
        ("F115", "long-grass"),
        ("F115", "mixed-borders"),
    ]


def test_tomorrow_has_begun_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(1686009600 + 3600))  # 2023-06-06, 01:00 UTC; a record is of 2023-06-07

    assert validate(str(TOY)) == ()


def test_a_clock_that_is_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for epoch in ("yesterday", "1" * 40):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
        with pytest.raises(CommandUseError, match="SOURCE_DATE_EPOCH is not a time"):
            validate(str(TOY))


# Waivers


def test_a_waiver_silences_its_warning_in_its_record_only(tmp_path: Path) -> None:
    root = broken_toy(tmp_path, "Lays out four beds of roses.", "Lays out four beds of roses")
    broken_toy(tmp_path, "Describes a yard.", "Describes a yard")
    assert codes(validate(root)) == ["M106", "M106"]

    broken_toy(tmp_path, '  added: "2023-02-03"\n', '  added: "2023-02-03"\n  waive: [{code: M105, why: Long.}]\n')
    broken_toy(
        tmp_path,
        "  size: small\n  summary: Describes a yard",
        "  size: small\n  summary: Describes a yard\n  waive: [{code: M106, why: A quotation.}]",
    )

    assert [(f.code, f.record) for f in validate(root)] == [("M106", "rose-garden"), ("F112", "long-grass")]


def test_a_waiver_of_an_exclusion(tmp_path: Path) -> None:
    waiver = "Nothing grows there\n  waive: [{code: M106, why: A quotation.}]"

    assert validate(broken_toy(tmp_path, "Nothing grows there.", waiver, "exclusions.yaml")) == ()


def test_waivers_are_applied_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = next(path for path in FILES if path.stem == "papers_waiver_of_a_warning")
    monkeypatch.setattr(rules, "apply_waivers", lambda findings, loaded: findings)

    assert codes(validate(str(corpus_with(path, tmp_path)))) == ["M106", "V102"]


def test_no_error_can_be_waived(tmp_path: Path) -> None:
    errors = [code for code, rule in RULES.items() if rule.severity is Severity.ERROR]
    lines = "".join(f"\n    - {{code: {code}, why: So.}}" for code in errors)
    root = broken_toy(tmp_path, "  notes: Seen", f"  waive:{lines}\n  notes: Seen")

    found = validate(root)

    assert {finding.code for finding in found} == {"F113"}
    assert [finding.location.line - found[0].location.line for finding in found] == [*range(len(errors))]


# The taxonomy's rules


def test_rules_of_levels_point_at_the_term(tmp_path: Path) -> None:
    root = broken_toy(tmp_path, "tags: [care]", "tags: [size]")

    found = validate(root)

    assert [str(finding).partition("data/")[2] for finding in found] == [
        "papers.yaml:12:17: E101 Daily care needs an item of evidence "
        "(rule 'daily-care-needs-evidence' of the taxonomy) [rose-garden]"
    ]


def test_a_rule_without_when_holds_for_all_papers(tmp_path: Path) -> None:
    rule = 'rules:\n  - id: not-so-old\n    message: It is old.\n    require: {"year>=": "2000"}\n'
    root = broken_toy(tmp_path, "rules:\n", rule, "taxonomy.yaml")

    assert [(f.code, f.record, f.location.line) for f in validate(root)] == [("X101", "terminal-yard", 54)]


def test_a_demand_for_an_absent_field_points_at_what_made_the_rule_apply(tmp_path: Path) -> None:
    rule = (
        'rules:\n  - id: tools\n    message: It has tools.\n    when: {style: meadow}\n    require: {"tools!=": ""}\n'
    )
    root = broken_toy(tmp_path, "rules:\n", rule, "taxonomy.yaml")

    found = validate(root)

    assert [(f.code, f.record) for f in found] == [("X101", "long-grass")]
    assert (
        "  style: meadow" in (Path(root) / "data" / "papers.yaml").read_text().splitlines()[found[0].location.line - 1]
    )
