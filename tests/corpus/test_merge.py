"""Bringing records in: by key, only what differs, and all problems at once."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.base.yamlfile.reader import YamlFile
from orchtrace_corpus.corpus.api import Corpus
from orchtrace_corpus.corpus.edit.edits import add_records
from orchtrace_corpus.corpus.edit.merge import Merge, merge
from orchtrace_corpus.corpus.formats import Item, Problem
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.decode import decode_papers
from orchtrace_corpus.corpus.model.record_fields import Value, fields, paper_style
from tests.conftest import TOY
from tests.effort import assert_grows

POND: dict[str, Value] = {
    "key": "pond",
    "title": "A Pond",
    "authors": ["Frog, Ann"],
    "year": 2024,
    "venue": "arXiv",
    "urls": ["https://example.org/pond"],
    "style": "cottage",
    "care": {},
    "size": "small",
    "summary": "Digs a pond.",
}


def papers_file() -> YamlFile:
    return store.CorpusFiles(str(TOY)).file(store.PAPERS)


def merged(toy: Corpus, *items: Item) -> Merge:
    return merge(papers_file(), items, toy.taxonomy, "2024-05-06")


def test_only_what_differs_changes_and_what_a_format_lacks_stays(toy: Corpus) -> None:
    text = papers_file().text

    result = merged(
        toy,
        Item(
            {"key": "mixed-borders", "year": "2023", "title": "Borders", "care": {"water": "daily", "prune": "daily"}},
            2,
        ),
        Item({"key": "terminal-yard", "tools": ["NA"], "year": 1999}, 3),
        Item({"key": "long-grass", "doi": "10.5555/grass"}, 4),
    )

    assert result[1:6] == (("mixed-borders", "long-grass"), (), ("terminal-yard",), (), ())
    assert result.lines == {"mixed-borders": 2, "terminal-yard": 3, "long-grass": 4}
    assert result.text == text.replace("Borders without Lines", "Borders").replace(
        "care: {water: weekly}", "care: {water: daily, prune: daily}"
    ).replace('arxiv_id: "2302.00002"\n', 'arxiv_id: "2302.00002"\n  doi: 10.5555/grass\n')


def test_a_new_paper_is_added_on_the_day(toy: Corpus) -> None:
    result = merged(toy, Item(POND, 1), Item({**POND, "key": "lake", "added": "2020-01-01"}, 2))

    assert result[1:6] == ((), ("pond", "lake"), (), (), ())
    assert result.text.startswith(papers_file().text + "\n- key: pond\n  title: A Pond\n")
    assert result.text.count('added: "2024-05-06"') == 1
    assert result.text.endswith('summary: Digs a pond.\n  added: "2020-01-01"\n')


def test_all_problems_are_told_at_once_and_nothing_changes(toy: Corpus) -> None:
    result = merged(
        toy,
        Item({"key": "rose-garden", "title": "Roses", "style": "frmal", "year": "now"}, 2),
        Item({"title": "Nobody"}, 3),
        Item({"key": "rose-garden", "title": "Roses"}, 4),
        Item({"key": "Pond A", "title": "A Pond", "arxiv_id": "2401.1"}, 5),
        Item({"key": "grass", "arxiv_id": "2302.00002"}, 6),
        Item({"key": "long-grass", "colour": "green"}, 7),
        Item({"key": "mixed-borders", "evidence": [{"tags": ["care"], "note": "It is."}]}, 8, {"authors": "李, 四"}),
        Item({**POND, "care": {"water": "hourly"}}, 9),
        Item({"key": "terminal-yard", "tools": [[[["rake"]]]]}, 10),
    )

    assert result.text == papers_file().text
    assert [f"{line}: {message}" for line, message in result.problems] == [
        "2: F105 'now' is not a year: write four digits [rose-garden]",
        "2: V102 unknown style 'frmal' (did you mean 'formal'? allowed: formal, cottage, meadow, gravel, NA) [rose-garden]",
        "3: this record has no key",
        "4: key 'rose-garden' is used twice (first on line 2); keep one record",
        "5: F107 'Pond A' is not a key: use lower-case letters, digits and single hyphens [Pond A]",
        "5: F111 arxiv_id '2401.1' is not in its plain form, such as 2505.19591 [Pond A]",
        "5: no paper has this key yet, and a new one needs authors, year, venue, style, care, size; "
        "corpus add asks for them [Pond A]",
        "6: no paper has this key, but 'long-grass' has its identifier; write that key [grass]",
        "7: F102 unknown field 'colour' (allowed: key, title, authors, affiliation, year, venue_year, venue, proceedings, arxiv_id, doi, "
        "openreview_id, acl_id, urls, code, style, care, tools, size, base_models, algorithm, algorithm_note, benchmarks, benchmarks_note, summary, evidence, added, "
        "cite_key, bibtex, notes, waive) [long-grass]",
        "8: F101 missing field 'confidence' [mixed-borders]",
        "8: F101 missing field 'level' [mixed-borders]",
        "8: F101 missing field 'source' [mixed-borders]",
        "8: the first author is '李, 四', but the record's is '李, 明'; change the list in the record itself [mixed-borders]",
        "9: V103 unknown level of care 'hourly' (allowed: daily, weekly) [pond]",
        "10: tools holds lists in lists; no field does [terminal-yard]",
    ]


def test_a_problem_is_told_at_its_own_line_where_records_are_written_by_key(toy: Corpus) -> None:
    items = [
        Item({**POND, "key": key, "year": year}, line)
        for line, (key, year) in enumerate({"b": "x", "a": 2024}.items(), 1)
    ]

    result = merge(papers_file(), items, toy.taxonomy._replace(by_key=True), "2024-05-06")

    assert result.problems == (Problem(1, "F105 'x' is not a year: write four digits [b]"),)


def test_heads_of_lists_keep_the_lists(toy: Corpus) -> None:
    text = papers_file().text
    url = "https://example.org/roses-2"

    same = merged(
        toy, Item({"key": "rose-garden"}, 1, {"authors": "Müller, Änne", "urls": "https://example.org/roses"})
    )
    moved = merged(toy, Item({"key": "rose-garden"}, 1, {"urls": url}))

    assert (same.text, same.unchanged) == (text, ("rose-garden",))
    assert moved.text == text.replace("urls: [https://example.org/roses,", f"urls: [{url},")


def test_a_value_that_is_wrong_already_does_not_stand_in_the_way(toy: Corpus) -> None:
    file = YamlFile("x.yaml", papers_file().text.replace("style: meadow", "style: medow").encode())

    result = merge(
        file, [Item({"key": "long-grass", "style": "medow", "title": "Grass"}, 1)], toy.taxonomy, "2024-05-06"
    )

    assert result.problems == ()
    assert result.text == file.text.replace("Long Grass and How to Keep It", "Grass")


def test_a_key_that_the_corpus_has_twice_is_refused(toy: Corpus) -> None:
    file = YamlFile("x.yaml", papers_file().text.replace("key: mixed-borders", "key: long-grass").encode())

    result = merge(file, [Item({"key": "long-grass", "title": "Grass"}, 7)], toy.taxonomy, "2024-05-06")

    assert result.problems == (
        Problem(7, "key 'long-grass' is used twice in the corpus; give each paper its own key first"),
    )


@given(st.permutations(range(4)), st.sets(st.sampled_from(["title", "year", "care", "evidence", "tools", "style"])))
def test_what_is_there_already_leaves_every_byte(toy: Corpus, order: list[int], names: set[str]) -> None:
    items = []
    for line, number in enumerate(order):
        values = fields(toy.papers[number], toy.taxonomy)
        items.append(Item({name: value for name, value in values.items() if name in {"key", *names}}, line))

    result = merged(toy, *items)

    assert (result.text, result.updated, len(result.unchanged)) == (papers_file().text, (), 4)


def test_time_grows_with_the_number_of_records(toy: Corpus) -> None:
    def prepare(count: int) -> Callable[[], object]:
        records = [{**POND, "key": f"pond-{number}"} for number in range(count)]
        file = YamlFile("x.yaml", add_records(YamlFile("x.yaml", b"[]\n"), records, paper_style(toy.taxonomy)).encode())
        items = [Item({"key": record["key"], "title": "Another"}, 1) for record in records]

        def call() -> None:
            result = merge(file, items, toy.taxonomy, "2024-05-06")
            assert len(decode_papers(YamlFile("x.yaml", result.text.encode()), toy.taxonomy)[0]) == count

        return call

    assert_grows(prepare, 50, 400, 22)


def test_a_mapping_that_says_the_same_in_another_order_changes_nothing(toy: Corpus) -> None:
    same = Item({"key": "rose-garden", "care": {"prune": "weekly", "water": "daily"}}, 1)
    other = Item({"key": "rose-garden", "care": {"prune": "daily", "water": "weekly"}}, 1)

    assert merged(toy, same)[1:6] == ((), (), ("rose-garden",), (), ())
    assert merged(toy, same).text == papers_file().text
    assert merged(toy, other)[1:6] == (("rose-garden",), (), (), (), ())


def test_a_key_of_a_bibliography_becomes_a_key_to_cite_by(toy: Corpus) -> None:
    entry = {name: value for name, value in POND.items() if name not in ("year", "venue")}
    cited = {"year": POND["year"], "venue": POND["venue"]}

    result = merged(toy, Item({**entry, "key": "Doe2024pond"}, 1, cited=cited))

    assert (result.problems, result.added) == ((), ("doe2024pond",))
    assert "- key: doe2024pond\n" in result.text
    assert "  cite_key: Doe2024pond\n" in result.text
    refused = merged(toy, Item({**POND, "key": "Doe2024pond"}, 1))
    assert "F107 'Doe2024pond' is not a key" in refused.problems[0].message, "of our own table it is a mistake"


def test_a_made_key_is_none_that_the_file_has_itself(toy: Corpus) -> None:
    entry = {name: value for name, value in POND.items() if name not in ("year", "venue")}
    cited = {"year": POND["year"], "venue": POND["venue"]}
    own = {**entry, "key": "doe-2024", "urls": ["https://example.org/lake"], "title": "A Lake"}

    result = merged(toy, Item({**entry, "key": "Doe:2024"}, 1, cited=cited), Item(own, 2, cited=cited))

    assert (result.problems, result.added) == ((), ("doe-2024-2", "doe-2024"))
    assert "- key: doe-2024-2\n" in result.text


def test_a_new_paper_takes_tags_and_summary_from_keywords_and_annotation(toy: Corpus) -> None:
    entry = {name: POND[name] for name in ("key", "title", "authors", "urls")}
    cited = {"year": POND["year"], "venue": POND["venue"]}
    words = ("style=formal", "water=daily", "size=small")

    result = merged(toy, Item(entry, 1, cited=cited, keywords=words, annotation="Digs."))

    assert (result.problems, result.added) == ((), ("pond",))
    assert "  style: formal\n  care: {water: daily}\n  size: small\n  summary: Digs.\n" in result.text
    refused = merged(toy, Item(entry, 1, cited=cited, keywords=("size=huge",)))
    assert refused.problems[0].message.startswith("its keywords: unknown size 'huge'")
