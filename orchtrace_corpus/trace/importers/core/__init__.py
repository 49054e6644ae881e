"""What all importers share: files, privacy, the report, the trace in the making."""
