"""Asks others about what a corpus says: arXiv about its papers, hosts about the addresses that it names."""

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from urllib.parse import urlsplit

from orchtrace_corpus.base.errors import UpstreamError
from orchtrace_corpus.base.findings import Finding, beyond, has_errors
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.progress import Progress
from orchtrace_corpus.base.text.layout import pluralize
from orchtrace_corpus.corpus import rules
from orchtrace_corpus.corpus.edit.edits import edit_file
from orchtrace_corpus.corpus.intake import drift
from orchtrace_corpus.corpus.intake.discovery import arxiv_text
from orchtrace_corpus.corpus.intake.drift import Answers
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.arxiv_file import merged
from orchtrace_corpus.corpus.model.metadata import Metadata
from orchtrace_corpus.corpus.model.record_fields import Value
from orchtrace_corpus.corpus.model.records import Loaded
from orchtrace_corpus.corpus.model.store import CorpusFiles
from orchtrace_corpus.corpus.sources import links
from orchtrace_corpus.corpus.sources.arxiv.client import Answer, Client
from orchtrace_corpus.corpus.sources.limiter import default_folder
from orchtrace_corpus.corpus.sources.links import Tried


class Fetched(NamedTuple):
    """The answers of arXiv about papers.

    Attributes:
        answers: What it says now; this can be written.
        reported: The same, and of papers that it says nothing of now, what was kept from earlier runs.
        known: What it said before, by id, as the corpus has it on record.
        answer: The answer itself, with what could not be asked or read.
        failure: What ended the asking early.
    """

    answers: Answers
    reported: Answers
    known: Mapping[str, Metadata]
    answer: Answer
    failure: UpstreamError | None = None

    @property
    def unknown(self) -> tuple[str, ...]:
        """The ids of which nothing is kept."""
        return tuple(name for name in self.answer.unasked if name not in self.reported.found)


class LinkReport(NamedTuple):
    """The results of trying the URLs of a corpus.

    Attributes:
        findings: What is wrong with them, at each place where one stands.
        outcomes: The outcome for each address, in the order of trying.
        asked: How many were tried over the network; the others are known from earlier runs.
        left_to_fetch: How many addresses are arXiv's, which are not tried.
    """

    findings: tuple[Finding, ...]
    outcomes: Mapping[str, Tried]
    asked: int
    left_to_fetch: int


