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
from orchtrace_corpus.trace.render.ledger import KIND_LABELS
from orchtrace_corpus.trace.render.names import agent_names, duration, format_range, money, unbroken, unbroken_count
from orchtrace_corpus.trace.view.agent_tree import AgentSpan
from orchtrace_corpus.trace.view.open_calls import Cause, OpenCall

TEAM = "Team"
"""The label of the sentence on who spawned whom, which is left out if the terminal has few lines."""

_MAX_PROBLEMS = 3
_MAX_SHARES = 4
_MAX_PLACE = 32  # characters
_MAX_CALLS = 3
_MAX_STRETCHES = 7
_MAX_SPENDERS = 8
_AND_MORE = f" and {unbroken('{:,} more')}"
_OPEN_ACTIVITIES = (Activity.OPEN, Activity.OPEN_MODEL)
_EXCLUDED_TIMES = {Excluded.PEOPLE: "of waits for people", Excluded.SLEEP: "in which the machine slept"}
_MIN_GAPS = 1e-6
"""Gaps with a smaller share of the elapsed time are rounding errors."""


class Sentences:
    """The sentences about a run.

    Methods that yield pairs yield a label and a text. The label is empty if the text continues the text before.

    Attributes:
        names: The name of each agent, by its id.
    """

    def __init__(self, diagnosis: Diagnosis) -> None:
        self._run = diagnosis
        self.names = agent_names(diagnosis.view)
        self._roles = {agent.agent: agent.role for agent in diagnosis.view.agents}

    def head(self) -> str:
        """Return a sentence on the number of agents and events, and the elapsed time."""
        run = self._run
        team = unbroken_count(len(run.team), "agent")
        if run.warm_ups:
            team += f" and {unbroken_count(run.warm_ups, 'warm-up')}"
        time = "no time elapsed: all is of one instant"
        if run.summary.elapsed:
            time = f"{self._time(run.summary.elapsed)} elapsed"
        if run.waited:
            time += f", not counting {self._time(run.waited)} waiting for people"
        return f"{team}, {unbroken_count(run.summary.events, 'event')}, {time}."

    def paragraphs(self) -> Iterator[tuple[str, str]]:
        """Yield the sentences that `head` and `lever` do not have."""
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
        """Yield a sentence on what the run could save most time on; nothing if nothing took time."""
        if lever := biggest_lever(self._run):
            yield "Saving", f"{self._lever(lever)}: up to {self._time(lever.saved)} of {self._time(lever.elapsed)}."

    def saving(self) -> str:
        """Return the sentence of `lever` in another form, which begins with the time; empty if nothing took time."""
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
        if lever.activity in _OPEN_ACTIVITIES:
            text += ", perhaps waiting"
        return text

    def _activity(self, activity: Activity, tool: str) -> str:
        """Return an activity in words: the name of the tool if a tool was at work."""
        if activity in TOOL_ACTIVITIES:
            return _tool(tool)
        if activity is Activity.OPEN_MODEL:
            return Activity.MODEL.value
        return activity.value

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
        families, lone_agents = self._run.children, self._run.lone_agents
        parts = [f"{self._name(parent)} spawned {self._list(children)}" for parent, children in families[:3]]
        if len(families) > 3:
            parts.append(f"{unbroken_count(len(families) - 3, 'more agent')} spawned others")
        if lone_agents and not families:
            parts.append("nobody spawned another")
        elif lone_agents:
            parts.append(f"unknown who spawned {self._list(lone_agents)}")
        return f"{'; '.join(parts)}."

    def _list(self, agents: Sequence[AgentSpan]) -> str:
        """Return the names of agents or, for many agents of few roles, the count of each role."""
        names = [self._name(agent.agent) for agent in agents]
        if len(agents) <= _MAX_SHARES:
            return ", ".join(names)
        counts_by_role = Counter(agent.role for agent in agents)
        if len(counts_by_role) > _MAX_SHARES:
            return first_names_and_more(names, _MAX_SHARES - 1, _AND_MORE)
        parts = []
        for role, count in counts_by_role.items():
            name = printable(role or "agent", limit=30)
            parts.append(unbroken(f"{count:,} x {name}"))
        return ", ".join(parts)

    def _parallel(self) -> Iterator[tuple[str, str]]:
        """Yield a sentence on how much ran at the same time; with open calls, its figures are ranges."""
        working, waiting = self._run.parallelism, self._run.parallelism_if_waiting
        if working is None or waiting is None:
            return
        if not working.worked:
            yield "Parallel", "unknown: the log does not say how long anything took."
            return

        def share(if_working: float, if_waiting: float) -> str:
            least, most = sorted((if_working, if_waiting))
            return format_range(f"{least:.0%}", f"{most:.0%}")

        at_least = "at least " if self._run.path.unknown else ""
        kinds = f"models {self._range(waiting.worked - waiting.tools, working.worked - working.tools)}"
        if working.tools:
            kinds += f", tools {self._range(waiting.tools, working.tools)}"
        if working.assumed:
            kinds += f"; {self._time(working.assumed)} of it assumed"
        work = f"Work: {at_least}{self._range(waiting.worked, working.worked)} ({kinds})"
        alone = share(working.single_share, waiting.single_share)
        idle = ""
        if max(working.idle_share, waiting.idle_share) >= 0.005:
            idle = f", nobody {share(working.idle_share, waiting.idle_share)}"
        if not working.parallel_share:
            yield "Parallel", f"nothing ran beside another: one at work {alone} of the time{idle}. {work}."
            return
        together = share(working.parallel_share, waiting.parallel_share)
        elapsed = self._run.summary.elapsed
        ratios = format_range(f"{waiting.worked / elapsed:.3g}", f"{working.worked / elapsed:.3g}")
        speed_up = unbroken(f"speed-up {at_least}{ratios}")
        several = f"several at once {together} of the time (at most {working.max_concurrency})"
        yield "Parallel", f"{several}, one alone {alone}{idle}. {work}; {speed_up}."

    def _range(self, least: float, most: float) -> str:
        return format_range(self._time(least), self._time(most))

    def path(self) -> Iterator[tuple[str, str]]:
        """Yield sentences on the critical path, the least time of the same steps, open calls, and stated turns."""
        path, elapsed, view = self._run.path, self._run.summary.elapsed, self._run.view
        if not path.span.length or not elapsed:
            return
        gaps = unbroken(f"{self._time(path.small_gaps)} in small gaps")
        if not path.stretches:
            text = gaps
        elif path.small_gaps > _MIN_GAPS * elapsed:
            text = f"{self._chain(path.stretches)}; {gaps}"
        else:
            text = self._chain(path.stretches)
        note = ""
        without_end = path.unknown - len(view.timing.last_seen)  # `_open_calls` describes the unfinished calls
        if without_end > 0:
            note = f" {unbroken_count(without_end, 'call')} without an end: taken as 0 s."
        least, most = path.span_if_waiting, path.span
        open_events = perhaps_waiting(view)
        parts = zip(path.chain.events, path.chain.worked, strict=True)
        path_work = sum(part for index, part in parts if index not in open_events)
        bound = f"With these steps and no waiting: at least {self._time(least.length)}"
        if least.stretches and self._time(path_work) != self._time(least.length):  # these are not the steps of `text`
            bound += f" ({self._chain(least.stretches)})"
        if most.length != least.length:
            bound += f", or {self._time(most.length)} if open calls worked"
        yield "Path", f"critical path, {self._time(elapsed)}: {text}. {bound}.{note}"
        yield from self._open_calls()
        yield from self._turns()

    def _open_calls(self) -> Iterator[tuple[str, str]]:
        """Yield a sentence on the calls that perhaps waited, and a sentence on the calls whose end is unknown."""
        view = self._run.view
        longest_first = sorted(view.open_calls, key=lambda call: -view.timing.works[call.event])
        waiting = [self._waiting_call(call) for call in longest_first if call.cause is not Cause.UNFINISHED]
        if waiting:
            calls = unbroken_count(len(waiting), "call")
            yield "Open", f"{calls}, perhaps waiting instead of working: {_first_calls(waiting)}."
        unfinished = [self._unfinished_call(call) for call in longest_first if call.cause is Cause.UNFINISHED]
        if unfinished:
            calls = unbroken_count(len(unfinished), "call")
            yield "Open", f"{calls} whose end the log does not show: {_first_calls(unfinished)}."

    def _waiting_call(self, call: OpenCall) -> str:
        """Return an open call with its time, and with what one can compare the time with."""
        event = self._run.view.trace.events[call.event]
        time = self._time(self._run.view.timing.works[call.event])
        if call.usual is not None:
            time += f" (usually {self._time(call.usual)})"
        if call.cause is Cause.ANSWER and isinstance(event.tokens, Tokens) and event.tokens.output is not None:
            time += f" (for {unbroken_count(int(event.tokens.output), 'token')})"
        activity = Activity.MODEL.value if call.cause is Cause.ANSWER else _tool(event.tool)
        act = f"{activity} of {self._name(event.agent)}"
        return f"{unbroken(act)} {unbroken(time)}"

    def _unfinished_call(self, call: OpenCall) -> str:
        """Return a call with its time as a range: until it was last seen, or until the end of the log."""
        view = self._run.view
        least = view.timing_if_waiting.works[call.event]
        most = view.timing.works[call.event]
        longest = most + view.timing.waits_after_last_seen(call.event)
        text = f"{self._call(call.event)} {unbroken(self._range(least, most))}"
        if longest > most:
            text += f", or {self._time(longest)} if it went on during waits for people"
        return text

    def _call(self, index: int) -> str:
        """Return a call by its tool and its agent; an answer of a model only by its agent."""
        event = self._run.view.trace.events[index]
        name = self._name(event.agent)
        return name if event.type in ANSWER_TYPES else unbroken(f"{_tool(event.tool)} of {name}")

    def _turns(self) -> Iterator[tuple[str, str]]:
        """Yield sentences on the waits and the sleep that follow from the stated durations of turns."""
        for excluded, words in _EXCLUDED_TIMES.items():
            turns = [wait for wait in self._run.view.timing.stated.waits if wait.turn.excludes is excluded]
            if not turns:
                continue
            time = unbroken(f"{self._time(sum(wait.seconds for wait in turns))} {words}")
            calls = [call for wait in turns for call in wait.calls]
            calls.sort(key=lambda call: -call.most)
            texts = [f"{self._call(call.event)} {unbroken(self._range(call.least, call.most))}" for call in calls]
            source = f"time between the rows less the stated duration of {unbroken_count(len(turns), 'turn')}"
            text = f"{time} ({source})"
            if texts:
                text += f": {_first_calls(texts)}"
            yield "Turns", f"{text}."

    def _chain(self, stretches: Sequence[Stretch]) -> str:
        """Return the stretches of a path in their order or, if they are many, their sums by role and the longest."""
        if len(stretches) <= _MAX_STRETCHES:
            return " -> ".join(map(self._stretch, stretches))
        times_by_role: dict[str, list[float]] = {}
        for stretch in stretches:
            role = self._role(stretch.agent) if stretch.agent else stretch.activity.value
            times_by_role.setdefault(role, []).append(stretch.seconds)
        roles = sorted(times_by_role, key=lambda role: -sum(times_by_role[role]))
        parts = []
        for role in roles[:_MAX_SHARES]:
            times = times_by_role[role]
            parts.append(unbroken(f"{role} {self._time(sum(times))} ({len(times):,} times)"))
        rest = sum(sum(times_by_role[role]) for role in roles[_MAX_SHARES:])
        if rest:
            parts.append(unbroken(f"others {self._time(rest)}"))
        longest = max((stretch for stretch in stretches if stretch.agent), key=lambda stretch: stretch.seconds)
        return f"{', '.join(parts)}; the longest stretch: {self._stretch(longest)}"

    def _stretch(self, stretch: Stretch) -> str:
        """Return a stretch with its agent, its time, and what the agent did: a tool, or the agents that it awaited."""
        name = self._name(stretch.agent) if stretch.agent else stretch.activity.value
        text = unbroken(f"{name} {self._time(stretch.seconds)}")
        if stretch.workers:
            workers = unbroken_count(len(stretch.workers), "agent")
            if len(stretch.workers) == 1:
                workers = self._name(stretch.workers[0])
            return f"{text} ({workers} worked {unbroken(self._time(stretch.worked))} of it)"
        if not stretch.agent or stretch.activity is Activity.MODEL:
            return text
        activity = self._activity(stretch.activity, stretch.tool)
        if stretch.is_mixed:
            activity = f"mostly {activity}"
        if stretch.activity in _OPEN_ACTIVITIES:
            activity += ", perhaps waiting"
        return f"{text} ({activity})"

    def _tokens(self) -> Iterator[tuple[str, str]]:
        """Yield sentences on the tokens of the run by kind, agent and model, and on what is unsure or unknown."""
        tokens = self._run.tokens
        reason = printable(tokens.reason, limit=200)
        if tokens.known is None:
            yield "Tokens", f"unknown ({reason})." if reason else "unknown."
            return
        text = f"{tokens.known:,.15g}"
        if tokens.is_lower_bound:
            text = f"at least {text}"
        kinds = [unbroken(f"{amount:,.15g} {KIND_LABELS[kind]}") for kind, amount in tokens.by_kind.items() if amount]
        if kinds:
            text += f" ({', '.join(kinds)})"
        sentences = [f"{text}."]
        by_agent = self._spenders(tokens.by_agent, tokens.known)
        if by_agent:
            sentences.append(by_agent)
        models = [(printable(name, limit=40) or "not named", amount) for name, amount in tokens.by_model]
        if len(models) > 1:
            sentences.append(f"{unbroken('By model:')} {_shares(models, tokens.known)}.")
        elif models and tokens.by_model[0][0]:
            sentences.append(f"All on {models[0][0]}.")
        yield "Tokens", " ".join(sentences)
        notes = [f"{unbroken('Not certain:')} {printable(doubt, limit=200)}." for doubt in tokens.unsure]
        unknown = reason
        if not unknown:
            missing = []
            for record, count in tokens.missing.items():
                times = unbroken(f"{count:,} x")
                missing.append(f"{times} {printable(record, limit=120)}")
            unknown = ", ".join(missing)
        if unknown:
            if tokens.max_hidden:
                unknown += f" (at most {tokens.max_hidden:,.15g} tokens)"
            notes.append(f"{unbroken('Not known:')} {unknown}.")
        records, amount = tokens.repeated
        if amount:
            duplicates = unbroken(f"{amount:,.15g} tokens") + f" of {unbroken_count(records, 'record')}"
            notes.append(f"{unbroken('Ignored as duplicates:')} {duplicates}.")
        if notes:
            yield "", " ".join(notes)

    def _spenders(self, spent: Sequence[tuple[str, float]], known: float) -> str:
        """Return a sentence on the shares of agents or, if they are many, of roles; empty if there is only one."""
        label, name_of = "By agent:", self._name
        if len(spent) > _MAX_SPENDERS:
            label, name_of = "By role:", self._role
        sums: dict[str, float] = {}
        for agent, amount in spent:
            name = name_of(agent)
            sums[name] = sums.get(name, 0.0) + amount
        if len(sums) < 2:
            return ""
        ordered = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
        return f"{unbroken(label)} {_shares(ordered, known)}."

    def _cost(self) -> Iterator[tuple[str, str]]:
        """Yield sentences on the cost of the run by agent, model and tool, and on what is not in it."""
        cost = self._run.cost
        if not self._run.origin.has_prices:
            yield "Cost", "unknown without prices: --cost, or a table with --prices FILE."
            return
        without = ", ".join(printable(model) for model in cost.unpriced_models[:_MAX_SHARES])
        unused = []
        if cost.unused_models and cost.unpriced_models:
            unused.append(("", f"{unused_prices(cost.unused_models)}."))
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
        text = f"{money(sum(usd for _, usd in cost.by_agent))} USD"
        if cost.is_lower_bound:
            text = f"at least {text}"
        if cost.date:
            text += f" at {prices_of(cost.date, cost.last_day, cost.source)}"
        elif self._run.origin.form == "Trace":
            text += ", as the trace states it"
        else:
            text += ", as the log states it"
        shares = [unbroken(f"{self._name(agent)} {money(usd)}") for agent, usd in cost.by_agent]
        if len(shares) > 1:
            text += f" ({first_names_and_more(shares, _MAX_SHARES, ', …')})"
        yield "Cost", f"{text}."
        yield from stated
        sentences = [*_costs("model", cost.by_model), *_costs("tool", cost.by_tool)]
        if sentences:
            yield "", " ".join(sentences)
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
                act = f"{_act(event)} of {self._name(event.agent)}"
                if event.error_type:
                    act += f", {printable(event.error_type, limit=40)}"
                place = unbroken(f"{printable(event.id, limit=40)} at {self._time(self._start(event))}")
                first = "" if problem.occurrences == 1 else "; the first"
                yield "Errors", f"{unbroken_count(problem.occurrences, 'event')} failed{first}: {act} ({place})."
        if run.problems or run.team_findings.findings or run.view.open_calls:
            return
        rest = "nothing lost between agents, all of the log read."
        if has_statuses(run.view.trace):
            yield "Findings", f"none: no errors, {rest}"
        else:
            yield "Findings", f"none seen: {rest} Whether a call failed is not known, since none has a status."

    def _start(self, event: Event) -> float:
        """Return the time from the begin of the run to an event."""
        times = self._run.view.timing
        index = times.graph.indices[event.id]
        return max(times.starts[index] - times.begin, 0.0)

    def _log(self) -> Iterator[tuple[str, str]]:
        """Yield the most frequent problems of the log: things that are missing or that were not understood."""
        problems = [problem for problem in self._run.problems if problem.kind is not ProblemKind.FAILED_EVENT]
        problems.sort(key=lambda problem: -problem.occurrences)
        for index, problem in enumerate(problems[:_MAX_PROBLEMS]):
            label = "" if index else "Log"
            yield label, f"{problem.occurrences:,} x {self._problem(problem)}"
        more = len(problems) - _MAX_PROBLEMS
        if more > 0:
            yield "", f"{unbroken_count(more, 'more kind')}; {unbroken('corpus trace import')} tells all."

    def _problem(self, problem: Problem) -> str:
        if problem.kind is ProblemKind.FOREIGN_REPORT:
            return "import report in another format, not read"
        text = printable(problem.text or problem.kind.value, limit=120)
        place = problem.place
        if len(place) > _MAX_PLACE:  # the end is kept, since the names of files often have the same begin
            place = f"…{place[-_MAX_PLACE:]}"
        return f"{text} ({printable(place)})" if place else text


