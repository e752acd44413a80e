"""Recirculation takes the time that a topology says, and what arrives meanwhile is handled in between."""

from __future__ import annotations

from typing import Any

import pytest

from p4gen.errors import InputError
from p4gen.host.compiled.hosts import CompiledHosts
from p4gen.model import EngineName, Model
from p4gen.model.passes import HELD
from p4gen.model.recirculation import GO, HOLD, ROUND, SETTLE, Recirculation
from p4gen.net.collectives.simulation import SimConfig, Simulation
from p4gen.net.world import link, nodes
from p4gen.net.world.link import Direction, LinkTraits
from p4gen.net.world.nodes import SwitchNode
from p4gen.net.world.watching import Passage
from p4gen.p4.compile import compile_text
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.vocabulary.message import Collective

from .runs import star, tiny, trouble

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header task_t { bit<8> left; bit<8> kept; bit<8> number; bit<8> port; }
struct headers_t { task_t task; }
struct meta_t { @field_list(1) bit<8> kept; @field_list(1) bit<16> sum; bit<8> lost; }
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { packet.extract(hdr.task); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    register<bit<8>>(1) passes;
    apply {
        passes.read(hdr.task.number, 0);
        passes.write(0, hdr.task.number + 1);
        meta.kept = meta.kept + 1 + meta.lost;
        meta.sum = meta.sum + (bit<16>)hdr.task.left;
        meta.lost = 100;
        hdr.task.port = (bit<8>)std.ingress_port;
        std.egress_spec = 2;
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        hdr.task.kept = meta.kept + (bit<8>)meta.sum;
        if (hdr.task.left != 0) {
            hdr.task.left = hdr.task.left - 1;
            recirculate_preserving_field_list(1);
        }
    }
}
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.task); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
LATENCY, DELAY = 400, 1000
ENGINES: tuple[EngineName, ...] = ("interp", "jit")


def arriving(engine: EngineName, delay: int, *packets: tuple[int, int]) -> list[tuple[int, list[int]]]:
    """When what leaves, as {left, kept, number of its last pass, port}: packets arrive at port 1, each at a time, and
    have so many recirculations before them."""
    hosts = CompiledHosts(1024, 1, directions=1, switches=1, outputs=3)
    hosts.add(1, 1)
    model = Model(compile_text(PROGRAM, "round.p4").program, engine=engine)
    node = SwitchNode(hosts.frames, 0, model, LATENCY, delay)
    line = Direction(hosts.frames, 0, "s0", "h0", LinkTraits(10**18, 0, 1000), None, "seed")
    node.outputs[2] = line
    hosts.world.switches["ports"], hosts.world.outputs["value"][2] = 3, line.number
    hosts.serve([node], nodes.ANSWERS)
    hosts.serve([line], link.ANSWERS)
    sent: list[Passage] = []
    line.watcher = sent.append
    node.prepare()
    line.prepare()
    deliver = node.port(1)
    for at, left in packets:
        deliver(at, bytes([left, 0, 0, 0]) + b"rest")
    hosts.loop.run()
    assert node.received == len(packets)
    assert all(passage.frame.endswith(b"rest") for passage in sent)
    return [(passage.sent, list(passage.frame[:4])) for passage in sent]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_packet_comes_back_after_the_delay(engine: EngineName) -> None:
    """Kept metadata comes back with it: 4 passes, and the sum 3 + 2 + 1 of what was left in each."""
    assert arriving(engine, DELAY, (50, 3)) == [(50 + 3 * DELAY + LATENCY, [0, 4 + 6, 3, 0])]
    assert arriving(engine, 0, (50, 3)) == [(50 + LATENCY, [0, 4 + 6, 3, 0])]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("delay", [150, LATENCY, DELAY])
def test_what_arrives_meanwhile_goes_between(engine: EngineName, delay: int) -> None:
    """The passes of two packets in the order of their times; without a delay those of one come first."""
    second = delay * 3 // 2
    found = arriving(engine, delay, (0, 2), (second, 1))
    assert [(at, packet[2]) for at, packet in found] == [(2 * delay + LATENCY, 3), (second + delay + LATENCY, 4)]
    assert [packet[2] for _, packet in arriving(engine, 0, (0, 2), (second, 1))] == [2, 4]


@pytest.mark.parametrize("engine", ENGINES)
def test_held_packets_leave_by_a_port_of_their_own(engine: EngineName) -> None:
    model = Model(compile_text(PROGRAM, "round.p4").program, engine=engine)
    model.hold_recirculated()
    ((port, held),) = model.process(1, bytes([1, 0, 0, 0]))
    assert port == HELD
    assert model.process(HELD, held) == [(2, bytes([0, 3, 1, 0]))]


@pytest.mark.parametrize("engine", ENGINES)
def test_packets_wait_between_passes_on_request(engine: EngineName) -> None:
    """A packet that recirculates twice takes three passes, at once or one at a time."""
    model = Model(compile_text(PROGRAM, "round.p4").program, engine=engine)
    recirculation = Recirculation(model)

    def send() -> int:
        return len(recirculation.hold_back(model.process(1, bytes([2, 0, 0, 0]))))

    assert (send(), recirculation.answer(SETTLE)) == (1, ([], 3))
    assert recirculation.answer(HOLD) == ([], 0)
    assert (send(), send(), recirculation.answer(ROUND)) == (0, 0, ([], 1))
    assert send() == 0
    outputs, most = recirculation.answer(ROUND)
    assert ([port for port, _ in outputs], most) == ([2, 2], 1)
    assert [port for port, _ in recirculation.answer(GO)[0]] == [2]
    assert (send(), recirculation.answer(SETTLE)) == (1, ([], 3))


def config(delay: int, **fields: Any) -> SimConfig:
    topology = star(2).model_copy(update={"recirculation_delay": delay})
    defaults: dict[str, Any] = {"program": tiny(mode=Mode.I, message=4, slots=16), "size": 128, "engine": "jit"}
    return SimConfig(**({"topology": topology} | defaults | fields))


@pytest.mark.long
def test_a_cursor_sends_a_packet_a_recirculation() -> None:
    """A message of four packets leaves in four passes of a cursor, one recirculation each, as each is far longer than a
    packet on the link."""
    delay = 5_000_000
    without, result = (Simulation(config(each, ticks=False)).run() for each in (0, delay))
    assert without.ok and result.ok  # noqa: PT018 - the same of both
    assert 4 * delay <= result.duration - without.duration < 5 * delay


@pytest.mark.parametrize("collective", [Collective.ALLREDUCE, Collective.REDUCE_SCATTER])
def test_results_are_right_while_cursors_go_round(collective: Collective) -> None:
    """Messages become whole, packets are lost and ticks come while cursors are under way."""
    for mode in (Mode.I, Mode.III):
        program = tiny(mode=mode, message=4)
        done = Simulation(
            config(
                300_000, program=program, collective=collective, size=2048, faults=trouble(loss=0.05, duplicate=0.01)
            )
        ).run()
        assert done.ok, (mode, done.errors)


def test_models_that_cannot_wait_are_refused() -> None:
    program = EpicSpec(mode=Mode.III, arch="t2na", lanes=8, window=4, message=2, groups=4)
    with pytest.raises(InputError, match="recirculation_delay: packets of"):
        Simulation(config(1000, program=program, engine="interp"))
