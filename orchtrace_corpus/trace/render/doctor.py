"""A logged run on one screen, or as figures for programs; and many of them, a line for each."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.layout import UNICODE, Glyphs, Line, clip, display_width, line
from orchtrace_corpus.trace.diagnosis import perhaps_waiting
from orchtrace_corpus.trace.diagnosis.lever import biggest_lever
from orchtrace_corpus.trace.diagnosis.values import Diagnosis, ProblemKind, Summary
from orchtrace_corpus.trace.measures.ledger import sum_known
from orchtrace_corpus.trace.measures.shared_answers import Shared
from orchtrace_corpus.trace.render import findings
from orchtrace_corpus.trace.render.names import break_lines, counted, duration, money, names_in, quantity
from orchtrace_corpus.trace.render.page import timelines
from orchtrace_corpus.trace.render.sentences import TEAM, Sentences
from orchtrace_corpus.trace.view.agent_tree import AgentSpan
from orchtrace_corpus.trace.view.open_calls import Cause
from orchtrace_corpus.trace.view.stated_turns import TurnWait

if TYPE_CHECKING:  # a screen needs no table
    from orchtrace_corpus.base.text.table import Cell, Table

_PIPE_WIDTH = 100
_COST = "USD"
_AT_LEAST = "+"
_FIRST_WORDS = "first words"
_WORDS = ("session", "project", "began", "file", _FIRST_WORDS)
"""The columns that are words; the others are figures, and stand to the right."""

_DISPENSABLE = ("events", "errors", "agents", "began", "project")
"""The columns that a narrow terminal does without, in this order."""

_LEAST_AGENTS = 4
_MAX_FILE = _MAX_NAME = 40
_MIN_NAME = 13
_MAX_PROJECT = 24
_MAX_FIRST_WORDS = 80
_MAX_WORDS = 36
"""The cells of a column that count when columns are left out: texts that are longer can be cut."""


def page(diagnosis: Diagnosis, size: tuple[int, int] | None, glyphs: Glyphs = UNICODE) -> list[Line]:
    """The run on a page that fits the width, and the height as far as the text lets it.

    Args:
        diagnosis: What is known of the run.
        size: The columns and lines of the terminal; None where there is none.
        glyphs: The characters to draw with.
    """
    sentences, origin = Sentences(diagnosis), diagnosis.origin
    room = min(size[0] if size else _PIPE_WIDTH, _PIPE_WIDTH)
    indent = 10 if room >= 50 else 2
    title = f"{origin.form} {printable(diagnosis.summary.name, limit=200)}"
    above = [line(clip(title, room, glyphs.ellipsis), "heading")]
    if diagnosis.summary.first_words:
        words = printable(diagnosis.summary.first_words, limit=_MAX_FIRST_WORDS)
        above.append(line(clip(f"Began with: {words}", room, glyphs.ellipsis)))
    above += [line(text) for text in break_lines(sentences.head(), room)]
    paragraphs = [
        (label, [line(part) for part in break_lines(text, room, label=f"{label} " if label else "", indent=indent)])
        for label, text in (*sentences.paragraphs(), *sentences.lever())
    ]
    free = len(diagnosis.view.agents) if size is None else size[1] - len(above) - 4
    least = min(len(diagnosis.view.agents), _LEAST_AGENTS)
    for dispensable in (findings.WAITS, TEAM, findings.MORE):
        if size is not None and sum(len(part) for _, part in paragraphs) + least > free:
            paragraphs = [(label, part) for label, part in paragraphs if label != dispensable]
    below = [one for _, part in paragraphs for one in part]
    most = 16 if size is None else max(free - len(below), _LEAST_AGENTS)
    return [*above, *_drawn(diagnosis, sentences, most, room, glyphs), *below]


def _drawn(diagnosis: Diagnosis, sentences: Sentences, most: int, room: int, glyphs: Glyphs) -> list[Line]:
    """The agents that fit, each with its line of time; how many do not; the signs that were used."""
    view, shown = diagnosis.view, _shown(diagnosis, most)
    lines = timelines(diagnosis, shown, room, glyphs, sentences.names)
    left_out = len(view.agents) - len(shown)
    if left_out:
        text = f"{glyphs.ellipsis} and {quantity(left_out, 'more agent')}, in the sums"
        lines[1 + len(shown) : 1 + len(shown)] = [line(part, "muted") for part in break_lines(text, room)]
    return [tuple(span._replace(text=span.text.replace("\ue000", " ")) for span in one) for one in lines]


def _shown(diagnosis: Diagnosis, most: int) -> list[AgentSpan]:
    """The agents that fit the screen: those on the critical path, then those of most tokens, each below its parents."""
    everybody, chain = diagnosis.view.agents, diagnosis.path.chain
    if len(everybody) <= most:
        return everybody
    events = diagnosis.view.trace.events
    on_path = {events[n].agent for n, part in zip(chain.events, chain.parts, strict=True) if part > 0}
    kept_places: set[int] = set()

    def weight(place: int) -> tuple[bool, bool, float]:
        one = everybody[place]
        return one.agent in diagnosis.people, one.agent not in on_path, -(one.tokens or 0.0)

    for place in sorted(range(len(everybody)), key=weight):
        above, depth = [place], everybody[place].depth
        for earlier in range(place - 1, -1, -1):
            if not depth or len(above) > most:
                break
            if everybody[earlier].depth < depth:
                above.append(earlier)
                depth = everybody[earlier].depth
        if len(kept_places | set(above)) <= most:
            kept_places.update(above)
        if len(kept_places) == most:
            break
    return [everybody[place] for place in sorted(kept_places)]


def as_data(diagnosis: Diagnosis) -> dict[str, Any]:
    """The figures of the page for programs, in the units of the trace.

    Totals that something is missing of say so, and what is unknown is null.
    """
    view, summary, path = diagnosis.view, diagnosis.summary, diagnosis.path
    events, works, chain = view.trace.events, view.timing.works, path.chain
    worked, elapsed = sum(works), summary.elapsed
    is_least = {"at_least": path.unknown > 0}  # calls without an end are in it as 0
    if_waiting = sum(view.timing_if_waiting.works)
    opened, names = perhaps_waiting(view), names_in(view)
    return {
        "session": summary.name,
        "file": diagnosis.origin.file,
        "form": diagnosis.origin.form,
        "events": summary.events,
        "errors": summary.errors,
        "unit": summary.unit,
        "elapsed": elapsed,
        "waited": diagnosis.waited,
        "worked": {"if_working": worked, "if_waiting": if_waiting, **is_least},
        "worked_assumed": sum(works[index] for index in diagnosis.assumed),
        "unknown_durations": path.unknown,
        "span": {"if_working": path.span.length, "if_waiting": path.span_if_waiting.length, **is_least},
        "speed_up": {"if_working": worked / elapsed, "if_waiting": if_waiting / elapsed, **is_least}
        if elapsed
        else None,
        "parallelism": _shares(diagnosis),
        "open_calls": [
            {
                "event": events[open_call.event].id,
                "agent": events[open_call.event].agent,
                "tool": events[open_call.event].tool,
                "cause": open_call.cause.value,
                "open": works[open_call.event],
                "in_waits": view.timing.waits_unseen(open_call.event) if open_call.cause is Cause.UNFINISHED else 0.0,
                "begin": max(view.timing.starts[open_call.event] - view.timing.begin, 0.0),
                "usual": open_call.usual,
            }
            for open_call in view.open_calls
        ],
        "turns": [_turn_wait(wait, diagnosis) for wait in view.timing.stated.waits],
        "agents": [
            {
                "agent": agent.agent,
                "name": names[agent.agent],
                "role": agent.role,
                "depth": agent.depth,
                "person": agent.agent in diagnosis.people,
                **view.agent_times[agent.agent]._asdict(),
                "tokens": agent.tokens,
                "tokens_at_least": agent.agent in diagnosis.tokens.least,
            }
            for agent in view.agents
        ],
        "critical_path": [
            {
                "event": events[index].id,
                "agent": events[index].agent,
                "worked": part,
                "gap_before": gap,
                "assumed": index in diagnosis.assumed,
                "open": index in opened,
            }
            for index, part, gap in zip(chain.events, chain.parts, chain.gaps, strict=True)
        ],
        "critical_path_gap_after": chain.after,
        "tokens": {
            "known": summary.tokens,
            "at_least": summary.has_more_tokens,
            "hidden": diagnosis.tokens.hidden,
        },
        "cost_usd": {
            "known": summary.cost_usd,
            "at_least": summary.costs_more,
            "by_agent": dict(diagnosis.cost.by_agent),
            "by_model": dict(diagnosis.cost.by_model),
            "by_tool": dict(diagnosis.cost.by_tool),
            "stated": diagnosis.cost.stated,
        },
        "lever": None if (lever := biggest_lever(diagnosis)) is None else lever._asdict(),
        **findings.as_data(diagnosis),
        "problems": {
            problem.text or problem.kind.value: problem.number
            for problem in diagnosis.problems
            if problem.kind is not ProblemKind.FAILED_EVENT
        },
    }


def _turn_wait(wait: TurnWait, diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the time that the stated duration of a turn omits, and the calls that it lies in, as a range."""
    events, turn = diagnosis.view.trace.events, wait.turn
    return {
        "agent": turn.agent,
        "t": turn.t,
        "t_end": turn.t_end,
        "stated": turn.run_time,
        "excludes": turn.excludes.value,
        "seconds": wait.seconds,
        "calls": [
            {
                "event": events[call.event].id,
                "agent": events[call.event].agent,
                "tool": events[call.event].tool,
                "least": call.least,
                "most": call.most,
            }
            for call in wait.calls
        ],
    }


