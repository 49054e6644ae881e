"""`corpus trace export` for trainers: runs turn by turn, with warnings for training."""

from collections.abc import Sequence

from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.findings import quote, quote_path
from orchtrace_corpus.base.text.layout import pluralize
from orchtrace_corpus.trace.cli.loading import deliver
from orchtrace_corpus.trace.credit.assign import Choices, stated_reward
from orchtrace_corpus.trace.credit.stopping import estimate_gradients, stopping_biases
from orchtrace_corpus.trace.exporters.trainers import Shape, text
from orchtrace_corpus.trace.exporters.training import (
    Division,
    RunReward,
    TokenFiles,
    Trajectory,
    divide_reward,
    trajectories,
    without_tokens,
)
from orchtrace_corpus.trace.rewards import compute, load
from orchtrace_corpus.trace.view import TraceView

_MAX_TASKS = 3
_MIN_GROUPS, _MAX_GROUPS = 100, 1000
_MAX_DRAWN_TURNS = 3_000_000
"""The most turns to draw for an estimate from groups of runs: if the runs have many turns, fewer groups are drawn."""


def export(
    session: Session,
    views: Sequence[TraceView],
    channel: str,
    spec: str,
    folder: str,
    shape: Shape,
    division: Division,
    output: str,
    *,
    without_ids: bool,
) -> ExitCode:
    """Write runs as training data, with the stated reward of a channel, or the reward by a specification.

    Token ids are read from a folder of logs; `without_ids` allows turns without them.
    """
    files: dict[str, str] = {}
    for view in views:
        name = view.trace.trace_id
        if name in files:
            message = f"two runs are called {quote(name)}: {quote_path(files[name])}, {quote_path(view.file)}"
            raise CommandUseError(message, "Trainers tell runs apart by their names: rename one, or export them apart.")
        files[name] = view.file
    if spec:
        design = load(spec)
        rewards = [divide_reward(view, compute(view, design)) for view in views]
    else:
        rewards = [RunReward(stated_reward(view.trace, Choices(channel))) for view in views]
    runs = trajectories(views, division, rewards, TokenFiles(folder))
    turns = pluralize(sum(len(run.turns) for run in runs), "turn")
    if missing := without_tokens(runs):
        trace_id, event = missing[0]
        message = f"{len(missing):,} of {turns} have no token ids, first {quote(event)} of {quote(trace_id)}"
        if not without_ids:
            hint = "Logs in ATIF can hold them (token_refs). With --without-tokens, turns are written with empty lists."
            raise CommandUseError(message, hint)
        session.output.note(f"corpus: {message}; join them by run and event before training")
    deliver(session, output, text(shape, runs))
    tasks = pluralize(len({run.task_id for run in runs}), "task")
    session.output.note(f"corpus: wrote {turns} of {pluralize(len(runs), 'run')} of {tasks}")
    if division is not Division.TEAM and shape is not Shape.AGENT_LIGHTNING:
        session.output.note(
            f"corpus: the estimators of {shape} read the reward of a run's last turn only; "
            "for them say --credit team, or take the field advantage"
        )
    _warn_of_stopping_bias(session, runs)
    return ExitCode.DONE


def _warn_of_stopping_bias(session: Session, runs: Sequence[Trajectory]) -> None:
    """Report the tasks whose mean reward by turn, taken as a baseline, is most biased, because runs stopped there."""
    rewards_of: dict[str, list[list[float]]] = {}
    for run in runs:
        rewards_of.setdefault(run.task_id, []).append([turn.reward for turn in run.turns])
    worst_biases = []
    for task, rewards in rewards_of.items():
        biases = [bias for bias in stopping_biases(rewards) if abs(bias.bias) > 1e-12]
        if biases:
            worst_biases.append((max(biases, key=lambda bias: abs(bias.bias)), task))
    worst_biases.sort(key=lambda pair: -abs(pair[0].bias))
    for worst, task in worst_biases[:_MAX_TASKS]:
        turns = sum(map(len, rewards_of[task]))
        groups = max(_MIN_GROUPS, min(_MAX_GROUPS, _MAX_DRAWN_TURNS // turns))
        drawn = estimate_gradients(rewards_of[task], worst.turn, groups=groups)
        _, _, error_by_turn = drawn.standard_errors
        session.output.note(
            f"corpus: task {quote(task)}: {worst.stopped} of {worst.reached} runs end with turn {worst.turn}; there a "
            f"baseline by turn index takes {worst.price:.3g} off going on. The gradient of going on is "
            f"{worst.gradient:.3g}; with that baseline, groups drawn from these runs make it {drawn.by_turn:.3g} "
            f"(± {error_by_turn:.1g})"
        )
    if worst_biases[_MAX_TASKS:]:
        session.output.note(f"corpus: {pluralize(len(worst_biases) - _MAX_TASKS, 'task')} more of this kind")
