"""Claude Code transcripts: sessions with their sub-agents, teammates and workflows."""

from collections.abc import Iterator, Sequence

from orchtrace_corpus.trace.importers.conversations.claude_code.linking import link
from orchtrace_corpus.trace.importers.conversations.claude_code.reading import Reading
from orchtrace_corpus.trace.importers.conversations.claude_code.sources import recognises, ties
from orchtrace_corpus.trace.importers.conversations.conversation_events import add_events
from orchtrace_corpus.trace.importers.conversations.transcript import topology
from orchtrace_corpus.trace.importers.core.builder import Builder
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError, LogFile
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.model.import_report import ImportReport
from orchtrace_corpus.trace.model.trace import Trace

__all__ = ["read", "recognises", "ties"]


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """The trace of a session.

    Raises:
        DataFileError: A file cannot be read, or none has a row of a conversation.
    """
    report = ImportReport()
    reading = Reading(files, privacy, report)
    linked = link(reading)
    builder = Builder(reading.session, reading.session, system="claude-code", form="claude_code",
                      version=reading.version, privacy=privacy, report=report)  # fmt: skip
    add_events(linked.threads, builder)
    if not builder:
        raise EmptyLogError(f"no row of a conversation in {reading.sources[0].shown}")
    yield builder.trace(topology=topology(linked.threads), missing=linked.missing)
