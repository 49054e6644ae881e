"""Figures: the data's own numbers, fit for everybody to read, the same bytes everywhere, stale when a tag changes."""

import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orchtrace_corpus as oc
from orchtrace_corpus.base.text.table import markdown_text
from orchtrace_corpus.corpus.analysis.attributes import paper_attributes
from orchtrace_corpus.corpus.analysis.statistics import summarise
from orchtrace_corpus.corpus.api import Corpus
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Pool
from orchtrace_corpus.corpus.model.scale import Group, Observation, Support, parse_amount
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Role, Sketch, Taxonomy, Term, parse_sketch
from orchtrace_corpus.corpus.render.figures.pictures import draw
from orchtrace_corpus.corpus.render.figures.plan import (
    FigureKind,
    Source,
    caption,
    contested_values,
    figures_of,
    select_figures,
    value_label,
)
from tests.base.test_drawing import HOSTILE
from tests.conftest import ROOT, TOY, run_corpus
from tests.corpus.files import edit
from tests.corpus.processes import loaded
from tests.effort import mostly_slow, tries
from tests.svg import NAMESPACE, backgrounds, collisions, colors, contrast, labels, parse, rows

TOY_FIGURES = ["style-by-size", "style", "care", "tools", "size", "papers-by-year", "screening-flow"]


def observation(system: str, value: str, group: Group = Group.ACADEMIC, **more: object) -> Observation:
    known = {"quantity": "beds", "unit": "beds", "evidence": Support.PAPER, "sources": ("https://e.org",)}
    amount = None if value == "unknown" else parse_amount(value)
    return Observation(system=system, group=group, value=amount, **{**known, "verified": False, **more})  # type: ignore[arg-type]


SCALE = (
    observation("Big Garden", "<=300", Group.DEPLOYMENT),
    observation("Other Garden", "unknown", Group.DEPLOYMENT),
    observation("Little Garden", "2", verified=True),
    observation("Changing Garden", "2-3"),
)


def source_of(pool: Pool, contested: dict[str, dict[str, int]] | None = None) -> Source:
    return Source(pool, summarise(pool), SCALE, contested or {})


def drawn(source: Source) -> dict[str, str]:
    """Every figure by its name."""
    return {figure.name: draw(figure, source, caption(figure, source)) for figure in figures_of(source)}


@pytest.fixture(scope="module")
def toy_source(toy: Corpus) -> Source:
    return source_of(Pool(toy.taxonomy, toy.papers, toy.exclusions))


@pytest.fixture(scope="module")
def real_source(real: Corpus) -> Source:
    return source_of(
        Pool(real.taxonomy, real.papers, real.exclusions),
        {"stop": {"implicit": 2}, "credit_unit": {"role": 1, "agent": 2}},
    )


@pytest.fixture
def root(root: Path) -> Path:
    """Build the toy corpus with a README that shows two figures."""
    region = "figures style-by-size care"
    (root / "README.md").write_text(f"# T\n\n<!-- corpus:begin {region} -->\n<!-- corpus:end {region} -->\n", "utf-8")
    assert run_corpus("--root", str(root), "check", "form", "--fix").code == 0
    assert run_corpus("--root", str(root), "build").code == 0
    return root


def test_a_small_figure_is_these_bytes(toy_source: Source) -> None:
    svg = drawn(toy_source)["size"]

    assert re.sub(r"<style>.*</style>", "<style/>", svg, flags=re.DOTALL) == (
        '<svg xmlns="http://www.w3.org/2000/svg" width="520" height="164" viewBox="0 0 520 164" role="img" '
        'aria-labelledby="size-title size-desc" font-family="system-ui,-apple-system,\'Segoe UI\',Roboto,'
        "'Noto Sans','Helvetica Neue',Arial,sans-serif\" font-size=\"14\">\n"
        '<title id="size-title">Size</title>\n'
        '<desc id="size-desc">4 papers by Size: Small 3; Large 1.</desc>\n'
        "<style/>\n"
        '<rect width="520" height="164" rx="6" class="f-page"/>\n'
        '<text x="16" y="32" font-size="16" font-weight="600" class="f-ink">Size</text>\n'
        '<text x="16" y="53" font-size="13" class="f-muted">How large it is.</text>\n'
        "<g>\n"
        '<text x="16" y="101" class="f-ink">Small</text>\n'
        '<rect x="74" y="88" width="403" height="16" class="f-series0"/>\n'
        '<text x="485" y="101" font-weight="600" class="f-ink">3</text>\n'
        "</g>\n"
        "<g>\n"
        '<text x="16" y="133" class="f-ink">Large</text>\n'
        '<rect x="74" y="120" width="134" height="16" class="f-series0"/>\n'
        '<text x="216" y="133" font-weight="600" class="f-ink">1</text>\n'
        "</g>\n"
        '<line x1="74" y1="80" x2="74" y2="144" class="s-rule"/>\n'
        "</svg>\n"
    )


