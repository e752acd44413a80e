"""Compiled hosts (``p4gen.compiled``) as Python sees them.

Loop, NICs and queue pairs hold the number of a record, and carry out what the compiled code asks for.
"""
