"""Write a valid corpus of N made-up papers, to test speed and scale.

    python scripts/synthesize.py 10000 /tmp/corpus-10k

The same N and seed give the same bytes. The taxonomy is that of the corpus in this repository.
"""

import argparse
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

from orchtrace_corpus.base.yamlfile.reader import read
from orchtrace_corpus.corpus.analysis.attributes import Attributes, paper_attributes
from orchtrace_corpus.corpus.analysis.query import Query, parse_mapping
from orchtrace_corpus.corpus.model.records import Paper, Tag
from orchtrace_corpus.corpus.model.store import PAPERS, TAXONOMY
from orchtrace_corpus.corpus.model.taxonomy import Condition, Facet, Kind, Taxonomy, decode_taxonomy

SOURCE = Path(__file__).resolve().parents[1]
WORDS = "agent team reward credit turn message planner critic tool search trace policy value merge spawn".split()
FAMILIES = "Adeyemi Bauer Castillo Dvořák Eriksson Fofanah García Hansen Ito Jovanović Kim Łukasik 李 王".split()


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=int, help="how many papers")
    parser.add_argument("folder", type=Path, help="the folder to write, made if absent")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    synthesize(arguments.folder, arguments.records, arguments.seed)


def synthesize(folder: Path, count: int, seed: int = 1) -> None:
    """Write a corpus of `count` papers and no exclusions that `corpus check data` passes.

    Raises:
        ValueError: The taxonomy cannot be read.
    """
    taxonomy = decode_taxonomy(read(str(SOURCE / TAXONOMY), TAXONOMY))
    if taxonomy is None:
        raise ValueError(f"{TAXONOMY} has errors; run corpus check data")
    (folder / "data").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(SOURCE / TAXONOMY, folder / TAXONOMY)
    (folder / "data" / "exclusions.yaml").write_text("[]\n", encoding="utf-8")
    with (folder / PAPERS).open("w", encoding="utf-8", newline="\n") as file:
        for index, lines in enumerate(_papers(taxonomy, count, random.Random(seed))):
            if index:
                file.write("\n")
            file.write("".join(f"{line}\n" for line in lines))


def _papers(taxonomy: Taxonomy, count: int, chance: random.Random) -> Iterator[list[str]]:
    for index in range(count):
        year = chance.randint(2018, 2025)
        authors = [f"{chance.choice(FAMILIES)}, {chance.choice('ABCDEFG')}." for _ in range(chance.randint(1, 5))]
        tags = _tags(taxonomy, chance)
        title = f"{chance.choice(WORDS).title()} {chance.choice(WORDS)} for {chance.choice(WORDS)} teams {index}"
        link = f"https://example.org/paper/{index}"
        yield [
            f"- key: paper-{index:0{len(str(count - 1))}}",  # sorted
            f"  title: {title}",
            f"  authors: [{', '.join(json.dumps(author, ensure_ascii=False) for author in dict.fromkeys(authors))}]",
            f"  affiliation: {chance.choice(FAMILIES)} University",
            f"  year: {year}",
            f"  venue: Workshop {year}",
            f'  doi: "10.5555/{index}"',
            f"  urls: [{link}]",
            *(f"  {facet.field}: {_written(tags[facet.field])}" for facet in taxonomy.papers),
            f"  summary: Studies {chance.choice(WORDS)} and {chance.choice(WORDS)} in case {index}.",
            "  evidence:",
            f"    - tags: [{', '.join(facet.field for facet in taxonomy.papers)}]",
            f"      note: The paper describes its {chance.choice(WORDS)} in section {chance.randint(2, 6)}.",
            f"      source: {link}",
            *(f"      {facet.field}: {_written(_tag(facet, chance))}" for facet in taxonomy.evidence),
            f'  added: "{year}-06-{chance.randint(1, 28):02}"',
        ]


def _tags(taxonomy: Taxonomy, chance: random.Random) -> dict[str, Tag]:
    """Return random tags that keep the rules of the taxonomy; tags that break one are drawn again."""
    attributes = paper_attributes(taxonomy)
    rules = [(_query(rule.when, attributes), _query(rule.require, attributes)) for rule in taxonomy.rules]
    while True:
        paper = Paper(tags={facet.field: _tag(facet, chance) for facet in taxonomy.papers})
        if all(required.matches(paper) for when, required in rules if when.matches(paper)):
            return dict(paper.tags)


def _query(conditions: tuple[Condition, ...], attributes: Attributes) -> Query:
    return parse_mapping({condition.field: condition.alternatives for condition in conditions}, attributes)


def _tag(facet: Facet, chance: random.Random) -> Tag:
    terms = [term.id for term in facet.terms]
    if facet.kind is Kind.LEVELS:
        return {term: chance.choice(facet.levels).id for term in terms if chance.random() < 0.4}
    if facet.kind is Kind.MANY:
        return tuple(chance.sample(terms, chance.randint(1, len(terms))))
    return chance.choice(terms)


def _written(tag: Tag) -> str:
    if isinstance(tag, str):
        return tag
    if isinstance(tag, tuple):
        return f"[{', '.join(tag)}]"
    return "{" + ", ".join(f"{term}: {level}" for term, level in tag.items()) + "}"


if __name__ == "__main__":
    main()
