"""The typed decoder and schema.json say the same of every text, and what they let pass never ends in a traceback.

`pytest -m slow` runs 10,000 mutated traces; `FUZZ_INPUTS=100000 FUZZ_SEED=7 pytest -m slow tests/test_trace_schema.py`
runs that many from that seed.
"""

import json
import os
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from enum import StrEnum
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import orchtrace_corpus as oc
from orchtrace_corpus.base.errors import CorpusError
from orchtrace_corpus.base.findings import RULES, Finding, has_errors
from orchtrace_corpus.base.text.layout import plain
from orchtrace_corpus.base.text.table import envelope
from orchtrace_corpus.trace import rules
from orchtrace_corpus.trace.analysis.labels import labels
from orchtrace_corpus.trace.analysis.replay import replay
from orchtrace_corpus.trace.credit.assign import Choices, Method, assign
from orchtrace_corpus.trace.credit.evidence import find_evidence
from orchtrace_corpus.trace.diagnosis.comparison import compare
from orchtrace_corpus.trace.exporters.published import publish
from orchtrace_corpus.trace.measures.definitions import measure
from orchtrace_corpus.trace.measures.ledger import GROUPINGS, ledger
from orchtrace_corpus.trace.model import terms as vocabulary
from orchtrace_corpus.trace.model import trace as model
from orchtrace_corpus.trace.model.decode import Document, decode
from orchtrace_corpus.trace.model.json_text import Oversized, loads, text
from orchtrace_corpus.trace.model.refusal import schema
from orchtrace_corpus.trace.model.terms import CREDIT_UNITS, REWARD_FAMILIES
from orchtrace_corpus.trace.model.trace import Trace
from orchtrace_corpus.trace.render import graph as trace_graph
from orchtrace_corpus.trace.render import measures as trace_measures
from orchtrace_corpus.trace.render import show
from orchtrace_corpus.trace.render.tables import credit_data, label_summary, labelled_events
from orchtrace_corpus.trace.view import TraceView
from tests.conftest import ROOT
from tests.effort import tries
from tests.trace.test_views import PUBLISHED
from tests.trace.traces import EXAMPLES, documents, event, raw

TRAINED = raw(
    [
        event(
            "a", 0, "inference", "x", t_end=2, reward=-0.5, finish_reason="stop", t_request=0.5, t_first_token=1,
            token_refs={"input_ids": "x.json#/0", "output_ids": "x.json#/1", "logprobs": "x.json#/2"},
        ),
        event("b", 2, "tool_call", "x", tool="run", t_end=9, run_time=3),
    ],
    "a>b",
    run={"group": "prompt-7", "attempt": 3, "seed": "18446744073709551615", "checkpoint": "step-1200"},
    agents=[{"id": "x", "reward": 1}],
)  # fmt: skip
"""A rollout with the fields that trainers keep."""

SOURCES = [*(json.loads(path.read_text(encoding="utf-8")) for path in EXAMPLES), TRAINED]


class Word:
    """JSON that Python would not write: a number in another spelling, or none at all."""

    def __init__(self, word: str) -> None:
        self.word = word


class Twice(dict[str, Any]):
    """An object in which a name is given twice: `again` stands before the value that counts."""

    again: tuple[str, Any] = ("", None)


NUMBERS = [0, 1, -1, 0.5, -0.25, 2**53 - 1, 2**53, 2**64, 1e300, 1.7e308, -1.7e308, 5e-324, 10**309]
WORDS = ["1.0", "-0", "-0.0", "1e3", "1E+2", "1e999", "-1e999", "1e-999", "9007199254740991.0", "1" + "0" * 5000]
NO_JSON = ["NaN", "Infinity", "-Infinity", "01", "1.", "+1", "tru", "'a'", "", "{,}", "[1,]", '"\\x"', '"\t"', "// x"]
TEXTS = ["", "x", "lead", "e1", "0", "1", "null", "true", "s", "ms", "step", "ok", "\u00e9", "\U0001f600", "a" * 300]
HALVES = ["\ud800", "\udc00", "a\ud83dz", "\ud83d\ude00\ude00"]
PLAIN: list[Any] = [None, True, False, [], {}, [[]], [None], {"a": {"b": [{}]}}, {"input": 1}, [1, "a"]]
ENUMS = sorted(
    {
        word
        for kind in vars(vocabulary).values()
        if isinstance(kind, type) and issubclass(kind, StrEnum) and kind is not StrEnum
        for word in kind
    }
)
ADDED = ("stop", "inference")
NAMES = ["x", "ID", "t ", "tokens", "type", "unit", "$schema", "T", "extra", "events", ""]


