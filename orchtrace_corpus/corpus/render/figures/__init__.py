"""The figures of a corpus, drawn from its data as SVG, one file each.

`plan` names the figures that a taxonomy calls for and says each in words, `draw` draws any of them with
the module of its kind. What it looks like is up to `sheet` and `base.text.drawing`.
"""

from collections.abc import Mapping

from orchtrace_corpus.base.text.table import markdown_text
from orchtrace_corpus.corpus.render.figures.plan import FOLDER, Caption, Figure, FigureKind, Source


def draw(figure: Figure, source: Source, said: Caption) -> str:
    """A figure as an SVG document, with its caption."""
    from orchtrace_corpus.corpus.render.figures import charts, diagrams

    drawers = {
        FigureKind.COVERAGE: charts.draw_coverage,
        FigureKind.YEARS: charts.draw_years,
        FigureKind.TERMS: charts.draw_terms,
        FigureKind.LEVELS: charts.draw_levels,
        FigureKind.SKETCHES: diagrams.draw_sketches,
        FigureKind.SCREENING: diagrams.draw_screening,
        FigureKind.SCALE: diagrams.draw_scale,
    }
    return drawers[figure.kind](figure, said, source)


def page(captions: Mapping[Figure, Caption]) -> str:
    """A document with figures, each with its numbers in words below it; it lies beside the figures' folder."""
    folder = FOLDER.rpartition("/")[2]
    parts = ["# Figures\n"]
    for figure, said in captions.items():
        title, text = markdown_text(said.title), markdown_text(said.text)
        parts.append(f"## {title}\n\n![{title}]({folder}/{figure.name}.svg)\n\n{text}\n")
    return "\n".join(parts)
