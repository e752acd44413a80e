"""Conversations: the connections that hosts begin and end by messages of RDMA CM (InfiniBand 12.6, 12.9).

A REQ, the REP to it and the RTU to that, each from the right host and with the numbers of the message before, make a
connection. A DREQ, a DREP or a REJ with the numbers of both ends ends it. Messages may be lost, repeated or late on the
way to this module, too: a message that does not fit is ignored, with the reason. Copies of the two hosts' messages come
from two switches, so a REP may come before its REQ, and an RTU before its REP: both wait for what they answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from p4gen.host.transport.nicinfo import QPNS
from p4gen.rocev2.cm import PATH_MTUS, RELIABLE, Datagram, Kind, Message, gid_of

LIFETIME: Final = 120.0
"""Seconds after which a handshake that has not been completed is forgotten: hosts have given up by then."""
MOST_OPEN: Final = 4096
"""Handshakes under way that are kept, and as many REPs without a REQ; the oldest is forgotten for a new one."""


@dataclass(frozen=True)
class Party:
    """An end of a connection: IP address, its number of the connection, its QP."""

    ip: int
    number: int
    qp: int


@dataclass(frozen=True)
class Conversation:
    """A connection that two hosts have agreed on, or are about to agree on."""

    requester: Party
    """The sender of the REQ. Either end may send requests to the other later."""
    responder: Party
    """Its number and QP are 0 as long as there is no REP."""
    mtu: int
    tos: int
    """DSCP of the connection's packets, as a byte with ECN 0."""


@dataclass(frozen=True)
class Begun:
    """A connection is ready to use; ``stale`` are connections whose QPs it has taken over."""

    conversation: Conversation
    stale: tuple[Conversation, ...] = ()


@dataclass(frozen=True)
class Ended:
    """A connection has ended, by either host."""

    conversation: Conversation


@dataclass(frozen=True)
class Ignored:
    """A message that changes nothing. ``kind`` is a word or two for counters; ``reason`` is the whole reason."""

    kind: str
    reason: str


@dataclass(frozen=True)
class Noted:
    """A message that continues a handshake."""


Outcome = Begun | Ended | Ignored | Noted
_Key = tuple[int, int, int]
"""The key of an open handshake: the requester's address and number, and the responder's address."""
_NOTED: Final = Noted()
_REPEATED: Final = Ignored("repeated", "it has been seen before")


@dataclass(frozen=True)
class _Handshake:
    """A connection that two hosts are about to agree on, and the time, in s, of its last message."""

    since: float
    asked: Conversation
    ready: int | None = None
    """The responder's number in an RTU that arrived before the REP: copies of messages may overtake each other."""


