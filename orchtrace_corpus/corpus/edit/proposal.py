"""An edit of the data files: what it changes, what it breaks, and whether it may be written.

`judge` looks at a `Proposal` without touching the disk, `write` writes what it judged. What was wrong
before an edit does not stand in its way; only what it brings does.
"""

from collections.abc import Iterable, Mapping, Sequence

from orchtrace_corpus.base.errors import CommandUseError, MalformedCorpusError
from orchtrace_corpus.base.files import Document, write_stale
from orchtrace_corpus.base.findings import Finding, Severity, beyond, has_errors, is_malformed, printable, quote
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import MOST_LINES, first_and_more
from orchtrace_corpus.base.yamlfile import reader
from orchtrace_corpus.base.yamlfile.reader import YamlFile
from orchtrace_corpus.base.yamlfile.splice import remove_record
from orchtrace_corpus.corpus import rules
from orchtrace_corpus.corpus.analysis import claims
from orchtrace_corpus.corpus.analysis.search import find_records, near_misses
from orchtrace_corpus.corpus.edit.edits import edit_file
from orchtrace_corpus.corpus.model import disputes, store
from orchtrace_corpus.corpus.model.candidates import Candidate
from orchtrace_corpus.corpus.model.record_fields import Value, dispute_fields, fields
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Pool, Record
from orchtrace_corpus.corpus.model.store import CorpusFiles


class Target(NamedTuple):
    """The record that an edit is about.

    Attributes:
        record: The record.
        position: Which record of its file it is, from 0.
        name: The name of that file below the corpus's folder.
    """

    record: Record
    position: int
    name: str


class Proposal(NamedTuple):
    """The changes of an edit.

    Attributes:
        texts: The new text of each file, by its name below the corpus's folder.
        added: The records that are new.
        changed: The records that change, as they were.
        removed: The records that go.
        changes: Where fields of one record change, their new values; None for one that goes.
        promoted: The ids of the exclusions that become papers, by the keys of these.
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
        documents: The files that change, in the order in which they are written.
        new: What the rules find in the records with the edit made, and do not find now.
        broken: The same in the files beside the records: claims that fail, disputes and rows of scale that have
            lost what they are about, candidates that are decided. Empty where the records have errors, before the edit
            or with it.
        falling: The claims that fall over the pool of today with the edit, and hold over the published pool still.
    """

    root: str
    proposal: Proposal
    documents: tuple[Document, ...] = ()
    new: tuple[Finding, ...] = ()
    broken: tuple[Finding, ...] = ()
    falling: tuple[claims.Verdict, ...] = ()

    @property
    def is_allowed(self) -> bool:
        """Return True if the edit may be written: it brings no error."""
        return not has_errors(self.new)

    @property
    def diff(self) -> str:
        """Return the changes of the edit as a unified diff."""
        return "".join(document.diff for document in self.documents)


class Outcome(NamedTuple):
    """The outcome of a proposal: its judgement, and the names of the written files."""

    judgement: Judgement
    written: tuple[str, ...] = ()


def load_editable(root: str) -> CorpusFiles:
    """Read a corpus for an edit: with whatever is wrong in it, except for syntax.

    An edit that somebody else makes after a file was read is noticed, and not overwritten.

    Raises:
        DataFileError: A data file is missing or cannot be read.
        MalformedCorpusError: One has errors of syntax, or the taxonomy has any: no edit of it could be checked.
    """
    corpus = CorpusFiles(root, keep=True)
    loaded = corpus.loaded
    files = (corpus.file(store.PAPERS), corpus.file(store.EXCLUSIONS))
    no_records = [
        file.location(node.at) for file in files for node in file.kept if not isinstance(node, reader.Mapping)
    ]
    grave = [finding for finding in loaded.findings if is_malformed([finding]) or finding.location in no_records]
    if loaded.pool is None or grave or no_records:
        problems = [str(finding) for finding in (loaded.findings if loaded.pool is None else grave)]
        shown = first_and_more(problems, MOST_LINES, "and {:,} more; corpus check data lists all")
        raise MalformedCorpusError("\n".join(("the data cannot be edited before this is mended:", *shown)))
    return corpus


