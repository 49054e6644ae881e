"""Finding and reading log files, whatever they are: nothing outside the folder, nothing that takes all memory."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchtrace_corpus.base import budget
from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.importers.core import json_parts as parts
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core.builder import as_data
from orchtrace_corpus.trace.importers.core.json_parts import Part
from orchtrace_corpus.trace.importers.core.logs import LogFile, contents, document
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.model.import_report import ImportReport
from tests.conftest import ROOT, run_corpus
from tests.effort import cpu_seconds, mostly_slow, tries
from tests.trace.spanlogs import LOGS, sdk_span, usage

GOOD = json.dumps(sdk_span("g", None, "generation", 0, 1, usage=usage(10, 1))) + "\n"


def read(path: Path) -> tuple[list[tuple[int, Any]], dict[str, Any]]:
    """The rows of a file, and the report of its import."""
    report = ImportReport()
    rows = [tuple(row) for row in logs.rows(LogFile(str(path), path.name), report)]
    return rows, report.as_data()


# Which files


def test_logs_are_found_in_order_and_links_out_of_the_folder_are_not(tmp_path: Path) -> None:
    inside, outside = tmp_path / "logs", tmp_path / "secret"
    for path in (inside / "b" / "2.jsonl", inside / "a.json", inside / "b" / "1.ndjson", inside / "note.txt"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(GOOD)
    outside.mkdir()
    (outside / "theirs.jsonl").write_text(GOOD)
    (inside / "link.jsonl").symlink_to(outside / "theirs.jsonl")
    (inside / "folder").symlink_to(outside)
    (inside / "broken.jsonl").symlink_to(inside / "nothing")
    (inside / "own.jsonl").symlink_to(inside / "a.json")
    (inside / "circle").symlink_to(inside)
    os.mkfifo(inside / "pipe.jsonl")

    assert [file.name for file in logs.find(str(inside)).files] == ["a.json", "own.jsonl", "b/1.ndjson", "b/2.jsonl"]
    sessions = importers.sessions(str(inside))
    assert sorted(file.name for session in sessions for file in session.files) == ["a.json", "b/1.ndjson", "b/2.jsonl"]


@pytest.mark.parametrize("folder", ["logs", "logs/", "./logs", "logs//", "logs/../logs", "."])
def test_files_are_called_by_their_path_below_the_folder_however_that_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    path = tmp_path / "logs" / "b" / "1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(GOOD)
    monkeypatch.chdir(tmp_path)

    assert [file.name for file in logs.find(folder).files] == ["b/1.jsonl" if "logs" in folder else "logs/b/1.jsonl"]


def test_links_that_lead_out_and_folders_that_may_not_be_read_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, outside = tmp_path / "logs", tmp_path / "outside"
    for folder in (inside / "closed", inside / "open", outside):
        folder.mkdir(parents=True)
        (folder / "x.jsonl").write_text(GOOD)
    (inside / "link.jsonl").symlink_to(outside / "x.jsonl")
    (inside / "open" / "folder").symlink_to(outside)
    (inside / "open" / "own").symlink_to(inside / "closed")
    listed = os.scandir

    def scandir(path: str) -> object:
        if path == str(inside / "closed"):
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = logs.find(str(inside))

    assert [file.name for file in found.files] == ["open/x.jsonl"]
    assert found.skipped == [
        f"2 links lead out of {str(inside)!r}: not followed",
        f"1 folder, {str(inside / 'closed')!r}, cannot be read: Permission denied",
    ]
    for command in ("import", "doctor"):
        told = run_corpus("trace", command, str(inside)).stderr
        assert "corpus: 2 links lead out of " in told
        assert "cannot be read: Permission denied" in told
    (inside / "open" / "x.jsonl").unlink()
    with pytest.raises(DataFileError, match="no log in") as refusal:
        logs.find(str(inside))
    assert "2 links lead out of" in str(refusal.value.hint)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_log_in_utf_16_is_refused_with_what_to_do(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "x.jsonl").write_bytes(GOOD.encode(encoding))

    with pytest.raises(DataFileError, match="it is UTF-16; save it as UTF-8"):
        importers.sessions(str(tmp_path / "x.jsonl"))


def test_a_folder_whose_name_begins_like_the_given_one_is_outside(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs-of-others").mkdir()
    (tmp_path / "logs-of-others" / "x.jsonl").write_text(GOOD)
    (tmp_path / "logs" / "x.jsonl").symlink_to(tmp_path / "logs-of-others" / "x.jsonl")

    with pytest.raises(DataFileError, match="no log in"):
        logs.find(str(tmp_path / "logs"))


def test_a_file_that_is_given_twice_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(GOOD)

    (session,) = importers.sessions([str(tmp_path), str(tmp_path / "x.jsonl")])

    assert len(session.files) == 1


@pytest.mark.parametrize("content", [b"", b"\n \n", b"hello\n", b"\x00\x01\xff", b"[1, 2]", b'{"a": 1}\n', b'"x'])
def test_what_is_no_log_is_refused_with_what_it_is_instead(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.jsonl").write_bytes(content)

    with pytest.raises(DataFileError, match=r"is not a log in a known format: it (is empty|is not text|begins with)"):
        importers.sessions(str(tmp_path / "x.jsonl"))


def test_many_files_take_little_more_than_their_number(tmp_path: Path) -> None:
    files = tries(2_000, 700)
    for number in range(files):
        span = sdk_span("g", None, "generation", 0, 1, trace=f"t{number}", usage=usage(10, 1))
        (tmp_path / f"{number}.jsonl").write_text(json.dumps(span) + "\n")

    sessions = importers.sessions(str(tmp_path))

    assert len(sessions) == files
    assert {session.form for session in sessions} == {"openai_agents"}


# Lines


def test_lines_that_are_no_records_are_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    deep = b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    path.write_bytes(
        b'{"a": 1}\r\n\n  \t\n[1]\nnull\n{"a": caf\xe9}\n{"a": "caf\xe9"}\n'
        + deep
        + b'\n{"a": NaN}\n{"b": 2}\n{"cut": "o'
    )
    rows, report = read(path)

    assert rows == [(1, {"a": 1}), (7, {"a": "caf\ufffd"}), (10, {"b": 2})]
    assert report["dropped"] == {
        "not an object": {"number": 2, "for_example": ["x.jsonl:4", "x.jsonl:5"]},
        "not JSON": {"number": 3, "for_example": ["x.jsonl:6", "x.jsonl:8", "x.jsonl:9"]},
        "cut off at the end": {"number": 1, "for_example": ["x.jsonl:11"]},
    }
    assert (report["records_read"], report["repaired"]) == (3, 1)


A, B, C = ({"type": "row", "at": at, "in": {"type": "x"}} for at in (1, 2, 3))


@pytest.mark.parametrize(
    ("line", "expected", "dropped"),
    [
        ("{A}{B}", [A, B], {}),
        ("{A} {B}\t{C} ", [A, B, C], {}),
        ('{"type": "row", "at": 7, "in": {"ty{A}', [A], {"not JSON": 1}),
        ('{"type": "row", "at": 7, "te{A}{B}', [A, B], {"not JSON": 1}),
        ('{A}{"type": "row", "at": 7, "te{B}{"type": "r', [A, B], {"not JSON": 2}),
        ('{"type": "row", "in": {"type": "x"}', [], {"not JSON": 1}),
        ('{"type": "row", "in": [{"type": "x"}, {"type": "y"}', [], {"not JSON": 1}),
        ("{A}[{B}]", [A], {"not an object": 1}),
        ("{A}{B}}", [A, B], {"not JSON": 1}),
        ('{A}{"type": NaN}', [A], {"not JSON": 1}),
        ("said: {A}", [], {"not JSON": 1}),
    ],
)
def test_each_object_on_a_line_is_a_record(tmp_path: Path, line: str, expected: list[Any], dropped: Any) -> None:
    """Programs whose writing was broken off go on behind what they had written."""
    path = tmp_path / "x.jsonl"
    for name, row in {"{A}": A, "{B}": B, "{C}": C}.items():
        line = line.replace(name, json.dumps(row))
    path.write_text(f"{json.dumps(C)}\n{line}\n")

    rows, report = read(path)

    assert rows == [(1, C), *((2, row) for row in expected)]
    assert {reason: noted["number"] for reason, noted in report["dropped"].items()} == dropped


@pytest.mark.parametrize(("begin", "lost"), [("", 1), ('{"type": "row", "in": [', 2)])
def test_a_log_without_line_ends_takes_time_that_grows_with_it(tmp_path: Path, begin: str, lost: int) -> None:
    paths = [tmp_path / f"{objects}.jsonl" for objects in (10_000, 40_000)]
    for path in paths:
        path.write_text(begin + json.dumps(A) * int(path.stem) + '{"type": "row", "at": ')

    few, many = (cpu_seconds(partial(read, path)) for path in paths)
    assert many < 12 * few
    rows, report = read(paths[0])
    assert len(rows) + (lost > 1) == 10_000
    assert report["dropped"]["cut off at the end"]["number"] == lost


def test_a_format_is_recognised_by_the_second_object_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"type": "row"}{"type": "named"}\n')

    assert logs.head(logs.LogFile(str(path), "x.jsonl")).rows == [{"type": "row"}, {"type": "named"}]


@pytest.mark.parametrize("ending", [b'"z": 1}', b'"z": "cut \\" o'])
def test_the_outline_of_a_document_names_what_its_outer_three_levels_hold(ending: bytes) -> None:
    head = logs.Head(b'{\n"a" : "{\\"no\\": [",\n"b": {"c": [{"deep": 1}], "d": 2},\n' + ending, 1)

    assert head.has_any([{"no"}, {"c", "a"}])
    assert head.has_any([{"a"}, {"deep"}])
    assert not head.has_any([{"no"}, {"a", "deep"}])
    assert head.outline == {"a", "b", "c", "d", "z"}


def test_a_folder_is_walked_once_and_the_beginning_of_each_file_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for form in importers.FORMATS:
        shutil.copytree(LOGS / form, tmp_path / form)
    opened: Counter[str] = Counter()
    walked: list[str] = []
    listed = os.scandir

    def counting(opening: Callable[..., Any]) -> Callable[..., Any]:
        def counted(path: Any, *arguments: Any, **options: Any) -> Any:
            opened[str(path)] += str(path).startswith(str(tmp_path))
            return opening(path, *arguments, **options)

        return counted

    def scandir(path: str) -> Any:
        walked.append(path)
        return listed(path)

    monkeypatch.setattr("builtins.open", counting(open))
    monkeypatch.setattr(os, "open", counting(os.open))
    monkeypatch.setattr(os, "scandir", scandir)
    found = importers.find([str(tmp_path)])

    files = sum(len(one.files) for one in found.sessions) + len(found.others)
    assert sorted(walked) == sorted(map(str, (tmp_path, *(path for path in tmp_path.rglob("*") if path.is_dir()))))
    assert +opened == dict.fromkeys(+opened, 1)
    assert len(+opened) == files

    run_corpus("trace", "doctor", str(tmp_path))
    assert walked.count(str(tmp_path)) == 3  # by the command once more, up to the first file, which is no trace
    assert max(opened.values()) - 1 <= 4  # found, told what it is, read; and that first one by the command
    assert (
        opened.total() - files < 2.8 * files
    )  # of the first file of a session, the folder that it ran in is read, too


def test_a_last_line_without_an_end_counts_if_it_is_whole(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"a": 1}\n{"b": 2}')

    assert read(tmp_path / "x.jsonl")[0] == [(1, {"a": 1}), (2, {"b": 2})]


def test_a_line_that_is_too_long_is_skipped_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "MAX_LINE_BYTES", 1_000)
    long = json.dumps({"a": "x" * 3_000_000})
    (tmp_path / "x.jsonl").write_text(f'{{"a": 1}}\n{long}\n{{"b": 2}}\n{long}')
    rows, report = read(tmp_path / "x.jsonl")

    assert rows == [(1, {"a": 1}), (3, {"b": 2})]
    assert report["dropped"] == {"line too long": {"number": 2, "for_example": ["x.jsonl:2", "x.jsonl:4"]}}


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("claude_code", "inline.jsonl"),
        ("codex", "lone"),
        ("openai_agents", "single.json"),
        ("otlp", "single.openinference.jsonl"),
        ("langsmith", "react.jsonl"),
    ],
)
@pytest.mark.parametrize("damage", ["broken", "long", "cut"])
def test_tokens_are_unknown_where_a_line_could_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, name: str, damage: str
) -> None:
    source = LOGS / form / name
    path = next(source.rglob("*.jsonl")) if source.is_dir() else source
    whole = path.read_bytes().strip()
    if path.suffix == ".json":
        whole = b"\n".join(json.dumps(item).encode() for item in json.loads(whole)["data"])
    begin, _, rest = whole.partition(b"\n")
    bad = {"broken": b'{"a" 1}\n', "long": b'{"a": "' + b"x" * 1_000_000 + b'"}\n', "cut": b""}[damage]
    monkeypatch.setattr(budget, "MAX_LINE_BYTES", 900_000)
    target = tmp_path / "x.jsonl"
    target.write_bytes(begin + b"\n" + bad + rest + b"\n" + (b'{"cut": "o' if damage == "cut" else b""))
    (session,) = importers.sessions(str(target))
    (trace,) = map(as_data, importers.read(session, Privacy(b"salt")))

    assert trace["costs"]["tokens"] is None
    assert trace["reasons"] == {"costs.tokens": "1 line could not be read, which may have reported tokens"}
    (tokens,) = [line for line in run_corpus("trace", "doctor", str(target)).stdout.splitlines() if "Tokens " in line]
    assert "Tokens    at least" in tokens


LIMITED = """\
import resource, sys
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.importers.core.privacy import Privacy
import orchtrace_corpus.trace.importers.spans.events
from orchtrace_corpus.base import budget
budget.MAX_LINE_BYTES = int(sys.argv[3]) or budget.MAX_LINE_BYTES
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[2]) * 1_000_000,) * 2)
for session in importers.sessions(sys.argv[1], "openai_agents"):
    for trace in importers.read(session, Privacy(b"salt")):
        print(len(trace.events), list(trace.import_report["dropped"]))
