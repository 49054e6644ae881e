"""Runs of the OpenAI Agents SDK, as it exports them and as OpenInference does at the same time."""

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any

from sdk_logs import Step, Truth, asks
from sdk_logs.otlp import request


def run(name: str, scenario: Callable[[Truth], Any], truth: Truth) -> tuple[list[Any], list[Any]]:
    """Run a scenario; return the export of the SDK, and the requests of OpenInference for the same run."""
    from agents import add_trace_processor, set_trace_processors, trace
    from agents.tracing import TracingProcessor
    from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    class Keep(TracingProcessor):  # type: ignore[misc]
        """An exporter that keeps what it gets, in the order in which spans end."""

        items: list[Any]

        def __init__(self) -> None:
            self.items = []

        def on_trace_start(self, started: Any) -> None:
            self.items.append(started.export())

        def on_trace_end(self, ended: Any) -> None:
            """Do nothing: traces are kept when they start."""

        def on_span_start(self, span: Any) -> None:
            """Do nothing: spans are kept when they end."""

        def on_span_end(self, span: Any) -> None:
            self.items.append(span.export())

        def shutdown(self) -> None:
            """Do nothing: there is nothing to release."""

        def force_flush(self) -> None:
            """Do nothing: items are kept at once."""

    keep = Keep()
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    instrumentor = OpenAIAgentsInstrumentor()
    instrumentor.instrument(tracer_provider=provider, exclusive_processor=True)
    add_trace_processor(keep)

    async def traced() -> None:
        with trace(name):
            await scenario(truth)

    asyncio.run(traced())
    instrumentor.uninstrument()
    set_trace_processors([])
    finished = spans.get_finished_spans()
    half = len(finished) // 2  # exporters divide a trace among requests
    return keep.items, [request(finished[:half]), request(finished[half:])]


