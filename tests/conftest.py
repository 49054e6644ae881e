"""What the tests share: the toy corpus, the command line run inside this process, and where which tests can run."""

import gc
import importlib
import inspect
import io
import json
import multiprocessing.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import settings

from orchtrace_corpus.base.yamlfile.reader import Node, YamlFile
from orchtrace_corpus.cli.main import run
from orchtrace_corpus.corpus.api import Corpus, load
from orchtrace_corpus.corpus.model import candidates, store
from orchtrace_corpus.corpus.model import taxonomy as taxonomies
from orchtrace_corpus.corpus.model.records import Entries, Places
from orchtrace_corpus.corpus.model.taxonomy import Taxonomy
from tests.effort import FULL, tries

# Each of the many processes that tests start would compile everything anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The hooks that git copies into each new repository are three quarters of the files that tests would write.
os.environ["GIT_TEMPLATE_DIR"] = ""

# A deadline would be the wall clock's. The quick run tries the same examples each time; the full one looks for new ones.
settings.register_profile(
    "corpus",
    deadline=None,
    max_examples=tries(100, 15),
    **({} if FULL else {"derandomize": True, "database": None}),
)
settings.load_profile("corpus")

# Hypothesis would parse every module that a worker has imported, for constants: seconds in each worker, and examples that
# differ with what ran there before.
providers = sys.modules.get("hypothesis.internal.conjecture.providers")
if not FULL and hasattr(providers, "_get_local_constants"):
    providers._get_local_constants = lambda: providers._local_constants

ROOT = Path(__file__).parents[1]
TOY = Path(__file__).parent / "data" / "toy"

# Most commands that tests run read the same few files of the real corpus: these are folded and decoded once in a process.
KNOWN: dict[str, list[Node] | None] = {
    path.read_text(encoding="utf-8"): None for path in (ROOT / "data").glob("*.yaml")
}
DECODED: dict[tuple[Any, ...], tuple[Any, Any]] = {}
FOLD_RECORDS = YamlFile.records


def remembered_records(file: YamlFile) -> Iterator[Node]:
    """What `YamlFile.records` gives, remembered for the files of the real corpus as they stand."""
    nodes = KNOWN.get(file.text)
    if nodes is None or file.findings:
        nodes = []
        for node in FOLD_RECORDS(file):
            nodes.append(node)
            yield node
        if file.text in KNOWN and not file.findings:
            KNOWN[file.text] = nodes
    else:
        look_at(file, nodes)
        yield from nodes


def look_at(file: YamlFile, nodes: list[Node]) -> None:
    """Call what `YamlFile.records` calls with each record."""
    if file.on_record is not None:
        for node in nodes:
            file.on_record(node)


def remembered(decode: Callable[..., Any]) -> Callable[..., Any]:
    """A decoder that remembers what it has made of the files of the real corpus, with each taxonomy."""

    def decoded(file: YamlFile | None, *taxonomy: Taxonomy) -> Any:
        if file is None:
            return decode(None, *taxonomy)
        key = (decode, file.text, *map(id, taxonomy))
        if file.findings or key not in DECODED:
            found = decode(file, *taxonomy)
            if file.text in KNOWN and not file.findings:
                DECODED[key] = found, taxonomy  # which lives on, so that no other gets its id
            return found
        look_at(file, KNOWN[file.text] or [])
        found, _ = DECODED[key]
        if isinstance(found, Taxonomy):
            return found
        if isinstance(found, Entries):
            return Entries("the candidates have", found.items, Places(file, found.places._starts), found.findings)
        parts = (Places(file, part._starts) if isinstance(part, Places) else part for part in found)
        return tuple(parts)

    return decoded


