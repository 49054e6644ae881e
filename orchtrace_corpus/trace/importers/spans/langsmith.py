"""LangSmith: run trees of LangChain and LangGraph, as `Run` objects or as their client sends them.

A file has one run on each line, an array of runs, the answer to a query (`{"runs": [...]}`), or requests
`{"post": [...], "patch": [...]}`, in which the parts of a run have the same id. Runs may be nested (`child_runs`).
Shapes: `langsmith/schemas.py` of langsmith 0.14.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from math import isfinite
from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import asdict

from orchtrace_corpus.trace.importers.core.json_parts import NOTHING, decoded
from orchtrace_corpus.trace.importers.core.logs import Head, LogFile
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.times import instant
from orchtrace_corpus.trace.importers.core.usage import Usage, usage_of_service
from orchtrace_corpus.trace.importers.core.values import as_array, as_object, as_text
from orchtrace_corpus.trace.importers.spans import span as spans
from orchtrace_corpus.trace.importers.spans.files import SpanCollector, read_items
from orchtrace_corpus.trace.importers.spans.files import session_keys as session_keys
from orchtrace_corpus.trace.importers.spans.span import Call, Kind, Span
from orchtrace_corpus.trace.model.import_report import Drop
from orchtrace_corpus.trace.model.trace import Trace

_LISTS = ("post", "patch", "runs")
_RUN_MEMBERS = {"trace_id", "dotted_order", "parent_run_id", "start_time"}
"""Members by which runs are recognised. Each run has one of them."""

_KINDS = {"llm": Kind.INFERENCE}
_KINDS |= dict.fromkeys(("tool", "retriever", "embedding"), Kind.TOOL)
_KINDS |= dict.fromkeys(("chain", "prompt", "parser"), Kind.CHAIN)


class _Extra(Struct):
    metadata: Any = None
    invocation_params: Any = None
    runtime: Any = None
    tool_call_id: Any = None


class _Run(Struct):
    """A run, a part of a run, or a request with several of them. Contents are decoded when they are needed."""

    id: Any = None
    name: Any = None
    run_type: Any = None
    trace_id: Any = None
    parent_run_id: Any = None
    dotted_order: Any = None
    start_time: Any = None
    end_time: Any = None
    error: Any = None
    inputs: Raw = NOTHING
    outputs: Raw = NOTHING
    extra: _Extra | None = None
    prompt_tokens: Any = None
    completion_tokens: Any = None
    total_tokens: Any = None
    prompt_token_details: Any = None
    completion_token_details: Any = None
    feedback_stats: Any = None
    child_runs: list[Raw] | None = None
    post: "list[_Run] | None" = None
    patch: "list[_Run] | None" = None
    runs: "list[_Run] | None" = None

    @property
    def trace(self) -> str:
        """Return the id of the trace, which is the id of the root run."""
        if as_text(self.trace_id):
            return as_text(self.trace_id)
        root = as_text(self.dotted_order).partition(".")[0]  # a time that ends in Z, and the id
        if "Z" in root:
            return root.partition("Z")[2]
        return "" if self.parent_run_id else as_text(self.id)

    @property
    def parent(self) -> str:
        """Return the id of the parent; empty for a root. Older clients state it only in the dotted order."""
        if as_text(self.parent_run_id):
            return as_text(self.parent_run_id)
        ancestors = as_text(self.dotted_order).split(".")[:-1]
        return ancestors[-1].partition("Z")[2] if ancestors else ""


def recognises(beginning: Head) -> bool:
    """Return True if a file begins with runs, or with a request or an answer that has runs."""
    for row in beginning.rows[:5]:
        parts = [as_object(part) for name in _LISTS for part in as_array(row.get(name))]
        if _is_run(row) or any(_is_run(part) or "dotted_order" in part for part in parts):
            return True
    if beginning.rows:
        return False
    names = beginning.outline
    return "run_type" in names and bool(_RUN_MEMBERS & names)


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the traces of the files."""
    collector = SpanCollector(files, privacy)
    runs = _Runs(privacy, collector)
    for file in files:
        for run, line in read_items(file, collector.report, _Run, _LISTS):
            runs.add(run, file.name, line)
            if run is not None and run.child_runs:
                for child in _descendants(run):
                    runs.add(child, file.name, line)
    for parts in runs.untyped_parts.values():
        for _, file_name, line in parts:
            collector.report.drop(Drop.PART_OF_ABSENT_RUN, file_name, line)
    yield from collector.traces("langsmith", "langchain")


