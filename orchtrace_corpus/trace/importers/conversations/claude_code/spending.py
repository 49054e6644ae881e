"""Which tokens of a Claude Code session count, and why: its token ledger.

Rows of a sub-agent are often written before its model stops, with a placeholder as their output. What its last
answer really wrote stands in the `usage` of its result. `totalTokens` there is the context of that last answer,
not a sum over all.
"""

from collections.abc import Mapping

from orchtrace_corpus.trace.importers.conversations.claude_code.spawn_evidence import Spawn, Written
from orchtrace_corpus.trace.importers.conversations.transcript import Call, Thread
from orchtrace_corpus.trace.model.import_report import ImportReport, LedgerLine, Missing, Problem
from orchtrace_corpus.trace.model.trace import TokenBasis

_INPUTS = ("input", "cache_read", "cache_write")


def settle(
    written: list[Written],
    threads: Mapping[str, Thread],
    children: Mapping[str, Spawn],
    missing: int,
    report: ImportReport,
) -> dict[Missing, int]:
    """Say of every answer how far its tokens can be relied on, and put down in the ledger what was counted.

    Args:
        written: The answers.
        threads: The threads by their names in the log.
        children: The spawns of sub-agents, by the same names.
        missing: How many sub-agents have no transcript.
        report: Where the ledger is kept.

    Returns:
        How many records lack their tokens.
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
                report.enter(LedgerLine.RESULT_CONTEXT, total=spawn.result.total)
    for one in written:
        tokens, basis = one.call.tokens, one.call.basis
        if one.is_odd:
            report.enter(LedgerLine.NO_NUMBER)
        elif tokens is None:
            report.enter(LedgerLine.NO_USAGE)
        if tokens is not None:
            line = (
                LedgerLine.RESULT_OUTPUT
                if id(one.call) in replaced
                else LedgerLine.PLACEHOLDER
                if basis is TokenBasis.PLACEHOLDER
                else LedgerLine.LAST_ROW
            )
            report.enter(line, **tokens)
    if missing:
        report.enter(LedgerLine.NO_TRANSCRIPT, missing)
    odd = sum(one.is_odd for one in written)
    without = sum(one.call.tokens is None and not one.is_odd for one in written)
    return {Missing.TRANSCRIPTS: missing, Missing.USAGE: without, Missing.NUMBERS: odd}


def _basis(one: Written) -> TokenBasis:
    if one.call.tokens is None:
        return TokenBasis.UNKNOWN
    if one.is_open:
        return TokenBasis.PLACEHOLDER
    return TokenBasis.DEDUPLICATED if one.rows > 1 else TokenBasis.REPORTED


def _last_call(thread: Thread) -> Call | None:
    calls = (step for step in thread.steps if isinstance(step, Call))
    return max(calls, key=lambda call: (call.time, call.order), default=None)


def _takes_output(call: Call, spawn: Spawn, report: ImportReport) -> bool:
    """Take the output of a sub-agent's last answer from its result; whether that changed it."""
    stated = spawn.result.usage if spawn.result is not None else None
    if not stated or call.tokens is None:
        return False
    if any(stated.get(kind, 0) != call.tokens.get(kind, 0) for kind in _INPUTS):
        report.note(Problem.RESULT_USAGE_DIFFERS, str(spawn.act.place))
        return False
    more = stated.get("output", 0) - call.tokens.get("output", 0)
    if more < 0:
        report.note(Problem.RESULT_USAGE_DIFFERS, str(spawn.act.place))
        return False
    if call.basis is TokenBasis.PLACEHOLDER or more:
        call.tokens = {**call.tokens, "output": stated.get("output", 0)}
        call.basis = TokenBasis.REPORTED
    return more > 0
