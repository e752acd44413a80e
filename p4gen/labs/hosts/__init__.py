"""Hosts of a lab: their daemons, and the lab's side of these."""
