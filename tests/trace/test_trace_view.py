"""The one lens on a trace: what commands ask of it is computed once."""

from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.trace import view as of_view
from orchtrace_corpus.trace.view import TraceView, agent_tree, timing
from tests.conftest import ROOT
from tests.trace.test_import import LOGS
from tests.trace.traces import EXAMPLES, example

SWARM, HIERARCHICAL = str(ROOT / "data/traces/swarm.json"), str(ROOT / "data/traces/hierarchical.json")
LOG = str(LOGS / "claude_code")


@pytest.fixture
def constructed(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, str]]:
    """How often each of the functions behind a view ran, by the name of the function and of the trace."""
    counts: Counter[tuple[str, str]] = Counter()

    def counting(module: ModuleType, name: str) -> Any:
        function = getattr(module, name)

        def counted(trace: Any, *arguments: Any) -> Any:
            counts[name, trace.trace_id] += 1
            return function(trace, *arguments)

        return counted

    for module, name in (
        *((of_view, "build_graph"), (of_view, "lifecycle")),
        *((timing, "Timing"), (agent_tree, "agent_tree")),
    ):
        monkeypatch.setattr(module, name, counting(module, name))
    return counts


COMMANDS = {
    "doctor": [
        ["doctor", SWARM],
        ["doctor", SWARM, "--format", "json"],
        ["doctor", LOG],
        ["doctor", LOG, "--format", "json"],
    ],
    "credit": [["credit", SWARM], ["credit", SWARM, "--unit", "orchestrator", "--method", "difference"]],
    "replay": [["replay", SWARM], ["replay", SWARM, "--until", "7"]],
    "measure": [["measure", SWARM], ["measure", SWARM, HIERARCHICAL], ["measure", SWARM, "--profile"]],
    "label": [["label", SWARM]],
    "show": [["show", SWARM, HIERARCHICAL]],
    "graph": [["graph", SWARM, "--format", form] for form in ("mermaid", "dot", "svg")],
    "diff": [["diff", SWARM, HIERARCHICAL]],
    "validate": [["validate", SWARM]],
}


@pytest.mark.parametrize(
    "words",
    [one for of in COMMANDS.values() for one in of],
    ids=lambda words: "-".join(map(str, words)).replace(str(ROOT), ""),
)
def test_a_command_constructs_each_part_of_a_view_once(
    words: list[str], constructed: Counter[tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    from orchtrace_corpus.cli.main import run

    assert run(["trace", *words]) == ExitCode.DONE, capsys.readouterr().err
    graphs = {trace: number for (name, trace), number in constructed.items() if name == "build_graph"}
    expected = sum(Path(word).suffix == ".json" for word in words)
    assert len(graphs) >= max(expected, 1)
    assert set(constructed.values()) == {1}


def test_a_raw_log_is_looked_at_once(constructed: Counter[tuple[str, str]], capsys: pytest.CaptureFixture[str]) -> None:
    from orchtrace_corpus.cli.main import run

    assert run(["trace", "doctor", str(ROOT / "tests/data/session")]) == ExitCode.DONE
    assert "critical path" in capsys.readouterr().out
    assert Counter(name for name, _ in constructed) == {"build_graph": 1, "lifecycle": 1, "Timing": 1, "agent_tree": 1}
    assert set(constructed.values()) == {1}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_view_keeps_what_it_has_computed(path: Path) -> None:
    view = TraceView(example(path.stem))

    assert TraceView.of(view) is view
    for name in ("graph", "sequence", "lifecycle", "lineage", "timing", "agents"):
        assert getattr(view, name) is getattr(view, name)
