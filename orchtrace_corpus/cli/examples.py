"""The examples of a `--help`, and the excerpts of rules, in the words of the corpus at hand.

They are written for the corpus that comes with the tool. In another one, a field, term or key that it does not have
gives way to one that it has: in an example by the form that the command declares for the word, in an excerpt by the
kind of its facet.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle

from orchtrace_corpus.base.commands.declarations import CommandGroup, Parameter
from orchtrace_corpus.base.commands.output import Output
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, CorpusError
from orchtrace_corpus.cli import completion
from orchtrace_corpus.corpus.analysis.attributes import (
    candidate_attributes,
    exclusion_attributes,
    find,
    paper_attributes,
)
from orchtrace_corpus.corpus.analysis.search import find_records
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.fields import NOT_APPLICABLE
from orchtrace_corpus.corpus.model.records import Pool
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Term

_EXAMPLE = re.compile(r"^ +corpus (?P<words>.+)\n?", re.MULTILINE)
_WORD = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*')+""")


class _MissingError(Exception):
    """The corpus has nothing that an example could name instead."""


def adapted(text: str, session: Session) -> str:
    """A help text whose examples name what the corpus at hand has; those that have nothing to name are left out.

    Args:
        text: The help text.
        session: Where the corpus is.
    """
    if not _EXAMPLE.search(text):
        return text
    output = Output()
    output.quiet = True  # that the corpus is the bundled one, a help need not say
    try:
        files = CorpusSession(output, session.root).files
        pool = files.loaded.pool
    except CorpusError:  # the command itself says what is wrong with it
        return text
    if pool is None:
        return text
    shown: set[str] = set()

    def line(match: re.Match[str]) -> str:
        try:
            made = " ".join(_words(_WORD.findall(match["words"]), pool, files.root))
        except _MissingError:
            return ""
        is_again = made in shown
        shown.add(made)
        return "" if is_again else match[0].replace(match["words"], made)

    return _EXAMPLE.sub(line, text)


def _words(words: Sequence[str], pool: Pool, root: str) -> Iterator[str]:
    """The words of an example, those replaced that the corpus does not have."""
    plain = [re.sub("[\"']", "", word) for word in words]
    place = completion.place_of(plain)
    command = place.command.place if place is not None and place.command is not None else ""
    if place is None or not command.startswith(("corpus.", "cli.designs")) or isinstance(place.found, CommandGroup):
        yield from words
        return
    head = len(words) - len(place.words)
    yield from words[:head]
    known = list(completion.parameters_of(place._replace(root=root)))
    options = {name: one for one in known for name in one.names}
    arguments = [one for one in known if not one.names]
    corpus = _Corpus(pool, root, command, of_exclusions="--exclusions" in plain)
    rest, bare = list(zip(words[head:], plain[head:], strict=True)), 0
    while rest:
        word, text = rest.pop(0)
        if text in options:
            yield word
            for value, inner in rest[: options[text].word_count]:
                yield _quoted(value, inner, corpus.word(options[text], inner))
            del rest[: options[text].word_count]
        elif text.startswith("--"):  # an option of a facet that this taxonomy does not declare
            del rest[:1]
        elif arguments:
            argument = arguments[min(bare, len(arguments) - 1)]
            yield _quoted(word, text, corpus.word(argument, text))
            bare += 1
        else:
            yield word


def _quoted(word: str, text: str, made: str) -> str:
    return word if made == text else f'"{made}"' if re.search(r"[\s<>~!&|*]", made) else made


