"""Search by words: in every form, over tags and what they mean, the best first, and with the reason."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.corpus.analysis.search import WordMatch, search, stem
from orchtrace_corpus.corpus.api import Corpus, candidates
from orchtrace_corpus.corpus.model.candidates import Candidate
from orchtrace_corpus.corpus.model.field_table import SearchPart
from orchtrace_corpus.corpus.model.records import Pool
from tests.conftest import ROOT, TOY, run_corpus, run_toy


@pytest.mark.parametrize(
    ("root", "forms"),
    [
        ("stop", "stop stops stopped stopping"),
        ("termin", "terminate terminates terminated terminating termination"),
        ("assign", "assign assigned assigning assignment assignments"),
        ("shap", "shape shaped shaping"),
        ("orchestr", "orchestrate orchestration orchestrator orchestrators"),
        ("aggreg", "aggregate aggregating aggregation"),
        ("verif", "verify verified verifier verifiers verification"),
        ("polic", "policy policies"),
        ("hierarch", "hierarchy hierarchies hierarchical hierarchically"),
        ("optim", "optimize optimise optimizer optimization"),
        ("respons", "response responses"),
        ("process", "process processes processing"),
        ("reward", "reward rewards rewarded rewarding"),
        ("speed", "speed speeds"),
        ("peer", "peer peers"),
        ("string", "string strings"),
        ("credit", "credit credits credited"),
    ],
)
def test_the_forms_of_a_word_have_one_stem(root: str, forms: str) -> None:
    assert {form: stem(form) for form in forms.split()} == dict.fromkeys(forms.split(), root)


@pytest.mark.parametrize("word", ["is", "as", "us", "her", "use", "ppo", "o5", "r1", "2504", "李"])
def test_short_words_numbers_and_other_scripts_stay(word: str) -> None:
    assert stem(word) == word


@given(st.text(alphabet="abcdeginorstuyz", min_size=1, max_size=14))
def test_a_stem_is_the_beginning_of_its_word(word: str) -> None:
    assert word.startswith(stem(word))


def pool_of(corpus: Corpus) -> Pool:
    return Pool(corpus.taxonomy, corpus.papers, corpus.exclusions)


def test_every_word_is_found_and_said_where() -> None:
    assert run_toy("search", "ROSES", "muller") == (
        0,
        """\
key          year  matched      title
rose-garden  2021  title, name  Röses: A Garden in Four Beds
""",
        "1 paper\n",
    )


def test_titles_come_before_tags_and_tags_before_what_they_mean() -> None:
    excluded = """\

Excluded
id    matched  title         reason
E001  reason   A Window Box  Too small to count as a garden.
"""

    assert run_toy("search", "garden") == (
        0,
        f"""\
key          year  matched  title
rose-garden  2021  title    Röses: A Garden in Four Beds
{excluded}""",
        "1 paper and 1 exclusion\ncorpus: 3 more only by the name or meaning of a tag's field; see --all\n",
    )
    assert run_toy("search", "garden", "--all") == (
        0,
        f"""\
key            year  matched                     title
rose-garden    2021  title                       Röses: A Garden in Four Beds
long-grass     2023  style meadow (definition)   Long Grass and How to Keep It
mixed-borders  2023  style cottage (definition)  Borders without Lines
terminal-yard  1999  care (definition)           The Yard
{excluded}""",
        "4 papers and 1 exclusion\n",
    )
    assert run_toy("search", "laid", "--columns", "key,matched").stdout == (
        "key            matched\n"
        "rose-garden    style formal (definition)\n"
        "long-grass     style meadow (definition)\n"
        "mixed-borders  style cottage (definition)\n"
    )


def test_where_nothing_has_all_words_what_has_the_most_is_shown() -> None:
    assert run_toy("search", "grass zebra") == (
        0,
        """\
