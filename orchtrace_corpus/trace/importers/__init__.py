"""Importers turn the logs of agent teams into traces. Each format has one module.

Other packages add formats through the entry points `orchtrace_corpus.importers`, as docs/importers.md explains. They
are loaded only if no built-in format recognises a file or has the given name.
"""

import os
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import NoReturn, Protocol, runtime_checkable

from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.findings import printable, quote, quote_path, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core.identity import AnswerIds, group_by_session, program_of
from orchtrace_corpus.trace.importers.core.logs import Head, LogFile, LogReader
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.model.decode import holds_traces, may_hold_traces
from orchtrace_corpus.trace.model.trace import Trace

FORMATS: Mapping[str, str] = {
    "claude_code": "Claude Code transcripts (JSON Lines)",
    "codex": "Codex CLI rollouts (JSON Lines)",
    "openai_agents": "OpenAI Agents SDK export (JSON)",
    "otlp": "OpenTelemetry GenAI or OpenInference spans (OTLP JSON)",
    "langsmith": "LangSmith or LangGraph run trees (JSON)",
    "atif": "ATIF trajectories (JSON)",
    "opencode": "OpenCode sessions (SQLite, JSON)",
    "inspect_ai": "Inspect AI logs (.eval, JSON)",
    "autogen": "AutoGen event logs and results (JSON Lines, JSON)",
    "google_adk": "Google ADK sessions (JSON)",
    "who_and_when": "Who&When records (JSON)",
    "qwen_code": "Qwen Code sessions (JSON Lines)",
    "gemini_cli": "Gemini CLI sessions (JSON Lines or JSON)",
    "copilot_cli": "GitHub Copilot CLI sessions (JSON Lines)",
    "kimi_code": "Kimi Code sessions (JSON Lines)",
    "pi": "Pi sessions (JSON Lines)",
    "entire": "Entire compact transcripts (JSON Lines)",
    "atof": "ATOF events of NeMo Relay and the NeMo Agent Toolkit (JSON Lines)",
}
"""The built-in formats by name, with their titles. The first that recognises a file reads it."""

ENTRY_POINTS = "orchtrace_corpus.importers"
"""The group of entry points by which other packages add importers, each under the name of its format."""

_AUTOGEN_MARKERS = (
    '"delivery_stage"', '"models_usage"', '"LLMCall"', '"LLMStreamEnd"', '{\\"message',
    '\\"delivery_stage\\"', '\\"LLMCall\\"', '"agent_states"', '"llm_context"',
)  # fmt: skip
_MARKERS: Mapping[str, Sequence[str]] = {
    "conversations.claude_code": ('"userType"', '"leafUuid"'),
    "conversations.codex": ('"session_meta"', '"response_item"', '"event_msg"', '"turn_context"'),
    "spans.openai_agents": ('"trace.span"', '"workflow_name"', '"span_data"'),
    "spans.otlp": ('"resourceSpans"', '"resource_spans"', '"startTimeUnixNano"', '"start_time_unix_nano"'),
    "spans.langsmith": ('"run_type"', '"dotted_order"'),
    "atif": ('"schema_version"', '"step_id"'),
    "conversations.opencode": ("SQLite format 3\0", '"ses_', '"prt_'),
    "spans.inspect_ai": ("PK\3\4", '"eval_id"'),
    "conversations.autogen": _AUTOGEN_MARKERS,
    "conversations.google_adk": ('"appName"', '"app_name"'),
    "conversations.who_and_when": ('"mistake_agent"', '"history"', '"question_ID"'),
    "conversations.gemini_cli": ('"projectHash"',),
    "conversations.copilot_cli": ('"copilot-agent"',),
    "conversations.kimi_code": ('"protocol_version"', '"archived"'),
    "spans.atof": ('"atof_version"',),
    "conversations.entire": ('"cli_version"',),
    "conversations.pi": ('"type":"session"', '"parentId"'),
    "conversations.qwen_code": (
        '"parts"',
        '"systemPayload"',
        '"parentSessionId"',
    ),  # last: files of other formats have these, too
}
"""Texts by module. Most files of a format have one of its texts in their first bytes.

Modules with a text in a file are asked first if they recognise it, which avoids loading the others."""
_MODULES = {module.rpartition(".")[2]: module for module in _MARKERS}


