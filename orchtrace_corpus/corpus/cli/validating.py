"""What `corpus validate` does, apart from its options."""

from collections.abc import Sequence
from typing import NamedTuple

from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.findings import Finding, codes, has_errors, is_malformed, select
from orchtrace_corpus.base.text import findings as render
from orchtrace_corpus.base.text.findings import FindingsFormat
from orchtrace_corpus.corpus import rules
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.edit.fixes import FIXES, changes
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.records import Pool

_MOST_ROUNDS = 5


class Options(NamedTuple):
    """What is reported, and how.

    Attributes:
        wanted: Codes, or beginnings of codes, several of them in a text if there are commas in it; all if empty.
        ignored: Those that are left out.
        fix: Whether to mend first what needs no decision.
        strict: Whether warnings fail, too.
        max_findings: How many are shown; 0 for all.
        form: The form of the output.
    """

    wanted: Sequence[str] = ()
    ignored: Sequence[str] = ()
    fix: bool = False
    strict: bool = False
    max_findings: int = 0
    form: FindingsFormat = FindingsFormat.TEXT


def report(session: CorpusSession, options: Options) -> ExitCode:
    """Show every mistake in the data, and return the exit code.

    Raises:
        CommandUseError: Options contradict each other.
        CorpusError: There is no corpus, or it cannot be read.
    """
    chosen = [code for prefixes in options.wanted for prefix in prefixes.split(",") for code in codes(prefix.strip())]
    unwanted = [
        code for prefixes in options.ignored for prefix in prefixes.split(",") for code in codes(prefix.strip())
    ]
    if chosen and set(chosen) <= set(unwanted):
        raise CommandUseError("--ignore leaves out everything that --select names", "Give one of them.")
    root = session.writable_root()
    if options.fix:
        _mend(session, chosen, unwanted)
    loaded = store.load(root)
    everything = (*rules.check(loaded), *loaded.missing, *store.read_scale(root, loaded).findings)
    found = select(everything, chosen, unwanted)
    limit = options.max_findings or len(found)
    session.show_findings(found, options.form, limit)
    if len(found) > limit:
        session.output.note(f"… and {len(found) - limit} more; --max-findings {limit} leaves them out")
    pool = loaded.pool
    checked = f" in {_numbered(pool)}" if pool else " in the taxonomy"
    left_out = len(everything) - len(found)
    checked += f"; {left_out} more left out by --select or --ignore" if left_out else ""
    session.output.note(f"{render.summary(found)}{checked}")
    if not options.fix and _can_be_mended(root, found):
        session.output.note("Some of these can be mended for you: corpus validate --fix")
    if is_malformed(found):
        return ExitCode.UNREADABLE
    return ExitCode.FINDINGS if has_errors(found) or (options.strict and found) else ExitCode.DONE


def _codes(given: Sequence[str]) -> list[str]:
    """The codes that begin as given."""
    return [code for prefixes in given for prefix in prefixes.split(",") for code in codes(prefix.strip())]


def _mend(session: CorpusSession, chosen: Sequence[str], unwanted: Sequence[str]) -> None:
    """Mend the findings that can be, and show what changed."""
    from orchtrace_corpus.corpus import build

    root = session.writable_root()
    for _ in range(_MOST_ROUNDS):  # a value may have several mistakes, and is mended one at a time
        loaded = store.load(root, keep=True)
        documents = build.mended_documents(root, loaded, select(rules.check(loaded), chosen, unwanted))
        for document in documents:
            session.output.tell(document.diff.rstrip("\n"))
        for name in build.write(root, documents):
            session.output.note(f"mended {name}")
        if not documents:
            break


def _can_be_mended(root: str, found: Sequence[Finding]) -> bool:
    """Whether `--fix` would change anything."""
    if not any(finding.code in FIXES for finding in found):
        return False
    loaded = store.load(root, keep=True)
    return any(changes(places.file, found) for places in (loaded.paper_places, loaded.exclusion_places))


def _numbered(pool: Pool) -> str:
    """How many records a pool has, in words."""
    counts = ((len(pool.papers), "paper"), (len(pool.exclusions), "exclusion"))
    return " and ".join(f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts)