"""


def limited(path: Path, megabytes: int, most_line_bytes: int = 0) -> str:
    """What an import prints that may take so much more memory than it takes to begin."""
    command = (sys.executable, "-c", LIMITED, str(path), str(megabytes), str(most_line_bytes))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.strip()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs the proc file system")
@pytest.mark.parametrize(
    ("size", "most", "megabytes"), mostly_slow([(60 << 20, 8 << 20, 50), (1 << 30, 0, 250)], [(60 << 20, 8 << 20, 50)])
)
def test_a_line_of_a_gigabyte_takes_no_more_memory_than_the_longest_that_is_read(
    tmp_path: Path, size: int, most: int, megabytes: int
) -> None:
    path = tmp_path / "x.jsonl"
    with path.open("wb") as file:
        file.write(GOOD.encode())
        file.seek(size, os.SEEK_CUR)  # a hole, which takes no room on the disk
        file.write(b"\n" + GOOD.replace('"g"', '"h"').encode())

    assert limited(path, megabytes, most) == "3 ['line too long']"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs the proc file system")
def test_memory_grows_with_the_number_of_spans_not_with_what_they_hold(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    content = "x" * tries(1_000_000, 400_000)
    spans = tries(120, 60)
    with path.open("w") as file:
        file.write('content": "of a line that was cut off"}\n')
        for number in range(spans):
            row = sdk_span(f"g{number}", None, "generation", 0, 1, input=content, output=[content], usage=usage(10, 1))
            file.write(json.dumps(row) + "\n")

    assert limited(path, tries(40, 25)) == f"{spans + 1} ['not JSON']"


@pytest.mark.parametrize("indent", [None, 1])
def test_a_mark_of_the_byte_order_is_no_part_of_a_log(tmp_path: Path, indent: int | None) -> None:
    (tmp_path / "x.json").write_text(json.dumps(json.loads(GOOD), indent=indent), "utf-8-sig")

    (session,) = importers.sessions(str(tmp_path / "x.json"))
    (trace,) = map(as_data, importers.read(session, Privacy(b"salt")))

    assert (len(trace["events"]), trace["import_report"]["dropped"]) == (2, {})


# Documents


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-10, 10) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


def assert_taken_apart(part: Part, value: Any, text: str) -> None:
    """A part has the value, and so have all parts of it, each where it begins."""
    assert part.value() == value
    line = text.splitlines()[part.line - 1] if text else ""
    assert not text or json.dumps(value, ensure_ascii=False)[:1] in line
    if isinstance(value, list):
        found = list(part.elements())
        assert part.is_array
        assert len(found) == len(value)
        for each, inner in zip(found, value, strict=True):
            assert_taken_apart(each, inner, text)
    elif isinstance(value, dict):
        members = part.members()
        assert members.keys() == value.keys()
        for name, inner in value.items():
            assert_taken_apart(members[name], inner, text)
    else:
        assert list(part.elements()) == []
        assert part.members() == {}


@given(VALUES, st.sampled_from([None, 1]))
@settings(max_examples=tries(200, 25))
def test_a_document_is_taken_apart_into_what_it_holds(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)

    assert_taken_apart(parts.whole(text.encode()), value, "" if any(c in text for c in "\x85\u2028\x1c\x0b") else text)


def test_parts_of_a_document_know_their_lines() -> None:
    top = parts.whole(b'\n\n {"a": 1,\n\n "b": [\n  {"c": "x\\"}"},\n\n  2\n ],\n"d": {}}\n')

    assert {name: part.line for name, part in top.members().items()} == {"a": 3, "b": 5, "d": 10}
    assert [part.line for part in top.members()["b"].elements()] == [6, 8]


def test_of_a_name_that_is_given_twice_the_last_value_counts() -> None:
    members = parts.whole(b'{"a": [1],\n "b": 2,\n "a": [\n3]}').members()

    assert {name: (part.value(), part.line) for name, part in members.items()} == {"a": ([3], 3), "b": (2, 2)}


def test_bytes_that_are_no_utf8_are_replaced_in_a_document_too() -> None:
    (part,) = parts.whole(b'[{"a": "caf\xe9"}]').elements()

    assert part.value() == {"a": "caf\ufffd"}


@pytest.mark.parametrize("content", [b"[1, 2", b"[" * 100_000, b'{"a": }', b"[1] x"])
def test_a_document_that_is_no_json_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.json").write_bytes(content)

    with pytest.raises(DataFileError, match="is not JSON"):
        document(LogFile(str(tmp_path / "x.json"), "x.json"))


def test_a_document_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "x.json").open("wb") as file:
        file.truncate(budget.MAX_DOCUMENT_BYTES + 1)

    with pytest.raises(DataFileError, match="larger than 1024 MiB"):
        document(LogFile(str(tmp_path / "x.json"), "x.json"))


@pytest.mark.parametrize("read", [document, contents])
def test_a_document_may_be_as_large_as_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[LogFile], Any]
) -> None:
    (tmp_path / "x.json").write_bytes(b"[1]")
    file = LogFile(str(tmp_path / "x.json"), "x.json")
    monkeypatch.setattr(budget, "MAX_DOCUMENT_BYTES", 3)
    read(file)
    monkeypatch.setattr(budget, "MAX_DOCUMENT_BYTES", 2)
    with pytest.raises(DataFileError, match="is larger than"):
        read(file)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs the proc file system")
@pytest.mark.parametrize("indent", mostly_slow([None, 1], [1]))
def test_a_large_document_is_held_once_and_never_as_objects(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "x.json"
    content = [{"role": "user", "content": "x"}] * 2_000
    row = json.dumps(sdk_span("g0", None, "generation", 0, 1, input=content, usage=usage(10, 1)), indent=indent)
    path.write_text('{"data": [' + ",\n".join(row.replace('"g0"', f'"g{number}"') for number in range(150)) + "]}")
    megabytes = path.stat().st_size // 1_000_000

    assert limited(path, megabytes + 40) == "151 []"


def test_the_beginning_of_a_document_is_looked_at_in_linear_time(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b'"' + b'\\"' * 200_000)

    with pytest.raises(DataFileError, match="is not a log"):
        importers.sessions(str(tmp_path / "x.json"))


LEFT_BEHIND = """
import gc, sys
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.importers.core.transcript import Step
importers.installed()  # which leaves some of `importlib.metadata` behind, once
gc.disable()
for form in importers.FORMATS:
    importers.importer(form)
    gc.collect()
    for session in importers.sessions(f"{sys.argv[1]}/{form}"):
        for trace in importers.read(session, Privacy(b"salt")):
            pass
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    print(form, sum(isinstance(one, (Step, dict)) for one in gc.garbage))
    gc.set_debug(0)
    gc.garbage.clear()
