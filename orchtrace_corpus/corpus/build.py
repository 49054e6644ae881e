"""The generated files of a corpus.

A `Document` has the text of a file as it is (`present`) and as it should be (`wanted`). `corpus build` writes the files
that `generated` returns, and `corpus check` compares them. Nothing in these files depends on the clock, the locale or
the machine. Functions import what only they need: start-up is most of the time of a command.
"""

import os
from collections.abc import Callable, Collection, Iterator, Sequence

from orchtrace_corpus.base.annotations import TYPE_CHECKING
from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.files import Document, document, read_text, with_line_feeds, write_stale
from orchtrace_corpus.base.findings import Finding
from orchtrace_corpus.base.text import regions
from orchtrace_corpus.base.yamlfile.reader import YamlFile
from orchtrace_corpus.corpus.analysis.statistics import Summary, summarise
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.store import CorpusFiles
from orchtrace_corpus.corpus.readme import LIST_FOLDER, readme
from orchtrace_corpus.corpus.render import statistics

if TYPE_CHECKING:
    from orchtrace_corpus.base.yamlfile.writer import Style
    from orchtrace_corpus.corpus.render.figures.plan import Source

README = "README.md"
STATISTICS = "docs/STATS.md"
ISSUE_FORM = ".github/ISSUE_TEMPLATE/suggest-a-paper.yml"
FIGURES = "docs/figures.md"
CODEBOOK_PAGE = "docs/codebook.md"
PROTOCOL_PAGE = "docs/protocol.md"

_GENERATED = "<!-- Generated from data/ by `corpus build`; do not edit. -->\n\n"


def data_documents(files: CorpusFiles) -> list[Document]:
    """Return the data files with a canonical form, and other data files that have CRLF line ends."""
    documents = []
    for row in store.DATA_FILES:
        if not row.is_formatted or not (row.required or files.has(row.path)):
            continue
        file = files.file(row.path)
        if files.is_canonical(row.path):
            documents.append(Document(row.path, file.text, file.text))
        else:
            documents.append(canonical_document(row.path, file, files.style(row.path)))
    canonical_paths = {document.name for document in documents}
    for path in files.paths():
        text = files.text(path) or ""
        if path not in canonical_paths and "\r\n" in text:
            documents.append(Document(path, text, with_line_feeds(text)))
    return documents


def fixed_documents(files: CorpusFiles, findings: Sequence[Finding]) -> list[Document]:
    """Return the data files in which a program can fix some of the findings; nothing else in them changes."""
    from orchtrace_corpus.base.yamlfile.splice import replace_values
    from orchtrace_corpus.corpus.edit.fixes import fixed_values

    documents = []
    for path, texts in fixed_values(files, findings).items():
        documents.append(document(files.root, path, replace_values(files.file(path), texts)))
    return documents


def arxiv_documents(files: CorpusFiles) -> list[Document]:
    """Return `data/arxiv.json` in its canonical form; an empty list if it is missing."""
    present = files.text_file(store.ARXIV)
    if present is None:
        return []
    from orchtrace_corpus.corpus.model.metadata import encode

    return [Document(store.ARXIV, present.text, encode(files.arxiv))]


def readme_documents(files: CorpusFiles) -> list[Document]:
    """Return README.md with its regions updated, and the pages of its list; an empty list if there is no README."""
    root = files.root
    present = read_text(root, README)
    if present is None:
        return []
    updated = readme(with_line_feeds(present), README, files.pool, files)
    pages = [document(root, path, _with_note(page)) for path, page in updated.pages.items()]
    orphans = _find_orphans(root, LIST_FOLDER, ".md", updated.pages, lambda _: _GENERATED)
    return [Document(README, present, updated.text), *pages, *orphans]


def _find_orphans(
    root: str, folder: str, suffix: str, generated_paths: Collection[str], mark_of: Callable[[str], str]
) -> Iterator[Document]:
    """Yield the files in a folder that were generated but no longer are, such as the page of a renamed term.

    `mark_of` returns a text that every generated file contains, by the file's name without the suffix.
    """
    full_path = os.path.join(root, folder)
    if not os.path.isdir(full_path):
        return
    for name in sorted(os.listdir(full_path)):
        path = f"{folder}/{name}"
        if name.endswith(suffix) and path not in generated_paths:
            text = read_text(root, path) or ""
            if mark_of(name.removesuffix(suffix)) in text:
                yield Document(path, text, "", is_orphan=True)


def statistics_document(files: CorpusFiles, summary: Summary) -> Document:
    """Return docs/STATS.md; `summary` must contain unused terms."""
    text = statistics.summary_markdown(summary, files.pool.taxonomy.title)
    return document(files.root, STATISTICS, _with_note(text))


