"""Runs of LangGraph, as LangSmith's client sends them."""

import contextlib
import json
import operator
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated, Any, TypedDict

from sdk_logs import Step, Truth


def sent(graph: Any, given: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """Run a graph, and yield the requests that LangSmith's client sends to a server on this machine."""
    from langchain_core.tracers.langchain import LangChainTracer
    from langsmith import Client

    bodies: list[bytes] = []

    class Ingest(BaseHTTPRequestHandler):
        """A server that keeps the requests that it receives."""

        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(202)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Write no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Ingest)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    info = {"batch_ingest_config": {"use_multipart_endpoint": False, "size_limit": 3, "size_limit_bytes": 10**6,
                                    "scale_up_nthreads_limit": 1, "scale_up_qsize_trigger": 1000}}  # fmt: skip
    client = Client(api_url=f"http://127.0.0.1:{server.server_port}", api_key="none", info=info)
    tracer = LangChainTracer(client=client, project_name="fixtures")
    config: dict[str, Any] = {"callbacks": [tracer], "max_concurrency": 8}
    if graph.name == "LangGraph":
        config["run_name"] = name
    with contextlib.suppress(RuntimeError):  # one scenario fails on purpose
        graph.invoke(given, config)
    tracer.wait_for_futures()
    client.flush()
    server.shutdown()
    for body in bodies:
        yield _without_machine(json.loads(body))


def _without_machine(request: dict[str, Any]) -> dict[str, Any]:
    """Return a request without traces of the machine: without its runtime, and without paths in tracebacks."""
    for run in (*request.get("post", ()), *request.get("patch", ())):
        extra = run.get("extra") or {}
        runtime = extra.get("runtime") or {}
        extra["runtime"] = {name: runtime[name] for name in ("sdk", "sdk_version") if name in runtime}
        if not extra["runtime"]:
            del extra["runtime"]
        metadata = extra.get("metadata") or {}
        for name in ("revision_id", "LANGSMITH_TRACING", "LANGSMITH_PROJECT"):
            metadata.pop(name, None)
        run.pop("serialized", None)
        run.pop("session_name", None)
        if run.get("error"):
            run["error"] = run["error"].partition("Traceback")[0]
    return request


