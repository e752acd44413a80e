"""P4Info of a program, byte for byte as p4c makes it. Start at ``generate``."""
