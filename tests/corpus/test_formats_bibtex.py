"""BibTeX: what an entry looks like, what is read from the entries of others, and what is refused, at its line."""

import logging

import pytest

from orchtrace_corpus.base.text.latex import encoded
from orchtrace_corpus.corpus.api import Corpus
from orchtrace_corpus.corpus.formats import FormatError, Item
from orchtrace_corpus.corpus.formats.citation import protect_capitals, venue_kind
from orchtrace_corpus.corpus.formats.registry import FORMATS

BIBTEX = FORMATS["bibtex"]

ROSE_GARDEN = r"""@article{rose-garden,
  title         = {R{\"o}ses: A Garden in Four Beds},
  author        = {M{\"u}ller, {\"A}nne and O'Neill, Tom and others},
  journal       = {Journal of Beds},
  year          = {2021},
  eprint        = {2101.00001},
  archivePrefix = {arXiv},
  primaryClass  = {cs.MA},
  doi           = {10.5555/roses.1},
  url           = {https://example.org/roses},
}
"""
LONG_GRASS = """@misc{long-grass,
  title         = {Long Grass and How to Keep It},
  author        = {{Meadow Team}},
  year          = {2023},
  eprint        = {2302.00002},
  archivePrefix = {arXiv},
  url           = {https://example.org/grass},
}
"""


def read(text: str, toy: Corpus) -> list[Item]:
    return BIBTEX.read(text.encode(), toy.taxonomy, path="x.bib")


def refused(text: str, toy: Corpus) -> list[str]:
    with pytest.raises(FormatError) as raised:
        read(text, toy)
    lines = [f"x.bib:{problem.line}: {problem.message}" for problem in raised.value.problems]
    more = [f"and {len(lines) - 4} more"] * (len(lines) > 4)
    assert str(raised.value).splitlines() == [*lines[:4], *more]
    return lines


def test_entries(toy: Corpus) -> None:
    written = BIBTEX.write(toy.papers[:2], toy.taxonomy, categories={"2101.00001": "cs.MA"})

    assert written == f"{ROSE_GARDEN}\n{LONG_GRASS}"


def test_biblatex_keeps_unicode(toy: Corpus) -> None:
    written = str(BIBTEX.write(toy.papers[:1], toy.taxonomy, "biblatex"))

    assert "{Röses: A Garden in Four Beds}" in written
    assert "{Müller, Änne and O'Neill, Tom and others}" in written


def test_tagged_adds_tags_and_summary(toy: Corpus) -> None:
    plain, tagged = (str(BIBTEX.write(toy.papers[:1], toy.taxonomy, name)) for name in ("biblatex", "tagged"))

    assert tagged == plain[: -len("}\n")] + (
        "  keywords      = {style=formal, water=daily, prune=weekly, tools=spade, tools=shears, size=small},\n"
        "  annotation    = {Lays out four beds of roses.},\n"
        "}\n"
    )


def test_no_papers_are_no_text(toy: Corpus) -> None:
    assert BIBTEX.write((), toy.taxonomy) == ""
    assert read("", toy) == []


@pytest.mark.parametrize(
    ("title", "written"),
    [
        ("LLM-based Agents: A Survey of LLMs", "{LLM}-based Agents: A Survey of {LLMs}"),
        ("DeepSeek-R1 and MAS-ZERO", "{DeepSeek-R1} and {MAS-ZERO}"),
        ("Shapley Q-value of a Multi-Agent Team", "Shapley {Q}-value of a Multi-Agent Team"),
        ("Building a C compiler in K2.5", "Building a {C} compiler in {K2.5}"),
        ("A Garden", "A Garden"),
        ("MARS²: $ave", r"{MARS{$^2$}}: \$ave"),
        ("What You've Signed Up For", "What You've Signed Up For"),
        ("ÉCOLE naïve", r"{{\'E}COLE} na{\"\i}ve"),
    ],
)
def test_capitals_that_a_style_must_not_lower_are_in_braces(title: str, written: str) -> None:
    assert protect_capitals(title, encoded) == written


@pytest.mark.parametrize(
    ("kind", "venues"),
    [
        ("journal", ["Nature 2025", "TMLR 2026", "Mathematics of Operations Research", "Advances in Complex Systems"]),
        ("journal", ["IEEE Transactions on Games", "Communications of the ACM", "Journal of Beds"]),
        ("journal", ["JHEP", "JMLR 25", "PoS(LATTICE2021)", "J. High Energy Phys."]),
        ("conference", ["ICML", "NeurIPS 2025 D&B", "ICML 2025 MAS Workshop", "Findings of ACL 2026", "COLM 2025"]),
        ("conference", ["Conference on Robot Learning", "Advances in Neural Information Processing Systems"]),
        ("preprint", ["arXiv", "arXiv (ICLR 2026 submitted)", "OpenReview (ICLR 2026 submission)"]),
        ("preprint", ["ACL ARR 2026 January Submission"]),
        ("other", ["Blog Post", "Tech Report", "Documentation", "Engineering Blog", "XYZQ 2025", ""]),
    ],
)
def test_the_kind_of_a_venue_is_told_from_its_words(kind: str, venues: list[str]) -> None:
    assert {venue: venue_kind(venue) for venue in venues} == dict.fromkeys(venues, kind)


