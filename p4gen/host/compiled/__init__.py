"""Compiled hosts (``p4gen.compiled``) as Python sees them.

Loop, NICs and queue pairs have the interfaces of their counterparts in Python, hold the number of a record, and carry
out what the compiled code asks for.
"""

from typing import Final

from p4gen.host.transport.verbs import Recovery

COMPILED: Final = (Recovery.GO_BACK_N, Recovery.SELECTIVE_REPEAT, Recovery.ORACLE)
"""Recoveries of compiled queue pairs."""
