"""Edits of the data files: `judge` finds the effects of a `Proposal` without touching the disk, and `write` writes it.

Only problems that an edit adds can stop it, never problems that the corpus had before.
"""

from collections.abc import Iterable, Mapping, Sequence

from orchtrace_corpus.base.errors import CommandUseError, MalformedCorpusError
from orchtrace_corpus.base.files import Document, write_stale
from orchtrace_corpus.base.findings import (
    Finding,
    Location,
    Severity,
    has_errors,
    is_malformed,
    new_findings,
    printable,
    quote,
)
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import MAX_LINES, first_and_more
from orchtrace_corpus.base.yamlfile import reader
from orchtrace_corpus.base.yamlfile.reader import YamlFile
from orchtrace_corpus.base.yamlfile.splice import remove_record
from orchtrace_corpus.corpus import rules
from orchtrace_corpus.corpus.analysis import claims
from orchtrace_corpus.corpus.analysis.search import find_records, nearest_records
from orchtrace_corpus.corpus.edit.edits import edit_file
from orchtrace_corpus.corpus.model import disputes, store
from orchtrace_corpus.corpus.model.candidates import Candidate
from orchtrace_corpus.corpus.model.record_fields import Value, dispute_fields, fields
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Pool, Record
from orchtrace_corpus.corpus.model.store import CorpusFiles


class Target(NamedTuple):
    """The record that an edit changes, its position in its file (from 0), and the file's path below the folder."""

    record: Record
    position: int
    path: str


class Proposal(NamedTuple):
    """The changes of an edit.

    Attributes:
        texts: The new text of each file, by its path below the corpus's folder.
        added: The new records.
        changed: The changed records, before the change.
        removed: The removed records.
        changes: If fields of one record change, their new values; None for a removed field.
        promoted: The ids of the exclusions that become papers, by the papers' keys.
    """

    texts: Mapping[str, str]
    added: tuple[Record, ...] = ()
    changed: tuple[Record, ...] = ()
    removed: tuple[Record, ...] = ()
    changes: Mapping[str, Value | None] = {}
    promoted: Mapping[str, str] = {}


class Judgement(NamedTuple):
    """The effects of a proposal.

    Attributes:
        root: The corpus's folder.
        proposal: The proposal.
        documents: The files that change, in the order of writing.
        new_findings: The findings about papers and exclusions that the edit adds.
        broken: The findings in other data files that the edit adds, such as failing claims. Empty if the records have
            errors with the edit or without it.
        falling: The claims that the edit makes fail over the pool of today, but not as they are written.
    """

    root: str
    proposal: Proposal
    documents: tuple[Document, ...] = ()
    new_findings: tuple[Finding, ...] = ()
    broken: tuple[Finding, ...] = ()
    falling: tuple[claims.Verdict, ...] = ()

    @property
    def is_allowed(self) -> bool:
        """True if the edit may be written, because it adds no error to papers and exclusions."""
        return not has_errors(self.new_findings)

    @property
    def diff(self) -> str:
        """The changes as a unified diff."""
        return "".join(document.diff for document in self.documents)


def load_editable(root: str) -> CorpusFiles:
    """Read a corpus for an edit. Nodes of records are kept, so that `raw_records` need not parse the files again.

    Raises:
        DataFileError: A data file is missing or cannot be read.
        MalformedCorpusError: A file has syntax errors, or the taxonomy any error. Other errors are allowed.
    """
    corpus = CorpusFiles(root)
    files = (corpus.file(store.PAPERS), corpus.file(store.EXCLUSIONS))
    for file in files:
        file.on_record = file.kept.append
    loaded = corpus.loaded
    not_mappings: list[Location] = []
    for file in files:
        not_mappings += [file.location(node.at) for node in file.kept if not isinstance(node, reader.Mapping)]
    blocking = list(loaded.findings)
    if loaded.pool is not None:
        blocking = [finding for finding in blocking if is_malformed([finding]) or finding.location in not_mappings]
    if loaded.pool is None or blocking or not_mappings:
        lines = first_and_more(list(map(str, blocking)), MAX_LINES, "and {:,} more; corpus check data lists all")
        raise MalformedCorpusError("\n".join(("the data cannot be edited before this is fixed:", *lines)))
    return corpus


def find_target(pool: Pool, name: str) -> Target:
    """Return the record with a key, id, identifier or URL; raise `CommandUseError` unless there is exactly one."""
    targets = [Target(paper, index, store.PAPERS) for index, paper in enumerate(pool.papers)]
    targets += [Target(exclusion, index, store.EXCLUSIONS) for index, exclusion in enumerate(pool.exclusions)]
    matching = [target for target in targets if target.record.name == name]
    if not matching:
        records = find_records(pool, name)
        matching = [target for target in targets if target.record in records]
    if not matching:
        near = [f"{key} ({printable(title)})" for key, title in nearest_records(pool, name)]
        hint = f"Did you mean: {', '.join(near)}?" if near else "Try: corpus search WORDS, or corpus list."
        raise CommandUseError(f"no record {quote(name)}", hint)
    if len(matching) > 1:
        names = ", ".join(printable(target.record.name) for target in matching)
        raise CommandUseError(f"{quote(name)} means {len(matching)} records: {names}", "Name one by its key or id.")
    return matching[0]


