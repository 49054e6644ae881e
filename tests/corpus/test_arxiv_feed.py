"""Reading arXiv's feeds: three eras to one record, and everything that is no feed refused by name."""

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.base import budget
from orchtrace_corpus.base.errors import ExitCode, UpstreamError
from orchtrace_corpus.base.identifiers import IdentifierKind, is_normal
from orchtrace_corpus.corpus.model import metadata
from orchtrace_corpus.corpus.model.metadata import Metadata
from orchtrace_corpus.corpus.sources.arxiv import feed as module
from orchtrace_corpus.corpus.sources.arxiv.feed import (
    Feed,
    FeedError,
    Problem,
    Received,
    RefusedQueryError,
    UnreadableFeedError,
    parse,
)
from tests.corpus.arxiv_feeds import Era, error_feed, feed, record
from tests.effort import assert_grows, tries

PAPERS = (
    record(
        "2401.00001",
        version=3,
        title="Toys & Games: $\\lambda$ < 3",
        authors=("Ada Toy", "Émile Jouet", "The TOY Collaboration"),
        comment="12 pages",
        journal_ref="J. Toy Sci. 1 (2025) 1-12",
        doi="10.1000/toy.1",
    ),
    record("math/0309136", title="An Old Toy", primary_category="math.GT", categories=("math.GT", "math-ph", "hep-th")),
    record("2402.00001", comment="This paper has been withdrawn by the author"),
)

MINIMAL = """\
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:arxiv="http://arxiv.org/schemas/atom"><entry>
<id>http://arxiv.org/abs/2401.00001v2</id><title>A Toy</title><updated>2024-02-01T00:00:00Z</updated>
<published>2024-01-01T00:00:00Z</published><author><name>Ada Toy</name></author>
<category term="cs.MA"/></entry></feed>"""

LAUGHS = b"""\
<?xml version="1.0"?>
<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">
<!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;"><!ENTITY e "&d;&d;&d;&d;&d;&d;&d;&d;&d;&d;">
<!ENTITY f "&e;&e;&e;&e;&e;&e;&e;&e;&e;&e;"><!ENTITY g "&f;&f;&f;&f;&f;&f;&f;&f;&f;&f;">
<!ENTITY h "&g;&g;&g;&g;&g;&g;&g;&g;&g;&g;">]>
<feed xmlns="http://www.w3.org/2005/Atom"><title>&h;</title></feed>"""


@pytest.mark.parametrize("era", Era)
def test_feeds_of_every_era_say_the_same(era: Era) -> None:
    read = parse(feed(PAPERS, era=era))

    if era is Era.LAUNCH:  # which gave the time of the record's last change instead of the version's
        assert {entry.updated for entry in read.entries} == {"2026-11-21T00:00:00Z"}
        read = read._replace(
            entries=tuple(
                entry._replace(updated=paper.updated) for entry, paper in zip(read.entries, PAPERS, strict=True)
            )
        )
    assert read == Feed(PAPERS, total=len(PAPERS), size=len(PAPERS))


def test_papers_that_the_old_service_counted_and_did_not_have_are_left_out() -> None:
    read = parse(feed(PAPERS[:1], ["2401.99999", "2401.99998"], Era.OLD))

    assert read.entries == PAPERS[:1]


def test_texts_come_on_one_line() -> None:
    wrapped = MINIMAL.replace("A Toy", "\n  A\tToy\u00a0of\n  Ours ").replace("Ada Toy", " Ada\n Toy ")

    entry = parse(wrapped.encode()).entries[0]

    assert (entry.title, entry.authors) == ("A Toy of Ours", ("Ada Toy",))


def test_what_an_entry_does_not_say_is_none() -> None:
    assert parse(MINIMAL.encode()).entries == (
        Metadata(
            "2401.00001",
            2,
            "A Toy",
            ("Ada Toy",),
            abstract="",
            published="2024-01-01T00:00:00Z",
            updated="2024-02-01T00:00:00Z",
            primary_category="cs.MA",
            categories=("cs.MA",),
        ),
    )


@pytest.mark.parametrize(
    ("given", "time"),
    [
        ("2024-01-01T00:00:00-05:00", "2024-01-01T05:00:00Z"),
        ("2024-01-01T00:00:00.5+00:00", "2024-01-01T00:00:00Z"),
        ("2024-01-01T00:00:00", "2024-01-01T00:00:00Z"),
    ],
)
def test_times_are_those_of_utc(given: str, time: str) -> None:
    assert parse(MINIMAL.replace("2024-01-01T00:00:00Z", given).encode()).entries[0].published == time


