"""Specifications of rewards: the functions and weights that make up a reward, with the evidence for each.

A specification is a YAML file; `schema.json` in this folder describes it. The specifications of published methods are
in `data/rewards`. Each of their terms has evidence: a quoted line of a paper or of code. They also declare the points
that a source leaves open, and the parts of a reward that no trace can show. Test vectors compare their terms with
values of the released code.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cache, partial
from math import isfinite

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.files import installed_path
from orchtrace_corpus.base.findings import printable, quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile import decoders
from orchtrace_corpus.base.yamlfile.decoders import (
    Decoder,
    Report,
    Schema,
    decode_record,
    entries_of,
    items_of,
    text_of,
)
from orchtrace_corpus.base.yamlfile.reader import Node, Scalar, Sequence, YamlFile, read
from orchtrace_corpus.trace.model.terms import EventType
from orchtrace_corpus.trace.rewards import orchestration, outcomes
from orchtrace_corpus.trace.rewards.terms import FAMILIES, Function

FUNCTIONS: dict[str, Function] = {
    function.name: function for function in (*outcomes.FUNCTIONS, *orchestration.FUNCTIONS)
}
"""The functions that a term may name, by name, in the order in which lists show them."""

CHOICES = {
    ("outcome", "channel"): tuple(outcomes.CHANNELS),
    ("shaping", "potential"): ("returned", "results"),
    ("team_speed_up", "baseline"): ("serial", "stated"),
    ("tokens", "types"): tuple(EventType),
    ("usd", "types"): tuple(EventType),
}
"""The allowed values of each option that has a fixed set of values, by function and option."""

LEVELS = ("paper", "code", "docs", "secondary")
"""The kinds of source of a term's evidence, the most reliable first."""

GATES = ("outcome", "spawns")
"""The gates of a term. `outcome` demands a reward of the team above 0; `spawns` demands that an agent is spawned."""

MAX_MISTAKES = 20
"""The number of mistakes that a message lists; further mistakes are only counted."""

_HINT = "docs/rewards.md shows a specification."


class Evidence(NamedTuple):
    """The source of a term.

    Attributes:
        note: What the source says, in a sentence.
        source: The address of the source, with the line if it has lines.
        level: The kind of source, one of `LEVELS`.
        copy: True if the text was read in a copy instead of at the address itself.
        quote: The words of the source that prove the note; empty if none are quoted.
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
        source: The address that proves it, with the line; empty if there is none.
        quote: The words of the source; empty if none are quoted.
    """

    note: str
    source: str = ""
    quote: str = ""


class Vector(NamedTuple):
    """A test vector: a run, and the value that the released code gives for it.

    Attributes:
        note: The inputs and the origin of the value, in a sentence.
        source: The address of the code or log, with the lines.
        trace: The path of the run's trace.
        options: Options that replace those of the terms, by name: the settings that the run had.
        reward: The value of the whole reward; None if the source gives only values of terms, events or agents.
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
        name: The name, unique within a specification.
        function: The name of the function that computes the value, a key of `FUNCTIONS`.
        weight: The factor by which the value is multiplied.
        options: The options of the function that differ from their defaults.
        range: The lowest and the highest value; a value outside becomes the nearer of the two.
        ramp: The values of the function that become 0 and 1. Values between them are interpolated; values outside
            become 0 or 1. The ramp is applied before the range.
        gates: Conditions from `GATES`; the term is 0 unless all of them hold.
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
        """All options of the function by name, defaults included."""
        defaults = FUNCTIONS[self.function].defaults
        return {**defaults, **self.options} if self.options else defaults

    @property
    def family(self) -> str:
        """The code of the reward family of the term."""
        family = FUNCTIONS[self.function].family
        if not family:  # that of `outcome` depends on the channel
            family = outcomes.CHANNELS[self.settings["channel"]]
        return family


class Spec(NamedTuple):
    """A reward: the sum of its terms, each with its weight.

    Attributes:
        name: The name of its file without the extension.
        terms: The terms.
        title: A title, in one line.
        paper: The key of the paper in the corpus; empty if the reward is from no paper.
        open: Points that the source leaves open about the reward as a whole.
        omitted: Parts of the published reward that no trace can show.
        vectors: Test vectors from the released code.
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
        """The codes of the families of its terms; a reward with several is hybrid, R8."""
        return tuple(sorted({term.family for term in self.terms}))

    def with_options(self, options: Mapping[str, float]) -> "Spec":
        """Return the same reward with options replaced in every term whose function has them."""
        terms = []
        for term in self.terms:
            defaults = FUNCTIONS[term.function].defaults
            replaced = {name: value for name, value in options.items() if name in defaults}
            terms.append(term._replace(options={**term.options, **replaced}))
        return self._replace(terms=tuple(terms))


