"""Totals over many runs by day, month, project, model or session. An answer that several sessions have counts once.

Tokens and costs belong to the day on which their answer was complete, in one time zone. If a part of a run is unknown,
the totals that include the run are lower bounds.
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

_NANO = 1_000_000_000  # billionths in a dollar
_MAX_WORK_DAYS = 366
"""Work that takes longer than this counts on the day on which it begins."""
_DAY_SECONDS = 86_400


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
        seconds: The time in which at least one agent of these sessions worked; for a model, in which it generated
            answers.
        has_more_tokens: True if `total` is only a lower bound.
        costs_more: True if `cost_usd` is only a lower bound.
        has_more_time: True if `seconds` is only a lower bound: calls have no end, or perhaps only waited.
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
    """The totals of a report, up to a limit, and the sum of the totals beyond it.

    Attributes:
        totals: The totals.
        rest: The sum of the totals that were left out; None if none were left out.
        others: The number of totals that were left out.
    """

    totals: list[Total]
    rest: Total | None = None
    others: int = 0


class _Cell(Struct):
    """The tokens, the cost and the time of one session with one model on one day; totals are sums of cells.

    Attributes:
        answers: The number of answers.
        with_tokens: The number of these answers with known tokens.
        input: The number of input tokens; the next fields are the numbers of tokens of the other kinds.
        with_cost: The number of these answers with a known cost.
        nano_usd: The cost in billionths of a dollar, so that sums are exact.
        has_more_tokens: True if the tokens are only a lower bound.
        costs_more: True if the cost is only a lower bound.
        work: The intervals in which the model generated answers.
    """

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
    """The key of a cell: the index of its session, its day and its model."""

    session: int
    day: str
    model: str


class _AnswerPlace(NamedTuple):
    """The cell in which an answer counts. Equal copies of an answer are ordered by `trace_id` and `file`."""

    trace_id: str
    file: str
    key: _Key


class _Session(NamedTuple):
    """A session of the totals.

    Attributes:
        name: The name of the session.
        folder: The folder in which its agents worked; empty if it is unknown.
        work_by_day: The intervals in which its agents worked, by day.
        has_more_time: True if its agents may have worked longer.
    """

    name: str
    folder: str
    work_by_day: Mapping[str, Intervals]
    has_more_time: bool


_Work = tuple[int, str, Intervals]
"""The index of a session, a day, and intervals in which its agents worked on that day."""


class _Group:
    """The parts of one total: cells, and intervals of work."""

    def __init__(self, cells: dict[_Key, _Cell] | None = None, work: Sequence[_Work] = ()) -> None:
        self.cells = {} if cells is None else cells
        self.work = list(work)


class Totals:
    """Adds up runs one by one, and keeps only their sums in memory.

    Args:
        zone: The time zone of the days; None for local time.

    Attributes:
        shared: The answers that several sessions have in common.
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
        session = len(self._sessions)
        trace, events = view.trace, view.trace.events
        models = self._models(view)
        cells: dict[_Key, _Cell] = {}
        places: dict[int, _AnswerPlace] = {}
        for key, indices in self._by_day_and_model(view, models, session).items():
            cells[key] = _cell([events[index] for index in indices])
            if ids:
                places.update(dict.fromkeys(indices, _AnswerPlace(trace.trace_id, summary.file, key)))
        _mark_lower_bounds(trace, summary, cells.values())
        answers_by_model: dict[str, list[int]] = {}
        for index, model in models.items():
            answers_by_model.setdefault(model, []).append(index)
        for model, indices in answers_by_model.items():
            for day, work in self._work_by_day(view, indices).items():
                cells.setdefault(_Key(session, day, model), _Cell()).work += work
        self._cells.update(cells)
        for copy in self.shared.add(trace, ids, places):
            if isinstance(copy.place, _AnswerPlace):
                self._cells[copy.place.key].subtract(copy)
        has_more_time = bool(view.timing.unknown or view.open_calls)
        work_by_day = self._work_by_day(view, range(len(events)))
        self._sessions.append(_Session(summary.name, summary.folder, work_by_day, has_more_time))

    def _models(self, view: TraceView) -> dict[int, str]:
        """Return the model of each answer by the index of its event; empty if it is unknown."""
        events = view.trace.events
        model_by_agent = declared_models(view.trace)
        answers: list[int] = []
        for kind in ANSWER_TYPES:
            indices = view.graph.indices_by_type.get(kind, ())
            answers += [index for index in indices if not events[index].copied_context]
        return {index: events[index].model or model_by_agent.get(events[index].agent, "") for index in sorted(answers)}

    def _by_day_and_model(self, view: TraceView, models: Mapping[int, str], session: int) -> dict[_Key, list[int]]:
        """Return the indices of all answers, and of other events with tokens or a cost, by day and model."""
        events = view.trace.events
        day_at = self._days.day_at(view.trace)
        first_day = day_at(min(view.graph.times))
        last_day = day_at(max([event.t if event.t_end is None else event.t_end for event in events]))
        is_one_day = first_day == last_day  # then the day of each event need not be computed
        indices_by_key: dict[_Key, list[int]] = {}
        for index, event in enumerate(events):
            model = models.get(index)
            if model is None:  # no answer
                if event.copied_context or (event.tokens is UNSET and event.cost_usd is None):
                    continue
                model = event.model
            day = first_day
            if not is_one_day:
                day = day_at(event.t if event.t_end is None else event.t_end)
            indices_by_key.setdefault(_Key(session, day, model), []).append(index)
        return indices_by_key

    def first_day(self, view: TraceView) -> str:
        """Return the day on which a run began, without copied history; empty if it is unknown."""
        zero = self._days.zero(view.trace)
        if zero is None:
            return ""
        times = view.timing
        ((begin, _),) = times.with_waits([(times.begin, times.begin)])  # from the first event on the wall clock
        first_event = zero + min(view.graph.times) * SECONDS[view.trace.clock.unit]
        return self._days.day(first_event + begin)

    def by(self, grouping: Grouping, limit: int | None = None) -> Breakdown:
        """Return the totals of every day, month, project, model or session.

        Days and months are in calendar order, sessions in the order in which they were added. Projects and models are
        sorted by cost, then by tokens, the largest first.

        Args:
            grouping: The key of the totals.
            limit: The largest number of totals to return. `Breakdown.rest` is the sum of the others: of the earliest
                days or months, or of the smallest totals. Sessions have no limit.
        """
        groups = self._groups(grouping)
        if grouping is Grouping.SESSION:
            session_totals = []
            for index, session in enumerate(self._sessions):
                session_totals.append(self._total(session.name, groups.get(index, _Group())))
            return Breakdown(session_totals)
        group_by_name = {str(name): group for name, group in groups.items()}
        totals = [self._total(name, group) for name, group in group_by_name.items()]
        is_by_time = grouping in (Grouping.DAY, Grouping.MONTH)
        if is_by_time:  # the latest first, so that the limit leaves out the earliest
            totals.sort(key=lambda total: total.name, reverse=True)
        else:
            totals.sort(key=lambda total: (-(total.cost_usd or 0.0), -(total.total or 0), total.name))
        listed = totals[:limit]
        left_out = totals[len(listed) :]
        if is_by_time:
            listed.reverse()
        if not left_out:
            return Breakdown(listed)
        cells: dict[_Key, _Cell] = {}
        work: list[_Work] = []
        for total in left_out:
            cells.update(group_by_name[total.name].cells)
            work += group_by_name[total.name].work
        return Breakdown(listed, rest=self._total("", _Group(cells, work)), others=len(left_out))

    def _groups(self, grouping: Grouping) -> dict[str | int, _Group]:
        """Return the parts of each total by its name, or by the index of its session."""
        groups: dict[str | int, _Group] = {}
        group_key = self._group_key(grouping)
        for key, cell in self._cells.items():
            group = groups.setdefault(group_key(key), _Group())
            group.cells[key] = cell
            if grouping is Grouping.MODEL:
                group.work.append((key.session, key.day, cell.work))
        if grouping is not Grouping.MODEL:
            for index, session in enumerate(self._sessions):
                for day, work in session.work_by_day.items():
                    group = groups.setdefault(group_key(_Key(index, day, "")), _Group())
                    group.work.append((index, day, work))
        return groups

    @property
    def projects(self) -> dict[str, str]:
        """The project name of each folder in which a session ran."""
        return _project_names(session.folder for session in self._sessions)

    def all(self) -> Total:
        """Return the total of all runs."""
        work = []
        for index, session in enumerate(self._sessions):
            work += [(index, day, intervals) for day, intervals in session.work_by_day.items()]
        return self._total("all", _Group(self._cells, work))

    def _work_by_day(self, view: TraceView, indices: Iterable[int]) -> dict[str, Intervals]:
        """Return the intervals in which some events were worked on, by day, in seconds since 1970.

        For a trace without dates, the day is empty, and the intervals are on the clock of the trace.
        """
        times = view.timing_if_waiting
        if times.unit != "s":
            return {}
        begins, ends, works = times.work_starts, times.ends, times.works
        busy = union([(begins[index], ends[index]) for index in indices if works[index] > 0])
        if not busy:
            return {}
        zero = self._days.zero(view.trace)
        if zero is None:
            return {"": busy}
        first = zero + min(view.graph.times) * SECONDS[view.trace.clock.unit]
        intervals = [(first + begin, first + end) for begin, end in times.with_waits(busy)]
        (first_begin, _), (_, last_end) = intervals[0], intervals[-1]
        if day := self._days.common_day(first_begin, last_end):
            return {day: intervals}
        work_by_day: dict[str, Intervals] = {}
        for begin, end in intervals:
            for day, day_begin, day_end in self._days.divide(begin, end):
                work_by_day.setdefault(day, []).append((day_begin, day_end))
        return work_by_day

    def _group_key(self, grouping: Grouping) -> Callable[[_Key], str | int]:
        """Return a function that maps the key of a cell to the key of its total."""
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
        total, cost_usd = None, None
        if any(cell.with_tokens for cell in cells):
            total = sum(tokens.values())
        if any(cell.with_cost for cell in cells):
            cost_usd = sum(cell.nano_usd for cell in cells) / _NANO
        return Total(
            name=name,
            sessions=len({key.session for key, cell in group.cells.items() if cell.answers}),
            answers=sum(cell.answers for cell in cells),
            tokens=tokens,
            total=total,
            cost_usd=cost_usd,
            seconds=_working_seconds(group.work),
            has_more_tokens=any(cell.has_more_tokens for cell in cells),
            costs_more=any(cell.costs_more for cell in cells),
            has_more_time=any(self._sessions[index].has_more_time for index in sessions),
        )


