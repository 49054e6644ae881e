"""Made-up sessions as span trees: one tree, written as every format of spans would have it."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from made_up_teams import START, Files, Round, end_of, moment

INSTRUCTIONS = "Read before you answer, and say in which file you have seen what you say.\n" * 20
TOOLS = [
    {
        "type": "function",
        "name": name,
        "description": "Reads a file of the project, or a part of it, and prints it with the numbers of its lines.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string", "description": "The file, from the folder of the project."}},
            "required": ["path"],
        },
    }
    for name in ("read_file", "list_files", "search_files", "run_tests")
]
"""The definitions of the tools, which a model gets with the messages."""


class _Act(NamedTuple):
    """A span of an agent, of a call of a model, or of a call of a tool.

    Attributes:
        name: The id of the span.
        parent: The id of the span above; empty for the first span.
        kind: `agent`, `llm` or `tool`.
        title: The name of the agent or tool.
        start: The start, in seconds since the session began.
        end: The end, in seconds.
        read: The messages that the model gets, or the arguments of the tool as a message.
        text: The answer.
        call: The id of the call of a tool.
        calls: The calls in the answer of a model: the id, the tool and the arguments of each.
        usage: The tokens of a model, as in `Turn.usage`.
    """

    name: str
    parent: str
    kind: str
    title: str
    start: float
    end: float
    read: Sequence[dict[str, str]] = ()
    text: str = ""
    call: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    usage: tuple[int, int, int, int] = (0, 0, 0, 0)


def _acts(number: int, rounds: list[Round]) -> Iterator[_Act]:
    """Yield the spans of a session as they end; spans of model calls have all messages that the model was given."""
    top = f"{number + 1:04x}ffffffffffff"
    for index, team_round in enumerate(rounds):
        calls = tuple((f"call-{number}-{work.name}", "ask_reader", work.task) for work in team_round.works)
        said = [{"role": "user", "content": "Review the reader, and say what is slow."}]
        lead = team_round.lead
        yield _Act(
            f"{number + 1:04x}f{index:011x}",
            top,
            "llm",
            "lead",
            lead.start,
            lead.end,
            said,
            lead.text,
            "",
            calls,
            lead.usage,
        )
        for worker, work in enumerate(team_round.works):
            base = f"{number + 1:04x}{index:06x}{worker:02x}"
            tool, agent = f"{base}ff00", f"{base}ff01"
            history = [{"role": "user", "content": work.task}]
            for step, turn in enumerate(work.turns):
                name = f"call-{base}-{step}"
                asked = ((name, "read_file", json.dumps({"path": f"{base}.py"})),) if turn.printed else ()
                yield _Act(
                    f"{base}{step:02x}00",
                    agent,
                    "llm",
                    "reader",
                    turn.start,
                    turn.end,
                    tuple(history),
                    turn.text,
                    "",
                    asked,
                    turn.usage,
                )
                history += [{"role": "assistant", "content": turn.text}, {"role": "tool", "content": turn.printed}]
                if turn.printed:
                    yield _Act(
                        f"{base}{step:02x}01",
                        agent,
                        "tool",
                        "read_file",
                        turn.end,
                        turn.done,
                        [{"role": "user", "content": json.dumps({"path": f"{base}.py"})}],
                        turn.printed,
                        name,
                    )
            first, last = work.turns[0], work.turns[-1]
            # The span of the worker is inside that of the tool by which the lead asks it.
            yield _Act(agent, tool, "agent", "reader", first.start, last.done)
            yield _Act(
                tool,
                top,
                "tool",
                "ask_reader",
                first.start - 0.1,
                last.done + 0.1,
                [{"role": "user", "content": work.task}],
                last.text,
                calls[worker][0],
            )
    yield _Act(top, "", "agent", "lead", 0, end_of(rounds[-1]) + 1)


def openai_agents(number: int, rounds: list[Round]) -> Files:
    """Return the objects that the SDK's processors get, one on each line."""
    trace = f"trace_{number:032x}"
    rows: list[dict[str, Any]] = [{"object": "trace", "id": trace, "workflow_name": "review", "group_id": None}]
    for act in _acts(number, rounds):
        data: dict[str, Any] = {"type": {"llm": "generation", "tool": "function"}.get(act.kind, act.kind)}
        if act.kind == "llm":
            input_tokens, output_tokens, cached, reasoning_tokens = act.usage
            usage: dict[str, Any] = {"input_tokens": input_tokens, "output_tokens": output_tokens}
            usage |= {
                "input_tokens_details": {"cached_tokens": cached},
                "output_tokens_details": {"reasoning_tokens": reasoning_tokens},
            }
            said = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": act.text}]}]
            calls = [
                {"type": "function_call", "call_id": call, "name": tool, "arguments": arguments, "status": "completed"}
                for call, tool, arguments in act.calls
            ]
            data |= {"input": act.read, "output": [*said, *calls], "model": "gpt-5", "model_config": {}, "usage": usage}
        elif act.kind == "tool":
            data |= {"name": act.title, "input": act.read[0]["content"], "output": act.text, "mcp_data": None}
        else:
            data |= {"name": act.title, "handoffs": [], "tools": ["read_file"], "output_type": "str"}
        rows.append(
            {
                "object": "trace.span",
                "id": f"span_{act.name}",
                "trace_id": trace,
                "started_at": moment(act.start),
                "parent_id": f"span_{act.parent}" if act.parent else None,
                "ended_at": moment(act.end),
                "span_data": data,
                "error": None,
            }
        )
    return {f"{trace}.jsonl": rows}


