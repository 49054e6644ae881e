"""Show the findings of `corpus check` in both wings, without Typer.

What writes files is imported where it is needed: `corpus check data` has to start fast.
"""

import os
from collections.abc import Sequence
from enum import StrEnum

from orchtrace_corpus.base.errors import CorpusError, ExitCode
from orchtrace_corpus.base.files import Document, write_stale
from orchtrace_corpus.base.findings import Finding, Severity, errors_first, has_errors, select
from orchtrace_corpus.base.text import findings as render
from orchtrace_corpus.base.text.findings import FindingsFormat
from orchtrace_corpus.base.text.layout import (
    Line,
    Span,
    first_and_more,
    first_names_and_more,
    plain,
    pluralize,
    wrapped,
)
from orchtrace_corpus.corpus.checks import Part, PartName, check_parts, exit_code_of, fixing_commands, read_codes
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.model.store import CorpusFiles

_DIFF_LINES = 40
"""The lines shown of each file's difference; more would push the summary off the screen."""

_MAX_NAMED = 4
"""The number of stale files, or of failing claims, that are named."""

_TRACES, _REWARDS = os.path.join("data", "traces"), os.path.join("data", "rewards")

_FIX = "corpus check --fix"

_MAX_ROUNDS = 5
"""The rounds of fixes: a value may have several mistakes, and they are fixed one at a time."""

_FIXES: dict[str, str] = {PartName.FORM: _FIX, PartName.ARXIV: "corpus fetch --offline --write"}
"""The command that fixes each part whose findings do not name it."""

_COUNTED = {
    "published": ("correction", "corrections"),
    "protocol": ("query", "queries"),
    "searches": ("run", "runs"),
}
"""The nouns counted in the parts of data files; entries in the others."""


class Stale(StrEnum):
    """The treatment of stale generated files: an error or a notice."""

    ERROR = "error"
    NOTICE = "notice"


class CheckedPart(StrEnum):
    """The parts of a check that can be asked for alone; the others have commands of their own."""

    DATA = "data"
    FORM = "form"


def fix_values(session: CorpusSession, wanted: Sequence[str], ignored: Sequence[str]) -> None:
    """Fix the findings that need no decision, of the wanted codes that are not ignored, and show the difference."""
    from orchtrace_corpus.corpus.build import fixed_documents

    root = session.writable_root()
    codes = read_codes(wanted, ignored)
    for _ in range(_MAX_ROUNDS):
        files = CorpusFiles(root)
        documents = fixed_documents(files, select(tuple(files.findings(PartName.DATA)), *codes))
        for document in documents:
            session.output.tell(document.diff.rstrip("\n"))
        for name in write_stale(root, documents):
            session.output.note(f"fixed {name}")
        if not documents:
            break


def fix_form(session: CorpusSession) -> None:
    """Write the data files in canonical form, unless they have errors."""
    files = CorpusFiles(session.writable_root())
    if files.loaded.pool is not None and not has_errors(tuple(files.findings(PartName.DATA))):
        check_form(session, fix=True)


def check_form(session: CorpusSession, *, fix: bool) -> ExitCode:
    """Write the data files in canonical form, or show what would change, and return the exit code."""
    from orchtrace_corpus.corpus.build import data_documents
    from orchtrace_corpus.corpus.cli.generate import write_or_check

    root = session.writable_root()
    return write_or_check(session, root, data_documents(CorpusFiles(root)), check=not fix, fix=_FIX)


def check_data(
    session: CorpusSession,
    wanted: Sequence[str],
    ignored: Sequence[str],
    *,
    strict: bool,
    max_findings: int,
    form: FindingsFormat,
    fixed: bool,
) -> ExitCode:
    """Show every finding in the data files, and return the exit code; `fixed` says that `fix_values` ran before."""
    files = CorpusFiles(session.writable_root())
    codes = read_codes(wanted, ignored)
    everything = tuple(files.findings(PartName.DATA))
    findings, pool = select(everything, *codes), files.loaded.pool
    limit = max_findings or len(findings)
    session.show_findings(errors_first(findings, max_findings), form, limit)
    if len(findings) > limit:
        session.output.note(f"… and {len(findings) - limit} more; --max-findings {limit} leaves them out")
    checked = "the taxonomy"
    if pool is not None:
        counts = [pool.taxonomy.noun.counted(len(pool.papers)), pluralize(len(pool.exclusions), "exclusion")]
        if files.candidates.total:
            counts.append(pluralize(files.candidates.total, "candidate"))
        checked = " and ".join((", ".join(counts[:-1]), counts[-1]))
    left_out = len(everything) - len(findings)
    others = f"; {left_out} more left out by --select or --ignore" if left_out else ""
    session.output.note(f"{render.summary(findings)} in {checked}{others}")
    if fixes := [command for command in fixing_commands(files, findings) if not (fixed and command == _FIX)]:
        session.output.note(f"To fix some of these: {_joined(fixes)}")
    return exit_code_of(findings, strict=strict)


