"""Complete records: from the answers of services, from options or a form, and from answers to questions.

Questions come in as a function; without one, the missing fields are returned.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.base.dates import is_iso_date, today
from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.analysis.evidence import is_tagged
from orchtrace_corpus.corpus.edit import proposal
from orchtrace_corpus.corpus.edit.proposal import Judgement, judge, load_editable, write
from orchtrace_corpus.corpus.edit.tags import refuse_unknown_facets
from orchtrace_corpus.corpus.formats import issue_form
from orchtrace_corpus.corpus.intake import papers
from orchtrace_corpus.corpus.intake.lookup import PaperRequest, Service, name_papers, resolve
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.author_names import parse_authors
from orchtrace_corpus.corpus.model.candidates import Candidate
from orchtrace_corpus.corpus.model.disputes import disputable
from orchtrace_corpus.corpus.model.field_table import FieldValue
from orchtrace_corpus.corpus.model.fields import is_key
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Pool, Tag, classified_evidence, evidence_facets
from orchtrace_corpus.corpus.model.store import CorpusFiles
from orchtrace_corpus.corpus.model.tagging import drop_not_arising, read_tag
from orchtrace_corpus.corpus.model.taxonomy import ANY_EVIDENCE, Facet, Kind, Role, Taxonomy
from orchtrace_corpus.corpus.rules.consistency import named_years


class Details(NamedTuple):
    """Details of a paper apart from its tags, as a person gives them; empty if not given.

    Attributes:
        authors: As `Family, Given; Family, Given`.
        urls: Further URLs.
        values: The values of settable fields (`tagging.settable_fields`), by name.
        note: The support for the tags in a source.
        source: The URL of that source.
        supported: The fields that it supports.
    """

    key: str = ""
    title: str = ""
    authors: str = ""
    year: int = 0
    venue: str = ""
    affiliation: str = ""
    urls: tuple[str, ...] = ()
    values: Mapping[str, FieldValue] = {}
    summary: str = ""
    notes: str = ""
    note: str = ""
    source: str = ""
    supported: tuple[str, ...] = ()

    def over(self, others: "Details") -> "Details":
        """Return these details, completed by the others."""
        fields = {name: value for name, value in self._asdict().items() if value and name != "values"}
        return others._replace(**fields, values={**others.values, **self.values})

    @property
    def of_one_paper(self) -> list[str]:
        """The options of those details that cannot hold for several papers."""
        options = {"urls": "url", "note": "evidence", "source": "evidence-source"}
        of_many = {"year", "venue", "affiliation", "supported", "values"}
        names = [name for name, value in self._asdict().items() if value and name not in of_many]
        flags = [f"--{options.get(name, name)}" for name in names]
        return [*flags, "--set code"] if "code" in self.values else flags

    def describe(self, paper: Paper) -> Paper:
        """Return a paper with these details in place of those from services."""
        fields = {name: value for name, value in self._asdict().items() if value and name in paper._fields}
        paper = paper.with_values(self.values)
        fields["authors"] = parse_authors(self.authors) or paper.authors
        fields["urls"] = tuple(dict.fromkeys((*paper.urls, *self.urls)))
        return paper._replace(**fields)


class Coding(NamedTuple):
    """The tags of a paper by field, and the facets of its evidence by field."""

    tags: Mapping[str, Tag] = {}
    evidence: Mapping[str, Tag] = {}

    def over(self, others: "Coding") -> "Coding":
        """Return this coding, completed by the other one."""
        return Coding({**others.tags, **self.tags}, {**others.evidence, **self.evidence})


class Gap(NamedTuple):
    """A missing field of a record.

    Attributes:
        field: Its name, or that of a term with levels; `evidence` for an item of evidence, `evidence_FIELD` for a
            field of an item.
        facet: The facet, if the field has one.
        demand: The sentence that says what is needed.
        readings: The values that readers of a candidate gave, each with the reader.
        depends_on: The missing fields whose tags decide whether this one is needed; empty if it always is.
    """

    field: str
    facet: Facet | None = None
    demand: str = ""
    readings: tuple[tuple[str, str], ...] = ()
    depends_on: tuple[str, ...] = ()


class Draft(NamedTuple):
    """A record of a paper in which fields may be missing, and an item of evidence that is not in the record yet."""

    name: str
    paper: Paper
    note: str
    source: str
    facets: Mapping[str, Tag]
    candidate: Candidate | None = None

    def with_readings(self, taxonomy: Taxonomy) -> "Draft":
        """Return the draft with the candidate's readings as evidence."""
        if self.candidate is None:
            return self
        evidence = self.candidate.paper_with_evidence(self.paper.tags, disputable(taxonomy)).evidence
        return self._replace(paper=self.paper._replace(evidence=evidence))

    def complete(self, supported: tuple[str, ...], taxonomy: Taxonomy) -> Paper:
        """Return the record with its items of evidence."""
        paper = self.with_readings(taxonomy).paper
        if not self.note:
            return paper
        if not supported:  # the tagged axes and sourced fields, and the fields that a rule demands evidence for
            tagged = [facet.field for facet in taxonomy.papers if facet.sourced or facet.role is Role.AXIS]
            tagged = [field for field in tagged if is_tagged(paper, field)]
            demanded = [field for rule in papers.unmet_demands(paper, taxonomy) for field in rule.evidence]
            fields = dict.fromkeys(field for field in (*tagged, *demanded) if field != ANY_EVIDENCE)
            supported = tuple(fields) or tuple(paper.tags)[:1]  # an item of evidence names at least one tag
        item = classified_evidence(supported, self.note, self.source, self.facets, taxonomy)
        return paper._replace(evidence=(*paper.evidence, item))


