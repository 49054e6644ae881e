"""New texts of data files, with records added and fields of records changed.

`yamlfile.splice` keeps everything else byte for byte. These functions write no file: `edit.proposal` does.
"""

from collections.abc import Iterable, Mapping, Sequence

from orchtrace_corpus.base.yamlfile import reader, splice
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.base.yamlfile.reader import Node, YamlFile
from orchtrace_corpus.base.yamlfile.record import node_content
from orchtrace_corpus.base.yamlfile.writer import Style, record_text
from orchtrace_corpus.corpus.model.field_table import value_texts
from orchtrace_corpus.corpus.model.record_fields import Value
from orchtrace_corpus.corpus.model.store import CorpusFiles


def raw_records(file: YamlFile) -> list[dict[str, object]]:
    """Return the fields of every record as written, valid or not: texts, lists and mappings."""
    nodes = file.kept or list(YamlFile(file.path, file.text.encode()).records())  # parse again unless nodes were kept
    records: list[dict[str, object]] = []
    for node in nodes:
        entries = node.entries if type(node) is reader.Mapping else {}
        records.append({name: node_content(value) for name, (_, value) in entries.items()})
    return records


def comparable(value: object) -> object:
    """Return a value in a form in which equal values compare equal: numbers and flags as text, `[NA]` as `NA`."""
    if isinstance(value, Mapping):
        return {name: comparable(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [comparable(part) for part in value]
        return NOT_APPLICABLE if parts == [NOT_APPLICABLE] else parts
    return _scalar_text(value) if isinstance(value, (int, float)) else value


def edit_file(
    corpus: CorpusFiles,
    path: str,
    *,
    changes: Mapping[int, Mapping[str, Value | None]] = {},
    added: Sequence[Mapping[str, Value]] = (),
) -> str:
    """Return the new text of a data file; arguments as for `change_records` and `add_records`."""
    file = corpus.file(path)
    style = corpus.style(path)
    if changes:
        file = YamlFile(file.path, change_records(file, changes, style).encode())
    return add_records(file, added, style)


def add_records(file: YamlFile, records: Iterable[Mapping[str, Value]], style: Style) -> str:
    """Return the file's text with new records: sorted in by the style's key, or at the end if it has no key.

    Raise `DataFileError` if the file has errors, or if two of its records share a line.
    """
    records = list(records)
    if not records:
        return file.text
    positions: list[int] | None = None  # the end of the file
    if style.key:
        records.sort(key=lambda record: str(record.get(style.key)))
        present_keys = [str(record.get(style.key)) for record in raw_records(file)]
        positions = []
        for record in records:
            # After the last record whose key is not larger: if the file is not sorted, that is near the end.
            position = len(present_keys)
            while position and present_keys[position - 1] > str(record.get(style.key)):
                position -= 1
            positions.append(position)
    return splice.insert_records(file, positions, [record_text(_mapping(record), style) for record in records])


def change_records(file: YamlFile, changes: Mapping[int, Mapping[str, Value | None]], style: Style) -> str:
    """Return the file's text with new values of fields, by the index of the record and the name of the field.

    A field keeps its comments; a new field is inserted in canonical order; None removes a field and its comments.
    Raise `DataFileError` if a change would touch other fields; the message says where, and what to do.
    """
    nodes: dict[int, dict[str, Node | None]] = {}
    for index, new_values in changes.items():
        if new_values:
            nodes[index] = {name: None if value is None else _node(value) for name, value in new_values.items()}
    return splice.change_fields(file, nodes, style) if nodes else file.text


_NOWHERE = -1  # the position of nodes that are in no file


def _node(value: Value) -> Node:
    if isinstance(value, Mapping):
        return _mapping(value)
    if isinstance(value, (str, int, float)):
        return reader.Scalar(_scalar_text(value), _NOWHERE)
    return reader.Sequence([_node(item) for item in value], _NOWHERE)


def _mapping(record: Mapping[str, Value]) -> reader.Mapping:
    return reader.Mapping({name: (_NOWHERE, _node(value)) for name, value in record.items()}, _NOWHERE)


def _scalar_text(value: str | int | float) -> str:
    return value if isinstance(value, str) else value_texts(value)[0]
