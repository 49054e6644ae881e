"""Reads pictures back: what their text says, where it stands, and on what colour."""

import re
from math import cos, radians, sin
from typing import NamedTuple
from xml.etree import ElementTree

from orchtrace_corpus.base.text.drawing import SIZE, text_width

NAMESPACE = "{http://www.w3.org/2000/svg}"
Corner = tuple[float, float]


class Label(NamedTuple):
    """A text with the four corners of the box that it takes at most, and its colour's class."""

    text: str
    corners: tuple[Corner, ...]
    fill: str

    @property
    def middle(self) -> Corner:
        """The middle of the box."""
        return sum(x for x, _ in self.corners) / 4, sum(y for _, y in self.corners) / 4


def parse(svg: str) -> ElementTree.Element:
    """The picture's root element; it must be well-formed, and ASCII or UTF-8."""
    return ElementTree.fromstring(svg.encode())


def labels(root: ElementTree.Element) -> list[Label]:
    """Every text of the picture, in its order."""
    return [_label(element) for element in root.iter(f"{NAMESPACE}text")]


def rows(root: ElementTree.Element) -> list[list[str]]:
    """Return the texts of each group, such as a row of a table; a link is a group, too."""
    groups = [element for element in root.iter() if element.tag in (f"{NAMESPACE}g", f"{NAMESPACE}a")]
    return [[text.text or "" for text in group.iter(f"{NAMESPACE}text")] for group in groups]


def _label(element: ElementTree.Element) -> Label:
    text, size = element.text or "", float(element.get("font-size", SIZE))
    x, y = float(element.get("x", 0)), float(element.get("y", 0))
    width = text_width(text, size, bold=element.get("font-weight") == "600")
    left = x - {"start": 0.0, "middle": width / 2, "end": width}[element.get("text-anchor", "start")]
    corners = [(left, y - 0.74 * size), (left + width, y - 0.74 * size), (left + width, y + 0.2 * size)]
    corners.append((left, y + 0.2 * size))
    turned = re.fullmatch(r"rotate\((-?\d+) (-?\d+) (-?\d+)\)", element.get("transform", ""))
    if turned is not None:
        angle, about_x, about_y = radians(int(turned[1])), float(turned[2]), float(turned[3])
        corners = [
            (
                about_x + (cx - about_x) * cos(angle) - (cy - about_y) * sin(angle),
                about_y + (cx - about_x) * sin(angle) + (cy - about_y) * cos(angle),
            )
            for cx, cy in corners
        ]
    return Label(text, tuple(corners), element.get("class", ""))


def collisions(found: list[Label]) -> list[tuple[str, str]]:
    """The texts of those that overlap."""
    boxes = sorted((min(y for _, y in label.corners), max(y for _, y in label.corners), label) for label in found)
    collided, open_boxes = [], []
    for top, bottom, label in boxes:
        open_boxes = [(low, other) for low, other in open_boxes if low > top]
        left, right = min(x for x, _ in label.corners), max(x for x, _ in label.corners)
        for _, other in open_boxes:
            near = any(x < right for x, _ in other.corners) and any(x > left for x, _ in other.corners)
            if near and overlap(label, other):
                collided.append((label.text, other.text))
        open_boxes.append((bottom, label))
    return collided


def overlap(one: Label, other: Label) -> bool:
    """Whether two boxes, turned or not, have more than an edge in common (separating axis theorem)."""
    for shape in (one.corners, other.corners):
        for (x1, y1), (x2, y2) in zip(shape, (*shape[1:], shape[0]), strict=True):
            normal = (y2 - y1, x1 - x2)
            length = (normal[0] ** 2 + normal[1] ** 2) ** 0.5
            if not length:
                continue
            first, second = (
                [(x * normal[0] + y * normal[1]) / length for x, y in label.corners] for label in (one, other)
            )
            if max(first) <= min(second) + 1 or max(second) <= min(first) + 1:
                return False
    return True


def backgrounds(root: ElementTree.Element) -> list[tuple[Label, str]]:
    """Each text with the class of the topmost rectangle below its middle."""
    painted: list[tuple[float, float, float, float, str]] = []
    found = []
    for element in root.iter():
        if element.tag == f"{NAMESPACE}rect" and "url(" not in element.get("fill", ""):
            x, y, width, height = (float(element.get(name, 0)) for name in ("x", "y", "width", "height"))
            painted.append((x, y, x + width, y + height, element.get("class", "").split()[0]))
        elif element.tag == f"{NAMESPACE}text":
            label = _label(element)
            x, y = label.middle
            below = [fill for left, top, right, low, fill in painted if left <= x <= right and top <= y <= low]
            found.append((label, below[-1]))
    return found


def colors(root: ElementTree.Element) -> list[dict[str, str]]:
    """The colour of each class to fill with, on a light screen and on a dark one."""
    style = root.findtext(f"{NAMESPACE}style") or ""
    light, _, dark = style.partition("@media (prefers-color-scheme:dark)")
    return [dict(re.findall(r"\.(f-[\w-]+)\{fill:(#\w{6})\}", part)) for part in (light, dark)]


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, 1 to 21 (WCAG 2.2, "contrast ratio")."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(color: str) -> float:
    """The relative luminance of a colour such as `#0072b2` (WCAG 2.2)."""
    red, green, blue = linear(color)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def linear(color: str) -> tuple[float, float, float]:
    """The parts of a colour in linear light, 0 to 1 (IEC 61966-2-1)."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return red, green, blue
