"""The command line as its users meet it: exit codes, messages, pipes, terminals, broken installations."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from orchtrace_corpus import __version__
from orchtrace_corpus.base.commands.declarations import MORE, CommandGroup
from orchtrace_corpus.base.commands.output import Output
from orchtrace_corpus.base.commands.typer_commands import PlainHelp
from orchtrace_corpus.cli import main as cli_main
from orchtrace_corpus.cli.table import COMMANDS
from orchtrace_corpus.corpus.api import Corpus
from tests.conftest import ROOT, TOY, Result, copy_published, run_corpus, run_in_one_process, run_toy
from tests.effort import FULL, mostly_slow
from tests.terminal import run_on_terminal
from tests.trace.datasets import run_build

CORPUS = [sys.executable, "-m", "orchtrace_corpus"]
NAMES = [name for group in COMMANDS.values() for name in group]


@cache
def paths() -> list[str]:
    """Every command as it is typed, those below a group included."""

    def below(found: object, path: str) -> Iterator[str]:
        yield path
        if isinstance(found, CommandGroup):
            for name in found.names():
                yield from below(found.find(name).load(), f"{path} {name}")

    return [path for group in COMMANDS.values() for name, row in group.items() for path in below(row.load(), name)]


def process(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*CORPUS, *arguments], capture_output=True, text=True, encoding="utf-8", **options)


def on_terminal(*arguments: str, columns: int = 80, program: Sequence[str] = CORPUS, **environment: str) -> str:
    """Return what a command, or another program, shows on a terminal of that width; its errors go nowhere."""
    variables = {"TERM": "xterm-256color", **environment}
    shown, code = run_on_terminal(
        [*program, *arguments], columns=columns, environment=variables, stderr=subprocess.DEVNULL, cwd=ROOT
    )
    assert code == 0
    return shown


def test_a_narrow_terminal_shows_ids_of_claims_whole_and_no_strip_of_sentences(tmp_path: Path) -> None:
    survey = ("--root", str(copy_published(tmp_path)))
    shown = re.sub(r"\x1b\[[0-9;]*m", "", on_terminal(*survey, "claims")).splitlines()

    assert shown[0] == "claim                          published  today  candidates     rows  contested"
    assert any(line.startswith("orchestrator-credit-sparse     holds      holds  ") for line in shown)
    assert shown[-1] == "corpus claims ID shows a claim with its sentence"
    assert len(shown) <= 24
    assert len(on_terminal(*survey, "claims", "--stress").splitlines()) <= 24
    assert all(len(line) <= 80 for line in shown)
    assert "sentence" in on_terminal(*survey, "claims", columns=140).splitlines()[0]


def test_the_evidence_of_a_check_fits_a_narrow_terminal() -> None:
    line = next(one for one in on_terminal("check").splitlines() if one.startswith("evidence"))

    assert len(re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip()) <= 80


def test_help_names_every_command_with_its_help_line() -> None:
    result = run_corpus("--help")

    assert result.code == 0
    shown = {heading: group for heading, group in COMMANDS.items() if heading != MORE}
    assert list(shown) == ["Explore", "Maintain", "Edit", "Export and traces"]
    assert sum(map(len, shown.values())) <= 14
    for group in shown.values():
        for name, command in group.items():
            assert f"{name} " in result.stdout
            assert command.help in " ".join(result.stdout.split())
    assert f"More: {', '.join(COMMANDS[MORE])} Each" in " ".join(result.stdout.split())


ASKING = ("fetch", "links", "discover")  # commands that ask others: their examples run on a copy, and ask this machine


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, real: Corpus) -> Iterator[Path]:
    """A copy of the corpus, an arXiv that says what its records say, and web pages that are all there."""
    from orchtrace_corpus.corpus.sources.links import LinkChecker, LinkOutcome, Verdict
    from tests.corpus.arxiv_server import ArxivServer, records_of

    shutil.copytree(ROOT / "data", tmp_path / "corpus" / "data")
    monkeypatch.setattr(LinkChecker, "_check", lambda *_: LinkOutcome(Verdict.OK, "HTTP 200"))
    monkeypatch.setenv("ORCHTRACE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ORCHTRACE_ARXIV_SPACING", "0")
    with ArxivServer(records_of(real.papers)) as server:
        monkeypatch.setenv("ORCHTRACE_ARXIV_URL", server.url)
        yield tmp_path / "corpus"


@pytest.fixture
def exported(tmp_path: Path, real: Corpus) -> Path:
    """A copy of the corpus, with its papers beside it in the formats that the examples of `import` name."""
    from orchtrace_corpus.corpus.formats.registry import find

    folder = tmp_path / "corpus"
    shutil.copytree(ROOT / "data", folder / "data")
    for name, profile, file in (
        ("bibtex", "", "references.bib"),
        ("bibtex", "", "library.bib"),
        ("csv", "published", "table.csv"),
        ("jsonl", "", "papers.jsonl"),
    ):
        (folder / file).write_text(str(find(name).write(real.papers, real.taxonomy, profile)), encoding="utf-8")
    return folder


ENTERING = ("add", "exclude")  # commands that look papers up, and ask at a terminal


@pytest.fixture
def entering(monkeypatch: pytest.MonkeyPatch, outside: Path, real: Corpus) -> Iterator[Path]:
    """A copy of the corpus, an arXiv with the papers of the examples, and somebody who takes what is proposed."""
    from orchtrace_corpus.corpus.cli import interview
    from orchtrace_corpus.corpus.cli.interview import Questions
    from orchtrace_corpus.corpus.formats.issue_form import questions
    from tests.corpus.arxiv_server import ArxivServer, record

    titles = ("Ants at Work", "Bees on Strike", "Crows in Council", "Herds without Leaders")
    monkeypatch.setattr(interview, "can_ask", lambda: True)
    monkeypatch.setattr(Questions, "_read_line", lambda self, prompt: "" if "[" in prompt else "1")
    (outside / "references.bib").write_text(
        "@article{dogs, title={Dogs and Their Data}, author={Doe, Jo}, year=2026, journal={J}, url={https://example.org/dogs}}"
    )
    (outside / "library.bib").write_text("@misc{cats, title={Cats}, author={Doe, Jo}, year=2026}")
    answers = {"identifier": "2605.08689", **{f.field: f.terms[0].id for f in real.taxonomy.papers}}
    body = (f"### {q.label}\n\n{answers.get(q.name, '_No response_')}\n\n" for q in questions(real.taxonomy))
    (outside / "issue.md").write_text("".join(body))
    papers = [record(f"2605.0868{number}", version=2, title=title) for number, title in enumerate(titles, 6)]
    with ArxivServer([*papers, record("2308.00352", title="MetaGPT: Meta Programming")]) as server:
        monkeypatch.setenv("ORCHTRACE_ARXIV_URL", server.url)
        yield outside


@pytest.fixture
def screening(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A copy of the corpus, and somebody at a terminal who quits at once."""
    from orchtrace_corpus.corpus.cli import screen
    from orchtrace_corpus.corpus.cli.interview import Questions

    shutil.copytree(ROOT / "data", tmp_path / "corpus" / "data")
    monkeypatch.setattr(screen, "can_ask", lambda: True)
    monkeypatch.setattr(Questions, "_read_line", lambda self, prompt: "q")
    return tmp_path / "corpus"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of the traces among the data."""
    path = tmp_path_factory.mktemp("gathered") / "dataset"
    assert run_build(str(ROOT / "data" / "traces"), "-o", str(path)).code == 0
    return path


@pytest.fixture
def gathered(tmp_path: Path, dataset: Path) -> Path:
    """A folder with the data, and a dataset of its traces."""
    (tmp_path / "data").symlink_to(ROOT / "data")
    shutil.copytree(dataset, tmp_path / "dataset")
    return tmp_path


READING_TRACES = ("trace diff", "trace doctor", "trace show")  # and they write pages of them
WRITING = (
    "cite",
    "export",
    "init",
    "figures",
    "site",
    "trace import",
    *READING_TRACES,
)  # commands whose examples write into the working folder
LOGS = ROOT / "tests" / "data" / "logs" / "claude_code" / "parallel"


@cache
def shown_help(path: str) -> str:
    """The help of a command."""
    return run_corpus(*path.split(), "--help").stdout


def examples(path: str) -> list[str]:
    """What the help of a command shows as examples, each without the name of the program."""
    text = shown_help(path).partition("Examples:")[2].partition("\nArguments:")[0]
    return re.findall(r"^ +corpus (.+)$", text, re.M)


LENGTHY = (
    *ENTERING,
    *ASKING,
    *("audit compare", "check", "claims", "diff", "import", "remove", "screen", "site", "tag"),
    *("trace dataset build", "trace dataset stats", "trace import"),
)  # commands of which the quick run takes the first example, and only reads the words of the others


def read_words(words: list[str]) -> int:
    """The exit code of a command that Typer makes of its words, and does not run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli_main.plain, "run", lambda *_: None)
        patch.setattr(PlainHelp, "invoke", lambda *_: 0)
        return run_corpus(*words).code


