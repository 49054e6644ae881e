"""Complete the records of new papers and exclusions, and add papers to a corpus.

Values come from services, from options or an issue form, and from answers to questions, which the caller asks. Fields
that are still missing are returned as `Gap`s.
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
from orchtrace_corpus.corpus.intake.lookup import PaperRequest, Service, request_papers, resolve
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
from orchtrace_corpus.corpus.rules.consistency import years_in


class Details(NamedTuple):
    """The fields of a paper other than tags, as a person gives them; empty if not given.

    Attributes:
        authors: As `Family, Given; Family, Given`.
        urls: URLs to add to those from services.
        values: The values of settable fields (`tagging.settable_fields`), by name.
        note: What a source says about the tags; the note of an item of evidence.
        source: The URL of that source.
        supported: The tags and facts that the item of evidence supports, by field.
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

    def with_defaults(self, defaults: "Details") -> "Details":
        """Return these details, with `defaults` where they are empty."""
        fields = {name: value for name, value in self._asdict().items() if value and name != "values"}
        return defaults._replace(**fields, values={**defaults.values, **self.values})

    @property
    def single_paper_options(self) -> list[str]:
        """The options of the given details that make no sense for several papers, such as `--title`."""
        shareable = {"year", "venue", "affiliation", "supported", "values"}
        options = {"urls": "url", "note": "evidence", "source": "evidence-source"}
        names = [name for name, value in self._asdict().items() if value and name not in shareable]
        flags = [f"--{options.get(name, name)}" for name in names]
        if "code" in self.values:
            flags.append("--set code")
        return flags

    def apply_to(self, paper: Paper) -> Paper:
        """Return a paper with these details, which take precedence over its own."""
        fields = {name: value for name, value in self._asdict().items() if value and name in paper._fields}
        paper = paper.with_values(self.values)
        fields["authors"] = parse_authors(self.authors) or paper.authors
        fields["urls"] = tuple(dict.fromkeys((*paper.urls, *self.urls)))
        return paper._replace(**fields)


class Coding(NamedTuple):
    """The tags of a paper, and the tags of its item of evidence, both by field."""

    tags: Mapping[str, Tag] = {}
    evidence: Mapping[str, Tag] = {}

    def with_defaults(self, defaults: "Coding") -> "Coding":
        """Return this coding, with the tags in `defaults` for fields that it does not tag."""
        return Coding({**defaults.tags, **self.tags}, {**defaults.evidence, **self.evidence})


class Gap(NamedTuple):
    """A missing field of a record.

    Attributes:
        field: The name of the field, or of a term with levels; `evidence` for an item of evidence, `evidence_FIELD`
            for a field of an item.
        facet: The facet, if the field has one.
        demand: A sentence about what is needed; empty if the name says it.
        readings: The values that readers of a candidate gave, each with the reader.
        depends_on: The missing fields whose tags decide whether this one is needed; empty if it always is.
    """

    field: str
    facet: Facet | None = None
    demand: str = ""
    readings: tuple[tuple[str, str], ...] = ()
    depends_on: tuple[str, ...] = ()


class Draft(NamedTuple):
    """The record of a new paper, which may have gaps, and an item of evidence that will be added to it.

    Attributes:
        name: The name of the paper in the command.
        note: The note of the item of evidence; empty for no item.
        source: The URL of the item.
        evidence_tags: The tags of the item, by field.
        candidate: The candidate that becomes the paper.
    """

    name: str
    paper: Paper
    note: str
    source: str
    evidence_tags: Mapping[str, Tag]
    candidate: Candidate | None = None

    def with_readings(self, taxonomy: Taxonomy) -> "Draft":
        """Return the draft with the candidate's readings as evidence."""
        if self.candidate is None:
            return self
        evidence = self.candidate.paper_with_evidence(self.paper.tags, disputable(taxonomy)).evidence
        return self._replace(paper=self.paper._replace(evidence=evidence))

    def complete(self, supported: tuple[str, ...], taxonomy: Taxonomy) -> Paper:
        """Return the record with its evidence. The draft's item supports the fields `supported`, or if empty, most."""
        paper = self.with_readings(taxonomy).paper
        if not self.note:
            return paper
        if not supported:  # all tagged axes and sourced facets, and the fields for which a rule demands evidence
            tagged = [facet.field for facet in taxonomy.papers if facet.sourced or facet.role is Role.AXIS]
            tagged = [field for field in tagged if is_tagged(paper, field)]
            demanded = [field for rule in papers.unmet_demands(paper, taxonomy) for field in rule.evidence]
            fields = dict.fromkeys(field for field in (*tagged, *demanded) if field != ANY_EVIDENCE)
            supported = tuple(fields) or tuple(paper.tags)[:1]  # an item of evidence names at least one tag
        item = classified_evidence(supported, self.note, self.source, self.evidence_tags, taxonomy)
        return paper._replace(evidence=(*paper.evidence, item))


