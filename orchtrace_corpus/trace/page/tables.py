"""A run as tables for its page: what the screen and the JSON of `corpus trace doctor` say, with links to events."""

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
from orchtrace_corpus.trace.render.names import counted, duration, money
from orchtrace_corpus.trace.view.agent_tree import AgentSpan
from orchtrace_corpus.trace.view.graph import positions

MOST_ROWS = 1000
"""So many rows of a table are on the page; the JSON has them all."""

SHOWN_ROWS = 10
"""So many rows are seen at a time; without scripts, the first."""

_MOST_LINKS = 5
_ALL = "corpus trace doctor --format json has all."


class Link(NamedTuple):
    """A link to an event: its place in the replay, and its id."""

    place: int
    text: str


class Figure(NamedTuple):
    """A number as it is shown, and exactly as the JSON has it."""

    text: str
    value: float


class Name(NamedTuple):
    """An agent of a tree: its name, and how many agents are above it."""

    text: str
    depth: int


Cell: TypeAlias = str | Figure | Name | tuple[Link, ...]


class Table(NamedTuple):
    """Rows of cells under named columns; the first cell of a row is what it is about.

    Attributes:
        title: What it shows.
        columns: The names of the columns.
        rows: The rows.
        notes: Sentences below it.
        calls: By which column the script sorts all calls into this table; empty for other tables.
        total: How many rows there would be, where the script has all.
        is_whole: Whether all rows are seen at once.
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
        """The rows that are seen at first."""
        return self.rows if self.is_whole else self.rows[:SHOWN_ROWS]

    @property
    def rest(self) -> tuple[tuple[Cell, ...], ...]:
        """The rows that the script shows on request."""
        return self.rows[len(self.shown) :]


class Tables:
    """The tables of a run.

    Attributes:
        named: The places in the replay of the events that the tables link to.
    """

    def __init__(self, diagnosis: Diagnosis, names: Mapping[str, str]) -> None:
        self._run, self._names = diagnosis, names
        self._events = diagnosis.view.trace.events
        self._places = positions(diagnosis.view.sequence)
        self.named: set[int] = set()

    def figures(self) -> Table:
        """The figures of the run; two of each where open calls make a range."""
        run, summary, path = self._run, self._run.summary, self._run.path
        worked, if_waiting = sum(run.view.timing.works), sum(run.view.timing_if_waiting.works)
        elapsed, known = summary.elapsed, partial(_known, is_least=path.unknown > 0)
        notes = (f"{counted(path.unknown, 'call')} without an end: taken as 0 s.",) if path.unknown else ()
        if run.waited:
            notes = ("Elapsed leaves out the time waited for people.", *notes)
        rows: list[tuple[Cell, ...]] = [
            ("elapsed", self._time(elapsed), ""),
            ("waited for people", self._time(run.waited), ""),
            ("worked", *map(known, self._range(worked, if_waiting))),
            ("longest path of work", *map(known, self._range(path.span.length, path.span_if_waiting.length))),
        ]
        if elapsed:
            ratios = worked / elapsed, if_waiting / elapsed
            shown = [Figure(f"{ratio:.3g}", ratio) for ratio in ratios]
            rows.append(("speed-up", *map(known, shown)))
        if (working := run.parallelism) and (waiting := run.parallelism_if_waiting):
            rows.append(("most at once", *map(known, (_count(working.most), _count(waiting.most)))))
            shares = (working.together, waiting.together), (working.alone, waiting.alone), (working.idle, waiting.idle)
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
        if not run.view.open_calls:
            return Table("Figures", ("figure", "value"), tuple(row[:2] for row in rows), notes, is_whole=True)
        columns = ("figure", "if open calls worked", "if they only waited")
        return Table("Figures", columns, tuple(rows), notes, is_whole=True)

    def calls(self) -> Iterator[Table]:
        """Yield the first calls by cost, or by tokens where no cost is known, and by time."""
        works = self._run.view.timing.works
        spent, costs = dict[int, float](), dict[int, float]()
        for index, event in enumerate(self._events):
            if event.tokens and event.tokens.is_known:
                spent[index] = total(event.tokens)
            if event.cost_usd and not event.copied_context:
                costs[index] = event.cost_usd
        calls = [n for n in self._run.view.sequence if works[n] > 0 or spent.get(n) or n in costs]

        has_models = any(self._events[n].model for n in calls)
        columns = {"event": True, "agent": True, "what": True, "model": has_models, "begins at": True, "lasts": True,
                   "tokens": any(spent.values()), "USD": bool(costs)}  # fmt: skip
        kept = [place for place, is_kept in enumerate(columns.values()) if is_kept]
        heads = tuple(name for name, is_kept in columns.items() if is_kept)

        def table(title: str, by: str, order: list[int]) -> Table:
            rows = ((*self._call(n), _number(spent.get(n)), _money(costs.get(n))) for n in order[:SHOWN_ROWS])
            cells = tuple(tuple(row[place] for place in kept) for row in rows)
            return Table(title, heads, cells, calls=by, total=len(calls))

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
        """The tree of the agents: what each did itself, and with all agents below it."""
        agents, times, costs = self._run.view.agents, self._run.view.agent_times, dict(self._run.cost.by_agent)
        least = self._run.tokens.least
        own = [
            (times[agent.agent].worked, agent.tokens, costs.get(agent.agent), float(agent.agent in least))
            for agent in agents
        ]
        whole = [list(figures) for figures in own]
        above: list[int] = []
        parents = []
        for place, one in enumerate(agents):
            del above[one.depth :]
            parents.append(above[-1] if above else None)
            above.append(place)
        for place in range(len(agents) - 1, -1, -1):
            if (parent := parents[place]) is not None:
                pairs = zip(whole[parent], whole[place], strict=True)
                whole[parent] = [a if b is None else (a or 0.0) + b for a, b in pairs]
        # Nobody worked more than with all below, so that whoever is shown is shown below its parents.
        most = sorted(range(len(agents)), key=lambda place: (-(whole[place][0] or 0.0), place))[:MOST_ROWS]
        rows = [self._agent(agents[place], own[place], whole[place]) for place in sorted(most)]
        columns = ("agent", "role", "elapsed", "worked", "waited for agents", "idle", "open calls", "tokens", "USD",
                   "worked, with all below", "tokens, with all below", "USD, with all below")  # fmt: skip
        notes = ["Worked, waited for agents (doing nothing while one below works) and idle add up to elapsed."]
        if any(spent.open for spent in times.values()):
            notes.append("Open calls are in worked; if they only waited, so did the agent.")
        if len(agents) > len(rows):
            notes.append(f"The {len(rows):,} of {len(agents):,} agents that worked most, with all below them. {_ALL}")
        return _table("Agents", columns, rows, notes)

    def _agent(
        self, agent_span: AgentSpan, own: Sequence[float | None], whole: Sequence[float | None]
    ) -> tuple[Cell, ...]:
        """The row of an agent: what it worked and spent itself, and with all below it."""
        spent = self._run.view.agent_times[agent_span.agent]
        return (
            Name(self._names[agent_span.agent], agent_span.depth),
            printable(agent_span.role, limit=60),
            *map(self._time, (spent.elapsed, spent.worked, spent.waited, spent.idle)),
            self._time(spent.open) if spent.open else "",
            _least(_number(own[1]), is_least=bool(own[3])),
            _least(_money(own[2]), is_least=bool(own[3])),
            self._time(whole[0]),
            _least(_number(whole[1]), is_least=bool(whole[3])),
            _least(_money(whole[2]), is_least=bool(whole[3])),
        )

    def critical_path(self) -> Table:
        """The steps of the critical path that take the most time, in their order."""
        chain, opened = self._run.path.chain, {open_call.event for open_call in self._run.view.open_calls}
        steps = [step for step in zip(chain.events, chain.parts, chain.gaps, strict=True) if step[1] or step[2]]
        longest = sorted(range(len(steps)), key=lambda at: -(steps[at][1] + steps[at][2]))[:MOST_ROWS]
        rows: list[tuple[Cell, ...]] = []
        for index, part, gap in (steps[at] for at in sorted(longest)):
            event = self._events[index]
            remarks = ["perhaps waiting"] * (index in opened) + ["time assumed"] * (index in self._run.assumed)
            rows.append((self._links([index]), self._name(event.agent), ", ".join([_act(event), *remarks]),
                         self._time(part), self._time(gap) if gap else ""))  # fmt: skip
        notes = ["What the end of the run waited for, step by step. In a gap, nothing of the path happened."]
        if chain.after:
            notes.append(f"Behind the last step: {_plain(duration(chain.after, self._run.summary.unit))}.")
        if len(steps) > len(rows):
            notes.append(f"The longest {len(rows):,} of {len(steps):,} steps. {_ALL}")
        return _table("Critical path", ("event", "agent", "what", "worked", "gap before"), rows, notes)

    def between(self) -> Iterator[Table]:
        """Return the problems between agents, waits, open calls, and the fill of contexts."""
        run = self._run
        rows: list[tuple[Cell, ...]] = [
            (_words(finding.kind), self._agents(finding.agents), printable(finding.tool, limit=60),
             self._time(finding.seconds), _number(finding.tokens), self._links(finding.events), _more(finding.events))
            for finding in run.between.findings[:MOST_ROWS]
        ]  # fmt: skip
        columns = ("finding", "agents", "tool", "time", "tokens", "events", "more events")
        yield _table("Findings between agents", columns, rows, all_=len(run.between.findings))
        rows = [
            (self._name(wait.agent), self._name(wait.awaited), self._time(wait.seconds), self._links(wait.events),
             _more(wait.events))
            for wait in run.between.waits[:MOST_ROWS]
        ]  # fmt: skip
        yield _table("Waits", ("agent", "waited for", "time", "until", "more events"), rows,
                     all_=len(run.between.waits))  # fmt: skip
        works = run.view.timing.works
        opened = sorted(run.view.open_calls, key=lambda call: -works[call.event])
        rows = [
            (self._links([call.event]), self._name(self._events[call.event].agent),
             printable(self._events[call.event].tool, limit=60), self._time(works[call.event]), self._time(call.usual),
             _words(call.cause))
            for call in opened[:MOST_ROWS]
        ]  # fmt: skip
        notes = [
            "Perhaps they worked, perhaps they only waited for somebody; the log does not say.",
            "Of unfinished calls, the log does not show the end.",
        ]
        yield _table("Open calls", ("event", "agent", "tool", "open", "usually", "why"), rows, notes, len(opened))
        yield from self._turns()
        rows = [
            (self._name(context.agent), printable(context.model, limit=60),
             _number(context.tokens), _number(context.window),
             Figure(f"{context.tokens / context.window:.0%}", context.tokens / context.window)
             if context.window else "",
             self._links(context.past_half), _more(context.past_half))
            for context in run.between.contexts[:MOST_ROWS]
        ]  # fmt: skip
        columns = ("agent", "model", "largest context", "window", "share", "past half of it", "more events")
        yield _table("Contexts in tokens", columns, rows, all_=len(run.between.contexts))

    def _turns(self) -> Iterator[Table]:
        """The calls that waited within turns that state their duration."""
        waits = [(wait, call) for wait in self._run.view.timing.stated.waits for call in wait.calls]
        waits.sort(key=lambda pair: -pair[1].most)
        rows = []
        for wait, call in waits[:MOST_ROWS]:
            event = self._events[call.event]
            who = self._links([call.event]), self._name(event.agent), printable(event.tool, limit=60)
            rows.append((*who, *map(self._time, (call.least, call.most, wait.seconds))))
        notes = ["Follows from the stated durations of turns: what their rows span beyond that, their calls waited."]
        columns = ("event", "agent", "tool", "waited at least", "at most", "all of the turn")
        if rows:
            yield _table("Waits for people within turns", columns, rows, notes, len(waits))

    def ledger(self) -> Iterator[Table]:
        """Return who spent tokens and money, and the account of each usage record of the log."""
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
            (printable(one.what or one.outcome, limit=160), _words(one.outcome), _count(one.records),
             *(_number(one.tokens.get(kind)) for kind in KINDS), _number(one.tokens.get("total")))
            for one in (report.entries() if report else ())
        ]  # fmt: skip
        columns = ("usage records of the log", "outcome", "records", *kinds, "not divided")
        yield _table("Token ledger of the import", columns, lines)

    def measures(self) -> Table:
        """The measures of the run, and a note on those that need one, such as why there is no value."""
        rows: list[tuple[Cell, ...]] = []
        for name, found in measure(self._run.view).items():
            is_least = found.at_least is not None
            value = _least(_number(found.at_least if is_least else found.value), is_least=is_least)
            unit = render.unit_of(name, self._run.view.trace)
            note = printable(found.reason, limit=300) or render.CLARIFICATIONS.get(name, "")
            rows.append((name, value, _number(found.if_waiting), unit.strip("1"), note))
        columns = ("measure", "value", "if open calls only waited", "unit", "note")
        return _table("Measures", columns, rows)._replace(is_whole=True)

    def problems(self) -> Iterator[Table]:
        """Events that failed, and what is wrong with the log."""
        failed = [n for n in self._run.view.sequence if self._events[n].status is Status.ERROR]
        rows: list[tuple[Cell, ...]] = [
            (self._links([n]), self._name(self._events[n].agent), _act(self._events[n]),
             printable(self._events[n].error_type, limit=60))
            for n in failed[:MOST_ROWS]
        ]  # fmt: skip
        yield _table("Events that failed", ("event", "agent", "what", "error"), rows, all_=len(failed))
        found = [problem for problem in self._run.problems if problem.kind is not ProblemKind.FAILED_EVENT]
        of_log: list[tuple[Cell, ...]] = [
            (printable(one.text, limit=160) or _words(one.kind), _count(one.number), printable(one.place, limit=160))
            for one in found
        ]
        yield _table("Problems of the log", ("problem", "times", "first at"), of_log)

    def events(self) -> Table:
        """The events that the tables before link to."""
        times, rows = self._run.view.timing, []
        for place in sorted(self.named):
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

    def _links(self, numbers: Iterable[int]) -> tuple[Link, ...]:
        """Links to the first of some events."""
        shown = list(numbers)[:_MOST_LINKS]
        self.named.update(self._places[index] for index in shown)
        return tuple(Link(self._places[n], printable(self._events[n].id, limit=60)) for n in shown)

    def _name(self, agent: str) -> str:
        return self._names.get(agent) or printable(agent, limit=60)

    def _agents(self, agents: Sequence[str]) -> str:
        shown = ", ".join(map(self._name, agents[:_MOST_LINKS]))
        return shown + (f" and {len(agents) - _MOST_LINKS:,} more" if len(agents) > _MOST_LINKS else "")

    def _time(self, time: float | None) -> Cell:
        return "" if time is None else Figure(_plain(duration(time, self._run.summary.unit)), time)

    def _range(self, most: float, least: float) -> tuple[Cell, Cell]:
        return self._time(most), self._time(least)


def _table(
    title: str, columns: Sequence[str], rows: Sequence[tuple[Cell, ...]], notes: Sequence[str] = (), all_: int = 0
) -> Table:
    """The first rows of a table, with a note where there are more; columns in which every cell is empty are left out.

    Args:
        title: What it shows.
        columns: The names of the columns.
        rows: The rows.
        notes: Sentences below it.
        all_: How many rows there would be, where not all are given; else 0.
    """
    kept = [at for at in range(len(columns)) if any(row[at] not in ("", ()) for row in rows)]
    shown = rows[:MOST_ROWS]
    most = all_ or len(rows)
    more = [f"The first {len(shown):,} of {most:,}. {_ALL}"] if most > len(shown) else []
    cells = tuple(tuple(row[at] for at in kept) for row in shown)
    return Table(title, tuple(columns[at] for at in kept), cells, (*notes, *more))


def _more(events: Sequence[int]) -> Cell:
    return _count(len(events) - _MOST_LINKS) if len(events) > _MOST_LINKS else ""


def _act(event: Event) -> str:
    kind = event.type.value.replace("_", " ")
    is_call = event.type in (EventType.TOOL_CALL, EventType.TOOL_RESULT)
    return f"{kind} {printable(event.tool, limit=40)}".rstrip() if is_call else kind


def _words(value: str) -> str:
    return value.replace("_", " ")


def _plain(text: str) -> str:
    """A text whose words stay together."""
    return text.replace("\ue000", "\u00a0")


def _count(number: int) -> Figure:
    return Figure(f"{number:,}", number)


def _number(number: float | None) -> Cell:
    return "" if number is None else Figure(f"{number:,.15g}" if number == int(number) else f"{number:,.6g}", number)


def _money(usd: float | None) -> Cell:
    return "" if usd is None else Figure(money(usd), usd)


def _least(cell: Cell, *, is_least: bool) -> Cell:
    """A sum as far as it is known; empty where nothing of it is."""
    return _known(cell, is_least=is_least) if isinstance(cell, Figure) else ""


def _known(cell: Cell, *, is_least: bool) -> Cell:
    """A sum as far as it is known."""
    if not isinstance(cell, Figure):
        return "unknown"
    return cell._replace(text=f"at least {cell.text}") if is_least else cell
