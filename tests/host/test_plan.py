"""What collectives are made of, and what of it a rank puts onto the wire, packet by packet.

The far end is a script: it takes what the NIC sends, and answers as the test says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from p4gen.errors import FailedError, InputError
from p4gen.host.collectives.commlib import (
    SYMMETRIC,
    ChannelKey,
    Communicator,
    Connection,
    Flow,
    GroupConfig,
    Invocation,
    PsnSync,
)
from p4gen.host.collectives.control import Control
from p4gen.host.collectives.plan import Part, Phase, Planner, Step
from p4gen.host.compiled.hosts import CompiledHosts
from p4gen.host.transport.verbs import Peer, QpConfig
from p4gen.rocev2.headers import AETH, BTH, UDP, Ethernet, ImmDt, IPv4
from p4gen.rocev2.opcodes import Ack, Opcode
from p4gen.rocev2.packet import RocePacket, parse, problems
from p4gen.vocabulary import DType, Op, Overflow
from p4gen.vocabulary.message import MAX_PACKETS, Collective

REDUCE, BROADCAST, BARRIER = Collective.REDUCE, Collective.BROADCAST, Collective.BARRIER
MAC, IP, FAR_MAC, FAR_IP = 0x0200_0000_0001, 0x0A00_0001, 0x0200_0000_00FF, 0x0AFF_0001
MTU, FIRST_PSN = 8, 0xFF_FFFC
W, M = 3, 2


def group(size: int = 3, rank: int = 0, sync: PsnSync = PsnSync.SUBGROUPS, **settings: Any) -> GroupConfig:
    keys: list[ChannelKey] = [SYMMETRIC]
    if sync is PsnSync.SUBGROUPS:
        keys += [(kind, root) for kind in (REDUCE, BROADCAST) for root in range(size)]
    qp = QpConfig(MTU, FIRST_PSN, max_outstanding=W * M, timeout_ps=0)
    channels = {key: Connection(0x10 + i, Peer(FAR_MAC, FAR_IP, 0x110 + i), qp) for i, key in enumerate(keys)}
    return GroupConfig(rank, size, channels, W, M, sync=sync, **settings)


# --- plans ---


def parts(config: GroupConfig, collective: Collective, size: int, root: int = 0) -> list[Part]:
    """What a rank hands over, by the collectives' definitions (EPIC §A)."""
    here = config.rank
    data, room = memoryview(bytes(size)), memoryview(bytearray(size))
    senders: dict[Collective, Callable[[int], bool]] = {
        REDUCE: lambda r: here != r,
        Collective.REDUCE_SCATTER: lambda r: here != r,
        BROADCAST: lambda r: here == r,
        Collective.ALLGATHER: lambda r: here == r,
    }
    if collective not in senders:
        return [Part(0, data, room)]
    roots = [root] if collective in (REDUCE, BROADCAST) else range(config.size)
    return [Part(r, data, None) if senders[collective](r) else Part(r, None, room) for r in roots]


def plan(planner: Planner, collective: Collective, size: int = 5 * MTU, root: int = 0) -> list[Step]:
    return planner.plan(collective, parts(planner.config, collective, size, root), Op.SUM, DType.INT32)


def text(steps: Iterable[Step]) -> list[str]:
    """Steps for people: what is announced on which channel, who sends."""

    def one(phase: Phase) -> str:
        way = {(True, True): "<>", (True, False): ">", (False, True): "<"}[
            phase.send is not None, phase.receive is not None
        ]
        control = phase.control
        assert phase.added == (control.collective is BARRIER)
        return f"{phase.channel[0]}{phase.channel[1]}: {way}{control.collective} to {control.root}, {control.packets}"

    return [" | ".join(map(one, step.phases)) + (" move" if step.move_idle else "") for step in steps]


