"""Small traces that are read without msgspec: the same values as those of the decoder, or none."""

import json
import random
from typing import Any

import pytest
from msgspec import UNSET, Struct

from orchtrace_corpus.trace.model.decode import Document, decode
from orchtrace_corpus.trace.model.plain import MAX_BYTES, read_plain
from orchtrace_corpus.trace.rules import problems
from orchtrace_corpus.trace.view import TraceView
from tests.effort import tries
from tests.trace.test_schema import SOURCES, flipped, mutated, with_a_name_twice, written
from tests.trace.traces import EXAMPLES


def values(given: Any) -> Any:
    """The attributes of a trace and of all its parts, as mappings."""
    if isinstance(given, Struct):
        return {name: values(getattr(given, name)) for name in given.__struct_fields__}
    if isinstance(given, list | tuple):
        return [values(item) for item in given]
    return None if given is UNSET else given


def plain_values(given: Any, like: Any) -> Any:
    """The same of a trace that was read plainly."""
    if isinstance(like, Struct):
        assert vars(given).keys() == set(like.__struct_fields__)
        return {name: plain_values(value, getattr(like, name)) for name, value in vars(given).items()}
    if isinstance(like, list | tuple):
        return [plain_values(item, one) for item, one in zip(given, like, strict=True)]
    return dict(given) if isinstance(like, dict) else given


def check_plain(data: bytes) -> bool:
    """Hold a trace that is read plainly against the decoded one, also in what the rules say; whether it is plain."""
    plain, trace = read_plain(data), decode(Document(data, "t.json")).trace
    if plain is None:
        return False
    assert trace is not None, data
    assert plain_values(plain, trace) == values(trace)
    assert problems(TraceView(plain)) == problems(TraceView(trace))
    return True


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_are_plain(path: Any) -> None:
    assert check_plain(path.read_bytes())


def test_what_is_read_plainly_is_what_the_decoder_reads() -> None:
    chance = random.Random(7)
    plain = 0
    for _ in range(tries(20_000, 2_000)):
        document = mutated(chance.choice(SOURCES), chance)
        if chance.random() < 0.1:
            document = with_a_name_twice(document, chance)
        data = written(document).encode("utf-8", "surrogatepass")
        plain += check_plain(flipped(data, chance) if chance.random() < 0.1 else data)
    assert plain > tries(1_000, 100)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"trace_id": "\\ud800"}',
        b"\xef\xbb\xbf{}",
        json.dumps({**SOURCES[0], "import_report": {}}).encode(),
        json.dumps({**SOURCES[0], "events": []}).encode(),
        json.dumps({**SOURCES[0], "system": "x" * MAX_BYTES}).encode(),
    ],
)
def test_nothing_is_decided_of_anything_else(data: bytes) -> None:
    assert read_plain(data) is None