def test_words_are_read_without_running_the_command() -> None:
    assert read_words(["claims", "no-such-claim"]) == 0
    assert read_words(["claims", "--no-such-option"]) == 2


@pytest.mark.parametrize("path", paths())
def test_every_help_has_its_line_of_the_table_and_examples_that_work(
    path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    fixture = {"import": "exported", "screen": "screening"}.get(path, "outside" if path in ASKING else "")
    fixture = "entering" if path in ENTERING else "gathered" if path.startswith("trace dataset") else fixture
    folder = request.getfixturevalue(fixture) if fixture else tmp_path if path in WRITING else ROOT
    monkeypatch.chdir(folder)
    if path == "diff" and not (ROOT / ".git").exists():
        pytest.skip("no history here")
    if path in READING_TRACES:
        (tmp_path / "data").symlink_to(ROOT / "data")
    if path == "trace doctor":
        shutil.copytree(ROOT / "tests" / "data" / "session", tmp_path / "projects" / "shop")
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))

    for line in (group[path].help for group in COMMANDS.values() if path in group):
        assert line in " ".join(shown_help(path).split())
    assert examples(path)
    for number, example in enumerate(examples(path)):
        owner = max((one for one in paths() if f"{example} ".startswith(f"{one} ")), key=len, default=path)
        if owner != path and example in examples(owner):
            continue  # a group shows it, too
        if "--engine spark" in example:
            continue  # needs a cluster: tests/trace/test_dataset_spark.py has one
        called = example.partition(" > ")[0].replace("path/to/corpus", str(TOY)).replace("path/to/logs", str(LOGS))
        words = [*shlex.split(called), *["--resamples", "20"] * (path == "audit compare")]
        is_read = number > 0 and path in LENGTHY and not FULL
        assert (read_words(words) if is_read else run_corpus(*words).code, example) == (0, example)


