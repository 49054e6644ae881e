"""The made-up sessions as OpenCode, Inspect AI, AutoGen and Google ADK write them; see `synthesize_logs.py`."""

import json
from collections.abc import Mapping
from typing import Any

from made_up_teams import START, Files, Round, Turn, end_of, moment

MODEL = "example-large"
TASK = "Review the reader, and say what is slow."
Object = dict[str, Any]


def opencode(number: int, rounds: list[Round]) -> Files:
    """Return the output of `opencode export` for each session: that of the lead, and one for each worker."""
    lead = _Export(f"ses_{number:08x}lead", "build", 0, "")
    lead.message(0, 0, "user", [{"type": "text", "text": TASK}])
    found = [lead]
    for team_round in rounds:
        tasks = []
        for work in team_round.works:
            last = work.turns[-1]
            child = _Export(f"ses_{number:08x}{work.name}", "general", work.turns[0].start, lead.id)
            child.message(work.turns[0].start, 0, "user", [{"type": "text", "text": work.task}])
            for turn in work.turns:
                arguments = {"filePath": f"/home/someone/project/{work.name}.py"}
                shown = {"type": "file", "path": arguments["filePath"], "text": turn.printed, "truncated": False}
                metadata = {"preview": turn.printed[:500], "truncated": False, "loaded": [], "display": shown}
                read_id = _part("read", arguments, turn.printed, turn.end, turn.done, **metadata)
                child.answer(turn, [read_id] if turn.printed else [])
            arguments = {"description": work.name, "prompt": work.task, "subagent_type": "general"}
            times = work.turns[0].start - 0.01, last.done + 0.01
            tasks.append(_part("task", arguments, last.text, *times, sessionId=child.id))
            found.append(child)
        lead.answer(team_round.lead, tasks, done=end_of(team_round) + 0.02)
    return {
        f"{team_round.id}.json": [{"info": team_round.info, "messages": team_round.messages}] for team_round in found
    }


def _part(tool: str, given: Object, printed: str, begin: float, end: float, **metadata: Any) -> Object:
    times = {"start": _ms(begin), "end": _ms(end)}
    state = {
        "status": "completed",
        "input": given,
        "output": printed,
        "title": tool,
        "metadata": metadata,
        "time": times,
    }
    return {"type": "tool", "tool": tool, "callID": f"call_{_ms(begin):x}", "state": state}


def _ms(second: float) -> int:
    return int((START + second) * 1000)


class _Export:
    """Builds a session of OpenCode."""

    def __init__(self, name: str, agent: str, second: float, parent: str) -> None:
        self.id, self._agent, self.messages = name, agent, list[Object]()
        self.info: Object = {"id": name, "slug": "made-up", "projectID": "global", "directory": "/home/someone/project"}
        self.info |= {"title": name, "agent": agent, "version": "1.18.33", "time": {"created": _ms(second)}}
        self.info |= {"parentID": parent} if parent else {}

    def message(self, created: float, completed: float, role: str, parts: list[Object], **more: Any) -> None:
        name = f"msg_{self.id[4:]}{len(self.messages):04x}"
        times = {"created": _ms(created)} | ({"completed": _ms(completed)} if completed else {})
        info = {
            "id": name,
            "sessionID": self.id,
            "role": role,
            "time": times,
            "agent": self._agent,
            "mode": self._agent,
        }
        of = {"sessionID": self.id, "messageID": name}
        numbered = [{"id": f"prt_{name[4:]}{index:02x}", **of, **part} for index, part in enumerate(parts)]
        self.messages.append({"info": {**info, "modelID": MODEL, "providerID": "example", **more}, "parts": numbered})

    def answer(self, turn: Turn, calls: list[Object], done: float = 0.0) -> None:
        input_tokens, output_tokens, cached, reasoning_tokens = turn.usage
        reasoning_tokens = min(reasoning_tokens, output_tokens)
        usage: Object = {
            "input": input_tokens - cached,
            "output": output_tokens - reasoning_tokens,
            "reasoning": reasoning_tokens,
        }
        usage |= {"total": input_tokens + output_tokens, "cache": {"read": cached, "write": 0}}
        text: Object = {
            "type": "text",
            "text": turn.text,
            "time": {"start": _ms(turn.start + 0.5), "end": _ms(turn.end)},
        }
        end = {"type": "step-finish", "reason": "stop", "snapshot": "0" * 40, "cost": 0, "tokens": usage}
        parts: list[Object] = [{"type": "step-start", "snapshot": "0" * 40}, text, *calls, end]
        self.message(turn.start, done or turn.done, "assistant", parts, cost=0, tokens=usage, finish="stop")