class Addition(NamedTuple):
    """The outcome of adding papers: those refused; the edit of the others, if there are any; the written files."""

    refused: tuple[PaperRequest, ...]
    judgement: Judgement | None = None
    written: tuple[str, ...] = ()


def add(
    names: Sequence[str],
    details: Details | None = None,
    tags: Mapping[str, str | Tag] | None = None,
    evidence: Mapping[str, str | Tag] | None = None,
    *,
    root: str = "",
    service: Service | None = None,
    despite_title: bool = False,
    dry_run: bool = False,
) -> Addition:
    """Add papers to a corpus, as `corpus add --yes` does; they are written unless they bring errors.

    Args:
        names: The papers' ids, URLs, keys of candidates or ids of exclusions; or files of papers.
        details: Details apart from tags; they replace those from services.
        tags: Tags by field, as values or in the form of the options of `corpus add`.
        evidence: The facets of their evidence by field, likewise.
        root: The corpus's folder; without it, the nearest one from the working folder upwards.
        service: The access to services; without it, no request is made.
        despite_title: Allow a title that is nearly that of another work.
        dry_run: Judge the papers, and write nothing.

    Raises:
        CommandUseError: A detail or tag is wrong, or fields are missing; the message names all of them.
        DataFileError: There is no corpus, or a file cannot be read or written.
        MalformedCorpusError: A data file has syntax errors.
    """
    nearest = None if root else store.find_root()
    if nearest is not None and nearest.bundled:
        raise DataFileError(f"no {store.PAPERS} here or in any folder above", "Name the corpus with root=DIR.")
    corpus, details = load_editable(nearest.path if nearest else root), details or Details()
    taxonomy = corpus.pool.taxonomy
    coding = Coding(_read_tags(tags or {}, taxonomy.papers), _read_tags(evidence or {}, evidence_facets(taxonomy)))
    requests = name_papers(names, corpus.pool, corpus.candidates.items)
    error = next(detail_problems(requests, details, coding, corpus.pool), None)
    if error is not None:
        raise error
    service = service or Service(no_fetch=True)
    requests, _ = resolve(requests, corpus.pool, details.describe, service, despite_title=despite_title)
    refused = tuple(request for request in requests if request.is_refused)
    new = [request for request in requests if not request.is_refused]
    if not new:
        return Addition(refused)
    records, gaps = complete_papers(new, details, coding, corpus.pool)
    if gaps:
        fields = {name: [gap.field for gap in missing if not gap.depends_on] for name, missing in gaps.items()}
        raise CommandUseError("\n".join(f"missing for {name}: {', '.join(names)}" for name, names in fields.items()))
    judgement = judge(corpus, proposal.add(corpus, records, [request.origin for request in new]))
    return Addition(refused, judgement, () if dry_run else write(judgement))


