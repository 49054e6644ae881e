"""Compare a corpus with the web: its papers with arXiv's metadata, and its URLs with the answers of their hosts."""

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from urllib.parse import urlsplit

from orchtrace_corpus.base.errors import UpstreamError
from orchtrace_corpus.base.findings import Finding, has_errors, new_findings
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.progress import Progress
from orchtrace_corpus.base.text.layout import pluralize
from orchtrace_corpus.corpus import rules
from orchtrace_corpus.corpus.edit.edits import edit_file
from orchtrace_corpus.corpus.intake import drift
from orchtrace_corpus.corpus.intake.discovery import arxiv_text
from orchtrace_corpus.corpus.intake.drift import Answers
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.metadata import Metadata, merge
from orchtrace_corpus.corpus.model.record_fields import Value
from orchtrace_corpus.corpus.model.records import Loaded
from orchtrace_corpus.corpus.model.store import CorpusFiles
from orchtrace_corpus.corpus.sources import links
from orchtrace_corpus.corpus.sources.arxiv.client import Answer, Client
from orchtrace_corpus.corpus.sources.limiter import default_folder
from orchtrace_corpus.corpus.sources.links import LinkOutcome


class Fetched(NamedTuple):
    """The answers of arXiv about papers.

    Attributes:
        answers: The answers to this request, to be written to `data/arxiv.json`.
        reported: The same, with stored answers for papers to which arXiv did not answer; findings are about these.
        answer: The outcome of the request, with the ids to which arXiv did not answer.
        failure: The error that ended the requests early.
    """

    answers: Answers
    reported: Answers
    answer: Answer
    failure: UpstreamError | None = None

    @property
    def unanswered(self) -> tuple[str, ...]:
        """The ids without any answer, even a stored one."""
        return tuple(name for name in self.answer.unasked if name not in self.reported.found)


def fetch(
    previous: Mapping[str, Metadata],
    ids: Sequence[str],
    *,
    arxiv_url: str = "",
    offline: bool = False,
    refresh: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Fetched:
    """Ask arXiv about papers by id; `previous` has the stored answers. Raise an `UpstreamError` if there is no answer.

    If the service cannot be reached, the answers in the cache count, and then the stored ones.
    """
    failure: UpstreamError | None = None
    try:
        answer = Client(arxiv_url, offline=offline, refresh=refresh).fetch(ids, known=previous, progress=progress)
    except UpstreamError as error:
        failure = error
        answer = Client(arxiv_url, offline=True).fetch(ids)
    stored = {arxiv_id: previous[arxiv_id] for arxiv_id in answer.unasked if arxiv_id in previous}
    found = {**stored, **answer.found}
    if not found and failure is not None:
        raise failure
    if not found and answer.unasked:
        message = f"nothing is kept of {pluralize(len(ids), 'paper')} with an arXiv id"
        raise UpstreamError(message, "Run corpus fetch with a network first.")
    answers = Answers(merge(previous, found, found), answer.missing, answer.malformed)
    failed_ids = (*answer.throttled, *answer.unparseable)
    earlier = {arxiv_id: previous[arxiv_id] for arxiv_id in failed_ids if arxiv_id in previous}
    if failed_ids:
        earlier |= Client(arxiv_url, offline=True).fetch(failed_ids).found
    reported = answers._replace(found={**merge(previous, earlier, earlier), **answers.found})
    return Fetched(answers, reported, answer, failure)


def find_drift(loaded: Loaded, answers: Answers, previous: Mapping[str, Metadata]) -> tuple[Finding, ...]:
    """Return the differences that are not waived, and the unused waivers, in the order of their lines."""
    ids = {*answers.found, *answers.missing, *answers.refused}
    keys = {paper.key for paper in loaded.papers if paper.arxiv_id in ids}
    findings = list(drift.find_drift(loaded, answers, previous))
    # A waiver is unused only if its paper was asked about, and its warning would have recurred.
    unwaived = rules.apply_waivers(findings, loaded, lambda key, code: key in keys and code in drift.PERSISTENT)
    return tuple(sorted(unwaived, key=lambda finding: (finding.location, finding.code)))


def texts_with_answers(corpus: CorpusFiles, fetched: Fetched) -> dict[str, str]:
    """Return the new texts of `papers.yaml`, with the changes that need no decision, and of `arxiv.json`, by path."""
    return {
        store.PAPERS: edit_file(corpus, store.PAPERS, changes=_harmless_changes(corpus, fetched)),
        store.ARXIV: arxiv_text(corpus, fetched.answers.found),
    }


def check_links(
    loaded: Loaded,
    keys: Collection[str] | None = None,
    *,
    size: int = 0,
    seed: str = "",
    refresh: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> tuple[tuple[Finding, ...], Mapping[str, LinkOutcome], int, int]:
    """Request the URLs of a corpus: of the papers with `keys`, or of all. Try a sample of `size` URLs, or 0 for all.

    Return the findings, the outcomes by URL, the number of URLs requested now, not taken from the cache, and the number
    of arXiv's pages, which are not requested, since `fetch` checks their ids. If there are several hosts and none can
    be reached, an `UpstreamError` is raised.
    """
    corpus_links = list(links.list_links(loaded, keys))
    all_urls = {link.url for link in corpus_links}
    urls = {url for url in all_urls if not links.is_arxiv_address(url)}
    sample = links.sample_urls(urls, size or len(urls), seed)
    checker = links.LinkChecker(os.path.join(default_folder(), "links"), refresh=refresh)
    outcomes: dict[str, LinkOutcome] = {}
    for url, outcome in checker.check_all(sample):
        outcomes[url] = outcome
        if progress is not None:
            progress(Progress(len(outcomes), len(sample)))
    hosts = {urlsplit(url).netloc for url in outcomes}
    if len(hosts) >= 3 and not any(outcome.answered for outcome in outcomes.values()):
        addresses = pluralize(len(outcomes), "address", "addresses")
        message = f"none of {addresses} on {len(hosts)} hosts could be reached"
        raise UpstreamError(message, "Is there a network? Nothing is said about the links.")
    problems = list(links.find_problems(corpus_links, outcomes))
    # A waiver is never reported as unused here: a link can work today and fail tomorrow.
    findings = rules.apply_waivers(problems, loaded, lambda _record, _code: False)
    return tuple(findings), outcomes, checker.requested_count, len(all_urls) - len(urls)


def _harmless_changes(corpus: CorpusFiles, fetched: Fetched) -> dict[int, dict[str, Value | None]]:
    """Return the changes from arXiv's answers that need no decision and cause no error, by index of the record."""
    loaded, answers = corpus.loaded, fetched.answers.found
    codes: defaultdict[str, set[str]] = defaultdict(set)
    for finding in find_drift(loaded, fetched.answers, corpus.arxiv):
        codes[finding.record].add(finding.code)
    changes: dict[int, dict[str, Value | None]] = {}
    for index, paper in enumerate(loaded.papers):
        answer = answers.get(paper.arxiv_id or "")
        if answer and (fields := drift.propose_changes(paper, answer, codes[paper.key])):
            changes[index] = {**fields}
    before = rules.check(loaded)

    def is_harmless(changes: Mapping[int, Mapping[str, Value | None]]) -> bool:
        text = edit_file(corpus, store.PAPERS, changes=changes)
        edited = CorpusFiles(corpus.root, {store.PAPERS: text.encode()})
        return not has_errors(new_findings(before, rules.check(edited.loaded)))

    if not changes or is_harmless(changes):
        return changes
    # A text from arXiv is invalid in a record. Its difference is still reported.
    return {index: fields for index, fields in changes.items() if is_harmless({index: fields})}
