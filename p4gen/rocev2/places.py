"""Where RoCEv2 frames without a VLAN tag have their fields: those over IPv4, and those over IPv6."""

from __future__ import annotations

from typing import Final

from p4gen.layout import Header, Stack
from p4gen.rocev2.codes import ECN_CE, ETHERTYPE_IPV4, ETHERTYPE_IPV6, PROTOCOL_UDP
from p4gen.rocev2.headers import is_ipv6
from p4gen.rocev2.layouts import AETH, ICRC, ROCE, ROCE_IPV6


class Places:
    """The bytes that hold the fields of one kind of frames.

    >>> IPV4.psn, IPV6.psn
    (slice(51, 54, None), slice(71, 74, None))
    """

    def __init__(self, stack: Stack, ether_type: int, first: tuple[int, int], names: dict[str, str]) -> None:
        """``names`` has the fields of the IP header that are called otherwise than IPv4's."""
        header = stack.headers[1]
        self._stack, self._names, self._ip = stack, names, header.name
        self.name, self.ether_type = self._ip, ether_type
        self.first = first
        """The bits of the IP header's first byte that tell its kind, and their value."""
        self.ip, self.udp, self.bth, self.body = *map(stack.start, (self._ip, "udp", "bth")), stack.size
        """Where the IP header, UDP, the BTH and what follows it begin."""
        self.shift = self.udp - ROCE.start("udp")
        """By how many bytes everything behind the IP header begins later than over IPv4."""
        self.protocol_at, self.length = self.at("protocol"), self.bytes("total_length")
        self.counted_from = self.udp if "total_length" in names else self.ip
        """The byte from which the IP header's length counts."""
        self.src_addr, self.dst_addr = self.bytes("src_addr"), self.bytes("dst_addr")
        self.ecn_at, self.ce = self.at("ecn"), ECN_CE << header.word.ends("ecn")[1] % 8
        """The byte with ECN, and the bits in it that a mark sets."""
        self.udp_port, self.udp_length = stack.bytes("udp.dst_port"), stack.bytes("udp.length")
        self.opcode_at, self.resv8a_at, self.word_at = (
            stack.at(f"bth.{each}") for each in ("opcode", "resv8a", "ack_request")
        )
        """The bytes with the opcode and with resv8a; the first of the word with AckReq and PSN, which ends the BTH."""
        self.dest_qp, self.psn = stack.bytes("bth.dest_qp"), stack.bytes("bth.psn")
        answer = Stack(*stack.headers, AETH)
        self.syndrome_at, self.msn = answer.at("aeth.syndrome"), answer.bytes("aeth.msn")
        self.shortest, self.answer = stack.size + ICRC.size, answer.size + ICRC.size
        """The least bytes of a frame, and those of an acknowledgement."""
        self.variant = b"".join(map(_variant, stack.headers))
        """The bits before the body that the ICRC takes as ones."""

    def at(self, field: str) -> int:
        """The byte that holds a field of the IP header, called as in IPv4."""
        return self._stack.at(f"{self._ip}.{self._names.get(field, field)}")

    def bytes(self, field: str) -> slice:
        """The bytes of a field of the IP header, called as in IPv4."""
        return self._stack.bytes(f"{self._ip}.{self._names.get(field, field)}")


def _variant(header: Header) -> bytes:
    word = 0
    for each in header.fields:
        word = word << each.bits | ((1 << each.bits) - 1) * each.variant
    return word.to_bytes(header.size)


IPV4: Final = Places(ROCE, ETHERTYPE_IPV4, (0xFF, 0x45), {})
IPV6: Final = Places(
    ROCE_IPV6,
    ETHERTYPE_IPV6,
    (0xF0, 0x60),
    {"protocol": "next_header", "total_length": "payload_length"},
)
_ETHER_TYPE: Final = ROCE.bytes("ethernet.ether_type")
_KINDS: Final = {kind.ether_type.to_bytes(2): kind for kind in (IPV4, IPV6)}


def places_for(ip: int) -> Places:
    """Those of frames between addresses of the kind of ``ip``."""
    return IPV6 if is_ipv6(ip) else IPV4


def places_in(frame: bytes) -> Places | None:
    """Those of a frame; None if it is too short for RoCEv2, or carries no UDP. Its port is not looked at."""
    found = _KINDS.get(frame[_ETHER_TYPE])
    if found is None or len(frame) < found.shortest or frame[found.protocol_at] != PROTOCOL_UDP:
        return None
    return found


def as_over_ipv4(frame: bytes) -> bytes:
    """A RoCEv2 frame that has its BTH and all behind it where frames over IPv4 have them: one over IPv6 is without its
    first bytes."""
    return frame[IPV6.shift :] if _KINDS.get(frame[_ETHER_TYPE]) is IPV6 else frame
