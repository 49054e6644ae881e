"""S: what is known of the scale of systems, in data/scale.yaml."""

from orchtrace_corpus.base.findings import Entry

_FILE = "# data/scale.yaml\n"

ENTRIES = {
    "S101": Entry(
        "Amounts are compared and drawn on an axis, so they are numbers, ranges or bounds, without units and without "
        "commas. What was looked for and not found is `unknown`.",
        f'{_FILE}- value: "1,500 calls"',
        f'{_FILE}- value: "<=1500"',
    ),
    "S102": Entry(
        "Of two numbers for one quantity of one system, nobody knows which to draw. Where both are true, they are of "
        "two systems, or of two quantities.",
        f"{_FILE}- system: Agent Yard\n  quantity: agents\n- system: Agent Yard\n  quantity: agents",
        f"{_FILE}- system: Agent Yard\n  quantity: agents\n- system: Agent Yard\n  quantity: steps",
    ),
    "S103": Entry(
        "A system that is in the pool is named by its key, so that both can be found from each other. One that is not "
        "leaves the field out.",
        f"# data/papers.yaml\n- key: agent-yard\n{_FILE}- record: agent-yrad",
        f"# data/papers.yaml\n- key: agent-yard\n{_FILE}- record: agent-yard",
    ),
    "S104": Entry(
        "Verified means: the number was read in the publication that reports the measurement. What a vendor says of "
        "its product, a copy or a third party is a report, and `unknown` is nothing that could be verified.",
        f"{_FILE}- evidence: vendor\n  verified: true",
        f"{_FILE}- evidence: vendor\n  verified: false",
    ),
}
"""The explanation of each rule, by its code."""
