"""State of extern instances, shared by all back ends (v1model.p4, simple_switch.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from p4gen.errors import Diagnostic, InputError, Pos
from p4gen.p4 import ir
from p4gen.p4 import types as t

GREEN, YELLOW, RED = 0, 1, 2


class Register:
    """``register<T>(size)``: ``size`` elements of ``width`` bits, initially zero."""

    def __init__(self, instance: ir.ExternInstance) -> None:
        element = t.strip(instance.type_args[0])
        if not isinstance(element, (t.Bits, t.Bool, t.SerEnum)):
            raise InputError(
                Diagnostic(instance.pos, f"register {instance.name}: elements of type {element} are not supported")
            )
        self.name = instance.name
        self.width = t.width_of(element)
        base = element.base if isinstance(element, t.SerEnum) else element
        self.signed = isinstance(base, t.Bits) and base.signed
        self.is_bool = isinstance(element, t.Bool)
        self.fields: Mapping[str, tuple[int, int]] = {}
        """The lowest bit and the width of each field, for elements with several fields."""
        self.size = _size(instance)
        self.cells: list[int] = [0] * self.size
        """Values as the program sees them: negative where ``signed``."""

    def reset(self) -> None:
        """All elements zero; the list stays the same object."""
        self.cells[:] = [0] * self.size


class Counter:
    """``counter(size, type)``; indices out of range are a trap and count nothing."""

    def __init__(self, instance: ir.ExternInstance) -> None:
        self.name = instance.name
        self.size = _size(instance)
        self.packets = [0] * self.size
        self.bytes = [0] * self.size

    def count(self, index: int, length: int) -> None:
        """Add one packet of ``length`` bytes."""
        self.packets[index] += 1
        self.bytes[index] += length

    def reset(self) -> None:
        """Set all packets and bytes to 0."""
        self.packets[:] = [0] * self.size
        self.bytes[:] = [0] * self.size


@dataclass(frozen=True)
class MeterConfig:
    """Two rates (RFC 2698), committed and peak, in packets or bytes per second, with their burst sizes in packets or
    bytes."""

    cir: int
    cburst: int
    pir: int
    pburst: int


class Bucket:
    """One two-rate three-colour marker, colour-blind (RFC 2698); green until configured, as in BMv2."""

    __slots__ = ("_committed", "_last", "_peak", "config")

    def __init__(self) -> None:
        self.config: MeterConfig | None = None
        self._committed = self._peak = self._last = 0

    def numbers(self) -> tuple[MeterConfig | None, int, int, int]:
        """The bucket's state: configuration, committed and peak tokens in millionths, the time of the last packet
        (µs)."""
        return self.config, self._committed, self._peak, self._last

    @classmethod
    def of(cls, numbers: tuple[MeterConfig | None, int, int, int]) -> Bucket:
        """A bucket with the state that ``numbers`` returned."""
        bucket = Bucket()
        bucket.config, bucket._committed, bucket._peak, bucket._last = numbers
        return bucket

    def configure(self, config: MeterConfig | None, now: int) -> None:
        """Start again at ``now`` (µs) with full buckets. None: always green."""
        self.config = config
        self._last = now
        if config is not None:
            # Tokens are kept in millionths, so that no fraction of a microsecond's refill is lost.
            self._committed, self._peak = config.cburst * 1_000_000, config.pburst * 1_000_000

    def mark(self, size: int, now: int) -> int:
        """The colour of a packet that costs ``size`` tokens at ``now`` (µs)."""
        config = self.config
        if config is None:
            return GREEN
        elapsed, self._last = max(now - self._last, 0), max(now, self._last)
        self._committed = min(self._committed + elapsed * config.cir, config.cburst * 1_000_000)
        self._peak = min(self._peak + elapsed * config.pir, config.pburst * 1_000_000)
        cost = size * 1_000_000
        if self._peak < cost:
            return RED
        self._peak -= cost
        if self._committed < cost:
            return YELLOW
        self._committed -= cost
        return GREEN


class Meter:
    """``meter(size, type)``: ``size`` buckets, green until configured."""

    def __init__(self, instance: ir.ExternInstance) -> None:
        self.name = instance.name
        self.size = _size(instance)
        self.in_bytes = str(instance.args[1]).lower() == "bytes"
        self.buckets = [Bucket() for _ in range(self.size)]

    def reset(self) -> None:
        """Remove all rates: every packet is green."""
        self.buckets[:] = [Bucket() for _ in range(self.size)]


@dataclass(frozen=True)
class Trap:
    """Undefined behaviour of a program, counted by position: an index out of range, a division by zero, a failed
    assertion, endless recirculation."""

    pos: Pos
    what: str
    count: int = 1

    def __str__(self) -> str:
        times = "" if self.count == 1 else f" ({self.count} times)"
        return f"{self.pos}: trap: {self.what}{times}"


def _size(instance: ir.ExternInstance) -> int:
    size = instance.args[0]
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise InputError(Diagnostic(instance.pos, f"{instance.extern} {instance.name}: size {size!r} is not a number"))
    return size
