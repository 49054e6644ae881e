"""Look papers up: from a name, which may be a file, to the metadata of arXiv, a registry or that file."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from orchtrace_corpus.base.annotations import TYPE_CHECKING, Any, TypeAlias
from orchtrace_corpus.base.budget import MAX_BODY_BYTES, how_to_raise
from orchtrace_corpus.base.errors import DataFileError, ExitCode, UpstreamError
from orchtrace_corpus.base.findings import printable, quote
from orchtrace_corpus.base.identifiers import ADDRESSES, Identifier, IdentifierKind, is_normal, recognise
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.reader import YamlFile, read_bytes
from orchtrace_corpus.base.yamlfile.splice import TooLongError
from orchtrace_corpus.corpus.analysis.matching import Match, RecordIndex, Sign
from orchtrace_corpus.corpus.analysis.search import find_records
from orchtrace_corpus.corpus.edit.edits import add_records
from orchtrace_corpus.corpus.edit.fixes import FIXES
from orchtrace_corpus.corpus.edit.merge import by_term, coding_of_new
from orchtrace_corpus.corpus.formats import complete_item, registry
from orchtrace_corpus.corpus.intake import papers as intake
from orchtrace_corpus.corpus.model.candidates import Candidate
from orchtrace_corpus.corpus.model.decode import decode_papers
from orchtrace_corpus.corpus.model.fields import url_problem
from orchtrace_corpus.corpus.model.record_fields import Value, paper_style
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Pool, Tag, identities
from orchtrace_corpus.corpus.model.taxonomy import Taxonomy

if TYPE_CHECKING:
    from orchtrace_corpus.base.progress import Progress

_CITATION_FIELDS = {"key", "cite_key", "bibtex", "title", "authors", "year", "venue", "urls", *IdentifierKind}
"""The fields that `intake.from_entry` reads."""

ShowProgress: TypeAlias = Callable[[], "AbstractContextManager[Callable[[Progress], None] | None]"]
"""Opens the display of a run's progress."""


class Service(NamedTuple):
    """The access to services: none, from the cache only, or without it; and the URL of arXiv or a mirror."""

    no_fetch: bool = False
    offline: bool = False
    refresh: bool = False
    arxiv_url: str = ""


class PaperRequest(NamedTuple):
    """A paper that a command names, by an id, a URL, a key or a file's entry.

    Attributes:
        name: The name in the command.
        paper: Its fields so far.
        remarks: Remarks for the person who adds it.
        source: The URL that was read, which evidence names.
        match: The record of the corpus that is the same paper; it is refused then.
        problem: The reason of any other refusal.
        code: The exit code of the refusal.
        words: The words of a command line for an entry of a file, in place of its name.
        title: A title to use if no service has one.
        candidate: The candidate that it is.
        excluded: The exclusion that is to become a paper, named by its id.
        tags: The tags that a file gives, by field.
    """

    name: str
    paper: Paper
    remarks: tuple[str, ...] = ()
    source: str = ""
    match: Match | None = None
    problem: str = ""
    code: ExitCode = ExitCode.DONE
    words: tuple[str, ...] = ()
    title: str = ""
    candidate: Candidate | None = None
    excluded: Exclusion | None = None
    tags: Mapping[str, Tag] = {}

    @property
    def origin(self) -> Candidate | Exclusion | None:
        """The candidate or exclusion that becomes the paper."""
        return self.candidate or self.excluded

    @property
    def is_refused(self) -> bool:
        """Return True if the paper cannot be added."""
        return self.code is not ExitCode.DONE

    def refuse(self, problem: str, code: ExitCode = ExitCode.FINDINGS) -> "PaperRequest":
        """Return the request as refused."""
        return self._replace(problem=problem, code=code)