def _shares(diagnosis: Diagnosis) -> dict[str, Any] | None:
    """Return the parallelism with open calls as work and as waiting: most events at once, shares of the time."""
    found, waiting = diagnosis.parallelism, diagnosis.parallelism_if_waiting
    if found is None or waiting is None:
        return None
    names = ("most", "together", "alone", "idle")
    return {name: {"if_working": getattr(found, name), "if_waiting": getattr(waiting, name)} for name in names}


def overview(
    summaries: Sequence[Summary],
    shared: Shared,
    *,
    has_prices: bool,
    most: int,
    width: int | None = None,
    projects: Mapping[str, str] = {},
    with_content: bool = False,
) -> "Table":
    """Return a table of many runs: the greatest cost first, else the most tokens, else the most time.

    A run without a price stands where its tokens would at the average price of the others.

    Args:
        summaries: The runs.
        shared: The answers that several of them have; in the sum of all, each counts once.
        has_prices: Whether there is a column of costs.
        most: The most runs that are listed; the others are counted.
        width: The cells of the terminal, in which columns of little weight may have no room; None for none.
        projects: What the project of each folder is called.
        with_content: Whether the first words of each run are shown.
    """
    from orchtrace_corpus.base.text.table import Table

    priced = [(summary.cost_usd, summary.tokens) for summary in summaries if summary.cost_usd is not None]
    price = sum(usd or 0.0 for usd, tokens in priced if tokens) / (sum(tokens or 0.0 for _, tokens in priced) or 1)

    def weight(summary: Summary) -> tuple[float, float, float, str]:
        tokens = summary.tokens or 0.0
        usd = price * tokens if summary.cost_usd is None else summary.cost_usd
        return -usd, -tokens, -summary.elapsed, summary.name

    ordered = sorted(summaries, key=weight)
    shown = ordered[:most]
    least_name = _MAX_NAME if width is None else distinct([summary.name for summary in ordered])
    rows = [_texts(summary, projects, least_name) for summary in shown]
    if len(ordered) > most:
        rest = break_lines(quantity(len(ordered) - most, "more session"), 80)[0]
        rows.append(_texts(_together(rest, ordered[most:]), projects))
    if len(ordered) > 1:
        rows.append(_texts(_less(_together("all", ordered), shared), projects))
    widths = {name: max(len(name), *(display_width(row[name]) for row in rows)) for name in rows[0]}
    are_alike = len({clip(summary.name, _MAX_NAME) for summary in ordered}) < len(ordered)
    is_shown = {_COST: has_prices, "file": are_alike, "project": any(projects.values()), _FIRST_WORDS: with_content}
    columns = [name for name in widths if is_shown.get(name, True)]
    for name in _DISPENSABLE:
        if width is not None and sum(min(widths[column], _MAX_WORDS) + 1 for column in columns) - 1 > width:
            columns = [column for column in columns if column != name]
    cells: list[tuple[Cell, ...]] = [
        tuple(row[name] if name in _WORDS else row[name].rjust(widths[name]) for name in columns) for row in rows
    ]
    notes = ["Elapsed time, without waits for people; tokens and costs as far as they are known."]
    if any(_AT_LEAST in row[name] for row in rows for name in ("tokens", _COST)):
        notes.append(f"{_AT_LEAST} at least: the logs do not record all of it. Empty: nothing of it is known.")
    if price and any(summary.cost_usd is None and summary.tokens for summary in ordered):
        notes.append("Sessions without a price stand where their tokens would at the average price.")
    notes += _notes_on_copies(shared) if len(ordered) > 1 else []
    if len(ordered) > most:
        notes.append("--limit says how many sessions are listed; --format csv lists all.")
    notes.append(f"To see one: --session, with the beginning of its name{', or with its file' if are_alike else ''}.")
    heading = [name if name in _WORDS else name.rjust(widths[name]) for name in columns]
    title = counted(len(ordered), "session")
    return Table("sessions", title, tuple(heading), tuple(cells), tuple(notes), whole="session")


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
        words = (printable(summary.first_words) or None for summary in summaries)
        rows = [(*row, own) for row, own in zip(rows, words, strict=True)]
    return Table("sessions", "", columns, tuple(rows))


