"""Keeps what people wrote out of traces: contents become salted hashes, names lose addresses and paths."""

import hmac
import re
from hashlib import sha256
from typing import Any, NamedTuple

_MASKED = "…"
_PRIVATE = (
    r"[\w.+-]+@[\w-]+\.[\w.-]+",  # e-mail addresses
    r"(?:/home/|/Users/|/root\b|[A-Za-z]:\\Users\\)[^\s\"']*",  # home folders
    r"\b(?:sk|pk|ghp|gho|xox[abp]|AKIA|AIza)[-_]?[A-Za-z0-9_-]{12,}",  # keys of well-known services
)


class Privacy(NamedTuple):
    """How contents are referred to.

    Attributes:
        salt: Makes hashes of guessable contents useless to others; the same salt gives the same hashes.
        keep_content: Whether contents are kept in full instead.
    """

    salt: bytes
    keep_content: bool = False

    def reference(self, content: Any) -> str:
        """What an event keeps of a content: a hash by which repetitions are told, or the content itself; or nothing."""
        if content is None or content in ("", [], {}):
            return ""
        text = content if isinstance(content, str) else _canonical(content)
        if self.keep_content:
            return text
        return "sha256:" + hmac.new(self.salt, text.encode("utf-8", "replace"), sha256).hexdigest()[:24]


def masked(name: str) -> str:
    """A name as it may leave the machine: e-mail addresses, home folders and keys are cut out."""
    for pattern in _PRIVATE:
        name = re.sub(pattern, _MASKED, name)
    return name[:200]


def _canonical(content: Any) -> str:
    import json

    return json.dumps(content, ensure_ascii=False, sort_keys=True, default=str)
