"""Measures the search and the reading order by hiding records, and writes docs/discovery.md.

    python scripts/screening_figures.py [--check]

Measures are those of screening in systematic reviews: recall after a part is read, and work saved over sampling at 95 %
recall, WSS@95 = (N - n) / N - 0.05, where n of N must be read in this order to have seen 95 % of what is relevant
(A. M. Cohen et al., "Reducing workload in systematic review preparation using automated citation classification", JAMIA
13, 2006).

Needs a clone: the searches are evaluated by the server of the tests. Everything is seeded, so the page is the same
every time.
"""

import argparse
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from math import ceil
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from orchtrace_corpus.base.text.table import Cell, Table, markdown  # noqa: E402
from orchtrace_corpus.corpus.analysis.reading_order import rank, text_of, training_texts  # noqa: E402
from orchtrace_corpus.corpus.intake.discovery import plan_searches  # noqa: E402
from orchtrace_corpus.corpus.model import store  # noqa: E402
from orchtrace_corpus.corpus.model.candidates import Candidate, Decision  # noqa: E402
from orchtrace_corpus.corpus.model.metadata import Metadata  # noqa: E402
from orchtrace_corpus.corpus.model.records import Paper, Pool  # noqa: E402
from tests.corpus import arxiv_query  # noqa: E402
from tests.corpus.left_out import hidden_papers, made_papers, served  # noqa: E402

PAGE = ROOT / "docs" / "discovery.md"
FIRST = "2016-01-01"
LAST = date(2026, 11, 23)
SHUFFLES = 200
RECALL = 0.95
"""The recall at which saved work is measured."""


class Measures(NamedTuple):
    """The quality of an order.

    Attributes:
        recall: The share of the relevant texts that is seen, by the share of all that is read.
        saved: WSS@95, from -0.05 to 0.95.
    """

    recall: Mapping[float, float]
    saved: float


def measure(relevant: Sequence[bool], parts: Sequence[float] = (0.1, 0.2, 0.5)) -> Measures:
    """Return the quality of an order.

    Args:
        relevant: In the order of reading, whether each text is relevant; at least one must be.
        parts: The shares of all texts after which recall is taken, rounded up to whole texts.
    """
    size, wanted = len(relevant), sum(relevant)
    recall = {part: sum(relevant[: ceil(part * size)]) / wanted for part in parts}
    read = next(count for count in range(1, size + 1) if sum(relevant[:count]) >= RECALL * wanted)
    return Measures(recall, (size - read) / size - (1 - RECALL))


def mean(measures: Sequence[Measures]) -> Measures:
    """Return the mean of several measures of the same parts."""
    parts = measures[0].recall
    recall = {part: sum(one.recall[part] for one in measures) / len(measures) for part in parts}
    return Measures(recall, sum(one.saved for one in measures) / len(measures))


def folds(included: Sequence[bool], number: int, seed: int) -> Iterator[list[int]]:
    """Divide texts into parts with the same share of included ones, by chance that a seed decides."""
    generator = random.Random(seed)
    parts: list[list[int]] = [[] for _ in range(number)]
    for kind in (True, False):
        members = [place for place, one in enumerate(included) if one is kind]
        generator.shuffle(members)
        for at, place in enumerate(members):
            parts[at % number].append(place)
    yield from (sorted(part) for part in parts)


def search_tables(
    queries: Mapping[str, str], hidden: Sequence[Paper], candidates: Sequence[Candidate], made: Sequence[Metadata]
) -> tuple[str, list[str]]:
    """The table of what each query has of each set of papers, and the titles of the hidden ones that none has."""
    sets = (
        [served(paper) for paper in hidden],
        [served(candidate.paper) for candidate in candidates if candidate.paper.arxiv_id],
        list(made),
    )
    rows: list[tuple[Cell, ...]] = []
    every: list[set[str]] = [set(), set(), set()]
    for name, query in queries.items():
        matches = arxiv_query.parse(query)
        found = [{paper.arxiv_id for paper in papers if matches(paper)} for papers in sets]
        own = {one.paper.arxiv_id for one in candidates if one.screening.get("query_family") == name}
        own &= {paper.arxiv_id for paper in sets[1]}
        rows.append((name, len(found[0]), len(own), len(own & found[1]), len(found[1]), len(found[2])))
        every = [seen | new for seen, new in zip(every, found, strict=True)]
    rows.append(("any of them", len(every[0]), len(sets[1]), len(every[1]), len(every[1]), len(every[2])))
    columns = (
        "query",
        f"finds, of {len(sets[0])} hidden",
        "found by hand under its name",
        "finds, of these",
        f"finds, of all {len(sets[1])} found by hand",
        f"finds, of {len(made)} made",
    )
    missed = [paper.title for paper in sets[0] if paper.arxiv_id not in every[0]]
    return markdown(Table("", "", columns, tuple(rows))), missed


