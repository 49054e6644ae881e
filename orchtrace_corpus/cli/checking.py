"""Shows what `corpus check` finds in both wings, without Typer."""

import os
from collections.abc import Sequence
from enum import StrEnum

from orchtrace_corpus.base.errors import CorpusError, ExitCode
from orchtrace_corpus.base.findings import Finding, Severity, has_errors
from orchtrace_corpus.base.text import findings as render
from orchtrace_corpus.base.text.layout import Line, Span, first_and_more, first_names_and_more, pluralize, wrapped
from orchtrace_corpus.corpus import build
from orchtrace_corpus.corpus.build import Document
from orchtrace_corpus.corpus.checks import Part, PartName, check_parts
from orchtrace_corpus.corpus.cli.session import CorpusSession

_DIFF_LINES = 40
"""How much of each file's difference is shown; more would push the summary off the screen."""

_NAMED = 4
"""How many of the stale files, or of the claims that fall, are named."""

_TRACES, _REWARDS = os.path.join("data", "traces"), os.path.join("data", "rewards")

_MENDS: dict[str, str] = {PartName.FMT: "corpus fmt", PartName.ARXIV: "corpus fetch --offline --write"}
"""What mends the parts whose findings do not say it."""

_COUNTED = {
    "published": ("correction", "corrections"),
    "protocol": ("query", "queries"),
    "searches": ("run", "runs"),
}
"""What is counted in the parts of data files; entries in the others."""


class Stale(StrEnum):
    """What generated files are that are older than the data: an error, or worth a notice."""

    ERROR = "error"
    NOTICE = "notice"


def check_all(session: CorpusSession, stale: Stale = Stale.ERROR) -> ExitCode:
    """Show a line for each part of what CI asks, and return the worst exit code.

    Args:
        session: The corpus and the output.
        stale: What stale generated files are; with a notice they leave the exit code alone.

    Raises:
        CorpusError: There is no corpus, or it cannot be read.
    """
    root = session.writable_root()
    lines: list[Line] = []
    code, width = ExitCode.DONE, session.output.width
    for part in check_parts(root):
        command = "corpus validate" if part.name == PartName.VALIDATE else ""  # which asks no other part
        session.output.show([*wrapped(render.folded(part.findings, command), width)])
        if part.is_merely_stale:
            lines.append(_stale_line(part.stale, stale))
            code = max(code, ExitCode.FINDINGS if stale is Stale.ERROR else ExitCode.DONE)
            continue
        for document in part.stale:
            lines_of_diff = document.diff.splitlines(keepends=True)
            hint = f": corpus {part.name} --check" if part.name == PartName.FMT else ""
            shown = first_and_more(lines_of_diff, _DIFF_LINES, f"... {{}} more lines{hint}\n")
            session.output.write("".join(shown))
        lines.append(_part_line(part))
        code = max(code, part.exit_code)
    errors, sections, trace_code = _check_traces(root)
    lines = [*((Span(text, "warning"),) for text in errors), *lines, *sections]
    session.output.show([*wrapped(lines, width)])
    return max(code, trace_code)


def _check_traces(root: str) -> tuple[list[str], list[Line], ExitCode]:
    """Check the example traces and the specifications of rewards: the errors, a line for each, and the exit code."""
    errors, sections, code = list[str](), list[Line](), ExitCode.DONE
    if os.path.isdir(os.path.join(root, _TRACES)):
        errors, line, code = _check_examples(root)
        sections.append(line)
    if os.path.isdir(os.path.join(root, _REWARDS)):
        line, reward_code = _check_rewards(root)
        sections.append(line)
        code = max(code, reward_code)
    return errors, sections, code