def merged(requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the runs in requests, in the order of their ends; values that are sent later replace earlier ones."""
    runs: dict[str, dict[str, Any]] = {}
    for request in requests:
        for part in (*request.get("post", ()), *request.get("patch", ())):
            runs.setdefault(part["id"], {}).update({name: value for name, value in part.items() if value is not None})
    return sorted(runs.values(), key=lambda run: str(run.get("end_time")))


def scenarios() -> dict[str, tuple[Callable[[Truth], Any], dict[str, Any]]]:
    """Return the graphs with their inputs, by name."""
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_core.tools import tool
    from langgraph.graph import END, START, StateGraph
    from langgraph.prebuilt import create_react_agent
    from langgraph.types import Command, Send

    class Scripted(BaseChatModel):  # type: ignore[misc]
        """A model that gives scripted answers."""

        agent: str
        truth: Any
        steps: Any

        @property
        def _llm_type(self) -> str:
            return "scripted"

        def bind_tools(self, *_: Any, **__: Any) -> Any:
            return self

        def _generate(self, *_: Any, **__: Any) -> Any:
            step = next(self.steps)
            time.sleep(step.seconds)
            if step.fails:
                raise TimeoutError("no answer")
            input_tokens, output_tokens, cached, reasoning = step.usage
            self.truth.note(self.agent, step.usage)
            calls = [
                {"name": name, "args": arguments, "id": f"call_{self.agent}_{index}", "type": "tool_call"}
                for index, (name, arguments) in enumerate(step.calls)
            ]
            usage = {
                "input_tokens": input_tokens,
                "output_tokens": output_tokens,
                "total_tokens": input_tokens + output_tokens,
                "input_token_details": {"cache_read": cached},
                "output_token_details": {"reasoning": reasoning},
            }
            fields = {"usage_metadata": usage, "response_metadata": {"model_name": "scripted-1"}, "tool_calls": calls}
            return ChatResult(generations=[ChatGeneration(message=AIMessage(content=step.text, **fields))])

    def look_up(q: str) -> str:
        """Look something up."""
        time.sleep(0.01)
        return f"fact about {q}"

    def break_down(q: str) -> str:
        """Fail."""
        raise RuntimeError(q)

    look_up_tool, broken_tool = tool(look_up), tool(break_down)

    class State(TypedDict):
        """The state that the nodes of a graph share."""

        topic: str
        out: Annotated[list[str], operator.add]

    def node(name: str, truth: Truth, *steps: Step, uses: Any = None, goto: Sequence[str] = ()) -> Callable[[Any], Any]:
        """Return a node with a scripted model.

        Args:
            name: The name of the node.
            truth: Collects the tokens.
            steps: The answers of the model, one for each time that the node runs.
            uses: A tool that the node calls after the model; None for none.
            goto: The next node for each time that the node runs, `end` for the last; empty if edges decide.
        """
        model = Scripted(agent=name, truth=truth, steps=iter(steps))
        next_nodes = iter(goto)

        def work(_: Any) -> Any:
            answer = model.invoke("go").content
            if uses is not None:
                uses.invoke({"q": name})
            update = {"out": [answer]}
            next_node = next(next_nodes, None)
            if next_node is None:
                return update
            return Command(update=update, goto=END if next_node == "end" else next_node)

        return work

    def send(truth: Truth) -> Any:
        """Return a graph: a lead sends three tasks to workers, a node without a model sorts, and another merges."""
        steps = iter([Step("w", usage=(100 + n, 10, 32, 4), seconds=0.01 * (n + 1)) for n in range(3)])
        worker = Scripted(agent="worker", truth=truth, steps=steps)

        def work(_: Any) -> Any:
            answer = worker.invoke("go").content
            look_up_tool.invoke({"q": "w"})
            return {"out": [answer]}

        graph = StateGraph(State)
        graph.add_node("lead", node("lead", truth, Step("plan", usage=(50, 5, 0, 0))))
        graph.add_node("worker", work)
        graph.add_node("sort", lambda state: {"out": sorted(state["out"])[:0]})
        graph.add_node("merge", node("merge", truth, Step("all", usage=(300, 30, 0, 0))))
        graph.add_edge(START, "lead")
        graph.add_conditional_edges("lead", lambda state: [Send("worker", state) for _ in range(3)], ["worker"])
        graph.add_edge("worker", "sort")
        graph.add_edge("sort", "merge")
        graph.add_edge("merge", END)
        return graph.compile()

    def joined(truth: Truth) -> Any:
        """Return a graph with a team inside a node: a lead, three workers in parallel, and a join; then a last node."""
        team = StateGraph(State)
        team.add_node("lead", node("lead", truth, Step("plan", usage=(60, 6, 0, 0))))
        for number in range(3):
            steps = (Step("w", usage=(70 + number, 7, 0, 0), seconds=0.01 * (number + 1)),)
            team.add_node(f"w{number}", node(f"w{number}", truth, *steps, uses=look_up_tool))
            team.add_edge("lead", f"w{number}")
        team.add_node("merge", node("merge", truth, Step("all", usage=(200, 20, 128, 0))))
        team.add_edge(START, "lead")
        team.add_edge(["w0", "w1", "w2"], "merge")
        inner = team.compile(name="research")
        graph = StateGraph(State)
        graph.add_node("boss", node("boss", truth, Step("go", usage=(40, 4, 0, 0))))
        graph.add_node("team", lambda state: {"out": inner.invoke(state)["out"][-1:]})
        graph.add_node("final", node("final", truth, Step("end", usage=(80, 8, 0, 0))))
        graph.add_edge(START, "boss")
        graph.add_edge("boss", "team")
        graph.add_edge("team", "final")
        return graph.compile()

    def command(truth: Truth) -> Any:
        """Return a graph in which a supervisor chooses the next node: a writer, then a critic."""
        steps = [Step(f"s{n}", usage=(100 + n, 10, 0, 0)) for n in range(3)]
        graph = StateGraph(State)
        graph.add_node("boss", node("boss", truth, *steps, goto=("writer", "critic", "end")))
        graph.add_node("writer", node("writer", truth, Step("w", usage=(130, 13, 0, 0)), goto=("boss",)))
        graph.add_node("critic", node("critic", truth, Step("c", usage=(140, 14, 0, 0)), goto=("boss",)))
        graph.add_edge(START, "boss")
        return graph.compile()

    def react(truth: Truth) -> Any:
        """Return LangGraph's prebuilt agent, with another one as its tool."""
        twice = Step(calls=(("look_up", {"q": "a"}), ("look_up", {"q": "b"})), usage=(400, 40, 0, 16))
        steps = iter([twice, Step("found", usage=(500, 50, 384, 0))])
        helper = create_react_agent(Scripted(agent="helper", truth=truth, steps=steps), [look_up_tool], name="helper")

        def ask_helper(q: str) -> str:
            """Ask the helper."""
            return str(helper.invoke({"messages": [("user", q)]})["messages"][-1].content)

        asks = Step(calls=(("ask_helper", {"q": "x"}),), usage=(600, 60, 0, 0))
        model = Scripted(agent="chief", truth=truth, steps=iter([asks, Step("done", usage=(700, 70, 0, 0))]))
        return create_react_agent(model, [tool(ask_helper)], name="chief")

    def failing(truth: Truth) -> Any:
        """Return a graph with a model that fails once and is called again, and a tool that fails."""
        model = Scripted(agent="first", truth=truth, steps=iter([Step(fails=True), Step("x", usage=(90, 9, 0, 0))]))
        stubborn = model.with_retry(stop_after_attempt=2, wait_exponential_jitter=False)
        graph = StateGraph(State)
        graph.add_node("first", lambda _: {"out": [stubborn.invoke("go").content]})
        graph.add_node("second", node("second", truth, Step("y", usage=(95, 9, 0, 0)), uses=broken_tool))
        graph.add_edge(START, "first")
        graph.add_edge("first", "second")
        return graph.compile()

    state = {"topic": "t", "out": []}
    messages = {"messages": [("user", "go")]}
    return {
        "send": (send, state),
        "joined": (joined, state),
        "command": (command, state),
        "failing": (failing, state),
        "react": (react, messages),
    }