def test_reduce_scatter_is_a_reduce_to_each_rank_at_once() -> None:
    assert text(plan(Planner(group(rank=1)), Collective.REDUCE_SCATTER)) == [
        "reduce0: >reduce to 0, 5 | reduce1: <reduce to 1, 5 | reduce2: >reduce to 2, 5"
    ]


def test_all_gather_is_a_broadcast_from_each_rank_at_once() -> None:
    assert text(plan(Planner(group(rank=1)), Collective.ALLGATHER)) == [
        "broadcast0: <broadcast to 0, 5 | broadcast1: >broadcast to 1, 5 | broadcast2: <broadcast to 2, 5"
    ]


def test_refined_phases_take_turns_and_a_barrier_stands_behind_each() -> None:
    planner = Planner(group(rank=1, sync=PsnSync.REFINED))
    barrier = "allreduce0: <>barrier to 0, 0"
    assert text(plan(planner, Collective.REDUCE_SCATTER)) == [
        "allreduce0: >reduce to 0, 5 move",
        barrier,
        "allreduce0: <reduce to 1, 5 move",
        barrier,
        "allreduce0: >reduce to 2, 5 move",
        barrier,
    ]
    assert text(plan(planner, BROADCAST, root=1)) == ["allreduce0: >broadcast to 1, 5 move", barrier]
    assert text(plan(planner, Collective.ALLREDUCE)) == ["allreduce0: <>allreduce to 0, 5"]


def test_all_ranks_announce_the_same() -> None:
    for sync in PsnSync:
        for collective in (c for c in Collective if c is not BARRIER):
            planned = [plan(Planner(group(4, rank, sync)), collective, root=2) for rank in range(4)]
            announced = [[(p.channel, p.control) for step in steps for p in step.phases] for steps in planned]
            assert all(mine == announced[0] for mine in announced)
            for each in zip(*([p for step in steps for p in step.phases] for steps in planned), strict=True):
                sending = {rank for rank, phase in enumerate(each) if phase.send is not None}
                root = each[0].control.root
                assert sending == {REDUCE: {0, 1, 2, 3} - {root}, BROADCAST: {root}}.get(
                    each[0].control.collective, {0, 1, 2, 3}
                )


def test_more_than_a_control_message_can_announce_goes_in_stretches() -> None:
    most = MAX_PACKETS // M * M
    for sync in PsnSync:
        steps = plan(Planner(group(sync=sync)), REDUCE, size=(2 * most + 1) * MTU, root=1)
        phases = [p for step in steps for p in step.phases if not p.added]
        assert [p.control.packets for p in phases] == [most, most, 1]
        assert sum(len(p.send or b"") for p in phases) == (2 * most + 1) * MTU


def test_mode_iii_lets_no_rank_leave_a_switch_with_three_announcements() -> None:
    planner = Planner(group(hop_by_hop=True))

    def barriers(collective: Collective, root: int = 0) -> int:
        return sum(step.phases[0].added for step in plan(planner, collective, root=root))

    assert [barriers(REDUCE, 1) for _ in range(6)] == [0, 0, 1, 0, 1, 0]
    assert [barriers(BROADCAST, 1), barriers(BROADCAST, 2), barriers(REDUCE, 0)] == [0, 0, 0]  # channels of their own
    assert barriers(REDUCE, 1) == 1
    assert [barriers(REDUCE, 1), barriers(Collective.ALLREDUCE), barriers(REDUCE, 1), barriers(REDUCE, 1)] == [0] * 4
    assert [barriers(Collective.REDUCE_SCATTER), *(barriers(Collective.REDUCE_SCATTER) for _ in range(5))] == [
        1,
        0,
        0,
        0,
        0,
        0,
    ]
    assert [barriers(REDUCE, 1), barriers(REDUCE, 1)] == [0, 1]
    mode_ii = Planner(group())
    assert not any(step.phases[0].added for _ in range(9) for step in plan(mode_ii, REDUCE))


