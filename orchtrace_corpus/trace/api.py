"""Import, check, measure, diagnose, replay, label, credit, reward and compare traces from Python.

    from orchtrace_corpus import trace
    for run in trace.load("data/traces"):
        print(run.trace_id, trace.measure(run, ["span"])["span"].value)

docs/trace_walkthrough.md goes through one trace with it. `orchtrace_corpus.trace.render.graph` draws traces. Functions
take a `Trace` or a `TraceView`. With a view, several calls construct the graph of the trace only once.
This module imports msgspec, which takes long. Programs that only use the paper pool never import it.
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
from orchtrace_corpus.trace.model import json_text
from orchtrace_corpus.trace.model.decode import Document, decode, documents
from orchtrace_corpus.trace.model.store import InvalidTraceError, require_valid, trace_files
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
    """Yield the traces of logs, one session in memory at a time. An error in one session does not stop the rest.

    `validate` finds no error in these traces.

    Args:
        paths: Files or folders of logs. All files of a session must be among them.
        form: The format of all files; if empty, the format of each file is recognised.
        salt: A secret that goes into the hashes of contents. The same salt gives the same hashes; without a salt, they
            differ each time.
        keep_content: True to keep contents instead of their hashes.

    Raises:
        CommandUseError: There is no such format.
        DataFileError: There is no log there.
    """
    privacy = Privacy(salt.encode("utf-8", "replace") if salt else os.urandom(16), keep_content)
    for imported in importers.import_sessions(importers.sessions(paths, form), privacy):
        error = None
        if imported.trace is not None:
            error = rules.import_error(imported.trace)
        yield imported._replace(trace=None, error=error) if error else imported


def load(path: str | os.PathLike[str]) -> Iterator[Trace]:
    """Yield the traces of a file, or of a folder and its subfolders.

    Args:
        path: A file of JSON, or of JSON Lines with a trace on each line, or a folder of such files.

    Raises:
        DataFileError: A file cannot be read or is not JSON, or the folder has no trace.
        InvalidTraceError: A trace has errors. `validate` returns them instead.
    """
    for document in _documents(path):
        yield _valid_trace(document)


def parse_trace(data: str | bytes) -> Trace:
    """Return a trace from JSON text.

    Raises:
        DataFileError: The text is not JSON.
        InvalidTraceError: The trace has errors.
    """
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    return _valid_trace(Document(data, "trace"))


def validate(trace_or_path: Trace | str | os.PathLike[str]) -> tuple[Finding, ...]:
    """Return the errors and warnings of a trace, or of the traces of a file or folder.

    A warning names each id that two traces of a folder share. For a `Trace`, places refer to the text that `as_text`
    makes of it.

    Raises:
        DataFileError: A file cannot be read, or the folder has no trace.
    """
    if isinstance(trace_or_path, Trace):
        text = as_text(as_data(trace_or_path))
        return rules.check(decode(Document(text.encode(), trace_or_path.trace_id)))
    return rules.validate(_documents(trace_or_path)).findings


read_traces, validate_traces = load, validate
"""`load` and `validate` under their earlier names."""


def agent_tree(trace: Trace | TraceView) -> list[AgentSpan]:
    """Return the agents of a trace, each followed by the agents that it spawned.

    Agents that nobody spawned are sorted by their first event. `depth` is the number of ancestors of an agent. Times
    are in the unit of the trace's clock, without waits for people.

    Raises:
        CycleError: The edges form a cycle. `load` and `parse_trace` refuse such a trace.
    """
    return TraceView.of(trace).agents


def as_data(trace: Trace) -> dict[str, Any]:
    """Return a trace as a JSON object in plain values. Additional fields of events are lost in a `Trace`."""
    return dict(to_builtins(trace))


def as_published(trace: Trace) -> dict[str, Any]:
    """Return a trace in plain values, in the form of the schema published with arXiv 2605.02801.

    Fields, figures and events that the published schema lacks are left out, and times are in seconds: docs/traces.md.

    Raises:
        CommandUseError: A total that the published schema requires is unknown, or no event is left.
    """
    return publish(as_data(trace))


def as_atif(trace: Trace) -> dict[str, Any]:
    """Return a trace in plain values as an ATIF trajectory, version 1.7, with the trajectories of sub-agents inside.

    `extra` keeps what ATIF has no field for. `import_logs` restores the trace from it: docs/importers.md.
    """
    from orchtrace_corpus.trace.exporters import atif  # its import is slow, because it imports an importer

    return atif.as_atif(as_data(trace))


def as_text(data: Mapping[str, Any]) -> str:
    """Return the result of `as_data`, `as_published` or `as_atif` as JSON, with an event or an edge on each line."""
    return json_text.text(data)


def _documents(path: str | os.PathLike[str]) -> Iterator[Document]:
    for file in trace_files(os.fspath(path)):
        yield from documents(file)


def _valid_trace(document: Document) -> Trace:
    decoded = decode(document)
    return require_valid(decoded, rules.check(decoded))
