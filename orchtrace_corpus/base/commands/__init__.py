"""Commands of both wings."""
