"""Pictures are text: the same bytes for the same calls, whatever stands in a label, and readable on every screen."""

import itertools
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.base.text.drawing import (
    LINES,
    PALETTE,
    SERIES,
    SIZE,
    SMALL,
    Drawing,
    advance,
    escape,
    text_width,
    wrap,
)
from tests.svg import contrast, labels, linear, parse

# How far DejaVu Sans, the widest of the fonts in common use, moves the pen: in 2048ths of the size, from U+0020 on.
DEJAVU = (
    (651, 821, 942, 1716, 1303, 1946, 1597, 563, 799, 799, 1024, 1716, 651, 739, 651, 690)
    + (1303,) * 10
    + (690, 690, 1716, 1716, 1716, 1087, 2048)
    + (1401, 1405, 1430, 1577, 1294, 1178, 1587, 1540, 604, 604, 1343, 1141, 1767, 1532, 1612, 1235, 1612, 1423, 1300)
    + (1251, 1499, 1401, 2025, 1403, 1251, 1403)
    + (799, 690, 799, 1716, 1024, 1024)
    + (1255, 1300, 1126, 1300, 1260, 721, 1300, 1298, 569, 569, 1186, 569, 1995, 1298, 1253, 1300, 1300, 842, 1067)
    + (803, 1298, 1212, 1675, 1212, 1212, 1075)
    + (1303, 690, 1303, 1716)
)
HOSTILE = [
    "<script>alert(1)</script>",
    "a & b &amp; c",
    "\"quoted\" 'twice'",
    "]]> <!-- -->",
    "عنوان طويل جدا بالعربية",
    "שלום עולם",
    "𝒜𝒷𝒸 𐍈 🜚 👩‍👩‍👧‍👦",
    "強化学習による多エージェント",
    "W" * 300,
    "word " * 60,
    "e\u0301" * 40,
    "﷽﷽﷽",
    "\u202eright to left\u202c",
    "\x00\x1b[31m\ud800\ufffe",
]


def test_a_small_picture_is_these_bytes() -> None:
    drawing = Drawing("dots", 100)
    drawing.height = 50.4
    drawing.rect(10, 10, 20.6, 5, "series0", stroke="rule", dashed=True, radius=3)
    drawing.hatch(10, 10, 5, 5)
    drawing.line(0, 0, 1, 1, "muted", dashed=True)
    drawing.path(((1, 2), (3, 4.2), (5, 6)), "muted")
    drawing.circle(5, 5, 2, "page", stroke="series1")
    with drawing.group():
        drawing.text(1, 2, "A < B", size=SMALL, anchor="end", bold=True, turn=-45)

    head, _, rest = drawing.svg("Dots & dashes", 'Says "all".').partition("<style>")
    style, _, body = rest.partition("</style>\n")

    assert head == (
        '<svg xmlns="http://www.w3.org/2000/svg" width="100" height="50" viewBox="0 0 100 50" role="img" '
        'aria-labelledby="dots-title dots-desc" font-family="system-ui,-apple-system,\'Segoe UI\',Roboto,'
        "'Noto Sans','Helvetica Neue',Arial,sans-serif\" font-size=\"14\">\n"
        '<title id="dots-title">Dots &amp; dashes</title>\n'
        '<desc id="dots-desc">Says &quot;all&quot;.</desc>\n'
    )
    assert style.startswith("\n.f-page{fill:#ffffff}.f-plain{fill:")
    assert "\n@media (prefers-color-scheme:dark){.f-page{fill:#0d1117}" in style
    assert body == (
        '<defs><pattern id="dots-hatch" width="5" height="5" patternUnits="userSpaceOnUse">'
        '<path d="M-1,1 l2,-2 M0,5 l5,-5 M4,6 l2,-2" stroke-width="1.5" class="s-page"/></pattern></defs>\n'
        '<rect width="100" height="50" rx="6" class="f-page"/>\n'
        '<rect x="10" y="10" width="21" height="5" rx="3" class="f-series0 s-rule" stroke-dasharray="3 3"/>\n'
        '<rect x="10" y="10" width="5" height="5" fill="url(#dots-hatch)"/>\n'
        '<line x1="0" y1="0" x2="1" y2="1" class="s-muted" stroke-dasharray="3 3"/>\n'
        '<path d="M1,2 3,4 5,6Z" class="f-muted"/>\n'
        '<circle cx="5" cy="5" r="2" class="f-page s-series1"/>\n'
        "<g>\n"
        '<text x="1" y="2" text-anchor="end" font-size="13" font-weight="600" transform="rotate(-45 1 2)" '
        'class="f-ink">A &lt; B</text>\n'
        "</g>\n"
        "</svg>\n"
    )


