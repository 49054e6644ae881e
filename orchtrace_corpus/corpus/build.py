"""Every generated file of a corpus: what it should say, and whether it does.

`generated` is the one list that `corpus build` writes and `corpus check` compares, so the two cannot
disagree. Nothing in these files depends on the clock, the locale or the machine.

What only some of the files need is imported where they are made: start-up is most of the time of a command.
"""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.files import Document as Document
from orchtrace_corpus.base.files import document as document
from orchtrace_corpus.base.files import read_text as _read
from orchtrace_corpus.base.files import write_stale
from orchtrace_corpus.base.findings import Finding
from orchtrace_corpus.base.text import regions
from orchtrace_corpus.base.yamlfile.reader import YamlFile
from orchtrace_corpus.corpus.analysis.statistics import Summary, summarise
from orchtrace_corpus.corpus.model.records import Loaded, Pool, require_none
from orchtrace_corpus.corpus.model.store import (
    ARXIV,
    CANDIDATES,
    CLAIMS,
    CODEBOOK,
    DISPUTES,
    EXCLUSIONS,
    PAPERS,
    PROTOCOL,
    PUBLISHED,
    SCALE,
    SEARCHES,
    read_arxiv,
    read_candidates,
    read_claims,
    read_codebook,
    read_disputes,
    read_file,
    read_protocol,
    read_scale,
    read_searches,
)
from orchtrace_corpus.corpus.model.taxonomy import Taxonomy
from orchtrace_corpus.corpus.readme import LIST_FOLDER, readme
from orchtrace_corpus.corpus.render import statistics

if TYPE_CHECKING:
    from orchtrace_corpus.base.yamlfile.writer import Style
    from orchtrace_corpus.corpus.analysis.claims import Verdict
    from orchtrace_corpus.corpus.model.candidates import CandidateFile
    from orchtrace_corpus.corpus.model.disputes import DisputeFile
    from orchtrace_corpus.corpus.model.scale import ScaleFile
    from orchtrace_corpus.corpus.render.figures.plan import Source

README = "README.md"
STATISTICS = "docs/STATS.md"
PAPERS_SCHEMA = "docs/schema/papers.schema.json"
EXCLUSIONS_SCHEMA = "docs/schema/exclusions.schema.json"
PROTOCOL_SCHEMA = "docs/schema/protocol.schema.json"
ISSUE_FORM = ".github/ISSUE_TEMPLATE/suggest-a-paper.yml"
FIGURES = "docs/figures.md"
CODEBOOK_PAGE = "docs/codebook.md"
PROTOCOL_PAGE = "docs/protocol.md"

write = write_stale
"""Writes what is stale of the documents that are made here."""

_GENERATED = "<!-- Generated from data/ by `corpus build`; do not edit. -->\n\n"


def data_documents(
    root: str, taxonomy: Taxonomy, loaded: Loaded | None = None, candidates: "CandidateFile | None" = None
) -> list[Document]:
    """The data files and their canonical form; those that were read and kept their nodes are not read again.

    Raises:
        DataFileError: A file cannot be read or has errors of syntax, or a comment stands where the
            canonical form has no line for it.
    """
    from orchtrace_corpus.corpus.model.record_fields import candidate_style, exclusion_style, paper_style

    papers = loaded.paper_places.file if loaded else read_file(root, PAPERS)
    exclusions = loaded.exclusion_places.file if loaded else read_file(root, EXCLUSIONS)
    styled = [(PAPERS, papers, paper_style(taxonomy)), (EXCLUSIONS, exclusions, exclusion_style(taxonomy))]
    if os.path.lexists(os.path.join(root, CANDIDATES)):
        file = candidates.places.file if candidates and candidates.places else read_file(root, CANDIDATES)
        styled.append((CANDIDATES, file, candidate_style(taxonomy)))
    if os.path.lexists(os.path.join(root, SEARCHES)):
        from orchtrace_corpus.corpus.model.searches import search_style

        styled.append((SEARCHES, read_file(root, SEARCHES), search_style()))
    return [canonical_document(*one) for one in styled]


def mended_documents(
    root: str, loaded: Loaded, findings: Sequence[Finding], candidates: "CandidateFile | None" = None
) -> list[Document]:
    """The data files with those findings mended that have a mend; nothing else in them changes.

    Args:
        root: The corpus's folder.
        loaded: Its data, with the records of its files kept.
        findings: What to mend; findings without a mend are passed over.
        candidates: Its candidates, likewise; those of a corpus that has none are left out.

    Raises:
        DataFileError: A value cannot be changed in place.
    """
    from orchtrace_corpus.base.yamlfile.splice import replace_values
    from orchtrace_corpus.corpus.edit import fixes

    documents = []
    files = {PAPERS: loaded.paper_places.file, EXCLUSIONS: loaded.exclusion_places.file}
    files |= {CANDIDATES: candidates.places.file} if candidates and candidates.places else {}
    for name, file in files.items():
        changes = fixes.changes(file, findings, loaded.pool.taxonomy) if loaded.pool else {}
        if changes:
            documents.append(Document(name, _read(root, name), replace_values(file, changes)))
    return documents