def _is_run(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("run_type"), str) and bool(_RUN_MEMBERS & value.keys())


def _descendants(run: _Run) -> Iterator[_Run | None]:
    """Yield the runs inside a run; None for a value that is no run."""
    waiting = [(run, raw) for raw in reversed(run.child_runs or ())]
    while waiting:
        parent, raw = waiting.pop()
        child = decoded(raw, _Run)
        if child is not None:
            child.trace_id = child.trace_id or parent.trace
            child.parent_run_id = child.parent_run_id or parent.id
            waiting += [(child, child_run) for child_run in reversed(child.child_runs or ())]
        yield child


_OPTIONAL = tuple(zip(reversed(Span.__struct_fields__), reversed(Span.__struct_defaults__), strict=False))
"""The fields of a span that have defaults, with these. A part of a run may lack the values of these fields."""


class _Runs:
    """The spans of runs, made of their parts. A later part overrides the values of an earlier one, but clears none.

    Parts that come before the part with the type of the run wait for it, and are added after it.
    """

    def __init__(self, privacy: Privacy, collector: SpanCollector) -> None:
        # these tables are by the ids of trace and run
        self.untyped_parts: dict[tuple[str, str], list[tuple[_Run, str, int]]] = {}  # with file and line
        self._privacy, self._collector = privacy, collector
        self._spans: dict[tuple[str, str], Span] = {}
        self._types: dict[tuple[str, str], str] = {}

    def add(self, run: _Run | None, file: str, line: int) -> None:
        """Add a run or a part of a run."""
        if run is None or not as_text(run.id):
            self._collector.report.drop(Drop.NO_RUN, file, line)
            return
        key = (run.trace, as_text(run.id))
        if run.feedback_stats and not run.parent:
            self._collector.bundle(key[0]).scores.update(_scores(run.feedback_stats))
        if isinstance(run.run_type, str):
            self._types.setdefault(key, run.run_type)
        if key not in self._types:
            self.untyped_parts.setdefault(key, []).append((run, file, line))
            return
        self._add_part(key, run, file, line)
        for part, part_file, part_line in self.untyped_parts.pop(key, ()):
            self._add_part(key, part, part_file, part_line)

    def _add_part(self, key: tuple[str, str], run: _Run, file: str, line: int) -> None:
        span = _span(run, self._types[key], file, line, self._privacy)
        earlier = self._spans.get(key)
        if earlier is not None:
            for name, default in _OPTIONAL:
                if getattr(span, name) != default:
                    setattr(earlier, name, getattr(span, name))
            earlier.parent = earlier.parent or span.parent
            earlier.name = earlier.name or span.name
            return
        self._spans[key] = span
        bundle = self._collector.bundle(key[0])
        bundle.spans.append(span)
        if span.task is not None:
            bundle.system = "langgraph"
        if not span.parent and not bundle.name:
            extra = run.extra or _Extra()
            bundle.name, bundle.version = span.name, as_text(as_object(extra.runtime).get("sdk_version"))


def _scores(stats: Any) -> dict[str, float]:
    """Return the means of the scores that people or evaluators gave the run, by name."""
    scores = {}
    for name, statistics in as_object(stats).items():
        mean = as_object(statistics).get("avg")
        if (type(mean) is float and isfinite(mean)) or (type(mean) is int and abs(mean) < 2**53):
            scores[masked(name)] = float(mean)
    return scores


