"""Measures of a trace: `definitions` lists all of them, the other modules each compute those of one subject."""
