"""`corpus trace export` for trainers: runs turn by turn, and what a trainer must know of them."""

import os
from collections.abc import Sequence

from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.findings import quote, quote_path
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import pluralize
from orchtrace_corpus.trace.cli.credit import rewarded_traces
from orchtrace_corpus.trace.cli.loading import deliver
from orchtrace_corpus.trace.credit.assign import Choices, stated_reward
from orchtrace_corpus.trace.credit.stopping import simulate, stopping_biases
from orchtrace_corpus.trace.exporters.trainers import Shape, text
from orchtrace_corpus.trace.exporters.training import (
    Division,
    Payment,
    TokenFiles,
    Trajectory,
    payment,
    trajectories,
    without_tokens,
)
from orchtrace_corpus.trace.rewards import compute, load

_MOST_TASKS = 3
_FEWEST_GROUPS, _MOST_GROUPS, _MOST_DRAWN = 100, 1000, 3_000_000
"""Limits of drawn groups: fewer are drawn if they had more turns in all."""


class Reading(NamedTuple):
    """The traces that are exported, and their source.

    Attributes:
        paths: Traces and logs.
        name: Of several traces the only one that is wanted; all where empty.
        channel: The reward; `team` or the only one where empty.
        spec: The specification that computes the reward; that which the traces state where empty.
        outcomes: A file of outcomes; none where empty.
        tokens: The folder of the files with token ids; that of the first path where empty.
        without_tokens: Whether turns without token ids are written, too.
    """

    paths: tuple[str, ...]
    name: str
    channel: str
    spec: str
    outcomes: str
    tokens: str
    without_tokens: bool


def export(session: Session, reading: Reading, shape: Shape, division: Division | None, output: str) -> ExitCode:
    """Write runs as training data.

    Raises:
        CommandUseError: Two runs have one name; or one has no reward, no turn, or turns without tokens.
        DataFileError: A file cannot be read or written.
        InvalidTraceError: All traces have errors.
    """
    division = division or Division.TURN
    views, channel = rewarded_traces(session, reading.paths, reading.name, reading.outcomes, reading.channel)
    files: dict[str, str] = {}
    for view in views:
        name = view.trace.trace_id
        if name in files:
            said = f"two runs are called {quote(name)}: {quote_path(files[name])}, {quote_path(view.file)}"
            raise CommandUseError(said, "Trainers tell runs apart by their names: rename one, or export them apart.")
        files[name] = view.file
    if reading.spec:
        design = load(reading.spec)
        payments = [payment(view, compute(view, design)) for view in views]
    else:
        payments = [Payment(stated_reward(view.trace, Choices(channel))) for view in views]
    first = reading.paths[0]
    folder = reading.tokens or (first if os.path.isdir(first) else os.path.dirname(first))
    runs = trajectories(views, division, payments, TokenFiles(folder))
    _see_tokens(session, runs, is_asked=reading.without_tokens)
    deliver(session, output, text(shape, runs))
    session.output.note(f"corpus: wrote {pluralize(sum(len(run.turns) for run in runs), 'turn')} of {_named(runs)}")
    if division is not Division.TEAM and shape is not Shape.AGENT_LIGHTNING:
        session.output.note(
            f"corpus: the estimators of {shape} read the reward of a run's last turn only; "
            "for them say --credit team, or take the field advantage"
        )
    _warn_of_stopping(session, runs)
    return ExitCode.DONE


def _see_tokens(session: Session, runs: Sequence[Trajectory], *, is_asked: bool) -> None:
    lacking = without_tokens(runs)
    if not lacking:
        return
    trace_id, event = lacking[0]
    turns = pluralize(sum(len(run.turns) for run in runs), "turn")
    said = f"{len(lacking):,} of {turns} have no token ids, first {quote(event)} of {quote(trace_id)}"
    if not is_asked:
        hint = "Logs in ATIF can hold them (token_refs). With --without-tokens, turns are written with empty lists."
        raise CommandUseError(said, hint)
    session.output.note(f"corpus: {said}; join them by run and event before training")


def _named(runs: Sequence[Trajectory]) -> str:
    return f"{pluralize(len(runs), 'run')} of {pluralize(len({run.task_id for run in runs}), 'task')}"


def _warn_of_stopping(session: Session, runs: Sequence[Trajectory]) -> None:
    """Say where a baseline by turn would depend on when runs stopped, for the tasks with the largest bias."""
    groups: dict[str, list[list[float]]] = {}
    for run in runs:
        groups.setdefault(run.task_id, []).append([turn.reward for turn in run.turns])
    found = []
    for task, rewards in groups.items():
        biases = [stopping_biase for stopping_biase in stopping_biases(rewards) if abs(stopping_biase.bias) > 1e-12]
        if biases:
            found.append((max(biases, key=lambda one: abs(one.bias)), task))
    found.sort(key=lambda one: -abs(one[0].bias))
    for worst, task in found[:_MOST_TASKS]:
        turns = sum(map(len, groups[task]))
        number = max(_FEWEST_GROUPS, min(_MOST_GROUPS, _MOST_DRAWN // turns))
        drawn = simulate(groups[task], worst.turn, groups=number)
        session.output.note(
            f"corpus: task {quote(task)}: {worst.stopped} of {worst.reached} runs end with turn {worst.turn}; there a "
            f"baseline by turn index takes {worst.price:.3g} off going on. The gradient of going on is "
            f"{worst.gradient:.3g}; with that baseline, groups drawn from these runs make it {drawn.by_turn:.3g} "
            f"(± {drawn.standard_errors[2]:.1g})"
        )
    if found[_MOST_TASKS:]:
        session.output.note(f"corpus: {pluralize(len(found) - _MOST_TASKS, 'task')} more of this kind")
