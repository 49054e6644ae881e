"""Run the cells of docs/notebook.ipynb, and write its outputs, without Jupyter.

    python scripts/notebook_outputs.py

`python scripts/document.py` does so, too. As in Jupyter, a cell shows the value of its last expression: its text, its
table or its picture. A cell with the tag `today` gets no outputs, because they change with the data.
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
_MEDIA_TYPES = {"_repr_html_": "text/html", "_repr_svg_": "image/svg+xml"}
"""The media type of the text that each of Jupyter's methods returns."""


def run(text: str, folder: Path) -> str:
    """Run the cells of a notebook one after another in a folder, and return it with their outputs."""
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
    """Yield the text that a cell prints, then the value of its last expression, as outputs of Jupyter."""
    statements = ast.parse(source).body
    expression = None
    if isinstance(statements[-1], ast.Expr) and not source.rstrip().endswith(";"):
        expression = statements.pop()
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(_compiled(ast.Module(statements, []), number, "exec"), names)
        if isinstance(expression, ast.Expr):
            value = eval(_compiled(ast.Expression(expression.value), number, "eval"), names)
    if printed.getvalue():
        yield {"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())}
    if value is not None:
        data = {}
        for method, media_type in _MEDIA_TYPES.items():
            if hasattr(value, method):
                data[media_type] = _lines(getattr(value, method)())
        if "image/svg+xml" not in data:
            data["text/plain"] = _lines(repr(value))
        yield {"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}


def _compiled(tree: ast.Module | ast.Expression, number: int, mode: str) -> Any:
    return compile(tree, f"<cell {number}>", mode)


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def written() -> str:
    """Return the text of the notebook with new outputs."""
    return run(NOTEBOOK.read_text(encoding="utf-8"), NOTEBOOK.parent)


if __name__ == "__main__":
    write_atomic(str(NOTEBOOK), written())
    sys.stdout.write(f"wrote {NOTEBOOK.name}\n")
