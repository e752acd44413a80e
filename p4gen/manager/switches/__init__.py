"""Switches in the manager: agents, configurations, ticks, links."""