def test_groups_serve_what_they_have_channels_for() -> None:
    config = group()
    assert set(config.served()) == set(Collective)
    some = replace(
        config, channels={k: c for k, c in config.channels.items() if k not in {(REDUCE, 2), (BROADCAST, 0)}}
    )
    assert config.served() != some.served() == [Collective.ALLREDUCE, BARRIER]
    assert text(plan(Planner(some), REDUCE, root=1)) == ["reduce1: >reduce to 1, 5"]
    with pytest.raises(InputError, match="reduce: the program on the tree serves allreduce, barrier"):
        plan(Planner(some), REDUCE, root=2)
    with pytest.raises(InputError, match="reducescatter"):
        plan(Planner(some), Collective.REDUCE_SCATTER)
    with pytest.raises(ValueError, match="AllReduce and Barrier"):
        replace(config, channels={(REDUCE, 0): config.channels[REDUCE, 0]})


# --- on the wire ---


class Desk:
    """One rank, and what it sends on each channel: "ONLY 3" is a SEND ONLY of the initial PSN + 3."""

    def __init__(self, config: GroupConfig) -> None:
        hosts = CompiledHosts(256, 1)
        self.loop = hosts.loop
        self.nic = hosts.add(MAC, IP)
        self.nic.line = self
        self.config = config
        self.frames: list[RocePacket] = []
        self.rank = Communicator(self.nic, config)

    def transmit(self, frame: bytes, at: int) -> int:
        assert not problems(frame)
        self.frames.append(parse(frame))
        return at + 1

    def sent(self, key: ChannelKey = SYMMETRIC) -> list[str]:
        """What has left on a channel since last asked."""
        self.loop.run(until=self.loop.now + 1_000_000)
        far = self.config.channels[key].peer.qp
        mine = [f for f in self.frames if f.bth.dst_qp == far]
        self.frames = [f for f in self.frames if f.bth.dst_qp != far]
        return [self._text(f) for f in mine]

    def _text(self, frame: RocePacket) -> str:
        name = Opcode(frame.bth.opcode).name.removeprefix("SEND_").replace("ACKNOWLEDGE", "ACK")
        said = f" {Control.decode(frame.immdt.value)}" if frame.immdt is not None else ""
        return f"{name} {(frame.bth.psn - FIRST_PSN) & 0xFFFFFF}{said}"

    def receive(self, opcode: Opcode, number: int, key: ChannelKey = SYMMETRIC, control: Control | None = None) -> None:
        """A packet arrives, of the initial PSN + ``number``; data has the PSN in every byte."""
        connection = self.config.channels[key]
        bth = BTH(int(opcode), connection.qp, (FIRST_PSN + number) & 0xFFFFFF)
        packet = RocePacket(Ethernet(MAC, FAR_MAC), IPv4(FAR_IP, IP), UDP(49152), bth)
        if opcode is Opcode.ACKNOWLEDGE:
            packet = replace(packet, aeth=AETH(Ack().syndrome, 0))
        elif control is not None:
            packet = replace(packet, immdt=ImmDt(control.encode()))
        else:
            packet = replace(packet, payload=bytes([number]) * MTU)
        self.nic.receive(packet.sealed().to_bytes())


def ended(call: Invocation) -> bool:
    return call.finished is not None


def said(collective: Collective, packets: int, root: int = 0, op: Op = Op.SUM, dtype: DType = DType.INT32) -> str:
    return f"ONLY_IMM 0 {Control(collective, packets, root, op, dtype)}"


