"""The figures of a corpus, drawn from its data as SVG, one file each.

`plan` names the figures that a taxonomy calls for and says each in words, `draw` draws any of them with
the module of its kind. What it looks like is up to `sheet` and `base.text.drawing`.
"""

from collections.abc import Mapping

from orchtrace_corpus.base.text.table import markdown_text
from orchtrace_corpus.corpus.render.figures.plan import FOLDER, Caption, Figure, FigureKind, Source


def draw(figure: Figure, source: Source, said: Caption) -> str:
    """A figure as an SVG document, with its caption."""
    if figure.kind in (FigureKind.COVERAGE, FigureKind.YEARS):
        from orchtrace_corpus.corpus.render.figures import matrices

        draw_matrix = matrices.draw_coverage if figure.kind is FigureKind.COVERAGE else matrices.draw_years
        return draw_matrix(figure.name, said, source)
    if figure.kind is FigureKind.TERMS:
        from orchtrace_corpus.corpus.render.figures import bars

        return bars.draw_terms(figure.name, said, source.counts(figure.field), source.contested.get(figure.field, {}))
    if figure.kind is FigureKind.LEVELS:
        from orchtrace_corpus.corpus.render.figures import bars

        return bars.draw_levels(figure.name, said, source.levels(figure.field), source.contested)
    if figure.kind is FigureKind.SCREENING:
        from orchtrace_corpus.corpus.render.figures import diagrams

        return diagrams.draw_screening(figure.name, said, source)
    from orchtrace_corpus.corpus.render.figures import diagrams

    return diagrams.draw_scale(figure.name, said, source.scale)


def page(captions: Mapping[Figure, Caption]) -> str:
    """A document with figures, each with its numbers in words below it; it lies beside the figures' folder."""
    folder = FOLDER.rpartition("/")[2]
    parts = ["# Figures\n"]
    for figure, said in captions.items():
        title, text = markdown_text(said.title), markdown_text(said.text)
        parts.append(f"## {title}\n\n![{title}]({folder}/{figure.name}.svg)\n\n{text}\n")
    return "\n".join(parts)
