"""The commands that concern both `corpus` and `trace`: `check` and `rule`."""

from orchtrace_corpus.base.annotations import Annotated
from orchtrace_corpus.base.commands.declarations import Argument, Context, Option
from orchtrace_corpus.base.commands.options import FindingsForm, Strict
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.findings import codes_with_prefix, quote
from orchtrace_corpus.base.text import rules as render
from orchtrace_corpus.base.text.findings import FindingsFormat
from orchtrace_corpus.cli.checking import CheckedPart, Stale, check_all, check_data, check_form, fix_form, fix_values
from orchtrace_corpus.corpus.cli import offers
from orchtrace_corpus.corpus.cli.options import argument, option

_MAX_WIDTH = 100


def check(
    ctx: Context,
    part: Annotated[
        CheckedPart | None, argument("[data|form]", "Check only the data files, or only their canonical form.")
    ] = None,
    fix: Annotated[bool, Option("--fix", help="Fix what needs no decision, then check.")] = False,
    wanted: Annotated[
        list[str] | None, option("--select", "CODE", "Only these codes, such as D or V1 (repeatable).", offers.codes)
    ] = None,
    ignored: Annotated[
        list[str] | None, option("--ignore", "CODE", "Exclude these codes (repeatable).", offers.codes)
    ] = None,
    strict: Strict = False,
    max_findings: Annotated[
        int, Option("--max-findings", metavar="N", min=0, help="Show at most N findings of the data; 0 shows all.")
    ] = 0,
    stale: Annotated[Stale, Option(help="Whether stale generated files are errors.", show_default=True)] = Stale.ERROR,
    output_format: FindingsForm = FindingsFormat.TEXT,
) -> int:
    """Run every check of CI, in one process.

    Checks the data, its canonical form, the claims and the other data files, the example traces, and that
    generated files are what "corpus build" would write. Shows each finding as "file:line:column: CODE message
    [record]" ("corpus rule CODE" explains it), then a line for each part. Exit code 0: nothing wrong, or
    warnings only; 1: errors; 3: a file is not readable. Syntax errors (Y) are always shown, because they
    hide other errors. For pull requests that change only data, "--stale notice" reports stale generated
    files without failing.

    "check data" lists every finding in the data files, and nothing else; "check form" shows what the
    canonical form would change. --fix corrects values where that needs no decision, and shows them; then it
    writes the canonical form: records and fields in order, one line for each scalar, quotes only where
    needed, comments kept. With --select, only values with these codes are corrected.

    \b
    Examples:
      corpus check
      corpus check --fix
      corpus check --stale notice
      corpus check data --select D --max-findings 20
      corpus check data --strict --ignore M105
      corpus check data --format github
      corpus check data --fix --select M106
      corpus check form
    """
    from orchtrace_corpus.corpus.cli.session import CorpusSession

    session = CorpusSession(*ctx.obj)
    wanted = wanted or []
    ignored = ignored or []
    if part is CheckedPart.FORM:
        if wanted or ignored or strict or max_findings or output_format is not FindingsFormat.TEXT:
            raise CommandUseError("check form has no findings, only a difference", "Leave out other options but --fix.")
        return check_form(session, fix=fix)
    if fix:
        fix_values(session, wanted, ignored)
    if part is CheckedPart.DATA:
        return check_data(
            session, wanted, ignored, strict=strict, max_findings=max_findings, output_format=output_format, fixed=fix
        )
    if fix and not wanted:
        fix_form(session)
    return check_all(
        session, wanted, ignored, strict=strict, max_findings=max_findings, output_format=output_format, stale=stale
    )


def rule(
    ctx: Context,
    code: Annotated[
        str,
        Argument(
            metavar="[CODE]", help="A code, or the beginning of several.", show_default=False, offers=offers.codes
        ),
    ] = "",
    every: Annotated[bool, Option("--all", help="Explain every rule.")] = False,
) -> int:
    """Explain a rule: why it exists, what breaks it, and how to fix it.

    The excerpts name fields and terms of the corpus that comes with the tool.

    \b
    Examples:
      corpus rule V102
      corpus rule D
      corpus rule --all
    """
    # These packages register their rules when they are imported.
    import orchtrace_corpus.base.yamlfile
    import orchtrace_corpus.corpus
    import orchtrace_corpus.trace  # noqa: F401

    session: Session = ctx.obj
    if every and code:
        raise CommandUseError(f"--all explains {quote(code)}, too; give one of the two")
    if not every and not code:
        hint = "Name a code, such as corpus rule V102, or see them all: corpus rule --all"
        raise CommandUseError("which rule?", hint)
    if code == "waive":
        hint = "A record says: waive: [{code: E102, why: ...}]; corpus rule CODE says whether a record can waive it."
        raise CommandUseError("'waive' is not a rule but a field of records", hint)
    codes = render.all_codes()
    if not every:
        matching = codes_with_prefix(code)
        codes = [each for each in codes if each in matching]
    width = min(session.output.width or _MAX_WIDTH, _MAX_WIDTH)
    session.output.show(render.lines(codes, width))
    return ExitCode.DONE
