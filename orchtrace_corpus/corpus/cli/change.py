"""The commands that change records: `corpus add`, `exclude`, `tag` and `remove`."""

import sys
from collections.abc import Sequence
from functools import partial

from orchtrace_corpus.base.annotations import Annotated, Any
from orchtrace_corpus.base.commands.declarations import Context, Option
from orchtrace_corpus.base.commands.options import DryRun, split_names
from orchtrace_corpus.base.errors import CommandUseError, DataFileError, ExitCode
from orchtrace_corpus.base.findings import printable, quote, suggestion
from orchtrace_corpus.base.yamlfile.reader import read_bytes
from orchtrace_corpus.corpus.checks import read_committed
from orchtrace_corpus.corpus.cli import offers
from orchtrace_corpus.corpus.cli.facets import (
    DetailOptions,
    EvidenceOptions,
    ExclusionOptions,
    IntakeOptions,
    PaperOptions,
    TagProblem,
    collect_errors,
    read_coding,
    read_values,
    refuse_all,
)
from orchtrace_corpus.corpus.cli.interview import Interview
from orchtrace_corpus.corpus.cli.options import Destination, Title, To, argument, option
from orchtrace_corpus.corpus.cli.outcome import apply
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.edit import proposal as edit
from orchtrace_corpus.corpus.edit import tags as tagging
from orchtrace_corpus.corpus.edit.proposal import Proposal, Target, find_target, load_editable
from orchtrace_corpus.corpus.formats.issue_form import MAX_BODY_BYTES
from orchtrace_corpus.corpus.intake.drafts import Coding, Details, detail_problems, read_form, screening_day
from orchtrace_corpus.corpus.intake.lookup import PaperRequest, request_paper, request_papers
from orchtrace_corpus.corpus.intake.screening import proposed_reason
from orchtrace_corpus.corpus.model.author_names import parse_authors
from orchtrace_corpus.corpus.model.field_table import FieldValue
from orchtrace_corpus.corpus.model.record_fields import Value, tag_value
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, classified_evidence
from orchtrace_corpus.corpus.model.tagging import read_value, sentence, settable_fields
from orchtrace_corpus.corpus.model.taxonomy import Taxonomy


def add(
    ctx: Context,
    names: Annotated[
        list[str] | None, argument("ID_OR_URL...", "An id, an address, or a file of papers.", offers.keys)
    ] = None,
    issue: Annotated[str, option("--from-issue", "FILE", "Read an issue form; - for standard input.")] = "",
    to: To = Destination.POOL,
    *,
    detail_options: DetailOptions,
    options: IntakeOptions,
    coded: PaperOptions,
) -> int:
    """Add papers to the pool.

    Name a paper by an arXiv id, DOI, OpenReview or ACL id, or address; or name a file of papers: .bib, .ris, .csl.json,
    .csv, .json or .jsonl. Title, authors and year come from arXiv, the registry or the file; tags are options, or
    keywords of the file such as stop=explicit. At a terminal, what is missing is asked for. A candidate (name its key)
    or an exclusion (name its id) becomes a paper and keeps its known fields.

    A known paper is not added; the reason is shown. Nothing is written unless every new paper is complete. Exit
    code 0: all added; 1: some are known; 2: something is missing or misspelt; 4: a service could not be reached.

    \b
    Examples:
      corpus add 2605.08686
      corpus add references.bib --category benchmark --rl none
      corpus add library.ris --to candidates
      corpus add E007 --dry-run
      corpus add https://example.org/team --title "A Team" --year 2026 --dry-run
    """
    interview = Interview(ctx, options)
    corpus, pool = interview.corpus, interview.corpus.pool
    if to is Destination.CANDIDATES:
        from orchtrace_corpus.corpus.cli.upstream import import_candidates  # imports the clients of all services

        return import_candidates(interview.session, corpus, names or [], dry_run=options.dry_run)
    coding = read_coding(coded, pool.taxonomy, interview.problems, pool.taxonomy.papers, options.tags)
    values = read_values(coded, pool.taxonomy, interview.problems)
    details = _details(detail_options, interview.problems, pool.taxonomy, values)
    candidates = corpus.candidates.items
    requests = request_papers(names or [], pool, candidates)
    if issue:
        if names:
            message = f"--from-issue names the {pool.taxonomy.noun.one} itself"
            raise CommandUseError(message, "Leave out the other names.")
        name, form_details, form_coding = _read_issue(interview.session, issue, pool.taxonomy)
        requests = [request_paper(name, pool, candidates)]
        details, coding = details.with_defaults(form_details), coding.with_defaults(form_coding)
    if not requests:
        hint = "Write an arXiv id, a DOI or an address: corpus add 2605.08686"
        if details.title:
            hint = (
                "Without an arXiv id or a DOI, give the address of a page that describes it: "
                'corpus add https://example.org/team --title "A Team" --year 2026'
            )
        raise CommandUseError(f"name {pool.taxonomy.noun.with_article} to add", hint)
    interview.problems += [TagProblem("", error) for error in detail_problems(requests, details, coding, pool)]

    def propose(accepted: Sequence[PaperRequest]) -> Proposal:
        papers = interview.complete_papers(accepted, details, coding)
        origins = [request.origin for request in accepted]
        interview.repeat = lambda current: edit.add(current, papers, origins)
        return interview.repeat(corpus)

    return interview.record_papers(requests, details, propose)


