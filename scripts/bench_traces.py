"""The speed claims about traces; `bench.py` prints them beside the others."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from measured import Claim, Run, run

ROOT = Path(__file__).resolve().parents[1]
TRACE = (str(Path(sys.executable).parent / "corpus"), "trace")
SCHEMA = ROOT / "orchtrace_corpus" / "trace" / "model" / "schema.json"
JSON_ONE = "import json, sys; json.loads(open(sys.argv[1], 'rb').read())"
LOOKUP = """\
import gc, json, sys
gc.disable()
trace = json.loads(open(sys.argv[1], "rb").read())
numbers = {event["id"]: number for number, event in enumerate(trace["events"])}
edges = [(numbers[edge["src"]], numbers[edge["dst"]]) for edge in trace["edges"]]
"""
JSON_LINES = "import json, sys\nfor line in open(sys.argv[1], 'rb'): json.loads(line)"

START_UP_LIMIT = 10.0
SCREEN_LIMIT = 12.0
CHECKER_LIMIT = 1 / 4
VALIDATE_LIMIT = 2.0
VALIDATE_ONE_LIMIT = 1.4
MEASURE_LIMIT = 2.0
REWARD_LIMIT = 2.0  # rewards cost at most as much again
GROWTH_LIMIT = 1.3
PATH_LIMITS = {"networkx": 1.0, "rustworkx": 2.0}  # the latter is compiled

OURS = """\
import gc, sys, time
from orchtrace_corpus.trace.model.decode import decode, documents
from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.timing import longest_path
gc.disable()
(document,) = documents(sys.argv[1])
view = TraceView(decode(document).trace)
view.graph
begin = time.perf_counter()
times = view.timing
length = longest_path(times, times.works, overlapping=True).length
print(time.perf_counter() - begin, length, file=open(sys.argv[2], "w"))
"""
READ_ARRAYS = """\
import gc, sys, time
from array import array
gc.disable()
def read(kind, name):
    found = array(kind)
    with open(sys.argv[1] + name, "rb") as file:
        found.frombytes(file.read())
    return found.tolist()
sources, targets, works = read("q", ".sources"), read("q", ".targets"), read("d", ".works")
begin = time.perf_counter()
"""
WRITE_LENGTH = """\
print(time.perf_counter() - begin, length, file=open(sys.argv[2], "w"))
"""
PEERS = {
    "networkx": READ_ARRAYS
    + """\
import networkx
graph = networkx.DiGraph()
graph.add_weighted_edges_from((s, t, works[t]) for s, t in zip(sources, targets))
length = networkx.dag_longest_path_length(graph)
"""
    + WRITE_LENGTH,
    "rustworkx": READ_ARRAYS
    + """\
import rustworkx
graph = rustworkx.PyDiGraph()
graph.add_nodes_from(range(len(works)))
graph.add_edges_from([(s, t, works[t]) for s, t in zip(sources, targets)])
length = rustworkx.dag_weighted_longest_path_length(graph, lambda s, t, weight: weight)
"""
    + WRITE_LENGTH,
}
"""Programs that find the longest path with other libraries; they are given events by number, and so are we."""


def trace_claims(sizes: tuple[int, int], traces: int, rounds: int, peers: Path) -> Iterator[Claim]:
    """All claims about traces.

    Args:
        sizes: Events of a middling and of a large trace.
        traces: How many small traces there are in a file of JSON Lines.
        rounds: Fresh processes for each start-up measurement.
        peers: The environment that check-jsonschema, networkx and rustworkx are installed in; claims against
            those that are not there are left out.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield from _small(folder, rounds, peers)
        yield from _large(folder, sizes)
        yield from _many(folder, traces)
        yield from _longest_path(folder, max(sizes), peers)


def _small(folder: Path, rounds: int, peers: Path) -> Iterator[Claim]:
    path = folder / "small.json"
    _synthesize(path, 20)
    checker = peers / "bin" / "check-jsonschema"
    commands = {
        "bare": (sys.executable, "-c", "pass"),
        "ours": (*TRACE, "validate", str(path)),
        "screen": (*TRACE, "doctor", str(path)),
    }
    if checker.exists():
        commands["checker"] = (str(checker), "--schemafile", str(SCHEMA), str(path))
    times: dict[str, list[float]] = {which: [] for which in commands}
    for _ in range(rounds):
        for which, command in commands.items():
            times[which].append(run(command).seconds)
    best = {which: min(taken) for which, taken in times.items()}
    for which, peer, limit in (
        ("bare", "the bare interpreter", START_UP_LIMIT),
        ("checker", "`check-jsonschema`", CHECKER_LIMIT),
    ):
        if which in best:
            detail = f"{1000 * best['ours']:.0f} ms against {1000 * best[which]:.1f} ms, minimum of {rounds}"
            ratio = best["ours"] / best[which]
            yield Claim(f"`corpus trace validate`, 20 events, against {peer}", ratio, limit, detail)
    detail = f"{1000 * best['screen']:.0f} ms against {1000 * best['bare']:.1f} ms, minimum of {rounds}"
    ratio = best["screen"] / best["bare"]
    yield Claim("`corpus trace doctor`, 20 events, against the bare interpreter", ratio, SCREEN_LIMIT, detail)


