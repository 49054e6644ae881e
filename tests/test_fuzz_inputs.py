"""Every input that the fuzzer kept is read, or refused with an error that says what is wrong."""

from pathlib import Path

import pytest
from fuzz import INPUTS, TARGETS, seeds

KEPT = sorted(path for path in INPUTS.rglob("*") if path.is_file())


@pytest.mark.parametrize("target", TARGETS)
def test_each_target_reads_what_it_begins_with(target: str) -> None:
    inputs = list(seeds(target))
    assert inputs
    for data in inputs:
        TARGETS[target](data)


@pytest.mark.parametrize("path", KEPT, ids=[str(path.relative_to(INPUTS)) for path in KEPT])
def test_no_kept_input_is_a_crash(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())


def test_each_target_has_kept_inputs() -> None:
    assert {path.parent.name for path in KEPT} == set(TARGETS)
