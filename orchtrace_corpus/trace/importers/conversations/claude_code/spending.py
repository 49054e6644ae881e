"""Which tokens of a Claude Code session count, and why: its token ledger.

Rows of a sub-agent are often written before its model stops, with a placeholder as their output. What its last
answer really wrote stands in the `usage` of its result. `totalTokens` there is the context of that last answer,
not a sum over all.
"""

from collections.abc import Mapping

from orchtrace_corpus.trace.importers.conversations.claude_code.spawn_evidence import Spawn, Written
from orchtrace_corpus.trace.importers.conversations.transcript import Call, Thread
from orchtrace_corpus.trace.importers.core.report import Report

COUNTED = "counted: usage of the last row of an answer"
REPLACED = "counted: output from the sub-agent's result, where its last row had less"
PLACEHOLDER = "counted: output noted before the model had finished, so the least it can be"
UNKNOWN = "unknown: answers without usage"
ODD = "unknown: usage that is no number"
MISSING = "unknown: sub-agents without a transcript"
CONTEXT = "left out: totalTokens of a sub-agent's result (its last context, not a sum)"
DISAGREEING = "result of a sub-agent states another usage than its last answer: that of the answer is counted"

_INPUTS = ("input", "cache_read", "cache_write")


def settle(
    written: list[Written], threads: Mapping[str, Thread], children: Mapping[str, Spawn], missing: int, report: Report
) -> str:
    """Say of every answer how far its tokens can be relied on, and put down in the ledger what was counted.

    Args:
        written: The answers.
        threads: The threads by their names in the log.
        children: The spawns of sub-agents, by the same names.
        missing: How many sub-agents have no transcript.
        report: Where the ledger is kept.

    Returns:
        Why not all tokens are known; empty where they are.
    """
    replaced = set()
    for one in written:
        one.call.basis = _basis(one)
    for key, spawn in children.items():
        if key in threads and spawn.result is not None and not spawn.result.launched:
            call = _last_call(threads[key])
            if call is not None and _takes_output(call, spawn, report):
                replaced.add(id(call))
            if spawn.result.total is not None:
                report.ledger(CONTEXT, total=spawn.result.total)
    for one in written:
        tokens, basis = one.call.tokens, one.call.basis
        if one.is_odd:
            report.ledger(ODD)
        elif tokens is None:
            report.ledger(UNKNOWN)
        if tokens is not None:
            line = REPLACED if id(one.call) in replaced else PLACEHOLDER if basis == "placeholder" else COUNTED
            report.ledger(line, **tokens)
    if missing:
        report.ledger(MISSING, missing)
    odd = sum(one.is_odd for one in written)
    without = sum(one.call.tokens is None and not one.is_odd for one in written)
    reasons = (("sub-agents without a transcript among the files", missing), ("answers without usage", without),
               ("usage that is no number", odd))  # fmt: skip
    return "; ".join(f"{what}: {number}" for what, number in reasons if number)


def _basis(one: Written) -> str:
    if one.call.tokens is None:
        return "unknown"
    return "placeholder" if one.is_open else "deduplicated" if one.rows > 1 else "reported"


def _last_call(thread: Thread) -> Call | None:
    calls = (step for step in thread.steps if isinstance(step, Call))
    return max(calls, key=lambda call: (call.time, call.order), default=None)


def _takes_output(call: Call, spawn: Spawn, report: Report) -> bool:
    """Take the output of a sub-agent's last answer from its result; whether that changed it."""
    stated = spawn.result.usage if spawn.result is not None else None
    if not stated or call.tokens is None:
        return False
    if any(stated.get(kind, 0) != call.tokens.get(kind, 0) for kind in _INPUTS):
        report.problem(DISAGREEING, str(spawn.act.place))
        return False
    more = stated.get("output", 0) - call.tokens.get("output", 0)
    if more < 0:
        report.problem(DISAGREEING, str(spawn.act.place))
        return False
    if call.basis == "placeholder" or more:
        call.tokens = {**call.tokens, "output": stated.get("output", 0)}
        call.basis = "reported"
    return more > 0
