"""Logs of Relay as traces: a row for each answer, call and result."""

from collections.abc import Iterator, Sequence

from orchtrace_corpus.trace.api import Trace
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.core.transcript import ModelCall, Place
from orchtrace_corpus.trace.importers.core.values import as_text, text_field
from orchtrace_corpus.trace.model.import_report import Drop

TITLE = "Relay logs (JSON Lines)"


def recognises(beginning: logs.Head) -> bool:
    """Return True if a file that begins like this is a log of Relay: by what only Relay writes."""
    return any("relay" in row and "agent" in row for row in beginning.rows)


def session_keys(reader: logs.LogReader) -> Sequence[str]:
    """Return the session keys of a file, here its run: files with a key in common are one session."""
    return [f"relay {row['relay']}" for row in reader.head().rows if "relay" in row][:1] or [reader.file.path]


def read(files: Sequence[logs.LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the trace of one run."""
    run = Run("relay", privacy)
    answers: dict[str, ModelCall] = {}  # the last of each agent
    for file in files:
        for line, row in logs.rows(file, run.report):
            agent, time, place = as_text(row.get("agent")), row.get("t"), Place(file.name, line)
            if not agent or type(time) not in (int, float) or time < 0:
                run.report.drop(Drop.NO_ID, file.name, line)
                continue
            run.name = run.name or as_text(row.get("relay"))
            kind, call_id, child = row.get("kind"), text_field(row, "id"), text_field(row, "child")
            if not run.agents:
                run.agent(agent).is_root = True
            if kind == "answer":
                answer = answers[agent] = run.answer(agent, time, place, masked(text_field(row, "model")))
                run.spend(answer, (row.get("input"), row.get("output"), None, None, None))
            elif kind == "call" or kind == "spawn":
                tool = text_field(row, "tool")
                run.call(agent, call_id, tool, time, place, row.get("text"), answers.get(agent))
                if kind == "spawn" and child:
                    run.agent(child, role=text_field(row, "role"))
                    run.spawn(child, agent, call_id, place)
            elif kind == "result":
                run.result(agent, call_id, time, place, row.get("text"), error="" if row.get("ok") else "tool_error")
            elif kind == "return" and child:
                run.add_return(child, run.note(agent, time, place), ref=privacy.reference(row.get("text")))
            else:
                run.report.note_unknown(masked(str(kind)))
    yield run.trace()
