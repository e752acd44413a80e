"""Reading captures, against what Scapy, and our own writers, write."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.l2 import Ether
from scapy.utils import PcapNgWriter, RawPcapWriter

from p4gen.errors import InputError
from p4gen.net.views.capture import PcapngWriter as OurPcapngWriter
from p4gen.stf.captures import read_capture
from p4gen.switch.pcap import PcapWriter as OurPcapWriter

FRAMES = [bytes(range(14)), b"\xff" * 61, bytes(1500)]


@pytest.mark.parametrize("endianness", ["<", ">"])
@pytest.mark.parametrize("nano", [False, True])
def test_pcap_in_either_byte_order_and_unit(tmp_path: Path, endianness: str, nano: bool) -> None:
    file = tmp_path / "x.pcap"
    with RawPcapWriter(str(file), linktype=1, endianness=endianness, nano=nano) as writer:
        writer.write_header(None)
        for number, frame in enumerate(FRAMES):
            writer.write_packet(frame, sec=7, usec=number + 1)
    found = read_capture(file)
    assert [captured.frame for captured in found] == FRAMES
    assert [captured.time for captured in found] == [7_000_000_000 + n * (1 if nano else 1000) for n in (1, 2, 3)]


def test_pcapng_of_scapy(tmp_path: Path) -> None:
    file = tmp_path / "x.pcapng"
    with PcapNgWriter(str(file)) as writer:
        for number, frame in enumerate(FRAMES):
            packet = Ether(frame)
            packet.time = 3 + number
            writer.write(packet)
    found = read_capture(file)
    assert [captured.frame for captured in found] == FRAMES
    assert [captured.time for captured in found] == [3_000_000_000, 4_000_000_000, 5_000_000_000]


def test_our_own_captures(tmp_path: Path) -> None:
    plain, ng = tmp_path / "x.pcap", tmp_path / "x.pcapng"
    ours = OurPcapWriter(plain)
    with ng.open("wb") as file:
        theirs = OurPcapngWriter(file, ["a", "b"])
        for number, frame in enumerate(FRAMES):
            ours.write(frame, 1_000_000_007 + number)
            theirs.write(number % 2, 1_000_000_007 + number, frame, comment="a drop")
    ours.close()
    expected = [(1_000_000_007 + number, frame) for number, frame in enumerate(FRAMES)]
    assert [(captured.time, captured.frame) for captured in read_capture(plain)] == expected
    assert [(captured.time, captured.frame) for captured in read_capture(ng)] == expected


def simple(order: str) -> bytes:
    """A pcapng file with a block that p4gen skips, time stamps in 1/1024 s, and one packet of each form."""

    def block(kind: int, body: bytes) -> bytes:
        length = struct.pack(f"{order}I", len(body) + 12)
        return struct.pack(f"{order}I", kind) + length + body + length

    resolution = struct.pack(f"{order}HH", 9, 1) + b"\x8a\0\0\0" + bytes(4)
    return b"".join([
        block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1)),
        block(1, struct.pack(f"{order}HHI", 1, 0, 0) + resolution),
        block(5, bytes(12)),
        block(6, struct.pack(f"{order}IIIII", 0, 0, 512, 2, 2) + b"ab\0\0"),
        block(3, struct.pack(f"{order}I", 3) + b"cde\0"),
    ])  # fmt: skip


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_in_either_byte_order(tmp_path: Path, order: str) -> None:
    file = tmp_path / "x"
    file.write_bytes(simple(order))
    first, second = read_capture(file)
    assert (first.time, first.frame, second.frame) == (500_000_000, b"ab", b"cde")


def pcap(*, link: int = 1, kept: int = 4, length: int = 4) -> bytes:
    return struct.pack("<IHHiIIIIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link, 1, 0, kept, length) + b"abcd"


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"", "this is no capture: neither pcap nor pcapng"),
        (b"packet 0 00\n", "this is no capture: neither pcap nor pcapng"),
        (pcap(link=113), "the capture's link type is 113; ports of a switch carry Ethernet (1)"),
        (pcap(length=1500), "frame 1 was cut when it was captured: 4 of its 1500 bytes are here"),
        (pcap(kept=5, length=5), "the capture ends within frame 1"),
        (pcap() + bytes(9), "the capture ends within a block"),
        (simple("<")[:-4], "the capture's block at byte 120 is not whole"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(tmp_path: Path, content: bytes, cause: str) -> None:
    file = tmp_path / "x"
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_capture(file)
    assert str(caught.value) == f"{file}: error: {cause}"


@given(content=st.binary(max_size=80), head=st.sampled_from([b"", pcap()[:24], simple("<")[:60], simple(">")[:60]]))
def test_whatever_a_file_holds_it_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, head: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / "fuzzed"
    file.write_bytes(head + content)
    try:
        read_capture(file)
    except InputError as error:
        told = str(error)
    else:
        told = "it is read"
    assert len(told.splitlines()) == 1
