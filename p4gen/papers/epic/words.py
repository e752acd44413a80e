"""Layouts of EPIC's registers: the words of each, as functions of the spec if they depend on it.

The epoch in a word is the generation of the group's state to which it belongs; a word of another epoch counts as empty.
"""

from __future__ import annotations

from p4gen.layout import Field, Word
from p4gen.papers.epic.spec import EpicSpec
from p4gen.program.repair import TIMER
from p4gen.rocev2.layouts import PSN_BITS, SYNDROME
from p4gen.vocabulary import Op
from p4gen.vocabulary.formats import NUMBERS_LAYOUT
from p4gen.vocabulary.message import COLLECTIVE, MESSAGE, message_of, root_of

EPOCH = Field("epoch", 8, "epoch")

EXPECTED = Word(EPOCH, Field("psn", PSN_BITS, "ePSN"))
PROGRESS = Word(EPOCH, Field("psn", PSN_BITS, "PSN"))
"""A PSN that marks progress: psnStart, maxPsnSent, lastAcked."""
EMISSION = Word(
    EPOCH,
    Field("next", PSN_BITS, "next to be sent"),
    Field("ready", PSN_BITS, "last of the newest whole message"),
)
"""How far a pipe has sent the messages that it has whole; numbers of packets on their way."""
ANSWER = Word(Field("psn", PSN_BITS, "PSN"), Field("syndrome", SYNDROME.bits, "syndrome", SYNDROME))
"""Mode II: how far an edge has acknowledged a broadcast, and how."""
TAG = Word(
    Field("tagged", 1, "1: tagged"),
    Field("priority", 3, "priority"),
    Field("drop_eligible", 1, "drop eligible"),
    Field("vlan", 12, "VLAN"),
)


def code(spec: EpicSpec) -> Word:
    """``meta.invocation.code``: the number of a pattern in the control plane."""
    return Word(COLLECTIVE, root_of(spec.roots))


def announcement(spec: EpicSpec) -> Word:
    """What a control message has announced."""
    return Word(
        EPOCH,
        Field("psn", PSN_BITS, "PSN of the control message"),
        Field("immediate", MESSAGE.bits, "its immediate", message_of(spec.roots)),
    )


def selective(spec: EpicSpec) -> bool:
    """Whether packets of an edge are accepted out of order, so that missing ones are tracked individually."""
    return spec.mode.augmented and not spec.loss_recovery.in_order


def reorder_window(spec: EpicSpec) -> int:
    """PSNs of an edge that CheckOrder and CombineSacks track individually, if packets are accepted out of order.

    A sender's outstanding packets should fit, W messages of M packets: later packets after the oldest missing one are
    refused. At most 256, to limit the width of the word.
    """
    return 128 if spec.window * spec.message <= 128 else 256


def slot(spec: EpicSpec) -> Word:
    """CheckDuplicate's word: what a slot serves, and whose contributions it has."""
    announced = (Field("announced", MESSAGE.bits, "announced"),) if spec.mode.augmented else ()
    return Word(
        *announced,
        EPOCH,
        Field("psn", PSN_BITS, "PSN"),
        Field("ack_request", 1, "AckReq"),
        Field("ecn", 2, "ECN"),
        Field("opcode", 5, "operation of the opcode"),
        Field("bitmap", 32, "bitmap"),
    )


def receive(spec: EpicSpec) -> Word:
    """CheckOrder's word: what has arrived over an edge, and what has been announced."""
    many = selective(spec)
    missing = (Field("missing", reorder_window(spec), "missing: bit i is PSN next - 1 - i"),) if many else ()
    numbers = (Field("numbers", NUMBERS_LAYOUT.bits, "numbers"),) if spec.op is Op.DYNAMIC else ()
    return Word(
        *missing,
        Field("announced", PSN_BITS, "last announced PSN"),
        *numbers,
        EPOCH,
        Field("nak_sent", 1, "NAK sent"),
        Field("psn", PSN_BITS, "next PSN" if many else "ePSN"),
    )


def sent(spec: EpicSpec) -> Word:
    """TrackSent's word: the newest PSN that a pipe has sent, and which of those before it have not been sent."""
    window = reorder_window(spec)
    unsent = (Field("unsent", window, "unsent: bit i is newest - 1 - i"),) if selective(spec) else ()
    return Word(*unsent, EPOCH, Field("psn", PSN_BITS, "PSN"))


def names_holes(spec: EpicSpec) -> bool:
    """Whether a receiver of results may know more holes than its NAKs name, as those of NIC-SR do."""
    return selective(spec) and not spec.loss_recovery.selective_naks


def lacked(spec: EpicSpec) -> Word:
    """CombineSacks' word: what an edge has asked for."""
    window = reorder_window(spec)
    return Word(EPOCH, Field("missing", window, f"missing: bit i is the PSN that is i modulo {window}"))


HOLES = Word(
    EPOCH,
    Field("hole", PSN_BITS, "reported PSN"),
    Field("through", PSN_BITS, "newest PSN then"),
)
"""RepairHoles' word: which of the packets that an edge was sent are repaired."""


def asked(spec: EpicSpec) -> Word:
    """AcquireLease's word of a context: the newest PSN that acquires or releases, and the edges over which it came."""
    through = (Field("through", PSN_BITS, "through"),) if spec.mode.augmented else ()
    return Word(*through, EPOCH, Field("psn", PSN_BITS, "PSN"), Field("bitmap", 32, "bitmap"))


LOCK = Word(
    Field("context", 16, "context"),
    EPOCH,
    Field("psn", PSN_BITS, "PSN that acquired it"),
)
"""AcquireLease's word of a lock: whose tenure it is."""


def completed(spec: EpicSpec) -> Word:
    """CountMessages' word: how many messages an edge has sent whole."""
    ended = (Field("ended", 24, "ended"),) if selective(spec) else ()
    return Word(EPOCH, *ended, Field("msn", 24, "MSN"))


def layouts(spec: EpicSpec) -> dict[str, Word]:
    """The layouts of all words of programs with wide words, by the last part of their registers' names."""
    return {
        "acked": PROGRESS if spec.mode.augmented else ANSWER,
        "announcement": announcement(spec),
        "asked": asked(spec),
        "completed": completed(spec),
        "lacked": lacked(spec),
        "emission": EMISSION,
        "expected": EXPECTED,
        "holes": HOLES,
        "locks": LOCK,
        "psn_start": PROGRESS,
        "receive": receive(spec),
        "sent": sent(spec),
        "slots": slot(spec),
        "tags": TAG,
        "timers": TIMER,
    }