def inspect_ai(number: int, rounds: list[Round]) -> Files:
    """Return a log of one sample, as JSON."""
    log = _Sample()
    log.span("lead", "", "agent", 0, end_of(rounds[-1]) + 1)
    for team_round in rounds:
        names = [f"call_{number:08x}{work.name}" for work in team_round.works]
        log.answer(
            "lead",
            team_round.lead,
            [(name, f"worker-{work.name}") for name, work in zip(names, team_round.works, strict=True)],
        )
        for name, work in zip(names, team_round.works, strict=True):
            begin, end = team_round.lead.end, work.turns[-1].done
            log.call("lead", name, f"worker-{work.name}", {"task": work.task}, work.turns[-1].text, begin, end)
            log.span(f"a{name}", f"t{name}", "agent", begin, end, name=work.name)
            for index, turn in enumerate(work.turns):
                read_id = f"{name}x{index}"
                log.answer(f"a{name}", turn, [(read_id, "read_file")] if turn.printed else [])
                if turn.printed:
                    log.call(
                        f"a{name}", read_id, "read_file", {"path": f"{read_id}.py"}, turn.printed, turn.end, turn.done
                    )
    sample = {
        "id": number,
        "epoch": 1,
        "uuid": f"sample{number}",
        "scores": {},
        "events": log.events,
        "attachments": {},
    }
    sample |= {"messages": log.messages, "events_data": {"messages": log.messages, "calls": []}}
    about = {"eval_id": f"eval{number}", "run_id": "run", "task": "made_up", "packages": {"inspect_ai": "0.3.285"}}
    return {f"{number:08x}.json": [{"version": 2, "status": "success", "eval": about, "samples": [sample]}]}


class _Sample:
    """Builds the events of a sample."""

    def __init__(self) -> None:
        self.events: list[Object] = []
        self.messages: list[Object] = []  # which are there again: of the sample, and of the inputs of its events

    def _add(self, event: str, span: str, second: float, **more: Any) -> None:
        found = {"uuid": f"e{len(self.events)}", "span_id": span, "timestamp": moment(second), "working_start": second}
        self.events.append({**found, "event": event, **more})

    def span(self, of: str, parent: str, kind: str, begin: float, end: float, name: str = "") -> None:
        above = {"parent_id": parent} if parent else {}
        self._add("span_begin", of, begin, id=of, type=kind, name=name or of, **above)
        self._add("span_end", of, end, id=of)

    def answer(self, span: str, turn: Turn, calls: list[tuple[str, str]]) -> None:
        input_tokens, output_tokens, cached, reasoning_tokens = turn.usage
        usage = {
            "input_tokens": input_tokens - cached,
            "output_tokens": output_tokens,
            "total_tokens": input_tokens + output_tokens,
        }
        usage |= {"input_tokens_cache_read": cached, "reasoning_tokens": min(reasoning_tokens, output_tokens)}
        asked = [{"id": name, "function": tool, "arguments": {}, "type": "function"} for name, tool in calls]
        message = {"content": turn.text, "source": "generate", "role": "assistant", "tool_calls": asked}
        self.messages.append({"id": f"m{len(self.messages)}", **message, "model": MODEL})
        choices = [{"message": message, "stop_reason": "stop"}]
        output = {"model": MODEL, "choices": choices, "completion": turn.text, "usage": usage}
        arguments = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
        told = "Gives the content of a file, with numbers of lines; at most 2,000 lines from an offset on."
        tools = [
            {"name": name, "description": told, "parameters": arguments} for name in ("read_file", "search", "submit")
        ]
        times = {"completed": moment(turn.end), "working_time": turn.end - turn.start}
        raw = {"request": {"model": MODEL}, "response": {"content": turn.text}}
        self._add(
            "model",
            span,
            turn.start,
            model=MODEL,
            input=[],
            input_refs=[[0, 2]],
            tools=tools,
            tool_choice="auto",
            config={},
            output=output,
            call=raw,
            **times,
        )

    def call(self, span: str, name: str, tool: str, given: Object, printed: str, begin: float, end: float) -> None:
        times = {"completed": moment(end), "working_time": end - begin}
        self.messages.append({"id": f"m{len(self.messages)}", "role": "tool", "content": printed, "tool_call_id": name})
        self._add("tool", span, begin, id=name, function=tool, arguments=given, result=printed, **times)
        self.span(f"t{name}", span, "tool", begin, end, name=tool)


def autogen(number: int, rounds: list[Round]) -> Files:
    """Return an event log as a handler writes it: each message twice, and each call of a model."""
    log = _EventLog(number)
    log.say(0, "user", "TextMessage", TASK)
    for team_round in rounds:
        names = {f"call_{number:08x}{work.name}": work for work in team_round.works}
        log.answer(
            team_round.lead, "lead", [(name, f"w{work.name}", {"task": work.task}) for name, work in names.items()]
        )
        for work in names.values():
            log.say(work.turns[0].start, "user", "TextMessage", work.task)
        for name, work in names.items():
            for index, turn in enumerate(work.turns):
                read_id = f"{name}x{index}"
                log.answer(
                    turn, f"w{work.name}", [(read_id, "read_file", {"path": f"{read_id}.py"})] if turn.printed else []
                )
                if turn.printed:
                    log.results(turn.done, f"w{work.name}", {read_id: turn.printed})
        log.results(end_of(team_round), "lead", {name: work.turns[-1].text for name, work in names.items()})
    return {f"{number:08x}.jsonl": log.rows}


