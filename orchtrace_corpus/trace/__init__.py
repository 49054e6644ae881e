"""Orchestration traces: decoded, checked, replayed, measured."""
