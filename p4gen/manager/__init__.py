"""The service that manages groups: IncManager, its agents at the switches, and its hosts' ranks."""
