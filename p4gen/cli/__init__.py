"""The command line: one small file per verb."""

from p4gen.cli.app import main

__all__ = ["main"]