key         year  matched  missing  title
long-grass  2023  title    zebra    Long Grass and How to Keep It
""",
        "corpus: no record holds every word; these hold the most\n1 paper\n",
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("zebra",), "no paper, exclusion or candidate holds these words"),
        (("bordrs", "gardn"), "no paper, exclusion or candidate holds these words; did you mean: borders, garden?"),
        (("window", "--where", "size=small"), "no paper that passes the filters holds these words"),
    ],
)
def test_words_that_nothing_holds_are_said_with_those_that_may_be_meant(words: tuple[str, ...], told: str) -> None:
    assert run_toy("search", *words) == (0, "", f"0 papers\ncorpus: {told}\n")


def test_a_word_of_the_key_alone_is_no_word_of_the_title(toy: Corpus) -> None:
    papers, _, _ = search(pool_of(toy), (), ["terminal"])

    assert [(hit.record.key, hit.matches) for hit in papers] == [
        ("terminal-yard", (WordMatch("terminal", SearchPart.KEY),))
    ]


def test_a_level_is_found_with_its_term_and_the_stronger_comes_first(toy: Corpus) -> None:
    papers, _, _ = search(pool_of(toy), (), ["watering"])

    assert [(hit.record.key, hit.matches) for hit in papers] == [
        ("rose-garden", (WordMatch("watering", SearchPart.TAG, "water", "daily"),)),
        ("mixed-borders", (WordMatch("watering", SearchPart.TAG, "water", "weekly"),)),
    ]


def test_words_in_a_row_come_before_words_apart(toy: Corpus) -> None:
    lawn, plan = toy.papers[0]._replace(key="a", title="Beds for Tall Roses"), toy.papers[0]._replace(key="b")
    pool = pool_of(toy)._replace(papers=(lawn._replace(summary=""), plan._replace(title="Roses Beds", summary="")))

    papers, _, _ = search(pool, (), ["roses beds"])

    assert [hit.record.key for hit in papers] == ["b", "a"]


def test_the_very_word_comes_before_its_other_forms(toy: Corpus) -> None:
    plain = toy.papers[0]._replace(summary="", tags={})
    titles = {"a": "Shaped Beds", "b": "Shapes", "c": "Shape"}
    pool = pool_of(toy)._replace(papers=tuple(plain._replace(key=key, title=title) for key, title in titles.items()))

    assert [hit.record.key for hit in search(pool, (), ["shapes"])[0]] == ["b", "a", "c"]
    assert [hit.record.key for hit in search(pool, (), ["shape"])[0]] == ["c", "a", "b"]


def test_a_word_with_two_letters_swapped_is_suggested() -> None:
    meant = "corpus: did you mean: {}?\n"

    assert run_corpus("--root", str(ROOT), "search", "shapely").stderr.endswith(meant.format("shapley"))
    assert run_corpus("--root", str(ROOT), "search", "credit", "shapely").stderr.endswith(meant.format("shapley"))
    assert run_corpus("--root", str(ROOT), "search", "GPRO").stderr.endswith("these words; did you mean: grpo?\n")
    assert "did you mean" not in run_corpus("--root", str(ROOT), "search", "stopping", "GRPO").stderr


def test_a_misspelled_word_beside_one_that_is_held_is_suggested_as_it_is_alone() -> None:
    assert run_toy("search", "borders", "gardn").stderr == (
        "corpus: no record holds every word; these hold the most\n1 paper\ncorpus: did you mean: garden?\n"
    )
    assert run_toy("search", "borders", "zebra").stderr == (
        "corpus: no record holds every word; these hold the most\n1 paper\n"
    )


def test_a_rare_word_weighs_more_where_words_are_missing(toy: Corpus) -> None:
    papers, _, _ = search(pool_of(toy), (), ["beds", "yard", "grass"])

    assert {hit.record.key: hit.missing for hit in papers} == {
        "rose-garden": ("yard", "grass"),
        "long-grass": ("beds", "yard"),
        "mixed-borders": ("yard", "grass"),
        "terminal-yard": ("beds", "grass"),
    }
    assert [hit.record.key for hit in papers][:2] == ["long-grass", "terminal-yard"]


def test_the_column_of_matches_is_one_like_others() -> None:
    assert run_toy("search", "weekly", "--columns", "key").stdout == "key\nrose-garden\nmixed-borders\nterminal-yard\n"
    assert json.loads(run_toy("search", "borders", "--format", "json").stdout) == {
        "schema": "orchtrace-corpus/search",
        "version": 1,
        "papers": [{"key": "mixed-borders", "year": 2023, "matched": "title", "title": "Borders without Lines"}],
        "exclusions": [],
    }


def toy_with_synonyms(folder: Path, synonyms: str) -> str:
    """The toy corpus, with other words for one of its terms."""
    (folder / "data").mkdir(parents=True)
    for path in (TOY / "data").glob("*.yaml"):
        text = path.read_text(encoding="utf-8").replace("{id: prune,", f"{{id: prune, synonyms: [{synonyms}],")
        (folder / "data" / path.name).write_text(text, encoding="utf-8")
    return str(folder)


def test_synonyms_are_data(tmp_path: Path) -> None:
    found = run_corpus("--root", toy_with_synonyms(tmp_path, "topiary, lopping"), "search", "lop")

    assert found.stdout == (
        """\
