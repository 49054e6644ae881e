"""Made-up papers, and the feeds in which arXiv's query API has described papers in three eras."""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from enum import StrEnum
from xml.sax.saxutils import escape, quoteattr

from orchtrace_corpus.corpus.model.metadata import Metadata
from orchtrace_corpus.corpus.model.records import Paper

_NOW = "2026-11-21T00:00:00Z"


class Era(StrEnum):
    """The shapes in which feeds have come."""

    OLD = "old"
    LAUNCH = "launch"
    CURRENT = "current"


def record(
    arxiv_id: str,
    *,
    version: int = 1,
    title: str = "A Toy Paper",
    authors: Sequence[str] = ("Ada Toy",),
    **more: object,
) -> Metadata:
    """One version of a made-up paper; `more` sets other fields of `Metadata`."""
    values: dict[str, object] = {
        "abstract": "We make a toy, and show that it is one.",
        "published": "2024-01-02T03:04:05Z",
        "updated": f"2024-01-{version + 1:02}T03:04:05Z",
        "primary_category": "cs.MA",
        "categories": ("cs.MA", "cs.LG"),
    }
    return Metadata(arxiv_id, version, title, tuple(authors), **{**values, **more})  # type: ignore[arg-type]


def records(count: int, month: str = "2401") -> list[Metadata]:
    """So many made-up papers, with ids that count up."""
    return [record(f"{month}.{number:05}", title=f"Toy Paper {number}") for number in range(1, count + 1)]


def records_of(papers: Iterable[Paper]) -> list[Metadata]:
    """What arXiv would say of a corpus's papers if all of it were as recorded."""
    made = []
    for paper in papers:
        if paper.arxiv_id:
            names = [" ".join(reversed(name.split(", ", 1))) for name in paper.authors if name != "others"]
            made.append(record(paper.arxiv_id, title=paper.title, authors=names, doi=paper.doi))
    return made


def feed(
    papers: Sequence[Metadata],
    missing: Sequence[str] = (),
    era: Era = Era.CURRENT,
    query: str = "search_query=&id_list=&start=0&max_results=10",
    total: int | None = None,
) -> bytes:
    """A feed in the shape of an era."""
    total = len(papers) if total is None else total
    search_id = base64.b64encode(hashlib.sha1(query.encode()).digest()).decode()[:-1]
    if era is Era.OLD:
        entries = "".join(map(_old_entry, papers)) + _SKELETON * len(missing)
        return _OLD_FEED.format(
            href=quoteattr(f"http://arxiv.org/api/query?{query}"),
            query=escape(query),
            id=f"http://arxiv.org/api/{search_id}",
            total=total + len(missing),
            items=len(papers) + len(missing),
            entries=entries,
        ).encode()
    entries = "".join(_new_entry(paper, era) for paper in papers)
    return _FEED.format(
        id=f"https://arxiv.org/api/{search_id}",
        title=escape(f"arXiv Query: {query}"),
        href=quoteattr(f"https://arxiv.org/api/query?{query}"),
        items=len(papers),
        total=total,
        entries=entries,
    ).encode()


_FEED = """\
<?xml version='1.0' encoding='UTF-8'?>
<feed xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/" xmlns:arxiv="http://arxiv.org/schemas/atom"\
 xmlns="http://www.w3.org/2005/Atom">
  <id>{id}</id>
  <title>{title}</title>
  <updated>2026-11-21T00:00:00Z</updated>
  <link href={href} type="application/atom+xml"/>
  <opensearch:itemsPerPage>{items}</opensearch:itemsPerPage>
  <opensearch:totalResults>{total}</opensearch:totalResults>
  <opensearch:startIndex>0</opensearch:startIndex>
{entries}</feed>
"""
_OLD_FEED = """\
<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
  <link href={href} rel="self" type="application/atom+xml"/>
  <title type="html">ArXiv Query: {query}</title>
  <id>{id}</id>
  <updated>2025-06-01T00:00:00-04:00</updated>
  <opensearch:totalResults xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">{total}</opensearch:totalResults>
  <opensearch:startIndex xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">0</opensearch:startIndex>
  <opensearch:itemsPerPage xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">{items}</opensearch:itemsPerPage>
{entries}</feed>
"""
_SKELETON = """\
  <entry>
    <title></title>
    <summary></summary>
    <author>
      <name></name>
    </author>
    <link title="pdf" rel="related" type="application/pdf"/>
  </entry>
"""
_OLD_ARXIV = 'xmlns:arxiv="http://arxiv.org/schemas/atom"'
_SUBJECT_CLASSES = ("57M25", "I.2.11; I.2.6")


