"""OpenCode sessions, one for each agent, from its database or from JSON files.

A session is put together here: an answer for each step of a message, which call spawned which session, what came back.
"""

import os
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any, TypeAlias

from msgspec import Struct

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.trace.importers.conversations.opencode.store import Message, Part, Session, Store, Usage
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.identity import current_answers, families
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError, Head, LogFile, Opened
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.core.times import NO_TIME
from orchtrace_corpus.trace.importers.core.usage import counts
from orchtrace_corpus.trace.importers.core.values import dollars
from orchtrace_corpus.trace.model.import_report import ImportReport, LedgerLine, Problem
from orchtrace_corpus.trace.model.terms import Status, TokenBasis
from orchtrace_corpus.trace.model.trace import Trace

_SQLITE = "SQLite format 3\0"
_TABLE = re.compile(r"CREATE TABLE [`\"\[]?part[`\"\]]?\s*\([^;]*message_id[^;]*session_id", re.IGNORECASE)
_ID = re.compile(r'"(?:id|sessionID)"\s*:\s*"(?:ses|msg|prt)_')
_SESSION = re.compile(r'"(?:sessionID|id|parentID)"\s*:\s*"(ses_[^"]{1,100})"')
_EXPORT = re.compile(r'\s*\{\s*"info"\s*:\s*\{\s*"id"\s*:\s*"ses_')
_MEMBERS = (
    {"projectID", "directory", "version"}, {"sessionID", "role", "time"}, {"sessionID", "messageID", "type"},
    {"sessionID", "timestamp", "type", "part"}, {"info", "messages"},
)  # fmt: skip
"""Members of a session, a message, a part, and of what `run` and `export` print."""
_DOCUMENTS = (".json", ".jsonl", ".ndjson")
"""The suffixes of documents; a database with one of them is tied to no other file."""
_ABORTED = "MessageAbortedError"
_NO_USAGE = Usage()
_RESTATED, _UNKNOWN = LedgerLine.RESTATED, TokenBasis.UNKNOWN  # which Python 3.11 takes long to find
_Stated: TypeAlias = tuple[tuple[Any, ...], bool, int]
"""The numbers of a usage: input, output, cache reads and writes, reasoning, whether it is apart, and the total."""


def recognises(beginning: Head) -> bool:
    """Return True if a file that begins like this is of OpenCode, by tables of its database, or by ids and members."""
    if beginning.text.startswith(_SQLITE):
        return _TABLE.search(beginning.text) is not None
    is_likely = _ID.search(beginning.text) is not None
    return is_likely and (_EXPORT.match(beginning.text) is not None or beginning.has_any(_MEMBERS))


def ties(opened: Opened) -> Sequence[str]:
    """Return what ties a file to others: its session, the one above it, and the database its folder was moved to."""
    path, text = opened.file.path, opened.first().text
    if text.startswith(_SQLITE):
        return [os.path.realpath(path)]
    folder = os.path.dirname(os.path.realpath(path) if os.path.islink(path) else path)
    database = opened.of_folders.get(("database", folder))
    if database is None:
        above, _, _ = os.path.join(_real(folder, opened.of_folders), "").rpartition(f"{os.sep}storage{os.sep}")
        database = os.path.join(above, "opencode.db") if above else ""
        database = opened.of_folders["database", folder] = database if os.path.isfile(database) else ""
    about = text.partition('"messages"')[0] if _EXPORT.match(text) else text  # an export has those of one session
    return [*(_SESSION.findall(about) or [os.path.realpath(path)]), *filter(None, [database])]


