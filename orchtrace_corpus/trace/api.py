"""Traces from Python: imported, checked, measured, diagnosed, replayed, labelled, credited, rewarded, compared.

    from orchtrace_corpus import trace
    for one in trace.load("data/traces"):
        print(one.trace_id, trace.measure(one, ["span"])["span"].value)

docs/trace_walkthrough.md goes through one trace with it. Pictures are made by `orchtrace_corpus.trace.render.graph`.
Who asks several things of one trace passes a `TraceView` of it, so that its graph is constructed once.
This module imports msgspec; those who look at the paper pool never need it.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import to_builtins

from orchtrace_corpus.base.findings import Finding
from orchtrace_corpus.trace import importers, rules
from orchtrace_corpus.trace.analysis.labels import Label, labels
from orchtrace_corpus.trace.analysis.replay import State, replay
from orchtrace_corpus.trace.credit.assign import Assignment, Choices, Method, assign
from orchtrace_corpus.trace.diagnosis import diagnose, summarize
from orchtrace_corpus.trace.diagnosis.comparison import Difference, compare
from orchtrace_corpus.trace.diagnosis.totals import Breakdown, Grouping, Total, Totals
from orchtrace_corpus.trace.diagnosis.values import Diagnosis, Origin, Summary
from orchtrace_corpus.trace.exporters.published import publish
from orchtrace_corpus.trace.importers import Imported
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.measures.definitions import (
    DEFINITIONS,
    Definition,
    Measure,
    Profile,
    concurrency_profile,
    measure,
)
from orchtrace_corpus.trace.measures.ledger import Entry, ledger
from orchtrace_corpus.trace.model import json_text as write
from orchtrace_corpus.trace.model.decode import Document, decode, documents
from orchtrace_corpus.trace.model.store import InvalidTraceError, sound, trace_files
from orchtrace_corpus.trace.model.trace import Event, Trace
from orchtrace_corpus.trace.rewards import Reward, Spec, Term
from orchtrace_corpus.trace.rewards import compute as compute_reward
from orchtrace_corpus.trace.rewards import load as load_reward
from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.agent_tree import AgentSpan

__all__ = ["Event", "Finding", "Imported", "InvalidTraceError", "Trace", "TraceView", "import_logs"]
__all__ += ["load", "parse_trace", "read_traces", "validate", "validate_traces"]
__all__ += ["as_atif", "as_data", "as_published", "as_text"]
__all__ += ["DEFINITIONS", "Definition", "Entry", "Measure", "Profile", "concurrency_profile", "ledger", "measure"]
__all__ += ["Breakdown", "Grouping", "Total", "Totals"]
__all__ += ["Diagnosis", "Origin", "Summary", "diagnose", "summarize"]
__all__ += ["AgentSpan", "Difference", "Label", "State", "agent_tree", "compare", "labels", "replay"]
__all__ += ["Assignment", "Choices", "Method", "assign"]
__all__ += ["Reward", "Spec", "Term", "compute_reward", "load_reward"]


def import_logs(
    paths: str | Sequence[str], form: str = "", *, salt: str = "", keep_content: bool = False
) -> Iterator[Imported]:
    """The traces of logs, one session in memory at a time; a session that cannot be read does not stop the rest.

    Each trace is one that `validate` finds no error in.

    Args:
        paths: Files or folders of logs; all files of a session at once.
        form: Their format; else each file's is recognised.
        salt: Makes the hashes of contents; the same salt gives the same hashes, none gives others each time.
        keep_content: Whether contents are kept in full instead.

    Raises:
        CommandUseError: There is no such format.
        DataFileError: There is no log there.
    """
    privacy = Privacy(salt.encode("utf-8", "replace") if salt else os.urandom(16), keep_content)
    for one in importers.import_sessions(importers.sessions(paths, form), privacy):
        error = one.trace and rules.import_error(one.trace)
        yield one._replace(trace=None, error=error) if error else one


def load(path: str | os.PathLike[str]) -> Iterator[Trace]:
    """The traces of a file, or of a folder and those below it, one after another.

    Args:
        path: JSON, or JSON Lines with a trace on each line; or a folder of such files.

    Raises:
        DataFileError: A file cannot be read, or not as JSON; or there is no trace in the folder.
        InvalidTraceError: A trace has errors. `validate` returns them as values.
    """
    for document in _documents(path):
        yield _sound(document)


def parse_trace(data: str | bytes) -> Trace:
    """A trace from JSON text.

    Raises:
        DataFileError: It is not JSON.
        InvalidTraceError: It has errors.
    """
    return _sound(Document(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data, "trace"))


def validate(given: Trace | str | os.PathLike[str]) -> tuple[Finding, ...]:
    """Every problem of a trace, or of the traces of a file or folder and of the names that they share.

    Warnings are included. Places in a `Trace` are those of the text that `as_text` writes of it.

    Raises:
        DataFileError: A file cannot be read, or there is no trace in the folder.
    """
    if isinstance(given, Trace):
        return rules.check(decode(Document(as_text(as_data(given)).encode(), given.trace_id)))
    return rules.validate(_documents(given)).findings


read_traces, validate_traces = load, validate
"""The same by their first names."""


def agent_tree(trace: Trace | TraceView) -> list[AgentSpan]:
    """The agents of a trace: those that nobody spawned by their first act, each followed by those that it spawned.

    `depth` says how many are above an agent; times are in the unit of the trace's clock, without waits for people.

    Raises:
        CycleError: The edges go round in a circle; `read_traces` and `parse_trace` refuse such a trace.
    """
    return TraceView.of(trace).agents


def as_data(trace: Trace) -> dict[str, Any]:
    """The trace as JSON has it, in plain values; further properties that its events had are not kept in a `Trace`."""
    return dict(to_builtins(trace))


def as_published(trace: Trace) -> dict[str, Any]:
    """The trace in plain values, in the form of the schema published with arXiv 2605.02801.

    Fields, figures and events that the published schema lacks go, and times are in seconds: see docs/traces.md.

    Raises:
        CommandUseError: A total that the published schema requires is unknown, or no event is left.
    """
    return publish(as_data(trace))


def as_atif(trace: Trace) -> dict[str, Any]:
    """The trace in plain values as an ATIF trajectory, version 1.7, with those of sub-agents embedded.

    What ATIF has no field for is kept in `extra`, from which `import_logs` restores the trace: see docs/importers.md.
    """
    from orchtrace_corpus.trace.exporters import atif  # which brings the importer that restores it

    return atif.as_atif(as_data(trace))


def as_text(data: Mapping[str, Any]) -> str:
    """Return the result of `as_data`, `as_published` or `as_atif` as JSON, with an event or an edge on each line."""
    return write.text(data)


def _documents(path: str | os.PathLike[str]) -> Iterator[Document]:
    for file in trace_files(os.fspath(path)):
        yield from documents(file)


def _sound(document: Document) -> Trace:
    decoded = decode(document)
    return sound(decoded, rules.check(decoded))