class Conversations:
    """All handshakes and connections. ``known`` are connections of an earlier run."""

    def __init__(self, known: Iterable[Conversation] = ()) -> None:
        self._open: dict[_Key, _Handshake] = {}
        self._early: dict[_Key, tuple[float, Datagram]] = {}
        """REPs that came before their REQs, with the time; the oldest first."""
        self._made: dict[tuple[int, int], Conversation] = {}
        """The connections, by (address, QP) of both ends."""
        for conversation in known:
            self._add(conversation)

    def hear(self, sent: Datagram, now: float) -> Outcome:
        """Take a message. ``now`` is a time in seconds, which never goes back."""
        for key in [key for key, handshake in self._open.items() if handshake.since + LIFETIME <= now]:
            del self._open[key]
        for key in [key for key, (since, _) in self._early.items() if since + LIFETIME <= now]:
            del self._early[key]
        message = sent.message
        match message.kind:
            case Kind.REQ:
                return self._on_request(sent, now)
            case Kind.REP:
                return self._on_reply(sent, now)
            case Kind.RTU:
                return self._on_ready(sent)
            case Kind.DREQ | Kind.DREP:
                return self._on_end(sent)
            case Kind.REJ:
                return self._on_reject(sent)
            case Kind.MRA:
                return _NOTED

    def forget(self, conversation: Conversation) -> None:
        """Forget a connection, so that no later message ends it."""
        for party in (conversation.requester, conversation.responder):
            if self._made.get((party.ip, party.qp)) == conversation:
                del self._made[party.ip, party.qp]

    def _on_request(self, sent: Datagram, now: float) -> Outcome:
        message = sent.message
        wrong = _wrong_request(sent)
        if wrong is not None:
            return wrong
        requester = Party(sent.src, message["local_id"], message["local_qpn"])
        made = self._made.get((requester.ip, requester.qp))
        if made is not None and (made.requester, made.responder.ip) == (requester, sent.dst):
            return _REPEATED
        asked = Conversation(
            requester, Party(sent.dst, 0, 0), PATH_MTUS[message["path_mtu"]], message["traffic_class"] & 0xFC
        )
        key = (sent.src, requester.number, sent.dst)
        before = self._open.get(key)
        if before is not None and replace(before.asked, responder=asked.responder) == asked:
            self._open[key] = replace(before, since=now)
            return _REPEATED
        if before is None and len(self._open) >= MOST_OPEN:
            del self._open[min(self._open, key=lambda other: self._open[other].since)]
        self._open[key] = _Handshake(now, asked)
        if key in self._early:
            self._on_reply(self._early.pop(key)[1], now)
        return _NOTED

    def _on_reply(self, sent: Datagram, now: float) -> Outcome:
        message = sent.message
        if message["local_qpn"] not in QPNS:
            return Ignored("malformed", f"REP: QP {message['local_qpn']} is not an ordinary one")
        responder = Party(sent.src, message["local_id"], message["local_qpn"])
        key = (sent.dst, message["remote_id"], sent.src)
        if key not in self._open:
            made = self._made.get((responder.ip, responder.qp))
            if made is not None and made.responder == responder and made.requester.number == message["remote_id"]:
                return _REPEATED
            self._early.pop(key, None)
            if len(self._early) >= MOST_OPEN:
                del self._early[next(iter(self._early))]
            self._early[key] = now, sent
            return _unknown(message)
        handshake = self._open[key]
        agreed = replace(handshake.asked, responder=responder)
        if handshake.ready == responder.number:
            return self._begin(key, agreed)
        self._open[key] = replace(handshake, since=now, asked=agreed)
        return _REPEATED if handshake.asked.responder == responder else _NOTED

    def _on_ready(self, sent: Datagram) -> Outcome:
        message = sent.message
        key = (sent.src, message["local_id"], sent.dst)
        handshake = self._open.get(key)
        if handshake is not None and not handshake.asked.responder.qp:
            self._open[key] = replace(handshake, ready=message["remote_id"])
            return _REPEATED if handshake.ready == message["remote_id"] else _NOTED
        if handshake is None or handshake.asked.responder.number != message["remote_id"]:
            return _REPEATED if self._between(sent) else _unknown(message)
        return self._begin(key, handshake.asked)

    def _begin(self, key: _Key, found: Conversation) -> Begun:
        del self._open[key]
        ends = ((party.ip, party.qp) for party in (found.requester, found.responder))
        stale = tuple(dict.fromkeys(self._made[end] for end in ends if end in self._made))
        for old in stale:
            self.forget(old)
        self._add(found)
        return Begun(found, stale)

    def _on_end(self, sent: Datagram) -> Outcome:
        message = sent.message
        self._drop_open(sent)
        found = self._between(sent)
        if found is None:
            return _NOTED if message.kind is Kind.DREP else _unknown(message)
        receiver = found.responder if found.responder.ip == sent.dst else found.requester
        if message.kind is Kind.DREQ and message["remote_qpn"] != receiver.qp:
            return Ignored("contradictory", f"DREQ: QP {message['remote_qpn']} is not the connection's, {receiver.qp}")
        self.forget(found)
        return Ended(found)

    def _on_reject(self, sent: Datagram) -> Outcome:
        dropped = self._drop_open(sent)
        found = self._between(sent)
        if found is not None:
            self.forget(found)
            return Ended(found)
        return _NOTED if dropped else _unknown(sent.message)

    def _drop_open(self, sent: Datagram) -> bool:
        """Forget an open handshake that this message ends. A REJ of a REQ may arrive without the responder's number."""
        message = sent.message
        local, remote = message["local_id"], message["remote_id"]
        for key, numbers in (((sent.src, local, sent.dst), (remote,)), ((sent.dst, remote, sent.src), (local,))):
            self._early.pop(key, None)
            if key in self._open:
                number = self._open[key].asked.responder.number
                if number in numbers or (not number and key[0] == sent.dst):
                    del self._open[key]
                    return True
        return False

    def _between(self, sent: Datagram) -> Conversation | None:
        """The connection of a message, by the addresses and numbers of both ends, whichever of them has sent it."""
        message = sent.message
        ends = {(sent.src, message["local_id"]), (sent.dst, message["remote_id"])}
        for made in self._made.values():
            if {(made.requester.ip, made.requester.number), (made.responder.ip, made.responder.number)} == ends:
                return made
        return None

    def _add(self, conversation: Conversation) -> None:
        for party in (conversation.requester, conversation.responder):
            self._made[party.ip, party.qp] = conversation


def _wrong_request(sent: Datagram) -> Ignored | None:
    message = sent.message
    if message["transport"] != RELIABLE:
        return Ignored("other transport", f"REQ: transport {message['transport']} is not a reliable connection")
    if message["local_qpn"] not in QPNS:
        return Ignored("malformed", f"REQ: QP {message['local_qpn']} is not an ordinary one")
    if message["path_mtu"] not in PATH_MTUS:
        return Ignored("malformed", f"REQ: path MTU {message['path_mtu']} has no meaning")
    if (message["local_gid"], message["remote_gid"]) != (gid_of(sent.src), gid_of(sent.dst)):
        return Ignored("contradictory", "REQ: its GIDs are not the addresses of its packet")
    return None


def _unknown(message: Message) -> Ignored:
    return Ignored("unknown", f"{message.kind.name}: no handshake or connection has these numbers")
