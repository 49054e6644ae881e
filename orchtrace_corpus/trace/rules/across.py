"""What no trace shows by itself: two runs of one name."""

from orchtrace_corpus.base.findings import Finding, Location, quote


class Names:
    """The names of the traces that one run of a command has seen, each with its place."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[str, int]] = {}

    def check(self, name: str, path: str, line: int) -> tuple[Finding, ...]:
        """Take note of a trace, and report it if another one has its name; a trace may be given twice.

        Args:
            name: Its `trace_id`.
            path: The path of its file, to show.
            line: The line on which it begins.
        """
        place = path, line
        first = self._places.setdefault(name, place)
        if first == place:
            return ()
        message = f"$.trace_id: {quote(name)} is that of {first[0]}:{first[1]}, too; give each run its own"
        return (Finding("T227", message, Location(path, line, 1), name),)
