"""T: traces, which `corpus trace validate` reads. Excerpts hold the fields of a trace that matter."""

from orchtrace_corpus.base.findings import Entry

_SPAWN = '{"id": "e1", "t": 0, "type": "spawn", "agent": "lead", "to": "scout"}'
_CALL = '{"id": "e1", "t": 0, "type": "tool_call", "agent": "lead", "call_id": "c1"}'
_RESULT = '{"id": "e2", "t": 1, "type": "tool_result", "agent": "lead", "call_id": "c1"}'
_EDGE = ',\n"edges": [{"src": "e1", "dst": "e2", "type": "spawn"}]'
_TWO = """\
"events": [
  {"id": "e1", "t": 0, "type": "inference", "agent": "lead"},
  {"id": "e2", "t": 1, "type": "inference", "agent": "lead"}],
"""


def _events(*events: str) -> str:
    return '"events": [\n  ' + ",\n  ".join(events) + "]"


def _event(kind: str, **fields: str | float) -> str:
    shown = {"id": "e1", "t": 0, "type": kind, "agent": "lead", **fields}
    parts = (
        f'"{name}": {value}' if isinstance(value, int | float) else f'"{name}": "{value}"'
        for name, value in shown.items()
    )
    return "{" + ", ".join(parts) + "}"


_TEAM = (
    _events(
        _SPAWN,
        _event("inference", id="e2", t=1, agent="scout"),
        _event("return", id="e3", t=2, agent="scout", to="lead"),
        _event("inference", id="e4", t=3),
    )
    + ',\n"edges": [\n  {"src": "e2", "dst": "e3", "type": "causal"},\n  '
)

