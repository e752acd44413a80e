"""The manager's knowledge, in memory and on disk."""