def distinct(names: Sequence[str]) -> int:
    """Return how many characters of names tell them apart, since the beginning of a name is enough for --session."""
    longest = max(map(len, names), default=0)
    different = len(set(names))
    lengths = range(_MIN_NAME, longest)
    return next((length for length in lengths if len({name[:length] for name in names}) == different), longest)


def _together(name: str, summaries: Sequence[Summary]) -> Summary:
    """Several runs as one; their times are not added, since they may have run side by side."""
    agents, events = sum(one.agents for one in summaries), sum(one.events for one in summaries)
    errors = sum(summary.errors for summary in summaries)
    spent = sum_known(one.tokens for one in summaries), sum_known(one.cost_usd for one in summaries)
    is_least = any(one.has_more_tokens for one in summaries), any(one.costs_more for one in summaries)
    return Summary(name, "", agents, events, 0.0, "", errors, *spent, *is_least)


def _less(all_: Summary, shared: Shared) -> Summary:
    """A sum over sessions, less what copies of answers have added to it."""
    tokens = None if all_.tokens is None else all_.tokens - shared.tokens
    usd = None if all_.cost_usd is None else all_.cost_usd - (shared.usd or 0.0)
    return all_._replace(tokens=tokens, cost_usd=usd)


def _notes_on_copies(shared: Shared) -> list[str]:
    notes = []
    if shared.answers:
        copies = f"{shared.tokens:,.15g} tokens of {counted(shared.answers, 'answer')}"
        notes.append(f"In the last line, each answer counts once: {copies} are copies from other sessions.")
    return [*notes, *note_on_missing_ids(shared)]


