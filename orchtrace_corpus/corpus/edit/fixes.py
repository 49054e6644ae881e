"""Fixes that need no decision: other spellings of ids and URLs, LaTeX, a missing period, terms by code or case.

`corpus.rules` finds what is wrong. A fix turns a text into the right one, or returns None if a person has to decide.
"""

from collections import abc, defaultdict
from collections.abc import Callable, Iterable, Iterator

from orchtrace_corpus.base.findings import Finding, nearest
from orchtrace_corpus.base.identifiers import ADDRESSES, recognise
from orchtrace_corpus.base.yamlfile.reader import Mapping, Node, Scalar, Sequence, YamlFile
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.store import CorpusFiles
from orchtrace_corpus.corpus.model.taxonomy import Kind, Taxonomy


def _fix_identifier(text: str, field: str) -> str | None:
    identifier = recognise(text)
    return identifier.value if identifier is not None and identifier.kind == field else None


def _fix_url(text: str, _field: str) -> str | None:
    identifier = recognise(text)
    if identifier is not None:
        return ADDRESSES[identifier.kind] + identifier.value
    host = text.partition("/")[0]
    name, dot, ending = host.rpartition(".")
    is_without_scheme = bool(name and dot) and ending.isalpha() and " " not in text and set(host).isdisjoint("@:")
    return f"https://{text}" if is_without_scheme else None


def _fix_latex(text: str, _field: str) -> str | None:
    """Return LaTeX as Unicode; None if the text is unchanged, or holds something that only LaTeX can express."""
    from orchtrace_corpus.base.text.latex import LatexError, decoded

    try:
        fixed = decoded(text)
    except LatexError:
        return None
    return fixed if fixed != text else None


FIXES: dict[str, Callable[[str, str], str | None]] = {
    "F111": _fix_identifier,
    "F114": _fix_url,
    "M103": _fix_latex,
    "M106": lambda text, _field: f"{text.rstrip(' ,;:')}.",
}
"""The fix of each rule that needs no taxonomy: from a text and its field's name to the fixed text."""

_UNKNOWN_TERM = "V102"
_SPELLINGS = frozenset((_UNKNOWN_TERM, "V103", "V105"))
"""The rules that the taxonomy fixes: terms and levels written by their code or in another case."""

FIXABLE = frozenset((*FIXES, *_SPELLINGS))
"""The rules that have a fix."""


def changes(files: CorpusFiles, findings: Iterable[Finding]) -> abc.Mapping[str, dict[int, str]]:
    """Return the fixed texts by the path of their file and the index at which each value begins."""
    fixable = {finding.location: finding.code for finding in findings if finding.code in FIXABLE}
    fixed: defaultdict[str, dict[int, str]] = defaultdict(dict)
    if files.loaded.pool is None:
        return fixed
    terms = _spellings(files.taxonomy)
    paths = {location.path for location in fixable}
    for path in [row.path for row in store.DATA_FILES if files.display_path(row.path) in paths]:
        file = _read_again(files, path)
        for field, scalar in _scalars(file.records()):
            code, text = fixable.get(file.location(scalar.at)), None
            if code in _SPELLINGS:
                ids = terms.get((field, scalar.text.casefold()), ())
                text = ids[0] if len(ids) == 1 else None
            elif code is not None:
                text = FIXES[code](scalar.text, field)
            if text is not None and text != scalar.text:
                fixed[path][scalar.at] = text
    return fixed


def tag_commands(files: CorpusFiles, findings: Iterable[Finding]) -> Iterator[str]:
    """Yield a command for each misspelt term, which sets the nearest term; case alone is left to `changes`."""
    unknown = {finding.location: finding.record for finding in findings if finding.code == _UNKNOWN_TERM}
    if not unknown or files.loaded.pool is None:
        return
    for path, facets in ((store.PAPERS, files.taxonomy.papers), (store.EXCLUSIONS, files.taxonomy.exclusions)):
        terms = {facet.field: facet.values for facet in facets if facet.kind is Kind.SINGLE}
        file = _read_again(files, path)
        for field, scalar in _scalars(file.records()):
            record = unknown.get(file.location(scalar.at)) if field in terms else None
            term = nearest(scalar.text, terms[field]) if record else ""
            if term and term.casefold() != scalar.text.casefold():
                yield f"corpus tag {record} {field}={term}"


def _read_again(files: CorpusFiles, path: str) -> YamlFile:
    return YamlFile(files.file(path).path, files.file(path).text.encode())


def _spellings(taxonomy: Taxonomy) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the terms and levels that a text can mean in any case, by field and text; terms can share a code."""
    terms: dict[tuple[str, str], tuple[str, ...]] = {}
    for facet in (*taxonomy.papers, *taxonomy.exclusions, *taxonomy.evidence):
        terms |= {(facet.field, term.id.casefold()): (term.id,) for term in facet.terms}
        terms |= {(facet.field, code): ids for code, ids in facet.codes.items()}
        terms |= {(term.id, level.id.casefold()): (level.id,) for term in facet.terms for level in facet.levels}
    for field in taxonomy.fields:
        for choice in field.choices:
            alike = (field.name, choice.casefold())
            terms[alike] = (*terms.get(alike, ()), choice)
    return terms


def _scalars(nodes: Iterable[Node], field: str = "") -> Iterator[tuple[str, Scalar]]:
    """Yield every scalar below some nodes, names included, with the name of the field whose value it belongs to."""
    for node in nodes:
        if type(node) is Mapping:
            for name, (name_at, value) in node.entries.items():
                yield field, Scalar(name, name_at)
                yield from _scalars((value,), name)
        elif type(node) is Sequence:
            yield from _scalars(node.items, field)
        elif type(node) is Scalar:
            yield field, node
