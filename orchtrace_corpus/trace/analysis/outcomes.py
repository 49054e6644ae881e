"""Reads the outcomes of runs from a file, since logs do not state them.

An outcome has rewards, success, an error rate, and a baseline: the figures of a single agent's run on the same task.
The file is CSV with a heading, or JSON (or YAML) with a list of objects. Each line or object is about one run:

    run,reward,success,baseline.turns
    7ea30000-0000-4000-8000-000000000001,0.8,true,12

    [{"run": "7ea30000-0000-4000-8000-000000000001", "reward": {"team": 0.8}, "baseline": {"turns": 12}}]

An empty field is an unknown value. Besides `FIELDS`, a file can have three kinds of fields: `reward.NAME` for a reward
channel other than `team`, `agent.NAME` for the reward of an agent, and `event.ID` for the reward of an event, such as a
return or a merge.
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
"""The names of reward channels: a reward is for a reward family or for a credit unit."""

FIELDS = (
    *("run", "task", "reward", "success", "error_rate", "baseline", "baseline.source"),
    *(f"baseline.{name}" for name in BASELINE_FIGURES),
)
"""The fields of a run; `baseline` is the id of a single agent's run on the same task."""

_METRIC_BY_FIELD = {"success": "task_success", "error_rate": "error_rate"}
_TRUTH_VALUES = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_MAX_MISTAKES = 20
_HINT = "docs/importers.md shows a file of outcomes."


class Outcome(NamedTuple):
    """The outcome of a run.

    Attributes:
        place: The place of the outcome in the file, as `file:line`.
        rewards: The rewards of the run by channel.
        metrics: The metrics by name: `task_success`, from 0 to 1, and `error_rate`.
        baseline: A single agent's run on the same task; None if it is not given.
        agents: The rewards of agents, by name.
        events: The rewards of events, by id.
        task: The task of the run; empty if it is not given. Rewards are compared between runs of one task.
    """

    place: str
    rewards: dict[str, float]
    metrics: dict[str, float]
    baseline: Baseline | None
    agents: Mapping[str, float] = {}
    events: Mapping[str, float] = {}
    task: str = ""

    def apply(self, trace: Trace) -> None:
        """Write the outcome into a trace, and list the fields set in its import report.

        Raises:
            DataFileError: The outcome rewards an agent or event that the trace does not have.
        """
        if self.agents or self.events:
            self._apply_to_parts(trace)
        trace.task_id = self.task or trace.task_id
        trace.rewards.update(self.rewards)
        trace.metrics.update(self.metrics)
        parts = {"rewards": self.rewards, "metrics": self.metrics, "agents": self.agents, "events": self.events}
        fields_set = [f"{part}.{name}" for part, names in parts.items() for name in names]
        if self.task:
            fields_set.append("task_id")
        if self.baseline is not None:
            trace.baseline = self.baseline
            fields_set.append("baseline")
        trace.import_report["outcomes"] = fields_set

    def _apply_to_parts(self, trace: Trace) -> None:
        """Write the rewards of agents and events into a trace; declare the agents that it does not declare."""
        declared_agents = {agent.id for agent in trace.agents}
        acting_agents = {event.agent for event in trace.events}
        events_by_id = {event.id: event for event in trace.events}
        self._require_known("agent", self.agents, acting_agents | declared_agents)
        self._require_known("event", self.events, events_by_id)
        trace.agents += tuple([Agent(name) for name in self.agents if name not in declared_agents])
        for agent in trace.agents:
            agent.reward = self.agents.get(agent.id, agent.reward)
        for event_id, reward in self.events.items():
            events_by_id[event_id].reward = reward

    def _require_known(self, part: str, names: Iterable[str], known: Collection[str]) -> None:
        for name in names:
            if name not in known:
                message = f"the run has no {part} {quote(name)}{near_suggestion(name, sorted(known))}"
                raise DataFileError(f"{self.place}: {message}", _HINT)


