"""Text with markup or odd characters, and sentences that are too long or have no final period."""

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
"""A text with its field, the function that finds its place, and the name of its record."""

LATEX = r"\{[\"'`^~=]\w\}|\{?\\\S+|\$(?=\S)[^$]+(?<=\S)\$(?!\d)|``[^`']*''"
"""Signs that a text is meant for LaTeX."""

_SPOKEN_NAME = r"[^\W\d_a-z][\w.'\u2019-]*(?: (?:[a-z]{2,3} ){0,2}[^\W\d_a-z][\w.'\u2019-]*){1,2}"
"""Two or three words that begin with a capital, particles such as `van der` between them."""

_ACCENTED = "[a-z](?:acute|grave|uml|circ|tilde|cedil|ring)|szlig"
_TEXTS = ("title", "affiliation", "venue", "proceedings", "summary", "notes")
_ENTITY = rf"&(?:#\d+|#x[0-9a-f]+|amp|lt|gt|quot|apos|nbsp|[nm]dash|hellip|[lr][sd]quo|{_ACCENTED});"
_ESCAPED = r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})"
_LOOKALIKES = {
    Oddity.SCRIPTS: ("M111", "{} has letters of several scripts: {}; write it in one"),
    Oddity.HOST: ("M112", "the host {} is not ASCII: {}; check it, and write it as xn--… if it is meant"),
    Oddity.INVISIBLE: ("M113", "{} is invisible: {}; remove it"),
}
_MARKUP = rf"<!--|<\?|</?(?:{ACTIVE_ELEMENTS})\b|</?(?:{PLAIN_ELEMENTS})(?:\s[^<>]*)?/?>|\]\(|`|{_ENTITY}"


def check_markup(loaded: Loaded) -> Iterator[Finding]:
    """LaTeX, HTML or Markdown in a text, which is shown as it stands in terminals, pages and tables."""
    yield from find_markup(_suspects(loaded, _may_hold_markup))


def find_markup(texts: Iterable[PlacedText]) -> Iterator[Finding]:
    """Yield the findings of `check_markup` in any texts."""
    for text, field, place, record in texts:
        if not _may_hold_markup(text):
            continue
        searched = text
        if field == "title" and text.count("$") > 1:  # the formulas of a title are the authors'
            from orchtrace_corpus.base.text.latex import without_formulas

            searched = without_formulas(text)
        latex = re.search(LATEX, searched)
        is_plain = set("<]`&").isdisjoint(text)  # compiling the pattern takes longer than all texts of a corpus
        markup = None if is_plain else re.search(_MARKUP, text, re.IGNORECASE)
        if latex is not None:
            message = f"{quote(field)} holds LaTeX: {quote(latex[0])}; write the characters themselves, such as é"
            yield Finding("M103", message, place(), record)
        elif markup is not None:
            message = f"{quote(field)} holds markup: {quote(markup[0])}; write plain text"
            yield Finding("M104", message, place(), record)


def check_quotes(loaded: Loaded) -> Iterator[Finding]:
    """A quotation mark without its partner, and names that a lost pair of quotes has taken apart."""
    yield from find_unpaired_quotes(_suspects(loaded, lambda text: '"' in text))
    for index, paper in enumerate(loaded.papers):
        for position, (family, given_name) in enumerate(pairwise(paper.authors)):
            if set(family + given_name).isdisjoint(', "{') and given_name != OTHERS:
                message = f"{quote(family)} and {quote(given_name)} are two authors of one word each"
                fix = f"if they are one person, write {chr(34)}{family}, {given_name}{chr(34)} in quotes"
                place_of_first = loaded.paper_places.locate(index, "authors", position)
                yield Finding("M108", f"{message}; {fix}", place_of_first, paper.key)


def check_names(loaded: Loaded) -> Iterator[Finding]:
    """Two or three capitalised words as an author: most likely a person whose names were not told apart."""
    for index, paper in enumerate(loaded.papers):
        for at, name in enumerate(paper.authors):
            if "," in name or " " not in name or name[0] == "{" or not re.fullmatch(_SPOKEN_NAME, name):
                continue
            from orchtrace_corpus.corpus.model.author_names import bibliographic  # most corpora have no such name

            written = bibliographic(name)
            person = written if "," in written else ", ".join(reversed(name.rsplit(" ", 1)))
            message = f"{quote(name)} has no comma, so no citation can tell family and given name apart"
            fix = f'write "{person}" for a person, or "{{{name}}}" for a collective'
            yield Finding("M110", f"{message}; {fix}", loaded.paper_places.locate(index, "authors", at), paper.key)


