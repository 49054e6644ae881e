"""Identifiers in the spellings people use, and their one normal form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.base.identifiers import Identifier, IdentifierKind, is_normal, recognise

ARXIV_IDS = st.builds("{:02}{:02}.{:05}".format, st.integers(7, 99), st.integers(1, 12), st.integers(0, 99999))


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("2505.19591", "arxiv_id", "2505.19591"),
        ("arXiv:2505.19591v3", "arxiv_id", "2505.19591"),
        ("ARXIV: 2505.19591", "arxiv_id", "2505.19591"),
        (" https://arxiv.org/abs/2505.19591 ", "arxiv_id", "2505.19591"),
        ("http://www.arxiv.org/pdf/2505.19591v2.pdf", "arxiv_id", "2505.19591"),
        ("https://export.arxiv.org/abs/2505.19591?context=cs.AI", "arxiv_id", "2505.19591"),
        ("https://arxiv.org/html/2505.19591v12", "arxiv_id", "2505.19591"),
        ("https://arxiv.org/abs/solv-int/9901001v1", "arxiv_id", "solv-int/9901001"),
        ("https://arxiv.org/abs/solv-int/9901001", "arxiv_id", "solv-int/9901001"),
        ("arxiv.org/html/2505.19591v1#S3", "arxiv_id", "2505.19591"),
        ("https://doi.org/10.48550/arXiv.2505.19591", "arxiv_id", "2505.19591"),
        ("10.48550/arxiv.2505.19591", "arxiv_id", "2505.19591"),
        ("astro-ph/0601001v2", "arxiv_id", "astro-ph/0601001"),
        ("https://arxiv.org/abs/math.GT/0309136", "arxiv_id", "math.GT/0309136"),
        ("doi:10.1609/AAAI.v32i1.11794", "doi", "10.1609/aaai.v32i1.11794"),
        ("https://dx.doi.org/10.1142/S0219525901000188", "doi", "10.1142/s0219525901000188"),
        ("https://openreview.net/forum?id=ur295YVtmt", "openreview_id", "ur295YVtmt"),
        ("https://openreview.net/pdf?noteId=x&id=WE_vluYUL-X&referrer=y", "openreview_id", "WE_vluYUL-X"),
        ("OpenReview:ZIpdu0cHYu", "openreview_id", "ZIpdu0cHYu"),
        ("https://aclanthology.org/2025.acl-long.421/", "acl_id", "2025.acl-long.421"),
        ("https://aclanthology.org/P18-1001.pdf", "acl_id", "P18-1001"),
        ("ACL:2024.emnlp-main.912", "acl_id", "2024.emnlp-main.912"),
    ],
)
def test_spellings(text: str, kind: str, value: str) -> None:
    assert recognise(text) == Identifier(IdentifierKind(kind), value)


@pytest.mark.parametrize(
    "text",
    ["", "puppeteer", "2505.195", "2513.00001", "2505.195911", "https://example.org/2505.19591", "10.1/x", "10.5555/"]
    + ["https://arxiv.org/abs/v1", "https://arxiv.org/html/2505.19591v²"],
)
def test_what_is_no_identifier(text: str) -> None:
    assert recognise(text) is None


@given(
    ARXIV_IDS, st.sampled_from(["", "arXiv:", "https://arxiv.org/abs/", "http://arxiv.org/pdf/"]), st.integers(0, 20)
)
def test_arxiv_ids_lose_their_dress(bare: str, prefix: str, version: int) -> None:
    dressed = f"{prefix}{bare}" + (f"v{version}" if version else "")

    assert recognise(dressed) == Identifier(IdentifierKind.ARXIV, bare)


@given(st.text(max_size=40))
def test_what_is_recognised_is_normal(text: str) -> None:
    found = recognise(text)

    assert found is None or is_normal(found.kind, found.value)


def test_a_doi_in_capitals_is_not_normal() -> None:
    assert is_normal(IdentifierKind.DOI, "10.5555/abc")
    assert not is_normal(IdentifierKind.DOI, "10.5555/ABC")


@pytest.mark.parametrize(
    "text",
    [
        "２５０５.19591",
        "2505.1959１",
        "arXiv:٢٥٠٥.١٩٥٩١",
        "https://arxiv.org/abs/2505.19591v２",
        "https://arxıv.org/abs/2505.19591",
        "arxıv:2505.19591",
        "10.２345/abc",
        "２０２４.acl-long.１",
        "2024.acl-long.１",
        "P１９-1001",
        "math/０３09136",
    ],
)
def test_only_digits_and_letters_of_ascii_make_an_identifier(text: str) -> None:
    assert recognise(text) is None
    assert not any(is_normal(kind, text) for kind in IdentifierKind)


def test_blanks_beyond_ascii_end_a_doi() -> None:
    assert recognise("10.5555/a\u00a0b") is None
    assert recognise("doi:\u00a010.5555/a") == Identifier(IdentifierKind.DOI, "10.5555/a")
