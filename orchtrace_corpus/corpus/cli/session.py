"""The session of a command on a corpus: its data files and its output."""

import os
import re
from collections.abc import Sequence
from functools import cached_property

from orchtrace_corpus.base.annotations import TYPE_CHECKING
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, DataFileError, InvalidCorpusError, MalformedCorpusError
from orchtrace_corpus.base.findings import Severity, has_errors, is_malformed, quote
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text.findings import summary
from orchtrace_corpus.base.text.layout import MAX_LINES, first_and_more, pluralize
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.records import ReadingName
from orchtrace_corpus.corpus.model.store import CorpusFiles

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.analysis.query import Query
    from orchtrace_corpus.corpus.model.records import Pool
    from orchtrace_corpus.corpus.model.taxonomy import Taxonomy


class CorpusSession(Session):
    """The global options of a command, and the corpus that they name."""

    @cached_property
    def files(self) -> CorpusFiles:
        """The data files of the corpus."""
        self.output.session = self  # keeps the corpus in memory until the process ends, as freeing it takes time
        return CorpusFiles(self.root_folder())

    def root_folder(self) -> str:
        """Return the corpus's folder: `--root`, else the nearest one from the working folder upwards, else the bundled.

        Raises:
            DataFileError: There is no corpus.
        """
        if self.root:
            if not os.path.isfile(os.path.join(self.root, store.PAPERS)):
                raise DataFileError(f"no {store.PAPERS} in {quote(self.root)}", "Name the folder that holds data/.")
            return self.root
        root = store.find_root()
        if root.bundled:
            self.output.note_once(f"corpus: no corpus in this folder; using the bundled one in {root.path}")
        return root.path

    def writable_root(self) -> str:
        """Return the corpus's folder for a command that writes, which cannot be the bundled one."""
        if not self.root and store.find_root().bundled:
            raise DataFileError(f"no {store.PAPERS} here or in any folder above", "Name the corpus with --root DIR.")
        return self.root_folder()

    def pool(self) -> "Pool":
        """Return the records for a command that counts them, which needs records without errors.

        Raises:
            DataFileError: There is no corpus, or a data file is missing or unreadable.
            InvalidCorpusError: The data has errors; the message shows the first ones.
        """
        from orchtrace_corpus.corpus import rules

        loaded = self.files.loaded
        findings = rules.check(loaded)
        if loaded.pool is None or has_errors(findings):
            errors = [finding for finding in findings if finding.severity is Severity.ERROR]
            lines = first_and_more([str(finding) for finding in errors], MAX_LINES, "and {:,} more")
            message = f"the data has {summary(errors)}, so its counts would not be true:"
            error_type = MalformedCorpusError if is_malformed(findings) else InvalidCorpusError
            raise error_type("\n".join((message, *lines)), "Run corpus check data for all of them.")
        return loaded.pool

    def pool_despite_errors(self) -> "Pool":
        """Return the records for a command that shows them. Errors only cause a note, except those of the taxonomy."""
        from orchtrace_corpus.corpus import rules

        loaded = self.files.loaded
        if loaded.pool is None:
            return self.pool()  # raises the errors
        findings = rules.check(loaded)
        if has_errors(findings):
            self.output.note(f"corpus: the data has {summary(findings)}, and may be incomplete; see corpus check data")
        return loaded.pool

    def pool_by_reading(self, pool: "Pool", reading: ReadingName, *words: str) -> "Pool":
        """Return the records with the tags of a reading, and `contested` if `words`, fields and filters, name it."""
        if any("contested" in word for word in words):
            pool = self.files.with_contested(pool, reading)
        if reading is ReadingName.PUBLISHED:
            return pool
        from orchtrace_corpus.corpus.model.disputes import pool_as_read

        return pool_as_read(pool, self.files.disputes.require(), reading)

    def note_no_paper(self, query: "Query", pool: "Pool", reading: ReadingName) -> None:
        """Report that no paper passes the filters, how many pass by the other reading, and how many candidates pass."""
        other = ReadingName.SOURCES if reading is ReadingName.PUBLISHED else ReadingName.PUBLISHED
        other_count = len(query.select(self.pool_by_reading(pool, other, "contested").papers))
        candidate_count = len(query.select(candidate.paper for candidate in self.files.candidates.items))
        message = f"corpus: no {pool.taxonomy.noun.one} passes the filters"
        if other_count:
            message += f"; {pool.taxonomy.noun.counted(other_count)} by --reading {other}"
        if candidate_count:
            message += f"; {pluralize(candidate_count, 'candidate')} (see corpus candidates)"
        self.output.note(message)


def check_caption(caption: str, output_format: Format) -> None:
    """Raise `CommandUseError` if a caption is given for a format other than LaTeX."""
    if caption and output_format is not Format.LATEX:
        raise CommandUseError("--caption is for tables in LaTeX", "Add: -f latex")


def paper_query(filters: Sequence[str], taxonomy: "Taxonomy") -> "Query":
    """Parse filters on papers. The `CommandUseError` for a field of exclusions says to use `--exclusions`."""
    from orchtrace_corpus.corpus.analysis.attributes import exclusion_attributes, paper_attributes
    from orchtrace_corpus.corpus.analysis.query import parse

    attributes = paper_attributes(taxonomy, contested=True)
    try:
        return parse(filters, attributes)
    except CommandUseError as error:
        for text in filters:
            name = re.split("[=!<>~]", text, maxsplit=1)[0].strip()
            if name in exclusion_attributes(taxonomy) and name not in attributes:
                message = f"{quote(name)} is a field of exclusions, not of {taxonomy.noun.many}"
                raise CommandUseError(message, f"Write: corpus list --exclusions --where {quote(text)}") from error
        raise
