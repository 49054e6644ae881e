"""Falsehoods planted in a proposal: who reads the comment alone sees each, with what was and what is."""

import shutil
from pathlib import Path

import pytest

from orchtrace_corpus.corpus.render.comment import MOST_BYTES
from tests.conftest import TOY, run_corpus

LONG = "The gardener plants each bed by hand. " * 80
AUTHORS = [f"Gardener, Gina {number}" for number in range(30)]
MORE_PAPERS = """
- key: old-park
  title: The Old Park
  authors: [AUTHORS]
  year: 2022
  venue: Parks
  urls: [https://example.org/parks/of/the/old/town/with/a/long/address/and/many/parts/page-17/beds]
  style: formal
  care: {}
  size: small
  summary: LONG It has one fountain. LONG
  added: "2022-01-01"
"""
FILES = {
    "claims": """\
- id: small-gardens
  claim: Most gardens that we saw are small, and none of those has a fountain that runs in winter.
  where: {size: small}
  expect: {count: 4}
  boundary: In these gardens.
  source: Seen.
""",
    "disputes": """\
- record: rose-garden
  tag: size
  stands: small
  readings: {small: the first reader, large: the second reader}
  why: The fence was moved.
  source: https://example.org/fences
""",
    "candidates": """\
- key: sand-garden
  title: Sand
  urls: [https://example.org/sand]
  proposal: exclude
  reason: No plant was found there by either of the two readers in the whole of the first year.
  found: "2023-01-01"
""",
    "published": 'day: "2023-12-31"\nsource: https://example.org/survey\npapers: [rose-garden, long-grass]\n',
    "codebook": """\
- tag: size
  rules:
    - Measure what lies inside the fence, with the paths, and without any meadow that is mown twice a year.
    - A garden without a fence is large.
""",
    "protocol": """\
kind: A survey of gardens.
day: "2023-12-31"
source: https://example.org/survey
query_field: query_family
stage_field: stage
sources: [maps]
include:
  - {id: plants, rule: Something grows there that somebody has planted and waters in summer and in winter.}
exclude:
  - {id: car-park, rule: Nothing grows there.}
""",
    "searches": '- day: "2023-01-01"\n  by: hand\n  searches:\n    - {query: gardens, source: maps, new: 16}\n',
    "scale": '- {system: Roses, quantity: beds, value: "4", unit: beds, evidence: photo}\n',
}
OTHERS = {
    "corrections.csv": "record,field,published,now,source\nrose-garden,venue,Beds,Journal of Beds,https://example.org/roses\n",
    "audits/first.csv": "key,style,notes\nrose-garden,formal,seen in spring\nlong-grass,meadow,seen in summer\n",
    "rewards/roses.yaml": "title: Roses\nterms:\n  - {name: bloom, weight: 1.5}\n  - {name: scent, weight: 0.5}\n",
    "traces/walk.json": '{"events": [{"id": "a", "agent": "x"}, {"id": "b", "agent": "y", "tokens": 12}]}',
}


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    """A corpus with every kind of data file, twice."""
    before = tmp_path / "before"
    shutil.copytree(TOY, before)
    data = before / "data"
    paper = MORE_PAPERS.replace("AUTHORS", ", ".join(f'"{author}"' for author in AUTHORS)).replace("LONG", LONG.strip())
    with (data / "papers.yaml").open("a", encoding="utf-8") as file:
        file.write(paper)
    for name, text in {**{f"{name}.yaml": text for name, text in FILES.items()}, **OTHERS}.items():
        (data / name).parent.mkdir(exist_ok=True)
        (data / name).write_text(text, encoding="utf-8")
    shutil.copytree(before, tmp_path / "after")
    return before, tmp_path / "after"


def comment(sides: tuple[Path, Path]) -> str:
    result = run_corpus("diff", *map(str, sides), "--format", "markdown")
    assert (result.code, result.stderr) == (0, "")
    return result.stdout


def edit(folder: Path, name: str, old: str, new: str) -> None:
    path = folder / "data" / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


