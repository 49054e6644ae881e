"""Reads the outcomes of runs from a file, since logs do not state them: rewards, success, a single agent's run.

The file is CSV with a heading, or JSON (or YAML) with a list of objects. Each line or object is about one run:

    run,reward,success,baseline.turns
    7ea30000-0000-4000-8000-000000000001,0.8,true,12

    [{"run": "7ea30000-0000-4000-8000-000000000001", "reward": {"team": 0.8}, "baseline": {"turns": 12}}]

Empty fields are unknown. Besides `FIELDS`, a file can have the field `reward.NAME` for another reward channel,
`agent.NAME` for the reward of an agent, and `event.ID` for that of an event, such as a return or a merge.
"""

import csv
from collections.abc import Collection, Iterable, Iterator, Mapping
from math import inf

import msgspec

from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.findings import near_suggestion, printable, quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import first_and_more
from orchtrace_corpus.base.yamlfile.reader import Mapping as MappingNode
from orchtrace_corpus.base.yamlfile.reader import Scalar, YamlFile, read
from orchtrace_corpus.base.yamlfile.reader import Sequence as SequenceNode
from orchtrace_corpus.trace.model.terms import BASELINE_FIGURES, CREDIT_UNITS, REWARD_FAMILIES
from orchtrace_corpus.trace.model.trace import Agent, Baseline, Trace

CHANNELS = tuple(dict.fromkeys((*REWARD_FAMILIES, *CREDIT_UNITS)))
"""The reward channels."""

FIELDS = (
    *("run", "task", "reward", "success", "error_rate", "baseline", "baseline.source"),
    *(f"baseline.{name}" for name in BASELINE_FIGURES),
)
"""The fields of a run; `baseline` is a single agent's run on the same task."""

_METRICS = {"success": "task_success", "error_rate": "error_rate"}
_TRUTH_VALUES = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_MAX_MISTAKES = 20
_HINT = "docs/importers.md shows a file of outcomes."


class Outcome(NamedTuple):
    """The outcome of a run.

    Attributes:
        place: Its place in the file, as `file:line`.
        rewards: The rewards of the run by channel.
        metrics: `task_success` from 0 to 1, and `error_rate`.
        baseline: A single agent's run on the same task; None if it is not given.
        agents: The rewards of agents, by name.
        events: The rewards of events, by id.
        task: The task of the run, since runs of one task are compared with one another; empty if it is not given.
    """

    place: str
    rewards: dict[str, float]
    metrics: dict[str, float]
    baseline: Baseline | None
    agents: Mapping[str, float] = {}
    events: Mapping[str, float] = {}
    task: str = ""

    def apply(self, trace: Trace) -> None:
        """Put the outcome on a trace; other values stay. The import report lists what was given.

        Raises:
            DataFileError: It rewards an agent or event that the trace does not have.
        """
        if self.agents or self.events:
            self._apply_to_parts(trace)
        trace.task_id = self.task or trace.task_id
        trace.rewards.update(self.rewards)
        trace.metrics.update(self.metrics)
        parts = {"rewards": self.rewards, "metrics": self.metrics, "agents": self.agents, "events": self.events}
        given = [f"{part}.{name}" for part, names in parts.items() for name in names]
        if self.task:
            given.append("task_id")
        if self.baseline is not None:
            trace.baseline = self.baseline
            given.append("baseline")
        trace.import_report["outcomes"] = given

    def _apply_to_parts(self, trace: Trace) -> None:
        declared = {agent.id for agent in trace.agents}
        acting = {event.agent for event in trace.events}
        events = {event.id: event for event in trace.events}
        self._refuse_unknown("agent", self.agents, acting | declared)
        self._refuse_unknown("event", self.events, events)
        trace.agents += tuple([Agent(name) for name in self.agents if name not in declared])
        for agent in trace.agents:
            agent.reward = self.agents.get(agent.id, agent.reward)
        for name, reward in self.events.items():
            events[name].reward = reward

    def _refuse_unknown(self, part: str, names: Iterable[str], known: Collection[str]) -> None:
        for name in names:
            if name not in known:
                message = f"the run has no {part} {quote(name)}{near_suggestion(name, sorted(known))}"
                raise DataFileError(f"{self.place}: {message}", _HINT)