def _project_names(folders: Iterable[str]) -> dict[str, str]:
    """Return a name for each folder: the shortest end of its path that no other folder has."""
    names: dict[str, str] = {}
    unnamed = {folder: [part for part in folder.split("/") if part] for folder in folders}
    part_count = 1
    while unnamed:
        folders_by_name: dict[str, list[str]] = {}
        for folder, parts in unnamed.items():
            folders_by_name.setdefault("/".join(parts[-part_count:]), []).append(folder)
        for name, folders_of_name in folders_by_name.items():
            for folder in folders_of_name:
                is_whole_path = part_count >= len(unnamed[folder])
                if len(folders_of_name) == 1 or is_whole_path:
                    names[folder] = name
                    del unnamed[folder]
        part_count += 1
    return names


def _cell(events: Sequence[Event]) -> _Cell:
    """Return the cell with the sum of the tokens and costs of events."""
    known_tokens = [event.tokens for event in events if isinstance(event.tokens, Tokens) and event.tokens.is_known]
    costs = [event.cost_usd for event in events if event.cost_usd is not None]
    return _Cell(
        answers=len(events),
        with_tokens=len(known_tokens),
        input=int(sum([tokens.input or 0 for tokens in known_tokens])),
        output=int(sum([tokens.output or 0 for tokens in known_tokens])),
        cache_read=int(sum([tokens.cache_read or 0 for tokens in known_tokens])),
        cache_write=int(sum([tokens.cache_write or 0 for tokens in known_tokens])),
        with_cost=len(costs),
        nano_usd=sum([round(usd * _NANO) for usd in costs]),
        has_more_tokens=any(map(may_have_spent_more, events)),
        costs_more=len(costs) < len(known_tokens),
    )


