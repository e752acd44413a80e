"""The mapping from the ports of a program under test to the device ports of the chip.

In programs for Tofino a field of 9 bits is a port (``PortId_t``), whatever its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from p4gen.model.entries import Exact, Match, Replica, Ternary
from p4gen.model.errors import ControlError
from p4gen.switch.tofino.bfrt.schema import FieldInfo

BITS: Final = 9
_WHOLE: Final = (1 << BITS) - 1


@dataclass(frozen=True)
class PortMap:
    """A mapping from ports to device ports; an empty one changes nothing."""

    device: Mapping[int, int] = field(default_factory=dict)

    @cached_property
    def _outside(self) -> dict[int, int]:
        return {device: port for port, device in self.device.items()}

    def inside(self, port: int) -> int:
        """The device port of a port. Raises ``ControlError`` for a number that is no port."""
        if not self.device:
            return port
        if port not in self.device:
            raise ControlError(f"port {port}: the switch has ports {min(self.device)} to {max(self.device)}")
        return self.device[port]

    def value(self, info: FieldInfo, value: int) -> int:
        """The value of a field in requests to the switch."""
        return self.inside(value) if info.bits == BITS else value

    def match(self, info: FieldInfo, match: Match) -> Match:
        """The match on a field in requests to the switch. Raises ``ControlError`` for a match on several ports."""
        if info.bits != BITS or not self.device:
            return match
        if isinstance(match, int):
            return self.inside(match)
        if isinstance(match, Exact):
            return Exact(self.inside(match.value))
        if isinstance(match, Ternary) and match.mask == _WHOLE:
            return Ternary(self.inside(match.value), _WHOLE)
        if isinstance(match, Ternary) and match.mask == 0:
            return match
        raise ControlError(f"{info.name}: a match on some ports of several cannot be translated to device ports")

    def outside(self, info: FieldInfo, value: int) -> int:
        """The value of a field in the form that tests use."""
        return self._outside.get(value, value) if info.bits == BITS else value

    def matched(self, info: FieldInfo, match: Match) -> Match:
        """The match on a field in the form that tests use."""
        if isinstance(match, Exact):
            return Exact(self.outside(info, match.value))
        if isinstance(match, Ternary) and match.mask == _WHOLE:
            return Ternary(self.outside(info, match.value), _WHOLE)
        return match

    def replica(self, replica: Replica) -> Replica:
        """``replica`` with its device port in place of its front port."""
        return Replica(self.inside(replica.port), replica.rid)
