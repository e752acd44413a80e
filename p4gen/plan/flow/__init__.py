"""A simulator of flows: training jobs on a fat tree, under EPIC's policies of sharing switches. It has no packets."""
