"""The claims about the page of a long run: how long it takes to write, and how much of it a browser draws."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import synthesize_traces
from measured import Claim, run

DOCTOR = (str(Path(sys.executable).parent / "corpus"), "trace", "doctor")
EVENTS = 100_000
WRITE_LIMIT = 2.0
GROWTH_LIMIT = 1.3
MOST_ELEMENTS = 2_000
ZOOM = """\
const done = arguments[0], box = document.querySelector('.lanes'), counts = [];
document.querySelector('[data-show=messages]').click();
const keys = ['0', ...'+++++++++++++', 'ArrowRight', 'ArrowRight', ...'-------------'];
function press() {
  requestAnimationFrame(() => requestAnimationFrame(() => {
    counts.push(document.querySelectorAll('.lanes svg *, .axis *').length);
    if (!keys.length) return done(counts);
    box.dispatchEvent(new KeyboardEvent('keydown', {key: keys.shift()}));
    press();
  }));
}
press();
"""
"""Zooms in and out again step by step, and counts the elements of the timeline after each."""


def run_page_claims() -> Iterator[Claim]:
    """All claims about the page of a run; those about a browser are left out where there is none."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        costs, size = {}, EVENTS // 10
        synthesize_traces.write(folder / "tiny.json", 20)
        start_up = _best(folder, "tiny")
        for size in (EVENTS // 10, EVENTS):
            synthesize_traces.write(folder / f"{size}.json", size)
            costs[size] = (_best(folder, str(size)) - start_up) / size
        figures = min(run((*DOCTOR, str(folder / f"{size}.json"), "--format", "json")).seconds for _ in range(3))
        written = costs[size] * size + start_up
        bytes_ = (folder / f"{size}.html").stat().st_size
        yield Claim(
            f"`corpus trace doctor --html`, {size:,} events, against `--format json` of the same run",
            written / figures,
            WRITE_LIMIT,
            f"{written:.2f} s and {bytes_ / 1e6:.1f} MB against {figures:.2f} s",
        )
        few, many = costs.values()
        yield Claim(
            f"`corpus trace doctor --html`, what an event of {EVENTS:,} costs against one of {EVENTS // 10:,}, "
            "start-up left out",
            many / few,
            GROWTH_LIMIT,
            f"{1e6 * many:.1f} µs against {1e6 * few:.1f} µs",
        )
        counts = _counts(folder / f"{size}.html")
        if counts:
            yield Claim(
                f"elements that a page of {size:,} events draws at a time in Chromium, against {MOST_ELEMENTS:,}",
                max(counts) / MOST_ELEMENTS,
                1.0,
                f"{min(counts):,} to {max(counts):,}, in {len(counts)} steps of zoom",
            )


def _best(folder: Path, name: str) -> float:
    """The least seconds of three that it takes to write the page of a trace."""
    page = folder / f"{name}.html"
    seconds = []
    for _ in range(3):
        page.unlink(missing_ok=True)
        seconds.append(run((*DOCTOR, str(folder / f"{name}.json"), "--html", str(page))).seconds)
    return min(seconds)


def _counts(page: Path) -> list[int]:
    """How many elements the timeline of a page has, at each step of zoom; none where there is no Chromium."""
    chromium, driver_path = shutil.which("chromium"), shutil.which("chromedriver")
    try:
        from selenium.webdriver import Chrome, ChromeOptions
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        return []
    if not chromium or not driver_path:
        return []
    options = ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1200,900"):
        options.add_argument(argument)
    driver: Any = Chrome(options=options, service=Service(driver_path))
    try:
        driver.set_script_timeout(120)
        driver.get(page.as_uri())
        return list(driver.execute_async_script(ZOOM))
    finally:
        driver.quit()
