"""The virtual network: an event loop, links that lose, reorder, duplicate and corrupt, switches that run real programs.

Time is virtual, in integer picoseconds; chance is seeded, so a run repeats to the bit.
"""