def test_each_channel_has_a_window_of_its_own() -> None:
    desk = Desk(group(rank=1))
    call = desk.rank.reduce_scatter(np.arange(3 * 2 * 8, dtype=np.int32))
    # The control message and two data messages of two packets: W = 3 messages.
    window = ["FIRST 1", "LAST 2", "FIRST 3", "LAST 4"]
    assert desk.sent((REDUCE, 0)) == [said(REDUCE, 8, 0), *window]
    assert desk.sent((REDUCE, 2)) == [said(REDUCE, 8, 2), *window]
    assert desk.sent((REDUCE, 1)) == []
    desk.receive(Opcode.ACKNOWLEDGE, 2, (REDUCE, 2))
    assert desk.sent((REDUCE, 2)) == ["FIRST 5", "LAST 6", "FIRST 7", "LAST 8"]
    assert desk.sent((REDUCE, 0)) == []
    desk.receive(Opcode.ACKNOWLEDGE, 8, (REDUCE, 2))
    desk.receive(Opcode.ACKNOWLEDGE, 4, (REDUCE, 0))
    assert desk.sent((REDUCE, 0)) == ["FIRST 5", "LAST 6", "FIRST 7", "LAST 8"]
    desk.receive(Opcode.ACKNOWLEDGE, 8, (REDUCE, 0))
    control = Control(REDUCE, 8, 1)
    desk.receive(Opcode.SEND_ONLY_IMM, 0, (REDUCE, 1), control)
    for number in range(1, 9):
        assert not ended(call)
        desk.receive((Opcode.SEND_LAST, Opcode.SEND_FIRST)[number % 2], number, (REDUCE, 1))
    assert ended(call)
    own = np.arange(16, 32)
    came = np.repeat(np.arange(1, 9) * 0x01010101, 2)
    got = call.result()
    assert got is not None
    assert got.tolist() == (own + came).tolist()


def test_a_broadcasts_receiver_announces_nothing_and_acknowledges() -> None:
    desk = Desk(group(rank=1))
    call = desk.rank.broadcast(np.zeros(4, np.int32), 2)
    assert desk.sent((BROADCAST, 2)) == []
    desk.receive(Opcode.SEND_ONLY_IMM, 0, (BROADCAST, 2), Control(BROADCAST, 2, 2))
    desk.receive(Opcode.SEND_FIRST, 1, (BROADCAST, 2))
    desk.receive(Opcode.SEND_LAST, 2, (BROADCAST, 2))
    assert ended(call)
    assert call.last_result == call.finished == desk.loop.now


def test_another_control_message_than_expected_ends_it() -> None:
    desk = Desk(group(rank=1))
    first, second = desk.rank.broadcast(np.zeros(4, np.int32), 2), desk.rank.barrier()
    desk.receive(Opcode.SEND_ONLY_IMM, 0, (BROADCAST, 2), Control(BROADCAST, 3, 2))
    for call in (first, second, desk.rank.barrier()):
        assert ended(call)
        with pytest.raises(FailedError):
            call.result()
    assert "announces" in str(first.error)


@pytest.mark.parametrize("flow", Flow)
def test_flow_control_by_results_or_by_acks_alone(flow: Flow) -> None:
    desk = Desk(group(flow=flow, hop_by_hop=True))
    call = desk.rank.all_reduce(np.zeros(2 * 12, np.int32))
    control = Control(Collective.ALLREDUCE, 12)
    assert desk.rank.pair.responder.posted == {Flow.RESULTS: 2 * W, Flow.ACKS: 7}[flow]
    assert desk.sent() == [said(Collective.ALLREDUCE, 12), "FIRST 1", "LAST 2", "FIRST 3", "LAST 4"]
    desk.receive(Opcode.ACKNOWLEDGE, 4)  # the next hop has three messages; no result is there
    if flow is Flow.ACKS:
        assert desk.sent() == [f"{name} {n}" for n in range(5, 11) for name in [("LAST", "FIRST")[n % 2]]]
        desk.receive(Opcode.ACKNOWLEDGE, 10)
        assert desk.sent() == ["FIRST 11", "LAST 12"]
        desk.receive(Opcode.ACKNOWLEDGE, 12)
    else:
        assert desk.sent() == []
    desk.receive(Opcode.SEND_ONLY_IMM, 0, control=control)
    if flow is Flow.RESULTS:
        assert desk.sent() == ["FIRST 5", "LAST 6"]
        desk.receive(Opcode.ACKNOWLEDGE, 6)
        assert desk.sent() == []
    for number in range(1, 13):
        desk.receive((Opcode.SEND_LAST, Opcode.SEND_FIRST)[number % 2], number)
        desk.receive(Opcode.ACKNOWLEDGE, number)
        desk.sent()  # nothing is refused for want of room
    desk.receive(Opcode.ACKNOWLEDGE, 12)
    assert ended(call)
    assert desk.rank.pair.responder.stats.rnr_naks == 0
    assert (call.messages_sent, call.messages_received, call.messages) == (7, 7, 14)


