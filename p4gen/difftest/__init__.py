"""Differential testing: two switches get the same packets and control-plane requests, and everything is compared."""
