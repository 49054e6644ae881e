"""Measure the speed claims of this project, all in one run, each as a ratio.

    python scripts/bench.py > docs/performance.md
    python scripts/bench.py --records 10000     # without the largest corpus
    python scripts/bench.py --peers env         # traces against other programs, installed there by
                                                # env/bin/pip install check-jsonschema networkx rustworkx

Every measurement is a fresh process of this interpreter. Start-up is compared with the bare
interpreter, validation with `yaml.CSafeLoader` merely loading the same file. A claim that does not
hold is shown as missed; the exit code is 0 all the same, since a busy machine is no defect.
"""

import argparse
import compileall
import os
import platform
import re
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median

import synthesize
from bench_dataset import dataset_claims, spark_claims
from bench_importers import import_claims
from bench_pages import page_claims
from bench_run_page import run_page_claims
from bench_traces import trace_claims
from measured import Claim, run

ROOT = Path(__file__).resolve().parents[1]
CORPUS = (str(Path(sys.executable).parent / "corpus"),)
LOADER = "import sys, yaml; yaml.load(open(sys.argv[1], encoding='utf-8'), Loader=yaml.CSafeLoader)"

START_UP_LIMITS = {
    "--help": 6.0,
    "stats": 8.0,
    "stats reward_family": 8.0,
    "gaps": 8.0,
    "list": 8.0,
    "show puppeteer": 9.0,
    "check data": 10.0,
    "check data --strict": 10.0,
    "claims": 11.0,
    "build readme --check": 11.0,
    "check": 16.0,
}
COMPLETION_LIMIT = 12.0
COMPLETED = ("s", "stats rew", "show pup", "list --where stop=e", "tag pup", "add pup")
"""Command lines that are completed."""

TRICKS = """\
## Tricks

Some code is less plain than it could be, since a user would feel the plain form. The instructions that each saves in a
`corpus check` of this repository, of 1,085 million with all of them, were counted by Valgrind with and without it:

| trick | saves | where |
| --- | ---: | --- |
| YAML in canonical form is read line by line, not by PyYAML's parser | 726 M | `base/yamlfile/lines.py` |
| a command with correct words is parsed without Typer | 533 M | `base/commands/plain.py` |
| small traces are read without msgspec; what is not plain, the decoder reads | 87 M | `trace/model/plain.py` |
| named tuples compile their constructor on first use, one for each number of fields | 87 M | `base/named_tuples.py` |
| the process ends by `os._exit`, without taking the interpreter apart | 46 M | `__main__.py` |
| the garbage collector is off: records form no cycles | 31 M | `__main__.py` |
| the corpus that a session has read stays until then | 15 M | `corpus/cli/session.py` |
| annotations take their names without `typing` | 13 M | `base/annotations.py` |
"""
"""The section after the measurements: code that is there for speed alone. To be measured again if it changes."""

CHECK_TO_VALIDATE_LIMIT = 2.0
BUILD_TO_VALIDATE_LIMIT = 3.0
SITE_TO_VALIDATE_LIMIT = 3.0
LOADER_LIMIT = 1 / 3
GROWTH_LIMIT = 1.3


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, nargs="+", default=[10_000, 100_000], help="sizes of made-up corpora")
    parser.add_argument("--rounds", type=int, default=21, help="fresh processes for each start-up measurement")
    parser.add_argument("--events", type=int, nargs=2, default=[100_000, 1_000_000], help="sizes of made-up traces")
    parser.add_argument("--traces", type=int, default=100_000, help="how many small traces")
    parser.add_argument("--logs", type=int, default=100, help="size of the made-up logs of each format, in MB")
    parser.add_argument("--peers", type=Path, default=Path(sys.prefix), help="where the other programs are installed")
    parser.add_argument("--without-pages", action="store_true", help="leave out what is measured in Chromium")
    arguments = parser.parse_args()
    arguments.peers = arguments.peers.absolute()
    os.chdir(ROOT)
    # Installers compile what they install, but not an editable source tree.
    compileall.compile_dir(str(ROOT / "orchtrace_corpus"), quiet=1)
    claims = [*start_up_claims(arguments.rounds), *validation_claims(arguments.records)]
    middle, large = arguments.events
    claims += trace_claims((middle, large), arguments.traces, arguments.rounds, arguments.peers)
    claims += dataset_claims(large)
    claims += spark_claims(large)
    claims += import_claims(arguments.logs)
    if not arguments.without_pages:
        claims += page_claims(min(arguments.records), CORPUS)
        claims += run_page_claims()
    print(report(claims))


