"""Scapy's RoCEv2 layers, completed: RETH, ImmDt and AtomicETH, bound to Scapy's own BTH and AETH by opcode.

Importing this module registers them (a side effect that Scapy's ``bind_layers`` cannot do without), so that
``Ether(frame)`` dissects every RC packet, whatever its UDP source port. Nothing else in p4gen needs Scapy.
"""

from __future__ import annotations

from typing import ClassVar

from scapy.contrib.roce import AETH, BTH, CNPPadding, cnp
from scapy.fields import AnyField, XBitField
from scapy.layers.inet import UDP
from scapy.packet import Packet, bind_layers

from p4gen.layout import Header
from p4gen.rocev2 import layouts
from p4gen.rocev2.codes import ROCE_UDP_PORT
from p4gen.rocev2.opcodes import Extension, Opcode, extensions

__all__ = ["AETH", "BTH", "RETH", "AtomicETH", "CNPPadding", "ImmDt", "cnp"]


def _fields(header: Header) -> list[AnyField]:
    """Scapy's fields for a header."""
    return [XBitField(field.name, 0, field.bits) for field in header.fields]


class ImmDt(Packet):  # type: ignore[misc]  # Scapy is untyped
    """Immediate data (InfiniBand specification §9.3.6)."""

    name = "ImmDt"
    fields_desc: ClassVar[list[AnyField]] = _fields(layouts.IMMEDIATE)


class RETH(Packet):  # type: ignore[misc]  # Scapy is untyped
    """The RDMA extended transport header (§9.3.3)."""

    name = "RETH"
    fields_desc: ClassVar[list[AnyField]] = _fields(layouts.RETH)

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Immediate data after the RETH of a WRITE_ONLY_IMM, else as Scapy guesses."""
        # Only the BTH knows whether immediate data follows; Scapy binds by the layer just below.
        bth = self.underlayer
        if isinstance(bth, BTH) and bth.opcode == Opcode.WRITE_ONLY_IMM:
            return ImmDt
        found: type[Packet] = super().guess_payload_class(payload)
        return found


class AtomicETH(Packet):  # type: ignore[misc]  # Scapy is untyped
    """The atomic extended transport header (§9.3.4)."""

    name = "AtomicETH"
    fields_desc: ClassVar[list[AnyField]] = _fields(layouts.ATOMIC)


_LAYERS = {Extension.RETH: RETH, Extension.AETH: AETH, Extension.IMMDT: ImmDt, Extension.ATOMIC_ETH: AtomicETH}

for _opcode in Opcode:
    if _headers := extensions(_opcode):
        bind_layers(BTH, _LAYERS[_headers[0]], opcode=int(_opcode))

# Scapy takes the first layer whose conditions hold, and many of them are conditions on the source port, which senders
# of RoCEv2 choose freely: as 4789 it would make a packet VXLAN. The destination port alone decides (annex A17).
UDP.payload_guess = [({"dport": ROCE_UDP_PORT}, BTH), *UDP.payload_guess]