def _shares(amounts: Sequence[tuple[str, float]], total: float) -> str:
    """Return the first names, each with the share of its amount in the total."""
    parts = []
    for name, amount in amounts:
        share = amount / total
        percent = f"{share:.0%}" if share >= 0.005 else "<1%"
        parts.append(unbroken(f"{name} {percent}"))
    return first_names_and_more(parts, _MAX_SHARES, _AND_MORE)


def _costs(kind: str, costs: Sequence[tuple[str, float]]) -> Iterator[str]:
    """Yield a sentence on the costs of models or tools, the most expensive first; nothing if there is only one."""
    if len(costs) > 1:
        parts = [unbroken(f"{printable(name, limit=40) or f'no {kind}'} {money(usd)}") for name, usd in costs]
        yield f"{unbroken(f'By {kind}:')} {first_names_and_more(parts, _MAX_SHARES, ', …')}."


def _first_calls(texts: Sequence[str]) -> str:
    return first_names_and_more(texts, _MAX_CALLS, _AND_MORE)


def _tool(name: str) -> str:
    return printable(name, limit=30) or "tools"


def _act(event: Event) -> str:
    """Return what an event was: the name of its tool, `model`, or its type."""
    if activity_of(event) is Activity.TOOL:
        return _tool(event.tool)
    if event.type in ANSWER_TYPES:
        return "model"
    return event.type.value.replace("_", " ")
