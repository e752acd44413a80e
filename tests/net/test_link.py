from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4gen.errors import InputError
from p4gen.host.compiled.hosts import CompiledHosts
from p4gen.host.transport.verbs import Peer
from p4gen.host.transport.wire import Writer
from p4gen.net.collectives.kinds import Kinds
from p4gen.net.world.faults import DirectionFaults, Impairment, Outage, Script, ScriptState, parse_outage, parse_place
from p4gen.net.world.link import ANSWERS, Direction, LinkTraits
from p4gen.net.world.watching import Passage
from p4gen.rocev2.packet import parse, problems
from p4gen.vocabulary.topology import Ecn

HOST, TREE = 0x0A000001, 0x0AFF0001
KINDS = Kinds({HOST: 0}, {TREE: 0})
UP = Writer(1, HOST, Peer(2, TREE, 0x100), ecn=True)


def test_events_come_in_order_of_time_then_of_request() -> None:
    loop = CompiledHosts(64, 0).loop
    seen: list[str] = []
    for time, name in ((5, "c"), (3, "a"), (5, "d"), (3, "b")):
        loop.at(time, seen.append, name)
    loop.run(until=4)
    assert (seen, loop.now) == (["a", "b"], 4)
    loop.run()
    assert (seen, loop.now, loop.idle) == (["a", "b", "c", "d"], 5, True)


def direction(faults: DirectionFaults | None = None, **traits: object) -> tuple[Direction, list[tuple[int, bytes]]]:
    given_traits = {"bandwidth": 100_000_000_000, "delay": 1_000_000, "queue": 10_000, "ecn": None} | traits
    arrived: list[tuple[int, bytes]] = []
    hosts = CompiledHosts(2048, 1, directions=1)
    found = Direction(hosts.frames, 0, "a", "b", LinkTraits(**given_traits), faults, "seed")  # type: ignore[arg-type]
    hosts.serve([found], ANSWERS)

    def watch(passage: Passage) -> None:
        if passage.arrived is not None:
            arrived.append((passage.arrived, passage.frame))

    found.watcher = watch
    found.prepare()
    return found, arrived


def test_a_frame_takes_its_bytes_the_overhead_and_the_delay() -> None:
    line, arrived = direction()
    assert line.transmit(bytes(100), 0) == 124 * 80
    assert line.transmit(bytes(10), 0) == 124 * 80 + 84 * 80  # padded to the shortest frame
    assert [time for time, _ in arrived] == [124 * 80 + 1_000_000, 208 * 80 + 1_000_000]
    assert line.busy == 208 * 80


def test_a_full_queue_drops_the_last() -> None:
    line, arrived = direction(queue=1000)
    lost: list[Passage] = []
    line.on_drop = lost.append
    for _ in range(12):
        line.transmit(bytes(100), 0)
    # One in transmission and eight waiting come to more than 1,000 bytes.
    assert len(arrived) == 9
    assert {p.reason for p in lost} == {"queue_full"}


def test_a_long_queue_marks_senders_that_understand() -> None:
    line, arrived = direction(queue=1 << 20, ecn=Ecn(low=500, high=1000))
    frames = [UP.frame(4, psn, body=bytes(64)) for psn in range(40)]
    for frame in frames:
        line.transmit(frame, 0)
    marked = [frame for _, frame in arrived if parse(frame).ip.tos == 3]
    assert line.marked == len(marked) > 20
    assert all(problems(frame) == [] for frame in marked)
    assert parse(arrived[0][1]).ip.tos == 2


def faults(
    *impairments: Impairment, outages: tuple[Outage, ...] = (), scripts: tuple[str, ...] = (), seed: int = 1
) -> DirectionFaults:
    states = [ScriptState(Script.parse(text)) for text in scripts]
    return DirectionFaults(random.Random(seed), impairments, outages, states, KINDS)


