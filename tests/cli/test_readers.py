"""One specification of a command, three readers: what plain words mean to Typer, what help shows, what is offered."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchtrace_corpus.base.commands import plain, typer_commands
from orchtrace_corpus.base.commands.declarations import CommandGroup, CommandSpec, Context, Parameter, command_spec
from orchtrace_corpus.base.commands.output import Output
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.cli import completion
from orchtrace_corpus.cli.app import _ClickException
from orchtrace_corpus.cli.table import program
from tests.conftest import ROOT, TOY, run_corpus, run_in_one_process
from tests.effort import tries


@cache
def specs(root: str = str(ROOT)) -> dict[str, CommandSpec]:
    """Every command as it declares itself, by the words that call it."""

    def below(group: CommandGroup, path: str) -> Iterator[CommandSpec]:
        yield command_spec(group.callback, path)
        for name in group.names():
            row = group.find(name)
            assert row is not None
            found = row.load()
            if isinstance(found, CommandGroup):
                yield from below(found, f"{path} {name}")
            else:
                yield command_spec(found, f"{path} {name}", root)

    return {spec.path: spec for spec in below(program("corpus"), "corpus")}


GROUPS = ("corpus", "corpus audit", "corpus trace", "corpus trace dataset")
COMMANDS = tuple(path for path in specs() if path not in GROUPS)


def as_typer_reads(spec: CommandSpec, words: list[str]) -> dict[str, Any] | None:
    """The values that Typer finds in words; None if it refuses them as bad use."""
    calls: list[dict[str, Any]] = []

    def record(context: Context, **_: object) -> int:
        calls.append(dict(context.given))
        return 0

    recorded = CommandSpec(spec.path, record, spec.parameters, spec.groups)
    command = typer_commands.typer_command(recorded)
    try:
        command.main(args=list(words), prog_name=spec.path, standalone_mode=False, obj=Session(Output(), ""))
    except _ClickException:
        return None
    return calls[0]


TAGS = 'Tags (see "corpus terms FIELD")'
WORDS = ("a", "b=c", "", "-", "--", "-5", "7", "x y")
"""Words that are a value of some options, an argument of some commands, or wrong."""


def values_of(parameter: Parameter) -> list[str]:
    """Good and bad texts for a parameter."""
    if parameter.choices:
        return [*map(str, parameter.choices), parameter.choices[0].upper(), "none-of-these"]
    if parameter.kind in (int, float):
        bounds = [bound for bound in (parameter.option.min, parameter.option.max) if bound is not None]
        near = [int(bound) + step for bound in bounds for step in (-1, 0, 1)]
        return [*map(str, near), "3", "07", "+1", "-2", "few", "", "1.5"]
    return ["text", "a,b", "", "--check", "-", "x=y"]


@st.composite
def invocations(draw: st.DrawFn, spec: CommandSpec) -> list[str]:
    """The words of a command, many of them right."""
    pieces: list[list[str]] = []
    options = [parameter for parameter in spec.parameters if parameter.names]
    for argument in (parameter for parameter in spec.parameters if not parameter.names):
        count = draw(st.integers(0, 3)) if argument.is_many else draw(st.sampled_from((1, 1, 1, 0)))
        pieces += [[draw(st.sampled_from(values_of(argument)))] for _ in range(count)]
    required = [option for option in options if option.is_required]
    for option in draw(st.lists(st.sampled_from(options), max_size=3)) + required if options else ():
        name = draw(st.sampled_from(option.names))
        texts = [draw(st.sampled_from(values_of(option))) for _ in range(option.word_count)]
        form = draw(st.sampled_from(("apart", "apart", "joined", "short of one", "with a value")))
        if form == "joined" and texts:
            joined = f"{name}={texts[0]}" if name.startswith("--") else f"{name}{texts[0]}"
            pieces.append([joined, *texts[1:]])
        elif form == "short of one":
            pieces.append([name, *texts[:-1]])
        elif form == "with a value" and not texts:
            pieces.append([f"{name}=1"])
        else:
            pieces.append([name, *texts])
    others = st.lists(st.sampled_from(WORDS), max_size=1)
    pieces += [[word] for word in draw(st.one_of(st.just([]), st.just([]), others))]
    return [word for piece in draw(st.permutations(pieces)) for word in piece]


@pytest.mark.parametrize("path", COMMANDS)
def test_plain_words_mean_what_typer_takes_them_to_mean(path: str) -> None:
    spec = specs()[path]

    @settings(max_examples=tries(400, 12), deadline=None)
    @given(invocations(spec))
    def compare(words: list[str]) -> None:
        assert plain.parse(spec, plain.sort_words(spec.parameters, words)) == as_typer_reads(spec, words)

    compare()


@pytest.mark.parametrize("path", COMMANDS)
def test_bad_words_end_as_typer_ends_them(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the plain reader and without it: the same code, the same message, nothing on standard output."""
    spec = specs()[path]
    bad = [["--no-such-option"], ["--no-such-option=x", "y"]]
    for parameter in spec.parameters:
        if parameter.names and parameter.word_count:
            bad.append([parameter.names[0]])
        if parameter.names and (parameter.choices or parameter.kind in (int, float)):
            bad.append([parameter.names[0], "none-of-these"])
    monkeypatch.chdir(ROOT)
    quick = [run_corpus(*path.split()[1:], *words) for words in bad]
    monkeypatch.setattr(plain, "run", lambda *_: None)

    assert quick == [run_corpus(*path.split()[1:], *words) for words in bad]
    assert {result.code for result in quick} == {2}
    assert {result.stdout for result in quick} == {""}
    assert all(result.stderr for result in quick)


