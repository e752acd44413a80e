"""v1model in machine code: its frame, its externs, and the traffic manager around its blocks."""
