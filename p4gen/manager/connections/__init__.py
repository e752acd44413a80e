"""Connections between hosts, as the manager keeps them."""
