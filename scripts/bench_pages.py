"""The speed claims about pages, measured in Chromium: each as a ratio of two ways in the same page."""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import synthesize
from chromium import window
from measured import Claim, run

FILTER_LIMIT = 3.0
ROUNDS = 60

FILTER_SCRIPT = """
const [rounds] = arguments;
const { selection } = window.corpusPapers;
const data = window.corpusData;
let seed = 18;
const chance = (below) => { seed = (Math.imul(seed, 1103515245) + 12345) >>> 0; return (seed >>> 8) % below; };
const words = ["agent", "credit", "planner", "case 77", "garcia", "swarm"];
const states = [];
for (let round = 0; round < rounds; round++) {
  const chosen = data.fields.map(() => new Set());
  for (let number = 0; number < 3; number++) {
    const field = chance(data.fields.length);
    for (let value = 0; value < 2; value++) chosen[field].add(chance(data.fields[field].values.length));
  }
  states.push([chosen, round % 2 ? words[chance(words.length)] : ""]);
}
function plain(chosen, text) {
  const asked = chosen.map((values, field) => [values, data.fields[field].column]).filter(([values]) => values.size);
  const wanted = text.split(" ").filter(Boolean);
  const found = [];
  for (let paper = 0; paper < selection.size; paper++) {
    let passes = true;
    for (const [values, column] of asked) {
      const given = column[paper];
      passes = typeof given === "number" ? values.has(given) : given.some((value) => values.has(value));
      if (!passes) break;
    }
    if (passes && wanted.every((word) => selection.texts[paper].includes(word))) found.push(paper);
  }
  return found;
}
function time(work) {
  let best = Infinity;
  for (let turn = 0; turn < 7; turn++) {
    const begin = performance.now();
    for (const [chosen, text] of states) work(chosen, text);
    best = Math.min(best, performance.now() - begin);
  }
  return best / rounds;
}
const ours = time((chosen, text) => { selection.searched.clear(); selection.pass(chosen, text); });
return [ours, time(plain)];
"""


def page_claims(size: int, corpus: Sequence[str]) -> list[Claim]:
    """Return the claim about filtering a made-up corpus in its page with live counts, compared with a plain loop.

    Args:
        size: The number of papers.
        corpus: The command `corpus`.
    """
    with tempfile.TemporaryDirectory() as folder, window() as driver:
        synthesize.synthesize(Path(folder) / "corpus", size)
        run((*corpus, "--root", f"{folder}/corpus", "site", "-o", f"{folder}/site"))
        driver.get(f"file://{folder}/site/papers.html")
        while not driver.execute_script("return window.corpusPapers.isComplete()"):
            time.sleep(0.05)
        ours, plain = driver.execute_script(FILTER_SCRIPT, ROUNDS)
    return [
        Claim(
            f"filtering {size:,} papers in the page, with live counts, against a plain loop without them",
            ours / plain,
            FILTER_LIMIT,
            f"{ours:.2f} ms against {plain:.2f} ms, mean of {ROUNDS} sets of filters, half of them with a word",
        )
    ]
