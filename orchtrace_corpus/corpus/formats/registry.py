"""The formats by name. The module of a format is imported when a file is first read or written."""

from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import printable, quote, suggestion
from orchtrace_corpus.base.json_syntax import JsonError
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.formats import FormatError, Item, Problem
from orchtrace_corpus.corpus.model.records import Exclusion, Paper
from orchtrace_corpus.corpus.model.taxonomy import Taxonomy


class FileFormat(NamedTuple):
    """A format, and how to read and write it; every format can be written.

    Attributes:
        name: Its name in `corpus export` and `import`, and that of its module unless `module` names another.
        profiles: Its variants with their descriptions; the first is the default.
        has_categories: Whether it has a place for arXiv's category of a paper.
        is_citation: Whether it holds citations, which have no place for some fields.
        of_exclusions: Its profiles that can hold exclusions.
        module: Its module in this package; after a colon, the ending of function names in a module of several formats.
    """

    name: str
    label: str
    profiles: Mapping[str, str]
    is_binary: bool = False
    can_read: bool = True
    has_categories: bool = False
    is_citation: bool = False
    of_exclusions: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    module: str = ""

    def read(self, data: bytes, taxonomy: Taxonomy, profile: str = "", path: str = "<input>") -> list[Item]:
        """Return the records of a file, whose path is for messages; the first profile is the default.

        Raises:
            CommandUseError: The format cannot be read, has no such profile, or needs a table that the taxonomy does
                not declare.
            FormatError: The file is not in this format; the message lists every problem.
        """
        chosen = self.profile(profile)
        if not self.can_read:
            raise CommandUseError(f"{self.label} is written only, not read", f"Readable: {', '.join(readable())}.")
        problems: list[Problem] = []
        items: list[Item] = []
        try:
            items = self._function("read")(data.decode("utf-8-sig"), taxonomy, chosen, problems)
        except UnicodeDecodeError as error:
            shown = printable(data[error.start : error.end].hex())
            line = data.count(b"\n", 0, error.start) + 1
            problems.append(Problem(line, f"not UTF-8: byte {shown}; save the file as UTF-8"))
        except JsonError as error:
            problems.append(Problem(error.line, str(error)))
        if problems:
            raise FormatError(path, problems)
        return items

    def write(
        self, papers: Sequence[Paper], taxonomy: Taxonomy, profile: str = "", categories: Mapping[str, str] = {}
    ) -> str | bytes:
        """Return the papers in this format: text, or bytes if the format is binary; the first profile is the default.

        `categories` are arXiv's primary categories by arXiv id, for formats that have a place for them.

        Raises:
            CommandUseError: There is no such profile, the taxonomy does not declare its table, or a library is missing.
        """
        written: str | bytes = self._function("write")(papers, taxonomy, self.profile(profile), categories)
        return written

    def write_exclusions(self, exclusions: Sequence[Exclusion], taxonomy: Taxonomy, profile: str = "") -> str:
        """Return the exclusions in this format; a `CommandUseError` if it has no form for them."""
        if self.profile(profile) not in self.of_exclusions:
            able = [f"{known.name} --profile {name}" for known in FORMATS.values() for name in known.of_exclusions]
            whole = "Whole ones: corpus list --exclusions --columns all --format csv, or --format json."
            name = f"{self.name} --profile {self.profile(profile)}"
            raise CommandUseError(f"{name} holds no exclusions", f"Use {', '.join(able)}. {whole}")
        written: str = self._function("write_exclusions")(exclusions, taxonomy)
        return written

    def left_out(self, papers: Iterable[Paper], taxonomy: Taxonomy) -> dict[str, int]:
        """Return the fields that have no place in this format, each with its number of papers."""
        if not self.is_citation:
            return {}
        fields_of = self._function("left_out")
        unplaced = [field.name for field in taxonomy.fields if not getattr(field.carriers, self.name)]
        counts = Counter[str]()
        for paper in papers:
            counts.update(dict.fromkeys((*fields_of(paper), *(name for name in unplaced if name in paper.more)), 1))
        return dict(counts)

    def profile(self, name: str) -> str:
        """Return the profile of a name, or the first one for the empty name; a `CommandUseError` for an unknown one."""
        if not name:
            return next(iter(self.profiles))
        if name not in self.profiles:
            raise CommandUseError(f"{self.name} has no profile {quote(name)}{suggestion(name, list(self.profiles))}")
        return name

    def _function(self, action: str) -> Any:
        """Return the function that reads or writes this format."""
        module, _, kind = (self.module or self.name).partition(":")
        functions = import_module(f"orchtrace_corpus.corpus.formats.{module}")
        return getattr(functions, f"{action}_{kind}" if kind else action)


