"""What is said of a logged run to somebody who only wants to know where the time and the money went."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from orchtrace_corpus.findings import printable
from orchtrace_corpus.render.trace_import import prices_of
from orchtrace_corpus.render.trace_ledger import ADDED, KINDS, Row
from orchtrace_corpus.render.trace_names import counted, duration, kept, money, names
from orchtrace_corpus.trace.import_report import ImportReport, Line, report_of
from orchtrace_corpus.trace.measures import Run
from orchtrace_corpus.trace.measures.ledger import ledger
from orchtrace_corpus.trace.measures.measure import ASKED
from orchtrace_corpus.trace.measures.work import concurrency, critical_path
from orchtrace_corpus.trace.model import AgentKind, Event, EventType, Status, Trace
from orchtrace_corpus.trace.roster import Appearance, roster
from orchtrace_corpus.trace.timing import Path, timing

_MOST_AGENTS = 8
_MOST_STRETCHES = 7
_MOST_PROBLEMS = 3
_MOST_SHARES = 4
_MOST_PLACE = 32
_UNSURE = "the least it can be"


class Case(NamedTuple):
    """A run to be looked at.

    Attributes:
        trace: Its trace.
        form: What it was read from, in words.
        has_prices: Whether costs are known or were asked for.
        hint: What more could be given, in a sentence; empty where nothing could.
    """

    trace: Trace
    form: str
    has_prices: bool = False
    hint: str = ""


class _Stretch(NamedTuple):
    """A part of the critical path on which one agent works.

    Attributes:
        agent: The agent.
        seconds: How long, without what overlaps with the stretch before.
        mostly: The tool that takes most of it, in brackets; empty where that is the model.
    """

    agent: str
    seconds: float
    mostly: str


class Story:
    """A run, and what is said of it.

    Attributes:
        run: The run, with its times.
        people: Who is no machine.
        everybody: All who act, as a tree.
        names: What they are called.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.run = Run(case.trace, timing(case.trace))
        self.people = frozenset(agent.id for agent in case.trace.agents if agent.kind is AgentKind.HUMAN)
        self.everybody = roster(case.trace, self.run.times)
        self.team = [one for one in self.everybody if one.agent not in self.people]
        self.names = names(self.everybody, self.people)
        self._known_report = report_of(case.trace)
        self._report = self._known_report or ImportReport()
        self.roles = {one.agent: one.role for one in self.everybody}

    @cached_property
    def path(self) -> Path:
        """The critical path."""
        return critical_path(self.run)

    def head(self) -> str:
        """How many, and how long."""
        times = self.run.times
        waited = f", without {self._time(times.waited)} of waiting for people" if times.waited else ""
        took = f"{self._time(times.wall)} of work" if times.wall else "no time: all is of one instant"
        return f"{counted(len(self.team), 'agent')}, {counted(len(self.run.trace.events), 'event')}, {took}{waited}."

    def said(self) -> Iterator[tuple[str, str]]:
        """Sentences, each with a word that says what it is about; empty where it goes on."""
        yield "Team", self._team()
        if self.run.times.wall:
            yield from self._work()
            yield from self._path()
        yield from self._tokens()
        yield from self._cost()
        yield from self._problems()

    def _time(self, seconds: float) -> str:
        return duration(seconds, self.run.times.unit)

    def _name(self, agent: str) -> str:
        return kept(self.names.get(agent) or printable(agent, limit=60))

    def _role(self, agent: str) -> str:
        """What an agent is, for a sum over many; its name where it has no role."""
        return kept(printable(self.roles.get(agent, ""), limit=30)) or self._name(agent)

    def _team(self) -> str:
        """Who spawned whom, in numbers by role."""
        if len(self.team) < 2:
            return "One agent; nobody was spawned."
        above: list[Appearance] = []
        spawned: dict[str, list[Appearance]] = {}
        for one in self.team:
            del above[one.depth :]
            if above and above[-1].depth == one.depth - 1:
                spawned.setdefault(above[-1].agent, []).append(one)
            above.append(one)
        said = [f"{self._name(agent)} spawned {self._these(found)}" for agent, found in list(spawned.items())[:3]]
        if len(spawned) > 3:
            said.append(f"{counted(len(spawned) - 3, 'more agent')} spawned others")
        alone = len(self.team) - sum(map(len, spawned.values())) - 1
        if alone:
            said.append(f"nobody is known to have spawned {alone:,} more" if said else "nobody spawned another")
        return f"{'; '.join(said)}."

    def _these(self, spawned: Sequence[Appearance]) -> str:
        if len(spawned) <= _MOST_SHARES:
            return ", ".join(self._name(one.agent) for one in spawned)
        roles: dict[str, int] = {}
        for one in spawned:
            roles[one.role] = roles.get(one.role, 0) + 1
        if len(roles) > _MOST_SHARES:
            first = ", ".join(self._name(one.agent) for one in spawned[: _MOST_SHARES - 1])
            return f"{first} and {kept(f'{len(spawned) - _MOST_SHARES + 1:,} more')}"
        return ", ".join(kept(f"{number:,} x {printable(role or 'agent', limit=30)}") for role, number in roles.items())

    def _work(self) -> Iterator[tuple[str, str]]:
        run = self.run
        profile, work, wall = concurrency(run.times), sum(run.times.works), run.times.wall
        if not work:
            yield "Parallel", "unknown: the log does not say how long anything took."
            return
        alone, idle = profile.get(1, 0.0) / wall, profile.get(0, 0.0) / wall
        together = sum(time for number, time in profile.items() if number > 1) / wall
        tools = sum(run.times.works[n] for n in run.times.of.of_type.get(EventType.TOOL_CALL, ()))
        kinds = f"models {self._time(work - tools)}, tools {self._time(tools)}"
        idly = f", nobody {idle:.0%}" if idle >= 0.005 else ""
        if together:
            said = f"up to {max(profile)} at once {together:.0%} of the time, one alone {alone:.0%}{idly}."
            yield "Parallel", f"{said} One after another it would take {self._time(work)} ({kinds})."
        else:
            yield "Parallel", f"nothing: one at work {alone:.0%} of the time{idly} ({kinds})."

    def _path(self) -> Iterator[tuple[str, str]]:
        """The critical path: its stretches, of one agent each, or where they are many, whose they are."""
        if not self.path.length:
            return
        stretches = list(self._stretches())
        if len(stretches) <= _MOST_STRETCHES:
            said = " -> ".join(
                kept(f"{self._name(one.agent)} {self._time(one.seconds)}") + one.mostly for one in stretches
            )
        else:
            by_role: dict[str, list[float]] = {}
            for one in stretches:
                by_role.setdefault(self._role(one.agent), []).append(one.seconds)
            ordered = sorted(by_role.items(), key=lambda pair: -sum(pair[1]))[:_MOST_SHARES]
            said = ", ".join(kept(f"{role} {self._time(sum(times))} ({len(times):,} times)") for role, times in ordered)
            longest = max(stretches, key=lambda one: one.seconds)
            said += (
                f"; the longest at once {kept(self._name(longest.agent))} {self._time(longest.seconds)}{longest.mostly}"
            )
        unknown = len(self.run.times.unknown)
        note = f" {counted(unknown, 'call')} without an end: taken as 0 s." if unknown else ""
        share = f"{self._time(self.path.length)} of {self._time(self.run.times.wall)}"
        yield "Critical", f"path {share}: {said}.{note}"

    def _stretches(self) -> Iterator["_Stretch"]:
        events, times = self.run.trace.events, self.run.times
        reached = 0.0
        working = (number for number in self.path.events if times.works[number] > 0)
        for agent, numbers in groupby(working, key=lambda number: events[number].agent):
            took: dict[str, float] = {}
            for number in numbers:
                added = max(times.ends[number] - max(times.starts[number], reached), 0.0)
                reached = max(reached, times.ends[number])
                what = _doing(events[number])
                took[what] = took.get(what, 0.0) + added
            longest = max(took, key=took.__getitem__)
            mostly = f" (mostly {longest})" if longest and len(took) > 1 else f" ({longest})" if longest else ""
            yield _Stretch(agent, sum(took.values()), mostly)

    def _tokens(self) -> Iterator[tuple[str, str]]:
        trace = self.case.trace
        entries = [entry for entry in ledger(trace, "model") if entry.total is not None]
        reason = printable(trace.reasons.get("costs.tokens", ""), limit=200).rstrip(".")
        if not entries:
            yield "Tokens", f"unknown{f' ({reason})' if reason else ''}."
            return
        lines = self._report.token_ledger
        unsure = [what.partition(": ")[2] for what in lines if _UNSURE in what]
        known = sum(entry.total or 0.0 for entry in entries)
        kinds = {kind: sum(entry.tokens[kind] or 0.0 for entry in entries) for kind in ADDED}
        parts = [kept(f"{number:,.15g} {KINDS[kind]}") for kind, number in kinds.items() if number]
        least = "at least " if reason or unsure else ""
        yield "Tokens", f"{least}{known:,.15g} ({', '.join(parts)})." if parts else f"{least}{known:,.15g}."
        models = [(printable(one.name, limit=40) or "not named", one.total) for one in entries if one.total]
        by_model = f"By model: {_shares(models, known)}." if len(models) > 1 else ""
        if len(models) == 1 and entries[0].name:
            by_model = f"All on {models[0][0]}."
        if shares := f"{self._spenders(known)}{by_model}":
            yield "", shares
        for what in unsure:
            yield "", f"Not certain: {printable(what, limit=200)}."
        if reason:
            yield "", f"Not known: {reason}."
        yield from _left_out(lines)

    def _spenders(self, known: float) -> str:
        """Who spent the tokens: the agents, or where they are many, their roles."""
        spent: dict[str, float] = {}
        spenders = [one for one in self.everybody if one.tokens]
        are_many = len(spenders) > _MOST_AGENTS
        for one in spenders:
            name = self._role(one.agent) if are_many else self._name(one.agent)
            spent[name] = spent.get(name, 0.0) + (one.tokens or 0.0)
        ordered = sorted(spent.items(), key=lambda pair: (-pair[1], pair[0]))
        return f"By {'role' if are_many else 'agent'}: {_shares(ordered, known)}. " if len(ordered) > 1 else ""

    def _cost(self) -> Iterator[tuple[str, str]]:
        trace = self.case.trace
        if not self.case.has_prices:
            yield "Cost", "unknown without prices; --prices FILE names a table of them."
            return
        prices = self._report.prices
        priced = [entry for entry in ledger(trace, "agent") if entry.cost_usd is not None]
        without = prices.without if prices else {}
        named = ", ".join(printable(model) for model in list(without)[:_MOST_SHARES])
        if not priced:
            yield "Cost", f"unknown: no price, or no count, for {named}." if named else "unknown: no tokens are known."
            return
        least = "at least " if without or trace.costs.get("tokens") is None else ""
        priced.sort(key=lambda entry: -(entry.cost_usd or 0.0))
        parts = [kept(f"{self._name(entry.name)} {money(entry.cost_usd or 0.0)}") for entry in priced[:_MOST_SHARES]]
        shares = f" ({', '.join(parts)}{', …' if len(priced) > _MOST_SHARES else ''})" if len(priced) > 1 else ""
        at = f" at {prices_of(prices.date, prices.last_day)}" if prices else ", as the trace states it"
        yield "Cost", f"{least}{money(sum(entry.cost_usd or 0.0 for entry in priced))} USD{at}{shares}."
        if without:
            yield (
                "",
                f"Not in it, for want of a price or a count: {named}{', …' if len(without) > _MOST_SHARES else ''}.",
            )

    @cached_property
    def _found(self) -> list[str]:
        report = self._report
        found: list[tuple[int, str]] = []
        for what, noted in (*report.problems.items(), *report.dropped.items()):
            where = f" ({_place(noted.for_example[0])})" if noted.for_example else ""
            found.append((noted.number, printable(what, limit=120) + where))
        if report.unknown_kinds:
            found.append((sum(report.unknown_kinds.values()), "row of a kind that is not known"))
        if self._known_report is None:
            found.append((1, "import report of another form, which is not read"))
        found.sort(key=lambda pair: -pair[0])
        failed = [event for event in self.case.trace.events if event.status is Status.ERROR]
        if failed:
            first = failed[0]
            kind = printable(first.error_type, limit=40)
            what = f"the first: {_act(first)} of {self._name(first.agent)}{f', {kind}' if kind else ''}"
            found.insert(0, (len(failed), f"error in the run ({what})"))
        return [f"{number:,} x {what}" for number, what in found]

    def _problems(self) -> Iterator[tuple[str, str]]:
        label = "Problems"
        for said in self._found[:_MOST_PROBLEMS]:
            yield label, said
            label = ""
        more = len(self._found) - _MOST_PROBLEMS
        if more > 0:
            yield "", f"{counted(more, 'more kind')}; corpus trace import tells all."
        if not self._found:
            yield label, "none found."