def check_all(
    session: CorpusSession,
    wanted: Sequence[str] = (),
    ignored: Sequence[str] = (),
    *,
    strict: bool = False,
    max_findings: int = 0,
    form: FindingsFormat = FindingsFormat.TEXT,
    stale: Stale = Stale.ERROR,
) -> ExitCode:
    """Show the findings and a line for each part of what CI asks, and return the worst exit code.

    In a form for programs, the findings of all parts are one document, and the lines go to standard error.
    """
    root = session.writable_root()
    lines: list[Line] = []
    findings: list[Finding] = []
    codes = read_codes(wanted, ignored)
    is_text, width = form is FindingsFormat.TEXT, session.output.width
    code = ExitCode.DONE
    for part in check_parts(session.files):
        if part.findings:
            chosen = select(part.findings, *codes)
            part = part._replace(findings=chosen, exit_code=exit_code_of(chosen, strict=strict))
            findings += chosen
        if is_text:
            command = "corpus check data" if part.name == PartName.DATA else ""  # it checks no other part
            shown = errors_first(part.findings, max_findings)[: max_findings or None]
            session.output.show([*wrapped(render.folded(shown, command), width)])
        if part.name == PartName.BUILD and part.stale:  # building fixes all of it
            lines.append(_stale_line(part.stale, stale))
            code = max(code, ExitCode.FINDINGS if stale is Stale.ERROR else ExitCode.DONE)
            continue
        for document in part.stale if is_text else ():
            lines_of_diff = document.diff.splitlines(keepends=True)
            hint = ": corpus check form" if part.name == PartName.FORM else ""
            shown_lines = first_and_more(lines_of_diff, _DIFF_LINES, f"... {{}} more lines{hint}\n")
            session.output.write("".join(shown_lines))
        lines.append(_part_line(part))
        code = max(code, part.exit_code)
    trace_findings, sections, trace_code = _check_traces(root)
    errors = [finding for finding in trace_findings if finding.severity is Severity.ERROR]
    if is_text:
        lines = [*render.text(errors), *lines, *sections]
        session.output.show([*wrapped(lines, width)])
    else:
        session.show_findings([*findings, *errors], form)
        session.output.note(plain([*lines, *sections]).rstrip("\n"))
    return max(code, trace_code)


def _check_traces(root: str) -> tuple[list[Finding], list[Line], ExitCode]:
    """Check the example traces and the specifications of rewards: findings, a line for each, and the exit code."""
    findings, sections, code = list[Finding](), list[Line](), ExitCode.DONE
    if os.path.isdir(os.path.join(root, _TRACES)):
        findings, line, code = _check_examples(root)
        sections.append(line)
    if os.path.isdir(os.path.join(root, _REWARDS)):
        line, reward_code = _check_rewards(root)
        sections.append(line)
        code = max(code, reward_code)
    return findings, sections, code


def _check_examples(root: str) -> tuple[list[Finding], Line, ExitCode]:
    """Check the example traces. Of warnings, only the number is shown."""
    from orchtrace_corpus.trace.model.store import is_unreadable, trace_files
    from orchtrace_corpus.trace.rules import plain_warnings

    try:
        paths = list(trace_files(os.path.join(root, _TRACES)))
        findings, count = plain_warnings(paths), len(paths)
        if findings is None:
            from orchtrace_corpus.trace.model.decode import documents
            from orchtrace_corpus.trace.rules import validate

            places = ((os.path.relpath(path, root), path) for path in paths)
            shown = (document._replace(path=place) for place, path in places for document in documents(path))
            validation = validate(shown)
            findings, count = list(validation.findings), validation.traces
    except CorpusError as error:
        return [], _failed_line("traces", error), error.exit_code
    summary = f"{render.summary(findings)} in {pluralize(count, 'trace')}"
    code = ExitCode.FINDINGS if has_errors(findings) else ExitCode.DONE
    if is_unreadable(findings):
        code = ExitCode.UNREADABLE
    return findings, _line("traces", code is ExitCode.DONE, summary, "see corpus trace validate data/traces"), code


