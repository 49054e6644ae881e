"""Traces in the forms of others: the published schema, ATIF, and those that trainers read."""
