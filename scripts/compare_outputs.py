"""Compare the outputs and the written files of two installations of `corpus`, for the same data.

    python scripts/compare_outputs.py BEFORE AFTER --root DIR

BEFORE and AFTER are two `corpus` programs, such as `old/.venv/bin/corpus`. Each runs the commands below in copies of
the corpus that are git repositories: one without changes, one with edits that are not committed, and two with mistakes.
The exit code, standard output, standard error and every written file are compared. Differences are shown as unified
diffs, and then the exit code is 1.
"""

import argparse
import difflib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]

COMPARED = ("data", "docs", "README.md", "CONTRIBUTING.md", ".github", ".gitattributes")
"""The files and folders of a corpus that are copied."""

MAX_DIFF_LINES = 60
"""The number of lines of each difference that are shown."""

SOUND = """
check
check --stale notice
check data
check data --strict
check data --select D --ignore D101
check data --format json
check data --format github
check data --format sarif
check form
check form --fix
build --check
build
build readme figures schema --check
build readme --check
figures --check
figures papers-by-year
build schema --check
build schema
stats
stats --full
stats --format json
stats reward_family
stats reward_family --format csv
stats topology year
stats stage
stats stop --reading sources
stats --by rl --by tier
stats --where rl=full --where year>=2025 --format markdown
stats --evidence
stats --evidence --list contradicted
stats --screening
stats --screening --format json
build stats --check
gaps
gaps --with candidates
gaps topology credit_unit --format json
gaps stop reward_family --where rl=full --reading sources
gaps --format csv
list
list --columns all --format csv
list --where stop=explicit,implicit --columns key,stop,title --format markdown
list --where contested=stop --columns key,stop,contested
list --where credit_unit=team --reading sources
list --format json
list --exclusions
list --exclusions --format csv --columns all
show puppeteer
show puppeteer --format json
show puppeteer --format csv
show E007
show magrpo E012 --format markdown
show nothing-of-that-name
search stopping
search "reward shaping" GRPO
search tree search --where scenario=coding --format json
terms
terms credit_unit
terms stop
terms --format csv
claims
claims stop-no-objective
claims --stress
claims --stress --format json
claims --reading sources
claims --pool published --pool candidates
claims --format csv
scale
scale --format markdown
scale --format json
candidates
candidates --where proposal=unclear --columns key,reason
candidates --order date --where proposal=unread --format json
audit sample --n 8 --stratify category
audit compare data/audits/sub-decisions-1.csv
export bibtex
export bibtex --profile biblatex
export bibtex --profile tagged
export csv
export csv --profile published --where published=yes
export csv --profile published --exclusions
export json
export jsonl
export ris
export csl
export parquet -o papers.parquet
site -o site --base-url https://owner.example/corpus
diff HEAD
rule D101
tag puppeteer topology=centralized
tag puppeteer stop=explicit spawn=designed --dry-run
tag puppeteer notes=Changed.
tag E007 reason=Another.
remove puppeteer --yes
remove E012 --yes
demote puppeteer --source arXiv --query-family orchestration --stage full_text_screen --reason Gone. --yes
dispute puppeteer topology=hierarchical --why "Another reading." --source https://owner.example/
exclude adversarial-reinforcement-learning --no-fetch --reason Out. --source arXiv --stage full_text_screen --yes
add made-up.bib --to candidates --dry-run
add made-up.bib --to candidates
import made-up.bib
fetch --offline
discover --dry-run --offline --since 2026-05-01
screen
merge-file data/papers.yaml data/papers.yaml data/papers.yaml
trace validate data/traces
trace doctor data/traces
"""

EDITED = """
check
diff HEAD
diff HEAD --format markdown
diff HEAD --format json
diff HEAD...HEAD --exit-code
check data
claims
check form
build
build --check
merge-file base/papers.yaml data/papers.yaml theirs/papers.yaml
merge-file base/exclusions.yaml data/exclusions.yaml theirs/exclusions.yaml
merge-file base/candidates.yaml data/candidates.yaml theirs/candidates.yaml
merge-file base/disputes.yaml data/disputes.yaml theirs/disputes.yaml
merge-file base/searches.yaml data/searches.yaml theirs/searches.yaml
"""

BROKEN = """
check
check data
check data --format json
check data --fix
stats
list
claims
scale
candidates
check form
build --check
build readme --check
site -o site
diff HEAD
tag magrpo notes=Changed.
show magrpo
"""

BESIDE = """
check
check data
claims
scale
candidates
list --where contested=stop
list --reading sources
stats --screening
build --check
build schema --check
site -o site
diff HEAD
diff HEAD --format json
tag magrpo notes=Changed.
terms credit_unit
"""