def shuffled(relevant: Sequence[bool], seed: int) -> Measures:
    """Return the mean quality of random orders."""
    generator = random.Random(seed)
    return mean([measure(generator.sample(list(relevant), len(relevant))) for _ in range(SHUFFLES)])


def newest_first(papers: Sequence[tuple[str, bool]]) -> list[bool]:
    """Return True or False for each paper, whether it is relevant: the newest first, those without a date last."""
    return [relevant for _, relevant in sorted(papers, key=lambda pair: pair[0], reverse=True)]


def order_rows(name: str, orders: Mapping[str, Measures]) -> list[tuple[Cell, ...]]:
    """Return the rows of a table for some orders of one set."""
    return [
        (name, order, *(f"{one.recall[part]:.0%}" for part in (0.1, 0.2, 0.5)), f"{one.saved:.0%}")
        for order, one in orders.items()
    ]


def decided_orders(pool: Pool) -> tuple[dict[str, Measures], int]:
    """Orders of decided records, each part of ten placed by a classifier that has seen the other nine, five times."""
    texts, included = training_texts(pool, {})
    moments = [_moment(paper.arxiv_id) for paper in pool.papers]
    moments += [_moment(exclusion.identifier) for exclusion in pool.exclusions if not exclusion.promoted_to]
    runs = []
    for seed in range(5):
        scores = [0.0] * len(texts)
        for part in folds(included, 10, seed):
            rest = [place for place in range(len(texts)) if place not in part]
            places = rank([texts[at] for at in rest], [included[at] for at in rest], [texts[at] for at in part])
            for at, place in zip(part, places, strict=True):
                scores[at] = place.score
        ordered = sorted(range(len(texts)), key=lambda at: -scores[at])
        runs.append(measure([included[at] for at in ordered]))
    dated = newest_first(list(zip(moments, included, strict=True)))
    return {"likely": mean(runs), "date": measure(dated), "random": shuffled(included, 1)}, len(texts)


def candidate_orders(pool: Pool, candidates: Sequence[Candidate]) -> dict[str, Measures]:
    """Orders of the candidates that readers have proposed a decision for, by a classifier of the decided records."""
    texts, included = training_texts(pool, {})
    relevant = [candidate.proposal is Decision.INCLUDE for candidate in candidates]
    places = rank(texts, included, [text_of(one.paper, {}) for one in candidates])
    ordered = sorted(range(len(places)), key=lambda at: -places[at].score)
    dated = newest_first(
        [(_moment(one.paper.arxiv_id), wanted) for one, wanted in zip(candidates, relevant, strict=True)]
    )
    likely = measure([relevant[at] for at in ordered])
    return {"likely": likely, "date": measure(dated), "random": shuffled(relevant, 2)}


def mixed_orders(pool: Pool, hidden: Sequence[Paper], made: Sequence[Metadata]) -> dict[str, Measures]:
    """Orders of the hidden papers among the made ones, by a classifier that has seen neither."""
    keys = {paper.key for paper in hidden}
    texts, included = training_texts(pool._replace(papers=tuple(p for p in pool.papers if p.key not in keys)), {})
    items = [(served(paper), True) for paper in hidden] + [(paper, False) for paper in made]
    places = rank(texts, included, [paper.title for paper, _ in items])
    ordered = sorted(range(len(items)), key=lambda at: -places[at].score)
    relevant = [one for _, one in items]
    dated = newest_first([(paper.published, one) for paper, one in items])
    return {
        "likely": measure([relevant[at] for at in ordered]),
        "date": measure(dated),
        "random": shuffled(relevant, 3),
    }


