"""The Python interface."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import orchtrace_corpus as oc
from orchtrace_corpus.base.errors import CommandUseError, DataFileError, InvalidCorpusError, MalformedCorpusError
from orchtrace_corpus.base.html import notebook_table
from orchtrace_corpus.corpus.analysis.attributes import paper_attributes
from orchtrace_corpus.corpus.api import Corpus, load
from tests.conftest import ROOT, TOY


def test_load_finds_the_nearest_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TOY / "data")
    assert len(oc.load()) == 4


def test_load_falls_back_to_the_installed_corpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(oc.load()) == len(oc.load(str(ROOT)))


def test_every_public_name_is_there() -> None:
    assert {name for name in oc.__all__ if getattr(oc, name) is not None} == set(oc.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        oc.nothing  # noqa: B018


def test_a_paper_carries_its_record(toy: Corpus) -> None:
    paper = toy["rose-garden"]

    assert paper == oc.Paper(
        key="rose-garden",
        title="Röses: A Garden in Four Beds",
        authors=("Müller, Änne", "O'Neill, Tom", "others"),
        affiliation="Garden School",
        year=2021,
        venue="Journal of Beds",
        arxiv_id="2101.00001",
        doi="10.5555/roses.1",
        urls=("https://example.org/roses", "https://example.org/roses/code"),
        tags={
            "style": "formal",
            "care": {"water": "daily", "prune": "weekly"},
            "tools": ("spade", "shears"),
            "size": "small",
        },
        summary="Lays out four beds of roses.",
        evidence=(
            oc.Evidence(
                tags=("care",),
                note="The gardener waters every day.",
                source="https://example.org/roses",
                level="visit",
                confidence="high",
            ),
        ),
        added="2021-05-01",
    )
    assert paper.first_author == "Müller, Änne"
    with pytest.raises(KeyError):
        toy["no-such-garden"]


def test_where_gives_another_corpus(toy: Corpus) -> None:
    small = toy.where("size=small").where("style!=NA")

    assert [paper.key for paper in small.papers] == ["rose-garden", "mixed-borders"]
    assert len(toy) == 4
    assert small.exclusions == toy.exclusions
    assert repr(small) == "<Corpus of 2 papers and 2 exclusions>"


def test_cross_counts_pairs(toy: Corpus) -> None:
    assert toy.cross("size", "water") == {
        "small": {"daily": 1, "weekly": 1, "": 1},
        "large": {"daily": 0, "weekly": 0, "": 1},
    }


def test_cross_keeps_terms_that_no_paper_has(toy: Corpus) -> None:
    crossed = toy.cross("size", "style")

    assert crossed == {
        "small": {"formal": 1, "cottage": 1, "meadow": 0, "gravel": 0, "NA": 1},
        "large": {"formal": 0, "cottage": 0, "meadow": 1, "gravel": 0, "NA": 0},
    }
    assert list(toy.cross("size", "style")["small"]) == ["formal", "cottage", "meadow", "gravel", "NA"]
    assert toy.counts("size", "style") == crossed
    assert toy.counts("style", "year")["gravel"] == {1999: 0, 2021: 0, 2023: 0}
    assert toy.cross("year", "size")[2023] == {"small": 1, "large": 1}
    assert "<th>2023</th>" in toy.cross("size", "year")._repr_html_()
    assert toy.where("size=large").cross("size", "style")["small"]["formal"] == 0


def test_gaps_rank_what_can_arise(toy: Corpus) -> None:
    gaps = toy.gaps("size", "style")

    assert [(gap.row, gap.column, gap.papers, round(gap.expected, 1)) for gap in gaps[:3]] == [
        ("small", "formal", 1, 1.0),
        ("small", "cottage", 1, 1.0),
        ("small", "gravel", 0, 0.0),
    ]
    assert gaps.coverage.impossible == (("small", "meadow"),)
    assert toy.gaps() == toy.gaps("style", "size")
    with pytest.raises(CommandUseError, match="title has no vocabulary"):
        toy.gaps("title", "size")


def test_claims_of_a_corpus_are_those_of_its_folder(real: Corpus, toy: Corpus) -> None:
    verdicts = real.claims()

    assert verdicts == oc.claims(str(ROOT))
    assert all(verdict.holds for verdict in verdicts)
    fails = {verdict.claim.id for verdict in real.where("rl=full").claims() if not verdict.holds}
    assert {"papers-total", "categories"} <= fails
    by_sources = oc.load(str(ROOT), reading="sources").claims()
    assert by_sources == oc.claims(str(ROOT), reading="sources") != verdicts
    with pytest.raises(CommandUseError, match="not read from a folder"):
        Corpus(real._pool).claims()
    assert toy.claims() == ()


def escaping(text: str) -> dict[str, str]:
    return {"title": f"<script>{text}</script> & Co"}


def test_a_notebook_shows_tables_with_every_text_escaped(toy: Corpus) -> None:
    first = toy.papers[0]._replace(**escaping("alert(1)"))
    corpus = Corpus(toy._pool._replace(papers=(first, *toy.papers[1:])))

    assert corpus._repr_html_() == (
        """\