class Outcomes:
    """The outcomes of a file; each is found by the name of its run or by the beginning of that name.

    Args:
        by_prefix: The outcomes by these names or beginnings of names.

    Attributes:
        runs: The names of the runs that were looked up so far.
    """

    def __init__(self, by_prefix: Mapping[str, Outcome]) -> None:
        self._by_prefix = by_prefix
        self._lengths = sorted({len(prefix) for prefix in by_prefix}, reverse=True)
        self._run_by_prefix: dict[str, str] = {}  # the run that each prefix matched so far
        self.runs: list[str] = []

    def take(self, run: str) -> Outcome | None:
        """Return the outcome of a run, found by the longest prefix of its name; None if there is none.

        Raises:
            CommandUseError: The prefix has already matched another run.
        """
        self.runs.append(run)
        for length in self._lengths:
            prefix = run[:length]
            if len(run) < length or prefix not in self._by_prefix:
                continue
            if prefix != run and self._run_by_prefix.get(prefix) == prefix:
                continue  # the prefix is the whole name of another run, and belongs to that run only
            outcome = self._by_prefix[prefix]
            other = self._run_by_prefix.setdefault(prefix, run)
            if other != run:
                message = f"{outcome.place}: 2 runs begin with {quote(prefix)}: {quote(other)}, {quote(run)}"
                raise CommandUseError(message, "Write more of the name, and a line for each of them.")
            return outcome
        return None

    @property
    def unused(self) -> dict[str, Outcome]:
        """The outcomes that have matched no run so far, by prefix."""
        return {prefix: outcome for prefix, outcome in self._by_prefix.items() if prefix not in self._run_by_prefix}


class _Value(NamedTuple):
    """A value of the file and its place."""

    text: str
    place: str


_Rows = Iterator[tuple[str, dict[str, _Value]]]
"""For each run in the file, its place and its fields by name."""


def load(path: str) -> dict[str, Outcome]:
    """Return the outcomes of a file, by the name of the run or the beginning of that name.

    Raises:
        DataFileError: The file cannot be read, or has mistakes; the message lists them with their lines.
    """
    path_text = printable(path, limit=300)
    mistakes: list[str] = []
    outcomes: dict[str, Outcome] = {}
    read_rows = _csv_rows if path.lower().endswith(".csv") else _tree_rows
    for place, fields in read_rows(path, path_text, mistakes):
        run = fields.pop("run", _Value("", place))
        if not run.text:
            mistakes.append(f"{run.place}: no run is named")
        elif run.text in outcomes:
            mistakes.append(f"{run.place}: {quote(run.text)} is the run of {outcomes[run.text].place}, too")
        else:
            outcomes[run.text] = _outcome(place, fields, mistakes)
    if not outcomes and not mistakes:
        mistakes.append(f"{path_text}:1: there is no outcome")
    if mistakes:
        listed = first_and_more(mistakes, _MAX_MISTAKES, "… and {} more")
        raise DataFileError("\n".join(("the outcomes have mistakes:", *listed)), _HINT)
    return outcomes


def _outcome(place: str, fields: dict[str, _Value], mistakes: list[str]) -> Outcome:
    """Return the outcome of a run from its fields; append their mistakes to the list."""
    rewards: dict[str, float] = {}
    metrics: dict[str, float] = {}
    agents: dict[str, float] = {}
    events: dict[str, float] = {}
    baseline: dict[str, str | float] = {}
    task = ""
    for name, value in fields.items():
        part, _, rest = name.partition(".")
        number: float | None = None  # None if the field is a text or empty
        try:
            _check_name(name)
            if part in ("agent", "event", "reward"):
                number = _number(value, least=-inf, accepts_words=True)
            elif name.endswith("success"):  # of the run or of its baseline
                number = _number(value, least=0.0, most=1.0, accepts_words=True)
            elif name in _METRIC_BY_FIELD or rest in BASELINE_FIGURES:
                number = _number(value, least=0.0, accepts_words=False)
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
            metrics[_METRIC_BY_FIELD[name]] = number
    single_agent_run = msgspec.convert(baseline, Baseline) if baseline else None
    return Outcome(place, rewards, metrics, single_agent_run, agents, events, task)


