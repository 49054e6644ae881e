"""`corpus trace graph`."""

from enum import StrEnum
from typing import Annotated

import typer

from orchtrace_corpus.cli.session import Session
from orchtrace_corpus.cli.trace.loading import one_trace
from orchtrace_corpus.errors import ExitCode
from orchtrace_corpus.render import trace_graph as render

app = typer.Typer(add_completion=False, rich_markup_mode=None)


class GraphFormat(StrEnum):
    """The forms of a graph."""

    MERMAID = "mermaid"
    DOT = "dot"
    SVG = "svg"


@app.command(name="graph")
def graph_trace(
    ctx: typer.Context,
    path: Annotated[str, typer.Argument(metavar="FILE", help="A trace as JSON.")],
    output_format: Annotated[GraphFormat, typer.Option("--format", "-f", help="The form of the output.")] = (
        GraphFormat.MERMAID
    ),
) -> int:
    """Write a trace as a graph for Mermaid or Graphviz, or as a picture of its timeline.

    The picture (svg) has a lane for each agent; the critical path is underlined.

    \b
    Examples:
      corpus trace graph data/traces/swarm.json
      corpus trace graph data/traces/swarm.json --format dot
      corpus trace graph data/traces/swarm.json --format svg
    """
    session = Session(*ctx.obj)
    trace = one_trace(session, path)
    draw = {
        GraphFormat.MERMAID: render.mermaid,
        GraphFormat.DOT: render.dot,
        GraphFormat.SVG: render.timeline,
    }[output_format]
    session.output.write(draw(trace))
    return ExitCode.DONE
