"""Reads outcomes of runs from a file, which logs do not state: rewards, success, a single agent's run.

The file is CSV with a heading, or JSON (or YAML) with a list of objects. Each line or object is about one run:

    run,reward,success,baseline.turns
    7ea30000-0000-4000-8000-000000000001,0.8,true,12

    [{"run": "7ea30000-0000-4000-8000-000000000001", "reward": {"team": 0.8}, "baseline": {"turns": 12}}]

What is left empty stays unknown. `FIELDS` says what may be given; a further channel of reward is `reward.NAME`, the
reward of an agent `agent.NAME`, that of an event, such as the outcome of a return or of a merge, `event.ID`.
"""

import csv
from collections.abc import Iterator, Mapping
from math import inf

import msgspec

from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.findings import near_suggestion, printable, quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.reader import Mapping as MappingNode
from orchtrace_corpus.base.yamlfile.reader import Scalar, YamlFile, read
from orchtrace_corpus.base.yamlfile.reader import Sequence as SequenceNode
from orchtrace_corpus.trace.model.terms import BASELINE_FIGURES, CREDIT_UNITS, REWARD_FAMILIES
from orchtrace_corpus.trace.model.trace import Agent, Baseline, Trace

CHANNELS = tuple(dict.fromkeys((*REWARD_FAMILIES, *CREDIT_UNITS)))
"""The channels that a reward may have."""

FIELDS = (
    *("run", "task", "reward", "success", "error_rate", "baseline", "baseline.source"),
    *(f"baseline.{name}" for name in BASELINE_FIGURES),
)
"""The fields of a line: those of the run, then `baseline`, a single agent's run on the same task."""

_METRICS = {"success": "task_success", "error_rate": "error_rate"}
_WORDS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_MOST_TOLD = 20
_HINT = "docs/importers.md shows a file of outcomes."


class Outcome(NamedTuple):
    """The outcome of a run.

    Attributes:
        place: Where it is said, as `file:line`.
        rewards: Its rewards by channel.
        metrics: `task_success` from 0 to 1, and `error_rate`.
        baseline: A single agent's run on the same task; None where none is given.
        agents: The rewards of agents, by name.
        events: The rewards of events, by id.
        task: What was asked of the run: runs of one task are compared with one another. Empty where it is not given.
    """

    place: str
    rewards: dict[str, float]
    metrics: dict[str, float]
    baseline: Baseline | None
    agents: Mapping[str, float] = {}
    events: Mapping[str, float] = {}
    task: str = ""

    def apply(self, trace: Trace) -> None:
        """Put it on a trace; what it does not say stays as it is. The report says what was given from outside.

        Raises:
            DataFileError: The trace has no agent or no event of a name that it gives a reward.
        """
        self._apply_parts(trace)
        trace.task_id = self.task or trace.task_id
        trace.rewards.update(self.rewards)
        trace.metrics.update(self.metrics)
        if self.baseline is not None:
            trace.baseline = self.baseline
        given = [*(f"rewards.{name}" for name in self.rewards), *(f"metrics.{name}" for name in self.metrics)]
        given += [f"agents.{name}" for name in self.agents] + [f"events.{name}" for name in self.events]
        given += ["task_id"] * bool(self.task) + ["baseline"] * (self.baseline is not None)
        trace.import_report["outcomes"] = given

    def _apply_parts(self, trace: Trace) -> None:
        """Put the rewards of agents and events on them."""
        if not self.agents and not self.events:
            return
        declared = {agent.id: agent for agent in trace.agents}
        acting = {event.agent for event in trace.events}
        events = {event.id: event for event in trace.events}
        there = {"agent": (self.agents, acting.union(declared)), "event": (self.events, events.keys())}
        for part, (given, names) in there.items():
            for name in given:
                if name not in names:
                    said = f"the run has no {part} {quote(name)}{near_suggestion(name, sorted(names))}"
                    raise DataFileError(f"{self.place}: {said}", _HINT)
        trace.agents += tuple([Agent(name) for name in self.agents if name not in declared])
        for agent in trace.agents:
            agent.reward = self.agents.get(agent.id, agent.reward)
        for name, reward in self.events.items():
            events[name].reward = reward


class Outcomes:
    """The outcomes of a file, each of the run that it names, by its whole name or by the beginning of that.

    Attributes:
        runs: The names of the runs that were asked for.
    """

    def __init__(self, known: Mapping[str, Outcome]) -> None:
        self._known = known
        self._lengths = sorted({len(name) for name in known}, reverse=True)
        self._taken: dict[str, str] = {}
        self.runs: list[str] = []

    def take(self, run: str) -> Outcome | None:
        """The outcome of a run; None where there is none.

        Raises:
            CommandUseError: What begins its name is the name of another run, or begins that.
        """
        self.runs.append(run)
        names = (run[:length] for length in self._lengths if length <= len(run))
        name = next((one for one in names if one in self._known and (one == run or self._taken.get(one) != one)), None)
        if name is None:
            return None
        if (other := self._taken.setdefault(name, run)) != run:
            said = f"{self._known[name].place}: 2 runs begin with {quote(name)}: {quote(other)}, {quote(run)}"
            raise CommandUseError(said, "Write more of the name, and a line for each of them.")
        return self._known[name]

    @property
    def unused(self) -> dict[str, Outcome]:
        """Those that no run has taken."""
        return {name: outcome for name, outcome in self._known.items() if name not in self._taken}


