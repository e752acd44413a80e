"""Plans: which tree, switches and slots a group gets, how jobs share a network, and how fast it is. No packets."""
