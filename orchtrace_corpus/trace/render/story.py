"""What is said of a logged run to somebody who only wants to know where the time and the money went."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.trace.measures import Run
from orchtrace_corpus.trace.measures.ledger import ledger
from orchtrace_corpus.trace.measures.measure import ASKED
from orchtrace_corpus.trace.measures.work import concurrency, critical_path
from orchtrace_corpus.trace.model.import_report import ImportReport, Outcome, has_all_tokens, report_of
from orchtrace_corpus.trace.model.trace import AgentKind, Event, EventType, Source, Status, Trace
from orchtrace_corpus.trace.render import chain as trace_chain
from orchtrace_corpus.trace.render.imports import prices_of, unused_prices
from orchtrace_corpus.trace.render.ledger import ADDED, KINDS, Row
from orchtrace_corpus.trace.render.names import counted, duration, kept, money, names
from orchtrace_corpus.trace.view.agent_tree import Appearance, roster
from orchtrace_corpus.trace.view.timing import Chain, waited_for
from orchtrace_corpus.trace.view.view import Subject

_MOST_AGENTS = 8
_MOST_PROBLEMS = 3
_MOST_SHARES = 4
_MOST_PLACE = 32


class Case(NamedTuple):
    """A run to be looked at.

    Attributes:
        trace: Its trace.
        form: What it was read from, in words.
        has_prices: Whether costs are known or were asked for.
        hint: What more could be given, in a sentence; empty where nothing could.
        file: The file that it begins in, below the given folder.
    """

    trace: Trace
    form: str
    has_prices: bool = False
    hint: str = ""
    file: str = ""


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
        self.run = Run(Subject(case.trace))
        self.people = frozenset(agent.id for agent in case.trace.agents if agent.kind is AgentKind.HUMAN)
        self.everybody = roster(case.trace, self.run.times)
        self.team = [one for one in self.everybody if one.agent not in self.people]
        self.names = names(self.everybody, self.people)
        self._known_report = report_of(case.trace)
        self._report = self._known_report or ImportReport()
        self.roles = {one.agent: one.role for one in self.everybody}

    @cached_property
    def chain(self) -> Chain:
        """The critical path: what the end waited for."""
        return waited_for(self.run.times)

    @cached_property
    def assumed(self) -> frozenset[int]:
        """The numbers of the events whose time nobody saw."""
        return trace_chain.unseen(self.run.times)

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
        alone = [one for one in self.team if not one.depth and one.agent not in spawned]
        if alone:
            said.append(f"unknown who spawned {self._these(alone)}" if said else "nobody spawned another")
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
        guessed = sum(run.times.works[n] for n in self.assumed)
        kinds = f"models {self._time(work - tools)}{f', tools {self._time(tools)}' if tools else ''}"
        kinds += f"; {self._time(guessed)} of it assumed" if guessed else ""
        idly = f", nobody {idle:.0%}" if idle >= 0.005 else ""
        if together:
            said = f"up to {max(profile)} at once {together:.0%} of the time, one alone {alone:.0%}{idly}."
            yield "Parallel", f"{said} One after another it would take {self._time(work)} ({kinds})."
        else:
            yield "Parallel", f"nothing ran beside another: one at work {alone:.0%} of the time{idly} ({kinds})."

    def _path(self) -> Iterator[tuple[str, str]]:
        """The critical path, and below which time no team could come."""
        least = critical_path(self.run.times).length
        if not least:
            return
        words = trace_chain.Words(self._name, self._role, self._time)
        said = trace_chain.said(self.run.times, self.chain, self.assumed, words)
        unknown = len(self.run.times.unknown)
        note = f" {counted(unknown, 'call')} without an end: taken as 0 s." if unknown else ""
        bound = f"No team could be faster than {self._time(least)}."
        yield "Critical", f"path: {said}. {bound}{note}"

    def _tokens(self) -> Iterator[tuple[str, str]]:
        trace = self.case.trace
        entries = [entry for entry in ledger(trace, "model") if entry.total is not None]
        reason = printable(trace.reasons.get("costs.tokens", ""), limit=200).rstrip(".")
        if not entries:
            yield "Tokens", f"unknown{f' ({reason})' if reason else ''}."
            return
        unsure = self._report.unsure()
        missing = "" if reason else self._missing()
        known = sum(entry.total or 0.0 for entry in entries)
        kinds = {kind: sum(entry.tokens[kind] or 0.0 for entry in entries) for kind in ADDED}
        parts = [kept(f"{number:,.15g} {KINDS[kind]}") for kind, number in kinds.items() if number]
        least = "at least " if reason or unsure or missing else ""
        yield "Tokens", f"{least}{known:,.15g} ({', '.join(parts)})." if parts else f"{least}{known:,.15g}."
        models = [(printable(one.name, limit=40) or "not named", one.total) for one in entries if one.total]
        by_model = f"By model: {_shares(models, known)}." if len(models) > 1 else ""
        if len(models) == 1 and entries[0].name:
            by_model = f"All on {models[0][0]}."
        if shares := f"{self._spenders(known)}{by_model}":
            yield "", shares
        for what in unsure:
            yield "", f"Not certain: {printable(what, limit=200)}."
        if reason or missing:
            yield "", f"Not known: {reason or missing}."
        yield from _left_out(self._report)

    def _missing(self) -> str:
        """Of which records the log gives no tokens, though the trace gives a total."""
        known = self._report.missing().items()
        return ", ".join(kept(f"{records:,} x") + f" {printable(what, limit=120)}" for what, records in known)

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
        unused = [("", f"{unused_prices(prices.unused)}.")] if prices and prices.unused and without else []
        if not priced:
            yield "Cost", f"unknown: no price, or no count, for {named}." if named else "unknown: no tokens are known."
            yield from unused
            return
        least = "at least " if without or not has_all_tokens(trace) else ""
        priced.sort(key=lambda entry: -(entry.cost_usd or 0.0))
        parts = [kept(f"{self._name(entry.name)} {money(entry.cost_usd or 0.0)}") for entry in priced[:_MOST_SHARES]]
        shares = f" ({', '.join(parts)}{', …' if len(priced) > _MOST_SHARES else ''})" if len(priced) > 1 else ""
        at = f" at {prices_of(prices.date, prices.last_day)}" if prices else ", as the trace states it"
        yield "Cost", f"{least}{money(sum(entry.cost_usd or 0.0 for entry in priced))} USD{at}{shares}."
        if without:
            more = ", …" if len(without) > _MOST_SHARES else ""
            yield "", f"Not in it, for want of a price or a count: {named}{more}."
            yield from unused

    def _place(self, text: str) -> str:
        """The end of a place in a file, which tells it from others: long names of files begin alike.

        Of events that depend on one another, which only the trace names, it is the place of the later.
        """
        source = self._sources.get(text.rpartition(" -> ")[2]) if " -> " in text else None
        place = text if source is None else f"{source.file}:{source.line}"
        return printable(place if len(place) <= _MOST_PLACE else f"…{place[-_MOST_PLACE:]}")

    @cached_property
    def _sources(self) -> dict[str, Source]:
        return {event.id: event.source for event in self.case.trace.events if isinstance(event.source, Source)}

    @cached_property
    def _found(self) -> list[str]:
        report = self._report
        found: list[tuple[int, str]] = []
        for what, noted in (*report.problems.items(), *report.dropped.items()):
            where = f" ({self._place(noted.for_example[0])})" if noted.for_example else ""
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


def _left_out(report: ImportReport) -> Iterator[tuple[str, str]]:
    """What the log repeats or sums up, and is not counted again."""
    rows = [Row(one.what, one.records, one.tokens) for one in report.entries() if one.outcome == Outcome.LEFT_OUT]
    tokens = sum(row.total for row in rows)
    if tokens:
        records = counted(sum(row.records or 0 for row in rows), "record")
        yield "", f"Not counted twice: {kept(f'{tokens:,.15g} tokens')} of {records}, repeats or sums."


def _shares(found: Sequence[tuple[str, float]], known: float) -> str:
    parts = [kept(f"{name} {_percent(number / known)}") for name, number in found[:_MOST_SHARES]]
    more = f" and {kept(f'{len(found) - _MOST_SHARES:,} more')}" if len(found) > _MOST_SHARES else ""
    return f"{', '.join(parts)}{more}"


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.005 else "<1%"


def _act(event: Event) -> str:
    return trace_chain.doing(event) or ("model" if event.type in ASKED else event.type.value.replace("_", " "))
