"""Workflows, hooks and the guide for contributors: safe, consistent with the tool, and true."""

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

import orchtrace_corpus as oc
from orchtrace_corpus.cli.app import COMMANDS
from tests.conftest import ROOT, run_corpus

GITHUB = ROOT / ".github"
TEMPLATES = ROOT / "orchtrace_corpus" / "templates"
WORKFLOWS = sorted([*(GITHUB / "workflows").glob("*.yml"), *(TEMPLATES / ".github" / "workflows").glob("*.yml")])
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

NAMES = {name for group in COMMANDS.values() for name in group}
COMING: set[str] = set()
"""Commands that documents speak of and that the table does not have yet."""


def workflow(path: Path) -> Any:
    read = yaml.safe_load(path.read_text(encoding="utf-8"))
    read["on"] = read.pop(True)  # YAML 1.1 takes the word `on` for true
    return read


def steps(path: Path) -> list[Any]:
    return [step for job in workflow(path)["jobs"].values() for step in job["steps"]]


def corpus_commands(text: str) -> set[str]:
    """The names of the commands that a document or a script has its reader type."""
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    code = "\n".join((*blocks, *spans))
    return set(re.findall(r"(?:^|&& |/)\s*corpus (?:--root \S+ )?([a-z]+)", code, re.MULTILINE))


@pytest.fixture(params=WORKFLOWS, ids=lambda path: str(path.relative_to(ROOT)))
def path(request: pytest.FixtureRequest) -> Path:
    """Each workflow, that of the starter corpus included."""
    found: Path = request.param
    return found


def test_there_are_workflows_for_what_has_to_be_automatic() -> None:
    assert {path.name for path in WORKFLOWS} >= {"tests.yml", "check.yml", "build.yml"}
    assert len(WORKFLOWS) > len({path.name for path in WORKFLOWS})


def test_no_permission_but_those_a_job_names(path: Path) -> None:
    read = workflow(path)

    assert read["permissions"] == {}
    for job in read["jobs"].values():
        expected = "write" if path == GITHUB / "workflows" / "build.yml" else "read"
        assert job["permissions"] == {"contents": expected}
        assert job["timeout-minutes"] <= 30


def test_no_workflow_gives_secrets_to_foreign_code(path: Path) -> None:
    read = workflow(path)

    assert set(read["on"]) <= {"push", "pull_request"}
    if "pull_request" in read["on"]:
        assert "secrets." not in path.read_text(encoding="utf-8")
        assert "github.token" not in path.read_text(encoding="utf-8")


def test_actions_are_named_by_tag_and_leave_no_token_on_disk(path: Path) -> None:
    for step in steps(path):
        if "uses" in step:
            assert re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"])
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_scripts_take_nothing_from_outside_into_their_text(path: Path) -> None:
    assert [step["run"] for step in steps(path) if "${{" in step.get("run", "")] == []


def test_every_corpus_command_of_a_workflow_exists(path: Path) -> None:
    scripts = "\n".join(f"```sh\n{step['run']}\n```" for step in steps(path) if "run" in step)

    assert corpus_commands(scripts) <= NAMES | COMING


@pytest.mark.parametrize("folder", [GITHUB, TEMPLATES / ".github"], ids=["ours", "starter"])
def test_mistakes_are_marked_at_their_lines_before_everything_is_checked(folder: Path) -> None:
    path = folder / "workflows" / "check.yml"
    runs = [step["run"] for step in steps(path) if step.get("run", "").startswith("corpus")]

    assert "pull_request" in workflow(path)["on"]
    assert runs == ["corpus validate --format github", "corpus check"]


def test_what_the_build_commits_does_not_start_it_again() -> None:
    path = GITHUB / "workflows" / "build.yml"
    trigger = workflow(path)["on"]["push"]
    added = re.search(r"git add --all -- (.+)", steps(path)[-1]["run"])

    assert trigger == {"branches": ["main"], "paths": ["data/**", "orchtrace_corpus/**"]}
    assert added is not None
    assert {name.partition("/")[0] for name in trigger["paths"]} & set(added[1].split()) == set()
    assert all((ROOT / name).exists() for name in added[1].split())


