"""Change the code in seeded places, one at a time, and count the changes that no test notices.

    python scripts/mutants.py --seed 1 --count 200 orchtrace_corpus/trace

A mutant is one small change: a comparison turned, `and` for `or`, a member of a closed list or of an `except` taken
away, a number moved by one, a condition negated, True for False. It is tried with the tests that execute its line, in
a copy of the tree. A mutant is killed if one of them fails. Mutants that survive are printed as `file:line:column:
change`.

Mutmut and Cosmic Ray were tried first: the functions that mutmut puts in place of ours hide the signatures that our
commands are read from, and Cosmic Ray runs the same tests for every mutant, which takes a minute each here.
"""

import argparse
import ast
import copy
import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
NOT_COVERED = ("orchtrace_corpus/trace/dataset/spark.py",)
"""Modules whose tests need more than the extra `test`; `nox -s spark` runs those of Spark."""

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore")
TIMEOUT_SECONDS = 600
COMPARISONS: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


@dataclass(frozen=True)
class Mutant:
    """A change of one expression.

    Attributes:
        path: The file, relative to the root.
        node: The expression that is replaced; its place in the file is what counts.
        replacement: What it is replaced by, as source.
        line: The text of its first line, without indentation.
    """

    path: str
    node: ast.expr
    replacement: str
    line: str

    def apply(self, source: str) -> str:
        """Return the source with the change."""
        lines = source.encode().splitlines(keepends=True)
        assert self.node.end_lineno is not None
        assert self.node.end_col_offset is not None
        before = b"".join(lines[: self.node.lineno - 1]) + lines[self.node.lineno - 1][: self.node.col_offset]
        after = lines[self.node.end_lineno - 1][self.node.end_col_offset :] + b"".join(lines[self.node.end_lineno :])
        return (before + b"(" + self.replacement.encode() + b")" + after).decode()

    def rank(self, seed: int) -> bytes:
        """Return a pseudorandom rank that depends on the text, not on its place: a sample outlives edits elsewhere."""
        change = f"{seed} {self.path} {self.line} {ast.unparse(self.node)} {self.replacement}"
        return hashlib.sha256(change.encode()).digest()

    def __str__(self) -> str:
        place = f"{self.path}:{self.node.lineno}:{self.node.col_offset + 1}"
        return f"{place}: {ast.unparse(self.node)} -> {self.replacement}"


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield every mutant of a module; texts, and what changes nothing, are left alone."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    lines = text.splitlines()
    name = str(path.relative_to(ROOT))

    def mutant(node: ast.expr, replacement: str) -> Mutant:
        return Mutant(name, node, replacement, lines[node.lineno - 1].strip())

    skipped = {id(child) for expression in unchanging(tree) for child in ast.walk(expression)}
    for node in ast.walk(tree):
        if isinstance(node, ast.expr) and id(node) not in skipped:
            for replacement in replacements(node):
                yield mutant(node, ast.unparse(replacement))
        if isinstance(node, ast.ExceptHandler) and isinstance(node.type, ast.Tuple):
            for replacement in without_a_member(node.type):
                yield mutant(node.type, ast.unparse(replacement))
        if isinstance(node, ast.If | ast.While) and id(node.test) not in skipped:
            yield mutant(node.test, f"not ({ast.unparse(node.test)})")


