"""What messages of RDMA CM amount to: complete handshakes, and messages that are lost, repeated, late, or forged."""

from __future__ import annotations

import random
from typing import Any

import pytest

from p4gen.manager.connections import conversations
from p4gen.manager.connections.conversations import (
    Begun,
    Conversation,
    Conversations,
    Ended,
    Ignored,
    Noted,
    Outcome,
    Party,
)
from p4gen.rocev2.cm import Datagram, Kind, Message, gid_of
from p4gen.rocev2.headers import ipv4

A, B, C = ipv4("10.0.0.1"), ipv4("10.0.0.3"), ipv4("10.0.0.5")
MADE = Conversation(Party(A, 7, 0x100), Party(B, 9, 0x200), 4096, 0x68)


def req(src: int = A, dst: int = B, **values: int) -> Datagram:
    given = {
        "local_id": 7,
        "local_qpn": 0x100,
        "path_mtu": 5,
        "traffic_class": 0x6A,
        "local_gid": gid_of(src),
        "remote_gid": gid_of(dst),
    }
    return Datagram(src, dst, Message.of(Kind.REQ, **given | values))


def rep(src: int = B, dst: int = A, **values: int) -> Datagram:
    return Datagram(src, dst, Message.of(Kind.REP, **{"local_id": 9, "remote_id": 7, "local_qpn": 0x200} | values))


def of(kind: Kind, src: int = A, dst: int = B, **values: int) -> Datagram:
    """A message with the numbers of both ends, and of a DREQ the receiver's QP."""
    local, remote, qp = (7, 9, 0x200) if src == A else (9, 7, 0x100)
    given = {"local_id": local, "remote_id": remote} | ({"remote_qpn": qp} if kind is Kind.DREQ else {})
    return Datagram(src, dst, Message.of(kind, **given | values))


RTU = of(Kind.RTU)


def heard(*messages: Datagram, of: Conversations | None = None, now: float = 0.0) -> list[Outcome]:
    ours = of or Conversations()
    return [ours.hear(message, now) for message in messages]


def kinds(outcomes: list[Outcome]) -> list[str]:
    return [outcome.kind if isinstance(outcome, Ignored) else type(outcome).__name__ for outcome in outcomes]


def test_a_handshake_makes_a_connection() -> None:
    assert heard(req(), rep(), RTU) == [Noted(), Noted(), Begun(MADE)]


