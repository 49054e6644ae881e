"""Take the pictures of the site that documents show, from the real site in Chromium.

    python scripts/screenshots.py

It needs `chromium`, `chromedriver` and `pip install selenium`. Fonts differ between machines, so nothing compares the
pictures with what is on disk.
"""

import shutil
import tempfile
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

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
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars", "--force-color-profile=srgb"):
        options.add_argument(argument)
    driver = Chrome(options=options, service=Service(shutil.which("chromedriver") or "chromedriver"))
    try:
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        driver.get(address)
        return driver.get_screenshot_as_png()
    finally:
        driver.quit()


if __name__ == "__main__":
    main()
