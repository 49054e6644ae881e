"""The tables of a run for its HTML page, with links to events."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.diagnosis import has_statuses
from orchtrace_corpus.trace.diagnosis.values import Diagnosis, ProblemKind
from orchtrace_corpus.trace.measures.definitions import measure
from orchtrace_corpus.trace.measures.ledger import KINDS, ledger
from orchtrace_corpus.trace.model.events import total
from orchtrace_corpus.trace.model.import_report import report_of
from orchtrace_corpus.trace.model.terms import EventType, Status
from orchtrace_corpus.trace.model.trace import Event, Source
from orchtrace_corpus.trace.render import measures as render
from orchtrace_corpus.trace.render.ledger import KINDS as KIND_WORDS
from orchtrace_corpus.trace.render.names import UNBREAKABLE, counted, duration, money
from orchtrace_corpus.trace.view.graph import positions

MAX_ROWS = 1000
"""The number of rows of a table on the page; the JSON of `corpus trace doctor` has all rows."""

SHOWN_ROWS = 10
"""The number of rows of a table that are visible at a time; without scripts, these are the first."""

_MAX_LINKS = 5
_ALL = "corpus trace doctor --format json has all."


class Link(NamedTuple):
    """A link to an event: its place in the replay, and its id."""

    place: int
    text: str


class Figure(NamedTuple):
    """A figure as text, and its exact value."""

    text: str
    value: float


class Name(NamedTuple):
    """The name of an agent in a tree, and the number of its ancestors."""

    text: str
    depth: int


Cell: TypeAlias = str | Figure | Name | tuple[Link, ...]


class Table(NamedTuple):
    """A table of the page.

    Attributes:
        title: The title.
        columns: The names of the columns.
        rows: The rows; the first cell is what the row is about.
        notes: Sentences below the table.
        calls: The column by which the script sorts all calls into this table; empty for other tables.
        total: The number of all calls; 0 for other tables.
        is_whole: Whether all rows are visible at once.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    calls: str = ""
    total: int = 0
    is_whole: bool = False

    @property
    def shown(self) -> tuple[tuple[Cell, ...], ...]:
        """The rows that are visible at first."""
        return self.rows if self.is_whole else self.rows[:SHOWN_ROWS]

    @property
    def rest(self) -> tuple[tuple[Cell, ...], ...]:
        """The rows that the script shows on request."""
        return self.rows[len(self.shown) :]