def test_version() -> None:
    assert run_corpus("--version") == (0, f"corpus {__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lst"], "corpus: there is no command 'lst' (did you mean 'list'? allowed: "),
        (["stats", "--by", "style", "--cross", "size"], "requires 2 arguments.\nWrite: corpus stats --cross A B\n"),
        (["stats", "--root", "x"], "corpus: --root is a global option; write it before the command: corpus --root DIR"),
        (
            ["list", "--quiet"],
            "corpus: --quiet is a global option; write it before the command: corpus --quiet COMMAND",
        ),
        (["stats", "--bye", "x"], "No such option: --bye"),
        (["stats", "--format", "xml"], "'xml' is not one of 'table', 'markdown', 'json', 'csv'"),
        (["stats", "--by", "stile"], "corpus: unknown field 'stile' (did you mean "),
        (["stats", "--by", "size", "--cross", "size", "style"], "corpus: --by and --cross exclude each other"),
        (
            ["stats", "--full", "--by", "size"],
            "corpus: --full shows all statistics; leave out --by, --cross and --evidence",
        ),
        (
            ["stats", "--by", "stage", "--where", "size=small"],
            "--where filters papers, but stage is a field of exclusions",
        ),
        (
            ["stats", "--cross", "stage", "size"],
            "corpus: stage and size cannot be crossed: one is a field of exclusions",
        ),
        (["list", "--where", "stage=gate"], "Write: corpus list --exclusions --where 'stage=gate'"),
        (["list", "--columns", "key,,size"], "corpus: a name is missing between commas"),
        (["list", "--sort", "stile"], "corpus: unknown column 'stile' (did you mean "),
        (["list", "--limit", "0"], "Invalid value for '--limit' / '-n': "),
        (
            ["show", "rose-gardn"],
            "corpus: no record 'rose-gardn'\nDid you mean: rose-garden (Röses: A Garden in Four Beds)?",
        ),
        (
            ["show", "2101.00011"],
            "corpus: no record '2101.00011'\nDid you mean: rose-garden (Röses: A Garden in Four Beds)?",
        ),
        (["show", "zzz"], "Try: corpus search WORD, corpus terms TERM or corpus list."),
        (["search", " "], "corpus: name at least one word to look for"),
        (["gaps", "style"], "corpus: name a second axis beside 'style'"),
        (["gaps", "title", "size"], "corpus: title has no vocabulary, so no cell of it can be missing"),
        (["terms", "venue"], "corpus: the field 'venue' has no terms\nTo count its values: corpus stats venue\n"),
        (["terms", "colour"], "corpus: unknown field or term 'colour' (allowed: "),
        (["terms", "style", "--sort", "size"], "corpus: unknown column 'size' (allowed: term, code, label"),
    ],
)
def test_wrong_use_ends_with_2_and_says_what_is_right(words: list[str], message: str) -> None:
    result = run_toy(*words)

    assert (result.code, result.stdout) == (2, "")
    assert message in result.stderr


