"""`python -m orchtrace_corpus` is `corpus`."""

from orchtrace_corpus.cli.main import main

main()
