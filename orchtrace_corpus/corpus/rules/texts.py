"""Rules about texts: markup, odd characters, names, and sentences that are too long or have no final period."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise

from orchtrace_corpus.base.annotations import TypeAlias
from orchtrace_corpus.base.findings import Finding, Location, is_malformed, quote
from orchtrace_corpus.base.lookalikes import Oddity, code_points, odd_parts
from orchtrace_corpus.base.yamlfile.decoders import text_of
from orchtrace_corpus.base.yamlfile.reader import Mapping, Node, Scalar, Sequence, YamlFile
from orchtrace_corpus.corpus.model.fields import ACTIVE_ELEMENTS, OTHERS, PLAIN_ELEMENTS, TO_BE_WRITTEN
from orchtrace_corpus.corpus.model.records import Loaded, Path, Places

MAX_SENTENCE = 200
"""The largest length of a summary or a reason, in characters."""

PlacedText: TypeAlias = tuple[str, str, Callable[[], Location], str]
"""A text, its field, the function that returns its place, and the name of its record."""

LATEX = r"\{[\"'`^~=]\w\}|\{?\\\S+|\$(?=\S)[^$]+(?<=\S)\$(?!\d)|``[^`']*''"
"""Parts of a text that only LaTeX can show: an accent in braces, a command, a formula, quotation marks."""

_GIVEN_NAME_FIRST = r"[^\W\d_a-z][\w.'\u2019-]*(?: (?:[a-z]{2,3} ){0,2}[^\W\d_a-z][\w.'\u2019-]*){1,2}"
"""Two or three words that begin with a capital, with particles such as `van der` between them."""

_PAPER_TEXTS = ("title", "affiliation", "venue", "proceedings", "summary", "notes")
_ACCENTED = "[a-z](?:acute|grave|uml|circ|tilde|cedil|ring)|szlig"
_ENTITY = rf"&(?:#\d+|#x[0-9a-f]+|amp|lt|gt|quot|apos|nbsp|[nm]dash|hellip|[lr][sd]quo|{_ACCENTED});"
_MARKUP = rf"<!--|<\?|</?(?:{ACTIVE_ELEMENTS})\b|</?(?:{PLAIN_ELEMENTS})(?:\s[^<>]*)?/?>|\]\(|`|{_ENTITY}"
_YAML_ESCAPE = r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})"
_LOOKALIKES = {
    Oddity.SCRIPTS: ("M111", "{} has letters of several scripts: {}; write it in one"),
    Oddity.HOST: ("M112", "the host {} is not ASCII: {}; check it, and write it as xn--… if it is meant"),
    Oddity.INVISIBLE: ("M113", "{} is invisible: {}; remove it"),
}
"""The code and the message of a finding, with a part of a text and its odd characters."""


def check_markup(loaded: Loaded) -> Iterator[Finding]:
    """LaTeX, HTML or Markdown in a text: terminals, pages and tables show texts as they are."""
    yield from find_markup(_texts_that(_may_hold_markup, loaded))


def find_markup(texts: Iterable[PlacedText]) -> Iterator[Finding]:
    """Yield the findings of `check_markup` in any texts."""
    for text, field, locate, record in texts:
        if not _may_hold_markup(text):
            continue
        searched_text = text
        if field == "title" and text.count("$") > 1:  # titles may have formulas
            from orchtrace_corpus.base.text.latex import without_formulas

            searched_text = without_formulas(text)
        latex = re.search(LATEX, searched_text)
        markup = None
        if not set("<]`&").isdisjoint(text):  # avoids compiling the pattern, which takes longer than all searches
            markup = re.search(_MARKUP, text, re.IGNORECASE)
        if latex is not None:
            message = f"{quote(field)} holds LaTeX: {quote(latex[0])}; write the characters themselves, such as é"
            yield Finding("M103", message, locate(), record)
        elif markup is not None:
            message = f"{quote(field)} holds markup: {quote(markup[0])}; write plain text"
            yield Finding("M104", message, locate(), record)


def check_quotes(loaded: Loaded) -> Iterator[Finding]:
    """A quotation mark without its partner, and names that were split because their quotation marks are missing."""
    yield from find_unpaired_quotes(_texts_that(lambda text: '"' in text, loaded))
    for index, paper in enumerate(loaded.papers):
        for position, (family, given_name) in enumerate(pairwise(paper.authors)):
            if set(family + given_name).isdisjoint(', "{') and given_name != OTHERS:
                message = f"{quote(family)} and {quote(given_name)} are two authors of one word each"
                fix = f'if they are one person, write "{family}, {given_name}" in quotes'
                place = loaded.paper_places.locate(index, "authors", position)
                yield Finding("M108", f"{message}; {fix}", place, paper.key)


def check_names(loaded: Loaded) -> Iterator[Finding]:
    """Two or three capitalised words as an author: most likely a person whose family name was not marked by a comma."""
    for index, paper in enumerate(loaded.papers):
        for position, name in enumerate(paper.authors):
            if "," in name or " " not in name or name[0] == "{" or not re.fullmatch(_GIVEN_NAME_FIRST, name):
                continue
            from orchtrace_corpus.corpus.model.author_names import bibtex_author  # most corpora have no such name

            author = bibtex_author(name)
            if "," not in author:  # a word such as `Team` makes the name look like a collective
                given_name, _, family = name.rpartition(" ")
                author = f"{family}, {given_name}"
            message = f"{quote(name)} has no comma, so no citation can tell family and given name apart"
            fix = f'write "{author}" for a person, or "{{{name}}}" for a collective'
            place = loaded.paper_places.locate(index, "authors", position)
            yield Finding("M110", f"{message}; {fix}", place, paper.key)


def find_unpaired_quotes(texts: Iterable[PlacedText]) -> Iterator[Finding]:
    """Yield a finding for each text with an odd number of quotation marks."""
    for text, field, locate, record in texts:
        if text.count('"') % 2 and '{"' not in text:  # `{"` is LaTeX, which `find_markup` reports
            message = f"{quote(field)} holds a quotation mark without its partner: {quote(text)}; add or remove one"
            yield Finding("M107", message, locate(), record)


def check_sentences(loaded: Loaded) -> Iterator[Finding]:
    """A summary or reason that is too long, or that ends without a period."""
    for index, paper in enumerate(loaded.papers):
        yield from sentence_findings("summary", paper.summary, loaded.paper_places, index, paper.key)
    for index, exclusion in enumerate(loaded.exclusions):
        yield from sentence_findings("reason", exclusion.reason, loaded.exclusion_places, index, exclusion.id)


def check_placeholders(loaded: Loaded) -> Iterator[Finding]:
    """A summary that is missing, or that is only the placeholder."""
    for index, paper in enumerate(loaded.papers):
        if paper.summary not in ("", TO_BE_WRITTEN):
            continue
        place = loaded.paper_places.locate(index, "summary")
        is_absent = place == loaded.paper_places.locate(index)  # if not, the summary is there but has an error
        if paper.summary or (paper.key and is_absent):
            message = f"no summary yet; say in one sentence what it does: corpus tag {paper.key} summary=..."
            yield Finding("M109", message, place, paper.key)


def _may_hold_markup(text: str) -> bool:
    """Return True if `find_markup` may find something: a fast test that nearly all texts fail."""
    if "\\" in text or "`" in text or "<" in text or "](" in text or "{" in text:
        return True
    return text.count("$") > 1 or ("&" in text and ";" in text)


def _texts_that(passes: Callable[[str], bool], loaded: Loaded) -> Iterator[PlacedText]:
    """Yield the texts of the records that pass a test; all texts of a paper are tested at once first, to save time."""
    for index, paper in enumerate(loaded.papers):
        notes = [f"{item.note}\n{item.location}" for item in paper.evidence]
        texts = [getattr(paper, name) or "" for name in _PAPER_TEXTS]
        if not passes("\n".join((*texts, *paper.authors, *notes))):
            continue
        placed: list[tuple[str, str, Path]] = []
        for name, text in zip(_PAPER_TEXTS, texts, strict=True):
            placed.append((text, name, (name,)))
        for position, author in enumerate(paper.authors):
            placed.append((author, "authors", ("authors", position)))
        for position, item in enumerate(paper.evidence):
            placed.append((item.note, "note", ("evidence", position, "note")))
            placed.append((item.location or "", "location", ("evidence", position, "location")))
        for text, field, path in placed:
            if passes(text):
                yield text, field, partial(loaded.paper_places.locate, index, *path), paper.key
    for index, exclusion in enumerate(loaded.exclusions):
        for field in ("title", "identifier", "reason", "near_miss"):
            text = getattr(exclusion, field) or ""
            if passes(text):
                yield text, field, partial(loaded.exclusion_places.locate, index, field), exclusion.id


def sentence_findings(field: str, text: str, places: Places, index: int, record: str) -> Iterator[Finding]:
    """Yield findings about the length and the end of a sentence of the record at an index."""
    if len(text) > MAX_SENTENCE:
        message = f"{quote(field)} has {len(text)} characters; keep it to {MAX_SENTENCE}, one sentence"
        yield Finding("M105", message, places.locate(index, field), record)
    if text and not text.endswith("."):
        message = f"{quote(field)} does not end with a period; add one"
        yield Finding("M106", message, places.locate(index, field), record)


def check_lookalikes(loaded: Loaded) -> Iterator[Finding]:
    """Words with letters of several scripts, hosts with characters beyond ASCII, and invisible characters."""
    for file in dict.fromkeys((loaded.paper_places.file, loaded.exclusion_places.file)):
        yield from find_lookalikes(file)


def find_lookalikes(file: YamlFile) -> Iterator[Finding]:
    """Yield the findings of `check_lookalikes` in any data file."""
    text = file.text
    may_have_escapes = "\\x" in text or "\\u" in text or "\\U" in text
    is_suspect = any(odd_parts(text, file.beyond_ascii)) or (may_have_escapes and re.search(_YAML_ESCAPE, text))
    if not is_suspect or is_malformed(file.findings):  # most files need not be parsed again
        return
    root = YamlFile(file.path, text.encode()).root()
    records = root.items if type(root) is Sequence else [root]
    for record in records:
        name = text_of(record, "key") or text_of(record, "id")
        for scalar in _scalars(record):
            for part in odd_parts(scalar.text):
                code, form = _LOOKALIKES[part.kind]
                message = form.format(quote(part.text), code_points(part.characters))
                yield Finding(code, message, file.location(scalar.at), name)


def _scalars(node: Node | None) -> Iterator[Scalar]:
    if type(node) is Mapping:
        for _, value in node.entries.values():
            yield from _scalars(value)
    elif type(node) is Sequence:
        for item in node.items:
            yield from _scalars(item)
    elif type(node) is Scalar:
        yield node