def exclude(
    ctx: Context,
    name: Annotated[
        str, argument("ID_OR_URL|KEY", "An arXiv id, DOI, address or candidate; or a paper's key.", offers.keys)
    ],
    reason: Annotated[str, option("--reason", "TEXT", "Why it is excluded, in one sentence.")] = "",
    title: Title = "",
    url: Annotated[str, option("--url", "URL", "Its address, if it cannot be looked up.")] = "",
    identifier: Annotated[
        str, option("--identifier", "TEXT", "Its identifier (default: its arXiv id or DOI, or a name in capitals).")
    ] = "",
    screened: Annotated[str, option("--screened", "DATE", "The day of screening, YYYY-MM-DD (default: today).")] = "",
    *,
    options: IntakeOptions,
    coded: ExclusionOptions,
) -> int:
    """Record why a paper was excluded.

    The record gets the next free id; ids are never reused. A candidate leaves data/candidates.yaml in the
    same edit. At a terminal, missing values are asked for.

    A paper of the pool that is named by its key is moved to the exclusions, in one edit of both files. If it came from
    an exclusion ("corpus add E007"), it returns to it, with its reason and tags unless new ones are given. A paper of
    the pool that is named by another id or address is refused, and so is one that is already excluded.

    \b
    Examples:
      corpus exclude 2605.08686 --stage abstract_screen --reason "Nothing is trained."
      corpus exclude https://example.org/docs --title "Documentation of a Team" --dry-run
      corpus exclude halo --stage full_text_screen --reason "Nothing is trained." --dry-run
    """
    interview = Interview(ctx, options)
    corpus, pool = interview.corpus, interview.corpus.pool
    tags = read_coding(coded, pool.taxonomy, interview.problems, pool.taxonomy.exclusions, options.tags).tags
    draft = Exclusion(identifier=identifier, tags=tags, screened=screened, reason=sentence(reason.strip()))
    key = name.strip().casefold()
    for paper in pool.papers:
        if paper.key.casefold() == key:
            refuse_all([problem.error for problem in interview.problems])
            if title or url:
                raise CommandUseError(f"{paper.key} has its title and address", "Leave out --title and --url.")
            return interview.finish(partial(_demote, interview, paper, draft))

    # Without `excluded`, the id of an exclusion is refused as known, since it does not become a paper here.
    request = request_paper(name.strip(), pool, corpus.candidates.items)._replace(excluded=None)
    candidate = request.candidate
    if candidate is not None:
        draft = draft._replace(tags={**candidate.screening, **tags}, reason=draft.reason or proposed_reason(candidate))

    def propose(accepted: Sequence[PaperRequest]) -> Proposal:
        record = interview.complete_exclusion(accepted[0].name, accepted[0].paper, draft)
        return edit.exclude(corpus, record, accepted[0].candidate)

    details = Details(title=title, urls=(url,) if url else ())
    return interview.record_papers([request], details, propose, no_fetch=bool(title))


