"""Totals over many runs by day, month, project, model and session, each answer counted once.

Tokens and costs belong to the day on which their answer was complete, in one time zone. If part of a run is unknown,
the totals that include it are lower bounds.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta, tzinfo
from enum import StrEnum

from msgspec import UNSET, Struct

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.diagnosis.values import Summary
from orchtrace_corpus.trace.measures.ledger import COUNTED_KINDS, declared_models, may_have_spent_more
from orchtrace_corpus.trace.measures.measure import ANSWER_TYPES
from orchtrace_corpus.trace.measures.shared_answers import AnswerUsage, SharedAnswers
from orchtrace_corpus.trace.model.import_report import ImportReport, report_of
from orchtrace_corpus.trace.model.terms import SECONDS, Unit
from orchtrace_corpus.trace.model.trace import Event, Tokens, Trace
from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.intervals import Intervals, length, union

_NANO = 1_000_000_000
_MAX_DAYS = 366
"""Work that takes longer than this counts on the day on which it begins."""


class Grouping(StrEnum):
    """The key of totals."""

    DAY = "day"
    MONTH = "month"
    PROJECT = "project"
    MODEL = "model"
    SESSION = "session"


class Total(NamedTuple):
    """The known tokens, cost and time of a day, month, project, model or session.

    Attributes:
        name: The day, month, project, model or session; empty if it is unknown.
        sessions: The number of sessions with answers here; a session that only copies answers does not count.
        answers: The number of answers.
        tokens: The tokens by kind: input, output, cache reads and cache writes.
        total: The sum of the tokens; None if none are known.
        cost_usd: The cost; None if none is known.
        seconds: The time in which at least one agent of any session worked; for a model, in which it generated answers.
        has_more_tokens: Whether `total` is only a lower bound.
        costs_more: Whether `cost_usd` is only a lower bound.
        has_more_time: Whether `seconds` is only a lower bound: calls have no end, or perhaps only waited.
    """

    name: str
    sessions: int
    answers: int
    tokens: Mapping[str, int]
    total: int | None
    cost_usd: float | None
    seconds: float
    has_more_tokens: bool
    costs_more: bool
    has_more_time: bool


class Breakdown(NamedTuple):
    """The totals of a report, and the sum of those that were left out.

    Attributes:
        totals: The totals.
        rest: The sum of the totals left out; None if none were.
        others: The number of totals left out.
    """

    totals: list[Total]
    rest: Total | None = None
    others: int = 0


class _Cell(Struct):
    """The tokens and cost of a session on one model in one day; cost in billionths of a dollar, so sums are exact."""

    answers: int = 0
    with_tokens: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    with_cost: int = 0
    nano_usd: int = 0
    has_more_tokens: bool = False
    costs_more: bool = False
    work: Intervals = []

    def subtract(self, copy: AnswerUsage) -> None:
        """Subtract an answer that was added twice."""
        self.answers -= 1
        if copy.tokens.is_known:
            self.with_tokens -= 1
            self.input -= int(copy.tokens.input or 0)
            self.output -= int(copy.tokens.output or 0)
            self.cache_read -= int(copy.tokens.cache_read or 0)
            self.cache_write -= int(copy.tokens.cache_write or 0)
        if copy.usd is not None:
            self.with_cost -= 1
            self.nano_usd -= round(copy.usd * _NANO)


class _Key(NamedTuple):
    """The key of a cell; `session` is its index among the sessions added."""

    session: int
    day: str
    model: str


class _Place(NamedTuple):
    """The cell in which an answer counts, with the session and file, by which equal copies are ordered."""

    trace_id: str
    file: str
    key: _Key


class _Session(NamedTuple):
    """A session of the totals.

    Attributes:
        name: Its name.
        folder: The folder it ran in; empty if it is unknown.
        work: The intervals in which its agents worked, by day.
        has_more_time: Whether its agents may have worked longer.
    """

    name: str
    folder: str
    work: Mapping[str, Intervals]
    has_more_time: bool


class _Group:
    """The parts of a total: cells, and intervals of work with their session and day."""

    def __init__(self, cells: dict[_Key, _Cell] | None = None, work: Sequence[tuple[int, str, Intervals]] = ()) -> None:
        self.cells = {} if cells is None else cells
        self.work = list(work)


class Totals:
    """Adds up runs one by one, keeping only their totals in memory.

    Attributes:
        shared: The answers that several sessions have in common.

    Args:
        zone: The time zone of the days; None for local time.
    """

    def __init__(self, zone: tzinfo | None = None) -> None:
        self.shared = SharedAnswers()
        self._days = _Days(zone)
        self._sessions: list[_Session] = []
        self._cells: dict[_Key, _Cell] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def add(self, view: TraceView, summary: Summary, ids: Mapping[int, str]) -> None:
        """Add a run.

        Args:
            view: The run.
            summary: The main figures of the run.
            ids: The ids of its answers, by the indices of their events.
        """
        session, trace = len(self._sessions), view.trace
        events, models = trace.events, self._models(view)
        cells: dict[_Key, _Cell] = {}
        places: dict[int, _Place] = {}
        for key, indices in self._by_day_and_model(view, models, session).items():
            cells[key] = _cell([events[index] for index in indices])
            if ids:
                places.update(dict.fromkeys(indices, _Place(trace.trace_id, summary.file, key)))
        _mark_unexplained(trace, summary, cells.values())
        answers: dict[str, list[int]] = {}
        for index, model in models.items():
            answers.setdefault(model, []).append(index)
        for model, indices in answers.items():
            for day, work in self._work(view, indices).items():
                cells.setdefault(_Key(session, day, model), _Cell()).work += work
        self._cells.update(cells)
        for copy in self.shared.add(trace, ids, places):
            if isinstance(copy.place, _Place):
                self._cells[copy.place.key].subtract(copy)
        has_more_time = bool(view.timing.unknown or view.open_calls)
        work_by_day = self._work(view, range(len(events)))
        self._sessions.append(_Session(summary.name, summary.folder, work_by_day, has_more_time))

    def _models(self, view: TraceView) -> dict[int, str]:
        """Return the model of each answer by the index of its event; empty if it is unknown."""
        events, declared = view.trace.events, declared_models(view.trace)
        answers = [
            n for kind in ANSWER_TYPES for n in view.graph.indices_by_type.get(kind, ()) if not events[n].copied_context
        ]
        return {n: events[n].model or declared.get(events[n].agent, "") for n in sorted(answers)}

    def _by_day_and_model(self, view: TraceView, models: Mapping[int, str], session: int) -> dict[_Key, list[int]]:
        """Return the indices of the events with tokens or a cost, and of all answers, by day and model."""
        events, day_of = view.trace.events, self._days.of_times(view.trace)
        first = min(view.graph.times)
        last = max([event.t if event.t_end is None else event.t_end for event in events])
        only_day = day_of(first) if day_of(first) == day_of(last) else None
        by_key: dict[_Key, list[int]] = {}
        for index, event in enumerate(events):
            model = models.get(index)
            if model is None:
                if event.copied_context or (event.tokens is UNSET and event.cost_usd is None):
                    continue
                model = event.model
            day = only_day
            if day is None:
                day = day_of(event.t if event.t_end is None else event.t_end)
            by_key.setdefault(_Key(session, day, model), []).append(index)
        return by_key

    def first_day(self, view: TraceView) -> str:
        """Return the day on which a run began, ignoring copied history; empty if it is unknown."""
        zero, times = self._days.zero(view.trace), view.timing
        if zero is None:
            return ""
        ((begin, _),) = times.with_waits([(times.begin, times.begin)])
        return self._days.of(zero + min(view.graph.times) * SECONDS[view.trace.clock.unit] + begin)

    def by(self, grouping: Grouping, limit: int | None = None) -> Breakdown:
        """Return the totals of every day, month, project, model or session.

        Days and months are in calendar order, sessions in the order in which they were added, others by cost and
        tokens, largest first.

        Args:
            grouping: The key of the totals.
            limit: The most totals to return. `Breakdown.rest` sums the earliest days or months, or the smallest
                totals, beyond it. Sessions have no limit.
        """
        groups: dict[str | int, _Group] = {}
        name_of = self._naming(grouping)
        for key, cell in self._cells.items():
            group = groups.setdefault(name_of(key), _Group())
            group.cells[key] = cell
            if grouping is Grouping.MODEL:
                group.work.append((key.session, key.day, cell.work))
        if grouping is not Grouping.MODEL:
            for index, session in enumerate(self._sessions):
                for day, work in session.work.items():
                    groups.setdefault(name_of(_Key(index, day, "")), _Group()).work.append((index, day, work))
        if grouping is Grouping.SESSION:
            return Breakdown(
                [self._total(session.name, groups.get(index, _Group())) for index, session in enumerate(self._sessions)]
            )
        pairs = [(self._total(str(name), group), group) for name, group in groups.items()]
        is_by_time = grouping in (Grouping.DAY, Grouping.MONTH)
        if is_by_time:
            pairs.sort(key=lambda pair: pair[0].name, reverse=True)
        else:
            pairs.sort(key=lambda pair: (-(pair[0].cost_usd or 0.0), -(pair[0].total or 0), pair[0].name))
        totals = [total for total, _ in pairs[:limit]]
        rest = [group for _, group in pairs[len(totals) :]]
        if is_by_time:
            totals.reverse()
        if not rest:
            return Breakdown(totals)
        cells = {key: cell for group in rest for key, cell in group.cells.items()}
        parts = [part for group in rest for part in group.work]
        return Breakdown(totals, self._total("", _Group(cells, parts)), len(rest))

    @property
    def projects(self) -> dict[str, str]:
        """Return the project name of each folder in which a session ran."""
        return _project_names(session.folder for session in self._sessions)

    def all(self) -> Total:
        """Return the total of all runs."""
        work = [(index, *part) for index, session in enumerate(self._sessions) for part in session.work.items()]
        return self._total("all", _Group(self._cells, work))

    def _work(self, view: TraceView, indices: Iterable[int]) -> dict[str, Intervals]:
        """Return the intervals in which some events were worked on, by day, in seconds since 1970."""
        times = view.timing_if_waiting
        if times.unit != "s":
            return {}
        begins, ends, works = times.begins, times.ends, times.works
        busy = union([(begins[n], ends[n]) for n in indices if works[n] > 0])
        zero = self._days.zero(view.trace)
        if zero is None or not busy:
            return {"": busy} if busy else {}
        first = zero + min(view.graph.times) * SECONDS[view.trace.clock.unit]
        intervals = [(first + begin, first + end) for begin, end in times.with_waits(busy)]
        if day := self._days.common(intervals[0][0], intervals[-1][1]):
            return {day: intervals}
        by_day: dict[str, Intervals] = {}
        for begin, end in intervals:
            for day, since, until in self._days.divide(begin, end):
                by_day.setdefault(day, []).append((since, until))
        return by_day

    def _naming(self, grouping: Grouping) -> Callable[[_Key], str | int]:
        """Return a function that maps a cell to the key of its total."""
        if grouping is Grouping.SESSION:
            return lambda key: key.session
        if grouping is Grouping.MODEL:
            return lambda key: key.model
        if grouping is Grouping.PROJECT:
            projects = self.projects
            return lambda key: projects[self._sessions[key.session].folder]
        if grouping is Grouping.MONTH:
            return lambda key: key.day[: len("2026-03")]
        return lambda key: key.day

    def _total(self, name: str, group: "_Group") -> Total:
        cells = group.cells.values()
        sessions = {key.session for key in group.cells} | {session for session, _, _ in group.work}
        tokens = {kind: sum(getattr(cell, kind) for cell in cells) for kind in COUNTED_KINDS}
        return Total(
            name,
            len({key.session for key, cell in group.cells.items() if cell.answers}),
            sum(cell.answers for cell in cells),
            tokens,
            sum(tokens.values()) if any(cell.with_tokens for cell in cells) else None,
            sum(cell.nano_usd for cell in cells) / _NANO if any(cell.with_cost for cell in cells) else None,
            _working_seconds(group.work),
            any(cell.has_more_tokens for cell in cells),
            any(cell.costs_more for cell in cells),
            any(self._sessions[index].has_more_time for index in sessions),
        )


def _project_names(folders: Iterable[str]) -> dict[str, str]:
    """Return a name for each folder: its last part, with as many parts before it as tell it from the others."""
    names: dict[str, str] = {}
    unnamed = {folder: [part for part in folder.split("/") if part] for folder in folders}
    length = 1
    while unnamed:
        folders_of: dict[str, list[str]] = {}
        for folder, parts in unnamed.items():
            folders_of.setdefault("/".join(parts[-length:]), []).append(folder)
        for name, same_name in folders_of.items():
            for folder in same_name:
                if len(same_name) == 1 or length >= len(unnamed[folder]):
                    names[folder] = name
                    del unnamed[folder]
        length += 1
    return names


def _cell(events: Sequence[Event]) -> _Cell:
    """Return the sum of the tokens and costs of events."""
    spent = [event.tokens for event in events if isinstance(event.tokens, Tokens) and event.tokens.is_known]
    costs = [event.cost_usd for event in events if event.cost_usd is not None]
    return _Cell(
        len(events),
        len(spent),
        int(sum([tokens.input or 0 for tokens in spent])),
        int(sum([tokens.output or 0 for tokens in spent])),
        int(sum([tokens.cache_read or 0 for tokens in spent])),
        int(sum([tokens.cache_write or 0 for tokens in spent])),
        len(costs),
        sum([round(usd * _NANO) for usd in costs]),
        any(map(may_have_spent_more, events)),
        len(costs) < len(spent),
    )


def _working_seconds(parts: Iterable[tuple[int, str, Intervals]]) -> float:
    """Return the time in which any agent worked, of intervals with their session and day.

    Sessions without a day share no clock, so the times of each are added.
    """
    dated: Intervals = []
    undated: dict[int, Intervals] = {}
    for session, day, work in parts:
        if day:
            dated += work
        else:
            undated.setdefault(session, []).extend(work)
    return length(union(dated)) + sum(length(union(work)) for work in undated.values())


def _mark_unexplained(trace: Trace, summary: Summary, cells: Iterable[_Cell]) -> None:
    """Mark all cells of a session as lower bounds if it spent more and no answer explains where."""
    cells = list(cells)
    report = report_of(trace) or ImportReport()
    is_explained = any(cell.has_more_tokens for cell in cells) and not report.unread and not report.missing_elsewhere()
    for cell in cells:
        cell.has_more_tokens |= summary.has_more_tokens and not is_explained
    is_explained = any(cell.costs_more for cell in cells)
    for cell in cells:
        cell.costs_more |= cell.has_more_tokens or (summary.costs_more and not is_explained)


class _Days:
    """Finds the day of a moment, given in seconds since 1970; empty for a moment outside the calendar."""

    def __init__(self, zone: tzinfo | None) -> None:
        self._zone = zone
        self._start = self._stop = 0.0
        self._day = ""

    def zero(self, trace: Trace) -> float | None:
        """Return the moment of time 0 on the clock of a trace; None if it is unknown."""
        if trace.clock.unit is Unit.STEP or not trace.clock.epoch:
            return None
        try:
            begin = datetime.fromisoformat(trace.clock.epoch)
            return (begin if begin.tzinfo else begin.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None

    def of_times(self, trace: Trace) -> Callable[[float], str]:
        """Return a function that gives the day of a time on the clock of a trace."""
        zero, unit = self.zero(trace), SECONDS[trace.clock.unit]
        return lambda moment: "" if zero is None else self.of(zero + moment * unit)

    def of(self, moment: float) -> str:
        """Return the day of a moment."""
        if not self._start <= moment < self._stop:
            self._turn_to(moment)
        return self._day

    def common(self, begin: float, end: float) -> str:
        """Return the day that contains a whole interval; empty if there is none."""
        day = self.of(begin)
        return day if day and end <= self._stop else ""

    def divide(self, begin: float, end: float) -> Iterator[tuple[str, float, float]]:
        """Yield the parts of an interval, one for each day."""
        day = self.of(begin)
        while day and begin < self._stop < end and end - begin <= _MAX_DAYS * 86_400:
            stop = self._stop
            yield day, begin, stop
            begin, day = stop, self.of(stop)
        yield day, begin, end

    def _turn_to(self, moment: float) -> None:
        """Remember the day of a moment with its begin and end, since the next moment is mostly on the same day."""
        try:
            day = datetime.fromtimestamp(moment, self._zone).date()
            start = datetime.combine(day, time(), self._zone)
            stop = datetime.combine(day + timedelta(days=1), time(), self._zone)
            self._start, self._stop, self._day = start.timestamp(), stop.timestamp(), day.isoformat()
        except (ValueError, OverflowError, OSError):
            self._start, self._stop, self._day = moment, moment, ""
