"""Run the cells of docs/notebook.ipynb, and write its outputs, without Jupyter.

    python scripts/notebook_outputs.py

`python scripts/document.py` does so, too. A cell shows what its last expression gives, as Jupyter would: its text, its
table or its picture. The outputs of a cell with the tag `today` are left out: they change with the data.
"""

import ast
import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from orchtrace_corpus.base.files import write_atomic

NOTEBOOK = Path(__file__).parents[1] / "docs" / "notebook.ipynb"
TODAY = "today"
"""The tag of a cell whose outputs are not kept."""
_KINDS = {"_repr_html_": "text/html", "_repr_svg_": "image/svg+xml"}


def run(text: str, folder: Path) -> str:
    """A notebook with the outputs of its cells, run one after another in a folder; an error in a cell is raised."""
    document = json.loads(text)
    names: dict[str, Any] = {"__name__": "__main__"}
    before = os.getcwd()
    os.chdir(folder)
    try:
        cells = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
        for position, cell in enumerate(cells, 1):
            outputs = list(_outputs("".join(cell["source"]), position, names))
            is_kept = TODAY not in cell["metadata"].get("tags", ())
            cell.update(execution_count=position, outputs=outputs if is_kept else [])
    finally:
        os.chdir(before)
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _outputs(source: str, number: int, names: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What a cell prints, then what its last expression gives."""
    *statements, last = ast.parse(source).body
    is_shown = isinstance(last, ast.Expr) and not source.rstrip().endswith(";")
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(_compiled(ast.Module(statements if is_shown else [*statements, last], []), number, "exec"), names)
        if isinstance(last, ast.Expr) and is_shown:
            value = eval(_compiled(ast.Expression(last.value), number, "eval"), names)
    if printed.getvalue():
        yield {"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())}
    if value is not None:
        shown = {kind: _lines(getattr(value, name)()) for name, kind in _KINDS.items() if hasattr(value, name)}
        plain = {} if "image/svg+xml" in shown else {"text/plain": _lines(repr(value))}
        yield {"data": {**shown, **plain}, "execution_count": number, "metadata": {}, "output_type": "execute_result"}


def _compiled(tree: ast.Module | ast.Expression, number: int, mode: str) -> Any:
    return compile(tree, f"<cell {number}>", mode)


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def written() -> str:
    """The notebook as it would be written."""
    return run(NOTEBOOK.read_text(encoding="utf-8"), NOTEBOOK.parent)


if __name__ == "__main__":
    write_atomic(str(NOTEBOOK), written())
    sys.stdout.write(f"wrote {NOTEBOOK.name}\n")
