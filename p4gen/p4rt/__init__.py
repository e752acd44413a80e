"""P4Runtime 1.4: a server for the embedded switch, and the client that controls every target.

Sections in docstrings are those of the P4Runtime specification, version 1.4.
"""
