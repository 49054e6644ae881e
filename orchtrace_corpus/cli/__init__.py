"""The command line: parses words, calls the core, renders, exits. It holds no other logic."""
