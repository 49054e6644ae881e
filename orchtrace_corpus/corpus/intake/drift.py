"""Find differences between records and arXiv.

arXiv's answer is compared with the record (title, authors, DOI) and with arXiv's previous answer in `data/arxiv.json`
(version, category, withdrawal). A person decides on most differences; the others are proposed as changes.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from typing import TypeAlias

from orchtrace_corpus.base.findings import Finding, printable, quote
from orchtrace_corpus.base.identifiers import IdentifierKind, is_normal
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import first_names_and_more
from orchtrace_corpus.corpus.edit.fixes import FIXES
from orchtrace_corpus.corpus.intake.papers import spell_greek
from orchtrace_corpus.corpus.model import author_names
from orchtrace_corpus.corpus.model.fields import OTHERS
from orchtrace_corpus.corpus.model.metadata import Metadata, suspected_withdrawal
from orchtrace_corpus.corpus.model.records import Loaded, Paper, folded_title
from orchtrace_corpus.corpus.rules.texts import LATEX

PERSISTENT = frozenset({"A102", "A103", "A104", "A105", "A106", "A108", "A111"})
"""The warnings that recur as long as record and arXiv differ, so that an unused waiver of such a warning is outdated.

The other warnings report a change once, so their waivers may stay.
"""

_TYPOGRAPHY = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u02bc`", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
    }
)
"""Typographic quotation marks, apostrophes and dashes, and their ASCII forms."""

_Difference: TypeAlias = tuple[str, str, *tuple[str | int, ...]]
"""A code, a message, and the path to the value within the record."""


class Answers(NamedTuple):
    """The answers of arXiv: metadata by arXiv id, ids of no paper (`missing`), and ids of a wrong form (`refused`)."""

    found: Mapping[str, Metadata]
    missing: Collection[str] = ()
    refused: Collection[str] = ()


def find_drift(loaded: Loaded, answers: Answers, previous: Mapping[str, Metadata]) -> Iterator[Finding]:
    """Yield every difference, waived or not, in the order of the records; `previous` has the stored answers by id."""
    for index, paper in enumerate(loaded.papers):
        for code, message, *path in _differences(paper, answers, previous):
            yield Finding(code, message, loaded.paper_places.locate(index, *path), paper.key)


def propose_changes(paper: Paper, answer: Metadata, codes: Collection[str]) -> dict[str, str | tuple[str, ...]]:
    """Return the new values of fields that follow from arXiv's answer without a decision, by field.

    These are the title, a complete author list (or `Anonymous`), and a DOI if the record has none. Other fields, a list
    of authors that is cut short, a collective, and differences in case or spelling stay as they are, and so does a
    record whose id may be wrong or whose paper may be withdrawn. `codes` are those of the record's unwaived findings.
    """
    changed: dict[str, str | tuple[str, ...]] = {}
    if "A101" in codes or "A108" in codes:
        return changed
    title = plain_text(answer.title)
    if "A103" in codes and not re.search(LATEX, title):
        changed["title"] = title
    has_people = any("," in name for name in paper.authors) or paper.authors == ("Anonymous",)
    if "A105" in codes and has_people and OTHERS not in paper.authors:
        changed["authors"] = author_names.merge_authors(paper.authors, [plain_text(name) for name in answer.authors])
    if "A111" in codes and paper.doi is None and answer.doi and is_normal(IdentifierKind.DOI, answer.doi):
        changed["doi"] = answer.doi
    return changed


def plain_text(text: str) -> str:
    """Return a text on one line, in Unicode form NFC; TeX becomes Unicode if all of it has a Unicode form."""
    text = " ".join(text.split())
    if not set(text).isdisjoint("\\${}"):
        text = FIXES["M103"](text, "title") or text
    return unicodedata.normalize("NFC", text)


def _differences(paper: Paper, answers: Answers, previous: Mapping[str, Metadata]) -> Iterator[_Difference]:
    """Yield the differences between a record and arXiv's answer about it."""
    arxiv_id = paper.arxiv_id
    if arxiv_id is None:
        return
    if arxiv_id in answers.missing:
        since = f", although it had {quote(previous[arxiv_id].title)} before" if arxiv_id in previous else ""
        yield "A102", f"arXiv has no paper {quote(arxiv_id)}{since}; fix the id", "arxiv_id"
    elif arxiv_id in answers.refused:
        yield "A102", f"arXiv takes {quote(arxiv_id)} for no id at all; fix the id", "arxiv_id"
    elif arxiv_id in answers.found:
        answer = answers.found[arxiv_id]
        if _is_other_work(paper, answer):
            message = f"arXiv id {quote(arxiv_id)} is that of {quote(answer.title)} by {_quote_some(answer.authors)}"
            yield "A101", f"{message}; fix the id", "arxiv_id"
            return
        record_title, arxiv_title = _comparable(paper.title), _comparable(answer.title)
        if paper.title and record_title != arxiv_title:
            title = quote(plain_text(answer.title))
            if _letters(record_title) == _letters(arxiv_title):
                yield "A104", f"the title is spelled {title} on arXiv", "title"
            else:
                yield "A103", f"the title on arXiv is {title}", "title"
        yield from _author_drift(paper, answer)
        yield from _other_field_drift(paper, answer)
        before = previous.get(arxiv_id)
        if before is not None and before.version <= answer.version:
            yield from _changes_at_arxiv(paper, answer, before)