class _Corpus:
    """What examples can name of a corpus; a line never names the same thing twice where there is another."""

    def __init__(self, pool: Pool, root: str, command: str, *, of_exclusions: bool) -> None:
        self._pool, self._root, self._command = pool, root, command
        self._named: list[str] = []
        excluded = exclusion_attributes(pool.taxonomy)
        self._attributes = excluded if of_exclusions else {**excluded, **paper_attributes(pool.taxonomy, marked=True)}
        if command.endswith((":candidates", ":screen")):
            self._attributes = candidate_attributes(pool.taxonomy)
        own = pool.taxonomy.exclusions if of_exclusions else (*pool.taxonomy.axes, *pool.taxonomy.papers)
        self._spare = [facet.field for facet in dict.fromkeys(own) if facet.kind is not Kind.LEVELS]
        self._spare += [term.id for facet in own if facet.kind is Kind.LEVELS for term in facet.terms]
        self._spare = list(dict.fromkeys(self._spare))

    def word(self, parameter: Parameter, text: str) -> str:
        """A word for a parameter: the one that is there, if it means something in this corpus."""
        form = completion.form_of(parameter)
        is_column = form in ("A,B,", "COLUMN") and not self._command.endswith(":terms")  # whose columns are no fields
        if (is_column and text != "all") or form in ("FIELD", "FIELD FIELD", "A B", "ROWS", "COLUMNS"):
            return ",".join(self._field(name) for name in text.split(","))
        if form in ("FILTER", "FIELD=VALUE"):
            return self._filter(text)
        return self._name(text) if form in ("KEY", "ID") and not parameter.names else text

    def _field(self, name: str) -> str:
        """The field of that name, with the sign of a falling order; else the next that no word has named."""
        bare = name.removeprefix("-")
        try:
            find(bare, self._attributes)
        except CommandUseError:
            name = name.replace(bare, self._next())
        if bare in self._spare:
            self._spare.remove(bare)
        return name

    def _next(self) -> str:
        if not self._spare:
            raise _MissingError
        return self._spare.pop(0)

    def _filter(self, text: str) -> str:
        """The filter, or one like it: on another field, or with other values."""
        match = completion.FILTER.fullmatch(text)
        assert match is not None  # examples are tested
        field, operator, value = match.groups()
        name = self._field(field)
        attribute = self._attributes[name] if name in self._attributes else find(name, self._attributes)
        if name != field or (attribute.terms and value and operator in ("=", "!=")):
            known = (*attribute.allowed, "NA")
            values = value.split(",")
            if not set(values) <= {*known, *(term.code for term in attribute.terms)}:
                value = ",".join(attribute.allowed[: len(values)])
        return f"{name}{operator}{value}"

    def _name(self, text: str) -> str:
        """The name of a record or claim, or the first like it."""
        if self._command.endswith(":claims"):
            names = [name for name, _ in completion.claim_ids(self._root)]
        elif find_records(self._pool, text):
            return text
        else:
            is_exclusion = re.fullmatch(r"E\d+", text) or self._command.endswith(":promote")
            names = [record.name for record in (self._pool.exclusions if is_exclusion else self._pool.papers)]
        left = [name for name in names if name not in self._named]
        if not left:
            raise _MissingError
        self._named.append(text if text in names else left[0])
        return self._named[-1]


def excerpt_adapter(session: Session) -> Callable[[str], str]:
    """A function that puts the fields and terms of the corpus at hand into an excerpt of a data file."""
    output = Output()
    output.quiet = True
    try:
        theirs = CorpusSession(output, session.root).taxonomy()
        own = CorpusSession(output, store.bundled_root().path).taxonomy()
    except CorpusError:  # the rules are the same, with or without a corpus
        return str
    known = {facet.field for facet in (*theirs.papers, *theirs.exclusions, *theirs.evidence)}
    pairs: dict[str, tuple[Facet, Facet]] = {}
    for ours, others in zip(
        (own.papers, own.exclusions, own.evidence), (theirs.papers, theirs.exclusions, theirs.evidence), strict=True
    ):
        for facet in ours:
            alike = [one for one in others if one.kind is facet.kind and one.allows_na is facet.allows_na]
            alike = alike or [one for one in others if one.kind is facet.kind]
            if alike and facet.field not in known:
                number = [one.field for one in ours if one.kind is facet.kind].index(facet.field)
                pairs[facet.field] = facet, alike[number % len(alike)]
    return lambda text: "\n".join(_excerpt_line(line, pairs) for line in text.split("\n"))


def _excerpt_line(line: str, pairs: Mapping[str, tuple[Facet, Facet]]) -> str:
    match = re.fullmatch(r"([ -]*)(\w+): (.*)", line)
    if match is None:
        return line
    head, field, value = match.groups()
    if field == "tags":  # of evidence, which names fields
        value = re.sub(r"\w+", lambda word: pairs[word[0]][1].field if word[0] in pairs else word[0], value)
        return f"{head}tags: {value}"
    if field not in pairs or "://" in value:  # evidence has a `source` of its own
        return line
    own, other = pairs[field]
    terms = _counterparts(own.terms, other.terms) | _counterparts(own.levels, other.levels)
    wrong = other.terms[0].id[1::-1] + other.terms[0].id[2:]  # a slip of the keyboard, as in our excerpt
    value = re.sub(r"[\w-]+", lambda word: word[0] if word[0] == NOT_APPLICABLE else terms.get(word[0], wrong), value)
    return f"{head}{other.field}: {value}"


def _counterparts(own: Sequence[Term], other: Sequence[Term]) -> dict[str, str]:
    """For each of our terms and codes, one of another vocabulary, in its order."""
    pairs = list(zip(own, cycle(other), strict=False)) if other else []
    return {term.id: one.id for term, one in pairs} | {one.code: two.code or two.id for one, two in pairs if one.code}
