"""Writing files: whole or not at all, one writer at a time, whatever happens to the process or the disk."""

import contextlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.files import Document, document, locked, remove_temporary_files, write_atomic, write_stale
from orchtrace_corpus.base.linediff import unified_diff
from tests.effort import mostly_slow

WRITER = textwrap.dedent(
    """
    import sys
    from orchtrace_corpus.base.files import locked, write_atomic
    folder, text = sys.argv[1], sys.argv[2] * 400_000
    print("ready", flush=True)
    while True:
        with locked(folder):
            write_atomic(folder + "/file.txt", text)
        text = text.swapcase()
    """
)


def test_writing_creates_replaces_and_keeps_permissions(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"

    write_atomic(str(path), "one\n")
    path.chmod(0o640)
    write_atomic(str(path), "zwei é 𝒜\r\n")

    assert path.read_bytes() == "zwei é 𝒜\r\n".encode()
    assert path.stat().st_mode & 0o777 == 0o640
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.txt"]


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(Path("real") / "file.txt")

    write_atomic(str(tmp_path / "link.txt"), "new")

    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real" / "file.txt").read_text() == "new"


@pytest.mark.parametrize("seed", mostly_slow(range(12), range(4)))
def test_a_killed_writer_leaves_the_old_file_or_the_new_and_no_lock(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), "a"], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(chance.uniform(0, 0.05))
        child.send_signal(signal.SIGKILL)

    path = tmp_path / "file.txt"
    if path.exists():
        assert path.read_text() in ("a" * 400_000, "A" * 400_000)
    with locked(str(tmp_path), wait_seconds=0):
        write_atomic(str(path), "after\n")
    assert path.read_text() == "after\n"


def test_two_writers_take_turns_and_a_third_says_why_not(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    code = (
        "import sys; from orchtrace_corpus.base.files import locked, write_atomic\n"
        "print('waiting', flush=True)\n"
        "with locked(sys.argv[1]): write_atomic(sys.argv[1] + '/file.txt', 'mine')"
    )
    with contextlib.ExitStack() as stack, locked(str(folder)):
        with (
            pytest.raises(DataFileError, match=r"another corpus command is writing in .*; waited 0\.2 seconds"),
            locked(str(tmp_path / "link"), wait_seconds=0.2),
        ):
            raise AssertionError("never reached")
        child = stack.enter_context(subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE))
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(0.3)
        assert not list(folder.iterdir())
    assert child.returncode == 0
    assert [path.name for path in folder.iterdir()] == ["file.txt"]
    assert (folder / "file.txt").read_text() == "mine"


def test_a_lock_that_cannot_be_made_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    (tmp_path / "file").touch()

    with pytest.raises(DataFileError, match=r"^cannot lock .* by .*file.*\.lock: "), locked(str(tmp_path)):
        raise AssertionError("never reached")


def test_a_read_only_folder_is_said_so() -> None:
    # Root may write anywhere, so the attempt is made by a child that is nobody.
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    (folder / "file.txt").write_text("old")
    folder.chmod(0o555)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        if os.getuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        try:
            write_atomic(str(folder / "file.txt"), "new")
            os.write(writer, b"written")
        except DataFileError as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    left = (folder / "file.txt").read_text()
    folder.chmod(0o755)
    shutil.rmtree(folder)

    assert said.endswith("file.txt: Permission denied\nNothing was changed; the file is as it was.")
    assert left == "old"


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    code = (
        "import signal, sys; from orchtrace_corpus.base.files import write_atomic\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "write_atomic(sys.argv[1], 'x' * 100_000)"
    )
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # noqa: E731
    result = subprocess.run(
        [sys.executable, "-B", "-c", code, str(path)], capture_output=True, text=True, preexec_fn=limit
    )

    assert "cannot write" in result.stderr
    assert "File too large" in result.stderr
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.txt"]


def test_what_killed_writers_left_is_swept(tmp_path: Path) -> None:
    (tmp_path / ".corpus-abc.tmp").write_text("half")
    (tmp_path / ".corpus").write_text("not ours")

    remove_temporary_files(str(tmp_path))

    assert [entry.name for entry in tmp_path.iterdir()] == [".corpus"]


def test_a_folder_that_is_not_there_cannot_be_locked(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match="No such file or directory"), locked(str(tmp_path / "none")):
        raise AssertionError("never reached")


def test_a_diff_shows_what_changes() -> None:
    assert unified_diff("f", "a\nb\n", "a\nc") == (
        "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n"
    )
    assert unified_diff("f", "a\n", "a\n") == ""


@pytest.mark.posix
@pytest.mark.parametrize("linked", ["docs/page.md", "docs"])
def test_nothing_is_read_for_writing_or_written_through_a_link_out_of_the_folder(tmp_path: Path, linked: str) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    outside.mkdir()
    (outside / "page.md").write_text("theirs", encoding="utf-8")
    (root / linked).parent.mkdir(parents=True)
    (root / linked).symlink_to(outside / "page.md" if linked.endswith(".md") else outside)

    with pytest.raises(DataFileError, match="leads out of the corpus"):
        document(str(root), "docs/page.md", "ours")
    with pytest.raises(DataFileError, match="leads out of the corpus"):
        write_stale(str(root), [Document("docs/page.md", "theirs", "ours")])

    assert (outside / "page.md").read_text(encoding="utf-8") == "theirs"
