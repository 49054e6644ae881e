"""The commands that ask others about what a corpus says: `fetch`, `links`."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from orchtrace_corpus.base.commands import progress
from orchtrace_corpus.base.commands.declarations import Context, Option
from orchtrace_corpus.base.commands.options import FindingsForm, Strict, refuse_together
from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.base.findings import has_errors, printable
from orchtrace_corpus.base.text import findings as render
from orchtrace_corpus.base.text.findings import FindingsFormat
from orchtrace_corpus.base.text.layout import first_names_and_more, pluralize
from orchtrace_corpus.corpus.cli import offers
from orchtrace_corpus.corpus.cli.options import ArxivUrl, Offline, Refresh, Where, argument, option
from orchtrace_corpus.corpus.cli.outcome import apply
from orchtrace_corpus.corpus.cli.session import CorpusSession, paper_query
from orchtrace_corpus.corpus.edit.proposal import Proposal, find_papers, load_editable
from orchtrace_corpus.corpus.intake import upstream
from orchtrace_corpus.corpus.intake.upstream import Fetched
from orchtrace_corpus.corpus.model.store import CorpusFiles
from orchtrace_corpus.corpus.sources.links import Verdict


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

    Reports drift ("corpus rule A"): another title, other authors, a new version, a suspected withdrawal,
    a DOI. Records take precedence: nothing is written without --write. With it, titles, full lists of
    authors and missing DOIs are updated, but never a venue, a year or a tag; other metadata of arXiv is
    saved in data/arxiv.json. An interrupted run can be continued. Exit code 0: no drift, or warnings
    only; 1: an id of another work; 4: arXiv could not be reached.

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
    loaded, pool = corpus.loaded, corpus.pool
    papers = find_papers(pool, names) if names else pool.papers
    noun = pool.taxonomy.noun
    ids = list(dict.fromkeys(paper.arxiv_id for paper in papers if paper.arxiv_id))
    if not ids:
        session.output.note(f"{f'none of these {noun.many}' if names else f'no {noun.one}'} has an arXiv id")
        return ExitCode.DONE
    with progress.shown(session.output) as show:
        known = corpus.arxiv
        fetched = upstream.fetch(known, ids, arxiv_url=arxiv_url, offline=offline, refresh=refresh, progress=show)
    refused = False
    judged = (*fetched.reported.found, *fetched.reported.missing, *fetched.reported.refused)
    if write and judged and not fetched.failure:
        texts = upstream.texts_with_answers(corpus, fetched)
        refused = apply(session, corpus, Proposal(texts), show=session.output.tell) != ExitCode.DONE
        loaded = CorpusFiles(root).loaded
    findings = upstream.find_drift(loaded, fetched.reported, fetched.known)
    session.show_findings(findings, output_format)
    if judged:
        session.output.note(f"{render.summary(findings)} in {pluralize(len(judged), 'paper')} of arXiv")
    if _tell_gaps(session, fetched):
        return ExitCode.UPSTREAM
    return ExitCode.FINDINGS if refused or has_errors(findings) or (strict and findings) else ExitCode.DONE


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
    with progress.shown(session.output, "addresses") as show:
        report = upstream.try_links(loaded, keys, size=size, seed=seed, refresh=refresh, progress=show)
    if not report.outcomes:
        session.output.note("no addresses to try")
        return ExitCode.DONE
    session.show_findings(report.findings, output_format)
    counts = Counter(outcome.verdict for outcome in report.outcomes.values())
    verdicts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)
    asked = pluralize(report.asked, "address", "addresses")
    known = f"{asked} tried, {len(report.outcomes) - report.asked} taken from the cache"
    session.output.note(f"{render.summary(report.findings)}; {known}: {verdicts}")
    if report.left_to_fetch:
        left = pluralize(report.left_to_fetch, "address of arXiv is", "addresses of arXiv are")
        session.output.note(f"{left} left to corpus fetch")
    refused = [url for url, outcome in report.outcomes.items() if outcome.verdict is Verdict.REFUSED]
    if refused:
        session.output.note(f"refused, of which nothing is known: {_list_some(refused)}")
    return ExitCode.FINDINGS if strict and report.findings else ExitCode.DONE


def _tell_gaps(session: CorpusSession, fetched: Fetched) -> bool:
    """Say of which papers arXiv has said nothing, and why; whether there are any."""
    answer, found, failure = fetched.answer, fetched.reported.found, fetched.failure
    for message in answer.messages:
        session.output.tell(f"corpus: {printable(message, limit=300)}")
    for ids, reason, mend in (
        (answer.throttled, "arXiv did not answer for", "Run the command again later; answers so far are stored."),
        (answer.unparseable, "arXiv's answer could not be read about", "Run the command again later."),
        (() if failure else fetched.unknown, "nothing is kept of", "Run corpus fetch without --offline."),
    ):
        if ids:
            kept = [name for name in ids if name in found]
            told = f"\nThe report has {len(kept)} of them, as kept from earlier runs." if kept else ""
            some = f"{pluralize(len(ids), 'paper')}: {_list_some(ids)}"
            session.output.tell(f"corpus: {reason} {some}{told}\n{mend}")
    if failure:
        session.output.tell("corpus: not every request succeeded; the report uses answers of earlier runs")
        session.output.tell(f"corpus: {failure}")
    return bool(answer.throttled or answer.unparseable or fetched.unknown or failure)


def _list_some(names: Sequence[str]) -> str:
    return first_names_and_more([printable(name) for name in names], 5, " and {} more")