"""


def test_an_import_leaves_nothing_in_memory_though_no_collector_runs() -> None:
    arguments = [sys.executable, "-c", LEFT_BEHIND, str(LOGS)]
    found = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout.splitlines()
    assert found == [f"{form} 0" for form in importers.FORMATS]


# What may leave the machine


SECRETS = {
    "ann.bo+x@mail.example.org": "…",
    "run by ann@example.org.": "run by ….",
    "/home/ann/project": "…",
    "C:\\Users\\ann\\x y": "… y",
    "C:\\Users\\ann lee\\x y": "… y",
    "sk-proj-abc123def456ghi789": "…",
    "ghp_abcdefghij0123456789": "…",
    "github_pat_11ABCDEFG0123456789": "…",
    "AKIAIOSFODNN7EXAMPLE": "…",
    "xoxb-123456789012-abc": "…",
    "eyJhbGciOiJIUzI1NiJ9.e30.x": "…",
    "read_file": "read_file",
    "pkg_resources_extern": "pkg_resources_extern",
    "task-0123456789abcdef": "task-0123456789abcdef",
    "risk_assessment_agent": "risk_assessment_agent",
    "a/b": "a/b",
}


@pytest.mark.parametrize(("name", "shown"), SECRETS.items())
def test_names_lose_addresses_home_folders_and_keys_and_nothing_else(name: str, shown: str) -> None:
    assert masked(name) == shown


def test_a_name_of_a_megabyte_is_cut_without_being_searched_for_long() -> None:
    assert masked("a" * 1_000_000 + "@example.org") == "a" * 200
    assert masked("x" * 190 + " ann@example.org") == "x" * 190 + " …"


@pytest.mark.parametrize(("form", "folder"), [(form, LOGS / form) for form in importers.FORMATS])
def test_a_salt_makes_references_and_without_it_they_are_others(form: str, folder: Path) -> None:
    def references(salt: bytes) -> set[str]:
        sessions = importers.sessions(str(folder))
        traces = [as_data(trace) for session in sessions for trace in importers.read(session, Privacy(salt))]
        return {event["content_ref"] for trace in traces for event in trace["events"] if "content_ref" in event}

    ours, again, theirs = references(b"ours"), references(b"ours"), references(b"theirs")

    assert ours == again
    assert ours.isdisjoint(theirs)
    assert all(reference.startswith("sha256:") for reference in ours)


def test_a_report_names_no_more_kinds_than_anybody_would_read() -> None:
    report = ImportReport()
    for number in range(1_000):
        report.note_unknown(f"kind {number}")

    assert len(report.as_data()["unknown_kinds"]) == 101
    assert report.as_data()["unknown_kinds"]["(further kinds)"] == 900