class Addition(NamedTuple):
    """The outcome of adding papers: refused requests, the checked edit with the other papers, and written files."""

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
    """Add papers to a corpus, as `corpus add --yes` does. Nothing is written if they bring errors.

    Args:
        names: Identifiers or URLs of papers, keys of candidates, ids of exclusions, or paths of bibliographies.
        details: Fields other than tags; they take precedence over those from services.
        tags: Tags by field, as values or as texts in the form of the options of `corpus add`.
        evidence: Tags of the item of evidence by field, in the same form.
        root: The corpus's folder; if empty, the nearest one from the working folder upwards.
        service: The access to services; without it, no request is made.
        despite_title: Allow a title that is nearly that of another work.
        dry_run: Check the papers, but write nothing.

    Raises:
        CommandUseError: A detail or tag is wrong, or fields are missing; the message names all of them.
        DataFileError: There is no corpus, or a file cannot be read or written.
        MalformedCorpusError: A data file has syntax errors.
    """
    if not root:
        nearest = store.find_root()
        if nearest.bundled:
            raise DataFileError(f"no {store.PAPERS} here or in any folder above", "Name the corpus with root=DIR.")
        root = nearest.path
    corpus = load_editable(root)
    details = details or Details()
    taxonomy = corpus.pool.taxonomy
    coding = Coding(_read_tags(tags or {}, taxonomy.papers), _read_tags(evidence or {}, evidence_facets(taxonomy)))
    requests = request_papers(names, corpus.pool, corpus.candidates.items)
    error = next(detail_problems(requests, details, coding, corpus.pool), None)
    if error is not None:
        raise error
    service = service or Service(no_fetch=True)
    requests, _ = resolve(requests, corpus.pool, details.apply_to, service, despite_title=despite_title)
    refused = tuple(request for request in requests if request.is_refused)
    accepted = [request for request in requests if not request.is_refused]
    if not accepted:
        return Addition(refused)
    records, gaps_by_name = complete_papers(accepted, details, coding, corpus.pool)
    if gaps_by_name:
        messages = []
        for name, gaps in gaps_by_name.items():
            # A gap that depends on others may not remain when they are filled.
            fields = [gap.field for gap in gaps if not gap.depends_on]
            messages.append(f"missing for {name}: {', '.join(fields)}")
        raise CommandUseError("\n".join(messages))
    judgement = judge(corpus, proposal.add(corpus, records, [request.origin for request in accepted]))
    written = () if dry_run else write(judgement)
    return Addition(refused, judgement, written)


def read_form(body: str, taxonomy: Taxonomy) -> tuple[str, Details, Coding, list[str]]:
    """Return the paper's id or URL, the details and the coding in an issue form, and remarks on unusable answers."""
    form = issue_form.read(body, taxonomy)
    remarks = list(form.remarks)
    texts: dict[str, Any] = {name: papers.plain_text(text) for name, text in form.texts.items()}
    name, year = texts.pop("identifier", ""), texts.pop("year", "")
    if year and not (len(year) == 4 and year.isascii() and year.isdigit()):
        remarks.append("the answer to 'Year' is left out: it has not four digits")
        year = ""
    details = Details()._replace(**texts, year=int(year or 0), values=form.values)
    if not details.note:  # then there is no item of evidence
        return name, details._replace(source=""), Coding(form.tags), remarks
    return name, details, Coding(form.tags, form.evidence), remarks


def detail_problems(
    requests: Sequence[PaperRequest], details: Details, coding: Coding, pool: Pool
) -> Iterator[CommandUseError]:
    """Yield the errors in details that show without a look at the papers' metadata."""
    noun = pool.taxonomy.noun.one
    options = details.single_paper_options
    if len(requests) > 1 and options:
        yield CommandUseError(f"{', '.join(options)} can be true of one {noun} only", f"Name one {noun}.")
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
    """Return the requests as records, and the gaps of each that has some, by the name of the request.

    `ask` asks questions to complete a draft, given the keys in use; without it, no questions are asked.
    """
    used_keys = {paper.key for paper in pool.papers}
    reserved = {request.paper.key for request in requests}  # the keys of entries in a file
    records: list[Paper] = []
    gaps_by_name: dict[str, list[Gap]] = {}
    for request in requests:
        candidate = None
        if request.candidate is not None:
            candidate = request.candidate.settle(coding.tags, pool.taxonomy)
            tags = {field: tag for field, tag in candidate.tags.items() if not candidate.is_open(field)}
        else:
            tags = {field: drop_not_arising(tag) for field, tag in {**request.tags, **coding.tags}.items()}
        paper = request.paper._replace(tags=tags, added=today().isoformat())
        source = details.source or request.source or "".join(paper.urls[:1])
        draft = Draft(request.name, paper, details.note, source, coding.evidence, candidate)
        if ask is not None:
            draft = ask(draft, used_keys)
        # The venue of a preprint that appeared later can name another year, such as `ICML 2025`. Citations use it.
        paper, years = draft.paper, set(years_in(draft.paper.venue))
        if paper.year and not paper.venue_year and len(years) == 1 and str(paper.year) not in years:
            draft = draft._replace(paper=paper._replace(venue_year=int(years.pop())))
        paper = draft.complete(details.supported, pool.taxonomy)
        if gaps := _paper_gaps(paper, draft, pool.taxonomy):
            gaps_by_name[request.name] = gaps
        key = papers.propose_key(paper, used_keys, reserved)
        records.append(paper._replace(key=key))
        used_keys.add(key)
    return records, gaps_by_name


