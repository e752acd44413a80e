"""What ranks do with MultiWrite: writes, collectives made of them, plans of calls."""
