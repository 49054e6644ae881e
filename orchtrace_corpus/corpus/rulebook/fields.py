"""F and V: what a field or a tag may say."""

from orchtrace_corpus.base.rulebook import Entry

_WAIVED = 'year: 2024\narxiv_id: "2001.00001"\nwaive: [{code: I105, why: "First printed four years later."}]'

ENTRIES = {
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
}
"""The explanation of each rule, by its code."""
