"""What help says of options that were not given, and commands then use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PACKETS, FAULT_PACKETS = 20_000, 2_000
"""Of a difftest: of sound programs, and with a fault or between architectures."""

SWITCH_PORTS = 32
LOG_LEVELS = ("trace", "debug", "info", "warn", "error", "off")
LOG_FORMATS = ("text", "json")

MANAGER_VARIABLE = "P4GEN_MANAGER"
"""The environment variable with the address of the manager that ``p4gen top`` shows."""
TOP_INTERVAL_S = 1.0
"""Between two updates of ``p4gen top``."""

MEMBERS: Final[Mapping[str, tuple[str, ...]]] = {
    "two": ("h0,h2", "h1,h3", "h0,h3"),
    "all": ("h0,h1,h2,h3",) * 3,
}
"""The ranks of three groups on tree-3-2, all of which need its three switches and the links between them."""

TRAFFIC: Final = {"size": "1M", "timeout": "1ms", "interval": "10us", "ti": "900us", "td": "4us"}
"""Of traffic between hosts."""
