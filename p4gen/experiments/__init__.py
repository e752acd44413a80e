"""Papers' tables and figures, repeated: one interface, one runner of their cells, one form of what comes out."""
