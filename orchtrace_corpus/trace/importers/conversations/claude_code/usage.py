"""The usage of the answers of a Claude Code session, and how far it can be relied on."""

from orchtrace_corpus.trace.importers.conversations.claude_code import rows
from orchtrace_corpus.trace.importers.conversations.claude_code.content import LEAST_ID_LENGTH
from orchtrace_corpus.trace.importers.conversations.claude_code.family import Family
from orchtrace_corpus.trace.importers.conversations.claude_code.linking import Links
from orchtrace_corpus.trace.importers.conversations.claude_code.reading import Reading
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.identity import current_answers
from orchtrace_corpus.trace.model.import_report import ImportReport, LedgerLine, Problem
from orchtrace_corpus.trace.model.trace import TokenBasis, Tokens

_OPEN, _WHOLE, _ANSWER = LedgerLine.PLACEHOLDER, LedgerLine.LAST_ROW, LedgerLine.RESULT_ANSWER
_PLACEHOLDER, _REPORTED, _ONCE = TokenBasis.PLACEHOLDER, TokenBasis.REPORTED, TokenBasis.DEDUPLICATED
"""Members of enumerations, which Python 3.11 takes long to find."""


def account(reading: Reading, family: Family, links: Links) -> None:
    """Give every answer its tokens, and enter them in the ledger."""
    run, written = reading.run, reading.content.evidence.written
    by_call = {id(answer.call): answer for answer in written}
    replaced: set[int] = set()
    for answer in written:
        call = answer.call
        if answer.tokens is not None:
            call.basis = _PLACEHOLDER if rows.is_placeholder(answer) else _ONCE if answer.rows > 1 else _REPORTED
    for key, spawn in family.children.items():
        if spawn.result is None or spawn.result.launched:
            continue
        if spawn.result.total is not None:
            run.report.enter(LedgerLine.RESULT_CONTEXT, total=spawn.result.total)
        last = _last_answer(reading.threads[key])
        answer_of_last = by_call.get(id(last))
        if last is None or answer_of_last is None or (key in reading.relayed and not last.final):
            continue
        if _takes_output(answer_of_last, spawn, run.report):
            replaced.add(id(last))
        if last.basis is _REPORTED:
            answer_of_last.is_open = False
            last.basis = _PLACEHOLDER if rows.is_placeholder(answer_of_last) else _REPORTED
    _add_last_answers(reading, family, links)
    for answer in written:
        call, tokens = answer.call, answer.tokens
        if answer.is_odd:
            run.miss_number(call)
        if tokens is None:
            continue
        if not any(tokens.values()) and not call.error:  # as programs write that know nothing of it
            call.basis = TokenBasis.UNKNOWN
            run.miss_zero(call)
            continue
        line = _OPEN if call.basis is _PLACEHOLDER else _WHOLE
        run.count(call, Tokens(**tokens), LedgerLine.RESULT_OUTPUT if id(call) in replaced else line)


def _last_answer(thread: steps.Transcript) -> steps.ModelCall | None:
    calls = [step for step in thread.steps if isinstance(step, steps.ModelCall)]
    return max(calls, key=lambda call: call.at, default=None)


def _takes_output(answer: rows.Written, spawn: rows.Spawn, report: ImportReport) -> bool:
    """Take the output of a sub-agent's last answer from its result, and return True if that changed it."""
    stated = spawn.result.usage if spawn.result is not None else None
    if not stated or answer.tokens is None:
        return False
    more = stated.get("output", 0) - answer.tokens.get("output", 0)
    if more < 0 or any(
        stated.get(kind, 0) != answer.tokens.get(kind, 0) for kind in ("input", "cache_read", "cache_write")
    ):
        report.note(Problem.RESULT_USAGE_DIFFERS, str(spawn.call.place))
        return False
    if answer.call.basis is _PLACEHOLDER or more:
        answer.tokens = {**answer.tokens, "output": stated.get("output", 0)}
        answer.call.basis = _REPORTED
    return more > 0


def _add_last_answers(reading: Reading, family: Family, links: Links) -> None:
    """Add the last answers of sub-agents of which only progress is known, which their results alone have.

    Their counts of output are as sure as those of the answers before.
    """
    for key in sorted(reading.relayed):
        thread = reading.threads[key]
        before = _last_answer(thread)
        if before is None or before.final or key not in links.answers:
            continue
        arrival, ref = links.answers[key]
        if arrival.time < before.end:
            continue
        result = family.children[key].result if key in family.children else None
        answer = steps.ModelCall(arrival.time, arrival.place, end=arrival.time, model=before.model, ref=ref)
        thread.add(answer)
        if result is None or result.launched or not result.usage:
            continue
        if len(result.id) >= LEAST_ID_LENGTH:
            current_answers().note(result.id, "last answer", arrival.place.file, arrival.place.line)
        answer.basis = _REPORTED
        if before.basis is _PLACEHOLDER:
            answer.basis = _PLACEHOLDER
            reading.run.report.enter(_OPEN, 0)
        reading.run.count(answer, Tokens(**result.usage), _ANSWER)