def find_papers(pool: Pool, keys: Iterable[str]) -> tuple[Paper, ...]:
    """Return the papers with some keys, identifiers or URLs, each once; errors are those of `find_target`."""
    papers: dict[str, Paper] = {}
    for key in keys:
        record = find_target(pool, key).record
        if not isinstance(record, Paper):
            raise CommandUseError(f"{record.id} is an exclusion, not a {pool.taxonomy.noun.one}")
        papers[record.key] = record
    return tuple(papers.values())


def judge(corpus: CorpusFiles, proposal: Proposal) -> Judgement:
    """Return the effects of an edit, without writing it; raise `DataFileError` if a data file cannot be read."""
    documents = [Document(path, corpus.text(path), text) for path, text in proposal.texts.items()]
    documents = [document for document in documents if document.is_stale]
    if not documents:
        return Judgement(corpus.root, proposal)
    edited = CorpusFiles(corpus.root, {document.name: document.wanted.encode() for document in documents})
    before = rules.check(corpus.loaded)
    after = rules.check(edited.loaded)
    growth = {  # in records; the file that gains a record is written before the file that loses it
        store.PAPERS: len(edited.loaded.papers) - len(corpus.loaded.papers),
        store.EXCLUSIONS: len(edited.loaded.exclusions) - len(corpus.loaded.exclusions),
    }
    documents.sort(key=lambda document: -growth.get(document.name, 0))
    broken: list[Finding] = []
    falling: tuple[claims.Verdict, ...] = ()
    if not has_errors((*before, *after)):
        old_errors = _errors_in_other_files(corpus)
        failed_before = {finding.record for finding in old_errors if finding.code == "C101"}
        added = new_findings(old_errors, _errors_in_other_files(edited))
        # A claim that failed before is not reported again, even if its message has changed.
        broken = [finding for finding in added if finding.code != "C101" or finding.record not in failed_before]
        verdicts = claims.evaluate(corpus.claims.claims, edited.pool)
        fell_before = claims.falling_today(claims.evaluate(corpus.claims.claims, corpus.pool))
        newly_falling = set(claims.falling_today(verdicts)).difference(fell_before)
        falling = tuple(verdict for verdict in verdicts if verdict.claim.id in newly_falling)
    return Judgement(corpus.root, proposal, tuple(documents), new_findings(before, after), tuple(broken), falling)


def write(judgement: Judgement) -> tuple[str, ...]:
    """Write an edit that is allowed, and return the paths of the written files.

    All files are ready on the disk before the first is replaced. If the process is killed between two replacements, a
    record that moves between files is in both of them, not in none, and `corpus check` reports it. Raise
    `DataFileError` if a file cannot be written, or has changed since it was read.
    """
    return tuple(write_stale(judgement.root, judgement.documents)) if judgement.is_allowed else ()


def add(corpus: CorpusFiles, papers: Sequence[Paper], origins: Sequence[Candidate | Exclusion | None] = ()) -> Proposal:
    """Propose to add papers, in the order of their keys; raise `DataFileError` if two records of a file share a line.

    `origins` has for each paper the record that it was before: a candidate, which is removed, or an exclusion, which
    stays and names the paper; None for a new paper. It is empty if all papers are new.
    """
    records = [fields(paper, corpus.pool.taxonomy) for paper in papers]
    texts = {store.PAPERS: edit_file(corpus, store.PAPERS, added=records)}
    promoted: dict[str, Exclusion] = {}
    decided: list[tuple[Candidate, Paper | None]] = []
    for origin, paper in zip(origins or [None] * len(papers), papers, strict=True):
        if isinstance(origin, Exclusion):
            promoted[paper.key] = origin
        elif origin is not None:
            decided.append((origin, paper))
    if promoted:
        indexes = {exclusion.id: index for index, exclusion in enumerate(corpus.pool.exclusions)}
        changes = {indexes[exclusion.id]: {"promoted_to": key} for key, exclusion in promoted.items()}
        texts[store.EXCLUSIONS] = edit_file(corpus, store.EXCLUSIONS, changes=changes)
    ids = {key: exclusion.id for key, exclusion in promoted.items()}
    proposal = Proposal(texts, added=tuple(papers), changed=tuple(promoted.values()), promoted=ids)
    return _remove_candidates(corpus, proposal, decided)


