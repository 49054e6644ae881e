"""`corpus init`."""

import os
import shlex
from typing import Annotated

import typer

from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.yamlfile.reader import YamlFile
from orchtrace_corpus.corpus import build
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.records import Pool
from orchtrace_corpus.corpus.model.taxonomy import Taxonomy, decode_taxonomy
from orchtrace_corpus.corpus.scaffold import scaffold, starter_files


def init(
    ctx: typer.Context,
    directory: Annotated[str, typer.Argument(metavar="DIR", help="The new corpus's folder; created if missing.")],
) -> int:
    """Start a corpus of your own, with your own axes.

    Writes a small example that passes "corpus check" as it stands: three papers, one exclusion, a
    taxonomy whose comments explain it, a README, and a check for pull requests. Overwrites nothing.

    \b
    Examples:
      corpus init my-survey
      corpus --root my-survey stats
    """
    settings: Session = ctx.obj
    if settings.root:
        raise CommandUseError("init makes a new corpus and takes no --root", "Write: corpus init DIR")
    if not directory:
        raise CommandUseError("the folder's name is empty", "Write: corpus init DIR")
    for name in build.new_names(starter_taxonomy()):
        if os.path.lexists(os.path.join(directory, name)):
            path = printable(os.path.join(directory, name), limit=300)
            raise CommandUseError(f"{path} is there already", "Name a new folder.")
    written = scaffold(directory)
    documents = build.generated(directory, loaded_pool(directory))
    for name in dict.fromkeys((*written, *build.write(directory, documents))):
        path = os.path.join(directory, name)
        settings.output.write(f"{printable(path, limit=len(path))}\n")
    commands = ["corpus check", "corpus stats", "corpus terms"]
    if not os.path.samefile(directory, os.curdir):
        commands = [f"cd {shlex.quote(directory)}", *commands[:2]]
    settings.output.note("\n".join(("Next:", *(f"  {command}" for command in commands))))
    settings.output.note("Then make data/taxonomy.yaml yours; its comments say how.")
    return ExitCode.DONE


def starter_taxonomy() -> Taxonomy:
    """The taxonomy that a new corpus begins with."""
    taxonomy = decode_taxonomy(YamlFile(store.TAXONOMY, starter_files()[store.TAXONOMY].encode()))
    assert taxonomy is not None  # the starter files are ours, and tested
    return taxonomy


def loaded_pool(directory: str) -> Pool:
    """The starter corpus that was just written."""
    pool = store.load(directory).pool
    assert pool is not None  # the starter files are ours, and tested
    return pool
