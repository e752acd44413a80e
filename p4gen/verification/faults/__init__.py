"""Seeded faults in a search: small scopes, verdicts, and a file that keeps these."""