@pytest.mark.parametrize(
    ("messages", "what"),
    [
        ((rep(), RTU), ["unknown", "unknown"]),
        ((rep(), req(), RTU), ["unknown", "Noted", "Begun"]),
        ((rep(), rep(), req(), RTU, rep()), ["unknown", "unknown", "Noted", "Begun", "repeated"]),
        ((rep(local_qpn=0x201), rep(), req(), req(), RTU), ["unknown", "unknown", "Noted", "repeated", "Begun"]),
        ((rep(remote_id=8), rep(src=C), req(), RTU), ["unknown", "unknown", "Noted", "Noted"]),
        ((rep(), of(Kind.REJ, B, A), req(), RTU), ["unknown", "unknown", "Noted", "Noted"]),
        ((req(), RTU), ["Noted", "Noted"]),
        ((req(), RTU, rep(), RTU), ["Noted", "Noted", "Begun", "repeated"]),
        ((req(), RTU, RTU, rep()), ["Noted", "Noted", "repeated", "Begun"]),
        ((req(), of(Kind.RTU, remote_id=8), rep(), RTU), ["Noted", "Noted", "Noted", "Begun"]),
        ((RTU, req(), rep()), ["unknown", "Noted", "Noted"]),
        ((req(), req(), rep(), rep(), RTU, RTU), ["Noted", "repeated", "Noted", "repeated", "Begun", "repeated"]),
        ((req(), rep(), RTU, req(), rep()), ["Noted", "Noted", "Begun", "repeated", "repeated"]),
        ((req(), of(Kind.MRA, B, A), rep(), RTU), ["Noted", "Noted", "Noted", "Begun"]),
        ((req(), rep(remote_id=8), RTU), ["Noted", "unknown", "Noted"]),
        ((req(), rep(src=C), RTU), ["Noted", "unknown", "Noted"]),
        ((req(), rep(), of(Kind.RTU, remote_id=8)), ["Noted", "Noted", "unknown"]),
        ((req(), rep(), of(Kind.RTU, src=C, local_id=7, remote_id=9)), ["Noted", "Noted", "unknown"]),
        ((req(), rep(local_qpn=1), RTU), ["Noted", "malformed", "Noted"]),
        ((req(transport=3), rep()), ["other transport", "unknown"]),
        ((req(local_qpn=0), rep()), ["malformed", "unknown"]),
        ((req(path_mtu=0), rep()), ["malformed", "unknown"]),
        ((req(path_mtu=6), rep()), ["malformed", "unknown"]),
        ((req(local_gid=gid_of(C)), rep()), ["contradictory", "unknown"]),
        ((req(remote_gid=gid_of(C)), rep()), ["contradictory", "unknown"]),
        ((req(local_gid=A << 96), rep()), ["contradictory", "unknown"]),
        ((req(), of(Kind.REJ, B, A, local_id=0), rep()), ["Noted", "Noted", "unknown"]),
        ((req(), rep(), of(Kind.REJ), RTU), ["Noted", "Noted", "Noted", "unknown"]),
        ((req(), rep(), of(Kind.REJ, B, A), RTU), ["Noted", "Noted", "Noted", "unknown"]),
        ((req(), rep(), of(Kind.REJ, B, A, local_id=8), RTU), ["Noted", "Noted", "unknown", "Begun"]),
        ((req(), rep(), of(Kind.DREQ, B, A), RTU), ["Noted", "Noted", "unknown", "unknown"]),
        ((of(Kind.DREQ), of(Kind.DREP), of(Kind.REJ)), ["unknown", "Noted", "unknown"]),
    ],
    ids=range(32),
)
def test_what_does_not_fit_changes_nothing(messages: tuple[Datagram, ...], what: list[str]) -> None:
    assert kinds(heard(*messages)) == what


@pytest.mark.parametrize(
    "last", [of(Kind.DREQ), of(Kind.DREQ, B, A), of(Kind.DREP), of(Kind.DREP, B, A), of(Kind.REJ, B, A)], ids=str
)
def test_either_end_ends_it_once(last: Datagram) -> None:
    *_, ended, again = heard(req(), rep(), RTU, last, last)
    assert ended == Ended(MADE)
    assert kinds([again])[0] == ("Noted" if last.message.kind is Kind.DREP else "unknown")


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (of(Kind.DREQ, remote_qpn=0x201), "contradictory"),
        (of(Kind.DREQ, local_id=8), "unknown"),
        (of(Kind.DREQ, remote_id=8), "unknown"),
        (of(Kind.DREQ, src=C, local_id=7, remote_id=9, remote_qpn=0x200), "unknown"),
        (of(Kind.REJ, remote_id=0), "unknown"),
    ],
    ids=str,
)
def test_a_connection_outlives_what_is_not_its_own(message: Datagram, kind: str) -> None:
    ours = Conversations()
    assert kinds(heard(req(), rep(), RTU, message, of=ours))[-1] == kind
    assert ours.hear(of(Kind.DREQ), 0) == Ended(MADE)


def test_a_qp_that_is_used_again_has_lost_its_former_connection() -> None:
    """Neither DREQ was seen, say because the host was restarted."""
    ours = Conversations([MADE])
    *_, begun = heard(
        req(dst=C, local_id=8), rep(src=C, remote_id=8), of(Kind.RTU, dst=C, local_id=8), of=ours
    )  # fmt: skip
    assert isinstance(begun, Begun)
    assert begun.stale == (MADE,)
    assert kinds(heard(of(Kind.DREQ), of=ours)) == ["unknown"]


def test_a_host_that_asks_again_with_another_qp_means_that_one() -> None:
    *_, begun = heard(req(local_qpn=0x99), req(), rep(), RTU)
    assert begun == Begun(MADE)


