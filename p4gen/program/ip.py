"""The IP headers of a program's RoCEv2 datagrams, as its templates write about them."""

from __future__ import annotations

from dataclasses import dataclass

from p4gen.layout import Header
from p4gen.rocev2 import layouts
from p4gen.vocabulary import ProgramSpec


@dataclass(frozen=True)
class RoceIp:
    """The IP headers that RoCEv2 datagrams of a program can have. Where that is more than one, modules know an address
    as IPv6's (an IPv4 address as ::ffff:a.b.c.d, RFC 4291, 2.5.5.2), and LookupTable tells them what the header says.
    """

    headers: tuple[Header, ...]

    @classmethod
    def of(cls, spec: ProgramSpec) -> RoceIp:
        """Those of a spec's program."""
        return cls((*((layouts.IPV4,) if spec.ipv4 else ()), *((layouts.IPV6,) if spec.roce_ipv6 else ())))

    @property
    def both(self) -> bool:
        """Whether there are two kinds."""
        return len(self.headers) > 1

    @property
    def ipv6(self) -> bool:
        """Whether IPv6 is among them."""
        return layouts.IPV6 in self.headers

    @property
    def address(self) -> str:
        """The type of an endpoint's address."""
        return "ipv6_addr_t" if self.ipv6 else "ipv4_addr_t"

    @property
    def local(self) -> str:
        """A table's key: the endpoint's address, inside LookupTable."""
        return self._field("dst_addr: exact", "local: exact") + (
            ' @name("local")' if self.ipv6 and not self.both else ""
        )

    @property
    def remote(self) -> str:
        """The sender's address, inside LookupTable."""
        return self._field("src_addr", "remote")

    @property
    def ecn(self) -> str:
        """The ECN field as modules of ingress may change it; where there are two kinds, a variable of the flow."""
        return self._field("ecn", "ecn")

    def _field(self, name: str, told: str) -> str:
        return told if self.both else f"hdr.{self.headers[0].name}.{name}"

    @property
    def set_ecn(self) -> str:
        """The statement that puts ``ecn`` into the header; only where there are two kinds."""
        return self._either("hdr.ipv4.ecn = ecn;", "hdr.ipv6.ecn = ecn;")

    @property
    def set_length(self) -> str:
        """The statement that sets the header's length by that of the UDP datagram."""
        ipv4 = f"hdr.ipv4.total_length = hdr.udp.length + {layouts.IPV4.size};"
        return self._either(ipv4, "hdr.ipv6.payload_length = hdr.udp.length;")

    def _either(self, ipv4: str, ipv6: str) -> str:
        if self.both:
            return f"if (hdr.ipv4.isValid()) {{ {ipv4} }} else {{ {ipv6} }}"
        return ipv6 if self.ipv6 else ipv4

    def only(self, header: Header) -> str:
        """What a condition on a header's fields begins with: whether it is there, unless it always is."""
        return f"hdr.{header.name}.isValid() && " if self.both else ""