def test_taxonomy_and_records_decide_which_figures_there_are(toy_source: Source, real_source: Source) -> None:
    without_scale = toy_source._replace(scale=())
    taxonomy = toy_source.pool.taxonomy._replace(crosstabs=())
    assert [figure.name for figure in figures_of(without_scale)] == TOY_FIGURES
    assert [figure.name for figure in figures_of(real_source)][:4] == [
        "reward_family-by-credit_unit",
        "reward_family",
        "credit_unit",
        "sub_decisions",
    ]
    assert figures_of(real_source)[-1].name == "scale-gap"
    assert figures_of(toy_source._replace(pool=toy_source.pool._replace(taxonomy=taxonomy)))[0].name == "style"


def test_no_program_knows_a_term(real: Corpus) -> None:
    terms = {term.id for facet in real.taxonomy.papers for term in facet.terms} - {"full", "none", "role", "tool"}
    code = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "orchtrace_corpus/corpus/render/figures").glob("*.py")
    )

    assert {term for term in terms if f'"{term}"' in code or f"'{term}'" in code} == set()


@pytest.mark.parametrize("corpus", ["toy", "real"])
def test_every_figure_is_fit_for_everybody(corpus: str, request: pytest.FixtureRequest) -> None:
    for name, svg in drawn(request.getfixturevalue(f"{corpus}_source")).items():
        check_figure(name, svg)


def check_figure(name: str, svg: str) -> None:
    """A figure is well-formed, speaks to screen readers, keeps its text apart and inside, and legible."""
    root = parse(svg)
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids)), name
    assert all(re.fullmatch(r"[a-z][a-z0-9_-]*", str(one)) for one in ids), name
    assert root.get("role") == "img"
    assert root.get("aria-labelledby", "").split() == [f"{name}-title", f"{name}-desc"]
    for tag in ("title", "desc"):
        assert [element.get("id") for element in root.iter(f"{NAMESPACE}{tag}")] == [f"{name}-{tag}"]
        assert (root.findtext(f"{NAMESPACE}{tag}") or "").strip(), name
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    assert root.get("viewBox") == f"0 0 {width:.0f} {height:.0f}"
    said = labels(root)
    for label in said:
        for x, y in label.corners:
            assert -0.5 <= x <= width + 0.5, (name, label)
            assert -0.5 <= y <= height + 0.5, (name, label)
    assert collisions(said) == [], name
    defined = set(re.findall(r"\.([fs]-[\w-]+)\{", svg))
    used = {part for element in root.iter() for part in element.get("class", "").split()}
    assert used <= defined, name
    for scheme in colors(root):
        for label, background in backgrounds(root):
            assert contrast(scheme[label.fill], scheme[background]) >= 4.5, (name, label, background)


def numbers(row: list[str]) -> list[int]:
    return [int(text.replace(",", "")) for text in row if text.replace(",", "").isdigit()]


@pytest.mark.parametrize("corpus", ["toy", "real"])
def test_the_heat_map_shows_the_cross_tabulation(corpus: str, request: pytest.FixtureRequest) -> None:
    source: Source = request.getfixturevalue(f"{corpus}_source")
    crosstab = source.summary.crosstabs[0]
    figure = figures_of(source)[0]

    shown = rows(parse(drawn(source)[figure.name]))

    heads, *body, totals = shown
    assert heads == [value_label(column, crosstab.columns.terms) for column in crosstab.column_values]
    by_row = source.counts(crosstab.rows.name).counts
    assert [numbers(row) for row in body] == [
        [*(crosstab.count_in(row, column) for column in crosstab.column_values), by_row[row]]
        for row in crosstab.row_values
    ]
    assert numbers(totals) == list(source.counts(crosstab.columns.name).counts.values())


