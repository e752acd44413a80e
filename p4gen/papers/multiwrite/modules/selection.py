"""The modules of a program, by its spec."""

from __future__ import annotations

from dataclasses import replace

from p4gen.papers.multiwrite.modules import ALL
from p4gen.papers.multiwrite.modules import hop as modules_hop
from p4gen.papers.multiwrite.modules import patch as modules_patch
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.program.module import Module

_BITMAP_READERS = {"FindContext", "ReachPorts", "CheckIcrc", "KeepHeaderCrc", "SetIcrc", "PatchIcrc"}
_BITMAP_WRITERS = {"RewriteBitmap", "PlaceWrite", "MakeAck", "HoldPacket", "Retransmission"}


def modules(spec: MultiwriteSpec) -> tuple[Module, ...]:
    """The modules of a program, in the order in which a packet meets them. With a wide bitmap, those that use it use
    the MWETH, too."""
    found = modules_hop.instead(ALL) if spec.holds else ALL
    found = modules_patch.instead(found) if spec.icrc.patched else found
    return tuple(map(_with_mweth, found)) if spec.wide else found


def _with_mweth(module: Module) -> Module:
    if module.name in _BITMAP_READERS:
        return replace(module, needs=(*module.needs, "hdr.mweth"))
    if module.name in _BITMAP_WRITERS:
        return replace(module, changes=(*module.changes, "hdr.mweth"))
    return module
