"""Every generated file of a corpus, as it is and as it should be.

`corpus build` writes the files that `generated` returns, and `corpus check` compares them. Nothing in these files
depends on the clock, the locale or the machine. Modules that only some files need are imported where they are
made: start-up is most of the time of a command.
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
    """Return the data files that have a canonical form, each with that form, and the others with CRLF line ends."""
    documents = []
    for row in store.DATA_FILES:
        if not row.is_formatted or not (row.required or files.has(row.path)):
            continue
        file = files.file(row.path)
        if files.is_canonical(row.path):
            documents.append(Document(row.path, file.text, file.text))
        else:
            documents.append(canonical_document(row.path, file, files.style(row.path)))
    formatted = {document.name for document in documents}
    for path in files.paths():
        text = "" if path in formatted else files.text(path) or ""
        if "\r\n" in text:
            documents.append(Document(path, text, with_line_feeds(text)))
    return documents


def fixed_documents(files: CorpusFiles, findings: Sequence[Finding]) -> list[Document]:
    """Return the data files with those findings fixed that have an automatic fix; nothing else in them changes."""
    from orchtrace_corpus.base.yamlfile.splice import replace_values
    from orchtrace_corpus.corpus.edit.fixes import changes

    return [
        document(files.root, path, replace_values(files.file(path), fixed))
        for path, fixed in changes(files, findings).items()
    ]


def arxiv_documents(files: CorpusFiles) -> list[Document]:
    """Return the file of arXiv's last answers in its canonical form, if the corpus has one."""
    present = files.text_file(store.ARXIV)
    if present is None:
        return []
    from orchtrace_corpus.corpus.model.metadata import encode

    return [Document(store.ARXIV, present.text, encode(files.arxiv))]


def readme_documents(files: CorpusFiles) -> list[Document]:
    """Return README.md with its regions made anew, and the pages of its list; nothing where it is missing."""
    root = files.root
    present = read_text(root, README)
    if present is None:
        return []
    made = readme(with_line_feeds(present), README, files.pool, files)
    pages = [document(root, path, _marked(page)) for path, page in made.pages.items()]
    outdated = _orphans(root, LIST_FOLDER, ".md", made.pages, lambda _: _GENERATED)
    return [Document(README, present, made.text), *pages, *outdated]


def _orphans(
    root: str, folder: str, ending: str, made: Collection[str], mark: Callable[[str], str]
) -> Iterator[Document]:
    """Yield the generated files in a folder that are no longer `made`, such as those of a renamed term.

    `mark` returns the text by which a generated file is known, from its name without the ending.
    """
    path = os.path.join(root, folder)
    for name in sorted(os.listdir(path)) if os.path.isdir(path) else ():
        below = f"{folder}/{name}"
        if name.endswith(ending) and below not in made:
            text = read_text(root, below) or ""
            if mark(name.removesuffix(ending)) in text:
                yield Document(below, text, "", is_orphan=True)


def statistics_document(files: CorpusFiles, summary: Summary) -> Document:
    """Return docs/STATS.md of a summary with unused terms."""
    return document(files.root, STATISTICS, _marked(statistics.summary_markdown(summary, files.pool.taxonomy.title)))


def figure_documents(root: str, source: "Source", names: Sequence[str] = ()) -> list[Document]:
    """Return the figures, the page that shows them all, and outdated figures; of `names`, if any, only those figures.

    A generated figure has its own name in its first line.
    """
    from orchtrace_corpus.corpus.render.figures import plan
    from orchtrace_corpus.corpus.render.figures.pictures import draw

    figures = plan.chosen(names, plan.figures_of(source))
    said = {figure: plan.caption(figure, source) for figure in figures}
    drawn = [document(root, figure.path, draw(figure, source, said[figure])) for figure in figures]
    if names:
        return drawn
    known = [figure.path for figure in figures]
    outdated = _orphans(root, plan.FOLDER, ".svg", known, lambda name: f'aria-labelledby="{name}-title {name}-desc"')
    return [document(root, FIGURES, _marked(plan.page(said))), *drawn, *outdated]


