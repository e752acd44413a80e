"""Runs of collectives: groups on IncTrees, rings, the comparison with NumPy's results, and the reasons why a run does
not end."""
