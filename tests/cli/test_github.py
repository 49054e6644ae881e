"""Workflows, hooks and the guide for contributors: safe, consistent with the tool, and true."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from datetime import date
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchtrace_corpus.cli.table import COMMANDS
from tests.conftest import ROOT, run_corpus
from tests.corpus.arxiv_feeds import record
from tests.corpus.arxiv_server import ArxivServer

GITHUB = ROOT / ".github"
TEMPLATES = ROOT / "orchtrace_corpus" / "corpus" / "templates"
WORKFLOWS = sorted([*(GITHUB / "workflows").glob("*.yml"), *(TEMPLATES / ".github" / "workflows").glob("*.yml")])
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

NAMES = {name for group in COMMANDS.values() for name in group}
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
MEANING = next(step["run"] for step in ACTION["runs"]["steps"] if step.get("id") == "meaning")
WRITERS = {
    ("build.yml", "push"): {"contents": "write", "pull-requests": "write"},
    ("fetch.yml", "propose"): {"contents": "write", "pull-requests": "write"},
    ("discover.yml", "propose"): {"contents": "write", "pull-requests": "write"},
    ("site.yml", "make"): {"pages": "read"},
    ("site.yml", "publish"): {"pages": "write", "id-token": "write"},
    ("comment.yml", "post"): {"pull-requests": "write"},
    ("release.yml", "publish"): {"id-token": "write", "attestations": "write"},
    ("release.yml", "announce"): {"contents": "write"},
}
"""What some jobs of our workflows may do beyond reading the repository."""
COMMENT = GITHUB / "workflows" / "comment.yml"
RENDER = 'python3 -S -m orchtrace_corpus.corpus.render.comment "$RUNNER_TEMP/artifact/meaning.json" > comment.md'
WITHOUT_PERMISSION = {("comment.yml", "compare"), ("comment.yml", "tool")}
COMING: set[str] = set()
"""Commands that documents speak of and that the table does not have yet."""


@cache
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
    for name, job in read["jobs"].items():
        more = WRITERS.get((path.name, name), {}) if path.is_relative_to(GITHUB) or path.name == COMMENT.name else {}
        reads = {} if (path.name, name) in WITHOUT_PERMISSION else {"contents": "read"}
        assert job["permissions"] == {**reads, **more}
        assert job["timeout-minutes"] <= (120 if path.name == "nightly.yml" else 30)


def test_no_workflow_gives_secrets_to_foreign_code(path: Path) -> None:
    read = workflow(path)

    assert set(read["on"]) <= {"push", "pull_request", "pull_request_target", "schedule", "workflow_dispatch"}
    assert ("pull_request_target" in read["on"]) == (path.name == "comment.yml")
    if "pull_request" in read["on"]:
        assert "secrets." not in path.read_text(encoding="utf-8")
        assert "github.token" not in path.read_text(encoding="utf-8")


def test_actions_are_pinned_by_hash_and_leave_no_token_on_disk(path: Path) -> None:
    for step in steps(path):
        if "uses" in step:
            assert re.fullmatch(r"(actions/[a-z-]+|pypa/gh-action-pypi-publish)@[0-9a-f]{40}|\./", step["uses"])
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_an_action_has_one_hash_everywhere_with_its_release_beside_it() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (*WORKFLOWS, ROOT / "action.yml")]
    uses = [use for text in texts for use in re.findall(r"uses: (?!\./)(.+)", text)]

    assert [use for use in uses if not re.fullmatch(r"\S+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use)] == []
    assert len(set(uses)) == len({use.split("@")[0] for use in uses})


@pytest.mark.parametrize("folder", [ROOT, TEMPLATES], ids=["ours", "starter"])
def test_pins_are_kept_fresh(folder: Path) -> None:
    (update,) = yaml.safe_load((folder / ".github" / "dependabot.yml").read_text(encoding="utf-8"))["updates"]
    templates = TEMPLATES.relative_to(ROOT).as_posix()

    assert update["package-ecosystem"] == "github-actions"
    if folder == ROOT:
        assert update["directories"] == ["/", f"/{templates}/.github/workflows"]
    else:
        assert update["directory"] == "/"


def test_scripts_take_nothing_from_outside_into_their_text(path: Path) -> None:
    assert [step["run"] for step in steps(path) if "${{" in step.get("run", "")] == []


def test_every_corpus_command_of_a_workflow_exists(path: Path) -> None:
    scripts = "\n".join(f"```sh\n{step['run']}\n```" for step in steps(path) if "run" in step)

    assert corpus_commands(scripts) <= NAMES | COMING


def test_mistakes_are_marked_at_their_lines_before_everything_is_checked() -> None:
    starter = TEMPLATES / ".github" / "workflows" / "check.yml"
    runs = [step["run"] for step in steps(starter) if step.get("run", "").startswith("corpus")]
    ours = [step["run"] for step in ACTION["runs"]["steps"] if step.get("run", "").startswith("corpus")]

    assert "pull_request" in workflow(starter)["on"]
    assert runs == ["corpus check data --format github", "corpus check"]
    assert [run.splitlines()[0] for run in ours] == [
        'corpus --root "$ROOT" check data --format github',
        'corpus --root "$ROOT" check --stale "$STALE" | tee "$RUNNER_TEMP/check.txt"',
    ]


def test_the_action_takes_nothing_from_outside_into_its_scripts() -> None:
    scripts = [step["run"] for step in ACTION["runs"]["steps"] if "run" in step]

    assert len(scripts) == 4
    assert [script for script in scripts if "${{" in script] == []
    assert corpus_commands("\n".join(f"```sh\n{script}\n```" for script in scripts)) <= NAMES


COMMENTS = [path for path in WORKFLOWS if path.name == COMMENT.name]


@pytest.mark.parametrize("path", COMMENTS, ids=["ours", "starter"])
def test_the_comment_runs_no_code_of_the_pull_request(path: Path) -> None:
    """Nothing of it is checked out, and the one command that names its commit fetches objects."""
    named = [step for step in steps(path) if "pull_request" in str(step)]

    assert [step["with"].keys() & {"ref", "repository"} for step in steps(path) if "checkout" in str(step)] != []
    assert not any(step["with"].keys() & {"ref", "repository"} for step in steps(path) if "checkout" in str(step))
    assert [step["env"] for step in named] == [
        {"HEAD_SHA": "${{ github.event.pull_request.head.sha }}"},
        {"GH_TOKEN": "${{ github.token }}", "NUMBER": "${{ github.event.pull_request.number }}"},
    ]
    assert re.findall(r"git (\w+)", named[0]["run"]) == ["fetch"]


@pytest.mark.parametrize("path", COMMENTS, ids=["ours", "starter"])
def test_who_may_write_comments_installs_nothing_and_sees_nothing_but_the_json(path: Path) -> None:
    jobs = workflow(path)["jobs"]
    writers = [name for name, job in jobs.items() if "write" in job["permissions"].values()]
    downloads = [step["with"]["name"] for step in jobs["post"]["steps"] if "download-artifact" in step.get("uses", "")]
    uploads = {
        name: step["with"]["name"] for name, job in jobs.items() for step in job["steps"] if "upload" in str(step)
    }

    assert writers == ["post"]
    assert (downloads, uploads) == (
        (["meaning"], {"compare": "meaning"})
        if path == COMMENT
        else (["tool", "meaning"], {"tool": "tool", "compare": "meaning"})
    )
    assert "HEAD_SHA" not in str(jobs.get("tool", ""))
    assert jobs["post"]["steps"][-2]["run"].splitlines()[-1] == RENDER


def test_both_workflows_of_comments_post_alike() -> None:
    ours, starter = (workflow(path) for path in COMMENTS)

    assert ours["on"] == starter["on"]
    assert ours["on"]["pull_request_target"]["branches"] == ["main"]
    assert ours["jobs"]["post"]["steps"][-1] == starter["jobs"]["post"]["steps"][-1]
    assert ours["jobs"]["compare"]["steps"][-2:] == starter["jobs"]["compare"]["steps"][-2:]


def bash(script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script as a runner does, with our own `corpus` first on the path."""
    path = f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    settings = {**os.environ, "PATH": path, **environment}
    command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script]
    return subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, check=False)


