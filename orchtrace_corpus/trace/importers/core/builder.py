"""Collects the events of a run while a log is read, and makes a trace of them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from operator import lt
from types import MappingProxyType
from typing import Any

from orchtrace_corpus.trace.importers.core.cycles import closing_edges
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.report import Report
from orchtrace_corpus.trace.view.graph import CycleError, sort_topologically

NO_TOKENS = "No model call of the log reports its usage."
NO_TIME = "No event of the log has a time."
_NO_FIELDS: Mapping[str, Any] = MappingProxyType({})


class Builder:
    """A trace in the making. Times are seconds since 1970; the trace begins at its first event.

    Attributes:
        report: What became of the log's records.
        privacy: How contents are referred to.
    """

    def __init__(
        self, trace_id: str, task_id: str, *, system: str, form: str, version: str, privacy: Privacy, report: Report
    ) -> None:
        self.report = report
        self.privacy = privacy
        self._head = {"trace_id": trace_id, "task_id": task_id, "system": system}
        self._origin = {"format": form, "version": version} if version else {"format": form}
        self._events: dict[str, dict[str, Any]] = {}
        self._edges: dict[tuple[str, str, str], None] = {}
        self._agents: dict[str, dict[str, str]] = {}

    def event(
        self,
        kind: str,
        agent: str,
        time: float | None,
        fields: Mapping[str, Any] = _NO_FIELDS,
        *,
        file: str,
        line: int,
        end: float | None = None,
    ) -> str:
        """Add an event and return its id.

        Args:
            kind: Its type, as the schema names it.
            agent: The agent that acts.
            time: When it began; None takes the time of the event before it, and notes a problem.
            fields: Further fields of the schema; empty, false and None ones are left out.
            file: The file of the log that it comes from.
            line: The line.
            end: When it ended.
        """
        name = f"e{len(self._events) + 1}"
        if time is None:
            time = next(reversed(self._events.values()))["t"] if self._events else 0.0
            self.report.problem("event without a time: that of the one before it is taken", f"{file}:{line}")
        event: dict[str, Any] = {"id": name, "t": time, "type": kind, "agent": agent}
        if end is not None:
            event["t_end"] = max(end, time)
        event |= {field: value for field, value in fields.items() if value}
        event["source"] = {"file": file, "line": line, **self._origin}
        self._events[name] = event
        return name

    def __len__(self) -> int:
        return len(self._events)

    def amend(self, name: str, **fields: Any) -> None:
        """Give an event further fields, or others: an end that is known later, tokens from a better source."""
        for field, value in fields.items():
            if value is not None:
                self._events[name]["t_end" if field == "end" else field] = value

    def get(self, name: str) -> dict[str, Any]:
        """An event's fields so far; `t` and `t_end` still count from 1970."""
        return self._events[name]

    def edge(self, source: str, target: str, kind: str) -> None:
        """Say that an event depends on another; the same again is the same."""
        if source and target and source != target:
            self._edges[source, target, kind] = None

    def agent(self, name: str, **fields: str) -> None:
        """Declare an agent, or say more of it: role, model, parent, kind."""
        known = self._agents.setdefault(name, {"id": name})
        known.update({field: masked(value) for field, value in fields.items() if value})

    def trace(
        self, *, topology: str = "unknown", costs: dict[str, float] | None = None, unknown: str = ""
    ) -> dict[str, Any]:
        """The finished trace, as JSON has it, its events by time.

        Totals that the log states itself go before the sums of the events, unless they are smaller.

        Args:
            topology: How the agents are arranged.
            costs: Totals that the log states.
            unknown: Why the events do not have all tokens of the run, so that their sum is not its total.
        """
        events = sorted(self._events.values(), key=lambda event: (event["t"], event["type"] != "spawn"))
        zero = events[0]["t"] if events else 0.0
        last = max([event.get("t_end", event["t"]) for event in events], default=zero)
        for event in events:
            event["t"] = round(event["t"] - zero, 6)
            if "t_end" in event:
                event["t_end"] = round(event["t_end"] - zero, 6)
        edges = list(self._forward_edges())
        events = _settled(events, edges)
        for place, event in enumerate(events):
            event["seq"] = place
        totals = _totals(events)
        counts = Counter([event["type"] for event in events if "copied_context" not in event])
        spent = [_sum(kinds) for kinds in totals["agent"].values()]
        stated = costs or {}
        known = max(sum(spent), stated.get("tokens", 0)) if spent or "tokens" in stated else None
        if lost := self._lost():
            unknown = f"{unknown.rstrip('.')}; {lost}" if unknown else lost
        tokens = None if unknown else known
        reasons = {} if tokens is not None else {"costs.tokens": unknown or NO_TOKENS}
        return {
            **self._head,
            "topology": topology,
            "clock": {"unit": "s", **({"epoch": _instant(zero)} if zero > 0 else {})},
            "agents": list(self._agents.values()),
            "events": events,
            "edges": edges,
            "rewards": {},
            "costs": {
                "tokens": tokens,
                "wall_clock_s": round(last - zero, 6),
                "tool_calls": counts["tool_call"],
                "messages": counts["message"],
            },
            **({"reasons": reasons} if reasons else {}),
            "import_report": {**self.report.as_data(), "token_totals": totals},
        }

    def _lost(self) -> str:
        """What is missing of the log, so that tokens may be missing."""
        lost = self.report.lost
        return f"{lost:,} {'line' if lost == 1 else 'lines'} could not be read, which may have reported tokens" * (
            lost > 0
        )

    def _forward_edges(self) -> Iterator[dict[str, str]]:
        """The edges, without those that the log's own times contradict, and without circles at one instant."""
        forward, same = [], []
        for edge in self._edges:
            source, target, _ = edge
            begin, end = self._events[source]["t"], self._events[target]["t"]
            if end < begin:
                self.report.problem("dependency against the order of time: left out", f"{source} -> {target}")
                continue
            forward.append(edge)
            if end == begin:
                same.append(edge)
        closing = closing_edges(same)
        for edge in forward:
            source, target, kind = edge
            if closing and edge in closing:
                self.report.problem("dependency in a circle at one instant: left out", f"{source} -> {target}")
            else:
                yield {"src": source, "dst": target, "type": kind}


