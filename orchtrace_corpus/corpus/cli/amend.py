"""The end of every command that edits data: judge the edit, show it, write it."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from orchtrace_corpus.base.errors import CommandUseError, ExitCode, MalformedCorpusError
from orchtrace_corpus.base.findings import Finding, beyond, has_errors, is_malformed, printable, quote
from orchtrace_corpus.base.text import findings as render
from orchtrace_corpus.base.yamlfile import reader
from orchtrace_corpus.base.yamlfile.reader import YamlFile
from orchtrace_corpus.corpus import build, rules
from orchtrace_corpus.corpus.analysis.search import find_records, near_misses
from orchtrace_corpus.corpus.build import Document
from orchtrace_corpus.corpus.cli import consequences
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.records import Loaded, Paper, Pool, Record


def editable(root: str) -> tuple[Loaded, Pool]:
    """The corpus as it is, for an edit: with whatever is wrong in it, except for syntax.

    Raises:
        DataFileError: A data file is absent or cannot be read.
        MalformedCorpusError: One has errors of syntax, or the taxonomy has any: no edit of it could be checked.
    """
    loaded = store.load(root, keep=True)
    files = (loaded.paper_places.file, loaded.exclusion_places.file)
    no_records = [
        file.location(node.at) for file in files for node in file.kept if not isinstance(node, reader.Mapping)
    ]
    if loaded.pool is None or is_malformed(loaded.findings) or no_records:
        shown = (
            str(finding)
            for finding in loaded.findings
            if loaded.pool is None or finding.code.startswith("Y") or finding.location in no_records
        )
        raise MalformedCorpusError("\n".join(("the data cannot be edited before this is mended:", *shown)))
    return loaded, loaded.pool


class Target(NamedTuple):
    """The record that an edit is about.

    Attributes:
        record: The record.
        place: Which record of its file it is, from 0.
        name: The name of that file below the corpus's folder.
        file: The file as read.
    """

    record: Record
    place: int
    name: str
    file: YamlFile

    @property
    def called(self) -> str:
        """The paper's key or the exclusion's id."""
        return self.record.key if isinstance(self.record, Paper) else self.record.id


def target(loaded: Loaded, name: str) -> Target:
    """The one record that a name means: a key or an id, else an identifier or a URL.

    Raises:
        CommandUseError: There is none, or more than one.
    """
    papers, exclusions = loaded.paper_places.file, loaded.exclusion_places.file
    targets = [Target(paper, index, store.PAPERS, papers) for index, paper in enumerate(loaded.papers)]
    targets += [
        Target(excluded, index, store.EXCLUSIONS, exclusions) for index, excluded in enumerate(loaded.exclusions)
    ]
    found = [target for target in targets if target.called == name]
    if not found and loaded.pool:
        meant = find_records(loaded.pool, name)
        found = [target for target in targets if target.record in meant]
    if not found and loaded.pool:
        near = [f"{key} ({printable(title)})" for key, title in near_misses(loaded.pool, name)]
        hint = f"Did you mean: {', '.join(near)}?" if near else "Try: corpus search WORDS, or corpus list."
        raise CommandUseError(f"no record {quote(name)}", hint)
    if len(found) > 1:
        names = ", ".join(printable(target.called) for target in found)
        raise CommandUseError(f"{quote(name)} means {len(found)} records: {names}", "Name one by its key or id.")
    return found[0]


def amend(
    session: CorpusSession,
    root: str,
    texts: Mapping[str, str],
    *,
    was: Loaded | None = None,
    dry_run: bool = False,
    show: Callable[[str], None] | None = None,
    agreed: Callable[[], bool] | None = None,
) -> int:
    """Write new texts of data files if they bring no new error, and show what changes.

    What was wrong before does not stand in the way, and what the edit breaks beside the records, such as
    claims, is said. The diff goes to standard output, everything else to standard error. All files of an
    edit are ready on the disk before the first is replaced; should the process be killed between two, a
    record that moves from one to the other is in both, not in neither, and a validation says so.

    Args:
        session: Where the output goes.
        root: The corpus's folder.
        texts: The new text of each file, by its name below the folder.
        was: The corpus from which the texts were made, as `editable` gives it; else it is read now.
            An edit that somebody else makes from then on is noticed, and not overwritten.
        dry_run: Show the diff, and write nothing.
        show: What else shows the diff, for a command with other things on standard output.
        agreed: Asks whether to go on, after it was said what the edit would break; without it, nobody is asked.

    Returns:
        The exit code.

    Raises:
        DataFileError: A file cannot be read or written, or has changed since it was read.
        MalformedCorpusError: A file has errors of syntax.
    """
    present = was or editable(root)[0]
    data = {store.PAPERS: present.paper_places.file, store.EXCLUSIONS: present.exclusion_places.file}
    documents = [
        Document(name, data[name].text, text) if name in data else build.document(root, name, text)
        for name, text in texts.items()
    ]
    documents = [document for document in documents if document.is_stale]
    if not documents:
        session.output.note("corpus: nothing changes")
        return ExitCode.DONE
    wanted = store.load(root, instead={document.name: document.wanted.encode() for document in documents})
    before, after = rules.check(present), rules.check(wanted)
    new = beyond(before, after)
    gained = {
        store.PAPERS: len(wanted.papers) - len(present.papers),
        store.EXCLUSIONS: len(wanted.exclusions) - len(present.exclusions),
    }
    documents.sort(key=lambda document: -gained.get(document.name, 0))
    lost = () if has_errors((*before, *after)) else consequences.broken(root, present, wanted, texts)
    ask = None if dry_run or has_errors(new) else agreed
    if ask is not None or dry_run:
        consequences.tell(session, lost, is_made=False)
    if ask is not None and not ask():
        return ExitCode.DONE
    written = [] if dry_run or has_errors(new) else build.write(root, documents)
    if dry_run or written:
        diff = "".join(document.diff for document in documents)
        session.output.write(diff) if show is None else show(diff.rstrip("\n"))
    if new:
        _tell(session, new, dry_run=dry_run)
    for name in written:
        session.output.note(f"wrote {name}")
    if ask is None and not dry_run:
        consequences.tell(session, lost, is_made=True)
    if not data.keys().isdisjoint(written):
        session.output.note("corpus build regenerates what is made from the data")
    if dry_run and not has_errors(new):
        session.output.note("corpus: nothing was written (--dry-run)")
    return ExitCode.FINDINGS if has_errors(new) else ExitCode.DONE


def _tell(session: CorpusSession, new: Sequence[Finding], *, dry_run: bool) -> None:
    """Say what an edit brings; the lines are those of files that are not there yet, or just written."""
    count = render.summary(new)
    if has_errors(new):
        message = f"corpus: the edit would bring {count}, so nothing was written; lines are counted with the edit made:"
    elif dry_run:
        message = f"corpus: the edit would bring {count}; lines are counted with the edit made:"
    else:
        message = f"corpus: the edit brings {count}:"
    session.output.tell("\n".join((message, *(str(finding) for finding in new))))