YamlFile.records = remembered_records  # type: ignore[method-assign]
for module, name in (
    *((taxonomies, "decode_taxonomy"), (store, "decode_taxonomy"), (candidates, "decode_candidates")),
    *((store, "decode_papers"), (store, "decode_exclusions")),
):
    setattr(module, name, remembered(getattr(module, name)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """More workers than processors, since some tests wait; each more collects all tests and loads all libraries again."""
    processors = os.cpu_count() or 1
    return processors + max(1, processors // 4)


def pytest_collection(session: pytest.Session) -> None:
    """In a fresh checkout, let each worker compile a share of the tests first: all would compile all at once, else."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    asked = [ROOT / name.partition("::")[0] for name in session.config.args]
    files = sorted({file for path in asked for file in (path.rglob("test_*.py") if path.is_dir() else [path])})
    new = [file for file in files if not [*(file.parent / "__pycache__").glob(f"{file.stem}.*-pytest-*.pyc")]]
    for file in new[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        # What does not load, or is to be skipped, is told when it is collected.
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))


POSIX_MODULES = re.compile(r"^import (fcntl|pty|resource|termios)$|^from tests\.terminal import ", re.MULTILINE)
POSIX_CALLS = re.compile(
    r"\b(SIG[A-Z]{3,4}|killpg|send_signal|mkfifo|chmod|symlink_to|fsencode|on_terminal|building|/dev/full)\b"
)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out, on Windows, the files of tests that import what only POSIX has."""
    is_test = sys.platform == "win32" and collection_path.suffix == ".py"
    return True if is_test and POSIX_MODULES.search(collection_path.read_text(encoding="utf-8")) else None


def needs_posix(item: pytest.Item) -> bool:
    """Whether a test is marked so, or sends signals, opens terminals, or asks a file system for what Windows lacks."""
    source = inspect.getsource(item.function) if isinstance(item, pytest.Function) else ""
    return item.get_closest_marker("posix") is not None or POSIX_CALLS.search(source) is not None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip on Windows what needs POSIX."""
    if sys.platform == "win32":
        for item in filter(needs_posix, items):
            item.add_marker(pytest.mark.skip(reason="needs POSIX"))


def pytest_collection_finish() -> None:
    """Spare the garbage collector what stays for the whole run: it saves a tenth of the time."""
    gc.collect()
    gc.freeze()


class Result(NamedTuple):
    """The outcome of a command: exit code, standard output, standard error."""

    code: int
    stdout: str
    stderr: str


def run_corpus(*arguments: str, program: str = "corpus") -> Result:
    """Run `corpus`, or `orchtrace`, in this process, with output that is no terminal."""
    stdout, stderr = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    saved = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = stdout, stderr
    try:
        code = run(list(arguments), program)
    finally:
        sys.stdout, sys.stderr = saved
    for stream in (stdout, stderr):
        stream.seek(0)
    return Result(code, stdout.read(), stderr.read())


LIMITED = """
import resource, signal, sys
sys.dont_write_bytecode = True
from orchtrace_corpus.__main__ import main
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv.pop(1)) * 1_000_000,) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv.pop(1)),) * 2)
if file_bytes := int(sys.argv.pop(1)):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes,) * 2)
main()
"""


def run_limited(
    *arguments: str, megabytes: int = 1000, cpu_seconds: int = 20, file_bytes: int = 0, cwd: Path = ROOT
) -> Result:
    """Run `corpus` in a process that ends where it takes more memory or processor time, and writes no larger files."""
    command = [sys.executable, "-c", LIMITED, str(megabytes), str(cpu_seconds), str(file_bytes), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", cwd=cwd, env=environment)
    return Result(done.returncode, done.stdout, done.stderr)


def run_in_one_process(invocations: Sequence[str], modules: Sequence[str]) -> list[list[Any]]:
    """Run commands one after the other in a new process: of each its words, its code, and which of some modules are loaded."""
    code = (
        "import json, sys; from orchtrace_corpus.cli.main import run\n"
        f"told = [[words, run(words.split()), [name for name in {modules!r} if name in sys.modules]]"
        f" for words in {invocations!r}]\n"
        "print(json.dumps(told), file=sys.stderr)"
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    told: list[list[Any]] = json.loads(child.stderr.splitlines()[-1])
    return told


def run_toy(*arguments: str) -> Result:
    """Run `corpus` on the toy corpus."""
    return run_corpus("--root", str(TOY), *arguments)


def copy_published(folder: Path) -> Path:
    """Copy the data of this repository without the records that came after the published pool; return the folder.

    What tests say of the survey's own records stays true of it, whatever papers are added.
    """
    shutil.copytree(ROOT / "data", folder / "data")
    kept = set(re.findall(r"^  - (\S+)$", (ROOT / "data" / "published.yaml").read_text(encoding="utf-8"), re.MULTILINE))
    for name in ("papers", "exclusions"):
        path = folder / "data" / f"{name}.yaml"
        head, *records = re.split(r"^(?=- (?:key|id): )", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        own = [one for one in records if one.split("\n", 1)[0].partition(": ")[2] in kept]
        path.write_text(head + "".join(own).rstrip("\n") + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder for the temporary files of commands, such as locks, that goes with the tests; any user may write there."""
    tmp_path_factory.getbasetemp()  # its place is where it always is
    multiprocessing.util.get_temp_dir()  # so is that of sockets; it goes by itself, after the last worker
    with tempfile.TemporaryDirectory(prefix="corpus-tests-") as folder, pytest.MonkeyPatch.context() as patch:
        os.chmod(folder, 0o1777)
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", None)
        patch.setattr(os, "fsync", lambda file: None)  # nothing here has to outlast a power cut
        yield


@pytest.fixture(scope="session")
def toy() -> Corpus:
    """The toy corpus."""
    return load(str(TOY))


@pytest.fixture(scope="session")
def real() -> Corpus:
    """The corpus of this repository."""
    return load(str(ROOT))
