"""The JSON Schema of traces, as the package carries it."""

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of traces."""
    text = files("orchtrace_corpus.trace.model").joinpath("schema.json").read_text(encoding="utf-8")
    return dict(json.loads(text))
