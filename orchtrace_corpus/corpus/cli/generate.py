"""The commands that generate files from the data (`build`, `figures`, `site`), and `init`.

Each function imports the generators that it calls, since imports are most of the time of a command.
"""

import os
import shlex
from collections.abc import Callable, Sequence
from enum import StrEnum

from orchtrace_corpus.base.annotations import TYPE_CHECKING, Annotated
from orchtrace_corpus.base.commands.declarations import Argument, Context, Option
from orchtrace_corpus.base.commands.options import Check, refuse_together
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, DataFileError, ExitCode
from orchtrace_corpus.base.findings import printable, quote
from orchtrace_corpus.base.text.layout import pluralize
from orchtrace_corpus.corpus.cli import offers
from orchtrace_corpus.corpus.cli.options import Where, argument, option
from orchtrace_corpus.corpus.cli.session import CorpusSession, paper_query
from orchtrace_corpus.corpus.model.records import ReadingName

if TYPE_CHECKING:
    from orchtrace_corpus.base.files import Document


class BuildPart(StrEnum):
    """The kinds of generated files that can be regenerated alone."""

    README = "readme"
    STATS = "stats"
    FIGURES = "figures"
    SCHEMA = "schema"


def build(
    ctx: Context,
    parts: Annotated[
        list[BuildPart] | None, Argument(metavar="[PART]...", help=f"Only these: {', '.join(BuildPart)}.")
    ] = None,
    check: Check = False,
) -> int:
    """Regenerate every generated file, or one kind of them.

    Regenerates the marked regions of README.md and docs/list (readme), docs/STATS.md (stats), docs/figures.md and the
    figures in docs/figures (figures), and the JSON Schemas in docs/schema, by which text editors complete tags and mark
    errors (schema). Without PART also docs/codebook.md, docs/protocol.md and the issue form
    .github/ISSUE_TEMPLATE/suggest-a-paper.yml, if the corpus has them. Generated pages and figures that are no longer
    needed are removed. Data files are not changed: see "corpus check --fix".

    README.md changes only between the marks "<!-- corpus:begin NAME -->" and "<!-- corpus:end NAME -->".
    Regions: contents, counts, page, list, terms FIELD, papers FILTER, claims, figures NAME.

    \b
    Examples:
      corpus build --check
      corpus build readme figures --check
    """
    from orchtrace_corpus.corpus import build as builder
    from orchtrace_corpus.corpus.analysis.statistics import summarise

    session = CorpusSession(*ctx.obj)
    root = session.writable_root()
    pool = session.pool()  # before other files, so that errors of the records are reported first
    files = session.files
    fix = " ".join(("corpus build", *(parts or [])))
    if not parts:
        return write_or_check(session, root, builder.generated(files, summarise(pool)), check=check, fix=fix)
    generators: dict[BuildPart, Callable[[], list[Document]]] = {
        BuildPart.README: lambda: builder.readme_documents(files),
        BuildPart.STATS: lambda: [builder.statistics_document(files, summarise(pool))],
        BuildPart.FIGURES: lambda: builder.figure_documents(root, builder.figure_source(files, summarise(pool))),
        BuildPart.SCHEMA: lambda: builder.schema_documents(files),
    }
    documents: list[Document] = []
    for part in dict.fromkeys(parts):
        part_documents = generators[part]()
        if part is BuildPart.README and not part_documents:
            hint = "Write one with a region: corpus build --help"
            raise DataFileError(f"there is no {builder.README} in {root}", hint)
        documents += part_documents
    return write_or_check(session, root, documents, check=check, fix=fix)


