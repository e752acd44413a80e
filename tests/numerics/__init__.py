"""Functions of generated programs that compute with numbers, against NumPy."""
