"""The end of every command that writes files: write them, or show what would change."""

from collections.abc import Sequence

from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.corpus import build
from orchtrace_corpus.corpus.build import Document
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.render.readme import SIZE_LIMIT_BYTES


def settle(session: CorpusSession, root: str, documents: Sequence[Document], *, check: bool, mend: str) -> int:
    """Write what is stale and say so; or, to check, show what would change and how to mend it."""
    for document in documents:
        if document.name == build.README and len(document.wanted.encode()) > SIZE_LIMIT_BYTES:
            session.output.note(f"corpus: {build.README} is larger than 512 KiB; GitHub will cut it off")
    if not check:
        for name in build.write(root, documents):
            session.output.note(f"wrote {name}")
        return ExitCode.DONE
    stale = [document for document in documents if document.is_stale]
    for document in stale:
        session.output.write(document.diff)
    for document in stale:
        session.output.tell(f"corpus: {document.name} is not up to date; to mend: {mend}")
    return ExitCode.FINDINGS if stale else ExitCode.DONE
