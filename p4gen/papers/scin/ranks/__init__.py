"""What ranks do with SCIN: calls, memory, and what NumPy says of the results."""
