"""READs and atomic operations, as the InfiniBand specification (volume 1, 9.4.4, 9.4.5, 9.7) wants them answered."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from p4gen.host.transport.clock import US
from p4gen.host.transport.memory import ProtectionDomain
from p4gen.host.transport.verbs import Completion, Operation, Peer, QpConfig, Recovery, Resumption, SendWr, Status
from p4gen.net.world.freezing import freeze, restore
from p4gen.rocev2.headers import ip_from

from .bench import FIRST_PSN, MTU, Bench
from .fabric import Fabric, Trouble
from .test_exchanges import SR, TIMER, Case

RXE = {"resumption": Resumption.RXE}

RESPONDER = [
    Case("a READ of one packet", "< READ_REQUEST 0 dma=8 ack\n> READ_RESPONSE_ONLY 0 len=8 msn=1\n> nothing"),
    Case(
        "a READ of three: an AETH on FIRST and LAST, and the PSNs of its responses (9.7.5.1.3)",
        "< READ_REQUEST 0 dma=20\n> READ_RESPONSE_FIRST 0 len=8 msn=1\n> READ_RESPONSE_MIDDLE 1 len=8\n"
        "> READ_RESPONSE_LAST 2 len=4 msn=1\n< WRITE_ONLY 3 ack\n> ACK 3 msn=2",
    ),
    Case(
        "the same again is read again",
        "< READ_REQUEST 0 dma=12\n> READ_RESPONSE_FIRST 0\n> READ_RESPONSE_LAST 1\n"
        "< READ_REQUEST 0 dma=12\n> READ_RESPONSE_FIRST 0 msn=1\n> READ_RESPONSE_LAST 1 msn=1\n"
        "< WRITE_ONLY 2 ack\n> ACK 2",
    ),
    Case(
        "a part again, and then an earlier one",
        "< READ_REQUEST 0 dma=20\n> READ_RESPONSE_FIRST 0\n> READ_RESPONSE_MIDDLE 1\n> READ_RESPONSE_LAST 2\n"
        "< READ_REQUEST 2 dma=4 va=0x100010\n> READ_RESPONSE_ONLY 2 len=4 msn=1\n"
        "< READ_REQUEST 1 dma=12 va=0x100008\n> READ_RESPONSE_FIRST 1\n> READ_RESPONSE_LAST 2",
    ),
    Case(
        "rxe narrows what it remembers, and resumes in the middle",
        "< READ_REQUEST 0 dma=20\n> READ_RESPONSE_FIRST 0\n> READ_RESPONSE_MIDDLE 1\n> READ_RESPONSE_LAST 2\n"
        "< READ_REQUEST 1 dma=12 va=0x100008\n> READ_RESPONSE_MIDDLE 1\n> READ_RESPONSE_LAST 2\n"
        "< READ_REQUEST 0 dma=20\n> nothing\n< READ_REQUEST 2 dma=4 va=0x100010\n> READ_RESPONSE_LAST 2",
        RXE,
    ),
    Case(
        "another READ under a PSN that was used is dropped in silence (9.7.5.1.6)",
        "< READ_REQUEST 0 dma=8\n> READ_RESPONSE_ONLY 0\n< READ_REQUEST 0 dma=16\n> nothing\n"
        "< READ_REQUEST 0 dma=8 va=0x100008\n> nothing\n< FETCH_ADD 0 with=1\n> nothing",
    ),
    Case(
        "what is older than max_dest_rd_atomic is forgotten",
        "< READ_REQUEST 0 dma=8\n> READ_RESPONSE_ONLY 0\n< READ_REQUEST 1 dma=8\n> READ_RESPONSE_ONLY 1\n"
        "< READ_REQUEST 0 dma=8\n> nothing\n< READ_REQUEST 1 dma=8\n> READ_RESPONSE_ONLY 1",
        {"max_dest_rd_atomic": 1},
    ),
    Case("a READ of nothing needs no key", "< READ_REQUEST 0 dma=0 rkey=1\n> READ_RESPONSE_ONLY 0 len=0 msn=1"),
    Case("a READ beyond the region: remote access error", "< READ_REQUEST 0 dma=65\n> NAK 0 code=2"),
    Case("a READ with a wrong R_Key: remote access error", "< READ_REQUEST 0 dma=8 rkey=1\n> NAK 0 code=2"),
    Case("more than 2^31 bytes: invalid request (9.7.8)", "< READ_REQUEST 0 dma=0x80000001\n> NAK 0 code=1"),
    Case("a READ inside a SEND: invalid request", "recv 1\n< FIRST 0\n< READ_REQUEST 1 dma=8\n> NAK 1 code=1"),
    Case("a READ ahead of its turn: one NAK", "< READ_REQUEST 1 dma=8\n< READ_REQUEST 2 dma=8\n> NAK 0 code=0"),
    Case(
        "NIC-SR executes it in its turn",
        "< READ_REQUEST 1 dma=8\n> NAK 0\n< WRITE_ONLY 0 ack\n> READ_RESPONSE_ONLY 1 msn=2\n> ACK 1",
        SR,
    ),
    Case("responses are no requests: invalid request", "< ATOMIC_ACKNOWLEDGE 0\n< READ_RESPONSE_ONLY 0\n> nothing"),
    Case(
        "FETCH ADD is executed once and answered again, also after a later one (9.7.5.1.6)",
        "< FETCH_ADD 0 with=5\n> ATOMIC_ACKNOWLEDGE 0 original=0 msn=1\nmemory 0500000000000000\n"
        "< FETCH_ADD 1 with=3\n> ATOMIC_ACKNOWLEDGE 1 original=5 msn=2\n"
        "< FETCH_ADD 0 with=5\n> ATOMIC_ACKNOWLEDGE 0 original=0 msn=1\nmemory 0800000000000000",
    ),
    Case(
        "COMPARE SWAP swaps what equals",
        "< COMPARE_SWAP 0 with=7 compare=1\n> ATOMIC_ACKNOWLEDGE 0 original=0\nmemory 0000000000000000\n"
        "< COMPARE_SWAP 1 with=7 compare=0\n> ATOMIC_ACKNOWLEDGE 1 original=0\nmemory 0700000000000000",
    ),
    Case(
        "a sum wraps at 2^64",
        "< FETCH_ADD 0 with=0xffffffffffffffff\n> ATOMIC_ACKNOWLEDGE 0 original=0\n"
        "< FETCH_ADD 1 with=2\n> ATOMIC_ACKNOWLEDGE 1\nmemory 0100000000000000",
    ),
    Case("an atomic operation off its eight bytes: invalid request", "< FETCH_ADD 0 va=0x100004\n> NAK 0 code=1"),
    Case("an atomic operation outside: remote access error", "< FETCH_ADD 0 va=0x100040\n> NAK 0 code=2"),
]

REQUESTER = [
    Case(
        "a READ of one packet: one request, whose length is that of the data",
        "read 8\n> READ_REQUEST 0 dma=8 va=0 ack\n< READ_RESPONSE_ONLY 0\ndone send 0\ngot feff000102030405",
    ),
    Case(
        "a READ takes the PSNs of its responses",
        "read 20\nsend 8\n> READ_REQUEST 0 dma=20 ack\n> ONLY 3 ack\n< READ_RESPONSE_FIRST 0\n"
        "< READ_RESPONSE_MIDDLE 1\n< READ_RESPONSE_LAST 2 len=4\ndone send 0\n< ACK 3\ndone send 1",
    ),
    Case(
        "an ACK behind a READ without its responses is an implied NAK (9.7.5.1.3), once",
        "read 16\nsend 8\n> READ_REQUEST 0 ack\n> ONLY 2 ack\n< ACK 2\n> READ_REQUEST 0 dma=16 ack\n> ONLY 2 ack\n"
        "< ACK 2\n> nothing\n< READ_RESPONSE_FIRST 0\n< READ_RESPONSE_LAST 1\ndone send 0\n< ACK 2\ndone send 1",
    ),
    Case(
        "a gap among responses: the rest is requested again, by what begins it",
        "read 24\n> READ_REQUEST 0 dma=24 va=0 ack\n< READ_RESPONSE_FIRST 0\n< READ_RESPONSE_LAST 2\n"
        "> READ_REQUEST 1 dma=16 va=8 ack\n< READ_RESPONSE_FIRST 1\n< READ_RESPONSE_LAST 2\ndone send 0",
    ),
    Case(
        "NIC-SR requests the rest, too",
        "read 24\n> READ_REQUEST 0 dma=24 ack\n< READ_RESPONSE_FIRST 0\n< READ_RESPONSE_LAST 2\n"
        "> READ_REQUEST 1 dma=16 va=8 ack\n< READ_RESPONSE_MIDDLE 1\n< READ_RESPONSE_LAST 2\ndone send 0",
        SR,
    ),
    Case(
        "the timer requests it again",
        "read 16\n> READ_REQUEST 0 dma=16 ack\nwait 101us\n> READ_REQUEST 0 dma=16 ack\n"
        "< READ_RESPONSE_FIRST 0\nwait 101us\n> READ_REQUEST 1 dma=8 va=8 ack",
        TIMER,
    ),
    Case(
        "the timer of NIC-SR asks once for all packets of a READ",
        "read 24\nsend 8\n> READ_REQUEST 0 ack\n> ONLY 3 ack\nwait 101us\n> READ_REQUEST 0 dma=24 ack\n> ONLY 3 ack",
        SR | TIMER,
    ),
    Case(
        "a response acknowledges all before it",
        "send 8\nread 8\n> ONLY 0 ack\n> READ_REQUEST 1 ack\n< READ_RESPONSE_ONLY 1\ndone send 0\ndone send 1",
    ),
    Case(
        "old and unknown responses change nothing",
        "read 8\n> READ_REQUEST 0 ack\n< READ_RESPONSE_ONLY 5\n< READ_RESPONSE_ONLY 0\ndone send 0\n"
        "< READ_RESPONSE_ONLY 0\n< ATOMIC_ACKNOWLEDGE 0\n> nothing",
    ),
    Case(
        "a response of a wrong length",
        "read 8\n> READ_REQUEST 0 ack\n< READ_RESPONSE_ONLY 0 len=4\ndone send 0 bad response error",
    ),
    Case("a refused READ", "read 8\n> READ_REQUEST 0 ack\n< NAK 0 code=2\ndone send 0 remote access error"),
    Case(
        "at most max_rd_atomic of them are outstanding",
        "read 8\nread 8\n> READ_REQUEST 0 ack\n> nothing\n< READ_RESPONSE_ONLY 0\ndone send 0\n> READ_REQUEST 1 ack",
        {"max_rd_atomic": 1},
    ),
    Case(
        "FETCH ADD",
        "add 5\n> FETCH_ADD 0 with=5 ack\n< ATOMIC_ACKNOWLEDGE 0 original=258\ndone send 0\ngot 0201000000000000",
    ),
    Case(
        "COMPARE SWAP; an ACK is no answer to it",
        "swap 5 4\n> COMPARE_SWAP 0 with=5 compare=4 ack\n< ACK 0\n> COMPARE_SWAP 0 with=5 compare=4 ack\n"
        "< ATOMIC_ACKNOWLEDGE 0 original=4\ndone send 0",
    ),
]


@pytest.mark.parametrize("case", [*RESPONDER, *REQUESTER], ids=lambda case: case.name)
def test_reads(case: Case) -> None:
    config = QpConfig(mtu=MTU, initial_psn=FIRST_PSN, max_outstanding=4, timeout_ps=0)
    Bench(replace(config, **case.config)).play(case.script)


def test_what_a_response_cannot_fill_is_refused() -> None:
    bench = Bench()
    for data in (b"constant", memoryview(bytearray(4))):
        with pytest.raises(ValueError, match="fetch and add"):
            bench.pair.post_send(SendWr(0, data, None, bench.region.rkey, 0, False, Operation.FETCH_ADD))


def test_an_unknown_opcode_is_an_invalid_request() -> None:
    bench = Bench()
    packet = bench.frame(["ONLY", "0"])
    bench.nic.receive(replace(packet, bth=replace(packet.bth, opcode=0x15)).sealed().to_bytes())
    bench.loop.run(until=1_000_000)
    bench.play("> NAK 0 code=1")


def test_permissions() -> None:
    domain = ProtectionDomain()
    region = domain.register(bytearray(16), remote_read=False, remote_atomic=False)
    assert domain.for_write(region.rkey, region.address, 16) is not None
    assert domain.for_read(region.rkey, region.address, 16) is None
    assert domain.for_atomic(region.rkey, region.address) is None
    other = domain.register(bytearray(16), remote_write=False)
    assert domain.for_write(other.rkey, other.address, 16) is None
    assert domain.for_read(other.rkey, other.address + 8, 8) is not None
    assert domain.for_read(other.rkey, other.address + 8, 9) is None


def test_responses_that_wait_are_state() -> None:
    bench = Bench()
    bench.nic.receive(bench.frame(["READ_REQUEST", "0", "dma=24"]).to_bytes())
    parts = {**bench.nic.parts(), "loop": bench.loop, "world": bench.hosts.state()}
    before = freeze(parts)
    bench.loop.run(until=bench.loop.now + 1_000_000)
    assert len(bench.frames) == 3
    assert freeze(parts) != before
    restore(parts, before)
    bench.hosts.restored()
    bench.frames.clear()
    bench.loop.run(until=bench.loop.now + 1_000_000)
    assert len(bench.frames) == 3


@pytest.mark.parametrize("recovery", [Recovery.GO_BACK_N, Recovery.SELECTIVE_REPEAT])
def test_what_a_read_lacks_is_state(recovery: Recovery) -> None:
    """Of three responses one is lost: the rest is requested again, and comes, wherever the run goes on from."""
    bench = Bench(QpConfig(mtu=MTU, initial_psn=FIRST_PSN, max_outstanding=4, recovery=recovery, timeout_ps=100 * US))
    bench.play("read 24\n> READ_REQUEST 0 dma=24 ack\n< READ_RESPONSE_FIRST 0\n")
    bench.nic.receive(bench.frame(["READ_RESPONSE_LAST", "2"]).to_bytes())
    parts = {**bench.nic.parts(), "loop": bench.loop, "world": bench.hosts.state()}
    before = freeze(parts)
    for _ in range(2):
        bench.play(
            "wait 1us\n> READ_REQUEST 1 dma=16 va=8 ack\nwait 101us\n> READ_REQUEST 1 dma=16 va=8 ack\n"
            "< READ_RESPONSE_FIRST 1\n< READ_RESPONSE_LAST 2\ndone send 0\n> nothing"
        )
        restore(parts, before)
        bench.hosts.restored()


@pytest.mark.parametrize("ip", ["10.0.0.1", "fd00::1"])
@pytest.mark.parametrize("resumption", list(Resumption))
@pytest.mark.parametrize("recovery", [Recovery.GO_BACK_N, Recovery.SELECTIVE_REPEAT])
def test_a_lossy_network(recovery: Recovery, resumption: Resumption, ip: str, seed: int) -> None:
    """READs bring what is there, and each of many additions is made once, whatever is lost, repeated or overtaken."""
    chance = random.Random(seed)
    fabric = Fabric(2, Trouble(loss=0.05, duplicate=0.05, corrupt=0.02), seed, ip_from(ip))
    config = QpConfig(mtu=256, timeout_ps=30 * US, retry_count=None, recovery=recovery, resumption=resumption)
    near, far = fabric.nics
    done: list[Completion] = []
    pair = near.create_pair(5, Peer(far.mac, far.ip, 6), config, done.append)
    far.create_pair(6, Peer(near.mac, near.ip, 5), config, lambda _: None)
    source = np.random.default_rng(seed).integers(0, 256, 1 << 14, np.uint8)
    held = far.domain.register(bytearray(source.tobytes()))
    counter = far.domain.register(bytearray(8))
    asked: list[tuple[int, memoryview]] = []
    total, sums = 0, []
    for number in range(60):
        if number % 3:
            start, length = chance.randrange(8192), chance.randrange(1, 4096)
            room = memoryview(bytearray(length))
            asked.append((start, room))
            pair.post_send(SendWr(number, room, None, held.rkey, held.address + start, False, Operation.READ))
        else:
            before = memoryview(bytearray(8))
            sums.append((total, before))
            value = chance.randrange(1 << 40)
            total += value
            place = counter.address
            pair.post_send(SendWr(number, before, None, counter.rkey, place, False, Operation.FETCH_ADD, value))
    fabric.loop.run(until=100_000 * US)
    assert [(each.wr_id, each.status) for each in done] == [(number, Status.SUCCESS) for number in range(60)]
    assert all(room == source[start : start + len(room)].tobytes() for start, room in asked)
    assert [int.from_bytes(before, "little") for _, before in sums] == [value for value, _ in sums]
    assert int.from_bytes(counter.buffer, "little") == total
