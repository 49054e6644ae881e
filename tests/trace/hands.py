"""What the processes of a build run that is forked and not started anew. It imports little: processes wait for it."""

import multiprocessing
import os
import sys
from functools import partial
from typing import Any

from orchtrace_corpus.__main__ import main
from orchtrace_corpus.trace.dataset import staging


def build(hook: str, words: str, arguments: list[str], told: str) -> None:
    """Run a command with a hand in it, in a group of its own; its standard error goes to a file."""
    os.setpgid(0, 0)
    os.dup2(os.open(told, os.O_WRONLY | os.O_CREAT), 2)
    sys.argv = ["corpus", *arguments]
    lend(hook, words)
    context = multiprocessing.get_context("forkserver")  # the one from which this process was forked
    multiprocessing.get_context = lambda method: context
    staging.serve = partial(serve, hook, words, os.getpid())
    main()


def serve(hook: str, words: str, group: int, *arguments: Any) -> None:
    """Run a worker with a hand in it."""
    try:
        os.setpgid(0, group)
    except PermissionError:  # the build is gone already
        return
    sys.orig_argv = ["--multiprocessing-fork"]
    lend(hook, words)
    staging.serve(*arguments)


def lend(hook: str, words: str) -> None:
    """Do what a Python that starts would do with the hook."""
    os.environ["HAND"] = words
    exec(hook, {})
