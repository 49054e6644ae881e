"""Claude Code transcripts: sessions with their sub-agents, teammates and workflows."""

from collections.abc import Iterator, Sequence

from orchtrace_corpus.trace.importers.conversations.claude_code.family import Family, find_workflows
from orchtrace_corpus.trace.importers.conversations.claude_code.linking import Links
from orchtrace_corpus.trace.importers.conversations.claude_code.reading import Reading
from orchtrace_corpus.trace.importers.conversations.claude_code.sources import beside, recognises, ties
from orchtrace_corpus.trace.importers.conversations.claude_code.usage import account
from orchtrace_corpus.trace.importers.core.logs import LogFile
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.model.trace import Trace

__all__ = ["beside", "read", "recognises", "ties"]


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the trace of a session.

    Raises:
        DataFileError: A file cannot be read, or none has a row of a conversation.
    """
    run = Run("claude_code", privacy)
    run.system = "claude-code"
    reading = Reading(files, run)
    family = Family(reading)
    family.find_by_ids()
    family.find_by_task()
    find_workflows(reading, family)
    family.name_agents()
    links = Links(reading, family)
    links.link()
    account(reading, family, links)
    yield run.trace(nothing=f"no row of a conversation in {reading.sources[0].shown}")