def spec_of_families(families: tuple[str, ...] = ()) -> Spec:
    """Return a reward with a term of weight 1 for each function of some families; of all families if none is named.

    Raises:
        CommandUseError: A family is unknown.
    """
    for family in families:
        if family not in FAMILIES:
            raise CommandUseError(f"there is no reward family {quote(family)}{suggestion(family, FAMILIES)}")
    terms = [TermSpec(f"outcome.{channel}", "outcome", options={"channel": channel}) for channel in outcomes.CHANNELS]
    terms += [TermSpec(name, name) for name in FUNCTIONS if name != "outcome"]
    if families:
        terms = [term for term in terms if term.family in families]
    terms.sort(key=lambda term: term.family)
    return Spec("functions", tuple(terms), title="Every function, with weight 1")


def published() -> dict[str, str]:
    """Return the paths of the specifications that come with this package, by name."""
    folder = installed_path("data/rewards")
    if not folder:
        return {}
    file_names = sorted(name for name in os.listdir(folder) if name.endswith(".yaml"))
    return {name.removesuffix(".yaml"): os.path.join(folder, name) for name in file_names}


def load(name_or_path: str) -> Spec:
    """Read a specification of a file, or a published one by its name.

    Raises:
        CommandUseError: The argument is neither a path nor a name of `published`.
        DataFileError: The file has mistakes; the message lists them with their lines.
    """
    path = name_or_path
    is_path = os.path.exists(path) or os.sep in path or path.endswith((".yaml", ".yml"))
    if not is_path:
        paths = published()
        if name_or_path not in paths:
            message = f"there is no specification {quote(name_or_path)}{suggestion(name_or_path, list(paths))}"
            raise CommandUseError(message, "Name one of these, or a file.")
        path = paths[name_or_path]
    file = read(path, printable(path, limit=300))
    name, _ = os.path.splitext(os.path.basename(path))
    spec = _decode(file, name, os.path.dirname(path))
    mistakes = [f"{finding.location}: {finding.message}" for finding in file.findings]
    if mistakes or spec is None:
        lines = ["the specification has mistakes:", *mistakes[:MAX_MISTAKES]]
        if len(mistakes) > MAX_MISTAKES:
            lines.append(f"… and {len(mistakes) - MAX_MISTAKES} more")
        raise DataFileError("\n".join(lines), _HINT)
    return spec


def _decode(file: YamlFile, name: str, folder: str) -> Spec | None:
    """Decode a specification; None, with findings added to the file, if it has mistakes."""
    report = Report(file)
    root = file.root()
    if root is None:
        return None
    spec: Spec | None = decoders.decode_value(root, _SPEC, partial(Spec, name), report)
    names: list[str] = []
    for node in items_of(root, "terms"):
        term = text_of(node, "name") or text_of(node, "function")
        if term in names:
            report.add("F108", node.at, f"a second term {quote(term)}; give each a name of its own")
        names.append(term)
    for node in items_of(root, "vectors"):
        for term, (at, _) in entries_of(node, "terms").items():
            if term not in names:
                report.add("F103", at, f"there is no term {quote(term)}{suggestion(term, list(dict.fromkeys(names)))}")
        if node.entries.keys().isdisjoint(("reward", "terms", "events", "agents")):
            report.add("F101", node.at, "a test vector needs 'reward', 'terms', 'events' or 'agents'")
    if spec is None or file.findings:
        return None
    vectors = []
    for vector in spec.vectors:
        trace_path = os.path.join(folder, *vector.trace.split("/"))  # paths in the file are relative to its folder
        vectors.append(vector._replace(trace=trace_path))
    return spec._replace(vectors=tuple(vectors))


def _term(node: Node, report: Report) -> TermSpec | None:
    schema = _term_schema(text_of(node, "function"))
    term: TermSpec | None = decoders.decode_value(node, schema, _term_spec, report)
    return term


