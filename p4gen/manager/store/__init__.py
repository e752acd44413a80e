"""The manager's books: what it knows, in memory and on disk."""
