"""Faults of how SCIN's programs notice that a source's packets are missing."""

from __future__ import annotations

from functools import partial
from typing import Final

from p4gen.ptf.mutations import Mutation

_MODULE: Final = "NoticeGap"
_fault = partial(Mutation, module=_MODULE)
_NEXT: Final = "if (precedes(hdr.bth.psn, next) == 0) { next = hdr.bth.psn + 1; }"

FAULTS: Final = (
    _fault("gap-unnoticed", find="if (precedes(next, hdr.bth.psn) == 1) {", replace="if (false) {"),
    _fault("gap-without-end", find="announced = BOUNDED ++ hdr.bth.psn;", replace="announced = 0;"),
    _fault(
        "gap-behind-a-gap",
        find="meta.round.round_psn = next - ((next - meta.call.first) & WAVE_MASK);",
        replace="meta.round.round_psn = next;",
    ),
    _fault("gap-noticed-again", find=_NEXT, replace=""),
    _fault("late-packet-goes-back", find=_NEXT, replace="next = hdr.bth.psn + 1;"),
    _fault(
        "gap-of-everybody",
        find="meta.round.about = meta.lookup.edge_bit;\n            meta.round.announced",
        replace="meta.round.about = meta.flow.sources;\n            meta.round.announced",
    ),
    Mutation(
        "gap-forgotten-on-its-way",
        "Retransmission",
        "meta.round.announced = hdr.cursor.announced;",
        "meta.round.announced = 0;",
    ),
)
