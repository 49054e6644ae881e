"""Traces in the forms of others: the published schema, and ATIF."""
