"""TNA and T2NA in machine code: the state's block, the externs, and the traffic manager around the blocks."""
