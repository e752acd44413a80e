from __future__ import annotations

import pytest

from p4gen.host.compiled.rates import Rate
from p4gen.host.transport.clock import SECOND, US
from p4gen.host.transport.dcqcn import DcqcnConfig
from p4gen.host.transport.verbs import QpConfig
from p4gen.rocev2.headers import IPv4
from p4gen.rocev2.packet import RocePacket

from .bench import FIRST_PSN, MTU, Bench

CONFIG = DcqcnConfig()


def test_nothing_is_limited_before_the_first_cnp() -> None:
    assert Rate(CONFIG).pace(0, 1000) == 0


def test_the_first_cnp_halves_the_rate() -> None:
    point = Rate(CONFIG)
    point.on_cnp(0)
    assert point.rate == pytest.approx(50e9)
    assert point.pace(0, 1000) == pytest.approx(8000 * SECOND / 50e9, rel=1e-3)


def test_fast_recovery_closes_half_of_the_gap_each_time() -> None:
    point = Rate(CONFIG)
    point.on_cnp(0)
    point.pace(CONFIG.increase_timer, 0)
    assert point.rate == pytest.approx(75e9)
    point.pace(2 * CONFIG.increase_timer, 0)
    assert point.rate == pytest.approx(87.5e9)


def test_alpha_decays_while_no_cnp_comes() -> None:
    point = Rate(CONFIG)
    point.on_cnp(0)
    before = point.alpha
    point.pace(10 * CONFIG.alpha_timer, 0)
    assert point.alpha == pytest.approx(before * (1 - CONFIG.gain) ** 10)


def test_bytes_make_the_rate_grow_too() -> None:
    point = Rate(CONFIG)
    point.on_cnp(0)
    point.pace(1, CONFIG.increase_bytes)
    assert point.rate == pytest.approx(75e9)


def test_the_rate_never_falls_below_the_least() -> None:
    point = Rate(CONFIG)
    for i in range(100):
        point.on_cnp(i)
    assert point.rate == CONFIG.min_rate


def test_in_the_end_nothing_is_limited() -> None:
    point = Rate(CONFIG)
    point.on_cnp(0)
    assert point.pace(SECOND, 1000) == 0


def bench(dcqcn: DcqcnConfig) -> Bench:
    return Bench(QpConfig(mtu=MTU, initial_psn=FIRST_PSN, timeout_ps=0, dcqcn=dcqcn))


def marked(at: Bench, words: str) -> bytes:
    packet = at.frame(words.split())
    ip = IPv4(packet.ip.src, packet.ip.dst, tos=3)
    return RocePacket(packet.eth, ip, packet.udp, packet.bth, payload=packet.payload).sealed().to_bytes()


def test_a_marked_packet_is_answered_by_one_cnp_an_interval() -> None:
    at = bench(CONFIG)
    at.play("recv 9")
    for psn in range(3):
        at.nic.receive(marked(at, f"ONLY {psn}"))
    at.loop.run()
    at.play("> CNP becn")
    at.play(f"wait {CONFIG.cnp_interval // US + 1}us")
    at.nic.receive(marked(at, "ONLY 3"))
    at.loop.run()
    at.play("> CNP becn")


def test_a_cnp_slows_the_requester_down() -> None:
    at = bench(DcqcnConfig(line_rate=100_000_000, min_rate=1_000_000))
    at.play("send 8\n> ONLY 0 ack\n< CNP\nsend 8\n> ONLY 1 ack\nsend 8\n> nothing\nwait 20us\n> ONLY 2 ack")
