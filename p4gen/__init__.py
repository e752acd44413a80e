"""p4gen: P4 programs for in-network collectives, generated, compiled, run and tested."""

__version__ = "0.1.0"