def test_entries_of_others(toy: Corpus) -> None:
    items = read(
        r"""% A file by hand.
@string{neurips = "Advances in Neural Information " # {Processing Systems}}
@preamble{"\newcommand{\x}{y}"}
@comment{Ignored, {even} if @odd}
@InProceedings{Vaswani2017,
  Title = "Attention Is {All} You Need",
  AUTHOR = {Ashish Vaswani and Ludwig van Beethoven and
            {Barnes and Noble} and \'{A}lvarez, Jr., Jos{\'e} and others},
  booktitle = neurips # { 30},
  month = jun,
  year = 2017,
}
@article{scholar, title={X}, author={Doe, J}, journal={arXiv preprint arXiv:2505.19591v2}, year={2025}}
@article(dblp, title={Y}, author={Doe, J}, journal={CoRR}, volume={abs/2505.19592}, year={2025})
@misc{latex, title={Z}, author={Doe, J}, date={2024-05-01}, howpublished={\url{https://example.org/a\_b}},
  doi = {https://doi.org/10.5555/ABC\_D}}
""",
        toy,
    )

    assert items == [
        Item(
            {
                "key": "Vaswani2017",
                "title": "Attention Is All You Need",
                "authors": [
                    "Vaswani, Ashish",
                    "van Beethoven, Ludwig",
                    "{Barnes and Noble}",
                    "Álvarez, Jr., José",
                    "others",
                ],
                "bibtex": {"month": "June"},
            },
            5,
            cited={"year": 2017, "venue": "Advances in Neural Information Processing Systems 30"},
        ),
        Item(
            {
                "key": "scholar",
                "title": "X",
                "authors": ["Doe, J"],
                "bibtex": {"type": "article", "journal": "arXiv preprint arXiv:2505.19591v2"},
                "arxiv_id": "2505.19591",
            },
            13,
            cited={"year": 2025, "venue": "arXiv"},
        ),
        Item(
            {
                "key": "dblp",
                "title": "Y",
                "authors": ["Doe, J"],
                "bibtex": {"type": "article", "journal": "CoRR", "volume": "abs/2505.19592"},
                "arxiv_id": "2505.19592",
            },
            14,
            cited={"year": 2025, "venue": "arXiv"},
        ),
        Item(
            {
                "key": "latex",
                "title": "Z",
                "authors": ["Doe, J"],
                "bibtex": {"date": "2024-05-01"},
                "doi": "10.5555/abc_d",
            },
            15,
            {"urls": "https://example.org/a_b"},
            cited={"year": 2024},
        ),
    ]


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ("eprint = {2505.19591}, archivePrefix = {arXiv}", {"arxiv_id": "2505.19591"}),
        ("eprint = {2505.19591v3}", {"arxiv_id": "2505.19591"}),
        ("eprint = {hal-1}, eprinttype = {hal}", {"bibtex": {"eprint": "hal-1", "eprinttype": "hal"}}),
        ("eprint = {oops}, archivePrefix = {arXiv}", {"arxiv_id": "oops"}),
        (
            "doi = {10.48550/arXiv.2505.19591}",
            {"arxiv_id": "2505.19591", "bibtex": {"doi": "10.48550/arXiv.2505.19591"}},
        ),
        ("doi = {oops}", {"doi": "oops"}),
    ],
)
def test_identifiers_are_brought_to_their_plain_form_or_left_for_the_decoder(
    fields: str, found: dict[str, str], toy: Corpus
) -> None:
    assert read(f"@misc{{a, {fields}}}", toy)[0].values == {"key": "a", **found}


