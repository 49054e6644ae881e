"""A diagnosis in sentences: where the time and the money of a run went."""

from collections import Counter
from collections.abc import Iterator, Sequence

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.layout import first_names_and_more
from orchtrace_corpus.trace.diagnosis import TOOL_ACTIVITIES, activity_of, has_statuses, perhaps_waiting
from orchtrace_corpus.trace.diagnosis.lever import Lever, biggest_lever
from orchtrace_corpus.trace.diagnosis.values import Activity, Diagnosis, Problem, ProblemKind, Stretch
from orchtrace_corpus.trace.measures.measure import ANSWER_TYPES
from orchtrace_corpus.trace.model.terms import Excluded
from orchtrace_corpus.trace.model.trace import Event, Tokens
from orchtrace_corpus.trace.render import findings
from orchtrace_corpus.trace.render.imports import prices_of, unused_prices, without_hour
from orchtrace_corpus.trace.render.ledger import KINDS
from orchtrace_corpus.trace.render.names import between, duration, money, names_in, quantity, unbroken
from orchtrace_corpus.trace.view.agent_tree import AgentSpan
from orchtrace_corpus.trace.view.open_calls import Cause, OpenCall

TEAM = "Team"
"""The label of the sentence on who spawned whom, which is left out if the terminal has few lines."""

_MAX_PROBLEMS = 3
_MAX_SHARES = 4
_MAX_PLACE = 32
_MAX_CALLS = 3
_MAX_STRETCHES = 7
_MAX_SPENDERS = 8
_AND_MORE = f" and {unbroken('{:,} more')}"
_OPEN = (Activity.OPEN, Activity.OPEN_MODEL)
_EXCLUDED = {Excluded.PEOPLE: "of waits for people", Excluded.SLEEP: "in which the machine slept"}
_MIN_GAPS = 1e-6
"""Gaps with a smaller share of the elapsed time are rounding errors."""