def _check_name(name: str) -> None:
    """Raise ValueError, with a message for the user, if a field's name is unknown."""
    part, _, rest = name.partition(".")
    if part in ("agent", "event") and rest:
        return
    if part == "reward" and rest:
        if rest not in CHANNELS:
            raise ValueError(f"no channel of reward is {quote(rest)}{suggestion(rest, CHANNELS)}")
    elif name not in FIELDS:
        raise ValueError(f"unknown {quote(name)}{suggestion(name, FIELDS)}")


def _number(value: _Value, *, least: float, most: float = inf, accepts_words: bool) -> float | None:
    """Return a number between bounds, or 1 for true and 0 for false if words are accepted; None for an empty value.

    Raises:
        ValueError: The value is something else; the message is for the user.
    """
    if not value.text:
        return None
    if accepts_words and value.text.lower() in _TRUTH_VALUES:
        return _TRUTH_VALUES[value.text.lower()]
    try:
        number = float(value.text)
    except ValueError:
        number = inf  # refused below, like infinity itself
    if least <= number <= most and abs(number) != inf:
        return number
    expected = "a number from 0 on"
    if most == 1.0:
        expected = "true, false or a number from 0 to 1"
    elif least < 0:
        expected = "a number"
    raise ValueError(f"{quote(value.text)} is not {expected}")


def _csv_rows(path: str, path_text: str, mistakes: list[str]) -> _Rows:
    """Yield the place and the fields of each run of a CSV file; append its mistakes to the list."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            heading = [name.strip() for name in next(rows, [])]
            if "run" not in heading:
                mistakes.append(f"{path_text}:1: the heading has no column 'run'")
                return
            if len(set(heading)) < len(heading):
                mistakes.append(f"{path_text}:1: the heading has two columns of one name")
                return
            known_names = set()
            for name in heading:
                try:
                    _check_name(name)
                    known_names.add(name)
                except ValueError as error:
                    mistakes.append(f"{path_text}:1: {error}")
            for cells in rows:
                place = f"{path_text}:{rows.line_num}"
                if len(cells) > len(heading):
                    mistakes.append(f"{place}: {len(cells)} cells, and the heading has {len(heading)}")
                elif any(cells):
                    columns = zip(heading, cells, strict=False)  # the last fields of a short row are unknown
                    yield place, {name: _Value(cell.strip(), place) for name, cell in columns if name in known_names}
    except csv.Error as error:
        mistakes.append(f"{path_text}:{rows.line_num}: {error}")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise DataFileError(f"cannot read {path_text}: {reason}") from error


def _tree_rows(path: str, path_text: str, mistakes: list[str]) -> _Rows:
    """Yield the place and the fields of each run of a JSON or YAML file; append its mistakes to the list."""
    file = read(path, path_text)
    root = file.root()
    if file.findings:
        mistakes += map(str, file.findings)
        return
    if not isinstance(root, SequenceNode):
        mistakes.append(f"{path_text}:1: outcomes are a list of objects, one for each run")
        return
    for item in root.items:
        if not isinstance(item, MappingNode):
            mistakes.append(f"{file.location(item.at)}: an outcome is an object with the name of a 'run'")
            continue
        yield str(file.location(item.at)), dict(_flat_fields(file, item, "", mistakes))


def _flat_fields(file: YamlFile, node: MappingNode, prefix: str, mistakes: list[str]) -> Iterator[tuple[str, _Value]]:
    """Yield the fields of an object; `{reward: {team: 1}}` has the field `reward.team`. Deeper objects are mistakes."""
    for name, (_, value) in node.entries.items():
        if isinstance(value, Scalar):
            text = "" if value.text == "null" else value.text
            yield prefix + name, _Value(text, str(file.location(value.at)))
        elif isinstance(value, MappingNode) and not prefix:
            yield from _flat_fields(file, value, f"{name}.", mistakes)
        else:
            mistakes.append(f"{file.location(value.at)}: {quote(prefix + name)} must be one value")
