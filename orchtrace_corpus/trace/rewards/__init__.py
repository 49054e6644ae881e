"""What rewards pay on a run, and runs as training data."""
