"""Take the pictures of the site that documents show, from the real site in Chromium.

    python scripts/screenshots.py

It needs `chromium`, `chromedriver` and `pip install selenium`. Fonts differ between machines, so nothing compares the
pictures with what is on disk.
"""

import tempfile
from pathlib import Path

from chromium import window

from orchtrace_corpus.base.commands.output import Output
from orchtrace_corpus.base.files import replace_folder, write_atomic
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.site import Site, is_site
from orchtrace_corpus.corpus.site.source import Place, Source

ROOT = Path(__file__).parents[1]
PICTURES = {"docs/site.png": ("papers.html#delegate=explicit&code=yes", (1200, 700))}
"""By file: the page with what is chosen, and its size in CSS pixels."""


def main() -> None:
    """Run the script."""
    with tempfile.TemporaryDirectory() as folder:
        pool = CorpusSession(Output(), str(ROOT)).pool()
        replace_folder(f"{folder}/site", Site(Source(str(ROOT), pool), Place()).files(), is_site)
        for name, (page, size) in PICTURES.items():
            write_atomic(str(ROOT / name), picture(f"file://{folder}/site/{page}", size))
            print(f"wrote {name}")


def picture(address: str, size: tuple[int, int]) -> bytes:
    """A page as a PNG."""
    with window(*size) as driver:
        driver.get(address)
        taken: bytes = driver.get_screenshot_as_png()
        return taken


if __name__ == "__main__":
    main()
