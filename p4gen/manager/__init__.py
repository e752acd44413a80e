"""Group management: what switches must hold so that their programs serve groups."""

from p4gen.manager.config import configure
from p4gen.manager.group import Edge, Endpoint, Group, NextHop, Pattern, Route, SwitchConfig

__all__ = ["Edge", "Endpoint", "Group", "NextHop", "Pattern", "Route", "SwitchConfig", "configure"]