@pytest.mark.parametrize("corpus", ["toy", "real"])
def test_bars_show_the_counts(corpus: str, request: pytest.FixtureRequest) -> None:
    source: Source = request.getfixturevalue(f"{corpus}_source")
    figures = drawn(source)

    for figure in figures_of(source):
        if figure.kind is FigureKind.TERMS:
            counts = source.counts(figure.field)
            shown = rows(parse(figures[figure.name]))
            assert [numbers(row)[0] for row in shown] == list(counts.counts.values()), figure.name
        if figure.kind is FigureKind.LEVELS:
            levels = source.levels(figure.field)
            _, *shown = rows(parse(figures[figure.name]))
            by_level = [list(levels.counts[term.id].values()) for term in levels.facet.terms]
            assert [numbers(row)[: len(levels.facet.levels)] for row in shown] == by_level


def test_years_and_sections_add_up(real_source: Source) -> None:
    section = real_source.pool.taxonomy.section_facet
    assert section is not None

    bars, heads, *body = rows(parse(drawn(real_source)["papers-by-year"]))

    years = {int(year): number for year, number in real_source.summary.years.counts.items()}
    last = max(years)
    assert numbers(bars)[1:] == [years.get(year, 0) for year in range(last - 6, last + 1)]
    assert sum(numbers(bars)) == len(real_source.pool.papers)
    assert heads[-7:] == [str(year) for year in range(last - 6, last + 1)]
    assert [numbers(row)[-1] for row in body] == list(real_source.counts(section.field).counts.values())
    assert [sum(column) for column in zip(*(numbers(row)[:-1] for row in body), strict=True)] == numbers(bars)


def test_a_short_span_of_years_has_a_column_each(toy_source: Source) -> None:
    pool = toy_source.pool._replace(papers=toy_source.pool.papers[:3])

    _, heads, *_ = rows(parse(drawn(source_of(pool))["papers-by-year"]))

    assert heads == ["2021", "2022", "2023"]


def test_the_flow_shows_what_is_recorded_and_says_what_is_not(real_source: Source) -> None:
    retained, excluded = len(real_source.pool.papers), len(real_source.pool.exclusions)
    stages = real_source.summary.exclusions[-1]

    shown = rows(parse(drawn(real_source)["screening-flow"]))

    assert shown == [
        ["Records identified", "not recorded"],
        ["Removed before", "screening", "not recorded"],
        ["Records audited", str(retained + excluded)],
        [
            *("Excluded", str(excluded)),
            *(
                part
                for value, n in stages.counts.items()
                for part in (value_label(value, stages.attribute.terms), str(n))
            ),
        ],
        ["Retained", str(retained)],
    ]


def test_a_promoted_exclusion_is_said_to_count_twice(toy_source: Source) -> None:
    promoted = toy_source.pool.exclusions[0]._replace(promoted_to="rose-garden")
    pool = toy_source.pool._replace(exclusions=(promoted, *toy_source.pool.exclusions[1:]))

    svg = drawn(source_of(pool))["screening-flow"]

    assert "Taken in later, and counted among the retained, too: 1 of" in svg


def test_the_scale_gap_shows_every_system_and_its_number(toy_source: Source) -> None:
    root = parse(drawn(toy_source)["scale-gap"])

    assert rows(root) == [
        ["Big Garden", "up to 300"],
        ["Other Garden", "unknown"],
        ["Little Garden", "2"],
        ["Changing Garden", "2 to 3"],
    ]
    assert [link.get("href") for link in root.iter(f"{NAMESPACE}a")] == ["https://e.org"] * 4
    text = [label.text for label in labels(root)]
    assert [tick for tick in ("1", "10", "100", "1k") if tick in text] == ["1", "10", "100"]  # it ends at 300
    assert "not verified training traces" in (root.findtext(f"{NAMESPACE}desc") or "")
    circles = [(float(circle.get("cx", 0)), circle.get("class")) for circle in root.iter(f"{NAMESPACE}circle")]
    two = circles[0][0]
    assert circles[0][1] == "f-series0 s-series0"  # verified
    assert [fill for _, fill in circles[1:]] == ["f-page s-series0"] * 2
    squares = [float(r.get("x", 0)) + 5 for r in root.iter(f"{NAMESPACE}rect") if "s-series1" in r.get("class", "")]
    decade = next(float(line.get("x1", 0)) for line in list(root.iter(f"{NAMESPACE}line"))[1:2])
    first = next(float(line.get("x1", 0)) for line in root.iter(f"{NAMESPACE}line"))
    assert squares == [pytest.approx(first + 2.477 * (decade - first), abs=1.5)]  # log10 of 300
    assert two == pytest.approx(first + 0.301 * (decade - first), abs=1)


