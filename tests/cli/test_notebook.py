"""The notebook in docs: every cell runs, and its outputs are what running gives."""

import json
from pathlib import Path

import notebook_outputs as notebook
import pytest


def cell(source: str, *tags: str) -> dict[str, object]:
    return {"cell_type": "code", "metadata": {"tags": list(tags)}, "source": source, "outputs": []}


def ran(folder: Path, *cells: dict[str, object]) -> list[list[dict[str, object]]]:
    text = notebook.run(json.dumps({"cells": [{"cell_type": "markdown", "source": "# T"}, *cells]}), folder)
    return [one["outputs"] for one in json.loads(text)["cells"][1:]]


def test_the_outputs_of_the_notebook_are_what_running_it_gives() -> None:
    assert notebook.written() == notebook.NOTEBOOK.read_text(encoding="utf-8"), (
        "fix: python scripts/notebook_outputs.py"
    )


def test_the_notebook_goes_from_the_corpus_to_a_heat_map_and_a_timeline() -> None:
    document = json.loads(notebook.NOTEBOOK.read_text(encoding="utf-8"))
    cells = [one for one in document["cells"] if one["cell_type"] == "code"]
    kinds = {kind for one in cells for output in one["outputs"] for kind in output.get("data", {})}

    assert kinds == {"text/plain", "text/html", "image/svg+xml"}
    assert [one["execution_count"] for one in cells] == list(range(1, len(cells) + 1))
    assert {one["id"] for one in document["cells"]} == {
        f"{'code' if one in cells else 'text'}-{n:02}" for n, one in enumerate(document["cells"])
    }


def test_a_cell_shows_what_it_prints_and_what_its_last_expression_gives(tmp_path: Path) -> None:
    assert ran(tmp_path, cell("x = 2\nprint('a', x)\nx + 1"), cell("x * 2;"), cell("y = x"), cell("None")) == [
        [
            {"name": "stdout", "output_type": "stream", "text": ["a 2\n"]},
            {"data": {"text/plain": ["3"]}, "execution_count": 1, "metadata": {}, "output_type": "execute_result"},
        ],
        [],
        [],
        [],
    ]


def test_a_table_or_a_picture_is_shown_as_such(tmp_path: Path) -> None:
    table = "class T:\n    def _repr_html_(self): return '<b>1</b>'\n    def __repr__(self): return 'T'\nT()"
    picture = "class P(str):\n    def _repr_svg_(self): return str(self)\nP('<svg/>')"

    assert [outputs[0]["data"] for outputs in ran(tmp_path, cell(table), cell(picture))] == [
        {"text/html": ["<b>1</b>"], "text/plain": ["T"]},
        {"image/svg+xml": ["<svg/>"]},
    ]


def test_what_changes_with_the_data_is_run_and_not_kept(tmp_path: Path) -> None:
    assert ran(tmp_path, cell("x = 3\nx", "today"), cell("x")) == [
        [],
        [
            {"data": {"text/plain": ["3"]}, "execution_count": 2, "metadata": {}, "output_type": "execute_result"},
        ],
    ]


def test_an_error_in_a_cell_is_raised_and_the_folder_left(tmp_path: Path) -> None:
    before = Path.cwd()

    with pytest.raises(ZeroDivisionError):
        ran(tmp_path, cell("1 / 0"))

    assert Path.cwd() == before