<table>
<caption>Corpus of 4 papers and 2 exclusions</caption>
<thead><tr><th>key</th><th>year</th><th>title</th><th>style</th></tr></thead>
<tbody>
<tr><th>rose-garden</th><td style="text-align:right">2021</td><td style="text-align:left">&lt;script&gt;alert(1)\
&lt;/script&gt; &amp; Co</td><td style="text-align:left">formal</td></tr>
<tr><th>long-grass</th><td style="text-align:right">2023</td><td style="text-align:left">Long Grass and How to Keep It\
</td><td style="text-align:left">meadow</td></tr>
<tr><th>mixed-borders</th><td style="text-align:right">2023</td><td style="text-align:left">Borders without Lines\
</td><td style="text-align:left">cottage</td></tr>
<tr><th>terminal-yard</th><td style="text-align:right">1999</td><td style="text-align:left">The Yard</td>\
<td style="text-align:left">NA</td></tr>
</tbody>
</table>"""
    )


def test_a_notebook_shades_a_cross_tabulation_by_its_counts(toy: Corpus, real: Corpus) -> None:
    shown = toy.cross("size", "style")._repr_html_()

    assert shown.count("background:#dcebfa;color:#1f2328") == 3, "NA is never shaded"
    assert 'right;background:#0b4f96;color:#ffffff">9</td>' in real.cross("reward_family", "credit_unit")._repr_html_()
    assert shown.splitlines()[-3] == (
        '<tr><th>sum</th><td style="text-align:right">1</td><td style="text-align:right">1</td>'
        '<td style="text-align:right">1</td><td style="text-align:right">0</td><td style="text-align:right">1</td>'
        '<td style="text-align:right">4</td></tr>'
    )


@given(st.text(alphabet="<>&\"'aé\n", max_size=20))
def test_no_text_becomes_markup(text: str) -> None:
    from xml.etree import ElementTree

    shown = notebook_table(text, (text,), [(text, text)], note=text)
    parsed = ElementTree.fromstring(f"<div>{shown}</div>")

    assert "".join(parsed.itertext()).replace("\n", "") == (text * (5 if text else 0)).replace("\n", "")


def test_gaps_and_claims_are_tables_of_a_notebook(real: Corpus) -> None:
    gaps, verdicts = real.gaps()._repr_html_(), real.claims()._repr_html_()

    assert '<th>orchestration</th><td style="text-align:left">agent</td>' in gaps
    assert gaps.endswith("<p>51 more</p>")
    assert verdicts.count("<tr>") == 33
    assert '<th>no-tool-reward</th><td style="text-align:left">holds</td>' in verdicts


def test_find_knows_ids_and_addresses(toy: Corpus) -> None:
    def names(text: str) -> list[str]:
        return [getattr(record, "key", None) or record.id for record in toy.find(text)]

    assert names("arXiv:2101.00001v2") == ["rose-garden"]
    assert names("https://doi.org/10.5555/ROSES.1") == ["rose-garden"]
    assert names("https://example.org/roses/code/") == ["rose-garden"]
    assert names("2001.00009") == ["E001"]
    assert names("E003") == ["E003"]
    assert names("nothing") == []


def test_to_pandas_has_typed_columns(toy: Corpus) -> None:
    import pandas as pd

    frame = toy.to_pandas()

    assert frame.index.tolist() == ["rose-garden", "long-grass", "mixed-borders", "terminal-yard"]
    assert list(frame["style"].cat.categories) == ["formal", "cottage", "meadow", "gravel", "NA"]
    assert frame["style"].tolist() == ["formal", "meadow", "cottage", "NA"]
    assert frame.loc["rose-garden", "water"] == "daily"
    assert pd.isna(frame.loc["long-grass", "water"])
    assert frame.loc["rose-garden", "tools"] == ("spade", "shears")
    assert frame["tools"].isna().tolist() == [False, True, False, False]
    assert frame["year"].dtype.kind == "i"
    assert frame["added"].max() == pd.Timestamp("2023-06-07")
    assert pd.crosstab(frame["style"], frame["size"], dropna=False).loc["gravel"].sum() == 0


def test_every_name_of_a_filter_is_a_column_or_the_index(toy: Corpus) -> None:
    frame = toy.to_pandas()

    assert {*frame.columns, frame.index.name} == set(paper_attributes(toy.taxonomy, contested=True)) | {"first_author"}
    assert frame["published"].isna().all()
    assert frame["care"].tolist()[:2] == [("daily", "weekly"), ()]
    assert frame["level"].tolist()[0] == "visit"
    real = load(str(ROOT)).to_pandas()
    assert (str(real["published"].dtype), int(real["published"].sum())) == ("boolean", 84)
    assert real[real.published & (real.level == "secondary")].index.name == "key"


def test_to_pandas_of_nothing_keeps_its_columns(toy: Corpus) -> None:
    empty = toy.where("year=1900").to_pandas()

    assert len(empty) == 0
    assert list(empty.columns) == list(toy.to_pandas().columns)


def broken(tmp_path: Path, old: str, new: str) -> str:
    shutil.copytree(TOY, tmp_path / "corpus")
    papers = tmp_path / "corpus" / "data" / "papers.yaml"
    papers.write_text(papers.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    return str(tmp_path / "corpus")


def test_a_corpus_with_errors_is_refused_with_all_of_them(tmp_path: Path) -> None:
    root = broken(tmp_path, "size: small", "size: smal")

    with pytest.raises(InvalidCorpusError) as raised:
        oc.load(root)

    assert str(raised.value).count("V102 unknown size 'smal' (did you mean 'small'? allowed: small, large)") == 3
    assert [finding.code for finding in oc.validate(root)] == ["V102"] * 3


def test_a_malformed_corpus_is_refused_as_such(tmp_path: Path) -> None:
    root = broken(tmp_path, "style: formal", "style: [formal")

    with pytest.raises(MalformedCorpusError, match="Y104"):
        oc.load(root)


def test_a_taxonomy_may_bring_its_own_facets_of_evidence(tmp_path: Path) -> None:
    root = broken(tmp_path, "      confidence: high\n", "      confidence: high\n      mood: calm\n")
    taxonomy = Path(root) / "data" / "taxonomy.yaml"
    text = taxonomy.read_text(encoding="utf-8")
    facet = """\
  - field: mood
    label: Mood
    kind: single
    role: facet
    required: false
    definition: How it felt.
    terms:
      - {id: calm, label: Calm, definition: Calm.}
      - {id: wild, label: Wild, definition: Wild.}
crosstabs:"""
    taxonomy.write_text(text.replace("crosstabs:", facet, 1), encoding="utf-8")

    corpus = oc.load(root)

    assert corpus["rose-garden"].evidence[0].more == {"mood": "calm"}
    assert corpus.counts("mood") == {"calm": 1, "wild": 0, "": 3}
    assert [paper.key for paper in corpus.where("mood=calm").papers] == ["rose-garden"]


def test_a_folder_without_a_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match="cannot read"):
        oc.load(str(tmp_path))
