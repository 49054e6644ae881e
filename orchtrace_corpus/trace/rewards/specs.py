"""Specifications of rewards: which functions, with which weights, make up a reward, and what says so.

A specification is a YAML file; `schema.json` beside this module describes it. Those of published methods are in
`data/rewards`: each term has evidence with the line that proves it, points that a source leaves open and parts that no
trace can show are declared, and test vectors hold the terms to values of the released code.
"""

import os
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.files import installed_path
from orchtrace_corpus.base.findings import printable, quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.reader import Mapping as MappingNode
from orchtrace_corpus.base.yamlfile.reader import Node, Scalar, YamlFile, read
from orchtrace_corpus.base.yamlfile.reader import Sequence as SequenceNode
from orchtrace_corpus.trace.model.trace import EventType
from orchtrace_corpus.trace.rewards import orchestration, outcomes
from orchtrace_corpus.trace.rewards.terms import FAMILIES, Function

FUNCTIONS: dict[str, Function] = {
    function.name: function for function in (*outcomes.FUNCTIONS, *orchestration.FUNCTIONS)
}
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

GATES = ("outcome", "spawns")
"""Conditions of a term: `outcome`, the run's outcome (channel `team`) is above 0; `spawns`, an agent is spawned."""

MAX_MISTAKES = 20
"""The mistakes of a specification that a message lists; the others are counted."""

_HINT = "docs/rewards.md shows a specification."


class Evidence(NamedTuple):
    """The source of a term.

    Attributes:
        note: What the source says, in a sentence.
        source: Its address, with the line where there is one.
        level: The kind of source, one of `LEVELS`.
        copy: Whether the text was read in a copy of that address.
        quote: The words of the source that prove the note; empty where none are quoted.
    """

    note: str
    source: str
    level: str
    copy: bool = False
    quote: str = ""


class Point(NamedTuple):
    """A point that a source leaves open, or a part of its reward that no trace can show.

    Attributes:
        note: The point, in a sentence.
        source: The address that proves it, with the line; empty where none does.
        quote: The words of the source; empty where none are quoted.
    """

    note: str
    source: str = ""
    quote: str = ""


class Vector(NamedTuple):
    """A test vector: a run, and the value that the released code gives for it.

    Attributes:
        note: The inputs and how the value was had, in a sentence.
        source: The address of the code or log, with the lines.
        trace: The path of the run.
        options: Options of functions that replace those of the terms, by name; such as the settings of that run.
        reward: The value of the whole reward; None where the source gives only parts.
        terms: The weighted values of terms, by name.
        events: The weighted shares of events over all terms, by id.
        agents: The weighted shares of agents over all terms, by name.
    """

    note: str
    source: str
    trace: str
    options: Mapping[str, float] = {}
    reward: float | None = None
    terms: Mapping[str, float] = {}
    events: Mapping[str, float] = {}
    agents: Mapping[str, float] = {}


class TermSpec(NamedTuple):
    """A term of a reward, as specified.

    Attributes:
        name: Its name; no two of a specification share one.
        function: The function that computes it.
        weight: The factor of its value.
        options: The options of the function that differ from its defaults.
        range: The least and the largest value that counts; values outside count as the nearer of them.
        ramp: The values that count as 0 and as 1, and in proportion between them; applied before the range.
        gates: Conditions, of `GATES`, without which the term pays 0.
        evidence: The sources of the term.
        open: Points that the sources leave open.
    """

    name: str
    function: str
    weight: float = 1.0
    options: Mapping[str, Any] = {}
    range: tuple[float, float] | None = None
    ramp: tuple[float, float] | None = None
    gates: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    open: tuple[Point, ...] = ()

    @property
    def settings(self) -> Mapping[str, Any]:
        """All options of the function, defaults included."""
        defaults = FUNCTIONS[self.function].options
        return {**defaults, **self.options} if self.options else defaults

    @property
    def family(self) -> str:
        """The code of its reward family."""
        return FUNCTIONS[self.function].family or outcomes.CHANNELS[self.settings["channel"]]


class Spec(NamedTuple):
    """A reward: the sum of its terms, each with its weight.

    Attributes:
        name: Its name: that of its file, without the ending.
        terms: The terms.
        title: A line that names it.
        paper: The key of the paper in the pool; empty where it is of none.
        open: Points that the source leaves open of the whole.
        omitted: Parts of the published reward that no trace can show.
        vectors: Values of the released code that the terms are held to.
    """

    name: str
    terms: tuple[TermSpec, ...]
    title: str = ""
    paper: str = ""
    open: tuple[Point, ...] = ()
    omitted: tuple[Point, ...] = ()
    vectors: tuple[Vector, ...] = ()

    @property
    def families(self) -> tuple[str, ...]:
        """The codes of the families of its terms; more than one make it hybrid, R8."""
        return tuple(sorted({term.family for term in self.terms}))

    def with_options(self, options: Mapping[str, float]) -> "Spec":
        """Return the same reward with options replaced in every term whose function has them."""
        terms = []
        for term in self.terms:
            own = {name: value for name, value in options.items() if name in FUNCTIONS[term.function].options}
            terms.append(term._replace(options={**term.options, **own}))
        return self._replace(terms=tuple(terms))


