"""The commands that send requests: `fetch`, `links`, `discover`; and the import of files as candidates."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated

from orchtrace_corpus.base.commands import progress
from orchtrace_corpus.base.commands.declarations import Context, Option
from orchtrace_corpus.base.commands.options import DryRun, FindingsForm, OutputFormat, Strict, refuse_together
from orchtrace_corpus.base.dates import today
from orchtrace_corpus.base.errors import CommandUseError, DataFileError, ExitCode
from orchtrace_corpus.base.findings import has_errors, printable
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text import findings as render
from orchtrace_corpus.base.text.findings import FindingsFormat
from orchtrace_corpus.base.text.layout import MAX_LINES, first_and_more, first_names_and_more, pluralize
from orchtrace_corpus.base.text.table import Table
from orchtrace_corpus.base.yamlfile.reader import read_bytes
from orchtrace_corpus.corpus.analysis.matching import RecordIndex, identifier_text
from orchtrace_corpus.corpus.cli import offers
from orchtrace_corpus.corpus.cli.options import ArxivUrl, Offline, Refresh, Where, argument, option
from orchtrace_corpus.corpus.cli.outcome import apply
from orchtrace_corpus.corpus.cli.session import CorpusSession, paper_query
from orchtrace_corpus.corpus.edit.proposal import Proposal, find_papers, judge, load_editable, write
from orchtrace_corpus.corpus.formats import Item, registry
from orchtrace_corpus.corpus.intake import discovery, upstream
from orchtrace_corpus.corpus.intake.discovery import Discovery
from orchtrace_corpus.corpus.intake.papers import from_item
from orchtrace_corpus.corpus.intake.upstream import Fetched
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.records import Paper, Record
from orchtrace_corpus.corpus.model.searches import Search
from orchtrace_corpus.corpus.model.store import CorpusFiles
from orchtrace_corpus.corpus.sources.arxiv.client import Client
from orchtrace_corpus.corpus.sources.links import Verdict
from orchtrace_corpus.corpus.sources.openalex import KEY, OpenAlex


def fetch(
    ctx: Context,
    names: Annotated[list[str] | None, argument("[KEY]...", "A key, arXiv id, DOI or URL.", offers.keys)] = None,
    write: Annotated[
        bool, Option("--write", help="Update what needs no decision, show the diff, then report the rest.")
    ] = False,
    offline: Offline = False,
    refresh: Refresh = False,
    arxiv_url: ArxivUrl = "",
    strict: Strict = False,
    output_format: FindingsForm = FindingsFormat.TEXT,
) -> int:
    """Compare the records with arXiv, and report what has changed.

    Reports drift ("corpus rule A"): another title, other authors, a new version, a suspected withdrawal, a DOI. Records
    take precedence: nothing is written without --write. With it, titles, full lists of authors and missing DOIs are
    updated, but never a venue, a year or a tag; other metadata of arXiv is saved in data/arxiv.json. An interrupted run
    can be continued. Exit code 0: no drift, or warnings only; 1: an arXiv id of another work; 4: arXiv could not be
    reached.

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
    corpus = load_editable(root)
    loaded, noun = corpus.loaded, corpus.pool.taxonomy.noun
    papers = find_papers(corpus.pool, names) if names else corpus.pool.papers
    ids = list(dict.fromkeys(paper.arxiv_id for paper in papers if paper.arxiv_id))
    if not ids:
        subject = f"none of these {noun.many}" if names else f"no {noun.one}"
        session.output.note(f"{subject} has an arXiv id")
        return ExitCode.DONE
    with progress.show_progress(session.output) as show:
        fetched = upstream.fetch(
            corpus.arxiv, ids, arxiv_url=arxiv_url, offline=offline, refresh=refresh, progress=show
        )
    is_edit_refused = False
    compared = (*fetched.reported.found, *fetched.reported.missing, *fetched.reported.refused)
    if write and compared and not fetched.failure:
        texts = upstream.texts_with_answers(corpus, fetched)
        is_edit_refused = apply(session, corpus, Proposal(texts), show=session.output.tell) != ExitCode.DONE
        loaded = CorpusFiles(root).loaded
    findings = upstream.find_drift(loaded, fetched.reported, corpus.arxiv)
    session.show_findings(findings, output_format)
    if compared:
        session.output.note(f"{render.summary(findings)} in {pluralize(len(compared), 'paper')} of arXiv")
    if _tell_unanswered(session, fetched):
        return ExitCode.UPSTREAM
    if is_edit_refused or has_errors(findings) or (strict and findings):
        return ExitCode.FINDINGS
    return ExitCode.DONE