class Outcomes:
    """The outcomes of a file by the names of their runs, or the beginnings of these names.

    Attributes:
        runs: The names of the runs so far.
    """

    def __init__(self, by_name: Mapping[str, Outcome]) -> None:
        self._by_name = by_name
        self._lengths = sorted({len(name) for name in by_name}, reverse=True)
        self._matched: dict[str, str] = {}  # the run that each name matched
        self.runs: list[str] = []

    def take(self, run: str) -> Outcome | None:
        """Return the outcome of a run; None if there is none.

        Raises:
            CommandUseError: The beginning of a name that matches this run has already matched another run.
        """
        self.runs.append(run)
        for name in (run[:length] for length in self._lengths if length <= len(run)):
            is_name_of_other_run = name != run and self._matched.get(name) == name
            if name not in self._by_name or is_name_of_other_run:
                continue
            outcome = self._by_name[name]
            other = self._matched.setdefault(name, run)
            if other != run:
                message = f"{outcome.place}: 2 runs begin with {quote(name)}: {quote(other)}, {quote(run)}"
                raise CommandUseError(message, "Write more of the name, and a line for each of them.")
            return outcome
        return None

    @property
    def unused(self) -> dict[str, Outcome]:
        """The outcomes that match no run so far."""
        return {name: outcome for name, outcome in self._by_name.items() if name not in self._matched}


class _Value(NamedTuple):
    """A value of the file and its place."""

    text: str
    place: str


_Rows = Iterator[tuple[str, dict[str, _Value]]]
"""The places of runs in the file, with their fields."""


def load(path: str) -> dict[str, Outcome]:
    """Read outcomes, by the name of the run or its beginning.

    Raises:
        DataFileError: The file cannot be read, or has mistakes: the message lists them, each with its line.
    """
    shown = printable(path, limit=300)
    mistakes: list[str] = []
    outcomes: dict[str, Outcome] = {}
    rows = _csv_rows if path.lower().endswith(".csv") else _tree_rows
    for place, fields in rows(path, shown, mistakes):
        run = fields.pop("run", _Value("", place))
        if not run.text:
            mistakes.append(f"{run.place}: no run is named")
        elif run.text in outcomes:
            mistakes.append(f"{run.place}: {quote(run.text)} is the run of {outcomes[run.text].place}, too")
        else:
            outcomes[run.text] = _outcome(place, fields, mistakes)
    if not outcomes and not mistakes:
        mistakes.append(f"{shown}:1: there is no outcome")
    if mistakes:
        listed = first_and_more(mistakes, _MAX_MISTAKES, "… and {} more")
        raise DataFileError("\n".join(("the outcomes have mistakes:", *listed)), _HINT)
    return outcomes


def _outcome(place: str, fields: dict[str, _Value], mistakes: list[str]) -> Outcome:
    """Return the outcome of a run from its fields; add their mistakes to the list."""
    rewards: dict[str, float] = {}
    metrics: dict[str, float] = {}
    agents: dict[str, float] = {}
    events: dict[str, float] = {}
    baseline: dict[str, str | float] = {}
    task = ""
    for name, value in fields.items():
        part, _, rest = name.partition(".")
        number: float | None = None
        try:
            _check_name(name)
            if part in ("agent", "event", "reward"):
                number = _number(value, least=-inf, accepts_words=True)
            elif name in _METRICS or rest in BASELINE_FIGURES:
                is_success = name.endswith("success")
                number = _number(value, least=0.0, most=1.0 if is_success else inf, accepts_words=is_success)
        except ValueError as error:
            mistakes.append(f"{value.place}: {error}")
            continue
        if name == "task":
            task = value.text
        elif name == "baseline" and value.text:
            baseline["trace_id"] = value.text
        elif name == "baseline.source" and value.text:
            baseline["source"] = value.text
        elif number is None:
            continue
        elif part == "agent":
            agents[rest] = number
        elif part == "event":
            events[rest] = number
        elif part == "reward":
            rewards[rest or "team"] = number
        elif part == "baseline":
            baseline[rest] = number
        else:
            metrics[_METRICS[name]] = number
    single_agent = msgspec.convert(baseline, Baseline) if baseline else None
    return Outcome(place, rewards, metrics, single_agent, agents, events, task)


