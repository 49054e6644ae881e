"""No mutation of the data files ends in anything but exit code 0, 1 or 3, and every finding has a place.

`pytest -m slow` runs for a minute; `FUZZ_INPUTS=100000 pytest -m slow tests/cli/test_fuzz.py` runs that many.
"""

import os
import random
import time
from pathlib import Path

import pytest

from orchtrace_corpus.corpus.model.store import CorpusFiles
from orchtrace_corpus.corpus.rules import check
from tests.conftest import ROOT, run_corpus

NAMES = ("papers.yaml", "exclusions.yaml", "taxonomy.yaml")
FRAGMENTS = [
    *(b"\x00", b"\xff", b"\xc2\x85", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"\r", b"\t", b"\n\n", b"'", b'"', b"\\"),
    *(
        b"- ",
        b"---\n",
        b"...\n",
        b"&a ",
        b"*a ",
        b"!!int ",
        b"<<: ",
        b"? ",
        b": ",
        b"{",
        b"}",
        b"[",
        b"]",
        b"|\n",
        b">\n",
    ),
    *(
        b"# ",
        b"%YAML 1.1\n",
        b"NA",
        b"others",
        b"null",
        b"~",
        b"2026-13-41",
        b"1e999",
        b"\xf0\x9d\x92\x9c",
        b"key: x\n",
    ),
]


def excerpt(data: bytes, chance: random.Random) -> bytes:
    """A few whole records of a file, so that one input takes milliseconds."""
    blocks = data.split(b"\n\n")
    if len(blocks) < 8:
        return data
    start = chance.randrange(1, len(blocks) - 2)
    return b"\n\n".join(blocks[start : start + 2]) + b"\n"


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The bytes with one to four cuts, repeats, flips or insertions."""
    result = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(result) + 1)
        length = chance.choice((1, 1, 1, 4, 40))
        action = chance.randrange(5)
        if action == 0:
            del result[at : at + length]
        elif action == 1:
            result[at:at] = chance.choice(FRAGMENTS)
        elif action == 2:
            result[at:at] = result[at : at + length]
        elif action == 3 and at < len(result):
            result[at] = chance.randrange(256)
        else:
            other = chance.randrange(len(result) + 1)
            result[at : at + length] = result[other : other + length]
    return bytes(result)


@pytest.mark.slow
def test_mutated_data_never_ends_in_a_traceback(tmp_path: Path) -> None:
    inputs, deadline = int(os.environ.get("FUZZ_INPUTS", "0")), time.monotonic() + 60
    chance = random.Random(os.environ.get("FUZZ_SEED", "1"))
    sources = {name: (ROOT / "data" / name).read_bytes() for name in NAMES}
    # The real taxonomy takes most of an input's time to decode; mutate it now and then only.
    (tmp_path / "data").mkdir()
    for name, data in sources.items():
        (tmp_path / "data" / name).write_bytes(data)
    (tmp_path / "data" / "papers.yaml").write_bytes(excerpt(sources["papers.yaml"], chance))
    codes: dict[int, int] = {}
    done = 0
    while done < inputs if inputs else time.monotonic() < deadline:
        name = chance.choices(NAMES, (8, 4, 1))[0]
        whole = excerpt(sources[name], chance) if name != "taxonomy.yaml" else sources[name]
        target = tmp_path / "data" / name
        target.write_bytes(mutated(whole, chance))
        result = run_corpus("--root", str(tmp_path), "check", "data")
        assert result.code in (0, 1, 3), (result, target.read_bytes())
        loaded = CorpusFiles(str(tmp_path)).loaded
        for finding in check(loaded):
            text = (tmp_path / "data" / Path(finding.location.path).name).read_bytes().decode("utf-8", "replace")
            lines = text.split("\n")
            assert 1 <= finding.location.line <= len(lines) + 1
            assert finding.location.column >= 1
        codes[result.code] = codes.get(result.code, 0) + 1
        target.write_bytes(whole)
        done += 1
    print(f"{done} inputs, exit codes {dict(sorted(codes.items()))}")  # noqa: T201
    assert set(codes) == {0, 1, 3}
