"""A folder for each P4 architecture, with everything that p4gen knows about it. ``p4gen.arch`` defines the contents of
a folder."""
