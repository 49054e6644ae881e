"""A paper's way in: what a record of it would say, and whether the corpus knows it already."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.base.identifiers import recognise
from orchtrace_corpus.corpus.analysis.matching import Match, RecordIndex, Sign
from orchtrace_corpus.corpus.api import Corpus
from orchtrace_corpus.corpus.intake import papers as intake
from orchtrace_corpus.corpus.model.fields import is_key
from orchtrace_corpus.corpus.model.records import Evidence, Exclusion, Paper, Pool
from orchtrace_corpus.corpus.rules.texts import LATEX
from tests.corpus.arxiv_feeds import record

PUBLISHED = "2026-05-04"


def find_match(paper: Paper, pool: Pool, *, by_title: bool = True) -> Match | None:
    """The record that a paper seems to be: of the pool or excluded, by the surest sign that there is."""
    return RecordIndex([*pool.papers, *pool.exclusions]).find(paper, by_title=by_title)


def pool_of(corpus: Corpus) -> Pool:
    return Pool(corpus.taxonomy, corpus.papers, corpus.exclusions)


def found(corpus: Corpus, **values: object) -> tuple[str, Sign] | None:
    """The record that a paper is taken for, and by what."""
    match = find_match(Paper(**values), pool_of(corpus))  # type: ignore[arg-type]
    if match is None:
        return None
    return (match.record.key if isinstance(match.record, Paper) else match.record.id), match.sign


def test_a_record_of_what_arxiv_says() -> None:
    metadata = record(
        "2601.00007",
        version=3,
        title="STOP: Teaching $\\tau$-Teams at 100% of  $n^2$ Turns",
        authors=("Ada Example", "Yi R. (May) Fung", "Ludwig van Beethoven", "Gr\\'egoire Mialon", "Kimi Team", ":"),
        published="2025-12-31T18:00:00Z",
        doi="10.5555/Stop",
    )

    assert intake.from_metadata(metadata) == Paper(
        title="STOP: Teaching τ-Teams at 100% of n² Turns",
        authors=("Example, Ada", "Fung, Yi R. (May)", "van Beethoven, Ludwig", "Mialon, Grégoire", "{Kimi Team}"),
        year=2026,  # the id is of January, and a year before that of the id would be warned of
        venue="arXiv",
        arxiv_id="2601.00007",
        doi="10.5555/stop",
        urls=("https://arxiv.org/abs/2601.00007",),
    )


def test_what_somebody_should_know_before_a_paper_is_added() -> None:
    metadata = record(
        "2601.00007", title="On $n$ Agents", comment="Withdrawn by the authors", journal_ref="Nature 1 (2026) 2"
    )

    assert list(intake.metadata_remarks(metadata)) == [
        "it seems to be withdrawn: 'Withdrawn by the authors'",
        "arXiv names a place of publication, 'Nature 1 (2026) 2'; if that is right, give it as --venue",
        "arXiv's title has TeX, 'On $n$ Agents', read as 'On n Agents'",
    ]
    assert list(intake.metadata_remarks(record("2601.00008", title="On Agents"))) == []


def test_a_record_of_what_a_registry_or_a_file_says() -> None:
    values = {
        "title": "Multi\u200bline\n title",
        "authors": ["Doe, Jo", "others"],
        "year": 2024,
        "venue": "EMNLP",
        "doi": "10.5555/x",
        "arxiv_id": "2401.00001",
        "acl_id": "no such id",
        "urls": ["https://example.org/x", "javascript:alert(1)"],
    }

    assert intake.from_fields(values) == Paper(
        title="Multiline title",
        authors=("Doe, Jo", "others"),
        year=2024,
        venue="EMNLP",
        doi="10.5555/x",
        arxiv_id="2401.00001",
        urls=("https://arxiv.org/abs/2401.00001", "https://example.org/x"),
    )
    assert intake.from_fields({"doi": "10.5555/x"}).urls == ("https://doi.org/10.5555/x",)
    assert intake.from_fields({"year": "in press", "authors": "Doe"}) == Paper()


@given(st.text(alphabet=st.sampled_from("ab $\\{}^_%'`\"~\t\n\u200b\u202e")))
def test_plain_text_is_one_visible_line_without_tex(text: str) -> None:
    plain = intake.plain_text(text)

    assert plain.isprintable()
    assert plain == " ".join(plain.split())
    if not re.search(LATEX, plain):  # a brace that nothing closes stays
        assert intake.plain_text(plain) == plain


@pytest.mark.parametrize(
    "name",
    [
        "2101.00001",
        "arXiv:2101.00001v7",
        "https://www.arxiv.org/pdf/2101.00001v2.pdf",
        "10.48550/arXiv.2101.00001",
        "https://doi.org/10.5555/ROSES.1",
    ],
)
def test_a_paper_is_known_by_its_identifier_in_any_spelling(name: str, toy: Corpus) -> None:
    identifier = recognise(name)
    assert identifier is not None

    match = find_match(intake.with_identifier(Paper(), identifier), pool_of(toy))

    assert match is not None
    assert (match.record, match.sign) == (toy["rose-garden"], Sign.IDENTIFIER)


def test_an_exclusion_is_known_by_identifier_address_and_title(toy: Corpus) -> None:
    assert found(toy, arxiv_id="2001.00009") == ("E001", Sign.IDENTIFIER)
    assert found(toy, urls=("http://www.example.org/cars/",)) == ("E003", Sign.ADDRESS)
    assert found(toy, title="a car-park") == ("E003", Sign.TITLE)


def test_the_surest_sign_is_named(toy: Corpus) -> None:
    roses = toy["rose-garden"]

    assert found(toy, title="The Yard", urls=("https://example.org/grass",), doi=roses.doi) == (
        "rose-garden",
        Sign.IDENTIFIER,
    )
    assert found(toy, title="The Yard", urls=("https://example.org/grass",)) == ("long-grass", Sign.ADDRESS)
    assert found(toy, title="The Yard", urls=("https://example.org/roses/code",)) == ("terminal-yard", Sign.TITLE)


def test_what_is_empty_is_like_nothing(toy: Corpus) -> None:
    assert found(toy) is None
    assert found(toy, title="!?") is None
    assert found(toy, title="Röses: A Garden in Four Beds", urls=("https://example.org/new",)) is not None
    assert find_match(Paper(title="The Yard"), pool_of(toy), by_title=False) is None


@pytest.mark.parametrize(
    ("title", "key"),
    [
        ("Scaling Long-Horizon Agent via Context Folding", "context-folding"),
        ("Kimi K2.5: Visual Agentic Intelligence (Tech Report)", "kimi-k2-5"),
        (
            "Enhancing Language Multi-Agent Learning with Multi-Agent Credit Re-Assignment for Interactive Environment "
            "Generalization",
            "collabuiagents2025",
        ),
        ("Learning to Meta-think for LLMs with Multi-Agent Reinforcement Learning", "rema2025"),
        ("tau-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains", "tau-bench2024"),
        ("ReAct - Synergizing Reasoning + Acting in Language Models", "react2023"),
        ("MetaGPT: Meta Programming for Multi-Agent Collaborative Framework", "E007"),
        ("ChatDev: Communicative Agents for Software Development", "E002"),
    ],
)
def test_other_wordings_of_a_title_are_the_title(title: str, key: str, real: Corpus) -> None:
    assert found(real, title=title) == (key, Sign.TITLE)


@pytest.mark.parametrize(
    "title",
    [
        "MARS: Reinforcing Multi-Agent Reasoning of LLMs through Self-Play in Strategic Games",
        "Learning to Negotiate: Meta-policy Coordination for Embodied LLMs with Single-agent Imitation Learning",
        "A Survey of Single-Agent Reinforcement Learning with Memory",
    ],
)
def test_alike_is_not_the_same(title: str, real: Corpus) -> None:
    assert found(real, title=title) is None


def test_no_two_works_of_the_published_corpus_are_taken_for_one(real: Corpus) -> None:
    papers = [paper for paper in real.papers if paper.added <= PUBLISHED]
    exclusions = [exclusion for exclusion in real.exclusions if exclusion.id <= "E032"]
    titles = [record.title for record in (*papers, *exclusions)]

    mistaken = []
    for number, title in enumerate(titles):
        others = tuple(Paper(key=str(other), title=text) for other, text in enumerate(titles) if other != number)
        match = find_match(Paper(title=title), Pool(real.taxonomy, others, ()))
        mistaken += [(title, match.shared)] if match else []

    assert len(titles) >= 116
    assert mistaken == []


def test_two_names_before_the_same_words_are_two_works(toy: Corpus) -> None:
    pool = Pool(toy.taxonomy, (Paper(key="a", title="Honeysuckle: A Survey of Garden Tools"),), ())

    assert find_match(Paper(title="Bark: A Survey of Garden Tools"), pool) is None
    assert find_match(Paper(title="A Survey of Garden Tools"), pool) is not None


def test_what_the_corpus_says_of_a_paper_that_it_knows(toy: Corpus, real: Corpus) -> None:
    def describe_match(corpus: Corpus, **values: object) -> str:
        match = find_match(Paper(**values), pool_of(corpus))  # type: ignore[arg-type]
        assert match is not None
        return intake.describe_match(match)

    assert describe_match(toy, doi="10.5555/roses.1") == (
        "in the pool already as 'rose-garden', known by its identifier DOI:10.5555/roses.1"
    )
    assert describe_match(toy, title="The yard") == (
        "in the pool already as 'terminal-yard', known by its title, 'The Yard'"
    )
    assert describe_match(toy, arxiv_id="2001.00009") == (
        "excluded as E001 on 2023-01-01, stage: gate: Too small to count as a garden. It is known by its identifier "
        "arXiv:2001.00009"
    )
    bare = toy.exclusions[0]._replace(reason="nothing is trained")
    assert intake.describe_match(Match(bare, Sign.ADDRESS, "https://example.org/window")).endswith(
        ": nothing is trained. It is known by its address https://example.org/window"
    )
    metagpt = describe_match(real, arxiv_id="2308.00352")
    assert metagpt.startswith("excluded as E007 on 2026-04-26, ")
    assert "stage: abstract_screen" in metagpt
    assert next(e.reason for e in real.exclusions if e.id == "E007") in metagpt


def test_an_exclusion_that_was_promoted_says_what_it_became(toy: Corpus) -> None:
    became = toy.exclusions[0]._replace(promoted_to="window-box")
    match = find_match(Paper(arxiv_id="2001.00009"), Pool(toy.taxonomy, (), (became,)))

    assert match is not None
    assert "It became the paper 'window-box'." in intake.describe_match(match)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("2101.0001", "5 digits; did you mean 2101.00001, which is in the pool as 'rose-garden'?"),
        ("arXiv:2001.0009v2", "5 digits; did you mean 2001.00009, which is excluded as E001?"),
        ("https://arxiv.org/pdf/2302.0002.pdf", "5 digits; did you mean 2302.00002, which is in the pool as"),
        ("210100001", "5 digits; did you mean 2101.00001, which is in the pool as 'rose-garden'?"),
        ("2404.1234", "5 digits; did you mean 2404.01234?"),
        ("1412.12345", "4 digits"),
    ],
)
def test_a_misspelt_arxiv_id_is_named_with_the_nearest(name: str, problem: str, toy: Corpus) -> None:
    said = intake.arxiv_misspelling(name, pool_of(toy))

    assert said.startswith(f"'{name}' is not an arXiv id, which is YYMM, a period and ")
    assert problem in said


@pytest.mark.parametrize(("name", "month"), [("2313.12345", "13"), ("arXiv:2600.01234v2", "00"), ("0799.1234", "99")])
def test_an_arxiv_id_of_no_month_is_said_to_be_one(name: str, month: str, toy: Corpus) -> None:
    assert intake.arxiv_misspelling(name, pool_of(toy)) == (
        f"'{name}' is not an arXiv id: it begins with year and month, and {month} is not a month"
    )


@pytest.mark.parametrize(
    "name", ["2101.00001", "arXiv:1412.1234v2", "math/0309136", "10.5555/x", "https://example.org/2101", "word", ""]
)
def test_what_is_right_or_no_arxiv_id_at_all_is_not_misspelt(name: str, toy: Corpus) -> None:
    assert intake.arxiv_misspelling(name, pool_of(toy)) == ""


def test_a_mistyped_id_of_the_real_corpus_is_led_to_its_paper(real: Corpus) -> None:
    assert intake.arxiv_misspelling("2508.4652", pool_of(real)).endswith(
        "did you mean 2508.04652, which is in the pool as 'magrpo'?"
    )


@pytest.mark.parametrize(
    ("title", "key"),
    [
        ("MARFT: Multi-Agent Reinforcement Fine-Tuning", "marft"),
        ("Dr. MAS: Stable Reinforcement Learning", "dr-mas"),
        ("Kimi K2.5: Visual Agentic Intelligence", "kimi-k2-5"),
        ("τ-bench: A Benchmark", "tau-bench"),
        ("MARTI-MARS²: Scaling Search", "marti-mars2"),
        ("Who Deserves the Reward? SHARP: Shapley Credit", "sharp"),
        ("The Landscape of Agentic Reinforcement Learning for LLMs: A Survey", "landscape-agentic-reinforcement"),
        ("Latent Collaboration in Multi-Agent Systems", "latent-collaboration-multi-agent"),
        ("Not What You've Signed Up For", "not-what-youve"),
        ("Über Größe und Maß", "uber-grosse-und"),
        ("多智能体", "doe"),
        ("", "doe"),
    ],
)
def test_keys_are_made_of_the_title_as_those_of_the_pool_are(title: str, key: str) -> None:
    assert intake.key_for(Paper(title=title, authors=("Doe, Jo",)), ()) == key


def test_a_key_that_is_taken_gets_the_year_then_a_number() -> None:
    paper = Paper(title="HALO: Agents", year=2026)

    assert intake.key_for(paper, {"halo"}) == "halo-2026"
    assert intake.key_for(paper, {"halo", "halo-2026"}) == "halo-2026-2"
    assert intake.key_for(paper, {"halo", "halo-2026", "halo-2026-2"}) == "halo-2026-3"
    assert intake.key_for(paper._replace(year=0), {"halo"}) == "halo-2"


@given(st.text(max_size=80), st.integers(0, 9999), st.integers(0, 6))
def test_every_proposal_is_a_key_and_free(title: str, year: int, taken: int) -> None:
    keys: list[str] = []
    for _ in range(taken + 1):
        key = intake.key_for(Paper(title=title, year=year), keys)
        assert is_key(key)
        assert key not in keys
        keys.append(key)


def test_most_keys_of_the_published_pool_are_what_would_be_proposed(real: Corpus) -> None:
    papers = [paper for paper in real.papers if paper.added <= PUBLISHED]
    alike = [paper.key for paper in papers if paper.key.startswith(intake.key_for(paper, ()))]

    assert len(alike) > len(papers) / 2


def test_an_excluded_record_as_a_paper_and_a_paper_as_the_log_calls_it(toy: Corpus) -> None:
    box, park = toy.exclusions

    assert intake.from_exclusion(box) == Paper(
        title="A Window Box", arxiv_id="2001.00009", urls=("https://arxiv.org/abs/2001.00009",)
    )
    assert intake.from_exclusion(park) == Paper(title="A Car Park", urls=("https://example.org/cars",))
    assert intake.exclusion_identifier(intake.from_exclusion(box)) == "arXiv:2001.00009"
    assert intake.exclusion_identifier(intake.from_exclusion(park)) == "CAR-PARK"
    assert intake.exclusion_identifier(Paper(openreview_id="abcdefg")) == "OpenReview:abcdefg"


@pytest.mark.parametrize(
    ("ids", "text", "following"),
    [
        ([], "", "E001"),
        (["E001", "E031"], "", "E032"),
        (["E001"], "# E004 was given up", "E005"),
        (["E001"], "at ICML E2024, SE099 and E0990", "E002"),
        (["E001", "E032"], "waive: [{code: E104, why: Its page is gone.}]", "E033"),
        (["E998", "E999"], "", "E1000"),
    ],
)
def test_ids_of_exclusions_are_never_given_twice(ids: list[str], text: str, following: str) -> None:
    assert intake.next_exclusion_id([Exclusion(id=each) for each in ids], text) == following


def test_a_demand_for_evidence_is_known_before_anything_is_written(toy: Corpus) -> None:
    def unmet(paper: Paper) -> list[str]:
        return [rule.id for rule in intake.unmet_demands(paper, toy.taxonomy)]

    daily = Paper(tags={"care": {"water": "daily"}})
    evidence = Evidence(("care",), "Seen.", "https://example.org", "visit", "high")

    assert unmet(daily) == ["daily-care-needs-evidence"]
    assert unmet(daily._replace(evidence=(evidence,))) == []
    assert unmet(daily._replace(evidence=(evidence._replace(tags=("size",)),))) == ["daily-care-needs-evidence"]
    assert unmet(Paper(tags={"care": {"water": "weekly"}, "size": "large"}, year=2025)) == []  # a warning only


@pytest.mark.parametrize(("year", "taken"), [("2024", 2024), (2024, 2024), ("２０２４", 0), ("24", 0), ("20240", 0)])
def test_a_year_from_outside_has_four_digits_of_ascii(year: str | int, taken: int) -> None:
    assert intake.from_fields({"title": "A Year", "year": year}).year == taken
