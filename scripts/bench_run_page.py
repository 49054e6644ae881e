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
"""A script for the page: it zooms in and out again, and counts the elements of the timeline after each step."""


def run_page_claims() -> Iterator[Claim]:
    """Yield all claims about the page of a run.

    Raises:
        RuntimeError: Chromium or its driver is not installed.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seconds: dict[int, tuple[float, float]] = {}
        for size in (20, EVENTS // 10, EVENTS):
            synthesize_traces.write(folder / f"{size}.json", size)
            seconds[size] = _page_and_figures(folder, size)
        page_seconds, json_seconds = seconds[EVENTS]
        megabytes = (folder / f"{EVENTS}.html").stat().st_size / 1e6
        yield Claim(
            f"`corpus trace doctor --html`, {EVENTS:,} events, against `--format json` of the same run",
            page_seconds / json_seconds,
            WRITE_LIMIT,
            f"{page_seconds:.2f} s and {megabytes:.1f} MB against {json_seconds:.2f} s",
        )
        page_growth, page_detail = _growth({size: page for size, (page, _) in seconds.items()})
        json_growth, json_detail = _growth({size: figures for size, (_, figures) in seconds.items()})
        yield Claim(
            f"`corpus trace doctor --html`, what an event of {EVENTS:,} costs against one of {EVENTS // 10:,}, "
            "start-up left out, by the same of `--format json`",
            page_growth / json_growth,
            GROWTH_LIMIT,
            f"{page_detail}, {page_growth:.2f} times as much; as JSON {json_detail}, {json_growth:.2f} times",
        )
        counts = _counts(folder / f"{EVENTS}.html")
        yield Claim(
            f"elements that a page of {EVENTS:,} events draws at a time in Chromium, against {MOST_ELEMENTS:,}",
            max(counts) / MOST_ELEMENTS,
            1.0,
            f"{min(counts):,} to {max(counts):,}, in {len(counts)} steps of zoom",
        )


def _growth(seconds_by_size: dict[int, float]) -> tuple[float, str]:
    """Return the cost of an event in the largest run divided by that in a smaller one, and both costs as a text.

    The seconds for 20 events are left out, as those of the start.
    """
    start_up = seconds_by_size[20]
    small = (seconds_by_size[EVENTS // 10] - start_up) / (EVENTS // 10)
    large = (seconds_by_size[EVENTS] - start_up) / EVENTS
    return large / small, f"{1e6 * large:.1f} µs against {1e6 * small:.1f} µs"


def _page_and_figures(folder: Path, size: int) -> tuple[float, float]:
    """Return the least seconds of three runs for the page of a trace, and for its figures as JSON, run in turns."""
    trace = str(folder / f"{size}.json")
    page = folder / f"{size}.html"
    page_runs = []
    json_runs = []
    for _ in range(3):
        page.unlink(missing_ok=True)
        page_runs.append(run((*DOCTOR, trace, "--html", str(page))))
        json_runs.append(run((*DOCTOR, trace, "--format", "json")))
    return min(page_runs).seconds, min(json_runs).seconds


def _counts(page: Path) -> list[int]:
    """Return the number of elements in the timeline of a page, at each step of zoom."""
    with window() as driver:
        driver.get(page.as_uri())
        return list(driver.execute_async_script(ZOOM))