def fetch(
    known: Mapping[str, Metadata],
    ids: Sequence[str],
    *,
    arxiv_url: str = "",
    offline: bool = False,
    refresh: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Fetched:
    """Ask arXiv about papers.

    Args:
        known: What arXiv said last, by id.
        ids: The papers' arXiv ids.
        arxiv_url: A mirror to ask instead.
        offline: Whether to ask nobody, and to answer from what is kept.
        refresh: Whether to ask again for what was answered of late.
        progress: Is called with how far the run has come.

    Raises:
        UpstreamError: Nothing is known of any of the papers.
    """
    failure: UpstreamError | None = None
    try:
        answer = Client(arxiv_url, offline=offline, refresh=refresh).fetch(ids, known=known, progress=progress)
    except UpstreamError as error:
        failure, answer = error, Client(arxiv_url, offline=True).fetch(ids)
    found = {**{name: known[name] for name in answer.unasked if name in known}, **answer.found}
    if not found and (failure or answer.unasked):
        message = f"nothing is kept of {pluralize(len(ids), 'paper')} with an arXiv id"
        raise failure or UpstreamError(message, "Run corpus fetch with a network first.")
    gaps = (*answer.throttled, *answer.unparseable)
    earlier = Client(arxiv_url, offline=True).fetch(gaps).found if gaps else {}
    kept = {**{name: known[name] for name in gaps if name in known}, **earlier}
    answers = Answers(merged(known, found, found), answer.missing, answer.malformed)
    reported = answers._replace(found={**merged(known, kept, kept), **answers.found})
    return Fetched(answers, reported, known, answer, failure)


def find_drift(loaded: Loaded, answers: Answers, known: Mapping[str, Metadata]) -> tuple[Finding, ...]:
    """The drift that is not waived, and the waivers of drift that there is none of, in the order of the lines."""
    ids = {*answers.found, *answers.missing, *answers.refused}
    keys = {paper.key for paper in loaded.papers if paper.arxiv_id in ids}
    findings = list(drift.find_drift(loaded, answers, known))
    kept = rules.apply_waivers(findings, loaded, lambda key, code: key in keys and code in drift.PERSISTENT)
    return tuple(sorted(kept, key=lambda finding: (finding.location, finding.code)))


def texts_with_answers(corpus: CorpusFiles, fetched: Fetched) -> dict[str, str]:
    """Return the data files with everything taken over that needs no decision, by their names below the folder.

    What arXiv has said of candidates stays.
    """
    return {
        store.PAPERS: edit_file(corpus, store.PAPERS, changes=_harmless_changes(corpus, fetched)),
        store.ARXIV: arxiv_text(corpus, fetched.answers.found),
    }


def try_links(
    loaded: Loaded,
    keys: Collection[str] | None = None,
    *,
    size: int = 0,
    seed: str = "",
    refresh: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> LinkReport:
    """Try the addresses of a corpus, each once.

    Args:
        loaded: The corpus.
        keys: Only the addresses of the papers with these keys.
        size: How many to try, always the same ones; 0 for all.
        seed: Another seed gives another sample.
        refresh: Whether to try again what was tried of late.
        progress: Is called after each address.

    Raises:
        UpstreamError: Nobody answered, of several hosts, so the trouble is most likely with us.
    """
    listed = list(links.listed(loaded, keys))
    every = {link.url for link in listed}
    wanted = {url for url in every if not links.is_left_to_fetch(url)}
    chosen = links.sample(wanted, size or len(wanted), seed)
    sweep = links.Sweep(os.path.join(default_folder(), "links"), refresh=refresh)
    tried: dict[str, Tried] = {}
    for url, outcome in sweep.outcomes(chosen):
        tried[url] = outcome
        if progress is not None:
            progress(Progress(len(tried), len(chosen)))
    hosts = {urlsplit(url).netloc for url in tried}
    if len(hosts) >= 3 and not any(outcome.answered for outcome in tried.values()):
        addresses = pluralize(len(tried), "address", "addresses")
        message = f"none of {addresses} on {len(hosts)} hosts could be reached"
        raise UpstreamError(message, "Is there a network? Nothing is said about the links.")
    findings = rules.apply_waivers(list(links.findings(listed, tried)), loaded, lambda _record, _code: False)
    return LinkReport(tuple(findings), tried, sweep.asked, len(every) - len(wanted))


def _harmless_changes(corpus: CorpusFiles, fetched: Fetched) -> dict[int, dict[str, Value | None]]:
    """Return what arXiv's answers change in each record without a decision or a new error, by record."""
    loaded, answers = corpus.loaded, fetched.answers.found
    codes: defaultdict[str, set[str]] = defaultdict(set)
    for finding in find_drift(loaded, fetched.answers, fetched.known):
        codes[finding.record].add(finding.code)
    changes: dict[int, dict[str, Value | None]] = {}
    for index, paper in enumerate(loaded.papers):
        answer = answers.get(paper.arxiv_id or "")
        if answer and (fields := drift.propose_changes(paper, answer, codes[paper.key])):
            changes[index] = {**fields}
    before = rules.check(loaded)

    def is_harmless(some: Mapping[int, Mapping[str, Value | None]]) -> bool:
        edited = CorpusFiles(corpus.root, {store.PAPERS: edit_file(corpus, store.PAPERS, changes=some).encode()})
        return not has_errors(beyond(before, rules.check(edited.loaded)))

    if not changes or is_harmless(changes):
        return changes  # else arXiv has a text that no record can hold, which stays reported as drift
    return {index: fields for index, fields in changes.items() if is_harmless({index: fields})}
