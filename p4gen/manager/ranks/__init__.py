"""Ranks in real time, and their configurations from the manager."""
