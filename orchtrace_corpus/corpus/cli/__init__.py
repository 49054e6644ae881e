"""The commands on a corpus: each reads its options, calls the other packages, shows the result, and exits."""
