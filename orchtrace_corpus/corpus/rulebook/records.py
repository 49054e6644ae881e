"""The rules that the records of a corpus follow: F, V, X, I, D, M and E."""

from orchtrace_corpus.base.findings import Entry

_WAIVED = 'year: 2024\narxiv_id: "2001.00001"\nwaive: [{code: I105, why: "First printed four years later."}]'
_TOPOLOGY_RULE = """\
# data/taxonomy.yaml
rules:
  - id: debate-is-rewarded
    message: A debate mostly has a debate reward.
    severity: warning
    when: {topology: debate}
    require: {reward_family: debate}
# data/papers.yaml
- topology: debate
  reward_family: """
_BROKEN_RULE = """\
rules:
  - id: industry-is-case
    message: An industrial system is a deployment case.
    when: {category: industry}
    require: {"""
_EVIDENCE = """\
sub_decisions: {delegate: implicit}
rl: full
evidence:
  - tags: [%s]
    note: The outcome trains the component that picks the next agent.
    source: https://example.org/a
    level: paper
    confidence: high"""

ENTRIES = {
    # F and V: what a field or a tag may say
    "F101": Entry(
        "A record without this field cannot be counted, cited or listed. An absent tag would mean 'not coded yet', "
        "and a corpus of such records has no true counts.",
        "- {key: puppeteer, title: Multi-Agent Collaboration via Evolving Orchestration}",
        "- {key: puppeteer, title: Multi-Agent Collaboration via Evolving Orchestration, venue: NeurIPS 2025}",
    ),
    "F102": Entry(
        "A misspelt field would be ignored in silence, and its value lost.",
        "venu: NeurIPS 2025",
        "venue: NeurIPS 2025",
    ),
    "F103": Entry(
        "Programs rely on a list being a list, even with one item.",
        "urls: https://arxiv.org/abs/2505.19591",
        "urls: [https://arxiv.org/abs/2505.19591]",
    ),
    "F104": Entry(
        "An empty value says neither that there is nothing nor that nobody has looked. Leave an optional field out.",
        "notes:",
        "notes: Version 1 has another title.",
    ),
    "F105": Entry("Years are counted and compared, so they have one form.", "year: 25", "year: 2025"),
    "F106": Entry(
        "Dates sort and compare as text only in this form, and 05/04 means two days in two countries.",
        "added: 4 May 2026",
        'added: "2026-05-04"',
    ),
    "F107": Entry(
        "Keys stand in URLs, file names and citations, where blanks, capitals and accents make trouble.",
        "key: Multi_Agent Röse",
        "key: multi-agent-rose",
    ),
    "F108": Entry(
        "A repeated item is a slip of copying, and would be counted twice.",
        "urls: [https://example.org/a, https://example.org/a]",
        "urls: [https://example.org/a]",
    ),
    "F109": Entry(
        "`others` says, as in BibTeX, that names were left out at the end; anywhere else it would be taken for a name.",
        'authors: ["Dang, Yufan", others, "Qian, Chen"]',
        'authors: ["Dang, Yufan", "Qian, Chen", others]',
    ),
    "F110": Entry(
        "Exclusion ids are cited in reasons and in the survey; one form keeps them findable.",
        "id: 33",
        "id: E033",
    ),
    "F111": Entry(
        "One normal form, without prefix, version or URL, lets records be matched with each other and with "
        "registries. Versions are left out because a record stands for the paper, not for one revision.",
        "arxiv_id: arXiv:2505.19591v2",
        'arxiv_id: "2505.19591"',
        fixable=True,
    ),
    "F112": Entry(
        "A waiver that waives nothing is a leftover of a mistake that was mended, and would hide the next one.",
        'year: 2024\nwaive: [{code: I105, why: "First printed later."}]',
        "year: 2024",
    ),
    "F113": Entry(
        "Errors cannot be waived: they make counts untrue or records unusable. A code that does not exist waives "
        "nothing.",
        'waive: [{code: D103, why: "It is the same paper."}]',
        _WAIVED,
    ),
    "F114": Entry(
        "Addresses are opened, listed and put into Markdown. Only http and https are addresses for everyone; a blank "
        "or a bracket ends a link early; a user name with a password is a secret in public.",
        "urls: [arxiv.org/abs/2505.19591]",
        "urls: [https://arxiv.org/abs/2505.19591]",
        fixable=True,
    ),
    "F115": Entry(
        "A year that has not come is a slip of the keyboard. Next year is allowed, for papers accepted already. The "
        "clock is that of the machine, or SOURCE_DATE_EPOCH.",
        "year: 2205",
        "year: 2025",
    ),
    "F116": Entry(
        "A record cannot be added or screened on a day that has not come. Tomorrow is allowed, since it has begun "
        "somewhere on earth. The clock is that of the machine, or SOURCE_DATE_EPOCH.",
        'added: "2206-05-04"',
        'added: "2026-05-04"',
    ),
    "F117": Entry(
        "A promoted record leads to the paper that it became; a reader of the log must be able to follow.",
        "# data/papers.yaml\n- key: halo\n# data/exclusions.yaml\n- id: E033\n  promoted_to: hallo",
        "# data/papers.yaml\n- key: halo\n# data/exclusions.yaml\n- id: E033\n  promoted_to: halo",
    ),
    "F118": Entry(
        "The log grows at its end and ids are never reused: ids that increase show that nothing was slipped in.",
        "- id: E034\n- id: E033",
        "- id: E033\n- id: E034",
    ),
    "F119": Entry(
        "What was published stays reproducible only while every record of it is in the data. A record that was renamed "
        "or removed by mistake comes back; one that has to go leaves data/published.yaml first, in its own change.",
        '# data/papers.yaml\n- key: halo\n# data/published.yaml\nday: "2026-05-04"\n'
        "source: https://example.org/survey\npapers: [hallo]",
        '# data/papers.yaml\n- key: halo\n# data/published.yaml\nday: "2026-05-04"\n'
        "source: https://example.org/survey\npapers: [halo]",
    ),
    "V101": Entry(
        "Evidence that names no axis or facet supports nothing.",
        "evidence:\n  - tags: [credit]\n    note: It credits messages.\n    source: https://example.org/a\n"
        "    level: paper\n    confidence: high",
        "evidence:\n  - tags: [credit_unit]\n    note: It credits messages.\n    source: https://example.org/a\n"
        "    level: paper\n    confidence: high",
    ),
    "V102": Entry(
        "A word outside the vocabulary would open a class of its own in every count. `corpus terms FIELD` lists the "
        "words; a new one belongs into data/taxonomy.yaml.",
        "topology: heirarchical",
        "topology: hierarchical",
    ),
    "V103": Entry(
        "Levels are compared across records, so they are few and fixed. `corpus terms sub_decisions` defines them.",
        "sub_decisions: {delegate: learned}",
        "sub_decisions: {delegate: implicit}",
    ),
    "V104": Entry(
        "NA says that a tag does not apply. It contradicts every term beside it, and some tags always apply.",
        "scenario: NA",
        "scenario: general",
    ),
    # X, I, D, M and E: fields against each other, records against each other, and what text may hold
    "X101": Entry(
        "Some tags exclude each other by their definitions. Each survey declares such rules in data/taxonomy.yaml; the "
        "finding quotes the rule's message and id.",
        "category: industry\ntier: core",
        "category: industry\ntier: case",
    ),
    "X102": Entry(
        "As X101, for rules that data/taxonomy.yaml declares with severity warning: unlikely rather than impossible.",
        f"{_TOPOLOGY_RULE}shared",
        f"{_TOPOLOGY_RULE}debate",
    ),
    "X103": Entry(
        "A rule that asks for a field or a term that the taxonomy does not declare would never apply, and everyone "
        "would believe that it holds.",
        f"{_BROKEN_RULE}tear: case}}",
        f"{_BROKEN_RULE}tier: case}}",
    ),
    "I101": Entry(
        "Of an id and a URL that lead to two papers, one is wrong, and both are what readers click. Compared are ids "
        "of one kind only: an arXiv id beside a publisher's DOI is fine.",
        'arxiv_id: "2505.19591"\nurls: [https://arxiv.org/abs/2505.19519]',
        'arxiv_id: "2505.19591"\nurls: [https://arxiv.org/abs/2505.19591]',
    ),
    "I105": Entry(
        "The first four digits of an arXiv id are the year and month in which it was given. The year of a record is "
        "that of the id or that of publication, so the two years after the id are accepted, too: "
        "venues take that long. An earlier year is a slip, a much later one most likely, too.",
        'arxiv_id: "2505.19591"\nyear: 2024',
        'arxiv_id: "2505.19591"\nyear: 2025',
    ),
    "D101": Entry(
        "Commands, citations and claims call a paper by its key; the second of two could never be reached.",
        "- key: halo\n- key: halo",
        "- key: halo\n- key: halo-2026",
    ),
    "D102": Entry(
        "Exclusion ids are cited and never reused, so that a reason stays with its record.",
        "- id: E033\n- id: E033",
        "- id: E033\n- id: E034",
    ),
    "D103": Entry(
        "One paper under two keys is counted twice in every table. Ids are those of the fields and of the URLs.",
        '- key: puppeteer\n  arxiv_id: "2505.19591"\n- key: puppeteer2025\n  arxiv_id: "2505.19591"',
        '- key: puppeteer\n  arxiv_id: "2505.19591"',
    ),
    "D104": Entry(
        "The first URL is the paper's own; two papers that share it are one. Further URLs, such as a repository, may "
        "be shared. Scheme, www. and a final slash do not count.",
        "- key: codex\n  urls: [https://example.org/codex]\n- key: openai-codex\n"
        "  urls: [http://www.example.org/codex/]",
        "- key: codex\n  urls: [https://example.org/codex]",
    ),
    "D105": Entry(
        "Two papers of one title are mostly one paper under two keys; where they are not, the later one waives this. "
        "Case, accents and punctuation do not count.",
        '- key: halo\n  title: "HALO: Agents"\n- key: halo-2\n  title: Halo - agents',
        '- key: halo\n  title: "HALO: Agents"',
    ),
    "D106": Entry(
        "A record that was screened twice makes the log's counts untrue.",
        "- id: E033\n  identifier: arXiv:2305.14325\n- id: E034\n  identifier: arXiv:2305.14325v2",
        "- id: E033\n  identifier: arXiv:2305.14325",
    ),
    "D107": Entry(
        "A record that was screened twice makes the log's counts untrue. Scheme, www. and a final slash do not count.",
        "- id: E033\n  url: https://example.org/docs\n- id: E034\n  url: https://example.org/docs/",
        "- id: E033\n  url: https://example.org/docs",
    ),
    "D108": Entry(
        "Two exclusions of one title are mostly one record screened twice; where they are not, the later one waives "
        "this.",
        "- id: E033\n  title: Agents at Work\n- id: E034\n  title: Agents at work",
        "- id: E033\n  title: Agents at Work",
    ),
    "D109": Entry(
        "A paper is in the pool or excluded, not both. A record that was taken in later stays in the log and names "
        "the paper that it became.",
        "# data/papers.yaml\n- key: halo\n  urls: [https://arxiv.org/abs/2505.13516]\n"
        "# data/exclusions.yaml\n- id: E033\n  identifier: arXiv:2505.13516",
        "# data/papers.yaml\n- key: halo\n  urls: [https://arxiv.org/abs/2505.13516]\n"
        "# data/exclusions.yaml\n- id: E033\n  identifier: arXiv:2505.13516\n  promoted_to: halo",
    ),
    "D110": Entry(
        "An exclusion with the title of a paper is mostly that paper, screened from another source. Where it is "
        "another work of the same title, the exclusion waives this.",
        "# data/papers.yaml\n- key: halo\n  title: Agents at Work\n"
        "# data/exclusions.yaml\n- id: E033\n  title: Agents at Work",
        "# data/papers.yaml\n- key: halo\n  title: Agents at Work\n"
        "# data/exclusions.yaml\n- id: E033\n  title: Agents at Work\n  promoted_to: halo",
    ),
    "M101": Entry(
        "Invisible characters come along when text is copied from a page or a PDF; searches and comparisons then fail "
        "for no reason that anyone can see. Joiners inside a word are part of some scripts and allowed.",
        'venue: "NeurIPS\\u200b 2025"',
        "venue: NeurIPS 2025",
    ),
    "M102": Entry(
        "Such a character makes a reviewer see another text than programs read (CVE-2021-42574). Text of a script "
        "that runs from right to left needs none.",
        'title: "Agents \\u202e snart"',
        "title: Agents trans",
    ),
    "M103": Entry(
        "Text is shown as it stands in terminals, pages and tables; the BibTeX export writes LaTeX itself. Refused are "
        "a backslash before a character, formulas between dollars, and quotation marks typed as"
        " backticks and apostrophes. Sums such as $5 and $10 are fine.",
        "title: Kov{\\'a}cs on $n$-Agents",
        "title: Kovács on n-Agents",
        fixable=True,
    ),
    "M104": Entry(
        "Titles and notes go into HTML pages and Markdown lists. Refused are comments, elements of HTML, its entities, "
        "`](` and backticks. Brackets, underscores, asterisks, a lone < or &, and words such as <think> are fine.",
        "title: Agents<br>at Work &amp; Play",
        "title: Agents at Work & Play",
    ),
    "M105": Entry(
        "Summaries and reasons stand in one line of a list or a table. Up to 200 characters, they can be read there.",
        f"summary: Studies agents {'that study agents ' * 11}that study nothing.",
        "summary: Studies agents that study agents.",
    ),
    "M106": Entry(
        "Summaries and reasons are set one after another in lists, where one without a period looks cut off.",
        "summary: Studies agents that study agents",
        "summary: Studies agents that study agents.",
        fixable=True,
    ),
    "M107": Entry(
        "A lost quote in the file leaves its partner in the text, where nobody looks for it, and list checkers refuse "
        "it. Inches are written with a double prime: 5″.",
        'authors: [Lyu, Xueguang", "Amato, Christopher"]',
        'authors: ["Lyu, Xueguang", "Amato, Christopher"]',
    ),
    "M108": Entry(
        "In a list between brackets, a name without quotes falls apart at its comma. Two collectives of one word each "
        "are rare; where they are meant, the record waives this.",
        'authors: [Lyu, Xueguang, "Amato, Christopher"]',
        'authors: ["Lyu, Xueguang", "Amato, Christopher"]',
    ),
    "M109": Entry(
        "A record can come in before its summary is written, and then says so. The list shows the summary to everybody "
        "who looks for a paper, so that the words of somebody who has read it should soon stand there.",
        "summary: To be written.",
        "summary: Studies agents that study agents.",
    ),
    "E101": Entry(
        "Tags that carry the survey's argument must say what they rest on. data/taxonomy.yaml declares which; the "
        "finding quotes the rule's message and id.",
        _EVIDENCE % "topology",
        _EVIDENCE % "sub_decisions",
    ),
    "E102": Entry(
        "As E101, for rules that data/taxonomy.yaml declares with severity warning, such as that a paper should have "
        "some evidence at all.",
        "sub_decisions: {}",
        _EVIDENCE % "topology, sub_decisions",
    ),
    "E103": Entry(
        "What is said of a term that few papers have rests on each of them, so each should say why it has the term. "
        "data/taxonomy.yaml declares for which fields this holds, and how many papers are few.",
        "credit_unit: message\n" + _EVIDENCE % "sub_decisions",
        "credit_unit: message\n" + _EVIDENCE % "credit_unit, sub_decisions",
    ),
}
"""The explanation of each rule, by its code."""
