"""Papers made by Hypothesis: valid records of the toy corpus, with the most hostile texts that a record can hold."""

from hypothesis import strategies as st

from orchtrace_corpus.base.identifiers import IdentifierKind, is_normal
from orchtrace_corpus.corpus.model.fields import OTHERS
from orchtrace_corpus.corpus.model.records import Evidence, EvidenceVerdict, Paper, Waiver

HOSTILE = "\\{}$^_%&#~-'`\",;:?!<>|@=+*()[]./ aBc2²τéß李"
_LETTERS = st.characters(codec="utf-8", exclude_categories=("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"))


def texts(*, without: str = "", max_size: int = 40) -> st.SearchStrategy[str]:
    """One line of visible text that neither begins nor ends with a blank."""
    letters = st.one_of(st.sampled_from(HOSTILE), _LETTERS).filter(lambda letter: letter not in without)
    whole = st.text(letters, min_size=1, max_size=max_size).map(lambda text: text.strip(" "))
    return whole.filter(lambda text: bool(text) and text.isprintable())


def _is_author(name: str) -> bool:
    return name.lower().strip(". ") not in ("et al", "others", "and others") and not (" and " in name and "," in name)


_PARTS = texts(without=",", max_size=15)
_PERSONS = st.one_of(
    st.tuples(_PARTS, _PARTS).map(", ".join),
    st.tuples(_PARTS, st.sampled_from(["Jr", "III"]), _PARTS).map(", ".join),
    st.sampled_from(["Schroeder de Witt, Christian", "van der Berg, Jan", "O'Neill, Tom", "Müller, Änne", "李, 明"]),
)
_COLLECTIVES = st.one_of(_PARTS, st.sampled_from(["Kimi Team", "Simon and Schuster", "OpenAI"]))
AUTHORS = st.builds(
    lambda names, cut: (*names, *([OTHERS] if cut else [])),
    st.lists(st.one_of(_PERSONS, _COLLECTIVES).filter(_is_author), min_size=1, max_size=4),
    st.booleans(),
)
_KEYS = st.from_regex(r"[a-z0-9]{1,6}(-[a-z0-9]{1,6})?", fullmatch=True)
_VENUES = st.one_of(
    st.sampled_from(["arXiv", "arXiv (submitted)", "NeurIPS 2025 D&B", "Nature 2025", "Blog Post", "CoRR", "TMLR"]),
    texts(),
)
_URLS = st.one_of(
    st.sampled_from(["https://arxiv.org/abs/2101.00001", "https://example.org/a_b?c=%20d&e=~f#g"]),
    texts(without=' <>"`{}|\\^').map("https://example.org/".__add__),
)
_DOIS = (
    texts(without=" ")
    .map(lambda text: f"10.5555/{text}".lower())
    .filter(lambda doi: is_normal(IdentifierKind.DOI, doi))
)
_EVIDENCE = st.builds(
    Evidence,
    tags=st.just(("care",)),
    note=texts(),
    source=_URLS,
    level=st.sampled_from(["visit", "photo"]),
    confidence=st.sampled_from(["high", "low"]),
    more=st.just({}),
    location=st.one_of(st.none(), texts()),
    verdict=st.sampled_from(EvidenceVerdict),
    copy=st.booleans(),
)


def _tags(style: str, care: dict[str, str], tools: tuple[str, ...] | None, size: str) -> dict[str, object]:
    return {"style": style, "care": care, **({"tools": tools} if tools else {}), "size": size}


def _more(
    models: tuple[str, ...], algorithm: tuple[str, ...], note: str | None, benchmarks: tuple[str, ...]
) -> dict[str, object]:
    values = {"base_models": models, "algorithm": algorithm, "algorithm_note": note, "benchmarks": benchmarks}
    return {name: value for name, value in values.items() if value}


_KEPT = st.one_of(
    st.just({}),
    st.dictionaries(
        st.sampled_from(["volume", "number", "pages", "note", "editor", "publisher", "series", "month", "issn"]),
        # Kept as an entry gives it, where BibTeX and its readers take any run of blanks for one.
        texts(without="{}\\").map(lambda text: " ".join(text.split())).filter(str.isprintable),
        max_size=4,
    ),
    st.fixed_dictionaries({"type": st.sampled_from(["phdthesis", "online", "book"]), "note": st.just(r"See \url{x}.")}),
)


def _imported(paper: Paper, is_cited: bool) -> Paper:
    return paper._replace(cite_key=f"Cited:{paper.key}") if is_cited else paper


_TEXTS = st.lists(texts(), max_size=2, unique=True).map(tuple)
PAPERS = st.builds(
    Paper,
    key=_KEYS,
    title=texts(),
    authors=AUTHORS,
    affiliation=st.one_of(st.none(), texts()),
    year=st.integers(1000, 9999),
    venue_year=st.one_of(st.none(), st.integers(1000, 9999)),
    proceedings=st.one_of(st.none(), texts()),
    cite_key=st.none(),
    bibtex=_KEPT,
    venue=_VENUES,
    arxiv_id=st.one_of(st.none(), st.sampled_from(["2101.00001", "math.GT/0309136", "hep-ex/0406020"])),
    doi=st.one_of(st.none(), _DOIS),
    openreview_id=st.one_of(st.none(), st.just("ur295YVtmt")),
    acl_id=st.one_of(st.none(), st.just("2025.acl-long.421")),
    urls=st.lists(_URLS, min_size=1, max_size=3, unique=True).map(tuple),
    code=st.one_of(st.none(), _URLS),
    more=st.builds(_more, _TEXTS, _TEXTS, st.one_of(st.none(), texts()), _TEXTS),
    tags=st.builds(
        _tags,
        st.sampled_from(["formal", "meadow", "NA"]),
        st.dictionaries(st.sampled_from(["water", "prune"]), st.sampled_from(["daily", "weekly"])),
        st.sampled_from([None, ("spade",), ("rake", "shears"), ("NA",)]),
        st.sampled_from(["small", "large"]),
    ),
    summary=texts(),
    evidence=st.lists(_EVIDENCE, max_size=2).map(tuple),
    added=st.just("2023-02-03"),
    notes=st.one_of(st.none(), texts()),
    waive=st.one_of(st.just(()), st.just((Waiver("I105", "It is so; \\ really."),))),
)
POOLS = st.lists(st.builds(_imported, PAPERS, st.booleans()), max_size=3, unique_by=lambda paper: paper.key)
