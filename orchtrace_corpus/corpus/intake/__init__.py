"""The way of a paper into the corpus: searches, look-ups, drafts, screening; and later differences from arXiv."""