class Sentences:
    """The sentences about a run. Methods yield pairs of a label, empty if the text before goes on, and a text.

    Attributes:
        names: The name of each agent, by its id.
    """

    def __init__(self, diagnosis: Diagnosis) -> None:
        self._run = diagnosis
        self.names = names_in(diagnosis.view)
        self._roles = {agent.agent: agent.role for agent in diagnosis.view.agents}

    def head(self) -> str:
        """Return a sentence on the number of agents and events, and the elapsed time."""
        run = self._run
        waited = f", not counting {self._time(run.waited)} waiting for people" if run.waited else ""
        elapsed = run.summary.elapsed
        took = f"{self._time(elapsed)} elapsed" if elapsed else "no time elapsed: all is of one instant"
        warm_ups = f" and {quantity(run.warm_ups, 'warm-up')}" if run.warm_ups else ""
        return f"{quantity(len(run.team), 'agent')}{warm_ups}, {quantity(run.summary.events, 'event')}, {took}{waited}."

    def paragraphs(self) -> Iterator[tuple[str, str]]:
        """Yield all sentences but those of `head` and `lever`."""
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
        """Yield a sentence on the change that would shorten the run most, if anything took time."""
        if lever := biggest_lever(self._run):
            yield "Saving", f"{self._lever(lever)}: up to {self._time(lever.saved)} of {self._time(lever.elapsed)}."

    def saving(self) -> str:
        """Return the same sentence beginning with the time; empty if nothing took time."""
        lever = biggest_lever(self._run)
        if lever is None:
            return ""
        return f"Up to {self._time(lever.saved)} of {self._time(lever.elapsed)} could be saved: {self._lever(lever)}."

    def _lever(self, lever: Lever) -> str:
        if lever.finding is not None:
            return findings.NOUNS[lever.finding]
        if not lever.agent:
            return "idle time"
        text = f"{self._activity(lever.activity, lever.tool)} in {self._name(lever.agent)}"
        if lever.activity in (Activity.MODEL, Activity.OPEN_MODEL):
            text = f"model calls of {self._name(lever.agent)}"
        return f"{text}, perhaps waiting" if lever.activity in _OPEN else text

    def _activity(self, activity: Activity, tool: str) -> str:
        if activity in TOOL_ACTIVITIES:
            return _tool(tool)
        return Activity.MODEL.value if activity is Activity.OPEN_MODEL else activity.value

    def _time(self, seconds: float) -> str:
        return duration(seconds, self._run.summary.unit)

    def _name(self, agent: str) -> str:
        return unbroken(self.names.get(agent) or printable(agent, limit=60))

    def _role(self, agent: str) -> str:
        """Return the role of an agent, or its name if it has no role."""
        return unbroken(printable(self._roles.get(agent, ""), limit=30)) or self._name(agent)

    def _team(self) -> str:
        """Return a sentence on who spawned whom."""
        if len(self._run.team) < 2:
            return "One agent; nobody was spawned."
        spawned, unspawned = self._run.children, self._run.lone_agents
        parts = [f"{self._name(parent)} spawned {self._group(children)}" for parent, children in spawned[:3]]
        if len(spawned) > 3:
            parts.append(f"{quantity(len(spawned) - 3, 'more agent')} spawned others")
        if unspawned:
            parts.append(f"unknown who spawned {self._group(unspawned)}" if parts else "nobody spawned another")
        return f"{'; '.join(parts)}."

    def _group(self, agents: Sequence[AgentSpan]) -> str:
        """Return the names of agents or, for many agents of few roles, the count of each role."""
        names = [self._name(agent.agent) for agent in agents]
        if len(agents) <= _MAX_SHARES:
            return ", ".join(names)
        roles = Counter(agent.role for agent in agents)
        if len(roles) > _MAX_SHARES:
            return first_names_and_more(names, _MAX_SHARES - 1, _AND_MORE)
        return ", ".join(
            unbroken(f"{count:,} x {printable(role or 'agent', limit=30)}") for role, count in roles.items()
        )

    def _parallel(self) -> Iterator[tuple[str, str]]:
        """Yield a sentence on how much ran at the same time, as ranges if there are open calls."""
        working, waiting = self._run.parallelism, self._run.parallelism_if_waiting
        if working is None or waiting is None:
            return
        if not working.worked:
            yield "Parallel", "unknown: the log does not say how long anything took."
            return

        def share(of_working: float, of_waiting: float) -> str:
            return between(f"{of_working:.0%}", f"{of_waiting:.0%}", is_rising=of_working < of_waiting)

        least = "at least " if self._run.path.unknown else ""
        kinds = f"models {self._range(waiting.worked - waiting.tools, working.worked - working.tools)}"
        if working.tools:
            kinds += f", tools {self._range(waiting.tools, working.tools)}"
        if working.assumed:
            kinds += f"; {self._time(working.assumed)} of it assumed"
        work = f"Work: {least}{self._range(waiting.worked, working.worked)} ({kinds})"
        alone = share(working.single_share, waiting.single_share)
        idle = ""
        if max(working.idle_share, waiting.idle_share) >= 0.005:
            idle = f", nobody {share(working.idle_share, waiting.idle_share)}"
        if not working.parallel_share:
            yield "Parallel", f"nothing ran beside another: one at work {alone} of the time{idle}. {work}."
            return
        together = share(working.parallel_share, waiting.parallel_share)
        elapsed = self._run.summary.elapsed
        speed_up = between(f"{waiting.worked / elapsed:.3g}", f"{working.worked / elapsed:.3g}")
        several = f"several at once {together} of the time (at most {working.max_concurrency})"
        yield "Parallel", f"{several}, one alone {alone}{idle}. {work}; {unbroken(f'speed-up {least}{speed_up}')}."

    def _range(self, least: float, most: float) -> str:
        return between(self._time(least), self._time(most))

    def path(self) -> Iterator[tuple[str, str]]:
        """Yield sentences on the critical path, the least time of the same steps, open calls, and stated turns."""
        path, elapsed, view = self._run.path, self._run.summary.elapsed, self._run.view
        if not path.span.length or not elapsed:
            return
        text = unbroken(f"{self._time(path.small_gaps)} in small gaps")
        if path.stretches:
            gaps = f"; {text}" if path.small_gaps > _MIN_GAPS * elapsed else ""
            text = f"{self._chain(path.stretches)}{gaps}"
        without_end = path.unknown - len(view.timing.last_seen)
        note = f" {quantity(without_end, 'call')} without an end: taken as 0 s." if without_end > 0 else ""
        least, most = path.span_if_waiting, path.span
        opened = perhaps_waiting(view)
        parts = zip(path.chain.events, path.chain.parts, strict=True)
        path_work = sum(part for index, part in parts if index not in opened)
        bound = f"With these steps and no waiting: at least {self._time(least.length)}"
        if least.stretches and self._time(path_work) != self._time(least.length):  # the steps are not those above
            bound += f" ({self._chain(least.stretches)})"
        if most.length != least.length:
            bound += f", or {self._time(most.length)} if open calls worked"
        yield "Path", f"critical path, {self._time(elapsed)}: {text}. {bound}.{note}"
        yield from self._open_calls()
        yield from self._turns()

    def _open_calls(self) -> Iterator[tuple[str, str]]:
        view = self._run.view
        longest_first = sorted(view.open_calls, key=lambda call: -view.timing.works[call.event])
        waiting = [self._waiting_call(call) for call in longest_first if call.cause is not Cause.UNFINISHED]
        if waiting:
            calls = quantity(len(waiting), "call")
            yield "Open", f"{calls}, perhaps waiting instead of working: {_first_calls(waiting)}."
        unfinished = [self._unfinished_call(call) for call in longest_first if call.cause is Cause.UNFINISHED]
        if unfinished:
            calls = quantity(len(unfinished), "call")
            yield "Open", f"{calls} whose end the log does not show: {_first_calls(unfinished)}."

    def _waiting_call(self, call: OpenCall) -> str:
        event, seconds = self._run.view.trace.events[call.event], self._run.view.timing.works[call.event]
        note = f" (usually {self._time(call.usual)})" if call.usual is not None else ""
        if call.cause is Cause.ANSWER and isinstance(event.tokens, Tokens) and event.tokens.output is not None:
            note = f" (for {quantity(int(event.tokens.output), 'token')})"
        activity = Activity.MODEL.value if call.cause is Cause.ANSWER else _tool(event.tool)
        return f"{unbroken(f'{activity} of {self._name(event.agent)}')} {unbroken(f'{self._time(seconds)}{note}')}"

    def _unfinished_call(self, call: OpenCall) -> str:
        """Return a call with its time as a range: until it was last seen, or until the end of the log."""
        view = self._run.view
        least, most = (times.works[call.event] for times in (view.timing_if_waiting, view.timing))
        longest = most + view.timing.waits_after_last_seen(call.event)
        text = f"{self._call(call.event)} {unbroken(self._range(least, most))}"
        if longest > most:
            text += f", or {self._time(longest)} if it went on during waits for people"
        return text

    def _call(self, index: int) -> str:
        event = self._run.view.trace.events[index]
        name = self._name(event.agent)
        return name if event.type in ANSWER_TYPES else unbroken(f"{_tool(event.tool)} of {name}")

    def _turns(self) -> Iterator[tuple[str, str]]:
        """Yield sentences on the waits and the sleep that follow from the stated durations of turns."""
        for excluded, words in _EXCLUDED.items():
            turns = [wait for wait in self._run.view.timing.stated.waits if wait.turn.excludes is excluded]
            if not turns:
                continue
            seconds = self._time(sum(wait.seconds for wait in turns))
            calls = sorted((call for wait in turns for call in wait.calls), key=lambda call: -call.most)
            shown = [f"{self._call(call.event)} {unbroken(self._range(call.least, call.most))}" for call in calls]
            where = f": {_first_calls(shown)}" if shown else ""
            stated = f"less the stated duration of {quantity(len(turns), 'turn')}"
            yield "Turns", f"{unbroken(f'{seconds} {words}')} (time between the rows {stated}){where}."

    def _chain(self, stretches: Sequence[Stretch]) -> str:
        """Return the stretches of a path in their order or, if they are many, their sums by role and the longest."""
        if len(stretches) <= _MAX_STRETCHES:
            return " -> ".join(map(self._stretch, stretches))
        by_role: dict[str, list[float]] = {}
        for stretch in stretches:
            role = self._role(stretch.agent) if stretch.agent else stretch.activity.value
            by_role.setdefault(role, []).append(stretch.seconds)
        ordered = sorted(by_role.items(), key=lambda item: -sum(item[1]))
        shown = [
            unbroken(f"{role} {self._time(sum(seconds))} ({len(seconds):,} times)")
            for role, seconds in ordered[:_MAX_SHARES]
        ]
        if rest := sum(sum(seconds) for _, seconds in ordered[_MAX_SHARES:]):
            shown.append(unbroken(f"others {self._time(rest)}"))
        longest = max((stretch for stretch in stretches if stretch.agent), key=lambda stretch: stretch.seconds)
        return f"{', '.join(shown)}; the longest stretch: {self._stretch(longest)}"

    def _stretch(self, stretch: Stretch) -> str:
        name = self._name(stretch.agent) if stretch.agent else stretch.activity.value
        text = unbroken(f"{name} {self._time(stretch.seconds)}")
        if stretch.workers:
            workers = quantity(len(stretch.workers), "agent")
            if len(stretch.workers) == 1:
                workers = self._name(stretch.workers[0])
            return f"{text} ({workers} worked {unbroken(self._time(stretch.worked))} of it)"
        if not stretch.agent or stretch.activity is Activity.MODEL:
            return text
        activity = self._activity(stretch.activity, stretch.tool)
        activity += ", perhaps waiting" if stretch.activity in _OPEN else ""
        return f"{text} ({'mostly ' if stretch.is_mixed else ''}{activity})"

    def _tokens(self) -> Iterator[tuple[str, str]]:
        """Yield sentences on the tokens of the run by kind, agent and model, and on what is unsure or unknown."""
        tokens = self._run.tokens
        reason = printable(tokens.reason, limit=200)
        if tokens.known is None:
            yield "Tokens", f"unknown{f' ({reason})' if reason else ''}."
            return
        parts = [unbroken(f"{amount:,.15g} {KINDS[kind]}") for kind, amount in tokens.by_kind.items() if amount]
        kinds = f" ({', '.join(parts)})" if parts else ""
        text = f"{'at least ' if tokens.is_lower_bound else ''}{tokens.known:,.15g}{kinds}."
        models = [(printable(name, limit=40) or "not named", amount) for name, amount in tokens.by_model]
        by_model = f"{unbroken('By model:')} {_shares(models, tokens.known)}." if len(models) > 1 else ""
        if len(models) == 1 and tokens.by_model[0][0]:
            by_model = f"All on {models[0][0]}."
        yield "Tokens", f"{text} {self._spenders(tokens.by_agent, tokens.known)}{by_model}".rstrip()
        notes = [f"{unbroken('Not certain:')} {printable(doubt, limit=200)}." for doubt in tokens.unsure]
        missing = [
            unbroken(f"{count:,} x") + f" {printable(record, limit=120)}" for record, count in tokens.missing.items()
        ]
        if reason or missing:
            hidden = f" (at most {tokens.max_hidden:,.15g} tokens)" if tokens.max_hidden else ""
            notes.append(f"{unbroken('Not known:')} {reason or ', '.join(missing)}{hidden}.")
        records, amount = tokens.repeated
        if amount:
            repeats = f"{unbroken(f'{amount:,.15g} tokens')} of {quantity(records, 'record')}"
            notes.append(f"{unbroken('Ignored as duplicates:')} {repeats}.")
        if notes:
            yield "", " ".join(notes)

    def _spenders(self, spent: Sequence[tuple[str, float]], known: float) -> str:
        """Return the shares of agents or, if they are many, of roles; empty if there is only one."""
        are_many = len(spent) > _MAX_SPENDERS
        sums: dict[str, float] = {}
        for agent, amount in spent:
            name = self._role(agent) if are_many else self._name(agent)
            sums[name] = sums.get(name, 0.0) + amount
        if len(sums) < 2:
            return ""
        ordered = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
        return f"{unbroken('By role:' if are_many else 'By agent:')} {_shares(ordered, known)}. "

    def _cost(self) -> Iterator[tuple[str, str]]:
        """Yield sentences on the cost of the run by agent, model and tool, and on what is not in it."""
        cost = self._run.cost
        if not self._run.origin.has_prices:
            yield "Cost", "unknown without prices: --cost, or a table with --prices FILE."
            return
        without = ", ".join(printable(model) for model in cost.unpriced_models[:_MAX_SHARES])
        unused = [("", f"{unused_prices(cost.unused_models)}.")] if cost.unused_models and cost.unpriced_models else []
        stated = []
        if cost.stated is not None:
            least = "" if cost.has_all_stated else "at least "
            stated.append(("", f"The log states {least}{money(cost.stated)} USD."))
        if not cost.by_agent:
            reason = f"no price, or no count, for {without}" if without else "no tokens are known"
            yield "Cost", f"unknown: {reason}."
            yield from unused
            yield from stated
            return
        parts = [unbroken(f"{self._name(agent)} {money(usd)}") for agent, usd in cost.by_agent]
        shares = f" ({first_names_and_more(parts, _MAX_SHARES, ', …')})" if len(parts) > 1 else ""
        at = f", as the {'trace' if self._run.origin.form == 'Trace' else 'log'} states it"
        if cost.date:
            at = f" at {prices_of(cost.date, cost.last_day, cost.source)}"
        least = "at least " if cost.is_lower_bound else ""
        yield "Cost", f"{least}{money(sum(usd for _, usd in cost.by_agent))} USD{at}{shares}."
        yield from stated
        if costs := _costs("model", cost.by_model) + _costs("tool", cost.by_tool):
            yield "", costs.rstrip()
        if cost.unpriced_models:
            more = ", …" if len(cost.unpriced_models) > _MAX_SHARES else ""
            yield "", f"Not included, because a price or a count is missing: {without}{more}."
            yield from unused
        if cost.without_hour:
            yield "", without_hour(cost.without_hour)

    def _errors(self) -> Iterator[tuple[str, str]]:
        """Yield a sentence on the events that failed, or one that says that nothing went wrong."""
        run = self._run
        for problem in run.problems:
            if problem.kind is ProblemKind.FAILED_EVENT and problem.event is not None:
                event = problem.event
                error = f", {printable(event.error_type, limit=40)}" if event.error_type else ""
                place = unbroken(f"{printable(event.id, limit=40)} at {self._time(self._start(event))}")
                first = "" if problem.occurrences == 1 else "; the first"
                act = f"{_act(event)} of {self._name(event.agent)}{error} ({place})"
                yield "Errors", f"{quantity(problem.occurrences, 'event')} failed{first}: {act}."
        if not (run.problems or run.team_findings.findings or run.view.open_calls):
            rest = "nothing lost between agents, all of the log read."
            unknown = f"none seen: {rest} Whether a call failed is not known, since none has a status."
            yield "Findings", f"none: no errors, {rest}" if has_statuses(run.view.trace) else unknown

    def _start(self, event: Event) -> float:
        """Return the time from the begin of the run to an event."""
        times = self._run.view.timing
        index = next(n for n in times.graph.indices_by_type[event.type] if times.graph.events[n] is event)
        return max(times.starts[index] - times.begin, 0.0)

    def _log(self) -> Iterator[tuple[str, str]]:
        """Yield the most frequent problems of the log: what is missing in it, and what was not understood."""
        problems = [problem for problem in self._run.problems if problem.kind is not ProblemKind.FAILED_EVENT]
        problems.sort(key=lambda problem: -problem.occurrences)
        for index, problem in enumerate(problems[:_MAX_PROBLEMS]):
            yield "" if index else "Log", f"{problem.occurrences:,} x {self._problem(problem)}"
        more = len(problems) - _MAX_PROBLEMS
        if more > 0:
            yield "", f"{quantity(more, 'more kind')}; {unbroken('corpus trace import')} tells all."

    def _problem(self, problem: Problem) -> str:
        if problem.kind is ProblemKind.FOREIGN_REPORT:
            return "import report in another format, not read"
        place = problem.place
        if len(place) > _MAX_PLACE:  # names of files begin alike
            place = f"…{place[-_MAX_PLACE:]}"
        return printable(problem.text or problem.kind.value, limit=120) + (f" ({printable(place)})" if place else "")


def _shares(amounts: Sequence[tuple[str, float]], known: float) -> str:
    shares = [(name, amount / known) for name, amount in amounts]
    parts = [unbroken(f"{name} {share:.0%}" if share >= 0.005 else f"{name} <1%") for name, share in shares]
    return first_names_and_more(parts, _MAX_SHARES, _AND_MORE)


def _costs(kind: str, costs: Sequence[tuple[str, float]]) -> str:
    """Return the costs of the most expensive models or tools; empty if there is only one."""
    parts = [unbroken(f"{printable(name, limit=40) or f'no {kind}'} {money(usd)}") for name, usd in costs]
    return f"{unbroken(f'By {kind}:')} {first_names_and_more(parts, _MAX_SHARES, ', …')}. " if len(parts) > 1 else ""


def _first_calls(texts: Sequence[str]) -> str:
    return first_names_and_more(texts, _MAX_CALLS, _AND_MORE)


def _tool(name: str) -> str:
    return printable(name, limit=30) or "tools"


def _act(event: Event) -> str:
    if activity_of(event) is Activity.TOOL:
        return _tool(event.tool)
    return "model" if event.type in ANSWER_TYPES else event.type.value.replace("_", " ")
