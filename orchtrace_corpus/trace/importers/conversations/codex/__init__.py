"""Codex CLI rollouts: threads that spawn one another, one file for each."""

from collections.abc import Iterator, Sequence

from orchtrace_corpus.trace.importers.conversations.codex.linking import Links
from orchtrace_corpus.trace.importers.conversations.codex.reading import Rollout, Trails
from orchtrace_corpus.trace.importers.conversations.codex.sources import Meta, first_meta, recognises, shown, ties
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError, LogFile, Opened
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.model.trace import Trace

__all__ = ["read", "recognises", "ties"]


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the trace of the threads in some rollouts.

    Raises:
        DataFileError: A file cannot be read, or none has an item of a conversation.
    """
    run = Run("codex", privacy)
    threads: dict[str, tuple[Meta, list[LogFile]]] = {}
    for file in sorted(files, key=shown):
        with Opened(file) as opened:
            meta = first_meta(opened)
        threads.setdefault(meta.id, (meta, []))[1].append(file)
    sources = {source for meta, _ in threads.values() for source in (meta.parent, meta.forked)}
    rollouts = [Rollout(own, meta, run, is_source=meta.id in sources) for meta, own in threads.values()]
    trails = {rollout.meta.id: Trails(rollout.trail) for rollout in rollouts}
    for rollout in rollouts:
        rollout.leave_out_copies(trails)
    acting = [rollout.meta for rollout in rollouts if rollout.thread.steps]
    if not acting:
        raise EmptyLogError(f"no item of a conversation in {', '.join(map(shown, files[:3]))}")
    first = min(acting, key=lambda meta: (bool(meta.parent), meta.created or 0.0))
    run.name, run.version = first.id, first.version
    links = Links(run, rollouts)
    links.link_spawns()
    links.link_messages()
    yield run.trace()