FALSEHOODS = {
    "readers of a dispute swapped": (
        "disputes.yaml", "{small: the first reader, large: the second reader}",
        "{small: the second reader, large: the first reader}",
        "- `rose-garden size`\n"
        "  - `readings.small`: `the first reader` → `the second reader`\n"
        "  - `readings.large`: `the second reader` → `the first reader`\n"),
    "what stands in a dispute": (
        "disputes.yaml", "stands: small", "stands: large", "- `rose-garden size`: `stands`: `small` → `large`\n"),
    "the sentence of a claim": (
        "claims.yaml", "none of those has", "each of those has",
        "- `small-gardens`: `claim`: `Most gardens that we saw are small, and` ~~`none`~~ **`each`** `of those has a fountain that runs in winter.`\n"),
    "a claim that its own change breaks": (
        "claims.yaml", "expect: {count: 4}", "expect: {count: 5}",
        "### Claims broken\n\n- `small-gardens` fails: expected `5`; found `4`."),
    "the definition of a term": (
        "taxonomy.yaml", "definition: Straight lines.", "definition: Mostly straight lines.",
        "- `data/taxonomy.yaml`: `papers[style].terms[formal].definition`: `Straight lines.` → `Mostly straight lines.`\n"),
    "a rule of the codebook": (
        "codebook.yaml", "without any meadow", "with any meadow",
        "- `size`: `rules`: `Measure what lies inside the fence, with the paths, and` ~~`without`~~ **`with`** "
        "`any meadow that is mown twice a year.`; `A garden without a fence is large.`\n"),
    "a rule of the protocol": (
        "protocol.yaml", "in summer and in winter", "in summer or in winter",
        "`include[plants].rule`: `Something grows there that somebody has planted and waters in summer` ~~`and`~~ **`or`** `in winter.`\n"),
    "what is proposed for a candidate, and why": (
        "candidates.yaml", "by either of the two readers", "by one of the two readers",
        "- `sand-garden`: `reason`: `No plant was found there by` ~~`either`~~ **`one`** `of the two readers in the whole of the first year.`\n"),
    "a key of the published pool": (
        "published.yaml", "long-grass]", "mixed-borders]",
        "- `data/published.yaml`: `papers`: `rose-garden`; `long-grass` → `mixed-borders`\n"),
    "a count of a search": (
        "searches.yaml", "new: 16", "new: 61", "- `2023-01-01`: `searches[gardens].new`: `16` → `61`\n"),
    "an observation of scale": (
        "scale.yaml", 'value: "4"', 'value: "40"', "- `Roses beds`: `value`: `4` → `40`\n"),
    "a correction": (
        "corrections.csv", "Journal of Beds", "Journal of Beets",
        "- `data/corrections.csv` `rose-garden`: `now`: `Journal of Beds` → `Journal of Beets`\n"),
    "a code of an audit": (
        "audits/first.csv", "long-grass,meadow", "long-grass,gravel",
        "- `data/audits/first.csv` `long-grass`: `style`: `meadow` → `gravel`\n"),
    "the weight of a reward": (
        "rewards/roses.yaml", "weight: 0.5", "weight: 5.0",
        "- `data/rewards/roses.yaml`: `terms[scent].weight`: `0.5` → `5.0`\n"),
    "a number of a trace that becomes a text": (
        "traces/walk.json", '"tokens": 12', '"tokens": "12"',
        '- `data/traces/walk.json`: `events[b].tokens`: `12` → `"12"`\n'),
    "an address that differs deep inside": (
        "papers.yaml", "page-17/beds", "page-71/beds",
        "- `old-park`: `urls`: … `with/a/long/address/and/many/parts/page-` ~~`17`~~ **`71`** `/beds`\n"),
    "letters that look alike": (
        "papers.yaml", "venue: Parks", "venue: Раrks",
        "- `old-park`: `venue`: `Parks` → `Раrks [U+0420 CYRILLIC CAPITAL LETTER ER, U+0430 CYRILLIC SMALL LETTER A]` "
        "(U+0050 LATIN CAPITAL LETTER P, U+0061 LATIN SMALL LETTER A → "
        "U+0420 CYRILLIC CAPITAL LETTER ER, U+0430 CYRILLIC SMALL LETTER A)\n"),
    "a word wholly of letters that look alike": (
        "papers.yaml", "venue: Parks", "venue: Сосо", "(U+0050 LATIN CAPITAL LETTER P"),
    "a letter for a digit": (
        "papers.yaml", '"2101.00001"', '"21O1.00001"', "(U+0030 DIGIT ZERO → U+004F LATIN CAPITAL LETTER O)"),
    "a word behind the first 2000 characters": (
        "papers.yaml", "It has one fountain.", "It has no fountain.",
        "… `plants each bed by hand. It has` ~~`one`~~ **`no`** `fountain. The gardener plants each bed` …\n"),
    "the order of authors": (
        "papers.yaml", '"Gardener, Gina 3", "Gardener, Gina 4"', '"Gardener, Gina 4", "Gardener, Gina 3"',
        "**`Gardener, Gina 4`**; `Gardener, Gina 3`; ~~`Gardener, Gina 4`~~; (25 that are as before) (the same in another order)\n"),
    "an author who is gone": (
        "papers.yaml", '"Gardener, Gina 3", ', "",
        "- `old-park`: `authors`: `Gardener, Gina 0`; `Gardener, Gina 1`; `Gardener, Gina 2`; ~~`Gardener, Gina 3`~~; "
        "(26 that are as before)\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", FALSEHOODS)
def test_a_falsehood_is_told_with_what_was_and_what_is(sides: tuple[Path, Path], name: str) -> None:
    path, old, new, told = FALSEHOODS[name]
    edit(sides[1], path, old, new)
    shown = comment(sides)

    assert told in shown
    assert "To be judged by a person" in shown


def test_falsehoods_among_honest_changes_are_neither_folded_nor_cut(sides: tuple[Path, Path]) -> None:
    """Hundreds of new records, and all falsehoods that do not touch the same text."""
    apart = {(path, old): (path, old, new, told) for path, old, new, told in FALSEHOODS.values()}
    left = [case for case in apart.values() if case[1] not in ("stands: small", '"Gardener, Gina 3", ')]
    for path, old, new, _ in left:
        edit(sides[1], path, old, new)
    with (sides[1] / "data" / "papers.yaml").open("a", encoding="utf-8") as file:
        for number in range(400):
            paper = MORE_PAPERS.replace("old-park", f"new-{number}").replace("The Old Park", f"Number {number}")
            file.write(
                paper.replace("AUTHORS", '"A, B"').replace("LONG", LONG[:100].strip()).replace("page-17", f"{number}")
            )
    shown = comment(sides)
    head, folded, _ = shown.partition("<details>")

    assert len(shown.encode()) <= MOST_BYTES
    assert folded
    assert "… and " not in head
    for _, _, _, told in left:
        assert told.removeprefix("- `old-park`: ") in head or "`small-gardens`" in told, told
    assert "  - `claim`: `Most gardens that we saw are small, and` ~~`none`~~ **`each`** `of those" in head
    assert "  - `expect.count`: `4` → `5`\n" in head
    assert "<summary>Papers added (400)</summary>" in shown