class Tables:
    """The tables of a run.

    Attributes:
        linked: The places in the replay of the events that the tables link to so far.
    """

    def __init__(self, diagnosis: Diagnosis, names: Mapping[str, str]) -> None:
        self._run, self._names = diagnosis, names
        self._events = diagnosis.view.trace.events
        self._places = positions(diagnosis.view.sequence)
        self.linked: set[int] = set()

    def figures(self) -> Table:
        """Return the figures of the run; with open calls, both if they worked and if they only waited."""
        run, summary, path = self._run, self._run.summary, self._run.path
        worked, if_waiting = sum(run.view.timing.works), sum(run.view.timing_if_waiting.works)
        elapsed, known = summary.elapsed, partial(_known, is_least=path.unknown > 0)
        notes = ["Elapsed leaves out the time waited for people."] if run.waited else []
        if path.unknown:
            notes.append(f"{counted(path.unknown, 'call')} without an end: taken as 0 s.")
        rows: list[tuple[Cell, ...]] = [
            ("elapsed", self._time(elapsed), ""),
            ("waited for people", self._time(run.waited), ""),
            ("worked", *(known(self._time(time)) for time in (worked, if_waiting))),
            ("longest path of work", *(known(self._time(span.length)) for span in (path.span, path.span_if_waiting))),
        ]
        if elapsed:
            ratios = worked / elapsed, if_waiting / elapsed
            rows.append(("speed-up", *(known(Figure(f"{ratio:.3g}", ratio)) for ratio in ratios)))
        if (working := run.parallelism) and (waiting := run.parallelism_if_waiting):
            rows.append(
                ("most at once", *map(known, (_count(working.max_concurrency), _count(waiting.max_concurrency))))
            )
            shares = (
                (working.parallel_share, waiting.parallel_share),
                (working.single_share, waiting.single_share),
                (working.idle_share, waiting.idle_share),
            )
            for name, pair in zip(("several at work", "one at work", "nobody at work"), shares, strict=True):
                rows.append((name, *(Figure(f"{share:.1%}", share) for share in pair)))
        rows += [
            ("events", _count(summary.events), ""),
            ("errors", _count(summary.errors) if summary.errors or has_statuses(run.view.trace) else "unknown", ""),
            ("agents", _count(summary.agents), ""),
            ("tokens", _known(_number(summary.tokens), is_least=summary.has_more_tokens), ""),
            ("cost in USD", _known(_money(summary.cost_usd), is_least=summary.costs_more), ""),
        ]
        if run.cost.stated is not None:
            stated = _known(_money(run.cost.stated), is_least=not run.cost.has_all_stated)
            rows.append(("cost in USD that the log states", stated, ""))
        columns: tuple[str, ...] = ("figure", "if open calls worked", "if they only waited")
        if not run.view.open_calls:
            columns, rows = ("figure", "value"), [row[:2] for row in rows]
        return Table("Figures", columns, tuple(rows), tuple(notes), is_whole=True)

    def calls(self) -> Iterator[Table]:
        """Yield the first calls by cost, or by tokens if no cost is known, and by time."""
        works = self._run.view.timing.works
        spent, costs = dict[int, float](), dict[int, float]()
        for index, event in enumerate(self._events):
            if event.tokens and event.tokens.is_known:
                spent[index] = total(event.tokens)
            if event.cost_usd and not event.copied_context:
                costs[index] = event.cost_usd
        calls = [n for n in self._run.view.sequence if works[n] > 0 or spent.get(n) or n in costs]
        has_models = any(self._events[n].model for n in calls)
        is_shown = {"event": True, "agent": True, "what": True, "model": has_models, "begins at": True, "lasts": True,
                    "tokens": any(spent.values()), "USD": bool(costs)}  # fmt: skip
        kept = [place for place, is_kept in enumerate(is_shown.values()) if is_kept]
        columns = tuple(name for name, is_kept in is_shown.items() if is_kept)

        def table(title: str, by: str, order: list[int]) -> Table:
            rows = ((*self._call(n), _number(spent.get(n)), _money(costs.get(n))) for n in order[:SHOWN_ROWS])
            cells = tuple(tuple(row[place] for place in kept) for row in rows)
            return Table(title, columns, cells, calls=by, total=len(calls))

        amounts = costs or spent
        if any(amounts.values()):
            costliest = sorted(calls, key=lambda n: -amounts.get(n, 0.0))
            yield table("Costliest calls", "USD" if costs else "tokens", costliest)
        if any(works):
            yield table("Longest calls", "lasts", sorted(calls, key=lambda n: -works[n]))

    def _call(self, index: int) -> tuple[Cell, ...]:
        event, times = self._events[index], self._run.view.timing
        return (
            self._links([index]), self._name(event.agent), _act(event), printable(event.model, limit=60),
            self._time(times.starts[index] - times.begin), self._time(times.ends[index] - times.starts[index]),
        )  # fmt: skip

    def agents(self) -> Table:
        """Return the tree of agents: the time, tokens and cost of each, and with all agents below it."""
        agents, times, costs = self._run.view.agents, self._run.view.agent_times, dict(self._run.cost.by_agent)
        at_least = self._run.tokens.agents_with_more
        # For each agent: the time worked, tokens, cost, and how many agents have unknown tokens.
        own = [
            (times[agent.agent].worked, agent.tokens, costs.get(agent.agent), float(agent.agent in at_least))
            for agent in agents
        ]
        whole = [list(figures) for figures in own]
        ancestors: list[int] = []
        parents = []
        for place, agent in enumerate(agents):
            del ancestors[agent.depth :]
            parents.append(ancestors[-1] if ancestors else None)
            ancestors.append(place)
        for place in range(len(agents) - 1, -1, -1):
            if (parent := parents[place]) is not None:
                pairs = zip(whole[parent], whole[place], strict=True)
                whole[parent] = [a if b is None else (a or 0.0) + b for a, b in pairs]
        # An agent with all below it worked no more than its parent with all below, so that parents are shown, too.
        most = sorted(range(len(agents)), key=lambda place: (-(whole[place][0] or 0.0), place))[:MAX_ROWS]
        rows: list[tuple[Cell, ...]] = []
        for place in sorted(most):
            agent, time = agents[place], times[agents[place].agent]
            worked_below, tokens_below, cost_below, unknown_below = whole[place]
            is_least, is_least_below = bool(own[place][3]), bool(unknown_below)
            rows.append(
                (
                    Name(self._names[agent.agent], agent.depth),
                    printable(agent.role, limit=60),
                    *map(self._time, (time.elapsed, time.worked, time.waited, time.idle)),
                    self._time(time.open) if time.open else "",
                    _least(_number(agent.tokens), is_least=is_least),
                    _least(_money(costs.get(agent.agent)), is_least=is_least),
                    self._time(worked_below),
                    _least(_number(tokens_below), is_least=is_least_below),
                    _least(_money(cost_below), is_least=is_least_below),
                )
            )
        columns = ("agent", "role", "elapsed", "worked", "waited for agents", "idle", "open calls", "tokens", "USD",
                   "worked, with all below", "tokens, with all below", "USD, with all below")  # fmt: skip
        notes = ["Worked, waited for agents (doing nothing while one below works) and idle add up to elapsed."]
        if any(spent.open for spent in times.values()):
            notes.append("Open calls are in worked; if they only waited, so did the agent.")
        if len(agents) > len(rows):
            notes.append(f"The {len(rows):,} of {len(agents):,} agents that worked most, with all below them. {_ALL}")
        return _table("Agents", columns, rows, notes)

    def critical_path(self) -> Table:
        """Return the steps of the critical path that take the most time, in their order."""
        chain, opened = self._run.path.chain, {call.event for call in self._run.view.open_calls}
        steps = [step for step in zip(chain.events, chain.parts, chain.gaps, strict=True) if step[1] or step[2]]
        longest = sorted(range(len(steps)), key=lambda place: -(steps[place][1] + steps[place][2]))[:MAX_ROWS]
        rows: list[tuple[Cell, ...]] = []
        for index, part, gap in (steps[place] for place in sorted(longest)):
            event = self._events[index]
            act = _act(event)
            if index in opened:
                act += ", perhaps waiting"
            if index in self._run.assumed_events:
                act += ", time assumed"
            rows.append((self._links([index]), self._name(event.agent), act, self._time(part),
                         self._time(gap) if gap else ""))  # fmt: skip
        notes = ["What the end of the run waited for, step by step. In a gap, nothing of the path happened."]
        if chain.after:
            notes.append(f"Behind the last step: {typeset(duration(chain.after, self._run.summary.unit))}.")
        if len(steps) > len(rows):
            notes.append(f"The longest {len(rows):,} of {len(steps):,} steps. {_ALL}")
        return _table("Critical path", ("event", "agent", "what", "worked", "gap before"), rows, notes)

    def between(self) -> Iterator[Table]:
        """Yield the findings between agents, waits, open calls, waits within turns, and the sizes of contexts."""
        run = self._run
        rows: list[tuple[Cell, ...]] = [
            (_words(finding.kind), self._agents(finding.agents), printable(finding.tool, limit=60),
             self._time(finding.seconds), _number(finding.tokens), self._links(finding.events), _more(finding.events))
            for finding in run.team_findings.findings[:MAX_ROWS]
        ]  # fmt: skip
        columns = ("finding", "agents", "tool", "time", "tokens", "events", "more events")
        yield _table("Findings between agents", columns, rows, total=len(run.team_findings.findings))
        rows = [
            (self._name(wait.agent), self._name(wait.awaited), self._time(wait.seconds), self._links(wait.events),
             _more(wait.events))
            for wait in run.team_findings.waits[:MAX_ROWS]
        ]  # fmt: skip
        yield _table("Waits", ("agent", "waited for", "time", "until", "more events"), rows,
                     total=len(run.team_findings.waits))  # fmt: skip
        works = run.view.timing.works
        opened = sorted(run.view.open_calls, key=lambda call: -works[call.event])
        rows = [
            (self._links([call.event]), self._name(self._events[call.event].agent),
             printable(self._events[call.event].tool, limit=60), self._time(works[call.event]), self._time(call.usual),
             _words(call.cause))
            for call in opened[:MAX_ROWS]
        ]  # fmt: skip
        notes = [
            "Perhaps they worked, perhaps they only waited for somebody; the log does not say.",
            "Of unfinished calls, the log does not show the end.",
        ]
        yield _table("Open calls", ("event", "agent", "tool", "open", "usually", "why"), rows, notes, len(opened))
        waits = [(wait, call) for wait in run.view.timing.stated.waits for call in wait.calls]
        waits.sort(key=lambda pair: -pair[1].most)
        rows = [
            (self._links([call.event]), self._name(self._events[call.event].agent),
             printable(self._events[call.event].tool, limit=60),
             *map(self._time, (call.least, call.most, turn_wait.seconds)))
            for turn_wait, call in waits[:MAX_ROWS]
        ]  # fmt: skip
        notes = ["Follows from the stated durations of turns: what their rows span beyond that, their calls waited."]
        turn_columns = ("event", "agent", "tool", "waited at least", "at most", "all of the turn")
        yield _table("Waits for people within turns", turn_columns, rows, notes, len(waits))
        rows = [
            (self._name(context.agent), printable(context.model, limit=60),
             _number(context.tokens), _number(context.window),
             Figure(f"{context.tokens / context.window:.0%}", context.tokens / context.window)
             if context.window else "",
             self._links(context.past_half), _more(context.past_half))
            for context in run.team_findings.contexts[:MAX_ROWS]
        ]  # fmt: skip
        columns = ("agent", "model", "largest context", "window", "share", "past half of it", "more events")
        yield _table("Contexts in tokens", columns, rows, total=len(run.team_findings.contexts))

    def ledger(self) -> Iterator[Table]:
        """Yield the tokens and costs by role, model, type and tool, and the token ledger of the import."""
        trace = self._run.view.trace
        kinds = [KIND_WORDS[kind] for kind in KINDS]
        for by in ("role", "model", "type", "tool"):
            entries = ledger(trace, by)
            named = _words if by == "type" else partial(printable, limit=60)
            rows: list[tuple[Cell, ...]] = [
                (named(entry.name) or f"(no {by})", _count(entry.events),
                 *(_number(entry.tokens[kind]) for kind in KINDS),
                 _least(_number(entry.total), is_least=entry.at_least),
                 _count(entry.without_tokens) if entry.without_tokens else "", _money(entry.cost_usd),
                 _number(entry.spawned_tokens), _money(entry.spawned_cost_usd))
                for entry in entries
                if by not in ("type", "tool") or entry.total is not None or entry.cost_usd is not None
            ]  # fmt: skip
            columns = (by, "events", *kinds, "tokens", "events without tokens", "USD", "tokens of agents spawned",
                       "USD of agents spawned")  # fmt: skip
            has_reasoning = any(entry.tokens["reasoning"] for entry in entries)
            notes = ["Reasoning is a part of the output."] if has_reasoning else []
            if by == "tool" and rows:
                notes.append("The tokens of an answer are divided equally among the tools that it calls.")
            yield _table(f"Tokens by {by}", columns, rows, notes)
        report = report_of(trace)
        lines: list[tuple[Cell, ...]] = [
            (printable(entry.what or entry.outcome, limit=160), _words(entry.outcome), _count(entry.records),
             *(_number(entry.tokens.get(kind)) for kind in KINDS), _number(entry.tokens.get("total")))
            for entry in (report.entries() if report else ())
        ]  # fmt: skip
        columns = ("usage records of the log", "outcome", "records", *kinds, "not divided")
        yield _table("Token ledger of the import", columns, lines)

    def measures(self) -> Table:
        """Return the measures of the run with notes, such as why there is no value."""
        rows: list[tuple[Cell, ...]] = []
        for name, result in measure(self._run.view).items():
            is_least = result.at_least is not None
            value = _least(_number(result.at_least if is_least else result.value), is_least=is_least)
            unit = render.unit_of(name, self._run.view.trace)
            note = printable(result.reason, limit=300) or render.CLARIFICATIONS.get(name, "")
            rows.append((name, value, _number(result.if_waiting), unit.strip("1"), note))
        columns = ("measure", "value", "if open calls only waited", "unit", "note")
        return _table("Measures", columns, rows)._replace(is_whole=True)

    def problems(self) -> Iterator[Table]:
        """Yield the events that failed, and the problems of the log."""
        failed = [n for n in self._run.view.sequence if self._events[n].status is Status.ERROR]
        rows: list[tuple[Cell, ...]] = [
            (self._links([n]), self._name(self._events[n].agent), _act(self._events[n]),
             printable(self._events[n].error_type, limit=60))
            for n in failed[:MAX_ROWS]
        ]  # fmt: skip
        yield _table("Events that failed", ("event", "agent", "what", "error"), rows, total=len(failed))
        rows = [
            (printable(problem.text, limit=160) or _words(problem.kind), _count(problem.occurrences),
             printable(problem.place, limit=160))
            for problem in self._run.problems
            if problem.kind is not ProblemKind.FAILED_EVENT
        ]  # fmt: skip
        yield _table("Problems of the log", ("problem", "times", "first at"), rows)

    def events(self) -> Table:
        """Return the events that the other tables link to so far."""
        times, rows = self._run.view.timing, []
        for place in sorted(self.linked):
            index = self._run.view.sequence[place]
            event, source = self._events[index], self._events[index].source
            at = f"{source.file}:{source.line}" if isinstance(source, Source) and source.file else ""
            tokens = total(event.tokens) if event.tokens and event.tokens.is_known else None
            rows.append(
                ((Link(place, printable(event.id, limit=60)),), Figure(f"{place + 1:,}", place + 1),
                 self._name(event.agent), _act(event), self._name(event.target) if event.target else "",
                 self._time(times.starts[index] - times.begin), self._time(times.ends[index] - times.starts[index]),
                 _number(tokens), "" if event.status is Status.UNKNOWN else event.status.value,
                 printable(at, limit=200))
            )  # fmt: skip
        columns = ("event", "step", "agent", "what", "to", "begins at", "lasts", "tokens", "status", "in the log")
        return Table("Events named above", columns, tuple(rows))

    def _links(self, indices: Iterable[int]) -> tuple[Link, ...]:
        """Return links to the first of some events."""
        shown = list(indices)[:_MAX_LINKS]
        self.linked.update(self._places[index] for index in shown)
        return tuple(Link(self._places[n], printable(self._events[n].id, limit=60)) for n in shown)

    def _name(self, agent: str) -> str:
        return self._names.get(agent) or printable(agent, limit=60)

    def _agents(self, agents: Sequence[str]) -> str:
        shown = ", ".join(map(self._name, agents[:_MAX_LINKS]))
        return shown + (f" and {len(agents) - _MAX_LINKS:,} more" if len(agents) > _MAX_LINKS else "")

    def _time(self, time: float | None) -> Cell:
        return "" if time is None else Figure(typeset(duration(time, self._run.summary.unit)), time)


