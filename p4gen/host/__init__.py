"""Hosts: an RNIC model with reliable-connection queue pairs, and CommLib with the six collectives on top.

``transport`` is the RNIC, ``collectives`` what applications call; transport knows nothing of collectives. Nothing here
knows about the network but two protocols: a clock that calls back (``transport.clock.Clock``) and a line that takes
frames (``transport.nic.Line``). Time is counted in integer picoseconds, so that a byte at 100 Gb/s takes exactly 80. In
simulations (``p4gen.net``) it is virtual; ``transport.realtime`` and ``transport.raw`` are a clock and a line for real
interfaces.
"""
