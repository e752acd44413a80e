"""Runs of collectives: groups on IncTrees, rings, results beside NumPy's, and why a run does not end."""
