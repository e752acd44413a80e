"""Scripted exchanges, as the InfiniBand specification (volume 1, chapter 9) and Themis §2.2 want them answered."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from p4gen.host.transport.clock import US
from p4gen.host.transport.verbs import QpConfig, Recovery, SendWr, Status

from .bench import FIRST_PSN, MTU, PEER, REGION, Bench


@dataclass(frozen=True)
class Case:
    name: str
    script: str
    config: dict[str, Any] = field(default_factory=dict)


SR = {"recovery": Recovery.SELECTIVE_REPEAT}
IDEAL = {"recovery": Recovery.IDEAL}
TIMER = {"timeout_ps": 100 * US}
HOPS = IDEAL | {"selective_naks": True}
"""Mode III: the next hop acknowledges, and results are no concern of contributions."""

RESPONDER = [
    Case("a message of one packet is acknowledged (9.7.5.1)", "recv 1\n< ONLY 0 ack\n> ACK 0 msn=1\ndone recv 0"),
    Case("no AckReq, no ACK (9.7.5.1.2)", "recv 1\n< ONLY 0\n> nothing\ndone recv 0"),
    Case(
        "one cumulative ACK for a message of three",
        "recv 1\n< FIRST 0\n< MIDDLE 1\n> nothing\n< LAST 2 ack\n> ACK 2 msn=1\ndone recv 0",
    ),
    Case("an ACK inside a message counts no message", "recv 1\n< FIRST 0 ack\n> ACK 0 msn=0\n< LAST 1\ndone recv 0"),
    Case("MSN counts messages", "recv 3\n< ONLY 0\n< ONLY 1\n< ONLY 2 ack\n> ACK 2 msn=3"),
    Case("PSNs wrap", "recv 4\n< ONLY 0\n< ONLY 1 ack\n> ACK 1\n< ONLY 2 ack\n> ACK 2\n< ONLY 3 ack\n> ACK 3 msn=4"),
    Case(
        "a duplicate is answered with the newest PSN, AckReq or not (9.7.4.2.1)",
        "recv 3\n< ONLY 0\n< ONLY 1\n< ONLY 0\n> ACK 1 msn=2\n< ONLY 1 ack\n> ACK 1 msn=2",
    ),
    Case("a duplicate takes no receive", "recv 1\n< ONLY 0\n< ONLY 0\n> ACK 0\ndone recv 0"),
    Case(
        "PSN + 2^23 is old, + 2^23 - 1 is new (9.7.1)",
        "recv 1\n< ONLY 8388608 ack\n> ACK -1\n< ONLY 8388607 ack\n> NAK 0 code=0",
    ),
    Case(
        "a gap is answered by one NAK with the expected PSN (9.7.5.2.1)", "recv 2\n< ONLY 1 ack\n> NAK 0 code=0 msn=0"
    ),
    Case(
        "silence until the expected packet comes (9.7.4.1.2)",
        "recv 9\n< ONLY 1\n> NAK 0\n< ONLY 2\n< ONLY 3 ack\n> nothing\n< ONLY 0 ack\n> ACK 0 msn=1\n< ONLY 3\n> NAK 1",
    ),
    Case("Go-Back-N keeps nothing", "recv 2\n< ONLY 1\n> NAK 0\n< ONLY 0\n< ONLY 1 ack\n> ACK 1 msn=2"),
    Case(
        "no receive posted: RNR NAK with this end's timer (9.7.5.2.8)",
        "< ONLY 0 ack\n> RNR 0 code=14",
        {"rnr_timer": 14},
    ),
    Case(
        "after an RNR NAK the same packet is taken",
        "< ONLY 0\n> RNR 0\nrecv 1\n< ONLY 0 ack\n> ACK 0 msn=1\ndone recv 0",
    ),
    Case("what follows a packet refused by RNR is no gap", "< FIRST 0\n> RNR 0\n< LAST 1\n> nothing"),
    Case("FIRST inside a message: invalid request (9.7.4.1.4)", "recv 2\n< FIRST 0\n< FIRST 1\n> NAK 1 code=1"),
    Case("ONLY inside a message: invalid request", "recv 2\n< FIRST 0\n< ONLY 1\n> NAK 1 code=1"),
    Case("MIDDLE outside a message: invalid request", "recv 2\n< MIDDLE 0\n> NAK 0 code=1"),
    Case("LAST outside a message: invalid request", "recv 2\n< LAST 0\n> NAK 0 code=1"),
    Case("a WRITE inside a SEND: invalid request", "recv 2\n< FIRST 0\n< WRITE_MIDDLE 1\n> NAK 1 code=1"),
    Case("a FIRST below the path MTU: invalid request (9.7.4.1.6)", "recv 1\n< FIRST 0 len=4\n> NAK 0 code=1"),
    Case("a MIDDLE below the path MTU: invalid request", "recv 1\n< FIRST 0\n< MIDDLE 1 len=4\n> NAK 1 code=1"),
    Case("an empty LAST: invalid request", "recv 1\n< FIRST 0\n< LAST 1 len=0\n> NAK 1 code=1"),
    Case("an ONLY above the path MTU: invalid request", "recv 1\n< ONLY 0 len=12\n> NAK 0 code=1"),
    Case("an empty ONLY is a message", "recv 1\n< ONLY 0 len=0 ack\n> ACK 0 msn=1\ndone recv 0"),
    Case(
        "an error flushes the receives (11.6.2)",
        "recv 2\n< LAST 0\n> NAK 0 code=1\ndone recv 0 work request flushed\ndone recv 1 work request flushed",
    ),
    Case(
        "a broken queue pair says no more (9.9.3)",
        "recv 1\n< LAST 0\n> NAK 0 code=1\n< ONLY 0 ack\n> nothing",
    ),
    Case(
        "immediate data comes with the completion (9.3.6)",
        "recv 1\n< SEND_ONLY_IMM 0 imm=7 ack\n> ACK 0 msn=1\ndone recv 0",
    ),
    Case(
        "a WRITE takes no receive and completes nothing",
        "< WRITE_ONLY 0 ack\n> ACK 0 msn=1",
    ),
    Case("a WRITE with immediate takes one", "recv 1\n< WRITE_ONLY_IMM 0 imm=3 ack\n> ACK 0 msn=1\ndone recv 0"),
    Case("a WRITE with immediate and no receive: RNR", "< WRITE_ONLY_IMM 0 imm=3 ack\n> RNR 0"),
    Case(
        "a WRITE of three packets", "< WRITE_FIRST 0 dma=20\n< WRITE_MIDDLE 1\n< WRITE_LAST 2 len=4 ack\n> ACK 2 msn=1"
    ),
    Case("a wrong R_Key: remote access error (9.7.4.1.5)", "< WRITE_ONLY 0 rkey=1\n> NAK 0 code=2"),
    Case("an address outside the region: remote access error", "< WRITE_ONLY 0 va=4096\n> NAK 0 code=2"),
    Case("a length beyond the region: remote access error", "< WRITE_FIRST 0 dma=65\n> NAK 0 code=2"),
    Case(
        "less data than the RETH announced: invalid request",
        "< WRITE_FIRST 0 dma=24\n< WRITE_LAST 1 len=4\n> NAK 1 code=1",
    ),
    Case(
        "more data than the RETH announced: invalid request", "< WRITE_FIRST 0 dma=12\n< WRITE_MIDDLE 1\n> NAK 1 code=1"
    ),
    Case(
        "NIC-SR keeps what comes early, and goes on from the bitmap (Themis 2.2)",
        "recv 4\n< ONLY 1 ack\n> NAK 0\n< ONLY 2 ack\n> nothing\n< ONLY 0\n> ACK 2 msn=3",
        SR,
    ),
    Case(
        "NIC-SR: at most one NAK for each ePSN, which carries the ePSN only (Themis 2.2)",
        "recv 9\n< ONLY 2\n> NAK 0\n< ONLY 4\n< ONLY 3\n> nothing\n< ONLY 0\n< ONLY 6\n> NAK 1",
        SR,
    ),
    Case(
        "NIC-SR: early packets complete in order", "recv 2\n< ONLY 1\n> NAK 0\n< ONLY 0\ndone recv 0\ndone recv 1", SR
    ),
    Case(
        "NIC-SR: an early packet twice is kept once",
        "recv 2\n< ONLY 1\n> NAK 0\n< ONLY 1\n< ONLY 0 ack\n> ACK 1 msn=2",
        SR,
    ),
    Case(
        "ideal: no NAK; what has no result is sent again, by itself, until it has",
        "recv 9\nsend 8\nsend 8\nsend 8\n> ONLY 0 ack\n> ONLY 1 ack\n> ONLY 2 ack\n"
        "< ONLY 1\n> ONLY 0 ack\n> nothing\nwait 50us\n< ONLY 0 ack\n> ACK 1\n< ACK 1\n< ONLY 2\n> nothing",
        IDEAL | TIMER,
    ),
    Case(
        "ideal: a result that stays away is worked for again after a timeout",
        "recv 9\nsend 8\nsend 8\n> ONLY 0 ack\n> ONLY 1 ack\n< ONLY 1\n> ONLY 0 ack\nwait 102us\n> ONLY 0 ack",
        IDEAL | TIMER,
    ),
]

SELECTIVE = [
    Case(
        "a gap is named at once, with its length, and acknowledges nothing",
        "recv 9\n< ONLY 0\n< ONLY 4\n> NAK 1 code=31 msn=3\n< ONLY 1\n< ONLY 3\n> nothing\n< ONLY 2 ack\n> ACK 4 msn=5",
        HOPS,
    ),
    Case(
        "each gap is named once, the one behind it too",
        "recv 9\n< ONLY 1\n> NAK 0 code=31 msn=1\n< ONLY 2\n> nothing\n< ONLY 5 ack\n> NAK 3 code=31 msn=2\n"
        "< ONLY 5\n> nothing\n< ONLY 0\n< ONLY 3\n< ONLY 4\n> ACK 5 msn=6",
        HOPS,
    ),
    Case(
        "the timer names again what is missing still, run by run, until it is there",
        "recv 9\n< ONLY 5 ack\n> NAK 0 code=31 msn=5\n< ONLY 2\nwait 100us\n> NAK 0 code=31 msn=2\n"
        "> NAK 3 code=31 msn=2\n< ONLY 0\n< ONLY 1 ack\n> ACK 2 msn=3\nwait 100us\n> NAK 3 code=31 msn=2\n"
        "< ONLY 3\n< ONLY 4\n> ACK 5\nwait 300us\n> nothing",
        HOPS | TIMER,
    ),
    Case(
        "Mode III: a missing result is named though the contribution is outstanding, and this does not go again",
        "recv 9\nsend 8\nsend 8\n> ONLY 0 ack\n> ONLY 1 ack\n< ONLY 1\n> NAK 0 code=31 msn=1\n> nothing",
        HOPS,
    ),
    Case(
        "Mode III: a missing result is named after its contribution is acknowledged",
        "recv 9\nsend 8\nsend 8\n> ONLY 0 ack\n> ONLY 1 ack\n< ACK 1\n< ONLY 1\n> NAK 0 code=31 msn=1\n"
        "wait 100us\n> NAK 0 code=31 msn=1",
        HOPS | TIMER,
    ),
    Case(
        "Mode II: who has nothing to send again asks for the oldest as NIC-SR does, and again on the timer",
        "recv 9\n< ONLY 0\n< ONLY 2 ack\n> NAK 1 code=0\n< ONLY 4 ack\n> nothing\nwait 100us\n> NAK 1 code=0\n"
        "< ONLY 1\n> NAK 3 code=0\n> ACK 2\nwait 100us\n> NAK 3 code=0\n< ONLY 3\n> ACK 4\nwait 300us\n> nothing",
        IDEAL | TIMER,
    ),
    Case(
        "Mode II: what is missing beyond all that was sent does not silence the timer of what is outstanding",
        "recv 1\nsend 8\n> ONLY 0 ack\n< ONLY 0 ack\n> ACK 0\n< ONLY 1\n> RNR 1\n< ONLY 2\n> NAK 1 code=0\n"
        "wait 100us\n> ONLY 0 ack\n> NAK 1 code=0\n< ACK 0\ndone recv 0\ndone send 0",
        IDEAL | TIMER,
    ),
    Case(
        "a selective NAK makes the named packets go again, each once, and completes nothing",
        "send 8\nsend 8\nsend 8\nsend 8\n> ONLY 0 ack\n> ONLY 1 ack\n> ONLY 2 ack\n> ONLY 3 ack\n"
        "< NAK 1 code=31 msn=2\n> ONLY 1 ack\n> ONLY 2 ack\n> nothing\n< ACK 3\ndone send 0",
        HOPS,
    ),
    Case(
        "each notification counts",
        "send 8\nsend 8\n> ONLY 0 ack\n> ONLY 1 ack\n< NAK 0 code=31 msn=1\n> ONLY 0 ack\n"
        "< NAK 0 code=31 msn=1\n> ONLY 0 ack\n> nothing",
        HOPS,
    ),
    Case(
        "what is acknowledged or was never sent does not go again",
        "send 8\nsend 8\nsend 8\n> ONLY 0 ack\n> ONLY 1 ack\n> ONLY 2 ack\n< ACK 0\n"
        "< NAK 0 code=31 msn=9\n> ONLY 1 ack\n> ONLY 2 ack\n< NAK 7 code=31 msn=2\n> nothing\n"
        "< NAK -9 code=31 msn=9\n> nothing",
        HOPS,
    ),
    Case(
        "Mode III: without progress the timer sends the oldest and the newest again",
        "send 8\nsend 8\nsend 8\n> ONLY 0 ack\n> ONLY 1 ack\n> ONLY 2 ack\nwait 100us\n> ONLY 0 ack\n> ONLY 2 ack\n"
        "< ACK 1\nwait 100us\n> ONLY 2 ack\n> nothing",
        HOPS | TIMER,
    ),
    Case(
        "Mode III: on the timer all goes again that was named and is not acknowledged",
        "send 8\nsend 8\nsend 8\nsend 8\n> ONLY 0 ack\n> ONLY 1 ack\n> ONLY 2 ack\n> ONLY 3 ack\n"
        "< NAK 0 code=31 msn=1\n> ONLY 0 ack\n< NAK 2 code=31 msn=1\n> ONLY 2 ack\nwait 100us\n"
        "> ONLY 0 ack\n> ONLY 2 ack\n> ONLY 3 ack\n< ACK 2\nwait 100us\n> ONLY 3 ack\n> nothing",
        HOPS | TIMER,
    ),
    Case(
        "Mode III: results that are missing do not keep contributions from going again",
        "recv 9\nsend 8\n> ONLY 0 ack\n< ONLY 1\n> NAK 0 code=31 msn=1\nwait 100us\n"
        "> ONLY 0 ack\n> NAK 0 code=31 msn=1",
        HOPS | TIMER,
    ),
    Case(
        "Mode III: what is named again goes again, but not while it is on its way",
        "send 8\n> ONLY 0 ack\n< NAK 0 code=31 msn=1\n> ONLY 0 ack\n< NAK 0 code=31 msn=1\n> nothing\nwait 50us\n"
        "< NAK 0 code=31 msn=1\n> ONLY 0 ack",
        HOPS | TIMER,
    ),
    Case(
        "Mode III: the oldest goes again when ACKs pass it by, once",
        "send 8\nsend 8\nsend 8\n> ONLY 0 ack\n> ONLY 1 ack\n> ONLY 2 ack\n< ACK 0\n< ACK 0\n> nothing\nwait 50us\n"
        "< ACK 0\n> ONLY 1 ack\n< ACK 0\n> nothing",
        HOPS | TIMER,
    ),
    Case(
        "Mode III: when all is acknowledged and no result comes, it is asked for",
        "recv 9\nrecv 9\nsend 8\nsend 8\n> ONLY 0 ack\n> ONLY 1 ack\n< ACK 1\nwait 60us\n> nothing\nwait 50us\n"
        "> NAK 0 code=31 msn=2\n< ONLY 1 ack\n> nothing",
        HOPS | TIMER,
    ),
    Case(
        "Mode III: who has no room for a result awaits none",
        "send 8\n> ONLY 0 ack\n< ACK 0\nwait 300us\n> nothing",
        HOPS | TIMER,
    ),
    Case(
        "it shows that the far end is there: the timer begins anew",
        "send 8\n> ONLY 0 ack\nwait 60us\n< NAK 0 code=31 msn=1\n> ONLY 0 ack\nwait 60us\n"
        "> nothing\nwait 60us\n> ONLY 0 ack",
        HOPS | TIMER,
    ),
    Case(
        "no NIC knows it: Go-Back-N",
        "send 8\n> ONLY 0 ack\n< NAK 0 code=31 msn=1\ndone send 0 bad response error",
    ),
    Case(
        "no NIC knows it: selective repeat",
        "send 8\n> ONLY 0 ack\n< NAK 0 code=31 msn=1\ndone send 0 bad response error",
        SR,
    ),
    Case(
        "an ordinary NAK still acknowledges and asks for one packet",
        "send 8\nsend 8\nsend 8\n> ONLY 0 ack\n> ONLY 1 ack\n> ONLY 2 ack\n< NAK 1\ndone send 0\n"
        "> ONLY 1 ack\n> nothing",
        HOPS,
    ),
]

# The switch of Mode III answers a packet beyond its pipe's range with a CNP and an RNR NAK, and drops what follows.
_BEYOND = (
    "send 8\nsend 8\nsend 8\n> ONLY 0 ack\n> ONLY 1 ack\n> ONLY 2 ack\n< CNP\n< RNR 1 code=1\ndone send 0\n> nothing\n"
    "wait 10us\n> ONLY 1 ack\n> ONLY 2 ack\n< RNR 2 code=1\ndone send 1\nwait 10us\n> ONLY 2 ack\n< ACK 2\ndone send 2"
)
BEYOND_RANGE = [
    Case(f"beyond the range: wait, then all from there on again ({name})", _BEYOND, config)
    for name, config in (("gbn", {}), ("sr", SR), ("ideal", HOPS))
] + [
    Case(
        "a NAK that waits to be served is served by the resend after the RNR wait, once",
        "send 8\nsend 8\nsend 8\n> ONLY 0 ack\n> ONLY 1 ack\n> ONLY 2 ack\n< RNR 0 code=1\n< NAK 0 code=0\nwait 10us\n"
        "> ONLY 0 ack\n> ONLY 0 ack\n> ONLY 1 ack\n> ONLY 2 ack\n> nothing",
        SR,
    ),
    Case(
        "Go-Back-N: a gap among what goes again after an RNR wait is a new one",
        "send 8\nsend 8\n> ONLY 0 ack\n> ONLY 1 ack\n< NAK 0\n> ONLY 0 ack\n> ONLY 1 ack\n< RNR 0 code=1\nwait 10us\n"
        "> ONLY 0 ack\n> ONLY 1 ack\n< NAK 0\n> ONLY 0 ack\n> ONLY 1 ack\n> nothing",
    ),
    Case(
        "the retransmission timer does not run during an RNR wait",
        "send 8\n> ONLY 0 ack\nwait 90us\n< RNR 0 code=6\nwait 75us\n> nothing\nwait 5us\n"
        "> ONLY 0 ack\nwait 90us\n> nothing",
        SR | TIMER,
    ),
]

MOVES = [
    Case(
        "a Reduce's root sends on from where the others are (EPIC 4.3, refined)",
        "recv 9\n< ONLY 0\n< ONLY 1\n< ONLY 2 ack\n> ACK 2 msn=3\nsq 3\nsend 8\n> ONLY 3 ack\n< ACK 2\n< ONLY 3 ack\n"
        "> ACK 3 msn=4\n< ACK 3\ndone recv 0\ndone recv 1\ndone recv 2\ndone recv 3\ndone send 0",
    ),
    Case(
        "a Reduce's sender expects from where it is",
        "recv 9\nsend 8\nsend 8\n> ONLY 0 ack\n> ONLY 1 ack\n< ACK 1\nrq 2\nsend 8\n> ONLY 2 ack\n< ONLY 2 ack\n"
        "> ACK 2 msn=1\n< ACK 2\ndone send 0\ndone send 1\ndone recv 0\ndone send 2",
    ),
    Case(
        "what came before the PSN set is a duplicate",
        "recv 1\nrq 5\n< ONLY 4\n> ACK 4 msn=0\n< ONLY 5 ack\n> ACK 5 msn=1",
    ),
    Case("a gap is one from the PSN set on", "recv 1\nrq 5\n< ONLY 6\n> NAK 5 code=0"),
    Case("a gap from before a PSN set does not silence the next", "recv 1\n< ONLY 1\n> NAK 0\nrq 5\n< ONLY 6\n> NAK 5"),
    Case("setting where it is changes nothing", "sq 0\nrq 0\nrecv 1\nsend 8\n> ONLY 0 ack\n< ONLY 0 ack\n> ACK 0"),
    Case(
        "a timer of old does not fire for a PSN set",
        "send 8\n> ONLY 0 ack\n< ACK 0\nsq 7\nwait 300us\n> nothing\nsend 8\n> ONLY 7 ack\nwait 100us\n> ONLY 7 ack",
        TIMER,
    ),
    Case(
        "ideal: gaps from before a PSN set are forgotten",
        "recv 9\n< ONLY 1\n> NAK 0 code=31 msn=1\nrq 3\nwait 300us\n> nothing\n< ONLY 4\n> NAK 3 code=31 msn=1",
        HOPS | TIMER,
    ),
]

REQUESTER = [
    Case("a message of one packet is an ONLY and asks for an ACK", "send 8\n> ONLY 0 ack\n< ACK 0\ndone send 0"),
    Case("an empty message is one packet (9.4.1)", "send 0\n> ONLY 0 len=0 ack\n< ACK 0\ndone send 0"),
    Case(
        "segmentation to the path MTU",
        "send 20\n> FIRST 0 len=8\n> MIDDLE 1 len=8\n> LAST 2 len=4 ack\n< ACK 2\ndone send 0",
    ),
    Case("SEND with immediate: on the last packet only", "send 12 imm=9\n> FIRST 0\n> SEND_LAST_IMM 1 imm=9 ack"),
    Case(
        "WRITE: RETH on the first packet, with the whole length",
        "send 12 write\n> WRITE_FIRST 0 dma=12\n> WRITE_LAST 1 len=4 ack",
    ),
    Case("WRITE with immediate in one packet", "send 8 write imm=5\n> WRITE_ONLY_IMM 0 dma=8 imm=5 ack"),
    Case(
        "an ACK is cumulative (9.7.5.1.1)",
        "send 8\nsend 8\nsend 8\n> ONLY 0 ack\n> ONLY 1 ack\n> ONLY 2 ack\n< ACK 1\ndone send 0\n"
        "done send 1\n< ACK 2\ndone send 2",
    ),
    Case(
        "an ACK inside a message completes nothing", "send 16\n> FIRST 0\n> LAST 1 ack\n< ACK 0\n< ACK 1\ndone send 0"
    ),
    Case(
        "no more than max_outstanding; what fills it asks for an ACK",
        "send 48\n> FIRST 0\n> MIDDLE 1\n> MIDDLE 2\n> MIDDLE 3 ack\n> nothing\n< ACK 1\n> MIDDLE 4\n> LAST 5 ack",
    ),
    Case(
        "an ACK of what was never sent is ignored (9.7.5.1.1)",
        "send 8\n> ONLY 0 ack\n< ACK 1\n< ACK 8388607\n> nothing\n< ACK 0\ndone send 0",
    ),
    Case(
        "an ACK twice is ignored",
        "send 8\n> ONLY 0 ack\n< ACK 0\ndone send 0\n< ACK 0\nsend 8\n> ONLY 1 ack\n< ACK 0\n> nothing",
    ),
    Case(
        "a NAK acknowledges all before it and makes the rest go again (9.7.5.2.1)",
        "send 8\nsend 8\nsend 8\n> ONLY 0 ack\n> ONLY 1 ack\n> ONLY 2 ack\n< NAK 1\ndone send 0\n"
        "> ONLY 1 ack\n> ONLY 2 ack",
    ),
    Case(
        "one resend for a NAK that comes twice",
        "send 8\nsend 8\n> ONLY 0 ack\n> ONLY 1 ack\n< NAK 0\n> ONLY 0 ack\n> ONLY 1 ack\n< NAK 0\n> nothing",
    ),
    Case(
        "after progress a NAK counts again",
        "send 8\nsend 8\n> ONLY 0 ack\n> ONLY 1 ack\n< NAK 0\n> ONLY 0 ack\n> ONLY 1 ack\n< NAK 1\n"
        "done send 0\n> ONLY 1 ack",
    ),
    Case(
        "NIC-SR sends again what the NAK names, and no more (Themis 2.2)",
        "send 8\nsend 8\nsend 8\n> ONLY 0 ack\n> ONLY 1 ack\n> ONLY 2 ack\n< NAK 1\ndone send 0\n"
        "> ONLY 1 ack\n> nothing\n< ACK 2",
        SR,
    ),
    Case("a timeout: Go-Back-N", "send 16\n> FIRST 0\n> LAST 1 ack\nwait 100us\n> FIRST 0 ack\n> LAST 1 ack", TIMER),
    Case(
        "a timeout in NIC-SR: all that is not acknowledged",
        "send 16\n> FIRST 0\n> LAST 1 ack\n< ACK 0\nwait 100us\n> LAST 1 ack",
        SR | TIMER,
    ),
    Case(
        "progress restarts the timer",
        "send 16\n> FIRST 0\n> LAST 1 ack\nwait 60us\n< ACK 0\nwait 60us\n> nothing\nwait 60us\n> LAST 1 ack",
        TIMER,
    ),
    Case("no timer, no resend", "send 8\n> ONLY 0 ack\nwait 100ms\n> nothing"),
    Case(
        "retries end in an error completion (9.9.2)",
        "send 8\nsend 8\n> ONLY 0 ack\n> ONLY 1 ack\nwait 101us\n> ONLY 0 ack\n> ONLY 1 ack\nwait 100us\n"
        "done send 0 transport retry counter exceeded\ndone send 1 work request flushed\n> nothing",
        TIMER | {"retry_count": 1},
    ),
    Case(
        "what is posted to a broken queue pair is flushed",
        "send 8\n> ONLY 0 ack\n< NAK 0 code=2\ndone send 0 remote access error\nsend 8\n"
        "done send 1 work request flushed",
    ),
    Case("NAK invalid request", "send 8\n> ONLY 0 ack\n< NAK 0 code=1\ndone send 0 remote invalid request error"),
    Case("NAK remote operational error", "send 8\n> ONLY 0 ack\n< NAK 0 code=3\ndone send 0 remote operation error"),
    Case(
        "a reserved syndrome breaks the queue pair",
        "send 8\n> ONLY 0 ack\n< SYNDROME 0 code=0x45\ndone send 0 bad response error",
    ),
    Case(
        "RNR: the coded wait, then again from there (9.7.5.2.8)",
        "send 8\n> ONLY 0 ack\n< RNR 0 code=2\nwait 17us\n> nothing\nwait 3us\n> ONLY 0 ack\n< ACK 0\ndone send 0",
    ),
    Case(
        "RNR retries end in an error completion",
        "send 8\n> ONLY 0 ack\n< RNR 0 code=1\nwait 10us\n> ONLY 0 ack\n< RNR 0 code=1\n"
        "done send 0 RNR retry counter exceeded",
        {"rnr_retry": 1},
    ),
    Case(
        "RNR NAKs of one PSN during the wait are one refusal",
        "send 8\nsend 8\nsend 8\n> ONLY 0 ack\n> ONLY 1 ack\n> ONLY 2 ack\n< RNR 0 code=2\n< RNR 0 code=2\nwait 10us\n"
        "< RNR 0 code=2\nwait 6us\n> nothing\nwait 1us\n> ONLY 0 ack\n> ONLY 1 ack\n> ONLY 2 ack\n< ACK 2\n"
        "done send 0\ndone send 1\ndone send 2",
        {"rnr_retry": 1},
    ),
    Case("a CNP without DCQCN changes nothing", "send 8\n> ONLY 0 ack\n< CNP\n> nothing\n< ACK 0\ndone send 0"),
]


@pytest.mark.parametrize(
    "case", [*RESPONDER, *REQUESTER, *SELECTIVE, *BEYOND_RANGE, *MOVES], ids=lambda case: case.name
)
def test_exchange(case: Case) -> None:
    defaults = {"mtu": MTU, "initial_psn": FIRST_PSN, "max_outstanding": 4, "timeout_ps": 0}
    Bench(QpConfig(**(defaults | case.config))).play(case.script)


def test_there_are_enough() -> None:
    assert len(RESPONDER) + len(REQUESTER) >= 40


def test_data_lands_where_it_belongs() -> None:
    bench = Bench()
    bench.play("recv 1\n< FIRST 0\n< LAST 1 len=4 ack\n> ACK 1\ndone recv 0\n< WRITE_ONLY 2 ack\n> ACK 2")
    assert bench.buffers[0][:12] == bytes((0xFE + i) & 0xFF for i in range(8)) + bytes(
        (0xFF + i) & 0xFF for i in range(4)
    )
    assert bench.memory[:8] == bytes(range(8))


def test_a_pair_that_refuses_a_write_says_why_it_is_broken() -> None:
    bench = Bench()
    bench.play("send 8\n> ONLY 0 ack\nrecv 1\n< WRITE_ONLY_IMM 0 rkey=1 imm=1\n> NAK 0 code=2")
    assert bench.pair.broken is Status.ACCESS_VIOLATION
    bench.play("done send 0 work request flushed\ndone recv 0 work request flushed")
    assert bench.memory == bytes(REGION)


def test_a_message_longer_than_its_room_ends_in_errors_at_both_ends() -> None:
    bench = Bench()
    packets = "\n".join(f"< {'FIRST' if i == 0 else 'MIDDLE'} {i}" for i in range(9))
    bench.play(f"recv 1\n{packets}\n> NAK 8 code=1\ndone recv 0 local length error")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("send 8\n> ONLY 0 ack\nsq 5", "sends are outstanding"),
        ("send 8\n> ONLY 0 ack\n< ACK 0\nsq 0", "used"),
        ("recv 1\n< ONLY 0\nrq 0", "received"),
        ("recv 1\n< FIRST 0\nrq 1", "inside a message"),
        ("rq 8388608", "received"),
    ],
)
def test_psns_that_cannot_be_set(script: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"cannot be set: {why}"):
        Bench().play(script)


def test_what_was_kept_from_before_a_psn_set_is_dropped() -> None:
    bench = Bench(QpConfig(MTU, FIRST_PSN, Recovery.SELECTIVE_REPEAT, timeout_ps=0))
    bench.play("recv 9\n< ONLY 1\n> NAK 0\n< ONLY 3 ack\nrq 2")
    assert bench.pair.responder.kept == [3]
    bench.play("< ONLY 2\n> ACK 3 msn=2")


def test_queue_pairs_take_turns() -> None:
    bench = Bench()
    other = bench.nic.create_pair(0x99, replace(PEER, qp=0x98), bench.config, bench.completions.append)
    for pair in (bench.pair, other):
        pair.post_send(SendWr(0, bytes(3 * MTU)))
    bench.loop.run()
    assert [frame.bth.dst_qp for frame in bench.frames] == [PEER.qp, 0x98] * 3


def test_a_message_goes_on_where_it_was_when_an_ack_overtakes_the_resend_of_the_one_before() -> None:
    bench = Bench(burst=1)
    for size in (MTU, 5 * MTU, MTU):
        bench.pair.post_send(SendWr(0, bytes(size)))
    bench.loop.run()
    bench.nic.receive(bench.frame(["NAK", "0"]).to_bytes())
    bench.loop.run(count=1)
    bench.nic.receive(bench.frame(["ACK", "3"]).to_bytes())
    bench.play(
        "> ONLY 0 ack\n> FIRST 1\n> MIDDLE 2\n> MIDDLE 3 ack\n> ONLY 0 ack\nwait 1us\n"
        "> MIDDLE 4\n> LAST 5 ack\n> ONLY 6 ack"
    )
