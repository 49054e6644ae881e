"""A form of tables is a member of `Format` and its renderer, and nothing else: every command that shows tables has it."""

import json
import subprocess
import sys
from functools import cache

import pytest

from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text.table import RENDERERS
from tests.conftest import ROOT, TOY, Result
from tests.effort import mostly_slow

ADDED = """
import json
import sys
from enum import StrEnum

from orchtrace_corpus.base import text

text.Format = StrEnum("Format", {**{form.name: form.value for form in text.Format}, "HTML": "html"})

from orchtrace_corpus.base.text import table

table.RENDERERS[text.Format.HTML] = lambda tables, schema: "".join(f"<table {one.name} {schema}>\\n" for one in tables)

import io
from contextlib import redirect_stderr, redirect_stdout
from orchtrace_corpus.cli.main import run

def outcome(words):
    said = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    with redirect_stdout(said[0]), redirect_stderr(said[1]):
        code = run(words)
    return [code, *(one.buffer.getvalue().decode() for one in said)]

print(json.dumps([outcome(words) for words in json.loads(sys.argv[1])]))
"""

COMMANDS = {
    "stats": "<table style stats>",
    "stats --full": "<table style stats>",
    "stats --by size": "<table size counts>",
    "stats --cross size style": "<table size_by_style counts>",
    "gaps size style": "<table ",
    "terms": "<table terms terms>",
    "terms size": "<table size terms>",
    "list": "<table papers list>",
    "list --exclusions": "<table exclusions list>",
    "show rose-garden": "<table records records>",
    "search garden": "<table papers search>",
    "claims": "<table ",
    "claims {claim}": "<table ",
    "scale": "<table ",
    (AUDIT := "audit compare {sheet} --resamples 20"): "<table agreement audit>",  # it loads statsmodels, so it is slow
}


def test_every_form_but_that_for_people_has_a_renderer() -> None:
    assert {*RENDERERS, Format.TABLE} == {*Format}


@cache
def shown(*commands: str) -> dict[str, Result]:
    """What each command ends with, in a process in which the form was added before anything was imported."""
    invocations = []
    for words in commands:
        is_toy = words.split()[0] not in ("claims", "scale", "audit")
        filled = words.format(claim="papers-total", sheet="data/audits/sub-decisions-1.csv")
        invocations.append([*(["--root", str(TOY)] if is_toy else []), *filled.split(), "--format", "html"])
    command = [sys.executable, "-c", ADDED, json.dumps(invocations)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return dict(zip(commands, (Result(*one) for one in json.loads(result.stdout)), strict=True))


@pytest.mark.parametrize("words", mostly_slow(COMMANDS, [words for words in COMMANDS if words != AUDIT]))
def test_a_form_that_is_added_reaches_every_command_with_tables(words: str) -> None:
    result = shown(*([AUDIT] if words == AUDIT else [other for other in COMMANDS if other != AUDIT]))[words]
    lines = result.stdout.splitlines()
    assert lines, result.stderr
    assert lines[0].startswith(COMMANDS[words])
    assert [line for line in lines if not line.startswith("<table ")] == []
