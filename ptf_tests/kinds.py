"""Frames that pretend to be of the other kind of IP, in programs that take RoCEv2 over both."""

from __future__ import annotations

from dataclasses import replace

from inc import IncTest

from p4gen.groups.addresses import MAPPED
from p4gen.groups.config import configure
from p4gen.groups.group import GroupContext
from p4gen.papers.epic.spec import EpicSpec
from p4gen.rocev2.headers import IPv4, ip_from, ip_header
from p4gen.rocev2.layouts import IPV4_BITS
from p4gen.rocev2.ndp import advertised, solicitation
from p4gen.rocev2.packet import RocePacket
from p4gen.rocev2.places import places_for

GATEWAY, GATEWAY_MAC = ip_from("fe80::1"), 0x02DD00000001
LOW = (1 << IPV4_BITS) - 1


class EndpointsTest(IncTest):
    """The switch answers solicitations for its endpoints' addresses and for the gateway that it is (RFC 4861)."""

    over_ipv6 = True

    def resolves(self) -> None:
        group = self.make_group(2)
        self.install(configure(self.spec, [group], gateways={GATEWAY: GATEWAY_MAC}))
        local, (port, asker) = group.edges[0].local, (group.edges[1].port, group.edges[1].remote)
        for ip, mac in ((local.ip, local.mac), (GATEWAY, GATEWAY_MAC)):
            self.send(port, solicitation(asker.mac, asker.ip, ip))
            answer = self.only(self.outputs())
            self.equal("port and MAC address", (answer.port, advertised(answer.frame, ip)), (port, mac))
        self.send(port, solicitation(asker.mac, asker.ip, group.edges[0].remote.ip))
        self.expect_nothing()


class KindsTest(IncTest):
    """A test of a program that takes RoCEv2 over IPv4 and IPv6."""

    def misfit(self, spec: EpicSpec) -> str | None:
        """Includes programs that take one kind only."""
        return super().misfit(spec) or (None if spec.ipv4 and spec.roce_ipv6 else "it is about two kinds of IP")

    def other_kind(self, packet: RocePacket) -> RocePacket:
        """The same packet in a header of the other kind: with the IPv6 addresses that stand for its IPv4 addresses, or
        with the last 32 bits of its IPv6 addresses."""
        if isinstance(packet.ip, IPv4):
            ip = ip_header(*(MAPPED << IPV4_BITS | end for end in (packet.ip.src, packet.ip.dst)))
        else:
            ip = ip_header(packet.ip.src & LOW, packet.ip.dst & LOW)
        ether_type = places_for(ip.src).ether_type
        return replace(packet, eth=replace(packet.eth, ethertype=ether_type), ip=ip).sealed()

    def refuse_malformed(self, group: GroupContext, rank: int, packet: RocePacket) -> None:
        """Check that frames are refused that end too soon or too late, whose lengths disagree, with a wrong checksum or
        ICRC, and that another version is nobody's."""
        frame, length = packet.to_bytes(), packet.ip.total_length
        longer, shorter = packet.sealed(total_length=length + 4), packet.sealed(total_length=length - 4)
        for spoilt, reason in (
            (frame[:-1], "ValidatePacket.truncated"),
            (longer.to_bytes(), "ValidatePacket.truncated"),
            (frame + b"\0", "ValidatePacket.bad_length"),
            (longer.to_bytes() + bytes(4), "ValidatePacket.bad_length"),
            (shorter.to_bytes()[:-4] + shorter.icrc, "ValidatePacket.bad_length"),
            (frame[:-1] + bytes((frame[-1] ^ 1,)), "CheckIcrc.bad_icrc"),
            (packet.sealed(udp_length=packet.udp.length - 4).to_bytes(), "ValidatePacket.bad_length"),
        ):
            self.refused(group, rank, spoilt, reason)
        if isinstance(packet.ip, IPv4):
            wrong = packet.sealed(checksum=packet.ip.checksum ^ 1)
            self.refused(group, rank, wrong, "ValidatePacket.bad_ip_checksum")
        other = replace(packet, ip=replace(packet.ip, version=5)).sealed(icrc=packet.icrc)
        self.refused(group, rank, other, "Forward.no_route")

    def refuse_other_kind(self, group: GroupContext, rank: int, *packets: RocePacket) -> None:
        """Check that packets of ``rank`` are nobody's in a header of the other kind, nor if their sender's address
        alone stands for an IPv4 address. There is no route to the switch's own addresses here."""
        for packet in packets:
            forged = self.other_kind(packet)
            reason = "no_route" if isinstance(forged.ip, IPv4) else "not_forwarded"
            self.refused(group, rank, forged, f"Forward.{reason}")
            if not isinstance(packet.ip, IPv4):
                src = MAPPED << IPV4_BITS | packet.ip.src & LOW
                astray = replace(packet, ip=replace(packet.ip, src=src)).sealed()
                self.refused(group, rank, astray, "LookupTable.unknown_source")
