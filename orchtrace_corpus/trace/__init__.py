"""Import, check, measure, diagnose, replay, label, credit, reward and compare orchestration traces from Python.

    from orchtrace_corpus import trace
    for run in trace.load("data/traces"):
        print(run.trace_id, trace.measure(run, ["span"])["span"].value)

docs/trace_walkthrough.md goes through one trace. The functions are those of `orchtrace_corpus.trace.api`, which is
imported when the first of them is used, because programs that only use the paper pool do not need it.
"""

from orchtrace_corpus.base.annotations import TYPE_CHECKING, Any
from orchtrace_corpus.trace import codes as codes

if TYPE_CHECKING:
    from orchtrace_corpus.trace.api import *  # noqa: F403 - what __getattr__ returns

_API_NAMES = frozenset(
    "DEFINITIONS AgentSpan Assignment Breakdown Choices Definition Diagnosis Difference Entry Event Finding Grouping "
    "Imported InvalidTraceError Label Measure Method Origin Profile Reward Spec State Summary Term Total Totals Trace "
    "TraceView agent_tree as_data as_atif as_published as_text assign compare compute_reward concurrency_profile "
    "diagnose import_logs labels ledger load load_reward measure parse_trace read_traces replay summarize "
    "validate validate_traces".split()
)


def __getattr__(name: str) -> Any:
    if name not in _API_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.api"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_API_NAMES})