def test_text_from_outside_cannot_reach_the_terminal() -> None:
    result = run_toy("show", "\x1b[31mred\n")

    assert "\x1b" not in result.stderr
    assert r"no record '\x1b[31mred\n'" in result.stderr


def test_validate_as_json() -> None:
    assert run_toy("check", "data", "--format", "json") == (
        0,
        '{\n  "schema": "orchtrace-corpus/findings",\n  "version": 1,\n  "errors": 0,\n'
        '  "warnings": 0,\n  "findings": []\n}\n',
        "no problems in 4 papers and 2 exclusions\n",
    )


def broken_corpus(tmp_path: Path, old: str, new: str, name: str = "papers.yaml") -> Path:
    root = tmp_path / "corpus"
    shutil.copytree(TOY, root)
    path = root / "data" / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return root


def test_no_count_is_taken_from_a_corpus_with_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = broken_corpus(tmp_path, "style: formal", "style: frmal")
    monkeypatch.chdir(root)

    for words in (["stats"], ["list"], ["gaps"]):
        result = run_corpus(*words)
        assert (result.code, result.stdout) == (1, "")
        assert result.stderr == (
            "corpus: the data has 1 error, so its counts would not be true:\n"
            "data/papers.yaml:11:10: V102 unknown style 'frmal' (did you mean 'formal'? "
            "allowed: formal, cottage, meadow, gravel, NA) [rose-garden]\n"
            "Run corpus check data for all of them.\n"
        )


def test_records_and_terms_can_be_looked_up_while_there_are_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(broken_corpus(tmp_path, "style: formal", "style: frmal"))

    for words in (["show", "rose-garden"], ["search", "grass"], ["terms"], ["terms", "style"]):
        result = run_corpus(*words)
        assert (result.code, bool(result.stdout)) == (0, True)
        assert "corpus: the data has 1 error, and may be incomplete; see corpus check data\n" in result.stderr