def everywhere(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """Every member of every object and list, with the object or list."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from everywhere(value[key], (*path, key))


def junk(chance: random.Random) -> Any:
    """A value that mostly does not belong where it goes."""
    kind = chance.choices(range(6), (6, 3, 1, 5, 1, 4))[0]
    if kind == 1:
        return Word(chance.choice(WORDS))
    if kind == 2:
        return Word(chance.choice(NO_JSON))
    return deepcopy(chance.choice([NUMBERS, WORDS, NO_JSON, TEXTS, HALVES, PLAIN][kind]))


def mutated(document: Any, chance: random.Random, *, only_published: bool = False) -> Any:
    """The document with one to three members changed, removed, renamed, repeated or added."""
    found = deepcopy(document)
    words = [word for word in ENUMS if word not in ADDED] if only_published else ENUMS
    names = ["x", "ID", "t ", "T", "extra", ""] if only_published else NAMES
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        places = list(everywhere(found))
        if not places:
            return junk(chance)
        holder, key = chance.choice(places)
        action = chance.randrange(10)
        if action == 9 and isinstance(holder[key], int | float):
            holder[key] = chance.choice((0, 1, 2, 0.5, 1e-9, 3, 1e9, 1e100, 1e300, 1.7e308, 5e-324))
        elif action <= 2 or action == 9:
            holder[key] = junk(chance)
        elif action == 3:
            holder[key] = str(chance.choice(words))
        elif action == 4:
            del holder[key]
        elif action == 5 and isinstance(holder, dict):
            holder[chance.choice(names)] = holder.pop(key)
        elif action == 6 and isinstance(holder, dict):
            holder[chance.choice(names)] = junk(chance)
        elif action == 7:
            other, name = chance.choice(places)
            if name in other if isinstance(other, dict) else name < len(other):
                holder[key] = deepcopy(other[name])
        elif isinstance(holder, list):
            holder.insert(chance.randrange(len(holder) + 1), deepcopy(holder[key]))
    return found


def written(value: Any) -> str:
    """The value as JSON text, or as what is none."""
    if isinstance(value, Word):
        return value.word
    if isinstance(value, dict):
        parts = [f"{json.dumps(name)}: {written(one)}" for name, one in value.items()]
        if isinstance(value, Twice):
            parts.insert(0, f"{json.dumps(value.again[0])}: {written(value.again[1])}")
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    return json.dumps(value)


def flipped(data: bytes, chance: random.Random) -> bytes:
    """The bytes cut short, with one of them changed, taken out or repeated."""
    found = bytearray(data)
    at = chance.randrange(len(found))
    action = chance.randrange(4)
    if action == 0:
        del found[at:]
    elif action == 1:
        found[at] = chance.choice(b'{}[],:"\\0-.eEn \n\t\x00\x80\xff\xed')
    elif action == 2:
        del found[at : at + chance.choice((1, 1, 2, 20))]
    else:
        found[at:at] = found[at : at + chance.choice((1, 1, 2, 20))]
    return bytes(found)


def with_a_name_twice(document: Any, chance: random.Random) -> Any:
    """The document with one name of one object given twice."""
    found = deepcopy(document)
    places = [(holder, key) for holder, key in everywhere(found) if isinstance(holder[key], dict) and holder[key]]
    if places:
        holder, key = chance.choice(places)
        holder[key] = Twice(holder[key])
        holder[key].again = (chance.choice(list(holder[key])), junk(chance))
    return found


def strictly(data: bytes) -> Any:
    """The value of a strict JSON text.

    Raises:
        ValueError: It is none: not UTF-8, NaN or an infinity, half of a surrogate pair.
        RecursionError: It is nested too deeply.
    """
    everything = json.loads(data.decode(), parse_constant=_no_number, parse_int=float, object_pairs_hook=list)
    json.dumps(everything, ensure_ascii=False).encode()  # refuses halves of surrogate pairs
    return loads(data)


def _no_number(word: str) -> Any:
    raise ValueError(word)


@cache
def validator() -> Draft202012Validator:
    return Draft202012Validator(schema())


def holds_oversized(value: Any) -> bool:
    return isinstance(value, Oversized) or any(isinstance(holder[key], Oversized) for holder, key in everywhere(value))


def accepts(data: bytes) -> bool:
    """Whether the schema takes a text, read strictly. An import report holds anything but oversized numbers."""
    try:
        value = strictly(data)
    except (ValueError, RecursionError):
        return False
    return validator().is_valid(value) and not holds_oversized(value.get("import_report"))


def check(data: bytes) -> tuple[Trace | None, tuple[Finding, ...]]:
    """Decode and check a text; every finding has a place inside it."""
    decoded = decode(Document(data, "t.json"))
    found = rules.check(decoded)
    lines = data.decode("utf-8", "replace").split("\n")
    for finding in found:
        assert finding.code in RULES
        assert 1 <= finding.location.line <= len(lines)
        assert 1 <= finding.location.column <= len(lines[finding.location.line - 1]) + 1
    assert decoded.trace is not None or has_errors(found)
    return decoded.trace, found


def gives_a_name_twice(data: bytes) -> bool:
    found = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        found.append(len(dict(pairs)) < len(pairs))

    json.loads(data.decode(), object_pairs_hook=note, parse_int=float)
    return any(found)


def check_agreement(data: bytes) -> bool:
    """Hold decoder and schema against each other; whether they accept.

    Of a name given twice the schema sees the last value, while the decoder asks that all of them are right.
    """
    found, findings = check(data)
    accepted = accepts(data)
    if (found is not None) != accepted:
        assert found is None, (data, findings)
        assert gives_a_name_twice(data), (data, findings)
    return accepted


def check_use(data: bytes, chance: random.Random) -> bool:
    """Whether a text is a sound trace; if so, everything that commands do with one is done."""
    trace, findings = check(data)
    if trace is None or has_errors(findings):
        return False
    unit, method = chance.choice(CREDIT_UNITS), chance.choice(list(Method))
    channel = chance.choice(list(trace.rewards) or ["team"])
    tasks: list[Callable[[], object]] = [
        lambda: [plain(show.state_lines(state, {}, trace.clock.unit, 80)) for state in replay(trace)],
        lambda: [json.dumps(show.as_data(state), allow_nan=False) for state in replay(trace)],
        lambda: plain(show.page(trace, chance.choice([20, 80, None]))),
        lambda: envelope("trace-measures", trace_measures.data(TraceView(trace), measure(trace))),
        lambda: trace_measures.trace_table(TraceView(trace), measure(trace), exact=chance.random() < 0.5),
        lambda: [trace_measures.ledger_table(trace.trace_id, by, ledger(trace, by), chance.choice([40, None]), is_least=True) for by in GROUPINGS],
        lambda: (label_summary(trace, labels(trace)), labelled_events(trace, labels(trace), {})),
        lambda: compare(trace, trace),
        lambda: (trace_graph.mermaid(trace), trace_graph.dot(trace), trace_graph.timeline(trace)),
        lambda: text(loads(data)),
        lambda: text(publish(loads(data))),
        lambda: envelope("trace-credit", credit_data(assign([trace, trace], unit, method,
                                                                 Choices(channel, samples=4)), unit, method, channel,
                                                          find_evidence(unit, method, has_values=False))),
    ]  # fmt: skip
    for task in tasks:
        with suppress(CorpusError):
            task()
    return True


def sample(chance: random.Random, document: Any) -> bytes:
    """A mutated trace as text."""
    value = mutated(document, chance)
    if chance.random() < 0.1:
        value = with_a_name_twice(value, chance)
    data = written(value).encode()
    return flipped(data, chance) if chance.random() < 0.1 else data


def fuzz_inputs() -> tuple[int, random.Random]:
    """How many inputs, and the source of chance, as the environment says."""
    return int(os.environ.get("FUZZ_INPUTS", "10000")), random.Random(os.environ.get("FUZZ_SEED", "1"))


RANDOM = st.randoms(use_true_random=False)
A_SOURCE = st.one_of(st.sampled_from(SOURCES), documents())


@settings(max_examples=tries(150, 20))
@given(A_SOURCE, RANDOM)
def test_decoder_and_schema_agree_on_mutated_traces(document: dict[str, Any], chance: random.Random) -> None:
    check_agreement(sample(chance, document))


@settings(max_examples=tries(60, 12))
@given(A_SOURCE, RANDOM)
def test_nothing_that_is_done_with_a_sound_trace_ends_in_a_traceback(
    document: dict[str, Any], chance: random.Random
) -> None:
    check_use(written(mutated(document, chance)).encode(), chance)


@pytest.mark.slow
def test_many_mutated_traces() -> None:
    inputs, chance = fuzz_inputs()
    accepted = sound = 0
    for _ in range(inputs):
        data = sample(chance, chance.choice(SOURCES))
        accepted += check_agreement(data)
        sound += check_use(data, chance)
    print(f"{inputs} inputs, {accepted} accepted by the schema, {sound} sound")  # noqa: T201
    assert 0 < sound < accepted < inputs


PUBLISHED_SOURCES = [publish(source) for source in SOURCES if None not in source["costs"].values()]
PUBLISHED_VALIDATOR = Draft202012Validator(PUBLISHED)


def without_nulls(value: Any) -> Any:
    """The value with a number for each figure that only we may leave unknown."""
    if not isinstance(value, dict):
        return value
    found = dict(value)
    for part, names in (("costs", ("tokens", "wall_clock_s")), ("metrics", None)):
        figures = found.get(part)
        if isinstance(figures, dict):
            found[part] = {
                name: 0 if figure is None and (names is None or name in names) else figure
                for name, figure in figures.items()
            }
    return found


def check_strictness(document: Any, chance: random.Random) -> bool:
    """Hold that we take nothing which the published schema refuses, null for unknown apart; whether we take it."""
    data = written(mutated(document, chance, only_published=True)).encode()
    trace, findings = check(data)
    if trace is None or has_errors(findings):
        return False
    assert PUBLISHED_VALIDATOR.is_valid(without_nulls(strictly(data))), data
    return True


@settings(max_examples=tries(150, 20))
@given(st.sampled_from(PUBLISHED_SOURCES), RANDOM)
def test_of_published_fields_we_take_nothing_that_the_published_schema_refuses(
    document: dict[str, Any], chance: random.Random
) -> None:
    check_strictness(document, chance)


@pytest.mark.slow
def test_of_published_fields_we_take_nothing_that_the_published_schema_refuses_of_many() -> None:
    inputs, chance = fuzz_inputs()
    taken = sum(check_strictness(chance.choice(PUBLISHED_SOURCES), chance) for _ in range(inputs))
    print(f"{inputs} inputs, {taken} taken")  # noqa: T201
    assert 0 < taken < inputs


@settings(max_examples=tries(150, 20))
@given(st.sampled_from(PUBLISHED_SOURCES), RANDOM)
def test_what_the_published_schema_takes_we_can_decode(document: dict[str, Any], chance: random.Random) -> None:
    data = written(mutated(document, chance, only_published=True)).encode()
    try:
        value = strictly(data)
    except ValueError:
        return
    if PUBLISHED_VALIDATOR.is_valid(value):
        assert decode(Document(data, "t.json")).trace is not None


def test_the_published_sources_are_valid_under_the_published_schema() -> None:
    assert len(PUBLISHED_SOURCES) == 8
    assert [source["trace_id"] for source in PUBLISHED_SOURCES if not PUBLISHED_VALIDATOR.is_valid(source)] == []


def test_the_schema_is_valid_and_describes_every_property() -> None:
    Draft202012Validator.check_schema(schema())

    undescribed = [
        f"{name}.{field}"
        for name, part in [("", schema()), *schema()["$defs"].items()]
        for field, rule in part.get("properties", {}).items()
        if not (rule.get("description") or schema()["$defs"][rule["$ref"].rpartition("/")[2]].get("description"))
    ]
    assert undescribed == []
    assert all(part["description"].endswith(".") for part in (schema(), *schema()["$defs"].values()))


@pytest.mark.parametrize(
    ("part", "field", "kind"),
    [
        ("", "topology", vocabulary.Topology),
        ("event", "type", vocabulary.EventType),
        ("event", "token_basis", vocabulary.TokenBasis),
        ("event", "status", vocabulary.Status),
        ("edge", "type", vocabulary.EdgeType),
        ("agent", "kind", vocabulary.AgentKind),
        ("clock", "unit", vocabulary.Unit),
    ],
)
def test_the_words_of_the_schema_are_those_of_the_types(part: str, field: str, kind: type[StrEnum]) -> None:
    home = schema()["$defs"][part] if part else schema()

    assert home["properties"][field]["enum"] == list(kind)


def test_the_fields_of_the_schema_are_those_of_the_types() -> None:
    def fields(struct: Any) -> set[str]:
        return set(struct.__struct_encode_fields__)

    parts = {"event": model.Event, "edge": model.Edge, "agent": model.Agent, "clock": model.Clock,
             "tokens": model.Tokens, "source": model.Source, "baseline": model.Baseline,
             "run": model.Run, "token_refs": model.TokenRefs}  # fmt: skip
    assert {name: set(schema()["$defs"][name]["properties"]) for name in parts} == {
        name: fields(struct) for name, struct in parts.items()
    }
    assert set(schema()["properties"]) == fields(Trace)
    assert set(schema()["$defs"]["costs"]["properties"]) == set(vocabulary.KNOWN_COSTS)


def test_channels_and_sub_decisions_are_those_of_the_bundled_taxonomy() -> None:
    taxonomy = oc.load(str(ROOT)).taxonomy
    terms = {facet.field: [term.id for term in facet.terms if term.id != "NA"] for facet in taxonomy.papers}
    event_fields = schema()["$defs"]["event"]["properties"]

    assert terms["reward_family"] == list(REWARD_FAMILIES) == schema()["$defs"]["reward_family"]["enum"]
    assert terms["credit_unit"] == list(CREDIT_UNITS) == schema()["$defs"]["credit_unit"]["enum"]
    assert terms["sub_decisions"] == list(vocabulary.Decision) == event_fields["sub_decisions"]["items"]["enum"]
    assert terms["sub_decisions"] == event_fields["sub_decision_rules"]["propertyNames"]["enum"]


SOUND = raw([event("a", 0, "message", "x"), event("b", 1, "return", "x")])


def changed(old: str, new: str) -> bytes:
    sound = json.dumps(SOUND)
    assert old in sound
    return sound.replace(old, new, 1).encode()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"t": 1', '"t": 1e999', "$.events[1].t: '1e999' is too large for a number"),
        ('"t": 1', '"t": 1' + "0" * 400, "is too large for a number"),
        ('"t": 1', '"t": NaN', "'NaN' is not a finite number; write null for unknown"),
        ('"t": 1', '"t": 1, "t_end": 1.5, "seq": 1.5', "$.events[1].seq: expected a whole number or null, got 1.5"),
        ('"t": 1', '"t": 1, "seq": 9007199254740992', "is out of range; at most 9007199254740991"),
        ('"t": 1', '"t": -1, "t": 1', "$.events[1].t: expected `float` >= 0.0; is the name given twice?"),
        ('{"trace_id"', '{"$schema": null, "trace_id"', "$.$schema: expected text, got null"),
        ('"t": 1', '"t": 1, "sub_decision_rules": {"spwn": "x"}', "unknown word 'spwn' (did you mean 'spawn'?"),
        ('"t": 1', '"t": 1, "sub_decision_rules": {"stop": 3}', "sub_decision_rules.stop: expected text, got 3"),
        ('"t": 1', '"t": 1, "trusted": 1', "$.events[1].trusted: expected true or false, got 1"),
        ('"t": 1', '"t": true', "$.events[1].t: expected a number, got true"),
        ('"t": 1', '"t": 1, "reward": "good"', "$.events[1].reward: expected a number or null, got 'good'"),
        ('"t": 1', '"t": 1, "t_first_token": -1', "$.events[1].t_first_token: -1 is out of range; at least 0"),
        ('"t": 1', '"t": 1, "token_refs": {"ids": "x"}', "unknown field 'ids'"),
        ('"rewards"', '"run": {"seed": 17}, "rewards"', "$.run.seed: expected text, got 17"),
        ('"rewards"', '"import_report": {"rows": 1e999}, "rewards"', "$.import_report: number out of range"),
        ('"t": 1', r'"t": 1, "x": "\ud83d\ude00 \ude00"', "half of a surrogate pair, which stands for no character"),
    ],
)
def test_what_decoder_and_schema_refuse_together(old: str, new: str, message: str) -> None:
    data = changed(old, new)
    trace, findings = check(data)

    assert trace is None
    assert [str(finding) for finding in findings if message in finding.message]


@pytest.mark.parametrize(
    "new",
    [
        '"t": 1.0',
        '"t": 1e0, "seq": 3.0, "tokens": {"input": 2E+2, "output": -0}',
        '"t": 1, "t": 2',
        '"t": 1, "of_my_own": [1e999, {"deep": [null]}]',
        r'"t": 1, "role": "\ud83d\ude00"',
        '"t": 1, "sub_decision_rules": {}',
        '"t": 1, "reward": -0.5, "finish_reason": "length", "t_request": 0.5, "t_first_token": null, "run_time": 2',
        '"t": 1, "token_refs": {"input_ids": "x.json#/0", "output_ids": "x.json#/1", "logprobs": ""}',
    ],
)
def test_what_decoder_and_schema_take_together(new: str) -> None:
    data = changed('"t": 1', new)

    assert check(data)[0] is not None
    assert accepts(data)


@pytest.mark.parametrize("number", ["1e999", "-1E+0999", "9" * 400, "[1e999, 2]"])
def test_a_number_that_no_double_holds_is_kept_as_written_where_nothing_looks_at_it(number: str) -> None:
    data = changed('"t": 1', f'"t": 1, "of_my_own": {number}')

    assert f'"of_my_own": {number}' in text(loads(data))
    assert check_use(data, random.Random(1))


def test_half_of_a_surrogate_pair_never_passes_for_a_number_that_is_kept_as_written() -> None:
    for new in (r'"x": "\ud8001e999"', r'"\ud800x": 1', r'"x": [{"\ud800": 1}]'):
        assert check(changed('"t": 1', f'"t": 1, {new}'))[0] is None


@pytest.mark.parametrize("depth", [50, 500, 900, 1000, 1100, 5000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_deep_nesting_is_taken_or_refused_but_never_a_traceback(depth: int) -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        for inside in ("1", ""):
            nested = opening * depth + inside + closing * depth
            trace, _ = check(changed('"t": 1', f'"t": 1, "x": {nested}'))
            assert trace is None or depth <= 1000
            check(changed('"rewards": {}', f'"rewards": {nested}'))
            check(nested.encode())


def test_the_half_pair_is_found_behind_a_whole_one() -> None:
    data = rb'{"a": "\\ud800 \ud83d\ude00", "b": "\ude00"}'

    assert [str(finding) for finding in decode(Document(data, "t.json")).findings] == [
        "t.json:1:37: T101 half of a surrogate pair, which stands for no character"
    ]


def test_what_is_no_number_is_found_where_it_is_one() -> None:
    data = b'{"a": "NaN",\n "b": NaN}'

    assert [str(finding) for finding in decode(Document(data, "t.json")).findings] == [
        "t.json:2:7: T104 'NaN' is not a finite number; write null for unknown"
    ]
