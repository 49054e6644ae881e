"""Write the documents about the tool itself: docs/cli.md, docs/rules.md, and marked regions of others.

They follow from the code, not from the data, so `corpus build` leaves them alone; a test fails where
they are stale.

    python scripts/document.py
"""

from pathlib import Path

from orchtrace_corpus.base.files import write_atomic
from orchtrace_corpus.cli.reference import tool_documents, tool_regions, with_regions

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Write what is stale, and name it."""
    wanted = tool_documents()
    for name in tool_regions():
        wanted[name] = with_regions(name, (ROOT / name).read_text(encoding="utf-8"))
    for name, text in wanted.items():
        path = ROOT / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            write_atomic(str(path), text)
            print(f"wrote {name}")


if __name__ == "__main__":
    main()
