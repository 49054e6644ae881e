"""The corpus as values: taxonomy, papers, exclusions, and the other data files, read and held."""