def arxiv_documents(root: str) -> list[Document]:
    """What arXiv said last and its canonical form; nothing where the corpus has no file of it.

    Raises:
        DataFileError: The file cannot be read, or is not in its form.
    """
    if not os.path.lexists(os.path.join(root, ARXIV)):
        return []
    from orchtrace_corpus.corpus.model.arxiv_file import encode

    return [document(root, ARXIV, encode(read_arxiv(root)))]


def readme_documents(
    root: str, pool: Pool, disputes: "DisputeFile | None" = None, candidates: "CandidateFile | None" = None
) -> list[Document]:
    """README.md with its regions made anew, and the pages of its sections, orphans included; none where it is missing.

    `disputes` and `candidates` save reading these files again.

    Raises:
        DataFileError: A region is unknown or not closed.
        InvalidCorpusError: The disputes, the claims or the candidates have errors.
    """
    present = _read(root, README)
    if present is None:
        return []

    def contested() -> frozenset[tuple[str, str]]:
        from orchtrace_corpus.corpus.model.disputes import contested

        return contested((disputes or read_disputes(root, pool.taxonomy)).sound())

    def verdicts() -> "tuple[Verdict, ...]":
        from orchtrace_corpus.corpus.analysis.claims import evaluate

        claims, awaiting = read_claims(root), candidates or read_candidates(root, pool.taxonomy)
        require_none("the claims have errors:", claims.findings)
        return evaluate(claims.claims, pool, candidates=awaiting.sound() if awaiting.places else None)

    made = readme(present, README, pool, lambda: read_scale(root, pool).sound(), contested, verdicts)
    pages = [document(root, path, _marked(page)) for path, page in made.pages.items()]
    left = _orphans(root, LIST_FOLDER, ".md", made.pages, lambda _: _GENERATED)
    return [Document(README, present, made.text), *pages, *left]


def _orphans(
    root: str, folder: str, ending: str, made: Collection[str], mark: Callable[[str], str]
) -> Iterator[Document]:
    """The files in a folder that are ours and made no longer, such as those of a term or an axis that was renamed.

    Args:
        root: The corpus's folder.
        folder: The folder below it.
        ending: How the names of these files end.
        made: Those that are made.
        mark: From a name without its ending to what says in a file that it is ours.
    """
    path = os.path.join(root, folder)
    for name in sorted(os.listdir(path)) if os.path.isdir(path) else ():
        below = f"{folder}/{name}"
        if name.endswith(ending) and below not in made:
            text = _read(root, below) or ""
            if mark(name.removesuffix(ending)) in text:
                yield Document(below, text, "", is_orphan=True)


def statistics_document(root: str, pool: Pool, summary: Summary | None = None) -> Document:
    """docs/STATS.md; `summary`, unused terms included, saves counting again."""
    text = statistics.summary_markdown(summary or summarise(pool), pool.taxonomy.title)
    return document(root, STATISTICS, _marked(text))


def figure_documents(root: str, source: "Source", names: Sequence[str] = ()) -> list[Document]:
    """The figures, the page that shows them all, and what is drawn no longer; only the figures named, if any are.

    A figure of ours says its own name in its first line.

    Raises:
        CommandUseError: There is no figure of a name.
    """
    from orchtrace_corpus.corpus.render.figures import draw, page, plan

    figures = plan.chosen(names, plan.figures_of(source))
    said = {figure: plan.caption(figure, source) for figure in figures}
    drawn = [document(root, figure.path, draw(figure, source, said[figure])) for figure in figures]
    if names:
        return drawn
    known = [figure.path for figure in figures]
    left = _orphans(root, plan.FOLDER, ".svg", known, lambda name: f'aria-labelledby="{name}-title {name}-desc"')
    return [document(root, FIGURES, _marked(page(said))), *drawn, *left]


def figure_source(
    root: str,
    pool: Pool,
    scale: "ScaleFile | None" = None,
    disputes: "DisputeFile | None" = None,
    candidates: "CandidateFile | None" = None,
    summary: Summary | None = None,
) -> "Source":
    """What the figures are drawn from; what the caller has read already is not read again.

    Raises:
        DataFileError: A file cannot be read.
        InvalidCorpusError: What is known of scale, or the disputes, have errors.
    """
    from orchtrace_corpus.corpus.model.disputes import contested
    from orchtrace_corpus.corpus.render.figures.plan import Source, contested_values

    screening = None
    if runs := read_searches(root).sound():
        from orchtrace_corpus.corpus.analysis import flow

        awaiting = (candidates or read_candidates(root, pool.taxonomy)).candidates
        screening = flow.screening(pool, runs, awaiting, read_protocol(root, pool.taxonomy).sound())
    observations = (scale or read_scale(root, pool)).sound()
    disputed = contested((disputes or read_disputes(root, pool.taxonomy)).sound())
    summary = summary or summarise(pool)
    return Source(pool, summary, observations, contested_values(pool, disputed), screening)


