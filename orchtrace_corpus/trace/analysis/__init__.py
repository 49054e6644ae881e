"""Analyses beside measures: labels, replay, prices, outcomes."""