def complete_exclusion(
    paper: Paper, corpus: CorpusFiles, exclusion: Exclusion, ask: Callable[[Exclusion], Exclusion] | None = None
) -> tuple[Exclusion, list[Gap]]:
    """Return a paper as an exclusion, and its gaps.

    `exclusion` has the tags, the reason, the identifier and the day of screening; a day that is not a date raises a
    `CommandUseError`. `ask` asks questions to complete the exclusion; without it, no questions are asked.
    """
    # The new id is one that no data file mentions, since a mention may be of an exclusion that was removed.
    text = "\n".join(corpus.text(path) or "" for path in (store.CANDIDATES, store.EXCLUSIONS, store.PAPERS))
    record = exclusion._replace(
        id=papers.next_exclusion_id(corpus.pool.exclusions, text),
        title=paper.title,
        url="".join(paper.urls[:1]),
        screened=screening_day(exclusion.screened),
    )
    if ask is not None:
        record = ask(record)
    identifier = exclusion.identifier or papers.exclusion_identifier(paper._replace(title=record.title))
    gaps = [Gap(option) for option, value in (("title", record.title), ("url", record.url)) if not value]
    gaps += _facet_gaps(corpus.pool.taxonomy.exclusions, record.tags)
    if not record.reason:
        gaps.append(Gap("reason", demand="why it is left out, in one sentence"))
    return record._replace(identifier=identifier), gaps


def screening_day(text: str) -> str:
    """Return the day in the option `--screened`, or today if empty; raise a `CommandUseError` if it is not a date."""
    if text and not is_iso_date(text):
        raise CommandUseError(f"--screened {quote(text)} is not a date", "Write YYYY-MM-DD.")
    return text or today().isoformat()


def _read_tags(texts: Mapping[str, str | Tag], facets: Sequence[Facet]) -> dict[str, Tag]:
    facets_by_field = {facet.field: facet for facet in facets}
    for name in texts:
        if name not in facets_by_field:
            raise CommandUseError(f"unknown axis or facet {quote(name)}", f"Fields: {', '.join(facets_by_field)}.")
    return {name: read_tag(facets_by_field[name], tag) if isinstance(tag, str) else tag for name, tag in texts.items()}


def _paper_gaps(paper: Paper, draft: Draft, taxonomy: Taxonomy) -> list[Gap]:
    """Return the gaps of `paper`, which is the completed record of `draft`."""
    options = {"title": "title", "authors": "authors", "year": "year", "venue": "venue", "urls": "url"}
    required = [name for name in options if name not in taxonomy.optional]
    gaps = [Gap(options[name]) for name in required if not getattr(paper, name)]
    empty = [field for field in taxonomy.fields if field.required and paper.value(field.name) in (None, "", ())]
    gaps += [Gap(field.name, demand=field.help) for field in empty]
    gaps += _facet_gaps(taxonomy.papers, paper.tags, candidate=draft.candidate)
    evidence_gaps: list[Gap] = []
    depends_on: tuple[str, ...] = ()
    if not draft.note:
        open_names: set[str] = set()
        if draft.candidate is None:  # the readings of a candidate become evidence, so its open tags demand none
            open_facets = [gap.facet for gap in gaps if gap.facet is not None]
            open_names = {facet.field for facet in open_facets}
            open_names |= {term.id for facet in open_facets if facet.levels for term in facet.terms}
        demands = papers.unmet_demands(paper, taxonomy, open_names)
        if not demands:
            return gaps
        evidence_gaps = [Gap("evidence", demand=rule.message) for rule in demands]
        if not papers.unmet_demands(paper, taxonomy):  # only open tags can demand the evidence
            depends_on = tuple(open_names)
    if not draft.source:
        evidence_gaps.append(Gap("evidence_source"))
    evidence_gaps += _facet_gaps(taxonomy.evidence, draft.evidence_tags, "evidence_")
    return gaps + [gap._replace(depends_on=depends_on) for gap in evidence_gaps]


def _facet_gaps(
    facets: Iterable[Facet], tags: Mapping[str, Tag], prefix: str = "", candidate: Candidate | None = None
) -> list[Gap]:
    """Return a gap for each required facet without a tag; for a candidate, one for each open field or term."""
    gaps = []
    for facet in facets:
        if not facet.required or facet.field in tags:
            continue
        if candidate is None:
            gaps.append(Gap(f"{prefix}{facet.field}", facet))
            continue
        names = [term.id for term in facet.terms] if facet.kind is Kind.LEVELS else [facet.field]
        gaps += [
            Gap(name, facet, readings=candidate.values_with_readers(name)) for name in names if candidate.is_open(name)
        ]
    return gaps