def test_without_hatching_there_is_no_pattern() -> None:
    assert "<defs>" not in Drawing("plain", 10).svg("Nothing", "Nothing.")


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_label_stays_one_text(text: str) -> None:
    drawing = Drawing("x", 100)
    drawing.text(0, 10, text)

    root = parse(drawing.svg(text, text))

    assert [label.text for label in labels(root)] == [parse(f"<t>{escape(text)}</t>").text]
    assert len(list(root)) == 5  # title, desc, style, the page, the text


@given(st.text())
def test_whatever_is_escaped_is_read_back(text: str) -> None:
    read = parse(f"<t>{escape(text)}</t>").text or ""

    assert len(read) == len(text)
    for mine, theirs in zip(read, text, strict=True):
        assert mine in (theirs, "\ufffd") or theirs == "\r"
    if text.isprintable():
        assert read == text


def test_widths_are_not_below_those_of_a_wide_font() -> None:
    assert len(DEJAVU) == 95
    for character, width in zip(map(chr, range(32, 127)), DEJAVU, strict=True):
        assert advance(character) >= width / 2048, character


@pytest.mark.parametrize(
    ("character", "least"),
    [("é", 0.615), ("Ł", 0.56), ("Ж", 1.08), ("語", 1.0), ("🜚", 1.3), ("…", 1.0), ("–", 0.5), ("ﷺ", 6.0)],
)
def test_other_characters_are_not_taken_for_narrow(character: str, least: float) -> None:
    assert advance(character) >= least


def test_marks_take_no_width_of_their_own() -> None:
    assert text_width("e\u0301") == text_width("e")
    assert text_width("ab", bold=True) > text_width("ab")


def test_text_that_fits_stays_whole() -> None:
    assert wrap("Tool call", 200) == ["Tool call"]
    assert wrap("", 50) == [""]


def test_text_is_broken_at_blanks_and_cut_at_the_last_line() -> None:
    assert wrap("Planner, executor, critic", 140) == ["Planner,", "executor, critic"]
    assert wrap("Planner, executor, critic", 120, lines=1) == ["Planner, exe…"]
    assert wrap("one two three four five six", 64, lines=3) == ["one two", "three", "four f…"]
    assert wrap("Donaudampfschifffahrt", 80) == ["Donauda", "mpfschi…"]
    assert wrap("﷽ and more", 80) == ["…"]


@given(
    st.text(st.sampled_from(string.ascii_letters + " 0123456789-éß語\u0301🜚")).map(lambda text: " ".join(text.split())),
    st.floats(40, 400),
    st.integers(1, 4),
    st.booleans(),
)
def test_no_line_is_wider_than_asked_and_nothing_is_invented(text: str, width: float, lines: int, bold: bool) -> None:
    broken = wrap(text, width, lines=lines, bold=bold)

    assert len(broken) <= lines
    assert all(text_width(line, bold=bold) <= width for line in broken)
    kept = "".join(broken).replace(" ", "")
    if kept.endswith("…"):
        assert text.replace(" ", "").startswith(kept[:-1])
    else:
        assert kept == text.replace(" ", "")


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_is_legible_on_every_colour_it_stands_on(scheme: int) -> None:
    pairs = [("ink", "page"), ("ink", "plain"), ("muted", "page"), ("muted", "plain"), ("on-heat4", "heat4")]
    pairs += [("ink", f"heat{shade}") for shade in (1, 2, 3)]

    for text, background in pairs:
        assert contrast(PALETTE[text][scheme], PALETTE[background][scheme]) >= 4.5, (text, background)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_lines_and_bars_stand_out_from_the_page(scheme: int) -> None:
    drawn = [*(f"series{index}" for index in range(SERIES)), *(name for name in LINES if name != "page")]

    for name in drawn:
        assert contrast(PALETTE[name][scheme], PALETTE["page"][scheme]) >= 3, name


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_shades_grow_with_the_count(scheme: int) -> None:
    shades = [contrast(PALETTE[f"heat{shade}"][scheme], PALETTE["page"][scheme]) for shade in range(1, 5)]

    assert all(after / before > 1.25 for before, after in itertools.pairwise([0.95, *shades]))


# Machado, Oliveira and Fernandes, A Physiologically-based Model for Simulation of Color Vision Deficiency (2009),
# severity 1: what is seen of linear red, green and blue.
DEFICIENCIES = {
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("name", DEFICIENCIES)
def test_the_first_series_differ_for_the_colour_blind(name: str, scheme: int) -> None:
    seen = []
    for index in range(3):
        parts = linear(PALETTE[f"series{index}"][scheme])
        mixed = [sum(a * b for a, b in zip(row, parts, strict=True)) for row in DEFICIENCIES[name]]
        seen.append([max(part, 0.0) ** (1 / 2.2) for part in mixed])

    for one, other in itertools.combinations(seen, 2):
        assert sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) ** 0.5 > 0.2


def test_size_is_what_text_without_one_has() -> None:
    drawing = Drawing("x", 10)
    drawing.text(0, 0, "a", size=SIZE)

    assert '<text x="0" y="0" class="f-ink">a</text>' in drawing.svg("", "")