def find_target(pool: Pool, name: str) -> Target:
    """The one record that a name means: a key or an id, else an identifier or a URL.

    Raises:
        CommandUseError: There is none, or more than one.
    """
    targets = [Target(paper, index, store.PAPERS) for index, paper in enumerate(pool.papers)]
    targets += [Target(excluded, index, store.EXCLUSIONS) for index, excluded in enumerate(pool.exclusions)]
    meant = [target.record for target in targets if target.record.name == name] or find_records(pool, name)
    found = [target for target in targets if target.record in meant]
    if not found:
        near = [f"{key} ({printable(title)})" for key, title in near_misses(pool, name)]
        hint = f"Did you mean: {', '.join(near)}?" if near else "Try: corpus search WORDS, or corpus list."
        raise CommandUseError(f"no record {quote(name)}", hint)
    if len(found) > 1:
        names = ", ".join(printable(target.record.name) for target in found)
        raise CommandUseError(f"{quote(name)} means {len(found)} records: {names}", "Name one by its key or id.")
    return found[0]


def find_papers(pool: Pool, keys: Iterable[str]) -> tuple[Paper, ...]:
    """Return the papers of some keys, identifiers or URLs, each once.

    Raises:
        CommandUseError: A key means no record, more than one, or an exclusion.
    """
    papers: dict[str, Paper] = {}
    for key in keys:
        record = find_target(pool, key).record
        if not isinstance(record, Paper):
            raise CommandUseError(f"{record.id} is an exclusion, not a {pool.taxonomy.noun.one}")
        papers[record.key] = record
    return tuple(papers.values())


