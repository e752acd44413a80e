"""P4Runtime 1.4: a server for switches of ours, and the client by which every target is driven.

Sections in docstrings are those of the P4Runtime specification, version 1.4.
"""
