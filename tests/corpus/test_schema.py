"""The JSON Schemas: valid themselves, true of the data, and of one mind with the decoder on broken records."""

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from orchtrace_corpus.corpus.api import validate
from orchtrace_corpus.corpus.model.store import data_file
from orchtrace_corpus.corpus.render import schema
from tests.conftest import ROOT, TOY
from tests.effort import tries

REAL = {
    name: json.loads((ROOT / "docs" / "schema" / f"{name}.schema.json").read_text(encoding="utf-8"))
    for name in ("papers", "exclusions")
}


def as_editors_read(path: Path) -> Any:
    """The file as a YAML language server sees it: YAML's core types, dates as text."""
    loader = type("Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
    loader.yaml_implicit_resolvers = {
        first: [(tag, form) for tag, form in resolvers if "timestamp" not in tag]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return yaml.load(path.read_text(encoding="utf-8"), loader)


@pytest.mark.parametrize("name", ["papers", "exclusions"])
def test_the_schema_is_valid_and_the_data_passes(name: str) -> None:
    Draft202012Validator.check_schema(REAL[name])

    errors = list(Draft202012Validator(REAL[name]).iter_errors(as_editors_read(ROOT / "data" / f"{name}.yaml")))

    assert errors == []


def mutate(record: dict[str, Any], chance: random.Random) -> str:
    """Break or change one thing in a record, and say what."""
    field = chance.choice(list(record))
    action = chance.randrange(7)
    if action == 0:
        del record[field]
    elif action == 1:
        record[field + "x"] = record[field]
    elif action == 2:
        record[field] = []
    elif action == 3:
        record[field] = {}
    elif action == 4:
        record[field] = "none-such-value"
    elif action == 5:
        record[field] = ["one", "one"]
    else:
        record[field] = "NA"
    return f"{action} {field}"


def test_schema_and_decoder_agree_on_broken_records(tmp_path: Path, toy: Any) -> None:
    # Held to one record at a time: rules between records are none of the schema's business, nor are
    # the forms of identifiers and the position of `others`, which it leaves to the decoder.
    wanted = json.loads(schema.data_schemas([data_file("papers")], toy.taxonomy)[0])
    check = Draft202012Validator(wanted)
    papers = as_editors_read(TOY / "data" / "papers.yaml")
    (tmp_path / "data").mkdir()
    for name in ("taxonomy.yaml", "exclusions.yaml"):
        (tmp_path / "data" / name).write_bytes((TOY / "data" / name).read_bytes())
    chance = random.Random(1)
    only_decoder = {"arxiv_id", "doi", "openreview_id", "acl_id"}
    disagreements = []
    for _ in range(tries(1500, 100)):
        record = copy.deepcopy(chance.choice(papers))
        what = mutate(record, chance)
        (tmp_path / "data" / "papers.yaml").write_text(json.dumps([record], ensure_ascii=False), encoding="utf-8")
        by_schema = not check.is_valid([record])
        codes = {finding.code for finding in validate(str(tmp_path)) if finding.severity == "error"}
        by_decoder = any(code[0] in "FVY" for code in codes)
        if by_schema != by_decoder and not (by_decoder and what.split()[1] in only_decoder):
            disagreements.append((what, by_schema, sorted(codes)))
    assert disagreements == []