def links(
    ctx: Context,
    size: Annotated[
        int,
        Option("--sample", metavar="N", min=0, help="Try N of the addresses, the same ones each time; 0 tries all."),
    ] = 0,
    seed: Annotated[str, option("--seed", "TEXT", "The seed of the sample.")] = "",
    where: Where = None,
    refresh: Annotated[bool, Option("--refresh", help="Try again, even if a recent result is stored.")] = False,
    strict: Strict = False,
    output_format: FindingsForm = FindingsFormat.TEXT,
) -> int:
    """Look for dead links: try each address once.

    Sends one request at a time, two seconds apart at each host; recent results come from the cache. A
    server that refuses programs (401, 403, 429) says nothing about its page. Addresses at arXiv are
    skipped: "corpus fetch" checks their ids. Exit code 4: nothing could be reached.

    \b
    Examples:
      corpus links
      corpus links --sample 20 --seed 2026-11
      corpus links --where category=industry --strict
    """
    session = CorpusSession(*ctx.obj)
    loaded = session.files.loaded
    pool = loaded.pool or session.pool()
    keys = {paper.key for paper in paper_query(where, pool.taxonomy).select(loaded.papers)} if where else None
    with progress.show_progress(session.output, "addresses") as show:
        findings, outcomes, requested_count, arxiv_count = upstream.check_links(
            loaded, keys, size=size, seed=seed, refresh=refresh, progress=show
        )
    if not outcomes:
        session.output.note("no addresses to try")
        return ExitCode.DONE
    session.show_findings(findings, output_format)
    counts = Counter(outcome.verdict for outcome in outcomes.values())
    verdicts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)
    requested = f"{pluralize(requested_count, 'address', 'addresses')} tried"
    cached = f"{len(outcomes) - requested_count} taken from the cache"
    session.output.note(f"{render.summary(findings)}; {requested}, {cached}: {verdicts}")
    if arxiv_count:
        skipped = pluralize(arxiv_count, "address of arXiv is", "addresses of arXiv are")
        session.output.note(f"{skipped} left to corpus fetch")
    if refused := [url for url, outcome in outcomes.items() if outcome.verdict is Verdict.REFUSED]:
        session.output.note(f"refused, of which nothing is known: {_list_some(refused)}")
    return ExitCode.FINDINGS if strict and findings else ExitCode.DONE


def _tell_unanswered(session: CorpusSession, fetched: Fetched) -> bool:
    """Report the papers about which arXiv did not answer, and why; return True if there are any."""
    answer, reported, failure = fetched.answer, fetched.reported.found, fetched.failure
    for message in answer.messages:
        session.output.tell(f"corpus: {printable(message, limit=300)}")
    for ids, reason, advice in (
        (answer.throttled, "arXiv did not answer for", "Run the command again later; answers so far are stored."),
        (answer.unparseable, "arXiv's answer could not be read about", "Run the command again later."),
        (() if failure else fetched.unanswered, "nothing is kept of", "Run corpus fetch without --offline."),
    ):
        if ids:
            stored_count = sum(arxiv_id in reported for arxiv_id in ids)
            remark = f"\nThe report has {stored_count} of them, as kept from earlier runs." if stored_count else ""
            papers = f"{pluralize(len(ids), 'paper')}: {_list_some(ids)}"
            session.output.tell(f"corpus: {reason} {papers}{remark}\n{advice}")
    if failure:
        session.output.tell("corpus: not every request succeeded; the report uses answers of earlier runs")
        session.output.tell(f"corpus: {failure}")
    return bool(answer.throttled or answer.unparseable or fetched.unanswered or failure)


