"""Messages of RDMA CM: bytes by hand from the tables of the InfiniBand specification, and what is refused."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4gen.rocev2.cm import LAYOUTS, PATH_MTUS, Datagram, Kind, Message, gid_of, parse_datagram
from p4gen.rocev2.headers import BTH, Ethernet, HeaderError, ipv4
from p4gen.rocev2.packet import problems

HEADER = (
    "01 07 02 03  0000 0000  0000000000001234"  # base version, class, class version, ComMgtSend, status, transaction
)
A, B = ipv4("10.0.0.1"), ipv4("10.0.0.2")
ETH = Ethernet(0x020000010001, 0x020000000001)
REQ_BYTES = bytes.fromhex(
    HEADER + "0010 0000 00000000"
    "11223344 00000000"  # local communication ID, reserved
    "0000000001061234 0002c90300abcdef 00000000"  # service ID, local CA GUID, reserved
    "00000000 000777 04"  # local Q_Key, local QPN, responder resources
    "000000 04 000000"  # local EECN, initiator depth, remote EECN
    "a0"  # remote CM response timeout 20, RC, no flow control
    "abcdef a7"  # starting PSN, local CM response timeout 20, retry count 7
    "ffff 57 f0"  # partition key, path MTU 4096 and RNR retry count 7, max CM retries 15
    "0000 0000"  # LIDs
    "00000000000000000000ffff0a000001 00000000000000000000ffff0a000002"  # GIDs
    "12345003"  # flow label of 20 bits, reserved, packet rate
    "68 40 00 90"  # traffic class, hop limit, SL, ACK timeout 18
    + "00" * 44  # alternate path
    + "cafe"
    + "00" * 90  # private data
)
REP_BYTES = bytes.fromhex(
    HEADER + "0013 0000 00000000"
    "55667788 11223344 00000000"  # communication IDs, Q_Key
    "000888 00 000000 00 123456 00"  # local QPN, EECN, starting PSN
    "04 04 7a e0 0002c90300fedcba"  # resources, depth, ACK delay 15 and failover 1, RNR retries
     + "00" * 196
)
DREQ_BYTES = bytes.fromhex(HEADER + "0015 0000 00000000 11223344 55667788 000888 00" + "00" * 220)
REJ_BYTES = bytes.fromhex(HEADER + "0012 0000 00000000 00000000 11223344 00 00 0008" + "00" * 220)
REQ_VALUES = {
    "local_id": 0x11223344,
    "service_id": 0x01061234,
    "local_ca_guid": 0x0002C90300ABCDEF,
    "local_qpn": 0x777,
    "responder_resources": 4,
    "initiator_depth": 4,
    "remote_response_timeout": 20,
    "transport": 0,
    "starting_psn": 0xABCDEF,
    "local_response_timeout": 20,
    "retry_count": 7,
    "partition_key": 0xFFFF,
    "path_mtu": 5,
    "rnr_retry_count": 7,
    "max_cm_retries": 15,
    "local_gid": gid_of(A),
    "remote_gid": gid_of(B),
    "flow_label": 0x12345,
    "packet_rate": 3,
    "traffic_class": 0x68,
    "hop_limit": 64,
    "local_ack_timeout": 18,
    "private": 0xCAFE << 8 * 90,
}


@pytest.mark.parametrize(
    ("data", "kind", "values"),
    [
        (REQ_BYTES, Kind.REQ, REQ_VALUES),
        (
            REP_BYTES,
            Kind.REP,
            {
                "local_id": 0x55667788,
                "remote_id": 0x11223344,
                "local_qpn": 0x888,
                "starting_psn": 0x123456,
                "responder_resources": 4,
                "initiator_depth": 4,
                "target_ack_delay": 15,
                "failover_accepted": 1,
                "rnr_retry_count": 7,
                "local_ca_guid": 0x0002C90300FEDCBA,
            },
        ),
        (DREQ_BYTES, Kind.DREQ, {"local_id": 0x11223344, "remote_id": 0x55667788, "remote_qpn": 0x888}),
        (REJ_BYTES, Kind.REJ, {"remote_id": 0x11223344, "reason": 8}),
    ],
    ids=["REQ", "REP", "DREQ", "REJ"],
)
def test_messages_are_as_the_specification_has_them(data: bytes, kind: Kind, values: dict[str, int]) -> None:
    assert len(data) == 256
    message = Message.from_bytes(data)
    assert (message.kind, message.transaction) == (kind, 0x1234)
    assert {name: value for name, value in message.values.items() if value} == {k: v for k, v in values.items() if v}
    assert Message.of(kind, 0x1234, **values).to_bytes() == data


@pytest.mark.parametrize("kind", Kind)
def test_layouts_fill_a_datagram(kind: Kind) -> None:
    assert LAYOUTS[kind].size == 256 - 24


@pytest.mark.parametrize(
    ("kind", "offset"),
    [
        (Kind.RTU, 8),
        (Kind.DREP, 8),
        (Kind.DREQ, 12),
        (Kind.MRA, 10),
        (Kind.REP, 36),
        (Kind.REQ, 140),
        (Kind.REJ, 84),
    ],
)
def test_private_data_begin_where_the_tables_say(kind: Kind, offset: int) -> None:
    size = 232 - offset
    data = Message.of(kind, private=(1 << 8 * size) - 1).to_bytes()
    assert data[24:] == bytes(offset) + b"\xff" * size


def test_path_mtus_are_powers_of_two() -> None:
    assert [PATH_MTUS[code] for code in range(1, 6)] == [256 << code for code in range(5)]


@given(st.sampled_from(Kind), st.integers(0, 2**64 - 1), st.binary(min_size=232, max_size=232))
def test_any_message_survives(kind: Kind, transaction: int, body: bytes) -> None:
    data = bytes.fromhex("0107020300000000") + struct.pack("!QHHI", transaction, kind, 0, 0) + body
    assert Message.from_bytes(data).to_bytes() == data


@pytest.mark.parametrize(
    ("at", "value", "cause"),
    [
        (0, 2, "MAD: base version is 0x2, not 0x1"),
        (1, 4, "MAD: management class is 0x4, not 0x7"),
        (2, 1, "MAD: class version is 0x1, not 0x2"),
        (3, 1, "MAD: method is 0x1, not 0x3"),
        (17, 0x17, "RDMA CM: attribute 0x0017 is no part of a handshake"),
    ],
)
def test_other_datagrams_are_refused(at: int, value: int, cause: str) -> None:
    data = REQ_BYTES[:at] + bytes([value]) + REQ_BYTES[at + 1 :]
    with pytest.raises(HeaderError, match=cause):
        Message.from_bytes(data)


def test_a_datagram_that_is_cut_is_refused() -> None:
    with pytest.raises(HeaderError, match="MAD: 255 bytes instead of 256"):
        Message.from_bytes(REQ_BYTES[:-1])


def test_a_field_that_a_message_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="RTU: no field local_qpn"):
        Message.of(Kind.RTU, local_qpn=1)


def test_a_frame_is_right_and_read_back() -> None:
    sent = Datagram(A, B, Message.from_bytes(REQ_BYTES))
    frame = sent.packet(ETH, tos=0x68).to_bytes()
    assert problems(frame) == []
    assert len(frame) == 14 + 20 + 8 + 12 + 8 + 256 + 4
    assert frame[42:54].hex() == "6400ffff0000000100000000", "UD SEND only to QP 1"
    assert frame[54:62].hex() == "8001000000000001", "the key of QP 1, from QP 1"
    assert frame[62:-4] == REQ_BYTES
    assert parse_datagram(frame) == sent


def test_a_frame_that_no_nic_would_take_is_refused() -> None:
    packet = Datagram(A, B, Message.from_bytes(REQ_BYTES)).packet(ETH)
    payload = packet.payload
    for wrong, cause in (
        (replace(packet, icrc=bytes(4)), "ICRC is 00000000"),
        (replace(packet, bth=BTH(0x64, 2, 0)).sealed(), "to QP 2 is no management datagram"),
        (replace(packet, bth=BTH(0x04, 1, 0)).sealed(), "opcode 0x04"),
        (replace(packet, payload=bytes(4) + payload[4:]).sealed(), "DETH: key 0x00000000"),
        (replace(packet, payload=payload[:7] + b"\2" + payload[8:]).sealed(), "of QP 2 is not that of QP 1"),
        (replace(packet, payload=payload[:4]).sealed(), "DETH: 4 bytes"),
        (replace(packet, payload=payload[:-4]).sealed(), "MAD: 252 bytes"),
    ):
        with pytest.raises(HeaderError, match=cause):
            parse_datagram(wrong.to_bytes())