def schema_documents(root: str, taxonomy: Taxonomy) -> list[Document]:
    """The JSON Schemas of the data files."""
    from orchtrace_corpus.corpus.render import schema

    wanted = [(PAPERS_SCHEMA, "papers"), (EXCLUSIONS_SCHEMA, "exclusions")]
    further = {CANDIDATES: "candidates", SCALE: "scale", CLAIMS: "claims", DISPUTES: "disputes"}
    further |= {PUBLISHED: "published pool", CODEBOOK: "codebook", PROTOCOL: "protocol", SEARCHES: "searches"}
    for data, name in further.items():
        if os.path.lexists(os.path.join(root, data)):
            wanted.append((f"docs/schema/{name.split()[0]}.schema.json", name))
    texts = schema.data_schemas([name for _, name in wanted], taxonomy)
    return [Document(path, _read(root, path), text) for (path, _), text in zip(wanted, texts, strict=True)]


def guide_documents(root: str, pool: Pool) -> list[Document]:
    """The pages of the codebook and of the protocol, for each that the corpus has.

    Raises:
        InvalidCorpusError: One of them has errors.
    """
    codings, protocol = read_codebook(root, pool).sound(), read_protocol(root, pool.taxonomy).sound()
    if not codings and protocol is None:
        return []
    from orchtrace_corpus.corpus.render import codebook

    pages = {CODEBOOK_PAGE: codebook.codebook_page(codings, pool.taxonomy)} if codings else {}
    pages |= {PROTOCOL_PAGE: codebook.protocol_page(protocol, pool.taxonomy)} if protocol else {}
    return [document(root, name, _marked(text)) for name, text in pages.items()]


def issue_form_documents(root: str, taxonomy: Taxonomy) -> list[Document]:
    """The issue form that suggests a paper; nothing where the corpus has none, which may be an empty file at first."""
    present = _read(root, ISSUE_FORM)
    if present is None:
        return []
    from orchtrace_corpus.corpus.render.schema import form

    return [Document(ISSUE_FORM, present, form(taxonomy))]


def generated(
    root: str,
    pool: Pool,
    scale: "ScaleFile | None" = None,
    disputes: "DisputeFile | None" = None,
    candidates: "CandidateFile | None" = None,
    summary: Summary | None = None,
) -> list[Document]:
    """Every generated file of a corpus; the files that are given are not read again, nor is the summary made again."""
    disputes = disputes or read_disputes(root, pool.taxonomy)
    source = figure_source(root, pool, scale, disputes, candidates, summary)
    return [
        *readme_documents(root, pool, disputes, candidates),
        statistics_document(root, pool, source.summary),
        *schema_documents(root, pool.taxonomy),
        *figure_documents(root, source),
        *guide_documents(root, pool),
        *issue_form_documents(root, pool.taxonomy),
    ]


def new_names(taxonomy: Taxonomy) -> tuple[str, ...]:
    """The files that building a new corpus makes, its README left out."""
    from orchtrace_corpus.corpus.render.figures import plan

    figures = (figure.path for figure in plan.plan(taxonomy, with_scale=False))
    return STATISTICS, PAPERS_SCHEMA, EXCLUSIONS_SCHEMA, PROTOCOL_SCHEMA, PROTOCOL_PAGE, FIGURES, *figures


def edited_regions(document: Document) -> list[str]:
    """The names of a README's regions whose text differs from what the data gives."""
    if document.present is None:
        return []
    present, wanted = document.present, document.wanted
    both = zip(*(regions.find_regions(text, document.name) for text in (present, wanted)), strict=True)
    return [old.name for old, new in both if present[old.start : old.end] != wanted[new.start : new.end]]


def _marked(text: str) -> str:
    """A document with the note below its title that it is generated."""
    title, _, rest = text.partition("\n\n")
    return f"{title}\n\n{_GENERATED}{rest}"


def canonical_document(name: str, file: YamlFile, style: "Style") -> Document:
    """A data file and its canonical form.

    Raises:
        DataFileError: It has errors of syntax, or a comment stands where the form has no line for it.
    """
    from orchtrace_corpus.base.yamlfile.writer import MisplacedCommentError, canonical

    try:
        return Document(name, file.text, canonical(file, style))
    except MisplacedCommentError as error:
        message = f"{file.location(error.at)}: this comment has no place in the canonical form"
        raise DataFileError(message, "Move it above its record or its field, or to the end of a line.") from error
    except ValueError as error:
        raise DataFileError(f"{file.path} cannot be formatted: it has errors", "See corpus validate.") from error