def _list_some(names: Sequence[str]) -> str:
    return first_names_and_more([printable(name) for name in names], 5, " and {} more")


def discover(
    ctx: Context,
    since: Annotated[
        str, option("--since", "DATE|last", "Papers since this day (default: since the last run of each query).")
    ] = "",
    family: Annotated[
        list[str] | None, option("--family", "NAME", "Only this query, or queries of this family (repeatable).")
    ] = None,
    dry_run: DryRun = False,
    offline: Offline = False,
    refresh: Refresh = False,
    arxiv_url: ArxivUrl = "",
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """Search for new papers, and save them as candidates.

    Sends every query of data/protocol.yaml to arXiv, in the categories named there, for a window of days that ends
    yesterday. If OPENALEX_API_KEY holds a key, also asks OpenAlex for works that cite, or are cited by, the papers that
    the protocol names. Known papers (same identifier, or nearly the same title) are skipped and counted. New ones go to
    data/candidates.yaml, the run to data/searches.yaml, and the metadata of arXiv to data/arxiv.json. --dry-run only
    counts the results of each query. An interrupted run can be continued. Exit code 0: every query was sent; 1: a
    result could not be recorded; 4: a service could not be reached, or not for every query; results so far are
    recorded.

    \b
    Examples:
      corpus discover --dry-run
      corpus discover --since last
      corpus discover --since 2026-05-01 --family orchestration
      corpus discover --since 2026-05-01 --format json
    """
    session = CorpusSession(*ctx.obj)
    refuse_together(offline=offline, refresh=refresh)
    root = session.root_folder() if dry_run else session.writable_root()
    corpus = load_editable(root)
    protocol = corpus.protocol.require()
    if protocol is None:
        raise DataFileError(f"this corpus has no {store.PROTOCOL}", "docs/data.md of orchtrace-corpus describes it.")
    planned = discovery.plan_searches(protocol, corpus.searches.require(), today(), since=since, names=family or ())
    client = Client(arxiv_url, offline=offline, refresh=refresh)
    followed = () if family else discovery.followed_papers(protocol, corpus.pool)
    key = os.environ.get(KEY, "")
    if followed and not key:
        session.output.note(f"corpus: citations are left out: {KEY} holds no key; one is free at openalex.org")
    if followed and key and offline:
        session.output.note("corpus: citations are left out: --offline makes no requests")
    follows_citations = bool(followed) and bool(key) and not offline
    if dry_run:
        followed_count = len(followed) if follows_citations else 0
        return _count_results(session, client, planned, followed_count, output_format)
    openalex = OpenAlex(key, refresh=refresh) if follows_citations else None
    with progress.show_progress(session.output, "queries") as show:
        outcome = discovery.discover(
            corpus, protocol, planned, today(), client=client, openalex=openalex, since=since, progress=show
        )
    written = write(judge(corpus, discovery.propose(corpus, outcome)))
    rows = tuple(
        (search.query, search.source, search.since or "", search.until or "", search.found, search.new)
        for search in outcome.run.searches
    )
    columns = ("query", "source", "from", "to", "found", "new")
    if rows or output_format is not Format.TABLE:
        session.show_tables([Table("searches", "", columns, rows)], "discover", output_format)
    for name in written:
        session.output.note(f"wrote {name}")
    return _report_outcome(session, outcome)


def import_candidates(session: CorpusSession, corpus: CorpusFiles, paths: Sequence[str], *, dry_run: bool) -> int:
    """Add the entries of files as unread candidates, record the run, and return the exit code."""
    if not paths or not all(registry.is_readable(path) for path in paths):
        endings = "Files end in .bib, .ris, .csl.json, .csv, .json or .jsonl."
        raise CommandUseError("--to candidates takes files of papers", endings)
    items: list[Item] = []
    for path in paths:
        data = read_bytes(path, path)
        items += registry.find_by_ending(path, data).read(data, corpus.pool.taxonomy, path=path)
    name = ", ".join(map(os.path.basename, paths))
    outcome = discovery.import_candidates(corpus, items, name, today())
    judgement = judge(corpus, discovery.propose(corpus, outcome))
    if dry_run:
        session.output.write(judgement.diff)
        session.output.note("corpus: nothing was written (--dry-run)")
    else:
        for written in write(judgement):
            session.output.note(f"wrote {written}")
    fields = [facet.field for facet in corpus.pool.taxonomy.papers]
    new = RecordIndex([candidate.paper for candidate in outcome.new])
    lines = []
    for item in items:
        tags = [*item.keywords, *(field for field in fields if item.values.get(field))]
        if tags and new.find(from_item(item)):
            lines.append(f"  {item.values.get('key') or item.line}: {', '.join(tags)}")
    if lines:
        session.output.tell("corpus: a candidate has no tags before it is read, so these are not taken:")
    for line in first_and_more(lines, MAX_LINES, "  and {:,} more"):
        session.output.tell(printable(line, limit=300))
    return _report_outcome(session, outcome, f"{printable(name)}: ")


def _count_results(
    session: CorpusSession, client: Client, planned: Sequence[Search], followed_count: int, output_format: Format
) -> int:
    """Show the queries with the number of results of each, and return the exit code."""
    with progress.show_progress(session.output, "queries") as show:
        answer = client.search({search.query: search.asked or "" for search in planned}, count_only=True, progress=show)
    totals = {name: results.total for name, results in answer.found.items()}
    rows = tuple((search.query, totals.get(search.query), search.asked) for search in planned)
    session.show_tables([Table("searches", "", ("query", "answers", "asked"), rows)], "discover", output_format)
    if followed_count:
        session.output.note(f"{pluralize(followed_count, 'paper')} whose citations are followed at OpenAlex")
    session.output.note("corpus: nothing was written (--dry-run)")
    return _tell_failed(session, {name: text for name, (_, text) in answer.failed.items()})


def _report_outcome(session: CorpusSession, outcome: Discovery, origin: str = "") -> int:
    """Report the new papers of a run and those left out, and return the exit code; `origin` precedes refused papers."""
    run, output = outcome.run, session.output
    if run.searches:
        left_out = f"{run.in_pool} in the pool, {run.in_log} excluded before, {run.in_candidates} among the candidates"
        new = pluralize(len(outcome.new), "new candidate")
        output.note(f"{new}; left out: {left_out}, {run.repeated} found more than once")
    if outcome.by_title:
        output.note("left out by a title that is the same, or nearly:")
    for paper, match in outcome.by_title:  # without a limit, since no file holds them
        output.note(f"  {_name_and_title(paper)} (as {_name_and_title(match.record)})")
    for message in outcome.messages:
        output.tell(f"corpus: {printable(message, limit=300)}")
    for title, findings in outcome.refused:
        reasons = "; ".join(f"{finding.code} {finding.message}" for finding in findings)
        output.tell(f"corpus: {origin}{printable(title)} is left out: {printable(reasons, limit=300)}")
    code = _tell_failed(session, outcome.failed)
    if outcome.error is not None:
        output.tell("corpus: not every request succeeded; earlier answers are kept")
        output.tell(f"corpus: {outcome.error}")
        code = ExitCode.UPSTREAM
    return max(code, ExitCode.FINDINGS) if outcome.refused else code


def _name_and_title(record: Record) -> str:
    """Return a record's name, or its identifier if it has none, with its title."""
    name = record.name or (identifier_text(record) if isinstance(record, Paper) else "")
    return f"{name}: {printable(record.title)}" if name else printable(record.title)


def _tell_failed(session: CorpusSession, failed: Mapping[str, str]) -> int:
    """Report the queries without an answer, and why, and return the exit code."""
    for name, text in failed.items():
        session.output.tell(f"corpus: no answer to the query {printable(name)}: {printable(text, limit=300)}")
    if failed:
        session.output.tell("Run the command again later; answers so far are stored.")
    return ExitCode.UPSTREAM if failed else ExitCode.DONE
