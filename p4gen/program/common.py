"""What templates that every family may use ask of the family that uses them.

=========================  ==============================================================================
template                   asks for (``ProgramParts.names``, and what the family's own templates declare)
=========================  ==============================================================================
``shared/headers``         ``ProgramParts.headers``; the types that their fields name, such as ``mac_addr_t``
``arch/*/checksum``        ``ipv4_checksum``, an ``Ipv4Checksum``; ``hdr.ipv4``
``arch/*/pipelines``       ``arrival``, what a packet's arrival is called; ``drop_t``, ``DROP_REASONS``
``arch/*/deparser``        the parser ``PacketParser``; the templates above, or controls of the same names
``shared/forward``         ``mac_addr_t``, ``ipv4_addr_t``; ``hdr.ethernet``, ``hdr.ipv4``, ``hdr.udp``
``shared/answer_arp``      the same types; ``hdr.ethernet``, ``hdr.arp``; ``ARP_REQUEST``, ``ARP_REPLY``
``shared/invariant_crc``   ``hdr.ipv4``, ``hdr.udp``, ``hdr.bth``, and what may follow it
``shared/check_icrc``      ``shared/invariant_crc``; ``hdr.icrc``
``shared/set_icrc``        ``shared/invariant_crc``; ``hdr.icrc``
=========================  ==============================================================================

All modules among them give their drop reason as ``meta.drop``, of the type ``drop_t``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ipv4Checksum:
    """Packets whose IPv4 checksum is verified, and packets that get a new one: P4 conditions of ``hdr`` and
    ``meta``."""

    verified: str
    """The condition under which it is verified after the parser."""
    acting: str
    """The module that acts upon a wrong one."""
    renewed: str
    """The condition under which the checksum is computed again before the deparser."""
