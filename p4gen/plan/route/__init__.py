"""Aggregator-aware routing (ARO): paths of workers to a parameter server, as fast as can be for the slowest."""