def figures(
    ctx: Context,
    names: Annotated[list[str] | None, argument("[NAME]...", "Only these figures.")] = None,
    by: Annotated[str, option("--by", "FIELD", "Draw the papers by one field instead.", offers.fields)] = "",
    crossed: Annotated[
        tuple[str, str] | None, option("--cross", "A B", "Draw two fields crossed instead.", offers.fields)
    ] = None,
    where: Where = None,
    output: Annotated[
        str, Option("--output", "-o", metavar="FILE", help="Where --by and --cross write: FILE.svg or FILE.pdf.")
    ] = "",
    check: Check = False,
) -> int:
    """Draw the figures, and the page that shows them.

    Writes docs/figures/NAME.svg, for light and dark screens, and docs/figures.md: a heat map of the
    first pair of fields that the taxonomy crosses, every axis and facet, papers by year, the flow of
    screening, and the scale of systems if data/scale.yaml exists. A region "figures NAME ..." in
    README.md shows some of them.

    --by and --cross draw any fields that "corpus stats" counts, as SVG or PDF; without -o, SVG goes to standard output.
    Years without papers are drawn, too. If a field without a vocabulary, such as venue, has more than 30 values, the
    rarest are counted together.

    \b
    Examples:
      corpus figures --cross topology year -o topology.pdf
      corpus figures --by venue --where "year>=2025" -o venues.svg
    """
    from orchtrace_corpus.corpus import build as builder
    from orchtrace_corpus.corpus.analysis.statistics import summarise

    session = CorpusSession(*ctx.obj)
    if by or crossed:
        refuse_together(by=bool(by), cross=bool(crossed))
        if names or check:
            raise CommandUseError("--by and --cross draw one figure", "Leave out names and --check.")
        fields = [by] if by else list(crossed or ())
        return _draw_fields(session, fields, where or [], output)
    if where or output:
        raise CommandUseError("--where and -o need --by FIELD or --cross A B")
    root = session.writable_root()
    source = builder.figure_source(session.files, summarise(session.pool()))
    documents = builder.figure_documents(root, source, names or [])
    fix = " ".join(("corpus figures", *(names or [])))
    return write_or_check(session, root, documents, check=check, fix=fix)


def _draw_fields(session: CorpusSession, names: Sequence[str], where: Sequence[str], output: str) -> int:
    """Draw the papers by one field or two, write the picture, and return the exit code."""
    from orchtrace_corpus.base.files import write_atomic
    from orchtrace_corpus.corpus.analysis.attributes import find, paper_attributes
    from orchtrace_corpus.corpus.render.figures import pictures

    if output and not output.lower().endswith((".svg", ".pdf")):
        raise CommandUseError(f"a figure is SVG or PDF, not {quote(output)}", "Name a file that ends in .svg or .pdf.")
    as_published = session.pool()
    pool = session.pool_by_reading(as_published, ReadingName.PUBLISHED, *names, *where)  # adds `contested` if named
    query = paper_query(where, pool.taxonomy)
    pool = pool._replace(papers=query.select(pool.papers))
    if not pool.papers:
        session.note_no_paper(query, as_published, ReadingName.PUBLISHED)
        return ExitCode.FINDINGS
    attributes = paper_attributes(pool.taxonomy, contested=True)
    picture = pictures.draw_fields(pool, [find(name, attributes) for name in names], where)
    if not output:
        session.output.write(picture)
        session.output.note(pool.taxonomy.noun.counted(len(pool.papers)))
        return ExitCode.DONE
    if output.lower().endswith(".pdf"):
        from orchtrace_corpus.base.text.pdf import pdf

        write_atomic(output, pdf(picture))
    else:
        write_atomic(output, picture)
    session.output.note(f"wrote {printable(output, limit=300)}")
    return ExitCode.DONE


def site(
    ctx: Context,
    output: Annotated[
        str, Option("--output", "-o", metavar="DIR", help="The folder of the site; an existing site is replaced.")
    ] = "site",
    base_url: Annotated[str, option("--base-url", "URL", "The site's address, for link previews and site maps.")] = "",
    repository: Annotated[str, option("--repository", "URL", "The repository, for links to report an error.")] = "",
) -> int:
    """Write the corpus as a static site.

    A folder of pages that work from the file system, a web server or GitHub Pages: the papers with
    search, filters and export, two fields crossed, a page for each paper, each claim and each
    combination that no paper has, scale, screening, candidates, taxonomy and protocol, and a feed. The
    pages load nothing from elsewhere. The same data gives the same files.

    With --base-url, the site also has a sitemap, and pictures for links to it, to each paper, claim and gap;
    drawing them takes Pillow: pip install "orchtrace-corpus[cards]". The folder is replaced as a whole: your
    own files in it are lost.

    \b
    Examples:
      corpus site
      corpus site -o public --base-url https://owner.github.io/corpus
      corpus site --repository https://github.com/owner/corpus
    """
    from orchtrace_corpus.base.files import replace_folder
    from orchtrace_corpus.base.html import web_address
    from orchtrace_corpus.corpus.site import Site, cards, is_site
    from orchtrace_corpus.corpus.site.source import Place, Source

    session = CorpusSession(*ctx.obj)
    urls = []
    for option_name, text in (("--base-url", base_url), ("--repository", repository)):
        address = web_address(text).rstrip("/")
        if text and not address:
            message = f"{option_name} is not a web address: {quote(text)}"
            raise CommandUseError(message, "Write one that begins with https://")
        urls.append(address)
    root = session.root_folder()
    target = os.path.realpath(output)
    if not output or os.path.commonpath((target, os.path.realpath(root))) == target:
        raise CommandUseError(f"{quote(output)} cannot hold the site: the corpus is in it", "Name a folder: -o site")
    files = Site(Source(session.files, session.pool()), Place(*urls)).files()
    count = replace_folder(output, files, is_site)
    session.output.note(f"wrote {printable(output, limit=300)}: {pluralize(count, 'file')}")
    if base_url and not cards.is_available():  # Pillow is not installed
        session.output.note('no pictures for links were drawn; to draw them: pip install "orchtrace-corpus[cards]"')
    session.output.note(f"Open {printable(os.path.join(output, 'index.html'), limit=300)} in a browser.")
    return ExitCode.DONE


