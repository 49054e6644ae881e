"""Write the documents about the tool itself: docs/cli.md and docs/rules.md.

They follow from the code, not from the data, so `corpus build` leaves them alone; a test fails where
they are stale.

    python scripts/document.py
"""

from pathlib import Path

from orchtrace_corpus.cli.reference import tool_documents
from orchtrace_corpus.files import write_atomic

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Write what is stale, and name it."""
    for name, text in tool_documents().items():
        path = ROOT / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            write_atomic(str(path), text)
            print(f"wrote {name}")


if __name__ == "__main__":
    main()
