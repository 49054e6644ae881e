"""Specifications of rewards: the functions and weights that make up a reward, with the evidence for each.

A specification is a YAML file; `schema.json` in this folder describes it. Those of published methods are in
`data/rewards`. There, each term has evidence with the line that proves it. Points that a source leaves open, and parts
that no trace can show, are declared. Test vectors compare the terms with values of the released code.
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
"""Every function that a term may name, in the order of listings."""

CHOICES = {
    ("outcome", "channel"): tuple(outcomes.CHANNELS),
    ("shaping", "potential"): ("returned", "results"),
    ("team_speed_up", "baseline"): ("serial", "stated"),
    ("tokens", "types"): tuple(EventType),
    ("usd", "types"): tuple(EventType),
}
"""The allowed values of options that take one or several of a few words, by function and option."""

LEVELS = ("paper", "code", "docs", "secondary")
"""The kinds of source of a term's evidence, the most reliable first."""

GATES = ("outcome", "spawns")
"""Conditions of a term: `outcome`: the run's outcome (channel `team`) is above 0; `spawns`: an agent is spawned."""

MAX_MISTAKES = 20
"""The most mistakes of a specification that a message lists; further ones are only counted."""

_HINT = "docs/rewards.md shows a specification."


class Evidence(NamedTuple):
    """The source of a term.

    Attributes:
        note: What the source says, in a sentence.
        source: The address of the source, with the line if it has lines.
        level: The kind of source, one of `LEVELS`.
        copy: Whether the text was read in a copy instead of at the address itself.
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
        trace: The path of the run.
        options: Options that replace those of the terms, by name, such as the settings of that run.
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
        name: The name, unique within a specification.
        function: The function that computes it.
        weight: The factor by which its value is multiplied.
        options: The options of the function that differ from its defaults.
        range: The lowest and the highest value; values outside are clamped.
        ramp: The values that become 0 and 1, linear between them; applied before the range.
        gates: Conditions from `GATES`; the term is 0 unless all hold.
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
        name: The name of its file without the extension.
        terms: The terms.
        title: A line that names it.
        paper: The key of the paper in the corpus; empty if it is from no paper.
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
            of_function = FUNCTIONS[term.function].options
            replaced = {name: value for name, value in options.items() if name in of_function}
            terms.append(term._replace(options={**term.options, **replaced}))
        return self._replace(terms=tuple(terms))


def of_families(families: tuple[str, ...] = ()) -> Spec:
    """Return a reward of every function in some families, each with weight 1; of all families if none is named.

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
    """Read a specification from a file, or by the name of one that comes with this package.

    Raises:
        CommandUseError: It is neither a file nor such a name.
        DataFileError: The file has mistakes; the message lists them with their lines.
    """
    path = given
    is_path = os.path.exists(given) or os.sep in given or given.endswith((".yaml", ".yml"))
    if not is_path:
        paths = published()
        if given not in paths:
            hint = "Name one of these, or a file."
            raise CommandUseError(f"there is no specification {quote(given)}{suggestion(given, list(paths))}", hint)
        path = paths[given]
    file = read(path, printable(path, limit=300))
    spec = _decode(file, os.path.splitext(os.path.basename(path))[0], os.path.dirname(path))
    mistakes = [f"{finding.location}: {finding.message}" for finding in file.findings]
    if mistakes or spec is None:
        more = [f"… and {len(mistakes) - MAX_MISTAKES} more"] if len(mistakes) > MAX_MISTAKES else []
        raise DataFileError("\n".join(("the specification has mistakes:", *mistakes[:MAX_MISTAKES], *more)), _HINT)
    return spec


def _decode(file: YamlFile, name: str, folder: str) -> Spec | None:
    """Decode a specification; None, with findings in the file, if it has mistakes."""
    report, root = Report(file), file.root()
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
    vectors = (vector._replace(trace=os.path.join(folder, *vector.trace.split("/"))) for vector in spec.vectors)
    return spec._replace(vectors=tuple(vectors))


def _term(node: Node, report: Report) -> TermSpec | None:
    term: TermSpec | None = decoders.decode_value(node, _term_schema(text_of(node, "function")), _term_spec, report)
    return term


@cache
def _term_schema(function: str) -> Schema:
    """Return the schema of a term, which depends on its function because of the options."""
    if function not in FUNCTIONS:
        return _TERM
    options = {name: _option(function, name, default) for name, default in FUNCTIONS[function].options.items()}
    options_schema = Schema(f"options of {function}", "", options, ())
    return _TERM._replace(
        decoders={**_TERM.decoders, "options": lambda node, report: decode_record(node, options_schema, report)}
    )


def _term_spec(*, function: str, name: str = "", **values: Any) -> TermSpec:
    """Return a term; without a name, it has the name of its function."""
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
    def parse(text: str) -> float:
        with suppress(ValueError):
            if isfinite(value := float(text)):
                return value
        raise ValueError(f"{quote(text)} is not a number")

    return decoders.parsed(name, "F105", parse)


def _words(name: str, allowed: tuple[str, ...]) -> Decoder:
    """Return the decoder of a list of allowed words."""
    return _list(name, decoders.word(name, f"value of {name}", allowed))


def _list(name: str, item: Decoder) -> Decoder:
    """A list of values of one kind, at least one."""

    def decode(node: Node, report: Report) -> tuple[Any, ...] | None:
        if type(node) is not Sequence or not node.items:
            report.add("F103", node.at, f"{quote(name)} must be a list of at least one")
            return None
        values = [item(value, report) for value in node.items]
        return None if None in values else tuple(values)

    return decode


def _pair(name: str, order: str) -> Decoder:
    """Return the decoder of two different numbers; those of a range must be in ascending order."""
    decode_numbers = _list(name, _number(name))

    def decode(node: Node, report: Report) -> tuple[float, float] | None:
        values = decode_numbers(node, report)
        if values is None:
            return None
        if len(values) != 2 or values[0] == values[1] or (name == "range" and values[0] > values[1]):
            report.add("F103", node.at, f"{quote(name)} is two different numbers, {order}")
            return None
        return values[0], values[1]

    return decode


def _point(node: Node, report: Report) -> Point | None:
    """Decode a point: a record, or a plain text, which is a point without a source."""
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
    options=decoders.by_name("options", decoders.text("an option")),  # if the function is unknown
    range=_pair("range", "the lower first"),
    ramp=_pair("ramp", "what counts as 0 first"),
    gates=_words("gates", GATES),
    evidence=decoders.record_list("evidence", _EVIDENCE, _evidence),
    open=_list("open", _point),
)._replace(required=("function",))
_VECTOR = decoders.schema_of(
    Vector,
    "a test vector",
    reward=_number("reward"),
    **{name: decoders.by_name(name, _number(name)) for name in ("options", "terms", "events", "agents")},
)
_SPEC = decoders.schema_of(
    Spec,
    "a specification",
    name=None,
    terms=_list("terms", _term),
    open=_list("open", _point),
    omitted=_list("omitted", _point),
    vectors=decoders.record_list("vectors", _VECTOR, Vector),
)._replace(required=("terms",))
