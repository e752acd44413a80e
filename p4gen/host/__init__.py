"""Hosts: an RNIC model with reliable-connection queue pairs, and CommLib with the six collectives on top.

``transport`` is the RNIC; ``collectives`` is what applications call. ``transport`` knows nothing of collectives. Both
reach the network through two protocols: a clock that calls back (``transport.clock.Clock``) and a line that takes
frames (``transport.nic.Line``). Time is counted in integer picoseconds, so that a byte at 100 Gb/s takes exactly 80. It
is virtual in simulations (``p4gen.net``); ``transport.realtime`` and ``raw`` are a clock and a NIC for real
interfaces.
"""