def _check_examples(root: str) -> tuple[list[str], Line, ExitCode]:
    """Check the example traces. Of warnings, only the number is shown."""
    from orchtrace_corpus.trace.model.decode import decode, documents
    from orchtrace_corpus.trace.model.store import is_unreadable, trace_files
    from orchtrace_corpus.trace.rules import Names, check

    findings: list[Finding] = []
    names = Names()
    count = 0
    try:
        for path in trace_files(os.path.join(root, _TRACES)):
            for document in documents(path):
                count += 1
                decoded = decode(document._replace(path=os.path.relpath(path, root)))
                findings += check(decoded)
                if decoded.trace is not None:
                    findings += names.check(decoded.trace.trace_id, decoded.document.path, document.line)
    except CorpusError as error:
        return [], _failed_line("traces", error), error.exit_code
    errors = [str(finding) for finding in findings if finding.severity is Severity.ERROR]
    summary = f"{render.summary(findings)} in {pluralize(count, 'trace')}"
    code = ExitCode.FINDINGS if has_errors(findings) else ExitCode.DONE
    code = ExitCode.UNREADABLE if is_unreadable(findings) else code
    return errors, _line("traces", code is ExitCode.DONE, summary, "see corpus trace validate data/traces"), code


def _check_rewards(root: str) -> tuple[Line, ExitCode]:
    """Read the specifications of rewards: their line, and the exit code."""
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
    if part.findings or part.name == PartName.VALIDATE:
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
        number = pluralize(len(part.examples), "line is still that", "lines are still those")
        lines: dict[str, list[str]] = {}
        for name, _, line in (place.rpartition(":") for place in part.examples):
            lines.setdefault(name, []).append(line)
        places = "; ".join(f"{name}:{', '.join(numbers)}" for name, numbers in lines.items())
        summary = f"{number} of corpus init's example; to make yours: {places}"
    elif part.name in list(PartName):
        names = ", ".join(document.name for document in part.stale)
        summary = f"not in canonical form: {names}" if names else "up to date"
    else:
        summary = pluralize(part.total, *_COUNTED.get(part.name, ("entry", "entries")))
    return _line(part.name, part.exit_code is ExitCode.DONE, summary, _MENDS.get(part.name, "see above"))


def _claims_summary(part: Part) -> str:
    """How many claims hold, count contested papers, and fall over the pool of today; and whether that is new."""
    summary = f"{part.total} hold{'s' * (part.total == 1)}"
    summary += f", {part.contested} of them with contested tags" if part.contested else ""
    if not part.falling:
        return summary
    names = part.falling if part.fell is None else (*part.fell, *(one for one in part.falling if one not in part.fell))
    since = "" if part.fell is None else f", {len(part.fell) or 'none'} of them since the last commit"
    number = f"{len(names)} fall{'s' * (len(names) == 1)} over the pool of today{since}, which is no error"
    return f"{summary}; {number}: {first_names_and_more(names, _NAMED)}"


def _stale_line(stale: Sequence[Document], kind: Stale) -> Line:
    names = []
    for document in stale:
        regions = build.edited_regions(document) if document.name == build.README else []
        inside = f" (region {', '.join(regions)})" if regions else ""
        state = " (missing)" if document.present is None else " (no longer made)" if document.is_orphan else inside
        names.append(f"{document.name}{state}")
    count = f"{pluralize(len(stale), 'generated file')} {'is' if len(stale) == 1 else 'are'} stale"
    verdict = "failed " if kind is Stale.ERROR else "stale  "
    mend = "run corpus build, or check --stale notice for a pull request"
    mend = mend if kind is Stale.ERROR else "nothing to commit, they are regenerated after the merge"
    text = f"{count}; {mend}: {first_names_and_more(names, _NAMED)}"
    return (Span(f"{PartName.BUILD:9} "), Span(verdict, "warning"), Span(text))


def _failed_line(name: str, failure: CorpusError) -> Line:
    return _line(name, False, str(failure).replace(":\n", ": ").replace("\n", "; "), "")


def _line(name: str, passed: bool, summary: str, mend: str) -> Line:
    verdict = Span("ok     ", "explicit") if passed else Span("failed ", "warning")
    action = "" if passed or not mend else f"; to mend: {mend}"
    return (Span(f"{name:9} "), verdict, Span(f"{summary}{action}"))
