"""Made-up sessions of Qwen Code, Gemini CLI, Copilot CLI and Kimi Code, for `synthesize_logs.py`."""

from typing import Any

from made_up_teams import START, Files, Round, Turn, Work, end_of, moment

TASK = "Review the reader, and say what is slow."
FILE = "/home/someone/project/{}.py"
MODEL = "example-large"


def _calls(number: int, one: Round, tool: str) -> list[tuple[str, Work, str, dict[str, Any]]]:
    """Return the calls by which the lead asks its workers: the id, the worker, the tool and the arguments of each."""
    return [
        (f"call_{number:04x}{work.name.replace('-', 'x')}", work, tool, {"prompt": work.task, "name": "reader"})
        for work in one.works
    ]


# Qwen Code


def qwen_code(number: int, rounds: list[Round]) -> Files:
    """Return a session and its workers, with their records of telemetry."""
    session = f"{number:08x}-0000-4000-8000-000000000000"
    main = _Chat(session, "")
    files = {f"chats/{session}.jsonl": main.rows}
    main.add("user", 0, message={"role": "user", "parts": [{"text": TASK}]}, provenance="real_user")
    for team_round in rounds:
        calls = _calls(number, team_round, "agent")
        main.answer(main, team_round.lead, [(call_id, tool, arguments) for call_id, _, tool, arguments in calls])
        for call_id, work, _, _ in calls:
            agent = f"reader-{call_id}"
            worker = _Chat(session, agent)
            files[f"subagents/{session}/agent-{agent}.jsonl"] = worker.rows
            meta = {"agentId": agent, "agentType": "reader", "parentSessionId": session, "toolUseId": call_id}
            files[f"subagents/{session}/agent-{agent}.meta.json"] = [meta]
            worker.add("user", work.turns[0].start, message={"role": "user", "parts": [{"text": work.task}]})
            for index, turn in enumerate(work.turns):
                read_id = f"{call_id}x{index}"
                worker.answer(
                    main, turn, [(read_id, "read_file", {"path": FILE.format(read_id)})] if turn.printed else []
                )
                if turn.printed:
                    worker.result(turn.done, read_id, "read_file", turn.printed)
            main.result(work.turns[-1].done, call_id, "agent", work.turns[-1].text)
    return files


class _Chat:
    """Builds a file of Qwen Code."""

    def __init__(self, session: str, agent: str) -> None:
        self.rows: list[dict[str, Any]] = []
        self._session, self._agent = session, agent

    def add(self, kind: str, second: float, **more: Any) -> None:
        name = f"{self._agent or self._session}-{len(self.rows):06d}"
        row: dict[str, Any] = {"uuid": name, "sessionId": self._session, "timestamp": moment(second), "type": kind}
        row |= {"cwd": "/home/someone/project", "version": "0.24.4"}
        row |= {"agentId": self._agent, "agentName": "reader", "isSidechain": True} if self._agent else {}
        self.rows.append({**row, **more})

    def answer(self, main: "_Chat", turn: Turn, calls: list[tuple[str, str, dict[str, Any]]]) -> None:
        input_tokens, output_tokens, cached, reasoning_tokens = turn.usage
        counts = input_tokens, output_tokens, cached, reasoning_tokens, input_tokens + output_tokens
        event: dict[str, Any] = {
            "event.name": "qwen-code.api_response",
            "event.timestamp": moment(turn.end),
            "model": MODEL,
        }
        told = ("input", "output", "cached_content", "thoughts", "total")
        event |= {f"{name}_token_count": count for name, count in zip(told, counts, strict=True)}
        event |= {"duration_ms": 1_500, "response_text": turn.text, "prompt_id": f"{self._session}#{self._agent}#0"}
        event |= {"subagent_id": self._agent} if self._agent else {}
        main.add("system", turn.end, subtype="ui_telemetry", systemPayload={"uiEvent": event})
        names = ("prompt", "candidates", "cachedContent", "thoughts", "total")
        parts: list[dict[str, Any]] = [{"text": turn.text}]
        parts += [
            {"functionCall": {"id": call_id, "name": tool, "args": arguments}} for call_id, tool, arguments in calls
        ]
        usage = {f"{name}TokenCount": count for name, count in zip(names, counts, strict=True)}
        self.add("assistant", turn.end, model=MODEL, message={"role": "model", "parts": parts}, usageMetadata=usage)

    def result(self, second: float, use: str, tool: str, text: str) -> None:
        response = {"functionResponse": {"id": use, "name": tool, "response": {"output": text}}}
        noted = {"callId": use, "status": "success", "resultDisplay": text[:80]}
        self.add("tool_result", second, message={"role": "user", "parts": [response]}, toolCallResult=noted)


# Gemini CLI


