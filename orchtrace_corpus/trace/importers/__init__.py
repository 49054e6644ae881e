"""Importers: logs that agent teams already write, as traces. One module for each format.

Other packages add formats by the entry points `orchtrace_corpus.importers`, as docs/importers.md explains. These are
looked up only for a file, or the name of a format, that is none of the built-in ones.
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
from orchtrace_corpus.trace.importers.core.identity import Answers, group_by_session, program_of
from orchtrace_corpus.trace.importers.core.logs import Head, LogFile, Opened
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
"""The group of entry points by which other packages add importers; the name of each is that of its format."""

_MARKS: Mapping[str, Sequence[str]] = {
    "conversations.claude_code": ('"userType"', '"leafUuid"'),
    "conversations.codex": ('"session_meta"', '"response_item"', '"event_msg"', '"turn_context"'),
    "spans.openai_agents": ('"trace.span"', '"workflow_name"', '"span_data"'),
    "spans.otlp": ('"resourceSpans"', '"resource_spans"', '"startTimeUnixNano"', '"start_time_unix_nano"'),
    "spans.langsmith": ('"run_type"', '"dotted_order"'),
    "atif": ('"schema_version"', '"step_id"'),
    "conversations.opencode": ("SQLite format 3\0", '"ses_', '"prt_'),
    "spans.inspect_ai": ("PK\3\4", '"eval_id"'),
    "conversations.autogen": (
        *('"delivery_stage"', '"models_usage"', '"LLMCall"', '"LLMStreamEnd"', '{\\"message'),
        *('\\"delivery_stage\\"', '\\"LLMCall\\"', '"agent_states"', '"llm_context"'),
    ),
    "conversations.google_adk": ('"appName"', '"app_name"'),
    "conversations.who_and_when": ('"mistake_agent"', '"history"', '"question_ID"'),
    "conversations.gemini_cli": ('"projectHash"',),
    "conversations.copilot_cli": ('"copilot-agent"',),
    "conversations.kimi_code": ('"protocol_version"', '"archived"'),
    "spans.atof": ('"atof_version"',),
    "conversations.entire": ('"cli_version"',),
    "conversations.pi": ('"type":"session"', '"parentId"'),
    "conversations.qwen_code": ('"parts"', '"systemPayload"', '"parentSessionId"'),  # last, as others have some, too
}
"""By module: markers; the first bytes of its files mostly have one. Modules without one there are asked last."""
_MODULES = {module.rpartition(".")[2]: module for module in _MARKS}


@runtime_checkable
class Importer(Protocol):
    """The interface of an importer: the module of a format, or the object of an entry point.

    It may offer more:

    - `session_keys(opened)`, keys of a file: files with a key in common are one session. Without it, each file is one.
    - `further_files(opened)`, the further files of a session of which one file is named.
    - `folders(file)`, the folders in which the sessions of a file ran, by trace id.
    - `original(file)`, the path of a log that the file only condenses: if that log is read, the file is not.
    - `TITLE`, what people call the format.
    - `SUFFIXES`, the endings of its files in folders read with `--from`, if not `logs.SUFFIXES`.
    """

    def recognises(self, beginning: Head) -> bool:
        """Return True if a file that begins like this is of the format."""

    def read(self, files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
        """Return the traces of the files of a session; mostly one.

        Raises:
            DataFileError: A file cannot be read, or is no log of the format.
        """


class Session(NamedTuple):
    """Files of one trace or more, and their format, which is empty for a file without permission to read."""

    form: str
    files: tuple[LogFile, ...]


class Installed(NamedTuple):
    """The importers that other packages have added."""

    importers: Mapping[str, Importer]  # by the names of their formats
    refused: Sequence[str]  # a sentence for each that cannot be used


@cache
def installed() -> Installed:
    """Return the importers that other packages have added."""
    from importlib.metadata import entry_points

    found: dict[str, Importer] = {}
    refused = []
    for entry in entry_points(group=ENTRY_POINTS):
        subject = f"the importer {quote(entry.name)} of {quote(entry.value)} is not used"
        if entry.name in FORMATS or entry.name in found:
            refused.append(f"{subject}: there is another of this name")
            continue
        try:
            offered = entry.load()
        except Exception as error:  # a broken module of another package does not stop the others
            refused.append(f"{subject}: {type(error).__name__}: {printable(str(error), limit=200)}")
            continue
        if isinstance(offered, Importer) and not isinstance(offered, type):  # a class would need an instance
            found[entry.name] = offered
        else:
            refused.append(f"{subject}: it lacks recognises or read")
    return Installed(found, refused)


def names() -> tuple[str, ...]:
    """Return the names of all formats, built in or added."""
    return (*FORMATS, *installed().importers)


@cache
def importer(form: str) -> Importer:
    """Return the importer of a format.

    Raises:
        CommandUseError: There is no such format.
    """
    if form in FORMATS:
        own: Importer = import_module(f"orchtrace_corpus.trace.importers.{_MODULES[form]}")
        return own
    found = installed().importers.get(form)
    if found is None:
        message = f"there is no log format {quote(form)}{suggestion(form, list(names()))}"
        raise CommandUseError(message, " ".join(f"{reason}." for reason in installed().refused))
    return found


def _ties(form: str, opened: Opened) -> Sequence[str]:
    """Return the keys that a file shares with others of its session."""
    of_format = importer(form)
    ties: Sequence[str] = of_format.session_keys(opened) if hasattr(of_format, "session_keys") else [opened.file.path]
    return ties


def title(form: str) -> str:
    """Return the title of a format."""
    return FORMATS.get(form) or str(getattr(importer(form), "TITLE", form))


class Sources(NamedTuple):
    """The sources in files and folders."""

    sessions: list[Session]
    traces: list[LogFile]  # files of finished traces
    others: list[LogFile]  # files of neither
    skipped: list[str]  # a sentence for each reason why something was not read


def sessions(paths: str | Sequence[str], form: str = "") -> list[Session]:
    """Return the sessions in files and folders; one session may be in several of them.

    Args:
        paths: The file or folder, or several.
        form: The format, as in `find`.

    Raises:
        CommandUseError: There is no such format.
        DataFileError: There is no log there, or no file is a log of any format.
    """
    given = [paths] if isinstance(paths, str) else list(paths)
    found = find(given, form)
    return found.sessions if found.sessions else refuse(given, found)


def find(paths: Sequence[str], form: str = "") -> Sources:
    """Return the sources in files and folders. Each file is opened once.

    With a named file, further files of its session are read. A file that may not be read is a session without a
    format, which `read` refuses, so that the others are read.

    Args:
        paths: The files and folders.
        form: The format; else that of each file is recognised from its beginning.

    Raises:
        CommandUseError: There is no such format.
        DataFileError: There is no log there.
    """
    suffixes = getattr(importer(form), "SUFFIXES", logs.SUFFIXES) if form else logs.SUFFIXES
    searches = [logs.find(path, suffixes) for path in paths]
    waiting = [file for search in searches for file in search.files]
    named = {path for path in paths if os.path.isfile(path)}
    further_paths: set[str] = set()  # the files that `further_files` adds
    known: set[tuple[int, int]] = set()
    folder_cache: dict[Hashable, str] = {}  # facts about folders, shared by the files
    by_format: dict[str, list[tuple[LogFile, Sequence[str]]]] = {}
    condensed: dict[str, str] = {}
    traces: list[LogFile] = []
    others: list[LogFile] = []
    forbidden: dict[str, Session] = {}
    programs = Counter[str]()
    likely = ""
    for file in waiting:  # which grows by the further files of a session
        with Opened(file, folder_cache) as opened:
            status = opened.status()
            if status is None:
                forbidden.setdefault(os.path.realpath(file.path), Session("", (file,)))
                continue
            identity = status.st_dev, status.st_ino  # one file may have several paths
            if identity in known:
                continue
            known.add(identity)
            if not form and may_hold_traces(opened.first().text) and holds_traces(file.path):
                traces.append(file)
            elif name := form or recognise(opened, likely):
                likely, of_format = name, importer(name)
                by_format.setdefault(name, []).append((file, _ties(name, opened)))
                if hasattr(of_format, "original"):
                    condensed[file.path] = os.path.realpath(of_format.original(file))
                if file.path in named and hasattr(of_format, "further_files"):
                    further: Sequence[LogFile] = of_format.further_files(opened)
                    further_paths.update(file.path for file in further)
                    waiting += further
            elif file.path in further_paths:
                continue
            elif may_hold_traces(opened.head().text):  # perhaps a broken trace
                traces.append(file)
            else:
                others.append(file)
                programs[program_of(opened.head())] += 1
    del programs[""]  # of unknown programs
    repeated = set[str]()  # files that condense others which are read, too
    if condensed:
        read_paths = {os.path.realpath(file.path) for files in by_format.values() for file, _ in files}
        for path, original in condensed.items():
            if original in read_paths and original != os.path.realpath(path):
                repeated.add(path)
    sessions: list[Session] = []
    for name, files in by_format.items():
        groups = group_by_session((file, ties) for file, ties in files if file.path not in repeated)
        sessions += [Session(name, group) for group in groups if any(file.path not in further_paths for file in group)]
    skipped = [sentence for search in searches for sentence in search.skipped]
    if repeated:
        subject = "1 file condenses" if len(repeated) == 1 else f"{len(repeated):,} files condense"
        skipped.append(f"{subject} others that are read: left out")
    for program, count in programs.items():
        skipped.append(f"{count:,} {'file is' if count == 1 else 'files are'} of {program}, which is not read")
    skipped += installed().refused if others else ()
    return Sources([*sessions, *forbidden.values()], traces, others, skipped)


def refuse(paths: Sequence[str], found: Sources) -> NoReturn:
    """Raise the error that files and folders contain no log."""
    others = found.others or found.traces  # traces, too, are no logs
    first = "it" if len(others) == 1 else f"of {len(others):,} files the first, {quote_path(others[0].name)},"
    message = f"{', '.join(map(quote_path, paths[:3]))} is not a log in a known format: {first}"
    refusals = [f"{reason}." for reason in installed().refused]
    hint = " ".join((f"Formats: {', '.join(names())}; --from names one.", *refusals))
    raise DataFileError(f"{message} {_description(others[0])}", hint)


def group_files(form: str, files: Iterable[LogFile]) -> Iterator[tuple[LogFile, ...]]:
    """Yield the files of a format by session."""
    ties_of_files: list[tuple[LogFile, Sequence[str]]] = []
    folder_cache: dict[Hashable, str] = {}
    for file in files:
        with Opened(file, folder_cache) as opened:
            ties_of_files.append((file, _ties(form, opened)))
    yield from group_by_session(ties_of_files)


def recognise(opened: Opened, likely: str = "") -> str:
    """Return the format of a file, empty for none; `likely`, such as that of the file before, is tried first."""
    if likely in FORMATS and importer(likely).recognises(opened.first()):
        return likely
    beginnings = opened.first, opened.head  # the first row is mostly enough
    text = opened.first().text
    marked = [name for name, module in _MODULES.items() if any(mark in text for mark in _MARKS[module])]
    for beginning in beginnings:
        for name in (*marked, *FORMATS):
            if importer(name).recognises(beginning()):
                return name
    added = installed().importers.items()
    return next((name for begin in beginnings for name, module in added if module.recognises(begin())), "")


def format_of(data: bytes) -> str:
    """Return the format of a log that begins with these bytes; empty for none."""
    beginnings = logs.Head(data, 1), logs.Head(data, logs.HEAD_ROWS)
    return next((name for beginning in beginnings for name in names() if importer(name).recognises(beginning)), "")


def read(session: Session, privacy: Privacy, answers: Answers | None = None) -> Iterator[Trace]:
    """Yield the traces of a session.

    Args:
        session: The session.
        privacy: How contents are referred to.
        answers: Collects the ids of its answers, which show copies in other sessions.

    Raises:
        DataFileError: A file cannot be read, or is no log of the format.
    """
    if not session.form:
        logs.head(session.files[0])  # raises an error with the reason
        raise DataFileError(f"cannot read {quote_path(session.files[0].path)}: Permission denied")
    traces = importer(session.form).read(session.files, privacy)
    collector = answers or Answers()
    while True:
        with privacy.pseudonyms(), collector:
            try:
                trace = next(traces, None)
            except logs.EmptyLogError:
                for file in session.files:  # a truncated file has an error of its own
                    beginning = logs.head(file)
                    if not beginning.rows and beginning.text.lstrip()[:1] in ("{", "["):
                        logs.document(file)
                raise
        if trace is None:
            return
        yield trace


class Imported(NamedTuple):
    """The result of a session of a log: a trace, or the error that stopped it."""

    form: str  # the format of the log; empty if it may not be read
    files: tuple[str, ...]  # the paths of its files
    trace: Trace | None
    error: DataFileError | None = None
    answers: Mapping[int, str] = {}  # the ids of its answers, by the index of their events


def import_sessions(sessions: Iterable[Session], privacy: Privacy) -> Iterator[Imported]:
    """Yield the traces of sessions, one in memory at a time; an error of one does not stop the rest."""
    for session in sessions:
        answers = Answers()
        files = tuple(file.path for file in session.files)
        try:
            for trace in read(session, privacy, answers):
                yield Imported(session.form, files, trace, answers=answers.take(trace))
        except DataFileError as error:
            yield Imported(session.form, files, None, error.with_traceback(None))  # frames would keep it in memory


def is_binary(beginning: Head) -> bool:
    """Return True if a file is not text, in UTF-8 or UTF-16."""
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
        return f"begins with an object of {', '.join(quote(masked(name)) for name in list(beginning.rows[0])[:5])}"
    return f"begins with {quote(masked(beginning.text)[:40])}"
