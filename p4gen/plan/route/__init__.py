"""Aggregator-aware routing (ARO): paths of workers to a parameter server that make the slowest one as fast as
possible."""