def otlp_genai(number: int, rounds: list[Round]) -> Files:
    """Return requests of 16 spans with the attributes of GenAI, contents included."""
    return _requests(number, rounds, _genai)


def otlp_openinference(number: int, rounds: list[Round]) -> Files:
    """Return requests of 16 spans with the attributes of OpenInference, in which messages are flattened."""
    return _requests(number, rounds, _openinference)


def _requests(number: int, rounds: list[Round], attributes: Callable[[_Act], dict[str, Any]]) -> Files:
    spans = []
    for act in _acts(number, rounds):
        known = [
            {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
            for key, value in attributes(act).items()
        ]
        spans.append(
            {
                "traceId": f"{number + 1:032x}",
                "spanId": act.name,
                "parentSpanId": act.parent,
                "name": f"{act.kind} {act.title}",
                "kind": 1,
                "startTimeUnixNano": str(int((START + act.start) * 10**9)),
                "endTimeUnixNano": str(int((START + act.end) * 10**9)),
                "attributes": known,
                "status": {"code": 1},
            }
        )
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "review"}}]}
    rows = [
        {
            "resourceSpans": [
                {
                    "resource": resource,
                    "scopeSpans": [{"scope": {"name": "agents", "version": "1"}, "spans": spans[index : index + 16]}],
                }
            ]
        }
        for index in range(0, len(spans), 16)
    ]
    return {f"spans-{number}.jsonl": rows}


def _genai(act: _Act) -> dict[str, Any]:
    if act.kind == "agent":
        return {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": act.title}
    if act.kind == "tool":
        return {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": act.title,
            "gen_ai.tool.call.id": act.call,
            "gen_ai.tool.call.arguments": act.read[0]["content"],
            "gen_ai.tool.call.result": act.text,
        }
    input_tokens, output_tokens, cached, reasoning_tokens = act.usage
    arguments = [{"role": each["role"], "parts": [{"type": "text", "content": each["content"]}]} for each in act.read]
    parts: list[dict[str, Any]] = [{"type": "text", "content": act.text}]
    parts += [
        {"type": "tool_call", "id": call, "name": tool, "arguments": {"given": text}} for call, tool, text in act.calls
    ]
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5",
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": INSTRUCTIONS}]),
        "gen_ai.tool.definitions": json.dumps(TOOLS),
        "gen_ai.input.messages": json.dumps(arguments),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}]),
        "gen_ai.usage.input_tokens": input_tokens,
        "gen_ai.usage.output_tokens": output_tokens,
        "gen_ai.usage.cache_read.input_tokens": cached,
        "gen_ai.usage.reasoning.output_tokens": reasoning_tokens,
    }