def read_form(body: str, taxonomy: Taxonomy) -> tuple[str, Details, Coding, list[str]]:
    """Return an issue form's paper (its id or URL, or nothing), details and coding, and remarks on unusable answers."""
    form = issue_form.read(body, taxonomy)
    remarks = list(form.remarks)
    texts: dict[str, Any] = {name: papers.plain(text) for name, text in form.texts.items()}
    name, year = texts.pop("identifier", ""), texts.pop("year", "")
    if year and not (len(year) == 4 and year.isascii() and year.isdigit()):
        remarks.append("the answer to 'Year' is left out: it has not four digits")
        year = ""
    details = Details()._replace(**texts, year=int(year or 0), values=form.values)
    coding = Coding(form.tags, form.evidence if details.note else {})
    return name, details if details.note else details._replace(source=""), coding, remarks


def detail_problems(
    requests: Sequence[PaperRequest], details: Details, coding: Coding, pool: Pool
) -> Iterator[CommandUseError]:
    """Yield the errors in details, whatever the papers are."""
    noun = pool.taxonomy.noun.one
    if len(requests) > 1 and details.of_one_paper:
        yield CommandUseError(f"{', '.join(details.of_one_paper)} can be true of one {noun} only", f"Name one {noun}.")
    if details.year and not 1000 <= details.year <= 9999:
        yield CommandUseError(f"--year {details.year} is not a year", "Write four digits.")
    if details.key and not is_key(details.key):
        form = "use lower-case letters, digits and single hyphens"
        yield CommandUseError(f"{quote(details.key)} is not a valid key: {form}")
    if details.key in {paper.key for paper in pool.papers}:
        yield CommandUseError(f"{quote(details.key)} is the key of another {noun}", "Leave out --key for a proposal.")
    if (details.source or details.supported or coding.evidence) and not details.note:
        hint = "Say with --evidence what in the source supports the tags."
        yield CommandUseError("an item of evidence needs a note", hint)
    try:
        parse_authors(details.authors)
    except CommandUseError as error:
        yield error
    try:
        refuse_unknown_facets(details.supported, pool.taxonomy)
    except CommandUseError as error:
        yield error


def complete_papers(
    requests: Sequence[PaperRequest],
    details: Details,
    coding: Coding,
    pool: Pool,
    ask: Callable[[Draft, Collection[str]], Draft] | None = None,
) -> tuple[list[Paper], dict[str, list[Gap]]]:
    """Return the requests as records, and the missing fields of each, by its name.

    `ask` completes a draft, given the keys in use; without it, no questions are asked.
    """
    used_keys = {paper.key for paper in pool.papers}
    reserved = {request.paper.key for request in requests}  # the keys of entries in a file
    records: list[Paper] = []
    gaps: dict[str, list[Gap]] = {}
    for request in requests:
        candidate = request.candidate.settle(coding.tags, pool.taxonomy) if request.candidate else None
        if candidate:
            tags = {field: tag for field, tag in candidate.tags.items() if not candidate.is_open(field)}
        else:
            tags = {field: drop_not_arising(tag) for field, tag in {**request.tags, **coding.tags}.items()}
        paper = request.paper._replace(tags=tags, added=today().isoformat())
        source = details.source or request.source or next(iter(paper.urls), "")
        draft = Draft(request.name, paper, details.note, source, coding.evidence, candidate)
        draft = ask(draft, used_keys) if ask else draft
        # A venue that names one other year, as that of a preprint printed later: citations use the year of the venue.
        paper, years = draft.paper, set(named_years(draft.paper.venue))
        if paper.year and not paper.venue_year and len(years) == 1 and str(paper.year) not in years:
            draft = draft._replace(paper=paper._replace(venue_year=int(years.pop())))
        paper = draft.complete(details.supported, pool.taxonomy)
        if missing := _paper_gaps(paper, draft, pool.taxonomy):
            gaps[request.name] = missing
        records.append(paper._replace(key=papers.propose_key(paper, used_keys, reserved)))
        used_keys.add(records[-1].key)
    return records, gaps


