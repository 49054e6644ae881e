"""The parts of a site for other programs: the feed of added papers, the map of its pages, and its picture."""

import struct
import zlib
from collections.abc import Sequence
from uuid import NAMESPACE_URL, uuid5

from orchtrace_corpus.base.text.drawing import PALETTE

MOST_ENTRIES = 50
PICTURE_SIZE = (1200, 630)
"""The size that services that preview links expect: https://ogp.me, 1.91 to 1."""

_DIGITS = {
    "0": "75557", "1": "26227", "2": "71747", "3": "71717", "4": "55711",
    "5": "74717", "6": "74757", "7": "71111", "8": "75757", "9": "75717",
}  # fmt: skip
"""Digits of three by five points: a line of points in each octal digit, so that no font is needed."""


def permanent_id(address: str, name: str) -> str:
    """Return the name of a feed or of its entry for ever, wherever the site is: made from an address of its own."""
    return uuid5(NAMESPACE_URL, f"{address}#{name}").urn


def picture(counts: Sequence[Sequence[int]]) -> bytes:
    """Crossed fields as a PNG: a square for each pair of values, darker for more papers, with its number.

    The pixels follow from the counts alone; how they are compressed is up to the zlib of this Python.

    Args:
        counts: How many papers have each pair of values, row by row.
    """
    width, height = PICTURE_SIZE
    names = ("page", "plain", "heat1", "heat2", "heat3", "heat4", "ink", "on-heat4")
    colours = b"".join(bytes.fromhex(PALETTE[name][0][1:]) for name in names)
    index = {name: number for number, name in enumerate(names)}
    lines = [bytearray(width) for _ in range(height)]

    def fill(x: int, y: int, right: int, bottom: int, colour: int) -> None:
        for line in lines[y:bottom]:
            line[x:right] = bytes([colour]) * (right - x)

    most = max((number for row in counts for number in row), default=0)
    margin, gap = 30, 6
    across, down = (width - 2 * margin) // max(1, len(counts[0])), (height - 2 * margin) // max(1, len(counts))
    for row, numbers in enumerate(counts):
        for column, number in enumerate(numbers):
            x, y = margin + column * across, margin + row * down
            heat = -(-4 * number // most) if number else 0
            fill(x, y, x + across - gap, y + down - gap, index[f"heat{heat}" if heat else "plain"])
            digits = str(number) if number else ""
            size = min((down - gap) // 8, (across - gap) // (4 * len(digits) + 1)) if digits else 0
            left = x + (across - gap - size * (4 * len(digits) - 1)) // 2
            top = y + (down - gap - size * 5) // 2
            colour = index["on-heat4" if heat == 4 else "ink"]
            for position, digit in enumerate(digits):
                for line, bits in enumerate(_DIGITS[digit]):
                    for point in range(3):
                        if int(bits) & (4 >> point):
                            dot = left + (4 * position + point) * size, top + line * size
                            fill(*dot, dot[0] + size, dot[1] + size, colour)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + line for line in lines), 9)
    chunks = ((b"IHDR", header), (b"PLTE", colours), (b"IDAT", pixels), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
