"""The virtual network: an event loop, links with faults, and switches that run generated programs.

Time is virtual, in integer picoseconds. Randomness is seeded, so a run can be repeated bit for bit.
"""
