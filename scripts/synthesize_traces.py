"""Write valid made-up traces, to test speed and scale.

    python scripts/synthesize_traces.py 1000000 /tmp/one.json            # one trace of a million events
    python scripts/synthesize_traces.py 20 /tmp/many.jsonl --traces 1000 # a trace on each line

The same numbers and seed give the same bytes.
"""

import argparse
import json
import random
from array import array
from pathlib import Path
from typing import Any

WORKERS = 3
ROUND = 6 * WORKERS + 1


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("events", type=int, help="how many events each trace has")
    parser.add_argument("file", type=Path, help="the file to write")
    parser.add_argument("--traces", type=int, default=1, help="how many traces, one on each line")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--arrays", action="store_true", help="write the graph of one trace as numbers instead")
    arguments = parser.parse_args()
    if arguments.arrays:
        write_arrays(arguments.file, arguments.events, arguments.seed)
    else:
        write(arguments.file, arguments.events, arguments.traces, arguments.seed)


def write(path: Path, events: int, traces: int = 1, seed: int = 1) -> None:
    """Write traces with a number of events each, one on each line."""
    chance = random.Random(seed)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for index in range(traces):
            file.write(json.dumps(trace(f"run-{index}", events, chance)) + "\n")


def write_arrays(path: Path, events: int, seed: int = 1) -> None:
    """Write the graph of a trace as arrays: PATH.sources, PATH.targets (int64), PATH.works (double, by event).

    One more event, of no work, has an edge to the first, so that all work lies at the end of some edge.
    """
    made_up = trace("run-0", events, random.Random(seed))
    numbers = {event["id"]: index for index, event in enumerate(made_up["events"])}
    sources = array("q", [events, *(numbers[edge["src"]] for edge in made_up["edges"])])
    targets = array("q", [numbers["e0"], *(numbers[edge["dst"]] for edge in made_up["edges"])])
    works = array("d", [event.get("t_end", event["t"]) - event["t"] for event in made_up["events"]] + [0])
    for name, values in ((".sources", sources), (".targets", targets), (".works", works)):
        path.with_suffix(name).write_bytes(values.tobytes())


def trace(name: str, events: int, chance: random.Random) -> dict[str, Any]:
    """Return a run: a lead spawns workers, waits for all of them and merges their results, again and again.

    Args:
        name: The id of the run.
        events: The number of events, at least one.
        chance: The source of random durations and numbers of tokens.
    """
    draft = _Draft(chance)
    before = draft.add("orchestrator_decision", "lead", 0, chance.randint(1, 4), [])
    worker_count = 0
    while len(draft.events) + ROUND <= events:
        start = draft.end(before)
        returns = []
        for _ in range(WORKERS):
            worker_count += 1
            returns.append(draft.worker(f"w{worker_count}", before, start))
        latest = max(draft.end(index) for index in returns)
        sources = [(index, "return") for index in returns]
        before = draft.add("aggregate", "lead", latest, chance.randint(1, 4), sources)
    while len(draft.events) < events:
        before = draft.add("inference", "lead", draft.end(before), chance.randint(1, 4), [(before, "causal")])
    return draft.document(name)


class _Draft:
    """Builds a trace."""

    def __init__(self, chance: random.Random) -> None:
        self.events: list[dict[str, Any]] = []
        self._edges: list[dict[str, str]] = []
        self._chance = chance

    def end(self, index: int) -> int:
        event = self.events[index]
        return int(event.get("t_end", event["t"]))

    def add(
        self, kind: str, agent: str, start: int, duration: int, sources: list[tuple[int, str]], **fields: Any
    ) -> int:
        """Add an event with edges from its sources, given by index and type, and return its index."""
        event = {"id": f"e{len(self.events)}", "t": start, "type": kind, "agent": agent, **fields}
        if duration:
            event["t_end"] = start + duration
        if kind in ("orchestrator_decision", "inference", "aggregate", "message"):
            event["tokens"] = {"input": self._chance.randint(100, 4000), "output": self._chance.randint(10, 900)}
            event["token_basis"] = "reported"
        self.events.append(event)
        for source, edge in sources:
            self._edges.append({"src": self.events[source]["id"], "dst": event["id"], "type": edge})
        return len(self.events) - 1

    def worker(self, name: str, before: int, start: int) -> int:
        """Add the six events of a worker, and return the index of its return."""
        think, call = self._chance.randint(1, 9), self._chance.randint(1, 9)
        spawn = self.add("spawn", "lead", start, 0, [(before, "causal")], to=name, role="worker")
        thought = self.add("inference", name, start, think, [(spawn, "spawn")], model="small")
        called = self.add("tool_call", name, start + think, call, [(thought, "causal")], tool="search",
                          call_id=f"c{name}", content_ref=f"h{self._chance.randint(1, 50)}")  # fmt: skip
        result = self.add("tool_result", name, start + think + call, 0, [(called, "tool_dependency")],
                          call_id=f"c{name}", status="ok")  # fmt: skip
        message = self.add("message", name, start + think + call, 1, [(result, "causal")], to="lead")
        return self.add("return", name, start + think + call + 1, 0, [(message, "causal")], to="lead")

    def document(self, name: str) -> dict[str, Any]:
        """Return the trace, with its events sorted by time."""
        kinds = [event["type"] for event in self.events]
        spent = sum(sum(event["tokens"].values()) for event in self.events if "tokens" in event)
        return {
            "trace_id": name,
            "task_id": "made-up",
            "topology": "centralized",
            "events": sorted(self.events, key=lambda event: event["t"]),
            "edges": self._edges,
            "rewards": {"team": 1.0},
            "costs": {
                "tokens": spent,
                "wall_clock_s": max(map(self.end, range(len(self.events)))),
                "tool_calls": kinds.count("tool_call"),
                "messages": kinds.count("message"),
            },
        }


if __name__ == "__main__":
    main()
