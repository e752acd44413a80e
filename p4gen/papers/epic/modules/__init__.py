"""The IncEngine modules. Names are EPIC's (section 4.1) if EPIC has the module.

In addition to EPIC's: ValidatePacket and CheckIcrc keep corrupt packets from getting a recomputed, valid checksum,
SetIcrc makes its output acceptable to commodity NICs. TrackInvocation and ClassifyTraffic are the part of LookupTable
that depends on the collective; StartCursor, Retransmission and AdvanceCursor are EPIC's Retransmission, CheckOrder,
SendAck and MakeAck its SendAck, one for each stage of a pipeline. FindPosition, CheckMessages, StoreData, FoldData and
EmitMessage are what Mode I has of its own.
"""

from __future__ import annotations

from p4gen.papers.epic.modules.arrival import (
    CHECK_ICRC,
    CLASSIFY_TRAFFIC,
    FIND_CONTEXT,
    FIND_POSITION,
    LEARN_TAG,
    LOOKUP_TABLE,
    TRACK_INVOCATION,
    VALIDATE_PACKET,
)
from p4gen.papers.epic.modules.departure import (
    ADVANCE_CURSOR,
    ANSWER_ARP,
    COMBINE_ACKS,
    FORWARD,
    MAKE_ACK,
    REFLECT_ACK,
    SEND_ACK,
    SET_ICRC,
    TRANSLATE_HEADER,
)
from p4gen.papers.epic.modules.order import (
    CHECK_MESSAGES,
    CHECK_ORDER,
    CHECK_RANGE,
    COUNT_MESSAGES,
    FILTER_ORDER,
    NOTIFY_CONGESTION,
    RECEIVE_ACK,
    RELAY_NOTIFICATION,
    REPAIR_HOLES,
    RESEND_TIMER,
    START_CURSOR,
    TRACK_SENT,
)
from p4gen.papers.epic.modules.slots import (
    AGGREGATE_DATA,
    CHECK_DUPLICATE,
    EMIT_MESSAGE,
    FOLD_DATA,
    RECYCLE_BUFFER,
    REPLICATE_DATA,
    RETRANSMISSION,
    STORE_DATA,
)

__all__ = [
    "ADVANCE_CURSOR",
    "AGGREGATE_DATA",
    "ANSWER_ARP",
    "CHECK_DUPLICATE",
    "CHECK_ICRC",
    "CHECK_MESSAGES",
    "CHECK_ORDER",
    "CHECK_RANGE",
    "CLASSIFY_TRAFFIC",
    "COMBINE_ACKS",
    "COUNT_MESSAGES",
    "EMIT_MESSAGE",
    "FILTER_ORDER",
    "FIND_CONTEXT",
    "FIND_POSITION",
    "FOLD_DATA",
    "FORWARD",
    "LEARN_TAG",
    "LOOKUP_TABLE",
    "MAKE_ACK",
    "NOTIFY_CONGESTION",
    "RECEIVE_ACK",
    "RECYCLE_BUFFER",
    "REFLECT_ACK",
    "RELAY_NOTIFICATION",
    "REPAIR_HOLES",
    "REPLICATE_DATA",
    "RESEND_TIMER",
    "RETRANSMISSION",
    "SEND_ACK",
    "SET_ICRC",
    "START_CURSOR",
    "STORE_DATA",
    "TRACK_INVOCATION",
    "TRACK_SENT",
    "TRANSLATE_HEADER",
    "VALIDATE_PACKET",
]
