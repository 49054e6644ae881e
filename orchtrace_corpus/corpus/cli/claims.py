"""The command that checks the claims about the corpus: `claims`."""

from collections.abc import Callable, Mapping, Sequence

from orchtrace_corpus.base.annotations import TYPE_CHECKING, Annotated
from orchtrace_corpus.base.commands.declarations import Argument, Context, Option
from orchtrace_corpus.base.commands.options import OutputFormat
from orchtrace_corpus.base.errors import CommandUseError, DataFileError, ExitCode
from orchtrace_corpus.base.findings import is_malformed, quote, suggestion
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text.layout import Line
from orchtrace_corpus.base.text.table import Table
from orchtrace_corpus.corpus.analysis import claims as core
from orchtrace_corpus.corpus.cli import offers
from orchtrace_corpus.corpus.cli.options import Reading, With
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.model import disputes, store
from orchtrace_corpus.corpus.model.candidates import select_proposed
from orchtrace_corpus.corpus.model.claim_file import Claim, ClaimFile, PoolName
from orchtrace_corpus.corpus.model.records import ReadingName
from orchtrace_corpus.corpus.render import claims as render

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.analysis.stress import ReadingVerdict


def claims(
    ctx: Context,
    names: Annotated[
        list[str] | None,
        Argument(metavar="[ID]...", help="Claims to show in full.", show_default=False, offers=offers.claim_ids),
    ] = None,
    stressed: Annotated[bool, Option("--stress", help="Also find the fewest changes that break each claim.")] = False,
    reading: Reading = ReadingName.PUBLISHED,
    pools: Annotated[
        list[PoolName] | None, Option("--pool", help="Only the verdicts over this pool (repeatable).")
    ] = None,
    with_records: With = None,
    show_all: Annotated[bool, Option("--all", help="Show every claim, and every tag that makes one fall.")] = False,
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """Compare the claims about the corpus with its records.

    Checks each claim of data/claims.yaml against the records behind it. A claim fails if it does not hold as
    written (exit code 1). It falls if it does not hold over a later pool or by another reading, which is not an
    error. These claims and contested ones come first; a list longer than the screen only counts the others.

    A claim about the published pool is also evaluated on two later ones. The pool "today" has every paper; the
    records that make a claim fall there are named. The pool "candidates" adds those proposed for inclusion: "falls
    at 3/15" means that 15 of them count for the claim, and that it falls when the third is added. A candidate does
    not count if one of the tags that matter is open. If the claim would fall by the least favourable reading of
    such tags, it could fall. --with candidates names the candidates by which claims fall or could fall, with their
    tags and sources.

    With ids, shows the records, those contested in data/disputes.yaml, the boundary of the claim and the evidence
    against it. --stress reads disputed tags the other way, includes near misses with the tags least favourable to
    the claim, and leaves records out. Claims that any one record breaks, and no dispute, are only counted.
    --reading sources uses the tags that readers of the sources agree on instead of the published ones; a claim that
    falls by them is not an error, and the tags are named.

    \b
    Examples:
      corpus claims
      corpus claims stop-no-objective
      corpus claims message-credit-sparse --stress
      corpus claims --stress --format json
      corpus claims --reading sources --all
      corpus claims --pool published --pool candidates
      corpus claims orchestrator-credit-sparse --with candidates
    """
    if with_records and (stressed or pools):
        raise CommandUseError("--with shows what would fall; leave out --stress and --pool")
    session = CorpusSession(*ctx.obj)
    files = session.files
    if not files.has(store.CLAIMS):
        raise DataFileError(f"this corpus has no {store.CLAIMS}", "docs/claims.md of orchtrace-corpus describes it.")
    pool = session.pool()
    claim_file, dispute_file = files.claims, files.disputes
    chosen, unread = _select_claims(claim_file, names or [])
    published = pool
    compared: Mapping[str, ReadingVerdict] = {}
    if reading is ReadingName.SOURCES:
        from orchtrace_corpus.corpus.analysis.stress import compare_readings

        compared = compare_readings(chosen, pool, dispute_file.require())
    pool = disputes.pool_as_read(pool, dispute_file.items, reading)
    recorded = disputes.disputes_as_read(dispute_file.items, reading)
    awaiting = files.candidates
    if with_records and awaiting.places is None:
        raise DataFileError(f"this corpus has no {store.CANDIDATES}", "docs/data.md of orchtrace-corpus describes it.")
    proposed = None if awaiting.places is None else select_proposed(awaiting.require())
    verdicts = core.evaluate(chosen, pool, recorded, proposed)
    published_verdicts = verdicts if reading is ReadingName.PUBLISHED else ()
    problems = core.check(claim_file, published, published_verdicts)
    problems += disputes.check(dispute_file, published)
    if with_records and proposed is not None:
        from orchtrace_corpus.corpus.analysis.stress import causes as find_causes

        left_out = [item for item in awaiting.items if item not in proposed]
        causes = find_causes(verdicts, pool, proposed)
        causes += find_causes(core.evaluate(chosen, pool, recorded, left_out), pool, left_out)
        causes_views: dict[Format, Callable[[], str | Sequence[Line]]] = {
            Format.JSON: lambda: render.causes_data(causes),
            Format.TABLE: lambda: render.causes_lines(causes, verdicts, left_out, session.output.width),
        }
        session.show_report(causes_views, lambda: [render.causes_table(causes)], "causes", output_format)
        return ExitCode.DONE
    if pools:
        verdicts = tuple(
            verdict._replace(pools={name: result for name, result in verdict.pools.items() if name in pools})
            for verdict in verdicts
        )
    flawed = {finding.record for finding in problems if finding.code in ("C103", "C104")}
    flawed_ids = [verdict.claim.id for verdict in verdicts if verdict.holds and verdict.claim.id in flawed]
    robust = {}
    if stressed:
        from orchtrace_corpus.corpus.analysis.stress import stress

        robust = {result.claim.id: result for result in stress(chosen, pool, recorded)}
    report = render.ClaimReport(verdicts, robust, unread, flawed_ids, reading, compared)
    views: dict[Format, Callable[[], str | Sequence[Line]]] = {Format.JSON: lambda: render.data(report)}
    if names:
        views[Format.TABLE] = lambda: render.cards(report, session.output.width)
        views[Format.MARKDOWN] = lambda: render.cards_markdown(report)
    is_whole = show_all or output_format is not Format.TABLE
    disputed = {key for verdict in verdicts for key in verdict.contested}
    agreed = disputed & {
        dispute.record for dispute in recorded if dispute.agreed and dispute.state is disputes.State.OPEN
    }
    is_marked = bool(agreed) and reading is ReadingName.PUBLISHED
    note = render.disputed_text(len(disputed), len(agreed), pool.taxonomy.noun) if is_marked else ""
    width = session.output.width if output_format is Format.TABLE else None

    def table() -> Table:
        if names or output_format is Format.CSV:
            return render.flat(report)
        return render.overview(report, tuple(pools or ()), width, is_whole=is_whole, note=note)

    session.show_report(views, lambda: [table()], "claims", output_format)
    further = [finding for finding in problems if finding.code != "C101"]
    for finding in further:
        session.output.tell(str(finding))
    if is_malformed(further):
        return ExitCode.UNREADABLE
    holds = [compared[verdict.claim.id].published if compared else verdict.holds for verdict in verdicts]
    return ExitCode.FINDINGS if further or not all(holds) else ExitCode.DONE


def _select_claims(file: ClaimFile, names: Sequence[str]) -> tuple[list[Claim], list[str]]:
    """Return the claims with some ids, all without any, and the ids of those that could not be read."""
    claims = {claim.id: claim for claim in file.claims}
    if not names:
        return list(claims.values()), list(file.unread)
    allowed = list(dict.fromkeys((*claims, *filter(None, file.unread))))
    for name in names:
        if name not in allowed:
            raise CommandUseError(f"there is no claim {quote(name)}{suggestion(name, allowed, always_list=False)}")
    chosen = [claims[name] for name in dict.fromkeys(names) if name in claims]
    return chosen, [name for name in file.unread if name in names]
