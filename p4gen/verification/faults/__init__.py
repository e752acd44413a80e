"""Seeded faults in a search: small scopes, verdicts, and the file in which verdicts are kept."""