class _EventLog:
    """Builds an event log."""

    def __init__(self, number: int) -> None:
        self._number, self._count, self.rows = number, 0, list[Object]()
        self._run = f"{number:08x}-0000-4000-8000-000000000000"

    def say(self, second: float, source: str, kind: str, content: Any, usage: Mapping[str, int] | None = None) -> None:
        self._count += 1
        name = f"{self._number:08x}-0000-4000-8000-{self._count:012x}"
        message = {"id": name, "source": source, "models_usage": usage, "metadata": {}, "created_at": moment(second)}
        payload = json.dumps({"message": {**message, "content": content, "type": kind}}, separators=(",", ":"))
        for stage in ("SEND", "DELIVER"):
            row = {"payload": payload, "sender": f"{source}_{self._run}/{self._run}", "receiver": None}
            self.rows.append(
                {**row, "kind": "MessageKind.PUBLISH", "delivery_stage": f"DeliveryStage.{stage}", "type": "Message"}
            )

    def answer(self, turn: Turn, source: str, calls: list[tuple[str, str, Object]]) -> None:
        input_tokens, output_tokens, cached, _ = turn.usage
        usage = {"prompt_tokens": input_tokens, "completion_tokens": output_tokens}
        response = {"model": MODEL, "usage": {**usage, "prompt_tokens_details": {"cached_tokens": cached}}}
        asked = [{"role": "system", "content": "You review."}, {"role": "user", "content": turn.text}]
        call = {
            "type": "LLMCall",
            "messages": asked,
            "response": response,
            "agent_id": f"{source}_{self._run}/{self._run}",
        }
        self.rows.append({**call, **usage})
        self.say(turn.end, source, "ThoughtEvent", turn.text)
        content = [{"id": name, "name": tool, "arguments": json.dumps(arguments)} for name, tool, arguments in calls]
        kind = "ToolCallRequestEvent" if calls else "TextMessage"
        self.say(turn.end, source, kind, content if calls else turn.text, usage)

    def results(self, second: float, source: str, printed: Mapping[str, str]) -> None:
        found = [{"content": text, "name": "x", "call_id": name, "is_error": False} for name, text in printed.items()]
        self.say(second, source, "ToolCallExecutionEvent", found)


def google_adk(number: int, rounds: list[Round]) -> Files:
    """A session; workers run side by side in branches, since what agents that are tools do is in no session."""
    events: list[Object] = []

    def say(second: float, author: str, *parts: Object, branch: str = "", usage: Any = None) -> None:
        found: Object = {"content": {"parts": list(parts), "role": "model"}, "invocationId": f"e-{number:08x}"}
        found |= {"author": author, "actions": {"stateDelta": {}, "artifactDelta": {}}, "id": f"{len(events):032x}"}
        found |= {"timestamp": START + second} | ({"branch": branch} if branch else {})
        if usage is not None:
            input_tokens, output_tokens, cached, reasoning_tokens = usage
            counts = {
                "promptTokenCount": input_tokens,
                "cachedContentTokenCount": cached,
                "totalTokenCount": input_tokens + output_tokens,
            }
            reasoning_tokens = min(reasoning_tokens, output_tokens)
            found["usageMetadata"] = {
                **counts,
                "candidatesTokenCount": output_tokens - reasoning_tokens,
                "thoughtsTokenCount": reasoning_tokens,
            }
        events.append(found)

    say(0, "user", {"text": TASK})
    for team_round in rounds:
        say(team_round.lead.start, "lead", {"text": team_round.lead.text}, usage=team_round.lead.usage)
        for work in team_round.works:
            for index, turn in enumerate(work.turns):
                name, branch = f"adk-{number:08x}{work.name}x{index}", f"fan.w{work.name}"
                call = {"functionCall": {"id": name, "name": "read_file", "args": {"path": f"{name}.py"}}}
                parts: list[Object] = [{"text": turn.text}, *([call] if turn.printed else [])]
                say(turn.start, f"w{work.name}", *parts, branch=branch, usage=turn.usage)
                if turn.printed:
                    answer = {
                        "functionResponse": {"id": name, "name": "read_file", "response": {"result": turn.printed}}
                    }
                    say(turn.done, f"w{work.name}", answer, branch=branch)
    session = {"id": f"{number:08x}", "appName": "made_up", "userId": "u", "state": {}, "events": events}
    return {f"{number:08x}.json": [session]}
