"""Exports read by the programs that they are made for: BibTeX and LaTeX, biber, pandoc, bibutils.

Run with `-m external`; see tests/test_external.py.
"""

import json
import re
import subprocess
import unicodedata
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.corpus.api import Corpus
from orchtrace_corpus.corpus.formats.citation import Name, name_of
from orchtrace_corpus.corpus.formats.registry import FORMATS
from orchtrace_corpus.corpus.model.records import Paper
from tests.cli.test_external import program
from tests.conftest import ROOT, run_corpus

pytestmark = pytest.mark.external

HOSTILE = (
    r"\input{/etc/passwd} 50% off & #1_a ^b ~c {d}",
    r"$x$ \end{document} } { \\ %",
    "-- --- '' `` ?` <a|b> \"c\" @x, = #",
    "Müller Çelik Łoś ß æ Ø å ı ŝ ǎ “q” – … ² x₁ τ Ω ≤ ∞ → §",
)
DOCUMENT = r"""\documentclass{article}
\begin{document}
\nocite{*}
\bibliographystyle{STYLE}
\bibliography{papers}
\end{document}
"""
MODS = {"m": "http://www.loc.gov/mods/v3"}


def hostile(papers: tuple[Paper, ...]) -> list[Paper]:
    """Papers whose title, authors and venue LaTeX would act on."""
    return [
        papers[0]._replace(
            key=f"hostile-{number}",
            title=text,
            authors=(f"{text.replace(',', '')}, Tom", text),
            venue=f"Journal {text}",
        )
        for number, text in enumerate(HOSTILE)
    ]


def write(name: str, profile: str, papers: list[Paper], corpus: Corpus, file: Path) -> None:
    text = FORMATS[name].write(papers, corpus.taxonomy, profile, {"2505.19591": "cs.MA"})
    file.write_text(str(text), encoding="utf-8")


def run(folder: Path, *command: str) -> str:
    """Run a program in a folder, and return what it says and writes."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def folded(text: str) -> str:
    """What stays of a text when a citation program has set it: no case, typographic marks, elevation or initials' dots."""
    text = unicodedata.normalize("NFKC", text).replace("\u2019", "'").replace("\\tau", "τ")
    return " ".join(re.sub(r"</?\w+[^>]*>|[.^]", "", text).casefold().split())


def authors(paper: Paper) -> list[str]:
    return [folded(spoken(name_of(author))) for author in paper.authors]


def spoken(name: Name) -> str:
    return " ".join(part for part in (name.given, name.family, name.suffix) if part)


def csl_authors(item: dict[str, Any]) -> list[str]:
    parts = ("literal", "given", "dropping-particle", "non-dropping-particle", "family", "suffix")
    return [folded(" ".join(name[part] for part in parts if part in name)) for name in item["author"]]


@pytest.mark.parametrize("style", ["plain", "alpha", "abbrv", "unsrt"])
def test_bibtex_and_latex_set_the_export_without_a_warning(style: str, tmp_path: Path, real: Corpus) -> None:
    latex = program("pdflatex", "PDFLATEX")
    bibtex = program("bibtex", "BIBTEX")
    write("bibtex", "bibtex", [*real.papers, *hostile(real.papers)], real, tmp_path / "papers.bib")
    (tmp_path / "test.tex").write_text(DOCUMENT.replace("STYLE", style), encoding="utf-8")

    run(tmp_path, latex, "-interaction=nonstopmode", "-halt-on-error", "test")
    said = run(tmp_path, bibtex, "test")
    for _ in range(2):
        run(tmp_path, latex, "-interaction=nonstopmode", "-halt-on-error", "test")

    log = (tmp_path / "test.log").read_text(encoding="utf-8", errors="replace")
    assert "Warning" not in said
    assert re.findall(r"Warning.*|Missing character.*|^!.*", log, re.M) == []
    assert (tmp_path / "test.bbl").read_text(encoding="utf-8").count(r"\bibitem") == len(real.papers) + len(HOSTILE)
    assert (tmp_path / "test.pdf").stat().st_size > 0


TABLES = (
    ("list", "--where", "credit_unit=message,orchestrator"),
    ("list", "--columns", "key,authors,affiliation,title,venue,urls", "--where", "rl=full"),
    ("stats", "topology", "year", "--where", "year>=2024"),
    ("stats", "--where", "published=yes"),
    ("gaps",),
)