def _left_out(lines: Mapping[str, Line]) -> Iterator[tuple[str, str]]:
    """What the log repeats or sums up, and is not counted again."""
    rows = [Row(what, one.records, one.tokens) for what, one in lines.items() if what.startswith("left out")]
    tokens = sum(row.total for row in rows)
    if tokens:
        records = counted(sum(row.records or 0 for row in rows), "record")
        yield "", f"Left out: {kept(f'{tokens:,.15g} tokens')} of {records}, repeating or summing up others."


def _shares(found: Sequence[tuple[str, float]], known: float) -> str:
    parts = [kept(f"{name} {_percent(number / known)}") for name, number in found[:_MOST_SHARES]]
    more = f" and {kept(f'{len(found) - _MOST_SHARES:,} more')}" if len(found) > _MOST_SHARES else ""
    return f"{', '.join(parts)}{more}"


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.005 else "<1%"


def _act(event: Event) -> str:
    return _doing(event) or ("model" if event.type in ASKED else event.type.value.replace("_", " "))


def _place(text: str) -> str:
    """The end of a place in a file, which tells it from others; long names of files begin alike."""
    return printable(text if len(text) <= _MOST_PLACE else f"…{text[-_MOST_PLACE:]}")


def _doing(event: Event) -> str:
    """The tool that an event runs; empty for a model."""
    if event.type not in (EventType.TOOL_CALL, EventType.TOOL_RESULT):
        return ""
    return printable(event.tool, limit=30) or "tools"
