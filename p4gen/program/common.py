"""What templates that every family may use ask of the family that uses them.

===========================  ==============================================================================
template                     asks for (``ProgramParts.names``, and what the family's own templates declare)
===========================  ==============================================================================
``shared/headers``           ``ProgramParts.headers``; the types that their fields name, such as ``mac_addr_t``
``arch/*/checksum``          ``ipv4_checksum``, an ``Ipv4Checksum``; ``hdr.ipv4``
``arch/*/pipelines``         ``arrival``, what a packet's arrival is called; ``drop_t``, ``DROP_REASONS``
``arch/*/deparser``          the parser ``PacketParser``; the templates above, or controls of the same names
``shared/forward``           ``mac_addr_t``, ``ipv4_addr_t``; ``hdr.ethernet``, ``hdr.ipv4``, ``hdr.udp``
``shared/answer_arp``        the same types; ``hdr.ethernet``, ``hdr.arp``; ``ARP_REQUEST``, ``ARP_REPLY``
``shared/entrances``         ``came_by``, an expression for the port; ``ENTRANCES``; ``hdr.ipv4``, ``hdr.bth``; in a
                             family's LookupTable, which applies it; its entries: ``p4gen.groups.entrances``
``shared/validate_packet``   ``hdr.vlan``, ``hdr.ipv4``, ``hdr.udp``, ``hdr.bth``; ``kind_t.MALFORMED``; ``opcode_t``;
                             ``known_opcodes``: a malformed datagram of one of these has a wrong length; if there are
                             none, the family's module has the drop reason ``unknown``
``shared/invariant_crc``     ``hdr.ipv4``, ``hdr.udp``, ``hdr.bth``, and what may follow it
``shared/check_icrc``        ``shared/invariant_crc``; ``hdr.icrc``
``shared/set_icrc``          ``shared/invariant_crc``; ``hdr.icrc``
===========================  ==============================================================================

All modules among them give their drop reason as ``meta.drop``, of the type ``drop_t``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from p4gen.arch import Feature
from p4gen.program.module import Drop, Module, Size, Table

BODIES: Final = ("payload", "immediate", "cnp", "aeth")
"""Names of headers of which one, at most, follows the BTH; a program need not have all of them."""


@dataclass(frozen=True)
class Ipv4Checksum:
    """Packets whose IPv4 checksum is verified, and packets that get a new one: P4 conditions of ``hdr`` and
    ``meta``."""

    verified: str | None
    """The condition under which it is verified after the parser; None if nothing asks for the result."""
    acting: str
    """The module that acts upon a wrong one."""
    renewed: str | None
    """The condition under which the checksum is computed again before the deparser; None if it never is."""
    packets: str = "Packets that modules changed"
    """These packets, as the start of a sentence."""

    def joined(self, other: Ipv4Checksum) -> Ipv4Checksum:
        """The same for the packets of two families in one program."""
        verified = [one for one in (self.verified, other.verified) if one is not None]
        renewed = [one for one in (self.renewed, other.renewed) if one is not None]
        return Ipv4Checksum(
            " || ".join(verified) or None,
            " and ".join(one.acting for one in (self, other) if one.verified is not None),
            " || ".join(renewed) or None,
            " and ".join(one.packets for one in (self, other) if one.renewed is not None),
        )


ANSWER_ARP = Module(
    name="AnswerArp",
    gress="ingress",
    paper="RFC 826",
    purpose="tells hosts the MAC addresses of the switch's own IPv4 addresses",
    needs=("hdr.ethernet", "hdr.arp"),
    changes=("hdr.ethernet", "hdr.arp"),
    tables=(Table("neighbours", Size(1024), "the switch's own IPv4 addresses to its MAC address"),),
    drops=(Drop("not_ours", "asks for another address than this switch's, or is not a request"),),
)
"""The module of ``shared/answer_arp``; a family replaces what its paper says otherwise."""

FORWARD = Module(
    name="Forward",
    gress="ingress",
    paper="RFC 1812",
    purpose="routes every packet",
    needs=("hdr.ipv4", "hdr.udp"),
    changes=("hdr.ethernet", "hdr.ipv4"),
    tables=(
        Table("routes", Size(1024), "longest prefix to next hop, or to a set of them (ECMP)"),
        Table("next_hops", Size("ports", 4), "next hop to port and MAC addresses"),
    ),
    drops=(
        Drop("not_ipv4", "neither IPv4 nor ARP"),
        Drop("no_route", "no route, or no such next hop"),
        Drop("ttl_expired", "the TTL is used up"),
    ),
)
"""The module of ``shared/forward``."""

VALIDATE_PACKET = Module(
    name="ValidatePacket",
    gress="ingress",
    paper="InfiniBand 1.2.1, 9.6 (header validation)",
    purpose="keeps packets that a NIC would refuse from any state",
    needs=("hdr.vlan", "hdr.ipv4", "hdr.udp", "hdr.bth", "kind"),
    drops=(
        Drop("truncated", "the frame ends before its headers say it does"),
        Drop("bad_ip_checksum", "the IPv4 header checksum is wrong"),
        Drop("bad_version", "the BTH version is not 0"),
        Drop("bad_pkey", "the P_Key is not the default partition's"),
    ),
)
"""The module of ``shared/validate_packet``; a family adds what becomes of other lengths and opcodes."""

_ICRC_NEEDS = ("hdr.ipv4", "hdr.udp", "hdr.bth")

CHECK_ICRC = Module(
    name="CheckIcrc",
    gress="ingress",
    paper="RoCEv2 (InfiniBand Annex A17.3.3)",
    purpose="keeps a wrong invariant CRC from being replaced by a right one",
    needs=(*_ICRC_NEEDS, "hdr.icrc"),
    drops=(Drop("bad_icrc", "the invariant CRC is wrong"),),
    wanted=lambda spec: spec.icrc.checked,
    uses=(Feature.PACKET_CRC,),
)
"""The module of ``shared/check_icrc``; a family adds the headers that it covers beyond the BTH."""

SET_ICRC = Module(
    name="SetIcrc",
    gress="egress",
    paper="RoCEv2 (InfiniBand Annex A17.3.3)",
    purpose="gives what leaves a right invariant CRC",
    needs=_ICRC_NEEDS,
    changes=("hdr.icrc",),
    wanted=lambda spec: spec.icrc.right,
    uses=(Feature.PACKET_CRC,),
)
"""The module of ``shared/set_icrc``; a family adds the headers that it covers beyond the BTH."""


def covering(module: Module, *headers: str) -> Module:
    """CheckIcrc or SetIcrc of a program in whose datagrams these headers may follow the BTH."""
    return replace(module, needs=(*module.needs, *headers))
