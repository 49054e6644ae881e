"""Write a picture of `drawing` as PDF: one page, with text in Helvetica, which every PDF reader has.

The standard fonts have only the characters of Windows-1252. Others lose their accents, or become a question mark. The
same picture gives the same bytes. References: ISO 32000-1; for the widths of characters, Adobe's Core14 AFM files.
"""

import re
import unicodedata
import zlib
from collections.abc import Iterator, Mapping
from xml.etree import ElementTree

from orchtrace_corpus.base.text.drawing import PALETTE, SIZE

_SVG = "{http://www.w3.org/2000/svg}"
_CONTROL_DISTANCE = 0.5523
"""A quarter circle is drawn as a Bézier curve; this is the distance of its control points from its ends in radii."""

_HELVETICA_WIDTHS = (
    "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 278 "
    "278 584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 667 778 722 667 611 722 "
    "667 944 667 667 611 278 278 278 469 556 333 556 556 500 556 556 278 556 556 222 222 500 222 833 556 556 556 "
    "556 333 500 278 556 500 722 500 500 500 334 260 334 584"
)
_ADVANCES = {chr(code): int(width) for code, width in enumerate(_HELVETICA_WIDTHS.split(), 32)}
"""The widths of characters from U+0020 on, in thousandths of the font size."""

_USUAL_ADVANCE = 556

_BOLD = 1.07
"""The largest ratio of the widths of bold and regular letters."""


def pdf(picture: str) -> bytes:
    """Return an SVG document of `Drawing.svg` as a PDF file."""
    root = ElementTree.fromstring(picture)
    width = float(root.attrib["width"])
    height = float(root.attrib["height"])
    title = root.findtext(f"{_SVG}title") or ""
    flip = f"1 0 0 -1 0 {height:.0f} cm"  # the y axis points up in PDF, and down in SVG
    operators = "\n".join((flip, *_operators(root)))
    content = zlib.compress(operators.encode("cp1252", "replace"), 9)
    font = "<< /Type /Font /Subtype /Type1 /BaseFont /{} /Encoding /WinAnsiEncoding >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width:.0f} {height:.0f}] /Contents 6 0 R "
        "/Resources << /Font << /F 4 0 R /B 5 0 R >> >> >>".encode(),
        font.format("Helvetica").encode(),
        font.format("Helvetica-Bold").encode(),
        f"<< /Length {len(content)} /Filter /FlateDecode >>\nstream\n".encode() + content + b"\nendstream",
        b"<< /Title (" + _escape(title).encode("cp1252", "replace") + b") >>",
    ]
    data = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"  # four bytes beyond ASCII mark the file as binary
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(data))
        data += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    references = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(objects) + 1  # with the free entry 0
    trailer = f"trailer\n<< /Size {size} /Root 1 0 R /Info {len(objects)} 0 R >>\nstartxref\n{len(data)}\n%%EOF\n"
    return data + f"xref\n0 {size}\n0000000000 65535 f \n{references}{trailer}".encode()


def _operators(element: ElementTree.Element) -> Iterator[str]:
    """Yield the PDF operators that draw the elements below an SVG element, in order."""
    for child in element:
        tag = child.tag.removeprefix(_SVG)
        attributes = child.attrib
        if tag in ("g", "a"):
            yield from _operators(child)
        elif tag == "text":
            yield _text(child.text or "", attributes)
        elif tag == "rect" and attributes.get("fill", "").startswith("url("):
            yield _hatch(attributes)
        elif tag in ("rect", "line", "path", "circle"):
            yield f"q {_colors_and_dashes(attributes)} {_shape(tag, attributes)} {_paint(attributes)} Q"


def _colors_and_dashes(attributes: Mapping[str, str]) -> str:
    """Return the operators that set the dashes of an element and its colours, as on light screens."""
    operators = []
    for name in attributes.get("class", "").split():
        kind, _, color = name.partition("-")  # `f-NAME` fills, `s-NAME` draws lines
        on_light, _ = PALETTE[color]
        red, green, blue = (channel / 255 for channel in bytes.fromhex(on_light.removeprefix("#")))
        operator = "rg" if kind == "f" else "RG"
        operators.append(f"{red:.3f} {green:.3f} {blue:.3f} {operator}")
    operators.append("[3 3] 0 d" if "stroke-dasharray" in attributes else "[] 0 d")
    return " ".join(operators)