API = """
oc.load().to_pandas().to_csv()
oc.load(reading="sources").cross("reward_family", "credit_unit")
oc.load().where("credit_unit=message").claims()
[(verdict.claim.id, verdict.holds, verdict.rows) for verdict in oc.claims()]
oc.load().gaps()._repr_html_()
[(record.name, record.tags, sorted(record.open_tags)) for record in corpus.candidates()]
[(str(part.name), part.exit_code, part.total, part.findings) for part in corpus.check().parts]
corpus.diff("HEAD", ".").added
[str(finding) for finding in oc.validate()]
"""

INVOCATIONS = {"sound": SOUND, "edited": EDITED, "broken": BROKEN, "beside": BESIDE, "api": API}
"""The commands by the state of the copy.

In `beside`, there are mistakes in other files than papers and exclusions; in `broken`, in all files. The commands of
`api` are expressions of Python.
"""

BIBLIOGRAPHY = """\
@article{somebody2026made,
  author = {Body, Some and Other, Any},
  title = {A Made-Up {Title} of Teams},
  journal = {Journal of Nothing},
  year = 2026, volume = 4, number = 2, pages = {10--20},
  keywords = {teams, reward}
}
"""

CHANGES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "edited": (
        ("data/papers.yaml", r"(?m)^  title: .+\n", "  title: Another Title\n"),
        ("data/papers.yaml", r"(?m)^- key: .+\n(?:  .+\n|\n)+(?=- key: c)", ""),
        ("data/exclusions.yaml", r"(?m)^  reason: .+\n", "  reason: Another reason.\n"),
        ("data/disputes.yaml", r"(?m)^  why: .+\n", "  why: Another reason.\n"),
        ("data/candidates.yaml", r"(?m)^  title: .+\n", "  title: Another Title\n"),
        ("data/scale.yaml", r"(?m)^  note: .+\n", "  note: Another note.\n"),
    ),
    "theirs": (
        ("data/papers.yaml", r"(?m)^  title: .+\n", "  title: A Third Title\n"),
        ("data/papers.yaml", r"(?m)^  summary: .+\n", "  summary: A third summary.\n"),
        ("data/exclusions.yaml", r"(?m)^  title: .+\n", "  title: A Third Title\n"),
        ("data/disputes.yaml", r"(?m)^  source: .+\n", "  source: A third source.\n"),
        ("data/candidates.yaml", r"(?m)^  reason: .+\n", "  reason: A third reason.\n"),
    ),
    "beside": (
        ("data/claims.yaml", r"(?m)^  boundary: .+\n", "  boundry: A boundary.\n"),
        ("data/disputes.yaml", r"(?m)^  stands: .+\n", "  stands: nothing\n"),
        ("data/scale.yaml", r"(?m)^  unit: .+\n", "  unit: [agents]\n"),
        ("data/candidates.yaml", r"(?m)^  proposal: .+\n", "  proposal: maybe\n"),
        ("data/codebook.yaml", r"(?m)^- tag: .+\n", "- tag: nothing\n"),
        ("data/protocol.yaml", r"(?m)^day: .+\n", "day: yesterday\n"),
        ("data/searches.yaml", r"(?m)^  by: .+\n", "  by: nobody\n"),
        ("data/published.yaml", r"(?m)^papers:\n", "papers:\n  - nothing-of-that-name\n"),
    ),
    "broken": (
        ("data/papers.yaml", r"(?m)^  topology: .+\n", "  topology: heirarchical\n"),
        ("data/papers.yaml", r"(?m)^  urls: .+\n", "  urls: [http://example.org/a b]\n"),
        ("data/exclusions.yaml", r"(?m)^  screened: .+\n", "  screened: yesterday\n"),
    ),
}
CHANGES["broken"] += CHANGES["beside"]
"""The changes to each copy: a file, a pattern whose first match is replaced, and the replacement."""


def main() -> int:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="a `corpus` program")
    parser.add_argument("after", type=Path, help="another one")
    parser.add_argument("--root", type=Path, default=SOURCE, help="the folder of the corpus")
    parser.add_argument("--only", default="", metavar="WORDS", help="run the invocations that contain these words")
    arguments = parser.parse_args()
    programs = {"before": arguments.before.absolute(), "after": arguments.after.absolute()}
    difference_count = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(len(programs)) as pool:
        for name in programs:
            prepare(arguments.root, Path(folder, name))
        invocations = []
        for state, lines in INVOCATIONS.items():
            invocations += [(state, line) for line in lines.strip().splitlines() if arguments.only in line]
        for state, line in invocations:
            tasks = [
                pool.submit(result, program, Path(folder, name), state, line) for name, program in programs.items()
            ]
            before, after = (task.result() for task in tasks)
            difference = list(difflib.unified_diff(before, after, "before", "after", lineterm="", n=1))
            if difference:
                difference_count += 1
                print(f"== {state}: {line}", *difference[:MAX_DIFF_LINES], sep="\n")
                if len(difference) > MAX_DIFF_LINES:
                    print(f"... {len(difference) - MAX_DIFF_LINES} more lines")
    print(f"{len(invocations) - difference_count} of {len(invocations)} invocations give the same")
    return 1 if difference_count else 0


