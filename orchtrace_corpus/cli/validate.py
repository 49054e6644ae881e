"""`corpus validate`."""

from collections.abc import Sequence
from typing import Annotated

import typer

from orchtrace_corpus.cli.options import FindingsForm, Strict
from orchtrace_corpus.cli.session import Session
from orchtrace_corpus.errors import CommandUseError, ExitCode
from orchtrace_corpus.findings import Finding, codes, has_errors, is_malformed, select
from orchtrace_corpus.pool import rules, store
from orchtrace_corpus.pool.fixes import FIXES, changes
from orchtrace_corpus.render import findings as render
from orchtrace_corpus.render.findings import FindingsFormat

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_MOST_ROUNDS = 5


@app.command()
def validate(
    ctx: typer.Context,
    wanted: Annotated[
        list[str] | None,
        typer.Option("--select", metavar="CODE", help="Only these codes, such as D or V1 (repeatable)."),
    ] = None,
    ignored: Annotated[
        list[str] | None, typer.Option("--ignore", metavar="CODE", help="Leave these codes out (repeatable).")
    ] = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="Mend what needs no decision, show the diff, then report the rest.")
    ] = False,
    strict: Strict = False,
    max_findings: Annotated[
        int, typer.Option("--max-findings", metavar="N", min=0, help="Show no more than N findings; 0 shows all.")
    ] = 0,
    output_format: FindingsForm = FindingsFormat.TEXT,
) -> int:
    """Report every mistake in the data, at its line.

    Each finding is a line "file:line:column: CODE message [record]"; "corpus rule CODE" explains
    it. Exit code 0: nothing wrong, or warnings only; 1: errors; 3: a file is not readable as YAML.
    Findings of syntax (Y) are always shown, since they hide what stands behind them.

    \b
    Examples:
      corpus validate
      corpus validate --strict --ignore M105
      corpus validate --select D --max-findings 20
      corpus validate --format github
      corpus validate --fix --select M106
      corpus --root path/to/corpus validate
    """
    session = Session(*ctx.obj)
    chosen = [code for prefixes in wanted or [] for prefix in prefixes.split(",") for code in codes(prefix.strip())]
    unwanted = [code for prefixes in ignored or [] for prefix in prefixes.split(",") for code in codes(prefix.strip())]
    if chosen and set(chosen) <= set(unwanted):
        raise CommandUseError("--ignore leaves out everything that --select names", "Give one of them.")
    root = session.writable_root()
    if fix:
        _mend(session, chosen, unwanted)
    loaded = store.load(root)
    everything = (*rules.check(loaded), *store.read_scale(root, loaded).findings)
    found = select(everything, chosen, unwanted)
    limit = max_findings or len(found)
    session.show_findings(found, output_format, limit)
    if len(found) > limit:
        session.output.note(f"… and {len(found) - limit} more; --max-findings {limit} leaves them out")
    pool = loaded.pool
    checked = f" in {render.numbered(pool)}" if pool else " in the taxonomy"
    left_out = len(everything) - len(found)
    checked += f"; {left_out} more left out by --select or --ignore" if left_out else ""
    session.output.note(f"{render.summary(found)}{checked}")
    if not fix and _can_be_mended(root, found):
        session.output.note("Some of these can be mended for you: corpus validate --fix")
    if is_malformed(found):
        return ExitCode.UNREADABLE
    return ExitCode.FINDINGS if has_errors(found) or (strict and found) else ExitCode.DONE


def _mend(session: Session, chosen: Sequence[str], unwanted: Sequence[str]) -> None:
    """Mend the findings that can be, and show what changed."""
    from orchtrace_corpus import build

    root = session.writable_root()
    for _ in range(_MOST_ROUNDS):  # a value may have several mistakes, and is mended one at a time
        loaded = store.load(root, keep=True)
        documents = build.mended_documents(root, loaded, select(rules.check(loaded), chosen, unwanted))
        for document in documents:
            session.output.tell(document.diff.rstrip("\n"))
        for name in build.write(root, documents):
            session.output.note(f"mended {name}")
        if not documents:
            break


def _can_be_mended(root: str, found: Sequence[Finding]) -> bool:
    """Whether `--fix` would change anything."""
    if not any(finding.code in FIXES for finding in found):
        return False
    loaded = store.load(root, keep=True)
    return any(changes(places.file, found) for places in (loaded.paper_places, loaded.exclusion_places))