def _openinference(act: _Act) -> dict[str, Any]:
    if act.kind == "agent":
        return {"openinference.span.kind": "AGENT", "agent.name": act.title, "graph.node.id": act.title}
    if act.kind == "tool":
        return {
            "openinference.span.kind": "TOOL",
            "tool.name": act.title,
            "tool_call.id": act.call,
            "input.value": act.read[0]["content"],
            "output.value": act.text,
        }
    input_tokens, output_tokens, cached, reasoning_tokens = act.usage
    found: dict[str, Any] = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-5"}
    for index, each in enumerate(act.read):
        found[f"llm.input_messages.{index}.message.role"] = each["role"]
        found[f"llm.input_messages.{index}.message.content"] = each["content"]
    found["llm.output_messages.0.message.role"] = "assistant"
    found["llm.output_messages.0.message.content"] = act.text
    for index, (call, tool, arguments) in enumerate(act.calls):
        start = f"llm.output_messages.0.message.tool_calls.{index}.tool_call"
        found |= {f"{start}.id": call, f"{start}.function.name": tool, f"{start}.function.arguments": arguments}
    found |= {
        "input.value": json.dumps({"messages": act.read}),
        "output.value": json.dumps({"content": act.text}),
        "llm.token_count.prompt": input_tokens,
        "llm.token_count.completion": output_tokens,
        "llm.token_count.prompt_details.cache_read": cached,
        "llm.token_count.completion_details.reasoning": reasoning_tokens,
    }
    return found


def langsmith(number: int, rounds: list[Round]) -> Files:
    """Return runs as the answer to a query for runs, one on each line."""
    trace = f"{number + 1:04x}ffffffffffff"  # the id of the run at the top
    first = f"20261121T000000000000Z{trace}"
    rows = []
    for act in _acts(number, rounds):
        kind = {"agent": "chain"}.get(act.kind, act.kind)
        outputs: dict[str, Any] = {"output": act.text}
        metadata: dict[str, Any] = {"ls_integration": "langchain", "thread_id": trace}
        if act.kind == "llm":
            input_tokens, output_tokens, cached, reasoning_tokens = act.usage
            counts = {
                "input_tokens": input_tokens,
                "output_tokens": output_tokens,
                "total_tokens": input_tokens + output_tokens,
                "input_token_details": {"cache_read": cached},
                "output_token_details": {"reasoning": reasoning_tokens},
            }
            calls = [
                {"name": tool, "args": {"given": arguments}, "id": call, "type": "tool_call"}
                for call, tool, arguments in act.calls
            ]
            message = {
                "content": act.text,
                "type": "ai",
                "tool_calls": calls,
                "usage_metadata": counts,
                "response_metadata": {"model_name": "gpt-5"},
            }
            kwargs = {
                "lc": 1,
                "type": "constructor",
                "id": ["langchain", "schema", "messages", "AIMessage"],
                "kwargs": message,
            }
            outputs = {
                "generations": [[{"text": act.text, "type": "ChatGeneration", "message": kwargs}]],
                "llm_output": None,
            }
            metadata["ls_model_name"] = "gpt-5"
        elif act.kind == "tool":
            outputs = {"output": {"content": act.text, "type": "tool", "name": act.title, "tool_call_id": act.call}}
        else:
            metadata["lc_agent_name"] = act.title
        node = {"langgraph_node": act.title, "langgraph_step": 1, "langgraph_checkpoint_ns": f"{act.title}:{act.name}"}
        rows.append(
            {
                "id": act.name,
                "trace_id": trace,
                "parent_run_id": act.parent or None,
                "name": act.title,
                "run_type": kind,
                "start_time": moment(act.start),
                "end_time": moment(act.end),
                "error": None,
                "dotted_order": f"{first}.20261121T000000000000Z{act.name}" if act.parent else first,
                "tags": [],
                "inputs": {"messages": [act.read]},
                "outputs": outputs,
                "extra": {
                    "metadata": metadata | (node if act.kind == "agent" else {}),
                    "runtime": {"sdk": "langsmith-py"},
                },
                "events": [{"name": "start", "time": moment(act.start)}],
            }
        )
    return {f"runs-{number}.jsonl": rows}
