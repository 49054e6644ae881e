"""`corpus check data`: which findings it shows, in which form, and how it ends."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus import __version__
from orchtrace_corpus.base.findings import RULES, Finding, Location, explanation
from orchtrace_corpus.base.text import findings as render
from orchtrace_corpus.base.text.findings import sarif
from tests.conftest import ROOT, TOY, run_corpus, run_toy

SCHEMA = json.loads((ROOT / "docs" / "schema" / "findings.schema.json").read_text(encoding="utf-8"))

TEXT = """\
data/papers.yaml:11:10: V102 unknown style 'frmal' (did you mean 'formal'? allowed: formal, cottage, meadow, gravel, \
NA) [rose-garden]
data/papers.yaml:30:9: F104 'urls' is an empty list; name at least one [long-grass]
data/papers.yaml:48:12: M106 warning: 'summary' does not end with a period; add one [mixed-borders]
data/exclusions.yaml:9:7: D102 exclusion id 'E001' is used twice (first on line 1); give the record the next free id \
[E001]
"""

GITHUB = """\
::error file=data/papers.yaml,line=11,col=10,title=V102 unknown term::unknown style 'frmal' (did you mean 'formal'? \
allowed: formal, cottage, meadow, gravel, NA) [rose-garden]
::error file=data/papers.yaml,line=30,col=9,title=F104 empty value::'urls' is an empty list; name at least one \
[long-grass]
::warning file=data/papers.yaml,line=48,col=12,title=M106 no final period::'summary' does not end with a period; add \
one [mixed-borders]
::error file=data/exclusions.yaml,line=9,col=7,title=D102 exclusion id used twice::exclusion id 'E001' is used twice \
(first on line 1); give the record the next free id [E001]
"""

SUMMARY = "3 errors, 1 warning in 4 papers and 2 exclusions\nTo fix some of these: corpus check --fix; corpus tag rose-garden style=formal\n"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "size: small",
            "size: 'small",
            "14:9: Y104 not valid YAML: a closing quote is missing; the rest of the file was not read",
        ),
        (
            "\n\n- key: long-grass",
            "\n  key: long-grass",
            "23:3: Y105 key 'key' is given twice (first on line 2); begin another record with '- ', or keep one",
        ),
        (
            "  size: small",
            " size: small",
            "14:2: Y104 not valid YAML: the indentation of this line, or of the one above, fits no other; indent a field "
            "like its neighbours, and each '- ' like the others of its list; the rest of the file was not read",
        ),
        (
            "  year: 2021",
            "    year: 2021",
            "6:5: Y104 not valid YAML: this line reads as more of the text above; indent a field like its neighbours, "
            "and write a blank behind each ':'; the rest of the file was not read",
        ),
        (
            "  size: small",
            "\tsize: small",
            "14:1: Y104 not valid YAML: a tab in the indentation; indent with spaces; the rest of the file was not read",
        ),
        (
            "size: small",
            "size: 'a' small",
            "14:13: Y104 not valid YAML: text follows a closing quote or bracket; put double quotes around all of it; "
            "the rest of the file was not read",
        ),
        (
            "size: small",
            'size: "a "small" b"',
            "14:13: Y104 not valid YAML: text follows a closing quote or bracket; put double quotes around all of it, "
            'and write each one within as \\"; the rest of the file was not read',
        ),
        (
            "size: small",
            'size: "a": small',
            "14:12: Y104 not valid YAML: ': ' stands in a text without quotes; put double quotes around the text, "
            'and write each one within as \\"; the rest of the file was not read',
        ),
        (
            "care: {water: daily,",
            "care: water: daily,",
            "12:14: Y104 not valid YAML: ': ' stands in a text without quotes; put double quotes around a text, "
            "and braces around fields; the rest of the file was not read",
        ),
        (
            "- key: rose-garden",
            "- key rose-garden",
            "2:3: Y104 not valid YAML: a ':' with a blank after it is missing; the rest of the file was not read",
        ),
        (
            "tools: [spade, shears]",
            "tools:\n    - spade\n    -shears",
            "15:5: Y104 not valid YAML: a blank after '-' is missing; the rest of the file was not read",
        ),
        (
            "- key: rose-garden",
            "-key: rose-garden",
            "2:1: Y104 not valid YAML: a blank after '-' is missing; the rest of the file was not read",
        ),
        (
            "- key: long-grass",
            "-key: long-grass",
            "24:1: Y104 not valid YAML: a blank after '-' is missing; the rest of the file was not read",
        ),
        (
            "size: small",
            "size: - small",
            "14:9: Y104 not valid YAML: a list begins behind the name of its field; begin it on the next line; "
            "the rest of the file was not read",
        ),
        (
            "water: daily,",
            "water:daily,",
            "12:10: V102 'water:daily' lacks a blank after its colon [rose-garden]",
        ),
    ],
)
def test_one_slip_gets_one_message(tmp_path: Path, old: str, new: str, told: str) -> None:
    root = Path(shutil.copytree(TOY, tmp_path / "corpus"))
    path = root / "data" / "papers.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")

    assert run_corpus("--root", str(root), "check", "data").stdout == f"{path}:{told}\n"


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus with three errors and a warning, in two files; the working folder is its own."""
    root = tmp_path / "corpus"
    shutil.copytree(TOY, root)
    edits = {
        "papers.yaml": {
            "style: formal": "style: frmal",
            "urls: [https://example.org/grass]": "urls: []",
            "borders, 𝒜 to 𝒵.": "borders, 𝒜 to 𝒵",
        },
        "exclusions.yaml": {"id: E003": "id: E001"},
    }
    for name, replaced in edits.items():
        path = root / "data" / name
        text = path.read_text(encoding="utf-8")
        for old, new in replaced.items():
            assert text.count(old) == 1
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
    monkeypatch.chdir(root)
    return root


