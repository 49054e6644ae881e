"""Traces for tests: built by hand from a few words, or drawn at random, always sound."""

import json
from typing import Any

from hypothesis import strategies as st

from orchtrace_corpus.trace import rules
from orchtrace_corpus.trace.model.decode import Document, decode
from orchtrace_corpus.trace.model.trace import Trace
from tests.conftest import ROOT

EXAMPLES = sorted((ROOT / "data" / "traces").glob("*.json"))


def event(name: str, t: float, kind: str, agent: str, **more: Any) -> dict[str, Any]:
    """An event as JSON has it; `sender` stands for `from`."""
    return {
        "id": name,
        "t": t,
        "type": kind,
        "agent": agent,
        **{{"sender": "from"}.get(k, k): v for k, v in more.items()},
    }


def raw(events: list[dict[str, Any]], edges: str = "", **more: Any) -> dict[str, Any]:
    """A trace as JSON has it. `edges` is words such as `a>b` (causal) or `a>b:return`."""
    pairs = []
    for word in edges.split():
        ends, _, kind = word.partition(":")
        source, _, target = ends.partition(">")
        pairs.append({"src": source, "dst": target, "type": kind or "causal"})
    reasons = {"costs.tokens": "Made for a test.", "costs.wall_clock_s": "Made for a test."}
    return {
        "trace_id": "t", "task_id": "k", "events": events, "edges": pairs, "rewards": {},
        "costs": {"tokens": None, "wall_clock_s": None}, "reasons": reasons, **more,
    }  # fmt: skip


def trace(document: dict[str, Any]) -> Trace:
    """The trace, which must be without errors."""
    decoded = decode(Document(json.dumps(document).encode(), "trace.json"))
    errors = [str(finding) for finding in rules.check(decoded) if finding.severity == "error"]
    assert decoded.trace is not None, decoded.findings
    assert errors == []
    return decoded.trace


def example(name: str) -> Trace:
    """One of the traces in data/traces."""
    return trace(json.loads((ROOT / "data" / "traces" / f"{name}.json").read_text(encoding="utf-8")))


_KINDS = ["inference", "orchestrator_decision", "tool_call", "message", "aggregate", "return", "human_intervention"]


@st.composite
def documents(draw: st.DrawFn, prefix: str = "") -> dict[str, Any]:
    """Sound traces of a few agents, every event with an end, edges forward in time."""
    number = draw(st.integers(1, 14))
    events = []
    for place in range(number):
        kind = draw(st.sampled_from(_KINDS))
        start = draw(st.integers(0, 12))
        long = 0 if kind == "return" else draw(st.integers(0, 6))
        one = event(
            f"{prefix}e{place}", start, kind, prefix + draw(st.sampled_from(["a", "b", "c", "d"])), t_end=start + long
        )
        if draw(st.booleans()):
            one["tokens"] = {"input": draw(st.integers(0, 50)), "output": draw(st.integers(0, 50))}
        if kind == "message":
            one["to"] = prefix + draw(st.sampled_from(["a", "b", "c", "d"]))
        events.append(one)
    ordered = sorted(range(number), key=lambda place: (events[place]["t"], place))
    edges = []
    for place, target in enumerate(ordered):
        wanted = draw(st.lists(st.sampled_from(ordered[:place]), max_size=2, unique=True)) if place else []
        sources = wanted or (ordered[place - 1 : place] if events[target]["type"] == "aggregate" else [])
        edges += [{"src": events[s]["id"], "dst": events[target]["id"], "type": "causal"} for s in sources]
    if events[ordered[0]]["type"] == "aggregate":
        events[ordered[0]]["type"] = "inference"
    return {**raw(events), "edges": edges}
