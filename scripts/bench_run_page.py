"""The claims about the page of a long run: how long it takes to write, and how much of it a browser draws."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import synthesize_traces
from chromium import window
from measured import Claim, run

DOCTOR = (str(Path(sys.executable).parent / "corpus"), "trace", "doctor")
EVENTS = 100_000
WRITE_LIMIT = 2.5
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
    """All claims about the page of a run.

    Raises:
        RuntimeError: Chromium or its driver is not installed.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seconds: dict[int, tuple[float, float]] = {}
        for size in (20, EVENTS // 10, EVENTS):
            synthesize_traces.write(folder / f"{size}.json", size)
            seconds[size] = _page_and_figures(folder, size)
        page, figures = seconds[EVENTS]
        megabytes = (folder / f"{EVENTS}.html").stat().st_size / 1e6
        yield Claim(
            f"`corpus trace doctor --html`, {EVENTS:,} events, against `--format json` of the same run",
            page / figures,
            WRITE_LIMIT,
            f"{page:.2f} s and {megabytes:.1f} MB against {figures:.2f} s",
        )
        costs = [
            [(seconds[size][which] - seconds[20][which]) / size for size in (EVENTS // 10, EVENTS)] for which in (0, 1)
        ]
        growths = [many / few for few, many in costs]
        shown = [f"{1e6 * many:.1f} µs against {1e6 * few:.1f} µs" for few, many in costs]
        yield Claim(
            f"`corpus trace doctor --html`, what an event of {EVENTS:,} costs against one of {EVENTS // 10:,}, "
            "start-up left out, by the same of `--format json`",
            growths[0] / growths[1],
            GROWTH_LIMIT,
            f"{shown[0]}, {growths[0]:.2f} times as much; as JSON {shown[1]}, {growths[1]:.2f} times",
        )
        counts = _counts(folder / f"{EVENTS}.html")
        yield Claim(
            f"elements that a page of {EVENTS:,} events draws at a time in Chromium, against {MOST_ELEMENTS:,}",
            max(counts) / MOST_ELEMENTS,
            1.0,
            f"{min(counts):,} to {max(counts):,}, in {len(counts)} steps of zoom",
        )


def _page_and_figures(folder: Path, size: int) -> tuple[float, float]:
    """The least seconds of three that the page of a trace takes, and its figures as JSON; the two by turns."""
    trace, page = str(folder / f"{size}.json"), folder / f"{size}.html"
    taken: list[tuple[float, float]] = []
    for _ in range(3):
        page.unlink(missing_ok=True)
        written = run((*DOCTOR, trace, "--html", str(page))).seconds
        taken.append((written, run((*DOCTOR, trace, "--format", "json")).seconds))
    return min(one for one, _ in taken), min(one for _, one in taken)


def _counts(page: Path) -> list[int]:
    """How many elements the timeline of a page has, at each step of zoom."""
    with window() as driver:
        driver.get(page.as_uri())
        return list(driver.execute_async_script(ZOOM))
