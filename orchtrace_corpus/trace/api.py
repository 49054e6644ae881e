"""Traces from Python: read and checked, measured, replayed, labelled, credited, and written again.

from orchtrace_corpus.trace.api import measure, read_traces
for trace in read_traces("data/traces"):
    print(trace.trace_id, measure(trace, ["span"])["span"].value)

docs/trace_walkthrough.md goes through one trace with it. Pictures are made by `orchtrace_corpus.trace.render.graph`.
This module imports msgspec; those who look at the paper pool never need it.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import to_builtins

from orchtrace_corpus.base.findings import Finding
from orchtrace_corpus.trace import rules
from orchtrace_corpus.trace.analysis.comparison import Difference, compare
from orchtrace_corpus.trace.analysis.labels import Label, labels
from orchtrace_corpus.trace.analysis.replay import State, replay
from orchtrace_corpus.trace.credit.assign import Assignment, Choices, Method, assign
from orchtrace_corpus.trace.exporters import published
from orchtrace_corpus.trace.measures import DEFINITIONS, Definition, Measure, Profile, concurrency_profile, measure
from orchtrace_corpus.trace.measures.ledger import Entry, ledger
from orchtrace_corpus.trace.model import json_text as write
from orchtrace_corpus.trace.model.decode import Decoded, Document, decode, documents
from orchtrace_corpus.trace.model.store import InvalidTraceError, sound, trace_files
from orchtrace_corpus.trace.model.trace import Event, Trace
from orchtrace_corpus.trace.rules.across import Names
from orchtrace_corpus.trace.view import agent_tree as roster
from orchtrace_corpus.trace.view.agent_tree import Appearance
from orchtrace_corpus.trace.view.timing import timing

__all__ = [
    "DEFINITIONS",
    "Appearance",
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
    "Profile",
    "State",
    "Trace",
    "agent_tree",
    "as_data",
    "as_published",
    "as_text",
    "assign",
    "compare",
    "concurrency_profile",
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
    """Every problem of the traces of a file or folder, warnings included, and names that several of them have.

    Raises:
        DataFileError: A file cannot be read, or there is no trace in the folder.
    """
    found: list[Finding] = []
    names = Names()
    for decoded in _decoded(path):
        found += rules.check(decoded)
        if decoded.trace is not None:
            found += names.check(decoded.trace.trace_id, decoded.document.path, decoded.document.line)
    return tuple(found)


def agent_tree(trace: Trace) -> list[Appearance]:
    """The agents of a trace: those whom nobody spawned by their first act, each followed by those that it spawned.

    `depth` says how many are above an agent; times are in the unit of the trace's clock, without waits for people.

    Raises:
        CycleError: The edges go round in a circle; `read_traces` and `parse_trace` refuse such a trace.
    """
    return roster.roster(trace, timing(trace))


def as_data(trace: Trace) -> dict[str, Any]:
    """The trace as JSON has it, in plain values; further properties that its events had are not kept in a `Trace`."""
    return dict(to_builtins(trace))


def as_published(trace: Trace) -> dict[str, Any]:
    """The trace in plain values, in the form of the schema published with arXiv 2605.02801.

    Fields, figures and events that the published schema lacks go, and times are in seconds: see docs/traces.md.

    Raises:
        CommandUseError: A total that the published schema requires is unknown, or no event is left.
    """
    return published.published(as_data(trace))


def as_text(data: Mapping[str, Any]) -> str:
    """What `as_data` or `as_published` gave as JSON, with an event or an edge on each line."""
    return write.text(data)


def _decoded(path: str | os.PathLike[str]) -> Iterator[Decoded]:
    for file in trace_files(os.fspath(path)):
        for document in documents(file):
            yield decode(document)
