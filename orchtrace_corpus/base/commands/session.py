"""The global options and the output of a command."""

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
    """The output of a command, and the folder of the corpus that the option `--root` names; empty for the default.

    Every command has it in its context, as `ctx.obj`.
    """

    output: Output
    root: str

    def show_tables(self, tables: "Sequence[Table]", schema: str, output_format: Format) -> None:
        """Show tables in a format."""
        from orchtrace_corpus.base.text import table as render  # imported here, because many commands show no table

        if output_format is not Format.TABLE:
            self.output.write(render.render(tables, schema, output_format))
            return
        for index, table in enumerate(tables):
            notes = tuple(self.output.renamed(note) for note in table.notes)
            lines = render.lines(table._replace(notes=notes), self.output.width, self.output.glyphs)
            blank_line: list[Line] = [()] if index else []  # between two tables
            self.output.show([*blank_line, *lines])

    def show_report(
        self,
        views: Mapping[Format, Callable[[], str | Sequence[Line]]],
        tables: "Callable[[], Sequence[Table]]",
        schema: str,
        output_format: Format,
    ) -> None:
        """Show a report in a format.

        Args:
            views: For some formats, a function that returns the report as text or as styled lines.
            tables: Returns the report as tables, for all other formats.
            schema: The name of the schema of the report in JSON.
            output_format: The format.
        """
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
        """Show the first `limit` findings, or all, in a format."""
        from orchtrace_corpus.base.text import findings as render  # imported here, because most commands find nothing

        if output_format is render.FindingsFormat.TEXT:
            self.output.show(render.text(findings[:limit]))
        else:
            self.output.write(render.serialize(findings, output_format, limit))