def of_families(families: tuple[str, ...] = ()) -> Spec:
    """Return every function of some families, each with weight 1; of all families where none is named.

    Raises:
        CommandUseError: There is no such family.
    """
    for family in families:
        if family not in FAMILIES:
            raise CommandUseError(f"there is no reward family {quote(family)}{suggestion(family, FAMILIES)}")
    terms = [TermSpec(f"outcome.{channel}", "outcome", options={"channel": channel}) for channel in outcomes.CHANNELS]
    terms += [TermSpec(name, name) for name in FUNCTIONS if name != "outcome"]
    wanted = [term for term in terms if not families or term.family in families]
    return Spec("functions", tuple(sorted(wanted, key=lambda term: term.family)), "Every function, with weight 1")


def published() -> dict[str, str]:
    """Return the paths of the specifications that come with this package, by name."""
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
    file = read(path, printable(path, limit=300))
    decoder = _Decoder(file, os.path.dirname(path))
    root = file.root()
    mistakes = [str(finding) for finding in file.findings]
    spec = decoder.spec(root, os.path.splitext(os.path.basename(path))[0]) if root is not None else None
    mistakes += decoder.mistakes
    if mistakes or spec is None:
        more = [f"… and {len(mistakes) - MAX_MISTAKES} more"] if len(mistakes) > MAX_MISTAKES else []
        raise DataFileError("\n".join(("the specification has mistakes:", *mistakes[:MAX_MISTAKES], *more)), _HINT)
    return spec


