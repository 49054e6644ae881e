"""Find the trace files in folders, and raise errors for invalid traces."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from orchtrace_corpus.base.annotations import TYPE_CHECKING
from orchtrace_corpus.base.errors import CorpusError, DataFileError, ExitCode
from orchtrace_corpus.base.findings import Finding, has_errors, quote_path
from orchtrace_corpus.trace.model.decode import LINES, Decoded

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Trace

SUFFIXES = (".json", *LINES)
"""The suffixes of trace files in a folder."""

_NOT_JSON = "T10"  # the beginning of the codes of files that are not JSON
_SHOWN_FINDINGS = 5
_HINT = "See corpus trace validate for all that is wrong; fix it, or leave the file out."


class InvalidTraceError(CorpusError):
    """A trace has errors, so results derived from it would be wrong."""

    exit_code = ExitCode.FINDINGS


def is_unreadable(findings: Sequence[Finding]) -> bool:
    """Return True if a file could not even be read as JSON."""
    return any(finding.code.startswith(_NOT_JSON) for finding in findings)


def trace_files(path: str) -> Iterator[str]:
    """Yield the path of a file itself, or the paths of all trace files below a folder, sorted by name.

    Raises:
        DataFileError: The folder has no trace.
    """
    if not os.path.isdir(path):
        yield path
        return
    is_empty = True
    for folder, subfolders, names in os.walk(path):
        subfolders.sort()
        for name in sorted(names):
            if name.endswith(SUFFIXES):
                is_empty = False
                yield os.path.join(folder, name)
    if is_empty:
        raise DataFileError(f"no trace in {quote_path(path)}", f"Traces end in {', '.join(SUFFIXES)}.")


def require_valid(decoded: Decoded, findings: Sequence[Finding]) -> Trace:
    """Return the trace of a decoded document, given its findings, if it has no errors.

    Raises:
        DataFileError: The document is not JSON.
        InvalidTraceError: The trace has errors; the message shows the first ones.
    """
    if decoded.trace is None or has_errors(findings):
        raise refusal(findings)
    return decoded.trace


def refusal(findings: Sequence[Finding]) -> CorpusError:
    """Return the error for an invalid trace: `DataFileError` if it is not JSON, else `InvalidTraceError`."""
    lines = [str(finding) for finding in findings[:_SHOWN_FINDINGS]]
    if len(findings) > len(lines):
        lines.append(f"… and {len(findings) - len(lines)} more")
    if is_unreadable(findings):
        return DataFileError("\n".join(("this is not JSON, so there is no trace in it:", *lines)), _HINT)
    message = "\n".join(("the trace has errors, so nothing derived from it would be true:", *lines))
    return InvalidTraceError(message, _HINT)
