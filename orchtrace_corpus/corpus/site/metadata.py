"""Metadata in the head of pages, for reference managers, search engines and catalogues of data.

Names of `meta` elements: https://scholar.google.com/intl/en/scholar/inclusion.html#indexing, which Zotero reads, too.
JSON-LD: https://schema.org/ScholarlyArticle and https://schema.org/Dataset.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from orchtrace_corpus.corpus.model.fields import bare_author
from orchtrace_corpus.corpus.model.records import Paper
from orchtrace_corpus.corpus.site.source import Source

MAX_TITLE = 69
"""The characters of a title that lists of search results show."""

_VENUES = {
    "article-journal": "citation_journal_title",
    "paper-conference": "citation_conference_title",
    "chapter": "citation_inbook_title",
    "thesis": "citation_dissertation_institution",
    "report": "citation_technical_report_institution",
}
"""The name of the element for the venue, by the type of an item of CSL."""

_DETAILS = {"volume": "citation_volume", "issue": "citation_issue", "publisher": "citation_publisher"}


def page_title(title: str, site: str) -> str:
    """Return the title of a page with that of the site if both fit, else as many words of its own as fit."""
    whole = f"{title} · {site}" if title != site else title
    if len(whole) <= MAX_TITLE:
        return whole
    if len(title) <= MAX_TITLE:
        return title
    return (title[:MAX_TITLE].rpartition(" ")[0] or title[: MAX_TITLE - 1]) + "…"


def citation(paper: Paper, item: Mapping[str, Any], address: str) -> Iterator[tuple[str, str]]:
    """Yield the names and contents of the `meta` elements that cite a paper, of its item of CSL and its page."""
    yield "citation_title", paper.title
    yield from (("citation_author", bare_author(author)) for author in paper.authors if author != "others")
    if paper.cited_year:
        yield "citation_publication_date", "/".join(f"{part:02}" for part in item["issued"]["date-parts"][0])
    if (name := _VENUES.get(item["type"])) and paper.cited_venue:
        yield name, paper.cited_venue
    yield from ((name, item[variable]) for variable, name in _DETAILS.items() if variable in item)
    first, _, last = item.get("page", "").partition("-")
    yield from ((name, page) for name, page in (("citation_firstpage", first), ("citation_lastpage", last)) if page)
    if paper.doi:
        yield "citation_doi", paper.doi
    if paper.arxiv_id:
        yield "citation_arxiv_id", paper.arxiv_id
        yield "citation_pdf_url", f"https://arxiv.org/pdf/{paper.arxiv_id}"
    yield "citation_public_url", paper.urls[0]
    if address:
        yield "citation_abstract_html_url", address


def article(paper: Paper, item: Mapping[str, Any], address: str) -> dict[str, Any]:
    """Return a paper as a ScholarlyArticle of schema.org, from the same values as `citation`."""
    names = (bare_author(author) for author in paper.authors if author != "others")
    identifiers = {"DOI": paper.doi, "arXiv": paper.arxiv_id, "OpenReview": paper.openreview_id, "ACL": paper.acl_id}
    addresses = [f"https://doi.org/{paper.doi}"] if paper.doi else []
    addresses += [f"https://arxiv.org/abs/{paper.arxiv_id}"] if paper.arxiv_id else []
    values = {
        "@context": "https://schema.org",
        "@type": "ScholarlyArticle",
        "headline": paper.title,
        "name": paper.title,
        "author": [{"@type": "Person", "name": " ".join(reversed(name.split(", ", 1)))} for name in names],
        "datePublished": "-".join(f"{part:02}" for part in item.get("issued", {}).get("date-parts", [[]])[0]),
        "isPartOf": {"@type": "Periodical", "name": paper.cited_venue} if paper.cited_venue else None,
        "identifier": [
            {"@type": "PropertyValue", "propertyID": name, "value": value}
            for name, value in identifiers.items()
            if value
        ],
        "url": paper.urls[0],
        "sameAs": [address for address in addresses if address != paper.urls[0]],
        "mainEntityOfPage": address,
        "description": paper.summary,
    }
    return {name: value for name, value in values.items() if value}


def dataset(source: Source, description: str, address: str, newest: str) -> dict[str, Any]:
    """Return the corpus as a Dataset of schema.org; `newest` is the day on which the last record was added."""
    taxonomy = source.taxonomy
    values = {
        "@context": "https://schema.org",
        "@type": "Dataset",
        "name": taxonomy.title,
        "description": description,
        "url": address,
        "isBasedOn": taxonomy.source,
        "dateModified": newest,
        "isAccessibleForFree": True,
        "variableMeasured": [facet.label for facet in taxonomy.papers],
    }
    return {name: value for name, value in values.items() if value}
