"""Specifications of rewards: which functions, with which weights, make up a reward, and what says so.

A specification is a YAML file; `schema.json` beside this module describes it. Those of published methods are in
`data/rewards`: each term has evidence from its source, and what a source leaves open is named as open.
"""

import os
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, NamedTuple

from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.files import installed_path
from orchtrace_corpus.base.findings import printable, quote, suggestion
from orchtrace_corpus.base.yamlfile.reader import Mapping as MappingNode
from orchtrace_corpus.base.yamlfile.reader import Node, Scalar, YamlFile, read
from orchtrace_corpus.base.yamlfile.reader import Sequence as SequenceNode
from orchtrace_corpus.trace.model.trace import EventType
from orchtrace_corpus.trace.rewards import orchestration, outcomes
from orchtrace_corpus.trace.rewards.terms import FAMILIES, Function

FUNCTIONS: dict[str, Function] = {one.name: one for one in (*outcomes.FUNCTIONS, *orchestration.FUNCTIONS)}
"""Every function that a term may name, in the order in which they are shown."""

CHOICES = {
    ("outcome", "channel"): tuple(outcomes.CHANNELS),
    ("shaping", "potential"): ("returned", "results"),
    ("team_speed_up", "baseline"): ("serial", "stated"),
    ("tokens", "types"): tuple(EventType),
    ("usd", "types"): tuple(EventType),
}
"""The values of the options that are one of a few words, or several of them."""

LEVELS = ("paper", "code", "docs", "secondary")
"""What kind of source the evidence of a term is, the most reliable first."""

_MOST_TOLD = 20
_HINT = "docs/rewards.md shows a specification."


class Evidence(NamedTuple):
    """What a term rests on.

    Attributes:
        note: What the source says, in a sentence.
        source: Its address.
        level: What kind of source it is, one of `LEVELS`.
        copy: Whether the text was read in a copy of that address.
    """

    note: str
    source: str
    level: str
    copy: bool = False


class TermSpec(NamedTuple):
    """A term of a reward, as specified.

    Attributes:
        name: Its name; no two of a specification share one.
        function: The function that computes it.
        weight: What its value is multiplied with.
        options: The options of the function that differ from its defaults.
        range: The least and the largest value that counts; what lies outside counts as the nearer of them.
        ramp: The values that count as 0 and as 1, and in proportion between them; applied before the range.
        evidence: What the term rests on.
        open: What the source leaves open, each in a sentence.
    """

    name: str
    function: str
    weight: float = 1.0
    options: Mapping[str, Any] = {}
    range: tuple[float, float] | None = None
    ramp: tuple[float, float] | None = None
    evidence: tuple[Evidence, ...] = ()
    open: tuple[str, ...] = ()

    @property
    def settings(self) -> Mapping[str, Any]:
        """All options of the function, defaults included."""
        usual = FUNCTIONS[self.function].options
        return {**usual, **self.options} if self.options else usual

    @property
    def family(self) -> str:
        """The code of its reward family."""
        return FUNCTIONS[self.function].family or outcomes.CHANNELS[self.settings["channel"]]


class Spec(NamedTuple):
    """A reward: the sum of its terms, each with its weight.

    Attributes:
        name: Its name: that of its file, without the ending.
        terms: The terms.
        title: What it is, in a line.
        paper: The key of the paper in the pool; empty where it is of none.
        open: What the source leaves open of the whole, each in a sentence.
        omitted: What the source pays for and no trace can tell, each in a sentence.
    """

    name: str
    terms: tuple[TermSpec, ...]
    title: str = ""
    paper: str = ""
    open: tuple[str, ...] = ()
    omitted: tuple[str, ...] = ()

    @property
    def families(self) -> tuple[str, ...]:
        """The codes of the families of its terms; more than one make it hybrid, R8."""
        return tuple(sorted({term.family for term in self.terms}))


def of_families(families: tuple[str, ...] = ()) -> Spec:
    """Every function of some families, each with weight 1; of all families where none is named.

    Raises:
        CommandUseError: There is no such family.
    """
    for one in families:
        if one not in FAMILIES:
            raise CommandUseError(f"there is no reward family {quote(one)}{suggestion(one, FAMILIES)}")
    terms = [TermSpec(f"outcome.{channel}", "outcome", options={"channel": channel}) for channel in outcomes.CHANNELS]
    terms += [TermSpec(name, name) for name in FUNCTIONS if name != "outcome"]
    wanted = [term for term in terms if not families or term.family in families]
    return Spec("functions", tuple(sorted(wanted, key=lambda term: term.family)), "Every function, with weight 1")


def published() -> dict[str, str]:
    """The specifications that come with this package, by name, each with its path."""
    folder = installed_path("data/rewards")
    files = sorted(name for name in os.listdir(folder) if name.endswith(".yaml")) if folder else ()
    return {name.removesuffix(".yaml"): os.path.join(folder, name) for name in files}


def load(given: str) -> Spec:
    """Read a specification: a file, or one that comes with this package, by its name.

    Raises:
        CommandUseError: It is neither a file nor such a name.
        DataFileError: The file has mistakes: the message lists them, each at its line.
    """
    path = given
    if not (os.path.exists(given) or os.sep in given or given.endswith((".yaml", ".yml"))):
        known = published()
        if given not in known:
            hint = "Name one of these, or a file."
            raise CommandUseError(f"there is no specification {quote(given)}{suggestion(given, list(known))}", hint)
        path = known[given]
    shown = printable(path, limit=300)
    file = read(path, shown)
    reading = _Reading(file)
    root = file.root()
    mistakes = [str(finding) for finding in file.findings]
    spec = reading.spec(root, os.path.splitext(os.path.basename(path))[0]) if root is not None else None
    mistakes += reading.mistakes
    if mistakes or spec is None:
        more = [f"… and {len(mistakes) - _MOST_TOLD} more"] if len(mistakes) > _MOST_TOLD else []
        raise DataFileError("\n".join(("the specification has mistakes:", *mistakes[:_MOST_TOLD], *more)), _HINT)
    return spec


