"""Write a picture of `drawing` as PDF: one page, with text in Helvetica, which every PDF reader has.

Characters beyond Windows-1252, which the standard fonts do not have, lose their marks or become a question mark. The
same picture gives the same bytes (ISO 32000-1; widths of characters by Adobe's Core14 AFM files).
"""

import re
import unicodedata
import zlib
from collections.abc import Iterator, Mapping
from xml.etree import ElementTree

from orchtrace_corpus.base.text.drawing import PALETTE, SIZE

_SVG = "{http://www.w3.org/2000/svg}"
_CURVE = 0.5523
"""The distance of the control points of a quarter circle from its ends, in parts of the radius."""

_WIDTHS = (
    "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 278 "
    "278 584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 667 778 722 667 611 722 "
    "667 944 667 667 611 278 278 278 469 556 333 556 556 500 556 556 278 556 556 222 222 500 222 833 556 556 556 "
    "556 333 500 278 556 500 722 500 500 500 334 260 334 584"
)
_ADVANCES = {chr(code): int(width) for code, width in enumerate(_WIDTHS.split(), 32)}
_BOLD = 1.07
"""The largest ratio of the widths of bold and regular letters."""


def pdf(picture: str) -> bytes:
    """Return an SVG document of `Drawing.svg` as a PDF file."""
    root = ElementTree.fromstring(picture)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    title = root.findtext(f"{_SVG}title") or ""
    drawn = "\n".join((f"1 0 0 -1 0 {height:.0f} cm", *_operators(root)))
    content = zlib.compress(drawn.encode("cp1252", "replace"), 9)
    font = "<< /Type /Font /Subtype /Type1 /BaseFont /{} /Encoding /WinAnsiEncoding >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width:.0f} {height:.0f}] /Contents 6 0 R "
        "/Resources << /Font << /F 4 0 R /B 5 0 R >> >> >>".encode(),
        font.format("Helvetica").encode(),
        font.format("Helvetica-Bold").encode(),
        f"<< /Length {len(content)} /Filter /FlateDecode >>\nstream\n".encode() + content + b"\nendstream",
        b"<< /Title (" + _string(title).encode("cp1252", "replace") + b") >>",
    ]
    data = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"
    offsets = []
    for position, body in enumerate(objects, 1):
        offsets.append(len(data))
        data += f"{position} 0 obj\n".encode() + body + b"\nendobj\n"
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    trailer = f"trailer\n<< /Size {size} /Root 1 0 R /Info {len(objects)} 0 R >>\nstartxref\n{len(data)}\n%%EOF\n"
    return data + f"xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode()


def _operators(element: ElementTree.Element) -> Iterator[str]:
    """Yield the operators that draw the elements below an element, in order."""
    for child in element:
        tag, values = child.tag.removeprefix(_SVG), child.attrib
        if tag in ("g", "a"):
            yield from _operators(child)
        elif tag == "text":
            yield _text(child.text or "", values)
        elif tag == "rect" and values.get("fill", "").startswith("url("):
            yield from _hatch(*(float(values[name]) for name in ("x", "y", "width", "height")))
        elif tag in ("rect", "line", "path", "circle"):
            yield f"q {_look(values)} {_shape(tag, values)} {_paint(values)} Q"


def _look(values: Mapping[str, str]) -> str:
    """Return the operators for the colours (of light screens) and the dashes of an element."""
    parts = []
    for name in values.get("class", "").split():
        kind, _, color = name.partition("-")
        hexadecimal = PALETTE[color][0].removeprefix("#")
        channels = " ".join(f"{int(hexadecimal[at : at + 2], 16) / 255:.3f}" for at in (0, 2, 4))
        parts.append(f"{channels} {'rg' if kind == 'f' else 'RG'}")
    return " ".join((*parts, "[3 3] 0 d" if "stroke-dasharray" in values else "[] 0 d"))


def _paint(values: Mapping[str, str]) -> str:
    names = values.get("class", "")
    if "f-" not in names:
        return "S"
    return "B" if "s-" in names else "f"


def _shape(tag: str, values: Mapping[str, str]) -> str:
    if tag == "line":
        return "{x1} {y1} m {x2} {y2} l".format(**values)
    if tag == "path":
        points = re.findall(r"(-?\d+),(-?\d+)", values["d"])
        return " ".join(f"{x} {y} {'l' if index else 'm'}" for index, (x, y) in enumerate(points)) + " h"
    if tag == "rect":
        return f"{values.get('x', '0')} {values.get('y', '0')} {values['width']} {values['height']} re"
    x, y, radius = (float(values[name]) for name in ("cx", "cy", "r"))
    reach = radius * _CURVE
    ends = ((0, radius), (-radius, 0), (0, -radius), (radius, 0))
    path, (a, b) = f"{x + radius:.2f} {y:.2f} m", (radius, 0.0)
    for c, d in ends:
        turn = reach / radius if radius else 0.0
        path += f" {x + a + c * turn:.2f} {y + b + d * turn:.2f} {x + c + a * turn:.2f} {y + d + b * turn:.2f}"
        path += f" {x + c:.2f} {y + d:.2f} c"
        a, b = c, d
    return path


def _hatch(x: float, y: float, width: float, height: float) -> Iterator[str]:
    """Yield diagonal lines over a rectangle."""
    lines = " ".join(
        f"{x + step:.1f} {y:.1f} m {x + step - height:.1f} {y + height:.1f} l"
        for step in range(0, int(width + height), 5)
    )
    yield f"q {x:.0f} {y:.0f} {width:.0f} {height:.0f} re W n 1 1 1 RG 1.5 w {lines} S Q"


def _text(content: str, values: Mapping[str, str]) -> str:
    """Return the operators that write a line of text, mirrored: the axis of the page points down."""
    size, is_bold = float(values.get("font-size", SIZE)), "font-weight" in values
    text = _encodable(content)
    length = sum(_ADVANCES.get(unicodedata.normalize("NFD", c)[0], 556) for c in text) / 1000 * size
    length *= _BOLD if is_bold else 1.0
    shift = {"middle": -length / 2, "end": -length}.get(values.get("text-anchor", ""), 0.0)
    turned = re.match(r"rotate\((-?\d+) ", values.get("transform", ""))
    x, y = float(values["x"]), float(values["y"])
    matrix = f"1 0 0 -1 {x + shift:.2f} {y:.2f} Tm"
    if turned:
        from math import cos, radians, sin

        angle = radians(int(turned[1]))
        matrix = f"{cos(angle):.4f} {sin(angle):.4f} {sin(angle):.4f} {-cos(angle):.4f} {x:.2f} {y:.2f} Tm"
    return f"q {_look(values)} BT /{'B' if is_bold else 'F'} {size:.0f} Tf {matrix} ({_string(text)}) Tj ET Q"


def _encodable(text: str) -> str:
    """Return a text with unmarked letters or question marks for characters that the standard fonts do not have."""
    encodable = ""
    for character in text:
        try:
            character.encode("cp1252")
            encodable += character
        except UnicodeEncodeError:
            plain = unicodedata.normalize("NFKD", character)[0]
            encodable += plain if plain.isascii() else "?"
    return encodable


def _string(text: str) -> str:
    """Return a text escaped for a PDF string."""
    return re.sub(r"[\\()]", r"\\\g<0>", _encodable(text))
