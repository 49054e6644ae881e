"""The tables of a run for its HTML page, with links to events."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import first_names_and_more
from orchtrace_corpus.trace.diagnosis import has_statuses
from orchtrace_corpus.trace.diagnosis.values import Diagnosis, ProblemKind
from orchtrace_corpus.trace.measures.definitions import measure
from orchtrace_corpus.trace.measures.ledger import KINDS, ledger
from orchtrace_corpus.trace.model.events import total
from orchtrace_corpus.trace.model.import_report import report_of
from orchtrace_corpus.trace.model.terms import EventType, Status
from orchtrace_corpus.trace.model.trace import Event, Source
from orchtrace_corpus.trace.render import measures as render
from orchtrace_corpus.trace.render.ledger import KIND_LABELS
from orchtrace_corpus.trace.render.names import UNBREAKABLE, duration, format_count, money
from orchtrace_corpus.trace.view.graph import positions

MAX_ROWS = 1000
"""The number of rows of a table on the page; the JSON of `corpus trace doctor` has all rows."""

VISIBLE_ROWS = 10
"""The number of rows of a table that are visible at a time; without scripts, these are the first."""

_MAX_LINKS = 5
_WHERE_ALL_ARE = "corpus trace doctor --format json has all."


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
        calls: In a table of calls, the column that the script sorts all calls by; empty in other tables.
        total: In a table of calls, the number of all calls; 0 in other tables.
        is_whole: True if all rows are visible at once.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    calls: str = ""
    total: int = 0
    is_whole: bool = False

    @property
    def visible_rows(self) -> tuple[tuple[Cell, ...], ...]:
        """The rows that are visible at first."""
        return self.rows if self.is_whole else self.rows[:VISIBLE_ROWS]

    @property
    def hidden_rows(self) -> tuple[tuple[Cell, ...], ...]:
        """The rows that the script shows on request."""
        return () if self.is_whole else self.rows[VISIBLE_ROWS:]


class Tables:
    """The tables of a run.

    Attributes:
        linked: The places in the replay of the events that the tables returned so far link to.
    """

    def __init__(self, diagnosis: Diagnosis, names: Mapping[str, str]) -> None:
        self._run = diagnosis
        self._names = names
        self._events = diagnosis.view.trace.events
        self._places = positions(diagnosis.view.sequence)
        self.linked: set[int] = set()

    def figures(self) -> Table:
        """Return the figures of the run; with open calls, both if they worked and if they only waited."""
        run, summary, path = self._run, self._run.summary, self._run.path
        worked, worked_if_waiting = sum(run.view.timing.works), sum(run.view.timing_if_waiting.works)
        notes = []
        if run.waited:
            notes.append("Elapsed leaves out the time waited for people.")
        if path.unknown:
            notes.append(f"{format_count(path.unknown, 'call')} without an end: taken as 0 s.")

        def at_least(cell: Cell) -> Cell:
            """Return a figure that is only a lower bound if calls have no end."""
            return _or_unknown(cell, is_least=path.unknown > 0)

        def time(seconds: float) -> Cell:
            return at_least(self._time(seconds))

        rows: list[tuple[Cell, ...]] = [
            ("elapsed", self._time(summary.elapsed), ""),
            ("waited for people", self._time(run.waited), ""),
            ("worked", time(worked), time(worked_if_waiting)),
            ("longest path of work", time(path.span.length), time(path.span_if_waiting.length)),
        ]
        if summary.elapsed:
            speed_ups = [work / summary.elapsed for work in (worked, worked_if_waiting)]
            rows.append(("speed-up", *(at_least(Figure(f"{speed_up:.3g}", speed_up)) for speed_up in speed_ups)))
        working, waiting = run.parallelism, run.parallelism_if_waiting
        if working is not None and waiting is not None:
            rows += [
                ("most at once", at_least(_count(working.max_concurrency)), at_least(_count(waiting.max_concurrency))),
                ("several at work", _share(working.parallel_share), _share(waiting.parallel_share)),
                ("one at work", _share(working.single_share), _share(waiting.single_share)),
                ("nobody at work", _share(working.idle_share), _share(waiting.idle_share)),
            ]
        errors: Cell = "unknown"
        if summary.errors or has_statuses(run.view.trace):
            errors = _count(summary.errors)
        rows += [
            ("events", _count(summary.events), ""),
            ("errors", errors, ""),
            ("agents", _count(summary.agents), ""),
            ("tokens", _or_unknown(_number(summary.tokens), is_least=summary.has_more_tokens), ""),
            ("cost in USD", _or_unknown(_money(summary.cost_usd), is_least=summary.costs_more), ""),
        ]
        if run.cost.stated is not None:
            stated = _or_unknown(_money(run.cost.stated), is_least=not run.cost.has_all_stated)
            rows.append(("cost in USD that the log states", stated, ""))
        columns: tuple[str, ...] = ("figure", "if open calls worked", "if they only waited")
        if not run.view.open_calls:
            columns = ("figure", "value")
            rows = [row[:2] for row in rows]
        return Table("Figures", columns, tuple(rows), tuple(notes), is_whole=True)

    def calls(self) -> Iterator[Table]:
        """Yield the first calls by cost, or by tokens if no cost is known, and by time."""
        works = self._run.view.timing.works
        tokens: dict[int, float] = {}
        costs: dict[int, float] = {}
        for index, event in enumerate(self._events):
            if event.tokens and event.tokens.is_known:
                tokens[index] = total(event.tokens)
            if event.cost_usd and not event.copied_context:
                costs[index] = event.cost_usd
        calls = [index for index in self._run.view.sequence if works[index] > 0 or tokens.get(index) or index in costs]
        columns = ["event", "agent", "what", "begins at", "lasts"]
        if any(self._events[index].model for index in calls):
            columns.insert(columns.index("begins at"), "model")
        if any(tokens.values()):
            columns.append("tokens")
        if costs:
            columns.append("USD")

        def table(title: str, sort_column: str, ordered: list[int]) -> Table:
            rows = []
            for index in ordered[:VISIBLE_ROWS]:
                cells = {**self._call(index), "tokens": _number(tokens.get(index)), "USD": _money(costs.get(index))}
                rows.append(tuple(cells[column] for column in columns))
            return Table(title, tuple(columns), tuple(rows), calls=sort_column, total=len(calls))

        if costs:
            yield table("Costliest calls", "USD", sorted(calls, key=lambda index: -costs.get(index, 0.0)))
        elif any(tokens.values()):
            yield table("Costliest calls", "tokens", sorted(calls, key=lambda index: -tokens.get(index, 0.0)))
        if any(works):
            yield table("Longest calls", "lasts", sorted(calls, key=lambda index: -works[index]))

    def _call(self, index: int) -> dict[str, Cell]:
        """Return the cells of a call by column, without its tokens and its cost."""
        event, times = self._events[index], self._run.view.timing
        return {
            "event": self._links([index]),
            "agent": self._name(event.agent),
            "what": _act(event),
            "model": printable(event.model, limit=60),
            "begins at": self._time(times.starts[index] - times.begin),
            "lasts": self._time(times.ends[index] - times.starts[index]),
        }

    def agents(self) -> Table:
        """Return the tree of agents: the time, tokens and cost of each agent, alone and together with all below it."""
        agents, times, costs = self._run.view.agents, self._run.view.agent_times, dict(self._run.cost.by_agent)
        subtrees = self._subtrees()
        # The subtree of an agent worked no more than that of its parent: with an agent, its parent is kept, too.
        by_work = sorted(range(len(agents)), key=lambda place: (-subtrees[place].worked, place))
        rows: list[tuple[Cell, ...]] = []
        for place in sorted(by_work[:MAX_ROWS]):
            agent, subtree = agents[place], subtrees[place]
            time = times[agent.agent]
            is_least = agent.agent in self._run.tokens.agents_with_unknown_tokens
            rows.append(
                (
                    Name(self._names[agent.agent], agent.depth),
                    printable(agent.role, limit=60),
                    self._time(time.elapsed),
                    self._time(time.worked),
                    self._time(time.waited),
                    self._time(time.idle),
                    self._time(time.open) if time.open else "",
                    _or_empty(_number(agent.tokens), is_least=is_least),
                    _or_empty(_money(costs.get(agent.agent)), is_least=is_least),
                    self._time(subtree.worked),
                    _or_empty(_number(subtree.tokens), is_least=subtree.is_least),
                    _or_empty(_money(subtree.cost), is_least=subtree.is_least),
                )
            )
        columns = ("agent", "role", "elapsed", "worked", "waited for agents", "idle", "open calls", "tokens", "USD",
                   "worked, with all below", "tokens, with all below", "USD, with all below")  # fmt: skip
        notes = ["Worked, waited for agents (doing nothing while one below works) and idle add up to elapsed."]
        if any(spent.open for spent in times.values()):
            notes.append("Open calls are in worked; if they only waited, so did the agent.")
        if len(agents) > len(rows):
            most = f"The {len(rows):,} of {len(agents):,} agents that worked most, with all below them."
            notes.append(f"{most} {_WHERE_ALL_ARE}")
        return _table("Agents", columns, rows, notes)

    def _subtrees(self) -> list["_Subtree"]:
        """Return for each agent the sums over it and all agents below it."""
        agents, times, costs = self._run.view.agents, self._run.view.agent_times, dict(self._run.cost.by_agent)
        subtrees = []
        parents: list[int | None] = []  # the place of each agent's parent
        ancestors: list[int] = []  # the places of the agent and its ancestors, the agent last
        for place, agent in enumerate(agents):
            is_least = agent.agent in self._run.tokens.agents_with_unknown_tokens
            subtrees.append(_Subtree(times[agent.agent].worked, agent.tokens, costs.get(agent.agent), is_least))
            del ancestors[agent.depth :]
            parents.append(ancestors[-1] if ancestors else None)
            ancestors.append(place)
        for place in range(len(agents) - 1, -1, -1):  # children before their parents
            parent = parents[place]
            if parent is not None:
                subtrees[parent] = subtrees[parent].plus(subtrees[place])
        return subtrees

    def critical_path(self) -> Table:
        """Return the steps of the critical path that take the most time, in their order."""
        chain = self._run.path.chain
        open_events = {call.event for call in self._run.view.open_calls}
        steps = list(zip(chain.events, chain.worked, chain.gaps, strict=True))
        steps = [(index, worked, gap) for index, worked, gap in steps if worked or gap]
        times = [worked + gap for _, worked, gap in steps]
        longest = sorted(range(len(steps)), key=lambda place: -times[place])[:MAX_ROWS]
        rows: list[tuple[Cell, ...]] = []
        for place in sorted(longest):
            index, worked, gap = steps[place]
            event = self._events[index]
            act = _act(event)
            if index in open_events:
                act += ", perhaps waiting"
            if index in self._run.assumed_events:
                act += ", time assumed"
            gap_before = self._time(gap) if gap else ""
            rows.append((self._links([index]), self._name(event.agent), act, self._time(worked), gap_before))
        notes = ["What the end of the run waited for, step by step. In a gap, nothing of the path happened."]
        if chain.after:
            notes.append(f"Behind the last step: {typeset(duration(chain.after, self._run.summary.unit))}.")
        if len(steps) > len(rows):
            notes.append(f"The longest {len(rows):,} of {len(steps):,} steps. {_WHERE_ALL_ARE}")
        return _table("Critical path", ("event", "agent", "what", "worked", "gap before"), rows, notes)

    def between(self) -> Iterator[Table]:
        """Yield the findings between agents, waits, open calls, waits within turns, and the sizes of contexts."""
        run = self._run
        rows: list[tuple[Cell, ...]] = [
            (_words(finding.kind), self._agents(finding.agents), printable(finding.tool, limit=60),
             self._time(finding.seconds), _number(finding.tokens), self._links(finding.events),
             _count_without_links(finding.events))
            for finding in run.team_findings.findings[:MAX_ROWS]
        ]  # fmt: skip
        columns: tuple[str, ...] = ("finding", "agents", "tool", "time", "tokens", "events", "more events")
        yield _table("Findings between agents", columns, rows, total=len(run.team_findings.findings))
        rows = [
            (self._name(wait.agent), self._name(wait.awaited), self._time(wait.seconds), self._links(wait.events),
             _count_without_links(wait.events))
            for wait in run.team_findings.waits[:MAX_ROWS]
        ]  # fmt: skip
        yield _table("Waits", ("agent", "waited for", "time", "until", "more events"), rows,
                     total=len(run.team_findings.waits))  # fmt: skip
        works = run.view.timing.works
        open_calls = sorted(run.view.open_calls, key=lambda call: -works[call.event])
        rows = [
            (self._links([call.event]), self._name(self._events[call.event].agent),
             printable(self._events[call.event].tool, limit=60), self._time(works[call.event]), self._time(call.usual),
             _words(call.cause))
            for call in open_calls[:MAX_ROWS]
        ]  # fmt: skip
        notes = [
            "Perhaps they worked, perhaps they only waited for somebody; the log does not say.",
            "Of unfinished calls, the log does not show the end.",
        ]
        columns = ("event", "agent", "tool", "open", "usually", "why")
        yield _table("Open calls", columns, rows, notes, total=len(open_calls))
        waits = [(wait, call) for wait in run.view.timing.stated.waits for call in wait.calls]
        waits.sort(key=lambda pair: -pair[1].most)
        rows = [
            (self._links([call.event]), self._name(self._events[call.event].agent),
             printable(self._events[call.event].tool, limit=60), self._time(call.least), self._time(call.most),
             self._time(turn_wait.seconds))
            for turn_wait, call in waits[:MAX_ROWS]
        ]  # fmt: skip
        notes = ["Follows from the stated durations of turns: what their rows span beyond that, their calls waited."]
        columns = ("event", "agent", "tool", "waited at least", "at most", "all of the turn")
        yield _table("Waits for people within turns", columns, rows, notes, total=len(waits))
        rows = []
        for context in run.team_findings.contexts[:MAX_ROWS]:
            share: Cell = ""
            if context.window:
                share = Figure(f"{context.tokens / context.window:.0%}", context.tokens / context.window)
            rows.append(
                (self._name(context.agent), printable(context.model, limit=60), _number(context.tokens),
                 _number(context.window), share, self._links(context.past_half),
                 _count_without_links(context.past_half))
            )  # fmt: skip
        columns = ("agent", "model", "largest context", "window", "share", "past half of it", "more events")
        yield _table("Contexts in tokens", columns, rows, total=len(run.team_findings.contexts))

    def ledger(self) -> Iterator[Table]:
        """Yield the tokens and costs by role, model, type and tool, and the token ledger of the import."""
        trace = self._run.view.trace
        kinds = [KIND_LABELS[kind] for kind in KINDS]
        for by in ("role", "model", "type", "tool"):
            entries = ledger(trace, by)
            rows: list[tuple[Cell, ...]] = []
            for entry in entries:
                if by in ("type", "tool") and entry.total is None and entry.cost_usd is None:
                    continue  # most types and tools have no tokens
                name = _words(entry.name) if by == "type" else printable(entry.name, limit=60)
                rows.append(
                    (name or f"(no {by})", _count(entry.events), *(_number(entry.tokens[kind]) for kind in KINDS),
                     _or_empty(_number(entry.total), is_least=entry.at_least),
                     _count(entry.without_tokens) if entry.without_tokens else "", _money(entry.cost_usd),
                     _number(entry.spawned_tokens), _money(entry.spawned_cost_usd))
                )  # fmt: skip
            columns = (by, "events", *kinds, "tokens", "events without tokens", "USD", "tokens of agents spawned",
                       "USD of agents spawned")  # fmt: skip
            notes = []
            if any(entry.tokens["reasoning"] for entry in entries):
                notes.append("Reasoning is a part of the output.")
            if by == "tool" and rows:
                notes.append("The tokens of an answer are divided equally among the tools that it calls.")
            yield _table(f"Tokens by {by}", columns, rows, notes)
        report = report_of(trace)
        rows = []
        if report:
            rows = [
                (printable(line.description or line.outcome, limit=160), _words(line.outcome), _count(line.records),
                 *(_number(line.tokens.get(kind)) for kind in KINDS), _number(line.tokens.get("total")))
                for line in report.entries()
            ]  # fmt: skip
        columns = ("usage records of the log", "outcome", "records", *kinds, "not divided")
        yield _table("Token ledger of the import", columns, rows)

    def measures(self) -> Table:
        """Return the measures of the run with notes, such as why there is no value."""
        rows: list[tuple[Cell, ...]] = []
        for name, result in measure(self._run.view).items():
            value = _number(result.value)
            if result.at_least is not None:
                value = _or_empty(_number(result.at_least), is_least=True)
            unit = render.unit_of(name, self._run.view.trace)
            if unit == "1":  # the unit of pure numbers
                unit = ""
            note = printable(result.reason, limit=300) or render.CLARIFICATIONS.get(name, "")
            rows.append((name, value, _number(result.if_waiting), unit, note))
        columns = ("measure", "value", "if open calls only waited", "unit", "note")
        return _table("Measures", columns, rows)._replace(is_whole=True)

    def problems(self) -> Iterator[Table]:
        """Yield the events that failed, and the problems of the log."""
        failed = [index for index in self._run.view.sequence if self._events[index].status is Status.ERROR]
        rows: list[tuple[Cell, ...]] = []
        for index in failed[:MAX_ROWS]:
            event = self._events[index]
            error = printable(event.error_type, limit=60)
            rows.append((self._links([index]), self._name(event.agent), _act(event), error))
        yield _table("Events that failed", ("event", "agent", "what", "error"), rows, total=len(failed))
        rows = [
            (printable(problem.text, limit=160) or _words(problem.kind), _count(problem.occurrences),
             printable(problem.place, limit=160))
            for problem in self._run.problems
            if problem.kind is not ProblemKind.FAILED_EVENT
        ]  # fmt: skip
        yield _table("Problems of the log", ("problem", "times", "first at"), rows)

    def events(self) -> Table:
        """Return the events that the tables returned so far link to."""
        times = self._run.view.timing
        rows = []
        for place in sorted(self.linked):
            index = self._run.view.sequence[place]
            event = self._events[index]
            source = event.source
            log_place = ""
            if isinstance(source, Source) and source.file:
                log_place = f"{source.file}:{source.line}"
            tokens = total(event.tokens) if event.tokens and event.tokens.is_known else None
            rows.append(
                ((Link(place, printable(event.id, limit=60)),), _count(place + 1), self._name(event.agent), _act(event),
                 self._name(event.target) if event.target else "", self._time(times.starts[index] - times.begin),
                 self._time(times.ends[index] - times.starts[index]), _number(tokens),
                 "" if event.status is Status.UNKNOWN else event.status.value, printable(log_place, limit=200))
            )  # fmt: skip
        columns = ("event", "step", "agent", "what", "to", "begins at", "lasts", "tokens", "status", "in the log")
        return Table("Events named above", columns, tuple(rows))

    def _links(self, indices: Iterable[int]) -> tuple[Link, ...]:
        """Return links to the first few of some events."""
        links = []
        for index in list(indices)[:_MAX_LINKS]:
            links.append(Link(self._places[index], printable(self._events[index].id, limit=60)))
            self.linked.add(self._places[index])
        return tuple(links)

    def _name(self, agent: str) -> str:
        return self._names.get(agent) or printable(agent, limit=60)

    def _agents(self, agents: Sequence[str]) -> str:
        return first_names_and_more(list(map(self._name, agents)), _MAX_LINKS)

    def _time(self, time: float | None) -> Cell:
        return "" if time is None else Figure(typeset(duration(time, self._run.summary.unit)), time)


class _Subtree(NamedTuple):
    """The sums over an agent and the agents below it; unknown figures are None."""

    worked: float
    tokens: float | None
    cost: float | None
    is_least: bool

    def plus(self, other: "_Subtree") -> "_Subtree":
        """Return the sums over both."""
        return _Subtree(
            float(self.worked + other.worked),
            self.tokens if other.tokens is None else (self.tokens or 0.0) + other.tokens,
            self.cost if other.cost is None else (self.cost or 0.0) + other.cost,
            self.is_least or other.is_least,
        )


def _table(
    title: str, columns: Sequence[str], rows: Sequence[tuple[Cell, ...]], notes: Sequence[str] = (), total: int = 0
) -> Table:
    """Return a table of the first rows without empty columns; a note says if there are more rows.

    `total` is the number of all rows, if `rows` does not have all of them.
    """
    kept = [place for place in range(len(columns)) if any(row[place] not in ("", ()) for row in rows)]
    first_rows = rows[:MAX_ROWS]
    total = total or len(rows)
    if total > len(first_rows):
        notes = (*notes, f"The first {len(first_rows):,} of {total:,}. {_WHERE_ALL_ARE}")
    cells = tuple(tuple(row[place] for place in kept) for row in first_rows)
    return Table(title, tuple(columns[place] for place in kept), cells, tuple(notes))


def _count_without_links(events: Sequence[int]) -> Cell:
    """Return for how many of the events there is no room for a link; empty for none."""
    return _count(len(events) - _MAX_LINKS) if len(events) > _MAX_LINKS else ""


def _act(event: Event) -> str:
    """Return what an event was: its type and, for a call or its result, the tool."""
    act = event.type.value.replace("_", " ")
    if event.type in (EventType.TOOL_CALL, EventType.TOOL_RESULT) and event.tool:
        act += f" {printable(event.tool, limit=40)}"
    return act


def _words(value: str) -> str:
    return value.replace("_", " ")


def typeset(text: str) -> str:
    """Return a text with no-break spaces, so that units stay with their numbers, and with real arrows."""
    return text.replace(UNBREAKABLE, "\u00a0").replace(" -> ", " → ")


def _count(count: int) -> Figure:
    return Figure(f"{count:,}", count)


def number(value: float) -> Figure:
    """Return a number in full if it has no fraction, else with six digits."""
    return Figure(f"{value:,.15g}" if value == int(value) else f"{value:,.6g}", value)


def _number(value: float | None) -> Cell:
    return "" if value is None else number(value)


def _money(usd: float | None) -> Cell:
    return "" if usd is None else Figure(money(usd), usd)


def _share(share: float) -> Figure:
    return Figure(f"{share:.1%}", share)


def _or_empty(cell: Cell, *, is_least: bool) -> Cell:
    """Return a figure, as a lower bound if it `is_least`; empty if it is unknown."""
    return _or_unknown(cell, is_least=is_least) if cell else ""


def _or_unknown(cell: Cell, *, is_least: bool) -> Cell:
    """Return a figure, as a lower bound if it `is_least`; "unknown" if it is unknown."""
    if not isinstance(cell, Figure):
        return "unknown"
    return cell._replace(text=f"at least {cell.text}") if is_least else cell
