"""One run of a command: its global options and its output."""

from collections.abc import Callable, Mapping, Sequence

from orchtrace_corpus.base.annotations import TYPE_CHECKING
from orchtrace_corpus.base.commands.output import Output
from orchtrace_corpus.base.findings import Finding
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text.layout import Line

if TYPE_CHECKING:
    from orchtrace_corpus.base.text.findings import FindingsFormat
    from orchtrace_corpus.base.text.table import Table


class Session(NamedTuple):
    """The global options of one run, which every command has in its context."""

    output: Output
    root: str

    def show_tables(self, tables: "Sequence[Table]", schema: str, output_format: Format) -> None:
        """Show tables in a format."""
        from orchtrace_corpus.base.text import table  # costs start-up, and many commands show no table

        if output_format is not Format.TABLE:
            self.output.write(table.render(tables, schema, output_format))
            return
        for index, shown in enumerate(tables):
            blank = [()] if index else []
            renamed = shown._replace(notes=tuple(map(self.output.renamed, shown.notes)))
            self.output.show([*blank, *table.lines(renamed, self.output.width, self.output.glyphs)])

    def show_report(
        self,
        views: Mapping[Format, Callable[[], str | Sequence[Line]]],
        tables: "Callable[[], Sequence[Table]]",
        schema: str,
        output_format: Format,
    ) -> None:
        """Show a report in a format: by its view for this format, else as tables."""
        if output_format not in views:
            self.show_tables(tables(), schema, output_format)
            return
        view = views[output_format]()
        if isinstance(view, str):
            self.output.write(view)
        else:
            self.output.show(view)

    def show_findings(
        self, findings: Sequence[Finding], output_format: "FindingsFormat", limit: int | None = None
    ) -> None:
        """Show all findings, or the first ones up to a limit, in a format."""
        from orchtrace_corpus.base.text import findings as render  # costs start-up

        if output_format is render.FindingsFormat.TEXT:
            self.output.show(render.text(findings[:limit]))
        else:
            self.output.write(render.serialize(findings, output_format, limit))