@pytest.fixture
def gh(tmp_path: Path) -> Path:
    """A folder with a stand-in for `gh` that answers from files and writes down what it was asked to write."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "gh"
    program.write_text(
        "#!/usr/bin/env bash\n"
        'case "$*" in\n'
        f'  *PATCH*|*POST*) echo "$*" >> {tmp_path}/written ;;\n'
        f"  *comments*) cat {tmp_path}/comments ;;\n"
        "esac\n",
        encoding="utf-8",
    )
    program.chmod(0o755)
    (tmp_path / "comments").write_text("", encoding="utf-8")
    (tmp_path / "comment.md").write_text("<!-- corpus diff -->\n**1 paper added.**\n", encoding="utf-8")
    return tmp_path


def post(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the last step of the workflow, which has the token."""
    (step,) = (step for step in steps(COMMENT) if "GH_TOKEN" in step.get("env", ""))
    return bash(step["run"], folder, GITHUB_REPOSITORY="o/r", NUMBER="12", GH_TOKEN="t")


def checkout(folder: Path) -> None:
    """Lay out what the job that posts has checked out, and nothing else."""
    for name in ("orchtrace_corpus", "docs"):
        (folder / name).symlink_to(ROOT / name)


def test_the_first_comment_is_posted_and_later_ones_update_it(gh: Path) -> None:
    assert post(gh).returncode == 0
    (gh / "comments").write_text("77\n", encoding="utf-8")
    assert post(gh).returncode == 0
    assert (gh / "written").read_text(encoding="utf-8").splitlines() == [
        "api --silent --method POST repos/o/r/issues/12/comments --field body=@comment.md",
        "api --silent --method PATCH repos/o/r/issues/comments/77 --field body=@comment.md",
    ]


@pytest.mark.parametrize("content", [b"<!-- corpus diff -->\n[a](//b)\n", "link", None], ids=["none", "link", "absent"])
def test_where_there_is_no_difference_the_comment_says_so(gh: Path, content: bytes | str | None) -> None:
    """What stood there before would be taken for what the last commit changes."""
    path = gh / "artifact" / "meaning.json"
    path.parent.mkdir()
    (gh / "secret").write_text("{}", encoding="utf-8")
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content:
        path.symlink_to(gh / "secret")
    checkout(gh)
    done = bash(RENDER, gh, RUNNER_TEMP=str(gh))

    assert done.returncode == 1
    assert done.stderr.startswith("This is not what corpus diff writes: ")
    assert (gh / "comment.md").read_text(encoding="utf-8").splitlines()[:2] == [
        "<!-- corpus diff -->",
        "**What this pull request changes could not be computed.** What stood here before may no longer be true; the run of the",
    ]


