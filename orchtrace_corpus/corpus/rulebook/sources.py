"""The rules on what stands beside the records: C and S on further files, A and L on the web, K on coding sheets."""

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
_TWO_READINGS = "role: first reader, orchestrator: second reader"
_PAPER = '# data/papers.yaml\narxiv_id: "2505.19591"\n'
_TWO_AUTHORS = 'authors: ["Dang, Yufan", "Qian, Chen"]'
_SCALE_FILE = "# data/scale.yaml\n"

ENTRIES = {
    # C: what a corpus claims about itself, and what is disputed in it. Found by `corpus check` and `corpus claims`
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
        _DISPUTE % ("hallo", "credit_unit", "role", _TWO_READINGS),
        _DISPUTE % ("halo", "credit_unit", "role", _TWO_READINGS),
    ),
    "C202": Entry(
        "Only tags can be disputed: a facet of a single term, or a term that has a level, such as `stop`.",
        _DISPUTE % ("halo", "summary", "role", _TWO_READINGS),
        _DISPUTE % ("halo", "credit_unit", "role", _TWO_READINGS),
    ),
    "C203": Entry(
        "A reading is a value that the tag could have, so that claims can be tried under it. Of a term with levels, "
        "`none` says that the decision does not arise.",
        _DISPUTE % ("halo", "credit_unit", "role", "role: first reader, planner: second reader"),
        _DISPUTE % ("halo", "credit_unit", "role", _TWO_READINGS),
    ),
    "C204": Entry(
        "The paper has another value than the dispute says. Either the tag was changed and the dispute forgotten, or "
        "the dispute was settled and has to say so.",
        _DISPUTE % ("halo", "credit_unit", "orchestrator", _TWO_READINGS),
        _DISPUTE % ("halo", "credit_unit", "role", _TWO_READINGS),
    ),
    "C205": Entry(
        "A dispute takes a reading that has the value that stands, and one that excludes it.",
        _DISPUTE % ("halo", "credit_unit", "role", '"role,orchestrator": both readers'),
        _DISPUTE % ("halo", "credit_unit", "role", _TWO_READINGS),
    ),
    "C206": Entry(
        "All readings of one tag belong together, or nobody sees all of them.",
        _DISPUTE % ("halo", "credit_unit", "role", _TWO_READINGS)
        + "\n"
        + _DISPUTE.partition("\n")[2] % ("halo", "credit_unit", "role", "role: first reader, agent: third reader"),
        _DISPUTE % ("halo", "credit_unit", "role", f"{_TWO_READINGS}, agent: third reader"),
    ),
    # A: a record against what arXiv says, and what arXiv says against what it said before. Found by `corpus fetch`
    "A101": Entry(
        "An id that leads to another work gives readers the wrong paper and `fetch` the wrong data. Said only where no "
        "author is in common and the titles have little in common; a paper renamed by its authors is A103.",
        f'{_PAPER}title: Orchestrating Teams of Agents\nauthors: ["Dang, Yufan"]\n'
        "# arXiv\ntitle: Stars in Dusty Galaxies\nauthors: [Maria Costa]",
        f'{_PAPER}title: Orchestrating Teams of Agents\nauthors: ["Dang, Yufan"]\n'
        "# arXiv\ntitle: Orchestrating Teams of Agents\nauthors: [Yufan Dang]",
    ),
    "A102": Entry(
        "An id without a paper is a slip of the pen, so its link leads nowhere. arXiv is asked twice before this is "
        "said, and it is a warning because its answers have been falsely empty before.",
        '# data/papers.yaml\narxiv_id: "2505.99999"\n# arXiv\n{}',
        f"{_PAPER}# arXiv\nversion: 1",
    ),
    "A103": Entry(
        "Authors rename papers in later versions. Blanks, TeX, width and typographic marks do not count. Where the "
        "published paper has another title than arXiv, the record waives this with the reason.",
        f"{_PAPER}title: Agents at Work\n# arXiv\ntitle: Agents at Work and at Play",
        f"{_PAPER}title: Agents at Work and at Play\n# arXiv\ntitle: Agents at Work and at Play",
    ),
    "A104": Entry(
        "A title that differs in case, accents or punctuation only is the same title. The record's spelling may be the "
        "better one, so `fetch --write` leaves it alone.",
        f"{_PAPER}title: Agents At Work\n# arXiv\ntitle: Agents at work",
        f"{_PAPER}title: Agents at work\n# arXiv\ntitle: Agents at work",
    ),
    "A105": Entry(
        "Authors join, leave and change places between versions, and lists copied from elsewhere name people who never "
        "were on the paper. Of a list that ends in `others`, only the beginning is compared; collectives alone stand "
        "for their members.",
        f'{_PAPER}authors: ["Dang, Yufan"]\n# arXiv\nauthors: [Yufan Dang, Chen Qian]',
        f"{_PAPER}{_TWO_AUTHORS}\n# arXiv\nauthors: [Yufan Dang, Chen Qian]",
    ),
    "A106": Entry(
        "One person under two forms of a name, such as an initial or a lost accent, counts twice in a list of authors. "
        "Which form is right takes somebody who knows, so `fetch --write` leaves it alone.",
        f'{_PAPER}authors: ["Dang, Y."]\n# arXiv\nauthors: [Yufan Dang]',
        f'{_PAPER}authors: ["Dang, Yufan"]\n# arXiv\nauthors: [Yufan Dang]',
    ),
    "A107": Entry(
        "Tags rest on the version that somebody read; a new one may train what the old one fixed by hand. "
        "`fetch --write` notes the version in data/arxiv.json, so this is said once.",
        f'{_PAPER}# data/arxiv.json\n"2505.19591": {{version: 1}}\n# arXiv\nversion: 2',
        f'{_PAPER}# data/arxiv.json\n"2505.19591": {{version: 2}}\n# arXiv\nversion: 2',
    ),
    "A108": Entry(
        "A withdrawn paper stays on arXiv, and only the words of its newest version's comment or abstract say so. "
        "Hence this is a suspicion that takes a person to read. Withdrawals are taken back, too.",
        f"{_PAPER}# arXiv\nversion: 2\ncomment: This paper has been withdrawn by Yufan Dang",
        f"{_PAPER}# arXiv\nversion: 3\ncomment: 12 pages; also withdrawn from a workshop, to appear elsewhere",
    ),
    "A109": Entry(
        "A paper that was thought withdrawn is back, so what was noted or decided because of that may have to be "
        "taken back as well.",
        f'{_PAPER}# data/arxiv.json\n"2505.19591": {{version: 2, comment: Withdrawn}}\n# arXiv\nversion: 2',
        f'{_PAPER}# data/arxiv.json\n"2505.19591": {{version: 2}}\n# arXiv\nversion: 2',
    ),
    "A110": Entry(
        "The authors say where the paper has appeared, while the record still calls it a preprint, or the reference is "
        "new. It is in their own words, so a person writes the venue.",
        f"{_PAPER}venue: arXiv\n# arXiv\njournal_ref: Journal of Agents 3 (2026) 1-20",
        f"{_PAPER}venue: Journal of Agents 3\n# arXiv\njournal_ref: Journal of Agents 3 (2026) 1-20",
    ),
    "A111": Entry(
        "The DOI is what citations of the published paper go by. arXiv gives the journal's DOI only, which the authors "
        "enter by hand, so a record's other DOI may be right and waives this.",
        f"{_PAPER}# arXiv\ndoi: 10.5555/agents.7",
        f"{_PAPER}doi: 10.5555/agents.7\n# arXiv\ndoi: 10.5555/agents.7",
    ),
    "A112": Entry(
        "Moderators move papers between categories, mostly because the subject is another than was thought. "
        "`fetch --write` notes the category in data/arxiv.json, so this is said once.",
        f'{_PAPER}# data/arxiv.json\n"2505.19591": {{primary_category: cs.CL}}\n# arXiv\nprimary_category: cs.MA',
        f'{_PAPER}# data/arxiv.json\n"2505.19591": {{primary_category: cs.MA}}\n# arXiv\nprimary_category: cs.MA',
    ),
    # L: addresses that no longer lead where they did. Found by `corpus links`
    "L101": Entry(
        "A dead link is a claim that nobody can check. Said where the server answers that the page is gone (404 or "
        "410); one that refuses programs (401, 403, 429) is not dead.",
        "urls: [https://example.org/a-page-that-is-gone]",
        "urls: [https://web.archive.org/web/2026/https://example.org/a-page-that-is-gone]",
    ),
    "L102": Entry(
        "A page that has moved for good (301 or 308) answers at its old address only as long as somebody keeps the "
        "sign up. Detours that the server calls temporary are left alone.",
        "urls: [http://example.org/old]",
        "urls: [https://example.org/new]",
    ),
    "L103": Entry(
        "The server cannot be found, does not answer or fails (5xx). That passes mostly; a link that stays so for "
        "weeks is dead, too.",
        "urls: [https://a-server-that-is-off.example.org/]",
        "urls: [https://example.org/]",
    ),
    # S: what is known of the scale of systems, in data/scale.yaml
    "S101": Entry(
        "Amounts are compared and drawn on an axis, so they are numbers, ranges or bounds, without units and without "
        "commas. What was looked for and not found is `unknown`.",
        f'{_SCALE_FILE}- value: "1,500 calls"',
        f'{_SCALE_FILE}- value: "<=1500"',
    ),
    "S102": Entry(
        "Of two numbers for one quantity of one system, nobody knows which to draw. Where both are true, they are of "
        "two systems, or of two quantities.",
        f"{_SCALE_FILE}- system: Agent Yard\n  quantity: agents\n- system: Agent Yard\n  quantity: agents",
        f"{_SCALE_FILE}- system: Agent Yard\n  quantity: agents\n- system: Agent Yard\n  quantity: steps",
    ),
    "S103": Entry(
        "A system that is in the pool is named by its key, so that both can be found from each other. One that is not "
        "leaves the field out.",
        f"# data/papers.yaml\n- key: agent-yard\n{_SCALE_FILE}- record: agent-yrad",
        f"# data/papers.yaml\n- key: agent-yard\n{_SCALE_FILE}- record: agent-yard",
    ),
    "S104": Entry(
        "Verified means: the number was read in the publication that reports the measurement. What a vendor says of "
        "its product, a copy or a third party is a report, and `unknown` is nothing that could be verified.",
        f"{_SCALE_FILE}- evidence: vendor\n  verified: true",
        f"{_SCALE_FILE}- evidence: vendor\n  verified: false",
    ),
    # K: coding sheets, which `corpus audit compare` reads
    "K101": Entry(
        "A sheet is a CSV file with a heading that names its columns, `key` among them, and as many cells in each row. "
        "Without that, no cell can be told from another.",
        "name,topology\np-0,debate",
        "key,topology\np-0,debate",
    ),
    "K102": Entry(
        "A column that is no field is left out of the comparison, and its cells with it. `key`, `title`, `links` and "
        "`notes` are known beside the fields.",
        "key,topolgy\np-0,debate",
        "key,topology\np-0,debate",
    ),
    "K103": Entry(
        "A row is compared by its key, so the key must be that of a record.",
        "key,topology\np0,debate",
        "key,topology\np-0,debate",
    ),
    "K104": Entry(
        "Of two rows for one record, nobody knows which the reader meant.",
        "key,topology\np-0,debate\np-0,swarm",
        "key,topology\np-0,debate",
    ),
    "K105": Entry(
        "A word outside the vocabulary is no reading, and counts as not coded. `corpus audit compare --merge` makes "
        "names for terms taken together.",
        "key,topology\np-0,heirarchical",
        "key,topology\np-0,hierarchical",
    ),
    "K106": Entry(
        "An empty cell counts as not coded, and drops out of the comparison. What does not arise is coded as `none`, "
        "what does not apply as `NA`.",
        "key,topology,stop\np-0,debate,",
        "key,topology,stop\np-0,debate,none",
    ),
    "K107": Entry(
        "A record that only one reader coded cannot be compared. The sheets may well have been drawn differently; "
        "if not, rows were lost.",
        "key,topology\np-0,debate\n\nkey,topology\np-0,debate\np-1,swarm",
        "key,topology\np-0,debate\np-1,swarm\n\nkey,topology\np-0,debate\np-1,swarm",
    ),
}
"""The explanation of each rule, by its code."""