def name_papers(words: Iterable[str], pool: Pool, candidates: Sequence[Candidate] = ()) -> list[PaperRequest]:
    """Return the papers that words name; a `DataFileError` if a file of papers cannot be read."""
    requests: list[PaperRequest] = []
    for word in words:
        if registry.is_readable(word) and recognise(word) is None and "://" not in word:
            requests += _read_entries(word, pool, candidates)
        else:
            requests.append(name_paper(word.strip(), pool, candidates))
    return requests


def resolve(
    requests: Sequence[PaperRequest],
    pool: Pool,
    describe: Callable[[Paper], Paper],
    service: Service,
    *,
    despite_title: bool = False,
    show_progress: ShowProgress = nullcontext,
) -> tuple[list[PaperRequest], tuple[str, ...]]:
    """Look papers up, and refuse those that the corpus has; return them, and the services' messages.

    `describe` adds a person's details, which come before those of services.
    """
    promoted = [request.excluded.id for request in requests if request.excluded]
    pool = pool._replace(exclusions=tuple(record for record in pool.exclusions if record.id not in promoted))
    judged = _refuse_known(requests, pool, by_title=False)
    messages: tuple[str, ...] = ()
    if not service.no_fetch:  # all arXiv ids go into one request
        on_arxiv = {
            request.paper.arxiv_id: request for request in judged if _is_open(request) and request.paper.arxiv_id
        }
        answers, messages = _ask_arxiv(on_arxiv, service, show_progress) if on_arxiv else ({}, ())
        judged = [
            answers[request.paper.arxiv_id]
            if _is_open(request) and request.paper.arxiv_id in answers
            else _ask_registry(request, service)
            for request in judged
        ]
    described = [
        request._replace(paper=describe(request.paper._replace(title=request.paper.title or request.title)))
        for request in judged
    ]
    return _refuse_known(described, pool, by_title=not despite_title), messages


def _refuse_known(requests: Sequence[PaperRequest], pool: Pool, *, by_title: bool) -> list[PaperRequest]:
    """Refuse the papers that are in the corpus or its exclusions, and those that are named twice."""
    judged: list[PaperRequest] = []
    records, accepted = RecordIndex([*pool.papers, *pool.exclusions]), RecordIndex()
    for request in requests:
        if not request.is_refused:
            match = records.find(request.paper, by_title=by_title)
            again = None if match else accepted.find(request.paper, by_title=by_title)
            near = near_title(request.paper, records) if by_title and match is None else ()
            request = request._replace(remarks=(*request.remarks, *near))
            if match is not None:
                request = request._replace(match=match, code=ExitCode.FINDINGS)
            elif again is not None and isinstance(again.record, Paper):
                first = requests[int(again.record.key)].name
                problem = f"named twice: {quote(first)} has the same {again.sign}, {quote(again.shared)}"
                request = request.refuse(problem)
            else:
                accepted.add(request.paper._replace(key=str(len(judged))))
        judged.append(request)
    return judged


def near_title(paper: Paper, records: RecordIndex) -> Iterator[str]:
    """Return a note on a record with nearly the same title and another arXiv id."""
    if near := records.near_title(paper, with_other_ids=True):
        yield f"its title is nearly that of {near.record.name}, which has another arXiv id; compare them"


def describe_candidate(paper: Paper, candidates: RecordIndex) -> str:
    """Return a note on a paper that is a candidate; empty if it is none."""
    match = candidates.find(paper)
    if not match or (match.sign is Sign.TITLE and match.record.name != paper.key):
        return ""
    return f"it is the candidate {match.record.name}; to include it: corpus add {match.record.name}"


def _is_open(request: PaperRequest) -> bool:
    return not request.is_refused and not request.paper.title


