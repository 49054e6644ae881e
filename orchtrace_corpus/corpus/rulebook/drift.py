"""A: a record against what arXiv says, and what arXiv says against what it said before. Found by `corpus fetch`."""

from orchtrace_corpus.base.findings import Entry

_PAPER = '# data/papers.yaml\narxiv_id: "2505.19591"\n'
_TWO = 'authors: ["Dang, Yufan", "Qian, Chen"]'

ENTRIES = {
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
        f"{_PAPER}{_TWO}\n# arXiv\nauthors: [Yufan Dang, Chen Qian]",
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
}
"""The explanation of each rule, by its code."""
