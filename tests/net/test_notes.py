"""What ladders say about NACKs at the switches that filter them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner

from p4gen.cli.app import cli
from p4gen.families import family_of
from p4gen.net.traffic.traffic import Pattern, Traffic, TrafficConfig
from p4gen.net.traffic.traffic_simulation import TrafficSimulation
from p4gen.net.views.ladder import Ladder
from p4gen.net.views.notes import PacketNotes, observe
from p4gen.net.world.faults import Faults, Impairment
from p4gen.papers.themis.spec import Blocked, ThemisSpec
from p4gen.rocev2.headers import AETH, BTH, UDP, Ethernet, IPv4
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket
from p4gen.switch.drops import dropped
from p4gen.vocabulary.topology import load_topology

TOPOLOGY = load_topology("leaf-spine")
SPEC = ThemisSpec(connections=16, queue=16, queue_banks=4)
CONFIG = TrafficConfig(TOPOLOGY, SPEC, (Traffic(Pattern.FLOW, ("h0", "h2"), 100_000),), seed=7)
NAK = 0x60


class Leaf:
    """The switch of a flow's destination, and packets of the flow as it gets them."""

    def __init__(self, spec: ThemisSpec) -> None:
        self.simulation = TrafficSimulation(replace(CONFIG, program=spec))
        self.spec = spec
        self.leaf = self.simulation.network.switches["leaf1"]
        (track,) = self.simulation.tracks
        self.source, self.destination = track.source, track.destination
        self.before: Counter[str] = Counter()

    def request(self, psn: int) -> tuple[str, ...]:
        """What is said about a request from a spine."""
        bth = BTH(Opcode.SEND_MIDDLE, self.destination.number, psn)
        return self._at("spine0", "h0", "h2", UDP(50000), bth)

    def nack(self, psn: int) -> tuple[str, ...]:
        """What is said about the destination's NACK."""
        bth = BTH(Opcode.ACKNOWLEDGE, self.source.number, psn)
        return self._at("h2", "h2", "h0", UDP(self.destination.peer.udp_src_port), bth, AETH(NAK, 5))

    def _at(
        self, neighbour: str, source: str, destination: str, udp: UDP, bth: BTH, aeth: AETH | None = None
    ) -> tuple[str, ...]:
        nics = self.simulation.network.nics
        ethernet = Ethernet(self.simulation.placement.mac["leaf1"], nics[source].mac)
        packet = RocePacket(ethernet, IPv4(nics[source].ip, nics[destination].ip), udp, bth)
        packet = replace(packet, aeth=aeth) if aeth is not None else replace(packet, payload=b"data")
        frame = packet.sealed().to_bytes()
        links = [link.other("leaf1") for link in TOPOLOGY.ports["leaf1"]]
        outputs = [out for _, out in self.leaf.process(links.index(neighbour), frame)]
        now = dropped(self.spec, self.leaf.counters)
        reasons, self.before = now - self.before, now
        return family_of(self.spec).facet(PacketNotes).notes(self.spec, frame, outputs, reasons)


def test_nacks_that_are_blocked_passed_and_compensated() -> None:
    leaf = Leaf(SPEC)
    assert [leaf.request(psn) for psn in (0, 1, 3, 2)] == [()] * 4
    assert leaf.nack(2) == ("NACK 2 blocked",)  # it came late
    assert leaf.request(5) == ()
    assert leaf.nack(4) == ("NACK 4 blocked",)  # it may be under way, over the other path
    assert leaf.request(6) == ("NACK 4 compensated",)  # of its path
    assert leaf.nack(4) == ()


def test_a_nack_that_becomes_an_ack() -> None:
    leaf = Leaf(SPEC.model_copy(update={"blocked": Blocked.ACK}))
    assert [leaf.request(psn) for psn in (0, 1, 3, 2)] == [()] * 4
    assert leaf.nack(2) == ("NACK 2 blocked, ACK sent",)
    assert leaf.nack(7) == ()


def test_every_blocked_nack_of_a_run_is_noted() -> None:
    faults = Faults(impairments=(Impairment("leaf0-spine1", reorder=0.1, jitter=3_000_000),))
    simulation = TrafficSimulation(replace(CONFIG, faults=faults))
    ladder = Ladder(["h0", "h2", *TOPOLOGY.switches], simulation.network.kinds, limit=1 << 20)
    simulation.network.watch(ladder)
    notes: list[tuple[str, int, str]] = []
    observe(simulation.network, simulation.specs, lambda *note: notes.append(note), lambda: True)
    assert simulation.run().ok
    counts = dropped(SPEC, simulation.network.switches["leaf1"].counters)
    blocked = [note for note in notes if note[2].endswith(" blocked")]
    assert len(blocked) == counts["BlockedNack.blocked"] > 0
    assert {node for node, _, _ in blocked} == {"leaf1"}
    for note in notes:
        ladder.note(*note)
    assert ladder.svg().count(" blocked</text>") == len(blocked)


def test_a_ladder_of_traffic(tmp_path: Path) -> None:
    file = tmp_path / "flow.svg"
    arguments = ["sim", "traffic", "leaf-spine", "--mode", "themis", "--pattern", "flow", "--hosts", "h0,h2"]
    faults = ["--reorder", "20%@leaf0-spine1", "--seed", "5", "--size", "60K", "--ladder", str(file)]
    done = CliRunner().invoke(cli, [*arguments, *faults], standalone_mode=False)
    assert done.exit_code == 0, done.output
    drawing = file.read_text()
    for text in (">h0</text>", ">leaf1</text>", ">MIDDLE ", " blocked</text>"):
        assert text in drawing, text
    assert ">h3</text>" not in drawing
