"""Look up the metadata of papers at arXiv, in registries such as Crossref, or in a file of citations."""

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
from orchtrace_corpus.corpus.edit.merge import by_term, tags_of_citation
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
"""A function that starts a display of progress and yields the function that updates it; None if nothing is shown."""


class Service(NamedTuple):
    """The use of services: not at all, only stored answers, or only new answers; and the URL of arXiv's API."""

    no_fetch: bool = False
    offline: bool = False
    refresh: bool = False
    arxiv_url: str = ""


class PaperRequest(NamedTuple):
    """A paper that a command names by an identifier, a URL or a key, or an entry of a file that it names.

    Attributes:
        name: The name in the command.
        paper: The fields that are known so far.
        remarks: Remarks for the person who adds the paper.
        source: The URL of the text that was looked up, for evidence.
        match: The record of the corpus that is the same paper. Such a request is refused.
        problem: The reason if it is refused for another reason.
        code: The exit code of the refusal.
        words: For an entry of a file, the words of a command line that add it without the file.
        title: The title to use if no service has one.
        candidate: The candidate that becomes the paper.
        excluded: The exclusion that becomes the paper.
        tags: The tags in the file, by field.
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
        """The candidate or exclusion that becomes the paper, if there is one."""
        return self.candidate or self.excluded

    @property
    def is_refused(self) -> bool:
        """Return True if the paper cannot be added."""
        return self.code is not ExitCode.DONE

    def refuse(self, problem: str, code: ExitCode = ExitCode.FINDINGS) -> "PaperRequest":
        """Return a copy that is refused."""
        return self._replace(problem=problem, code=code)


def request_papers(names: Iterable[str], pool: Pool, candidates: Sequence[Candidate] = ()) -> list[PaperRequest]:
    """Return a request for each name, or each entry of a file; raise a `DataFileError` if a file cannot be read."""
    requests: list[PaperRequest] = []
    for name in names:
        if registry.is_readable(name) and recognise(name) is None and "://" not in name:
            requests += _read_entries(name, pool, candidates)
        else:
            requests.append(request_paper(name.strip(), pool, candidates))
    return requests


def resolve(
    requests: Sequence[PaperRequest],
    pool: Pool,
    add_details: Callable[[Paper], Paper],
    service: Service,
    *,
    despite_title: bool = False,
    show_progress: ShowProgress = nullcontext,
) -> tuple[list[PaperRequest], tuple[str, ...]]:
    """Look up papers and refuse those that the corpus has; return the requests, and the services' messages.

    `add_details` adds the details that a person gave, which take precedence over those from services.
    """
    promoted = [request.excluded.id for request in requests if request.excluded]
    pool = pool._replace(exclusions=tuple(record for record in pool.exclusions if record.id not in promoted))
    resolved = _refuse_known(requests, pool, by_title=False)
    messages: tuple[str, ...] = ()
    if not service.no_fetch:
        pending = [request for request in resolved if _needs_lookup(request)]
        on_arxiv = {request.paper.arxiv_id: request for request in pending if request.paper.arxiv_id}
        answers: dict[str | None, PaperRequest] = {}
        if on_arxiv:  # one request to arXiv for all of them
            answers, messages = _ask_arxiv(on_arxiv, service, show_progress)
        for index, request in enumerate(resolved):
            if _needs_lookup(request):
                answer = answers.get(request.paper.arxiv_id)
                resolved[index] = answer if answer is not None else _ask_registry(request, service)
    for index, request in enumerate(resolved):
        paper = request.paper._replace(title=request.paper.title or request.title)
        resolved[index] = request._replace(paper=add_details(paper))
    return _refuse_known(resolved, pool, by_title=not despite_title), messages


def _refuse_known(requests: Sequence[PaperRequest], pool: Pool, *, by_title: bool) -> list[PaperRequest]:
    """Refuse the papers that are in the corpus or its exclusions, and those that are named twice."""
    checked: list[PaperRequest] = []
    records = RecordIndex([*pool.papers, *pool.exclusions])
    accepted = RecordIndex()  # the papers of earlier requests; `key` is the index of the request
    for index, request in enumerate(requests):
        if not request.is_refused:
            paper = request.paper
            match = records.find(paper, by_title=by_title)
            duplicate = None if match else accepted.find(paper, by_title=by_title)
            if by_title and match is None:
                request = request._replace(remarks=(*request.remarks, *similar_title_remarks(paper, records)))
            if match is not None:
                request = request._replace(match=match, code=ExitCode.FINDINGS)
            elif duplicate is not None and isinstance(duplicate.record, Paper):
                first = requests[int(duplicate.record.key)].name
                shared = f"{duplicate.sign}, {quote(duplicate.shared)}"
                request = request.refuse(f"named twice: {quote(first)} has the same {shared}")
            else:
                accepted.add(paper._replace(key=str(index)))
        checked.append(request)
    return checked


def similar_title_remarks(paper: Paper, records: RecordIndex) -> Iterator[str]:
    """Yield a remark if a record with another arXiv id has nearly the same title."""
    if match := records.near_title(paper, with_other_ids=True):
        yield f"its title is nearly that of {match.record.name}, which has another arXiv id; compare them"


def describe_candidate(paper: Paper, candidates: RecordIndex) -> str:
    """Return a message if the paper is a candidate, by an identifier or by title and key; otherwise an empty text."""
    match = candidates.find(paper)
    if not match or (match.sign is Sign.TITLE and match.record.name != paper.key):
        return ""
    return f"it is the candidate {match.record.name}; to include it: corpus add {match.record.name}"


def _needs_lookup(request: PaperRequest) -> bool:
    return not request.is_refused and not request.paper.title


def request_paper(name: str, pool: Pool, candidates: Sequence[Candidate] = ()) -> PaperRequest:
    """Return the request for a name: of a paper in the pool, an exclusion, a candidate, or an identifier or URL.

    `resolve` refuses papers in the pool. An exclusion with an identifier is looked up to renew its title.
    """
    for record in pool.papers:
        if name.casefold() in (record.key.casefold(), (record.cite_key or record.key).casefold()):
            return PaperRequest(name, record)
    for exclusion in pool.exclusions:
        if name.casefold() == exclusion.id.casefold():
            paper = intake.from_exclusion(exclusion)
            if exclusion.promoted_to:
                return PaperRequest(exclusion.id, paper)
            if any(identities(paper)):
                paper = paper._replace(title="")  # `resolve` looks up papers without a title
            return PaperRequest(exclusion.id, paper, source=exclusion.url, title=exclusion.title, excluded=exclusion)
    candidate_pool = pool._replace(papers=tuple(candidate.paper for candidate in candidates), exclusions=())
    papers = find_records(candidate_pool, name)
    for candidate in candidates:
        if candidate.paper in papers:
            paper = candidate.paper._replace(tags={}, evidence=())
            return PaperRequest(name, paper, source="".join(paper.urls[:1]), candidate=candidate)
    problem = intake.arxiv_misspelling(name, pool)
    identifier = recognise(name)
    if identifier is not None and not problem:
        page = ADDRESSES[identifier.kind] + identifier.value
        return PaperRequest(name, intake.with_identifier(Paper(urls=(page,)), identifier), source=page)
    url = name if "://" in name else ""
    if not url and "/" in name:
        url = FIXES["F114"](name, "urls") or ""  # such as `example.org/paper`, without the scheme
    if not problem and not url:
        problem = f"{quote(name)} is not an arXiv id, DOI, OpenReview or ACL id, or web address"
    elif not problem and url_problem(url):
        problem = f"{quote(url)} {url_problem(url)}"
    if problem:
        return PaperRequest(name, Paper()).refuse(problem, ExitCode.USAGE)
    return PaperRequest(name, Paper(urls=(url,)), source=url)


def _read_entries(path: str, pool: Pool, candidates: Sequence[Candidate]) -> list[PaperRequest]:
    """Return a request for each entry of a file."""
    data = read_bytes(path, path, MAX_BODY_BYTES)
    printable_path = printable(path, limit=300)
    if len(data) > MAX_BODY_BYTES:
        message = f"{printable_path} is larger than {MAX_BODY_BYTES // 2**20} MiB"
        raise DataFileError(message, how_to_raise("MAX_BODY_BYTES"))
    items = registry.find_by_ending(path, data).read(data, pool.taxonomy, path=path)
    if not items:
        raise DataFileError(f"there are no entries in {printable_path}", "Nothing can be added.")
    index = RecordIndex([candidate.paper for candidate in candidates])
    requests = []
    for item in items:
        values, _ = complete_item(item, None)
        paper = intake.from_entry(values, item.annotation)
        problem = intake.arxiv_misspelling(str(values.get(IdentifierKind.ARXIV, "")), pool)
        for kind in IdentifierKind:
            value = getattr(paper, kind.value)
            if not problem and value and not is_normal(kind, value):
                problem = f"{quote(value)} cannot be its {kind}; correct it in the file"
        problem = problem or describe_candidate(paper, index)
        coding, wrong_keywords = tags_of_citation(item, pool.taxonomy)
        values = {**coding, **values}
        paper, wrong_values = _with_other_fields(paper, {**values, **by_term(values, pool.taxonomy)}, pool.taxonomy)
        problem = problem or "; ".join((*wrong_keywords, *wrong_values))
        tags, paper = paper.tags, paper._replace(tags={})
        name, source = f"{path}:{item.line}", "".join(paper.urls[:1])
        request = PaperRequest(name, paper, source=source, words=_command_words(paper), tags=tags)
        if problem:
            request = request.refuse(problem, ExitCode.USAGE)
        requests.append(request)
    return requests


def _with_other_fields(paper: Paper, values: Mapping[str, Value], taxonomy: Taxonomy) -> tuple[Paper, list[str]]:
    """Return a paper with the tags and other fields of an entry that are not those of a citation, and their errors."""
    other_values = {name: value for name, value in values.items() if name not in _CITATION_FIELDS}
    if not other_values:
        return paper, []
    try:  # decoded as a record in a data file would be
        text = add_records(YamlFile("", b"[]\n"), [other_values], paper_style(taxonomy))
    except TooLongError:
        return paper, ["a field is too long"]
    file = YamlFile("", text.encode())
    (decoded,), _ = decode_papers(file, taxonomy, are_whole=False)
    fixed_fields: dict[str, Any] = {name: getattr(decoded, name) for name in other_values if name in Paper._fields}
    problems = [f"{finding.code} {finding.message}" for finding in file.findings]
    return paper._replace(**fixed_fields, tags=decoded.tags, more=decoded.more), problems


def _command_words(paper: Paper) -> tuple[str, ...]:
    """Return the words of a command line that add a paper by its first identifier or URL, with its details."""
    identifiers = (getattr(paper, kind.value) for kind in IdentifierKind)
    names = [name for name in (*identifiers, *paper.urls) if name]
    words = [*names[:1], "--no-fetch"]
    details = {
        "--title": paper.title,
        "--authors": "".join(f"{name};" for name in paper.authors),
        "--year": str(paper.year or ""),
        "--venue": paper.venue,
    }
    for option, value in details.items():
        if value:
            words += (option, value)
    return tuple(words)


def _ask_arxiv(
    requests: Mapping[str, PaperRequest], service: Service, show_progress: ShowProgress
) -> tuple[dict[str | None, PaperRequest], tuple[str, ...]]:
    """Ask arXiv about papers; return the requests with its answers, by arXiv id as `requests`, and its messages."""
    from orchtrace_corpus.corpus.sources.arxiv.client import Client

    try:
        client = Client(service.arxiv_url, offline=service.offline, refresh=service.refresh)
        with show_progress() as progress:
            answer = client.fetch(list(requests), progress=progress)
    except UpstreamError as error:
        problem = _on_one_line(error)
        return {arxiv_id: request.refuse(problem, ExitCode.UPSTREAM) for arxiv_id, request in requests.items()}, ()
    resolved: dict[str | None, PaperRequest] = {}
    for arxiv_id, request in requests.items():
        metadata = answer.found.get(arxiv_id)
        if metadata is not None:
            paper = intake.from_metadata(metadata)
            source, remarks = f"{paper.urls[0]}v{metadata.version}", tuple(intake.metadata_remarks(metadata))
            resolved[arxiv_id] = request._replace(paper=paper, remarks=remarks, source=source, words=())
        elif arxiv_id in answer.missing:
            resolved[arxiv_id] = request.refuse(f"arXiv has no paper {arxiv_id}")
        elif arxiv_id in answer.malformed:
            resolved[arxiv_id] = request.refuse(f"{quote(arxiv_id)} is not an arXiv id", ExitCode.USAGE)
        elif arxiv_id in answer.unasked:
            resolved[arxiv_id] = request.refuse("there is no stored answer for it; omit --offline", ExitCode.UPSTREAM)
        else:
            failure = "did not answer for it" if arxiv_id in answer.throttled else "gave no answer that could be read"
            resolved[arxiv_id] = request.refuse(f"arXiv {failure}; try again later", ExitCode.UPSTREAM)
    return resolved, tuple(answer.messages)


def _on_one_line(error: UpstreamError) -> str:
    return ". ".join(line.rstrip(".") for line in str(error).splitlines())


def _ask_registry(request: PaperRequest, service: Service) -> PaperRequest:
    """Ask the registry of a paper's first identifier about it; return the request with the answer."""
    identifiers = []
    for kind in IdentifierKind:
        value = getattr(request.paper, kind.value)
        if value is not None and kind is not IdentifierKind.ARXIV:
            identifiers.append(Identifier(kind, value))
    if not identifiers:
        return request
    identifier = identifiers[0]
    if service.offline:
        return request.refuse("only arXiv's answers are stored; omit --offline", ExitCode.UPSTREAM)
    from orchtrace_corpus.corpus.sources import registries
    from orchtrace_corpus.corpus.sources.http import Transport

    try:
        with Transport() as transport:
            fields = registries.lookup(identifier, transport)
    except UpstreamError as error:
        return request.refuse(_on_one_line(error), ExitCode.UPSTREAM)
    if fields is None:
        return request.refuse(f"there is no {identifier.kind} {quote(identifier.value)}")
    return request._replace(paper=intake.from_fields(fields))