def test_the_last_result_may_come_before_the_end() -> None:
    desk = Desk(group(hop_by_hop=True))
    call = desk.rank.barrier()
    assert desk.sent() == [said(BARRIER, 0)]
    desk.receive(Opcode.SEND_ONLY_IMM, 0, control=Control(BARRIER, 0))
    here = desk.loop.now
    assert desk.sent() == []  # no AckReq, no ACK
    assert not ended(call)
    desk.receive(Opcode.ACKNOWLEDGE, 0)
    assert (call.last_result, call.finished) == (here, desk.loop.now)
    assert here < desk.loop.now


def test_room_is_there_for_a_neighbour_that_is_one_collective_ahead() -> None:
    desk = Desk(group(rank=1))
    first, second = desk.rank.broadcast(np.zeros(2, np.int32), 0), desk.rank.broadcast(np.zeros(2, np.int32), 2)
    desk.receive(Opcode.SEND_ONLY_IMM, 0, (BROADCAST, 2), Control(BROADCAST, 1, 2))
    desk.receive(Opcode.SEND_ONLY, 1, (BROADCAST, 2))
    assert not ended(first)
    assert not ended(second)
    desk.receive(Opcode.SEND_ONLY_IMM, 0, (BROADCAST, 0), Control(BROADCAST, 1, 0))
    desk.receive(Opcode.SEND_ONLY, 1, (BROADCAST, 0))
    assert ended(first)
    assert ended(second)
    got = second.result()
    assert got is not None
    assert got.tolist() == [0x01010101] * 2


# --- refined, exchange by exchange ---


def test_refined_a_reduces_sender_moves_what_it_expects() -> None:
    desk = Desk(group(rank=1, sync=PsnSync.REFINED))
    call = desk.rank.reduce(np.zeros(6, np.int32), 0)
    assert desk.sent() == [said(REDUCE, 3), "FIRST 1", "LAST 2", "ONLY 3"]
    assert desk.rank.pair.responder.expected == 0
    desk.receive(Opcode.ACKNOWLEDGE, 3)
    assert desk.sent() == [f"ONLY_IMM 4 {Control(BARRIER, 0)}"]
    assert not ended(call)
    desk.receive(Opcode.ACKNOWLEDGE, 4)
    desk.receive(Opcode.SEND_ONLY_IMM, 4, control=Control(BARRIER, 0))
    assert ended(call)
    assert call.last_result is None


def test_refined_a_reduces_root_moves_what_it_sends() -> None:
    desk = Desk(group(rank=1, sync=PsnSync.REFINED))
    call = desk.rank.reduce(np.zeros(6, np.int32), 1)
    desk.receive(Opcode.SEND_ONLY_IMM, 0, control=Control(REDUCE, 3, 1))
    desk.receive(Opcode.SEND_FIRST, 1)
    desk.receive(Opcode.SEND_LAST, 2)
    assert desk.sent() == []
    desk.receive(Opcode.SEND_ONLY, 3)
    there = desk.loop.now
    assert desk.sent() == [f"ONLY_IMM 4 {Control(BARRIER, 0)}"]
    desk.receive(Opcode.SEND_ONLY_IMM, 4, control=Control(BARRIER, 0))
    assert not ended(call)
    desk.receive(Opcode.ACKNOWLEDGE, 4)
    assert ended(call)
    assert call.last_result == there


