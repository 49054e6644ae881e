"""Mends what needs no decision: ids and addresses in other spellings, LaTeX, a missing period, terms by code or case.

A mend is a function from the text as it is to the text as it should be, or None where it takes a
person. `pool.rules` says what is wrong; this module only knows how to put it right.
"""

from collections import abc
from collections.abc import Callable, Iterable, Iterator

from orchtrace_corpus.base.findings import Finding, Location, nearest
from orchtrace_corpus.base.identifiers import ADDRESSES, recognise
from orchtrace_corpus.base.yamlfile.reader import Mapping, Node, Scalar, Sequence, YamlFile
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.store import CorpusFiles
from orchtrace_corpus.corpus.model.taxonomy import Kind, Taxonomy


def _identifier(text: str, field: str) -> str | None:
    meant = recognise(text)
    return meant.value if meant is not None and meant.kind == field else None


def _address(text: str, _field: str) -> str | None:
    meant = recognise(text)
    if meant is not None:
        return ADDRESSES[meant.kind] + meant.value
    host = text.partition("/")[0]
    name, dot, ending = host.rpartition(".")
    is_bare = bool(name and dot) and ending.isalpha() and " " not in text and set(host).isdisjoint("@:")
    return f"https://{text}" if is_bare else None


def _latex(text: str, _field: str) -> str | None:
    """LaTeX as Unicode; None where something is left that only LaTeX can say."""
    from orchtrace_corpus.base.text.latex import LatexError, decoded

    try:
        mended = decoded(text)
    except LatexError:
        return None
    return mended if mended != text else None


FIXES: dict[str, Callable[[str, str], str | None]] = {
    "F111": _identifier,
    "F114": _address,
    "M103": _latex,
    "M106": lambda text, _field: f"{text.rstrip(' ,;:')}.",
}
"""The mend of each rule that has one by itself: from text and field name to the mended text."""

_UNKNOWN_TERM = "V102"
_SPELLINGS = frozenset((_UNKNOWN_TERM, "V103", "V105"))
"""The rules whose mend is in the taxonomy: terms and levels by their code, or in other case."""

FIXABLE = frozenset((*FIXES, *_SPELLINGS))
"""The rules that have a mend."""


def changes(files: CorpusFiles, findings: Iterable[Finding]) -> dict[str, dict[int, str]]:
    """Return the mended texts of values by the path of their file and the index at which each begins.

    Args:
        files: The corpus.
        findings: Findings in its files; those without a mend are skipped.
    """
    fixable = {finding.location: finding.code for finding in findings if finding.code in FIXABLE}
    paths = {location.path for location in fixable}
    mended = {}
    for row in store.DATA_FILES if files.loaded.pool else ():
        if files.shown_path(row.path) in paths:
            file = files.file(row.path)
            again = YamlFile(file.path, file.text.encode())
            mended[row.path] = _changes(again, fixable, files.taxonomy)
    return {path: texts for path, texts in mended.items() if texts}


def tag_commands(files: CorpusFiles, findings: Iterable[Finding]) -> Iterator[str]:
    """Yield the commands that set the terms that were probably meant by unknown ones, where more than case differs."""
    unknown = {finding.location: finding.record for finding in findings if finding.code == _UNKNOWN_TERM}
    if not unknown or files.loaded.pool is None:
        return
    for path, facets in ((store.PAPERS, files.taxonomy.papers), (store.EXCLUSIONS, files.taxonomy.exclusions)):
        terms = {facet.field: facet.values for facet in facets if facet.kind is Kind.SINGLE}
        file = YamlFile(files.file(path).path, files.file(path).text.encode())
        for field, scalar in _scalars(file.records()):
            record = unknown.get(file.location(scalar.at)) if field in terms else None
            meant = nearest(scalar.text, terms[field]) if record else ""
            if meant and meant.casefold() != scalar.text.casefold():
                yield f"corpus tag {record} {field}={meant}"


def _changes(file: YamlFile, fixable: abc.Mapping[Location, str], taxonomy: Taxonomy) -> dict[int, str]:
    terms = _spellings(taxonomy)
    mended = {}
    for field, scalar in _scalars(file.records()):
        code = fixable.get(file.location(scalar.at))
        if code in _SPELLINGS:
            meant = terms.get((field, scalar.text.casefold()), ())
            text = meant[0] if len(meant) == 1 else None
        else:
            text = FIXES[code](scalar.text, field) if code is not None else None
        if text is not None and text != scalar.text:
            mended[scalar.at] = text
    return mended


def _spellings(taxonomy: Taxonomy) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the terms and levels that a text in any case can stand for, by field and text; several share a code."""
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
    """Every scalar below some nodes, names included, with the name of the field that it is in the value of."""
    for node in nodes:
        if type(node) is Mapping:
            for name, (name_at, value) in node.entries.items():
                yield field, Scalar(name, name_at)
                yield from _scalars((value,), name)
        elif type(node) is Sequence:
            yield from _scalars(node.items, field)
        elif type(node) is Scalar:
            yield field, node
