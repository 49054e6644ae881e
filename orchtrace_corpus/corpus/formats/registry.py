"""All formats that papers can be exported to or imported from. A format's module is imported on first use."""

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
    """A file format, with the functions that read and write it. Every format can be written.

    Attributes:
        name: The name in `corpus export` and `import`.
        profiles: The variants of the format with their descriptions; the first is the default.
        has_categories: Whether it includes arXiv's category of a paper.
        is_citation: Whether it holds citations, which leave out some fields of a paper.
        exclusion_profiles: The profiles that can hold exclusions.
        module: The module in this package, if it is not called `name`. In `records:csl`, the functions of the module
            end in `_csl`, since it has several formats.
    """

    name: str
    label: str
    profiles: Mapping[str, str]
    is_binary: bool = False
    can_read: bool = True
    has_categories: bool = False
    is_citation: bool = False
    exclusion_profiles: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    module: str = ""

    def read(self, data: bytes, taxonomy: Taxonomy, profile: str = "", path: str = "<input>") -> list[Item]:
        """Return the records of a file; messages name it by `path`.

        Raises:
            CommandUseError: The format cannot be read, has no such profile, or needs a table that the taxonomy does
                not declare.
            FormatError: The file is not in this format; the message lists every problem.
        """
        profile = self.require_profile(profile)
        if not self.can_read:
            raise CommandUseError(
                f"{self.label} is written only, not read", f"Readable: {', '.join(readable_formats())}."
            )
        problems: list[Problem] = []
        items: list[Item] = []
        try:
            items = self._function("read")(data.decode("utf-8-sig"), taxonomy, profile, problems)
        except UnicodeDecodeError as error:
            invalid = printable(data[error.start : error.end].hex())
            line = data.count(b"\n", 0, error.start) + 1
            problems.append(Problem(line, f"not UTF-8: byte {invalid}; save the file as UTF-8"))
        except JsonError as error:
            problems.append(Problem(error.line, str(error)))
        if problems:
            raise FormatError(path, problems)
        return items

    def write(
        self, papers: Sequence[Paper], taxonomy: Taxonomy, profile: str = "", categories: Mapping[str, str] = {}
    ) -> str | bytes:
        """Return the papers in this format: text, or bytes if the format is binary.

        `categories` are arXiv's primary categories by arXiv id, for formats that include them.

        Raises:
            CommandUseError: There is no such profile, the taxonomy does not declare its table, or a library is missing.
        """
        content: str | bytes = self._function("write")(papers, taxonomy, self.require_profile(profile), categories)
        return content

    def write_exclusions(self, exclusions: Sequence[Exclusion], taxonomy: Taxonomy, profile: str = "") -> str:
        """Return the exclusions in this format; raise a `CommandUseError` if the profile cannot hold them."""
        profile = self.require_profile(profile)
        if profile not in self.exclusion_profiles:
            usable = [f"{form.name} --profile {name}" for form in FORMATS.values() for name in form.exclusion_profiles]
            whole = "Whole ones: corpus list --exclusions --columns all --format csv, or --format json."
            message = f"{self.name} --profile {profile} holds no exclusions"
            raise CommandUseError(message, f"Use {', '.join(usable)}. {whole}")
        content: str = self._function("write_exclusions")(exclusions, taxonomy)
        return content

    def left_out(self, papers: Iterable[Paper], taxonomy: Taxonomy) -> dict[str, int]:
        """Return the fields that this format does not hold, each with the number of papers that have it."""
        if not self.is_citation:
            return {}
        left_out_of_paper = self._function("left_out")
        survey_fields = [field.name for field in taxonomy.fields if not getattr(field.citation_names, self.name)]
        counts = Counter[str]()
        for paper in papers:
            names = (*left_out_of_paper(paper), *(name for name in survey_fields if name in paper.more))
            counts.update(dict.fromkeys(names, 1))  # each field once, in a stable order
        return dict(counts)

    def require_profile(self, name: str) -> str:
        """Return the name of a profile: the default for "", and a `CommandUseError` for an unknown one."""
        if not name:
            return next(iter(self.profiles))
        if name not in self.profiles:
            raise CommandUseError(f"{self.name} has no profile {quote(name)}{suggestion(name, list(self.profiles))}")
        return name

    def _function(self, action: str) -> Any:
        """Return the function of this format for an action: `read`, `write`, `write_exclusions` or `left_out`."""
        name, _, suffix = (self.module or self.name).partition(":")
        module = import_module(f"orchtrace_corpus.corpus.formats.{name}")
        return getattr(module, f"{action}_{suffix}" if suffix else action)


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
            exclusion_profiles=("published",),
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
    """Return a format by its name in any case, or raise an error that suggests names, `to_read` only readable ones."""
    if name.lower() not in FORMATS:
        names = readable_formats() if to_read else tuple(FORMATS)
        raise CommandUseError(f"unknown format {quote(name)}{suggestion(name, names)}")
    return FORMATS[name.lower()]


def find_by_ending(path: str, data: bytes = b"") -> FileFormat:
    """Return the format of a file by the longest ending that fits its name; a `.json` file with a list is CSL-JSON."""
    formats = {ending: file_format for file_format in FORMATS.values() for ending in file_format.endings}
    endings = [ending for ending in formats if path.lower().endswith(ending)]
    if not endings:
        hint = f"Name the format before the file, or let the file end in {', '.join(formats)}."
        raise CommandUseError(f"the name {quote(path)} does not say which format the file has", hint)
    file_format = formats[max(endings, key=len)]
    has_list = data.removeprefix(BOM_UTF8).lstrip().startswith(b"[")
    return FORMATS["csl"] if file_format.name == "json" and has_list else file_format


def is_readable(path: str) -> bool:
    """Return True if the name of a file ends as in a format that can be read."""
    endings = [ending for name in readable_formats() for ending in FORMATS[name].endings]
    return path.lower().endswith(tuple(endings))


def readable_formats() -> tuple[str, ...]:
    """Return the names of the formats that can be read."""
    return tuple(name for name, file_format in FORMATS.items() if file_format.can_read)