class _Value(NamedTuple):
    """A value of the file, with the place at which it stands."""

    text: str
    place: str


_Rows = Iterator[tuple[str, dict[str, _Value]]]


def load(path: str) -> dict[str, Outcome]:
    """Read outcomes, by the name of the run or its beginning.

    Raises:
        DataFileError: The file cannot be read, or has mistakes: the message lists them, each at its line.
    """
    shown = printable(path, limit=300)
    mistakes: list[str] = []
    found: dict[str, Outcome] = {}
    rows = _csv_rows if path.lower().endswith(".csv") else _tree_rows
    for place, fields in rows(path, shown, mistakes):
        run = fields.pop("run", _Value("", place))
        if not run.text:
            mistakes.append(f"{run.place}: no run is named")
        elif run.text in found:
            mistakes.append(f"{run.place}: {quote(run.text)} is the run of {found[run.text].place}, too")
        else:
            found[run.text] = _outcome(place, fields, mistakes)
    if not found and not mistakes:
        mistakes.append(f"{shown}:1: there is no outcome")
    if mistakes:
        more = [f"… and {len(mistakes) - _MOST_TOLD} more"] if len(mistakes) > _MOST_TOLD else []
        raise DataFileError("\n".join(("the outcomes have mistakes:", *mistakes[:_MOST_TOLD], *more)), _HINT)
    return found


def _outcome(place: str, fields: dict[str, _Value], mistakes: list[str]) -> Outcome:
    """Return the outcome that the fields of a run state; add their errors to the mistakes."""
    rewards: dict[str, float] = {}
    metrics: dict[str, float] = {}
    task, words = "", dict[str, str]()
    figures: dict[str, float] = {}
    parts: dict[str, dict[str, float]] = {"agent": {}, "event": {}}
    for name, value in fields.items():
        part, _, rest = name.partition(".")
        if unknown := _unknown(name):
            mistakes.append(f"{value.place}: {unknown}")
        elif part in parts:
            _take(parts[part], rest, value, mistakes, least=-inf)
        elif part == "reward":
            _take(rewards, rest or "team", value, mistakes, least=-inf)
        elif name in _METRICS:
            _take(metrics, _METRICS[name], value, mistakes, most=1.0 if name == "success" else inf)
        elif rest in BASELINE_FIGURES:
            _take(figures, rest, value, mistakes, most=1.0 if rest == "success" else inf)
        elif name == "task":
            task = value.text
        elif value.text:
            words["source" if rest else "trace_id"] = value.text
    baseline = msgspec.convert({**words, **figures}, Baseline) if words or figures else None
    return Outcome(place, rewards, metrics, baseline, parts["agent"], parts["event"], task)


def _unknown(name: str) -> str:
    """Return the error about the name of a field; empty if there is none."""
    part, _, channel = name.partition(".")
    if part in ("agent", "event") and channel:
        return ""
    if part == "reward" and channel:
        return "" if channel in CHANNELS else f"no channel of reward is {quote(channel)}{suggestion(channel, CHANNELS)}"
    return "" if name in FIELDS else f"unknown {quote(name)}{suggestion(name, FIELDS)}"


def _take(
    known: dict[str, float], name: str, value: _Value, mistakes: list[str], least: float = 0.0, most: float = inf
) -> None:
    """Take a number, unless nothing is given; rewards and success may be true or false as well, which is 1 or 0."""
    if not value.text:
        return
    words = _WORDS if most == 1.0 or least < 0 else {}
    try:
        number = words[value.text.lower()] if value.text.lower() in words else float(value.text)
    except ValueError:
        number = inf
    if not least <= number <= most or abs(number) == inf:
        wanted = "true, false or a number from 0 to 1" if most == 1.0 else f"a number{' from 0 on' * (not least)}"
        mistakes.append(f"{value.place}: {quote(value.text)} is not {wanted}")
    else:
        known[name] = number


def _csv_rows(path: str, shown: str, mistakes: list[str]) -> _Rows:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file, strict=True)
            heading = [name.strip() for name in next(lines, [])]
            if "run" not in heading or len(set(heading)) < len(heading):
                what = "two columns of one name" if "run" in heading else "no column 'run'"
                mistakes.append(f"{shown}:1: the heading has {what}")
                return
            mistakes += [f"{shown}:1: {wrong}" for name in heading if (wrong := _unknown(name))]
            known = {name for name in heading if not _unknown(name)}
            for cells in lines:
                place = f"{shown}:{lines.line_num}"
                if len(cells) > len(heading):
                    mistakes.append(f"{place}: {len(cells)} cells, and the heading has {len(heading)}")
                elif any(cells):
                    named = dict(zip(heading, cells, strict=False))
                    yield place, {name: _Value(named[name].strip(), place) for name in named if name in known}
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
        yield str(file.location(item.at)), dict(_flat(file, item, "", mistakes))


def _flat(file: YamlFile, node: MappingNode, above: str, mistakes: list[str]) -> Iterator[tuple[str, _Value]]:
    """The fields of an object; those of an object inside have its name in front."""
    for name, (_, value) in node.entries.items():
        if isinstance(value, Scalar):
            yield above + name, _Value("" if value.text == "null" else value.text, str(file.location(value.at)))
        elif isinstance(value, MappingNode) and not above:
            yield from _flat(file, value, f"{name}.", mistakes)
        else:
            mistakes.append(f"{file.location(value.at)}: {quote(above + name)} must be one value")
