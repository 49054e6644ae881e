"""An edit of the data files: its changes, what it breaks, and whether it may be written.

`judge` examines a `Proposal` without touching the disk; `write` writes it. Only problems that an edit adds can stop it,
never those that the corpus had before.
"""

from collections.abc import Iterable, Mapping, Sequence

from orchtrace_corpus.base.errors import CommandUseError, MalformedCorpusError
from orchtrace_corpus.base.files import Document, write_stale
from orchtrace_corpus.base.findings import Finding, Severity, has_errors, is_malformed, new_findings, printable, quote
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
    """The record that an edit is about, its position in its file (from 0), and the file's path below the folder."""

    record: Record
    position: int
    path: str


class Proposal(NamedTuple):
    """The changes of an edit.

    Attributes:
        texts: The new text of each file, by its path below the corpus's folder.
        added: The new records.
        changed: The records that change, as they were.
        removed: The records that are removed.
        changes: If fields of one record change: their new values; None for a removed field.
        promoted: The ids of exclusions that become papers, by the papers' keys.
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
        new: The findings in the records that the edit adds.
        broken: The findings that it adds in other data files, such as failing claims. Empty if the records have errors
            with the edit or without it.
        falling: The claims that the edit makes fall over the current pool only.
    """

    root: str
    proposal: Proposal
    documents: tuple[Document, ...] = ()
    new: tuple[Finding, ...] = ()
    broken: tuple[Finding, ...] = ()
    falling: tuple[claims.Verdict, ...] = ()

    @property
    def is_allowed(self) -> bool:
        """Return True if the edit may be written: it adds no error."""
        return not has_errors(self.new)

    @property
    def diff(self) -> str:
        """The changes as a unified diff."""
        return "".join(document.diff for document in self.documents)


def load_editable(root: str) -> CorpusFiles:
    """Read a corpus for an edit, which also notices if somebody else changes a file meanwhile.

    Raises:
        DataFileError: A data file is missing or cannot be read.
        MalformedCorpusError: A file has syntax errors, or the taxonomy any error. Other errors are allowed.
    """
    corpus = CorpusFiles(root)
    files = (corpus.file(store.PAPERS), corpus.file(store.EXCLUSIONS))
    for file in files:
        file.on_record = file.kept.append
    loaded = corpus.loaded
    no_records = [
        file.location(node.at) for file in files for node in file.kept if not isinstance(node, reader.Mapping)
    ]
    grave = [finding for finding in loaded.findings if is_malformed([finding]) or finding.location in no_records]
    if loaded.pool is None or grave or no_records:
        problems = [str(finding) for finding in (loaded.findings if loaded.pool is None else grave)]
        shown = first_and_more(problems, MAX_LINES, "and {:,} more; corpus check data lists all")
        raise MalformedCorpusError("\n".join(("the data cannot be edited before this is fixed:", *shown)))
    return corpus


def find_target(pool: Pool, name: str) -> Target:
    """Return the record with a key, id, identifier or URL; a `CommandUseError` unless there is exactly one."""
    targets = [Target(paper, index, store.PAPERS) for index, paper in enumerate(pool.papers)]
    targets += [Target(excluded, index, store.EXCLUSIONS) for index, excluded in enumerate(pool.exclusions)]
    records = [target.record for target in targets if target.record.name == name] or find_records(pool, name)
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
    """Return the effects of an edit, without writing it.

    Raises:
        DataFileError: A data file cannot be read.
    """
    documents = [Document(path, corpus.text(path), text) for path, text in proposal.texts.items()]
    documents = [document for document in documents if document.is_stale]
    if not documents:
        return Judgement(corpus.root, proposal)
    edited = CorpusFiles(corpus.root, {document.name: document.wanted.encode() for document in documents})
    before, after = rules.check(corpus.loaded), rules.check(edited.loaded)
    gained = {
        store.PAPERS: len(edited.loaded.papers) - len(corpus.loaded.papers),
        store.EXCLUSIONS: len(edited.loaded.exclusions) - len(corpus.loaded.exclusions),
    }
    documents.sort(key=lambda document: -gained.get(document.name, 0))
    broken: list[Finding] = []
    falling: tuple[claims.Verdict, ...] = ()
    if not has_errors((*before, *after)):
        old_errors = _errors_in_other_files(corpus)
        # A claim that failed before is not reported again, even with another message.
        failing = {finding.record for finding in old_errors if finding.code == "C101"}
        added = new_findings(old_errors, _errors_in_other_files(edited))
        broken = [finding for finding in added if finding.code != "C101" or finding.record not in failing]
        verdicts = claims.evaluate(corpus.claims.claims, edited.pool)
        old_verdicts = claims.evaluate(corpus.claims.claims, corpus.pool)
        newly_falling = {*claims.falling_today(verdicts)} - {*claims.falling_today(old_verdicts)}
        falling = tuple(verdict for verdict in verdicts if verdict.claim.id in newly_falling)
    return Judgement(corpus.root, proposal, tuple(documents), new_findings(before, after), tuple(broken), falling)


def write(judgement: Judgement) -> tuple[str, ...]:
    """Write an edit that is allowed, and return the paths of the written files.

    All files are ready on the disk before the first is replaced. If the process is killed between two, a record that
    moves from one to the other is in both, never in neither, and validation reports it.

    Raises:
        DataFileError: A file cannot be written, or has changed since it was read.
    """
    return tuple(write_stale(judgement.root, judgement.documents)) if judgement.is_allowed else ()


