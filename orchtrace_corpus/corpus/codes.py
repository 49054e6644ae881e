"""The rules of the corpus, by code; `rulebook` explains each."""

from collections.abc import Mapping

from orchtrace_corpus.base.findings import Entry, Section, register


def _entries() -> Mapping[str, Entry]:
    from orchtrace_corpus.corpus.rulebook import ENTRIES

    return ENTRIES


register(
    errors={
        # F: a field is absent, unknown or of the wrong type
        "F101": "missing field",
        "F102": "unknown field",
        "F103": "wrong type",
        "F104": "empty value",
        "F105": "not a year",
        "F106": "not a date",
        "F107": "not a key",
        "F108": "item given twice",
        "F109": "not an author list",
        "F110": "not an exclusion id",
        "F111": "not an identifier of its kind",
        "F113": "waiver of what cannot be waived",
        "F114": "not a web address",
        "F115": "year in the future",
        "F116": "date in the future",
        "F117": "promoted to no paper",
        "F118": "exclusion ids out of order",
        "F119": "published record that is not there",
        # V: a tag is not in the vocabulary
        "V101": "unknown axis",
        "V102": "unknown term",
        "V103": "unknown level",
        "V104": "NA where it is not allowed, or beside other terms",
        # X: fields that contradict each other, by the taxonomy's own rules
        "X101": "rule of the taxonomy broken",
        "X103": "rule of the taxonomy that cannot be applied",
        # I: identifiers that contradict the rest of the record
        "I101": "identifier other than that of the URL",
        # D: the same thing twice
        "D101": "key used twice",
        "D102": "exclusion id used twice",
        "D103": "identifier used twice",
        "D104": "URL used twice",
        "D106": "identifier excluded twice",
        "D107": "URL excluded twice",
        "D109": "excluded record in the pool",
        # M: text that would not stay text
        "M101": "control or invisible character",
        "M102": "character that turns the direction of writing",
        "M103": "LaTeX in text",
        "M104": "HTML or Markdown in text",
        "M107": "quotation mark without its partner",
        # E: what the tags rest on
        "E101": "tag without its evidence",
        # C: what the corpus claims, and what is disputed in it
        "C101": "claim fails",
        "C102": "claim that cannot be evaluated",
        "C103": "claim about a record that is not there",
        "C104": "reading beyond its claim",
        "C105": "claim id used twice",
        "C201": "dispute about a paper that is not there",
        "C202": "dispute about no tag",
        "C203": "reading that is no term",
        "C204": "disputed tag that has changed",
        "C205": "dispute without two readings",
        "C206": "tag disputed twice",
        # S: what is known of the scale of systems
        "S101": "not an amount",
        "S102": "quantity given twice",
        "S103": "observation of a paper that is not there",
        "S104": "report taken for verified",
        # A: a record and arXiv have drifted apart
        "A101": "arXiv id of another work",
        # K: a coding sheet that cannot be compared as it is
        "K101": "no coding sheet",
        "K102": "unknown column",
        "K103": "unknown record",
        "K104": "record coded twice",
        "K105": "unknown code",
    },
    warnings={
        "F112": "waiver of nothing",
        "X102": "rule of the taxonomy not met",
        "I105": "year far from that of the arXiv id",
        "D105": "title used twice",
        "D108": "title excluded twice",
        "D110": "excluded title in the pool",
        "M105": "text too long",
        "M106": "no final period",
        "M108": "name taken apart",
        "M109": "summary to be written",
        "E102": "paper without evidence",
        "E103": "sparse term without evidence",
        "A102": "arXiv id without a paper",
        "A103": "title other than on arXiv",
        "A104": "title in another spelling than on arXiv",
        "A105": "authors other than on arXiv",
        "A106": "names in another form than on arXiv",
        "A107": "new version on arXiv",
        "A108": "suspected withdrawal from arXiv",
        "A109": "withdrawal from arXiv taken back",
        "A110": "journal reference on arXiv",
        "A111": "DOI other than on arXiv",
        "A112": "category on arXiv changed",
        "L101": "dead link",
        "L102": "link that has moved",
        "L103": "link that cannot be reached",
        "K106": "cell not coded",
        "K107": "record that another sheet has",
    },
    sections={
        "F": Section(10, "Fields", _entries),
        "V": Section(11, "Vocabulary", _entries),
        "X": Section(12, "Rules of the taxonomy", _entries),
        "I": Section(13, "Identifiers", _entries),
        "D": Section(14, "Duplicates", _entries),
        "M": Section(15, "Markup and text", _entries),
        "E": Section(16, "Evidence", _entries),
        "C": Section(17, "Claims and disputes", _entries),
        "S": Section(18, "Scale", _entries),
        "A": Section(19, "Drift from arXiv", _entries),
        "L": Section(20, "Links", _entries),
        "K": Section(21, "Coding sheets", _entries),
    },
)
