"""C: what a corpus claims about itself, and what is disputed in it. Found by `corpus check` and `corpus claims`."""

from orchtrace_corpus.base.findings import Entry

_MESSAGE = """\
# data/claims.yaml
- id: message-credit
  claim: Two entries give credit to single messages.
  where: {credit_unit: message}
  expect: """
_READING = (
    _MESSAGE
    + """{count: 2}
  readings:
    - {name: strict, keys: [%s], why: It computes credit for each message.}"""
)
_COUNTER = (
    _MESSAGE
    + """{count: 2}
  counter:
    - {rows: [%s], note: Its reward judges messages., strength: weak, source: https://example.org/a}"""
)
_DISPUTE = """\
# data/disputes.yaml
- record: %s
  tag: %s
  stands: %s
  readings: {%s}
  why: The table is kept.
  source: https://example.org/a"""
_TWO = "role: first reader, orchestrator: second reader"

ENTRIES = {
    "C101": Entry(
        "A sentence about the corpus that its records no longer bear out is wrong wherever it was printed. Either the "
        "change that broke it is a slip, or the sentence has to change.",
        f"{_MESSAGE}{{count: 3}}",
        f"{_MESSAGE}{{count: 2}}",
    ),
    "C102": Entry(
        "A claim that asks for a field, a term or an expectation that does not exist would be neither true nor false. "
        "Filters are those of `corpus list --where`.",
        _MESSAGE.replace("credit_unit", "credit_unti") + "{count: 2}",
        f"{_MESSAGE}{{count: 2}}",
    ),
    "C103": Entry(
        "Counter-evidence names the records that it is about, so that readers can look them up.",
        _COUNTER % "debate-reward",
        _COUNTER % "debate-as-reward",
    ),
    "C104": Entry(
        "A stricter reading counts some of the records that the claim counts. One that it names beside them was "
        "retagged since, or is another record.",
        _READING % "puppeteer",
        _READING % "c3",
    ),
    "C105": Entry(
        "`corpus claims`, the comparison of two states and readers call a claim by its id.",
        f"{_MESSAGE}{{count: 2}}\n- id: message-credit\n  claim: None names tools.\n"
        "  where: {credit_unit: tool}\n  expect: empty",
        f"{_MESSAGE}{{count: 2}}\n- id: tool-credit\n  claim: None names tools.\n"
        "  where: {credit_unit: tool}\n  expect: empty",
    ),
    "C201": Entry(
        "A dispute is about a paper of the pool, by its key.",
        _DISPUTE % ("hallo", "credit_unit", "role", _TWO),
        _DISPUTE % ("halo", "credit_unit", "role", _TWO),
    ),
    "C202": Entry(
        "Only tags can be disputed: a facet of a single term, or a term that has a level, such as `stop`.",
        _DISPUTE % ("halo", "summary", "role", _TWO),
        _DISPUTE % ("halo", "credit_unit", "role", _TWO),
    ),
    "C203": Entry(
        "A reading is a value that the tag could have, so that claims can be tried under it. Of a term with levels, "
        "`none` says that the decision does not arise.",
        _DISPUTE % ("halo", "credit_unit", "role", "role: first reader, planner: second reader"),
        _DISPUTE % ("halo", "credit_unit", "role", _TWO),
    ),
    "C204": Entry(
        "The paper has another value than the dispute says. Either the tag was changed and the dispute forgotten, or "
        "the dispute was settled and has to say so.",
        _DISPUTE % ("halo", "credit_unit", "orchestrator", _TWO),
        _DISPUTE % ("halo", "credit_unit", "role", _TWO),
    ),
    "C205": Entry(
        "A dispute takes a reading that has the value that stands, and one that excludes it.",
        _DISPUTE % ("halo", "credit_unit", "role", '"role,orchestrator": both readers'),
        _DISPUTE % ("halo", "credit_unit", "role", _TWO),
    ),
    "C206": Entry(
        "All readings of one tag belong together, or nobody sees all of them.",
        _DISPUTE % ("halo", "credit_unit", "role", _TWO)
        + "\n"
        + _DISPUTE.partition("\n")[2] % ("halo", "credit_unit", "role", "role: first reader, agent: third reader"),
        _DISPUTE % ("halo", "credit_unit", "role", f"{_TWO}, agent: third reader"),
    ),
}
"""The explanation of each rule, by its code."""
