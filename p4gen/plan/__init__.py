"""Plans: the tree, switches and slots of a group, how jobs share a network, and how fast they are. No packets."""