def test_latex_sets_exported_tables_and_a_bibliography_without_a_warning(tmp_path: Path, real: Corpus) -> None:
    latex, bibtex = program("pdflatex", "PDFLATEX"), program("bibtex", "BIBTEX")
    write("bibtex", "bibtex", list(real.papers), real, tmp_path / "papers.bib")
    inputs = ""
    for number, words in enumerate(TABLES):
        result = run_corpus("--root", str(ROOT), *words, "--format", "latex")
        (tmp_path / f"table{number}.tex").write_text(result.stdout, encoding="utf-8")
        inputs += rf"\input{{table{number}}}" + "\n"
    packages = r"\usepackage{booktabs,longtable,array,graphicx}"
    document = DOCUMENT.replace("STYLE", "plain").replace(r"\begin{document}", rf"{packages}\begin{{document}}")
    (tmp_path / "test.tex").write_text(document.replace(r"\nocite{*}", rf"{inputs}\nocite{{*}}"), encoding="utf-8")

    run(tmp_path, latex, "-interaction=nonstopmode", "-halt-on-error", "test")
    said = run(tmp_path, bibtex, "test")
    for _ in range(3):  # longtable measures its columns
        run(tmp_path, latex, "-interaction=nonstopmode", "-halt-on-error", "test")

    log = (tmp_path / "test.log").read_text(encoding="utf-8", errors="replace")
    assert "Warning" not in said
    assert re.findall(r"Warning.*|Overfull.*|Missing character.*|^!.*", log, re.M) == []


@pytest.mark.parametrize("profile", ["bibtex", "biblatex", "tagged"])
def test_biber_finds_nothing_wrong_with_the_export(profile: str, tmp_path: Path, real: Corpus) -> None:
    write("bibtex", profile, [*real.papers, *hostile(real.papers)], real, tmp_path / "papers.bib")

    said = run(tmp_path, program("biber", "BIBER"), "--tool", "--validate-datamodel", "papers.bib")

    assert re.findall(r"^(?:WARN|ERROR).*", said, re.M) == []


@pytest.mark.parametrize(
    ("name", "profile", "reader"),
    [("bibtex", "bibtex", "bibtex"), ("bibtex", "biblatex", "biblatex"), ("csl", "citation", "csljson")],
)
def test_pandoc_reads_the_same_titles_and_authors(
    name: str, profile: str, reader: str, tmp_path: Path, real: Corpus
) -> None:
    write(name, profile, list(real.papers), real, tmp_path / "papers")

    items = json.loads(run(tmp_path, program("pandoc", "PANDOC"), "-f", reader, "-t", "csljson", "papers"))

    read = {item["id"]: item for item in items}
    assert list(read) == [paper.key for paper in real.papers]
    assert {key: folded(item["title"]) for key, item in read.items()} == {p.key: folded(p.title) for p in real.papers}
    assert {key: csl_authors(item) for key, item in read.items()} == {p.key: authors(p) for p in real.papers}
    assert {key: item["issued"]["date-parts"][0][0] for key, item in read.items()} == {
        p.key: p.cited_year for p in real.papers
    }


def test_bibutils_reads_the_same_titles_and_authors_from_ris(tmp_path: Path, real: Corpus) -> None:
    write("ris", "", list(real.papers), real, tmp_path / "papers.ris")

    root = ElementTree.fromstring(run(tmp_path, program("ris2xml", "RIS2XML"), "papers.ris").lstrip("\ufeff"))

    for paper, record in zip(real.papers, root.findall("m:mods", MODS), strict=True):
        title = ": ".join(part.text or "" for part in (record.find("m:titleInfo", MODS) or ()))
        names = [
            " ".join(part.text or "" for part in name.findall("m:namePart", MODS))
            for name in record.findall("m:name", MODS)
        ]
        assert (record.get("ID"), folded(title)) == (paper.key, folded(paper.title))
        assert list(map(folded, names)) == authors(paper)


def test_pandoc_reads_ris_from_version_3_on(tmp_path: Path, real: Corpus) -> None:
    pandoc = program("pandoc", "PANDOC")
    if "ris" not in run(tmp_path, pandoc, "--list-input-formats").split():
        assert run(tmp_path, pandoc, "--version").startswith(("pandoc 1", "pandoc 2"))
        return
    write("ris", "", list(real.papers), real, tmp_path / "papers.ris")

    items = json.loads(run(tmp_path, pandoc, "-f", "ris", "-t", "csljson", "papers.ris"))

    assert [folded(item["title"]) for item in items] == [folded(paper.title) for paper in real.papers]
