"""Logs that are trees of spans."""