@runtime_checkable
class Importer(Protocol):
    """The interface of an importer: the module of a format, or the object of an entry point.

    These members are optional:

    - `session_keys(reader)` returns keys of a file. Files with a key in common are one session. Without this function,
      each file is a session.
    - `further_files(reader)` returns the other files of a session. It is called for each file that the user names.
    - `folders(file)` returns the folders in which the sessions of a file ran, by trace id.
    - `original(file)` returns the path of the log that the file summarises. If that log is read, the file is not.
    - `TITLE` is the title of the format.
    - `SUFFIXES` are the endings of its files in folders read with `--from`; `logs.SUFFIXES` by default.
    """

    def recognises(self, beginning: Head) -> bool:
        """Return True if a file with this beginning has the format."""

    def read(self, files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
        """Yield the traces of a session, mostly one; raise DataFileError if a file is no log of the format."""


class Session(NamedTuple):
    """The files of a session, from which an importer makes one trace or more."""

    form: str  # the name of their format; empty for a file without permission to read
    files: tuple[LogFile, ...]


class Installed(NamedTuple):
    """The importers that other packages have added."""

    importers: Mapping[str, Importer]  # by the names of their formats
    refused: Sequence[str]  # a sentence for each entry point that cannot be used


@cache
def installed() -> Installed:
    """Return the importers that other packages have added."""
    from importlib.metadata import entry_points

    importers: dict[str, Importer] = {}
    refused = []
    for entry in entry_points(group=ENTRY_POINTS):
        subject = f"the importer {quote(entry.name)} of {quote(entry.value)} is not used"
        if entry.name in FORMATS or entry.name in importers:
            refused.append(f"{subject}: there is another of this name")
            continue
        try:
            loaded = entry.load()
        except Exception as error:  # a broken module of another package does not stop the others
            refused.append(f"{subject}: {type(error).__name__}: {printable(str(error), limit=200)}")
            continue
        if isinstance(loaded, Importer) and not isinstance(loaded, type):  # a class would need an instance
            importers[entry.name] = loaded
        else:
            refused.append(f"{subject}: it lacks recognises or read")
    return Installed(importers, refused)


def names() -> tuple[str, ...]:
    """Return the names of all formats, built in or added."""
    return (*FORMATS, *installed().importers)


@cache
def importer(form: str) -> Importer:
    """Return the importer of a format; raise CommandUseError if there is no such format."""
    if form in FORMATS:
        module: Importer = import_module(f"orchtrace_corpus.trace.importers.{_MODULES[form]}")
        return module
    added = installed().importers.get(form)
    if added is None:
        message = f"there is no log format {quote(form)}{suggestion(form, list(names()))}"
        raise CommandUseError(message, " ".join(f"{reason}." for reason in installed().refused))
    return added


def _session_keys(form: str, reader: LogReader) -> Sequence[str]:
    """Return the keys that a file shares with the other files of its session."""
    module = importer(form)
    if not hasattr(module, "session_keys"):
        return [reader.file.path]
    keys: Sequence[str] = module.session_keys(reader)
    return keys


def title(form: str) -> str:
    """Return the title of a format."""
    return FORMATS.get(form) or str(getattr(importer(form), "TITLE", form))


class Sources(NamedTuple):
    """The sessions, traces and other files that a search for logs found."""

    sessions: list[Session]
    traces: list[LogFile]  # files that hold finished traces
    others: list[LogFile]  # files that are neither logs nor traces
    skipped: list[str]  # a sentence for each reason why files were not read


def sessions(paths: str | Sequence[str], form: str = "") -> list[Session]:
    """Return the sessions in files and folders, as `find` does; raise DataFileError if there is none."""
    if isinstance(paths, str):
        paths = [paths]
    sources = find(paths, form)
    if not sources.sessions:
        refuse(paths, sources)
    return sources.sessions


def find(paths: Sequence[str], form: str = "") -> Sources:
    """Return the sessions and traces in files and folders. Each file is opened once.

    For a file that `paths` names, the further files of its session are found, too. A file without permission to read
    becomes a session without a format. `read` raises the error for it, so that the other sessions are still read.

    If `form` is empty, the format of each file is recognised from its beginning. Raise CommandUseError for an unknown
    format, DataFileError if a path or a log does not exist.
    """
    suffixes: Sequence[str] = logs.SUFFIXES
    if form:
        suffixes = getattr(importer(form), "SUFFIXES", suffixes)
    searches = [logs.find(path, suffixes) for path in paths]
    queue = [file for search in searches for file in search.files]
    named_paths = {path for path in paths if os.path.isfile(path)}
    further_paths: set[str] = set()  # of files that `further_files` returned
    seen: set[tuple[int, int]] = set()  # device and inode of each file so far: a file may have several paths
    folder_cache: dict[Hashable, str] = {}  # facts about folders, shared by the files
    files_by_format: dict[str, list[tuple[LogFile, Sequence[str]]]] = {}  # each file with its session keys
    originals: dict[str, str] = {}  # by the path of a file that summarises a log: the real path of that log
    traces: list[LogFile] = []
    others: list[LogFile] = []
    forbidden: dict[str, Session] = {}  # by real path
    program_counts = Counter[str]()  # the number of files of each program without an importer
    last_format = ""
    for file in queue:  # it grows by the further files of sessions
        with LogReader(file, folder_cache) as reader:
            status = reader.status()
            if status is None:
                forbidden.setdefault(os.path.realpath(file.path), Session("", (file,)))
                continue
            identity = status.st_dev, status.st_ino
            if identity in seen:
                continue
            seen.add(identity)
            if not form and may_hold_traces(reader.first().text) and holds_traces(file.path):
                traces.append(file)
            elif name := form or recognise(reader, last_format):
                last_format, module = name, importer(name)
                files_by_format.setdefault(name, []).append((file, _session_keys(name, reader)))
                if hasattr(module, "original"):
                    originals[file.path] = os.path.realpath(module.original(file))
                if file.path in named_paths and hasattr(module, "further_files"):
                    further_files: Sequence[LogFile] = module.further_files(reader)
                    further_paths.update(further.path for further in further_files)
                    queue += further_files
            elif file.path in further_paths:
                continue
            elif may_hold_traces(reader.head().text):  # perhaps a trace with errors, which its reader reports
                traces.append(file)
            else:
                others.append(file)
                program_counts[program_of(reader.head())] += 1
    del program_counts[""]  # of unknown programs
    summaries = set[str]()  # paths of files that summarise a log that is read, too
    if originals:
        read_paths = {os.path.realpath(file.path) for files in files_by_format.values() for file, _ in files}
        for path, original in originals.items():
            if original in read_paths and original != os.path.realpath(path):
                summaries.add(path)
    sessions: list[Session] = []
    for name, files in files_by_format.items():
        groups = group_by_session((file, keys) for file, keys in files if file.path not in summaries)
        # further files that share no key with a file of `paths` belong to other sessions
        sessions += [Session(name, group) for group in groups if any(file.path not in further_paths for file in group)]
    skipped = [sentence for search in searches for sentence in search.skipped]
    if summaries:
        subject = "1 file condenses" if len(summaries) == 1 else f"{len(summaries):,} files condense"
        skipped.append(f"{subject} others that are read: left out")
    for program, count in program_counts.items():
        subject = "1 file is" if count == 1 else f"{count:,} files are"
        skipped.append(f"{subject} of {program}, which is not read")
    if others:
        skipped += installed().refused
    return Sources([*sessions, *forbidden.values()], traces, others, skipped)


def refuse(paths: Sequence[str], sources: Sources) -> NoReturn:
    """Raise the error that files and folders contain no log."""
    files = sources.others or sources.traces  # traces are no logs either
    subject = "it"
    if len(files) > 1:
        subject = f"of {len(files):,} files the first, {quote_path(files[0].name)},"
    named = ", ".join(map(quote_path, paths[:3]))
    hint = f"Formats: {', '.join(names())}; --from names one."
    for reason in installed().refused:
        hint += f" {reason}."
    raise DataFileError(f"{named} is not a log in a known format: {subject} {_description(files[0])}", hint)


def group_files(form: str, files: Iterable[LogFile]) -> Iterator[tuple[LogFile, ...]]:
    """Yield the files of each session; all files have the same format."""
    keys_by_file: list[tuple[LogFile, Sequence[str]]] = []
    folder_cache: dict[Hashable, str] = {}
    for file in files:
        with LogReader(file, folder_cache) as reader:
            keys_by_file.append((file, _session_keys(form, reader)))
    yield from group_by_session(keys_by_file)


def recognise(reader: LogReader, likely: str = "") -> str:
    """Return the format of a file, empty if unknown; `likely`, such as that of the previous file, is tried first."""
    if likely in FORMATS and importer(likely).recognises(reader.first()):
        return likely
    text = reader.first().text
    marked = [name for name, module in _MODULES.items() if any(marker in text for marker in _MARKERS[module])]
    for beginning in (reader.first, reader.head):  # the first row is mostly enough
        for name in (*marked, *FORMATS):
            if importer(name).recognises(beginning()):
                return name
    for beginning in (reader.first, reader.head):
        for name, added in installed().importers.items():
            if added.recognises(beginning()):
                return name
    return ""


def format_of(data: bytes) -> str:
    """Return the format of a log that begins with these bytes; empty if unknown."""
    for beginning in (Head(data, max_rows=1), Head(data, logs.HEAD_ROWS)):
        for name in names():
            if importer(name).recognises(beginning):
                return name
    return ""


def read(session: Session, privacy: Privacy, answers: AnswerIds | None = None) -> Iterator[Trace]:
    """Yield the traces of a session, and note the ids of its answers; raise DataFileError if a file is no such log."""
    if not session.form:
        logs.head(session.files[0])  # raises an error with the reason
        raise DataFileError(f"cannot read {quote_path(session.files[0].path)}: Permission denied")
    traces = importer(session.form).read(session.files, privacy)
    collector = answers or AnswerIds()
    while True:
        with privacy.pseudonyms(), collector:
            try:
                trace = next(traces, None)
            except logs.EmptyLogError:
                for file in session.files:  # for a truncated document, `logs.document` raises a better error
                    beginning = logs.head(file)
                    if not beginning.rows and beginning.text.lstrip()[:1] in ("{", "["):
                        logs.document(file)
                raise
        if trace is None:
            return
        yield trace


class Imported(NamedTuple):
    """A trace of a session, or the error that ended its import."""

    form: str  # the name of the format; empty for a file without permission to read
    files: tuple[str, ...]  # the paths of its files
    trace: Trace | None
    error: DataFileError | None = None
    answers: Mapping[int, str] = {}  # the ids of the trace's answers, by the index of their events


def import_sessions(sessions: Iterable[Session], privacy: Privacy) -> Iterator[Imported]:
    """Yield the traces of sessions. An error in one session does not stop the rest."""
    for session in sessions:
        answers = AnswerIds()
        files = tuple(file.path for file in session.files)
        try:
            for trace in read(session, privacy, answers):
                yield Imported(session.form, files, trace, answers=answers.take(trace))
        except DataFileError as error:  # without its traceback, whose frames would keep the session in memory
            yield Imported(session.form, files, None, error.with_traceback(None))


def is_binary(beginning: Head) -> bool:
    """Return True if a file is not text in UTF-8 or UTF-16."""
    return "\0" in beginning.text and not beginning.is_utf16


def _description(file: LogFile) -> str:
    """Describe the beginning of a file in a few words."""
    beginning = logs.head(file)
    if not beginning.text.strip():
        return "is empty"
    if beginning.is_utf16:
        return "is UTF-16; save it as UTF-8"
    if is_binary(beginning):
        return "is not text"
    if program := program_of(beginning):
        return f"is of {program}, which is not read"
    if beginning.rows:
        members = list(beginning.rows[0])[:5]
        return f"begins with an object of {', '.join(quote(masked(name)) for name in members)}"
    return f"begins with {quote(masked(beginning.text)[:40])}"
