"""The published bibliography: every difference of a published paper from it is a correction with its source."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import TOY, run_corpus

HEADER = "key,title,first_author,affiliation,year,arxiv_id,venue,urls\n"
ROSES = '"Röses: A Garden in Four Beds","Müller, Änne",Garden School,2021,2101.00001,Journal of Beds'
ADDRESSES = "https://example.org/roses ; https://example.org/roses/code"
GRASS = "long-grass,Long Grass and How to Keep It,Meadow Team,,2023,2302.00002,arXiv,https://example.org/grass\n"
TABLE = f"{HEADER}rose-garden,{ROSES},{ADDRESSES}\n{GRASS}"
CORRECTIONS = "record,field,published,now,source\n"
DOI = f"{CORRECTIONS}rose-garden,doi,,10.5555/roses.1,https://example.org/roses\n"


def check(
    folder: Path, table: str = TABLE, corrections: str = DOI, **changes: tuple[str, str]
) -> tuple[int, list[str]]:
    """The exit code of `corpus check` on the toy corpus, and what it says of the published bibliography."""
    shutil.copytree(TOY, folder, dirs_exist_ok=True)
    data = folder / "data"
    published = 'day: "2023-02-28"\nsource: https://example.org/survey\npapers: [rose-garden, long-grass]\n'
    (data / "published.yaml").write_text(published, encoding="utf-8")
    (data / "published.csv").write_text(table, encoding="utf-8")
    (data / "corrections.csv").write_text(corrections, encoding="utf-8")
    papers = (data / "papers.yaml").read_text(encoding="utf-8")
    for old, new in changes.values():
        assert papers.count(old) == 1
        papers = papers.replace(old, new)
    (data / "papers.yaml").write_text(papers, encoding="utf-8")
    run_corpus("--root", str(folder), "build")
    result = run_corpus("--root", str(folder), "check")
    lines = [line.partition("data/")[2] for line in result.stdout.splitlines() if ": P1" in line]
    return result.code, lines or [line for line in result.stdout.splitlines() if line.startswith("published")]


def test_a_pool_as_published_passes(tmp_path: Path) -> None:
    assert check(tmp_path) == (0, ["published ok     1 correction"])


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (
            ("title: Long Grass and", "title: Longer Grass and"),
            "papers.yaml:25:10: P102 title was published as 'Long Grass and How to Keep It'",
        ),
        (
            ('authors: ["{Meadow Team}"]', 'authors: ["Mower, Mo"]'),
            "papers.yaml:26:13: P102 first_author was published as 'Meadow Team'",
        ),
        (("  venue: arXiv\n", "  venue: Beds 2024\n"), "papers.yaml:28:10: P102 venue was published as 'arXiv'"),
        (
            ("affiliation: Garden School", "affiliation: Yard School"),
            "papers.yaml:5:16: P102 affiliation was published as 'Garden School'",
        ),
        (
            ("  affiliation: Garden School\n", ""),
            "papers.yaml:2:3: P102 affiliation 'Garden School', which was published, is missing",
        ),
        (
            ('  arxiv_id: "2302.00002"\n', '  arxiv_id: "2302.00002"\n  acl_id: 2023.acl-long.7\n'),
            "papers.yaml:30:11: P102 acl_id '2023.acl-long.7' was not published",
        ),
        (
            ("urls: [https://example.org/grass]", "urls: [https://example.org/lawn]"),
            "papers.yaml:30:9: P102 urls 'https://example.org/lawn' was not published",
        ),
    ],
)
def test_a_change_without_its_correction_fails(tmp_path: Path, change: tuple[str, str], finding: str) -> None:
    code, lines = check(tmp_path, change=change)

    assert code == 1
    assert lines[0].startswith(f"{finding}; restore it, or add to data/corrections.csv: ")
    row = lines[0].partition("corrections.csv: ")[2].partition(" [")[0]
    corrected = check(tmp_path / "corrected", corrections=f"{DOI}{row}\n", change=change)
    assert [line for line in corrected[1] if "P102" in line] == lines[1:]


def test_the_year_stays_as_published(tmp_path: Path) -> None:
    code, lines = check(tmp_path, change=("year: 2021", "year: 2022"))

    message = "year was published as 2021, and stays so; write venue_year for citations [rose-garden]"
    assert (code, lines) == (1, [f"papers.yaml:6:9: P102 {message}"])


def test_a_change_with_its_correction_passes(tmp_path: Path) -> None:
    corrected = f"{DOI}long-grass,venue,arXiv,Beds 2024,https://example.org/beds\n"

    assert check(tmp_path, corrections=corrected, change=("  venue: arXiv\n", "  venue: Beds 2024\n"))[0] == 0


def test_later_papers_need_no_correction(tmp_path: Path) -> None:
    assert check(tmp_path, change=("title: Borders without Lines", "title: Borders"))[0] == 0


@pytest.mark.parametrize(
    ("row", "finding"),
    [
        ("rose-garden,venue,Beds,Journal of Beds,https://a.example", "venue was published as 'Journal of Beds'"),
        ("rose-garden,title,Roses,Rose,https://a.example", "the record's title is 'Röses: A Garden in Four Beds'"),
        ("rose-garden,title,A,A,https://a.example", "title is the same as published; remove the row"),
        ("rose-garden,title,A,B,", "the correction of title has no source"),
        ("rose-garden,size,small,large,https://a.example", "'size' is no field that is corrected; name one of title"),
        ("rose-garden,year,2021,2022,https://a.example", "'year' is no field that is corrected"),
        ("rose-gardn,title,A,B,https://a.example", "there is no paper 'rose-gardn' (did you mean 'rose-garden'?)"),
        ("rose-garden,urls,,https://b.example,https://a.example", "the record has no address 'https://b.example'"),
        ("rose-garden,urls,https://b.example,,https://a.example", "no address 'https://b.example' was published"),
        ("rose-garden,doi,,10.5555/roses.1,https://b.example", "doi is corrected on line 2, too; keep one row"),
    ],
)
def test_a_correction_that_does_not_hold_fails(tmp_path: Path, row: str, finding: str) -> None:
    code, lines = check(tmp_path, corrections=f"{DOI}{row}\n")

    assert code == 1
    assert len(lines) == 1
    assert lines[0].startswith(f"corrections.csv:3:1: P103 {finding}")


@pytest.mark.parametrize(
    ("table", "finding"),
    [
        (HEADER + GRASS, "published.csv:1:1: P101 missing row of the published paper 'rose-garden' [rose-garden]"),
        (
            TABLE + GRASS.replace("long-grass", "long-gras"),
            "published.csv:4:1: P101 there is no published paper 'long-gras' (did you mean 'long-grass'?) [long-gras]",
        ),
        (
            TABLE + GRASS,
            "published.csv:4:1: P101 'long-grass' stands on line 3, too; remove one of the rows [long-grass]",
        ),
        (
            "key,titel\n",
            "published.csv:1:1: P101 unknown or repeated column 'titel' (did you mean 'title'? "
            "allowed: key, title, first_author, affiliation, year, arxiv_id, doi, openreview_id, acl_id, venue, urls)",
        ),
        ("title\n", "published.csv:1:1: P101 missing column 'key'"),
        ("key,title\na,b,c\n", "published.csv:2:1: P101 the row has 3 cells, but there are 2 columns"),
        ('key,title\na,"b\n', "published.csv:2:1: P101 this is not CSV: unexpected end of data"),
    ],
)
def test_a_published_table_that_cannot_be_used_fails(tmp_path: Path, table: str, finding: str) -> None:
    code, lines = check(tmp_path, table=table)

    assert (code, lines[0]) == (1, finding)
