"""Measure what one machine does with datasets of traces, and write it down.

    python scripts/bench_dataset.py > docs/scale.md                      # about 15 minutes, 3 GB of disk
    python scripts/bench_dataset.py --sizes 10000 100000                 # about a minute

Traces and logs are made up, in a temporary folder, for one measurement after another. Every command is a fresh process.
"""

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import spark_cluster
from bench_traces import JSON_LINES
from measured import Claim, Run, run

ROOT = Path(__file__).resolve().parents[1]
CORPUS = str(Path(sys.executable).parent / "corpus")
DATASET = (CORPUS, "trace", "dataset")
PLAIN = (sys.executable, str(ROOT / "scripts" / "plain_statistics.py"))
ON_SPARK = ("--engine", "spark", "--master", "local[2]")
EVENTS_OF_A_TRACE = 20
MAX_LOOP_EVENTS = 1_000_000
"""The largest number of events for the plain Python loop, which would take minutes for more."""
_EXTRAPOLATED = (100_000_000, 1_000_000_000)
"""The numbers of events for which the costs are extrapolated."""
STATS_LIMIT = 0.4
BUILD_LIMIT = 3.0
BUILD_TO_JSON_LIMIT = 8.0
KILLED_LIMIT = 1.4
SPARK_LIMIT = 1.4
KILLED_WORKER_LIMIT = 1.6
DRIVER_LIMIT = 1.5