def note_on_missing_ids(shared: Shared) -> list[str]:
    """Return what a reader of sums should know where answers have no ids by which copies are recognised."""
    if not shared.without_ids:
        return []
    verb, them = ("has", "it") if shared.without_ids == 1 else ("have", "them")
    return [f"{counted(shared.without_ids, 'answer')} {verb} no ids: other sessions may have {them}, too."]


def sums(summaries: Sequence[Summary], shared: Shared) -> dict[str, Any]:
    """The sums over sessions for programs: each answer counts once; what is unknown is null."""
    whole = _less(_together("all", summaries), shared)
    return {
        "events": whole.events,
        "errors": whole.errors,
        "tokens": {"known": whole.tokens, "at_least": whole.has_more_tokens},
        "cost_usd": {"known": whole.cost_usd, "at_least": whole.costs_more},
        "copied_answers": {"answers": shared.answers, "tokens": shared.tokens, "cost_usd": shared.usd},
        "answers_without_ids": shared.without_ids,
    }


def _texts(summary: Summary, projects: Mapping[str, str], name_length: int = _MAX_NAME) -> dict[str, str]:
    """Return what stands in a run's line, by column."""
    files = f"{summary.files:,} files: " if summary.files > 1 else ""
    room = _MAX_FILE - len(files)
    file = summary.file if len(summary.file) <= room else f"…{summary.file[1 - room :]}"
    tokens = "" if summary.tokens is None else f"{summary.tokens:,.0f}{_AT_LEAST if summary.has_more_tokens else ''}"
    cost = "" if summary.cost_usd is None else f"{money(summary.cost_usd)}{_AT_LEAST if summary.costs_more else ''}"
    return {
        "session": clip(printable(summary.name, limit=60)[:name_length], _MAX_NAME),
        "project": clip(printable(projects.get(summary.folder, ""), limit=60), _MAX_PROJECT),
        "began": summary.day,
        "agents": f"{summary.agents:,}",
        "events": f"{summary.events:,}",
        "errors": f"{summary.errors:,}" if summary.errors else "",
        "time": break_lines(duration(summary.elapsed, summary.unit), 80)[0] if summary.unit else "",
        "tokens": tokens,
        _COST: cost,
        "file": files + printable(file),
        _FIRST_WORDS: printable(summary.first_words, limit=_MAX_FIRST_WORDS),
    }