FORMATS: dict[str, FileFormat] = {
    file_format.name: file_format
    for file_format in (
        FileFormat(
            "bibtex",
            "BibTeX",
            {
                "bibtex": "what a citation needs, LaTeX for every character beyond ASCII that it has a command for",
                "biblatex": "the same in Unicode, for biber",
                "tagged": "the same in Unicode, with tags as keywords and the summary as annotation",
            },
            has_categories=True,
            is_citation=True,
            endings=(".bib", ".bibtex"),
        ),
        FileFormat(
            "csv",
            "CSV",
            {
                "full": "every field, each level in a column of its own",
                "published": "the columns of the published table, as the taxonomy declares them",
            },
            module="table",
            of_exclusions=("published",),
            endings=(".csv",),
        ),
        FileFormat(
            "json", "JSON", {"records": "whole records, in one document"}, module="records:document", endings=(".json",)
        ),
        FileFormat(
            "jsonl",
            "JSON Lines",
            {"records": "whole records, one on each line"},
            module="records:lines",
            endings=(".jsonl", ".ndjson"),
        ),
        FileFormat(
            "ris", "RIS", {"citation": "what a citation needs, tags as keywords"}, is_citation=True, endings=(".ris",)
        ),
        FileFormat(
            "csl",
            "CSL-JSON",
            {"citation": "what a citation needs, tags as keywords"},
            module="records:csl",
            is_citation=True,
            endings=(".csl.json", ".csl"),
        ),
        FileFormat(
            "parquet",
            "Parquet",
            {"frame": "the columns of to_pandas()"},
            is_binary=True,
            can_read=False,
            module="table:frame",
            endings=(".parquet",),
        ),
    )
}
"""Every format by its name."""


def find(name: str, *, to_read: bool = False) -> FileFormat:
    """Return a format by its name, in any case; the error for an unknown name suggests readable ones if `to_read`."""
    if name.lower() not in FORMATS:
        names = readable() if to_read else tuple(FORMATS)
        raise CommandUseError(f"unknown format {quote(name)}{suggestion(name, names)}")
    return FORMATS[name.lower()]


def find_by_ending(path: str, data: bytes = b"") -> FileFormat:
    """Return the format of a file by the ending of its name; a list in a file .json is CSL-JSON."""
    by_ending = {ending: file_format for file_format in FORMATS.values() for ending in file_format.endings}
    ending = max((ending for ending in by_ending if path.lower().endswith(ending)), key=len, default="")
    if not ending:
        hint = f"Name the format before the file, or let the file end in {', '.join(by_ending)}."
        raise CommandUseError(f"the name {quote(path)} does not say which format the file has", hint)
    is_list = by_ending[ending].name == "json" and data.removeprefix(BOM_UTF8).lstrip().startswith(b"[")
    return FORMATS["csl"] if is_list else by_ending[ending]


def is_readable(path: str) -> bool:
    """Return True if the name of a file says that it has a format that can be read."""
    endings = [ending for name in readable() for ending in FORMATS[name].endings]
    return path.lower().endswith(tuple(endings))


def readable() -> tuple[str, ...]:
    """Return the names of the formats that can be read."""
    return tuple(name for name, file_format in FORMATS.items() if file_format.can_read)
