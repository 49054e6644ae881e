"""Measure how often two branches that add one paper each merge without conflict, with git and no merge driver.

    python scripts/merge_pairs.py CANDIDATES.csv --pairs 200 --seed 1

The argument is a CSV of candidates: a row for each paper, with `title` and any of `arxiv_id`, `authors` and `urls`
(several with `;` between them), `year`, `venue`, `summary`, the fields of tags, the terms of fields of levels,
`evidence_note` and `source`. Only the merge is measured: tags that a row lacks, or that break a rule, are replaced by
those of the first paper of the corpus. Each paper is added as `corpus add` does it. The exit code is 1 if a merged file
has an error or is not canonical.
"""

import argparse
import csv
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from orchtrace_corpus.base.dates import today
from orchtrace_corpus.base.findings import has_errors
from orchtrace_corpus.corpus import rules
from orchtrace_corpus.corpus.build import data_documents
from orchtrace_corpus.corpus.edit.edits import add_records
from orchtrace_corpus.corpus.intake.papers import key_for
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.record_fields import Value, paper_style, tag_value
from orchtrace_corpus.corpus.model.records import Loaded, Paper, Pool
from orchtrace_corpus.corpus.model.taxonomy import Kind

SOURCE = Path(__file__).resolve().parents[1]


def main() -> int:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("candidates", type=Path, help="a CSV of candidates")
    parser.add_argument("--root", type=Path, default=SOURCE, help="the folder of the corpus")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with arguments.candidates.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with tempfile.TemporaryDirectory() as folder:
        clean, sound = measure(arguments.root, Path(folder), rows, arguments.pairs, arguments.seed)
    print(
        f"{clean} of {arguments.pairs} pairs of {len(rows)} papers merge without conflict, "
        f"{sound} of these {clean} merged files are valid and canonical (seed {arguments.seed})"
    )
    return 0 if sound == clean else 1


def measure(root: Path, work: Path, rows: Sequence[Mapping[str, str]], pairs: int, seed: int) -> tuple[int, int]:
    """Return how many of some random pairs merge without conflict, and how many of the merged files are sound."""
    shutil.copytree(root / "data", work / "data", ignore=shutil.ignore_patterns("traces", "audits"))
    git(work, "init", "--quiet")
    git(work, "add", "data")
    git(work, "commit", "--quiet", "--message", "base")
    git(work, "tag", "base")
    loaded = store.CorpusFiles(str(work)).loaded
    texts = [text_with(work, loaded, row) for row in rows]
    for index, text in enumerate(texts):
        git(work, "checkout", "--quiet", "-b", f"paper-{index}", "base")
        (work / store.PAPERS).write_text(text, encoding="utf-8", newline="")
        git(work, "commit", "--quiet", "--all", "--message", "add a paper")
    chance = random.Random(seed)
    clean = sound = 0
    for _ in range(pairs):
        first, second = chance.sample(range(len(rows)), 2)
        git(work, "checkout", "--quiet", "--detach", f"paper-{first}")
        if not git(work, "merge", "--quiet", "--no-edit", f"paper-{second}", check=False):
            git(work, "merge", "--abort")
            continue
        clean += 1
        files = store.CorpusFiles(str(work))
        merged = files.loaded
        is_canonical = not any(file.is_stale for file in data_documents(files))
        has_both = len(merged.papers) == len(loaded.papers) + 2
        if is_canonical and has_both and not has_errors(rules.check(merged)):
            sound += 1
    return clean, sound


def text_with(work: Path, loaded: Loaded, row: Mapping[str, str]) -> str:
    """Return the text of the file of papers with one more paper.

    Raises:
        ValueError: The record has errors even with the tags of another.
    """
    pool = pool_of(loaded)
    without_tags = {name: row[name] for name in ("title", "authors", "year", "venue", "summary") if name in row}
    for values in (row, without_tags):
        text = add_records(loaded.paper_places.file, [record(pool, values)], paper_style(pool.taxonomy))
        findings = rules.check(store.CorpusFiles(str(work), {store.PAPERS: text.encode()}).loaded)
        if not has_errors(findings):
            return text
    errors = [finding for finding in findings if finding.severity == "error"]
    raise ValueError(f"{row['title']}: {errors[0]}")


def record(pool: Pool, row: Mapping[str, str]) -> dict[str, Value]:
    """Return the fields of a new paper."""

    def parts(name: str, default: str) -> list[str]:
        text = row.get(name) or default
        return [part.strip() for part in text.split(";") if part.strip()]

    title = row["title"].strip()
    key = key_for(Paper(key="", title=title), [paper.key for paper in pool.papers])
    arxiv_id = row.get("arxiv_id") or ""
    urls = parts("urls", f"https://arxiv.org/abs/{arxiv_id}" if arxiv_id else f"https://example.org/{key}")
    tags = {name: tag_value(tag) for name, tag in pool.papers[0].tags.items()}
    for facet in pool.taxonomy.papers:
        if facet.kind is Kind.LEVELS and any(term.id in row for term in facet.terms):
            tags[facet.field] = {term.id: row[term.id] for term in facet.terms if row.get(term.id)}
        elif row.get(facet.field):
            terms = parts(facet.field, "")
            tags[facet.field] = terms if facet.kind is Kind.MANY and terms != ["NA"] else terms[0]
    evidence: dict[str, Value] = {
        "tags": [facet.field for facet in pool.taxonomy.papers if facet.field in tags],
        "note": row.get("evidence_note") or "Not read yet; only the title was seen.",
        "source": (row.get("source") or urls[0]).split()[0],
    }
    for facet in pool.taxonomy.evidence:
        evidence[facet.field] = row.get(facet.field) or facet.terms[-1].id
    return {
        "key": key,
        "title": title,
        "authors": parts("authors", "Unknown Authors"),
        "year": row.get("year") or str(today().year),
        "venue": row.get("venue") or "arXiv",
        **({"arxiv_id": arxiv_id} if arxiv_id else {}),
        "urls": urls,
        **tags,
        "summary": row.get("summary") or f"{title.rstrip('.')}.",
        "evidence": [evidence],
        "added": today().isoformat(),
    }


def pool_of(loaded: Loaded) -> Pool:
    """Return the records of a corpus; raise `ValueError` if its taxonomy cannot be read."""
    if loaded.pool is None:
        raise ValueError("the taxonomy has errors; run corpus check data")
    return loaded.pool


def git(work: Path, *words: str, check: bool = True) -> bool:
    """Run git without the settings of the user, and return True if it succeeds."""
    settings = ("user.name=Nobody", "user.email=nobody@example.org", "commit.gpgsign=false", "gc.auto=0")
    options = [word for setting in settings for word in ("-c", setting)]
    command = ["git", "-C", str(work), *options, *words]
    return subprocess.run(command, check=check, stdout=subprocess.DEVNULL).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