def test_what_is_validated_is_never_the_bundled_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    for command in ("check data", "check"):
        result = run_corpus(*command.split())
        assert (result.code, result.stdout) == (3, "")
        assert "no data/papers.yaml here or in any folder above" in result.stderr


def test_a_finding_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import json

    monkeypatch.chdir(broken_corpus(tmp_path, "id: E003", "id: E001", "exclusions.yaml"))

    result = run_corpus("check", "data", "--format", "json")

    assert result.code == 1
    assert json.loads(result.stdout)["findings"] == [
        {
            "code": "D102",
            "severity": "error",
            "message": "exclusion id 'E001' is used twice (first on line 1); give the record the next free id",
            "path": "data/exclusions.yaml",
            "line": 9,
            "column": 7,
            "record": "E001",
        }
    ]


def test_a_malformed_file_ends_with_3(tmp_path: Path) -> None:
    root = broken_corpus(tmp_path, "style: formal", "style: [formal")

    assert run_corpus("--root", str(root), "check", "data").code == 3
    assert run_corpus("--root", str(root), "stats").code == 3


def test_a_broken_taxonomy_is_reported_alone(tmp_path: Path) -> None:
    root = broken_corpus(tmp_path, "kind: many", "kind: mny", "taxonomy.yaml")

    result = run_corpus("--root", str(root), "check", "data")

    assert result.code == 1
    assert "V102 unknown kind 'mny' (did you mean 'many'?" in result.stdout
    assert result.stderr == "1 error in the taxonomy\n"


@pytest.mark.parametrize("name", ["papers.yaml", "exclusions.yaml", "taxonomy.yaml"])
def test_a_missing_file_ends_with_3(tmp_path: Path, name: str) -> None:
    root = broken_corpus(tmp_path, "", "")
    (root / "data" / name).unlink()

    result = run_corpus("--root", str(root), "check", "data")

    assert (result.code, result.stdout) == (3, "")
    assert name in result.stderr


def test_a_directory_for_a_file_ends_with_3(tmp_path: Path) -> None:
    root = broken_corpus(tmp_path, "", "")
    (root / "data" / "exclusions.yaml").unlink()
    (root / "data" / "exclusions.yaml").mkdir()

    result = run_corpus("--root", str(root), "stats")

    assert result.code == 3
    assert "cannot read" in result.stderr
    assert "Is a directory" in result.stderr


def test_without_a_corpus_the_bundled_one_answers_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = process("stats", cwd=tmp_path)
    monkeypatch.chdir(tmp_path)

    assert result.returncode == 0
    assert result.stdout == run_corpus("--root", str(ROOT), "stats").stdout
    assert "no corpus in this folder; using the bundled one" in result.stderr
    assert run_corpus("--quiet", "stats") == (0, result.stdout, "")