def init(
    ctx: Context,
    directory: Annotated[str, Argument(metavar="DIR", help="The new corpus's folder; created if missing.")],
) -> int:
    """Start a corpus of your own, with your own axes.

    Writes a small example that passes "corpus check": three papers, one exclusion, a taxonomy with
    explanations, a README, and a check for pull requests. Existing files are never overwritten.

    \b
    Examples:
      corpus init my-survey
      corpus --root my-survey stats
    """
    from orchtrace_corpus.corpus.build import new_corpus
    from orchtrace_corpus.corpus.scaffold import scaffold

    session: Session = ctx.obj
    if session.root:
        raise CommandUseError("init makes a new corpus and takes no --root", "Write: corpus init DIR")
    if not directory:
        raise CommandUseError("the folder's name is empty", "Write: corpus init DIR")
    files = new_corpus()
    scaffold(directory, files)
    for name in files:
        path = os.path.join(directory, name)
        session.output.write(f"{printable(path, limit=len(path))}\n")
    commands = ["corpus check", "corpus stats", "corpus terms"]
    if not os.path.samefile(directory, os.curdir):
        commands = [f"cd {shlex.quote(directory)}", "corpus check", "corpus stats"]
    session.output.note("\n".join(("Next:", *(f"  {command}" for command in commands))))
    session.output.note("Then make data/taxonomy.yaml yours; its comments say how.")
    if "file://" in files["requirements.txt"]:
        example = "orchtrace-corpus @ git+https://ADDRESS@COMMIT"
        session.output.note(f"requirements.txt names a folder of this machine; before you share, write: {example}")
    return ExitCode.DONE


def write_or_check(
    session: CorpusSession, root: str, documents: "Sequence[Document]", *, check: bool, fix: str
) -> ExitCode:
    """Write the documents that are out of date; with `check`, show their diffs, and the command `fix`."""
    from orchtrace_corpus.base.files import write_stale
    from orchtrace_corpus.corpus.build import README
    from orchtrace_corpus.corpus.readme import SIZE_LIMIT_BYTES

    for document in documents:
        if document.name == README and len(document.wanted.encode()) > SIZE_LIMIT_BYTES:
            session.output.note(f"corpus: {README} is larger than 512 KiB; GitHub will cut it off")
            session.output.note(
                "To fix: leave out regions such as terms; sections with own_page: false can be pages, too"
            )
    if not check:
        removed = {document.name for document in documents if document.is_orphan}
        for name in write_stale(root, documents):
            verb = "removed" if name in removed else "wrote"
            session.output.note(f"{verb} {printable(name, limit=300)}")
        return ExitCode.DONE
    stale = [document for document in documents if document.is_stale]
    for document in stale:
        if not document.is_orphan:
            session.output.write(document.diff)
    for document in stale:
        if document.is_orphan:
            problem = "is no longer made"
        elif document.differs_in_line_ends:
            problem = "has CRLF line ends, not LF"
        else:
            problem = "is not up to date"
        session.output.tell(f"corpus: {printable(document.name, limit=300)} {problem}; to fix: {fix}")
    return ExitCode.FINDINGS if stale else ExitCode.DONE
