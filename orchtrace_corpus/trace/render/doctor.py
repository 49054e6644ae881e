"""A run as a screen or as JSON values; many runs as a table with a row for each."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.layout import UNICODE, Glyphs, Line, clip, display_width, line
from orchtrace_corpus.trace.diagnosis import perhaps_waiting
from orchtrace_corpus.trace.diagnosis.lever import biggest_lever
from orchtrace_corpus.trace.diagnosis.values import Diagnosis, ProblemKind, Summary
from orchtrace_corpus.trace.measures.ledger import sum_known
from orchtrace_corpus.trace.measures.shared_answers import SharedAnswers
from orchtrace_corpus.trace.render import findings
from orchtrace_corpus.trace.render.imports import answers_without_ids
from orchtrace_corpus.trace.render.names import (
    agent_names,
    break_lines,
    duration,
    format_count,
    money,
    restore_blanks,
    unbroken_count,
)
from orchtrace_corpus.trace.render.sentences import TEAM, Sentences
from orchtrace_corpus.trace.render.show import timelines
from orchtrace_corpus.trace.view.agent_tree import AgentSpan
from orchtrace_corpus.trace.view.open_calls import Cause, OpenCall
from orchtrace_corpus.trace.view.stated_turns import TurnWait

if TYPE_CHECKING:  # a screen needs no table
    from orchtrace_corpus.base.text.table import Cell, Table

_PIPE_WIDTH = 100
_COST = "USD"
_AT_LEAST = "+"
_FIRST_WORDS = "first words"
_TEXT_COLUMNS = ("session", "project", "began", "file", _FIRST_WORDS)
"""The columns of text; the others are figures, aligned to the right."""

_DISPENSABLE = ("events", "errors", "agents", "began", "project")
"""The columns that a narrow terminal leaves out, in this order."""

_PARALLELISM_FIELDS = {
    "most": "max_concurrency",
    "together": "parallel_share",
    "alone": "single_share",
    "idle": "idle_share",
}
"""The names of figures in JSON, and the fields of `Parallelism`."""

_MIN_AGENTS = 4
_MAX_AGENTS = 16
_MAX_FILE = _MAX_NAME = 40
_MIN_NAME = 13
_MAX_PROJECT = 24
_MAX_FIRST_WORDS = 80
_MAX_REQUIRED_WIDTH = 36
"""The largest width in cells that a column needs; the table cuts wider texts instead of leaving out a column."""


def page(diagnosis: Diagnosis, size: tuple[int, int] | None, glyphs: Glyphs = UNICODE) -> list[Line]:
    """Return a run as a screen that fits the width of a terminal and, if possible, its height.

    `size` is the columns and the lines of the terminal; None without a terminal.
    """
    sentences, summary, agents = Sentences(diagnosis), diagnosis.summary, diagnosis.view.agents
    room = _PIPE_WIDTH
    if size is not None:
        room = min(size[0], _PIPE_WIDTH)
    indent = 10 if room >= 50 else 2
    title = f"{diagnosis.origin.form} {printable(summary.name, limit=200)}"
    head = [line(clip(title, room, glyphs.ellipsis), "heading")]
    if summary.first_words:
        words = printable(summary.first_words, limit=_MAX_FIRST_WORDS)
        head.append(line(clip(f"Began with: {words}", room, glyphs.ellipsis)))
    head += [line(text) for text in break_lines(sentences.head(), room)]
    paragraphs: list[tuple[str, list[str]]] = []  # each as its label and its lines
    for label, text in (*sentences.paragraphs(), *sentences.lever()):
        prefix = f"{label} " if label else ""
        paragraphs.append((label, break_lines(text, room, label=prefix, indent=indent)))
    max_agents = _MAX_AGENTS
    if size is not None:
        free = size[1] - len(head) - 4  # four lines: the scale, the legend, the agents left out, and the prompt
        for dispensable in (findings.WAITS, TEAM, findings.MORE):
            if sum(len(texts) for _, texts in paragraphs) + min(len(agents), _MIN_AGENTS) > free:
                paragraphs = [(label, texts) for label, texts in paragraphs if label != dispensable]
        max_agents = max(free - sum(len(texts) for _, texts in paragraphs), _MIN_AGENTS)
    shown_agents = _most_important(diagnosis, max_agents)
    timeline_lines = timelines(diagnosis, shown_agents, room, glyphs, sentences.names)
    if left_out := len(agents) - len(shown_agents):
        text = f"{glyphs.ellipsis} and {unbroken_count(left_out, 'more agent')}, in the sums"
        after_agents = 1 + len(shown_agents)  # the first line is the scale
        timeline_lines[after_agents:after_agents] = [line(part, "muted") for part in break_lines(text, room)]
    # These lines are not broken again, so that unbreakable blanks can become ordinary ones.
    timeline_lines = [
        tuple(span._replace(text=restore_blanks(span.text)) for span in spans) for spans in timeline_lines
    ]
    lines = [*head, *timeline_lines]
    for _, texts in paragraphs:
        lines += [line(text) for text in texts]
    return lines


def _most_important(diagnosis: Diagnosis, max_agents: int) -> list[AgentSpan]:
    """Return the most important agents: on the critical path, then with most tokens; each with its ancestors."""
    agents, chain = diagnosis.view.agents, diagnosis.path.chain
    if len(agents) <= max_agents:
        return agents
    events = diagnosis.view.trace.events
    parts = zip(chain.events, chain.worked, strict=True)
    agents_on_path = {events[index].agent for index, seconds in parts if seconds > 0}

    def importance(place: int) -> tuple[bool, bool, float]:
        agent = agents[place]
        return agent.agent in diagnosis.people, agent.agent not in agents_on_path, -(agent.tokens or 0.0)

    kept: set[int] = set()
    for place in sorted(range(len(agents)), key=importance):
        with_ancestors = [place]
        depth = agents[place].depth
        # An agent comes after its ancestors: its parent is the nearest agent before it that has a smaller depth.
        for earlier in range(place - 1, -1, -1):
            if not depth or len(with_ancestors) > max_agents:
                break
            if agents[earlier].depth < depth:
                with_ancestors.append(earlier)
                depth = agents[earlier].depth
        if len(kept.union(with_ancestors)) <= max_agents:
            kept.update(with_ancestors)
        if len(kept) == max_agents:
            break
    return [agents[place] for place in sorted(kept)]


def as_data(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the figures of a run for programs, in the units of the trace.

    Unknown figures are null. If `at_least` is true, the figures of the same object are only lower bounds.
    """
    view, summary, path = diagnosis.view, diagnosis.summary, diagnosis.path
    events, works, chain = view.trace.events, view.timing.works, path.chain
    worked, elapsed = sum(works), summary.elapsed
    worked_if_waiting = sum(view.timing_if_waiting.works)
    at_least = {"at_least": path.unknown > 0}  # calls without an end count as 0
    open_events, names = perhaps_waiting(view), agent_names(view)
    speed_up = None
    if elapsed:
        speed_up = {"if_working": worked / elapsed, "if_waiting": worked_if_waiting / elapsed, **at_least}
    lever = biggest_lever(diagnosis)
    if_working, if_waiting = diagnosis.parallelism, diagnosis.parallelism_if_waiting
    parallelism = None
    if if_working is not None and if_waiting is not None:
        parallelism = {
            name: {"if_working": getattr(if_working, field), "if_waiting": getattr(if_waiting, field)}
            for name, field in _PARALLELISM_FIELDS.items()
        }
    return {
        "session": summary.name,
        "file": diagnosis.origin.file,
        "form": diagnosis.origin.form,
        "events": summary.events,
        "errors": summary.errors,
        "unit": summary.unit,
        "elapsed": elapsed,
        "waited": diagnosis.waited,
        "worked": {"if_working": worked, "if_waiting": worked_if_waiting, **at_least},
        "worked_assumed": sum(works[index] for index in diagnosis.assumed_events),
        "unknown_durations": path.unknown,
        "span": {"if_working": path.span.length, "if_waiting": path.span_if_waiting.length, **at_least},
        "speed_up": speed_up,
        "parallelism": parallelism,
        "open_calls": [_open_call(call, diagnosis) for call in view.open_calls],
        "turns": [_turn(wait, diagnosis) for wait in view.timing.stated.waits],
        "agents": [
            {
                "agent": agent.agent,
                "name": names[agent.agent],
                "role": agent.role,
                "depth": agent.depth,
                "person": agent.agent in diagnosis.people,
                **view.agent_times[agent.agent]._asdict(),
                "tokens": agent.tokens,
                "tokens_at_least": agent.agent in diagnosis.tokens.agents_with_unknown_tokens,
            }
            for agent in view.agents
        ],
        "critical_path": [
            {
                "event": events[index].id,
                "agent": events[index].agent,
                "worked": part,
                "gap_before": gap,
                "assumed": index in diagnosis.assumed_events,
                "open": index in open_events,
            }
            for index, part, gap in zip(chain.events, chain.worked, chain.gaps, strict=True)
        ],
        "critical_path_gap_after": chain.after,
        "tokens": {
            "known": summary.tokens,
            "at_least": summary.has_more_tokens,
            "hidden": diagnosis.tokens.max_hidden,
        },
        "cost_usd": {
            "known": summary.cost_usd,
            "at_least": summary.costs_more,
            "by_agent": dict(diagnosis.cost.by_agent),
            "by_model": dict(diagnosis.cost.by_model),
            "by_tool": dict(diagnosis.cost.by_tool),
            "stated": diagnosis.cost.stated,
        },
        "lever": None if lever is None else lever._asdict(),
        **findings.as_data(diagnosis),
        "problems": {
            problem.text or problem.kind.value: problem.occurrences
            for problem in diagnosis.problems
            if problem.kind is not ProblemKind.FAILED_EVENT
        },
    }


