"""What templates that every family may use ask of the family that uses them.

===========================  ==============================================================================
template                     asks for (``ProgramParts.names``, and what the family's own templates declare)
===========================  ==============================================================================
``shared/contents``          nothing: what a program is made of, and the files that it includes
``shared/metadata``          ``drop_t``
``shared/drop_reasons``      nothing: ``drop_t``, ``DROP_REASONS``
``shared/codes``             nothing: constants of Ethernet, ARP, IPv4, IPv6 and RoCEv2
``shared/parse_udp``         nothing for RoCEv2; of a family with a UDP port of its own ``own_port``: the port and the
                             state behind the UDP header, as a row of the parser
``shared/precedes``          ``psn_t``; which of two PSNs comes first
``shared/route``             AnswerArp, AnswerNdp and Forward applied, in a flow
``shared/headers``           ``ProgramParts.headers``; the types that their fields name, such as ``mac_addr_t``
``arch/*/checksum``          ``ipv4_checksum``, an ``Ipv4Checksum``; ``hdr.ipv4``
``arch/*/pipelines``         ``arrival``, what a packet's arrival is called; ``drop_t``, ``DROP_REASONS``
``arch/*/deparser``          the parser ``PacketParser``; the templates above, or controls of the same names
``shared/forward``           ``spreads``, whether it applies SprayPath; ``cited["Forward"]``, where the paper routes;
                             ``mac_addr_t``, ``ipv4_addr_t``; ``hdr.ethernet``, ``hdr.ipv4``, ``hdr.udp``; on a
                             Tofino ``flat``, whether each table has its own condition, and then ``routed_if``, a
                             further condition of packets that are routed, or ""
``shared/answer_arp``        the same types; ``hdr.ethernet``, ``hdr.arp``; ``ARP_REQUEST``, ``ARP_REPLY``
``shared/answer_ndp``        the same types, ``hdr.ipv6`` and ``hdr.ndp``, which programs with ``spec.ipv6`` have
``shared/entrances``         ``came_by``, an expression for the port; ``ENTRANCES``; ``hdr.bth``; in a family's
                             LookupTable, which applies it; its entries: ``p4gen.groups.entrances``
``shared/ip_addresses``      the variables ``local`` and ``remote``; ``meta.lookup.ecn``, unless ``without_ecn`` is set;
                             in the control that finds whose a packet is, if ``ip.both``
``shared/validate_packet``   ``hdr.vlan``, ``hdr.udp``, ``hdr.bth``; ``kind_t.MALFORMED``; ``opcode_t``;
                             ``known_opcodes``: a malformed datagram of one of these has a wrong length; if there are
                             none, the family's module has the drop reason ``unknown``
``shared/invariant_crc``     ``hdr.udp``, ``hdr.bth``, and what may follow it
``shared/check_icrc``        ``shared/invariant_crc``; ``hdr.icrc``
``shared/set_icrc``          ``shared/invariant_crc``; ``hdr.icrc``
``shared/resend_timer``      ``each_edge``, the size of state for each edge; ``repair``, a ``Repair``
===========================  ==============================================================================

The IP header of a RoCEv2 datagram is IPv4's, IPv6's or either: templates write of it by ``ip`` (``p4gen.program.ip``).
All modules among them give their drop reason as ``meta.drop``, of the type ``drop_t``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

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
