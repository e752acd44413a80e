"""The native engine agrees with the interpreter on every output byte and every bit of state."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from p4gen.bench.workload import bursts
from p4gen.chips.tna.replication import MirrorSession, NodeReplica
from p4gen.model import Model, Trace
from p4gen.model.entries import MulticastGroup, Replica
from p4gen.p4.compile import compile_text
from p4gen.papers.epic.spec import EpicSpec
from p4gen.program.compilation import compile_spec

from ..jit.agree import Pair, everything
from ..jit.test_agreement import mutated
from .programs import machine
from .random_programs import TofinoProgram

PACKETS = 40


@pytest.fixture
def engine() -> None:
    """Both in each test."""


class Switches(Pair):
    """A program for Tofino on both engines."""

    def configure(self, rng: Random) -> None:
        """Also what only Tofino has."""
        super().configure(rng)
        nodes = tuple(NodeReplica(port, rng.randrange(4), rng.choice((None, 0, 1, 2))) for port in (1, 2, 5))
        self.each("set_multicast_group", MulticastGroup(2, (*nodes, Replica(68 | 128, 3))))
        self.each("set_clone_session", MirrorSession(1, (Replica(3, 1), Replica(68)), rng.choice((0, 10)),
                                                     rng.choice(("ingress", "egress", "both"))))  # fmt: skip
        parameters = [e.name for e in self.program.externs if e.extern == "RegisterParam"]
        metadata = rng.getrandbits(60)
        for model in self.both:
            tofino = machine(model)
            tofino.set_exclusion(0, [1, 2])
            tofino.set_loopback(5)
            tofino.set_port_metadata(1, metadata)
            for name in parameters:
                tofino.set_parameter(name, 77)

    def compare(self) -> None:
        """Also the pipes' own registers."""
        super().compare()
        for name in self.interp._state.registers:
            for pipe in range(4):
                wanted, found = (machine(m).registers(name, pipe) for m in self.both)
                assert found == wanted, f"register {name} of pipe {pipe}"


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 1 << 32))
@pytest.mark.long
def test_random_programs_agree(seed: int) -> None:
    """Registers with their actions, hashes, checksums, counters, meters, what is direct, requests, groups, pipes."""
    rng = Random(seed)
    made = TofinoProgram(rng)
    pair = Switches(compile_text(made.source(), "random.p4", ()).program, seed)
    pair.configure(rng)
    for i in range(PACKETS):
        pair.send(*made.packet())
        if i % 6 == 5 and any(not table.const_entries for table in pair.program.tables):
            pair.change(rng)
        if i == PACKETS // 2:
            _interrupt(pair, made)
    pair.compare()


def _interrupt(pair: Switches, made: TofinoProgram) -> None:
    """A packet that is traced, and states that are frozen and restored, here and in another switch, change nothing."""
    frozen, before = [model.freeze() for model in pair.both], pair.jit.snapshot()
    port, packet = made.packet()
    wanted = pair.send(port, packet)
    after = [everything(model) for model in pair.both]
    for model, state in zip(pair.both, frozen, strict=True):
        model.restore(state)
        assert model.freeze() == state
    assert [model.process(port, packet, Trace()) for model in pair.both] == [wanted, wanted]
    assert [everything(model) for model in pair.both] == after
    pair.jit.restore_snapshot(before)
    other = Model(pair.program, clock=lambda: pair.now, engine="jit", cache="")
    other.restore(frozen[1])
    assert [model.process(port, packet) for model in (pair.jit, other)] == [wanted, wanted]
    for model, state in zip(pair.both, frozen, strict=True):
        model.restore(state)
    pair.send(port, packet)


@pytest.mark.parametrize(
    ("arch", "lanes", "icrc"), [("t2na", 8, "recompute"), ("t2na", 32, "set"), ("tna", 16, "ignore")]
)
def test_generated_programs_agree_on_mutated_traffic(arch: str, lanes: int, icrc: str) -> None:
    """RoCEv2 with bytes changed, cut short, repeated and out of order."""
    fields = {"arch": arch, "icrc": icrc, "lanes": lanes, "window": 2, "message": 2, "groups": 2, "fan_in": 4}
    spec = EpicSpec.model_validate(fields)
    rng = Random(5)
    work = bursts(spec, 96, 5)
    pair = Switches(compile_spec(spec).program)
    for model in pair.both:
        work.configure(model)
    for _ in range(300):
        port, packet = rng.choice(work.packets)
        pair.send(port, mutated(rng, packet))
    pair.compare()
