"""The command line: one small file per verb, or a folder with one for each of the verb's commands."""

from p4gen.cli.app import main

__all__ = ["main"]
