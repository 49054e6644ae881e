"""What differs between two texts that say the same: comments, or the layout."""

from collections import Counter
from enum import StrEnum

from orchtrace_corpus.base.yamlfile.reader import YamlFile
from orchtrace_corpus.base.yamlfile.writer import comments


class Form(StrEnum):
    """What of a file has no meaning to a program."""

    COMMENTS = "comments"
    LAYOUT = "layout"


def differences(before: bytes, after: bytes, *, is_reordered: bool) -> set[Form]:
    """What of the form differs between two texts with the same records.

    Args:
        before: The one text.
        after: The other.
        is_reordered: Whether the records stand in another order, which alone is neither.
    """
    if before == after:
        return set()
    texts = []
    for data in (before, after):
        file = YamlFile("", data)
        file.root()
        if file.findings:
            return {Form.LAYOUT}
        texts.append(file.text)
    told = [[text for _, text in comments(text)] for text in texts]
    bare = [_without_comments(text) for text in texts]
    if is_reordered:  # whatever is there in both was moved
        different = Counter(told[0]) != Counter(told[1]), Counter(bare[0]) != Counter(bare[1])
        return {form for form, differs in zip(Form, different, strict=True) if differs}
    found = {form for form, pair in zip(Form, (told, bare), strict=True) if pair[0] != pair[1]}
    return found or {Form.LAYOUT}  # a comment or a blank line that stands elsewhere


def _without_comments(text: str) -> list[str]:
    """The lines that hold anything else."""
    kept, end = [], 0
    for at, comment in comments(text):
        kept.append(text[end:at])
        end = at + len(comment)
    return [line.rstrip() for line in "".join((*kept, text[end:])).splitlines() if line.strip()]
