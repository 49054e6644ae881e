"""Traces in the forms of others."""