def test_the_action_says_what_a_pull_request_means_in_a_shallow_clone(tmp_path: Path) -> None:
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C"]
    origin = tmp_path / "origin"
    shutil.copytree(ROOT / "data", origin / "data")
    for words in (["init", "--quiet", "--initial-branch", "main"], ["add", "."], ["commit", "--quiet", "-m", "One"]):
        subprocess.run([*git, str(origin), *words], check=True)
    base = subprocess.run([*git, str(origin), "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    papers = origin / "data" / "papers.yaml"
    papers.write_text(papers.read_text(encoding="utf-8").replace("venue: AAAI 2026", "venue: AAAI"), encoding="utf-8")
    subprocess.run([*git, str(origin), "commit", "--quiet", "-am", "Two"], check=True)
    subprocess.run([*git, str(tmp_path), "clone", "--quiet", "--depth=1", f"file://{origin}", "clone"], check=True)
    files = {name: str(tmp_path / name) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    bases = {"BASE": "", "PULL_REQUEST_BASE": base.strip()}
    done = bash(MEANING, tmp_path / "clone", ROOT=".", RUNNER_TEMP=str(tmp_path), **bases, **files)

    assert (done.returncode, done.stderr) == (0, "")
    meaning = json.loads((tmp_path / "meaning.json").read_text(encoding="utf-8"))
    assert [one["values"][0]["after"] for one in meaning["files"][0]["records"]] == ["AAAI", "AAAI"]
    summary = (tmp_path / "GITHUB_STEP_SUMMARY").read_text(encoding="utf-8")
    assert summary.startswith("<!-- corpus diff -->\n**papers: 2 changed.**\n")
    assert (tmp_path / "GITHUB_OUTPUT").read_text(encoding="utf-8") == f"file={tmp_path / 'meaning.json'}\n"


def test_the_action_tells_the_change_of_a_pull_request_and_of_no_other(tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    shutil.copytree(ROOT / "tests" / "data" / "toy" / "data", origin / "data")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(origin)]
    papers = origin / "data" / "papers.yaml"

    def run(*words: str) -> str:
        return subprocess.run([*git, *words], check=True, capture_output=True, text=True).stdout.strip()

    def change(old: str, new: str) -> None:
        papers.write_text(papers.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
        run("commit", "--quiet", "--all", "--message", new)

    run("init", "--quiet", "--initial-branch", "main")
    run("add", ".")
    run("commit", "--quiet", "--message", "One")
    opened = run("rev-parse", "HEAD")
    run("checkout", "--quiet", "-b", "mine")
    change("venue: Report", "venue: Reports")
    run("checkout", "--quiet", "main")
    change("tools: [rake]", "tools: [spade]")
    run("merge", "--quiet", "--no-edit", "mine")
    clone = ["git", "clone", "--quiet", "--depth=2", f"file://{origin}", str(tmp_path / "clone")]
    subprocess.run(clone, check=True)
    files = {name: str(tmp_path / name) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    bases = {"BASE": "", "PULL_REQUEST_BASE": opened}
    done = bash(MEANING, tmp_path / "clone", ROOT=".", RUNNER_TEMP=str(tmp_path), **bases, **files)

    assert (done.returncode, done.stderr) == (0, "")
    assert Path(files["GITHUB_STEP_SUMMARY"]).read_text(encoding="utf-8").splitlines()[1] == "**papers: 1 changed.**"


def test_a_base_that_looks_like_an_option_is_none(tmp_path: Path) -> None:
    """To `git fetch`, `--upload-pack=PROGRAM` names a program to start."""
    origin = tmp_path / "origin"
    shutil.copytree(ROOT / "tests" / "data" / "toy" / "data", origin / "data")
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "One"]):
        git(origin, *words)
    git(tmp_path, "clone", "--quiet", f"file://{origin}", str(tmp_path / "clone"))
    files = {name: str(tmp_path / name) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    started = tmp_path / "started"
    bases = {"BASE": f"--upload-pack=touch {started};git-upload-pack", "PULL_REQUEST_BASE": ""}
    done = bash(MEANING, tmp_path / "clone", ROOT=".", RUNNER_TEMP=str(tmp_path), **bases, **files)

    assert (done.returncode != 0, started.exists()) == (True, False)


SETTINGS = {"GITHUB_REPOSITORY": "o/r", "GH_TOKEN": "t"}
GENERATED = "README.md docs/STATS.md docs/figures.md docs/figures docs/list docs/schema .github/ISSUE_TEMPLATE/suggest-a-paper.yml"


def git(folder: Path, *words: str) -> str:
    named = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(folder), *words]
    return subprocess.run(named, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bare repository of the toy corpus, built, on main, and our scripts."""
    folder = tmp_path_factory.mktemp("built") / "first"
    shutil.copytree(ROOT / "tests" / "data" / "toy" / "data", folder / "data")
    shutil.copytree(GITHUB, folder / ".github")
    (folder / "README.md").write_text("# T\n\n<!-- corpus:begin list -->\n<!-- corpus:end list -->\n", encoding="utf-8")
    assert (
        run_corpus("--root", str(folder), "check", "form", "--fix").code
        == run_corpus("--root", str(folder), "build").code
        == 0
    )
    for words in (["init", "--quiet", "--initial-branch", "main"], ["add", "."], ["commit", "--quiet", "-m", "One"]):
        git(folder, *words)
    git(folder, "clone", "--quiet", "--bare", str(folder), str(folder.parent / "r.git"))
    return folder.parent / "r.git"


@pytest.fixture
def bare(gh: Path, built: Path) -> Path:
    """A copy of that repository, and a `gh` that writes down what it is asked."""
    (gh / "bin" / "gh").write_text(f'#!/usr/bin/env bash\n[ "$2" = list ] || echo "$*" >> {gh}/written\n')
    return shutil.copytree(built, gh / "o" / "r.git")


def clone(bare: Path, name: str) -> Path:
    git(bare, "clone", "--quiet", f"file://{bare}", str(bare.parent / name))
    return bare.parent / name


def work(job: Any, folder: Path, gh: Path) -> subprocess.CompletedProcess[str]:
    """The steps of a job of a workflow that are scripts, but for those that install; artifacts go by `gh`/artifact."""
    path = f"{gh / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    script = [f"export PATH={shlex.quote(path)}"]
    for step in job["steps"]:
        if "upload-artifact" in step.get("uses", ""):
            present = [name for name in step["with"]["path"].split() if (folder / name).exists() or name == "body.md"]
            script.append(f"mkdir {gh}/artifact && tar cf - {' '.join(present)} | tar xf - -C {gh}/artifact")
        elif "download-artifact" in step.get("uses", ""):
            script.append(f"cp -R {gh}/artifact {step['with']['path']}")
        elif not re.search("pip install|fetch --write|corpus discover", step.get("run", "")):
            script.append(step.get("run", ":"))
    settings = {"GITHUB_SERVER_URL": f"file://{gh}", "GITHUB_OUTPUT": str(gh / "output"), **SETTINGS}
    return bash("\n".join(script), folder, **settings)


@pytest.mark.posix
@pytest.mark.parametrize("is_protected", [False, True])
def test_from_a_fork_to_the_regenerated_default_branch(gh: Path, bare: Path, is_protected: bool) -> None:
    """Two forks add a record each, of data alone; both are merged; the workflow regenerates."""
    hub = clone(bare, "hub")
    for number, place in ((1, "- key: rose-garden"), (2, "- key: mixed-borders")):
        fork = clone(bare, f"fork{number}")
        papers = fork / "data" / "papers.yaml"
        text = papers.read_text(encoding="utf-8")
        record = text[text.index("- key: long-grass") : text.index("- key: mixed-borders")]
        new = record.replace("long-grass", f"new-{number}").replace("Long Grass", f"Moss {number}")
        new = new.replace("2302.00002", f"2302.1000{number}").replace("org/grass", f"org/moss{number}")
        papers.write_text(text.replace(place, new + place), encoding="utf-8")
        asked = run_corpus("--root", str(fork), "check", "--stale", "notice")
        assert (asked.code, "they are regenerated after the merge: README.md" in asked.stdout) == (0, True)
        git(fork, "commit", "--quiet", "--all", "--message", f"Add {number}")
        git(hub, "fetch", "--quiet", str(fork), "HEAD")
        git(hub, "merge", "--quiet", "--no-edit", "FETCH_HEAD")
    git(hub, "push", "--quiet", "origin", "main")
    assert run_corpus("--root", str(clone(bare, "before")), "check").code == 1
    if is_protected:
        (bare / "hooks").mkdir(exist_ok=True)
        (bare / "hooks" / "update").write_text('#!/bin/sh\n[ "$1" != refs/heads/main ]\n', encoding="utf-8")
        (bare / "hooks" / "update").chmod(0o755)
    jobs = workflow(GITHUB / "workflows" / "build.yml")["jobs"]
    for name, job in jobs.items():
        done = work(job, clone(bare, name), gh)
        assert done.returncode == 0, done.stderr
    after = clone(bare, "after")
    if is_protected:
        assert run_corpus("--root", str(after), "check").code == 1
        assert (
            (gh / "written").read_text(encoding="utf-8").startswith("pr create --head regenerated --title docs: regen")
        )
        git(after, "switch", "--quiet", "regenerated")
    assert (run_corpus("--root", str(after), "check").code, (gh / "written").exists()) == (0, is_protected)
    changed = git(after, "diff", "--name-only", "HEAD~").split()
    assert "README.md" in changed
    assert all(name.startswith(tuple(GENERATED.split())) for name in changed)


def fork_with(bare: Path, name: str, files: dict[str, str]) -> Path:
    """Fork the repository and commit a change of a venue, with other files."""
    fork = clone(bare, name)
    papers = fork / "data" / "papers.yaml"
    papers.write_text(papers.read_text(encoding="utf-8").replace("venue: Report", "venue: Reports"), encoding="utf-8")
    for path, text in files.items():
        (fork / path).parent.mkdir(parents=True, exist_ok=True)
        (fork / path).write_text(text, encoding="utf-8")
    return fork


def propose(gh: Path, bare: Path, fork: Path) -> str:
    """Open a pull request from a fork; run the jobs of the workflow in clones of the default branch; return the comment."""
    git(fork, "switch", "--quiet", "--create", "mine")
    git(fork, "add", "--all", ".")
    git(fork, "commit", "--quiet", "--message", "Mine")
    git(fork, "push", "--quiet", "origin", "HEAD:refs/pull/12/head")
    base = clone(bare, f"{fork.name}-compare")
    (compare,) = (step for step in steps(COMMENT) if "HEAD_SHA" in step.get("env", {}))
    done = bash(compare["run"], base, HEAD_SHA=git(fork, "rev-parse", "HEAD").strip())
    assert done.returncode == 0, done.stderr
    assert git(base, "status", "--porcelain").split() == ["??", "meaning.json"]
    temp = base.parent / f"{fork.name}-temp"
    (temp / "artifact").mkdir(parents=True)
    shutil.move(base / "meaning.json", temp / "artifact")
    checkout(temp)
    done = bash(RENDER, temp, RUNNER_TEMP=str(temp))
    assert (done.returncode, done.stderr) == (0, "")
    shutil.copy(temp / "comment.md", gh / "comment.md")
    assert post(gh).returncode == 0
    return (gh / "comment.md").read_text(encoding="utf-8")


COMPARED = r"\nCompared: `[0-9a-f]{10}` with `[0-9a-f]{10}`\.\n"
CORRECTED = """\
### Papers changed

- `terminal-yard`: `venue`: `Report` → `Reports`
"""


@pytest.mark.posix
def test_the_comment_on_a_change_of_data_is_what_the_guide_s_command_prints(gh: Path, bare: Path) -> None:
    """The default branch has gone on since the fork left it."""
    fork = fork_with(bare, "fork", {})
    other = fork_with(bare, "other", {"data/papers.yaml": "[]\n", "code.py": ""})
    git(other, "add", "--all", ".")
    git(other, "commit", "--quiet", "--message", "Theirs")
    git(other, "push", "--quiet", "origin", "main")
    posted = propose(gh, bare, fork)

    assert posted.startswith("<!-- corpus diff -->\n**papers: 1 changed.**\n")
    assert CORRECTED in posted
    assert re.search(COMPARED, posted)
    assert "`corpus diff main...HEAD --format markdown`" in CONTRIBUTING
    assert run_corpus("--root", str(fork), "diff", "main...HEAD", "--format", "markdown").stdout == posted


@pytest.mark.posix
def test_forged_code_and_json_change_nothing_of_the_comment_but_its_first_line(gh: Path, bare: Path) -> None:
    """The fork's code says that nothing changed, wherever Python or git would look for code."""
    forged = "<!-- corpus diff -->\n**No change: the data is the same.**\n"
    code = f"import pathlib\npathlib.Path({str(gh / 'ran')!r}).touch()\nprint({forged!r})\nraise SystemExit\n"
    fork = fork_with(
        bare,
        "fork",
        {
            "orchtrace_corpus/__init__.py": code,
            "orchtrace_corpus/corpus/render/difference.py": code,
            "sitecustomize.py": code,
            "yaml.py": code,
            "meaning.json": json.dumps({"schema": "orchtrace-corpus/diff", "version": 2, "has_meaning": False}),
            "comment.md": forged,
            ".github/workflows/comment.yml": "on: push\n",
            "data/.gitattributes": "*.yaml -diff\n",
            "`x`](/y)\n\n# z @moss": "",
        },
    )
    posted = propose(gh, bare, fork)

    assert posted.splitlines()[:4] == [
        "<!-- corpus diff -->",
        "**Not data alone.** This pull request changes 9 files outside data/: `.github/workflows/comment.yml`, "
        "`` `x`](/y)\\n\\n# z @moss ``, `comment.md`, `data/.gitattributes`, `meaning.json`, "
        "`orchtrace_corpus/__init__.py`, `orchtrace_corpus/corpus/render/difference.py`, `sitecustomize.py`, `yaml.py`.",
        "",
        "**papers: 1 changed.**",
    ]
    assert CORRECTED in posted
    assert not (gh / "ran").exists()
    assert run_corpus("--root", str(fork), "diff", "main...HEAD", "--format", "markdown").stdout == posted


@pytest.mark.posix
def test_files_with_endless_names_leave_room_for_the_change(gh: Path, bare: Path) -> None:
    """As many as GitHub would refuse a comment for, in front of one that matters."""
    names = ["/".join((f"a{number:04}", *["\u200b" * 60] * 8)) for number in range(1200)]
    posted = propose(gh, bare, fork_with(bare, "fork", {**dict.fromkeys(names, ""), "z.py": "evil"}))
    first = posted.splitlines()[1]

    assert first.startswith("**Not data alone.** This pull request changes 1201 files outside data/: `a0000/")
    assert re.search(r"…`?[^`]*, and 11\d\d more\.$", first)
    assert len(first.encode()) < 8000
    assert CORRECTED in posted


@pytest.mark.posix
@pytest.mark.parametrize("kind", ["link", "folder", "executable", "taxonomy"])
def test_data_that_cannot_be_read_is_refused_in_the_comment(gh: Path, bare: Path, kind: str) -> None:
    fork = fork_with(bare, "fork", {"code.py": "", **({"data/taxonomy.yaml": "- a\n"} if kind == "taxonomy" else {})})
    secret = gh / "secret.yaml"
    secret.write_text((fork / "data" / "papers.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    if kind == "link":
        (fork / "data" / "papers.yaml").unlink()
        (fork / "data" / "papers.yaml").symlink_to(secret)
    elif kind == "folder":
        shutil.rmtree(fork / "data")
        (fork / "data").symlink_to(gh)
    elif kind == "executable":
        (fork / "data" / "papers.yaml").chmod(0o755)
    posted = propose(gh, bare, fork)
    refused = kind != "taxonomy"  # its records are read by the taxonomy that they left

    assert posted.splitlines()[1] == "**Not data alone.** This pull request changes 1 file outside data/: `code.py`."
    assert ("**The data cannot be compared.**" in posted) is refused
    assert ("data files must be plain files, not links, executables or submodules" in posted) is refused
    assert refused or CORRECTED in posted
    printed = run_corpus("--root", str(fork), "diff", "main...HEAD", "--format", "markdown")
    if kind == "folder":  # the fork's own folder is no corpus any more
        assert printed.code == 3
    else:
        assert (printed.code, printed.stdout) == (3 if refused else 0, posted)


@pytest.mark.posix
def test_what_pushes_takes_nothing_but_generated_files(gh: Path, bare: Path) -> None:
    folder = clone(bare, "push")
    keep_generated(folder, gh / "artifact")
    for name in (".git/config", "data/papers.yaml", ".github/propose.sh", "docs/page.md"):
        (gh / "artifact" / name).parent.mkdir(parents=True, exist_ok=True)
        (gh / "artifact" / name).write_text("theirs", encoding="utf-8")

    done = work(workflow(GITHUB / "workflows" / "build.yml")["jobs"]["push"], folder, gh)

    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "Everything is up to date.")


def keep_generated(folder: Path, artifact: Path) -> None:
    """Leave the generated files of a clone as the job that builds does."""
    for name in GENERATED.split():
        if (folder / name).is_dir():
            shutil.copytree(folder / name, artifact / name)
        elif (folder / name).exists():
            (artifact / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / name, artifact / name)


@pytest.mark.posix
def test_what_the_build_no_longer_writes_is_deleted(gh: Path, bare: Path) -> None:
    """One page of a folder that stays, and the only file of one that goes."""
    folder = clone(bare, "push")
    keep_generated(folder, gh / "artifact")
    for name in ("docs/figures/renamed.svg", "docs/list/renamed.md", "docs/by-hand.md"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("old", encoding="utf-8")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "Old pages")

    done = work(workflow(GITHUB / "workflows" / "build.yml")["jobs"]["push"], folder, gh)

    assert done.returncode == 0, done.stderr
    assert git(bare, "diff", "--name-status", "main~", "main").splitlines() == [
        "D\tdocs/figures/renamed.svg",
        "D\tdocs/list/renamed.md",
    ]


@pytest.mark.posix
def test_a_folder_that_no_build_has_left_deletes_nothing(gh: Path, bare: Path) -> None:
    folder = clone(bare, "push")
    (gh / "artifact").mkdir()

    done = work(workflow(GITHUB / "workflows" / "build.yml")["jobs"]["push"], folder, gh)

    message = "::error::regenerated is not what corpus build has left: it has no README.md"
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, message)
    assert git(folder, "status", "--porcelain", "--untracked-files=no") == ""


@pytest.mark.posix
def test_the_weekly_run_proposes_what_has_changed(gh: Path, bare: Path) -> None:
    """With titles that would mention somebody if they stood as text."""
    folder = clone(bare, "fetch")
    papers = folder / "data" / "papers.yaml"
    papers.write_text(papers.read_text(encoding="utf-8").replace("title: The Yard", "title: '@moss'"), encoding="utf-8")
    (folder / "drift.txt").write_text("A103 title: @moss\n", encoding="utf-8")
    for name, job in workflow(GITHUB / "workflows" / "fetch.yml")["jobs"].items():
        done = work(job, folder if name == "fetch" else clone(bare, name), gh)
        assert done.returncode == 0, done.stderr

    assert (gh / "written").read_text(encoding="utf-8") == (
        "pr create --head arxiv-drift --title fix(data): take over what arXiv says now --body-file proposed/body.md\n"
    )
    body = (gh / "o" / "propose" / "proposed" / "body.md").read_text(encoding="utf-8")
    assert body.startswith("<!-- corpus diff -->\n**papers: 1 changed.**\n")
    assert [line for line in body.splitlines() if "@moss" in line] == [
        "- `terminal-yard`: `title`: `The Yard` → `@moss`",
        "    A103 title: @moss",
    ]
    shown = git(bare, "show", "--stat", "--format=%s", "arxiv-drift")
    assert shown.startswith("fix(data): take over what arXiv says now\n\n")
    assert " data/papers.yaml " in shown


@pytest.mark.posix
def test_the_weekly_search_proposes_its_candidates_in_one_pull_request(gh: Path, bare: Path) -> None:
    """With a title that would mention somebody if it stood as text; what is proposed is data, and nothing enters the pool."""
    folder = clone(bare, "discover")
    day = date.today().isoformat()
    candidate = (
        f'- key: moss\n  title: "@moss & [b](c)"\n  year: 2021\n  proposal: unread\n  found: "{day}"\n  found_by: [q]\n'
    )
    (folder / "data" / "candidates.yaml").write_text(candidate, encoding="utf-8")
    (folder / "searches.txt").write_text("query  found\n@q     1\n", encoding="utf-8")
    for name, job in workflow(GITHUB / "workflows" / "discover.yml")["jobs"].items():
        done = work(job, folder if name == "discover" else clone(bare, name), gh)
        assert done.returncode == 0, done.stderr

    assert (gh / "written").read_text(encoding="utf-8") == (
        "pr create --head new-candidates --title data: candidates that the searches have found --body-file found/body.md\n"
    )
    body = (gh / "o" / "propose" / "found" / "body.md").read_text(encoding="utf-8")
    assert [line for line in body.splitlines() if "@" in line] == ["    moss,q,'@moss & [b](c)", "    @q     1"]
    shown = git(bare, "show", "--stat", "--format=%s", "new-candidates")
    assert " data/candidates.yaml " in shown
    assert " data/papers.yaml " not in shown


@pytest.mark.parametrize(("code", "passes"), [(0, True), (1, True), (4, True), (3, False)])
def test_the_weekly_search_takes_an_absent_service_for_no_failure(gh: Path, code: int, passes: bool) -> None:
    script = next(s["run"] for s in steps(GITHUB / "workflows" / "discover.yml") if "--since last" in s.get("run", ""))
    program = f"#!/usr/bin/env bash\necho searches\necho notes >&2\nexit {code}\n"
    (gh / "bin" / "corpus").write_text(program, encoding="utf-8")
    (gh / "bin" / "corpus").chmod(0o755)
    done = bash(script, gh, GITHUB_STEP_SUMMARY=str(gh / "summary"))

    assert (done.returncode == 0) is passes
    assert ("::notice::" in done.stdout) is (code == 4)
    assert (gh / "summary").read_text(encoding="utf-8") == "    searches\n    notes\n"


@pytest.mark.parametrize(("code", "passes"), [(0, True), (1, True), (4, True), (3, False)])
def test_the_weekly_run_takes_an_absent_arxiv_for_no_failure(gh: Path, code: int, passes: bool) -> None:
    script = next(s["run"] for s in steps(GITHUB / "workflows" / "fetch.yml") if "fetch --write" in s.get("run", ""))
    (gh / "bin" / "corpus").write_text(f"#!/usr/bin/env bash\necho drift\nexit {code}\n", encoding="utf-8")
    (gh / "bin" / "corpus").chmod(0o755)
    done = bash(script, gh, GITHUB_STEP_SUMMARY=str(gh / "summary"))

    assert (done.returncode == 0) is passes
    assert ("::notice::" in done.stdout) is (code == 4)
    assert (gh / "summary").read_text(encoding="utf-8") == "    drift\n"


def test_what_the_build_commits_does_not_start_it_again() -> None:
    path = GITHUB / "workflows" / "build.yml"
    trigger = workflow(path)["on"]["push"]
    script = (GITHUB / "propose.sh").read_text(encoding="utf-8")
    named = re.findall(r"^names=\((.+)\)$", script, re.MULTILINE)
    (uploaded,) = [step["with"]["path"] for step in steps(path) if "upload-artifact" in step.get("uses", "")]

    assert trigger == {"branches": ["main"], "paths": ["data/**", "orchtrace_corpus/**"]}
    assert [named[0].split(), uploaded.split()] == [GENERATED.split()] * 2
    assert all((ROOT / name).exists() for name in GENERATED.split())


def test_no_job_that_installs_holds_a_token_that_writes(path: Path) -> None:
    for job in workflow(path)["jobs"].values():
        installs = any(word in str(job["steps"]) for word in ("pip install", ".ci/", "'./'", "npm "))
        assert not installs or "write" not in job["permissions"].values()
        assert not installs or "token" not in str(job["steps"]).lower()


def test_third_party_packages_are_installed_by_hash_and_the_package_without_dependencies(path: Path) -> None:
    scripts = [step.get("run", "") for step in (*steps(path), *ACTION["runs"]["steps"])]
    if path.is_relative_to(TEMPLATES):
        assert "python -m pip install -r requirements.txt" in scripts
        return
    for line in re.findall(r"pip install (.+)", "\n".join(scripts)):
        assert "--require-hashes -r" in line or "--no-deps --no-build-isolation" in line


@pytest.mark.parametrize("name", ["core", "test"])
def test_the_locks_hold_what_the_package_asks_for_and_no_registry(name: str) -> None:
    text = (GITHUB / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = project["dependencies"] + project["optional-dependencies"]["test"] * (name == "test")
    locked = {canonical(found) for found in re.findall(r"^([\w.-]+)==\S+", text, re.MULTILINE)}

    assert {canonical(re.split(r"[\[<>=]", one)[0]) for one in asked} - {"orchtrace-corpus"} <= locked
    assert {"hatchling", "editables"} <= locked
    assert "://" not in text
    assert all("--hash=sha256:" in block for block in re.split(r"^(?=\w)", text, flags=re.MULTILINE)[1:])


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_what_the_audit_of_workflows_leaves_out_is_named_with_the_reason() -> None:
    text = (GITHUB / "zizmor.yml").read_text(encoding="utf-8")

    assert yaml.safe_load(text) == {
        "rules": {
            "dangerous-triggers": {"ignore": ["comment.yml"]},
            "self-repository": {"disable": True},
        }
    }
    assert "runs none of its code" in text


def test_what_is_released_was_made_once_and_tried_by_every_python() -> None:
    read = workflow(GITHUB / "workflows" / "release.yml")
    jobs = read["jobs"]
    makers = [
        name for name, job in jobs.items() if any(".ci/release build" in step.get("run", "") for step in job["steps"])
    ]
    uploads = [name for name, job in jobs.items() for step in job["steps"] if "upload-artifact" in step.get("uses", "")]

    assert read["on"] == {"push": {"tags": ["v*"]}}
    assert (makers, uploads) == (["make"], ["make", "make"])
    assert jobs["make"]["steps"][2]["run"].startswith('python3 scripts/release_notes.py "$GITHUB_REF_NAME" > ')
    assert jobs["try"]["strategy"]["matrix"] == {"python": ["3.11", "3.12", "3.13"]}
    assert (jobs["publish"]["needs"], jobs["announce"]["needs"]) == (["make", "try"], "publish")
    assert jobs["publish"]["environment"]["name"] == "pypi"
    assert [step["uses"].split("@")[0] for step in jobs["publish"]["steps"]] == [
        "actions/download-artifact",
        "actions/attest-build-provenance",
        "pypa/gh-action-pypi-publish",
    ]


def test_hooks_for_other_lists() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))

    assert [hook["id"] for hook in hooks] == [
        "corpus-check-data", "corpus-check-form", "corpus-check", "corpus-trace-validate"
    ]  # fmt: skip
    for hook in hooks:
        assert hook["entry"].removesuffix(" --fix") == hook["id"].replace("-", " ")
        assert hook["entry"].split()[1] in NAMES | COMING
        assert hook["language"] == "python"
    for hook in hooks[:3]:
        assert hook["pass_filenames"] is False
        assert re.search(hook["files"], "data/papers.yaml")
        assert not re.search(hook["files"], "tests/data/papers.yaml")
    assert "pass_filenames" not in hooks[3]
    assert re.search(hooks[3]["files"], "traces/run.jsonl")
    assert not re.search(hooks[3]["files"], "data/arxiv.json")


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
    assert re.findall(r"```sh\n(.*?)\n *```", way, re.DOTALL)[1].strip() == first_line


def test_the_way_to_a_pull_request_leads_to_a_green_check(tmp_path: Path) -> None:
    """Each command of the guide, in its order, in a clone, with a stand-in for arXiv."""
    fork = tmp_path / "fork"
    kept = shutil.ignore_patterns(
        ".git", ".venv", ".ci", ".*_cache", "__pycache__", "orchtrace_corpus", "tests", "papers.json"
    )
    shutil.copytree(ROOT, fork, ignore=kept)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(fork)]
    for words in (["init", "--quiet"], ["add", "--force", "."], ["commit", "--quiet", "--message", "Fork"]):
        subprocess.run([*git, *words], check=True)
    way, aside = (
        CONTRIBUTING.split(f"## {title}")[1].split("\n## ")[0] for title in ("Add a paper", "Exclude a paper")
    )
    _, install, *walk, push = re.findall(r"^ *```sh\n(.*?)\n *```", way, re.MULTILINE | re.DOTALL)
    walk.append("corpus diff HEAD")
    walk += re.findall(r"^```sh\n(.*?)\n```", aside, re.MULTILINE | re.DOTALL) + ["corpus build", "corpus check"]
    served = [record("2601.01234", title="Knowing When to Stop"), record("2602.04321", title="A Team of Prompts")]
    said = []
    with ArxivServer(served) as server:
        settings = {
            "ORCHTRACE_ARXIV_URL": server.url,
            "ORCHTRACE_ARXIV_SPACING": "0",
            "ORCHTRACE_CACHE": str(tmp_path / "cache"),
        }
        for command in walk:
            done = bash(command, fork, **settings)
            assert (command, done.returncode, done.stderr if done.returncode else "") == (command, 0, "")
            said.append(done.stdout)

    assert install.endswith("corpus stats")
    assert " && git add data && git commit " in push
    assert "build     stale" in said[1]
    assert said[2].startswith("papers: 1 added")
    assert "failed" not in said[-1]


def test_every_kind_of_change_is_in_the_guide() -> None:
    assert re.findall(r"^## (.+)$", CONTRIBUTING, re.MULTILINE) == [
        "Add a paper",
        "Choose the tags",
        "Give evidence",
        "Decide on a candidate",
        "Exclude a paper",
        "Correct a record",
        "Change the taxonomy",
        "Work on the code",
        "Release",
        "Commits",
    ]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="an unpacked sdist knows no git")
def test_the_sdist_holds_every_file_of_the_repository() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    by_itself = ["pyproject.toml", ".gitignore"]
    tracked = git(ROOT, "ls-files").splitlines()

    assert [
        name
        for name in tracked
        if not any(fnmatch(name, one) or name.startswith(f"{one}/") for one in (*included, *by_itself))
    ] == []
