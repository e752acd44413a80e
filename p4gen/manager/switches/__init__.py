"""Switches in the manager: agents, what each should hold, ticks, links."""
