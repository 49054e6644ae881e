"""A diagnosis in sentences, for somebody who only wants to know where the time and the money of a run went."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.layout import first_names_and_more
from orchtrace_corpus.trace.diagnosis import OF_TOOLS, activity_of, has_statuses, perhaps_waiting
from orchtrace_corpus.trace.diagnosis.lever import Lever, biggest_lever
from orchtrace_corpus.trace.diagnosis.values import Activity, Diagnosis, Parallelism, Problem, ProblemKind, Stretch
from orchtrace_corpus.trace.measures.measure import ASKED
from orchtrace_corpus.trace.model.terms import Excluded
from orchtrace_corpus.trace.model.trace import Event, Tokens
from orchtrace_corpus.trace.render import findings
from orchtrace_corpus.trace.render.imports import prices_of, unused_prices, without_hour
from orchtrace_corpus.trace.render.ledger import KINDS
from orchtrace_corpus.trace.render.names import between, duration, keep, money, names_in, quantity
from orchtrace_corpus.trace.view.agent_tree import AgentSpan
from orchtrace_corpus.trace.view.open_calls import Cause, OpenCall

TEAM = "Team"
"""The label of who spawned whom, which a low terminal does without."""

_MOST_PROBLEMS = 3
_MOST_SHARES = 4
_MOST_PLACE = 32
_MOST_OPEN = 3
_OPEN = (Activity.OPEN, Activity.OPEN_MODEL)
_EXCLUDED = {Excluded.PEOPLE: "of waits for people", Excluded.SLEEP: "in which the machine slept"}
_LEAST_IDLE = 1e-6
"""Gaps that take a smaller share of the elapsed time are rounding errors."""


class Sentences:
    """The sentences about a run.

    Attributes:
        names: What its agents are called.
    """

    def __init__(self, diagnosis: Diagnosis) -> None:
        self._run = diagnosis
        self.names = names_in(diagnosis.view)
        self._roles = {agent.agent: agent.role for agent in diagnosis.view.agents}

    def head(self) -> str:
        """Return the number of agents and events, and the duration."""
        run = self._run
        waited = f", not counting {self._time(run.waited)} waiting for people" if run.waited else ""
        elapsed = run.summary.elapsed
        took = f"{self._time(elapsed)} elapsed" if elapsed else "no time elapsed: all is of one instant"
        warm_ups = f" and {quantity(run.warm_ups, 'warm-up')}" if run.warm_ups else ""
        return f"{quantity(len(run.team), 'agent')}{warm_ups}, {quantity(run.summary.events, 'event')}, {took}{waited}."

    def paragraphs(self) -> Iterator[tuple[str, str]]:
        """Sentences, each with a word that says what it is about; empty where it goes on."""
        yield TEAM, self._team()
        yield from self._parallel()
        yield from self.path()
        yield from findings.paragraphs(self._run, self._name)
        yield from self._errors()
        yield from findings.waits(self._run, self._name)
        yield from self._tokens()
        yield from self._cost()
        yield from self._log()

    def lever(self) -> Iterator[tuple[str, str]]:
        """Return what would shorten the run most; nothing if nothing took time."""
        if found := biggest_lever(self._run):
            yield "Saving", f"{self._lever(found)}: up to {self._time(found.saved)} of {self._time(found.elapsed)}."

    def saving(self) -> str:
        """Return the same, the time first; empty if nothing took time."""
        found = biggest_lever(self._run)
        if found is None:
            return ""
        saved = f"Up to {self._time(found.saved)} of {self._time(found.elapsed)}"
        return f"{saved} could be saved: {self._lever(found)}."

    def _lever(self, lever: Lever) -> str:
        if lever.finding is not None:
            return findings.NOUNS[lever.finding]
        if not lever.agent:
            return "idle time"
        named = f"{self._what(lever.activity, lever.tool)} in {self._name(lever.agent)}"
        if lever.activity in (Activity.MODEL, Activity.OPEN_MODEL):
            named = f"model calls of {self._name(lever.agent)}"
        return f"{named}, perhaps waiting" if lever.activity in _OPEN else named

    def _what(self, activity: Activity, tool: str) -> str:
        if activity in OF_TOOLS:
            return _tool(tool)
        return Activity.MODEL.value if activity is Activity.OPEN_MODEL else activity.value

    def _time(self, seconds: float) -> str:
        return duration(seconds, self._run.summary.unit)

    def _name(self, agent: str) -> str:
        return keep(self.names.get(agent) or printable(agent, limit=60))

    def _role(self, agent: str) -> str:
        """Return the role of an agent, for a sum over many; its name if it has none."""
        return keep(printable(self._roles.get(agent, ""), limit=30)) or self._name(agent)

    def _team(self) -> str:
        """Return who spawned whom, in numbers by role."""
        if len(self._run.team) < 2:
            return "One agent; nobody was spawned."
        spawned, alone = self._run.spawned, self._run.unspawned
        parts = [f"{self._name(agent)} spawned {self._these(found)}" for agent, found in spawned[:3]]
        if len(spawned) > 3:
            parts.append(f"{quantity(len(spawned) - 3, 'more agent')} spawned others")
        if alone:
            parts.append(f"unknown who spawned {self._these(alone)}" if parts else "nobody spawned another")
        return f"{'; '.join(parts)}."

    def _these(self, spawned: Sequence[AgentSpan]) -> str:
        if len(spawned) <= _MOST_SHARES:
            return ", ".join(self._name(one.agent) for one in spawned)
        roles = Counter(one.role for one in spawned)
        if len(roles) > _MOST_SHARES:
            names = [self._name(one.agent) for one in spawned]
            return first_names_and_more(names, _MOST_SHARES - 1, f" and {keep('{:,} more')}")
        return ", ".join(keep(f"{number:,} x {printable(role or 'agent', limit=30)}") for role, number in roles.items())

    def _parallel(self) -> Iterator[tuple[str, str]]:
        found, waiting = self._run.parallelism, self._run.parallelism_if_waiting
        if found is None or waiting is None:
            return
        if not found.worked:
            yield "Parallel", "unknown: the log does not say how long anything took."
            return

        def shares(of: Callable[[Parallelism], float]) -> str:
            return between(f"{of(found):.0%}", f"{of(waiting):.0%}", is_rising=of(found) < of(waiting))

        elapsed = self._run.summary.elapsed
        models = self._range(waiting.worked - waiting.tools, found.worked - found.tools)
        kinds = f"models {models}" + (f", tools {self._range(waiting.tools, found.tools)}" if found.tools else "")
        kinds += f"; {self._time(found.assumed)} of it assumed" if found.assumed else ""
        least = "at least " if self._run.path.unknown else ""
        work = f"Work: {least}{self._range(waiting.worked, found.worked)} ({kinds})"
        is_idle = max(found.idle, waiting.idle) >= 0.005
        alone, idle = shares(lambda one: one.alone), shares(lambda one: one.idle)
        idly = f", nobody {idle}" if is_idle else ""
        if not found.together:
            yield "Parallel", f"nothing ran beside another: one at work {alone} of the time{idly}. {work}."
            return
        several = f"several at once {shares(lambda one: one.together)} of the time (at most {found.most})"
        speed_up = between(f"{waiting.worked / elapsed:.3g}", f"{found.worked / elapsed:.3g}")
        yield "Parallel", f"{several}, one alone {alone}{idly}. {work}; {keep(f'speed-up {least}{speed_up}')}."

    def _range(self, least: float, most: float) -> str:
        return between(self._time(least), self._time(most))

    def path(self) -> Iterator[tuple[str, str]]:
        """The critical path, how fast the same steps could be, and the calls that make a range of both."""
        path, elapsed = self._run.path, self._run.summary.elapsed
        if not path.span.length or not elapsed:
            return
        gaps = text = keep(f"{self._time(path.gaps)} in small gaps")
        if path.stretches:
            text = self._chain(path.stretches) + (f"; {gaps}" if path.gaps > _LEAST_IDLE * elapsed else "")
        endless = path.unknown - len(self._run.view.timing.last_seen)
        note = f" {quantity(endless, 'call')} without an end: taken as 0 s." if endless > 0 else ""
        least, most = path.span_if_waiting, path.span
        opened = perhaps_waiting(self._run.view)
        parts = zip(path.chain.events, path.chain.parts, strict=True)
        is_same = self._time(sum(part for n, part in parts if n not in opened)) == self._time(least.length)
        own = "" if is_same or not least.stretches else f" ({self._chain(least.stretches)})"
        more = f", or {self._time(most.length)} if open calls worked" if most.length != least.length else ""
        bound = f"With these steps and no waiting: at least {self._time(least.length)}{own}{more}."
        yield "Path", f"critical path, {self._time(elapsed)}: {text}. {bound}{note}"
        yield from self._open_calls()
        yield from self._turns()

    def _open_calls(self) -> Iterator[tuple[str, str]]:
        view = self._run.view
        longest_first = sorted(view.open_calls, key=lambda call: -view.timing.works[call.event])
        waiting = [self._open(call) for call in longest_first if call.cause is not Cause.UNFINISHED]
        if waiting:
            number = quantity(len(waiting), "call")
            yield "Open", f"{number}, perhaps waiting instead of working: {_first(waiting)}."
        unfinished = [self._unfinished(call) for call in longest_first if call.cause is Cause.UNFINISHED]
        if unfinished:
            number = quantity(len(unfinished), "call")
            yield "Open", f"{number} whose end the log does not show: {_first(unfinished)}."

    def _unfinished(self, call: OpenCall) -> str:
        """A call that was seen at work for some time, and may have worked to the end of the log."""
        view = self._run.view
        least, most = (times.works[call.event] for times in (view.timing_if_waiting, view.timing))
        longest = most + view.timing.waits_unseen(call.event)
        while_waiting = f", or {self._time(longest)} if it went on during waits for people" if longest > most else ""
        return f"{self._call(call.event)} {keep(self._range(least, most))}{while_waiting}"

    def _call(self, index: int) -> str:
        event = self._run.view.trace.events[index]
        name = self._name(event.agent)
        return keep(name if event.type in ASKED else f"{_tool(event.tool)} of {name}")

    def _turns(self) -> Iterator[tuple[str, str]]:
        """Return the waits and the sleep that the stated durations of turns imply."""
        for excluded, words in _EXCLUDED.items():
            turns = [wait for wait in self._run.view.timing.stated.waits if wait.turn.excludes is excluded]
            if not turns:
                continue
            seconds = self._time(sum(wait.seconds for wait in turns))
            calls = sorted((call for wait in turns for call in wait.calls), key=lambda call: -call.most)
            shown = [f"{self._call(call.event)} {keep(self._range(call.least, call.most))}" for call in calls]
            where = f": {_first(shown)}" if shown else ""
            stated = f"less the stated duration of {quantity(len(turns), 'turn')}"
            yield "Turns", f"{keep(f'{seconds} {words}')} (time between the rows {stated}){where}."

    def _open(self, open_call: OpenCall) -> str:
        event, seconds = self._run.view.trace.events[open_call.event], self._run.view.timing.works[open_call.event]
        usual = f" (usually {self._time(open_call.usual)})" if open_call.usual is not None else ""
        if open_call.cause is Cause.ANSWER and isinstance(event.tokens, Tokens) and event.tokens.output is not None:
            usual = f" (for {quantity(int(event.tokens.output), 'token')})"
        what = Activity.MODEL.value if open_call.cause is Cause.ANSWER else _tool(event.tool)
        return f"{keep(f'{what} of {self._name(event.agent)}')} {keep(f'{self._time(seconds)}{usual}')}"

    def _chain(self, stretches: Sequence[Stretch]) -> str:
        """The stretches of the critical path in their order, or where they are many, whose they are."""
        if len(stretches) <= 7:
            return " -> ".join(self._stretch(one) for one in stretches)
        by_role: dict[str, list[float]] = {}
        for one in stretches:
            role = self._role(one.agent) if one.agent else one.activity.value
            by_role.setdefault(role, []).append(one.seconds)
        ordered = sorted(by_role.items(), key=lambda pair: -sum(pair[1]))
        shown = [keep(f"{role} {self._time(sum(all_))} ({len(all_):,} times)") for role, all_ in ordered[:_MOST_SHARES]]
        rest = sum(sum(all_) for _, all_ in ordered[_MOST_SHARES:])
        more = [keep(f"others {self._time(rest)}")] if rest else []
        longest = max((stretch for stretch in stretches if stretch.agent), key=lambda one: one.seconds)
        return f"{', '.join([*shown, *more])}; the longest stretch: {self._stretch(longest)}"

    def _stretch(self, stretch: Stretch) -> str:
        name = self._name(stretch.agent) if stretch.agent else stretch.activity.value
        text = keep(f"{name} {self._time(stretch.seconds)}")
        if stretch.workers:
            who = (
                self._name(stretch.workers[0]) if len(stretch.workers) == 1 else quantity(len(stretch.workers), "agent")
            )
            return f"{text} ({who} worked {keep(self._time(stretch.worked))} of it)"
        if not stretch.agent or stretch.activity is Activity.MODEL:
            return text
        what = self._what(stretch.activity, stretch.tool)
        what += ", perhaps waiting" if stretch.activity in _OPEN else ""
        return f"{text} ({'mostly ' if stretch.is_mixed else ''}{what})"

    def _tokens(self) -> Iterator[tuple[str, str]]:
        found = self._run.tokens
        reason = printable(found.reason, limit=200)
        if found.known is None:
            yield "Tokens", f"unknown{f' ({reason})' if reason else ''}."
            return
        parts = [keep(f"{number:,.15g} {KINDS[kind]}") for kind, number in found.kinds.items() if number]
        kinds = f" ({', '.join(parts)})" if parts else ""
        text = f"{'at least ' if found.is_least else ''}{found.known:,.15g}{kinds}."
        models = [(printable(name, limit=40) or "not named", number) for name, number in found.by_model]
        by_model = f"{keep('By model:')} {_shares(models, found.known)}." if len(models) > 1 else ""
        if len(models) == 1 and found.by_model[0][0]:
            by_model = f"All on {models[0][0]}."
        yield "Tokens", f"{text} {self._spenders(found.by_agent, found.known)}{by_model}".rstrip()
        notes = [f"{keep('Not certain:')} {printable(one, limit=200)}." for one in found.unsure]
        missing = [keep(f"{number:,} x") + f" {printable(one, limit=120)}" for one, number in found.missing.items()]
        if reason or missing:
            hidden = f" (at most {found.hidden:,.15g} tokens)" if found.hidden else ""
            notes.append(f"{keep('Not known:')} {reason or ', '.join(missing)}{hidden}.")
        records, tokens = found.repeated
        if tokens:
            repeats = f"{keep(f'{tokens:,.15g} tokens')} of {quantity(records, 'record')}"
            notes.append(f"{keep('Ignored as duplicates:')} {repeats}.")
        if notes:
            yield "", " ".join(notes)

    def _spenders(self, spent: Sequence[tuple[str, float]], known: float) -> str:
        """Return who spent the tokens: the agents, or their roles if they are many."""
        sums: dict[str, float] = {}
        are_many = len(spent) > 8
        for agent, number in spent:
            name = self._role(agent) if are_many else self._name(agent)
            sums[name] = sums.get(name, 0.0) + number
        noun = "role" if are_many else "agent"
        ordered = sorted(sums.items(), key=lambda pair: (-pair[1], pair[0]))
        return f"{keep(f'By {noun}:')} {_shares(ordered, known)}. " if len(ordered) > 1 else ""

    def _cost(self) -> Iterator[tuple[str, str]]:
        cost = self._run.cost
        if not self._run.origin.has_prices:
            yield "Cost", "unknown without prices: --cost, or a table with --prices FILE."
            return
        named = ", ".join(printable(model) for model in cost.without[:_MOST_SHARES])
        unused = [("", f"{unused_prices(cost.unused)}.")] if cost.unused and cost.without else []
        stated = []
        if cost.stated is not None:
            least = "" if cost.has_all_stated else "at least "
            stated.append(("", f"The log states {least}{money(cost.stated)} USD."))
        if not cost.by_agent:
            yield "Cost", f"unknown: no price, or no count, for {named}." if named else "unknown: no tokens are known."
            yield from unused
            yield from stated
            return
        parts = [keep(f"{self._name(agent)} {money(usd)}") for agent, usd in cost.by_agent]
        shares = f" ({first_names_and_more(parts, _MOST_SHARES, ', …')})" if len(parts) > 1 else ""
        source = "trace" if self._run.origin.form == "Trace" else "log"
        at = f" at {prices_of(cost.date, cost.last_day, cost.source)}" if cost.date else f", as the {source} states it"
        least = "at least " if cost.is_least else ""
        yield "Cost", f"{least}{money(sum(usd for _, usd in cost.by_agent))} USD{at}{shares}."
        yield from stated
        if shares := "".join(_costs(kind, of) for kind, of in (("model", cost.by_model), ("tool", cost.by_tool))):
            yield "", shares.rstrip()
        if cost.without:
            more = ", …" if len(cost.without) > _MOST_SHARES else ""
            yield "", f"Not included, because a price or a count is missing: {named}{more}."
            yield from unused
        if cost.without_hour:
            yield "", without_hour(cost.without_hour)

    def _errors(self) -> Iterator[tuple[str, str]]:
        """The events that failed; where nothing at all went wrong, that."""
        run = self._run
        for problem in run.problems:
            if problem.kind is ProblemKind.FAILED_EVENT and problem.event is not None:
                error = printable(problem.event.error_type, limit=40)
                first = f"{_act(problem.event)} of {self._name(problem.event.agent)}{f', {error}' if error else ''}"
                place = keep(f"{printable(problem.event.id, limit=40)} at {self._time(self._start(problem.event))}")
                of_several = "" if problem.number == 1 else "; the first"
                yield "Errors", f"{quantity(problem.number, 'event')} failed{of_several}: {first} ({place})."
        if not (run.problems or run.between.findings or run.view.open_calls):
            rest = "nothing lost between agents, all of the log read."
            unknown = f"none seen: {rest} Whether a call failed is not known, since none has a status."
            yield "Findings", f"none: no errors, {rest}" if has_statuses(run.view.trace) else unknown

    def _start(self, event: Event) -> float:
        times = self._run.view.timing
        index = next(n for n in times.graph.of_type[event.type] if times.graph.events[n] is event)
        return max(times.starts[index] - times.begin, 0.0)

    def _log(self) -> Iterator[tuple[str, str]]:
        """Return what is missing in the log, and what was not understood."""
        of_log = [problem for problem in self._run.problems if problem.kind is not ProblemKind.FAILED_EVENT]
        found = sorted(of_log, key=lambda one: -one.number)
        label = "Log"
        for one in found[:_MOST_PROBLEMS]:
            yield label, f"{one.number:,} x {self._problem(one)}"
            label = ""
        more = len(found) - _MOST_PROBLEMS
        if more > 0:
            yield "", f"{quantity(more, 'more kind')}; {keep('corpus trace import')} tells all."

    def _problem(self, problem: Problem) -> str:
        if problem.kind is ProblemKind.FOREIGN_REPORT:
            return "import report in another format, not read"
        place = (
            problem.place if len(problem.place) <= _MOST_PLACE else f"…{problem.place[-_MOST_PLACE:]}"
        )  # names begin alike
        return printable(problem.text or problem.kind.value, limit=120) + (f" ({printable(place)})" if place else "")


def _shares(found: Sequence[tuple[str, float]], known: float) -> str:
    shares = [(name, number / known) for name, number in found]
    parts = [keep(f"{name} {share:.0%}" if share >= 0.005 else f"{name} <1%") for name, share in shares]
    return first_names_and_more(parts, _MOST_SHARES, f" and {keep('{:,} more')}")


def _costs(kind: str, found: Sequence[tuple[str, float]]) -> str:
    """Return the costs of the most expensive models or tools; nothing if there is only one."""
    parts = [keep(f"{printable(name, limit=40) or f'no {kind}'} {money(usd)}") for name, usd in found]
    return f"{keep(f'By {kind}:')} {first_names_and_more(parts, _MOST_SHARES, ', …')}. " if len(parts) > 1 else ""


def _first(texts: Sequence[str]) -> str:
    return first_names_and_more(texts, _MOST_OPEN, f" and {keep('{:,} more')}")


def _tool(name: str) -> str:
    return printable(name, limit=30) or "tools"


def _act(event: Event) -> str:
    if activity_of(event) is Activity.TOOL:
        return _tool(event.tool)
    return "model" if event.type in ASKED else event.type.value.replace("_", " ")