def test_numbers_below_one_stretch_the_axis(toy_source: Source) -> None:
    scale = (observation("A", "0.02", Group.DEPLOYMENT), observation("B", "0"), observation("C", "<5000000"))
    svg = drawn(toy_source._replace(scale=scale))["scale-gap"]

    check_figure("scale-gap", svg)
    assert ["A", "0.02"] in rows(parse(svg))
    assert ["C", "under 5,000,000"] in rows(parse(svg))


def test_without_two_groups_there_is_nothing_to_compare(toy_source: Source) -> None:
    svg = drawn(toy_source._replace(scale=SCALE[:1]))["scale-gap"]

    check_figure("scale-gap", svg)
    assert "Nothing that could be compared." in svg


def test_contested_papers_are_hatched_and_counted(toy_source: Source) -> None:
    disputed = frozenset(
        {("mixed-borders", "water"), ("long-grass", "water"), ("rose-garden", "style"), ("gone", "style")}
    )
    contested = contested_values(toy_source.pool, disputed)
    figures = drawn(toy_source._replace(contested=contested))

    assert contested == {"water": {"weekly": 1, "none": 1}, "style": {"formal": 1}}
    assert rows(parse(figures["care"]))[1:] == [["C1 Watering", "1", "1", "2"], ["C2 Pruning", "0", "2", "0"]]
    assert rows(parse(figures["style"]))[0] == ["S1 Formal", "1", "sparse, 1 contested"]
    assert figures["style"].count('fill="url(#style-hatch)"') == 2  # the bar, and what the legend says of it
    assert "contested: another reading is on record" in figures["care"]
    assert "C1 Watering 1 Daily, 1 Weekly; 2 of these 2 are contested. C2 " in figures["care"]
    assert "hatch" not in figures["size"]


def test_empty_and_sparse_rungs_are_marked_on_axes_only(toy_source: Source) -> None:
    figures = drawn(toy_source)

    assert rows(parse(figures["style"])) == [
        ["S1 Formal", "1", "sparse"],
        ["S2 Cottage", "1", "sparse"],
        ["S2 Meadow", "1", "sparse"],
        ["S3 Gravel", "0", "empty"],
        ["Not applicable", "1"],
    ]
    assert rows(parse(figures["tools"]))[0] == ["Spade", "1"]


def test_captions_need_no_unused_terms(toy_source: Source) -> None:
    lean = toy_source._replace(summary=summarise(toy_source.pool))

    for figure in figures_of(toy_source):
        assert caption(figure, lean) == caption(figure, toy_source)


# Other corpora


def corpus_of(words: list[str], counts: list[int], *, levels: int, columns: int) -> Pool:
    """A corpus whose every label is one of the words."""
    chosen_word = itertools.cycle(words)

    def terms(prefix: str, number: int) -> tuple[Term, ...]:
        return tuple(Term(f"{prefix}{n}", next(chosen_word), next(chosen_word), "") for n in range(number))

    def facet(field: str, kind: Kind, role: Role, number: int, **more: object) -> Facet:
        label, definition = next(chosen_word), next(chosen_word)
        return Facet(field, label, kind, role, definition, terms(field, number), **more)  # type: ignore[arg-type]

    facets = (
        facet("row", Kind.SINGLE, Role.AXIS, len(counts), allows_na=True),
        facet("column", Kind.SINGLE, Role.AXIS, columns),
        facet("deep", Kind.LEVELS, Role.AXIS, 3, levels=terms("level", levels)),
        facet("section", Kind.SINGLE, Role.FACET, 2),
    )
    stages = (facet("stage", Kind.SINGLE, Role.FACET, 3),)
    papers = tuple(
        Paper(
            key=f"p-{row}-{number}",
            year=2010 + (row + number) % 14,
            tags={
                "row": f"row{row}",
                "column": f"column{number % columns}",
                "deep": {"deep0": f"level{number % levels}"},
                "section": f"section{number % 2}",
            },
        )
        for row, count in enumerate(counts)
        for number in range(count)
    )
    exclusions = tuple(Exclusion(id=f"E{n:03}", tags={"stage": f"stage{n % 3}"}) for n in range(5))
    taxonomy = Taxonomy("Words", "", facets, stages, (), (("row", "column"),))
    return Pool(taxonomy, papers, exclusions)