class _Reading:
    """Decodes the nodes of a file, and collects what is wrong with them, each with its place."""

    def __init__(self, file: YamlFile) -> None:
        self._file = file
        self.mistakes: list[str] = []

    def spec(self, root: Node, name: str) -> Spec | None:
        fields = self._fields(root, "a specification", ("title", "paper", "terms", "open", "omitted"), ("terms",))
        terms: list[TermSpec] = []
        for node in self._items(fields.get("terms"), "terms"):
            if (term := self._term(node)) is not None:
                if any(term.name == one.name for one in terms):
                    self._wrong(node, f"a second term {quote(term.name)}; give each a name of its own")
                terms.append(term)
        if "terms" in fields and isinstance(fields["terms"], SequenceNode) and not fields["terms"].items:
            self._wrong(fields["terms"], "a reward has at least one term")
        title, paper = self._text(fields.get("title")), self._text(fields.get("paper"))
        left = self._texts(fields.get("open"), "open"), self._texts(fields.get("omitted"), "omitted")
        return Spec(name, tuple(terms), title, paper, *left)

    def _term(self, node: Node) -> TermSpec | None:
        known = ("name", "function", "weight", "options", "range", "ramp", "evidence", "open")
        fields = self._fields(node, "a term", known, ("function",))
        function = self._text(fields.get("function"))
        if function not in FUNCTIONS:
            if "function" in fields:
                said = f"there is no function {quote(function)}{suggestion(function, list(FUNCTIONS))}"
                self._wrong(fields["function"], said)
            return None
        options = self._options(fields.get("options"), FUNCTIONS[function])
        weight = self._number(fields["weight"]) if "weight" in fields else 1.0
        return TermSpec(
            self._text(fields.get("name")) or function, function, weight, options,
            self._pair(fields.get("range"), "range"), self._pair(fields.get("ramp"), "ramp"),
            tuple(self._evidence(fields.get("evidence"))), self._texts(fields.get("open"), "open"),
        )  # fmt: skip

    def _options(self, node: Node | None, function: Function) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if node is None:
            return found
        for name, value in self._fields(node, f"options of {function.name}", tuple(function.options), ()).items():
            usual = function.options[name]
            if isinstance(usual, float):
                found[name] = self._number(value)
                continue
            found[name] = self._texts(value, name) if isinstance(usual, tuple) else self._text(value)
            if allowed := CHOICES.get((function.name, name)):
                for text in found[name] if isinstance(usual, tuple) else (found[name],):
                    if text not in allowed:
                        self._wrong(value, f"{quote(text)} is none of {name}{suggestion(text, allowed)}")
        return found

    def _evidence(self, node: Node | None) -> Iterator[Evidence]:
        for item in self._items(node, "evidence"):
            needed = ("note", "source", "level")
            fields = self._fields(item, "an item of evidence", Evidence._fields, needed)
            note, source, level = (self._text(fields.get(name)) for name in needed)
            copy = self._text(fields.get("copy"))
            if "level" in fields and level not in LEVELS:
                self._wrong(fields["level"], f"{quote(level)} is not a level{suggestion(level, LEVELS)}")
            if copy not in ("", "yes"):
                self._wrong(
                    fields["copy"], f"{quote(copy)} is not 'yes'; leave it out where the source was read itself"
                )
            yield Evidence(note, source, level, bool(copy))

    def _fields(self, node: Node, what: str, known: tuple[str, ...], needed: tuple[str, ...]) -> dict[str, Node]:
        if not isinstance(node, MappingNode):
            self._wrong(node, f"{what} is an object")
            return {}
        for name, (at, _) in node.entries.items():
            if name not in known:
                self.mistakes.append(f"{self._file.location(at)}: {what} has no {quote(name)}{suggestion(name, known)}")
        for name in needed:
            if name not in node.entries:
                self._wrong(node, f"{what} needs {quote(name)}")
        return {name: value for name, (_, value) in node.entries.items() if name in known}

    def _items(self, node: Node | None, name: str) -> list[Node]:
        if node is None:
            return []
        if isinstance(node, SequenceNode):
            return node.items
        self._wrong(node, f"{quote(name)} is a list")
        return []

    def _text(self, node: Node | None) -> str:
        if node is None:
            return ""
        if isinstance(node, Scalar) and node.text.strip():
            return node.text
        self._wrong(node, "a text is wanted")
        return ""

    def _texts(self, node: Node | None, name: str) -> tuple[str, ...]:
        return tuple(self._text(item) for item in self._items(node, name))

    def _number(self, node: Node) -> float:
        try:
            found = float(node.text) if isinstance(node, Scalar) else float("nan")
        except ValueError:
            found = float("nan")
        if not isfinite(found):
            self._wrong(node, "a number is wanted")
            return 0.0
        return found

    def _pair(self, node: Node | None, name: str) -> tuple[float, float] | None:
        if node is None:
            return None
        numbers = [self._number(item) for item in self._items(node, name)]
        if len(numbers) != 2 or numbers[0] == numbers[1] or (name == "range" and numbers[0] > numbers[1]):
            order = "the lower first" if name == "range" else "what counts as 0 first"
            self._wrong(node, f"{quote(name)} is two different numbers, {order}")
            return None
        return numbers[0], numbers[1]

    def _wrong(self, node: Node, what: str) -> None:
        self.mistakes.append(f"{self._file.location(node.at)}: {what}")
