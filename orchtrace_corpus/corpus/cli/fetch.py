"""`corpus fetch`."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated

import typer

from orchtrace_corpus.base.commands import progress
from orchtrace_corpus.base.commands.options import FindingsForm, Strict, refuse_together
from orchtrace_corpus.base.errors import CommandUseError, ExitCode, UpstreamError
from orchtrace_corpus.base.findings import Finding, beyond, has_errors, printable, quote
from orchtrace_corpus.base.text import findings as render
from orchtrace_corpus.base.text.findings import FindingsFormat
from orchtrace_corpus.corpus import rules
from orchtrace_corpus.corpus.analysis.search import find_records, near_misses
from orchtrace_corpus.corpus.cli.amend import amend, editable
from orchtrace_corpus.corpus.cli.options import ArxivUrl, Offline, Refresh
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.edit.edits import all_changed
from orchtrace_corpus.corpus.intake import drift
from orchtrace_corpus.corpus.intake.drift import Answers
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.arxiv_file import encode, merged
from orchtrace_corpus.corpus.model.metadata import Metadata
from orchtrace_corpus.corpus.model.record_fields import Value, paper_style
from orchtrace_corpus.corpus.model.records import Loaded, Paper, Pool
from orchtrace_corpus.corpus.rules import apply_waivers
from orchtrace_corpus.corpus.sources.arxiv.client import Answer, Client

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_SHOWN = 5


@app.command()
def fetch(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY]...", help="A key, arXiv id, DOI or URL.", show_default=False)
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Take over what needs no decision, show the diff, then report the rest.")
    ] = False,
    offline: Offline = False,
    refresh: Refresh = False,
    arxiv_url: ArxivUrl = "",
    strict: Strict = False,
    output_format: FindingsForm = FindingsFormat.TEXT,
) -> int:
    """Ask arXiv about the papers that have an arXiv id, and report what has changed.

    Each finding is one of drift ("corpus rule A"): another title, other authors, a new version, a
    suspected withdrawal, a DOI. Records win: nothing is written without --write, which takes over
    titles, full lists of authors and missing DOIs, but never a venue, a year or a tag, and keeps
    what arXiv says beyond the records in data/arxiv.json. An interrupted run goes on where it was.
    Exit code 0: no drift, or warnings only; 1: an id of another work; 4: arXiv could not be asked.

    \b
    Examples:
      corpus fetch
      corpus fetch magrpo arXiv:2505.19591
      corpus fetch --write
      corpus fetch --offline --format json
    """
    session = CorpusSession(*ctx.obj)
    refuse_together(offline=offline, refresh=refresh)
    root = session.writable_root() if write else session.root_folder()
    loaded, pool = editable(root)
    papers = _named(pool, names) if names else pool.papers
    ids = list(dict.fromkeys(paper.arxiv_id for paper in papers if paper.arxiv_id))
    if not ids:
        session.output.note(f"{'none of these papers' if names else 'no paper'} has an arXiv id")
        return ExitCode.DONE
    known = store.read_arxiv(root)
    client = Client(arxiv_url, offline=offline, refresh=refresh)
    broken: UpstreamError | None = None
    try:
        with progress.shown(session.output) as show:
            answer = client.fetch(ids, known=known, progress=show)
    except UpstreamError as error:
        broken, answer = error, Client(arxiv_url, offline=True).fetch(ids)
    found = {**{name: known[name] for name in answer.unasked if name in known}, **answer.found}
    kept = _kept(arxiv_url, answer, known)
    if not found and (broken or answer.unasked):
        raise broken or UpstreamError(
            f"nothing is kept of {_numbered(ids)} with an arXiv id", "Run corpus fetch with a network first."
        )
    answers = Answers(merged(known, found, found), answer.missing, answer.malformed)
    spoken = answers._replace(found={**merged(known, kept, kept), **answers.found})
    refused = False
    if write and not broken:
        changes = _harmless(root, loaded, pool, _changes(loaded, answers, known))
        texts = {
            store.PAPERS: all_changed(loaded.paper_places.file, changes, paper_style(pool.taxonomy)),
            store.ARXIV: encode(merged(known, answers.found, _every_id(pool))),
        }
        refused = amend(session, root, texts, was=loaded, show=session.output.tell) != ExitCode.DONE
        loaded = store.load(root)
    findings = _judged(loaded, spoken, known)
    session.show_findings(findings, output_format)
    judged = (*spoken.found, *spoken.missing, *spoken.refused)
    if judged:
        session.output.note(f"{render.summary(findings)} in {_numbered(judged)} of arXiv")
    if _tell_gaps(session, answer, spoken, broken):
        return ExitCode.UPSTREAM
    return ExitCode.FINDINGS if refused or has_errors(findings) or (strict and findings) else ExitCode.DONE


def _kept(arxiv_url: str, answer: Answer, known: Mapping[str, Metadata]) -> dict[str, Metadata]:
    """What was kept from earlier runs of the papers that arXiv has said nothing of now; it is reported, not written."""
    gaps = (*answer.throttled, *answer.unparseable)
    earlier = Client(arxiv_url, offline=True).fetch(gaps).found if gaps else {}
    return {**{name: known[name] for name in gaps if name in known}, **earlier}


def _named(pool: Pool, names: Sequence[str]) -> tuple[Paper, ...]:
    """The papers called by these names.

    Raises:
        CommandUseError: One is called by none of them, or is that of an exclusion.
    """
    papers: dict[str, Paper] = {}
    for name in names:
        records = find_records(pool, name)
        found = [record for record in records if isinstance(record, Paper)]
        if records and not found:
            raise CommandUseError(f"{quote(name)} is an exclusion, and only papers are fetched")
        if not found:
            near = [f"{key} ({title})" for key, title in near_misses(pool, name)]
            hint = f"Did you mean: {', '.join(near)}?" if near else "Try: corpus search WORDS, or corpus list."
            raise CommandUseError(f"no paper {quote(name)}", hint)
        papers |= {paper.key: paper for paper in found}
    return tuple(papers.values())


def _every_id(pool: Pool) -> list[str]:
    return [paper.arxiv_id for paper in pool.papers if paper.arxiv_id]


def _judged(loaded: Loaded, answers: Answers, known: Mapping[str, Metadata]) -> tuple[Finding, ...]:
    """The drift that is not waived, and the waivers of drift that there is none of, in the order of the lines."""
    spoken = {*answers.found, *answers.missing, *answers.refused}
    keys = {paper.key for paper in loaded.papers if paper.arxiv_id in spoken}
    found = list(drift.drift(loaded, answers, known))
    kept = apply_waivers(found, loaded, lambda key, code: key in keys and code in drift.PERSISTENT)
    return tuple(sorted(kept, key=lambda finding: (finding.location, finding.code)))


def _changes(loaded: Loaded, answers: Answers, known: Mapping[str, Metadata]) -> dict[int, dict[str, Value | None]]:
    """What arXiv's answers change in each record without a decision, by the record's number."""
    codes: dict[str, set[str]] = {}
    for finding in _judged(loaded, answers, known):
        codes.setdefault(finding.record, set()).add(finding.code)
    changed: dict[int, dict[str, Value | None]] = {}
    for index, paper in enumerate(loaded.papers):
        answer = answers.found.get(paper.arxiv_id or "")
        if answer is not None and paper.key in codes:
            changed[index] = {**drift.changes(paper, answer, codes[paper.key])}
    return {index: fields for index, fields in changed.items() if fields}


def _harmless(
    root: str, loaded: Loaded, pool: Pool, changes: Mapping[int, Mapping[str, Value | None]]
) -> dict[int, Mapping[str, Value | None]]:
    """The changes that bring no new error: arXiv's text may be one that no record can hold.

    What is left out stays reported as drift.
    """
    before = rules.check(loaded)

    def is_harmless(some: Mapping[int, Mapping[str, Value | None]]) -> bool:
        text = all_changed(loaded.paper_places.file, some, paper_style(pool.taxonomy))
        return not has_errors(beyond(before, rules.check(store.load(root, instead={store.PAPERS: text.encode()}))))

    if not changes or is_harmless(changes):
        return dict(changes)
    return {index: fields for index, fields in changes.items() if is_harmless({index: fields})}


def _tell_gaps(session: CorpusSession, answer: Answer, answers: Answers, broken: UpstreamError | None) -> bool:
    """Say of which papers arXiv has said nothing, and why; whether there are any."""
    for message in answer.messages:
        session.output.tell(f"corpus: {printable(message, limit=300)}")
    unknown = [name for name in answer.unasked if name not in answers.found]
    for ids, reason, mend in (
        (answer.throttled, "arXiv had no time for", "Run the command again later; what was answered is kept."),
        (answer.unparseable, "arXiv's answer could not be read about", "Run the command again later."),
        (() if broken else unknown, "nothing is kept of", "Run corpus fetch without --offline."),
    ):
        if ids:
            kept = [name for name in ids if name in answers.found]
            told = f"\nThe report has {len(kept)} of them, as kept from earlier runs." if kept else ""
            session.output.tell(f"corpus: {reason} {_numbered(ids)}: {_some(ids)}{told}\n{mend}")
    if broken:
        session.output.tell("corpus: not everything could be asked; the report is of what was kept from earlier runs")
        session.output.tell(f"corpus: {broken}")
    return bool(answer.throttled or answer.unparseable or unknown or broken)


def _numbered(papers: Collection[str]) -> str:
    return f"{len(papers)} paper{'' if len(papers) == 1 else 's'}"


def _some(ids: Iterable[str]) -> str:
    shown = list(ids)
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return f"{', '.join(printable(name) for name in shown[:_SHOWN])}{more}"