def _moment(name: str | None) -> str:
    return (name or "").removeprefix("arXiv:")


def page() -> str:
    """Return the page."""
    files = store.CorpusFiles(str(ROOT))
    loaded = files.loaded
    assert loaded.pool is not None
    pool = loaded.pool
    protocol = files.protocol.require()
    assert protocol is not None
    # Those that readers had proposed a decision for when this was measured; what searches add is not of their kind.
    candidates = [item for item in files.candidates.items if item.proposal is not Decision.UNREAD and not item.found_by]
    hidden, made = hidden_papers(pool), made_papers(2000)
    queries = {search.query: search.asked or "" for search in plan_searches(protocol, (), LAST, since=FIRST)}
    table, missed = search_tables(queries, hidden, candidates, made)
    decided, number = decided_orders(pool)
    rows = [
        *order_rows(f"{number} decided records", decided),
        *order_rows(f"{len(candidates)} candidates with a proposal", candidate_orders(pool, candidates)),
        *order_rows(f"{len(hidden)} hidden among {len(made):,} made", mixed_orders(pool, hidden, made)),
    ]
    columns = ("read are", "in the order", "recall after 10 %", "after 20 %", "after 50 %", "WSS@95")
    found = len(hidden) - len(missed)
    excluded = sum(not exclusion.promoted_to for exclusion in pool.exclusions)
    proposed = sum(candidate.proposal is Decision.INCLUDE for candidate in candidates)
    listed = "".join(f"- {title}\n" for title in missed)
    return f"""# What the search finds, and what the reading order is worth

<!-- Generated by `python scripts/screening_figures.py`; do not edit. -->

```sh
corpus discover --dry-run
corpus candidates --order likely
python scripts/screening_figures.py
```

All figures rest on little data: {len(pool.papers)} included records, {excluded} excluded ones, and {len(candidates)}
candidates, of which readers propose {proposed} for inclusion. A single title moves a figure by whole percents.

## Recall of the queries

The {len(hidden)} newest records of the published pool with an arXiv id were taken out of the corpus and put among
{len(made):,} made entries. The queries were written from the survey's labels and definitions, and tuned on none of
them. A local server evaluates them as arXiv's documentation says.

**The hidden records are served by their real titles alone.** No abstract of theirs is stored here, while arXiv
searches abstracts, too. A query with two or three parts rarely has all of them in a title. So the figures are a
lower bound: **the queries find {found} of {len(hidden)} by title ({found / len(hidden):.0%})**, and nobody has
measured what they find with abstracts, which `corpus fetch --write` and `corpus discover` store.

{table}
The papers found by hand are the candidates of November 2026 with an arXiv id. Each was noted under one query. The made
entries have titles and abstracts of neighbouring fields; how many of them a query finds says nothing about arXiv.

Found by no query, by title alone:

{listed}
## The reading order

`corpus candidates --order likely` orders by a classifier of TF-IDF and logistic regression. It learns from titles,
and from abstracts where they are stored, of what was included and excluded; here from titles alone.

{markdown(Table("", "", columns, tuple(rows)))}
- **Decided records**: ten parts, each placed by a classifier that has seen the other nine; the mean of five
  divisions. Here {len(pool.papers)} of {number} are relevant, so even the best order has covered few of them
  after 10 %.
- **Candidates**: the classifier has seen all decided records. Relevant is what readers propose for inclusion, not
  yet a decision.
- **Hidden among made**: the classifier has seen neither. Made titles are easier to tell apart than real ones, so
  this is an upper bound.

**On real records the likely order is hardly better than chance**: titles of included and excluded papers are alike, and
few. Measure again when abstracts are stored and more is decided.

WSS@95 is the work saved over random reading when 95 % of what is relevant is to be seen; 0 % means no gain. Random
order is the mean of {SHUFFLES} shuffles. Date order has the newest first.
"""


def main() -> int:
    """Write the page, or compare it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare the page; end with 1 if it is stale")
    options = parser.parse_args()
    text = page()
    present = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    if options.check:
        if present != text:
            print(f"{PAGE.relative_to(ROOT)} is stale; run: python scripts/screening_figures.py")
        return int(present != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