def unchanging(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions without which a program does the same.

    These are annotations, conditions that only type checkers read, whether `zip` checks lengths that are always equal,
    and whether the garbage collector tracks a struct.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield node.test
        if isinstance(node, ast.keyword) and node.arg in ("strict", "gc"):
            yield node.value
        if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
            yield node.annotation
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            yield node.returns


def replacements(node: ast.expr) -> Iterator[ast.expr]:
    """Yield what an expression is replaced by."""
    changed = copy.deepcopy(node)
    if isinstance(changed, ast.Compare) and len(changed.ops) == 1 and type(changed.ops[0]) in COMPARISONS:
        changed.ops = [COMPARISONS[type(changed.ops[0])]()]
        yield changed
    elif isinstance(changed, ast.BoolOp):
        changed.op = ast.Or() if isinstance(changed.op, ast.And) else ast.And()
        yield changed
    elif isinstance(changed, ast.Constant) and isinstance(changed.value, bool):
        yield ast.Constant(not changed.value)
    elif isinstance(changed, ast.Constant) and type(changed.value) in (int, float):
        yield ast.Constant(changed.value + 1)  # type: ignore[operator]  # a number, as its type says
    elif isinstance(changed, ast.Set):
        yield from without_a_member(changed)
    elif isinstance(changed, ast.Compare) and isinstance(changed.comparators[-1], ast.Tuple):
        yield from without_a_member(changed.comparators[-1])


def without_a_member(listed: ast.Tuple | ast.Set) -> Iterator[ast.expr]:
    """Yield a closed list without each of its members in turn."""
    for index in range(len(listed.elts)):
        if len(listed.elts) > 1:
            shorter = copy.deepcopy(listed)
            del shorter.elts[index]
            yield shorter


def tests_by_line(tree: Path, tests: Sequence[str]) -> dict[tuple[str, int], list[str]]:
    """Return the tests that execute each line, after running all of them once.

    Raises:
        SystemExit: A test fails before anything is changed.
    """
    database = tree / ".coverage"
    configuration = tree / ".coveragerc"
    configuration.write_text("[run]\nsource = orchtrace_corpus\n")
    options = ("--cov", f"--cov-config={configuration}", "--cov-context=test", "--cov-report=", "-n", "auto")
    run = subprocess.run([*PYTEST, *options, *tests], cwd=tree, env=environment(database), check=False)
    if run.returncode != 0:
        raise SystemExit("tests fail before anything is changed")
    executed: dict[tuple[str, int], list[str]] = defaultdict(list)
    from coverage.numbits import numbits_to_nums

    with sqlite3.connect(database) as connection:
        rows = connection.execute(
            "select file.path, context.context, line_bits.numbits from line_bits"
            " join file on file.id = file_id join context on context.id = context_id"
        )
        for path, context, bits in rows:
            test = context.partition("|")[0]
            if test:
                for line in numbits_to_nums(bits):
                    executed[os.path.relpath(path, tree), line].append(test)
    return executed


def choices_of_tests(mutant: Mutant, executed: Mapping[tuple[str, int], Sequence[str]]) -> Iterator[list[str]]:
    """Yield the tests that execute the lines of a mutant, then those of its module and the files that import it.

    What runs when a module is imported belongs to no test, and what another process runs is not seen.
    """
    lines = range(mutant.node.lineno, (mutant.node.end_lineno or mutant.node.lineno) + 1)
    near = {test for line in lines for test in executed.get((mutant.path, line), ())}
    if near:
        yield sorted(near)
    further = {test for (path, _), tests in executed.items() if path == mutant.path for test in tests}
    test_files = {test.partition("::")[0] for tests in executed.values() for test in tests}
    further |= {file for file in test_files if imports(file, mutant.path)}
    if further - near:
        yield sorted(further - near)


@cache
def imports(test_file: str, path: str) -> bool:
    """Return True if the text of a test file imports the module at a path."""
    package, _, module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".").rpartition(".")
    text = (ROOT / test_file).read_text(encoding="utf-8")
    return f"from {package}.{module} import" in text or f"from {package} import {module}\n" in text


def environment(database: Path) -> dict[str, str]:
    """Return the environment in which a copy of the tree is imported instead of the installed package."""
    return {
        **os.environ,
        "PYTHONPATH": str(database.parent),
        "COVERAGE_FILE": str(database),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def is_killed(mutant: Mutant, tests: Sequence[str], tree: Path) -> bool:
    """Return True if a test fails with the change; the tree is as before afterwards."""
    path = tree / mutant.path
    source = path.read_text(encoding="utf-8")
    names = tree / "tests.txt"
    names.write_text("\n".join(tests) + "\n", encoding="utf-8")
    path.write_text(mutant.apply(source), encoding="utf-8")
    try:
        command = [*PYTEST, "-x", "-n0", f"@{names}"]
        run = subprocess.run(
            command,
            cwd=tree,
            env=environment(tree / ".coverage"),
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_text(source, encoding="utf-8")
    return run.returncode != 0


def copy_tree(folder: str) -> Path:
    """Copy the files of the working tree that git tracks."""
    tree = Path(folder, "tree")
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, names.decode().split("\0")):
        target = tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target, follow_symlinks=False)
    return tree


def main() -> int:
    """Try the mutants, print those that survive, and compare their share with the limit."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", default="orchtrace_corpus/trace", help="where to change the code")
    parser.add_argument("--tests", nargs="+", default=["tests/trace", "tests/cli"], help="the tests to choose from")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the sample")
    parser.add_argument("--count", type=int, default=200, help="how many mutants to try")
    parser.add_argument("--least", type=float, default=0.95, help="the least share that must be killed")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="how many copies of the tree to use")
    options = parser.parse_args()
    modules = [
        path
        for path in sorted((ROOT / options.folder).rglob("*.py"))
        if path.relative_to(ROOT).as_posix() not in NOT_COVERED
    ]
    everything = [mutant for path in modules for mutant in mutants_of(path)]
    sample = sorted(everything, key=lambda mutant: mutant.rank(options.seed))[: options.count]
    with tempfile.TemporaryDirectory() as folder:
        tree = copy_tree(folder)
        executed = tests_by_line(tree, options.tests)
        trees = [Path(folder, f"copy{index}") for index in range(options.workers)]
        for worker_tree in trees:
            shutil.copytree(tree, worker_tree, symlinks=True)
        free = list(trees)

        def attempt(mutant: Mutant) -> bool:
            worker_tree = free.pop()
            try:
                return any(is_killed(mutant, tests, worker_tree) for tests in choices_of_tests(mutant, executed))
            finally:
                free.append(worker_tree)

        with ThreadPoolExecutor(options.workers) as pool:
            killed = 0
            for mutant, was_killed in zip(sample, pool.map(attempt, sample), strict=True):
                if was_killed:
                    killed += 1
                else:
                    print(mutant, flush=True)
    share = killed / len(sample)
    print(
        f"{killed} of {len(sample)} mutants killed ({share:.1%}), of {len(everything):,} possible; seed {options.seed}"
    )
    return 0 if share >= options.least else 1


if __name__ == "__main__":
    sys.exit(main())
