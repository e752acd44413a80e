"""The configuration of a rank's CommLib for a group: the hosts' counterpart of a switch's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from p4gen.errors import InputError
from p4gen.groups.psns import stream_psn
from p4gen.host.collectives.plan import ChannelKey, Connection, Flow, GroupConfig, PsnSync
from p4gen.host.transport.dcqcn import DcqcnConfig
from p4gen.host.transport.nicinfo import NicNeeds
from p4gen.host.transport.verbs import RECOVERIES, Peer, QpConfig, Recovery
from p4gen.vocabulary import CollectiveSpec, ServingSpec
from p4gen.vocabulary.collective import Reliability

ACK_EVERY: Final = 32
RING_OUTSTANDING: Final = 64
"""Packets that a connection of a ring may have outstanding."""

_RECOVERY: Final = {
    Reliability.GBN: Recovery.GO_BACK_N,
    Reliability.SR: Recovery.SELECTIVE_REPEAT,
    Reliability.SACK: Recovery.IDEAL,
}


def recovery_of(spec: CollectiveSpec) -> Recovery:
    """The NICs' recovery on trees of this program: that of the switches, so that both ends use the same answers."""
    return _RECOVERY[spec.loss_recovery]


def ring_needs(program: ServingSpec) -> NicNeeds:
    """What a ring with the packets of a program asks of NICs."""
    return NicNeeds(program.payload_bytes, RING_OUTSTANDING, recovery=Recovery.GO_BACK_N, outstanding=RING_OUTSTANDING)


def host_config(
    spec: CollectiveSpec,
    rank: int,
    size: int,
    channels: Mapping[ChannelKey, tuple[int, Peer]],
    first_psn: int,
    sync: PsnSync,
    *,
    timeout_ps: int,
    ack_every: int = ACK_EVERY,
    recovery: Recovery | None = None,
    retry_count: int | None = None,
    dcqcn: DcqcnConfig | None = None,
    pace: int | None = None,
    flow: Flow = Flow.RESULTS,
    adaptive: bool = False,
    window: int | None = None,
    priority: int = 0,
) -> GroupConfig:
    """CommLib's configuration for a rank of a group on switches that run ``spec``; ``channels`` are (QP, far end).

    ``timeout_ps`` 0 switches the timer off, and ``adaptive`` makes it follow the round trips. ``recovery`` is by
    default the one that the program wants. A ``retry_count`` of None never gives up. ``window`` is the number of
    messages that may be outstanding, by default the program's W; a test gives another one to a rank that ignores W.

    Raises ``InputError`` where NICs with this ``recovery`` would send NAKs that the switches do not understand.
    """
    recovery = recovery or recovery_of(spec)
    if recovery not in RECOVERIES:
        raise InputError(f"recovery {recovery} is for connections between hosts: results come from switches")
    known = spec.loss_recovery.selective_naks
    selective_naks = recovery is Recovery.IDEAL and (spec.terminates or known)
    if selective_naks and not known:
        # Such a switch takes a NAK for an ACK of all before it, and frees slots that are still needed.
        raise InputError(
            f"recovery ideal needs switches that know selective NAKs (reliability sack); {spec.program} is of"
            f" reliability {spec.loss_recovery}"
        )
    if spec.terminates and known and recovery is not Recovery.IDEAL:
        raise InputError(
            f"recovery {recovery} takes a selective NAK for a bad response: switches of {spec.program} send them"
            " (reliability sack); use --reliability sr"
        )
    qp = QpConfig(
        mtu=spec.payload_bytes,
        initial_psn=first_psn,
        recovery=recovery,
        # EPIC's flow control (§4.2): at most W messages of M packets, or slots would be overwritten.
        max_outstanding=(window or spec.window) * spec.message,
        ack_every=ack_every,
        timeout_ps=timeout_ps,
        adaptive=adaptive,
        retry_count=retry_count,
        rnr_retry=None,
        dcqcn=dcqcn,
        pace=pace,
        selective_naks=selective_naks,
        priority=priority,
    )
    return GroupConfig(
        rank,
        size,
        {key: Connection(number, peer, _between(spec, qp, number, peer)) for key, (number, peer) in channels.items()},
        window or spec.window,
        spec.message,
        spec.dtype,
        spec.op,
        spec.overflow,
        sync,
        flow,
        hop_by_hop=spec.terminates,
        roots=spec.roots,
        ring=spec.ring,
        channel_memory=spec.channel_memory,
    )


def _between(spec: CollectiveSpec, qp: QpConfig, number: int, peer: Peer) -> QpConfig:
    """The configuration of a rank's queue pair ``number``, connected to ``peer``."""
    if not spec.own_psns:
        return qp
    sent = stream_psn(number, peer.qp, qp.initial_psn)
    return replace(qp, initial_psn=sent, rq_psn=stream_psn(peer.qp, number, qp.initial_psn))
