"""The core of all importers: files, privacy, the report, the trace that is built."""