def _working_seconds(all_work: Iterable[_Work]) -> float:
    """Return the time in which at least one agent worked.

    Sessions without a day share no clock with others, so their times are added.
    """
    dated: Intervals = []
    undated_by_session: dict[int, Intervals] = {}
    for session, day, work in all_work:
        if day:
            dated += work
        else:
            undated_by_session.setdefault(session, []).extend(work)
    return length(union(dated)) + sum(length(union(work)) for work in undated_by_session.values())


def _mark_lower_bounds(trace: Trace, summary: Summary, cells: Iterable[_Cell]) -> None:
    """Mark all cells of a session as lower bounds if it spent more than is known, and no single cell explains it."""
    cells = list(cells)
    report = report_of(trace) or ImportReport()
    is_explained = any(cell.has_more_tokens for cell in cells) and not report.unread and not report.missing_elsewhere()
    for cell in cells:
        cell.has_more_tokens |= summary.has_more_tokens and not is_explained
    is_explained = any(cell.costs_more for cell in cells)
    for cell in cells:
        cell.costs_more |= cell.has_more_tokens or (summary.costs_more and not is_explained)


class _Days:
    """Finds the day of a moment, given in seconds since 1970; the day of a moment outside the calendar is empty."""

    def __init__(self, zone: tzinfo | None) -> None:
        self._zone = zone
        self._start = self._stop = 0.0  # when the remembered day begins, and when the next day begins
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

    def day_at(self, trace: Trace) -> Callable[[float], str]:
        """Return a function from a time on the clock of a trace to its day; empty if the trace has no date."""
        zero = self.zero(trace)
        unit = SECONDS[trace.clock.unit]
        return lambda time_on_clock: "" if zero is None else self.day(zero + time_on_clock * unit)

    def day(self, moment: float) -> str:
        """Return the day of a moment."""
        if not self._start <= moment < self._stop:
            self._remember_day(moment)
        return self._day

    def common_day(self, begin: float, end: float) -> str:
        """Return the day that contains a whole interval; empty if there is none."""
        day = self.day(begin)
        return day if day and end <= self._stop else ""

    def divide(self, begin: float, end: float) -> Iterator[tuple[str, float, float]]:
        """Yield the parts of an interval, one for each day: the day, and the begin and the end of the part."""
        day = self.day(begin)
        while day and begin < self._stop < end and end - begin <= _MAX_WORK_DAYS * _DAY_SECONDS:
            next_day_begin = self._stop
            yield day, begin, next_day_begin
            begin = next_day_begin
            day = self.day(begin)
        yield day, begin, end

    def _remember_day(self, moment: float) -> None:
        """Remember the day of a moment with its begin and end, since the next moment is mostly on the same day."""
        try:
            day = datetime.fromtimestamp(moment, self._zone).date()
            start = datetime.combine(day, time(), self._zone)
            stop = datetime.combine(day + timedelta(days=1), time(), self._zone)
            self._start, self._stop, self._day = start.timestamp(), stop.timestamp(), day.isoformat()
        except (ValueError, OverflowError, OSError):
            self._start, self._stop, self._day = moment, moment, ""
