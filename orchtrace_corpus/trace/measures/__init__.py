"""Measures of a trace: `definitions` has them all, the other modules those of one subject each."""
