"""Puts a Claude Code session together: which call spawned which agent, and what came back.

What tells the spawn of a sub-agent, the most certain first: `toolUseId` in its `.meta.json`; the agent that the
result of the call names; rows of progress; the `agentId:` at the end of the result's text; of rows among those
of the session, their parent row; the text of the task.
"""

from typing import NamedTuple

from orchtrace_corpus.trace.importers.conversations.claude_code import returning, spending, workflows
from orchtrace_corpus.trace.importers.conversations.claude_code.family import Family
from orchtrace_corpus.trace.importers.conversations.claude_code.reading import Reading
from orchtrace_corpus.trace.importers.conversations.transcript import Act, Deed, Thread
from orchtrace_corpus.trace.model.import_report import Missing


class Linked(NamedTuple):
    """A session put together.

    Attributes:
        threads: Its threads, with what comes back from sub-agents among their steps.
        missing: How many records lack their tokens.
    """

    threads: list[Thread]
    missing: dict[Missing, int]


def link(reading: Reading) -> Linked:
    """Put a session together."""
    family = Family(reading)
    family.find_by_ids()
    family.find_by_task()
    workflows.find(reading, family)
    family.break_cycles()
    missing = family.name_childless()
    family.report_orphans()
    returning.bring_back(reading, family)
    for thread in reading.threads.values():
        for step in thread.steps:
            if isinstance(step, Act) and step.call is not None and step.deed in (Deed.SPAWN, Deed.MESSAGE):
                step.call.decides = True
    written = reading.content.clues.written
    lacking = spending.settle(written, reading.threads, family.children, missing, reading.report)
    return Linked([thread for thread in reading.threads.values() if thread.steps], lacking)
