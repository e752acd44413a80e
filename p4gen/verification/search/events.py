"""Numbers of events, and of packets on links."""

from typing import Final

DELIVER, LOSE, DUPLICATE, DELAY, LATE, CORRUPT, EXPIRE, TICK = range(8)
"""Kinds of events. An event is kind << 24 | link, host or tick << 8 | position or timer."""

TURN_AT: Final = 27
"""The lowest bit of the number of the turn that follows an event, in a search with symmetry."""

END: Final = 0xFFFFFFFF
"""The event of a state that nothing leaves, and of the first one."""

HELD: Final = 8
"""Position of the first packet of a link that is delayed; those before are in the link's order."""
MOST_HELD: Final = 8
"""The most packets of one link that are delayed at the same time."""
FORGED: Final = MOST_HELD
"""Events of the kind ``LATE`` from this position on are arrivals of packets that a host sends in another's name; their
numbers are counted from here."""