def judge(corpus: CorpusFiles, proposal: Proposal) -> Judgement:
    """Judge an edit; nothing is written.

    Raises:
        DataFileError: A file beside the records cannot be read.
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
        beside = _findings_beside(corpus)
        # A claim that failed before is not reported again, whatever it finds now.
        failing = {finding.record for finding in beside if finding.code == "C101"}
        brought = beyond(beside, _findings_beside(edited))
        broken = [finding for finding in brought if finding.code != "C101" or finding.record not in failing]
        made = corpus.claims.claims
        verdicts = claims.evaluate(made, edited.pool)
        fallen = {*claims.falling_today(verdicts)} - {*claims.falling_today(claims.evaluate(made, corpus.pool))}
        falling = tuple(verdict for verdict in verdicts if verdict.claim.id in fallen)
    return Judgement(corpus.root, proposal, tuple(documents), beyond(before, after), tuple(broken), falling)


def write(judgement: Judgement) -> Outcome:
    """Write an edit as it was judged, unless it brings errors.

    All files are ready on the disk before the first is replaced. Should the process be killed between two, a
    record that moves from one to the other is in both, not in neither, and a validation reports it.

    Raises:
        DataFileError: A file cannot be written, or has changed since it was read.
    """
    return Outcome(judgement, tuple(write_stale(judgement.root, judgement.documents)) if judgement.is_allowed else ())


def add(corpus: CorpusFiles, papers: Sequence[Paper], origins: Sequence[Candidate | Exclusion | None] = ()) -> Proposal:
    """Papers come to their places in the order of keys.

    An exclusion that becomes a paper stays, and names it. A candidate leaves its file.

    Args:
        corpus: The corpus.
        papers: The papers.
        origins: What each of them was in the corpus before; empty if all are new.

    Raises:
        DataFileError: The records of a file are not written one below the other.
    """
    records = [fields(paper, corpus.pool.taxonomy) for paper in papers]
    texts = {store.PAPERS: edit_file(corpus, store.PAPERS, added=records)}
    pairs = list(zip(origins, papers, strict=True)) if origins else []
    promoted = [(origin, paper.key) for origin, paper in pairs if isinstance(origin, Exclusion)]
    if promoted:
        places = {exclusion.id: place for place, exclusion in enumerate(corpus.pool.exclusions)}
        changes: dict[int, Mapping[str, Value | None]] = {
            places[exclusion.id]: {"promoted_to": key} for exclusion, key in promoted
        }
        texts[store.EXCLUSIONS] = edit_file(corpus, store.EXCLUSIONS, changes=changes)
    proposal = Proposal(
        texts,
        added=tuple(papers),
        changed=tuple(exclusion for exclusion, _ in promoted),
        promoted={key: exclusion.id for exclusion, key in promoted},
    )
    return _without_candidates(
        corpus, proposal, [(origin, paper) for origin, paper in pairs if isinstance(origin, Candidate)]
    )


def exclude(corpus: CorpusFiles, exclusion: Exclusion, candidate: Candidate | None = None) -> Proposal:
    """An exclusion comes to the end of the log, and the candidate that it was leaves its file; errors as for `add`."""
    text = edit_file(corpus, store.EXCLUSIONS, added=[fields(exclusion, corpus.pool.taxonomy)])
    proposal = Proposal({store.EXCLUSIONS: text}, added=(exclusion,))
    return _without_candidates(corpus, proposal, [(candidate, None)] if candidate else [])


def _without_candidates(
    corpus: CorpusFiles, proposal: Proposal, decided: Sequence[tuple[Candidate, Paper | None]]
) -> Proposal:
    """Candidates go by an edit that decides them, and what their readers read otherwise becomes open disputes.

    The papers that they become, None where they are excluded, are written first, the candidates last: a process that is
    killed in between leaves both, and a validation reports it.
    """
    if not decided:
        return proposal
    known = disputes.disputable(corpus.pool.taxonomy)
    new = [dispute_fields(one) for was, paper in decided if paper for one in was.disputed(paper, known)]
    texts = dict(proposal.texts)
    if new:
        texts[store.DISPUTES] = edit_file(corpus, store.DISPUTES, added=new)
    names = {candidate.name for candidate, _ in decided}
    positions = [at for at, candidate in enumerate(corpus.candidates.items) if candidate.name in names]
    return proposal._replace(texts={**texts, store.CANDIDATES: _without(corpus, store.CANDIDATES, positions)})


def _without(corpus: CorpusFiles, path: str, positions: Iterable[int]) -> str:
    """Return the new text of a data file without some of its records; errors as for `remove_record`."""
    file = corpus.file(path)
    for position in sorted(positions, reverse=True):
        file = YamlFile(file.path, remove_record(file, position).encode())
    return file.text


def demote(corpus: CorpusFiles, target: Target, excluded: Proposal) -> Proposal:
    """A paper leaves the pool, for an exclusion that is new or changes; errors as for `remove_record`."""
    gone = _remove_targets(corpus, [target])
    return excluded._replace(texts={**gone.texts, **excluded.texts}, removed=gone.removed)


def change(corpus: CorpusFiles, target: Target, changes: Mapping[str, Value | None]) -> Proposal:
    """Fields of one record change; None takes one away; errors as for `change_records`."""
    text = edit_file(corpus, target.name, changes={target.position: changes})
    return Proposal({target.name: text}, changed=(target.record,), changes=changes)


def remove(corpus: CorpusFiles, targets: Sequence[Target], *, unpublished: bool = False) -> Proposal:
    """Records go, unless something else rests on one of them.

    Args:
        corpus: The corpus.
        targets: The records.
        unpublished: Whether the newest exclusion may go, too: nobody has seen its id.

    Raises:
        CommandUseError: A paper was promoted from an exclusion, or an exclusion's id would be given again.
        DataFileError: The records of the file are not written one below the other.
    """
    exclusions = [target.record for target in targets if isinstance(target.record, Exclusion)]
    kept = (int(exclusion.id[1:] or 0) for exclusion in corpus.pool.exclusions if exclusion not in exclusions)
    next_number = max(kept, default=0) + 1
    for record in (target.record for target in targets):
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
    return _remove_targets(corpus, targets)


def _remove_targets(corpus: CorpusFiles, targets: Sequence[Target]) -> Proposal:
    """Records go, whatever rests on them; errors as for `remove_record`."""
    positions: dict[str, list[int]] = {}
    for target in targets:
        positions.setdefault(target.name, []).append(target.position)
    texts = {path: _without(corpus, path, places) for path, places in positions.items()}
    return Proposal(texts, removed=tuple(target.record for target in targets))


def _findings_beside(corpus: CorpusFiles) -> list[Finding]:
    """Return the errors in the files beside the records, and candidates that are decided by their titles."""
    rows = [row for row in store.DATA_FILES if row.path != store.PAPERS]
    findings = [finding for row in rows for finding in corpus.findings_of(row)]
    return [finding for finding in findings if finding.severity is Severity.ERROR or finding.code == "D112"]
