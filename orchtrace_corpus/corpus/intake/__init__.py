"""Ways of papers into the corpus (searches, look-ups, drafts, screening), and how records later differ from arXiv."""
