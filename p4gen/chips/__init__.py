"""A folder for each P4 architecture, with all that p4gen knows of it. ``p4gen.arch`` says what a folder offers."""
