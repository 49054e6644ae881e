"""Sites for tests: of a corpus on disk, and of one in which every text is hostile."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchtrace_corpus.base.findings import Location
from orchtrace_corpus.corpus.analysis.claims import evaluate
from orchtrace_corpus.corpus.api import Corpus
from orchtrace_corpus.corpus.model.candidates import Candidate, Decision, SourceReading
from orchtrace_corpus.corpus.model.claim_file import Bounds, Claim, Counter, Number, Strength
from orchtrace_corpus.corpus.model.codebook import Coding, Protocol, Rule
from orchtrace_corpus.corpus.model.disputes import Agreed, Dispute, Reading
from orchtrace_corpus.corpus.model.records import Evidence, Exclusion, Paper, Pool
from orchtrace_corpus.corpus.model.scale import Group, Observation, Support, parse_amount
from orchtrace_corpus.corpus.model.store import CorpusFiles
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Role, Taxonomy, Term
from orchtrace_corpus.corpus.site import Site
from orchtrace_corpus.corpus.site.source import Place, Source

NOWHERE = Location("data/papers.yaml", 1, 1)
HOSTILE = (
    '"\'><img src=x onerror="window.hacked=1"></script><script>window.hacked=1</script>&lt;{{7*7}}${7*7}<!--\u2028\\'
)
SCRIPT = "javascript:window.hacked=1"


def files_of(source: Source, place: Place = Place()) -> dict[str, str | bytes]:  # noqa: B008
    """Every file of a site, by its path."""
    return dict(Site(source, place).files())


def source_of(corpus: Corpus, root: Path) -> Source:
    """What the site of a corpus is made from."""
    return Source(CorpusFiles(str(root)), Pool(corpus.taxonomy, corpus.papers, corpus.exclusions))


def write_site(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write the files of a site as a folder; its start page."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return folder / "index.html"


def hostile_term(number: int) -> Term:
    return Term(f"t{number}{HOSTILE.replace(',', '')}", f"label {number} {HOSTILE}", HOSTILE, code=f"C{number}<b>")


def hostile_source(root: Path) -> Source:
    """A corpus whose texts all try to become markup or script: every field of every record, and every term."""
    terms = tuple(map(hostile_term, range(3)))
    one = Facet("style", HOSTILE, Kind.SINGLE, Role.AXIS, HOSTILE, terms)
    many = Facet("tools", HOSTILE, Kind.MANY, Role.FACET, HOSTILE, terms)
    other = Facet("size", HOSTILE, Kind.SINGLE, Role.AXIS, HOSTILE, terms)
    levels = Facet("care", HOSTILE, Kind.LEVELS, Role.AXIS, HOSTILE, (Term("water", HOSTILE, HOSTILE),), terms)
    stage = Facet("stage", HOSTILE, Kind.SINGLE, Role.FACET, HOSTILE, terms)
    level = Facet("level", HOSTILE, Kind.SINGLE, Role.FACET, HOSTILE, terms)
    taxonomy = Taxonomy(HOSTILE, SCRIPT, (one, many, other, levels), (stage,), (level,), (("style", "size"),))
    papers = tuple(hostile_paper(number, terms) for number in range(3))
    exclusion = Exclusion("X1", HOSTILE, HOSTILE, SCRIPT, {"stage": terms[0].id}, "2026-01-01", HOSTILE, HOSTILE)
    source = Source(CorpusFiles(str(root)), Pool(taxonomy, papers, (exclusion,)))
    source.disputes = (
        Dispute(
            "paper-0",
            "style",
            terms[0].id,
            (Reading((HOSTILE,), HOSTILE),),
            HOSTILE,
            SCRIPT,
            agreed=Agreed(HOSTILE, SCRIPT, HOSTILE),
        ),
    )
    claim = Claim(
        "claim-one", HOSTILE, Number(Bounds(3, 3)), HOSTILE, HOSTILE, counter=(Counter(HOSTILE, Strength.WEAK, SCRIPT),)
    )
    reading = SourceReading(
        HOSTILE, HOSTILE, HOSTILE, HOSTILE, Decision.INCLUDE, {"style": HOSTILE}, (SCRIPT,), HOSTILE
    )
    source.candidates = (
        Candidate(papers[0], Decision.INCLUDE, HOSTILE, "2026-01-01", {}, (reading,), frozenset({"style"})),
    )
    source.proposed = source.candidates
    source.has_candidates = True
    source.verdicts = evaluate((claim,), source.pool, source.disputes, source.candidates)
    source.codings = (Coding("style", (HOSTILE,), (HOSTILE,), (HOSTILE,)),)
    rule = Rule("one", HOSTILE)
    source.protocol = Protocol(HOSTILE, "2026-01-01", SCRIPT, (HOSTILE,), (rule,), (rule,), (HOSTILE,))
    amount = parse_amount("3")
    source.scale = [
        Observation(
            HOSTILE,
            group,
            "agents",
            amount,
            HOSTILE,
            Support.PAPER,
            (SCRIPT, HOSTILE),
            True,
            "paper-0",
            None,
            HOSTILE,
            HOSTILE,
        )
        for group in Group
    ]
    return source


def hostile_paper(number: int, terms: tuple[Term, ...]) -> Paper:
    evidence = Evidence(("style",), HOSTILE, SCRIPT, terms[0].id, HOSTILE, {}, HOSTILE)
    tags: dict[str, Any] = {"style": terms[0].id, "tools": (terms[0].id, terms[1].id), "size": terms[number].id}
    return Paper(
        key=f"paper-{number}", title=f"{number} {HOSTILE}", authors=(HOSTILE, f"{{{HOSTILE}}}"), affiliation=HOSTILE,
        year=2020 + number, venue=HOSTILE, proceedings=HOSTILE, arxiv_id="2101.00001", doi="10.5555/<script>'\"",
        openreview_id="a\"b", acl_id="x'><b>", urls=(SCRIPT, "https://example.org/\"><script>window.hacked=1</script>"),
        code=SCRIPT if number else "https://example.org/\" onmouseover=\"window.hacked=1",
        tags={**tags, "care": {"water": terms[1].id}}, more={"base_models": (HOSTILE,), "algorithm": (HOSTILE,), "algorithm_note": HOSTILE, "benchmarks": (HOSTILE,)},
        summary=HOSTILE, evidence=(evidence,), added="2026-01-01", notes=HOSTILE,
    )  # fmt: skip