def prepare(root: Path, folder: Path) -> None:
    """Make a copy of a corpus for each state, in a folder."""
    for state in INVOCATIONS:
        copy = folder / state
        copy.mkdir(parents=True)
        for name in COMPARED:
            if (root / name).is_dir():
                shutil.copytree(root / name, copy / name)
            elif (root / name).exists():
                shutil.copy(root / name, copy / name)
        (copy / "made-up.bib").write_text(BIBLIOGRAPHY, encoding="utf-8")
        git(copy, "init", "--quiet")
        if state == "edited":
            shutil.copytree(copy / "data", copy / "base", ignore=shutil.ignore_patterns("traces", "audits", "rewards"))
            change(copy, "theirs")
            shutil.copytree(
                copy / "data", copy / "theirs", ignore=shutil.ignore_patterns("traces", "audits", "rewards")
            )
            for path in (copy / "base").iterdir():
                shutil.copy(path, copy / "data" / path.name)
        git(copy, "add", "--all")
        git(copy, "commit", "--quiet", "--message", "base")
        if state in CHANGES:
            change(copy, state)


def change(copy: Path, state: str) -> None:
    """Make the changes of a state to a copy; a missing file is left out."""
    for name, pattern, text in CHANGES[state]:
        path = copy / name
        if path.exists():
            changed, count = re.subn(pattern, text, path.read_text(encoding="utf-8"), count=1)
            if not count:
                sys.exit(f"{name} has no line for {pattern}")
            path.write_text(changed, encoding="utf-8")


def result(program: Path, folder: Path, state: str, line: str) -> list[str]:
    """Return the exit code, the output and the changed files of a command, as lines. Then the copy is restored."""
    copy = folder / state
    saved = {path: (copy / path).read_bytes() for path in files(copy)}
    if state == "api":
        imports = "import orchtrace_corpus as oc; from orchtrace_corpus import corpus"
        command = [str(program.parent / "python"), "-c", f"{imports}; print({line})"]
    else:
        command = [str(program), *shlex.split(line)]
    home = folder / "home"
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "COLUMNS": "100",
        "SOURCE_DATE_EPOCH": "1790000000",
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run(
        command, cwd=copy, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    lines = [f"exit code {done.returncode}"]
    lines += (f"stdout: {text}" for text in comparable_lines(done.stdout, program, folder))
    lines += (f"stderr: {text}" for text in comparable_lines(done.stderr, program, folder))
    lines += changes(copy, saved)
    for path in files(copy):
        if path not in saved:
            (copy / path).unlink()
    for path, data in saved.items():
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_bytes(data)
    return lines


def changes(copy: Path, saved: Mapping[str, bytes]) -> list[str]:
    """Return the files that an invocation wrote or removed, as lines."""
    lines = []
    present = {path: (copy / path).read_bytes() for path in files(copy)}
    for path in sorted({*saved, *present}):
        if path not in present:
            lines.append(f"removed {path}")
        elif present[path] != saved.get(path):
            lines.append(f"wrote {path}")
            lines += (f"{path}: {text}" for text in present[path].decode("utf-8", "backslashreplace").splitlines())
    return lines


def comparable_lines(data: bytes, program: Path, folder: Path) -> list[str]:
    """Return output as lines, with the same names for the folders of both installations."""
    text = data.decode("utf-8", "backslashreplace")
    return text.replace(str(folder), "FOLDER").replace(str(program.parents[2]), "INSTALLATION").splitlines()


def files(copy: Path) -> list[str]:
    """Return the paths of the files in a copy, without those of git."""
    paths = (path.relative_to(copy) for path in copy.rglob("*") if path.is_file())
    return sorted(str(path) for path in paths if path.parts[0] != ".git")


def git(folder: Path, *words: str) -> None:
    """Run git in a folder."""
    identity = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false")
    environment = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "PATH": os.environ["PATH"]}
    dates = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "2026-05-04T00:00:00Z")
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, env=environment | dates)


if __name__ == "__main__":
    sys.exit(main())