def _span(run: _Run, run_type: str, file: str, line: int, privacy: Privacy) -> Span:
    kind, extra = _KINDS.get(run_type, Kind.CHAIN), run.extra or _Extra()
    metadata = as_object(extra.metadata)
    span = Span(as_text(run.id), run.parent, kind, as_text(run.name), file, line)
    span.start, span.end = instant(run.start_time), instant(run.end_time)
    span.agent = as_text(metadata.get("lc_agent_name"))
    span.task = spans.langgraph_task(metadata)
    if run.error and not as_text(run.error).startswith(spans.PARENT_COMMAND):
        span.is_error, span.error_type = True, spans.error_kind(run.error) or "other"
        span.is_interrupted = span.error_type.endswith("Interrupt")
    if run_type not in _KINDS:
        span.unknown = f"run of type {masked(run_type)[:50]}"
    if kind is Kind.CHAIN:
        output = bytes(run.outputs) if span.task else b""
        if b'"output"' in output or b'"goto"' in output:  # else the output has no routes and is not decoded
            span.routes = spans.langgraph_routes(decoded(output))
        span.usage = _total_usage(run, metadata)
        return span
    outputs = decoded(run.outputs)
    span.output = privacy.reference(outputs)
    if kind is Kind.INFERENCE:
        answers = _answers(outputs)
        span.usage = _model_usage(run, outputs, answers, metadata)
        span.model = _model(answers, metadata, extra)
        calls = []
        for message in chain.from_iterable(answers):
            for call in map(as_object, as_array(message.get("tool_calls"))):
                arguments = privacy.reference(call.get("args"))
                calls.append(Call(as_text(call.get("id")), as_text(call.get("name")), arguments))
        span.calls = tuple(calls)
    else:
        span.usage = _total_usage(run, metadata)
        answer = _unwrapped(as_object(outputs).get("output"))
        span.call_id = as_text(extra.tool_call_id) or as_text(answer.get("tool_call_id"))
        span.arguments = privacy.reference(decoded(run.inputs))
    return span


_Answers = list[list[Mapping[str, Any]]]
"""The messages with which a model answered: for each prompt a list of its candidates."""


def _answers(outputs: Any) -> _Answers:
    answers = []
    for generations in as_array(as_object(outputs).get("generations")):
        candidates = generations if isinstance(generations, list) else [generations]
        answers.append([_unwrapped(as_object(candidate).get("message")) for candidate in candidates])
    return answers


def _unwrapped(message: Any) -> Mapping[str, Any]:
    """Return a message. A serialised message is the member `kwargs` of an object."""
    return as_object(as_object(message).get("kwargs")) or as_object(message)


def _model_usage(run: _Run, outputs: Any, answers: _Answers, metadata: Mapping[str, Any]) -> Usage | None:
    """Return the usage of a model call that its messages state, else its metadata, the provider or the server."""
    usages_of_prompts = []
    for candidates in answers:
        # a provider states one usage for all candidates, and writes it to each of them; so equal usages count once
        usages = {_usage(as_object(message.get("usage_metadata"))) for message in candidates} - {None}
        if usages:
            usages_of_prompts.append(_sum([usage for usage in usages if usage is not None]))
    if usages_of_prompts:
        return _sum(usages_of_prompts)
    outputs = as_object(outputs)
    provider = as_object(outputs.get("llm_output")).get("token_usage")
    for stated in (outputs.get("usage_metadata"), metadata.get("usage_metadata"), provider, asdict(run)):
        if (usage := _usage(as_object(stated))) is not None:
            return usage
    return None


def _total_usage(run: _Run, metadata: Mapping[str, Any]) -> Usage | None:
    """Return the usage of a run that is no model call: a total, stated by its program or else by the server."""
    if "usage_metadata" not in metadata and run.prompt_tokens is None and run.total_tokens is None:
        return None
    return _usage(as_object(metadata.get("usage_metadata"))) or _usage(asdict(run))


def _usage(usage: Mapping[str, Any]) -> Usage | None:
    """Return the usage that an object states; None if it states no count."""
    counts = usage_of_service(usage)
    return counts if counts.count(None) < len(counts) else None


def _sum(usages: Sequence[Usage]) -> Usage:
    """Return the sum of usages, kind by kind. A kind without a known count stays unknown."""
    if len(usages) == 1:
        return usages[0]
    totals = []
    for counts in zip(*usages, strict=True):
        known = [count for count in counts if count is not None]
        totals.append(sum(known) if known else None)
    return Usage(*totals)


def _model(answers: _Answers, metadata: Mapping[str, Any], extra: _Extra) -> str:
    """Return the model that answered, or else the model that was asked; empty if unknown."""
    for message in chain.from_iterable(answers):
        response = as_object(message.get("response_metadata"))
        if name := as_text(response.get("model_name")) or as_text(response.get("model")):
            return name
    request = as_object(extra.invocation_params)
    return as_text(metadata.get("ls_model_name")) or as_text(request.get("model")) or as_text(request.get("model_name"))
