"""The version of p4gen, which ``p4gen --version`` and the package's metadata give."""

__version__ = "0.1.0"
