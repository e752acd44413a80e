"""Faults seeded into programs, and the search for what each breaks. Start at ``hunt``."""
