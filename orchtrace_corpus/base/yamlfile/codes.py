"""The rules of the reader, Y: what is no YAML that we read, and why not."""

from orchtrace_corpus.base.findings import Entry, Section, register

ENTRIES = {
    "Y101": Entry(
        "One encoding for all files means that every editor and program sees the same characters.",
        "# data/papers.yaml, saved as Latin-1\ntitle: M\\xfcller",
        "# data/papers.yaml, saved as UTF-8\ntitle: Müller",
    ),
    "Y102": Entry(
        "A byte order mark is an invisible character that some programs take for part of the first key.",
        "\ufeff- key: puppeteer",
        "- key: puppeteer",
    ),
    "Y103": Entry(
        "Control characters, lone carriage returns and unusual line ends look like nothing in an editor and break "
        "lines, terminals and other YAML readers.",
        "title: Agents\x07",
        "title: Agents",
    ),
    "Y104": Entry(
        "What is not YAML cannot be read at all, so nothing behind the error is checked. The place is that of the "
        "mistake, as far as it can be told, rather than where the parser gave up.",
        "title: MARFT: Multi-Agent Reinforcement Fine-Tuning",
        'title: "MARFT: Multi-Agent Reinforcement Fine-Tuning"',
    ),
    "Y105": Entry(
        "Of a key given twice, most YAML readers silently keep the last value and lose the other.",
        "year: 2025\nyear: 2026",
        "year: 2025",
    ),
    "Y106": Entry(
        "An anchor lets a value be reused elsewhere, so that a record could change without one of its lines changing.",
        "venue: &venue NeurIPS 2025",
        "venue: NeurIPS 2025",
    ),
    "Y107": Entry(
        "An alias repeats a value from elsewhere; each record is to be readable by itself.",
        "venue: *venue",
        "venue: NeurIPS 2025",
    ),
    "Y108": Entry(
        "Tags ask for types or for objects of a program. Every value here is text, and its field says what it means.",
        "year: !!int 2025",
        "year: 2025",
    ),
    "Y109": Entry(
        "A merge key copies fields from elsewhere; each record is to be readable by itself.",
        "<<: {venue: NeurIPS 2025}\nyear: 2025",
        "venue: NeurIPS 2025\nyear: 2025",
    ),
    "Y110": Entry(
        "Most readers stop after the first document of a file, so that the records behind it would be lost.",
        "- key: puppeteer\n---\n- key: halo",
        "- key: puppeteer\n- key: halo",
    ),
    "Y111": Entry(
        "No record needs more than a few levels, and unbounded nesting is a way to make programs crash.",
        "title: [[[[[[[[[[[[[[[[[deep]]]]]]]]]]]]]]]]]",
        "title: deep",
    ),
    "Y112": Entry(
        "A data file of this size is a mistake, and reading it would take all memory.",
        "# data/papers.yaml, 600 MiB",
        "# data/papers.yaml, 120 KiB",
    ),
    "Y113": Entry(
        "A list or a mapping cannot name a field.",
        "[title, venue]: Agents",
        "title: Agents\nvenue: Agents",
    ),
    "Y114": Entry(
        "An empty file is more likely lost data than a corpus without records; write [] for an empty list.",
        "# nothing here",
        "[]",
    ),
    "Y115": Entry(
        "Text of this length is a mistake, and reading it would take minutes and much memory.",
        "# data/papers.yaml, one line of 200 MB",
        "# data/papers.yaml, lines of a few hundred characters",
    ),
}
"""The explanation of each rule, by its code."""

register(
    errors={
        # Y: the file is not the YAML that we read
        "Y101": "not UTF-8",
        "Y102": "byte order mark",
        "Y103": "forbidden character",
        "Y104": "syntax error",
        "Y105": "key given twice",
        "Y106": "anchor",
        "Y107": "alias",
        "Y108": "tag",
        "Y109": "merge key",
        "Y110": "more than one document, or a directive",
        "Y111": "nested too deeply",
        "Y112": "file too large",
        "Y113": "key that is not plain text",
        "Y114": "nothing in the file",
        "Y115": "text too long to read",
    },
    warnings={},
    sections={
        "Y": Section(0, "Syntax", lambda: ENTRIES),
    },
)