def _paint(attributes: Mapping[str, str]) -> str:
    """Return the operator that paints a shape: S draws its outline, f fills it, B does both."""
    classes = attributes.get("class", "")  # such as `f-NAME s-NAME`
    if "f-" not in classes:
        return "S"
    return "B" if "s-" in classes else "f"


def _shape(tag: str, attributes: Mapping[str, str]) -> str:
    """Return the operators of the path of a shape: m moves, l draws a line, c a curve, re a rectangle, h closes."""
    if tag == "line":
        return "{x1} {y1} m {x2} {y2} l".format(**attributes)
    if tag == "path":
        first, *others = re.findall(r"(-?\d+),(-?\d+)", attributes["d"])
        steps = [f"{first[0]} {first[1]} m", *(f"{x} {y} l" for x, y in others), "h"]
        return " ".join(steps)
    if tag == "rect":
        x = attributes.get("x", "0")
        y = attributes.get("y", "0")
        return f"{x} {y} {attributes['width']} {attributes['height']} re"
    return _circle(float(attributes["cx"]), float(attributes["cy"]), float(attributes["r"]))


def _circle(x: float, y: float, radius: float) -> str:
    """Return four quarter circles around (x, y)."""
    path = f"{x + radius:.2f} {y:.2f} m"
    start_x, start_y = radius, 0.0  # relative to the centre, as are the ends
    for end_x, end_y in ((0.0, radius), (-radius, 0.0), (0.0, -radius), (radius, 0.0)):
        path += f" {x + start_x + end_x * _CONTROL_DISTANCE:.2f} {y + start_y + end_y * _CONTROL_DISTANCE:.2f}"
        path += f" {x + end_x + start_x * _CONTROL_DISTANCE:.2f} {y + end_y + start_y * _CONTROL_DISTANCE:.2f}"
        path += f" {x + end_x:.2f} {y + end_y:.2f} c"
        start_x, start_y = end_x, end_y
    return path


def _hatch(attributes: Mapping[str, str]) -> str:
    """Return the operators that draw white diagonal lines over a rectangle, clipped to it."""
    x, y, width, height = (float(attributes[name]) for name in ("x", "y", "width", "height"))
    offsets = range(0, int(width + height), 5)
    lines = " ".join(f"{x + i:.1f} {y:.1f} m {x + i - height:.1f} {y + height:.1f} l" for i in offsets)
    return f"q {x:.0f} {y:.0f} {width:.0f} {height:.0f} re W n 1 1 1 RG 1.5 w {lines} S Q"


def _text(content: str, attributes: Mapping[str, str]) -> str:
    """Return the operators that write a line of text. It is mirrored, because `pdf` flips the y axis of the page."""
    size = float(attributes.get("font-size", SIZE))
    is_bold = "font-weight" in attributes
    text = _encodable(content)
    length = 0
    for c in text:
        letter = unicodedata.normalize("NFD", c)[0]
        length += _ADVANCES.get(letter, _USUAL_ADVANCE)
    width = length / 1000 * size
    if is_bold:
        width *= _BOLD
    x = float(attributes["x"])
    y = float(attributes["y"])
    rotation = re.match(r"rotate\((-?\d+) ", attributes.get("transform", ""))
    if rotation:  # rotated text always starts at (x, y)
        from math import cos, radians, sin

        angle = radians(int(rotation[1]))
        matrix = f"{cos(angle):.4f} {sin(angle):.4f} {sin(angle):.4f} {-cos(angle):.4f} {x:.2f} {y:.2f} Tm"
    else:
        shift_by_anchor = {"middle": -width / 2, "end": -width}
        shift = shift_by_anchor.get(attributes.get("text-anchor", ""), 0.0)
        matrix = f"1 0 0 -1 {x + shift:.2f} {y:.2f} Tm"
    font = "B" if is_bold else "F"
    return f"q {_colors_and_dashes(attributes)} BT /{font} {size:.0f} Tf {matrix} ({_escape(text)}) Tj ET Q"


def _encodable(text: str) -> str:
    """Return a text with plain letters or question marks instead of characters that the standard fonts do not have."""
    encodable = ""
    for character in text:
        try:
            character.encode("cp1252")
            encodable += character
        except UnicodeEncodeError:
            plain = unicodedata.normalize("NFKD", character)[0]
            encodable += plain if plain.isascii() else "?"
    return encodable


def _escape(text: str) -> str:
    """Return a text as the content of a PDF string, `(...)`."""
    return re.sub(r"[\\()]", r"\\\g<0>", _encodable(text))
