"""From what somebody calls a paper to what is known of it: from arXiv, from a registry, from a file."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from orchtrace_corpus.base.commands import progress
from orchtrace_corpus.base.errors import DataFileError, ExitCode, UpstreamError
from orchtrace_corpus.base.findings import printable, quote
from orchtrace_corpus.base.identifiers import Identifier, IdentifierKind, recognise
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.edit.fixes import FIXES
from orchtrace_corpus.corpus.intake import proposal as intake
from orchtrace_corpus.corpus.model.decoders import url_problem
from orchtrace_corpus.corpus.model.fields import is_key
from orchtrace_corpus.corpus.model.metadata import Metadata
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Pool, Record

_BIBTEX = ".bib"
_LARGEST_BYTES = 16 * 2**20
_BY_HAND = "or give --no-fetch and say it with --title, --authors, --year and --venue"


class Service(NamedTuple):
    """How services are asked: not at all, from what is kept, afresh, and where arXiv is."""

    no_fetch: bool = False
    offline: bool = False
    refresh: bool = False
    arxiv_url: str = ""


class Asked(NamedTuple):
    """A paper that somebody named.

    Attributes:
        name: What it was called.
        paper: What is known of it.
        remarks: What somebody should know before it is added.
        source: The address of what was read, for evidence to name.
        problem: Why it cannot be taken; empty as long as it can.
        code: The exit code that the problem stands for.
        again: What calls it on a command line, with all that is known of it, where `name` cannot.
    """

    name: str
    paper: Paper
    remarks: tuple[str, ...] = ()
    source: str = ""
    problem: str = ""
    code: ExitCode = ExitCode.DONE
    again: tuple[str, ...] | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """What calls it on a command line."""
        return (self.name,) if self.again is None else self.again

    def refused(self, problem: str, code: ExitCode = ExitCode.FINDINGS) -> "Asked":
        """The same, with a reason why it cannot be taken."""
        return self._replace(problem=problem, code=code)


def named(words: Iterable[str], pool: Pool) -> list[Asked]:
    """What papers are called, each an id, an address or a BibTeX file of several, with all that this says of them.

    Raises:
        DataFileError: A file cannot be read; the message names the line.
    """
    asked = []
    for word in words:
        if word.lower().endswith(_BIBTEX) and recognise(word) is None and "://" not in word:
            asked += _entries(word, pool)
        else:
            asked.append(recognised(word.strip(), pool))
    return asked


def refused_if_known(
    asked: Sequence[Asked], pool: Pool, mend: Callable[[Record], str], *, by_title: bool
) -> list[Asked]:
    """The same, those refused that the corpus has or has excluded, and those that are named twice.

    Args:
        asked: The papers.
        pool: The corpus.
        mend: What to do instead, where the corpus has such a record.
        by_title: Whether a title that is nearly the same is enough.
    """
    judged: list[Asked] = []
    here = Pool(pool.taxonomy, (), ())
    names: dict[str, str] = {}
    for one in asked:
        found = None if one.problem else intake.match(one.paper, pool, by_title=by_title)
        again = None if one.problem or found else intake.match(one.paper, here, by_title=by_title)
        if found is not None:
            judged.append(one.refused(f"{intake.verdict(found).rstrip('.')}; {mend(found.record)}"))
        elif again is not None and isinstance(again.record, Paper):
            problem = f"named twice: {quote(names[again.record.key])} has the same {again.sign}, {quote(again.shared)}"
            judged.append(one.refused(problem))
        else:
            judged.append(one)
        if not judged[-1].problem:
            number = str(len(here.papers))
            names[number] = one.name
            here = here._replace(papers=(*here.papers, one.paper._replace(key=number)))
    return judged


def told(session: CorpusSession, asked: Sequence[Asked]) -> tuple[list[Asked], int]:
    """Say why papers are refused, and what is to be known of the others; the others, and the worst exit code."""
    for one in asked:
        if one.problem:
            session.output.tell(f"corpus: {printable(one.name)} is refused: {one.problem}")
        for remark in one.remarks:
            session.output.note(f"{printable(one.name)}: {remark}")
    return [one for one in asked if not one.problem], max((one.code for one in asked), default=ExitCode.DONE)


def looked_up(session: CorpusSession, asked: Sequence[Asked], service: Service) -> list[Asked]:
    """The same, with what services say of those of which no title is known: all arXiv ids in one request.

    A service that cannot be asked is a problem of the papers that it would have been asked about.
    """
    if service.no_fetch:
        return list(asked)
    found = _from_arxiv(session, [one for one in asked if _is_open(one) and one.paper.arxiv_id], service)
    return [
        found[one.paper.arxiv_id] if _is_open(one) and one.paper.arxiv_id in found else _from_registry(one, service)
        for one in asked
    ]


def _is_open(one: Asked) -> bool:
    return not one.problem and not one.paper.title


def recognised(word: str, pool: Pool) -> Asked:
    """What one paper is called: an id or an address, never a file.

    What is called by a key or an id of ours is that record, which is then said to be known.
    """
    for record in (*pool.papers, *pool.exclusions):
        if isinstance(record, Paper) and record.key == word:
            return Asked(word, record)
        if isinstance(record, Exclusion) and record.id == word:
            return Asked(word, intake.from_exclusion(record))
    problem = intake.misspelt(word, pool)
    identifier = recognise(word)
    if problem:
        return Asked(word, Paper()).refused(problem, ExitCode.USAGE)
    if identifier is not None:
        paper = intake.from_identifier(identifier)
        return Asked(word, paper, source=paper.urls[0])
    url = word if "://" in word else FIXES["F114"](word, "urls") if "/" in word else None
    if url is None:
        problem = f"{quote(word)} is no arXiv id, DOI, OpenReview or ACL id, and no web address"
        return Asked(word, Paper()).refused(problem, ExitCode.USAGE)
    if url_problem(url):
        return Asked(word, Paper()).refused(f"{quote(url)} {url_problem(url)}", ExitCode.USAGE)
    return Asked(word, Paper(urls=(url,)), source=url)


def _entries(path: str, pool: Pool) -> list[Asked]:
    """The entries of a BibTeX file, each under its own key if that could be one of ours."""
    from orchtrace_corpus.corpus.formats import completed, registry

    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST_BYTES + 1)
    except OSError as error:
        raise DataFileError(f"cannot read {printable(path, limit=300)}: {error.strerror}") from error
    if len(data) > _LARGEST_BYTES:
        raise DataFileError(f"{printable(path, limit=300)} is larger than {_LARGEST_BYTES // 2**20} MiB")
    asked = []
    items = registry.find("bibtex").read(data, pool.taxonomy, path=path)
    if not items:
        raise DataFileError(f"there are no entries in {printable(path, limit=300)}", "Nothing can be added.")
    for item in items:
        values, _ = completed(item, None)
        key = str(values.get("key", ""))
        paper = intake.from_fields(values)._replace(key=key if is_key(key) else "")
        one = Asked(f"{path}:{item.line}", paper, source=paper.urls[0] if paper.urls else "", again=_again(paper))
        problem = intake.misspelt(str(values.get(IdentifierKind.ARXIV, "")), pool)
        asked.append(one.refused(problem, ExitCode.USAGE) if problem else one)
    return asked


def _again(paper: Paper) -> tuple[str, ...]:
    """The words of a command line that say what a file says of a paper."""
    identifier = next((value for kind in IdentifierKind if (value := getattr(paper, kind.value))), None)
    called = identifier or next(iter(paper.urls), None)
    said = (
        ("--title", paper.title),
        ("--authors", "".join(f"{name};" for name in paper.authors)),
        ("--year", str(paper.year or "")),
        ("--venue", paper.venue),
    )
    words = (word for option, value in said if value for word in (option, value))
    return (*((called,) if called else ()), "--no-fetch", *words)


def _from_arxiv(session: CorpusSession, asked: Sequence[Asked], service: Service) -> dict[str | None, Asked]:
    """What comes of asking arXiv about papers, by their arXiv ids."""
    from orchtrace_corpus.corpus.sources.arxiv.client import Client

    papers = {one.paper.arxiv_id or "": one for one in asked}
    if not papers:
        return {}
    try:
        client = Client(service.arxiv_url, offline=service.offline, refresh=service.refresh)
        with progress.shown(session.output) as show:
            answer = client.fetch(list(papers), progress=show)
    except UpstreamError as error:
        problem = f"{_on_one_line(error)}; {_BY_HAND}"
        return {name: one.refused(problem, ExitCode.UPSTREAM) for name, one in papers.items()}
    for message in answer.messages:
        session.output.tell(f"corpus: {printable(message, limit=300)}")
    outcomes: dict[str | None, Asked] = {}
    for name, one in papers.items():
        if name in answer.found:
            outcomes[name] = _described(one, answer.found[name])
        elif name in answer.missing:
            outcomes[name] = one.refused(f"arXiv has no paper {name}")
        elif name in answer.malformed:
            outcomes[name] = one.refused(f"{quote(name)} is no arXiv id", ExitCode.USAGE)
        elif name in answer.unasked:
            outcomes[name] = one.refused(f"nothing is kept of it; leave out --offline, {_BY_HAND}", ExitCode.UPSTREAM)
        else:
            reason = "had no time for it" if name in answer.throttled else "gave no answer that could be read"
            outcomes[name] = one.refused(f"arXiv {reason}; try again later, {_BY_HAND}", ExitCode.UPSTREAM)
    return outcomes


def _on_one_line(error: UpstreamError) -> str:
    return ". ".join(line.rstrip(".") for line in str(error).splitlines())


def _described(one: Asked, metadata: Metadata) -> Asked:
    """The paper as arXiv describes it; the address given stays the first."""
    paper = intake.from_metadata(metadata)
    source = f"{paper.urls[0]}v{metadata.version}"
    return Asked(one.name, paper, tuple(intake.remarks(metadata)), source)


def _from_registry(one: Asked, service: Service) -> Asked:
    identifier = _identifier(one.paper)
    if not _is_open(one) or identifier is None:
        return one
    if service.offline:
        problem = f"only arXiv's answers are kept; leave out --offline, {_BY_HAND}"
        return one.refused(problem, ExitCode.UPSTREAM)
    from orchtrace_corpus.corpus.sources import registries
    from orchtrace_corpus.corpus.sources.http import Transport

    try:
        with Transport() as transport:
            proposed = registries.lookup(identifier, transport)
    except UpstreamError as error:
        return one.refused(f"{_on_one_line(error)}; {_BY_HAND}", ExitCode.UPSTREAM)
    if proposed is None:
        return one.refused(f"there is no {identifier.kind} {quote(identifier.value)}")
    return one._replace(paper=intake.from_fields(proposed))


def _identifier(paper: Paper) -> Identifier | None:
    """The identifier to look a paper up by, arXiv's apart."""
    for kind in IdentifierKind:
        value: Any = getattr(paper, kind.value)
        if value is not None and kind is not IdentifierKind.ARXIV:
            return Identifier(kind, value)
    return None