# Forms


@pytest.mark.usefixtures("broken")
def test_text() -> None:
    assert run_corpus("check", "data") == (1, TEXT, SUMMARY)


@pytest.mark.usefixtures("broken")
def test_github() -> None:
    assert run_corpus("check", "data", "--format", "github") == (1, GITHUB, SUMMARY)


def test_github_escapes_what_would_end_a_field() -> None:
    finding = Finding("V102", "50% of\r\nthis: that, all", Location("a,b:c%/x.yaml", 3, 4), "k")

    assert render.github([finding]) == (
        "::error file=a%2Cb%3Ac%25/x.yaml,line=3,col=4,title=V102 unknown term::50%25 of%0D%0Athis: that, all [k]\n"
    )


@pytest.mark.usefixtures("broken")
def test_every_form_shows_the_same_places() -> None:
    expected = [tuple(line.split(": ")[0].split(":")) for line in TEXT.splitlines()]

    as_json = json.loads(run_corpus("check", "data", "-f", "json").stdout)["findings"]
    as_sarif = json.loads(run_corpus("check", "data", "-f", "sarif").stdout)["runs"][0]["results"]

    assert [(f["path"], str(f["line"]), str(f["column"])) for f in as_json] == expected
    places = [result["locations"][0]["physicalLocation"] for result in as_sarif]
    assert [
        (p["artifactLocation"]["uri"], str(p["region"]["startLine"]), str(p["region"]["startColumn"])) for p in places
    ] == expected


@pytest.mark.parametrize("options", [(), ("--select", "V"), ("--max-findings", "1"), ("--select", "Y")])
@pytest.mark.usefixtures("broken")
def test_json_is_as_its_schema_says(options: tuple[str, ...]) -> None:
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(SCHEMA)
    document = json.loads(run_corpus("check", "data", "--format", "json", *options).stdout)

    assert [error.message for error in Draft202012Validator(SCHEMA).iter_errors(document)] == []


@pytest.mark.usefixtures("broken")
def test_the_schema_refuses_what_is_no_finding() -> None:
    from jsonschema import Draft202012Validator

    document = json.loads(run_corpus("check", "data", "--format", "json").stdout)
    for field, value in (("line", 0), ("severity", "note"), ("code", "V1"), ("message", ""), ("extra", 1)):
        changed = json.loads(json.dumps(document))
        changed["findings"][0][field] = value
        assert not Draft202012Validator(SCHEMA).is_valid(changed), field


def sarif_rule(code: str) -> dict[str, Any]:
    rule, entry = RULES[code], explanation(code)
    return {
        "id": code,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": entry.why},
        "help": {"text": f"{entry.why}\n\nInstead of\n\n{entry.bad}\n\nwrite\n\n{entry.good}"},
        "defaultConfiguration": {"level": rule.severity},
    }


def sarif_result(code: str, index: int, message: str, path: str, line: int, column: int, record: str) -> dict[str, Any]:
    return {
        "ruleId": code,
        "ruleIndex": index,
        "level": RULES[code].severity,
        "message": {"text": message},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": path},
                    "region": {"startLine": line, "startColumn": column},
                },
                "logicalLocations": [{"name": record, "kind": "member"}],
            }
        ],
    }