def figure_documents(root: str, source: "Source", names: Sequence[str] = ()) -> list[Document]:
    """Return the figures with some names; without names, all figures, the page that shows them, and orphans."""
    from orchtrace_corpus.corpus.render.figures import plan
    from orchtrace_corpus.corpus.render.figures.pictures import draw

    figures = plan.select_figures(names, plan.figures_of(source))
    captions = {figure: plan.caption(figure, source) for figure in figures}
    pictures = [document(root, figure.path, draw(figure, source, captions[figure])) for figure in figures]
    if names:
        return pictures
    paths = [figure.path for figure in figures]
    orphans = _find_orphans(
        root, plan.FOLDER, ".svg", paths, lambda name: f'aria-labelledby="{name}-title {name}-desc"'
    )
    return [document(root, FIGURES, _with_note(plan.page(captions))), *pictures, *orphans]


def figure_source(files: CorpusFiles, summary: Summary) -> "Source":
    """Return the data that the figures show."""
    from orchtrace_corpus.corpus.model.disputes import contested_tags
    from orchtrace_corpus.corpus.render.figures.plan import Source, contested_values

    pool = files.pool
    runs = files.searches.require()
    screening = None
    if runs:
        from orchtrace_corpus.corpus.analysis import flow

        screening = flow.screening(pool, runs, files.candidates.items, files.protocol.require())
    observations = files.scale.require()
    contested = contested_values(pool, contested_tags(files.disputes.require()))
    return Source(pool, summary, observations, contested, screening)


def schema_documents(files: CorpusFiles) -> list[Document]:
    """Return the JSON Schemas of the data files that the corpus has."""
    from orchtrace_corpus.corpus.render.schema import data_schemas

    rows = [row for row in store.DATA_FILES if row.schema and (row.required or files.has(row.path))]
    texts = data_schemas(rows, files.taxonomy)
    names = [f"docs/schema/{row.name}.schema.json" for row in rows]
    return [document(files.root, name, text) for name, text in zip(names, texts, strict=True)]


def guide_documents(files: CorpusFiles) -> list[Document]:
    """Return the page of the codebook and the page of the protocol, if the corpus has these files."""
    taxonomy = files.pool.taxonomy
    codings = files.codebook.require()
    protocol = files.protocol.require()
    if not codings and protocol is None:
        return []
    from orchtrace_corpus.corpus.render import codebook

    documents = []
    if codings:
        page = _with_note(codebook.codebook_page(codings, taxonomy))
        documents.append(document(files.root, CODEBOOK_PAGE, page))
    if protocol:
        page = _with_note(codebook.protocol_page(protocol, taxonomy))
        documents.append(document(files.root, PROTOCOL_PAGE, page))
    return documents


def issue_form_documents(files: CorpusFiles) -> list[Document]:
    """Return the issue form for suggesting a paper; an empty list if the file is missing (at first it can be empty)."""
    present = read_text(files.root, ISSUE_FORM)
    if present is None:
        return []
    from orchtrace_corpus.corpus.render.schema import form

    return [Document(ISSUE_FORM, present, form(files.taxonomy))]


def generated(files: CorpusFiles, summary: Summary) -> list[Document]:
    """Return every generated file of a corpus; `summary` must contain unused terms."""
    source = figure_source(files, summary)
    return [
        *readme_documents(files),
        statistics_document(files, summary),
        *schema_documents(files),
        *figure_documents(files.root, source),
        *guide_documents(files),
        *issue_form_documents(files),
    ]


def new_corpus() -> dict[str, str]:
    """Return the texts of the files of a new corpus by path: the starter files, then the generated files."""
    from tempfile import TemporaryDirectory

    from orchtrace_corpus.corpus.scaffold import scaffold, starter_files

    files = starter_files()
    with TemporaryDirectory(prefix="corpus-") as folder:
        scaffold(folder, files)
        corpus = store.CorpusFiles(folder)
        generated_paths = write_stale(folder, generated(corpus, summarise(corpus.pool)))
        paths = dict.fromkeys((*files, *generated_paths))
        return {path: read_text(folder, path) or "" for path in paths}


def edited_regions(document: Document) -> list[str]:
    """Return the names of a README's regions whose text is not the generated one."""
    if document.present is None:
        return []
    present_regions = regions.find_regions(document.present, document.name)
    wanted_regions = regions.find_regions(document.wanted, document.name)
    names = []
    for present, wanted in zip(present_regions, wanted_regions, strict=True):
        if document.present[present.start : present.end] != document.wanted[wanted.start : wanted.end]:
            names.append(present.name)
    return names


def _with_note(text: str) -> str:
    """Return a generated page with a note below its title that says so."""
    title, _, rest = text.partition("\n\n")
    return f"{title}\n\n{_GENERATED}{rest}"


def canonical_document(name: str, file: YamlFile, style: "Style") -> Document:
    """Return a data file with its canonical form.

    Raise `DataFileError` if the file has errors, or a comment at a place that the canonical form does not have.
    """
    from orchtrace_corpus.base.yamlfile.writer import MisplacedCommentError, canonical

    try:
        return Document(name, file.text, canonical(file, style))
    except MisplacedCommentError as error:
        message = f"{file.location(error.at)}: this comment has no place in the canonical form"
        raise DataFileError(message, "Move it above its record or its field, or to the end of a line.") from error
    except ValueError as error:
        raise DataFileError(f"{file.path} cannot be formatted: it has errors", "See corpus check data.") from error
