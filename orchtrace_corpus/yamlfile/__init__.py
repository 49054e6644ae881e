"""YAML as text with places: read strictly, written in canonical form, edited in place. The only user of PyYAML."""

import re
from typing import Any


class _Later:
    """A pattern that is compiled when something is asked of it."""

    def __init__(self, *pattern: Any) -> None:
        self._pattern = pattern

    def __getattr__(self, name: str) -> Any:
        return getattr(re.compile(*self._pattern), name)


def _import_yaml() -> None:
    """Import PyYAML without compiling the patterns of its own reader and resolver.

    They take as long as the start of the interpreter, for a reader in Python that we do not use: everything
    here stands on the parser in C.
    """
    compiles = re.compile
    re.compile = _Later  # type: ignore[assignment]
    try:
        import yaml  # noqa: F401
    finally:
        re.compile = compiles


_import_yaml()
