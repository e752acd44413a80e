"""The configuration of a switch for the groups that it serves: contexts, patterns, and their table entries."""

from p4gen.groups.config import configure
from p4gen.groups.group import Edge, Endpoint, GroupContext, NextHop, Pattern, Route, SwitchConfig

__all__ = ["Edge", "Endpoint", "GroupContext", "NextHop", "Pattern", "Route", "SwitchConfig", "configure"]
