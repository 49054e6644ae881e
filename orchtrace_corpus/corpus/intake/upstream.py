"""Compare a corpus with the outside: its papers with arXiv, its URLs with their hosts."""

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
        answers: The present answers; these can be written.
        reported: The same; for papers without a present answer, the last one.
        answer: arXiv's answer as such, with the ids that it left out.
        failure: The error that ended the requests early.
    """

    answers: Answers
    reported: Answers
    answer: Answer
    failure: UpstreamError | None = None

    @property
    def unknown(self) -> tuple[str, ...]:
        """The ids without any answer."""
        return tuple(name for name in self.answer.unasked if name not in self.reported.found)


def fetch(
    known: Mapping[str, Metadata],
    ids: Sequence[str],
    *,
    arxiv_url: str = "",
    offline: bool = False,
    refresh: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Fetched:
    """Ask arXiv about papers by id; `known` are its last answers. Without any answer, an `UpstreamError` is raised."""
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
    cached = Client(arxiv_url, offline=True).fetch(gaps).found if gaps else {}
    earlier = {**{name: known[name] for name in gaps if name in known}, **cached}
    answers = Answers(merge(known, found, found), answer.missing, answer.malformed)
    reported = answers._replace(found={**merge(known, earlier, earlier), **answers.found})
    return Fetched(answers, reported, answer, failure)


def find_drift(loaded: Loaded, answers: Answers, known: Mapping[str, Metadata]) -> tuple[Finding, ...]:
    """Return the drift that is not waived, and waivers that waive none, in the order of the lines."""
    ids = {*answers.found, *answers.missing, *answers.refused}
    keys = {paper.key for paper in loaded.papers if paper.arxiv_id in ids}
    findings = list(drift.find_drift(loaded, answers, known))
    unwaived = rules.apply_waivers(findings, loaded, lambda key, code: key in keys and code in drift.PERSISTENT)
    return tuple(sorted(unwaived, key=lambda finding: (finding.location, finding.code)))


def texts_with_answers(corpus: CorpusFiles, fetched: Fetched) -> dict[str, str]:
    """Return the new texts of the papers and of arXiv's metadata, by path, with the changes that need no decision."""
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
) -> tuple[tuple[Finding, ...], Mapping[str, LinkOutcome], int, int]:
    """Try the URLs of a corpus, each once: those of papers with some keys, or a sample of a size (0 for all).

    Return findings, the outcome of each URL, and how many URLs were requested now, and how many are left to `fetch`.
    If none of several hosts can be reached, an `UpstreamError` says so.
    """
    listed = list(links.list_links(loaded, keys))
    urls = {link.url for link in listed}
    wanted = {url for url in urls if not links.is_arxiv_address(url)}
    chosen = links.sample_urls(wanted, size or len(wanted), seed)
    sweep = links.Sweep(os.path.join(default_folder(), "links"), refresh=refresh)
    tried: dict[str, LinkOutcome] = {}
    for url, outcome in sweep.try_all(chosen):
        tried[url] = outcome
        if progress is not None:
            progress(Progress(len(tried), len(chosen)))
    hosts = {urlsplit(url).netloc for url in tried}
    if len(hosts) >= 3 and not any(outcome.answered for outcome in tried.values()):
        addresses = pluralize(len(tried), "address", "addresses")
        message = f"none of {addresses} on {len(hosts)} hosts could be reached"
        raise UpstreamError(message, "Is there a network? Nothing is said about the links.")
    findings = rules.apply_waivers(list(links.find_problems(listed, tried)), loaded, lambda _record, _code: False)
    return tuple(findings), tried, sweep.asked, len(urls) - len(wanted)


def _harmless_changes(corpus: CorpusFiles, fetched: Fetched) -> dict[int, dict[str, Value | None]]:
    """Return the changes from arXiv's answers that need no decision and bring no error, by the record's index."""
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
        edited = CorpusFiles(corpus.root, {store.PAPERS: edit_file(corpus, store.PAPERS, changes=changes).encode()})
        return not has_errors(new_findings(before, rules.check(edited.loaded)))

    if not changes or is_harmless(changes):
        return changes
    # One of arXiv's texts is invalid in a record; that stays reported as drift.
    return {index: fields for index, fields in changes.items() if is_harmless({index: fields})}
