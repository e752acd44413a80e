"""STF, p4c's format for packet tests: parser, and a runner with the rules that p4c's has for BMv2."""

from p4gen.stf.lexer import StfError
from p4gen.stf.parser import parse_file, parse_text
from p4gen.stf.runner import StfResult, reference, run

__all__ = ["StfError", "StfResult", "parse_file", "parse_text", "reference", "run"]
