"""Runs of traffic between hosts, over connections of their own."""