class Row(NamedTuple):
    """The measurements of one input; sizes in bytes.

    Attributes:
        again: The same build once more, with nothing to do.
        plain: The statistics in a plain Python loop; None if it was not run.
    """

    what: str
    events: int
    traces: int
    input_size: int
    tables_size: int
    build: Run
    again: Run
    stats: Run
    plain: Run | None


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = [10_000, 100_000, 1_000_000, 10_000_000]
    parser.add_argument("--sizes", type=int, nargs="+", default=sizes, help="events in small traces")
    parser.add_argument("--single", type=int, nargs="*", default=[100_000, 1_000_000], help="events in one trace")
    parser.add_argument("--megabytes", type=int, default=200, help="logs of Claude Code")
    parser.add_argument("--files", type=int, default=20_000, help="small sessions, a file each")
    parser.add_argument("--spark", type=int, default=1_000_000, help="events for Spark beside this machine; 0 for none")
    parser.add_argument("--folder", help="where to make room for it (else the folder for temporary files)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        place = Path(name)
        events = arguments.spark if find_spec("pyspark") else 0
        engines = _engines_page(events, _engines(place, events, rounds=3)) if events else ""
        many = [_small_traces(place, events) for events in arguments.sizes]
        single = [_one_trace(place, events) for events in arguments.single]
        others = [_logs(place, arguments.megabytes), _files(place, arguments.files)]
    print(document(many, single, others) + engines, end="")


def dataset_claims(events: int) -> Iterator[Claim]:
    """Yield the claims about datasets, for `bench.py`."""
    with tempfile.TemporaryDirectory() as name:
        log = Path(name) / "traces.jsonl"
        _synthesize(log, EVENTS_OF_A_TRACE, max(events // EVENTS_OF_A_TRACE, 1))
        measure = run((CORPUS, "trace", "measure", str(log), "--format", "csv"))
        json_load, single_build = _beside_json(Path(name), log)
        killed = _killed_at_half(Path(name), log)
        row = _measured("", Path(name), log, rounds=2)
    if row.plain is None:
        raise RuntimeError("too many events for a plain loop")
    yield Claim(
        f"`corpus trace dataset stats`, {row.events:,} events, against a plain Python loop with the same figures",
        row.stats.seconds / row.plain.seconds,
        STATS_LIMIT,
        _against(row.stats, row.plain),
    )
    yield Claim(
        f"`corpus trace dataset build`, {row.events:,} events, against `corpus trace measure` of the same file",
        row.build.seconds / measure.seconds,
        BUILD_LIMIT,
        _against(row.build, measure),
    )
    yield Claim(
        f"`corpus trace dataset build --jobs 1`, {row.events:,} events, against `json.loads` alone on the same lines",
        single_build.seconds / json_load.seconds,
        BUILD_TO_JSON_LIMIT,
        _against(single_build, json_load),
    )
    yield Claim(
        f"`corpus trace dataset build`, {row.events:,} events, killed at half and run again, against one that is not",
        killed.seconds / row.build.seconds,
        KILLED_LIMIT,
        _against(killed, row.build),
    )


def _beside_json(place: Path, log: Path) -> tuple[Run, Run]:
    """Return the best of three runs of `json.loads` on the lines of a file, and of a build by one process, in turns."""
    folder = place / "dataset"
    loads = []
    builds = []
    for _ in range(3):
        loads.append(run((sys.executable, "-c", JSON_LINES, str(log))))
        builds.append(run((*DATASET, "build", str(log), "-o", str(folder), "--jobs", "1")))
        shutil.rmtree(folder)
    return min(loads), min(builds)


def _killed_at_half(place: Path, log: Path) -> Run:
    """Return the cost of a build that is killed with its workers at half of its time, and is then run again."""
    folder = place / "dataset"
    build = (*DATASET, "build", str(log), "-o", str(folder))
    half = run(build).seconds / 2
    shutil.rmtree(folder)
    process = subprocess.Popen(build, stderr=subprocess.DEVNULL, start_new_session=True)
    time.sleep(half)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    again = run(build)
    shutil.rmtree(folder)
    return Run(half + again.seconds, again.peak_mib, again.cpu_seconds)


def spark_claims(events: int, rounds: int = 3) -> Iterator[Claim]:
    """Yield the claims about Spark as an engine, for `bench.py`; none if Spark is not installed."""
    if not find_spec("pyspark"):
        return
    with tempfile.TemporaryDirectory() as name:
        engines = _engines(Path(name), events, rounds)
        undisturbed, killed = _killed_worker(Path(name), Path(name) / "traces.jsonl")
        small_mib = _driver_mib(Path(name), events)
        large_mib = _driver_mib(Path(name), 10 * events)
    yield Claim(
        f"`dataset build --engine spark --master local[2]`, {events:,} events, session start apart, against `--jobs 2`",
        (engines.spark.seconds - engines.start.seconds) / engines.local.seconds,
        SPARK_LIMIT,
        f"{_against(engines.spark, engines.local)}; a session starts in {engines.start.seconds:.2f} s",
    )
    yield Claim(
        f"the same on two workers, {events:,} events, one of them killed at half, against one that is not",
        killed / undisturbed,
        KILLED_WORKER_LIMIT,
        f"{killed:.2f} s against {undisturbed:.2f} s",
    )
    yield Claim(
        f"memory of the driver, {10 * events:,} events, against {events:,}",
        large_mib / small_mib,
        DRIVER_LIMIT,
        f"{large_mib} MiB against {small_mib} MiB, Python and Java together",
    )


class Engines(NamedTuple):
    """The runs of both engines on the same traces; `start` is a build of one trace on Spark."""

    start: Run
    local: Run
    spark: Run
    local_stats: Run
    spark_stats: Run


def _engines(place: Path, events: int, rounds: int) -> Engines:
    """Build the same traces with both engines on the same processors, in turns, and describe both datasets.

    Raises:
        RuntimeError: The files or the figures differ.
    """
    log = place / "traces.jsonl"
    one_trace = place / "one.jsonl"
    _synthesize(one_trace, EVENTS_OF_A_TRACE, 1)
    _synthesize(log, EVENTS_OF_A_TRACE, max(events // EVENTS_OF_A_TRACE, 1))
    build_options = {"local": ("--jobs", "2"), "spark": ON_SPARK}
    starts: list[Run] = []
    builds: dict[str, list[Run]] = {"local": [], "spark": []}
    for index in range(rounds):
        starts.append(run((*DATASET, "build", str(one_trace), "-o", str(place / f"one-{index}"), *ON_SPARK)))
        for engine, options in build_options.items():
            shutil.rmtree(place / engine, ignore_errors=True)
            command = (*DATASET, "build", str(log), "-o", str(place / engine), "--salt", "x", *options)
            builds[engine].append(run(command))
    files = []
    figures = []
    stats = []
    for engine, engine_options in (("local", ()), ("spark", ON_SPARK)):
        files.append({path.relative_to(place / engine): path.read_bytes() for path in _parts(place / engine)})
        command = (*DATASET, "stats", str(place / engine), "--format", "json", *engine_options)
        stats.append(run(command))
        figures.append(json.loads(_output(command)))
    if files[0] != files[1] or figures[0] != figures[1]:
        raise RuntimeError("the engines make different files, or find different figures")
    local_stats, spark_stats = stats
    return Engines(min(starts), min(builds["local"]), min(builds["spark"]), local_stats, spark_stats)


def _engines_page(events: int, engines: Engines) -> str:
    """Return the section of docs/scale.md that compares the engines."""
    lines = []
    for name, local_seconds, spark_seconds in (
        ("build", engines.local.seconds, engines.spark.seconds - engines.start.seconds),
        ("stats", engines.local_stats.seconds, engines.spark_stats.seconds),
    ):
        ratio = f"{spark_seconds / local_seconds:.2f}"
        lines.append((name, f"{local_seconds:,.1f} s", f"{spark_seconds:,.1f} s", ratio))
    return f"""
## Two engines

{events:,} events in traces of {EVENTS_OF_A_TRACE}, on the same two processors in turn, the best of several:
`--jobs 2`, and `--engine spark --master local[2]`. A build of one trace, {engines.start.seconds:,.1f} s, is
subtracted from the build on Spark, as it starts a session. All files are the same byte for byte, and all figures
of `stats`.

{_lines(("", "local", "Spark", "ratio"), lines)}
"""


def _killed_worker(place: Path, log: Path) -> tuple[float, float]:
    """Return the seconds of a build on two workers, and of one in which a worker is killed after half of that time."""
    seconds: list[float] = []
    for index in range(2):
        with spark_cluster.master() as url, ExitStack() as stack:
            nodes = [stack.enter_context(spark_cluster.worker(url, place / f"node-{index}-{n}")) for n in range(2)]
            settings = [word for setting in spark_cluster.LOOPBACK for word in ("--spark-conf", setting)]
            words = (*DATASET, "build", str(log), "-o", str(place / f"killed-{index}"), "--engine", "spark")
            begin = time.perf_counter()
            with subprocess.Popen((*words, "--master", url, *settings), stderr=subprocess.DEVNULL) as process:
                if seconds:
                    time.sleep(seconds[0] / 2)
                    nodes[0].kill()
            seconds.append(time.perf_counter() - begin)
            if process.returncode:
                raise RuntimeError(f"a build on two workers ended with status {process.returncode}")
    return seconds[0], seconds[1]


PEAKS = """
import os, resource, sys
from pathlib import Path
from orchtrace_corpus.cli.main import run

code = run(sys.argv[1:])
java = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
peaks = [line.split()[1] for one in java for line in open(f"/proc/{one}/status") if line.startswith("VmHWM")]
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + sum(map(int, peaks))) // 1024)
sys.exit(code)
"""
"""Runs a command, and prints the peak memory of its process and of those that it has started, in MiB."""


def _driver_mib(place: Path, events: int) -> int:
    """Return the memory of the driver of a build on Spark, in MiB."""
    log, folder = place / "many.jsonl", place / "many"
    _synthesize(log, EVENTS_OF_A_TRACE, events // EVENTS_OF_A_TRACE)
    peak = _output((sys.executable, "-c", PEAKS, *DATASET[1:], "build", str(log), "-o", str(folder), *ON_SPARK))
    shutil.rmtree(folder)
    return int(peak)


def _parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.parquet"))


def _against(one: Run, other: Run) -> str:
    return f"{one.seconds:.2f} s and {one.peak_mib:.0f} MiB against {other.seconds:.2f} s and {other.peak_mib:.0f} MiB"


def _small_traces(place: Path, events: int) -> Row:
    log = place / "traces.jsonl"
    _synthesize(log, EVENTS_OF_A_TRACE, max(events // EVENTS_OF_A_TRACE, 1))
    return _measured(f"traces of {EVENTS_OF_A_TRACE} events", place, log)


def _one_trace(place: Path, events: int) -> Row:
    log = place / "trace.json"
    _synthesize(log, events, 1)
    return _measured("one trace", place, log)


def _logs(place: Path, megabytes: int) -> Row:
    script = str(ROOT / "scripts" / "synthesize_logs.py")
    run((sys.executable, script, "claude_code", str(megabytes), str(place / "logs")))
    return _measured("logs of Claude Code", place, place / "logs")


def _files(place: Path, number: int) -> Row:
    for session in range(number):
        name = f"{session:08x}-0000-4000-8000-000000000000"
        shared = {"sessionId": name, "isSidechain": False, "version": "2.1.0"}
        usage = {"input_tokens": session, "output_tokens": 3}
        answer = {"id": f"m{session}", "role": "assistant", "model": "small", "usage": usage,
                  "content": [{"type": "text", "text": "Done."}]}  # fmt: skip
        rows = [
            {"type": "user", "uuid": "u", "parentUuid": None, "timestamp": "2026-05-01T10:00:00.000Z", **shared,
             "message": {"role": "user", "content": f"Question {session}"}},
            {"type": "assistant", "uuid": "a", "parentUuid": "u", "timestamp": "2026-05-01T10:00:05.000Z", **shared,
             "message": answer},
        ]  # fmt: skip
        path = place / "files" / f"{session % 100:02}" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return _measured("sessions of two records, a file each", place, place / "files")


def _measured(what: str, place: Path, log: Path, rounds: int = 1) -> Row:
    """Build a dataset, describe it, and remove it and what it was made of.

    Raises:
        RuntimeError: The plain loop finds other figures.
    """
    folder = place / "dataset"
    build = run((*DATASET, "build", str(log), "-o", str(folder)))
    again = run((*DATASET, "build", str(log), "-o", str(folder)))
    stats = min(run((*DATASET, "stats", str(folder), "--format", "json")) for _ in range(rounds))
    counted = json.loads(_output((*DATASET, "stats", str(folder), "--format", "json")))
    numbers = {row["what"]: row["number"] for row in counted["overview"]}
    plain = None
    if numbers["events"] <= MAX_LOOP_EVENTS + EVENTS_OF_A_TRACE:
        plain = min(run((*PLAIN, str(folder))) for _ in range(rounds))
        if json.loads(_output((*PLAIN, str(folder)))) != counted:
            raise RuntimeError("the plain loop finds other figures")
    row = Row(what, numbers["events"], numbers["traces"], _size(log), _size(folder), build, again, stats, plain)
    shutil.rmtree(folder)
    if log.is_dir():
        shutil.rmtree(log)
    else:
        log.unlink()
    return row


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _size(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return path.stat().st_size


def _synthesize(path: Path, events: int, traces: int) -> None:
    script = str(ROOT / "scripts" / "synthesize_traces.py")
    run((sys.executable, script, str(events), str(path), "--traces", str(traces)))


def document(many: Sequence[Row], single: Sequence[Row], others: Sequence[Row]) -> str:
    """Return the measurements as docs/scale.md."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    machine = (
        f"{platform.python_implementation()} {platform.python_version()}, {cores} processors, {platform.machine()}"
    )
    libraries = ", ".join(f"{name} {version(name)}" for name in ("duckdb", "ibis-framework", "pyarrow"))
    first, last = many[0], many[-1]
    per_event = (last.build.seconds - first.build.seconds) / max(last.events - first.events, 1)
    traces = max(last.traces - first.traces, 1)
    per_trace = (last.stats.seconds - first.stats.seconds) / traces
    held = (last.stats.peak_mib - first.stats.peak_mib) / traces
    stored, written = last.tables_size / last.events, last.input_size / last.events
    extrapolated = [
        ("build", *(_hours(events * per_event) for events in _EXTRAPOLATED)),
        ("tables", *(f"{events * stored / 1e9:.1f} GB" for events in _EXTRAPOLATED)),
        ("statistics, time", *(_hours(events / EVENTS_OF_A_TRACE * per_trace) for events in _EXTRAPOLATED)),
        ("statistics, memory", *(f"{events / EVENTS_OF_A_TRACE * held / 1024:.1f} GiB" for events in _EXTRAPOLATED)),
    ]
    return f"""# Scale

What one machine can do with [datasets](dataset.md), measured by `python scripts/bench_dataset.py > docs/scale.md`.
All inputs are synthetic, every command is a fresh process, and memory is that of the largest process.
{machine}; {libraries}.

## Many small traces

{_table(many)}

`nothing new` is the same build again. `loop` is a plain Python loop that computes the figures of `stats` row by row;
each run checks that both agree. It is left out where it would take minutes.

- **Building grows with the events:** {1e6 * per_event:.0f} µs each, start-up left out, with all processors at work.
  Most of it is the graph: rules checked, measures, labels. Memory does not grow with the number of traces.
- **Statistics grow with the traces:** {1e6 * per_trace:.0f} µs and {1024 * held:.1f} KiB for each, since quantiles
  need every value of every measure at once.
- **Tables** take {stored:.0f} bytes for each event, against {written:.0f} of JSON. Synthetic traces are repetitive;
  tables of real ones are larger.

## One large trace

{_table(single)}

A trace is held in memory as a whole, and read by one process, since the graph is one piece.

## Logs

{_table(others)}

A log is mostly contents, which a dataset does not keep. Each file costs time: before anything is read, one process
finds all files and looks at their beginnings.

## Where one machine ends

Extrapolated from the figures above for traces of {EVENTS_OF_A_TRACE} events, not measured:

{_lines(("", *(f"10^{len(str(events)) - 1} events" for events in _EXTRAPOLATED)), extrapolated)}

- Building has no limit but time; Spark spreads it over several machines ([dataset.md](dataset.md#on-a-cluster)).
- Statistics need the values of all measures of all traces in memory at once. `sql` can ask for one measure
  at a time; beyond that, `--engine spark` computes the same figures.
- A single trace must fit into memory: {_kib(single)} for each event.
"""


def _kib(single: Sequence[Row]) -> str:
    if len(single) < 2:
        return "a few KiB"
    first, last = single[0], single[-1]
    return f"{1024 * (last.build.peak_mib - first.build.peak_mib) / (last.events - first.events):.1f} KiB"


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{max(seconds, 1) / 60:.1f} min"


def _table(rows: Sequence[Row]) -> str:
    columns = (
        "input",
        "events",
        "traces",
        "size",
        "tables",
        "build",
        "memory",
        "nothing new",
        "stats",
        "memory",
        "loop",
    )
    lines = [
        (
            row.what,
            f"{row.events:,}",
            f"{row.traces:,}",
            f"{row.input_size / 1e6:,.1f} MB",
            f"{row.tables_size / 1e6:,.1f} MB",
            f"{row.build.seconds:,.1f} s",
            f"{row.build.peak_mib:,.0f} MiB",
            f"{row.again.seconds:,.1f} s",
            f"{row.stats.seconds:,.1f} s",
            f"{row.stats.peak_mib:,.0f} MiB",
            f"{row.plain.seconds:,.1f} s" if row.plain else "",
        )
        for row in rows
    ]
    return _lines(columns, lines)


def _lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ("---", *("---:" for _ in columns[1:]))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (columns, rule, *rows))


if __name__ == "__main__":
    main()
