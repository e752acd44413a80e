"""How a guest and its host find each other, on the card for management: a network in which QEMU is the router; and
what the guest's own device is called."""

from __future__ import annotations

GATEWAY, ADDRESS = "10.0.2.2", "10.0.2.15"
"""The loopback of the host's namespace, as the guest sees it; the guest, which only QEMU sees."""
MAC = "02:00:00:00:02:0f"
"""Of the guest's card for management, by which it is told from the card for data."""
MANAGER_PORT, COMMANDS_PORT = 9559, 9560
"""TCP ports on that loopback: the manager's, and one that leads to the guest, which takes commands there."""
INTERFACE, DEVICE = "data", "rxe0"
"""In the guest: the card for data, and the Soft-RoCE device on it."""