def test_only_the_last_step_of_the_build_has_the_token() -> None:
    path = GITHUB / "workflows" / "build.yml"
    *before, last = steps(path)

    assert last["env"] == {"GITHUB_TOKEN": "${{ github.token }}"}
    assert not any("token" in str(step).lower() for step in before)


def test_the_audit_of_workflows_leaves_out_one_rule_and_says_why() -> None:
    text = (GITHUB / "zizmor.yml").read_text(encoding="utf-8")

    assert yaml.safe_load(text) == {"rules": {"unpinned-uses": {"disable": True}}}
    assert "left to the maintainer" in text


def test_hooks_for_other_lists() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))

    assert [hook["id"] for hook in hooks] == ["corpus-validate", "corpus-fmt", "corpus-check"]
    for hook in hooks:
        assert hook["entry"] == hook["id"].replace("-", " ")
        assert hook["entry"].removeprefix("corpus ") in NAMES | COMING
        assert (hook["language"], hook["pass_filenames"]) == ("python", False)
        assert re.search(hook["files"], "data/papers.yaml")
        assert not re.search(hook["files"], "tests/data/papers.yaml")


@pytest.mark.parametrize(
    "document",
    [*ROOT.glob("CONTRIBUTING.md"), *GITHUB.glob("*.md"), *TEMPLATES.glob("*.md")],
    ids=lambda path: path.name,
)
def test_every_corpus_command_of_a_guide_exists(document: Path) -> None:
    named = corpus_commands(document.read_text(encoding="utf-8"))

    assert named
    assert named <= NAMES | COMING


def test_a_command_that_has_come_is_no_longer_coming() -> None:
    assert COMING.isdisjoint(NAMES)


def test_commands_that_a_contributor_looks_things_up_with_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    commands = re.findall(r"`corpus ((?:terms|list)[^`]*)`", CONTRIBUTING)

    assert len(commands) > 4
    for command in commands:
        assert (command, run_corpus(*shlex.split(command)).code) == (command, 0)


def test_the_way_to_a_pull_request_has_five_steps_and_begins_with_the_readme() -> None:
    way = CONTRIBUTING.split("## Add a paper")[1].split("\n## ")[0]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first_line = re.findall(r"```sh\n(.*?)\n```", readme.split("## Quick Start")[1], re.DOTALL)[0]

    assert re.findall(r"^(\d)\. ", way, re.MULTILINE) == list("12345")
    assert re.findall(r"```sh\n(.*?)\n *```", way, re.DOTALL)[0].strip() == first_line


def test_the_examples_for_contributors_are_valid_records(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "data", tmp_path / "data")
    paper, exclusion = (
        re.sub(f"^{indent}", "", block, flags=re.MULTILINE)
        for indent, block in re.findall(r"^( *)```yaml\n(.*?)^ *```", CONTRIBUTING, re.MULTILINE | re.DOTALL)
    )
    number = len(oc.load(str(ROOT)).exclusions) + 1
    for name, record in (("papers", paper), ("exclusions", exclusion.replace("E033", f"E{number:03}"))):
        with open(tmp_path / "data" / f"{name}.yaml", "a", encoding="utf-8") as file:
            file.write(f"\n{record}")

    assert oc.validate(str(tmp_path)) == ()
    assert run_corpus("--root", str(tmp_path), "fmt", "--check") == (0, "", "")


def test_every_kind_of_change_is_in_the_guide() -> None:
    assert re.findall(r"^## (.+)$", CONTRIBUTING, re.MULTILINE) == [
        "Add a paper",
        "Choose the tags",
        "Give evidence",
        "Exclude a paper",
        "Correct a record",
        "Change the taxonomy",
        "Work on the code",
        "Commits",
    ]