def _demote(interview: Interview, paper: Paper, draft: Exclusion) -> Proposal:
    """Propose to move a paper from the pool to the exclusion that it came from, or to a new one."""
    corpus, pool = interview.corpus, interview.corpus.pool
    target = find_target(pool, paper.key)
    for origin in pool.exclusions:
        if origin.promoted_to == paper.key:
            changes: dict[str, Value | None] = {"promoted_to": None}
            changes |= {field: tag_value(tag) for field, tag in draft.tags.items()}
            if draft.reason:
                changes["reason"] = draft.reason
            if draft.reason or draft.screened:
                changes["screened"] = screening_day(draft.screened)
            return edit.demote(corpus, target, edit.change(corpus, find_target(pool, origin.id), changes))
    exclusion = interview.complete_exclusion(paper.key, paper, draft)
    return edit.demote(corpus, target, edit.exclude(corpus, exclusion))


def tag(
    ctx: Context,
    name: Annotated[str, argument("KEY", "A key, exclusion id, arXiv id, DOI or URL.", offers.keys)],
    words: Annotated[list[str] | None, argument("[FIELD=VALUE]...", "The tags to set.", offers.filters)] = None,
    note: Annotated[
        str, option("--evidence", "NOTE", "Add an item of evidence: what in the source supports the tags.")
    ] = "",
    source: Annotated[str, option("--evidence-source", "URL", "The address of that source.")] = "",
    location: Annotated[
        str, option("--evidence-location", "TEXT", "The place in the source: a page, section or line.")
    ] = "",
    supported: Annotated[
        str,
        option("--evidence-tags", "A,B,...", "The fields that it supports (default: those being set).", offers.fields),
    ] = "",
    copy: Annotated[bool, Option("--evidence-copy", help="The source is a hosted copy of the paper itself.")] = False,
    dry_run: DryRun = False,
    *,
    coded: EvidenceOptions,
) -> int:
    """Set tags of one record.

    "field=term" sets a tag, "field=a,b" a tag with several terms, "field=NA" marks it as not applicable, and
    "field=" removes an optional one. "stop=explicit" sets the level of one sub-decision and keeps the others,
    "stop=none" removes it, "sub_decisions=none" removes all. Other fields are set in the same way: for a paper, its
    summary, its notes and the fields of "corpus add --set", such as benchmarks=GAIA,GPQA; for an exclusion, its
    reason. Nothing is written if the edit would cause new errors, or change a tag that was published: "corpus
    dispute" records another reading of it.

    \b
    Examples:
      corpus tag puppeteer topology=centralized --dry-run
      corpus tag puppeteer stop=explicit spawn=designed --dry-run
      corpus tag puppeteer code=https://github.com/OpenBMB/ChatDev --dry-run
      corpus tag E007 stage=full_text_screen --dry-run
    """
    session = CorpusSession(*ctx.obj)
    corpus = load_editable(session.writable_root())
    target = find_target(corpus.pool, name)
    problems: list[TagProblem] = []
    evidence_tags = read_coding(coded, corpus.pool.taxonomy, problems).evidence
    refuse_all([problem.error for problem in problems])
    if not words and not note:
        raise CommandUseError("there is nothing to set", "Write field=value; corpus terms shows the fields.")
    if not note and (source or location or supported or evidence_tags or copy):
        hint = "Say with --evidence what in the source supports the tags."
        raise CommandUseError("an item of evidence needs a note", hint)
    evidence = None
    if note:
        names = split_names(supported) if supported else ()
        evidence = classified_evidence(names, note, source, evidence_tags, corpus.pool.taxonomy)
        evidence = evidence._replace(location=location, copy=copy)
    proposal = tagging.tag(corpus, target, words or [], evidence)
    paper = target.record
    if isinstance(paper, Paper) and paper.published:
        last_commit = read_committed(corpus)
        papers = {committed.key: committed for committed in last_commit.papers} if last_commit else {}
        before = papers.get(paper.key, paper)
        tagging.refuse_published(paper, proposal.changes, corpus.pool.taxonomy, before, evidence)
    code = apply(session, corpus, proposal, dry_run=dry_run)
    if code == ExitCode.DONE and isinstance(paper, Paper):
        for remark in tagging.remarks(paper, proposal.changes, corpus.pool.taxonomy):
            session.output.tell(f"corpus: {remark}")
    return code