def test_connections_of_before_are_known() -> None:
    assert heard(of(Kind.DREQ, B, A), of=Conversations([MADE])) == [Ended(MADE)]


def test_a_handshake_that_is_not_completed_is_forgotten() -> None:
    ours = Conversations()
    ours.hear(req(), 0)
    assert kinds(heard(rep(), of=ours, now=conversations.LIFETIME)) == ["unknown"]
    ours.hear(req(), 1000)
    ours.hear(req(), 1100)
    assert kinds(heard(rep(), of=ours, now=1000 + conversations.LIFETIME)) == ["Noted"]


def test_of_many_open_handshakes_the_oldest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversations, "MOST_OPEN", 2)
    ours = Conversations()
    for now, number in enumerate((7, 8, 9)):
        ours.hear(req(local_id=number), now)
    assert kinds(heard(rep(remote_id=7), rep(remote_id=8), rep(remote_id=9), of=ours)) == ["unknown", "Noted", "Noted"]


def test_a_reply_waits_for_its_request_for_a_while() -> None:
    ours = Conversations()
    ours.hear(rep(), 0)
    assert kinds(heard(req(), RTU, of=ours, now=conversations.LIFETIME)) == ["Noted", "Noted"]
    ours = Conversations()
    ours.hear(rep(local_qpn=0x201), 0)
    ours.hear(rep(), 1)
    assert heard(req(), RTU, of=ours, now=conversations.LIFETIME) == [Noted(), Begun(MADE)]


def test_of_many_replies_without_a_request_the_oldest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversations, "MOST_OPEN", 2)
    ours = Conversations()
    heard(*(rep(remote_id=number) for number in (7, 8, 7, 9)), of=ours)
    requests = [req(local_id=number, local_qpn=0x100 + number) for number in (7, 9, 8)]
    ready = [of(Kind.RTU, local_id=number) for number in (7, 9, 8)]
    assert [kinds(heard(*pair, of=ours)) for pair in zip(requests, ready, strict=True)] == [
        ["Noted", "Begun"],
        ["Noted", "Begun"],
        ["Noted", "Noted"],
    ]


def test_messages_in_any_order_never_make_what_was_not_agreed(seed: int) -> None:
    rng = random.Random(seed)
    hosts = (A, B, C)
    for _ in range(300):
        ours, live, said = Conversations(), set[Any](), set[tuple[str, int, int, int, int]]()
        for now in range(60):
            src, dst = rng.sample(hosts, 2)
            local, remote, qp = rng.randrange(1, 3), rng.randrange(1, 3), rng.randrange(2, 4)
            kind = rng.choice((Kind.REQ, Kind.REP, Kind.RTU, Kind.REJ, Kind.DREQ, Kind.DREP))
            values = {"local_id": local, "remote_id": remote}
            match kind:
                case Kind.REQ:
                    sent = req(src, dst, local_id=local, local_qpn=qp)
                    said.add(("REQ", src, dst, local, qp))
                case Kind.REP:
                    sent = rep(src, dst, **values, local_qpn=qp)
                    said.add(("REP", src, dst, local, qp))
                case _:
                    said.add((kind.name, src, dst, local, remote))
                    sent = Datagram(
                        src, dst, Message.of(kind, **values | ({"remote_qpn": qp} if kind is Kind.DREQ else {}))
                    )
            match ours.hear(sent, now):
                case Begun(made, stale):
                    a, b = made.requester, made.responder
                    assert kind in (Kind.RTU, Kind.REP)
                    assert ("RTU", a.ip, b.ip, a.number, b.number) in said
                    assert ("REQ", a.ip, b.ip, a.number, a.qp) in said
                    assert ("REP", b.ip, a.ip, b.number, b.qp) in said
                    live = (live - set(stale)) | {made}
                case Ended(made):
                    live.remove(made)
        ends = [(party.ip, party.qp) for made in live for party in (made.requester, made.responder)]
        assert len(ends) == len(set(ends)), "a QP is in one connection"
