"""Filters, counts, claims, agreement, differences. Nothing here opens a file."""