def start_up_claims(rounds: int) -> list[Claim]:
    """Return the claims about commands on the real corpus, compared in turns with the bare interpreter's start."""
    invocations = {f"corpus {words}": ((*CORPUS, *words.split()), limit) for words, limit in START_UP_LIMITS.items()}
    limits = {name: limit for name, (_, limit) in invocations.items()}
    limits |= {f"corpus {line}[TAB]": COMPLETION_LIMIT for line in COMPLETED}
    bare: list[float] = []
    times: dict[str, list[float]] = {name: [] for name in limits}
    for _ in range(rounds):
        bare.append(run((sys.executable, "-c", "pass")).seconds)
        for name, (command, _) in invocations.items():
            times[name].append(run(command).seconds)
        for line in COMPLETED:
            words = re.findall("=|[^ =]+", line)
            variables = {"COMP_WORDS": "\n".join(("corpus", *words)), "COMP_CWORD": str(len(words))}
            completion = run(CORPUS, _CORPUS_COMPLETE="complete_bash", **variables)
            times[f"corpus {line}[TAB]"].append(completion.seconds)
    bare_seconds = median(bare)
    claims = []
    for name, all_seconds in times.items():
        seconds = median(all_seconds)
        detail = f"{1000 * seconds:.0f} ms against {1000 * bare_seconds:.1f} ms, median of {rounds}"
        claims.append(Claim(f"`{name}` against the bare interpreter", seconds / bare_seconds, limits[name], detail))
    return claims


def validation_claims(sizes: Sequence[int]) -> list[Claim]:
    """Return the claims about the validation of made-up corpora: compared with a bare load, and how the cost grows.

    The growth is measured in processor time: a run on a large corpus takes long, and other programs may run meanwhile.
    """
    claims: list[Claim] = []
    smallest = min(run((*CORPUS, "--root", str(ROOT), "check", "data")).cpu_seconds for _ in range(5))
    per_record: list[tuple[int, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            root = Path(folder) / str(size)
            synthesize.synthesize(root, size)
            if size == min(sizes):
                claims += whole_corpus_claims(root, size)
            validations = []
            loads = []
            for _ in range(3 if size <= 20_000 else 1):
                validations.append(run((*CORPUS, "--root", str(root), "check", "data")))
                loads.append(run((sys.executable, "-c", LOADER, str(root / "data" / "papers.yaml"))))
            validation = min(validations)
            load = min(loads)
            cpu_seconds = min(each.cpu_seconds for each in validations)
            per_record.append((size, (cpu_seconds - smallest) / size))
            claims.append(
                Claim(
                    f"`corpus check data`, {size:,} records, against `CSafeLoader` loading them",
                    validation.seconds / load.seconds,
                    LOADER_LIMIT,
                    f"{validation.seconds:.2f} s and {validation.peak_mib:.0f} MiB against "
                    f"{load.seconds:.2f} s and {load.peak_mib:.0f} MiB",
                )
            )
    if len(per_record) > 1:
        (small, small_cost), (large, large_cost) = per_record[0], per_record[-1]
        claims.append(
            Claim(
                f"cost of a record at {large:,} records against {small:,}, start-up left out, time of the processor",
                large_cost / small_cost,
                GROWTH_LIMIT,
                f"{1e6 * large_cost:.0f} µs against {1e6 * small_cost:.0f} µs",
            )
        )
    return claims


def whole_corpus_claims(root: Path, size: int) -> list[Claim]:
    """Return the claims about the whole check, the build and the site of a large corpus, compared with validation."""
    (root / "README.md").write_text(
        "# List\n\n<!-- corpus:begin list -->\n<!-- corpus:end list -->\n", encoding="utf-8"
    )
    base = (*CORPUS, "--root", str(root))
    run((*base, "check", "form", "--fix"))
    validate = min(run((*base, "check", "data")).seconds for _ in range(3))
    build = run((*base, "build")).seconds
    check = min(run((*base, "check")).seconds for _ in range(3))
    site = min(run((*base, "site", "-o", str(root / f"site-{index}"))).seconds for index in range(3))
    return [
        Claim(
            f"`corpus check`, {size:,} records, against `corpus check data`",
            check / validate,
            CHECK_TO_VALIDATE_LIMIT,
            f"{check:.2f} s against {validate:.2f} s",
        ),
        Claim(
            f"`corpus build`, {size:,} records, against `corpus check data`",
            build / validate,
            BUILD_TO_VALIDATE_LIMIT,
            f"{build:.2f} s against {validate:.2f} s",
        ),
        Claim(
            f"`corpus site`, {size:,} records, a page for each, against `corpus check data`",
            site / validate,
            SITE_TO_VALIDATE_LIMIT,
            f"{site:.2f} s against {validate:.2f} s",
        ),
    ]


def report(claims: Sequence[Claim]) -> str:
    """Return the claims as a Markdown document."""
    machine = (
        f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}"
    )
    libraries = ", ".join(f"{name} {version(name)}" for name in ("typer", "pyyaml", "msgspec"))
    rows = []
    for claim in claims:
        verdict = "holds" if claim.measured <= claim.limit else "**missed**"
        rows.append(f"| {claim.what} | {claim.measured:.2f} | {claim.limit:.2f} | {verdict} | {claim.detail} |")
    return "\n".join(
        (
            "# Performance",
            "",
            "Measured by `python scripts/bench.py > docs/performance.md`, every line in the same run, each",
            f"measurement a fresh process. {machine}; {libraries}.",
            "The ratios carry over to other machines, the times do not.",
            "",
            "| claim | ratio | at most | | measured |",
            "| --- | ---: | ---: | --- | --- |",
            *rows,
            "",
            TRICKS.rstrip("\n"),
        )
    )


if __name__ == "__main__":
    main()