def _new_entry(paper: Metadata, era: Era) -> str:
    name = f"{paper.arxiv_id}v{paper.version}"
    # On its first day the service gave the date of the last change of the record, and bare links.
    updated = _NOW if era is Era.LAUNCH else paper.updated
    related = "" if era is Era.LAUNCH else ' rel="related" type="application/pdf" title="pdf"'
    alternate = "" if era is Era.LAUNCH else ' rel="alternate" type="text/html"'
    lines = [
        f"<id>http://arxiv.org/abs/{name}</id>",
        f"<title>{escape(paper.title)}</title>",
        f"<updated>{updated}</updated>",
        f'<link href="https://arxiv.org/abs/{name}"{alternate}/>',
        f'<link href="https://arxiv.org/pdf/{name}"{related}/>',
        f"<summary>{escape(paper.abstract)}</summary>",
        *(f'<category term={quoteattr(term)} scheme="http://arxiv.org/schemas/atom"/>' for term in paper.categories),
        f"<published>{paper.published}</published>",
        *([f"<arxiv:comment>{escape(paper.comment)}</arxiv:comment>"] if paper.comment else []),
        f"<arxiv:primary_category term={quoteattr(paper.primary_category)}/>",
        *([f"<arxiv:journal_ref>{escape(paper.journal_ref)}</arxiv:journal_ref>"] if paper.journal_ref else []),
        *(f"<author>\n      <name>{escape(author)}</name>\n    </author>" for author in paper.authors),
        *([f"<arxiv:doi>{escape(paper.doi)}</arxiv:doi>"] if paper.doi else []),
        *([f'<link rel="related" href="https://doi.org/{paper.doi}" title="doi"/>'] if paper.doi else []),
    ]
    return "  <entry>\n" + "".join(f"    {line}\n" for line in lines) + "  </entry>\n"


def _old_entry(paper: Metadata) -> str:
    name = f"{paper.arxiv_id}v{paper.version}"
    scheme = 'scheme="http://arxiv.org/schemas/atom"'
    wrapped = paper.title.replace(" ", "\n  ", 1)
    lines = [
        f"<id>http://arxiv.org/abs/{name}</id>",
        f"<updated>{paper.updated}</updated>",
        f"<published>{paper.published}</published>",
        f"<title>{escape(wrapped)}</title>",
        f"<summary>  {escape(paper.abstract)}\n</summary>",
        *(
            f"<author>\n      <name>{escape(author)}</name>\n"
            f"      <arxiv:affiliation {_OLD_ARXIV}>A Toy Place</arxiv:affiliation>\n    </author>"
            for author in paper.authors
        ),
        *([f"<arxiv:doi {_OLD_ARXIV}>{escape(paper.doi)}</arxiv:doi>"] if paper.doi else []),
        *([f'<link title="doi" href="http://dx.doi.org/{paper.doi}" rel="related"/>'] if paper.doi else []),
        *([f"<arxiv:comment {_OLD_ARXIV}>{escape(paper.comment)}</arxiv:comment>"] if paper.comment else []),
        *(
            [f"<arxiv:journal_ref {_OLD_ARXIV}>{escape(paper.journal_ref)}</arxiv:journal_ref>"]
            if paper.journal_ref
            else []
        ),
        f'<link href="http://arxiv.org/abs/{name}" rel="alternate" type="text/html"/>',
        f'<link title="pdf" href="http://arxiv.org/pdf/{name}" rel="related" type="application/pdf"/>',
        f"<arxiv:primary_category {_OLD_ARXIV} term={quoteattr(paper.primary_category)} {scheme}/>",
        *(f"<category term={quoteattr(term)} {scheme}/>" for term in (*paper.categories, *_SUBJECT_CLASSES)),
    ]
    return "  <entry>\n" + "".join(f"    {line}\n" for line in lines) + "  </entry>\n"


def error_feed(message: str, name: str, era: Era) -> bytes:
    """The feed that refuses a request."""
    scheme = "http" if era is Era.OLD else "https"
    entry = (
        f"  <entry>\n    <id>{scheme}://arxiv.org/api/errors#{escape(name)}</id>\n    <title>Error</title>\n"
        f"    <updated>{_NOW}</updated>\n"
        f'    <link href={quoteattr(f"{scheme}://arxiv.org/api/errors#{name}")} rel="alternate" type="text/html"/>\n'
        f"    <summary>{escape(message)}</summary>\n"
        "    <author>\n      <name>arXiv api core</name>\n    </author>\n  </entry>\n"
    )
    return _FEED.format(
        id="https://arxiv.org/",
        title="arXiv Search Results",
        href='"https://arxiv.org/api/query"',
        items=1,
        total=1,
        entries=entry,
    ).encode()
