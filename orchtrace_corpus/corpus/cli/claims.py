"""`corpus claims`."""

import os
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from orchtrace_corpus.base.commands.options import OutputFormat
from orchtrace_corpus.base.errors import CommandUseError, DataFileError, ExitCode
from orchtrace_corpus.base.findings import is_malformed, quote, suggestion
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text.layout import Line
from orchtrace_corpus.corpus.analysis import claims as core
from orchtrace_corpus.corpus.analysis.stress import stress
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.model import disputes, store
from orchtrace_corpus.corpus.model.claim_file import Claim, ClaimFile
from orchtrace_corpus.corpus.render import claims as render


def claims(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Claims to show in full.", show_default=False)
    ] = None,
    stressed: Annotated[
        bool, typer.Option("--stress", help="Also find the fewest changes that break each claim.")
    ] = False,
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """Hold what the corpus claims about itself against its records.

    From data/claims.yaml: each claim holds or fails, by the records behind it. Ends with 1 if one
    fails. A claim about the published pool is also judged over the pool of today, where it may fall,
    which is no error: the later records that make it fall are named. With ids: the records, those
    contested in data/disputes.yaml, the boundary of the claim and what speaks against it. --stress
    reads disputed tags the other way, takes near misses in with the tags that serve the claim least,
    and leaves rows out.

    \b
    Examples:
      corpus claims
      corpus claims stop-no-objective
      corpus claims message-credit-sparse --stress
      corpus claims --stress --format json
    """
    session = CorpusSession(*ctx.obj)
    root = session.root_folder()
    if not os.path.lexists(os.path.join(root, *store.CLAIMS.split("/"))):
        raise DataFileError(f"this corpus has no {store.CLAIMS}", "docs/claims.md of orchtrace-corpus describes it.")
    pool = session.pool()
    claim_file = store.read_claims(root)
    dispute_file = store.read_disputes(root, pool.taxonomy)
    chosen, unread = _select_claims(claim_file, names or [])
    problems = (*core.check(claim_file, pool), *disputes.check(dispute_file, pool.papers, pool.taxonomy))
    verdicts = core.evaluate(chosen, pool, dispute_file.disputes)
    flawed = {finding.record for finding in problems if finding.code in ("C103", "C104")}
    beside = [verdict.claim.id for verdict in verdicts if verdict.holds and verdict.claim.id in flawed]
    tested = stress(chosen, pool, dispute_file.disputes) if stressed else ()
    robust = {one.claim.id: one for one in tested}
    views: dict[Format, Callable[[], str | Sequence[Line]]] = {
        Format.JSON: lambda: render.data(verdicts, robust, unread, beside)
    }
    if names:
        views[Format.TABLE] = lambda: render.cards(verdicts, robust, unread, session.output.width)
        views[Format.MARKDOWN] = lambda: render.cards_markdown(verdicts, robust, unread)
    is_flat = bool(names) or output_format is Format.CSV
    session.show_report(
        views,
        lambda: [render.flat(verdicts, robust) if is_flat else render.overview(verdicts, robust, unread, beside)],
        "claims",
        output_format,
    )
    further = [finding for finding in problems if finding.code != "C101"]
    for finding in further:
        session.output.tell(str(finding))
    if is_malformed(further):
        return ExitCode.UNREADABLE
    return ExitCode.FINDINGS if further or not all(verdict.holds for verdict in verdicts) else ExitCode.DONE


def _select_claims(file: ClaimFile, names: Sequence[str]) -> tuple[list[Claim], list[str]]:
    """The claims asked for, and the ids of those among them that could not be read; without names, all."""
    known = {claim.id: claim for claim in file.claims}
    if not names:
        return list(known.values()), list(file.unread)
    allowed = list(dict.fromkeys((*known, *filter(None, file.unread))))
    for name in names:
        if name not in allowed:
            raise CommandUseError(f"there is no claim {quote(name)}{suggestion(name, allowed, always_list=False)}")
    return (
        [known[name] for name in dict.fromkeys(names) if name in known],
        [name for name in file.unread if name in names],
    )