ENTRIES = {
    "T101": Entry(
        "Traces are exchanged between programs, so they are strict JSON: no trailing commas, no comments, no half of a "
        "surrogate pair.",
        '"rewards": {"team": 1,}',
        '"rewards": {"team": 1}',
    ),
    "T102": Entry(
        "An empty file is mostly a run that never wrote its trace; taken for zero traces, it would go unnoticed.",
        "(a file without a character)",
        "{}",
    ),
    "T103": Entry(
        "JSON is UTF-8. In another encoding the same bytes would be other names, and ids would no longer match.",
        '(saved as Latin-1) "agent": "M\\xfcller"',
        '(saved as UTF-8) "agent": "Müller"',
    ),
    "T104": Entry(
        "NaN and infinities are no JSON, and a sum that meets one is lost. What is not known is null, with a reason.",
        '"rewards": {"team": NaN}',
        '"rewards": {"team": 0.5}',
    ),
    "T111": Entry(
        "Without its required fields a trace cannot be replayed or measured.",
        '"events": [{"id": "e1", "t": 0, "type": "message"}]',
        '"events": [{"id": "e1", "t": 0, "type": "message", "agent": "lead"}]',
    ),
    "T112": Entry(
        "A time that is text cannot be compared, a count with a fraction counts nothing.",
        '"events": [{"id": "e1", "t": "0", "type": "message", "agent": "lead"}]',
        '"events": [{"id": "e1", "t": 0, "type": "message", "agent": "lead"}]',
    ),
    "T113": Entry(
        "A misspelt field would be lost without a word. Events may have further fields of their own; the trace itself, "
        "its edges and its other parts may not.",
        '"topolgy": "swarm"',
        '"topology": "swarm"',
    ),
    "T114": Entry(
        "Types of events and edges, topologies and the like are closed vocabularies, so that traces can be compared.",
        '"topology": "swrm"',
        '"topology": "swarm"',
    ),
    "T115": Entry(
        "Names are not empty, times and totals are not negative, and a trace has an event at least.",
        '"events": [{"id": "", "t": 0, "type": "message", "agent": "lead"}]',
        '"events": [{"id": "e1", "t": 0, "type": "message", "agent": "lead"}]',
    ),
    "T201": Entry(
        "Edges name events by their ids, so an id that is used twice makes every edge to it ambiguous.",
        _events(_event("message"), _event("message", t=1)),
        _events(_event("message"), _event("message", id="e2", t=1)),
    ),
    "T202": Entry(
        "An edge to an event that is not there is a dependency lost on the way.",
        _TWO + '"edges": [{"src": "e1", "dst": "e3", "type": "causal"}]',
        _TWO + '"edges": [{"src": "e1", "dst": "e2", "type": "causal"}]',
    ),
    "T203": Entry(
        "Each event would have to come before itself: nothing could be replayed, and there is no critical path.",
        _events(_event("inference"), _event("inference", id="e2"))
        + ',\n"edges": [\n  {"src": "e1", "dst": "e2", "type": "causal"},\n'
        + '  {"src": "e2", "dst": "e1", "type": "causal"}]',
        _events(_event("inference"), _event("inference", id="e2"))
        + ',\n"edges": [\n  {"src": "e1", "dst": "e2", "type": "causal"}]',
    ),
    "T204": Entry(
        "What depends on an event cannot begin before it; of two events at one time, `seq` says which is earlier. "
        "Clocks of several machines may disagree: `clock.skew` says by how much.",
        _TWO + '"edges": [{"src": "e2", "dst": "e1", "type": "causal"}]',
        _TWO + '"edges": [{"src": "e2", "dst": "e1", "type": "causal"}],\n"clock": {"skew": 1}',
    ),
    "T205": Entry(
        "A spawn without its agent says that somebody came into being, but not who.",
        _events(_event("spawn")),
        _events(_SPAWN, _event("inference", id="e2", t=1, agent="scout")) + _EDGE,
    ),
    "T206": Entry(
        "An agent that was spawned and never acts has mostly lost its log. One that was ended at once is possible.",
        _events(_SPAWN),
        _events(_SPAWN, _event("inference", id="e2", t=1, agent="scout")) + _EDGE,
    ),
    "T207": Entry(
        "Nobody acts before coming into being; the times or the names of agents are mixed up.",
        _events(
            _event("spawn", t=1, to="scout"),
            _event("inference", id="e2", t=1, agent="scout"),
            _event("inference", id="e3", t=0, agent="scout"),
        )
        + _EDGE,
        _events(_SPAWN, _event("inference", id="e2", t=1, agent="scout")) + _EDGE,
    ),
    "T208": Entry(
        "Nobody acts after being ended, unless spawned again.",
        _events(_event("despawn", to="scout"), _event("inference", id="e2", t=1, agent="scout"))
        + _EDGE.replace("spawn", "temporal"),
        _events(_event("inference", agent="scout"), _event("despawn", id="e2", t=1, to="scout"))
        + _EDGE.replace("spawn", "temporal"),
    ),
    "T209": Entry(
        "A result with a `call_id` answers the call of that id. Without it, neither duration nor cause is known.",
        _events(_RESULT),
        _events(_CALL, _RESULT),
    ),
    "T210": Entry(
        "A call has one result at most, and an id is of one call; a row that was logged twice is the usual reason.",
        _events(_CALL, _RESULT, _RESULT.replace("e2", "e3")),
        _events(_CALL, _RESULT),
    ),
    "T211": Entry(
        "A call that was interrupted has no result, nor has one whose log was cut off. Its duration is unknown.",
        _events(_CALL),
        _events(_CALL, _RESULT),
    ),
    "T212": Entry(
        "A result goes up: to the agent that spawned the one that returns, or further, as long as that one lives: "
        "until it is despawned or stops, unless it is spawned again.",
        _events(
            _SPAWN,
            _event("inference", id="e2", t=1, agent="clerk"),
            _event("return", id="e3", t=2, agent="scout", to="clerk"),
        )
        + _EDGE.replace("e2", "e3"),
        _events(_SPAWN, _event("return", id="e2", t=2, agent="scout", to="lead")) + _EDGE,
    ),
    "T213": Entry(
        "An aggregate makes one result of several, so edges from them lead to it.",
        _events(_event("inference"), _event("aggregate", id="e2", t=1)),
        _events(_event("inference"), _event("aggregate", id="e2", t=1))
        + ',\n"edges": [{"src": "e1", "dst": "e2", "type": "aggregate"}]',
    ),
    "T214": Entry(
        "A stop is the decision to act no more; an agent that goes on has not stopped.",
        _events(_event("stop"), _event("inference", id="e2", t=1)),
        _events(_event("inference"), _event("stop", id="e2", t=1)),
    ),
    "T215": Entry(
        "A total that is smaller than what the events sum up to has left something out; sub-agents, mostly.",
        _events(_event("inference", model="m")[:-1] + ', "tokens": {"input": 80, "output": 40}}'),
        _events(_event("inference", model="m")[:-1] + ', "tokens": {"input": 60, "output": 40}}'),
    ),
    "T216": Entry(
        "Rewards are compared by channel, and channels have the names of the reward families and of the credit units.",
        '"rewards": {"teem": 1}',
        '"rewards": {"team": 1}',
    ),
    "T217": Entry(
        "Null says that a figure is not known. Why it is not decides what can be done about it, so it is said.",
        '"costs": {"tokens": null, "wall_clock_s": 100}',
        '"costs": {"tokens": null, "wall_clock_s": 100},\n"reasons": {"costs.tokens": "The log has no usage."}',
    ),
    "T218": Entry(
        "An event that ends before it begins would take negative time.",
        _events(_event("inference", t=1, t_end=0)),
        _events(_event("inference", t=0, t_end=1)),
    ),
    "T219": Entry(
        "An agent has one parent: the one that spawned it. Trees of agents and returns rest on it. The same agent may "
        "spawn it again; where several spawn one of the same name, that of the first is taken for its parent.",
        _events(_SPAWN, _event("inference", id="e2", t=1, agent="scout", parent_agent="clerk")) + _EDGE,
        _events(_SPAWN, _event("inference", id="e2", t=1, agent="scout", parent_agent="lead")) + _EDGE,
    ),
    "T220": Entry(
        "Tokens of reasoning are a part of the output; counted beside it, they would be counted twice.",
        _events(_event("inference")[:-1] + ', "tokens": {"output": 40, "reasoning": 50}}'),
        _events(_event("inference")[:-1] + ', "tokens": {"output": 90, "reasoning": 50}}'),
    ),
    "T221": Entry(
        "An agent comes into being once, by another; parents that go round in a circle leave nobody to begin.",
        _TWO + '"agents": [{"id": "lead", "parent": "scout"}, {"id": "scout", "parent": "lead"}]',
        _TWO + '"agents": [{"id": "lead"}, {"id": "scout", "parent": "lead"}]',
    ),
    "T222": Entry(
        "Sums, squares and ratios of a figure this large, or this near to 0, would no longer be numbers.",
        '"rewards": {"team": 1e200}',
        '"rewards": {"team": 1}',
    ),
    "T223": Entry(
        "What a spawned agent does depends on its spawn, and only an edge says so. Without one the agent seems to wait "
        "for nobody: the critical path leaves out what came before, and credit is divided wrongly.",
        _TEAM + '{"src": "e3", "dst": "e4", "type": "return"}]',
        _TEAM + '{"src": "e1", "dst": "e2", "type": "spawn"},\n  {"src": "e3", "dst": "e4", "type": "return"}]',
    ),
    "T224": Entry(
        "The agent that a result goes to, or one above it, goes on, but not with this result: an edge is missing, or "
        "nobody used it. The critical path leaves the agent out. Where a log was cut off, there is nothing to mend.",
        _TEAM + '{"src": "e1", "dst": "e2", "type": "spawn"}]',
        _TEAM + '{"src": "e1", "dst": "e2", "type": "spawn"},\n  {"src": "e3", "dst": "e4", "type": "return"}]',
    ),
    "T225": Entry(
        "Within an agent, what comes later waits for what came before, edge or not. Between agents, only edges say "
        "who waits for whom; without any, all of them seem to work side by side, and span and credit are wrong.",
        _events(_SPAWN, _event("inference", id="e2", t=1, agent="scout")),
        _events(_SPAWN, _event("inference", id="e2", t=1, agent="scout")) + _EDGE,
    ),
    "T226": Entry(
        "A result names the tool of its call, or none. Two names mean that the result is one of another call.",
        _events(_CALL[:-1] + ', "tool": "grep"}', _RESULT[:-1] + ', "tool": "sed"}'),
        _events(_CALL[:-1] + ', "tool": "grep"}', _RESULT[:-1] + ', "tool": "grep"}'),
    ),
    "T227": Entry(
        "Tables of several runs name them by their `trace_id`, so two of one name cannot be told apart. All traces "
        "that one `corpus trace validate` is given are compared, and in `corpus check` those of `data/traces`.",
        '(line 1) {"trace_id": "run-1", …}\n(line 2) {"trace_id": "run-1", …}',
        '(line 1) {"trace_id": "run-1", …}\n(line 2) {"trace_id": "run-2", …}',
    ),
    "T228": Entry(
        "A call is over once its result is there, so the result of a call to come is one of another call, or the times "
        "are wrong. `clock.skew` says how far they may be; at one time, `seq` decides.",
        _events(_CALL.replace('"t": 0', '"t": 2'), _RESULT),
        _events(_CALL, _RESULT),
    ),
}