def complete_exclusion(
    paper: Paper, corpus: CorpusFiles, exclusion: Exclusion, ask: Callable[[Exclusion], Exclusion] | None = None
) -> tuple[Exclusion, list[Gap]]:
    """Return a paper as an exclusion with the next id that no data file mentions, and its missing fields.

    `exclusion` has its tags, reason, identifier and day of screening (a `CommandUseError` if that is not a date).
    `ask` completes it; without it, no questions are asked.
    """
    text = "\n".join(corpus.text(path) or "" for path in (store.CANDIDATES, store.EXCLUSIONS, store.PAPERS))
    record = exclusion._replace(
        id=papers.next_exclusion_id(corpus.pool.exclusions, text),
        title=paper.title,
        url=next(iter(paper.urls), ""),
        screened=screening_day(exclusion.screened),
    )
    record = ask(record) if ask else record
    identifier = exclusion.identifier or papers.screened_identifier(paper._replace(title=record.title))
    gaps = [Gap(option) for option, value in (("title", record.title), ("url", record.url)) if not value]
    gaps += _facet_gaps(corpus.pool.taxonomy.exclusions, record.tags)
    if not record.reason:
        gaps.append(Gap("reason", demand="why it is left out, in one sentence"))
    return record._replace(identifier=identifier), gaps


def screening_day(text: str) -> str:
    """Return the day of `--screened`, today without one; a `CommandUseError` if it is not a date."""
    if text and not is_iso_date(text):
        raise CommandUseError(f"--screened {quote(text)} is not a date", "Write YYYY-MM-DD.")
    return text or today().isoformat()


def _read_tags(texts: Mapping[str, str | Tag], facets: Sequence[Facet]) -> dict[str, Tag]:
    by_field = {facet.field: facet for facet in facets}
    for name in texts:
        if name not in by_field:
            raise CommandUseError(f"unknown axis or facet {quote(name)}", f"Fields: {', '.join(by_field)}.")
    return {name: read_tag(by_field[name], tag) if isinstance(tag, str) else tag for name, tag in texts.items()}


def _paper_gaps(paper: Paper, draft: Draft, taxonomy: Taxonomy) -> list[Gap]:
    """Return the missing fields of the paper that a draft has become."""
    names = {"title": "title", "authors": "authors", "year": "year", "venue": "venue", "urls": "url"}
    gaps = [Gap(option) for name, option in names.items() if name not in taxonomy.optional and not getattr(paper, name)]
    gaps += [
        Gap(field.name, demand=field.help)
        for field in taxonomy.fields
        if field.required and paper.value(field.name) in (None, "", ())
    ]
    gaps += _facet_gaps(taxonomy.papers, paper.tags, candidate=draft.candidate)
    if not draft.note:
        # An open tag can demand evidence. That of a candidate brings it along: its readings become evidence.
        facets = [gap.facet for gap in gaps if gap.facet is not None] if draft.candidate is None else []
        open_names = {facet.field for facet in facets}
        open_names |= {term.id for facet in facets if facet.levels for term in facet.terms}
        demands = papers.unmet_demands(paper, taxonomy, open_names)
        if not demands:
            return gaps
        of_evidence = [Gap("evidence", demand=rule.message) for rule in demands]
        # Evidence that the present tags demand is missing whatever the open ones become.
        undecided = () if papers.unmet_demands(paper, taxonomy) else tuple(open_names)
    else:
        of_evidence, undecided = [], ()
    if not draft.source:
        of_evidence.append(Gap("evidence_source"))
    of_evidence += _facet_gaps(taxonomy.evidence, draft.facets, "evidence_")
    return gaps + [gap._replace(depends_on=undecided) for gap in of_evidence]


def _facet_gaps(
    facets: Iterable[Facet], tags: Mapping[str, Tag], prefix: str = "", candidate: Candidate | None = None
) -> list[Gap]:
    """Return the missing tags; for a candidate, those that are open, with its readings."""
    gaps = []
    for facet in (facet for facet in facets if facet.required and facet.field not in tags):
        names = [term.id for term in facet.terms] if facet.kind is Kind.LEVELS else [facet.field]
        if candidate is None:
            gaps.append(Gap(f"{prefix}{facet.field}", facet))
        else:
            gaps += [Gap(name, facet, readings=candidate.readers_of(name)) for name in names if candidate.is_open(name)]
    return gaps
