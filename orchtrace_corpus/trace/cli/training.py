"""The command `corpus trace export` for trainers: write runs turn by turn, and warn of biases in training."""

from collections.abc import Sequence

from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.findings import quote, quote_path
from orchtrace_corpus.base.text.layout import pluralize
from orchtrace_corpus.trace.cli.loading import write_output
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
"""The number of tasks that warnings name."""

_MIN_GROUPS = 100
_MAX_GROUPS = 1000
_MAX_DRAWN_TURNS = 3_000_000
"""An estimate draws groups of runs with at most so many turns in all: if runs have many turns, fewer groups."""


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
    """Write runs as training data.

    Args:
        session: The session of the command.
        views: The runs.
        channel: The channel whose stated reward is written; not used with a specification.
        spec: The specification of a reward that is computed; may be empty.
        folder: The folder of the logs that have the token ids.
        shape: The trainer.
        division: How the reward of a run is divided among its turns.
        output: The file to write; empty for standard output.
        without_ids: True to write turns without token ids, too.
    """
    files_by_name: dict[str, str] = {}
    for view in views:
        name = view.trace.trace_id
        if name in files_by_name:
            message = f"two runs are called {quote(name)}: {quote_path(files_by_name[name])}, {quote_path(view.file)}"
            raise CommandUseError(message, "Trainers tell runs apart by their names: rename one, or export them apart.")
        files_by_name[name] = view.file
    if spec:
        design = load(spec)
        rewards = [divide_reward(view, compute(view, design)) for view in views]
    else:
        rewards = [RunReward(stated_reward(view.trace, Choices(channel))) for view in views]
    runs = trajectories(views, division, rewards, TokenFiles(folder))
    turns = pluralize(sum(len(run.turns) for run in runs), "turn")
    missing = without_tokens(runs)
    if missing:
        trace_id, event = missing[0]
        message = f"{len(missing):,} of {turns} have no token ids, first {quote(event)} of {quote(trace_id)}"
        if not without_ids:
            hint = "Logs in ATIF can hold them (token_refs). With --without-tokens, turns are written with empty lists."
            raise CommandUseError(message, hint)
        session.output.note(f"corpus: {message}; join them by run and event before training")
    write_output(session, output, text(shape, runs))
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
    """Warn of the tasks for which a baseline by turn is most biased.

    Such a baseline is the mean reward of the runs that reach a turn. It is biased if some of these runs stop there.
    """
    rewards_by_task: dict[str, list[list[float]]] = {}  # for each run of a task, the reward of each turn
    for run in runs:
        rewards_by_task.setdefault(run.task_id, []).append([turn.reward for turn in run.turns])
    worst_by_task = {}
    for task, rewards in rewards_by_task.items():
        biases = [bias for bias in stopping_biases(rewards) if abs(bias.bias) > 1e-12]
        if biases:
            worst_by_task[task] = max(biases, key=lambda bias: abs(bias.bias))
    tasks = sorted(worst_by_task, key=lambda task: abs(worst_by_task[task].bias), reverse=True)
    for task in tasks[:_MAX_TASKS]:
        worst = worst_by_task[task]
        turn_count = sum(map(len, rewards_by_task[task]))
        groups = max(_MIN_GROUPS, min(_MAX_GROUPS, _MAX_DRAWN_TURNS // turn_count))
        estimate = estimate_gradients(rewards_by_task[task], worst.turn, groups=groups)
        _, _, error_by_turn = estimate.standard_errors
        session.output.note(
            f"corpus: task {quote(task)}: {worst.stopped} of {worst.reached} runs end with turn {worst.turn}; there a "
            f"baseline by turn index takes {worst.price:.3g} off going on. The gradient of going on is "
            f"{worst.gradient:.3g}; with that baseline, groups drawn from these runs make it {estimate.by_turn:.3g} "
            f"(± {error_by_turn:.1g})"
        )
    if len(tasks) > _MAX_TASKS:
        session.output.note(f"corpus: {pluralize(len(tasks) - _MAX_TASKS, 'task')} more of this kind")
