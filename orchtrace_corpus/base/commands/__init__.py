"""The common parts of all commands: declaration, parsing, options and output."""
