"""The taxonomy as tables: which fields there are, and what their terms mean."""

from collections.abc import Mapping, Sequence

from orchtrace_corpus.base.text.layout import Line, Span, display_width, first_names_and_more, line, pad, wrap
from orchtrace_corpus.base.text.table import Cell, Table
from orchtrace_corpus.corpus.model.records import evidence_facets
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy

_PIPE_WIDTH = 100
_NEXT_STEPS = "Definitions: corpus terms FIELD. Filters: corpus list --where FIELD=TERM."


def terms_table(facet: Facet, counts: Mapping[str, int], having: Mapping[str, Sequence[str]] = {}) -> Table:
    """Return the terms of a facet, their meaning, how many records have them, and below some that have one."""
    coded = any(term.code for term in facet.terms)
    expected = tuple(dict.fromkeys(field for term in facet.terms for field, _ in term.typical))
    rows: list[tuple[Cell, ...]] = []
    for term in facet.terms:
        code = (term.code,) if coded else ()
        typical = (", ".join(term.typical_of(field)) for field in expected)
        rows.append((term.id, *code, term.label, counts.get(term.id, 0), *typical, term.definition))
    if facet.allows_na:
        code, blank = (("",) if coded else ()), ("" for _ in expected)
        rows.append(("NA", *code, "Not applicable", counts.get("NA", 0), *blank, "The facet does not apply."))
    typical = (f"typical {field}" for field in expected)
    columns = ("term", *(("code",) if coded else ()), "label", "count", *typical, "definition")
    named = ((term.id, ", ".join(term.synonyms)) for term in facet.terms if term.synonyms)
    notes = [f"corpus search finds {term} also as: {synonyms}." for term, synonyms in named]
    notes += [f"{facet.field}={term}: {first_names_and_more(keys, 5)}" for term, keys in having.items() if keys]
    return Table(facet.field, facet.label, columns, tuple(rows), tuple(notes), wrapped="definition")


def levels_table(facet: Facet) -> Table:
    """Return the levels of a facet with their meaning."""
    rows = tuple((level.id, level.label, level.definition) for level in facet.levels)
    columns = ("level", "label", "definition")
    return Table(f"{facet.field}_levels", f"{facet.label}: levels", columns, rows, wrapped="definition")


def all_terms_table(taxonomy: Taxonomy) -> Table:
    """Return every term of every facet, one row each."""
    rows: list[tuple[Cell, ...]] = []
    for section, facets in _sections(taxonomy):
        for facet in facets:
            head = (section, facet.field, facet.role)
            rows += [(*head, term.id, term.code or None, term.definition) for term in facet.terms]
            rows += [(*head, level.id, "level", level.definition) for level in facet.levels]
    return Table("terms", "Terms", ("of", "field", "role", "term", "code", "definition"), tuple(rows))


def overview(taxonomy: Taxonomy, width: int | None) -> list[Line]:
    """Return all facets on a page: the name to filter by, and its terms."""
    available = min(width or _PIPE_WIDTH, _PIPE_WIDTH)
    lines: list[Line] = []
    for section, facets in _sections(taxonomy):
        if not facets:
            continue
        called, own = (taxonomy.noun.many, taxonomy.fields) if section == "papers" else (section, ())
        lines.append(line(f"Fields of {called}", "heading"))
        label_width = max(display_width(name) for name in (*(f.field for f in facets), *(f.name for f in own))) + 4
        for facet in facets:
            words = [f"{term.code}\0{term.id}" if term.code else term.id.replace(" ", "\0") for term in facet.terms]
            words += ["NA"] if facet.allows_na else []
            text = " ".join(f"{word}," for word in words[:-1]) + f" {words[-1]}"
            if facet.kind is Kind.LEVELS:
                text += f"; each {', '.join(level.id for level in facet.levels)}"
            first, *rest = wrap(text, available, first=pad(f"  {facet.field}", label_width), rest=" " * label_width)
            shown = [part.replace("\0", " ") for part in (first, *rest)]
            style = "key" if facet.role == "axis" else ""
            lines.append((Span(shown[0][:label_width], style), Span(shown[0][label_width:])))
            lines += [line(part) for part in shown[1:]]
        for field in own:
            values = ", ".join(field.choices) or field.kind.value
            first, text = pad(f"  {field.name}", label_width), f"{values}: {field.help}"
            lines += [line(part) for part in wrap(text, available, first=first, rest=" " * label_width)]
        lines.append(line())
    return [*lines, *(line(text, "muted") for text in wrap(_NEXT_STEPS, available))]


def _sections(taxonomy: Taxonomy) -> Sequence[tuple[str, tuple[Facet, ...]]]:
    return ("papers", taxonomy.papers), ("exclusions", taxonomy.exclusions), ("evidence", evidence_facets(taxonomy))