def _settled(events: list[dict[str, Any]], edges: Sequence[Mapping[str, str]]) -> list[dict[str, Any]]:
    """The events by time, those of one instant so that edges lead forward and each agent keeps the order of its log.

    Where both cannot be had, edges count.
    """
    places = {event["id"]: place for place, event in enumerate(events)}
    sources, targets = ([places[edge[end]] for edge in edges] for end in ("src", "dst"))
    if all(map(lt, sources, targets)):
        return events
    last: dict[str, int] = {}
    rows = []
    for place, event in enumerate(events):
        before = last.get(event["agent"], place)
        if before < place and events[before]["t"] == event["t"]:
            rows.append((before, place))
        last[event["agent"]] = place
    timely = range(len(events))
    try:
        followed = [*sources, *(before for before, _ in rows)], [*targets, *(place for _, place in rows)]
        order = sort_topologically(*followed, timely, timely)
    except CycleError:
        order = sort_topologically(sources, targets, timely, timely)
    return [events[place] for place in order]


def seconds(text: Any) -> float | None:
    """An ISO 8601 instant, in UTC unless it says otherwise, or a number, as seconds since 1970; None for neither."""
    if isinstance(text, str):
        try:
            moment = datetime.fromisoformat(text)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    return float(text) if isinstance(text, (int, float)) and not isinstance(text, bool) else None


def _instant(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z")


def _sum(tokens: dict[str, float]) -> float:
    return sum(tokens.get(kind) or 0 for kind in ("input", "output", "cache_read", "cache_write"))


def _totals(events: Iterable[dict[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """The tokens counted, by agent and by model, each by kind."""
    both: dict[tuple[str, str], dict[str, float]] = {}
    for event in events:
        if "tokens" in event and not event.get("copied_context"):
            _add(both.setdefault((event["agent"], event.get("model", "")), {}), event["tokens"])
    totals: dict[str, dict[str, dict[str, float]]] = {"agent": {}, "model": {}}
    for (agent, model), kinds in both.items():
        _add(totals["agent"].setdefault(agent, {}), kinds)
        _add(totals["model"].setdefault(model, {}), kinds)
    return totals


def _add(known: dict[str, float], more: dict[str, float]) -> None:
    for kind, number in more.items():
        known[kind] = known.get(kind, 0) + (number or 0)