@pytest.mark.parametrize("word", HOSTILE)
def test_no_label_breaks_out_of_its_place(word: str) -> None:
    pool = corpus_of([word], [3, 0, 1200], levels=3, columns=4)
    scale = tuple(o._replace(system=f"{word} {n}", unit=word, quantity=word) for n, o in enumerate(SCALE))

    for name, svg in drawn(source_of(pool)._replace(scale=scale)).items():
        check_figure(name, svg)
        assert {element.tag.removeprefix(NAMESPACE) for element in parse(svg).iter()} <= {
            *("svg", "title", "desc", "style", "defs", "pattern", "path", "rect", "line", "circle", "text", "g", "a")
        }


LETTERS = st.characters(exclude_categories=["Cc", "Cn", "Cs"])
"""What a label can hold: the reader of the data refuses control characters."""


@settings(deadline=None, max_examples=tries(40, 12))
@given(
    st.lists(st.text(LETTERS, min_size=1, max_size=60).filter(str.strip), min_size=1, max_size=7),
    st.lists(st.sampled_from([0, 1, 2, 7, 40]), min_size=1, max_size=12),
    st.integers(1, 8),
    st.integers(1, 15),
)
def test_any_corpus_gets_figures_fit_to_read(words: list[str], counts: list[int], levels: int, columns: int) -> None:
    for name, svg in drawn(source_of(corpus_of(words, counts, levels=levels, columns=columns))).items():
        check_figure(name, svg)


def test_a_corpus_without_records_has_figures_too(toy: Corpus) -> None:
    for name, svg in drawn(source_of(Pool(toy.taxonomy, (), ()))._replace(scale=())).items():
        check_figure(name, svg)


def test_a_taxonomy_of_one_facet_is_enough() -> None:
    facet = Facet("kind", "Kind", Kind.MANY, Role.FACET, "What it is.", (Term("a", "A", "An a."),), allows_na=True)
    pool = Pool(Taxonomy("Small", "", (facet,), (), (), ()), (Paper(key="p", year=2020, tags={"kind": ("a",)}),), ())

    figures = drawn(source_of(pool)._replace(scale=()))

    assert list(figures) == ["kind", "papers-by-year"]
    for name, svg in figures.items():
        check_figure(name, svg)


def test_a_sketch_is_rows_of_boxes_with_links() -> None:
    sketch = parse_sketch("*lead / worker, worker? : 1>2, 1-3")

    assert sketch == Sketch((("*lead",), ("worker", "worker?")), ((1, 2, True), (1, 3, False)))
    term = Term("a", "A", "An a.", sketch=sketch)
    facet = Facet("kind", "Kind", Kind.SINGLE, Role.FACET, "What it is.", (term, Term("b", "B", "A b.")))
    pool = Pool(Taxonomy("Small", "", (facet,), (), (), ()), (), ())
    svg = drawn(source_of(pool)._replace(scale=()))["kind-sketches"]
    root = parse(svg)

    check_figure("kind-sketches", svg)
    assert rows(root) == [["A", "lead", "worker", "worker?", "An a."]]
    assert root.findtext(f"{NAMESPACE}desc") == "A: An a."
    assert len(list(root.iter(f"{NAMESPACE}line"))) == 2
    assert len(list(root.iter(f"{NAMESPACE}path"))) == 1


def test_every_topology_unit_and_decision_has_a_sketch(real_source: Source) -> None:
    figures = drawn(real_source)
    for facet in (facet for facet in real_source.pool.taxonomy.papers if f"{facet.field}-sketches" in figures):
        name = f"{facet.field}-sketches"
        check_figure(name, figures[name])
        panels = rows(parse(figures[name]))
        assert len(panels) == len(facet.terms), facet.field
        assert not any("\u2026" in text for panel in panels for text in panel)


# The files


