"""Measures of a trace: `definitions` lists all measures, and each other module computes the measures of one subject."""