@pytest.mark.parametrize(
    ("old", "new", "categories", "primary"),
    [
        ('"cs.MA"/>', '"cs.MA"/><category term="68T42"/><category term="I.2.11; I.2.6"/>', ("cs.MA",), "cs.MA"),
        ('"cs.MA"/>', '"cs.MA"/><arxiv:primary_category term="cs.LG"/>', ("cs.LG", "cs.MA"), "cs.LG"),
        (
            '"cs.MA"/>',
            '"q-bio.NC"/><category term="cond-mat.mtrl-sci"/>',
            ("q-bio.NC", "cond-mat.mtrl-sci"),
            "q-bio.NC",
        ),
        ('"cs.MA"/>', '"cs.MA"/><category term="cs.MA"/>', ("cs.MA",), "cs.MA"),
    ],
)
def test_categories_are_arxivs_own(old: str, new: str, categories: tuple[str, ...], primary: str) -> None:
    entry = parse(MINIMAL.replace(old, new).encode()).entries[0]

    assert (entry.categories, entry.primary_category) == (categories, primary)


@pytest.mark.parametrize(
    ("given", "doi"),
    [
        ("10.1000/TOY.1", "10.1000/toy.1"),
        ("10.1000/a 10.1000/b", "10.1000/a"),
        ("doi:10.1000/a", "10.1000/a"),
        ("10.48550/arXiv.2401.00001", None),
        ("to appear", None),
    ],
)
def test_the_doi_is_that_of_the_published_paper(given: str, doi: str | None) -> None:
    body = MINIMAL.replace("</entry>", f"<arxiv:doi>{given}</arxiv:doi></entry>")

    assert parse(body.encode()).entries[0].doi == doi


def test_separators_among_the_authors_are_no_authors() -> None:
    body = MINIMAL.replace("</author>", "</author><author><name>:</name></author><author><name>B. Two</name></author>")

    assert parse(body.encode()).entries[0].authors == ("Ada Toy", "B. Two")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("<title>A Toy</title>", "", Problem("2401.00001", "the entry of 2401.00001 has no usable title")),
        ("Ada Toy", "  ", Problem("2401.00001", "the entry of 2401.00001 has no usable authors")),
        ("2024-02-01T", "yesterday", Problem("2401.00001", "the entry of 2401.00001 has no usable updated")),
        ("2024-01-01T00:00:00Z", "9999-12-31T23:59:59-09:00", Problem("2401.00001", "the entry of 2401.00001 has no usable published")),
        ("cs.MA", "68T42", Problem("2401.00001", "the entry of 2401.00001 has no usable primary_category")),
        ("2401.00001v2", "2401.00001", Problem("", "the entry 'http://arxiv.org/abs/2401.00001' is not that of a paper")),
        ("2401.00001v2", "２４01.00001v2", Problem("", "the entry 'http://arxiv.org/abs/２４01.00001v2' is not that of a paper")),
        ("abs/2401.00001v2", "x", Problem("", "the entry 'http://arxiv.org/x' is not that of a paper")),
    ],
)  # fmt: skip
def test_an_entry_that_cannot_be_read_spoils_no_other(old: str, new: str, problem: Problem) -> None:
    broken, whole = MINIMAL.replace(old, new), MINIMAL.replace("2401.00001", "2401.00002")
    body = broken.removesuffix("</feed>") + whole[whole.index("<entry>") :]

    read = parse(body.encode())

    assert read.problems == (problem,)
    assert [entry.arxiv_id for entry in read.entries] == ["2401.00002"]


@pytest.mark.parametrize("era", Era)
def test_a_feed_that_refuses_an_id_names_it(era: Era) -> None:
    body = error_feed("incorrect id format for abc/xyz", "incorrect_id_format_for_abc/xyz", era)

    with pytest.raises(RefusedQueryError, match="the query was refused: 'incorrect id format for abc/xyz'") as caught:
        parse(body)

    assert caught.value.bad_id == "abc/xyz"
    assert caught.value.exit_code is ExitCode.UPSTREAM


def test_a_feed_that_refuses_a_query_says_why() -> None:
    with pytest.raises(RefusedQueryError) as caught:
        parse(error_feed("start must be an integer", "start_must_be_an_integer", Era.CURRENT))

    assert (caught.value.reason, caught.value.bad_id) == ("start must be an integer", None)


