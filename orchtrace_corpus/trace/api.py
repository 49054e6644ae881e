"""Traces from Python: read and checked, measured, replayed, labelled, and credited.

from orchtrace_corpus.trace.api import measure, read_traces
for trace in read_traces("data/traces"):
    print(trace.trace_id, measure(trace, ["span"])["span"].value)

docs/trace_walkthrough.md goes through one trace with it. This module imports msgspec; those who look at the
paper pool never need it.
"""

import os
from collections.abc import Iterator

from orchtrace_corpus.findings import Finding
from orchtrace_corpus.trace import rules
from orchtrace_corpus.trace.compare import Difference, compare
from orchtrace_corpus.trace.credit.assign import Assignment, Choices, Method, assign
from orchtrace_corpus.trace.decode import Decoded, Document, decode, documents
from orchtrace_corpus.trace.label import Label, labels
from orchtrace_corpus.trace.measures import DEFINITIONS, Definition, Measure, measure
from orchtrace_corpus.trace.measures.ledger import Entry, ledger
from orchtrace_corpus.trace.model import Event, Trace
from orchtrace_corpus.trace.replay import State, replay
from orchtrace_corpus.trace.store import InvalidTraceError, sound, trace_files

__all__ = [
    "DEFINITIONS",
    "Assignment",
    "Choices",
    "Definition",
    "Difference",
    "Entry",
    "Event",
    "InvalidTraceError",
    "Label",
    "Measure",
    "Method",
    "State",
    "Trace",
    "assign",
    "compare",
    "labels",
    "ledger",
    "measure",
    "parse_trace",
    "read_traces",
    "replay",
    "validate_traces",
]


def read_traces(path: str | os.PathLike[str]) -> Iterator[Trace]:
    """The traces of a file, or of a folder and those below it, one after another.

    Args:
        path: JSON, or JSON Lines with a trace on each line; or a folder of such files.

    Raises:
        DataFileError: A file cannot be read, or not as JSON; or there is no trace in the folder.
        InvalidTraceError: A trace has errors. `validate_traces` returns them as values.
    """
    for decoded in _decoded(path):
        yield sound(decoded, rules.check(decoded))


def parse_trace(data: str | bytes) -> Trace:
    """A trace from JSON text.

    Raises:
        DataFileError: It is not JSON.
        InvalidTraceError: It has errors.
    """
    decoded = decode(Document(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data, "trace"))
    return sound(decoded, rules.check(decoded))


def validate_traces(path: str | os.PathLike[str]) -> tuple[Finding, ...]:
    """Every problem of the traces of a file or folder, warnings included.

    Raises:
        DataFileError: A file cannot be read, or there is no trace in the folder.
    """
    return tuple(finding for decoded in _decoded(path) for finding in rules.check(decoded))


def _decoded(path: str | os.PathLike[str]) -> Iterator[Decoded]:
    for file in trace_files(os.fspath(path)):
        for document in documents(file):
            yield decode(document)
