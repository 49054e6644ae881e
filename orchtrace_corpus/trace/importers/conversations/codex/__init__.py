"""Codex CLI rollouts: threads that spawn one another, one file for each."""

from collections.abc import Iterator, Sequence

from orchtrace_corpus.trace.importers.conversations.codex.linking import link
from orchtrace_corpus.trace.importers.conversations.codex.reading import Rollout
from orchtrace_corpus.trace.importers.conversations.codex.sources import Meta, first_meta, recognises, shown, ties
from orchtrace_corpus.trace.importers.conversations.conversation_events import add_events
from orchtrace_corpus.trace.importers.conversations.transcript import topology
from orchtrace_corpus.trace.importers.core.builder import Builder
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError, LogFile, Opened
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.model.import_report import ImportReport
from orchtrace_corpus.trace.model.trace import Trace

__all__ = ["read", "recognises", "ties"]


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """The trace of the threads in some rollouts.

    Raises:
        DataFileError: A file cannot be read, or none has an item of a conversation.
    """
    report = ImportReport()
    by_thread: dict[str, tuple[Meta, list[LogFile]]] = {}
    for file in sorted(files, key=shown):
        with Opened(file) as opened:
            said = first_meta(opened)
        by_thread.setdefault(said.id, (said, []))[1].append(file)
    sources = {source for said, _ in by_thread.values() for source in (said.parent, said.forked)}
    rollouts = [Rollout(own, said, privacy, report, is_source=said.id in sources) for said, own in by_thread.values()]
    linked = link(rollouts, report)
    if not linked.threads:
        raise EmptyLogError(f"no item of a conversation in {', '.join(map(shown, files[:3]))}")
    first = min(
        (one for one in rollouts if one.thread.steps), key=lambda one: (bool(one.meta.parent), one.meta.created or 0.0)
    )
    name = masked(first.meta.id) or "session"
    builder = Builder(name, name, system="codex", form="codex", version=masked(first.meta.version), privacy=privacy,
                      report=report)  # fmt: skip
    add_events(linked.threads, builder)
    if not builder:
        raise EmptyLogError(f"no item of a conversation in {shown(files[0])}")
    yield builder.trace(topology=topology(linked.threads), missing=linked.missing)