@cache
def _term_schema(function: str) -> Schema:
    """Return the schema of a term with a function: each function has options of its own."""
    if function not in FUNCTIONS:
        return _TERM
    options = {name: _option(function, name, default) for name, default in FUNCTIONS[function].defaults.items()}
    options_schema = Schema(f"options of {function}", "", options, ())

    def decode_options(node: Node, report: Report) -> Any:
        return decode_record(node, options_schema, report)

    return _TERM._replace(decoders={**_TERM.decoders, "options": decode_options})


def _term_spec(*, function: str, name: str = "", **values: Any) -> TermSpec:
    """Return a term; a term without a name has the name of its function."""
    return TermSpec(name or function, function, **values)


def _option(function: str, name: str, default: object) -> Decoder:
    """Return the decoder of an option, chosen by the type of its default."""
    choices = CHOICES.get((function, name))
    if isinstance(default, float):
        return _number(name)
    if isinstance(default, dict):
        return decoders.by_name(name, _number(name))
    if isinstance(default, tuple):
        return _words(name, choices) if choices else decoders.text_list(name)
    return decoders.word(name, f"value of {name}", choices) if choices else decoders.text(name)


def _number(name: str) -> Decoder:
    """Return the decoder of a finite number."""

    def parse(text: str) -> float:
        with suppress(ValueError):
            value = float(text)
            if isfinite(value):
                return value
        raise ValueError(f"{quote(text)} is not a number")

    return decoders.parsed(name, "F105", parse)


def _words(name: str, allowed: tuple[str, ...]) -> Decoder:
    """Return the decoder of a list of allowed words."""
    return _list(name, decoders.word(name, f"value of {name}", allowed))


def _list(name: str, decode_item: Decoder) -> Decoder:
    """Return the decoder of a list with at least one item; it returns None if an item has a mistake."""

    def decode(node: Node, report: Report) -> tuple[Any, ...] | None:
        if type(node) is not Sequence or not node.items:
            report.add("F103", node.at, f"{quote(name)} must be a list of at least one")
            return None
        values = [decode_item(item, report) for item in node.items]
        return None if None in values else tuple(values)

    return decode


def _pair(name: str, order: str) -> Decoder:
    """Return the decoder of two different numbers; a range must ascend. `order` completes the error message."""
    decode_numbers = _list(name, _number(name))

    def decode(node: Node, report: Report) -> tuple[float, float] | None:
        values = decode_numbers(node, report)
        if values is None:
            return None
        is_valid = len(values) == 2 and values[0] != values[1]
        if is_valid and name == "range":
            is_valid = values[0] < values[1]
        if not is_valid:
            report.add("F103", node.at, f"{quote(name)} is two different numbers, {order}")
            return None
        return values[0], values[1]

    return decode


def _point(node: Node, report: Report) -> Point | None:
    """Decode a point: a record, or a text, which is the note of a point without a source."""
    if type(node) is Scalar:
        note = decoders.checked_text("a point", node, report)
        return None if note is None else Point(note)
    point: Point | None = decoders.decode_value(node, _POINT, Point, report)
    return point


def _evidence(*, copy: str = "", **values: Any) -> Evidence:
    return Evidence(**values, copy=bool(copy))


_POINT = decoders.schema_of(Point, "a point")
_EVIDENCE = decoders.schema_of(
    Evidence,
    "an item of evidence",
    level=decoders.word("level", "level", LEVELS),
    copy=decoders.word("copy", "value of copy", ("yes",)),
)
_TERM = decoders.schema_of(
    TermSpec,
    "a term",
    "name",
    function=decoders.word("function", "function", tuple(FUNCTIONS)),
    weight=_number("weight"),
    options=decoders.by_name("options", decoders.text("an option")),  # replaced if the function is known
    range=_pair("range", "the lower first"),
    ramp=_pair("ramp", "what counts as 0 first"),
    gates=_words("gates", GATES),
    evidence=decoders.record_list("evidence", _EVIDENCE, _evidence),
    open=_list("open", _point),
)._replace(required=("function",))  # a term without a name has that of its function
_VECTOR = decoders.schema_of(
    Vector,
    "a test vector",
    reward=_number("reward"),
    **{name: decoders.by_name(name, _number(name)) for name in ("options", "terms", "events", "agents")},
)
_SPEC = decoders.schema_of(
    Spec,
    "a specification",
    name=None,  # from the name of the file
    terms=_list("terms", _term),
    open=_list("open", _point),
    omitted=_list("omitted", _point),
    vectors=decoders.record_list("vectors", _VECTOR, Vector),
)._replace(required=("terms",))
