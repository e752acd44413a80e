"""The service that manages groups: the IncManager, agents for switches, ranks on hosts."""
