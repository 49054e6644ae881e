"""Take the pictures that documents show, from the real site and the page of a real run, in Chromium.

    python scripts/screenshots.py

It needs `chromium`, `chromedriver` and `pip install selenium`. Fonts differ between machines, so nothing compares the
pictures with what is on disk.
"""

import base64
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from chromium import window

from orchtrace_corpus.base.files import write_atomic

ROOT = Path(__file__).parents[1]
RUN = "tests/data/session"
"""The session whose page is shown: Claude Code with two subagents, made up."""


class Picture(NamedTuple):
    """The part of a page that a picture shows.

    Attributes:
        page: The page; its fragment sets the filters.
        width: The width of the window, in CSS pixels.
        first: The first element in the picture, as a CSS selector; empty for the top of the page.
        last: The last element in the picture; empty for as much as fits into the window.
        scale: The number of pixels in the picture for a CSS pixel.
    """

    page: str
    width: int
    first: str = ""
    last: str = ""
    scale: float = 1.5


HEIGHT = 700
MARGIN = 1
PICTURES = {
    "docs/site.png": Picture("site/papers.html#delegate=explicit&code=yes", 1200, scale=1),
    "docs/matrix.png": Picture("site/index.html", 600, "#matrix-table", "#matrix-table"),
    "docs/run.png": Picture("run.html", 600, "#timelines .axis", "#timelines .legend"),
}

_CORNERS = """
const [first, last] = [...arguments].map((one) => document.querySelector(one).getBoundingClientRect());
return [Math.min(first.left, last.left), first.top + scrollY, Math.max(first.right, last.right), last.bottom + scrollY];
"""


def main() -> None:
    """Run the script."""
    with tempfile.TemporaryDirectory() as folder:
        for words in (["site", "-o", f"{folder}/site"], ["trace", "doctor", RUN, "--html", f"{folder}/run.html"]):
            subprocess.run([sys.executable, "-m", "orchtrace_corpus", *words], cwd=ROOT, check=True)
        for name, picture in PICTURES.items():
            write_atomic(str(ROOT / name), take(folder, picture))
            print(f"wrote {name}")


def take(folder: str, picture: Picture) -> bytes:
    """Return a picture of a page in a folder, as PNG."""
    with window(picture.width, HEIGHT) as driver:
        driver.get(f"file://{folder}/{picture.page}")
        corners = [0.0, 0.0, picture.width, HEIGHT]
        if picture.first:
            left, top, right, bottom = driver.execute_script(_CORNERS, picture.first, picture.last)
            corners = [left - MARGIN, top - MARGIN, right + MARGIN, bottom + MARGIN]
        return base64.b64decode(_shot(driver, corners, picture.scale))


def _shot(driver: Any, corners: list[float], scale: float) -> str:
    left, top, right, bottom = corners
    clip = {"x": left, "y": top, "width": right - left, "height": bottom - top, "scale": scale}
    shot: str = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})["data"]
    return shot


if __name__ == "__main__":
    main()
