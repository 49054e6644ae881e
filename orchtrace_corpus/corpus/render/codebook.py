"""The taxonomy as tables, the codebook and the protocol as pages, and the rules of one tag for the terminal."""

from collections.abc import Iterator, Mapping, Sequence

from orchtrace_corpus.base.text import layout
from orchtrace_corpus.base.text.layout import Line, Span, display_width, entry, first_names_and_more, line, pad, wrap
from orchtrace_corpus.base.text.table import Cell, Table, markdown, markdown_text
from orchtrace_corpus.corpus.model.codebook import Coding, Protocol, Rule
from orchtrace_corpus.corpus.model.disputes import NOT_ARISING
from orchtrace_corpus.corpus.model.records import evidence_facets
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Noun, Taxonomy, Term

_MAX_WIDTH = 100
"""The most columns that are used, which is also the width where the output is no terminal."""
_NEXT_STEPS = "Definitions: corpus terms FIELD. Filters: corpus list --where FIELD=TERM."


def terms_table(facet: Facet, counts: Mapping[str, int], examples: Mapping[str, Sequence[str]] = {}) -> Table:
    """Return the terms of a facet with their meaning and counts; `examples` are keys of records by term, for notes."""
    terms = facet.terms
    if facet.allows_na:
        terms = (*terms, Term("NA", "Not applicable", "The facet does not apply."))
    columns: dict[str, list[Cell]] = {"term": [term.id for term in terms]}
    if any(term.code for term in terms):
        columns["code"] = [term.code for term in terms]
    columns |= {"label": [term.label for term in terms], "count": [counts.get(term.id, 0) for term in terms]}
    for field in dict.fromkeys(field for term in terms for field, _ in term.typical):
        columns[f"typical {field}"] = [", ".join(term.typical_of(field)) for term in terms]
    columns["definition"] = [term.definition for term in terms]
    notes = [f"corpus search finds {term.id} also as: {', '.join(term.synonyms)}." for term in terms if term.synonyms]
    notes += [f"{facet.field}={term}: {first_names_and_more(keys, 5)}" for term, keys in examples.items() if keys]
    rows = tuple(zip(*columns.values(), strict=True))
    return Table(facet.field, facet.label, tuple(columns), rows, tuple(notes), wrapped="definition")


def levels_table(facet: Facet) -> Table:
    """Return the levels of a facet with their meaning."""
    rows = tuple((level.id, level.label, level.definition) for level in facet.levels)
    columns = ("level", "label", "definition")
    return Table(f"{facet.field}_levels", f"{facet.label}: levels", columns, rows, wrapped="definition")


def all_terms_table(taxonomy: Taxonomy) -> Table:
    """Return every term of every facet, a row for each."""
    rows: list[tuple[Cell, ...]] = []
    for section, facets in _sections(taxonomy):
        for facet in facets:
            head = (section, facet.field, facet.role)
            rows += [(*head, term.id, term.code or None, term.definition) for term in facet.terms]
            rows += [(*head, level.id, "level", level.definition) for level in facet.levels]
    return Table("terms", "Terms", ("of", "field", "role", "term", "code", "definition"), tuple(rows))


def overview(taxonomy: Taxonomy, width: int | None) -> list[Line]:
    """Return all facets, each with the name to filter by and its terms."""
    available = min(width or _MAX_WIDTH, _MAX_WIDTH)
    lines: list[Line] = []
    for section, facets in _sections(taxonomy):
        if not facets:
            continue
        noun = taxonomy.noun.many if section == "papers" else section
        lines.append(line(f"Fields of {noun}", "heading"))
        entries = []
        for facet in facets:
            words = [f"{term.code} {term.id}".strip().replace(" ", layout.NO_BREAK) for term in facet.terms]
            if facet.allows_na:
                words.append("NA")
            text = ", ".join(words)
            if facet.kind is Kind.LEVELS:
                text += f"; each {', '.join(level.id for level in facet.levels)}"
            entries.append((facet.field, "key" if facet.role == "axis" else "", text))
        if section == "papers":
            for field in taxonomy.fields:
                choices = ", ".join(field.choices) or field.kind.value
                entries.append((field.name, "", f"{choices}: {field.help}"))
        label_width = max(display_width(name) for name, _, _ in entries) + 4
        for name, style, text in entries:
            first, *rest = wrap(text, available, first=pad(f"  {name}", label_width), rest=" " * label_width)
            lines.append((Span(first[:label_width], style), Span(first[label_width:])))
            lines += [line(part) for part in rest]
        lines.append(line())
    return [*lines, *(line(text, "muted") for text in wrap(_NEXT_STEPS, available))]


def _sections(taxonomy: Taxonomy) -> Sequence[tuple[str, tuple[Facet, ...]]]:
    return ("papers", taxonomy.papers), ("exclusions", taxonomy.exclusions), ("evidence", evidence_facets(taxonomy))


def lines(codings: Sequence[Coding], width: int | None) -> list[Line]:
    """Return the rules and cases of some tags, for the terminal."""
    available = min(width or _MAX_WIDTH, _MAX_WIDTH)
    lines: list[Line] = []
    for coding in codings:
        lines += [line(), line(f"How to code {coding.tag}", "heading")]
        entries = [(f"rule {position}", rule) for position, rule in enumerate(coding.rules, 1)]
        entries += [("include", text) for text in coding.include]
        entries += [("exclude", text) for text in coding.exclude]
        entries += [("case", f"{case.record}: {case.value}. {case.why}") for case in coding.cases]
        for label, text in entries:
            lines += entry(label, text, 10, available)
    return lines


