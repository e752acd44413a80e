"""The version of p4gen."""

__version__ = "0.1.0"
