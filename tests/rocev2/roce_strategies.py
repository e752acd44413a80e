"""Hypothesis strategies for headers and packets."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from p4gen.rocev2.codes import ETHERTYPE_IPV4, ETHERTYPE_IPV6
from p4gen.rocev2.headers import AETH, BTH, RETH, UDP, AtomicAckETH, AtomicETH, Ethernet, ImmDt, IPv4, IPv6
from p4gen.rocev2.opcodes import Extension, Opcode, carries_payload, extensions
from p4gen.rocev2.packet import RocePacket


def bits(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, (1 << count) - 1)


ETHERNET = st.builds(Ethernet, dst=bits(48), src=bits(48))
IPV4 = st.integers(0, 10).flatmap(
    lambda words: st.builds(
        IPv4,
        src=bits(32),
        dst=bits(32),
        ttl=bits(8),
        tos=bits(8),
        identification=bits(16),
        flags=st.sampled_from((0b000, 0b010)),
        total_length=bits(16),
        checksum=bits(16),
        ihl=st.just(5 + words),
        options=st.binary(min_size=4 * words, max_size=4 * words),
    )
)
IPV6 = st.builds(
    IPv6, src=bits(128), dst=bits(128), ttl=bits(8), tos=bits(8), flow_label=bits(20), payload_length=bits(16)
)
UDPS = st.builds(UDP, src_port=bits(16), length=bits(16), checksum=st.just(0))
BTHS = st.builds(
    BTH,
    opcode=st.sampled_from([int(op) for op in Opcode]),
    dst_qp=bits(24),
    psn=bits(24),
    ack_request=st.booleans(),
    solicited=st.booleans(),
    mig_request=st.booleans(),
    pad_count=bits(2),
    version=bits(4),
    pkey=bits(16),
    fecn=st.booleans(),
    becn=st.booleans(),
    reserved6=bits(6),
    reserved7=bits(7),
)
EXTENSIONS: dict[Extension, st.SearchStrategy[object]] = {
    Extension.RETH: st.builds(RETH, bits(64), bits(32), bits(32)),
    Extension.AETH: st.builds(AETH, bits(8), bits(24)),
    Extension.IMMDT: st.builds(ImmDt, bits(32)),
    Extension.ATOMIC_ETH: st.builds(AtomicETH, bits(64), bits(32), bits(64), bits(64)),
    Extension.ATOMIC_ACK_ETH: st.builds(AtomicAckETH, bits(64)),
}


@st.composite
def packets(draw: st.DrawFn, over: st.SearchStrategy[IPv4 | IPv6] = IPV4) -> RocePacket:
    """Right packets of every RC opcode."""
    ip = draw(over)
    bth = draw(BTHS)
    words = draw(st.integers(0, 20)) if carries_payload(bth.opcode) else 0
    return RocePacket(
        replace(draw(ETHERNET), ethertype=ETHERTYPE_IPV4 if isinstance(ip, IPv4) else ETHERTYPE_IPV6),
        ip,
        draw(UDPS),
        bth,
        payload=draw(st.binary(min_size=4 * words, max_size=4 * words)),
        **{str(extension): draw(EXTENSIONS[extension]) for extension in extensions(bth.opcode)},  # type: ignore[arg-type]
    ).sealed()
