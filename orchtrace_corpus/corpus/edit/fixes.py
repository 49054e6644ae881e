"""Fixes that need no decision: other spellings of ids and URLs, LaTeX, a missing period, terms by code or case.

A fix takes a text with a finding and the name of its field. It returns the corrected text, or None if a person has to
decide.
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
    if identifier is None or identifier.kind != field:
        return None
    return identifier.value


def _fix_url(text: str, _field: str) -> str | None:
    identifier = recognise(text)
    if identifier is not None:
        return ADDRESSES[identifier.kind] + identifier.value
    host, _, _ = text.partition("/")
    name, _, top_level = host.rpartition(".")
    if not name or not top_level.isalpha() or "@" in host or ":" in host or " " in text:
        return None
    return f"https://{text}"  # only the scheme is missing


def _fix_latex(text: str, _field: str) -> str | None:
    """Return LaTeX as Unicode; None if that is the same text, or if only LaTeX can express it."""
    from orchtrace_corpus.base.text.latex import LatexError, decoded

    try:
        plain = decoded(text)
    except LatexError:
        return None
    return plain if plain != text else None


FIXES: dict[str, Callable[[str, str], str | None]] = {
    "F111": _fix_identifier,
    "F114": _fix_url,
    "M103": _fix_latex,
    "M106": lambda text, _field: f"{text.rstrip(' ,;:')}.",
}
"""The fixes that need no taxonomy, by the code of the rule."""

_UNKNOWN_TERM = "V102"
_VOCABULARY_RULES = frozenset((_UNKNOWN_TERM, "V103", "V105"))
"""The rules about terms and levels; those that were written by their code or in another case can be fixed."""

FIXABLE = frozenset((*FIXES, *_VOCABULARY_RULES))
"""The rules that have a fix."""


def fixed_values(files: CorpusFiles, findings: Iterable[Finding]) -> abc.Mapping[str, dict[int, str]]:
    """Return the fixed texts, by the path of the file and the index in it at which the value begins."""
    codes = {finding.location: finding.code for finding in findings if finding.code in FIXABLE}
    fixed: defaultdict[str, dict[int, str]] = defaultdict(dict)
    if files.loaded.pool is None:
        return fixed
    terms_by_spelling = _terms_by_spelling(files.taxonomy)
    paths = {location.path for location in codes}
    for path in [row.path for row in store.DATA_FILES if files.display_path(row.path) in paths]:
        file = _parse_again(files, path)
        for field, scalar in _scalars(file.records()):
            code = codes.get(file.location(scalar.at))
            text: str | None = None
            if code in _VOCABULARY_RULES:
                terms = terms_by_spelling.get((field, scalar.text.casefold()), ())
                text = terms[0] if len(terms) == 1 else None
            elif code is not None:
                text = FIXES[code](scalar.text, field)
            if text is not None and text != scalar.text:
                fixed[path][scalar.at] = text
    return fixed


def tag_commands(files: CorpusFiles, findings: Iterable[Finding]) -> Iterator[str]:
    """Yield a command for each misspelt term, which sets the nearest term; `fixed_values` corrects upper case."""
    records = {finding.location: finding.record for finding in findings if finding.code == _UNKNOWN_TERM}
    if not records or files.loaded.pool is None:
        return
    for path, facets in ((store.PAPERS, files.taxonomy.papers), (store.EXCLUSIONS, files.taxonomy.exclusions)):
        terms_by_field = {facet.field: facet.values for facet in facets if facet.kind is Kind.SINGLE}
        file = _parse_again(files, path)
        for field, scalar in _scalars(file.records()):
            record = records.get(file.location(scalar.at))
            if record and field in terms_by_field:
                term = nearest(scalar.text, terms_by_field[field])
                if term and term.casefold() != scalar.text.casefold():
                    yield f"corpus tag {record} {field}={term}"


def _parse_again(files: CorpusFiles, path: str) -> YamlFile:
    return YamlFile(files.file(path).path, files.file(path).text.encode())


def _terms_by_spelling(taxonomy: Taxonomy) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the terms, levels and choices that a text can mean, by the field and the text in lower case."""
    terms: dict[tuple[str, str], tuple[str, ...]] = {}
    for facet in (*taxonomy.papers, *taxonomy.exclusions, *taxonomy.evidence):
        for term in facet.terms:
            terms[facet.field, term.id.casefold()] = (term.id,)
        for code, ids in facet.codes.items():
            terms[facet.field, code] = ids
        for term in facet.terms:
            for level in facet.levels:
                terms[term.id, level.id.casefold()] = (level.id,)
    for field in taxonomy.fields:
        for choice in field.choices:
            spelling = (field.name, choice.casefold())
            terms[spelling] = (*terms.get(spelling, ()), choice)
    return terms


def _scalars(nodes: Iterable[Node], field: str = "") -> Iterator[tuple[str, Scalar]]:
    """Yield every scalar below some nodes, names of fields included, with the field to whose value it belongs."""
    for node in nodes:
        if type(node) is Mapping:
            for name, (name_at, value) in node.entries.items():
                yield field, Scalar(name, name_at)
                yield from _scalars((value,), name)
        elif type(node) is Sequence:
            yield from _scalars(node.items, field)
        elif type(node) is Scalar:
            yield field, node