def gemini_cli(number: int, rounds: list[Round]) -> Files:
    """Return a session and its workers. Messages with calls are written twice: without the calls, and with them."""
    session = f"{number:08x}-0000-4000-8000-000000000000"
    main = [_gemini_header(session, "main"), _gemini("u0", 0, "user", [{"text": TASK}])]
    files = {f"chats/session-{session[:8]}.jsonl": main}
    for team_round in rounds:
        calls = _calls(number, team_round, "invoke_agent")
        told = []
        for call_id, work, tool, arguments in calls:
            child = f"{call_id}-session"
            worker = [
                _gemini_header(child, "subagent"),
                _gemini("u0", work.turns[0].start, "user", [{"text": work.task}]),
            ]
            files[f"chats/{session}/{child}.jsonl"] = worker
            for index, turn in enumerate(work.turns):
                read_id = f"{call_id}x{index}"
                worker += _gemini_answer(
                    read_id,
                    turn,
                    [_gemini_call(read_id, "read_file", {"path": FILE.format(read_id)}, turn.done, turn.printed)],
                )
            last = work.turns[-1]
            text = f"Subagent 'reader' finished.\nTermination Reason: GOAL\nResult:\n{last.text}"
            told.append({**_gemini_call(call_id, tool, arguments, last.done, text), "agentId": child})
        main += _gemini_answer(f"m{team_round.lead.start:.0f}", team_round.lead._replace(printed="."), told)
    return files


def _gemini_header(session: str, kind: str) -> dict[str, Any]:
    return {"sessionId": session, "projectHash": "0f" * 32, "startTime": moment(0), "kind": kind}


def _gemini(name: str, second: float, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"id": name, "timestamp": moment(second), "type": kind, "content": content, **more}


def _gemini_call(use: str, tool: str, given: dict[str, Any], done: float, text: str) -> dict[str, Any]:
    response = {"functionResponse": {"id": use, "name": tool, "response": {"output": text}}}
    return {
        "id": use, "name": tool, "args": given, "result": [response], "status": "success",
        "timestamp": moment(done), "resultDisplay": text[:80], "renderOutputAsMarkdown": True,
    }  # fmt: skip


