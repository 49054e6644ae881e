"""The problems between agents, in sentences and as figures."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.layout import first_names_and_more
from orchtrace_corpus.trace.diagnosis.contexts import Context
from orchtrace_corpus.trace.diagnosis.findings import LEAST_SHARE, FindingKind, TeamFinding, Wait, cost
from orchtrace_corpus.trace.diagnosis.values import Diagnosis
from orchtrace_corpus.trace.render.names import duration, keep, quantity

WAITS, MORE = "Waits", "More"
"""The labels of what a low terminal does without."""

_MOST_KINDS = 4
_MOST_NAMED = 3
_MOST_WAITS = 2
_MORE = "{:,} more"
_NOTABLE_CONTEXT = 100_000
"""A context of so many tokens is mentioned although the window of its model is unknown."""


NOUNS = {
    FindingKind.UNREAD_MESSAGE: "messages that nobody read",
    FindingKind.UNUSED_RESULT: "work for results that nobody used",
    FindingKind.NO_RETURN: "agents that never returned",
    FindingKind.REPEATED_CALL: "calls that siblings repeat",
    FindingKind.IDLE_LEAD: "lead idle while its team was blocked",
    FindingKind.LARGE_CONTEXT: "contexts past half their window",
    FindingKind.UNAPPROVED_EFFECT: "side effects after untrusted content that nobody approved",
}
"""The nouns of the findings of each kind."""


def paragraphs(run: Diagnosis, name: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """Sentences on what went wrong between agents, each with a label; the last says how to look at one.

    Args:
        run: The run.
        name: What an agent is called.
    """
    label = "Findings"
    told = list(_findings(run, name))
    for text in told[:_MOST_KINDS]:
        yield label, text
        label = ""
    if len(told) > _MOST_KINDS:
        yield "", f"{quantity(len(told) - _MOST_KINDS, 'more kind')}; {keep('--format json')} has all."
    events = [event for finding in run.between.findings for event in finding.events]
    if events:
        first = printable(run.view.trace.events[events[0]].id, limit=60)
        yield MORE, f"{keep(f'corpus trace show LOG --event {first}')} shows one of these events."


def waits(run: Diagnosis, name: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """A sentence on who waited for whom longest; nothing where nobody did for long."""
    least = max(LEAST_SHARE * run.summary.elapsed, 1e-9)
    parts = [
        f"{name(wait.agent)} for {name(wait.awaited)} {_time(run, wait.seconds)}"
        for wait in run.between.waits
        if wait.seconds >= least
    ]
    if parts:
        yield WAITS, f"{first_names_and_more(parts, _MOST_WAITS, f' and {keep(_MORE)}')}."


def _findings(run: Diagnosis, name: Callable[[str], str]) -> Iterator[str]:
    by_kind: dict[FindingKind, list[TeamFinding]] = {}
    for one in run.between.findings:
        by_kind.setdefault(one.kind, []).append(one)
    for kind, found in by_kind.items():
        parts = [_cost(run, kind, found), _places(run, found)]
        yield f"{_SENTENCES[kind](run, found, name)}{': ' if any(parts) else ''}{'; '.join(filter(None, parts))}."
    unknown = [
        context for context in run.between.contexts if context.window is None and context.tokens >= _NOTABLE_CONTEXT
    ]
    if unknown:
        models = [printable(model, limit=40) or "a model without a name" for model in {one.model: 0 for one in unknown}]
        sizes = keep(f"{max(one.tokens for one in unknown):,.0f} tokens")
        yield f"Context of up to {sizes}, of a window that is unknown: {_named(models)}."


def _places(run: Diagnosis, findings: Sequence[TeamFinding]) -> str:
    """The first and the last of the events concerned, each with its time from the begin of the run."""
    times, events = run.view.timing, run.view.trace.events
    numbers = sorted({n for finding in findings for n in finding.events}, key=times.starts.__getitem__)
    ends = [numbers[0], numbers[-1]] if len(numbers) > 1 else numbers
    shown = [keep(f"{printable(events[n].id, limit=40)} at {_time(run, _begin(run, n))}") for n in ends]
    return " to ".join(shown) if len(numbers) > 2 else ", ".join(shown)


def _begin(run: Diagnosis, index: int) -> float:
    times = run.view.timing
    return max(times.starts[index] - times.begin, 0.0)


def _unread(_: Diagnosis, findings: Sequence[TeamFinding], name: Callable[[str], str]) -> str:
    number = sum(one.number for one in findings)
    counts = [keep(f" {finding.number:,}") if len(findings) > 1 else "" for finding in findings]
    return f"{quantity(number, 'message')} that nobody read ({_named(_pairs(findings, name, counts))})"


def _pairs(findings: Sequence[TeamFinding], name: Callable[[str], str], counts: Sequence[str] = ()) -> list[str]:
    """From whom to whom, who is named again only where another was in between."""
    pairs, before = [], ""
    for one, count in zip(findings, counts or [""] * len(findings), strict=True):
        sender, target = one.agents
        pairs.append(f"{'' if sender == before else f'{name(sender)} '}to {name(target)}{count}")
        before = sender
    return pairs


def _unused(_: Diagnosis, findings: Sequence[TeamFinding], name: Callable[[str], str]) -> str:
    return f"{quantity(len(findings), 'result')} that nobody used ({_named(_pairs(findings, name))})"


def _no_return(run: Diagnosis, findings: Sequence[TeamFinding], name: Callable[[str], str]) -> str:
    names = _named([name(finding.agents[0]) for finding in findings])
    far = ", as far as the log goes" if run.is_cut else ""
    return f"{quantity(len(findings), 'agent')} spawned that never returned{far} ({names})"


def _repeated(_: Diagnosis, findings: Sequence[TeamFinding], name: Callable[[str], str]) -> str:
    calls = Counter(
        f"{printable(finding.tool, limit=30)} by {', '.join(map(name, finding.agents[:4]))}" for finding in findings
    )
    again = sum(one.number for one in findings)
    words = "repeats what a sibling" if again == 1 else "repeat what siblings"
    return f"{quantity(again, 'call')} {words} did with the same arguments ({_named(list(calls))})"


def _idle(run: Diagnosis, findings: Sequence[TeamFinding], name: Callable[[str], str]) -> str:
    if_waiting = ", if open calls waited" if run.view.open_calls else ""
    leads = [
        f"{name(finding.agents[0])}{f' {_time(run, finding.seconds or 0.0)}' if len(findings) > 1 else ''}"
        for finding in findings
    ]
    return f"Lead idle while its team was blocked{if_waiting} ({_named(leads)})"


def _context(run: Diagnosis, findings: Sequence[TeamFinding], name: Callable[[str], str]) -> str:
    of = {one.agent: one for one in run.between.contexts}
    sizes = [
        f"{name(finding.agents[0])} " + keep(f"{context.tokens / context.window:.0%} of {context.window:,}")
        for finding in findings
        if (context := of[finding.agents[0]]).window
    ] or [name(one.agents[0]) for one in findings]
    return f"Context past half its window ({_named(sizes)})"


def _unapproved(_: Diagnosis, findings: Sequence[TeamFinding], name: Callable[[str], str]) -> str:
    count = sum(finding.number for finding in findings)
    calls = [f"{printable(finding.tool, limit=30)} by {name(finding.agents[0])}" for finding in findings]
    return f"{quantity(count, 'call')} with side effects after untrusted content, approved by nobody ({_named(calls)})"


_SENTENCES: dict[FindingKind, Callable[[Diagnosis, Sequence[TeamFinding], Callable[[str], str]], str]] = {
    FindingKind.UNREAD_MESSAGE: _unread,
    FindingKind.UNUSED_RESULT: _unused,
    FindingKind.NO_RETURN: _no_return,
    FindingKind.REPEATED_CALL: _repeated,
    FindingKind.IDLE_LEAD: _idle,
    FindingKind.LARGE_CONTEXT: _context,
    FindingKind.UNAPPROVED_EFFECT: _unapproved,
}


def _named(parts: Sequence[str]) -> str:
    return first_names_and_more(parts, _MOST_NAMED, f" and {keep(_MORE)}")


def _cost(run: Diagnosis, kind: FindingKind, findings: Sequence[TeamFinding]) -> str:
    """Return the known cost of all findings of a kind."""
    seconds, tokens = cost(run.view, {cost_event for finding in findings for cost_event in finding.cost_events})
    seconds = sum(one.seconds or 0.0 for one in findings) if kind is FindingKind.IDLE_LEAD else seconds
    parts = [_time(run, seconds)] if seconds else []
    parts += [keep(f"{tokens:,.15g} tokens")] if tokens else []
    text = " and ".join(parts)
    if not text or kind is not FindingKind.UNREAD_MESSAGE:
        return text
    opened = {call.event for call in run.view.open_calls}
    is_waiting = any(not opened.isdisjoint(one.cost_events) for one in findings)
    return f"{text} to write{', and perhaps to wait for answers' if is_waiting else ''}"


def _time(run: Diagnosis, seconds: float) -> str:
    return duration(seconds, run.summary.unit)


def as_data(run: Diagnosis) -> dict[str, Any]:
    """Findings, waits and contexts for programs; events by their ids, what is unknown as null."""
    ids = [event.id for event in run.view.trace.events]

    def finding(one: TeamFinding) -> dict[str, Any]:
        figures = {**one._asdict(), "kind": one.kind.value, "agents": list(one.agents), "tool": one.tool or None}
        begin = min((_begin(run, index) for index in one.events), default=None)
        concerned = {"events": [ids[index] for index in one.events], "begin": begin}
        return {**figures, **concerned, "cost_events": [ids[cost_event] for cost_event in one.cost_events]}

    def wait(one: Wait) -> dict[str, Any]:
        return {**one._asdict(), "events": [ids[index] for index in one.events]}

    def context(one: Context) -> dict[str, Any]:
        return {**one._asdict(), "source": one.source.value, "past_half": [ids[index] for index in one.past_half]}

    return {
        "findings": [finding(one) for one in run.between.findings],
        "waits": [wait(one) for one in run.between.waits],
        "contexts": [context(one) for one in run.between.contexts],
    }
