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
    """What a picture shows.

    Attributes:
        page: The page, with what is chosen on it.
        width: That of the window, in CSS pixels.
        first: The first element that is seen, as a CSS selector; from the top of the page where there is none.
        last: The last one; where there is none, as much as fits the window's height.
        scale: Pixels of the picture for one of CSS.
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
            write_atomic(str(ROOT / name), taken(folder, picture))
            print(f"wrote {name}")


def taken(folder: str, picture: Picture) -> bytes:
    """A picture as a PNG, of pages in a folder."""
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
