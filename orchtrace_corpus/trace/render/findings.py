"""The findings between agents, in sentences, and as JSON values."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.layout import first_names_and_more
from orchtrace_corpus.trace.diagnosis.findings import MIN_IDLE_SHARE, FindingKind, TeamFinding, time_and_tokens
from orchtrace_corpus.trace.diagnosis.values import Diagnosis
from orchtrace_corpus.trace.render.names import duration, unbroken, unbroken_count

WAITS, MORE = "Waits", "More"
"""The labels of paragraphs that are left out if the terminal has few lines."""

_MAX_KINDS = 4
_MAX_NAMES = 3
_MAX_WAITS = 2
_AND_MORE = f" and {unbroken('{:,} more')}"
_LARGE_CONTEXT = 100_000
"""A context of so many tokens is reported even if the window of its model is unknown."""

NOUNS = {
    FindingKind.UNREAD_MESSAGE: "messages that nobody read",
    FindingKind.UNUSED_RESULT: "work for results that nobody used",
    FindingKind.NO_RETURN: "agents that never returned",
    FindingKind.REPEATED_CALL: "calls that siblings repeat",
    FindingKind.IDLE_LEAD: "lead idle while its team was blocked",
    FindingKind.LARGE_CONTEXT: "contexts past half their window",
    FindingKind.UNAPPROVED_EFFECT: "side effects after untrusted content that nobody approved",
}
"""The words for each kind of finding in sentences."""

_NameOf: TypeAlias = Callable[[str], str]


def paragraphs(run: Diagnosis, name_of: _NameOf) -> Iterator[tuple[str, str]]:
    """Yield sentences about the findings of a run, each with a label; `name_of` returns the name of an agent.

    The label is empty if the text continues the text before.
    """
    texts = list(_findings(run, name_of))
    if len(texts) > _MAX_KINDS:
        more = f"{unbroken_count(len(texts) - _MAX_KINDS, 'more kind')}; {unbroken('--format json')} has all."
        texts = [*texts[:_MAX_KINDS], more]
    for index, text in enumerate(texts):
        label = "" if index else "Findings"
        yield label, text
    events = [event for finding in run.team_findings.findings for event in finding.events]
    if events:
        first = printable(run.view.trace.events[events[0]].id, limit=60)
        yield MORE, f"{unbroken(f'corpus trace show LOG --event {first}')} shows one of these events."


def waits(run: Diagnosis, name_of: _NameOf) -> Iterator[tuple[str, str]]:
    """Yield a sentence about the longest waits of agents for each other, if there are long ones."""
    least = max(MIN_IDLE_SHARE * run.summary.elapsed, 1e-9)  # never 0, so that waits without a length are left out
    long = [wait for wait in run.team_findings.waits if wait.seconds >= least]
    parts = [f"{name_of(wait.agent)} for {name_of(wait.awaited)} {_time(run, wait.seconds)}" for wait in long]
    if parts:
        yield WAITS, f"{first_names_and_more(parts, _MAX_WAITS, _AND_MORE)}."


def _findings(run: Diagnosis, name_of: _NameOf) -> Iterator[str]:
    """Yield a sentence for each kind of finding, and one for large contexts of models with an unknown window."""
    findings_by_kind: dict[FindingKind, list[TeamFinding]] = {}
    for finding in run.team_findings.findings:
        findings_by_kind.setdefault(finding.kind, []).append(finding)
    for kind, findings in findings_by_kind.items():
        sentence = _SENTENCES[kind](run, findings, name_of)
        details = [detail for detail in (_cost(run, kind, findings), _places(run, findings)) if detail]
        if details:
            sentence += f": {'; '.join(details)}"
        yield f"{sentence}."
    large = [context for context in run.team_findings.contexts if context.tokens >= _LARGE_CONTEXT]
    without_window = [context for context in large if context.window is None]
    if without_window:
        models = dict.fromkeys(context.model for context in without_window)
        names = [printable(model, limit=40) or "a model without a name" for model in models]
        largest = unbroken(f"{max(context.tokens for context in without_window):,.0f} tokens")
        yield f"Context of up to {largest}, of a window that is unknown: {_first_names(names)}."


def _places(run: Diagnosis, findings: Sequence[TeamFinding]) -> str:
    """Return the first and the last event of some findings, each with its time in the run."""
    times, events = run.view.timing, run.view.trace.events
    indices = sorted({index for finding in findings for index in finding.events}, key=times.starts.__getitem__)
    ends = indices
    if len(indices) > 2:
        ends = [indices[0], indices[-1]]
    texts = [unbroken(f"{printable(events[index].id, limit=40)} at {_time(run, _begin(run, index))}") for index in ends]
    return " to ".join(texts) if len(indices) > 2 else ", ".join(texts)


def _begin(run: Diagnosis, index: int) -> float:
    """Return the time from the begin of the run to an event."""
    return max(run.view.timing.starts[index] - run.view.timing.begin, 0.0)


def _unread_messages(_: Diagnosis, findings: Sequence[TeamFinding], name_of: _NameOf) -> str:
    pairs = _pairs(findings, name_of)
    if len(findings) > 1:
        pairs = [pair + unbroken(f" {finding.problem_count:,}") for pair, finding in zip(pairs, findings, strict=True)]
    messages = unbroken_count(sum(finding.problem_count for finding in findings), "message")
    return f"{messages} that nobody read ({_first_names(pairs)})"


def _pairs(findings: Sequence[TeamFinding], name_of: _NameOf) -> list[str]:
    """Return `SENDER to RECEIVER` for each finding; the sender is left out if it is that of the finding before."""
    pairs = []
    previous = ""
    for finding in findings:
        sender, receiver = finding.agents
        pair = f"to {name_of(receiver)}"
        if sender != previous:
            pair = f"{name_of(sender)} {pair}"
        pairs.append(pair)
        previous = sender
    return pairs


def _unused_results(_: Diagnosis, findings: Sequence[TeamFinding], name_of: _NameOf) -> str:
    return f"{unbroken_count(len(findings), 'result')} that nobody used ({_first_names(_pairs(findings, name_of))})"


def _missing_returns(run: Diagnosis, findings: Sequence[TeamFinding], name_of: _NameOf) -> str:
    names = _first_names([name_of(finding.agents[0]) for finding in findings])
    limit = ", as far as the log goes" if run.is_cut else ""
    return f"{unbroken_count(len(findings), 'agent')} spawned that never returned{limit} ({names})"


def _repeated_calls(_: Diagnosis, findings: Sequence[TeamFinding], name_of: _NameOf) -> str:
    calls = []
    for finding in findings:
        agents = ", ".join(map(name_of, finding.agents[:4]))
        calls.append(f"{printable(finding.tool, limit=30)} by {agents}")
    distinct_calls = list(dict.fromkeys(calls))
    count = sum(finding.problem_count for finding in findings)
    verb = "repeats what a sibling" if count == 1 else "repeat what siblings"
    return f"{unbroken_count(count, 'call')} {verb} did with the same arguments ({_first_names(distinct_calls)})"


def _idle_leads(run: Diagnosis, findings: Sequence[TeamFinding], name_of: _NameOf) -> str:
    leads = []
    for finding in findings:
        lead = name_of(finding.agents[0])
        if len(findings) > 1:
            lead += f" {_time(run, finding.seconds or 0.0)}"
        leads.append(lead)
    if_waiting = ", if open calls waited" if run.view.open_calls else ""
    return f"Lead idle while its team was blocked{if_waiting} ({_first_names(leads)})"


def _large_contexts(run: Diagnosis, findings: Sequence[TeamFinding], name_of: _NameOf) -> str:
    contexts_by_agent = {context.agent: context for context in run.team_findings.contexts}
    agents = [finding.agents[0] for finding in findings]
    details = []
    for agent in agents:
        context = contexts_by_agent[agent]
        if context.window:
            size = unbroken(f"{context.tokens / context.window:.0%} of {context.window:,}")
            details.append(f"{name_of(agent)} {size}")
    if not details:
        details = list(map(name_of, agents))
    return f"Context past half its window ({_first_names(details)})"


def _unapproved_effects(_: Diagnosis, findings: Sequence[TeamFinding], name_of: _NameOf) -> str:
    count = unbroken_count(sum(finding.problem_count for finding in findings), "call")
    calls = [f"{printable(finding.tool, limit=30)} by {name_of(finding.agents[0])}" for finding in findings]
    return f"{count} with side effects after untrusted content, approved by nobody ({_first_names(calls)})"


_SENTENCES: dict[FindingKind, Callable[[Diagnosis, Sequence[TeamFinding], _NameOf], str]] = {
    FindingKind.UNREAD_MESSAGE: _unread_messages,
    FindingKind.UNUSED_RESULT: _unused_results,
    FindingKind.NO_RETURN: _missing_returns,
    FindingKind.REPEATED_CALL: _repeated_calls,
    FindingKind.IDLE_LEAD: _idle_leads,
    FindingKind.LARGE_CONTEXT: _large_contexts,
    FindingKind.UNAPPROVED_EFFECT: _unapproved_effects,
}


def _first_names(names: Sequence[str]) -> str:
    return first_names_and_more(names, _MAX_NAMES, _AND_MORE)


def _cost(run: Diagnosis, kind: FindingKind, findings: Sequence[TeamFinding]) -> str:
    """Return the time and the tokens that all findings of a kind cost; empty if both are unknown."""
    seconds, tokens = time_and_tokens(run.view, {index for finding in findings for index in finding.cost_events})
    if kind is FindingKind.IDLE_LEAD:
        seconds = sum(finding.seconds or 0.0 for finding in findings)
    parts = []
    if seconds:
        parts.append(_time(run, seconds))
    if tokens:
        parts.append(unbroken(f"{tokens:,.15g} tokens"))
    text = " and ".join(parts)
    if text and kind is FindingKind.UNREAD_MESSAGE:
        text += " to write"
        open_events = {call.event for call in run.view.open_calls}
        if any(not open_events.isdisjoint(finding.cost_events) for finding in findings):
            text += ", and perhaps to wait for answers"
    return text


def _time(run: Diagnosis, seconds: float) -> str:
    return duration(seconds, run.summary.unit)


def as_data(run: Diagnosis) -> dict[str, Any]:
    """Return findings, waits and contexts for programs: events by their ids, unknown figures as null."""

    def ids(indices: Sequence[int]) -> list[str]:
        return [run.view.trace.events[index].id for index in indices]

    return {
        "findings": [
            {
                **finding._asdict(),
                "kind": finding.kind.value,
                "agents": list(finding.agents),
                "tool": finding.tool or None,
                "events": ids(finding.events),
                "cost_events": ids(finding.cost_events),
                "begin": min((_begin(run, index) for index in finding.events), default=None),
            }
            for finding in run.team_findings.findings
        ],
        "waits": [{**wait._asdict(), "events": ids(wait.events)} for wait in run.team_findings.waits],
        "contexts": [
            {**context._asdict(), "source": context.source.value, "past_half": ids(context.past_half)}
            for context in run.team_findings.contexts
        ],
    }
