"""Differential testing: the same packets and the same control-plane requests to two switches, everything compared."""