def remove(
    ctx: Context,
    names: Annotated[list[str], argument("KEY...", "Keys, exclusion ids, arXiv ids, DOIs or URLs.", offers.keys)],
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask.")] = False,
    unpublished: Annotated[
        bool, Option("--unpublished", help="Allow removing the newest exclusion, whose id was never published.")
    ] = False,
    dry_run: DryRun = False,
) -> int:
    """Remove records, and the comments directly above each.

    Use this for records that should never have existed. To take a paper out of the pool, use "corpus exclude", which
    keeps the reason. The newest exclusion is not removed: its id would be given again, and ids of exclusions are never
    reused.

    \b
    Examples:
      corpus remove puppeteer halo --dry-run
      corpus remove E012 --dry-run
    """
    session = CorpusSession(*ctx.obj)
    corpus = load_editable(session.writable_root())
    targets: list[Target] = []
    for name in names:
        target = find_target(corpus.pool, name)
        if target not in targets:
            targets.append(target)
    proposal = edit.remove(corpus, targets, unpublished=unpublished)
    confirm = None if yes else partial(_confirm_removal, session, targets)
    return apply(session, corpus, proposal, dry_run=dry_run, confirm=confirm)


def _details(
    options: DetailOptions, problems: list[TagProblem], taxonomy: Taxonomy, values: dict[str, FieldValue]
) -> Details:
    """Return the details in the options, with `values` of other options. Errors are added to `problems`."""
    fields: dict[str, Any] = options._asdict() | {"authors": "", "supported": ()}
    fields |= {"urls": tuple(options.urls or ()), "summary": sentence(options.summary.strip())}
    with collect_errors(problems):
        fields["supported"] = split_names(options.supported) if options.supported else ()
    with collect_errors(problems, "authors"):
        parse_authors(options.authors)
        fields["authors"] = options.authors
    settable = settable_fields(taxonomy)
    for text in fields.pop("sets") or ():
        field, equals, value = text.partition("=")
        name = field.strip().replace("-", "_")
        with collect_errors(problems):
            if name not in settable or not equals:
                guess = suggestion(name, list(settable)) if name not in settable else ""
                raise CommandUseError(f"--set {quote(text)} sets no field{guess}", "Write --set FIELD=VALUE.")
            if name in values:
                raise CommandUseError(f"{name} is set twice", "Set it once; write several as a,b.")
            values[name] = read_value(settable[name], value)
    return Details(**fields, values=values)


def _read_issue(session: CorpusSession, path: str, taxonomy: Taxonomy) -> tuple[str, Details, Coding]:
    """Return the paper's id or URL, the details and the coding in an issue form, and show remarks on its answers."""
    printable_path = printable(path, limit=300)
    limit = MAX_BODY_BYTES
    data = sys.stdin.buffer.read(limit + 1) if path == "-" else read_bytes(path, path, limit)
    if len(data) > limit:
        raise DataFileError(f"{printable_path} is larger than any issue: {limit // 1024} KiB")
    try:
        name, details, coding, remarks = read_form(data.decode("utf-8-sig"), taxonomy)
    except UnicodeDecodeError as error:
        raise DataFileError(f"cannot read {printable_path}: not UTF-8") from error
    for remark in remarks:
        session.output.tell(f"corpus: {remark}")
    if not name:
        hint = "Its form has a heading '### arXiv id, DOI or address'."
        raise CommandUseError(f"{printable_path} names no {taxonomy.noun.one}", hint)
    return name, details, coding


def _confirm_removal(session: CorpusSession, targets: Sequence[Target]) -> bool:
    """Ask at the terminal whether to remove records."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise CommandUseError("remove asks first, and this is not a terminal", "Add --yes, or --dry-run.")
    records = (f"{printable(target.record.name)} ({printable(target.record.title)})" for target in targets)
    files = " and ".join(dict.fromkeys(target.path for target in targets))
    question = f"Remove {', '.join(records)} from {files}? [y/N] "
    print(question, end="", file=sys.stderr, flush=True)  # noqa: T201 - Typer's own question goes to standard output
    is_agreed = sys.stdin.readline().strip().lower() in ("y", "yes")
    if not is_agreed:
        session.output.note("corpus: nothing was removed")
    return is_agreed