def exclude(corpus: CorpusFiles, exclusion: Exclusion, candidate: Candidate | None = None) -> Proposal:
    """Propose to add an exclusion to the log, and to remove the candidate that it was; errors are those of `add`."""
    text = edit_file(corpus, store.EXCLUSIONS, added=[fields(exclusion, corpus.pool.taxonomy)])
    proposal = Proposal({store.EXCLUSIONS: text}, added=(exclusion,))
    if candidate is None:
        return proposal
    return _remove_candidates(corpus, proposal, [(candidate, None)])


def _remove_candidates(
    corpus: CorpusFiles, proposal: Proposal, decided: Sequence[tuple[Candidate, Paper | None]]
) -> Proposal:
    """Add to a proposal the removal of decided candidates, each with its paper (None if it was excluded).

    Disagreements of readers become open disputes. The file of candidates is written last: if the process is killed
    before, both records exist, and `corpus check` reports it.
    """
    if not decided:
        return proposal
    facets_by_tag = disputes.disputable(corpus.pool.taxonomy)
    new_disputes: list[dict[str, Value]] = []
    for candidate, paper in decided:
        if paper is not None:
            new_disputes += map(dispute_fields, candidate.remaining_disputes(paper, facets_by_tag))
    texts = dict(proposal.texts)
    if new_disputes:
        texts[store.DISPUTES] = edit_file(corpus, store.DISPUTES, added=new_disputes)
    names = {candidate.name for candidate, _ in decided}
    indexes = [index for index, candidate in enumerate(corpus.candidates.items) if candidate.name in names]
    texts[store.CANDIDATES] = _remove_records(corpus, store.CANDIDATES, indexes)
    return proposal._replace(texts=texts)


def _remove_records(corpus: CorpusFiles, path: str, indexes: Iterable[int]) -> str:
    """Return the text of a data file without some records."""
    file = corpus.file(path)
    for index in sorted(indexes, reverse=True):  # the last first, so that the other indexes stay valid
        file = YamlFile(file.path, remove_record(file, index).encode())
    return file.text


def demote(corpus: CorpusFiles, target: Target, excluded: Proposal) -> Proposal:
    """Add the removal of a paper to the proposal that records its exclusion; errors are those of `remove`."""
    texts = {target.path: _remove_records(corpus, target.path, [target.position]), **excluded.texts}
    return excluded._replace(texts=texts, removed=(target.record,))


def change(corpus: CorpusFiles, target: Target, changes: Mapping[str, Value | None]) -> Proposal:
    """Propose new values for fields of a record, None to remove one; errors are those of `change_records`."""
    text = edit_file(corpus, target.path, changes={target.position: changes})
    return Proposal({target.path: text}, changed=(target.record,), changes=changes)


def remove(corpus: CorpusFiles, targets: Sequence[Target], *, unpublished: bool = False) -> Proposal:
    """Propose to remove records; `unpublished` also allows to remove the newest exclusion.

    Raise `CommandUseError` if a paper was promoted from an exclusion, or if the id of an exclusion would be used again.
    """
    exclusions = [target.record for target in targets if isinstance(target.record, Exclusion)]
    remaining = [exclusion.number for exclusion in corpus.pool.exclusions if exclusion not in exclusions]
    next_number = max(remaining, default=0) + 1
    indexes_by_path: dict[str, list[int]] = {}
    for record, index, path in targets:
        indexes_by_path.setdefault(path, []).append(index)
        if isinstance(record, Paper):
            origins = [exclusion.id for exclusion in corpus.pool.exclusions if exclusion.promoted_to == record.key]
            if origins:
                message = f"{record.key} was promoted from {', '.join(origins)}, which would lead nowhere"
                raise CommandUseError(message, f"To take it back: corpus exclude {record.key}")
            continue
        if record.number >= next_number and not unpublished:
            message = f"{record.id} is the newest exclusion, and the next would be given its id, which may be cited"
            hint = "Correct the record in data/exclusions.yaml; or add --unpublished, if nobody has seen the id."
            raise CommandUseError(message, hint)
        if record.number > next_number:
            message = f"{record.id} keeps the ids below it from being given again: E{next_number:03} was used before"
            raise CommandUseError(message, "Correct the record in data/exclusions.yaml instead.")
    texts = {path: _remove_records(corpus, path, indexes) for path, indexes in indexes_by_path.items()}
    return Proposal(texts, removed=tuple(target.record for target in targets))


def _errors_in_other_files(corpus: CorpusFiles) -> list[Finding]:
    """Return the errors in other files than the papers, and D112: candidates with the title of a paper or exclusion."""
    rows = [row for row in store.DATA_FILES if row.path != store.PAPERS]
    findings = [finding for row in rows for finding in corpus.findings_of(row)]
    return [finding for finding in findings if finding.severity is Severity.ERROR or finding.code == "D112"]