class _Decoder:
    """Decodes the nodes of a file, and collects their mistakes, each with its place."""

    def __init__(self, file: YamlFile, folder: str) -> None:
        self._file = file
        self._folder = folder
        self.mistakes: list[str] = []

    def spec(self, root: Node, name: str) -> Spec | None:
        known = ("title", "paper", "terms", "open", "omitted", "vectors")
        fields = self._fields(root, "a specification", known, ("terms",))
        terms: list[TermSpec] = []
        for node in self._items(fields.get("terms"), "terms"):
            term = self._term(node)
            if term is None:
                continue
            if any(term.name == earlier.name for earlier in terms):
                self._add(node, f"a second term {quote(term.name)}; give each a name of its own")
            terms.append(term)
        if "terms" in fields and isinstance(fields["terms"], SequenceNode) and not fields["terms"].items:
            self._add(fields["terms"], "a reward has at least one term")
        vectors = [self._vector(node, terms) for node in self._items(fields.get("vectors"), "vectors")]
        return Spec(
            name, tuple(terms), self._text(fields.get("title")), self._text(fields.get("paper")),
            self._points(fields.get("open"), "open"), self._points(fields.get("omitted"), "omitted"), tuple(vectors),
        )  # fmt: skip

    def _term(self, node: Node) -> TermSpec | None:
        known = ("name", "function", "weight", "options", "range", "ramp", "gates", "evidence", "open")
        fields = self._fields(node, "a term", known, ("function",))
        function = self._text(fields.get("function"))
        if function not in FUNCTIONS:
            if "function" in fields:
                problem = f"there is no function {quote(function)}{suggestion(function, list(FUNCTIONS))}"
                self._add(fields["function"], problem)
            return None
        gates = self._texts(fields.get("gates"), "gates")
        for gate in gates:
            if gate not in GATES:
                self._add(fields["gates"], f"{quote(gate)} is not a gate{suggestion(gate, GATES)}")
        return TermSpec(
            self._text(fields.get("name")) or function,
            function,
            self._number(fields["weight"]) if "weight" in fields else 1.0,
            self._options(fields.get("options"), FUNCTIONS[function]),
            self._pair(fields.get("range"), "range"),
            self._pair(fields.get("ramp"), "ramp"),
            gates,
            tuple(self._evidence(fields.get("evidence"))),
            self._points(fields.get("open"), "open"),
        )

    def _options(self, node: Node | None, function: Function) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if node is None:
            return options
        for name, value in self._fields(node, f"options of {function.name}", tuple(function.options), ()).items():
            default = function.options[name]
            if isinstance(default, float):
                options[name] = self._number(value)
            elif isinstance(default, dict):
                options[name] = self._numbers(value, name)
            elif isinstance(default, tuple):
                options[name] = self._texts(value, name)
                self._require_choices(function.name, name, value, options[name])
            else:
                options[name] = self._text(value)
                self._require_choices(function.name, name, value, (options[name],))
        return options

    def _require_choices(self, function: str, option: str, node: Node, given: tuple[str, ...]) -> None:
        choices = CHOICES.get((function, option))
        if choices is None:
            return
        for text in given:
            if text not in choices:
                self._add(node, f"{quote(text)} is none of {option}{suggestion(text, choices)}")

    def _evidence(self, node: Node | None) -> Iterator[Evidence]:
        for item in self._items(node, "evidence"):
            needed = ("note", "source", "level")
            fields = self._fields(item, "an item of evidence", Evidence._fields, needed)
            note, source, level = (self._text(fields.get(name)) for name in needed)
            copy = self._text(fields.get("copy"))
            if "level" in fields and level not in LEVELS:
                self._add(fields["level"], f"{quote(level)} is not a level{suggestion(level, LEVELS)}")
            if copy not in ("", "yes"):
                self._add(fields["copy"], f"{quote(copy)} is not 'yes'; leave it out where the source was read itself")
            yield Evidence(note, source, level, bool(copy), self._text(fields.get("quote")))

    def _points(self, node: Node | None, name: str) -> tuple[Point, ...]:
        """Decode a list of points; a plain text is a point without a source."""
        points = []
        for item in self._items(node, name):
            if not isinstance(item, MappingNode):
                points.append(Point(self._text(item)))
                continue
            fields = self._fields(item, "a point", Point._fields, ("note",))
            points.append(Point(*(self._text(fields.get(field)) for field in Point._fields)))
        return tuple(points)

    def _vector(self, node: Node, terms: list[TermSpec]) -> Vector:
        fields = self._fields(node, "a test vector", Vector._fields, ("note", "source", "trace"))
        parts = {name: self._numbers(fields.get(name), name) for name in ("options", "terms", "events", "agents")}
        names = [term.name for term in terms]
        for name in parts["terms"]:
            if name not in names:
                self._add(fields["terms"], f"there is no term {quote(name)}{suggestion(name, names)}")
        reward = self._number(fields["reward"]) if "reward" in fields else None
        if (
            isinstance(node, MappingNode)
            and reward is None
            and not (parts["terms"] or parts["events"] or parts["agents"])
        ):
            self._add(node, "a test vector needs 'reward', 'terms', 'events' or 'agents'")
        return Vector(
            self._text(fields.get("note")),
            self._text(fields.get("source")),
            os.path.join(self._folder, *self._text(fields.get("trace")).split("/")),
            parts["options"],
            reward,
            parts["terms"],
            parts["events"],
            parts["agents"],
        )

    def _fields(self, node: Node, subject: str, known: tuple[str, ...], needed: tuple[str, ...]) -> dict[str, Node]:
        if not isinstance(node, MappingNode):
            self._add(node, f"{subject} is an object")
            return {}
        for name, (at, _) in node.entries.items():
            if name not in known:
                problem = f"{subject} has no {quote(name)}{suggestion(name, known)}"
                self.mistakes.append(f"{self._file.location(at)}: {problem}")
        for name in needed:
            if name not in node.entries:
                self._add(node, f"{subject} needs {quote(name)}")
        return {name: value for name, (_, value) in node.entries.items() if name in known}

    def _items(self, node: Node | None, name: str) -> list[Node]:
        if node is None:
            return []
        if isinstance(node, SequenceNode):
            return node.items
        self._add(node, f"{quote(name)} is a list")
        return []

    def _text(self, node: Node | None) -> str:
        if node is None:
            return ""
        if isinstance(node, Scalar) and node.text.strip():
            return node.text
        self._add(node, "a text is wanted")
        return ""

    def _texts(self, node: Node | None, name: str) -> tuple[str, ...]:
        return tuple(self._text(item) for item in self._items(node, name))

    def _number(self, node: Node) -> float:
        try:
            value = float(node.text) if isinstance(node, Scalar) else float("nan")
        except ValueError:
            value = float("nan")
        if not isfinite(value):
            self._add(node, "a number is wanted")
            return 0.0
        return value

    def _numbers(self, node: Node | None, name: str) -> dict[str, float]:
        """Decode an object of numbers, by name."""
        if node is None:
            return {}
        if not isinstance(node, MappingNode):
            self._add(node, f"{quote(name)} is an object of numbers")
            return {}
        return {key: self._number(value) for key, (_, value) in node.entries.items()}

    def _pair(self, node: Node | None, name: str) -> tuple[float, float] | None:
        if node is None:
            return None
        numbers = [self._number(item) for item in self._items(node, name)]
        if len(numbers) != 2 or numbers[0] == numbers[1] or (name == "range" and numbers[0] > numbers[1]):
            order = "the lower first" if name == "range" else "what counts as 0 first"
            self._add(node, f"{quote(name)} is two different numbers, {order}")
            return None
        return numbers[0], numbers[1]

    def _add(self, node: Node, problem: str) -> None:
        self.mistakes.append(f"{self._file.location(node.at)}: {problem}")
