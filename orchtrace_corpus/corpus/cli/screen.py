"""The command for decisions on candidates, one after another or by spreadsheets: `corpus screen`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated

from orchtrace_corpus.base.commands.declarations import Context
from orchtrace_corpus.base.dates import today
from orchtrace_corpus.base.errors import CommandUseError, CorpusError, DataFileError, ExitCode
from orchtrace_corpus.base.files import Document, write_stale
from orchtrace_corpus.base.findings import has_errors, printable
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import pluralize
from orchtrace_corpus.corpus.analysis.attributes import candidate_attributes
from orchtrace_corpus.corpus.analysis.query import parse
from orchtrace_corpus.corpus.analysis.reading_order import Score, Similarity
from orchtrace_corpus.corpus.cli.audit import read_sheet, write_new
from orchtrace_corpus.corpus.cli.interview import Questions, can_ask, number_names
from orchtrace_corpus.corpus.cli.options import Order, ReadingOrder, Where, option
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.edit import proposal as edit
from orchtrace_corpus.corpus.edit.proposal import Judgement, Proposal, judge, load_editable, write
from orchtrace_corpus.corpus.intake import screening
from orchtrace_corpus.corpus.intake.screening import Choice, Verdict
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.candidates import Candidate, Decision
from orchtrace_corpus.corpus.model.disputes import NOT_ARISING
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Tag
from orchtrace_corpus.corpus.model.store import CorpusFiles
from orchtrace_corpus.corpus.model.tagging import read_level, read_tag, sentence
from orchtrace_corpus.corpus.model.taxonomy import Kind
from orchtrace_corpus.corpus.render import candidates as render

_KEYS = "i include, e exclude, l later, b back, ? rules, q quit"


def screen(
    ctx: Context,
    where: Where = None,
    order: Order = ReadingOrder.DATE,
    sheet: Annotated[str, option("--sheet", "FILE", "Write a sheet for screening in a spreadsheet instead.")] = "",
    decisions: Annotated[
        list[str] | None,
        option(
            "--decisions", "FILE", "Apply the decisions of a sheet; of several, those on which all agree (repeatable)."
        ),
    ] = None,
) -> int:
    """Decide on candidates, one after another.

    Shows the protocol's rules once. For each candidate, shows title, stored abstract, and the reason it was
    found; below, the most similar records with their tags, and similar exclusions with their reasons. Answers:
    i to include (asks for tags and a summary, or for a reason if a tag stays open), e to exclude (asks for a reason:
    a number of the list, or a sentence), l for later, b to undo the last decision, ? for the rules, q to quit.
    Within a candidate, b goes back to the previous question. Each decision is written at once. An included candidate
    with all its fields and evidence becomes a paper; "corpus add KEY" completes the others.

    For two readers: --sheet writes a CSV file for each, "corpus audit compare" measures their
    agreement, and --decisions, once for each sheet, applies what they agree on. Exit code 1: some
    decisions could not be applied.

    \b
    Examples:
      corpus screen --order likely
      corpus screen --where "found>=2026-11-01"
      corpus screen --sheet first.csv
      corpus screen --sheet second.csv
      corpus screen --decisions first.csv --decisions second.csv
    """
    session = CorpusSession(*ctx.obj)
    if sheet and decisions:
        raise CommandUseError("--sheet and --decisions contradict each other", "Give one of them.")
    corpus = load_editable(session.writable_root())
    if corpus.candidates.is_missing:
        raise DataFileError(f"this corpus has no {store.CANDIDATES}", "corpus discover finds candidates.")
    if decisions:
        return _apply_sheets(session, corpus, decisions)
    selected = parse(where or [], candidate_attributes(corpus.pool.taxonomy)).select(corpus.candidates.items)
    waiting, scores = screening.order_candidates(
        screening.select_undecided(selected), corpus.pool, corpus.arxiv, likely=order is ReadingOrder.LIKELY
    )
    abstracts = screening.plain_abstracts(corpus.arxiv)
    if sheet:
        write_new(sheet, screening.new_sheet(waiting, abstracts, corpus.pool.taxonomy))
        session.output.note(f"wrote {printable(sheet, limit=300)}: {pluralize(len(waiting), 'candidate')}")
        return ExitCode.DONE
    if not waiting:
        message = "no candidate awaits a decision"
        if count := len(screening.select_undecided(corpus.candidates.items)):
            message = f"no candidate passes the filters; without them, {count} to decide on"
        session.output.note(message)
        return ExitCode.DONE
    if not can_ask():
        hint = "Write a sheet with --sheet FILE, and give it back with --decisions FILE."
        raise CommandUseError("screen asks questions, and this is not a terminal", hint)
    names = [candidate.name for candidate in waiting]
    score_by_name = dict(zip(names, scores, strict=False))  # without --order likely, there are no scores
    return _Screening(session, corpus, abstracts, score_by_name).run(names)


class _Step(NamedTuple):
    """A candidate, the decision on it, and the files that the decision changed."""

    name: str
    choice: Choice
    documents: tuple[Document, ...] = ()


class _Screening:
    """One run of the command at a terminal. Its steps are the decisions so far, which `b` undoes."""

    def __init__(
        self, session: CorpusSession, corpus: CorpusFiles, abstracts: Mapping[str, str], scores: Mapping[str, Score]
    ) -> None:
        self._output = session.output
        self._root = corpus.root
        self._protocol = corpus.protocol.require()  # None without a protocol; raises if it has errors
        self._abstracts = abstracts
        self._scores = scores
        self._steps: list[_Step] = []
        self._has_shown_rules = False

    def run(self, names: Sequence[str]) -> int:
        """Ask about each candidate, until the end or `q`, and return the exit code."""
        index = 0
        try:
            while index < len(names):
                corpus = load_editable(self._root)
                candidates = {item.name: item for item in corpus.candidates.items}
                candidate = candidates.get(names[index])
                if candidate is None or candidate.screened:  # somebody else has decided on it
                    index += 1
                    continue
                answer = self._ask(corpus, candidate, f"[{index + 1}/{len(names)}]")
                if answer == "q":
                    break
                index = self._go_back(names, index) if answer == "b" else index + 1
        except KeyboardInterrupt:
            self._output.tell("")
            raise
        finally:
            counts = Counter(step.choice for step in self._steps)
            self._output.note(_format_counts(counts))
            if counts[Choice.INCLUDE] or counts[Choice.EXCLUDE]:
                self._output.note("corpus build regenerates the rest; CONTRIBUTING.md says whether to commit it")
        return ExitCode.DONE

    def _ask(self, corpus: CorpusFiles, candidate: Candidate, position: str) -> str:
        """Show a candidate, ask for a decision, write it, and return the key that was typed."""
        output, taxonomy = self._output, corpus.pool.taxonomy
        similarity = Similarity([*corpus.pool.papers, *corpus.pool.exclusions], self._abstracts)
        neighbours = screening.find_neighbours(candidate, similarity, self._abstracts)
        abstract = self._abstracts.get(candidate.paper.arxiv_id or "", "")
        score = self._scores.get(candidate.name)
        rules = None if self._has_shown_rules else self._protocol
        self._has_shown_rules = True
        card = render.screening_card(candidate, abstract, neighbours, rules, taxonomy, output.width, score)
        output.show([(), *card, ()])
        questions = _Questions(output, taxonomy)
        while True:
            answer = questions.choose_key(f"{position} {_KEYS}: ")
            if answer == "?":
                if self._protocol is None:
                    output.tell(f"this corpus has no {store.PROTOCOL}, which would have rules")
                else:
                    output.show(render.rule_lines(self._protocol, output.width))
                continue
            if answer == "l":
                self._steps.append(_Step(candidate.name, Choice.LATER))
            if answer in ("b", "l", "q"):
                return answer
            try:
                ask = partial(self._propose, corpus, candidate, answer, questions)
                choice, proposal = questions.ask_with_way_back(ask)
                judgement = judge(corpus, proposal)
                if not judgement.is_allowed:
                    findings = "\n".join(map(str, judgement.new_findings))
                    output.tell(f"nothing was written; the decision would bring:\n{findings}")
                    continue
                write(judgement)
            except CorpusError as error:
                output.tell(f"nothing was written: {error}")
                continue
            self._steps.append(_Step(candidate.name, choice, judgement.documents))
            output.tell(_describe_outcome(candidate, choice, judgement))
            return answer

    def _propose(
        self, corpus: CorpusFiles, candidate: Candidate, answer: str, questions: "_Questions"
    ) -> tuple[Choice, Proposal]:
        """Ask for what a decision needs, `i` to include or `e` to exclude, and return it with the edit."""
        day = today().isoformat()
        rules: list[str] = []
        if self._protocol:
            rules = [rule.rule for rule in (self._protocol.include if answer == "i" else self._protocol.exclude)]
        if answer == "i":
            tags = questions.ask_tags(candidate)
            summary = candidate.paper.summary or questions.ask_summary()
            proposal = screening.include(corpus, candidate, reason="", tags=tags, day=day, summary=summary)
            if not proposal.added:  # a tag is open, so it stays a candidate, and the decision needs a reason
                reason = questions.ask_reason(rules, screening.proposed_reason(candidate, Decision.INCLUDE))
                proposal = screening.include(corpus, candidate, reason, tags, day, summary)
            return Choice.INCLUDE, proposal
        reason = questions.ask_reason(rules, screening.proposed_reason(candidate))
        draft, gaps = screening.draft_exclusion(corpus, candidate, Exclusion(screened=day, reason=reason))
        record = questions.complete_exclusion(candidate.name, draft) if gaps else draft
        return Choice.EXCLUDE, edit.exclude(corpus, record, candidate)

    def _go_back(self, names: Sequence[str], index: int) -> int:
        """Undo the last decision, and return the index of its candidate; without a decision, the present index."""
        if not self._steps:
            self._output.tell("this is the first one")
            return index
        step = self._steps[-1]
        if step.documents:
            done = reversed(step.documents)  # `present` is the text before; a file that the decision made is emptied
            former = [Document(doc.name, present=doc.wanted, wanted=doc.present or "[]\n") for doc in done]
            write_stale(self._root, former)
            self._output.tell(f"taken back: {step.name}")
        self._steps.pop()
        return names.index(step.name)


class _Questions(Questions):
    """Asks for decisions, and for tags, which the person can leave open."""

    def choose_key(self, prompt: str) -> str:
        """Return one of the keys in `_KEYS`."""

        def read(answer: str) -> str:
            key = answer[:1].lower()
            if key not in ("i", "e", "l", "b", "?", "q"):
                raise CommandUseError(f"Type one of: {_KEYS}.")
            return key

        self._answers_so_far = None  # b is a key here, no way back; `ask_with_way_back` sets it again
        return self._ask(prompt, read)

    def ask_reason(self, rules: Sequence[str], proposed: str) -> str:
        """Return the sentence, or the rule whose number was typed. Enter accepts the proposal, `?` shows the rules."""
        rule_list = "".join(f"  {number} {rule}\n" for number, rule in enumerate(rules, 1))
        if proposed:
            rule_list += f"  proposed: {printable(proposed, limit=300)}\n"
        self._say(rule_list)
        expected = "a number of the list, or a sentence" if rules else "a sentence"

        def read(answer: str) -> str:
            if answer == "?" and rules:
                raise CommandUseError(rule_list)  # shows the rules, and asks again
            if answer.isdecimal() and rules:
                if not 1 <= int(answer) <= len(rules):
                    raise CommandUseError(f"There is no rule {answer}.")
                return rules[int(answer) - 1]
            if len(answer) == 1 or not (answer or proposed):  # a letter is most likely the key of another question
                raise CommandUseError(f"A reason is needed: {expected}.")
            return sentence(answer) or proposed

        form = "a number or a sentence" if rules else "a sentence"
        enter = " [as proposed]" if proposed else ""
        return self._ask(f"Reason, {form}{enter}: ", read)

    def ask_summary(self) -> str:
        """Return the summary of the paper; empty if it is left open."""
        return self._ask("Summary, one sentence of your own [open]: ", sentence)

    def ask_tags(self, candidate: Candidate) -> dict[str, Tag]:
        """Ask for all open tags, and return those that are answered."""
        tags: dict[str, Tag] = {}
        for facet in self._taxonomy.papers:
            if facet.kind is Kind.LEVELS:
                names = [*(level.id for level in facet.levels), NOT_ARISING]
                levels: dict[str, str] = {}
                for term in facet.terms:
                    if not candidate.is_open(term.id):
                        continue
                    self._say_readings(candidate, [term.id])
                    self._say(number_names(names))
                    explained = (term, *facet.levels)
                    if level := self._choose(f"{term.id} [open]", names, explained, partial(read_level, facet)):
                        levels[term.id] = level
                if levels:
                    tags[facet.field] = levels
            elif facet.field not in candidate.tags:
                self._say_readings(candidate, [facet.field])
                self._say(number_names(facet.values))
                prompt = f"{facet.field} [open]"
                if tag := self._choose(prompt, facet.values, facet.terms, partial(read_tag, facet)):
                    tags[facet.field] = tag
        return tags


def _format_counts(counts: Mapping[Choice, int]) -> str:
    return f"{counts[Choice.INCLUDE]} included, {counts[Choice.EXCLUDE]} excluded, {counts[Choice.LATER]} for later"


def _describe_outcome(candidate: Candidate, choice: Choice, judgement: Judgement) -> str:
    added, title = judgement.proposal.added, printable(candidate.paper.title)
    if choice is Choice.EXCLUDE:
        return f"excluded as {added[0].name}: {title}"
    if not added:
        return f"included; corpus add {candidate.name} asks for what is open, and for evidence"
    if isinstance(added[0], Paper) and added[0].evidence:
        return f"added {added[0].name}: {title}"
    return f"added {added[0].name}: {title}; for evidence: corpus tag {added[0].name} --evidence NOTE"


def _apply_sheets(session: CorpusSession, corpus: CorpusFiles, paths: Sequence[str]) -> int:
    """Apply the decisions on which sheets agree, each in its own edit, and return the exit code."""
    output, protocol = session.output, corpus.protocol.require()
    waiting = [candidate.name for candidate in screening.select_undecided(corpus.candidates.items)]
    sheets: list[list[Verdict]] = []
    code = ExitCode.DONE
    skipped: set[str] = set()
    for path in paths:
        sheet = read_sheet(path)
        decided = screening.decided_keys(sheet, corpus)
        verdicts, findings = screening.decode_sheet(sheet, path, corpus.pool.taxonomy, [*waiting, *decided])
        for finding in findings:
            output.tell(str(finding))
        if any(finding.code == "K101" for finding in findings):  # the header is wrong
            return ExitCode.UNREADABLE
        if has_errors(findings):
            code = ExitCode.FINDINGS
        sheets.append([verdict for verdict in verdicts if verdict.key not in decided])
        skipped |= {verdict.key for verdict in verdicts} & decided
    agreed, differing = screening.merge_sheets(sheets)
    for key in differing:
        output.tell(f"corpus: {key}: the readers differ, so nothing is decided")
    counts = Counter[Choice]()
    for verdict in agreed:
        try:
            if verdict.choice is not Choice.LATER:
                _apply_verdict(corpus.root, screening.expand_reason(verdict, protocol))
            counts[verdict.choice] += 1
        except CorpusError as error:
            output.tell(f"corpus: {verdict.key}: nothing was written: {error}")
            code = ExitCode.FINDINGS
    decided_before = f", {len(skipped)} decided before" if skipped else ""
    output.note(f"{_format_counts(counts)}{decided_before}")
    return ExitCode.FINDINGS if differing else code


def _apply_verdict(root: str, verdict: Verdict) -> None:
    """Write one decision; raise a `CommandUseError` if fields are missing, or if it would cause an error."""
    corpus = load_editable(root)
    day = today().isoformat()
    candidate = next(item for item in corpus.candidates.items if item.name == verdict.key)
    if verdict.choice is Choice.INCLUDE:
        proposal = screening.include(corpus, candidate, verdict.reason, verdict.tags, day, verdict.summary)
    else:
        draft = Exclusion(tags=verdict.tags, screened=day, reason=verdict.reason)
        record, gaps = screening.draft_exclusion(corpus, candidate, draft)
        if gaps:
            raise CommandUseError(f"the log needs {', '.join(gap.field for gap in gaps)}", "Give it in the sheet.")
        proposal = edit.exclude(corpus, record, candidate)
    judgement = judge(corpus, proposal)
    if not judgement.is_allowed:
        raise CommandUseError("\n".join(("the decision would bring:", *map(str, judgement.new_findings))))
    write(judgement)