@pytest.mark.parametrize("corpus", mostly_slow([TOY, ROOT], [TOY]), ids=["toy", "real"])
def test_another_zone_locale_and_hash_seed_give_the_same_bytes(corpus: Path, tmp_path: Path) -> None:
    results = []
    for number, (zone, locale, seed) in enumerate((("UTC", "C.UTF-8", "0"), ("Asia/Kathmandu", "C", "4321"))):
        root = tmp_path / str(number)
        shutil.copytree(corpus / "data", root / "data")
        variables = {**os.environ, "TZ": zone, "LC_ALL": locale, "PYTHONHASHSEED": seed, "PYTHONUTF8": "0"}
        command = [sys.executable, "-m", "orchtrace_corpus", "figures"]
        subprocess.run(command, cwd=root, env=variables, check=True, capture_output=True)
        files = sorted((root / "docs").rglob("*.*"))
        results.append({str(path.relative_to(root)): path.read_bytes() for path in files})

    assert len(results[0]) > 7
    assert results[0] == results[1]


def test_the_committed_figures_are_those_of_the_data() -> None:
    result = run_corpus("--root", str(ROOT), "figures", "--check")

    assert (result.code, result.stdout, result.stderr) == (0, "", "")


def test_one_changed_tag_makes_its_figures_stale_and_names_the_mend(root: Path) -> None:
    edit(root, "style: cottage", "style: gravel")

    checked = run_corpus("--root", str(root), "figures", "--check")

    assert checked.code == 1
    assert re.findall(r"corpus: (\S+) is not up to date; to fix: (.+)", checked.stderr) == [
        ("docs/figures.md", "corpus figures"),
        ("docs/figures/style-by-size.svg", "corpus figures"),
        ("docs/figures/style.svg", "corpus figures"),
    ]
    assert '+<text x="' in checked.stdout
    whole = run_corpus("--root", str(root), "check")
    assert (whole.code, "docs/figures/style.svg" in whole.stdout) == (1, True)
    assert run_corpus("--root", str(root), "build").code == 0
    assert run_corpus("--root", str(root), "check").code == 0


def test_one_figure_can_be_drawn_alone(root: Path) -> None:
    edit(root, "style: cottage", "style: gravel")

    stale = run_corpus("--root", str(root), "figures", "style", "--check")
    fresh = run_corpus("--root", str(root), "figures", "size", "--check")
    written = run_corpus("--root", str(root), "figures", "style")

    assert (stale.code, fresh.code, written.code) == (1, 0, 0)
    assert stale.stderr == "corpus: docs/figures/style.svg is not up to date; to fix: corpus figures style\n"
    assert written.stderr == "wrote docs/figures/style.svg\n"


def test_an_edit_by_hand_is_found(root: Path) -> None:
    edit(root, ">Small<", ">Tiny<", "docs/figures/size.svg")

    assert run_corpus("--root", str(root), "figures", "--check").code == 1
    assert run_corpus("--root", str(root), "figures").stderr == "wrote docs/figures/size.svg\n"


def test_an_unknown_figure_is_told_the_nearest(root: Path) -> None:
    result = run_corpus("--root", str(root), "figures", "styl")

    assert (result.code, result.stdout) == (2, "")
    assert "there is no figure 'styl' (did you mean 'style'? allowed: style-by-size, style, care," in result.stderr


def test_figures_are_never_written_to_the_bundled_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert run_corpus("figures").code == 3


def test_the_readme_shows_figures_with_their_numbers_in_words(root: Path, toy_source: Source) -> None:
    text = (root / "README.md").read_text(encoding="utf-8")

    for name in ("style-by-size", "care"):
        [figure] = select_figures([name], figures_of(toy_source))
        said = caption(figure, toy_source)
        assert f"![{markdown_text(f'{said.title}. {said.text}')}](docs/figures/{name}.svg)\n" in text
    assert "4 papers by Style and Size: 4 of 7 cells are empty, 3 hold 1 or 2 papers." in text


def test_a_readme_that_asks_for_no_such_figure_is_told_so(root: Path) -> None:
    path = root / "README.md"
    path.write_text(path.read_text(encoding="utf-8").replace("style-by-size", "style-by-colour"), encoding="utf-8")

    result = run_corpus("--root", str(root), "build", "readme")

    assert result.code == 3
    assert "README.md:3: region 'figures style-by-colour care': there is no figure 'style-by-colour'" in result.stderr


def test_the_page_shows_every_figure(root: Path) -> None:
    text = (root / "docs" / "figures.md").read_text(encoding="utf-8")

    assert re.findall(r"\]\((.+?)\)", text) == [f"figures/{name}.svg" for name in TOY_FIGURES]
    assert all((root / "docs" / name).exists() for name in re.findall(r"\]\((.+?)\)", text))