def _large(folder: Path, sizes: tuple[int, int]) -> Iterator[Claim]:
    start_up = _best((*TRACE, "validate", str(folder / "small.json")), 5).seconds
    bare = _best((sys.executable, "-c", "import json"), 5).seconds
    costs = []
    for size in sizes:
        path = folder / f"{size}.json"
        _synthesize(path, size)
        validate, measure = (_best((*TRACE, command, str(path)), 3) for command in ("validate", "measure"))
        lookup = _best((sys.executable, "-c", LOOKUP, str(path)), 3)
        costs.append([(validate.seconds - start_up) / size, (measure.seconds - start_up) / size,
                      (lookup.seconds - bare) / size])  # fmt: skip
        if size == max(sizes):
            plain = _best((sys.executable, "-c", JSON_ONE, str(path)), 3)
            yield from _against_json(f"{size:,} events in one trace", validate, measure, plain, VALIDATE_ONE_LIMIT)
    growths = [large / small for small, large in zip(*costs, strict=True)]
    shown = [f"{1e6 * large:.1f} µs against {1e6 * small:.1f} µs" for small, large in zip(*costs, strict=True)]
    for command, growth, detail in zip(("validate", "measure"), growths, shown, strict=False):
        yield Claim(
            f"`corpus trace {command}`, what an event of {sizes[1]:,} costs against one of {sizes[0]:,}, start-up left "
            "out, by the same of merely looking up both ends of each edge after `json.loads`, collector off",
            growth / growths[-1],
            GROWTH_LIMIT,
            f"{detail}, {growth:.2f} times as much; merely looking up {shown[-1]}, {growths[-1]:.2f} times",
        )


def _many(folder: Path, traces: int) -> Iterator[Claim]:
    path = folder / "many.jsonl"
    _synthesize(path, 20, "--traces", str(traces))
    plain = _best((sys.executable, "-c", JSON_LINES, str(path)), 3)
    validate = _best((*TRACE, "validate", str(path)), 3)
    measure = _best((*TRACE, "measure", str(path), "--format", "csv"), 2)
    yield from _against_json(f"{traces:,} traces of 20 events", validate, measure, plain, VALIDATE_LIMIT)
    for what, options in (("every function", ()), ("a design of three terms", ("--spec", "kimi-k2-5"))):
        rewards = _best((*TRACE, "reward", str(path), "--format", "csv", *options), 2)
        yield Claim(
            f"`corpus trace reward`, {traces:,} traces of 20 events, {what}, against `corpus trace measure`",
            rewards.seconds / measure.seconds,
            REWARD_LIMIT,
            f"{rewards.seconds:.2f} s and {rewards.peak_mib:.0f} MiB against {measure.seconds:.2f} s and "
            f"{measure.peak_mib:.0f} MiB",
        )


def _against_json(what: str, validate: Run, measure: Run, plain: Run, limit: float) -> Iterator[Claim]:
    """Claims about validating and measuring a file, against `json.loads` alone on the same bytes."""
    base = f"{plain.seconds:.2f} s and {plain.peak_mib:.0f} MiB"
    yield Claim(
        f"`corpus trace validate`, {what}, against `json.loads` alone",
        validate.seconds / plain.seconds,
        limit,
        f"{validate.seconds:.2f} s and {validate.peak_mib:.0f} MiB against {base}",
    )
    yield Claim(
        f"`corpus trace measure`, {what}, beyond validating them, against `json.loads` alone",
        (measure.seconds - validate.seconds) / plain.seconds,
        MEASURE_LIMIT,
        f"{measure.seconds:.2f} s in all and {measure.peak_mib:.0f} MiB against {base}",
    )


def _longest_path(folder: Path, size: int, peers: Path) -> Iterator[Claim]:
    """The critical path of a large trace against other libraries, which must find the same length."""
    _synthesize(folder / "graph", size, "--arrays")
    python = str(peers / "bin" / "python")
    ours = _path_of((sys.executable, "-c", OURS, str(folder / f"{size}.json")), folder)
    if ours is None:
        raise RuntimeError("the critical path was not found")
    for name, program in PEERS.items():
        theirs = _path_of((python, "-c", program, str(folder / "graph")), folder)
        if theirs is None:
            continue
        if abs(theirs[1] - ours[1]) > 1e-6 * ours[1]:
            raise RuntimeError(f"{name} finds a path of {theirs[1]}, and we one of {ours[1]}")
        yield Claim(
            f"critical path of {size:,} events, given by number, against {name} on the same graph",
            ours[0] / theirs[0],
            PATH_LIMITS[name],
            f"{ours[0]:.2f} s and {ours[2]:.0f} MiB against {theirs[0]:.2f} s and {theirs[2]:.0f} MiB",
        )


def _path_of(command: tuple[str, ...], folder: Path) -> tuple[float, float, float] | None:
    """Seconds, length and peak MiB that a program finds the longest path with; None where it cannot run."""
    found = folder / "path.txt"
    best: tuple[float, float, float] | None = None
    for _ in range(2):
        try:
            spent = run((*command, str(found)))
        except (RuntimeError, FileNotFoundError):
            return None
        seconds, length = map(float, found.read_text(encoding="utf-8").split())
        if best is None or seconds < best[0]:
            best = seconds, length, spent.peak_mib
    return best


def _synthesize(path: Path, events: int, *options: str) -> None:
    """Write made-up traces in a process of their own: a child's peak memory begins with that of its parent."""
    run((sys.executable, str(ROOT / "scripts" / "synthesize_traces.py"), str(events), str(path), *options))


def _best(command: tuple[str, ...], rounds: int) -> Run:
    return min(run(command) for _ in range(rounds))
