"""Checks of valid P4 programs: what a target does not support, p4gen's own rules, reads of uninitialised variables."""