def find_unpaired_quotes(texts: Iterable[PlacedText]) -> Iterator[Finding]:
    """A quotation mark without its partner in any texts."""
    for text, field, place, record in texts:
        if text.count('"') % 2 and '{"' not in text:  # which is LaTeX, and said to be
            message = f"{quote(field)} holds a quotation mark without its partner: {quote(text)}; add or remove one"
            yield Finding("M107", message, place(), record)


def check_sentences(loaded: Loaded) -> Iterator[Finding]:
    """A summary or reason that is longer than a line of a list can bear, or that ends without a period."""
    for index, paper in enumerate(loaded.papers):
        yield from sentence_findings("summary", paper.summary, loaded.paper_places, index, paper.key)
    for index, exclusion in enumerate(loaded.exclusions):
        yield from sentence_findings("reason", exclusion.reason, loaded.exclusion_places, index, exclusion.id)


def check_placeholders(loaded: Loaded) -> Iterator[Finding]:
    """A summary that is missing, or that somebody meant to write later."""
    for index, paper in enumerate(loaded.papers):
        if paper.summary not in ("", TO_BE_WRITTEN):
            continue
        place = loaded.paper_places.locate(index, "summary")
        if paper.summary or (paper.key and place == loaded.paper_places.locate(index)):  # else it could not be read
            message = f"no summary yet; say in one sentence what it does: corpus tag {paper.key} summary=..."
            yield Finding("M109", message, place, paper.key)


def _may_hold_markup(text: str) -> bool:
    """Return True if the patterns are worth compiling and trying; most records never need them."""
    if "\\" in text or "`" in text or "<" in text or "](" in text or "{" in text:
        return True
    return text.count("$") > 1 or ("&" in text and ";" in text)


def _suspects(loaded: Loaded, is_suspect: Callable[[str], bool]) -> Iterator[PlacedText]:
    """Yield the texts that pass a test; a record is tested as a whole first."""
    for index, paper in enumerate(loaded.papers):
        notes = [f"{item.note}\n{item.location}" for item in paper.evidence]
        fixed = [getattr(paper, name) or "" for name in _TEXTS]
        if is_suspect("\n".join((*fixed, *paper.authors, *notes))):
            placed: list[tuple[str, str, Path]] = [(getattr(paper, name) or "", name, (name,)) for name in _TEXTS]
            placed += [(author, "authors", ("authors", at)) for at, author in enumerate(paper.authors)]
            for at, item in enumerate(paper.evidence):
                placed += [(item.note, "note", ("evidence", at, "note"))]
                placed += [(item.location or "", "location", ("evidence", at, "location"))]
            for text, field, path in placed:
                if is_suspect(text):
                    yield text, field, partial(loaded.paper_places.locate, index, *path), paper.key
    for index, exclusion in enumerate(loaded.exclusions):
        for field in ("title", "identifier", "reason", "near_miss"):
            text = getattr(exclusion, field) or ""
            if is_suspect(text):
                yield text, field, partial(loaded.exclusion_places.locate, index, field), exclusion.id


def sentence_findings(field: str, text: str, places: Places, index: int, record: str) -> Iterator[Finding]:
    """Yield the findings on a sentence of the record at an index: its length, its end."""
    if len(text) > MAX_SENTENCE:
        message = f"{quote(field)} has {len(text)} characters; keep it to {MAX_SENTENCE}, one sentence"
        yield Finding("M105", message, places.locate(index, field), record)
    if text and not text.endswith("."):
        message = f"{quote(field)} does not end with a period; add one"
        yield Finding("M106", message, places.locate(index, field), record)


def check_lookalikes(loaded: Loaded) -> Iterator[Finding]:
    """Words of several scripts, hosts beyond ASCII, and characters that show nothing."""
    for file in dict.fromkeys((loaded.paper_places.file, loaded.exclusion_places.file)):
        yield from find_lookalikes(file)


def find_lookalikes(file: YamlFile) -> Iterator[Finding]:
    """Yield the findings of `check_lookalikes` in any data file."""
    text = file.text
    may_escape = "\\x" in text or "\\u" in text or "\\U" in text
    is_suspect = any(odd_parts(text, file.beyond_ascii)) or (may_escape and re.search(_ESCAPED, text))
    if not is_suspect or is_malformed(file.findings):  # nearly all files, which need no second reading
        return
    root = YamlFile(file.path, text.encode()).root()
    for record in root.items if type(root) is Sequence else [root]:
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