@pytest.mark.parametrize("words", ["stats", "list", "check data", "build readme --check"])
def test_only_who_draws_loads_what_draws(words: str) -> None:
    assert not {"orchtrace_corpus.base.text.drawing", "pandas", "rich"} & loaded()[words]


def test_the_figure_of_an_axis_that_was_renamed_is_removed(tmp_path: Path) -> None:
    root = tmp_path / "corpus"
    shutil.copytree(TOY, root)
    run_corpus("--root", str(root), "figures")
    for path in (root / "data").iterdir():
        path.write_text(path.read_text(encoding="utf-8").replace("tools", "gear"), encoding="utf-8")
    folder = root / "docs" / "figures"
    (folder / "own.svg").write_text("<svg/>", encoding="utf-8")

    checked, written = (run_corpus("--root", str(root), "figures", *words) for words in (("--check",), ()))

    assert checked.code == 1
    assert "corpus: docs/figures/tools.svg is no longer made; to fix: corpus figures\n" in checked.stderr
    assert "removed docs/figures/tools.svg\n" in written.stderr
    assert ((folder / "tools.svg").exists(), (folder / "own.svg").exists()) == (False, True)
    assert run_corpus("--root", str(root), "figures", "--check") == (0, "", "")


# Fields of one's own choice


def test_years_of_a_drawn_field_have_no_holes(root: Path) -> None:
    drawn = run_corpus("--root", str(root), "figures", "--by", "year")

    years = sorted({paper.year for paper in oc.load(str(root)).papers})
    words = re.findall(r">([^<>\n]+)</text>", drawn.stdout)
    assert (drawn.code, drawn.stderr) == (0, "4 papers\n")
    assert {str(year) for year in range(years[-1] - 6, years[-1] + 1)} <= set(words)


def test_any_two_fields_are_drawn_as_svg_and_as_pdf(root: Path, tmp_path: Path) -> None:
    names = [
        name
        for name, attribute in paper_attributes(oc.load(str(root)).taxonomy, contested=True).items()
        if not attribute.has_several
    ]
    for first, second in itertools.pairwise(names):
        svg, pdf = (tmp_path / f"x.{ending}" for ending in ("svg", "pdf"))
        for file in (svg, pdf):
            result = run_corpus("--root", str(root), "figures", "--cross", first, second, "-o", str(file))
            assert (result.code, result.stdout) == (0, ""), (first, second, result.stderr)
        ElementTree.fromstring(svg.read_text(encoding="utf-8"))
        assert pdf.read_bytes().startswith(b"%PDF-1.4\n")


def test_terms_of_one_label_are_counted_together(root: Path) -> None:
    taxonomy = root / "data" / "taxonomy.yaml"
    taxonomy.write_text(taxonomy.read_text(encoding="utf-8").replace("Meadow", "Cottage"), encoding="utf-8")

    result = run_corpus("--root", str(root), "figures", "--cross", "style", "size")

    words = re.findall(r">([^<>\n]+)</text>", result.stdout)
    at = words.index("S2 Cottage")
    assert (result.code, words[at : at + 4]) == (0, ["S2 Cottage", "1", "1", "2"])


def test_the_rarer_of_many_texts_are_counted_together(tmp_path: Path) -> None:
    result = run_corpus("--root", str(ROOT), "figures", "--by", "venue", "--where", "published=yes")

    words = re.findall(r">([^<>\n]+)</text>", result.stdout)
    assert (words[:2], words[-2:]) == (["Venue", "84 papers: published=yes"], ["6 others", "6"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--by", "style", "--cross", "style", "size"], "--by and --cross contradict each other"),
        (["style", "--by", "style"], "--by and --cross draw one figure"),
        (["-o", "x.svg"], "--where and -o need --by FIELD or --cross A B"),
        (["--by", "style", "-o", "x.png"], "a figure is SVG or PDF, not 'x.png'"),
        (["--by", "stile"], "unknown field 'stile'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(root: Path, words: list[str], message: str) -> None:
    result = run_corpus("--root", str(root), "figures", *words)

    assert (result.code, message in result.stderr) == (2, True), result.stderr


def test_slanted_heads_of_columns_show_whole_labels() -> None:
    picture = run_corpus("--root", str(ROOT), "figures", "--cross", "category", "reward_family").stdout

    assert ">R1 Shared outcome</text>" in picture
    assert "…" not in picture
