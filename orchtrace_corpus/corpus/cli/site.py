"""The command that writes the corpus as a static site: `site`."""

import os
from typing import Annotated

from orchtrace_corpus.base.commands.declarations import Context, Option
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.files import replace_folder
from orchtrace_corpus.base.findings import printable, quote
from orchtrace_corpus.base.html import web_address
from orchtrace_corpus.base.text.layout import pluralize
from orchtrace_corpus.corpus.cli.options import option
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.site import Site, cards, is_site
from orchtrace_corpus.corpus.site.source import Place, Source


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
    session = CorpusSession(*ctx.obj)
    place = Place(*(_address(name, url) for name, url in (("--base-url", base_url), ("--repository", repository))))
    root = session.root_folder()
    target = os.path.realpath(output)
    if not output or os.path.commonpath((target, os.path.realpath(root))) == target:
        raise CommandUseError(f"{quote(output)} cannot hold the site: the corpus is in it", "Name a folder: -o site")
    made = Site(Source(session.files, session.pool()), place)
    number = replace_folder(output, made.files(), is_site)
    session.output.note(f"wrote {printable(output, limit=300)}: {pluralize(number, 'file')}")
    if base_url and not cards.is_available():
        session.output.note('no pictures for links were drawn; to draw them: pip install "orchtrace-corpus[cards]"')
    session.output.note(f"Open {printable(os.path.join(output, 'index.html'), limit=300)} in a browser.")
    return ExitCode.DONE


def _address(option_name: str, text: str) -> str:
    address = web_address(text).rstrip("/")
    if text and not address:
        raise CommandUseError(
            f"{option_name} is not a web address: {quote(text)}", "Write one that begins with https://"
        )
    return address
