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
        recall: The share of the relevant texts that is found, by the share of all texts that is read.
        saved: WSS@95, the work saved over random reading at a recall of 95 %; from -0.05 to 0.95.
    """

    recall: Mapping[float, float]
    saved: float


def measure(relevant: Sequence[bool], parts: Sequence[float] = (0.1, 0.2, 0.5)) -> Measures:
    """Return the quality of an order.

    Args:
        relevant: For each text, in the order of reading, True if it is relevant; at least one must be.
        parts: The shares of all texts after which recall is measured, rounded up to whole texts.
    """
    size = len(relevant)
    relevant_count = sum(relevant)
    recall = {part: sum(relevant[: ceil(part * size)]) / relevant_count for part in parts}
    read_count = next(count for count in range(1, size + 1) if sum(relevant[:count]) >= RECALL * relevant_count)
    return Measures(recall, (size - read_count) / size - (1 - RECALL))


def mean(measures: Sequence[Measures]) -> Measures:
    """Return the mean of several measures of the same parts."""
    recall = {}
    for part in measures[0].recall:
        recall[part] = sum(each.recall[part] for each in measures) / len(measures)
    return Measures(recall, sum(each.saved for each in measures) / len(measures))


def folds(included: Sequence[bool], count: int, seed: int) -> Iterator[list[int]]:
    """Divide texts at random into parts with the same share of included ones, and yield the indices of each part."""
    generator = random.Random(seed)
    parts: list[list[int]] = [[] for _ in range(count)]
    for kind in (True, False):
        members = [index for index, is_included in enumerate(included) if is_included is kind]
        generator.shuffle(members)
        for position, index in enumerate(members):
            parts[position % count].append(index)
    for part in parts:
        yield sorted(part)


def search_tables(
    queries: Mapping[str, str], hidden: Sequence[Paper], candidates: Sequence[Candidate], made: Sequence[Metadata]
) -> tuple[str, list[str]]:
    """Return a table of the papers of each set that each query finds, and the titles of the hidden ones not found."""
    sets = (
        [served(paper) for paper in hidden],
        [served(candidate.paper) for candidate in candidates if candidate.paper.arxiv_id],
        list(made),
    )
    by_hand_ids = {paper.arxiv_id for paper in sets[1]}
    rows: list[tuple[Cell, ...]] = []
    all_found: list[set[str]] = [set(), set(), set()]  # by any query, for each set
    for name, query in queries.items():
        matches = arxiv_query.parse(query)
        found = [{paper.arxiv_id for paper in papers if matches(paper)} for papers in sets]
        of_query = set()  # the papers that were found by hand under the name of the query
        for candidate in candidates:
            if candidate.screening.get("query_family") == name and candidate.paper.arxiv_id in by_hand_ids:
                of_query.add(candidate.paper.arxiv_id)
        hidden_found, by_hand_found, made_found = found
        counts = (len(of_query), len(of_query & by_hand_found), len(by_hand_found), len(made_found))
        rows.append((name, len(hidden_found), *counts))
        for ids, new_ids in zip(all_found, found, strict=True):
            ids |= new_ids
    by_hand_count = len(all_found[1])
    rows.append(("any of them", len(all_found[0]), len(sets[1]), by_hand_count, by_hand_count, len(all_found[2])))
    columns = (
        "query",
        f"finds, of {len(sets[0])} hidden",
        "found by hand under its name",
        "finds, of these",
        f"finds, of all {len(sets[1])} found by hand",
        f"finds, of {len(made)} made",
    )
    missed = [paper.title for paper in sets[0] if paper.arxiv_id not in all_found[0]]
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
    rows: list[tuple[Cell, ...]] = []
    for order, measures in orders.items():
        recalls = [f"{measures.recall[part]:.0%}" for part in (0.1, 0.2, 0.5)]
        rows.append((name, order, *recalls, f"{measures.saved:.0%}"))
    return rows


def decided_orders(pool: Pool) -> tuple[dict[str, Measures], int]:
    """Return the quality of orders of the decided records, and the number of these records.

    For the likely order, the records are divided into ten parts. A classifier that has learnt from nine scores the
    tenth. The quality is the mean of five divisions.
    """
    texts, included = training_texts(pool, {})
    dates = [_sortable_date(paper.arxiv_id) for paper in pool.papers]
    dates += [_sortable_date(exclusion.identifier) for exclusion in pool.exclusions if not exclusion.promoted_to]
    measures = []
    for seed in range(5):
        scores = [0.0] * len(texts)
        for part in folds(included, 10, seed):
            rest = [index for index in range(len(texts)) if index not in part]
            rest_texts = [texts[index] for index in rest]
            rest_included = [included[index] for index in rest]
            ranked = rank(rest_texts, rest_included, [texts[index] for index in part])
            for index, score in zip(part, ranked, strict=True):
                scores[index] = score.likelihood
        measures.append(measure(_by_score(included, scores)))
    by_date = newest_first(list(zip(dates, included, strict=True)))
    return {"likely": mean(measures), "date": measure(by_date), "random": shuffled(included, 1)}, len(texts)


def _by_score(relevant: Sequence[bool], scores: Sequence[float]) -> list[bool]:
    """Return whether each text is relevant, those with the highest scores first."""
    order = sorted(range(len(scores)), key=lambda index: scores[index], reverse=True)
    return [relevant[index] for index in order]


def candidate_orders(pool: Pool, candidates: Sequence[Candidate]) -> dict[str, Measures]:
    """Return the quality of orders of candidates for which readers have proposed a decision.

    For the likely order, a classifier has learnt from the decided records.
    """
    texts, included = training_texts(pool, {})
    relevant = [candidate.proposal is Decision.INCLUDE for candidate in candidates]
    scores = rank(texts, included, [text_of(candidate.paper, {}) for candidate in candidates])
    dates = [_sortable_date(candidate.paper.arxiv_id) for candidate in candidates]
    by_date = newest_first(list(zip(dates, relevant, strict=True)))
    likely = measure(_by_score(relevant, [score.likelihood for score in scores]))
    return {"likely": likely, "date": measure(by_date), "random": shuffled(relevant, 2)}


def mixed_orders(pool: Pool, hidden: Sequence[Paper], made: Sequence[Metadata]) -> dict[str, Measures]:
    """Return the quality of orders of the hidden papers among the made ones, by a classifier that has seen neither."""
    hidden_keys = {paper.key for paper in hidden}
    others = tuple(paper for paper in pool.papers if paper.key not in hidden_keys)
    texts, included = training_texts(pool._replace(papers=others), {})
    papers = [*map(served, hidden), *made]
    relevant = [True] * len(hidden) + [False] * len(made)
    scores = rank(texts, included, [paper.title for paper in papers])
    by_date = newest_first(list(zip([paper.published for paper in papers], relevant, strict=True)))
    return {
        "likely": measure(_by_score(relevant, [score.likelihood for score in scores])),
        "date": measure(by_date),
        "random": shuffled(relevant, 3),
    }


def _sortable_date(arxiv_id: str | None) -> str:
    """Return an arXiv id, which begins with year and month, without a prefix; empty if there is none."""
    return (arxiv_id or "").removeprefix("arXiv:")


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
