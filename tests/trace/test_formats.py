"""A table format is added in two places: a member of `Format`, and its entry in `table.RENDERERS`."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

TABULAR = (
    "measure data/traces/swarm.json",
    "measure data/traces",
    "measure data/traces/swarm.json --ledger model",
    "measure data/traces/swarm.json --profile",
    "label data/traces/swarm.json",
    "label data/traces/swarm.json --events",
    "credit data/traces/swarm.json",
    "diff data/traces/swarm.json data/traces/hierarchical.json",
)
"""Every tabular command of `corpus trace`."""

RUN = """
import sys
from orchtrace_corpus.cli.main import run
for command in sys.argv[1:]:
    code = run(["trace", *command.split(), "--format", "tsv"])
    print("code", code, flush=True)
"""


def test_a_table_format_that_is_added_reaches_every_tabular_command(tmp_path: Path) -> None:
    package = tmp_path / "orchtrace_corpus"
    shutil.copytree(ROOT / "orchtrace_corpus", package)  # with what is compiled already
    for name, before, after in (
        ("__init__.py", '    CSV = "csv"\n', '    CSV = "csv"\n    TSV = "tsv"\n'),
        (
            "table.py",
            "    Format.MARKDOWN: lambda",
            '    Format.TSV: lambda tables, _: "".join("\\t".join(table.columns) + "\\n" for table in tables),\n'
            "    Format.MARKDOWN: lambda",
        ),
    ):
        file = package / "base" / "text" / name
        text = file.read_text(encoding="utf-8")
        assert text.count(before) == 1
        file.write_text(text.replace(before, after), encoding="utf-8")
    (tmp_path / "run.py").write_text(RUN, encoding="utf-8")  # beside the changed package, which is imported then
    command = [sys.executable, "-B", str(tmp_path / "run.py"), *TABULAR]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    lines = result.stdout.splitlines()
    assert result.returncode == 0, result.stderr
    ends = [at for at, line in enumerate(lines) if line == "code 0"]
    assert len(ends) == len(TABULAR), result.stdout
    assert all("\t" in lines[at - 1] for at in ends)
    assert all("\t" in line for line in lines if line != "code 0")
