"""The rules of traces, by code; `rules.toml` explains each."""

from orchtrace_corpus.base.findings import register

register(
    __file__,
    errors={
        # T1: a file that is no trace
        "T101": "not JSON",
        "T102": "no trace in the file",
        "T103": "trace not UTF-8",
        "T104": "number that is not finite",
        "T111": "trace without a required field",
        "T112": "wrong type in a trace",
        "T113": "unknown field in a trace",
        "T114": "unknown word in a trace",
        "T115": "empty, or out of range, in a trace",
        # T2: a trace whose parts contradict each other
        "T201": "id used twice",
        "T202": "edge to no event",
        "T203": "edges in a circle",
        "T204": "edge back in time",
        "T205": "spawn of nobody",
        "T207": "act before the spawn",
        "T208": "act after the end",
        "T209": "result without a call",
        "T210": "call id used twice",
        "T212": "return to nobody above",
        "T213": "aggregate of nothing",
        "T214": "act after the stop",
        "T215": "total below the sum",
        "T216": "unknown reward channel",
        "T217": "unknown without a reason",
        "T218": "end before the beginning",
        "T220": "more tokens in a part than in the whole",
        "T221": "agent above itself",
        "T222": "figure that cannot be computed with",
        "T228": "result before its call",
    },
    warnings={
        "T206": "spawned agent that never acts",
        "T211": "call without a result",
        "T219": "two parents",
        "T223": "spawned agent that no edge leads to",
        "T224": "return that nothing depends on",
        "T225": "agents that no edge joins",
        "T226": "result of another tool",
        "T227": "trace id used twice",
    },
    sections={"T": "Traces"},
    rank=90,
)
