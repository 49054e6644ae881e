"""The command `corpus check`: show and fix findings in the data of `corpus` and in the examples of `trace`.

Modules that write files are imported where they are needed, so that `corpus check data` starts fast.
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
"""The number of lines of a file's difference that are shown; more would push the summary off the screen."""

_MAX_NAMED = 4
"""The number of stale files, of failing claims or of commands that a line names."""

_TRACES = os.path.join("data", "traces")
_REWARDS = os.path.join("data", "rewards")

_FIX = "corpus check --fix"

_MAX_ROUNDS = 5
"""The number of rounds of fixes: a value may have several problems, and each round fixes one."""

_FIXES: dict[str, str] = {PartName.FORM: _FIX, PartName.ARXIV: "corpus fetch --offline --write"}
"""The commands that fix a part of the check. The findings of other parts say how to fix them."""

_NOUNS = {
    "published": ("correction", "corrections"),
    "protocol": ("query", "queries"),
    "searches": ("run", "runs"),
}
"""The nouns for the entries of some data files, in singular and plural; those of other files are called entries."""


class Stale(StrEnum):
    """The treatment of stale generated files: an error or a notice."""

    ERROR = "error"
    NOTICE = "notice"


class CheckedPart(StrEnum):
    """The parts that `corpus check` can check alone."""

    DATA = "data"
    FORM = "form"


def fix_values(session: CorpusSession, wanted: Sequence[str], ignored: Sequence[str]) -> None:
    """Fix the findings that need no decision, and show the difference.

    Args:
        session: The session of the command.
        wanted: The codes to fix, or beginnings of codes; empty for all.
        ignored: The codes not to fix, or beginnings of codes.
    """
    from orchtrace_corpus.corpus.build import fixed_documents

    root = session.writable_root()
    wanted_codes, ignored_codes = read_codes(wanted, ignored)
    for _ in range(_MAX_ROUNDS):
        files = CorpusFiles(root)
        findings = select(tuple(files.findings(PartName.DATA)), wanted_codes, ignored_codes)
        documents = fixed_documents(files, findings)
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
    output_format: FindingsFormat,
    fixed: bool,
) -> ExitCode:
    """Show every finding in the data files, and return the exit code.

    Args:
        session: The session of the command.
        wanted: The codes to show, or beginnings of codes; empty for all.
        ignored: The codes not to show, or beginnings of codes.
        strict: True to treat warnings as errors.
        max_findings: The number of findings that are shown; 0 for all.
        output_format: The format of the findings.
        fixed: True if `fix_values` has fixed what it can: then the command that calls it is not suggested.
    """
    files = CorpusFiles(session.writable_root())
    wanted_codes, ignored_codes = read_codes(wanted, ignored)
    all_findings = tuple(files.findings(PartName.DATA))
    findings = select(all_findings, wanted_codes, ignored_codes)
    limit = max_findings or len(findings)
    session.show_findings(errors_first(findings, max_findings), output_format, limit)
    if len(findings) > limit:
        session.output.note(f"… and {len(findings) - limit} more; --max-findings {limit} leaves them out")
    checked = "the taxonomy"
    pool = files.loaded.pool
    if pool is not None:
        counts = [pool.taxonomy.noun.counted(len(pool.papers)), pluralize(len(pool.exclusions), "exclusion")]
        if files.candidates.total:
            counts.append(pluralize(files.candidates.total, "candidate"))
        *first_counts, last_count = counts
        checked = f"{', '.join(first_counts)} and {last_count}"
    summary = f"{render.summary(findings)} in {checked}"
    left_out_count = len(all_findings) - len(findings)
    if left_out_count:
        summary += f"; {left_out_count} more left out by --select or --ignore"
    session.output.note(summary)
    commands = [command for command in fixing_commands(files, findings) if not fixed or command != _FIX]
    if commands:
        session.output.note(f"To fix some of these: {_joined(commands)}")
    return exit_code_of(findings, strict=strict)


