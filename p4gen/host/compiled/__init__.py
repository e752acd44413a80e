"""Compiled hosts (``p4gen.compiled``) as Python sees them.

Loop, NICs and queue pairs have the interfaces of their counterparts in Python, hold the number of a record, and carry
out what the compiled code asks for.
"""
