"""`corpus links`."""

import os
from collections import Counter
from typing import Annotated
from urllib.parse import urlsplit

import typer

from orchtrace_corpus.base.commands import progress
from orchtrace_corpus.base.commands.options import FindingsForm, Strict
from orchtrace_corpus.base.errors import ExitCode, UpstreamError
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.progress import Progress
from orchtrace_corpus.base.text import findings as render
from orchtrace_corpus.base.text.findings import FindingsFormat
from orchtrace_corpus.corpus.cli.options import Where
from orchtrace_corpus.corpus.cli.session import CorpusSession, paper_query
from orchtrace_corpus.corpus.rules import apply_waivers
from orchtrace_corpus.corpus.sources import links as addresses
from orchtrace_corpus.corpus.sources import links as source
from orchtrace_corpus.corpus.sources.arxiv.cache import default_folder
from orchtrace_corpus.corpus.sources.links import Tried, Verdict

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_SHOWN_REFUSED = 5
_FEW_HOSTS = 3


@app.command()
def links(
    ctx: typer.Context,
    size: Annotated[
        int,
        typer.Option("--sample", metavar="N", min=0, help="Try N of the addresses, always the same; 0 tries all."),
    ] = 0,
    seed: Annotated[str, typer.Option("--seed", metavar="TEXT", help="Another seed gives another sample.")] = "",
    where: Where = None,
    refresh: Annotated[bool, typer.Option("--refresh", help="Try again what was tried of late.")] = False,
    strict: Strict = False,
    output_format: FindingsForm = FindingsFormat.TEXT,
) -> int:
    """Look for dead links: try each address once, politely.

    One request at a time, two seconds apart at each host; what was tried of late is taken from the
    cache. A server that refuses programs (401, 403, 429) says nothing about its page. Addresses of
    arXiv are not tried: "corpus fetch" checks their ids. Exit code 4: nothing could be reached.

    \b
    Examples:
      corpus links
      corpus links --sample 20 --seed 2026-11
      corpus links --where category=industry --strict
    """
    session = CorpusSession(*ctx.obj)
    loaded = session.load()
    pool = loaded.pool or session.pool()
    keys = {paper.key for paper in paper_query(where, pool.taxonomy).select(loaded.papers)} if where else None
    listed = list(addresses.listed(loaded, keys))
    every = {link.url for link in listed}
    wanted = {url for url in every if not addresses.is_left_to_fetch(url)}
    chosen = addresses.sample(wanted, size or len(wanted), seed)
    if not chosen:
        session.output.note("no addresses to try")
        return ExitCode.DONE
    sweep = source.Sweep(os.path.join(default_folder(), "links"), refresh=refresh)
    tried: dict[str, Tried] = {}
    with progress.shown(session.output, "addresses") as show:
        for url, outcome in sweep.outcomes(chosen):
            tried[url] = outcome
            if show is not None:
                show(Progress(len(tried), len(chosen)))
    _expect_a_network(tried)
    found = apply_waivers(list(addresses.findings(listed, tried)), loaded, lambda _record, _code: False)
    session.show_findings(found, output_format)
    counts = Counter(outcome.verdict for outcome in tried.values())
    verdicts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)
    known = f"{_numbered(sweep.asked)} tried, {len(tried) - sweep.asked} taken from the cache"
    session.output.note(f"{render.summary(found)}; {known}: {verdicts}")
    if len(every) > len(wanted):
        left = len(every) - len(wanted)
        session.output.note(f"{_numbered(left)} of arXiv {'is' if left == 1 else 'are'} left to corpus fetch")
    refused = [printable(url) for url, outcome in tried.items() if outcome.verdict is Verdict.REFUSED]
    if refused:
        more = f" and {len(refused) - _SHOWN_REFUSED} more" if len(refused) > _SHOWN_REFUSED else ""
        session.output.note(f"refused, of which nothing is known: {', '.join(refused[:_SHOWN_REFUSED])}{more}")
    return ExitCode.FINDINGS if strict and found else ExitCode.DONE


def _expect_a_network(tried: dict[str, Tried]) -> None:
    """See that somebody answered.

    Raises:
        UpstreamError: Nobody did, of several hosts, so the trouble is most likely with us.
    """
    hosts = {urlsplit(url).netloc for url in tried}
    if len(hosts) >= _FEW_HOSTS and not any(outcome.answered for outcome in tried.values()):
        raise UpstreamError(
            f"none of {_numbered(len(tried))} on {len(hosts)} hosts could be reached",
            "Is there a network? Nothing is said about the links.",
        )


def _numbered(count: int) -> str:
    return f"{count} address{'' if count == 1 else 'es'}"
