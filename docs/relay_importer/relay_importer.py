"""Logs of Relay as traces: a row for each answer, call and result."""

from collections.abc import Iterator, Sequence

from orchtrace_corpus.trace.api import Trace
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.builder import Builder
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.transcript_events import add_events
from orchtrace_corpus.trace.importers.core.values import string, text_field
from orchtrace_corpus.trace.model.import_report import Drop, ImportReport, LedgerLine, Problem
from orchtrace_corpus.trace.model.trace import Status, TokenBasis

TITLE = "Relay logs (JSON Lines)"


def recognises(beginning: logs.Head) -> bool:
    """Whether a file that begins like this is a log of Relay: by what only Relay writes."""
    return any("relay" in row and "agent" in row for row in beginning.rows)


def ties(opened: logs.Opened) -> Sequence[str]:
    """Files that have one of these in common are one session: here, those of the same run."""
    return [f"relay {row['relay']}" for row in opened.head().rows if "relay" in row][:1] or [opened.file.path]


def read(files: Sequence[logs.LogFile], privacy: Privacy) -> Iterator[Trace]:
    """The trace of one run."""
    report = ImportReport()  # what becomes of every row
    threads: dict[str, steps.Transcript] = {}
    last: dict[str, steps.ModelCall] = {}
    calls: dict[str, steps.ToolCall] = {}
    run = ""
    for file in files:
        for line, row in logs.rows(file, report):
            kind, agent = row.get("kind"), masked(string(row.get("agent")))
            if not agent or type(row.get("t")) not in (int, float) or row["t"] < 0:
                report.drop(Drop.NO_ID, file.name, line)
                continue
            run = run or masked(string(row.get("relay")))
            thread = threads.setdefault(agent, steps.Transcript(agent, is_root=not threads))
            time, place = row["t"], steps.Place(file.name, line)
            named, ref = masked(text_field(row, "id")), privacy.reference(row.get("text"))
            child = masked(text_field(row, "child"))
            if kind == "answer":
                used = {name: row[name] for name in ("input", "output") if type(row.get(name)) is int}
                model = masked(text_field(row, "model"))
                last[agent] = steps.ModelCall(time, place, end=time, model=model, tokens=used, ref=ref)
                last[agent].basis = TokenBasis.REPORTED
                report.enter(LedgerLine.OWN, **used)
                thread.add(last[agent])
            elif kind in ("call", "spawn"):
                call = steps.ToolCall(time, place, call=last.get(agent), id=named, ref=ref)
                call.tool = masked(text_field(row, "tool"))
                if kind == "spawn" and child and child not in threads:
                    call.purpose, call.target, call.role = steps.SPAWN, child, masked(text_field(row, "role"))
                    threads[child] = steps.Transcript(child, parent=agent, role=call.role)
                calls[named] = call
                thread.add(call)
            elif kind == "result" and named in calls and calls[named].answer is None:
                found = steps.ToolResult(time, place, ref=ref)
                found.status = Status.OK if row.get("ok") else Status.ERROR
                thread.add(found)
                steps.answer(calls[named], found)
            elif kind == "result":
                report.note(Problem.RESULT_WITHOUT_CALL, str(place))
            elif kind == "return" and child in threads:
                thread.add(steps.Return(time, place, child=child, ref=ref))
            else:
                report.note_unknown(masked(str(kind)))
    builder = Builder(run, run, system="relay", form="relay", version="", privacy=privacy, report=report)
    steps.note_deciders(threads.values())
    add_events(list(threads.values()), builder)
    if not builder:
        raise logs.EmptyLogError(f"nothing ran in {files[0].name}")
    yield builder.trace(topology=steps.topology(threads.values()))