def check_all(
    session: CorpusSession,
    wanted: Sequence[str] = (),
    ignored: Sequence[str] = (),
    *,
    strict: bool = False,
    max_findings: int = 0,
    output_format: FindingsFormat = FindingsFormat.TEXT,
    stale: Stale = Stale.ERROR,
) -> ExitCode:
    """Check everything that CI checks; show the findings, then a line for each part, and return the worst exit code.

    In a format for programs, the findings of all parts are one document, and the lines go to standard error. The
    arguments are those of `check_data`; `stale` says how stale generated files are treated.
    """
    root = session.writable_root()
    lines: list[Line] = []
    findings: list[Finding] = []
    wanted_codes, ignored_codes = read_codes(wanted, ignored)
    is_text = output_format is FindingsFormat.TEXT
    width = session.output.width
    code = ExitCode.DONE
    for part in check_parts(session.files):
        if part.findings:
            selected = select(part.findings, wanted_codes, ignored_codes)
            part = part._replace(findings=selected, exit_code=exit_code_of(selected, strict=strict))
            findings += selected
        if is_text:
            command = "corpus check data" if part.name == PartName.DATA else ""  # it checks no other part
            listed = errors_first(part.findings, max_findings)
            if max_findings:
                listed = listed[:max_findings]
            session.output.show([*wrapped(render.folded(listed, command), width)])
        if part.name == PartName.BUILD and part.stale:  # `corpus build` fixes them, so no differences are shown
            lines.append(_stale_line(part.stale, stale))
            if stale is Stale.ERROR:
                code = max(code, ExitCode.FINDINGS)
            continue
        if is_text:
            for document in part.stale:
                diff_lines = document.diff.splitlines(keepends=True)
                hint = ": corpus check form" if part.name == PartName.FORM else ""
                session.output.write("".join(first_and_more(diff_lines, _DIFF_LINES, f"... {{}} more lines{hint}\n")))
        lines.append(_part_line(part))
        code = max(code, part.exit_code)
    trace_findings, trace_lines, trace_code = _check_traces(root)
    lines += trace_lines
    errors = [finding for finding in trace_findings if finding.severity is Severity.ERROR]
    if is_text:
        session.output.show([*wrapped([*render.text(errors), *lines], width)])
    else:
        session.show_findings([*findings, *errors], output_format)
        session.output.note(plain(lines).rstrip("\n"))
    return max(code, trace_code)


def _check_traces(root: str) -> tuple[list[Finding], list[Line], ExitCode]:
    """Check the example traces and the specifications of rewards.

    Returns:
        The findings, a line for the traces and one for the rewards, and the worst exit code.
    """
    findings: list[Finding] = []
    lines: list[Line] = []
    code = ExitCode.DONE
    if os.path.isdir(os.path.join(root, _TRACES)):
        findings, line, code = _check_examples(root)
        lines.append(line)
    if os.path.isdir(os.path.join(root, _REWARDS)):
        line, reward_code = _check_rewards(root)
        lines.append(line)
        code = max(code, reward_code)
    return findings, lines, code


def _check_examples(root: str) -> tuple[list[Finding], Line, ExitCode]:
    """Check the example traces, and return the findings, a line for them, and the exit code."""
    from orchtrace_corpus.trace.model.store import is_unreadable, trace_files
    from orchtrace_corpus.trace.rules import plain_warnings

    try:
        paths = list(trace_files(os.path.join(root, _TRACES)))
        trace_count = len(paths)
        findings = plain_warnings(paths)  # a fast check; None if a file needs the full one
        if findings is None:
            from orchtrace_corpus.trace.model.decode import documents
            from orchtrace_corpus.trace.rules import validate

            validation = validate(
                document._replace(path=os.path.relpath(path, root)) for path in paths for document in documents(path)
            )
            findings = list(validation.findings)
            trace_count = validation.traces
    except CorpusError as error:
        return [], _failed_line("traces", error), error.exit_code
    summary = f"{render.summary(findings)} in {pluralize(trace_count, 'trace')}"
    code = ExitCode.FINDINGS if has_errors(findings) else ExitCode.DONE
    if is_unreadable(findings):
        code = ExitCode.UNREADABLE
    hint = "see corpus trace validate data/traces"
    return findings, _line("traces", code is ExitCode.DONE, summary, hint), code


def _check_rewards(root: str) -> tuple[Line, ExitCode]:
    """Read the specifications of rewards, and return a line for them and the exit code."""
    from orchtrace_corpus.trace.rewards import load

    names = sorted(name for name in os.listdir(os.path.join(root, _REWARDS)) if name.endswith(".yaml"))
    try:
        for name in names:
            load(os.path.join(root, _REWARDS, name))
    except CorpusError as error:
        return _failed_line("rewards", error), error.exit_code
    return _line("rewards", True, pluralize(len(names), "specification"), ""), ExitCode.DONE


