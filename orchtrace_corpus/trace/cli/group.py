"""`corpus trace`: the commands about orchestration traces."""

from orchtrace_corpus.base.commands.declarations import Command, CommandGroup, Context
from orchtrace_corpus.base.commands.session import Session

COMMANDS: dict[str, dict[str, Command]] = {
    "Import": {
        "import": Command("trace.cli.importing:import_", "Convert the logs of agent teams to traces."),
        "doctor": Command("trace.cli.doctor:doctor", "Show on one page where the time and money of a logged run went."),
        "dataset": Command("trace.cli.dataset", "Build tables from many logs, and describe and query them."),
    },
    "Check": {
        "validate": Command(
            "trace.cli.validate:validate",
            "Check traces against the schema and the rules of the graph, and report every error.",
        )
    },
    "Show": {
        "show": Command("trace.cli.views:show", "Show who spawned whom, and who worked when."),
        "replay": Command(
            "trace.cli.views:replay_trace",
            "Replay a trace: after each event, show which agents are active, what is under way and what was spent.",
        ),
        "graph": Command(
            "trace.cli.views:graph_trace",
            "Write a trace as a graph for Mermaid or Graphviz, or as a picture of its timeline.",
        ),
    },
    "Measure": {
        "measure": Command(
            "trace.cli.measure:measure_traces", "Measure traces: work and span, steps, team, tokens, errors."
        ),
        "checklist": Command(
            "trace.cli.checklist:checklist",
            "Show which items that a paper should report can be recomputed from traces, and what to log.",
        ),
        "label": Command(
            "trace.cli.measure:label",
            "Label the events that take each of the five sub-decisions, with the rule applied.",
        ),
        "reward": Command(
            "trace.cli.reward:reward",
            "Compute rewards of runs: the functions of eight families, or a published design.",
        ),
        "credit": Command(
            "trace.cli.credit:credit",
            "Divide a run's reward among its tokens, turns, messages, calls, agents or roles.",
        ),
    },
    "Compare and export": {
        "diff": Command(
            "trace.cli.exchange:diff_traces",
            "Compare two runs of one task: rewards, costs, measures, agents, tools, models, structure.",
        ),
        "export": Command(
            "trace.cli.exchange:export", "Write a trace in our schema, the published one or ATIF, or runs for trainers."
        ),
    },
}
"""All commands by name, under the headings of `corpus trace --help`."""


def trace(ctx: Context) -> Session:
    """Check, replay, measure and label traces of agent teams.

    Each command reads the logs of agent teams as well as traces.

    \b
    Examples:
      corpus trace show path/to/logs
      corpus trace validate data/traces
      corpus trace show data/traces/swarm.json
      corpus trace measure data/traces/swarm.json
    """
    return ctx.obj


app = CommandGroup(COMMANDS, trace)