def test_everything_that_cannot_be_read_is_named_with_its_line(toy: Corpus, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        problems = refused(
            r"""@article{a, title = {A}, author = {Doe, J}, year = {2020}}
@article{a, title = {B}}
@article{b,
  title = {B},
  Title = {C},
  title = {D}}
@article{c, title = {unclosed, year = {2020}}

@article{d, year = {in press}}
@article{e, journal = tmlr}
@article{f, author = {Doe, John, Jr, X, Y}, title = {\foo{x}}}
@article{g, author = {A and and B}}
@article{, title = {No key}}
@ article{h, title = {Blank}}
@string{s = {a}}
@string{s = {b}}
@article{i, title = {A} year = {2020}}
@inproceedings{j, crossref = {proc}}
""",
            toy,
        )

    assert problems == [
        "x.bib:2: key 'a' is used twice (first on line 1); keep one",
        "x.bib:5: field 'title' is given twice (first on line 4); keep one",
        "x.bib:6: field 'title' is given twice (first on line 4); keep one",
        "x.bib:7: this entry breaks off on line 7: a closing brace, a comma, '=' or its key is missing",
        "x.bib:9: year 'in press' is not a year of four digits",
        "x.bib:10: journal: there is no string 'tmlr'; define it with @string, or write {tmlr}",
        r"x.bib:11: author: too many commas in 'Doe, John, Jr, X, Y'",
        r"x.bib:11: title holds LaTeX that stands for no characters: '\foo'; write it as plain text",
        "x.bib:12: author: a name is missing between two 'and'",
        "x.bib:13: an entry of type 'article' has no key",
        "x.bib:14: this looks like the start of an entry, but is not one: '@ article{h, title = {Blank}}'; write @type{key, ...}",
        "x.bib:16: string 's' is used twice (first on line 15); keep one",
        "x.bib:17: title: a comma is missing behind '{A}'",
        "x.bib:18: crossref is not followed: copy the year and the booktitle from the entry that it names",
    ]
    assert caplog.records == []


@pytest.mark.parametrize(
    ("text", "line", "missing"),
    [
        ("@article{a,\n  title = {A", 2, "a closing brace is missing in title, on line 2"),
        (
            '@article{a,\n  title = "A,\n  year = {2020}\n}\n\n@article{b}',
            4,
            "a closing quote is missing in title, on line 2",
        ),
        ('@article{a, x = {"},\n  title = "A,\n  note = "B"\n}', 4, "a closing quote is missing in title, on line 2"),
        ("@article{a,\n  title = {A,\n  year = {2020}\n}", 4, "a closing brace is missing in title, on line 2"),
        ("@article{a,\n  title = {A}\n\n@article{b}", 2, ""),
        ("@article{\n  title = {A}}", 2, ""),
        ("@article{a,\n  title {A}}", 2, ""),
    ],
)
def test_an_entry_that_breaks_off_is_named_with_both_its_lines_and_what_is_or_may_be_missing(
    toy: Corpus, text: str, line: int, missing: str
) -> None:
    missing = missing or "a closing brace, a comma, '=' or its key is missing"
    assert refused(text, toy) == [f"x.bib:1: this entry breaks off on line {line}: {missing}"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "@misc{a,\n  year={2026}},\n  eprint={2601.01234},\n}",
            "2: these fields stand behind the end of their entry: ', eprint={2601.01234}, }'; "
            "before them is a '}' too many",
        ),
        (
            "@misc{a,\n  year={2026}}\n\n  month = {1},\n}",
            "4: these fields stand behind the end of their entry: 'month = {1}, }'; before them is a '}' too many",
        ),
        (
            "@misc{a, year={2026}}\nA note (me@x.org).\n  @misc b,\n  year={2026}\n}",
            "3: this looks like the start of an entry, but is not one: '@misc b, year={2026} }'; write @type{key, ...}",
        ),
        (
            "@misc b,\n  year={2026}\n}",
            "1: this looks like the start of an entry, but is not one: '@misc b, year={2026} }'; write @type{key, ...}",
        ),
    ],
)
def test_nothing_of_an_entry_is_taken_for_the_text_between_entries(toy: Corpus, text: str, problem: str) -> None:
    assert refused(text, toy) == [f"x.bib:{problem}"]
    assert read("@misc{a, year={2026}}}\n% eprint={x}\nme@x.org, x = 1\n", toy)[0].cited == {"year": 2026}


def test_a_file_that_is_not_utf8_is_refused_at_its_line(toy: Corpus) -> None:
    with pytest.raises(FormatError) as raised:
        BIBTEX.read(b"@article{a,\n title = {Gr\xe9goire}}", toy.taxonomy, path="x.bib")

    assert str(raised.value) == "x.bib:2: not UTF-8: byte e9; save the file as UTF-8"


def test_line_ends_of_windows_and_a_byte_order_mark_are_read(toy: Corpus) -> None:
    data = b"\xef\xbb\xbf" + LONG_GRASS.replace("\n", "\r\n").encode()

    assert BIBTEX.read(data, toy.taxonomy) == read(LONG_GRASS, toy)


def test_an_accent_behind_and_is_kept(toy: Corpus) -> None:
    items = read(r"@misc{a, author = {Knuth, D. and \'Alvarez, J. and \_x, \$ and others}}", toy)

    assert items[0].values["authors"] == ["Knuth, D.", "Álvarez, J.", "_x, $", "others"]


@pytest.mark.parametrize("depth", [300, 5000])
@pytest.mark.parametrize("field", ["title", "author", "journal"])
def test_braces_nested_too_deeply_are_refused_at_their_line(depth: int, field: str, toy: Corpus) -> None:
    text = f"@misc{{a, title = {{A}}}}\n\n@misc{{b, {field} = {{{'{' * depth}x{'}' * depth}}}}}\n"

    (problem,) = refused(text, toy)

    assert problem.startswith("x.bib:3: ")
    assert "braces nested too deeply" in problem
