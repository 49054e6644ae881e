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
"""The most characters of a title that search engines show."""

_VENUES = {
    "article-journal": "citation_journal_title",
    "paper-conference": "citation_conference_title",
    "chapter": "citation_inbook_title",
    "thesis": "citation_dissertation_institution",
    "report": "citation_technical_report_institution",
}
"""The name of the element for the venue, by the type of an item in CSL, the Citation Style Language."""

_DETAILS = {"volume": "citation_volume", "issue": "citation_issue", "publisher": "citation_publisher"}


def page_title(title: str, site: str) -> str:
    """Return the title of a page and that of the site if both fit, else as many words of the page's title as fit."""
    with_site = f"{title} · {site}" if title != site else title
    if len(with_site) <= MAX_TITLE:
        return with_site
    if len(title) <= MAX_TITLE:
        return title
    whole_words, _, _ = title[:MAX_TITLE].rpartition(" ")
    return (whole_words or title[: MAX_TITLE - 1]) + "…"


def citation(paper: Paper, item: Mapping[str, Any], address: str) -> Iterator[tuple[str, str]]:
    """Yield the names and contents of `meta` elements that cite a paper, from its CSL item and its page's address."""
    yield "citation_title", paper.title
    yield from (("citation_author", bare_author(author)) for author in paper.authors if author != "others")
    if paper.cited_year:
        yield "citation_publication_date", "/".join(f"{part:02}" for part in item["issued"]["date-parts"][0])
    venue_element = _VENUES.get(item["type"])
    if venue_element and paper.cited_venue:
        yield venue_element, paper.cited_venue
    yield from ((name, item[variable]) for variable, name in _DETAILS.items() if variable in item)
    first, _, last = item.get("page", "").partition("-")
    if first:
        yield "citation_firstpage", first
    if last:
        yield "citation_lastpage", last
    if paper.doi:
        yield "citation_doi", paper.doi
    if paper.arxiv_id:
        yield "citation_arxiv_id", paper.arxiv_id
        yield "citation_pdf_url", f"https://arxiv.org/pdf/{paper.arxiv_id}"
    yield "citation_public_url", paper.urls[0]
    if address:
        yield "citation_abstract_html_url", address


def article(paper: Paper, item: Mapping[str, Any], address: str) -> dict[str, Any]:
    """Return a paper as a ScholarlyArticle of schema.org, from the same arguments as `citation`."""
    names = (bare_author(author) for author in paper.authors if author != "others")
    registries = {"DOI": paper.doi, "arXiv": paper.arxiv_id, "OpenReview": paper.openreview_id, "ACL": paper.acl_id}
    identifiers = []
    for registry, identifier in registries.items():
        if identifier:
            identifiers.append({"@type": "PropertyValue", "propertyID": registry, "value": identifier})
    addresses = []
    if paper.doi:
        addresses.append(f"https://doi.org/{paper.doi}")
    if paper.arxiv_id:
        addresses.append(f"https://arxiv.org/abs/{paper.arxiv_id}")
    values = {
        "@context": "https://schema.org",
        "@type": "ScholarlyArticle",
        "headline": paper.title,
        "name": paper.title,
        "author": [{"@type": "Person", "name": " ".join(reversed(name.split(", ", 1)))} for name in names],
        "datePublished": "-".join(f"{part:02}" for part in item.get("issued", {}).get("date-parts", [[]])[0]),
        "isPartOf": {"@type": "Periodical", "name": paper.cited_venue} if paper.cited_venue else None,
        "identifier": identifiers,
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
