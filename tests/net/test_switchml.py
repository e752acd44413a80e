"""Runs of SwitchML: every element beside NumPy's, whatever the links do but damage packets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from p4gen.errors import InputError
from p4gen.host.transport.dcqcn import DcqcnConfig
from p4gen.net.order import RunOrder
from p4gen.net.world.faults import Faults, Impairment, Outage
from p4gen.papers.switchml.frames import Update
from p4gen.papers.switchml.running import MlRun
from p4gen.papers.switchml.runs import FACET
from p4gen.papers.switchml.spec import SwitchmlSpec
from p4gen.rocev2.headers import Ethernet, IPv4
from p4gen.vocabulary.topology import load_topology

DISORDER = Faults((Impairment(loss=0.01, reorder=0.2, duplicate=0.2),))
TROUBLES = {
    "none": Faults(),
    "loss": Faults((Impairment(loss=0.1),)),
    "bursts": Faults((Impairment(loss=0.05, burst=4),)),
    "disorder": DISORDER,
    "a link down": Faults(outages=(Outage("h0", 2_000_000, 22_000_000),)),
}


def order(topology: str = "star-4", spec: dict[str, Any] | None = None, **fields: Any) -> RunOrder[SwitchmlSpec]:
    """Three calls of 8 KiB with four slots."""
    program = SwitchmlSpec(**{"lanes": 32, "slots": 4, **(spec or {})})
    asked = RunOrder(load_topology(topology), program, FACET.collectives[0], 8192, repeat=3, engine="interp")
    return replace(asked, **fields)


@pytest.mark.parametrize(
    ("transport", "trouble"),
    [*(("udp", trouble) for trouble in TROUBLES), ("roce", "none"), ("roce", "disorder"), ("roce", "damage")],
)
def test_sums_are_right(transport: str, trouble: str, pytestconfig: pytest.Config) -> None:
    seed = pytestconfig.getoption("--seed")
    faults = (TROUBLES | {"damage": Faults((Impairment(loss=0.01, corrupt=0.05),))})[trouble]
    run = MlRun(order(spec={"transport": transport}, faults=faults, seed=seed))
    result = run.run()
    assert (result.stuck, result.errors) == ((), ()), seed
    assert result.sent - result.resent == 4 * 3 * 64
    assert run.arrived() == 4 * 3 * 64
    assert bool(result.resent) == bool(result.drops)


def test_vectors_shorter_than_the_pool_use_other_slots_in_turn(pytestconfig: pytest.Config) -> None:
    seed = pytestconfig.getoption("--seed")
    result = MlRun(order(size=384, repeat=9, faults=TROUBLES["loss"], seed=seed)).run()
    assert (result.stuck, result.errors) == ((), ()), seed


def test_workers_wait_longer_and_longer_for_one_that_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins after 64 timeouts: the others have sent again what is in their four slots after 1, 3, 7, ..., 63."""
    run = MlRun(order(repeat=1, timeout=10_000_000))
    late, loop = run.tasks[3], run.network.loop
    start = late.start
    monkeypatch.setattr(late, "start", lambda: loop.at(640_000_000, lambda _: start()))
    assert run.run().ok
    assert [task.worker.stats.resent for task in run.tasks] == [24, 24, 24, 0]


@pytest.mark.parametrize("arch", ["v1model", "tna", "t2na"])
def test_the_papers_program_adds_vectors_that_come_late(arch: str) -> None:
    """Links that change the order of packets are beyond what the paper assumes: comparing offsets mends that."""
    for how, right in (("carried", False), ("checked", True)):
        asked = order(spec={"slots": 2, "offsets": how, "arch": arch}, size=1 << 15, faults=DISORDER)
        assert all(MlRun(replace(asked, seed=seed)).run().ok for seed in (1, 2)) is right


def test_what_others_send_to_a_worker_is_no_sum() -> None:
    """An update that the switch has routed to a worker comes from another address than the switch's."""
    run = MlRun(order(repeat=1))
    (job, (receive,)), loop = (run.job, run.network.nics["h1"].datagrams), run.network.loop
    forged = Update(job.number, job.epoch, 0, 0, 0, bytes(128))
    seen: list[bool] = []

    def deliver(_: object) -> None:
        for data, source in ((forged.data, job.ip + 1), (forged.data[4:], job.ip)):
            frame = replace(forged, data=data).frame(Ethernet(2, job.mac), IPv4(source, job.workers[1].ip))
            seen.append(receive(frame))

    loop.at(1_000_000, deliver)
    assert run.run().ok
    assert seen == [False, True]
    assert run.tasks[1].worker.stats.strays == 1


def test_workers_take_what_is_written_for_them() -> None:
    """Of WRITEs only those of the switch, to a queue pair of its own and with its own key, are sums; a repeated one, or
    one of an earlier use, is none that it waits for."""
    run = MlRun(order(spec={"transport": "roce"}, repeat=1))
    (job, (receive,)), loop = (run.job, run.network.nics["h1"].datagrams), run.network.loop
    own, old = job.workers[1], Update(job.number, job.epoch, 0, 0, 1 << 20, bytes(128))
    good = old.write(Ethernet(own.mac, job.mac), IPv4(job.ip, own.ip), own.qp, 5, own.rkey)
    assert good.reth is not None
    wrong = (
        replace(good, ip=replace(good.ipv4, src=job.ip + 1)),
        replace(good, ip=replace(good.ipv4, dst=own.ip + 1)),
        replace(good, bth=replace(good.bth, dst_qp=own.qp - 1)),
        replace(good, bth=replace(good.bth, dst_qp=own.qp + job.slots)),
        replace(good, bth=replace(good.bth, opcode=0x0B)),
        replace(good, reth=replace(good.reth, rkey=own.rkey + (1 << 16))),
        replace(good, reth=replace(good.reth, address=0)),
        replace(good, reth=replace(good.reth, dma_length=64)),
    )
    frames = [packet.sealed().to_bytes() for packet in (*wrong, good)]
    frames += [frames[-1][:-1] + bytes([frames[-1][-1] ^ 1]), frames[-1][:60]]
    seen: list[bool] = []
    loop.at(1_000_000, lambda _: seen.extend(map(receive, frames)))
    assert run.run().ok
    assert seen == [False] * len(wrong) + [True, False, False]
    assert run.tasks[1].worker.stats.strays == 1


def test_a_run_that_cannot_end_says_what_workers_wait_for() -> None:
    result = MlRun(order(faults=Faults((Impairment("h0>s0", loss=1.0),)), timeout=20_000_000)).run()
    assert any("rank 3 waits for the sum of packet 0 in slot 0, version 0" in line for line in result.stuck)


@pytest.mark.parametrize(
    ("asked", "cause"),
    [
        (order("leaf-spine"), "SwitchML's jobs are around one"),
        (order(size=100), "it has to be a positive multiple of 128"),
        (order(faults=Faults((Impairment(corrupt=0.1),))), "no packets may be corrupted"),
        (order(dcqcn=DcqcnConfig()), "no queue pairs"),
        (order(spec={"fan_in": 3}), "4 edges; the program takes 1 to 3"),
    ],
)
def test_wrong_orders_are_refused(asked: RunOrder[SwitchmlSpec], cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        MlRun(asked)
