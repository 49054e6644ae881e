"""The corpus as a site: which files, what they say, the same bytes each time, nothing of the data as markup."""

import errno
import html
import json
import posixpath
import re
import shutil
import struct
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.files import read_text_beside, replace_folder
from orchtrace_corpus.base.html import source_hash
from orchtrace_corpus.corpus import site
from orchtrace_corpus.corpus.analysis.attributes import paper_attributes
from orchtrace_corpus.corpus.api import Corpus
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.candidates import Decision
from orchtrace_corpus.corpus.model.taxonomy import Kind
from orchtrace_corpus.corpus.rules.tags import cannot_arise
from orchtrace_corpus.corpus.site import cards
from orchtrace_corpus.corpus.site.metadata import page_title
from orchtrace_corpus.corpus.site.papers import count_pairs, read_fields
from orchtrace_corpus.corpus.site.source import Place
from tests.conftest import ROOT, TOY, run_corpus, run_toy
from tests.corpus.sites import files_of, hostile_source, source_of

BASE = Place("https://owner.example/corpus", "https://github.com/owner/corpus")


class Elements(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._is_data = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._is_data = tag == "script"

    def handle_endtag(self, _tag: str) -> None:
        self._is_data = False

    def handle_data(self, data: str) -> None:
        self.text += "" if self._is_data else data

    def all(self, tag: str) -> Iterator[dict[str, str | None]]:
        """The attributes of each element of a name."""
        return (attributes for name, attributes in self.elements if name == tag)


def main_text(page: str) -> str:
    """What the main part of a page says, blanks as one, a line for each block."""
    main = re.findall(r"<main[^>]*>(.*)</main>", page, re.DOTALL)[0]
    lines = (
        " ".join(line.split())
        for line in Elements(re.sub(r"(</(p|h\d|li|tr|pre|dd|dt)>)", r"\1\n", main)).text.split("\n")
    )
    return "\n".join(line for line in lines if line)


@pytest.fixture(scope="module")
def of_toy(toy: Corpus) -> dict[str, str | bytes]:
    return files_of(source_of(toy, TOY))


@pytest.fixture(scope="module")
def of_toy_with_base(toy: Corpus) -> dict[str, str | bytes]:
    return files_of(source_of(toy, TOY), BASE)


@pytest.fixture(scope="module")
def of_real(real: Corpus) -> dict[str, str | bytes]:
    return files_of(source_of(real, ROOT))


def test_a_site_has_these_files_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    outcome = run_toy("site", "-o", str(tmp_path / "one"))
    again = run_toy("site", "-o", str(tmp_path / "two"))

    written = {
        str(path.relative_to(tmp_path / "one")): path.read_bytes()
        for path in (tmp_path / "one").rglob("*")
        if path.is_file()
    }
    assert sorted(written) == sorted(
        "404.html bibtex.js feed.xml figures/screening-flow.svg gaps.js gaps/prune.daily.html "
        "gaps/style.cottage.size.large.html gaps/style.formal.size.large.html gaps/style.gravel.html "
        "gaps/style.gravel.size.large.html gaps/style.gravel.size.small.html gaps/style.meadow.size.small.html "
        "icon.svg index.html papers-data-1.js papers-data.js papers.html papers.js papers/long-grass.html papers/mixed-borders.html "
        "papers/rose-garden.html papers/terminal-yard.html robots.txt screening.html site.css site.js taxonomy.html".split()
    )
    assert outcome == (0, "", f"wrote {tmp_path}/one: 27 files\nOpen {tmp_path}/one/index.html in a browser.\n")
    assert again.code == 0
    assert written == {
        str(path.relative_to(tmp_path / "two")): path.read_bytes()
        for path in (tmp_path / "two").rglob("*")
        if path.is_file()
    }


def test_a_page_of_a_paper_says_all_that_is_recorded(of_toy_with_base: dict[str, str | bytes]) -> None:
    page = of_toy_with_base["papers/rose-garden.html"]

    assert (
        main_text(str(page))
        == """\
Papers › rose-garden
Röses: A Garden in Four Beds
Müller, Änne; O'Neill, Tom; others
Journal of Beds, 2021 · Garden School · added 2021-05-01
example.org/roses example.org/roses/code arXiv 2101.00001 doi 10.5555/roses.1
Copy BibTeX
Cite
BibTeX
@article{rose-garden,
title = {R{\\"o}ses: A Garden in Four Beds},
author = {M{\\"u}ller, {\\"A}nne and O'Neill, Tom and others},
journal = {Journal of Beds},
year = {2021},
eprint = {2101.00001},
archivePrefix = {arXiv},
doi = {10.5555/roses.1},
url = {https://example.org/roses},
}
CSL-JSON
[{"id": "rose-garden", "type": "article-journal", "title": "Röses: A Garden in Four Beds", "author": [{"family": "Müller", "given": "Änne"}, {"family": "O'Neill", "given": "Tom"}, {"literal": "others"}], "issued": {"date-parts": [[2021]]}, "container-title": "Journal of Beds", "archive": "arXiv", "archive_location": "2101.00001", "DOI": "10.5555/roses.1", "URL": "https://example.org/roses", "keyword": "style=formal, water=daily, prune=weekly, tools=spade, tools=shears, size=small", "annote": "Lays out four beds of roses."}]
Lays out four beds of roses.
Tags
FieldTagMeaning
StyleS1 FormalStraight lines.
CareC1 Watering: DailyWhen to water. Every day.
C2 Pruning: WeeklyWhat to prune. Every week.
ToolsSpadeA spade.
ShearsShears.
SizeSmallUp to an acre.
Evidence
1. For Care (visit, high confidence)
The gardener waters every day.
example.org/roses
Fix this record
Report a mistake: opens an issue with the record's name filled in.
In a clone, the record is rose-garden in data/papers.yaml; corpus tag rose-garden sets a tag."""
    )


def test_a_disputed_tag_says_who_reads_what_and_why(of_real: dict[str, str | bytes]) -> None:
    page = str(of_real["papers/puppeteer.html"])

    mark = 'O5 Stop Implicit <a class="mark" href="papers/puppeteer.html#dispute-stop"'
    assert str(of_real["papers.html"]).count(mark) == 1  # in the list, leads to what is said below
    chip = 'O5 Stop: Implicit</a> <a class="chip contested" href="#dispute-stop">contested</a>'
    assert page.count(chip) == page.count('<section class="card" id="dispute-stop"') == 1
    text = main_text(page)
    assert "O5 Stop: Implicit contested" in text
    assert "O5 Stop: Implicit stands. Open.\nImplicit by adjudication\nDesigned by first coder\n" in text


def test_the_front_page_says_what_the_survey_is_and_lacks(of_toy: dict[str, str | bytes]) -> None:
    start = main_text(str(of_toy["index.html"]))

    assert (
        start
        == """\
A toy garden
4 papers, tagged and sourced by style and care: what there is, and which combinations no paper has.
updated 2023-06-07
Search the papers
Cite
@misc{a-toy-garden,
title = {A toy garden},
year = {2023},
}
Copy
4 papers read and tagged
0 papers with C2 Pruning: Daily
2 records screened and left out
4 of 7 combinations of style and size have no paper
Rows StyleC1 WateringC2 PruningToolsSizeEvidence levelConfidenceVerdictYear
Columns StyleC1 WateringC2 PruningToolsSizeEvidence levelConfidenceVerdictYear
Swap
SmallLarge
S1 Formal10
S2 Cottage10
S2 Meadowcannot arise1
S3 Gravel00
Not applicable10
few to many papers; a number lists them
no paper here: what would count, and what comes near
cannot arise by the definitions
What each tag means
What there is, and what is missing
4 papers by Style and Size: 4 of 7 cells are empty, 3 hold 1 or 2 papers. The largest: S1 Formal with Small, 1.
4 papers by Style: S1 Formal 1; S2 Cottage 1; S2 Meadow 1; S3 Gravel 0; Not applicable 1. Empty: S3 Gravel. Sparse, with 1 or 2 papers: S1 Formal, S2 Cottage, S2 Meadow.
4 papers by level. C1 Watering 1 Daily, 1 Weekly. C2 Pruning 0 Daily, 2 Weekly.
Added last
Borders without Lines 2023-06-07
Long Grass and How to Keep It 2023-02-03
All papers by the day they were added
Care by level
DailyWeekly
C1 Watering11
C2 Pruning02
Daily
Every day.
Weekly
Every week.
Papers by year
1<2014
2014
2015
2016
2017
2018
2019
2020
12021
2022
22023"""
    )


def test_an_empty_cell_leads_to_what_is_known_of_the_gap(of_real: dict[str, str | bytes]) -> None:
    start = str(of_real["index.html"])
    name = "gaps/reward_family.orchestration.credit_unit.agent.html"

    assert '<h2 id="matrix">54 of 69 combinations of reward family and credit unit have no paper</h2>' in start
    assert "<strong>0</strong> <span>papers with O5 Stop: Explicit, 3 in dispute</span>" in start
    assert '<a href="candidates.html">106 more</a> found, not in these counts' in start
    matrix = re.findall(r'<table class="matrix dense".*?</table>', start, re.DOTALL)[0]
    kinds = re.findall(r'<td class="(empty|impossible)"><a href="(gaps/[^"]+)">', matrix)
    assert [kind for kind, _ in kinds].count("empty") == 54
    assert [kind for kind, _ in kinds].count("impossible") == 3
    assert {path for _, path in kinds} <= of_real.keys()
    page = main_text(str(of_real[name]))
    assert page.startswith("""\
Gaps
Not in this corpus
R7 Orchestration × Agent
None of the 84 papers here has both R7 Orchestration (reward family) and Agent (credit unit). Work outside this corpus may have it.
About 3.4 would be expected if the two were independent.
What would count
R7 Orchestration
A reward for orchestration decisions, such as parallel speed-up, a good split or a good merge.
""")
    assert (
        page.partition("Do you know one?\n")[2].partition("\n10 records left out that came close\n")[0]
        == """\
In a clone, corpus add ADDRESS takes it in; one page or line of code that shows both is enough.
Nearest papers
HALO: Hierarchical Autonomous Logic-Oriented Orchestration for Multi-Agent LLM Systems 2025 · R7 Orchestration · Role
Agent Q-Mix: Selecting the Right Action for LLM Multi-Agent Systems through Reinforcement Learning 2026 · R8 Hybrid · Agent
AgentSpawn: Adaptive Multi-Agent Collaboration Through Dynamic Spawning for Long-Horizon Code Generation 2026 · R7 Orchestration · Orchestrator
All papers with R7 Orchestration, or with Agent.
Candidates that may fill it
Found, and not yet decided on.
Recursive Agent Optimization by a reading of an open tag
Disputes that decide on it
Another reading of the tag would put a paper here.
HALO: Hierarchical Autonomous Logic-Oriented Orchestration for Multi-Agent LLM Systems Credit unit: Role stands"""
    )


def test_a_level_that_nobody_has_says_what_comes_near(of_real: dict[str, str | bytes]) -> None:
    assert '<td class="empty"><a href="gaps/stop.explicit.html">0</a>' in str(of_real["index.html"])
    assert '<td class="number" data-label="Explicit"><a href="gaps/stop.explicit.html">0</a>' in str(
        of_real["taxonomy.html"]
    )
    page = main_text(str(of_real["gaps/stop.explicit.html"]))
    assert page.startswith("""\
Gaps
Not in this corpus
O5 Stop: Explicit
None of the 84 papers here has O5 Stop: Explicit. Work outside this corpus may have it.
What would count
O5 Stop: Explicit
When a run, branch or discussion ends. Explicit asks that the source itself states ending as what is rewarded. A trained component takes the decision, and a part of the training signal is aimed at that decision.
""")
    assert (
        page.partition("Do you know one?\n")[2].partition("\n10 records left out that came close\n")[0]
        == """\
In a clone, corpus add ADDRESS takes it in; one page or line of code that shows both is enough.
Nearest papers
Dr. MAS: Stable Reinforcement Learning for Multi-Agent LLM Systems 2026 · O5 Stop: Implicit
Agent Q-Mix: Selecting the Right Action for LLM Multi-Agent Systems through Reinforcement Learning 2026 · O3 Communicate: Explicit
Small Model as Master Orchestrator: Learning Unified Agent-Tool Orchestration with Parallel Subtask Decomposition 2026 · O5 Stop: Implicit · O3 Communicate: Explicit
Disputes that decide on it
Another reading of the tag would put a paper here.
CriticLean: Critic-Guided Reinforcement Learning for Mathematical Formalization O5 Stop: Designed stands
MarsRL: Advancing Multi-Agent Reasoning System via Reinforcement Learning with Agentic Pipeline Parallelism O5 Stop: Implicit stands
Multi-Agent Collaboration via Evolving Orchestration O5 Stop: Implicit stands
Claims about it
Seven published entries let a trained component end a run or a branch.
In what was read, no published entry states stopping (O5) as a training objective of its own and evaluates it separately."""
    )


def test_a_cell_that_cannot_arise_says_why(of_real: dict[str, str | bytes]) -> None:
    page = main_text(str(of_real["gaps/reward_family.role.credit_unit.team.html"]))
    assert page.startswith("""\
Gaps
Cannot arise
R3 Role-specific × Team
None of the 84 papers here has both R3 Role-specific (reward family) and Team (credit unit). An individual, role-specific or hybrid reward differs between agents, so credit does not go to the undivided team.
What would count
R3 Role-specific
A reward shaped to the role an agent plays, such as planner, worker or critic.
""")
    assert page.endswith("""\
All papers with R3 Role-specific.
Claims about it
No published entry gives credit to single tokens, to tool calls or to the team as a whole.""")


def test_what_speaks_against_a_claim_is_said_beside_it(of_real: dict[str, str | bytes]) -> None:
    start, claims = str(of_real["index.html"]), str(of_real["claims.html"])

    lines = re.findall(
        r"<li><span class=\"verdict (\w+)\">.*?</svg>([^<]+)</span> <a href=\"([^\"]+)\">([^<]+)</a></li>", start
    )
    assert [(kind, path) for kind, _, path, _ in lines] == [
        ("doubted", "claims/message-credit-sparse.html"),
        ("doubted", "claims/orchestrator-credit-sparse.html"),
        ("doubted", "claims/no-token-tool-team-credit.html"),
        ("doubted", "claims/no-tool-reward.html"),
        ("doubted", "claims/spawn-anchored.html"),
        ("holds", "claims/delegate-anchored.html"),
        ("doubted", "claims/communicate-anchored.html"),
    ]
    folded = re.findall(
        r'<details class="claim" id="([^"]+)">\n<summary>.*?</svg>([^<]+)</span> <span class="sentence">([^<]+)</span>'
        r'(?: <span class="muted">([^<]+)</span>)?</summary>',
        claims,
    )
    outcomes = [outcome for _, outcome, _, _ in folded]
    assert outcomes == sorted(outcomes, key=["fails", "in doubt", "holds"].index)  # the most doubtful first
    told = {claim: (outcome, sentence, doubts) for claim, outcome, sentence, doubts in folded}
    assert told["papers-total"] == ("holds", "The published pool has 84 entries.", "")
    assert told["no-token-tool-team-credit"] == (
        "in doubt",
        "No published entry gives credit to single tokens, to tool calls or to the team as a whole.",
        "falls with the candidates; falls by the reading of the sources; strong counter-evidence",
    )
    assert len(told) == len(folded) == len(re.findall("^- id:", (ROOT / "data/claims.yaml").read_text(), re.MULTILINE))


def test_a_claim_has_a_page_of_its_own_with_titles_for_keys(of_real: dict[str, str | bytes]) -> None:
    page = main_text(str(of_real["claims/no-token-tool-team-credit.html"]))

    assert (
        page
        == """\
Claims › no-token-tool-team-credit
in doubt
No published entry gives credit to single tokens, to tool calls or to the team as a whole.
Doubts
falls with the candidates; falls by the reading of the sources; strong counter-evidence
Expected
none
Found
0
Verdicts
published holds · today holds · candidates falls at 1/2 · by the sources falls
Does not say
No such tag in the retained pool. The survey's figure names papers for these rungs; its table does not.
Against it
Moderate: The survey's figure puts these three on the rung of tool calls. (data/disputes.yaml)
Against it
Strong: Two readers of their sources agree that the team is credited as a whole. (data/disputes.yaml)
Source
arxiv.org/abs/2605.02801
What would change the verdict
With candidates
counts 2 candidates, falls from the 1st on (general-learned-delegation); open tags leave out 49
Falls by
General learned delegation by clones; Learning Adaptive Parallel Reasoning with Language Models
Falls by the sources
Multi-Agent Tool-Integrated Policy Optimization: Credit unit Team, not Role; SiriuS: Self-improving Multi-agent Systems via Bootstrapped Reasoning: Credit unit Team, not Turn; WideSeek-R1: Exploring Width Scaling for Broad Information Seeking via Multi-Agent Reinforcement Learning: Credit unit Team, not Orchestrator
In another reading
Agent Lightning: Train ANY AI Agents with Reinforcement Learning; Learning Decentralized LLM Collaboration with Multi-Agent Actor Critic; The Surprising Effectiveness of PPO in Cooperative Multi-Agent Games; Multi-Agent Tool-Integrated Policy Optimization; Who Deserves the Reward? SHARP: Shapley Credit-based Optimization for Multi-Agent System; SiriuS: Self-improving Multi-agent Systems via Bootstrapped Reasoning; WideSeek-R1: Exploring Width Scaling for Broad Information Seeking via Multi-Agent Reinforcement Learning would count, too
Breaks by
1 change
Credit unit read as Tool call: Agent Lightning: Train ANY AI Agents with Reinforcement Learning
Disputes
9 break it alone; all at once break it
Credit unit read as Tool call: Agent Lightning: Train ANY AI Agents with Reinforcement Learning; Multi-Agent Tool-Integrated Policy Optimization; Who Deserves the Reward? SHARP: Shapley Credit-based Optimization for Multi-Agent System
Credit unit read as Team: Learning Decentralized LLM Collaboration with Multi-Agent Actor Critic; The Surprising Effectiveness of PPO in Cooperative Multi-Agent Games; SiriuS: Self-improving Multi-agent Systems via Bootstrapped Reasoning; WideSeek-R1: Exploring Width Scaling for Broad Information Seeking via Multi-Agent Reinforcement Learning
Credit unit read as Token (settled): Scaling Long-Horizon LLM Agent via Context-Folding
Credit unit read as Team (settled): QMIX: Monotonic Value Function Factorisation for Deep Multi-Agent Reinforcement Learning
Near misses
10 break it alone; all at once break it
taken in with Credit unit Token: AutoGen: Enabling Next-Gen LLM Applications via Multi-Agent Conversation; HuggingGPT: Solving AI Tasks with ChatGPT and its Friends in Hugging Face; MetaGPT: Meta Programming for A Multi-Agent Collaborative Framework; Diversity-Enhanced Reasoning for Subjective Questions; AgentBench: Evaluating LLMs as Agents; AgentBoard: An Analytical Evaluation Board of Multi-turn LLM Agents; AgentVerse: Facilitating Multi-Agent Collaboration and Exploring Emergent Behaviors; OpenAI Swarm experimental educational framework; AutoDefense: Multi-Agent LLM Defense against Jailbreak Attacks; RouteLLM: Learning to Route LLMs with Preference Data
Rows left out
none breaks it alone"""
    )


def test_each_claim_is_counted_once_and_alike_on_every_page(of_real: dict[str, str | bytes]) -> None:
    parts = str(of_real["claims.html"]).split("<h2>")[1:]
    counted = [(part.partition("</h2>")[0], part.count('<details class="claim"')) for part in parts]

    assert counted == [("In doubt · 18 of 32", 18), ("Holds · 14 of 32", 14)]
    assert re.findall(r'<p class="muted">(.*)</p>', parts[0]) == [
        "Each holds by the published tags, but something speaks against it: it falls with what was added since, with the "
        "candidates or by the reading of the sources, or evidence against it is more than weak. The second line says which."
    ]
    start = main_text(str(of_real["index.html"]))
    assert "14 of 32 claims hold, 18 in doubt\n" in start
    assert "In doubt: it holds, but something speaks against it." in start


def test_the_page_of_scale_shows_the_verdicts_of_its_claims(of_real: dict[str, str | bytes]) -> None:
    rows = re.findall(r'</svg>([^<]+)</span> <a href="claims/([a-z0-9-]+).html">', str(of_real["scale.html"]))
    assert rows == [("in doubt", "reported-beyond-experiments"), ("holds", "experiments-up-to-20-agents")]
    counted = str(of_real["claims/reported-beyond-experiments.html"])
    assert '<li><a href="../scale.html">Kimi K2.6 Agent Swarm: agents</a></li>' in counted


def test_the_papers_that_a_corpus_began_with_are_no_news(of_real: dict[str, str | bytes], real: Corpus) -> None:
    assert {paper.added for paper in real.papers} == {"2026-05-04"}
    assert "Added last" not in main_text(str(of_real["index.html"]))


def test_years_are_a_chart_without_holes_that_leads_to_papers(of_real: dict[str, str | bytes]) -> None:
    chart = str(of_real["index.html"]).partition('<ol class="bars">')[2].partition("</ol>")[0]
    bars = re.findall(
        r'<li>(?:<a href="([^"]+)">)?<span>(\d*)</span>.*?<span class="muted">(.*?)</span>(?:</a>)?</li>', chart
    )

    assert [(re.sub("<[^>]+>", "", label), number) for _, number, label in bars] == [
        ("&lt;2017", "3"),
        ("2017", "2"),
        ("2018", "3"),
        ("2019", ""),
        ("2020", "2"),
        ("2021", ""),
        ("2022", "2"),
        ("2023", "4"),
        ("2024", "9"),
        ("2025", "36"),
        ("2026", "23"),
    ]
    assert bars[0][0] == "papers.html#year=1994%2C2001%2C2002"


def test_no_cell_is_called_a_gap_where_a_field_does_not_apply(of_real: dict[str, str | bytes]) -> None:
    table = re.findall(r'<table class="matrix dense".*?</table>', str(of_real["index.html"]), re.DOTALL)[0]
    heads = re.findall(r"<th [^>]*><span>([^<]+)</span></th>", table.partition("</thead>")[0])
    for row in table.partition("<tbody>")[2].split("<tr>")[1:]:
        label = re.findall(r"<th [^>]*>([^<]+)</th>", row)[0]
        kinds = re.findall(
            r'<td class="(\w+)">(?:<a href="[^"]+">)?0<',
            re.sub(r'<td class="(heat|imp).*?</td>', '<td class="x">0</td>', row),
        )
        for head, kind in zip(heads, kinds, strict=True):
            assert kind in ("x", "aside" if "Not applicable" in (head, label) else "empty"), (label, head)


def test_all_candidates_are_listed_by_proposal(of_real: dict[str, str | bytes], real: Corpus) -> None:
    page = str(of_real["candidates.html"])
    file = store.CorpusFiles(str(ROOT)).candidates
    keys = {one.value: [each.name for each in file.items if each.proposal is one] for one in Decision}
    include, unclear, exclude = (len(keys[name]) for name in ("include", "unclear", "exclude"))

    assert main_text(page).split("\n")[1] == (
        f"{len(file.items)} papers found, awaiting a person's decision. Proposed: {include} include, {unclear} unclear, "
        f"{exclude} exclude. None is in the corpus yet."
    )
    listed = re.findall(r'<details class="candidate" id="([^"]+)">', page)
    assert listed == [key for those in keys.values() for key in those]
    assert min(include, unclear, exclude) > 0
    assert (
        '<span class="muted">proposed: include · ICLR 2026, first version 2025</span>' in page
    )  # venue and year differ
    assert '<span class="muted">proposed: include · ACL, 2025</span>' in page


@pytest.mark.parametrize("name", ["toy", "real"])
def test_every_cell_is_a_count_of_the_corpus(name: str, request: pytest.FixtureRequest) -> None:
    corpus: Corpus = request.getfixturevalue(name)
    fields = [field for field in read_fields(corpus.papers, corpus.taxonomy) if field.name != "code"]

    for one in fields:
        for other in fields:
            wanted = corpus.cross(one.name, other.name).crosstab
            counted = count_pairs(one, other)
            for row, numbers in zip(one.values, counted, strict=True):
                for column, number in zip(other.values, numbers, strict=True):
                    assert number == wanted.count_in(row.id, column.id), (one.name, other.name, row.id, column.id)


def test_pairs_that_a_rule_forbids_cannot_arise(real: Corpus) -> None:
    attributes = paper_attributes(real.taxonomy)

    def pairs(rows: str, columns: str) -> set[tuple[str, str]]:
        return set(cannot_arise(real.taxonomy, attributes[rows], attributes[columns]))

    assert pairs("category", "tier") == {("industry", "core"), ("industry", "supporting")}
    assert pairs("rl", "stop") == {("none", "explicit"), ("none", "implicit")}
    assert pairs("stop", "rl") == {("explicit", "none"), ("implicit", "none")}
    local = ("individual", "role", "hybrid")
    assert pairs("reward_family", "credit_unit") == {(family, "team") for family in local}
    assert pairs("topology", "credit_unit") == set()
    assert pairs("spawn", "stop") == set()  # terms of one facet
    assert pairs("credit_unit", "stop") == set()  # the rule asks for any sub-decision, which another term can be
    assert pairs("year", "rl") == set()


def test_no_paper_is_in_a_cell_that_cannot_arise(real: Corpus) -> None:
    attributes = {name: one for name, one in paper_attributes(real.taxonomy).items() if one.terms}
    names = [
        name for name in attributes if attributes[name].facet is None or attributes[name].facet.kind is not Kind.LEVELS
    ]

    for one in names:
        for other in names:
            crossed = real.cross(one, other)
            for row, column in cannot_arise(real.taxonomy, attributes[one], attributes[other]):
                assert crossed.get(row, {}).get(column, 0) == 0


def test_links_stay_in_the_site_and_lead_somewhere(of_real: dict[str, str | bytes]) -> None:
    pages = {name: Elements(str(page)) for name, page in of_real.items() if name.endswith(".html")}
    ids = {name: {attributes.get("id") for _, attributes in page.elements} for name, page in pages.items()}

    for name, page in pages.items():
        for tag, attributes in page.elements:
            for address in (attributes.get("href"), attributes.get("src")):
                if address is None or address.startswith(("https://", "http://")):
                    assert address is None or tag == "a", (name, address)
                    continue
                path, _, fragment = address.partition("#")
                target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
                assert target in of_real, (name, address)
                assert not fragment or "=" in fragment or fragment in ids[target], (name, address)


def test_hostile_texts_become_no_markup(tmp_path: Path) -> None:
    files = files_of(hostile_source(tmp_path), BASE)

    allowed = {
        "html",
        "head",
        "meta",
        "title",
        "link",
        "script",
        "body",
        "a",
        "header",
        "nav",
        "ul",
        "li",
        "main",
        "h1",
        "h2",
        "h3",
    }
    allowed |= {
        "p",
        "form",
        "label",
        "select",
        "option",
        "button",
        "div",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "td",
        "th",
    }
    allowed |= {
        "span",
        "figure",
        "img",
        "figcaption",
        "details",
        "summary",
        "footer",
        "fieldset",
        "legend",
        "input",
        "pre",
        "dl",
    }
    allowed |= {"dt", "dd", "section", "strong", "code", "ol", "br", "q", "kbd", "svg", "path", "rect"}
    for name, content in files.items():
        if not name.endswith(".html"):
            continue
        page = Elements(str(content))
        assert {tag for tag, _ in page.elements} <= allowed, name
        for tag, attributes in page.elements:
            assert not any(key.startswith("on") for key in attributes), (name, tag, attributes)
            address = attributes.get("href") or attributes.get("src") or ""
            assert not address.startswith(("javascript:", "x", "data:")), (name, address)
        assert {one.get("type") for one in page.all("script") if "src" not in one} <= {
            "application/json",
            "application/ld+json",
        }
        assert {one["src"] for one in page.all("img")} <= {
            "figures/screening-flow.svg",
            "figures/scale-gap.svg",
        }
    for name in ("feed.xml", "sitemap.xml"):
        ET.fromstring(str(files[name]))  # well formed
    assert "<" not in str(files["bibtex.js"])


def test_every_page_forbids_scripts_but_its_own(of_toy: dict[str, str | bytes]) -> None:
    for name, page in of_toy.items():
        if name.endswith(".html"):
            policy = next(
                one for one in Elements(str(page)).all("meta") if one.get("http-equiv") == "Content-Security-Policy"
            )
            own = f" {source_hash(read_text_beside(site.__file__, 'missing.js'))}" if name == "404.html" else ""
            assert policy["content"] == (
                f"default-src 'none'; script-src 'self'{own}; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'"
            )


def test_a_base_url_gives_previews_and_a_map(
    of_toy: dict[str, str | bytes], of_toy_with_base: dict[str, str | bytes]
) -> None:
    files = of_toy_with_base

    metas = {
        one.get("property"): one.get("content") for one in Elements(str(files["papers/long-grass.html"])).all("meta")
    }
    assert metas["og:title"] == "Long Grass and How to Keep It"
    assert metas["og:description"] == "Keeps a meadow without any tool."
    assert metas["og:url"] == "https://owner.example/corpus/papers/long-grass.html"
    addresses = re.findall("<loc>(.*)</loc>", str(files["sitemap.xml"]))
    assert addresses == [
        f"https://owner.example/corpus/{name}"
        for name in (
            "index.html",
            "papers.html",
            "screening.html",
            "taxonomy.html",
            "papers/rose-garden.html",
            "papers/long-grass.html",
            "papers/mixed-borders.html",
            "papers/terminal-yard.html",
            "gaps/style.gravel.html",
            "gaps/prune.daily.html",
            "gaps/style.formal.size.large.html",
            "gaps/style.cottage.size.large.html",
            "gaps/style.gravel.size.small.html",
            "gaps/style.gravel.size.large.html",
            "gaps/style.meadow.size.small.html",
        )
    ]
    assert 'href="https://owner.example/corpus/site.css"' in str(files["404.html"])  # shown at any address
    assert "sitemap.xml" not in of_toy


def test_a_page_of_a_paper_can_be_cited(
    of_toy: dict[str, str | bytes], of_toy_with_base: dict[str, str | bytes]
) -> None:
    page = str(of_toy_with_base["papers/rose-garden.html"])
    metas = [(one.get("name"), one.get("content")) for one in Elements(page).all("meta")]
    data = json.loads(re.findall(r'<script type="application/ld\+json">(.*)</script>', page)[0])

    # The names that Google Scholar asks for, and those that Zotero reads beside them.
    assert [(name, content) for name, content in metas if str(name).startswith("citation_")] == [
        ("citation_title", "Röses: A Garden in Four Beds"),
        ("citation_author", "Müller, Änne"),
        ("citation_author", "O'Neill, Tom"),
        ("citation_publication_date", "2021"),
        ("citation_journal_title", "Journal of Beds"),
        ("citation_doi", "10.5555/roses.1"),
        ("citation_arxiv_id", "2101.00001"),
        ("citation_pdf_url", "https://arxiv.org/pdf/2101.00001"),
        ("citation_public_url", "https://example.org/roses"),
        ("citation_abstract_html_url", "https://owner.example/corpus/papers/rose-garden.html"),
    ]
    assert data == {
        "@context": "https://schema.org",
        "@type": "ScholarlyArticle",
        "headline": "Röses: A Garden in Four Beds",
        "name": "Röses: A Garden in Four Beds",
        "author": [{"@type": "Person", "name": "Änne Müller"}, {"@type": "Person", "name": "Tom O'Neill"}],
        "datePublished": "2021",
        "isPartOf": {"@type": "Periodical", "name": "Journal of Beds"},
        "identifier": [
            {"@type": "PropertyValue", "propertyID": "DOI", "value": "10.5555/roses.1"},
            {"@type": "PropertyValue", "propertyID": "arXiv", "value": "2101.00001"},
        ],
        "url": "https://example.org/roses",
        "sameAs": ["https://doi.org/10.5555/roses.1", "https://arxiv.org/abs/2101.00001"],
        "mainEntityOfPage": "https://owner.example/corpus/papers/rose-garden.html",
        "description": "Lays out four beds of roses.",
    }
    assert '<meta property="og:type" content="article">' in page
    assert "citation_abstract_html_url" not in str(of_toy["papers/rose-garden.html"])
    assert '"@type":"Dataset"' in str(of_toy_with_base["index.html"])
    assert of_toy_with_base["robots.txt"] == (
        "User-agent: *\nAllow: /\n\nSitemap: https://owner.example/corpus/sitemap.xml\n"
    )
    assert of_toy["robots.txt"] == "User-agent: *\nAllow: /\n"


def test_titles_fit_lists_of_results(of_real: dict[str, str | bytes]) -> None:
    titles = [
        re.findall("<title>(.*)</title>", str(page))[0] for name, page in of_real.items() if name.endswith(".html")
    ]

    assert max(len(html.unescape(title)) for title in titles) < 70
    assert page_title("Roses", "Gardens") == "Roses · Gardens"
    assert page_title("Gardens", "Gardens") == "Gardens"
    assert page_title(60 * "r", "Gardens of the world") == 60 * "r"
    assert page_title(20 * "rose ", "Gardens") == 12 * "rose " + "rose…"
    assert page_title(100 * "r", "Gardens") == 68 * "r" + "…"


def test_the_page_of_what_is_not_found_needs_no_base_url(
    of_toy: dict[str, str | bytes], of_toy_with_base: dict[str, str | bytes]
) -> None:
    assert re.findall(r"<script>([^<]*)</script>", str(of_toy["404.html"])) == [
        read_text_beside(site.__file__, "missing.js")
    ]
    assert "<script>" not in str(of_toy_with_base["404.html"])


def test_the_feed_has_the_latest_papers_first_under_lasting_names(
    of_toy: dict[str, str | bytes], of_toy_with_base: dict[str, str | bytes]
) -> None:
    atom = "{http://www.w3.org/2005/Atom}"
    here, there = (ET.fromstring(str(files["feed.xml"])) for files in (of_toy, of_toy_with_base))

    assert [one.findtext(f"{atom}title") for one in here.iter(f"{atom}entry")] == [
        "Borders without Lines", "Long Grass and How to Keep It", "Röses: A Garden in Four Beds", "The Yard",
    ]  # fmt: skip
    assert here.findtext(f"{atom}updated") == "2023-06-07T00:00:00Z"
    assert [one.text for one in here.iter(f"{atom}id")] == [one.text for one in there.iter(f"{atom}id")]
    assert [one.attrib["href"] for one in there.iter(f"{atom}link")][:2] == [
        "https://owner.example/corpus/feed.xml", "https://owner.example/corpus/index.html",
    ]  # fmt: skip


def png_size(content: str | bytes) -> tuple[int, int]:
    """The width and the height of a PNG, by its header."""
    assert isinstance(content, bytes)
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", content[16:24])
    return width, height


def test_each_paper_claim_and_gap_has_a_picture_for_links(
    toy: Corpus, of_toy: dict[str, str | bytes], of_real: dict[str, str | bytes]
) -> None:
    pytest.importorskip("PIL")
    source = source_of(toy, TOY)
    files, again = files_of(source, BASE), files_of(source, BASE)

    pictures = {name: content for name, content in files.items() if name.endswith(".png")}
    pages = [name for name in files if name.startswith(("papers/", "claims/", "gaps/")) and name.endswith(".html")]
    assert sorted(pictures) == sorted(["card.png", *(name.replace(".html", ".png") for name in pages)])
    assert {png_size(content) for content in pictures.values()} == {(1200, 630)}
    assert pictures == {name: again[name] for name in pictures}
    for name in pages:
        metas = {meta.get("property"): meta.get("content") for meta in Elements(str(files[name])).all("meta")}
        assert metas["og:image"] == f"https://owner.example/corpus/{name.replace('.html', '.png')}"
    assert not [name for name in (*of_toy, *of_real) if name.endswith(".png")]  # no address to show them by


def test_a_title_in_other_letters_has_the_picture_of_the_site(toy: Corpus) -> None:
    pytest.importorskip("PIL")
    source = source_of(toy, TOY)
    papers = tuple(paper._replace(title="花园的四张床") for paper in source.pool.papers)
    source.pool = source.pool._replace(papers=papers)

    files = files_of(source, BASE)

    assert "papers/long-grass.png" not in files
    assert 'content="https://owner.example/corpus/card.png"' in str(files["papers/long-grass.html"])


def test_without_the_library_a_site_has_no_pictures(toy: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "is_available", lambda: False)

    files = files_of(source_of(toy, TOY), BASE)

    assert not [name for name in files if name.endswith(".png")]
    assert "og:image" not in str(files["index.html"])


def test_titles_are_short_enough_to_be_shown_whole(of_real: dict[str, str | bytes]) -> None:
    for name, page in of_real.items():
        if name.endswith(".html"):
            title = html.unescape(re.findall("<title>(.*)</title>", str(page))[0])
            assert 0 < len(title) < 70, (name, title)
    assert "<title>Claims · Reinforcement learning for LLM-based multi-agent systems</title>" in str(
        of_real["claims.html"]
    )


def test_a_new_corpus_with_other_axes_has_a_site(tmp_path: Path) -> None:
    assert run_corpus("init", str(tmp_path / "new")).code == 0

    outcome = run_corpus("--root", str(tmp_path / "new"), "site", "-o", str(tmp_path / "site"))

    assert outcome.code == 0, outcome.stderr
    text = main_text((tmp_path / "site" / "index.html").read_text(encoding="utf-8"))
    assert text.startswith(
        "Retrieval-augmented generation (an example)\n3 papers, tagged and sourced by retriever, knowledge source and "
    )
    assert re.search(r"\n\d+ of \d+ combinations of retriever and [a-z ]+ have no paper\n", text)


def test_a_folder_without_its_option_is_refused_with_the_option(tmp_path: Path) -> None:
    refused = run_corpus("--root", str(TOY), "site", str(tmp_path / "public"))

    assert (refused.code, refused.stdout) == (2, "")
    usage, _, _, error, advice = refused.stderr.splitlines()
    assert usage == "Usage: corpus site [OPTIONS]"
    assert error.endswith(f"({tmp_path / 'public'})")
    assert advice == "Name where to write with -o: corpus site -o DIR"
    assert "-o" not in run_corpus("--root", str(TOY), "gaps", "style", "size", "tools").stderr


def test_a_site_replaces_one_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    assert run_toy("site", "-o", str(folder)).code == 0
    (folder / "papers" / "gone.html").write_text("of a paper that is no longer there", encoding="utf-8")

    assert run_toy("site", "-o", str(folder)).code == 0
    assert not (folder / "papers" / "gone.html").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["site"]

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("<p>mine</p>", encoding="utf-8")
    refused = run_toy("site", "-o", str(tmp_path / "mine"))
    assert (refused.code, (tmp_path / "mine" / "index.html").read_text(encoding="utf-8")) == (3, "<p>mine</p>")
    assert "mine holds something else\nName a new folder, or an empty one.\n" in refused.stderr


def test_a_site_is_not_written_over_its_corpus(tmp_path: Path) -> None:
    shutil.copytree(TOY, tmp_path / "toy")

    for folder in (tmp_path / "toy", tmp_path):
        outcome = run_corpus("--root", str(tmp_path / "toy"), "site", "-o", str(folder))
        assert outcome.code == 2
        assert "cannot hold the site: the corpus is in it" in outcome.stderr
    assert (tmp_path / "toy" / "data" / "papers.yaml").exists()


@pytest.mark.parametrize("option", ["--base-url", "--repository"])
def test_addresses_of_a_site_are_those_of_the_web(option: str, tmp_path: Path) -> None:
    outcome = run_toy("site", "-o", str(tmp_path / "site"), option, "javascript:alert(1)")

    assert (outcome.code, outcome.stderr) == (
        2, f"corpus: {option} is not a web address: 'javascript:alert(1)'\nWrite one that begins with https://\n",
    )  # fmt: skip
    assert not (tmp_path / "site").exists()


def test_a_folder_that_cannot_be_made_is_said_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, made = tempfile.mkdtemp, list[str]()

    def second_fails(**options: str) -> str:
        if made:
            raise OSError(errno.ENOSPC, "No space left on device")
        made.append(make(**options))
        return made[0]

    monkeypatch.setattr(tempfile, "mkdtemp", second_fails)
    outcome = run_toy("site", "-o", str(tmp_path / "site"))

    assert outcome.code == 3
    assert outcome.stderr.endswith("site: No space left on device\nNothing was changed.\n")
    assert (len(made), list(tmp_path.iterdir())) == (1, [])


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    replace_folder(str(target), [("a/b.txt", "old")], lambda _: True)
    (tmp_path / ".corpus-folder-left.tmp").mkdir()  # by a writer that was killed

    def failing() -> Iterator[tuple[str, str]]:
        yield "a/b.txt", "new"
        raise DataFileError("no more")

    with pytest.raises(DataFileError, match="no more"):
        replace_folder(str(target), failing(), lambda _: True)

    assert (target / "a" / "b.txt").read_text(encoding="utf-8") == "old"
    assert replace_folder(str(target), [("c.bin", b"\0"), ("d/e/f.txt", "é")], lambda _: True) == 2
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == [
        "folder/c.bin",
        "folder/d/e/f.txt",
    ]


def test_a_large_corpus_is_listed_on_several_pages_without_a_script(toy: Corpus) -> None:
    papers = tuple(toy.papers[0]._replace(key=f"rose-{number:03}") for number in range(201))
    large = Corpus(source_of(toy, TOY).pool._replace(papers=papers))

    files = files_of(source_of(large, TOY))

    names = [name for name in files if re.fullmatch(r"papers(-\d)?\.html", name)]
    assert names == ["papers.html", "papers-2.html", "papers-3.html"]
    listed = [str(files[name]).count('<th scope="row">') for name in names]
    assert listed == [100, 100, 1]
    assert "papers-data.js" not in str(files["papers-2.html"])