def codebook_page(codings: Sequence[Coding], taxonomy: Taxonomy) -> str:
    """Return the codebook as a Markdown page: definitions of the taxonomy, rules and cases of the codebook."""
    codings_by_tag = {coding.tag: coding for coding in codings}
    parts = [f"# Codebook: {markdown_text(taxonomy.title)}\n"]
    for facet in taxonomy.papers:
        terms = [term for term in facet.terms if facet.kind is Kind.LEVELS and term.id in codings_by_tag]
        if facet.field not in codings_by_tag and not terms:
            continue
        parts.append(f"## {markdown_text(facet.label)}\n\n{markdown_text(facet.definition)}\n")
        parts.append(_meanings(facet.levels or facet.terms, "level" if facet.levels else "term"))
        if facet.kind is Kind.LEVELS:
            parts[-1] += f"\nA record that lacks a term has `{NOT_ARISING}`: the decision does not arise.\n"
        if facet.field in codings_by_tag:
            parts.append(_section(codings_by_tag[facet.field], facet))
        for term in terms:
            heading = " ".join(part for part in (term.code, term.label) if part)
            parts.append(f"### {markdown_text(heading)}\n\n{markdown_text(term.definition)}\n")
            parts.append(_section(codings_by_tag[term.id], facet))
    for facet in taxonomy.evidence:
        parts.append(f"## {markdown_text(facet.label)}\n\n{markdown_text(facet.definition)}\n")
        parts.append(_meanings(facet.terms, "term"))
    return "\n".join(parts)


def _meanings(terms: Sequence[Term], noun: str) -> str:
    return _table((noun, "meaning"), [(term.id, term.definition) for term in terms])


def _section(coding: Coding, facet: Facet) -> str:
    parts = ["".join(f"{position}. {markdown_text(rule)}\n" for position, rule in enumerate(coding.rules, 1))]
    if coding.include:
        parts.append(f"Include:\n\n{_bullets(coding.include)}")
    if coding.exclude:
        parts.append(f"Exclude:\n\n{_bullets(coding.exclude)}")
    noun = "level" if facet.kind is Kind.LEVELS else "term"
    parts.append(_table(("record", noun, "why"), [(case.record, case.value, case.why) for case in coding.cases]))
    return "\n".join(part for part in parts if part)


def protocol_page(protocol: Protocol, taxonomy: Taxonomy) -> str:
    """Return the protocol as a Markdown page."""
    noun = taxonomy.noun.with_article
    subject = f"{noun[:1].upper()}{noun[1:]}"
    family_labels = {family.id: family.label for family in protocol.families}
    stage_labels = {term.id: term.label for facet in taxonomy.exclusions for term in facet.terms}
    families = [(family.label, "; ".join(family.terms)) for family in protocol.families]
    queries = [(query.name, family_labels[query.family], query.query, query.by) for query in protocol.queries]
    screening = [(stage_labels[stage.stage], stage.rule) for stage in protocol.stages]
    about_terms = "They are not query strings of one database."
    about_queries = "In the search syntax of arXiv's API. `ours` marks a string of this project"
    dated = "The protocol"
    if taxonomy.published:
        about_terms = f"Terms as published. {about_terms}"
        about_queries += "; the survey published none"
        dated = "The published pool"
    sections = (
        ("Sources", "", _bullets(protocol.sources)),
        ("Included", f"{subject} is included if at least one of these holds.", _rule_bullets(protocol.include)),
        ("Excluded", f"{subject} is excluded if it is only one of these.", _rule_bullets(protocol.exclude)),
        ("Families", about_terms, _table(("family", "terms"), families)),
        ("Queries", f"{about_queries}.", _table(("name", "family", "query", "by"), queries)),
        ("Searching", "", _bullets(list(_searching(protocol, taxonomy.noun)))),
        ("Screening", "", _table(("stage", f"{noun} is excluded if"), screening)),
        ("Evidence", "", _table(("source", "carries"), protocol.evidence)),
        ("Updates", "", _bullets(protocol.update)),
    )
    head = f"{markdown_text(protocol.kind)} {dated} is of {protocol.day}: <{protocol.source}>."
    parts = [f"# Protocol: {markdown_text(taxonomy.title)}\n", f"{head}\n"]
    for heading, introduction, text in sections:
        if text:
            parts.append(f"## {heading}\n\n{introduction}\n\n{text}" if introduction else f"## {heading}\n\n{text}")
    return "\n".join(parts)


def _searching(protocol: Protocol, noun: Noun) -> Iterator[str]:
    """Yield sentences on what a run of searches asks, and of whom; nothing if the protocol has no queries."""
    if not protocol.queries:
        return
    within = f" in {', '.join(protocol.search_categories)}" if protocol.search_categories else ""
    first = protocol.search_from or protocol.day
    yield f"corpus discover asks arXiv every query{within}, about {noun.many} submitted since {first}."
    yield "Later runs begin two weeks before the last day that a query was asked about, and end with yesterday."
    if protocol.citing:
        works = f"works that cite, or are cited by, at least {protocol.citing_least} of the {noun.many}"
        yield f"With a key, it asks OpenAlex for {works} with {' and '.join(protocol.citing)}."
    yield "Every run is on record in data/searches.yaml; corpus stats --screening and the figure of screening count it."


def _rule_bullets(rules: Sequence[Rule]) -> str:
    return _bullets([rule.rule for rule in rules])


def _bullets(texts: Sequence[str]) -> str:
    return "".join(f"- {markdown_text(text)}\n" for text in texts)


def _table(columns: tuple[str, ...], rows: Sequence[Sequence[str]]) -> str:
    return markdown(Table("", "", columns, tuple(map(tuple, rows)))) if rows else ""