def _real(folder: str, known: dict[Hashable, str]) -> str:
    """Return the path of a folder without links; what is known of those above it is not asked again."""
    if folder not in known:
        above, name = os.path.split(folder)
        is_plain = name.strip(".") and not os.path.islink(folder)
        known[folder] = os.path.join(_real(above, known), name) if is_plain else os.path.realpath(folder)
    return known[folder]


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the traces of sessions that nobody has spawned, each with those below it.

    Sessions that a database has are not read from JSON files as well.
    """
    known: set[str] = set()
    documents: list[LogFile] = []
    traces = 0
    for file in files:
        if (len(files) > 1 and file.path.endswith(_DOCUMENTS)) or not _is_database(file):
            documents.append(file)
            continue
        from orchtrace_corpus.trace.importers.conversations.opencode.database import Database  # takes long to import

        with Database(file) as database:
            rows = database.sessions()
            for family in _families({name: row.parent for name, row in rows.items()}):
                report = ImportReport()
                store = Store(privacy, report)
                for name in family:
                    database.read(rows[name], store, report)
                    known.add(name)
                for trace in _traces(store, privacy, report):
                    traces += 1
                    yield trace
    report = ImportReport()
    store = Store(privacy, report)
    for file in documents:
        store.take_file(file)
    for name in known & store.sessions.keys():
        del store.sessions[name]
    for trace in _traces(store, privacy, report):
        traces += 1
        yield trace
    if not traces:
        raise EmptyLogError(f"no message of a session in {', '.join(file.name for file in files[:3])}")


def folders(file: LogFile) -> Mapping[str, str]:
    """Return the folder in which each session of a database ran; none where it names none."""
    if not _is_database(file):
        return {}
    from orchtrace_corpus.trace.importers.conversations.opencode.database import Database

    with suppress(DataFileError), Database(file) as database:
        return database.folders()
    return {}


def _is_database(file: LogFile) -> bool:
    with Opened(file) as opened:
        return opened.first().text.startswith(_SQLITE)


def _families(parents: Mapping[str, str]) -> Iterator[list[str]]:
    """Yield the sessions by the one at their top, which comes first, given the parent of each."""
    below: dict[str, list[str]] = {name: [] for name in parents}
    for name, parent in parents.items():
        if parent and parent in below:
            below[parent].append(name)
    return families(below)


def _traces(store: Store, privacy: Privacy, report: ImportReport) -> Iterator[Trace]:
    for family in _families({name: session.parent for name, session in store.sessions.items()}):
        with suppress(EmptyLogError):
            yield _Family([store.sessions[name] for name in family], privacy, report).trace()
            report = ImportReport()


class _Round(Struct, gc=False):
    """A step of an answer: its first and last moment, texts, calls and usage, whether no other follows."""

    begin: float
    end: float
    texts: Sequence[str]
    calls: Sequence[Part]
    usage: Any
    is_last: bool
    cost: float | None = None  # what it cost in US dollars; None where the log does not say
    stated: _Stated = ((), True, 0)  # what its usage states


class _Family:
    """A session that nobody has spawned, with those below it."""

    def __init__(self, sessions: Sequence[Session], privacy: Privacy, report: ImportReport) -> None:
        by_time = attrgetter("created", "id")
        self._messages = {session.id: sorted(session.messages.values(), key=by_time) for session in sessions}
        begun = {
            name: (messages[0].created, messages[0].id) if messages else (0.0, "")
            for name, messages in self._messages.items()
        }
        by_begin = sorted(sessions[1:], key=lambda session: begun[session.id])
        self._sessions = [sessions[0], *by_begin]  # so that names are numbered by time
        self._run = Run("opencode", privacy, report)
        self._privacy, self._report = privacy, report
        self._answers = current_answers()
        self._spawns: list[tuple[str, steps.ToolCall, str]] = []

    def trace(self) -> Trace:
        """Return the trace."""
        run, top = self._run, self._sessions[0]
        run.name, run.version = top.id, top.version
        for session in self._sessions:
            messages = self._messages[session.id]
            role = session.agent or next((name for message in messages if (name := masked(message.agent))), "")
            agent = run.agent(session.id, "main") if session is top else run.agent(session.id, role or "agent", role)
            agent.is_root = session is top
            for message in messages:
                if message.role == "user":
                    self._take_input(agent, message)
                else:
                    self._take_answer(agent, message)
        first = next(iter(run.agents[top.id].steps), None)
        if top.parent and top.parent not in run.agents and first is not None:
            self._report.note(Problem.NO_PARENT, str(first.place))
        known = set(run.agents)
        for parent, call, child in self._spawns:
            if child not in known or child == parent:
                if call.answer is not None and call.answer.status is Status.ERROR:
                    continue
                child = f"{child} of {call.id}"
                run.agent(child, call.role or child, call.role)
            run.spawn(child, parent, call)
        for session in self._sessions[1:]:
            if session.parent in known and not run.is_spawned(session.id):
                run.spawn(session.id, session.parent)
        return run.trace()

    def _take_input(self, thread: steps.Transcript, message: Message) -> None:
        """Take what a person wrote, or what a sub-agent or the program itself has put there."""
        typed = [part for part in message.parts.values() if part.is_typed]
        if thread.is_root and (typed or not message.parts):
            refs = [part.ref for part in typed if part.ref]
            ref = refs[0] if len(refs) == 1 else self._privacy.reference("\n".join(refs))
            thread.add(steps.UserInput(message.created, message.place, ref=ref))
        else:
            thread.add(steps.Note(message.created, message.place))

    def _take_answer(self, thread: steps.Transcript, message: Message) -> None:
        """Take a message of the model: an answer for each of its steps."""
        rounds = _rounds(message.parts)
        is_restated = message.tokens is not None
        if is_restated and not [step for step in rounds if step.usage and step.usage != _NO_USAGE]:
            rounds[-1].usage, is_restated = message.tokens, False
        for step in rounds:
            step.stated = _stated(step.usage)
        if is_restated:
            first = rounds[0]
            of_message = first.stated if message.tokens == first.usage else _stated(message.tokens)
            self._report.enter_all(_RESTATED, {"total": of_message[2]})
            if len(rounds) == 1 and of_message != first.stated:
                self._report.note(Problem.RESTATED_DIFFERS, str(message.place))
        if message.cost and all(step.cost is None for step in rounds):
            rounds[-1].cost = dollars(message.cost)
        over = message.created
        for step in rounds:
            over = self._take_round(thread, message, step, over)
        if thread.is_root and message.error == _ABORTED:
            thread.add(steps.UserInput(over, message.place, waited=False, status=Status.CANCELLED))

    def _take_round(self, thread: steps.Transcript, message: Message, step: _Round, begin: float) -> float:
        """Add an answer with its calls, and return when all of it was over."""
        first, calls, is_last, place, created = step.begin, step.calls, step.is_last, message.place, message.created
        begin = first if begin == NO_TIME else begin
        end = max(begin, step.end, NO_TIME if calls or not is_last else message.completed)
        more: dict[str, Any] = {} if begin == NO_TIME else {"t_request": begin}
        if NO_TIME < begin <= first <= end:
            more["t_first_token"] = first
        if message.finish and is_last:
            more["finish_reason"] = message.finish
        if step.cost is not None:
            more["cost_usd"] = step.cost
        error = message.error if is_last else ""
        ref = step.texts[0] if step.texts else ""  # one text is known by its own hash, as in other formats
        call = steps.ModelCall(begin, place, 0.0, end, message.model, _UNKNOWN, ref, not calls, False, error, "", more)
        for text in step.texts[1:]:
            call.note_text(text, self._privacy)
        thread.add(call)
        amounts, reasoning_apart, _ = step.stated
        self._run.spend(call, amounts, caches_apart=True, reasoning_apart=reasoning_apart)
        if call.spent is not None and created != NO_TIME:  # a fork copies messages under new ids
            self._answers.note((created, amounts), f"{message.model} opencode", place.file, place.line)
        for part in calls:
            end = max(end, self._take_call(thread, call, part))
        return end

    def _take_call(self, thread: steps.Transcript, call: steps.ModelCall, part: Part) -> float:
        tool_call, result = part.call, part.result
        assert tool_call is not None
        tool_call.call = call
        if tool_call.time == NO_TIME:
            tool_call.time = call.end
        thread.add(tool_call)
        end = max(part.end, tool_call.time)
        if result is not None:
            result.time, tool_call.answer = end, result
            thread.add(result)
        if part.child:
            self._spawns.append((thread.key, tool_call, part.child))
        return end


def _rounds(parts: Mapping[str, Part]) -> list[_Round]:
    """Return the parts of a message by step; of one without any, a step in which there is nothing."""
    rounds: list[_Round] = []
    texts: list[str] = []
    calls: list[Part] = []
    first, last, usage, cost, is_empty = NO_TIME, NO_TIME, None, None, True
    for name in sorted(parts):
        part = parts[name]
        if part.kind == "step-start" and not is_empty:
            rounds.append(_Round(first, last, texts, calls, usage, False, cost))
            first = last = NO_TIME
            texts, calls, usage, cost = [], [], None, None
        is_empty, begin, end = False, part.begin, part.end
        if begin != NO_TIME and not NO_TIME < first <= begin:
            first = begin
        if part.call is not None:
            calls.append(part)
            end = begin  # it goes on when the model has answered
        elif part.ref:
            texts.append(part.ref)
        if end > last:
            last = end
        if usage is None:
            usage = part.tokens
        if part.cost:
            cost = dollars(part.cost)
    return [*rounds, _Round(first, last, texts, calls, usage, True, cost)]


def _stated(given: Any) -> _Stated:
    """Return a usage, whose kinds are apart; but 1.1 has reasoning in the output as well, as its total shows."""
    usage = given if type(given) is Usage else _NO_USAGE
    cache = usage.cache if type(usage.cache) is Usage else _NO_USAGE
    given = usage.input, usage.output, cache.read, cache.write, usage.reasoning
    known = counts(given)
    total, reasoning = sum(filter(None, known)), known[-1] or 0
    is_apart = not (reasoning and usage.total == total - reasoning)
    return given, is_apart, total if is_apart else total - reasoning