def _author_drift(paper: Paper, answer: Metadata) -> Iterator[_Difference]:
    """Yield at most one difference: between the lists of authors, or if they agree, between the forms of names."""
    names = [plain_text(name) for name in answer.authors]
    comparison = author_names.compare(paper.authors, names)
    if not paper.authors or not author_names.without_separators(names):
        return
    parts = []
    if comparison.unlisted:
        parts.append(f"arXiv does not list {_quote_some([name for _, name in comparison.unlisted])}")
    if comparison.absent:
        parts.append(f"arXiv adds {_quote_some(comparison.absent)}")
    if comparison.has_needless_others:
        parts.append(f"{quote(OTHERS)} stands for nobody: arXiv lists {len(author_names.without_separators(names))}")
    if comparison.is_reordered:
        parts.append(f"the order on arXiv is {_quote_some(author_names.without_separators(names))}")
    if parts:
        path = ("authors", comparison.unlisted[0][0]) if comparison.unlisted else ("authors",)
        yield "A105", f"the authors differ: {'; '.join(parts)}", *path
    elif comparison.respelled:
        pairs = [f"{quote(paper.authors[index])} is {quote(name)}" for index, name in comparison.respelled]
        some = first_names_and_more(pairs, 3, " and {} more")
        yield "A106", f"given names are written otherwise on arXiv: {some}", "authors", comparison.respelled[0][0]


def _other_field_drift(paper: Paper, answer: Metadata) -> Iterator[_Difference]:
    """Yield signs of a withdrawal, and differences in venue and DOI."""
    if words := suspected_withdrawal(answer):
        message = (
            f"suspected withdrawal: version {answer.version} says {quote(words)}; read "
            f"https://arxiv.org/abs/{answer.arxiv_id}v{answer.version}, then say in notes what is left of the paper"
        )
        yield "A108", message, "arxiv_id"
    if answer.journal_ref and _is_preprint(paper):
        message = f"arXiv gives the journal reference {quote(answer.journal_ref)}; the venue is {quote(paper.venue)}"
        yield "A110", message, "venue"
    if answer.doi and paper.doi is None:
        yield "A111", f"arXiv gives the DOI {quote(answer.doi)}; add it as doi", "arxiv_id"
    elif answer.doi and paper.doi != answer.doi:
        message = f"DOI {quote(paper.doi or '')} is {quote(answer.doi)} on arXiv"
        yield "A111", f"{message}; fix it, or waive this with the reason", "doi"


def _changes_at_arxiv(paper: Paper, answer: Metadata, before: Metadata) -> Iterator[_Difference]:
    """Yield the changes at arXiv since its previous answer."""
    if answer.version > before.version:
        message = f"version {answer.version} of {printable(answer.updated[:10])} is new"
        advice = f"known was version {before.version}: see that tags and evidence still hold"
        yield "A107", f"{message}; {advice}", "arxiv_id"
    if suspected_withdrawal(before) and not suspected_withdrawal(answer):
        message = f"the suspected withdrawal (version {before.version}) is taken back"
        yield "A109", f"{message}: version {answer.version} says nothing of it", "arxiv_id"
    if answer.journal_ref and answer.journal_ref != before.journal_ref and not _is_preprint(paper):
        message = f"the journal reference {quote(answer.journal_ref)} is new; see that it is the venue"
        yield "A110", message, "venue"
    if answer.primary_category != before.primary_category:
        message = f"the primary category is now {quote(answer.primary_category)}"
        yield "A112", f"{message}; it was {quote(before.primary_category)}", "arxiv_id"


def _is_preprint(paper: Paper) -> bool:
    return paper.venue.casefold().startswith("arxiv")


def _is_other_work(paper: Paper, answer: Metadata) -> bool:
    """Return True if the id is most likely that of another work: no common author, and a different title."""
    record_words = set(re.findall(r"[^\W_]+", _comparable(paper.title).casefold()))
    arxiv_words = set(re.findall(r"[^\W_]+", _comparable(answer.title).casefold()))
    if not record_words or not arxiv_words:
        return False
    similarity = len(record_words & arxiv_words) / len(record_words | arxiv_words)  # Jaccard's index
    names = [name for name in paper.authors if name != OTHERS]
    if not any("," in name for name in names):  # no person to compare: only titles with very few common words differ
        return similarity < 0.15
    return similarity < 0.5 and not author_names.have_common_author(
        names, [plain_text(name) for name in answer.authors]
    )


def _comparable(text: str) -> str:
    """Return a text without differences in TeX, full-width forms, typographic marks and blanks."""
    return " ".join(unicodedata.normalize("NFKC", plain_text(text).translate(_TYPOGRAPHY)).split())


def _letters(text: str) -> str:
    """Return the letters and digits of a title without case and accents, with Greek letters by name."""
    return folded_title(spell_greek(unicodedata.normalize("NFD", text)))


def _quote_some(names: Collection[str]) -> str:
    return first_names_and_more([quote(name) for name in names], 3, " and {} more")
