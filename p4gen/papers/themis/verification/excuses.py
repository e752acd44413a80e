"""Listed faults of Themis's programs that no search of sound hosts finds, with the reasons. The suite catches
them."""

from __future__ import annotations

from collections.abc import Mapping

from p4gen.papers.themis.conformance.faults import BETWEEN_PASSES
from p4gen.papers.themis.spec import ThemisSpec

_LOAD = "packets take other paths, but those of a class still take the same one: only the load of links differs"
_PATH_SETS = "tables do not change, and each connection has a path set that they know"
_OPCODES = "hosts of a search send SENDs alone"
_REFUSALS = "receivers have posted what arrives, and hosts break no rule: NICs answer with ACKs and NAKs of gaps alone"
_FORMS = "hosts answer from their own address and port"
_HEADERS = "a wrong bit of an IPv4 header that ICRCs do not cover is read by no judgement"
_SPOILT = "a NACK that a spoilt request holds back costs what a lost one does: its sender's timer expires"
_LARGER = "a NIC sends a NACK only after a larger PSN, which has passed the switch, and is still known there"
_DISARMED = "what an ACK acknowledges has passed the switch before, and that disarms, too"
_LARGE = "messages of more than 2^16 packets"
_COUNTERS = "counters are not part of a state"
_UNREAD = "a field that no host of a search reads"
_NUMBERS = "both ends of a connection have the same QP number in a search"
_COVERED = "the ACK that takes a NAK's place says nothing that a later one does not say, too"
_CHECKSUMS = "hosts send no UDP checksums, and check none"
_MARKED = "all data of a search passes a switch that marks it if its path changes the port"
_TAGS = "hosts send no tags"
_HANDSHAKES = "hosts of a search are connected from the beginning: they send no CM messages"

_AT_ONCE = "a NACK makes all its passes in one step of a search"

_REASONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (_LOAD, ("spray-by-qp", "base-forgotten", "base-twice")),
    (_PATH_SETS, ("no-path-set-sprayed", "path-set-ignored", "path-set-not-kept")),
    (
        _OPCODES,
        ("read-responses-sprayed", "ud-sprayed", "resync-sprayed", "atomics-not-sprayed", "all-but-writes",
         "sends-are-writes"),
    ),
    (_REFUSALS, ("rnr-blocked", "fatal-naks-blocked", "rnr-is-an-ack")),
    (_FORMS, ("any-port-believed", "any-source-believed")),
    (_HEADERS, ("bad-checksum-believed", "checksums-of-answers-only")),
    (_SPOILT, ("spoilt-requests-believed", "payloads-not-checked")),
    (_LARGER, ("no-evidence-blocked", "nack-is-larger", "nothing-larger-matters")),
    (_AT_ONCE, tuple(fault.name for fault in BETWEEN_PASSES)),
    (_DISARMED, ("acks-disarm-nothing",)),
    (_LARGE, ("gap-is-never-old", "late-stays", "unsure-stays")),
    (_COUNTERS, ("verdicts-shared",)),
    (
        _CHECKSUMS,
        ("udp-checksum-stale", "port-checksum-stale", "checksum-invented", "checksum-of-none", "mark-counted-twice",
         "restored-checksum-stale"),
    ),
    (
        _UNREAD,
        ("ack-request-of-trigger", "solicited-as-trigger", "pad-of-trigger", "source-port-of-trigger",
         "dscp-of-trigger", "mark-of-trigger", "ttl-of-trigger", "msn-not-kept", "msn-zero", "mark-kept"),
    ),
    (_NUMBERS, ("qp-of-responder",)),
    (_COVERED, ("ack-icrc-stale",)),
    (_MARKED, ("unmarked-restored",)),
    (_TAGS, ("tag-not-counted",)),
    (
        _HANDSHAKES,
        ("cm-not-copied", "cm-of-any-class", "cm-to-any-qp", "cm-by-any-port", "cm-swallowed", "cm-becomes-a-nack",
         "no-nack-beside-cm"),
    ),
)  # fmt: skip


def excuses(_: ThemisSpec) -> Mapping[str, str]:
    """By fault, or by module, why no search finds it."""
    return {name: reason for reason, names in _REASONS for name in names}
