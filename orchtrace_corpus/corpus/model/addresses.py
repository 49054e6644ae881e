"""Web addresses in records: what they may be, and their decoders."""

import re

from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.yamlfile.reader import Node, Sequence
from orchtrace_corpus.corpus.model.fields import Decoder, Report, text, text_list

_USUAL_URL = r"https?://\w[^ <>\"`{}|\\^/?#@]*(?:[/?#][^ <>\"`{}|\\^]*)?"
_NOT_IN_URLS = ' <>"`{}|\\^'


def url(name: str) -> Decoder:
    """A web address."""
    decode_text = text(name)

    def decode(node: Node, report: Report) -> str | None:
        value = decode_text(node, report)
        return None if value is None or _is_refused_url(value, node, report) else value

    return decode


def url_list(name: str) -> Decoder:
    """A list of different web addresses, at least one."""
    texts = text_list(name)

    def decode(node: Node, report: Report) -> tuple[str, ...] | None:
        values = texts(node, report)
        if values is None or type(node) is not Sequence:
            return None
        refused = [_is_refused_url(value, item, report) for value, item in zip(values, node.items, strict=True)]
        return None if any(refused) else values

    return decode


def url_problem(value: str) -> str:
    """What keeps a text from being a web address that anyone may open; empty if nothing does."""
    if re.fullmatch(_USUAL_URL, value):
        return ""
    scheme, separator, rest = value.partition("://")
    host = re.split("[/?#]", rest, maxsplit=1)[0]
    if not separator or scheme.lower() not in ("http", "https"):
        return "is not a web address; begin it with https://"
    if any(c in value for c in _NOT_IN_URLS):
        odd = next(c for c in value if c in _NOT_IN_URLS)
        shown = "a blank" if odd == " " else quote(odd)
        return f"holds {shown}, which no web address can; write %{ord(odd):02X}, or remove it"
    if "@" in host:
        return "gives a user name or password; leave out what stands before the @"
    return "" if host.strip(".:") else "names no host; write https://host/path"


def _is_refused_url(value: str, node: Node, report: Report) -> bool:
    problem = url_problem(value)
    if problem:
        report.add("F114", node.at, f"{quote(value)} {problem}")
    return bool(problem)