def _check_rewards(root: str) -> tuple[Line, ExitCode]:
    """Read the specifications of rewards, and return their line and the exit code."""
    from orchtrace_corpus.trace.rewards import load

    names = sorted(name for name in os.listdir(os.path.join(root, _REWARDS)) if name.endswith(".yaml"))
    try:
        for name in names:
            load(os.path.join(root, _REWARDS, name))
    except CorpusError as error:
        return _failed_line("rewards", error), error.exit_code
    return _line("rewards", True, pluralize(len(names), "specification"), ""), ExitCode.DONE


def _part_line(part: Part) -> Line:
    if part.is_skipped:
        return (Span(f"{part.name:9} skipped: the data has errors", "muted"),)
    if part.failure is not None:
        return _failed_line(part.name, part.failure)
    if part.findings or part.name == PartName.DATA:
        summary = render.summary(part.findings)
    elif part.coverage is not None:
        sums = part.coverage
        summary = f"{sums.sourced} of {pluralize(sums.tags, 'tag')} have evidence, {sums.primary} primary"
        summary += f"; {sums.contradicted} contradicted" if sums.contradicted else ""
    elif part.name == "claims":
        summary = _claims_summary(part)
    elif part.name == "disputes":
        summary = f"{part.total}, as in the data"
    elif part.examples:
        count = pluralize(len(part.examples), "line is still that", "lines are still those")
        lines: dict[str, list[str]] = {}
        for name, _, line in (place.rpartition(":") for place in part.examples):
            lines.setdefault(name, []).append(line)
        places = "; ".join(f"{name}:{', '.join(numbers)}" for name, numbers in lines.items())
        summary = f"{count} of corpus init's example; to make yours: {places}"
    elif part.name in list(PartName):
        names = ", ".join(document.name for document in part.stale)
        summary = f"not in canonical form: {names}" if names else "up to date"
    else:
        summary = pluralize(part.total, *_COUNTED.get(part.name, ("entry", "entries")))
    fix = _FIXES.get(part.name, "see above")
    fix += f"; some of it: {_joined(part.fixes)}" if part.fixes else ""
    return _line(part.name, part.exit_code is ExitCode.DONE, summary, fix)


def _joined(commands: Sequence[str]) -> str:
    """Return commands on one line; of many, the first ones and the number of the others."""
    return "; ".join(first_and_more(commands, _MAX_NAMED, "and {} more"))


def _claims_summary(part: Part) -> str:
    """Return the numbers of claims that hold, that count contested papers, and that fail over the pool of today."""
    summary = f"{part.total} hold{'s' * (part.total == 1)}"
    summary += f", {part.contested} of them with contested tags" if part.contested else ""
    if not part.falling:
        return summary
    names, since = part.falling, ""
    if part.fell is not None:  # those that fail since the last commit come first
        names = tuple(dict.fromkeys((*part.fell, *part.falling)))
        since = f", {len(part.fell) or 'none'} of them since the last commit"
    failing = f"{len(names)} fall{'s' * (len(names) == 1)} over the pool of today{since}, which is no error"
    return f"{summary}; {failing}: {first_names_and_more(names, _MAX_NAMED)}"


def _stale_line(stale: Sequence[Document], kind: Stale) -> Line:
    from orchtrace_corpus.corpus import build

    names = []
    for document in stale:
        regions = build.edited_regions(document) if document.name == build.README else []
        state = f" (region {', '.join(regions)})" if regions else ""
        if document.is_orphan:
            state = " (no longer made)"
        if document.present is None:
            state = " (missing)"
        names.append(f"{document.name}{state}")
    count = f"{pluralize(len(stale), 'generated file')} {'is' if len(stale) == 1 else 'are'} stale"
    verdict, fix = "stale  ", "nothing to commit, they are regenerated after the merge"
    if kind is Stale.ERROR:
        verdict, fix = "failed ", "run corpus build, or check --stale notice for a pull request"
    text = f"{count}; {fix}: {first_names_and_more(names, _MAX_NAMED)}"
    return (Span(f"{PartName.BUILD:9} "), Span(verdict, "warning"), Span(text))


def _failed_line(name: str, failure: CorpusError) -> Line:
    return _line(name, False, str(failure).replace(":\n", ": ").replace("\n", "; "), "")


def _line(name: str, passed: bool, summary: str, fix: str) -> Line:
    verdict = Span("ok     ", "explicit") if passed else Span("failed ", "warning")
    action = "" if passed or not fix else f"; to fix: {fix}"
    return (Span(f"{name:9} "), verdict, Span(f"{summary}{action}"))
