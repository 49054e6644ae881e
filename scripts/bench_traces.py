"""The speed claims about traces; `bench.py` prints them beside the others."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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
"""Programs that find the longest path with other libraries. All programs get the events of the graph by index."""


def trace_claims(sizes: tuple[int, int], traces: int, rounds: int, peers: Path) -> Iterator[Claim]:
    """Yield all claims about traces.

    Args:
        sizes: The numbers of events in a middling and in a large trace.
        traces: The number of small traces in a file of JSON Lines.
        rounds: The number of fresh processes for each measurement of the start.
        peers: The environment that has check-jsonschema, networkx and rustworkx; comparisons with those that are not
            installed are left out.
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
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            times[name].append(run(command).seconds)
    best = {name: min(seconds) for name, seconds in times.items()}
    for name, peer, limit in (
        ("bare", "the bare interpreter", START_UP_LIMIT),
        ("checker", "`check-jsonschema`", CHECKER_LIMIT),
    ):
        if name in best:
            detail = f"{1000 * best['ours']:.0f} ms against {1000 * best[name]:.1f} ms, minimum of {rounds}"
            ratio = best["ours"] / best[name]
            yield Claim(f"`corpus trace validate`, 20 events, against {peer}", ratio, limit, detail)
    detail = f"{1000 * best['screen']:.0f} ms against {1000 * best['bare']:.1f} ms, minimum of {rounds}"
    ratio = best["screen"] / best["bare"]
    yield Claim("`corpus trace doctor`, 20 events, against the bare interpreter", ratio, SCREEN_LIMIT, detail)


def _large(folder: Path, sizes: tuple[int, int]) -> Iterator[Claim]:
    start_up = _best((*TRACE, "validate", str(folder / "small.json")), 5).seconds
    bare = _best((sys.executable, "-c", "import json"), 5).seconds
    # The seconds for each event, in the small trace and then in the large one, without the start of the process.
    event_costs: dict[str, list[float]] = {"validate": [], "measure": [], "lookup": []}
    for size in sizes:
        path = folder / f"{size}.json"
        _synthesize(path, size)
        validate = _best((*TRACE, "validate", str(path)), 3)
        measure = _best((*TRACE, "measure", str(path)), 3)
        lookup = _best((sys.executable, "-c", LOOKUP, str(path)), 3)
        event_costs["validate"].append((validate.seconds - start_up) / size)
        event_costs["measure"].append((measure.seconds - start_up) / size)
        event_costs["lookup"].append((lookup.seconds - bare) / size)
        if size == max(sizes):
            plain = _best((sys.executable, "-c", JSON_ONE, str(path)), 3)
            yield from _against_json(f"{size:,} events in one trace", validate, measure, plain, VALIDATE_ONE_LIMIT)
    growths = {}
    details = {}
    for name, (small, large) in event_costs.items():
        growths[name] = large / small
        details[name] = f"{1e6 * large:.1f} µs against {1e6 * small:.1f} µs"
    for command in ("validate", "measure"):
        yield Claim(
            f"`corpus trace {command}`, what an event of {sizes[1]:,} costs against one of {sizes[0]:,}, start-up left "
            "out, by the same of merely looking up both ends of each edge after `json.loads`, collector off",
            growths[command] / growths["lookup"],
            GROWTH_LIMIT,
            f"{details[command]}, {growths[command]:.2f} times as much; "
            f"merely looking up {details['lookup']}, {growths['lookup']:.2f} times",
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
    """Yield the claims about validating and measuring a file, compared with `json.loads` alone on the same bytes."""
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
    """Yield the claims about the critical path of a large trace, compared with other libraries.

    Raises:
        RuntimeError: A library finds another length.
    """
    _synthesize(folder / "graph", size, "--arrays")
    python = str(peers / "bin" / "python")
    own = _path_cost((sys.executable, "-c", OURS, str(folder / f"{size}.json")), folder)
    if own is None:
        raise RuntimeError("the critical path was not found")
    for name, program in PEERS.items():
        peer = _path_cost((python, "-c", program, str(folder / "graph")), folder)
        if peer is None:
            continue
        if abs(peer.length - own.length) > 1e-6 * own.length:
            raise RuntimeError(f"{name} finds a path of {peer.length}, and we one of {own.length}")
        yield Claim(
            f"critical path of {size:,} events, given by number, against {name} on the same graph",
            own.seconds / peer.seconds,
            PATH_LIMITS[name],
            f"{own.seconds:.2f} s and {own.peak_mib:.0f} MiB against {peer.seconds:.2f} s and {peer.peak_mib:.0f} MiB",
        )


class _PathCost(NamedTuple):
    """The cost of finding the longest path of a graph: seconds and peak MiB; and the length of the path."""

    seconds: float
    length: float
    peak_mib: float


def _path_cost(command: tuple[str, ...], folder: Path) -> _PathCost | None:
    """Return the cost of a program that finds the longest path, the best of two runs; None if it cannot run."""
    output = folder / "path.txt"
    paths = []
    for _ in range(2):
        try:
            cost = run((*command, str(output)))
        except (RuntimeError, FileNotFoundError):
            return None
        seconds, length = map(float, output.read_text(encoding="utf-8").split())
        paths.append(_PathCost(seconds, length, cost.peak_mib))
    return min(paths)


def _synthesize(path: Path, events: int, *options: str) -> None:
    """Write made-up traces in a process of their own: a child's peak memory begins with that of its parent."""
    run((sys.executable, str(ROOT / "scripts" / "synthesize_traces.py"), str(events), str(path), *options))


def _best(command: tuple[str, ...], rounds: int) -> Run:
    return min(run(command) for _ in range(rounds))
