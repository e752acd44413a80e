"""Ticks: one for each edge in each interval, as the program wants them; and they end when nothing comes of them."""

from __future__ import annotations

from p4gen.groups.group import Edge, Endpoint, PlacedEdge
from p4gen.groups.ticks import tick
from p4gen.host.compiled.hosts import CompiledHosts
from p4gen.host.transport.clock import US
from p4gen.net.world.nodes import SwitchNode
from p4gen.net.world.ticks import INTERVAL, Ticker
from p4gen.rocev2 import icrc

NEAR, FAR = Endpoint(0x02_00_00_00_00_01, 0x0AFF0001, 0x100), Endpoint(0x02_00_00_00_00_02, 0x0A000001, 0x200)
PLACED = [PlacedEdge("s0", 3, 0, Edge(1, 0, NEAR, FAR)), PlacedEdge("s0", 3, 1, Edge(2, 0, NEAR, FAR))]
AGENT = 64


class Silent(SwitchNode):
    """A switch of which nothing ever comes."""

    def __init__(self) -> None:
        self.ticks: list[tuple[int, bytes]] = []

    def port(self, number: int):  # type: ignore[no-untyped-def]
        assert number == AGENT
        return lambda arrival, frame: self.ticks.append((arrival, frame))


def test_a_tick_comes_from_the_edges_far_end_and_names_the_pipeline() -> None:
    frame = tick(PLACED[0], 20e-6)
    assert icrc.check(frame)
    assert (frame[26:30], frame[30:34]) == (FAR.ip.to_bytes(4), NEAR.ip.to_bytes(4))
    assert (frame[42], frame[47:50]) == (0xC0, NEAR.qp.to_bytes(3))
    assert frame[54:58] == b"\3\0\0\2", "the pipeline, and the time in units of 10 us"


def test_edges_that_were_used_are_ticked_until_nothing_comes_of_it() -> None:
    loop, node = CompiledHosts(64, 0).loop, Silent()
    ticker = Ticker({"s0": node}, PLACED, loop, lambda _, context: context == 1, lambda: False, lambda: 0, US, AGENT)
    loop.at(10 * INTERVAL, lambda _: None)
    loop.run()
    assert loop.idle
    assert len(node.ticks) == ticker.rounds
    # Ten rounds in which something is to come, and a few to be sure.
    assert 10 <= ticker.rounds <= 16
    assert [at // INTERVAL for at, _ in node.ticks] == list(range(1, ticker.rounds + 1))
