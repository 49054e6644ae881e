"""The ground that both wings stand on."""

__version__ = "0.1.0"
"""The version of the package, in one place."""
