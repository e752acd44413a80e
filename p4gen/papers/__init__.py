"""A folder for each paper, with all that p4gen knows of it. ``p4gen.families`` says what a folder offers."""
