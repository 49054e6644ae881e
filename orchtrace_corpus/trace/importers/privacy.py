"""Keeps what people wrote out of traces: contents become salted hashes, names lose addresses and paths."""

import hmac
import re
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

_MASKED = "…"
_MOST_NAME = 200
_MOST_READ = 1_000
"""So much of a name is looked at: enough that nothing private is cut in two at its end."""

_HINT = r"[@/\\]|[spr]k[-_]|gh[a-z]_|github_pat_|glpat-|hf_|xox|AKIA|AIza|eyJ"
"""A name without any of these holds nothing private, which is quickly seen."""

_PRIVATE = (
    r"[\w.+-]{1,64}@[\w-]+\.[\w.-]+",  # e-mail addresses
    r"(?:/home/|/Users/|/root\b|[A-Za-z]:\\Users\\)[^\s\"']*",  # home folders
    r"\b[spr]k[-_](?=[\w-]*\d)[\w-]{12,}",  # keys of well-known services
    r"\b(?:gh[a-z]_|github_pat_|glpat-|hf_|xox[a-z]-|AKIA|AIza|eyJ)[\w-]{12,}",
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
        if not content and (content is None or content in ("", [], {})):
            return ""
        text = content if isinstance(content, str) else _canonical(content)
        if self.keep_content:
            return text
        return "sha256:" + hmac.digest(self.salt, text.encode("utf-8", "replace"), "sha256").hex()[:24]


@lru_cache(maxsize=10_000)
def masked(name: str) -> str:
    """A name as it may leave the machine: e-mail addresses, home folders and keys are cut out."""
    name = name[:_MOST_READ]
    if re.search(_HINT, name):
        for pattern in _PRIVATE:
            name = re.sub(pattern, _MASKED, name)
    return name[:_MOST_NAME]


def _canonical(content: Any) -> str:
    try:
        return msgspec.json.encode(content, order="sorted", enc_hook=str).decode("utf-8")
    except RecursionError:
        return "nested too deeply"