@pytest.mark.parametrize("path", specs())
def test_help_shows_every_parameter_of_the_specification(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    spec = specs()[path]

    shown = run_corpus(*path.split()[1:], "--help").stdout

    def joined(text: str) -> str:
        """A text without the blanks of a layout."""
        return "".join(text.replace("\b", "").split())

    assert joined(spec.help) in joined(shown)
    for parameter in spec.parameters:
        told = parameter.names[0] if parameter.is_only_named else f"{parameter.label} {parameter.help}"
        assert joined(told) in joined(shown)
        assert not parameter.section or f"\n{parameter.section}:\n" in shown
    monkeypatch.setattr(plain, "run", lambda *_: None)
    assert run_corpus(*path.split()[1:], "--help") == (0, shown, "")


@pytest.mark.parametrize("path", specs())
def test_completion_offers_the_options_and_choices_of_the_specification(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    spec = specs()[path]
    before = path.split()[1:]

    offered = [word for word, _ in completion.offer(before, "-")]

    names = [name for parameter in spec.parameters for name in parameter.names if name.startswith("--")]
    added = list(program("corpus").added) if path == "corpus" else []
    assert offered == [*names, *added, "--help"]
    for parameter in spec.parameters:
        if parameter.names and parameter.choices:
            assert [word for word, _ in completion.offer([*before, parameter.names[0]], "")] == list(parameter.choices)


def test_every_option_with_a_value_from_the_corpus_has_a_provider() -> None:
    forms = re.compile(r"\[?(FIELD|FIELD=VALUE|KEY|ID|ID_OR_URL|FILTER|COLUMN|COLUMNS|ROWS|CODE|A B)\b.*")
    new_keys = {("corpus add", "key"), ("corpus promote", "key"), ("corpus trace replay", "event"), ("corpus trace show", "event")}  # fmt: skip

    missing = {
        (path, parameter.name)
        for path, spec in specs().items()
        for parameter in spec.parameters
        if forms.fullmatch(parameter.form) and parameter.option.offers is None
    }

    assert missing <= new_keys


def test_options_of_the_taxonomy_are_those_of_the_corpus_that_is_named(tmp_path: Path) -> None:
    def sections(root: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for parameter in specs(root)["corpus add"].parameters:
            found.setdefault(parameter.section, []).extend(parameter.names)
        return found

    toy, real = sections(str(TOY)), sections(str(ROOT))
    assert "--style" in toy[TAGS]
    assert "--topology" in real[TAGS]
    assert "--style" not in real[TAGS]
    assert set(sections(str(tmp_path))) == {""}  # no corpus: the command itself says so


INVOCATIONS = (
    ["check"],
    ["check", "data"],
    ["stats"],
    ["list"],
    ["build", "readme", "--check"],
    ["trace", "validate", "traces"],
    ["trace", "validate", "a.json", "lost.json"],
    ["trace", "doctor", "traces/one.json"],
    ["--quiet", "--no-color", "list", "--columns=key", "-wsize=small"],
)


@pytest.mark.parametrize("words", INVOCATIONS)
@pytest.mark.parametrize("state", ["sound", "wrong", "unreadable", "nothing"])
def test_a_plain_invocation_ends_as_typer_would_end_it(
    state: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(tmp_path, state)
    monkeypatch.chdir(tmp_path)

    quickly = run_corpus(*words)

    monkeypatch.setattr(plain, "run", lambda *_: None)
    assert quickly == run_corpus(*words)
    expected = {"sound": 0, "wrong": 1, "unreadable": 3, "nothing": 3}[state]
    if words in (["check"], ["build", "readme", "--check"]) and state == "sound":
        expected = 1  # nothing is generated yet
    elif "lost.json" in words:
        expected = 3
    assert quickly.code == expected


def lay_out(folder: Path, state: str) -> None:
    """A corpus with a trace, in a folder: sound, with mistakes, no text of its format, or not there."""
    trace = (ROOT / "data" / "traces" / "swarm.json").read_text(encoding="utf-8")
    papers = (TOY / "data" / "papers.yaml").read_text(encoding="utf-8")
    if state == "nothing":
        (folder / "data").mkdir()
        (folder / "data" / "papers.yaml").write_bytes(b"\xff")
        (folder / "traces").mkdir()
        return
    changes = {
        "sound": (papers, trace),
        "wrong": (papers.replace("- key: ", "- key: X ", 1), trace.replace('"t": 0', '"t": -1', 1)),
        "unreadable": (papers + "  : [", trace[:-3]),
    }
    for path in sorted(TOY.rglob("*")):
        if path.is_file():
            target = folder / path.relative_to(TOY)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    (folder / "data" / "papers.yaml").write_text(changes[state][0], encoding="utf-8")
    region = "<!-- corpus:begin list -->\n<!-- corpus:end list -->\n"
    (folder / "README.md").write_text(region, encoding="utf-8")
    (folder / "traces").mkdir()
    for name in ("traces/one.json", "a.json"):
        (folder / name).write_text(changes[state][1], encoding="utf-8")


def test_plain_invocations_and_the_help_of_groups_do_not_import_typer() -> None:
    invocations = ("--help", "trace --help", "--version", "check", "check data", "stats", "list", "gaps", "show puppeteer", "claims",
                   "build readme --check", "--quiet stats", "trace validate data/traces", "trace doctor data/traces/swarm.json",
                   "trace doctor tests/data/session", "tag puppeteer topology=centralized --dry-run")  # fmt: skip

    assert run_in_one_process(invocations, ["typer"]) == [[words, 0, []] for words in invocations]


@pytest.mark.parametrize("words", ["", "trace", "audit", "--quiet"])
def test_a_group_without_a_command_shows_its_help_as_bad_use(words: str) -> None:
    result = run_corpus(*words.split())

    assert (result.code, result.stdout) == (2, "")
    assert result.stderr.startswith(
        f"Usage: {' '.join(['corpus', *words.replace('--quiet', '').split()])} [OPTIONS] COMMAND"
    )


@pytest.mark.parametrize(
    "words",
    ["--help stats", "check --help --wrong", "check x", "check --stale loud", "check --stale", "lst", "--wrong stats", "--root", "trace --x",
     "trace validate", "list --wher=x", "show", "build readme --check=yes", "stats --cross a", "audit sample --n few", "diff"],
)  # fmt: skip
def test_whatever_is_wrong_is_left_to_typer(words: str) -> None:
    assert plain.run(program("corpus"), words.split(), Output()) is None
