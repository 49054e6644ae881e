"""`corpus trace graph`."""

from enum import StrEnum
from typing import Annotated

import typer

from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.trace.cli.loading import FILE_HELP, by_ending, one_trace, write_new
from orchtrace_corpus.trace.model.trace import Trace
from orchtrace_corpus.trace.render import graph as render

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_MERMAID_EDGES, _MERMAID_TEXT = 500, 50_000
"""What Mermaid draws unless it is told otherwise (its settings maxEdges and maxTextSize)."""

_DOT_NODES = 2_000


class GraphFormat(StrEnum):
    """The forms of a graph."""

    MERMAID = "mermaid"
    DOT = "dot"
    SVG = "svg"


_ENDINGS = {
    "": GraphFormat.MERMAID,
    ".mmd": GraphFormat.MERMAID,
    ".mermaid": GraphFormat.MERMAID,
    ".dot": GraphFormat.DOT,
    ".gv": GraphFormat.DOT,
    ".svg": GraphFormat.SVG,
}


@app.command(name="graph")
def graph_trace(
    ctx: typer.Context,
    path: Annotated[str, typer.Argument(metavar="FILE", help=FILE_HELP)],
    wanted: Annotated[
        GraphFormat | None,
        typer.Option("--format", "-f", help="The form of the output (else by the ending of FILE, else mermaid)."),
    ] = None,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Write to a new file.")] = "",
) -> int:
    """Write a trace as a graph for Mermaid or Graphviz, or as a picture of its timeline.

    The critical path is thick in graphs, and underlined in the picture (svg), which has a lane for each
    agent. A graph has a node for each event; the picture of a long run stays small.

    \b
    Examples:
      corpus trace graph data/traces/swarm.json
      corpus trace graph data/traces/swarm.json --format dot
      corpus trace graph data/traces/swarm.json --format svg
    """
    session = Session(*ctx.obj)
    output_format = wanted or by_ending(output, _ENDINGS, "graphs", "--format")
    trace = one_trace(session, path)
    draw = {
        GraphFormat.MERMAID: render.mermaid,
        GraphFormat.DOT: render.dot,
        GraphFormat.SVG: render.timeline,
    }[output_format]
    written = draw(trace)
    if output:
        write_new(output, written)
        session.output.note(f"wrote {printable(output, limit=300)}")
    else:
        session.output.write(written)
    if output_format is GraphFormat.MERMAID and (len(trace.edges) > _MERMAID_EDGES or len(written) > _MERMAID_TEXT):
        session.output.note(
            f"corpus: {_size(trace, written)}; Mermaid by default draws {_MERMAID_EDGES} edges and "
            f"{_MERMAID_TEXT:,} characters. Raise its maxEdges and maxTextSize, or draw the timeline: --format svg"
        )
    elif output_format is GraphFormat.DOT and len(trace.events) > _DOT_NODES:
        session.output.note(
            f"corpus: {_size(trace, written)}; Graphviz takes long to lay out so many. The timeline is drawn at once: "
            "--format svg"
        )
    return ExitCode.DONE


def _size(trace: Trace, written: str) -> str:
    return f"{len(trace.events):,} events, {len(trace.edges):,} edges, {len(written.encode()) / 1e6:.1f} MB"
