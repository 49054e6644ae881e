"""`corpus diff`."""

import os
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, NamedTuple

import typer

from orchtrace_corpus.cli.session import Session
from orchtrace_corpus.errors import ExitCode, InvalidCorpusError
from orchtrace_corpus.findings import quote
from orchtrace_corpus.pool import rules, store
from orchtrace_corpus.pool.claim_file import Claim
from orchtrace_corpus.pool.claims import evaluate
from orchtrace_corpus.pool.difference import State, compare
from orchtrace_corpus.render import difference as render
from orchtrace_corpus.sources import revisions

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_NAMES = (store.TAXONOMY, store.PAPERS, store.EXCLUSIONS, store.CLAIMS, store.DISPUTES)
_EMPTY = b"[]\n"


class DiffFormat(StrEnum):
    """The forms of a difference."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


class Side(NamedTuple):
    """One of the two states that are compared: what it is called, its folder, and its data files as bytes."""

    name: str
    folder: str
    texts: Mapping[str, bytes]


@app.command()
def diff(
    ctx: typer.Context,
    base: Annotated[str, typer.Argument(metavar="BASE", help="A folder with a corpus, or a git revision.")],
    head: Annotated[
        str, typer.Argument(metavar="[HEAD]", help="Another; without it, the corpus as it is.", show_default=False)
    ] = "",
    exit_code: Annotated[bool, typer.Option("--exit-code", help="End with 1 if anything changed in meaning.")] = False,
    output_format: Annotated[DiffFormat, typer.Option("--format", "-f", help="The form of the output.")] = (
        DiffFormat.TEXT
    ),
) -> int:
    """Say what a change to the data means: papers, tags, counts, cells, claims and findings.

    The order of records, comments and layout have no meaning. BASE...HEAD stands for what HEAD has
    changed since the two parted, as in a pull request. Nothing is fetched: a commit that the clone
    lacks is named, with the command that brings it (exit code 3).

    \b
    Examples:
      corpus diff HEAD
      corpus diff HEAD --format markdown
      corpus diff path/to/corpus .
    """
    session = Session(*ctx.obj)
    root = session.root_folder()
    first, second = _sides(root, base, head)
    sides = [_completed(one, other) for one, other in ((first, second), (second, first))]
    claims = store.read_claims(sides[1].folder, sides[1].texts.get(store.CLAIMS, _EMPTY)).claims
    before, after = (_state(side, claims) for side in sides)
    change = compare(before, after)
    taxonomy = after.pool.taxonomy
    if output_format is DiffFormat.JSON:
        session.output.write(render.data(change, taxonomy))
    elif output_format is DiffFormat.MARKDOWN:
        session.output.write(render.markdown_comment(change, taxonomy))
    else:
        session.output.show(render.text(change, taxonomy, session.output.width))
    return ExitCode.FINDINGS if exit_code and change.has_meaning else ExitCode.DONE


def _sides(root: str, base: str, head: str) -> tuple[Side, Side]:
    """What is to be compared."""
    _, dots, second = base.partition("...")
    if dots and not head:
        return _of_revision(root, base), _side(root, second or "HEAD")
    return _side(root, base), _side(root, head) if head else _of_folder(root)


def _side(root: str, name: str) -> Side:
    if os.path.isfile(os.path.join(name, *store.PAPERS.split("/"))):
        return _of_folder(name)
    return _of_revision(root, name)


def _of_folder(folder: str) -> Side:
    return Side(folder, folder, store.read_bytes(folder, _NAMES))


def _of_revision(root: str, name: str) -> Side:
    revision = revisions.find(root, name)
    read = {data: revision.read(data) for data in _NAMES}
    return Side(name, root, {data: text for data, text in read.items() if text is not None})


def _completed(side: Side, other: Side) -> Side:
    """The side with what it lacks: no records where there was no data yet, and the other side's vocabulary."""
    vocabulary = {store.TAXONOMY: other.texts[store.TAXONOMY]} if store.TAXONOMY in other.texts else {}
    return side._replace(texts={store.PAPERS: _EMPTY, store.EXCLUSIONS: _EMPTY, **vocabulary, **side.texts})


def _state(side: Side, claims: Sequence[Claim]) -> State:
    """A side's records, what is wrong with them, and what the claims come to.

    Raises:
        InvalidCorpusError: Its taxonomy has errors, so that nothing can be read by it.
    """
    loaded = store.load(side.folder, instead=side.texts)
    if loaded.pool is None:
        shown = (str(finding) for finding in loaded.findings)
        raise InvalidCorpusError("\n".join((f"the taxonomy of {quote(side.name)} has errors:", *shown)))
    disputes = store.read_disputes(side.folder, loaded.pool.taxonomy, side.texts.get(store.DISPUTES, _EMPTY)).disputes
    verdicts = evaluate(claims, loaded.pool, disputes)
    names = {os.path.basename(name): name for name in _NAMES}
    findings = tuple(
        finding._replace(location=finding.location._replace(path=names[os.path.basename(finding.location.path)]))
        for finding in rules.check(loaded)
    )
    return State(loaded.pool, findings, verdicts, side.texts)
