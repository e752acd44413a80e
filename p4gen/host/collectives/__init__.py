"""Collectives of a group of ranks: CommLib on an IncTree, and ring algorithms as the baseline without switches."""