@pytest.mark.parametrize("burst", [1.0, 4.0])
def test_loss_is_as_frequent_and_as_long_as_asked_for(burst: float) -> None:
    chance = faults(Impairment(loss=0.1, burst=burst))
    lost = [not chance.fate(b"x" * 60, 0).copies for _ in range(40_000)]
    assert sum(lost) / len(lost) == pytest.approx(0.1, rel=0.1)
    runs = sum(now and not before for before, now in zip([False, *lost], lost, strict=False))
    assert sum(lost) / runs == pytest.approx(burst if burst > 1 else 1 / 0.9, rel=0.1)


@given(st.integers(0, 2**32), st.binary(min_size=60, max_size=100))
def test_corruption_flips_one_to_three_bits(seed: int, frame: bytes) -> None:
    ((_, spoilt),) = faults(Impairment(corrupt=1.0), seed=seed).fate(frame, 0).copies
    flipped = sum((a ^ b).bit_count() for a, b in zip(frame, spoilt, strict=True))
    assert flipped <= 3


def test_duplicates_and_late_ones() -> None:
    chance = faults(Impairment(duplicate=1.0, reorder=1.0, jitter=1000))
    (first, _), (second, _) = chance.fate(b"x" * 60, 0).copies
    assert 0 < first <= second <= 2000


def test_an_outage_has_a_beginning_and_an_end() -> None:
    down = faults(outages=(parse_outage("h0-s0@10us-60us"),))
    assert [down.fate(b"", us * 1_000_000).reason for us in (9, 10, 59, 60)] == ["", "link_down", "link_down", ""]


def test_scripts_count_their_kind_only() -> None:
    script = faults(scripts=("drop the 2nd UP_DATA of rank 0",))
    frames = [UP.frame(0x11, 0, body=bytes(4)), UP.frame(5, 0, body=bytes(4)), *(UP.frame(4, p) for p in range(3))]
    assert [bool(script.fate(frame, 0).copies) for frame in frames] == [True, True, True, False, True]


@pytest.mark.parametrize(
    ("text", "first", "last", "rank"),
    [
        ("drop the 3rd UP_DATA of rank 2", 3, 3, 2),
        ("drop 2-5 down_ack to rank 0", 2, 5, 0),
        ("drop every UP_*", 1, None, None),
    ],
)
def test_scripts_are_read(text: str, first: int, last: int | None, rank: int | None) -> None:
    script = Script.parse(text)
    assert (script.first, script.last, script.rank) == (first, last, rank)


@pytest.mark.parametrize("text", ["lose 3 UP_DATA", "drop 3 DATA", "drop 0 UP_DATA", "drop 5-2 UP_DATA", ""])
def test_scripts_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="script"):
        Script.parse(text)


def test_places_and_wrong_outages() -> None:
    assert parse_place("5%@h0>s0") == ("5%", "h0>s0")
    assert parse_place("5%") == ("5%", "")
    for text in ("h0-s0", "h0-s0@5us", "h0@9us-3us", "@1us-2us", "h0@1-2"):
        with pytest.raises(InputError, match="outage"):
            parse_outage(text)
    with pytest.raises(InputError, match="share"):
        Impairment(loss=1.5)


def test_kinds() -> None:
    down = Writer(2, TREE, Peer(1, HOST, 0x200))
    cases = {
        "UP_DATA": UP.frame(0, 7),
        "UP_CONTROL": UP.frame(5, 7, body=bytes(4)),
        "UP_ACK": UP.frame(0x11, 7, body=b"\x1f\0\0\0"),
        "UP_NAK": UP.frame(0x11, 7, body=b"\x60\0\0\0"),
        "UP_RNR": UP.frame(0x11, 7, body=b"\x21\0\0\0"),
        "UP_CNP": UP.cnp(),
        "DOWN_DATA": down.frame(4, 7),
    }
    for kind, frame in cases.items():
        label = KINDS.of(frame)
        assert label is not None
        assert (label.kind, label.rank) == (kind, 0)
    assert KINDS.of(b"short") is None
    assert KINDS.of(Writer(2, 5, Peer(1, 6, 1)).frame(4, 7)) is None