def _event_and_tool(index: int, diagnosis: Diagnosis) -> dict[str, str]:
    event = diagnosis.view.trace.events[index]
    return {"event": event.id, "agent": event.agent, "tool": event.tool}


def _open_call(call: OpenCall, diagnosis: Diagnosis) -> dict[str, Any]:
    times = diagnosis.view.timing
    return {
        **_event_and_tool(call.event, diagnosis),
        "cause": call.cause.value,
        "open": times.works[call.event],
        "in_waits": times.waits_after_last_seen(call.event) if call.cause is Cause.UNFINISHED else 0.0,
        "begin": max(times.starts[call.event] - times.begin, 0.0),
        "usual": call.usual,
    }


def _turn(wait: TurnWait, diagnosis: Diagnosis) -> dict[str, Any]:
    """Return a turn that waited or slept, with the least and the longest wait of each of its calls."""
    turn = wait.turn
    return {
        "agent": turn.agent,
        "t": turn.t,
        "t_end": turn.t_end,
        "stated": turn.run_time,
        "excludes": turn.excludes.value,
        "seconds": wait.seconds,
        "calls": [
            {**_event_and_tool(call.event, diagnosis), "least": call.least, "most": call.most} for call in wait.calls
        ],
    }


def overview(
    summaries: Sequence[Summary],
    shared: SharedAnswers,
    *,
    has_prices: bool,
    most: int,
    width: int | None = None,
    projects: Mapping[str, str] = {},
    with_content: bool = False,
) -> "Table":
    """Return a table of many runs by cost, then by tokens, then by time, largest first.

    A run without a price is ranked by its tokens at the average price of the others. Runs after the first `most` are
    added up in one row. In the sum of all runs, an answer that several runs have counts once; `shared` knows copies.
    Columns without room on a terminal of this width are left out. `projects` has the names of projects by their
    folders.
    """
    from orchtrace_corpus.base.text.table import Table

    priced = [summary for summary in summaries if summary.cost_usd is not None and summary.tokens]
    priced_usd = sum(summary.cost_usd or 0.0 for summary in priced)
    priced_tokens = sum(summary.tokens or 0.0 for summary in priced)
    average_price = priced_usd / priced_tokens if priced_tokens else 0.0

    def rank(summary: Summary) -> tuple[float, float, float, str]:
        tokens = summary.tokens or 0.0
        usd = summary.cost_usd
        if usd is None:
            usd = average_price * tokens
        return -usd, -tokens, -summary.elapsed, summary.name

    ordered = sorted(summaries, key=rank)
    name_length = _MAX_NAME
    if width is not None:
        name_length = distinct_length([summary.name for summary in ordered])
    rows = [_texts(summary, projects, name_length) for summary in ordered[:most]]
    if len(ordered) > most:
        name = format_count(len(ordered) - most, "more session")
        rows.append(_texts(_sum(name, ordered[most:]), projects))
    if len(ordered) > 1:
        rows.append(_texts(_sum_without_copies("all", ordered, shared), projects))
    widths = {column: max(len(column), *(display_width(row[column]) for row in rows)) for column in rows[0]}
    has_equal_names = len({clip(summary.name, _MAX_NAME) for summary in ordered}) < len(ordered)
    is_shown = {
        _COST: has_prices,
        "file": has_equal_names,
        "project": any(projects.values()),
        _FIRST_WORDS: with_content,
    }
    columns = [column for column in widths if is_shown.get(column, True)]
    for dispensable in _DISPENSABLE:
        required = sum(min(widths[column], _MAX_REQUIRED_WIDTH) for column in columns)
        required += len(columns) - 1  # the spaces between columns
        if width is not None and required > width:
            columns = [column for column in columns if column != dispensable]

    def align(row: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(row[name] if name in _TEXT_COLUMNS else row[name].rjust(widths[name]) for name in columns)

    notes = ["Elapsed time, without waits for people; tokens and costs as far as they are known."]
    if any(_AT_LEAST in row[name] for row in rows for name in ("tokens", _COST)):
        notes.append(f"{_AT_LEAST} at least: the logs do not record all of it. Empty: nothing of it is known.")
    if average_price and any(summary.cost_usd is None and summary.tokens for summary in ordered):
        notes.append("Sessions without a price stand where their tokens would at the average price.")
    if len(ordered) > 1:
        if shared.answers:
            copies = f"{shared.tokens:,.15g} tokens of {format_count(shared.answers, 'answer')}"
            notes.append(f"In the last line, each answer counts once: {copies} are copies from other sessions.")
        notes += answers_without_ids(shared)
    if len(ordered) > most:
        notes.append("--limit says how many sessions are listed; --format csv lists all.")
    or_file = ", or with its file" if has_equal_names else ""
    notes.append(f"To see one: --session, with the beginning of its name{or_file}.")
    heading = align({column: column for column in columns})
    title = format_count(len(ordered), "session")
    return Table("sessions", title, heading, tuple(map(align, rows)), tuple(notes), uncut="session")


def exact_overview(summaries: Sequence[Summary], projects: Mapping[str, str], *, with_content: bool) -> "Table":
    """Return a table of many runs with every digit, for programs, in the order in which they were read."""
    from orchtrace_corpus.base.text.table import Table

    columns: tuple[str, ...] = (
        "session", "project", "began", "agents", "events", "errors", "elapsed", "unit", "tokens", "tokens_at_least",
        "cost_usd", "cost_at_least", "file",
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (
            printable(summary.name),
            printable(projects.get(summary.folder, "")) or None,
            summary.day or None,
            summary.agents,
            summary.events,
            summary.errors,
            summary.elapsed,
            summary.unit,
            summary.tokens,
            summary.has_more_tokens,
            summary.cost_usd,
            summary.costs_more,
            printable(summary.file) or None,
        )
        for summary in summaries
    ]
    if with_content:
        columns = (*columns, "first_words")
        rows = [(*row, printable(summary.first_words) or None) for row, summary in zip(rows, summaries, strict=True)]
    return Table("sessions", "", columns, tuple(rows))


def distinct_length(names: Sequence[str]) -> int:
    """Return the smallest length, from `_MIN_NAME` on, at which the beginnings of all different names differ.

    People can name a session by such a beginning.
    """
    longest = max(map(len, names), default=0)
    name_count = len(set(names))
    for length in range(_MIN_NAME, longest):
        if len({name[:length] for name in names}) == name_count:
            return length
    return longest


def _sum(name: str, summaries: Sequence[Summary]) -> Summary:
    """Return the sum of several runs; it has no time, since the runs may have overlapped."""
    return Summary(
        name=name,
        day="",
        agents=sum(summary.agents for summary in summaries),
        events=sum(summary.events for summary in summaries),
        elapsed=0.0,
        unit="",
        errors=sum(summary.errors for summary in summaries),
        tokens=sum_known(summary.tokens for summary in summaries),
        cost_usd=sum_known(summary.cost_usd for summary in summaries),
        has_more_tokens=any(summary.has_more_tokens for summary in summaries),
        costs_more=any(summary.costs_more for summary in summaries),
    )


def _sum_without_copies(name: str, summaries: Sequence[Summary], shared: SharedAnswers) -> Summary:
    """Return the sum of several runs, in which an answer that several runs have counts once."""
    total = _sum(name, summaries)
    if total.tokens is not None:
        total = total._replace(tokens=total.tokens - shared.tokens)
    if total.cost_usd is not None:
        total = total._replace(cost_usd=total.cost_usd - (shared.usd or 0.0))
    return total


def sums(summaries: Sequence[Summary], shared: SharedAnswers) -> dict[str, Any]:
    """Return the sums over runs for programs; each answer counts once, and unknown figures are null."""
    total = _sum_without_copies("all", summaries, shared)
    return {
        "events": total.events,
        "errors": total.errors,
        "tokens": {"known": total.tokens, "at_least": total.has_more_tokens},
        "cost_usd": {"known": total.cost_usd, "at_least": total.costs_more},
        "copied_answers": {"answers": shared.answers, "tokens": shared.tokens, "cost_usd": shared.usd},
        "answers_without_ids": shared.without_ids,
    }


def _texts(summary: Summary, projects: Mapping[str, str], name_length: int = _MAX_NAME) -> dict[str, str]:
    """Return the texts in the row of a run, by column."""
    files = f"{summary.files:,} files: " if summary.files > 1 else ""
    room = _MAX_FILE - len(files)
    file = summary.file
    if len(file) > room:
        file = f"…{file[1 - room :]}"
    tokens = cost = ""
    if summary.tokens is not None:
        tokens = f"{summary.tokens:,.0f}"
        if summary.has_more_tokens:
            tokens += _AT_LEAST
    if summary.cost_usd is not None:
        cost = money(summary.cost_usd)
        if summary.costs_more:
            cost += _AT_LEAST
    return {
        "session": clip(printable(summary.name, limit=60)[:name_length], _MAX_NAME),
        "project": clip(printable(projects.get(summary.folder, ""), limit=60), _MAX_PROJECT),
        "began": summary.day,
        "agents": f"{summary.agents:,}",
        "events": f"{summary.events:,}",
        "errors": f"{summary.errors:,}" if summary.errors else "",
        "time": restore_blanks(duration(summary.elapsed, summary.unit)) if summary.unit else "",
        "tokens": tokens,
        _COST: cost,
        "file": files + printable(file),
        _FIRST_WORDS: printable(summary.first_words, limit=_MAX_FIRST_WORDS),
    }
