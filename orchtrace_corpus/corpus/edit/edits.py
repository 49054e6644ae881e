"""New text for a data file: records added, and fields of records changed.

Everything else stays byte for byte, which `yamlfile.splice` guarantees. These functions turn values into YAML and write
no file: `edit.proposal` writes.
"""

from collections.abc import Iterable, Mapping, Sequence

from orchtrace_corpus.base.yamlfile import reader, splice
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.base.yamlfile.reader import Node, YamlFile
from orchtrace_corpus.base.yamlfile.record import values
from orchtrace_corpus.base.yamlfile.writer import Style, record_text
from orchtrace_corpus.corpus.model.field_table import value_texts
from orchtrace_corpus.corpus.model.record_fields import Value
from orchtrace_corpus.corpus.model.store import CorpusFiles


def raw_records(file: YamlFile) -> list[dict[str, object]]:
    """Return the fields of every record as written, valid or not: texts, lists and mappings."""
    records = file.kept or list(YamlFile(file.path, file.text.encode()).records())  # read again unless kept
    return [
        {name: values(value) for name, (_, value) in node.entries.items()} if type(node) is reader.Mapping else {}
        for node in records
    ]


def plain_value(value: object) -> object:
    """Return a value in a form in which equal values compare equal: numbers and flags as text, `[NA]` as `NA`."""
    if isinstance(value, Mapping):
        return {name: plain_value(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        plain = [plain_value(part) for part in value]
        return NOT_APPLICABLE if plain == [NOT_APPLICABLE] else plain
    return value_texts(value)[0] if isinstance(value, (int, float)) else value


def edit_file(
    corpus: CorpusFiles,
    path: str,
    *,
    changes: Mapping[int, Mapping[str, Value | None]] = {},
    added: Sequence[Mapping[str, Value]] = (),
) -> str:
    """Return the new text of a data file after `change_records`, then `add_records`."""
    file, style = corpus.file(path), corpus.style(path)
    if changes:
        file = YamlFile(file.path, change_records(file, changes, style).encode())
    return add_records(file, added, style)


def add_records(file: YamlFile, records: Iterable[Mapping[str, Value]], style: Style) -> str:
    """Return the file's text with new records, in the order of the style's key, else at the end.

    Raises:
        DataFileError: The file has errors, or two of its records share a line.
    """
    records, positions = list(records), None
    if style.key and records:
        records.sort(key=lambda record: str(record.get(style.key)))
        present = [str(record.get(style.key)) for record in raw_records(file)]
        keys = [str(record.get(style.key)) for record in records]
        # After the last record whose key is not larger: in a file that is not sorted, that is near the end.
        positions = [max((at for at, other in enumerate(present, 1) if other <= key), default=0) for key in keys]
    blocks = [record_text(_mapping(record), style) for record in records]
    return splice.insert_records(file, positions, blocks) if blocks else file.text


def change_records(file: YamlFile, changes: Mapping[int, Mapping[str, Value | None]], style: Style) -> str:
    """Return the file's text with new values of fields, by the index of each record and the field's name.

    A field keeps its comments; a new one is inserted in canonical order; None removes a field and its comments. A
    `DataFileError` says where a change would touch anything else, and what to do.
    """
    nodes = {
        index: {name: None if value is None else _node(value) for name, value in new_values.items()}
        for index, new_values in changes.items()
        if new_values
    }
    return splice.change_fields(file, nodes, style) if nodes else file.text


def _node(value: Value) -> Node:
    """Return a value as a node without a position."""
    if isinstance(value, Mapping):
        return _mapping(value)
    if isinstance(value, (str, int, float)):
        return reader.Scalar(value if isinstance(value, str) else value_texts(value)[0], -1)
    return reader.Sequence([_node(item) for item in value], -1)


def _mapping(record: Mapping[str, Value]) -> reader.Mapping:
    return reader.Mapping({name: (-1, _node(value)) for name, value in record.items()}, -1)
