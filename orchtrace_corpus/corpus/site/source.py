"""The data of a site: the corpus with its claims, disputes, candidates and other files, each read once."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.analysis.claims import Verdict, evaluate
from orchtrace_corpus.corpus.analysis.statistics import Summary, summarise
from orchtrace_corpus.corpus.analysis.stress import ReadingVerdict, Robustness, compare_readings, stress
from orchtrace_corpus.corpus.model.candidates import Candidate, select_proposed
from orchtrace_corpus.corpus.model.codebook import Coding, Protocol
from orchtrace_corpus.corpus.model.disputes import NOT_ARISING, Dispute, contested_tags
from orchtrace_corpus.corpus.model.field_table import field_label
from orchtrace_corpus.corpus.model.records import Paper, Pool, Tag, raise_findings
from orchtrace_corpus.corpus.model.scale import Observation
from orchtrace_corpus.corpus.model.store import CorpusFiles
from orchtrace_corpus.corpus.model.taxonomy import Kind, Term
from orchtrace_corpus.corpus.render.figures import plan


class Place(NamedTuple):
    """The URLs of a site and of its repository on GitHub, without a slash at the end; empty if unknown."""

    base_url: str = ""
    repository: str = ""

    def address(self, name: str) -> str:
        """Return the URL of a file of the site; empty if the URL of the site is unknown."""
        return f"{self.base_url}/{name}" if self.base_url else ""


def term_label(term: Term) -> str:
    """Return the name of a term for readers: its code and its label."""
    return f"{term.code} {term.label}".strip()


class Source:
    """A corpus with its other data files; empty values stand for files that it does not have."""

    def __init__(self, files: CorpusFiles, pool: Pool) -> None:
        """Read the data files of a corpus; raise `InvalidCorpusError` if they have errors."""
        self.pool = pool
        self.taxonomy = pool.taxonomy
        self.disputes: tuple[Dispute, ...] = files.disputes.require()
        self.scale: Sequence[Observation] = files.scale.require()
        self.codings: Sequence[Coding] = files.codebook.require()
        self.protocol: Protocol | None = files.protocol.require()
        candidate_file = files.candidates
        self.has_candidates = not candidate_file.is_missing
        self.proposed: tuple[Candidate, ...] = select_proposed(candidate_file.require())
        self.candidates: tuple[Candidate, ...] = candidate_file.items
        claim_file = files.claims
        raise_findings("the claims have errors:", claim_file.findings)
        candidates = self.proposed if self.has_candidates else None
        self.verdicts: tuple[Verdict, ...] = evaluate(claim_file.claims, pool, self.disputes, candidates)
        self.robustness_by_claim: dict[str, Robustness] = {}
        for robustness in stress(claim_file.claims, pool, self.disputes):
            self.robustness_by_claim[robustness.claim.id] = robustness
        self.categories = {arxiv_id: metadata.primary_category for arxiv_id, metadata in files.arxiv.items()}

    @cached_property
    def summary(self) -> Summary:
        """The statistics of the corpus, without those of evidence."""
        return summarise(self.pool, with_evidence=False)

    @cached_property
    def contested(self) -> frozenset[tuple[str, str]]:
        """The tags in open dispute, as pairs of a paper's key and a tag."""
        return contested_tags(self.disputes)

    @cached_property
    def readings_by_claim(self) -> Mapping[str, ReadingVerdict]:
        """By claim id, the verdicts with the tags that readers of the sources agree on; empty without such tags."""
        if all(dispute.agreed is None for dispute in self.disputes):
            return {}
        return compare_readings((verdict.claim for verdict in self.verdicts), self.pool, self.disputes)

    @cached_property
    def tag_labels(self) -> Mapping[str, str]:
        """The labels of what evidence and disputes are about, by name: facts, facets, and terms with levels."""
        labels = {field.name: field_label(field) for field in self.taxonomy.paper_fields if field.is_fact}
        for facet in self.taxonomy.papers:
            labels[facet.field] = facet.label
            if facet.kind is Kind.LEVELS:
                labels |= {term.id: term_label(term) for term in facet.terms}
        return labels

    @cached_property
    def value_labels(self) -> Mapping[tuple[str, str], str]:
        """The labels of values, by the tag and the value; a term with levels is a tag, too."""
        labels: dict[tuple[str, str], str] = {}
        for facet in self.taxonomy.papers:
            if facet.kind is Kind.LEVELS:
                tags = [term.id for term in facet.terms]
                labels |= {(tag, level.id): term_label(level) for tag in tags for level in facet.levels}
                labels |= {(tag, NOT_ARISING): "Does not arise" for tag in tags}
            else:
                labels |= {(facet.field, term.id): term_label(term) for term in facet.terms}
        return labels

    def value_label(self, tag: str, values: str) -> str:
        """Return the label of a value, or of several values joined by `or`; a value without a label is returned."""
        return " or ".join(self.value_labels.get((tag, value), value) for value in values.split(" or "))

    def tag_text(self, name: str, tag: Tag) -> str:
        """Return the value of a tag in labels."""
        if isinstance(tag, str):
            return self.value_label(name, tag)
        if isinstance(tag, tuple):
            return ", ".join(self.value_label(name, term) for term in tag)
        return ", ".join(f"{self.tag_labels[term]}: {self.value_label(term, level)}" for term, level in tag.items())

    @cached_property
    def figure_source(self) -> plan.Source:
        """The data that figures are drawn from."""
        return plan.Source(self.pool, self.summary, self.scale, plan.contested_values(self.pool, self.contested))

    @cached_property
    def papers_by_key(self) -> Mapping[str, Paper]:
        """The papers by key."""
        return {paper.key: paper for paper in self.pool.papers}

    def record(self, name: str) -> tuple[str, str]:
        """Return the title and the address of a record that a claim counts or could count."""
        if name in self.papers_by_key:
            return self.papers_by_key[name].title, f"papers/{name}.html"
        if any(name == observation.name for observation in self.scale):
            return name, "scale.html"
        for candidate in self.candidates:
            if candidate.name == name:
                return candidate.paper.title, f"candidates.html#{name}"
        titles = {exclusion.id: exclusion.title for exclusion in self.pool.exclusions}
        return titles.get(name, name), f"screening.html#{name}"

    @cached_property
    def disputes_by_paper(self) -> Mapping[str, Sequence[Dispute]]:
        """The disputes by the key of their paper."""
        disputes: dict[str, list[Dispute]] = {}
        for dispute in self.disputes:
            disputes.setdefault(dispute.record, []).append(dispute)
        return disputes

    @cached_property
    def verdicts_by_record(self) -> Mapping[str, Sequence[Verdict]]:
        """The verdicts on the claims that count a record, by the record's key or id."""
        verdicts: dict[str, list[Verdict]] = {}
        for verdict in self.verdicts:
            for name in verdict.rows:
                verdicts.setdefault(name, []).append(verdict)
        return verdicts