def _check_name(name: str) -> None:
    """Raise ValueError, with the message for the user, if there is no field of a name."""
    part, _, channel = name.partition(".")
    if part in ("agent", "event") and channel:
        return
    if part == "reward" and channel:
        if channel not in CHANNELS:
            raise ValueError(f"no channel of reward is {quote(channel)}{suggestion(channel, CHANNELS)}")
    elif name not in FIELDS:
        raise ValueError(f"unknown {quote(name)}{suggestion(name, FIELDS)}")


def _number(value: _Value, *, least: float, most: float = inf, accepts_words: bool) -> float | None:
    """Return a number, or 1 for true and 0 for false if words are accepted; None for an empty value.

    Raises:
        ValueError: It is something else; the message is for the user.
    """
    if not value.text:
        return None
    if accepts_words and value.text.lower() in _TRUTH_VALUES:
        return _TRUTH_VALUES[value.text.lower()]
    try:
        number = float(value.text)
    except ValueError:
        number = inf
    if least <= number <= most and abs(number) != inf:
        return number
    expected = "a number from 0 on"
    if most == 1.0:
        expected = "true, false or a number from 0 to 1"
    elif least < 0:
        expected = "a number"
    raise ValueError(f"{quote(value.text)} is not {expected}")


def _csv_rows(path: str, shown: str, mistakes: list[str]) -> _Rows:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file, strict=True)
            heading = [name.strip() for name in next(lines, [])]
            if "run" not in heading or len(set(heading)) < len(heading):
                mistake = "two columns of one name" if "run" in heading else "no column 'run'"
                mistakes.append(f"{shown}:1: the heading has {mistake}")
                return
            known = set()
            for name in heading:
                try:
                    _check_name(name)
                    known.add(name)
                except ValueError as error:
                    mistakes.append(f"{shown}:1: {error}")
            for cells in lines:
                place = f"{shown}:{lines.line_num}"
                if len(cells) > len(heading):
                    mistakes.append(f"{place}: {len(cells)} cells, and the heading has {len(heading)}")
                elif any(cells):
                    columns = zip(heading, cells, strict=False)
                    yield place, {name: _Value(cell.strip(), place) for name, cell in columns if name in known}
    except csv.Error as error:
        mistakes.append(f"{shown}:{lines.line_num}: {error}")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise DataFileError(f"cannot read {shown}: {reason}") from error


def _tree_rows(path: str, shown: str, mistakes: list[str]) -> _Rows:
    file = read(path, shown)
    root = file.root()
    if file.findings:
        mistakes += map(str, file.findings)
        return
    if not isinstance(root, SequenceNode):
        mistakes.append(f"{shown}:1: outcomes are a list of objects, one for each run")
        return
    for item in root.items:
        if not isinstance(item, MappingNode):
            mistakes.append(f"{file.location(item.at)}: an outcome is an object with the name of a 'run'")
            continue
        yield str(file.location(item.at)), dict(_flat_fields(file, item, "", mistakes))


def _flat_fields(file: YamlFile, node: MappingNode, prefix: str, mistakes: list[str]) -> Iterator[tuple[str, _Value]]:
    """Yield the fields of an object; a field of an inner object has that object's name as a prefix."""
    for name, (_, value) in node.entries.items():
        if isinstance(value, Scalar):
            yield prefix + name, _Value("" if value.text == "null" else value.text, str(file.location(value.at)))
        elif isinstance(value, MappingNode) and not prefix:
            yield from _flat_fields(file, value, f"{name}.", mistakes)
        else:
            mistakes.append(f"{file.location(value.at)}: {quote(prefix + name)} must be one value")
