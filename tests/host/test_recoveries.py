"""The NICs of the packet-spraying studies, exchange by exchange: NIC-SR as Themis §2.2 describes it, and the oracle."""

from __future__ import annotations

import random

import pytest

from p4gen.host.transport.clock import US
from p4gen.host.transport.verbs import QpConfig, Recovery

from .bench import FIRST_PSN, MTU, Bench


def bench(recovery: Recovery) -> Bench:
    return Bench(QpConfig(mtu=MTU, initial_psn=FIRST_PSN, recovery=recovery, max_outstanding=64, timeout_ps=0))


def arrivals(at: Bench, psns: list[int]) -> list[tuple[str, int]]:
    """What a receiver answers to one-packet messages in this order: ACKs and NAKs with their relative PSNs."""
    at.play(f"recv {len(psns) + 1}")
    for psn in psns:
        at.nic.receive(at.frame(f"ONLY {psn} ack".split()).to_bytes())
        at.loop.run(until=at.loop.now + US)
    found = [at._text(frame).split() for frame in at.frames]
    at.frames.clear()
    return [(words[0], int(words[1])) for words in found]


def nic_sr(psns: list[int]) -> list[int]:
    """The ePSNs that NIC-SR sends NACKs for, by the four rules of §2.2 and nothing else."""
    expected, bitmap, asked = 0, set(), -1
    naks = []
    for psn in psns:
        if psn == expected:
            bitmap.add(psn)
            while expected in bitmap:
                expected += 1
        elif psn > expected:
            bitmap.add(psn)
            if asked != expected:
                asked = expected
                naks.append(expected)
    return naks


@pytest.mark.parametrize("seed", range(8))
def test_nic_sr_sends_the_naks_of_section_2_2(seed: int) -> None:
    chance = random.Random(seed)
    psns = sorted(range(40), key=lambda psn: psn + chance.uniform(0, 6))
    answers = arrivals(bench(Recovery.SELECTIVE_REPEAT), psns)
    assert [psn for name, psn in answers if name == "NAK"] == nic_sr(psns)
    assert nic_sr(psns)


def test_nic_sr_resends_what_a_nak_names_and_nothing_else() -> None:
    at = bench(Recovery.SELECTIVE_REPEAT)
    at.play("send 32\n> FIRST 0\n> MIDDLE 1\n> MIDDLE 2\n> LAST 3 ack\n< NAK 1\n> MIDDLE 1 ack\n< ACK 3\ndone send 0")


def test_go_back_n_resends_everything_from_there_on() -> None:
    at = bench(Recovery.GO_BACK_N)
    at.play("""send 32\n> FIRST 0\n> MIDDLE 1\n> MIDDLE 2\n> LAST 3 ack\n< NAK 1
        > MIDDLE 1 ack\n> MIDDLE 2 ack\n> LAST 3 ack\n< ACK 3\ndone send 0""")


def test_the_oracles_receiver_never_asks() -> None:
    psns = [3, 1, 2, 5, 0, 4]
    assert arrivals(bench(Recovery.ORACLE), psns) == [("ACK", 3), ("ACK", 5)]


def test_the_oracles_sender_resends_what_was_dropped() -> None:
    at = bench(Recovery.ORACLE)
    at._step(["send", "32"])
    second = at.frames[1].to_bytes()
    at.play("> FIRST 0\n> MIDDLE 1\n> MIDDLE 2\n> LAST 3 ack")
    at.nic.on_loss(second)
    at.nic.on_loss(second)  # it is sent again once, while it waits
    at.play("wait 1us\n> MIDDLE 1 ack\n< ACK 3\ndone send 0")
    at.nic.on_loss(second)  # acknowledged meanwhile
    at.play("wait 1us\n> nothing")


def test_the_oracles_answers_are_given_again() -> None:
    at = bench(Recovery.ORACLE)
    at.play("recv 1")
    at._step(["<", "ONLY", "0", "ack"])
    answer = at.frames[0].to_bytes()
    at.play("> ACK 0")
    at.nic.on_loss(answer)
    at.play("wait 1us\n> ACK 0")


def test_other_nics_are_not_told() -> None:
    at = bench(Recovery.SELECTIVE_REPEAT)
    at._step(["send", "8"])
    frame = at.frames[0].to_bytes()
    at.play("> ONLY 0 ack")
    at.nic.on_loss(frame)
    at.play("wait 1us\n> nothing")