@pytest.mark.usefixtures("broken")
def test_sarif() -> None:
    result = run_corpus("check", "data", "--format", "sarif")

    assert (result.code, result.stderr) == (1, SUMMARY)
    assert json.loads(result.stdout) == {
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "orchtrace-corpus",
                        "version": __version__,
                        "rules": [sarif_rule(code) for code in ("D102", "F104", "M106", "V102")],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [
                    sarif_result(
                        "V102",
                        3,
                        "unknown style 'frmal' (did you mean 'formal'? allowed: formal, cottage, meadow, gravel, NA)",
                        "data/papers.yaml",
                        11,
                        10,
                        "rose-garden",
                    ),
                    sarif_result(
                        "F104",
                        1,
                        "'urls' is an empty list; name at least one",
                        "data/papers.yaml",
                        30,
                        9,
                        "long-grass",
                    ),
                    sarif_result(
                        "M106",
                        2,
                        "'summary' does not end with a period; add one",
                        "data/papers.yaml",
                        48,
                        12,
                        "mixed-borders",
                    ),
                    sarif_result(
                        "D102",
                        0,
                        "exclusion id 'E001' is used twice (first on line 1); give the record the next free id",
                        "data/exclusions.yaml",
                        9,
                        7,
                        "E001",
                    ),
                ],
            }
        ],
    }


def closed(properties: dict[str, Any], *optional: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


MESSAGE = closed({"text": {"type": "string", "minLength": 1}})
LEVEL = {"enum": ["none", "note", "warning", "error"]}
SARIF_MODEL = closed(
    {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "items": closed(
                {
                    "tool": closed(
                        {
                            "driver": closed(
                                {
                                    "name": {"type": "string", "minLength": 1},
                                    "version": {"type": "string", "minLength": 1},
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": closed(
                                            {
                                                "id": {"type": "string", "pattern": "^[A-Z][0-9]{3}$"},
                                                "shortDescription": MESSAGE,
                                                "fullDescription": MESSAGE,
                                                "help": MESSAGE,
                                                "defaultConfiguration": closed({"level": LEVEL}),
                                            }
                                        ),
                                    },
                                }
                            )
                        }
                    ),
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "results": {
                        "type": "array",
                        "items": closed(
                            {
                                "ruleId": {"type": "string"},
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "level": LEVEL,
                                "message": MESSAGE,
                                "locations": {
                                    "type": "array",
                                    "minItems": 1,
                                    "items": closed(
                                        {
                                            "physicalLocation": closed(
                                                {
                                                    "artifactLocation": closed(
                                                        {"uri": {"type": "string", "pattern": r"^[^\\ ]+$"}}
                                                    ),
                                                    "region": closed(
                                                        {
                                                            "startLine": {"type": "integer", "minimum": 1},
                                                            "startColumn": {"type": "integer", "minimum": 1},
                                                        }
                                                    ),
                                                }
                                            ),
                                            "logicalLocations": {
                                                "type": "array",
                                                "items": closed(
                                                    {"name": {"type": "string"}, "kind": {"const": "member"}}
                                                ),
                                            },
                                        },
                                        "logicalLocations",
                                    ),
                                },
                            }
                        ),
                    },
                }
            ),
        },
    }
)
"""The part of SARIF 2.1.0 that we write, as strict as its specification, and without anything else."""


@pytest.mark.parametrize("codes", [[], ["V102"], list(RULES)], ids=["none", "one", "all"])
def test_sarif_has_what_the_specification_asks_for(codes: list[str]) -> None:
    from jsonschema import Draft202012Validator

    places = [Location("data/pa pers.yaml", 1, 1), Location("/tmp/ä b/papers.yaml", 2, 3)]
    found = [Finding(code, "wrong", places[index % 2], "" if index % 3 else "key") for index, code in enumerate(codes)]
    document = json.loads(sarif(found))

    assert [error.message for error in Draft202012Validator(SARIF_MODEL).iter_errors(document)] == []
    run = document["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [rules[result["ruleIndex"]] for result in run["results"]] == [result["ruleId"] for result in run["results"]]


def test_sarif_addresses_are_uris() -> None:
    places = [Location("data/pa pers.yaml", 1, 1), Location("/tmp/ä/papers.yaml", 2, 3)]
    document = json.loads(sarif([Finding("V102", "wrong", place) for place in places]))

    results = document["runs"][0]["results"]
    uris = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in results]
    assert uris == ["data/pa%20pers.yaml", "file:///tmp/%C3%A4/papers.yaml"]


