"""Registered memory: regions with addresses and keys, and the checks of remote access (InfiniBand 9.4.1.1, 10.6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

from typing_extensions import override


@dataclass(frozen=True)
class MemoryRegion:
    """Memory that remote ends may use, by address and ``rkey``."""

    address: int
    buffer: memoryview
    rkey: int
    remote_write: bool = True
    remote_read: bool = True
    remote_atomic: bool = True


WRITTEN: Final = {"remote_write": True, "remote_read": False, "remote_atomic": False}
"""What remote ends may do with memory that results are written to."""


class Domain(Protocol):
    """The memory of a NIC that remote ends may use."""

    def register(
        self,
        buffer: bytearray | memoryview,
        *,
        remote_write: bool = True,
        remote_read: bool = True,
        remote_atomic: bool = True,
    ) -> MemoryRegion:
        """Register ``buffer``, with what remote ends may do with it. Raises ``ValueError`` when it is read-only."""
        ...

    def deregister(self, region: MemoryRegion) -> None:
        """Remove a region: remote ends cannot use it any more."""
        ...


class ProtectionDomain(Domain):
    """The memory regions of one NIC. Their addresses and keys are assigned in order, so they are the same in every
    run."""

    STATE: ClassVar = ("_regions", "_next_address", "_next_key")

    def __init__(self) -> None:
        self._regions: dict[int, MemoryRegion] = {}
        self._next_address = 0x10_0000
        self._next_key = 0x1000

    @override
    def register(
        self,
        buffer: bytearray | memoryview,
        *,
        remote_write: bool = True,
        remote_read: bool = True,
        remote_atomic: bool = True,
    ) -> MemoryRegion:
        view = memoryview(buffer).cast("B")
        if view.readonly:
            raise ValueError("a region for remote writes must be writable")
        rkey = self._next_key
        self._next_key += 0x101
        region = MemoryRegion(self._next_address, view, rkey, remote_write, remote_read, remote_atomic)
        self._next_address += (len(view) + 0x1FFF) & ~0xFFF
        self._regions[rkey] = region
        return region

    @override
    def deregister(self, region: MemoryRegion) -> None:
        """Remove a region: remote ends cannot use it any more, and its key is not given again."""
        del self._regions[region.rkey]

    def for_write(self, rkey: int, address: int, length: int) -> memoryview | None:
        """The memory that a remote WRITE fills; None when the key, the range or the permission is wrong."""
        region = self._regions.get(rkey)
        return _part(region, address, length) if region is not None and region.remote_write else None

    def for_read(self, rkey: int, address: int, length: int) -> memoryview | None:
        """The memory that a remote READ reads; None when the key, the range or the permission is wrong."""
        region = self._regions.get(rkey)
        return _part(region, address, length) if region is not None and region.remote_read else None

    def for_atomic(self, rkey: int, address: int) -> memoryview | None:
        """The eight bytes of a remote atomic operation; None when the key, the place or the permission is wrong."""
        region = self._regions.get(rkey)
        return _part(region, address, 8) if region is not None and region.remote_atomic else None


def _part(region: MemoryRegion, address: int, length: int) -> memoryview | None:
    start = address - region.address
    if start < 0 or start + length > len(region.buffer):
        return None
    return region.buffer[start : start + length]