def scenarios() -> dict[str, Callable[[Truth], Any]]:
    """Return the scenarios of the OpenAI Agents SDK, by name."""
    from agents import Agent, GuardrailFunctionOutput, InputGuardrail, Runner, function_tool
    from agents.exceptions import AgentsException, InputGuardrailTripwireTriggered
    from agents.items import ModelResponse
    from agents.models.interface import Model
    from agents.tracing import generation_span, response_span
    from agents.usage import Usage
    from openai.types.responses import Response, ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
    from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails, ResponseUsage

    class Scripted(Model):  # type: ignore[misc]
        """A model that gives scripted answers; the ids of its calls count up."""

        def __init__(self, agent: str, truth: Truth, *steps: Step, responses: bool = False) -> None:
            self._agent = agent
            self._truth = truth
            self._steps = iter(steps)
            self._uses_responses_api = responses
            self._call_count = 0

        async def get_response(self, *_: Any, **__: Any) -> Any:
            step = next(self._steps)
            while step.fails:
                with generation_span(model="scripted-1") as span:
                    await asyncio.sleep(step.seconds)
                    span.set_error({"message": "TimeoutError: no answer", "data": None})
                step = next(self._steps)
            if self._uses_responses_api:
                return await self._respond(step)
            return await self._generate(step)

        async def _generate(self, step: Step) -> Any:
            with generation_span(model="scripted-1", input=[{"role": "user", "content": "scripted"}]) as span:
                response = await self._answer(step)
                span.span_data.output = [item.model_dump() for item in response.output]
                span.span_data.usage = _usage_of(step)
            return response

        async def _respond(self, step: Step) -> Any:
            with response_span() as span:
                response = await self._answer(step)
                usage = ResponseUsage(**_usage_of(step), total_tokens=step.usage[0] + step.usage[1])
                span.span_data.response = Response(
                    id="resp_1",
                    created_at=0,
                    model="scripted-1",
                    object="response",
                    output=response.output,
                    parallel_tool_calls=True,
                    tool_choice="auto",
                    tools=[],
                    usage=usage,
                )
                span.span_data.usage = _usage_of(step)
            return response

        async def _answer(self, step: Step) -> Any:
            await asyncio.sleep(step.seconds)
            self._truth.note(self._agent, step.usage)
            output: list[Any] = []
            for tool, arguments in step.calls:
                self._call_count += 1
                name = f"call_{self._agent}_{self._call_count}"
                fields = {"call_id": name, "name": tool, "arguments": json.dumps(arguments)}
                output.append(
                    ResponseFunctionToolCall(type="function_call", status="completed", id=f"fc_{name}", **fields)
                )
            if not step.calls:
                text_part = ResponseOutputText(type="output_text", text=step.text, annotations=[])
                message = {"type": "message", "role": "assistant", "status": "completed", "content": [text_part]}
                output.append(ResponseOutputMessage(id=f"msg_{self._agent}", **message))
            input_tokens, output_tokens, cached, reasoning = step.usage
            usage = Usage(
                requests=1,
                input_tokens=input_tokens,
                output_tokens=output_tokens,
                total_tokens=input_tokens + output_tokens,
                input_tokens_details=InputTokensDetails(cached_tokens=cached, cache_write_tokens=0),
                output_tokens_details=OutputTokensDetails(reasoning_tokens=reasoning),
            )
            return ModelResponse(output=output, usage=usage, response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    def _usage_of(step: Step) -> dict[str, Any]:
        input_tokens, output_tokens, cached, reasoning = step.usage
        return {
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": reasoning},
        }

    async def look_up(q: str) -> str:
        """Look something up."""
        await asyncio.sleep(0.02)
        return f"fact about {q}"

    async def break_down(q: str) -> str:
        """Fail."""
        await asyncio.sleep(0.01)
        raise ValueError(q)

    tool = function_tool(look_up)
    broken_tool = function_tool(break_down)

    async def single(truth: Truth) -> None:
        """Run one agent that calls a tool and answers."""
        model = Scripted("solo", truth, asks("look_up", 300, 20), Step("done", usage=(420, 60, 256, 32)))
        await Runner.run(Agent("solo", model=model, tools=[tool]), "go")

    async def nested(truth: Truth) -> None:
        """Run an agent that calls an agent that calls an agent; the model of the last one fails once."""
        leaf_steps = (Step(fails=True), asks("look_up", 100, 10), Step("leaf", usage=(150, 15, 64, 5)))
        leaf = Agent("leaf", model=Scripted("leaf", truth, *leaf_steps), tools=[tool])
        middle_steps = (asks("ask_leaf", 200, 20, argument="input"), Step("middle", usage=(250, 25, 128, 0)))
        tools = [leaf.as_tool("ask_leaf", "Ask the leaf.")]
        middle = Agent("middle", model=Scripted("middle", truth, *middle_steps), tools=tools)
        top_steps = (asks("ask_middle", 300, 30, argument="input"), Step("top", usage=(350, 35, 0, 0)))
        tools = [middle.as_tool("ask_middle", "Ask the middle.")]
        await Runner.run(Agent("top", model=Scripted("top", truth, *top_steps), tools=tools), "go")

    async def parallel(truth: Truth) -> None:
        """Run five workers in parallel. Two have the same name, and one tool fails."""
        tools: list[Any] = []
        for number in range(5):
            name = "worker" if number < 2 else f"worker_{number}"
            steps = [asks("break_down" if number == 3 else "look_up", 100 + number, 10, seconds=0.01 * (number + 1))]
            steps.append(Step(f"result {number}", usage=(200 + number, 20, 64, 8), seconds=0.01 * (5 - number)))
            model = Scripted(name, truth, *steps)
            worker = Agent(name, model=model, tools=[tool, broken_tool])
            tools.append(worker.as_tool(f"ask_{number}", "Ask a worker."))
        calls = tuple((f"ask_{index}", {"input": "go"}) for index in range(5))
        lead = Scripted("lead", truth, Step(calls=calls, usage=(500, 50, 0, 0)), Step("all", usage=(900, 90, 512, 16)))
        await Runner.run(Agent("lead", model=lead, tools=tools), "go")

    async def handoffs(truth: Truth) -> None:
        """Run two agents that hand over to each other; then one works and answers."""
        first_steps = (
            asks("transfer_to_second", 100, 10, argument=""),
            asks("transfer_to_second", 120, 12, argument=""),
        )
        second_steps = (
            asks("transfer_to_first", 200, 20, argument=""),
            asks("look_up", 220, 22),
            Step("settled", usage=(300, 33, 128, 0)),
        )
        first: Any = Agent("first", model=Scripted("first", truth, *first_steps))
        second: Any = Agent("second", model=Scripted("second", truth, *second_steps), tools=[tool])
        first.handoffs, second.handoffs = [second], [first]
        await Runner.run(first, "go")

    async def guardrail(truth: Truth) -> None:
        """Run an agent twice: one guardrail, which asks another agent, lets it run; another stops it."""
        judge_model = Scripted("judge", truth, Step("fine", usage=(80, 8, 0, 0)))
        judge = Agent("judge", model=judge_model)

        async def ask(_: Any, __: Any, text: Any) -> Any:
            await Runner.run(judge, text)
            return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)

        async def refuse(_: Any, __: Any, ___: Any) -> Any:
            return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

        ward = Scripted("ward", truth, Step("answer", usage=(90, 9, 0, 0), seconds=0.05))
        await Runner.run(Agent("ward", model=ward, input_guardrails=[InputGuardrail(ask, name="ask_judge")]), "go")
        second = Scripted("ward", truth, Step("never", usage=(1, 1, 0, 0), seconds=5))
        guard = InputGuardrail(refuse, name="refuse", run_in_parallel=False)
        with contextlib.suppress(InputGuardrailTripwireTriggered):
            await Runner.run(Agent("ward", model=second, input_guardrails=[guard]), "go")

    async def sequence(truth: Truth) -> None:
        """Run three agents in parallel, and then a judge, which runs out of turns."""
        agents = [
            Agent(f"p{n}", model=Scripted(f"p{n}", truth, Step("x", usage=(100 * n + 50, 5, 0, 0), seconds=0.02 * n)))
            for n in range(1, 4)
        ]
        await asyncio.gather(*(Runner.run(agent, "go") for agent in agents))
        steps = [asks("look_up", 400 + n, 40) for n in range(4)]
        judge = Agent("judge", model=Scripted("judge", truth, *steps), tools=[tool])
        with contextlib.suppress(AgentsException):
            await Runner.run(judge, "go", max_turns=2)

    async def responses(truth: Truth) -> None:
        """Run an agent with the Responses API: its spans have counts of tokens but no output, so calls have no ids."""
        twice = Step(calls=(("look_up", {"q": "a"}), ("look_up", {"q": "b"})), usage=(700, 70, 0, 64))
        model = Scripted("solo", truth, twice, Step("done", usage=(800, 80, 640, 0)), responses=True)
        await Runner.run(Agent("solo", model=model, tools=[tool]), "go")

    scenarios = (single, nested, parallel, handoffs, guardrail, sequence, responses)
    return {scenario.__name__: scenario for scenario in scenarios}