def _table(
    title: str, columns: Sequence[str], rows: Sequence[tuple[Cell, ...]], notes: Sequence[str] = (), total: int = 0
) -> Table:
    """Return a table without empty columns; if `total` rows are more than it has, a note says so."""
    kept = [place for place in range(len(columns)) if any(row[place] not in ("", ()) for row in rows)]
    shown = rows[:MAX_ROWS]
    total = total or len(rows)
    more = [f"The first {len(shown):,} of {total:,}. {_ALL}"] if total > len(shown) else []
    cells = tuple(tuple(row[place] for place in kept) for row in shown)
    return Table(title, tuple(columns[place] for place in kept), cells, (*notes, *more))


def _more(events: Sequence[int]) -> Cell:
    return _count(len(events) - _MAX_LINKS) if len(events) > _MAX_LINKS else ""


def _act(event: Event) -> str:
    kind = event.type.value.replace("_", " ")
    is_call = event.type in (EventType.TOOL_CALL, EventType.TOOL_RESULT)
    return f"{kind} {printable(event.tool, limit=40)}".rstrip() if is_call else kind


def _words(value: str) -> str:
    return value.replace("_", " ")


def typeset(text: str) -> str:
    """Return a text with no-break spaces, so that units stay with their numbers, and with real arrows."""
    return text.replace(UNBREAKABLE, "\u00a0").replace(" -> ", " → ")


def _count(count: int) -> Figure:
    return Figure(f"{count:,}", count)


def _number(value: float | None) -> Cell:
    return "" if value is None else Figure(f"{value:,.15g}" if value == int(value) else f"{value:,.6g}", value)


def _money(usd: float | None) -> Cell:
    return "" if usd is None else Figure(money(usd), usd)


def _least(cell: Cell, *, is_least: bool) -> Cell:
    """Return the known part of a sum; empty if nothing is known."""
    return _known(cell, is_least=is_least) if isinstance(cell, Figure) else ""


def _known(cell: Cell, *, is_least: bool) -> Cell:
    """Return the known part of a sum; "unknown" if nothing is known."""
    if not isinstance(cell, Figure):
        return "unknown"
    return cell._replace(text=f"at least {cell.text}") if is_least else cell
