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

    Checks each claim of data/claims.yaml against the records of the corpus. A claim fails if it does not hold as
    written (exit code 1). It falls if it holds as written, but not over a later pool or by another reading; this is no
    error. Claims that fail, fall or are contested come first; if the list is cut to the screen, it counts the others.

    A claim about the published pool is also checked over two later pools. The pool "today" contains every paper of
    the corpus; the papers that make a claim fall are named. The pool "candidates" adds the candidates proposed for
    inclusion: "falls at 3/15" means that 15 of them count for the claim, and that it falls when the third is added.
    A candidate does not count if a tag on which the claim depends is open. A claim "could fall" if it falls with
    the least favourable terms for such tags. --with candidates names the candidates by which claims fall or could
    fall, with their tags and sources.

    With ids, shows the records, those contested in data/disputes.yaml, the boundary of the claim (what it does not say)
    and the evidence against it. --stress gives disputed tags their other term, includes near misses with the tags least
    favourable to the claim, and leaves records out. Claims that any one record breaks, but no dispute, are only
    counted. --reading sources uses the tags on which readers of the sources agree instead of the published tags, and
    names the tags by which a claim falls.

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
    as_published = session.pool()
    claim_file, dispute_file = files.claims, files.disputes
    selected, unread = _select_claims(claim_file, names or [])
    reading_verdicts: Mapping[str, ReadingVerdict] = {}
    if reading is ReadingName.SOURCES:
        from orchtrace_corpus.corpus.analysis.stress import compare_readings

        reading_verdicts = compare_readings(selected, as_published, dispute_file.require())
    pool = disputes.pool_as_read(as_published, dispute_file.items, reading)
    disputes_as_read = disputes.disputes_as_read(dispute_file.items, reading)
    candidate_file = files.candidates
    if with_records and candidate_file.is_missing:
        raise DataFileError(f"this corpus has no {store.CANDIDATES}", "docs/data.md of orchtrace-corpus describes it.")
    proposed = None if candidate_file.is_missing else select_proposed(candidate_file.require())
    verdicts = core.evaluate(selected, pool, disputes_as_read, proposed)
    published_verdicts = verdicts if reading is ReadingName.PUBLISHED else ()
    problems = core.check(claim_file, as_published, published_verdicts)
    problems += disputes.check(dispute_file, as_published)
    if with_records and proposed is not None:
        from orchtrace_corpus.corpus.analysis.stress import causes as find_causes

        # Candidates that are not proposed for inclusion are tested separately.
        left_out = [item for item in candidate_file.items if item not in proposed]
        causes = find_causes(verdicts, pool, proposed)
        causes += find_causes(core.evaluate(selected, pool, disputes_as_read, left_out), pool, left_out)
        causes_views: dict[Format, Callable[[], str | Sequence[Line]]] = {
            Format.JSON: lambda: render.causes_data(causes),
            Format.TABLE: lambda: render.causes_lines(causes, verdicts, left_out, session.output.width),
        }
        session.show_report(causes_views, lambda: [render.causes_table(causes)], "causes", output_format)
        return ExitCode.DONE
    if pools:
        all_verdicts, verdicts = verdicts, ()
        for verdict in all_verdicts:
            results = {name: result for name, result in verdict.pools.items() if name in pools}
            verdicts += (verdict._replace(pools=results),)
    wrong_ids = {finding.record for finding in problems if finding.code in ("C103", "C104")}
    flawed_ids = [verdict.claim.id for verdict in verdicts if verdict.holds and verdict.claim.id in wrong_ids]
    stress_results = {}
    if stressed:
        from orchtrace_corpus.corpus.analysis.stress import stress

        stress_results = {result.claim.id: result for result in stress(selected, pool, disputes_as_read)}
    report = render.ClaimReport(verdicts, stress_results, unread, flawed_ids, reading, reading_verdicts)
    views: dict[Format, Callable[[], str | Sequence[Line]]] = {Format.JSON: lambda: render.data(report)}
    if names:
        views[Format.TABLE] = lambda: render.cards(report, session.output.width)
        views[Format.MARKDOWN] = lambda: render.cards_markdown(report)
    is_whole = show_all or output_format is not Format.TABLE
    contested = {key for verdict in verdicts for key in verdict.contested}
    open_disputes = [dispute for dispute in disputes_as_read if dispute.state is disputes.State.OPEN]
    agreed = contested & {dispute.record for dispute in open_disputes if dispute.agreed}
    note = ""
    if agreed and reading is ReadingName.PUBLISHED:
        note = render.disputed_text(len(contested), len(agreed), pool.taxonomy.noun)
    width = session.output.width if output_format is Format.TABLE else None

    def table() -> Table:
        if names or output_format is Format.CSV:
            return render.flat_table(report)
        return render.overview(report, tuple(pools or ()), width, is_whole=is_whole, note=note)

    session.show_report(views, lambda: [table()], "claims", output_format)
    other_problems = [finding for finding in problems if finding.code != "C101"]  # the report shows claims that fail
    for finding in other_problems:
        session.output.tell(str(finding))
    if is_malformed(other_problems):
        return ExitCode.UNREADABLE
    # With --reading sources, only a claim that fails as published is an error.
    ids_and_holds = ((verdict.claim.id, verdict.holds) for verdict in verdicts)
    holds = [reading_verdicts[name].published if reading_verdicts else held for name, held in ids_and_holds]
    return ExitCode.FINDINGS if other_problems or not all(holds) else ExitCode.DONE


def _select_claims(file: ClaimFile, names: Sequence[str]) -> tuple[list[Claim], list[str]]:
    """Return the claims with the ids `names`, or if empty all claims, and the ids among them that cannot be read."""
    claims = {claim.id: claim for claim in file.claims}
    if not names:
        return list(claims.values()), list(file.unread)
    allowed = list(dict.fromkeys((*claims, *filter(None, file.unread))))
    for name in names:
        if name not in allowed:
            raise CommandUseError(f"there is no claim {quote(name)}{suggestion(name, allowed, always_list=False)}")
    selected = [claims[name] for name in dict.fromkeys(names) if name in claims]
    return selected, [name for name in file.unread if name in names]