def name_paper(word: str, pool: Pool, candidates: Sequence[Candidate] = ()) -> PaperRequest:
    """Return the paper that a word names; `resolve` refuses one of the pool.

    The id of an exclusion means that it shall become a paper; its title is looked up again if it has an identifier.
    """
    for record in pool.papers:
        if word.casefold() in (record.key.casefold(), (record.cite_key or record.key).casefold()):
            return PaperRequest(word, record)
    for exclusion in pool.exclusions:
        if word.casefold() == exclusion.id.casefold():
            paper = intake.from_exclusion(exclusion)
            if exclusion.promoted_to:
                return PaperRequest(exclusion.id, paper)
            title = "" if next(identities(paper), None) else paper.title
            paper = paper._replace(title=title)
            return PaperRequest(exclusion.id, paper, source=exclusion.url, title=exclusion.title, excluded=exclusion)
    papers = find_records(pool._replace(papers=tuple(candidate.paper for candidate in candidates), exclusions=()), word)
    for candidate in candidates:
        if candidate.paper in papers:
            paper = candidate.paper._replace(tags={}, evidence=())
            return PaperRequest(word, paper, source=next(iter(paper.urls), ""), candidate=candidate)
    problem = intake.arxiv_misspelling(word, pool)
    identifier = recognise(word)
    if identifier is not None and not problem:
        page = ADDRESSES[identifier.kind] + identifier.value
        return PaperRequest(word, intake.with_identifier(Paper(urls=(page,)), identifier), source=page)
    url = word if "://" in word else ""
    if not url and "/" in word:
        url = FIXES["F114"](word, "urls") or ""
    if not problem and not url:
        problem = f"{quote(word)} is not an arXiv id, DOI, OpenReview or ACL id, or web address"
    elif not problem and url_problem(url):
        problem = f"{quote(url)} {url_problem(url)}"
    if problem:
        return PaperRequest(word, Paper()).refuse(problem, ExitCode.USAGE)
    return PaperRequest(word, Paper(urls=(url,)), source=url)


def _read_entries(path: str, pool: Pool, candidates: Sequence[Candidate]) -> list[PaperRequest]:
    """Return the entries of a file, each under its own key if that is valid, with its tags and summary."""
    data, shown = read_bytes(path, path, MAX_BODY_BYTES), printable(path, limit=300)
    if len(data) > MAX_BODY_BYTES:
        raise DataFileError(f"{shown} is larger than {MAX_BODY_BYTES // 2**20} MiB", how_to_raise("MAX_BODY_BYTES"))
    items = registry.find_by_ending(path, data).read(data, pool.taxonomy, path=path)
    if not items:
        raise DataFileError(f"there are no entries in {shown}", "Nothing can be added.")
    index = RecordIndex([candidate.paper for candidate in candidates])
    requests = []
    for item in items:
        values, _ = complete_item(item, None)
        paper = intake.from_entry(values, item.annotation)
        problem = intake.arxiv_misspelling(str(values.get(IdentifierKind.ARXIV, "")), pool)
        for kind in IdentifierKind:
            if (value := getattr(paper, kind.value)) and not is_normal(kind, value):
                problem = problem or f"{quote(value)} cannot be its {kind}; correct it in the file"
        problem = problem or describe_candidate(paper, index)
        coding, wrong_keywords = coding_of_new(item, pool.taxonomy)
        values = {**coding, **values}
        paper, wrong_values = _with_fields(paper, {**values, **by_term(values, pool.taxonomy)}, pool.taxonomy)
        problem = problem or "; ".join((*wrong_keywords, *wrong_values))
        tags, paper = paper.tags, paper._replace(tags={})
        name, source = f"{path}:{item.line}", next(iter(paper.urls), "")
        request = PaperRequest(name, paper, source=source, words=_command_words(paper), tags=tags)
        requests.append(request.refuse(problem, ExitCode.USAGE) if problem else request)
    return requests


