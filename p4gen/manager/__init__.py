"""Group management: what a switch must hold so that its program serves a group."""

from p4gen.manager.config import Edge, Endpoint, Group, NextHop, Route, SwitchConfig, configure

__all__ = ["Edge", "Endpoint", "Group", "NextHop", "Route", "SwitchConfig", "configure"]
