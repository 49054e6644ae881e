"""What the commands of `corpus` and of `trace` share: declaration, parsing, options and output."""