def _gemini_answer(name: str, turn: Turn, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    input_tokens, output_tokens, cached, reasoning_tokens = turn.usage
    said = min(reasoning_tokens, output_tokens)  # thoughts are counted apart from the output
    tokens = {"input": input_tokens, "output": output_tokens - said, "cached": cached, "thoughts": said, "tool": 0}
    message = _gemini(
        name, turn.end, "gemini", turn.text, tokens={**tokens, "total": input_tokens + output_tokens}, model=MODEL
    )
    change = {"$set": {"lastUpdated": moment(turn.end)}}
    if not turn.printed:
        return [message, change]
    back = _gemini(f"r{name}", turn.done, "user", [part for call in calls for part in call["result"]])
    return [message, change, {**message, "toolCalls": calls}, back]


# Copilot CLI


def copilot_cli(number: int, rounds: list[Round]) -> Files:
    """Return one file of events for the lead and its workers."""
    session = f"{number:08x}-0000-4000-8000-000000000000"
    log = _Events()
    log.add(0, "session.start", "", sessionId=session, version=1, producer="copilot-agent", copilotVersion="1.0.102")
    log.add(0, "user.message", "", content=TASK, transformedContent=TASK, messageId="u0")
    for team_round in rounds:
        calls = _calls(number, team_round, "task")
        log.answer(
            team_round.lead,
            "",
            f"r{team_round.lead.start:.0f}",
            [(call_id, tool, arguments) for call_id, _, tool, arguments in calls],
        )
        later: list[tuple[float, int]] = []
        for call_id, work, _, arguments in calls:
            agent = f"agent-{call_id}"
            log.add(
                team_round.lead.end,
                "tool.execution_start",
                "",
                toolCallId=call_id,
                toolName="task",
                arguments=arguments,
            )
            log.add(
                team_round.lead.end,
                "subagent.started",
                agent,
                toolCallId=call_id,
                agentName="reader",
                executionMode="sync",
            )
            log.add(work.turns[0].start, "user.message", agent, content=work.task, source=f"agent-{session}")
            for index, turn in enumerate(work.turns):
                read_id = f"{call_id}x{index}"
                log.answer(
                    turn,
                    agent,
                    read_id,
                    [(read_id, "read_file", {"path": FILE.format(read_id)})] if turn.printed else [],
                )
                if turn.printed:
                    log.tool(turn, agent, read_id)
            later.append((work.turns[-1].done, len(later)))
        for done, index in sorted(later):
            call_id, work, _, _ = calls[index]
            text = {"content": work.turns[-1].text}
            log.add(done, "tool.execution_complete", "", toolCallId=call_id, success=True, result=text)
            log.add(
                done, "subagent.completed", f"agent-{call_id}", toolCallId=call_id, agentName="reader", totalTokens=9
            )
    return {f"{session}/events.jsonl": log.rows}


class _Events:
    """Builds the events of a session of Copilot CLI."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def add(self, second: float, kind: str, agent: str, **data: Any) -> None:
        above = self.rows[-1]["id"] if self.rows else None
        row = {"type": kind, "data": data, "id": f"event-{len(self.rows):08d}", "timestamp": moment(second)}
        self.rows.append({**row, "parentId": above, **({"agentId": agent} if agent else {})})

    def answer(self, turn: Turn, agent: str, key: str, calls: list[tuple[str, str, dict[str, Any]]]) -> None:
        input_tokens, output_tokens, cached, reasoning_tokens = turn.usage
        usage = {"model": MODEL, "inputTokens": input_tokens, "outputTokens": output_tokens, "cacheReadTokens": cached}
        usage |= {
            "cacheWriteTokens": 0,
            "reasoningTokens": reasoning_tokens,
            "duration": 1_500,
            "timeToFirstTokenMs": 120.5,
        }
        usage |= {"apiCallId": key, "providerType": "openai", "transport": "http", "accounting": {"usageId": key}}
        self.add(turn.end, "session.usage_record", agent, usage=usage)
        asked = [{"toolCallId": call_id, "name": tool, "arguments": arguments} for call_id, tool, arguments in calls]
        said = {"messageId": f"m-{key}", "model": MODEL, "content": turn.text, "toolRequests": asked, "apiCallId": key}
        self.add(turn.end, "assistant.message", agent, **said)

    def tool(self, turn: Turn, agent: str, use: str) -> None:
        self.add(turn.end, "tool.execution_start", agent, toolCallId=use, toolName="read_file", arguments={})
        metrics = {"metrics": {"resultLength": len(turn.printed), "context_token_limit": 128_000.0}}
        found = {"content": turn.printed, "detailedContent": turn.printed[:300]}
        said = {"toolCallId": use, "success": True, "result": found, "toolTelemetry": metrics}
        self.add(turn.done, "tool.execution_complete", agent, **said)


# Kimi Code


def kimi_code(number: int, rounds: list[Round]) -> Files:
    """Return a file of records for each agent."""
    session = f"session_{number:08x}-0000-4000-8000-000000000000"
    main = _Wire("main", 0, TASK, "user")
    files = {f"{session}/agents/main/wire.jsonl": main.rows}
    for team_round in rounds:
        calls = _calls(number, team_round, "Agent")
        main.begin(team_round.lead)
        for call_id, work, tool, arguments in calls:
            main.event(team_round.lead.end, type="tool.call", toolCallId=call_id, name=tool, args=arguments)
            child = {"subagentId": f"agent-{call_id}", "subagentName": "reader", "parentToolCallId": call_id}
            main.add(team_round.lead.end, "subagent.spawned", **child, parentAgentId="main")
            worker = _Wire(f"agent-{call_id}", work.turns[0].start, work.task, "system_trigger")
            files[f"{session}/agents/agent-{call_id}/wire.jsonl"] = worker.rows
            for index, turn in enumerate(work.turns):
                read_id = f"{call_id}x{index}"
                worker.begin(turn)
                if turn.printed:
                    arguments = {"path": FILE.format(read_id)}
                    worker.event(turn.end, type="tool.call", toolCallId=read_id, name="Read", args=arguments)
                    worker.result(turn.done, read_id, turn.printed)
                worker.end(turn, turn.done)
            main.result(work.turns[-1].done, call_id, work.turns[-1].text)
        main.end(team_round.lead, end_of(team_round))
    return files


class _Wire:
    """Builds the records of an agent of Kimi Code."""

    def __init__(self, agent: str, second: float, task: str, origin: str) -> None:
        self.rows: list[dict[str, Any]] = [{"type": "metadata", "protocol_version": "1.5", "created_at": 0}]
        self._agent = agent
        content = [{"type": "text", "text": task}]
        self.add(second, "turn.prompt", input=content, origin={"kind": origin})
        self.add(second, "context.append_message", message={"role": "user", "content": content})

    def add(self, second: float, record: str, **more: Any) -> None:
        self.rows.append({"type": record, "agentId": self._agent, **more, "time": round((START + second) * 1_000)})

    def event(self, second: float, **event: Any) -> None:
        self.add(second, "context.append_loop_event", event={"turnId": "0", "step": 1, **event})

    def begin(self, turn: Turn) -> None:
        self.event(turn.start, type="step.begin", uuid=f"{self._agent}-{len(self.rows)}")
        self.add(turn.start, "llm.request", kind="loop", model=MODEL, modelAlias="alias")
        self.add(turn.end, "usage.record", model="alias", usage=_kimi_usage(turn))
        self.event(turn.end, type="content.part", part={"type": "text", "text": turn.text})

    def result(self, second: float, use: str, text: str) -> None:
        self.event(second, type="tool.result", toolCallId=use, result={"output": text, "durationMs": 8})

    def end(self, turn: Turn, second: float) -> None:
        usage = _kimi_usage(turn)
        self.event(second, type="step.end", finishReason="tool_use", usage=usage, llmFirstTokenLatencyMs=100)
        message = {"role": "assistant", "content": [{"type": "text", "text": turn.text}]}
        self.add(second, "agent.message.appended", message={"message": message, "meta": {"usage": usage}})


def _kimi_usage(turn: Turn) -> dict[str, int]:
    input_tokens, output_tokens, cached, _ = turn.usage
    return {
        "inputOther": input_tokens - cached,
        "output": output_tokens,
        "inputCacheRead": cached,
        "inputCacheCreation": 0,
    }
