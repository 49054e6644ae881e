"""Pictures as PDF: a file whose table of objects is right, with the text and the colours of the picture."""

import re
import zlib

from orchtrace_corpus.base.text.drawing import Drawing
from orchtrace_corpus.base.text.pdf import pdf


def picture() -> str:
    drawing = Drawing("toy", 200)
    drawing.rect(10, 10, 50, 20, "heat4", stroke="rule", dashed=True)
    drawing.hatch(10, 10, 50, 20)
    drawing.line(0, 40, 200, 40, "rule")
    drawing.path([(0, 0), (10, 0), (5, 8)], "series1")
    drawing.circle(100, 60, 8, "page", stroke="muted")
    with drawing.group():
        drawing.text(100, 80, r"Röses (\ and ☃)", anchor="middle", bold=True)
        drawing.text(10, 90, "turned", size=13, turn=-45)
    drawing.height = 100
    return drawing.svg("A (toy)", "Nothing else.")


def test_every_object_is_where_the_table_says() -> None:
    data = pdf(picture())

    start = int(re.findall(rb"startxref\n(\d+)\n%%EOF\n$", data)[0])
    assert data[start : start + 4] == b"xref"
    offsets = [int(offset) for offset in re.findall(rb"(\d{10}) 00000 n", data)]
    assert [data[offset:].split(b"\n")[0] for offset in offsets] == [f"{n} 0 obj".encode() for n in range(1, 8)]
    assert b"/MediaBox [0 0 200 100]" in data
    assert data == pdf(picture())


def test_shapes_and_text_are_drawn_in_their_order() -> None:
    stream = re.findall(rb"stream\n(.*)\nendstream", pdf(picture()), re.DOTALL)[0]

    drawn = zlib.decompress(stream).decode("cp1252").splitlines()

    assert drawn[0] == "1 0 0 -1 0 100 cm"
    assert drawn[1].endswith("0 0 200 100 re f Q")
    assert drawn[2] == "q 0.043 0.310 0.588 rg 0.549 0.584 0.624 RG [3 3] 0 d 10 10 50 20 re B Q"
    assert drawn[4] == "q 0.549 0.584 0.624 RG [] 0 d 0 40 m 200 40 l S Q"
    assert drawn[5].endswith("0 0 m 10 0 l 5 8 l h f Q")
    assert drawn[7].endswith(r"(Röses \(\\ and ?\)) Tj ET Q")
    assert "0.7071 -0.7071 -0.7071 -0.7071 10.00 90.00 Tm (turned) Tj" in drawn[8]