def test_a_folder_below_the_corpus_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = broken_corpus(tmp_path, "", "")
    (root / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(root / "deep" / "er")

    assert run_corpus("stats").stdout.startswith("4 papers and 2 exclusions")


def test_a_reader_that_leaves_ends_the_command_quietly() -> None:
    child = subprocess.Popen(
        [*CORPUS, "list", "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    )
    assert child.stdout is not None
    child.stdout.close()
    stderr = child.communicate()[1].decode()

    assert child.returncode == 0
    assert "Error" not in stderr
    assert "Exception" not in stderr


def test_a_reader_that_leaves_does_not_hide_errors(tmp_path: Path) -> None:
    root = broken_corpus(tmp_path, "style: formal", "style: frmal")
    child = subprocess.Popen([*CORPUS, "check", "data"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=root)
    assert child.stdout is not None
    child.stdout.close()
    child.communicate()

    assert child.returncode == 1


@pytest.mark.posix
@pytest.mark.parametrize(
    ("words", "code"),
    mostly_slow(
        [
            ("stats", 0),
            ("list --format json", 0),
            ("--help", 0),
            ("show no-such-key", 2),
            ("check data", 0),
            ("export bibtex", 0),
            ("tag long-grass style=cottage", 0),
        ],
        [("stats", 0), ("show no-such-key", 2), ("tag long-grass style=cottage", 0)],
    ),
)
def test_a_closed_output_changes_neither_the_work_nor_the_code(tmp_path: Path, words: str, code: int) -> None:
    root = broken_corpus(tmp_path, "", "")
    command = ["sh", "-c", 'exec "$@" >&-', "sh", *CORPUS, *words.split()]

    result = subprocess.run(command, cwd=root, stderr=subprocess.PIPE, text=True, check=False)

    assert (result.returncode, "bug" in result.stderr) == (code, False), result.stderr
    if words.startswith("tag"):
        assert (root / "data" / "papers.yaml").read_text(encoding="utf-8").count("style: cottage") == 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_said_so() -> None:
    with open("/dev/full", "w") as full:
        result = subprocess.run([*CORPUS, "stats"], stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT)

    assert result.returncode == 3
    assert "corpus: cannot write the output: No space left on device" in result.stderr
    assert "Traceback" not in result.stderr


def opened_for_writing(fifo: Path) -> int:
    """Open a named pipe as soon as somebody reads from it."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            assert time.monotonic() < deadline, "nobody reads"
            time.sleep(0.02)


def test_an_interrupt_ends_with_130(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("taxonomy.yaml", "exclusions.yaml"):
        shutil.copyfile(TOY / "data" / name, tmp_path / "data" / name)
    os.mkfifo(tmp_path / "data" / "papers.yaml")  # reading it waits for a writer that never comes
    child = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from orchtrace_corpus.cli.main import run; from orchtrace_corpus.corpus.model import store; "
            f"import sys; store.find_root = lambda: store.Root({str(tmp_path)!r}); sys.exit(run(['check', 'data']))",
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    writer = opened_for_writing(tmp_path / "data" / "papers.yaml")  # succeeds when the child reads
    child.send_signal(signal.SIGINT)
    os.close(writer)
    stderr = child.communicate(timeout=60)[1]

    assert child.returncode == 130
    assert stderr == "corpus: interrupted\n"


def test_an_interrupt_in_the_constructor_of_an_answer_is_told_in_one_line() -> None:
    """Python closes the half-made answer, fails, and would tell it in a traceback; other finalisers are still heard."""
    interrupted = """
from http.client import HTTPResponse
from orchtrace_corpus import __main__
from orchtrace_corpus.base.commands import plain

class Other:
    def __del__(self):
        raise RuntimeError("of another kind")

def interrupt(_group, _arguments, _output):
    HTTPResponse.__new__(HTTPResponse)
    Other()
    raise KeyboardInterrupt

plain.run = interrupt
__main__.main()
"""
    child = subprocess.run([sys.executable, "-c", interrupted], capture_output=True, text=True, check=False)

    assert child.returncode == 130
    assert "HTTPResponse" not in child.stderr
    assert "RuntimeError: of another kind\n" in child.stderr
    assert child.stderr.endswith("\ncorpus: interrupted\n")


def test_a_bug_leaves_its_traceback_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(_group: object, _arguments: list[str], _output: object) -> int:
        raise RuntimeError("never expected")

    monkeypatch.setattr(cli_main.plain, "run", broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    result = run_corpus("stats")

    assert result.code == 70
    assert re.fullmatch(
        r"corpus: a bug of ours \(RuntimeError\); please report it .*corpus-bug-.*\.txt\n", result.stderr
    )
    assert "never expected" in next(tmp_path.glob("corpus-bug-*.txt")).read_text(encoding="utf-8")


def test_a_terminal_of_80_columns_shows_what_a_filter_is_about_before_the_axes() -> None:
    toy = ("--no-color", "--root", str(TOY), "list")

    assert on_terminal(*toy, "--where", "size=large").splitlines() == [
        "key         year  size   title",
        "long-grass  2023  large  Long Grass and How to Keep It",
    ]
    assert on_terminal(*toy, "--where", "size=large", columns=120).splitlines()[0].split() == [
        *("key", "year", "style", "size", "title"),
    ]


def test_a_table_of_too_many_columns_is_said_to_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Output, "width", property(lambda self: 80))

    assert run_toy("list", "--columns", "all").stderr == (
        "corpus: 35 columns are too many for this terminal; use --format csv\n4 papers\n"
    )
    assert run_toy("list").stderr == "4 papers\n"


def test_exclusions_are_listed_with_their_reasons() -> None:
    assert on_terminal("--no-color", "--root", str(TOY), "list", "--exclusions", columns=40).splitlines() == [
        "id   title        reason",
        "E001 A Window Box Too small to count as",
        "                  a garden.",
        "E003 A Car Park   Nothing grows there.",
    ]
    assert run_toy("list", "--exclusions", "--columns", "key,stage").stdout == "id    stage\nE001  gate\nE003  path\n"


def test_a_terminal_gets_colours_unless_told_otherwise() -> None:
    assert "\x1b[" in on_terminal("gaps")
    assert "\x1b[" not in on_terminal("--no-color", "gaps")
    assert "\x1b[" not in on_terminal("gaps", NO_COLOR="1")
    assert "\x1b[" not in on_terminal("gaps", TERM="dumb")


@pytest.mark.parametrize("columns", mostly_slow([44, 80, 120], [44]))
def test_everything_fits_the_terminal(columns: int) -> None:
    commands = ("stats", "list", "show c3", "terms", "search debate", "gaps")
    code = "import sys; from orchtrace_corpus.cli.main import run\n"
    code += "for words in sys.argv[1:]: print('=', words, run(['--no-color', *words.split()]))"
    shown = on_terminal(*commands, columns=columns, program=(sys.executable, "-c", code)).splitlines()

    assert [line for line in shown if line[:2] == "= "] == [f"= {words} 0" for words in commands]
    # Addresses stay whole, to be copied.
    assert [line for line in shown if len(line) > columns and "://" not in line] == []


def test_colours_change_no_character(monkeypatch: pytest.MonkeyPatch) -> None:
    coloured = re.sub(r"\x1b\[[0-9;]*m", "", on_terminal("stats"))

    shown = [line.rstrip() for line in coloured.splitlines()]
    monkeypatch.chdir(ROOT)
    assert shown == run_corpus("stats").stdout.splitlines()


def test_an_output_that_knows_only_ascii_gets_ascii() -> None:
    settings = {**os.environ, "PYTHONIOENCODING": "ascii"}

    page = process("stats", cwd=ROOT, env=settings)
    listing = process("list", "--where", "key=gaia2023", "--columns", "authors", cwd=ROOT, env=settings)

    assert page.returncode == 0
    assert page.stdout.isascii()
    assert "R1 shared         10 ####" in page.stdout
    assert r"Mialon, Gr\xe9goire" in listing.stdout


HEAVY = ("bibtexparser", "numpy", "pandas", "requests", "rich")


def test_hot_commands_import_nothing_heavy() -> None:
    hot = ("stats", "check data", "list", "gaps", "show c3", "search c3", "--help")

    assert run_in_one_process(hot, HEAVY) == [[words, 0, []] for words in hot]


def test_the_check_of_everything_reads_small_traces_and_rewards_without_msgspec() -> None:
    assert run_in_one_process(["check"], (*HEAVY, "msgspec", "yaml")) == [["check", 0, []]]


def test_help_and_version_do_not_even_import_yaml() -> None:
    code = "import sys; from orchtrace_corpus.cli.main import run; run(['--help']); sys.exit('yaml' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("fetch --offline --refresh", "--offline and --refresh contradict each other"),
        ("add 2401.00001 --no-fetch --refresh", "--no-fetch and --refresh contradict each other"),
        (
            "add 2401.00001 --no-fetch --offline --refresh",
            "--no-fetch and --offline and --refresh contradict each other",
        ),
        ("exclude 2401.00001 --no-fetch --offline", "--no-fetch and --offline contradict each other"),
        ("add E001 --offline --refresh", "--offline and --refresh contradict each other"),
        ("check data --select D101 --ignore D", "--ignore leaves out everything that --select names"),
        ("add 2401.00001 --style formal --style cottage", "style is given twice: formal and cottage"),
        ("add 2401.00001 --style formal --tag style=cottage", "style is given twice: formal and cottage"),
        ("add 2401.00001 --water daily --water weekly", "water of care is given twice: daily and weekly"),
        ("audit compare x.csv --record --with-corpus", "--record and --with-corpus contradict each other"),
        ("audit compare x.csv --merge a=daily,weekly --merge a=formal,cottage", "--merge gives 'a' twice"),
        (
            "audit compare x.csv --merge a=formal,cottage --merge b=cottage,meadow",
            "--merge takes 'cottage' both as 'a'",
        ),
    ],
)
def test_options_that_contradict_each_other_are_refused(words: str, message: str) -> None:
    result = run_toy(*words.split())

    assert (result.code, result.stdout) == (2, "")
    assert message in result.stderr


def run_orchtrace(*words: str) -> Result:
    return run_corpus(*words, program="orchtrace")


def test_orchtrace_can_be_started() -> None:
    code = "import sys; from orchtrace_corpus.__main__ import trace; sys.argv[0] = 'orchtrace'; trace()"
    command = [sys.executable, "-c", code, "show", "nowhere"]
    child = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)

    assert (child.returncode, child.stdout, child.stderr) == run_orchtrace("show", "nowhere")


@pytest.mark.parametrize(
    "words",
    [
        ["doctor", "data/traces/swarm.json"],
        ["validate", "data/traces"],
        ["measure", "data/traces/swarm.json", "--format", "json"],
        ["dataset", "stats", "nowhere"],
        ["show", "nowhere"],
        ["show", "--nonsense"],
    ],
    ids=" ".join,
)
def test_orchtrace_is_corpus_trace(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    ours, same = run_orchtrace(*words), run_corpus("trace", *words)

    assert (ours.code, ours.stdout) == (same.code, same.stdout)
    assert ours.stderr == same.stderr.replace("corpus trace ", "orchtrace ").replace("corpus: ", "orchtrace: ")


def test_orchtrace_names_itself_in_its_help() -> None:
    for words in (["--help"], ["doctor", "--help"], ["dataset", "--help"], ["dataset", "build", "--help"]):
        shown = run_orchtrace(*words)
        assert (shown.code, shown.stderr) == (0, "")
        assert shown.stdout.startswith(" ".join(["Usage: orchtrace", *words[:-1], "[OPTIONS]"]))
        assert "corpus trace" not in shown.stdout
        assert f"  orchtrace {words[0] if len(words) > 1 else 'doctor'}" in shown.stdout
    assert run_orchtrace("--version").stdout.startswith("orchtrace 0.")
    assert run_orchtrace("sho").stderr.startswith("orchtrace: there is no command 'sho' (did you mean 'show'?")
    late = run_orchtrace("show", "x", "--quiet")
    assert late.stderr.endswith("write it before the command: orchtrace --quiet COMMAND\n")
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert scripts["orchtrace"] == "orchtrace_corpus.__main__:trace"


def test_only_a_command_with_filters_says_that_a_filter_needs_its_option() -> None:
    listed = run_corpus("list", "stop=explicit")
    disputed = run_corpus("dispute", "maporl", "topology=swarm", "--why", "It is.")

    assert (listed.code, listed.stderr.splitlines()[-1]) == (2, "A filter needs --where in front of it.")
    assert (disputed.code, disputed.stderr.splitlines()[-1]) == (2, "Error: Missing option '--source'.")