def test_a_refusal_is_told_by_its_id_and_not_by_its_title() -> None:
    titled_error = MINIMAL.replace("A Toy", "Error")
    without_reason = error_feed("", "incorrect_id_format_for_x", Era.CURRENT)

    assert parse(titled_error.encode()).entries[0].title == "Error"
    with pytest.raises(RefusedQueryError, match="'incorrect id format for x'"):
        parse(without_reason)


@pytest.mark.parametrize(
    ("body", "received", "message"),
    [
        (b"", Received.NOTHING, "instead of a feed came nothing"),
        (b"\xef\xbb\xbf \n", Received.NOTHING, "instead of a feed came nothing"),
        (b"Rate exceeded.", Received.TEXT, "instead of a feed came plain text: 'Rate exceeded.'"),
        (b"\x1b[31mred\n" + b"x" * 900, Received.TEXT, f"instead of a feed came plain text: '\\x1b[31mred {'x' * 70}…'"),
        (b"\x1f\x8b\x08\x00", Received.TEXT, "instead of a feed came plain text: '\ufffd\\x08\\x00'"),
        (b"<!DOCTYPE html>\n<title>Access\nDenied</title>", Received.PAGE, "instead of a feed came a web page: 'Access Denied'"),
        (b"<!-- x --> <HTML><body>hello", Received.PAGE, "instead of a feed came a web page"),
        (feed(PAPERS)[:-2], Received.PART, "instead of a feed came a part of one: "),
        (feed(PAPERS)[:900], Received.PART, "instead of a feed came a part of one: "),
        (b"<feed>&nbsp;</feed>", Received.MALFORMED, "instead of a feed came malformed XML: undefined entity: line 1, column 6"),
        (feed(PAPERS) + b"<x/>", Received.MALFORMED, "instead of a feed came malformed XML: junk after document element"),
        (b"<a>\xff</a>", Received.MALFORMED, "instead of a feed came malformed XML: not well-formed"),
        (LAUGHS, Received.DECLARATIONS, "instead of a feed came XML with declarations of its own"),
        (b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', Received.DECLARATIONS, "instead of a feed came XML with declarations of its own"),
        (b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>', Received.DECLARATIONS, "instead of a feed came XML with"),
        (b"<rss/>", Received.OTHER_XML, "instead of a feed came other XML: its root is 'rss'"),
        (b"<feed/>", Received.OTHER_XML, "instead of a feed came other XML: its root is 'feed'"),
        (b"<a>" * 17, Received.OVERLONG, "instead of a feed came more than any feed has: 17 elements, 17 deep"),
        (b" " * (16 * 1024 * 1024 + 1), Received.OVERLONG, "instead of a feed came more than any feed has: 16,777,217 bytes"),
    ],
    ids=lambda value: value if isinstance(value, Received) else "",
)  # fmt: skip
def test_what_is_no_feed_is_refused_by_name(body: bytes, received: Received, message: str) -> None:
    with pytest.raises(UnreadableFeedError) as caught:
        parse(body)

    assert str(caught.value).startswith(message)
    assert str(caught.value).isprintable()
    assert caught.value.received is received
    assert isinstance(caught.value, UpstreamError)


def test_a_feed_of_too_many_elements_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    most = tries(module.MAX_ELEMENTS, 5_000)
    monkeypatch.setattr(module, "MAX_ELEMENTS", most)

    parse(feed(PAPERS))
    with pytest.raises(UnreadableFeedError) as caught:
        parse(b"<a>" + b"<b/>" * most + b"</a>")

    assert str(caught.value) == f"instead of a feed came more than any feed has: {most + 1:,} elements, 2 deep"
    assert (module.MAX_ELEMENTS, caught.value.received) == (most, Received.OVERLONG)


def test_entities_within_entities_are_not_expanded() -> None:
    def laughs(levels: int) -> Callable[[], object]:
        inner = b"".join(b'<!ENTITY e%d "%s">' % (n + 1, b"&e%d;" % n * 10) for n in range(levels))
        body = b'<!DOCTYPE a [<!ENTITY e0 "ha">' + inner + b"]><a>&e%d;</a>" % levels

        def call() -> None:
            with pytest.raises(UnreadableFeedError, match="declarations of its own"):
                parse(body)

        return call

    assert_grows(laughs, 1, 7, 50)  # expanded, it would be a million times as much


def test_a_feed_in_another_encoding_than_it_should_have_is_malformed() -> None:
    body = b"<?xml version='1.0' encoding='utf-7'?>" + MINIMAL.replace("A Toy", "+ADw-script+AD4-").encode()

    assert parse(body).entries[0].title == "+ADw-script+AD4-"
    with pytest.raises(UnreadableFeedError):
        parse(MINIMAL.encode("utf-16"))


@given(st.binary(max_size=300))
def test_no_bytes_crash_the_parser(body: bytes) -> None:
    with pytest.raises(FeedError):
        parse(body)


FRAGMENTS = (
    LAUGHS[:500],
    b"<!DOCTYPE a [<!ENTITY a 'haha'>]>",
    b"&a;",
    b"&#0;",
    b"&#xD800;",
    b"&#1114111;",
    b"<![CDATA[",
    b"]]>",
    b"<!--",
    b"-->",
    b"<?x",
    b"<entry>",
    b"</entry>",
    b"<id>http://arxiv.org/api/errors#x</id>",
    b"xmlns:arxiv=''",
    b"xmlns='urn:x'",
    b"<a>" * 20,
    b"\x00",
    b"\xff\xfe",
    b"\xf0\x9d\x92\x9c",
    b"\xe2\x80\xae",
    b"9999-99-99T99:99:99Z",
    b"0001-01-01T00:00:00+23:59",
    b"v0",
    b"v99999",
)


def mutations(chance: random.Random) -> Iterator[bytes]:
    """Feeds of the three eras with one to four cuts, repeats, flips or insertions, without end."""
    sources = [feed(PAPERS, ["2401.99999"], era) for era in Era]
    sources += [error_feed("incorrect id format for x", "incorrect_id_format_for_x", era) for era in Era]
    while True:
        body = bytearray(chance.choice(sources))
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(body) + 1)
            length = chance.choice((1, 1, 4, 40, 400))
            action = chance.randrange(6)
            if action == 0:
                del body[at : at + length]
            elif action == 1:
                body[at:at] = chance.choice(FRAGMENTS)
            elif action == 2:
                body[at:at] = body[at : at + length]
            elif action == 3:
                body[at : at + 1] = bytes([chance.randrange(256)])
            elif action == 4:
                del body[at:]
            else:
                other = chance.randrange(len(body) + 1)
                body[at : at + length] = body[other : other + length]
        yield bytes(body)


def check_mutation(body: bytes) -> type[object]:
    """Parse, and hold what comes out to what a feed promises; return what it was."""
    try:
        read = parse(body)
    except FeedError as error:
        return type(error) if str(error).isprintable() else str
    for entry in read.entries:
        assert is_normal(IdentifierKind.ARXIV, entry.arxiv_id)
        assert 1 <= entry.version <= 9999
        assert entry.title
        assert not set("\n\r\t").intersection("".join((entry.title, entry.abstract, *entry.authors)))
        assert entry.primary_category in entry.categories
        kept = metadata.decode(metadata.encode({entry.arxiv_id: entry}), "file")[entry.arxiv_id]
        assert kept._replace(abstract="") == entry._replace(abstract="")
    # Nothing was expanded: no more comes out than went in.
    assert sum(len(str(value)) for entry in read.entries for value in entry) < len(body) * 2
    return Feed


def test_mutated_feeds_are_read_or_refused() -> None:
    bodies = mutations(random.Random(1))
    outcomes = {check_mutation(next(bodies)) for _ in range(tries(1500, 250))}

    assert outcomes == {Feed, RefusedQueryError, UnreadableFeedError}


@pytest.mark.slow
def test_mutated_feeds_are_read_or_refused_for_a_minute() -> None:
    bodies = mutations(random.Random(os.environ.get("FUZZ_SEED", "1")))
    deadline = time.monotonic() + 60
    outcomes: Counter[type[object]] = Counter()
    while time.monotonic() < deadline:
        outcomes[check_mutation(next(bodies))] += 1
    print({kind.__name__: count for kind, count in outcomes.items()})  # noqa: T201
    assert set(outcomes) == {Feed, RefusedQueryError, UnreadableFeedError}


def test_the_bounds_leave_room_for_the_largest_real_feed() -> None:
    # Papers of large experiments have three thousand authors.
    number = tries(40, 10)
    large = [record(f"2401.{n:05}", authors=[f"Author {index}" for index in range(3000)]) for n in range(number)]

    body = feed(large)

    assert len(parse(body).entries) == number
    assert len(body) * 40 < budget.MAX_BODY_BYTES * number