def add(corpus: CorpusFiles, papers: Sequence[Paper], origins: Sequence[Candidate | Exclusion | None] = ()) -> Proposal:
    """Propose to add papers, in the order of their keys.

    `origins` has the record that each was before, if any were: a candidate leaves its file; an exclusion stays, and
    names the paper.

    Raises:
        DataFileError: Two records of a file share a line.
    """
    records = [fields(paper, corpus.pool.taxonomy) for paper in papers]
    texts = {store.PAPERS: edit_file(corpus, store.PAPERS, added=records)}
    pairs = list(zip(origins, papers, strict=True)) if origins else []
    promoted = {paper.key: origin for origin, paper in pairs if isinstance(origin, Exclusion)}
    if promoted:
        places = {exclusion.id: place for place, exclusion in enumerate(corpus.pool.exclusions)}
        changes = {places[exclusion.id]: {"promoted_to": key} for key, exclusion in promoted.items()}
        texts[store.EXCLUSIONS] = edit_file(corpus, store.EXCLUSIONS, changes=changes)
    ids = {key: exclusion.id for key, exclusion in promoted.items()}
    proposal = Proposal(texts, added=tuple(papers), changed=tuple(promoted.values()), promoted=ids)
    decided = [(origin, paper) for origin, paper in pairs if isinstance(origin, Candidate)]
    return _without_candidates(corpus, proposal, decided)


def exclude(corpus: CorpusFiles, exclusion: Exclusion, candidate: Candidate | None = None) -> Proposal:
    """Propose to add an exclusion to the log, and to remove the candidate that it was; errors are those of `add`."""
    text = edit_file(corpus, store.EXCLUSIONS, added=[fields(exclusion, corpus.pool.taxonomy)])
    proposal = Proposal({store.EXCLUSIONS: text}, added=(exclusion,))
    return _without_candidates(corpus, proposal, [(candidate, None)] if candidate else [])


def _without_candidates(
    corpus: CorpusFiles, proposal: Proposal, decided: Sequence[tuple[Candidate, Paper | None]]
) -> Proposal:
    """Add the removal of decided candidates, each with its paper; disagreements of readers become open disputes.

    Their file is written last: a process that is killed before leaves both records, and validation reports them.
    """
    if not decided:
        return proposal
    tags = disputes.disputable(corpus.pool.taxonomy)
    new = [
        dispute_fields(dispute) for was, paper in decided if paper for dispute in was.remaining_disputes(paper, tags)
    ]
    texts = dict(proposal.texts)
    if new:
        texts[store.DISPUTES] = edit_file(corpus, store.DISPUTES, added=new)
    names = {candidate.name for candidate, _ in decided}
    positions = [at for at, candidate in enumerate(corpus.candidates.items) if candidate.name in names]
    return proposal._replace(texts={**texts, store.CANDIDATES: _without(corpus, store.CANDIDATES, positions)})


def _without(corpus: CorpusFiles, path: str, positions: Iterable[int]) -> str:
    """Return the text of a data file without the records at some positions."""
    file = corpus.file(path)
    for position in sorted(positions, reverse=True):
        file = YamlFile(file.path, remove_record(file, position).encode())
    return file.text


def demote(corpus: CorpusFiles, target: Target, excluded: Proposal) -> Proposal:
    """Add the removal of a paper to the proposal that records its exclusion; errors are those of `remove`."""
    texts = {target.path: _without(corpus, target.path, [target.position]), **excluded.texts}
    return excluded._replace(texts=texts, removed=(target.record,))


def change(corpus: CorpusFiles, target: Target, changes: Mapping[str, Value | None]) -> Proposal:
    """Propose new values for fields of a record, None to remove one; errors are those of `change_records`."""
    text = edit_file(corpus, target.path, changes={target.position: changes})
    return Proposal({target.path: text}, changed=(target.record,), changes=changes)


def remove(corpus: CorpusFiles, targets: Sequence[Target], *, unpublished: bool = False) -> Proposal:
    """Propose to remove records; `unpublished` allows the newest exclusion, whose id nobody has seen.

    A `CommandUseError` refuses a paper that was promoted from an exclusion, and an exclusion whose id would be reused.
    """
    exclusions = [target.record for target in targets if isinstance(target.record, Exclusion)]
    remaining = (int(exclusion.id[1:] or 0) for exclusion in corpus.pool.exclusions if exclusion not in exclusions)
    next_number = max(remaining, default=0) + 1
    positions: dict[str, list[int]] = {}
    for record, position, path in targets:
        positions.setdefault(path, []).append(position)
        if isinstance(record, Paper):
            origins = [exclusion.id for exclusion in corpus.pool.exclusions if exclusion.promoted_to == record.key]
            if origins:
                message = f"{record.key} was promoted from {', '.join(origins)}, which would lead nowhere"
                raise CommandUseError(message, f"To take it back: corpus exclude {record.key}")
            continue
        number = int(record.id[1:] or 0)
        if number >= next_number and not unpublished:
            message = f"{record.id} is the newest exclusion, and the next would be given its id, which may be cited"
            hint = "Correct the record in data/exclusions.yaml; or add --unpublished, if nobody has seen the id."
            raise CommandUseError(message, hint)
        if number > next_number:
            message = f"{record.id} keeps the ids below it from being given again: E{next_number:03} was used before"
            raise CommandUseError(message, "Correct the record in data/exclusions.yaml instead.")
    texts = {path: _without(corpus, path, places) for path, places in positions.items()}
    return Proposal(texts, removed=tuple(target.record for target in targets))


def _errors_in_other_files(corpus: CorpusFiles) -> list[Finding]:
    """Return the errors in the files other than the papers, and the candidates that a record decides (D112)."""
    rows = [row for row in store.DATA_FILES if row.path != store.PAPERS]
    findings = [finding for row in rows for finding in corpus.findings_of(row)]
    return [finding for finding in findings if finding.severity is Severity.ERROR or finding.code == "D112"]
