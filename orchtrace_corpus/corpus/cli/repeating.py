"""Gives answers back as a command line, where a command ends before they are written."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from orchtrace_corpus.base.errors import CorpusError
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.corpus.cli.facets import chosen, word_for
from orchtrace_corpus.corpus.cli.questions import Questions
from orchtrace_corpus.corpus.cli.session import CorpusSession

_NOT_REPEATED = ("dry_run", "refresh", "yes")
_LONGEST_LINE = 20_000


@contextmanager
def kept(
    session: CorpusSession, ctx: Any, questions: Questions | None, names: Mapping[str, Sequence[str]]
) -> Iterator[None]:
    """See that no answer is lost while these lines run: what ends them is told after the commands that repeat them.

    Args:
        session: Where the output goes.
        ctx: The command's context (of the Click that Typer brings), which knows what it was given.
        questions: What was asked; None where nobody was.
        names: How each thing that questions were about is called on a command line.
    """
    try:
        yield
    except (KeyboardInterrupt, typer.Exit):
        if questions is not None and any(questions.answers.values()):
            session.output.tell("")  # behind the question that was not answered
        tell(session, ctx, questions, names)
        raise
    except CorpusError:
        tell(session, ctx, questions, names)
        raise


def tell(session: CorpusSession, ctx: Any, questions: Questions | None, names: Mapping[str, Sequence[str]]) -> None:
    """Say with which command lines the answers given so far can be given again; nothing where there are none."""
    if questions is None:
        return
    for name, answers in questions.answers.items():
        called = list(names[name])
        words: list[str] = []
        for field, value in answers:
            if field == "--url" and called[:1] == ["--no-fetch"]:  # an entry of a file that nothing else names
                called.insert(0, value)
            else:
                words += word_for(ctx, field, value)
        if answers:
            line = shlex.join((*_command(session, ctx), *called, *_options(ctx), *words))
            session.output.tell(f"Your answers, to try again: {printable(line, limit=_LONGEST_LINE)}")


def _command(session: CorpusSession, ctx: Any) -> list[str]:
    root = ["--root", session.root] if session.root else []
    return ["corpus", *root, str(ctx.info_name)]


def _options(ctx: Any) -> Iterator[str]:
    """The options that the command was given."""
    for param in ctx.command.params:
        value = ctx.params.get(param.name)
        if param.param_type_name != "option" or not value or param.name in _NOT_REPEATED:
            continue
        if value is True:
            yield param.opts[0]
            continue
        for one in value if isinstance(value, (list, tuple)) else (value,):
            yield from (param.opts[0], str(one))
    for field, text in chosen(ctx):
        yield from word_for(ctx, field, text)
