"""The commands about the corpus: parse words, call the core, render, exit."""