def _part_line(part: Part) -> Line:
    """Return the line about a part of the check."""
    if part.is_skipped:
        return (Span(f"{part.name:9} skipped: the data has errors", "muted"),)
    if part.failure is not None:
        return _failed_line(part.name, part.failure)
    if part.findings or part.name == PartName.DATA:
        summary = render.summary(part.findings)
    elif part.coverage is not None:
        coverage = part.coverage
        summary = f"{coverage.sourced} of {pluralize(coverage.tags, 'tag')} have evidence, {coverage.primary} primary"
        if coverage.contradicted:
            summary += f"; {coverage.contradicted} contradicted"
    elif part.name == "claims":
        summary = _claims_summary(part)
    elif part.name == "disputes":
        summary = f"{part.total}, as in the data"
    elif part.examples:
        count = pluralize(len(part.examples), "line is still that", "lines are still those")
        line_numbers_by_file: dict[str, list[str]] = {}
        for place in part.examples:
            name, _, line_number = place.rpartition(":")
            line_numbers_by_file.setdefault(name, []).append(line_number)
        places = "; ".join(f"{name}:{', '.join(numbers)}" for name, numbers in line_numbers_by_file.items())
        summary = f"{count} of corpus init's example; to make yours: {places}"
    elif part.name in list(PartName):  # parts that compare files
        names = ", ".join(document.name for document in part.stale)
        summary = f"not in canonical form: {names}" if names else "up to date"
    else:
        singular, plural = _NOUNS.get(part.name, ("entry", "entries"))
        summary = pluralize(part.total, singular, plural)
    fix = _FIXES.get(part.name, "see above")
    if part.fixes:
        fix += f"; some of it: {_joined(part.fixes)}"
    return _line(part.name, part.exit_code is ExitCode.DONE, summary, fix)


def _joined(commands: Sequence[str]) -> str:
    """Return commands on one line; if there are many, the first ones and the number of the others."""
    return "; ".join(first_and_more(commands, _MAX_NAMED, "and {} more"))


def _claims_summary(part: Part) -> str:
    """Return the numbers of claims that hold, that depend on contested tags, and that fail for the current pool."""
    summary = f"{part.total} holds" if part.total == 1 else f"{part.total} hold"
    if part.contested:
        summary += f", {part.contested} of them with contested tags"
    if not part.falling:
        return summary
    names = part.falling
    since = ""
    if part.fell is not None:  # those that fail since the last commit come first
        names = tuple(dict.fromkeys((*part.fell, *part.falling)))
        since = f", {len(part.fell) or 'none'} of them since the last commit"
    verb = "falls" if len(names) == 1 else "fall"
    failing = f"{len(names)} {verb} over the pool of today{since}, which is no error"
    return f"{summary}; {failing}: {first_names_and_more(names, _MAX_NAMED)}"


def _stale_line(documents: Sequence[Document], treatment: Stale) -> Line:
    """Return the line about stale generated files."""
    from orchtrace_corpus.corpus import build

    names = []
    for document in documents:
        state = ""
        if document.present is None:
            state = " (missing)"
        elif document.is_orphan:
            state = " (no longer made)"
        elif document.name == build.README:
            regions = build.edited_regions(document)
            if regions:
                state = f" (region {', '.join(regions)})"
        names.append(f"{document.name}{state}")
    verb = "is" if len(documents) == 1 else "are"
    count = f"{pluralize(len(documents), 'generated file')} {verb} stale"
    if treatment is Stale.ERROR:
        verdict = "failed "
        fix = "run corpus build, or check --stale notice for a pull request"
    else:
        verdict = "stale  "
        fix = "nothing to commit, they are regenerated after the merge"
    text = f"{count}; {fix}: {first_names_and_more(names, _MAX_NAMED)}"
    return (Span(f"{PartName.BUILD:9} "), Span(verdict, "warning"), Span(text))


def _failed_line(name: str, error: CorpusError) -> Line:
    """Return the line about a part that could not be checked."""
    return _line(name, False, str(error).replace(":\n", ": ").replace("\n", "; "), "")


def _line(name: str, has_passed: bool, summary: str, fix: str) -> Line:
    """Return the line about a part; `fix` says how to fix it, and may be empty."""
    verdict = Span("ok     ", "explicit") if has_passed else Span("failed ", "warning")
    if fix and not has_passed:
        summary += f"; to fix: {fix}"
    return (Span(f"{name:9} "), verdict, Span(summary))
