"""What a switch must hold for the groups that it serves: contexts, patterns, and the table entries they come to."""

from p4gen.groups.config import configure
from p4gen.groups.group import Edge, Endpoint, Group, NextHop, Pattern, Route, SwitchConfig

__all__ = ["Edge", "Endpoint", "Group", "NextHop", "Pattern", "Route", "SwitchConfig", "configure"]