def figure_source(files: CorpusFiles, summary: Summary) -> "Source":
    """Return the values that the figures show."""
    from orchtrace_corpus.corpus.model.disputes import contested
    from orchtrace_corpus.corpus.render.figures.plan import Source, contested_values

    pool, screening = files.pool, None
    if runs := files.searches.require():
        from orchtrace_corpus.corpus.analysis import flow

        screening = flow.screening(pool, runs, files.candidates.items, files.protocol.require())
    observations, disputed = files.scale.require(), contested(files.disputes.require())
    return Source(pool, summary, observations, contested_values(pool, disputed), screening)


def schema_documents(files: CorpusFiles) -> list[Document]:
    """Return the JSON Schemas of the data files that the corpus has."""
    from orchtrace_corpus.corpus.render.schema import data_schemas

    rows = [row for row in store.DATA_FILES if row.schema and (row.required or files.has(row.path))]
    texts = data_schemas(rows, files.taxonomy)
    names = [f"docs/schema/{row.name}.schema.json" for row in rows]
    return [document(files.root, name, text) for name, text in zip(names, texts, strict=True)]


def guide_documents(files: CorpusFiles) -> list[Document]:
    """Return the pages of the codebook and of the protocol, for each that the corpus has."""
    taxonomy = files.pool.taxonomy
    codings, protocol = files.codebook.require(), files.protocol.require()
    if not codings and protocol is None:
        return []
    from orchtrace_corpus.corpus.render import codebook

    pages = {CODEBOOK_PAGE: codebook.codebook_page(codings, taxonomy)} if codings else {}
    pages |= {PROTOCOL_PAGE: codebook.protocol_page(protocol, taxonomy)} if protocol else {}
    return [document(files.root, name, _marked(text)) for name, text in pages.items()]


def issue_form_documents(files: CorpusFiles) -> list[Document]:
    """Return the issue form that suggests a paper; nothing where the corpus has none, which may be empty at first."""
    present = read_text(files.root, ISSUE_FORM)
    if present is None:
        return []
    from orchtrace_corpus.corpus.render.schema import form

    return [Document(ISSUE_FORM, present, form(files.taxonomy))]


def generated(files: CorpusFiles, summary: Summary) -> list[Document]:
    """Return every generated file of a corpus, by a summary with unused terms."""
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
    """Return the text of every file of a new corpus by its path: the starter files, then those that are generated."""
    from tempfile import TemporaryDirectory

    from orchtrace_corpus.corpus.scaffold import scaffold, starter_files

    files = starter_files()
    with TemporaryDirectory(prefix="corpus-") as folder:
        scaffold(folder, files)
        corpus = store.CorpusFiles(folder)
        names = dict.fromkeys((*files, *write_stale(folder, generated(corpus, summarise(corpus.pool)))))
        return {name: read_text(folder, name) or "" for name in names}


def edited_regions(document: Document) -> list[str]:
    """Return the names of a README's regions that differ from the data."""
    if document.present is None:
        return []
    present, wanted = document.present, document.wanted
    both = zip(*(regions.find_regions(text, document.name) for text in (present, wanted)), strict=True)
    return [old.name for old, new in both if present[old.start : old.end] != wanted[new.start : new.end]]


def _marked(text: str) -> str:
    """Return a document with a note below its title that it is generated."""
    title, _, rest = text.partition("\n\n")
    return f"{title}\n\n{_GENERATED}{rest}"


def canonical_document(name: str, file: YamlFile, style: "Style") -> Document:
    """Return a data file with its canonical form, which has no place for some comments, and for errors of syntax."""
    from orchtrace_corpus.base.yamlfile.writer import MisplacedCommentError, canonical

    try:
        return Document(name, file.text, canonical(file, style))
    except MisplacedCommentError as error:
        message = f"{file.location(error.at)}: this comment has no place in the canonical form"
        raise DataFileError(message, "Move it above its record or its field, or to the end of a line.") from error
    except ValueError as error:
        raise DataFileError(f"{file.path} cannot be formatted: it has errors", "See corpus check data.") from error