def test_refined_an_all_gather_moves_both_ways_in_turn() -> None:
    desk = Desk(group(2, rank=1, sync=PsnSync.REFINED))
    call = desk.rank.all_gather(np.full(2, 7, np.int32))
    barrier = Control(BARRIER, 0)
    desk.receive(Opcode.SEND_ONLY_IMM, 0, control=Control(BROADCAST, 1, 0))
    desk.receive(Opcode.SEND_ONLY, 1)
    assert desk.sent() == [f"ONLY_IMM 2 {barrier}"]
    desk.receive(Opcode.ACKNOWLEDGE, 2)
    assert desk.sent() == []  # its own Broadcast waits for the others
    desk.receive(Opcode.SEND_ONLY_IMM, 2, control=barrier)
    assert desk.sent() == [f"ONLY_IMM 3 {Control(BROADCAST, 1, 1)}", "ONLY 4"]
    desk.receive(Opcode.ACKNOWLEDGE, 4)
    assert desk.sent() == [f"ONLY_IMM 5 {barrier}"]
    desk.receive(Opcode.SEND_ONLY_IMM, 5, control=barrier)
    desk.receive(Opcode.ACKNOWLEDGE, 5)
    got = call.result()
    assert got is not None
    assert got.tolist() == [0x01010101, 0x01010101, 7, 7]
    after = desk.rank.all_reduce(np.zeros(2, np.int32))
    assert desk.sent() == [f"ONLY_IMM 6 {Control(Collective.ALLREDUCE, 1)}", "ONLY 7"]
    assert not ended(after)


# --- op and dtype ---


def test_with_op_dynamic_each_call_chooses() -> None:
    desk = Desk(group(rank=1, op=Op.DYNAMIC))
    call = desk.rank.reduce(np.array([5, 2**32 - 1], np.uint32), 1, Op.MAX)
    desk.receive(Opcode.SEND_ONLY_IMM, 0, (REDUCE, 1), Control(REDUCE, 1, 1, Op.MAX, DType.UINT32))
    desk.receive(Opcode.SEND_ONLY, 1, (REDUCE, 1))
    got = call.result()
    assert got is not None
    assert got.tolist() == [0x01010101, 2**32 - 1]
    desk.rank.all_reduce(np.zeros(2, np.int32), Op.MIN)
    assert desk.sent()[0] == said(Collective.ALLREDUCE, 1, op=Op.MIN)
    desk.rank.broadcast(np.zeros(2, np.uint32), 1)
    assert desk.sent((BROADCAST, 1)) == []  # it waits for its turn
    with pytest.raises(InputError, match="each call must name one of"):
        desk.rank.all_reduce(np.zeros(2, np.int32), Op.DYNAMIC)
    with pytest.raises(InputError, match="float32"):
        desk.rank.all_reduce(np.zeros(2, np.float32))
    desk = Desk(group(rank=1, op=Op.DYNAMIC, dtype=DType.FLOAT32))
    desk.rank.all_reduce(np.zeros(2, np.float32), Op.MAX)
    assert desk.sent()[0] == said(Collective.ALLREDUCE, 1, op=Op.MAX, dtype=DType.FLOAT32)


@pytest.mark.parametrize(("overflow", "total"), [(None, 2**31 - 1), (Overflow.WRAP, 0x7FFFFFFF + 0x01010101 - 2**32)])
def test_a_reduces_root_adds_its_own_as_the_switch_would(overflow: Overflow | None, total: int) -> None:
    desk = Desk(group(rank=1, overflow=overflow))
    mine = np.array([2**31 - 1, 0], np.int32)
    call = desk.rank.reduce(mine, 1)
    mine[:] = -1  # it is the caller's again
    desk.receive(Opcode.SEND_ONLY_IMM, 0, (REDUCE, 1), Control(REDUCE, 1, 1))
    desk.receive(Opcode.SEND_ONLY, 1, (REDUCE, 1))
    got = call.result()
    assert got is not None
    assert got.tolist() == [total, 0x01010101]