def _with_fields(paper: Paper, values: Mapping[str, Value], taxonomy: Taxonomy) -> tuple[Paper, list[str]]:
    """Return a paper with its tags and further fields in a file, and the errors in these."""
    further = {name: value for name, value in values.items() if name not in _CITATION_FIELDS}
    if not further:
        return paper, []
    try:
        text = add_records(YamlFile("", b"[]\n"), [further], paper_style(taxonomy))
    except TooLongError:
        return paper, ["a field is too long"]
    file = YamlFile("", text.encode())
    (decoded,), _ = decode_papers(file, taxonomy, are_whole=False)
    own: dict[str, Any] = {name: getattr(decoded, name) for name in further if name in Paper._fields}
    problems = [f"{finding.code} {finding.message}" for finding in file.findings]
    return paper._replace(**own, tags=decoded.tags, more=decoded.more), problems


def _command_words(paper: Paper) -> tuple[str, ...]:
    """Return the words of a command line that give a paper's fields."""
    ids = (value for kind in IdentifierKind if (value := getattr(paper, kind.value)))
    name = next(ids, None) or next(iter(paper.urls), None)
    details = {
        "--title": paper.title,
        "--authors": "".join(f"{name};" for name in paper.authors),
        "--year": str(paper.year or ""),
        "--venue": paper.venue,
    }
    words = (word for option, value in details.items() if value for word in (option, value))
    return (*((name,) if name else ()), "--no-fetch", *words)


def _ask_arxiv(
    requests: Mapping[str, PaperRequest], service: Service, show_progress: ShowProgress
) -> tuple[dict[str | None, PaperRequest], tuple[str, ...]]:
    """Ask arXiv about papers, by arXiv id; return them with its answers, and its messages."""
    from orchtrace_corpus.corpus.sources.arxiv.client import Client

    try:
        client = Client(service.arxiv_url, offline=service.offline, refresh=service.refresh)
        with show_progress() as progress:
            answer = client.fetch(list(requests), progress=progress)
    except UpstreamError as error:
        problem = _on_one_line(error)
        return {name: request.refuse(problem, ExitCode.UPSTREAM) for name, request in requests.items()}, ()
    outcomes: dict[str | None, PaperRequest] = {}
    for name, request in requests.items():
        metadata = answer.found.get(name)
        if metadata is not None:
            paper = intake.from_metadata(metadata)
            source, remarks = f"{paper.urls[0]}v{metadata.version}", tuple(intake.remarks(metadata))
            outcomes[name] = request._replace(paper=paper, remarks=remarks, source=source, words=())
        elif name in answer.missing:
            outcomes[name] = request.refuse(f"arXiv has no paper {name}")
        elif name in answer.malformed:
            outcomes[name] = request.refuse(f"{quote(name)} is not an arXiv id", ExitCode.USAGE)
        elif name in answer.unasked:
            outcomes[name] = request.refuse("there is no stored answer for it; omit --offline", ExitCode.UPSTREAM)
        else:
            failure = "did not answer for it" if name in answer.throttled else "gave no answer that could be read"
            outcomes[name] = request.refuse(f"arXiv {failure}; try again later", ExitCode.UPSTREAM)
    return outcomes, tuple(answer.messages)


def _on_one_line(error: UpstreamError) -> str:
    return ". ".join(line.rstrip(".") for line in str(error).splitlines())


def _ask_registry(request: PaperRequest, service: Service) -> PaperRequest:
    values = ((kind, getattr(request.paper, kind.value)) for kind in IdentifierKind if kind is not IdentifierKind.ARXIV)
    identifier = next((Identifier(kind, value) for kind, value in values if value is not None), None)
    if not _is_open(request) or identifier is None:
        return request
    if service.offline:
        return request.refuse("only arXiv's answers are stored; omit --offline", ExitCode.UPSTREAM)
    from orchtrace_corpus.corpus.sources import registries
    from orchtrace_corpus.corpus.sources.http import Transport

    try:
        with Transport() as transport:
            proposed = registries.lookup(identifier, transport)
    except UpstreamError as error:
        return request.refuse(_on_one_line(error), ExitCode.UPSTREAM)
    if proposed is None:
        return request.refuse(f"there is no {identifier.kind} {quote(identifier.value)}")
    return request._replace(paper=intake.from_fields(proposed))