# Choosing findings


@pytest.mark.parametrize(
    ("options", "codes", "code"),
    [
        (("--select", "V"), ["V102"], 1),
        (("--select", "f1", "--select", "V102"), ["V102", "F104"], 1),
        (("--select", "M"), ["M106"], 0),
        (("--select", "M", "--strict"), ["M106"], 1),
        (("--ignore", "V", "--ignore", "F104", "--ignore", "D"), ["M106"], 0),
        (("--select", "F", "--ignore", "F104"), [], 0),
        (("--select", "F", "--ignore", "F104", "--strict"), [], 0),
        (("--ignore", "M106"), ["V102", "F104", "D102"], 1),
    ],
)
@pytest.mark.usefixtures("broken")
def test_select_and_ignore(options: tuple[str, ...], codes: list[str], code: int) -> None:
    result = run_corpus("check", "data", *options)

    assert [line.split()[1] for line in result.stdout.splitlines()] == codes
    assert result.code == code


@pytest.mark.parametrize("option", ["--select", "--ignore"])
@pytest.mark.parametrize(("wrong", "hint"), [("V109", "did you mean 'V1"), ("Q", ""), ("V1022", "'V102'"), ("", "")])
def test_an_unknown_code_is_refused(option: str, wrong: str, hint: str) -> None:
    result = run_toy("check", "data", option, wrong)

    assert (result.code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"corpus: there is no rule '{wrong}'")
    assert hint in result.stderr
    assert "See corpus rule --all." in result.stderr


def test_findings_of_syntax_cannot_be_left_out(broken: Path) -> None:
    (broken / "data" / "papers.yaml").write_text("- key: [a\n", encoding="utf-8")

    for options in (("--select", "V"), ("--ignore", "Y")):
        result = run_corpus("check", "data", *options)
        assert result.code == 3
        assert "Y104" in result.stdout


def test_warnings_do_not_fail_but_in_strict_mode(tmp_path: Path) -> None:
    root = tmp_path / "corpus"
    shutil.copytree(TOY, root)
    path = root / "data" / "papers.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("Describes a yard.", "Describes a yard"), encoding="utf-8")

    assert run_corpus("--root", str(root), "check", "data").code == 0
    assert run_corpus("--root", str(root), "check", "data", "--strict").code == 1
    assert run_corpus("--root", str(root), "stats").code == 0
    assert run_toy("check", "data", "--strict").code == 0


@pytest.mark.usefixtures("broken")
def test_max_findings_says_how_many_more_there_are() -> None:
    shown = "".join(line + "\n" for line in TEXT.splitlines()[:1])

    assert run_corpus("check", "data", "--max-findings", "1") == (
        1,
        shown,
        f"… and 3 more; --max-findings 1 leaves them out\n{SUMMARY}",
    )
    assert run_corpus("check", "data", "--max-findings", "4") == (1, TEXT, SUMMARY)
    assert run_corpus("check", "data", "--max-findings", "0") == (1, TEXT, SUMMARY)
    assert run_corpus("check", "data", "--max-findings", "-1").code == 2


def test_an_error_is_shown_before_the_warnings_above_it_where_findings_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "corpus"
    shutil.copytree(TOY, root)
    path = root / "data" / "papers.yaml"
    text = (
        path.read_text(encoding="utf-8")
        .replace("beds of roses.", "beds of roses")
        .replace("without any tool.", "without any tool")
    )
    path.write_text(text.replace("style: cottage", "style: cotage"), encoding="utf-8")

    monkeypatch.chdir(root)
    checked = run_corpus("check", "data", "--max-findings", "1")
    counted = run_corpus("stats")

    error = (
        "data/papers.yaml:44:10: V102 unknown style 'cotage' (did you mean 'cottage'? "
        "allowed: formal, cottage, meadow, gravel, NA) [mixed-borders]\n"
    )
    assert (checked.code, checked.stdout) == (1, error)
    assert counted.stderr == (
        f"corpus: the data has 1 error, so its counts would not be true:\n{error}Run corpus check data for all of them.\n"
    )


@pytest.mark.usefixtures("broken")
def test_max_findings_counts_all_in_json() -> None:
    document = json.loads(run_corpus("check", "data", "--max-findings", "2", "--format", "json").stdout)

    assert (document["errors"], document["warnings"], len(document["findings"])) == (3, 1, 2)
