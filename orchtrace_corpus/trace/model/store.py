"""Reads traces from files and folders, one trace or several in each file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from orchtrace_corpus.base.errors import CorpusError, DataFileError, ExitCode
from orchtrace_corpus.base.findings import Finding, has_errors, quote_path
from orchtrace_corpus.trace.model.decode import LINES, Decoded

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Trace

SUFFIXES = (".json", *LINES)
"""The suffixes of traces in a folder."""

_NOT_JSON = "T10"
_SHOWN_FINDINGS = 5
_HINT = "See corpus trace validate for all that is wrong; fix it, or leave the file out."


class InvalidTraceError(CorpusError):
    """A trace has errors, so nothing derived from it would be true."""

    exit_code = ExitCode.FINDINGS


def is_unreadable(findings: Sequence[Finding]) -> bool:
    """Return True if a file could not even be read as JSON."""
    return any(finding.code.startswith(_NOT_JSON) for finding in findings)


def trace_files(path: str) -> Iterator[str]:
    """The file itself, or the traces in a folder and below it, by name.

    Raises:
        DataFileError: There is no trace in the folder.
    """
    if not os.path.isdir(path):
        yield path
        return
    found = False
    for folder, below, names in os.walk(path):
        below.sort()
        for name in sorted(names):
            if name.endswith(SUFFIXES):
                found = True
                yield os.path.join(folder, name)
    if not found:
        raise DataFileError(f"no trace in {quote_path(path)}", f"Traces end in {', '.join(SUFFIXES)}.")


def sound(decoded: Decoded, findings: Sequence[Finding]) -> Trace:
    """The trace, if there is no error among what was found in it.

    Raises:
        DataFileError: It is not JSON.
        InvalidTraceError: It has errors; the message shows the first of them.
    """
    if decoded.trace is None or has_errors(findings):
        raise refusal(findings)
    return decoded.trace


def refusal(findings: Sequence[Finding]) -> CorpusError:
    """Why nothing is derived from a trace that is not sound: `DataFileError` where it is not JSON."""
    shown = [str(finding) for finding in findings[:_SHOWN_FINDINGS]]
    more = len(findings) - len(shown)
    shown += [f"… and {more} more"] if more else []
    if is_unreadable(findings):
        return DataFileError("\n".join(("this is not JSON, so there is no trace in it:", *shown)), _HINT)
    message = "\n".join(("the trace has errors, so nothing derived from it would be true:", *shown))
    return InvalidTraceError(message, _HINT)
