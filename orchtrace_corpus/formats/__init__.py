"""Other forms of the corpus, one module each."""
