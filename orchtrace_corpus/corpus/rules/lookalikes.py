"""Text that looks like another, in every field of every data file."""

import re
from collections.abc import Iterator

from orchtrace_corpus.base.findings import Finding, is_malformed, quote
from orchtrace_corpus.base.lookalikes import Oddity, code_points, odd_parts
from orchtrace_corpus.base.yamlfile.decoders import text_of
from orchtrace_corpus.base.yamlfile.reader import Mapping, Node, Scalar, Sequence, YamlFile
from orchtrace_corpus.corpus.model.records import Loaded

_ESCAPED = r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})"

_RULES = {
    Oddity.SCRIPTS: ("M111", "{} has letters of several scripts: {}; write it in one"),
    Oddity.HOST: ("M112", "the host {} is not ASCII: {}; check it, and write it as xn--… if it is meant"),
    Oddity.INVISIBLE: ("M113", "{} is invisible: {}; remove it"),
}


def check_lookalikes(loaded: Loaded) -> Iterator[Finding]:
    """Words of several scripts, hosts beyond ASCII, and characters that show nothing."""
    for file in dict.fromkeys((loaded.paper_places.file, loaded.exclusion_places.file)):
        yield from find_lookalikes(file)


def find_lookalikes(file: YamlFile) -> Iterator[Finding]:
    """The same in any data file."""
    text = file.text
    may_escape = "\\x" in text or "\\u" in text or "\\U" in text
    is_suspect = any(odd_parts(text, file.beyond_ascii)) or (may_escape and re.search(_ESCAPED, text))
    if not is_suspect or is_malformed(file.findings):  # nearly all files, which need no second reading
        return
    root = YamlFile(file.path, text.encode()).root()
    for record in root.items if type(root) is Sequence else [root]:
        name = text_of(record, "key") or text_of(record, "id")
        for scalar in _scalars(record):
            for part in odd_parts(scalar.text):
                code, message = _RULES[part.kind]
                yield Finding(
                    code, message.format(quote(part.text), code_points(part.characters)), file.location(scalar.at), name
                )


def _scalars(node: Node | None) -> Iterator[Scalar]:
    if type(node) is Mapping:
        for _, value in node.entries.values():
            yield from _scalars(value)
    elif type(node) is Sequence:
        for item in node.items:
            yield from _scalars(item)
    elif type(node) is Scalar:
        yield node
