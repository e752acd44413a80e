"""Collectives of a group of ranks: CommLib on an IncTree, and ring algorithms, the baseline without switches."""
