"""Ranks in real time, and what the manager tells them."""
