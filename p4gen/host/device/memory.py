"""Memory as a device uses it: regions for messages, made once for each array, and those that remote ends may use."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from typing_extensions import override

from p4gen.host.device.library import MR, PD, enums
from p4gen.host.transport.memory import Domain, MemoryRegion

_FAR: Final = (
    (enums.IBV_ACCESS_REMOTE_WRITE, "remote_write"),
    (enums.IBV_ACCESS_REMOTE_READ, "remote_read"),
    (enums.IBV_ACCESS_REMOTE_ATOMIC, "remote_atomic"),
)


@dataclass(frozen=True)
class Held:
    """The memory of a message: registered as long as this object exists."""

    address: int
    size: int
    key: int
    region: object
    view: memoryview


class DeviceMemory(Domain):
    """The memory regions of a device, in its protection domain."""

    def __init__(self, domain: PD) -> None:
        self._domain = domain
        self._arrays: dict[int, tuple[weakref.ref[Any], MR]] = {}
        """Regions of arrays that exist, by their identity."""
        self._offered: dict[int, MR] = {}
        """Regions for remote ends, by rkey."""

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
        allowed = {"remote_write": remote_write, "remote_read": remote_read, "remote_atomic": remote_atomic}
        access = enums.IBV_ACCESS_LOCAL_WRITE | sum(flag for flag, name in _FAR if allowed[name])
        address = _address(view)
        made = MR(self._domain, len(view), access, address=address)
        self._offered[made.rkey] = made
        return MemoryRegion(address, view, made.rkey, **allowed)

    @override
    def deregister(self, region: MemoryRegion) -> None:
        self._offered.pop(region.rkey).close()

    def hold(self, memory: memoryview | bytes | bytearray) -> Held:
        """The memory of a message, registered with the whole array that it is a part of.

        What is no array, and cannot tell when it ends, is registered for this message alone.
        """
        view = memoryview(memory).cast("B")
        if not view:
            return Held(0, 0, 0, None, view)
        owner = _owner(view)
        _, region = self._arrays.get(id(owner), (None, None))
        if region is None:
            region = self._region_of(owner)
        return Held(_address(view), len(view), region.lkey, region, view)

    def _region_of(self, owner: Any) -> MR:
        whole = owner if isinstance(owner, np.ndarray) else np.frombuffer(owner, np.uint8)
        access = enums.IBV_ACCESS_LOCAL_WRITE if whole.flags.writeable else 0
        region = MR(self._domain, whole.nbytes, access, address=whole.ctypes.data)
        if isinstance(owner, np.ndarray):
            identity = id(owner)
            self._arrays[identity] = weakref.ref(owner, lambda _: self._arrays.pop(identity)), region
        return region


def _owner(view: memoryview) -> object:
    """What owns memory: an array, if it is a part of one."""
    owner: Any = view.obj
    while isinstance(owner, np.ndarray) and isinstance(owner.base, np.ndarray):
        owner = owner.base
    return owner


def _address(view: memoryview) -> int:
    return np.frombuffer(view, np.uint8).ctypes.data