key            year  matched                 title
rose-garden    2021  prune weekly (synonym)  Röses: A Garden in Four Beds
terminal-yard  1999  prune weekly (synonym)  The Yard
"""
    )


def test_a_synonym_is_given_once(tmp_path: Path) -> None:
    root = toy_with_synonyms(tmp_path, "lopping, lopping")

    result = run_corpus("--root", root, "check", "data")

    assert result.code == 1
    assert result.stdout.endswith("taxonomy.yaml:21:41: F108 synonyms names 'lopping' twice; remove one [prune]\n")


@given(st.lists(st.text(max_size=12), min_size=1, max_size=4))
def test_every_word_is_either_found_or_missing(toy: Corpus, words: list[str]) -> None:
    hits = [hit for group in search(pool_of(toy), (), words) for hit in group]

    assert len({len(hit.matches) + len(hit.missing) for hit in hits}) <= 1
    assert len({len(hit.missing) for hit in hits}) <= 1
    assert all(hit.matches for hit in hits)


STOPS = {"context-folding", "dr-mas", "m-grpo", "marsrl", "paramanager", "puppeteer", "rema2025"}
R7 = {"agentspawn", "halo", "hera", "kimi-k2-5", "paramanager", "puppeteer", "wideseek-r1-2026"}


@pytest.fixture(scope="module")
def awaiting() -> tuple[Candidate, ...]:
    return candidates(str(ROOT))


@pytest.mark.parametrize(
    ("words", "first", "among", "part"),
    [
        ("stopping", STOPS, {"halo", "criticlean2025"}, SearchPart.TAG),
        ("termination", STOPS, {"anthropic-c-compiler"}, SearchPart.SYNONYM),
        ("early exit", STOPS, {"halo"}, SearchPart.SYNONYM),
        (
            "reward shaping",
            {"collabuiagents2025", "lamo2026", "malt", "matpo", "sirius2025"},
            set(),
            SearchPart.SYNONYM,
        ),
        ("GRPO", {"m-grpo"}, {"magrpo", "matpo", "marsrl"}, SearchPart.METHOD),
        ("credit-assignment", {"c3", "collabuiagents2025", "sharp"}, {"agentspawn", "puppeteer"}, SearchPart.FACET),
        ("counterfactuals", {"c3", "coma2018"}, set(), SearchPart.TITLE),
        ("spawned agents", {"agentspawn", "context-folding"}, {"kimi-k2-5", "halo"}, SearchPart.TAG),
        ("R7", R7, set(), SearchPart.TAG),
        ("O5", STOPS, {"halo"}, SearchPart.TAG),
        ("hierarchies", {"depart2026", "halo"}, {"m-grpo", "lamo2026"}, SearchPart.TAG),
        ("debating judges", {"debate-as-reward"}, {"comas2026"}, SearchPart.EVIDENCE),
        ("2505.19591", {"puppeteer"}, set(), SearchPart.IDENTIFIER),
    ],
)
def test_queries_find_what_the_tags_of_the_corpus_say(
    real: Corpus, awaiting: tuple[Candidate, ...], words: str, first: set[str], among: set[str], part: SearchPart
) -> None:
    papers, _, _ = search(pool_of(real.where("published=yes")), awaiting, [words])
    keys = [hit.record.key for hit in papers]

    assert set(keys[: len(first)]) == first
    assert among <= set(keys)
    assert part in {found.part for hit in papers for found in hit.matches}
    assert not any(hit.missing for hit in papers)


def test_all_that_let_a_trained_component_stop_are_found(real: Corpus) -> None:
    trained = {paper.key for paper in real.where("stop=explicit,implicit").papers}
    papers, _, _ = search(pool_of(real), (), ["stopping"])

    assert {hit.record.key for hit in papers[: len(trained)]} == trained


def test_a_query_of_signs_alone_is_refused() -> None:
    result = run_toy("search", "--", "-", "?")

    assert (result.code, result.stderr) == (2, "corpus: name at least one word to look for\n")


@pytest.mark.parametrize("words", ["credit-assignment", "stopping"])
def test_a_terminal_of_80_columns_holds_the_table(words: str) -> None:
    from tests.cli.test_cli import on_terminal

    shown = on_terminal("--no-color", "search", words, columns=80)

    assert max(map(len, shown.splitlines())) <= 80
