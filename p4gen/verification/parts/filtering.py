"""The duties of a switch toward a host whose NAKs it filters: which NAKs pass, which do not, and which the switch sends
itself. Timers repair a switch's errors, so no result would show them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, Final

from typing_extensions import override

from p4gen.rocev2.layouts import ROCE, ROCE_ANSWER
from p4gen.rocev2.opcodes import Nak, Opcode
from p4gen.rocev2.psn import add, diff
from p4gen.verification.parts.monitors import Monitor, Sent, is_data

_OPCODE_AT: Final = ROCE.at("bth.opcode")
_PSN: Final = ROCE.bytes("bth.psn")
_DEST_QP: Final = ROCE.bytes("bth.dest_qp")
_SYNDROME_AT: Final = ROCE_ANSWER.at("aeth.syndrome")
_NAK: Final = Nak().syndrome
_ANSWER: Final = Opcode.ACKNOWLEDGE
_NONE: Final = -1


@dataclass(frozen=True)
class _Path:
    """The packets that have arrived over one path."""

    newest: int
    gap: int
    """The newest PSN of the last gap, until that packet arrives; ``_NONE`` without a gap."""


@dataclass(frozen=True)
class _Flow:
    """The packets of one connection that have arrived. Unknown PSNs are ``_NONE``."""

    came: tuple[int, ...] = ()
    """PSNs in the order of their arrival, each once."""
    again: tuple[int, ...] = ()
    """PSNs that have arrived more than once, the smallest first."""
    late: int = _NONE
    """The newest PSN that has arrived after a larger one."""
    unsure: int = _NONE
    """For PSNs up to this one, a summary does not say whether they have arrived."""
    paths: tuple[tuple[int, int, int], ...] = ()
    """By path: its number, and the fields of ``_Path``."""
    blocked: int = _NONE
    """The PSN of the last NAK if that was blocked because the packet may still arrive."""
    link: int = _NONE
    """The link over which answers leave."""


class Filtered(Monitor):
    """A NAK for a packet that has arrived, or may still arrive, is blocked. A NAK for a lost packet passes. The packets
    that have arrived decide which case it is, because paths keep order:

    * if a later packet of the same path has arrived and this one has not, it is lost on its path;
    * if it has arrived before all larger ones, it is lost behind the switch;
    * if it has arrived after a larger one, it was late;
    * else it may still arrive. The switch remembers the last NAK. When a later packet of the same path arrives, and
      neither the missing one nor an acknowledgement of it has, the switch sends the NAK itself, once.

    A switch that is not ``exact`` keeps a summary of the packets that have arrived. There, a NAK for a packet that
    arrived after a larger one may pass in two cases: the packet is older than the first that arrived, or it is not
    newer than a gap on a path that has had another gap since. And a NAK for a packet that is lost behind the switch is
    blocked if a newer one was late.

    All answers of a connection leave over the same link. Both ends of a connection must have the same QP number, and no
    packet may be delayed or corrupted.
    """

    first: Hashable = ()
    excused = False

    def __init__(self, paths: int, *, exact: bool) -> None:
        self._paths = paths
        """PSNs take paths in turn, and paths keep order."""
        self._exact = exact

    @override
    def step(self, record: Any, port: int, arrived: Sequence[bytes], sent: Sent) -> tuple[Hashable, str]:
        known = {qp: _Flow(*rest) for qp, *rest in record}
        problem = ""
        for frame in arrived:
            qp, psn = int.from_bytes(frame[_DEST_QP]), int.from_bytes(frame[_PSN])
            answers = [(link, each) for link, frames in sent for each in frames if each[_OPCODE_AT] == _ANSWER]
            naks = [int.from_bytes(each[_PSN]) for _, each in answers if each[_SYNDROME_AT] == _NAK]
            flow, wrong = known.get(qp, _Flow()), ""
            if is_data(frame):
                flow, wrong = self._take(flow, psn, naks)
            elif frame[_OPCODE_AT] == _ANSWER and frame[_SYNDROME_AT] == _NAK:
                flow, wrong = self._judge(flow, psn, naks)
            elif frame[_OPCODE_AT] == _ANSWER and flow.blocked != _NONE and diff(psn, flow.blocked) >= 0:
                flow = replace(flow, blocked=_NONE)
            for link, _ in answers:
                if flow.link not in (_NONE, link):
                    wrong = wrong or "answers of a connection leave over two links"
                flow = replace(flow, link=link)
            known[qp] = flow
            problem = problem or wrong
        return tuple((qp, *astuple(known[qp])) for qp in sorted(known)), problem

    @override
    def waits(self, record: Any) -> bool:
        return False

    def _take(self, flow: _Flow, psn: int, naks: Sequence[int]) -> tuple[_Flow, str]:
        """A packet arrives; ``naks`` are the PSNs of the NAKs that the switch sends."""
        ahead = _NONE if flow.blocked == _NONE else diff(psn, flow.blocked)
        due = [flow.blocked] if ahead > 0 and ahead % self._paths == 0 else []
        wrong = ""
        if list(naks) != due:
            if due and not naks:
                wrong = f"PSN {psn:#x} shows that PSN {due[0]:#x} is lost, and no NAK says so"
            else:
                named = ", ".join(f"PSN {each:#x}" for each in naks)
                wrong = f"sends NAKs for {named}, where {len(due)} should be sent"
        return replace(self._receive(flow, psn), blocked=_NONE if due or not ahead else flow.blocked), wrong

    def _receive(self, flow: _Flow, psn: int) -> _Flow:
        paths = {number: _Path(*rest) for number, *rest in flow.paths}
        before, late, unsure = paths.get(psn % self._paths), flow.late, flow.unsure
        if not flow.came:
            late = unsure = add(psn, -1)
        if any(diff(each, psn) > 0 for each in flow.came):
            late = _newest(late, psn)
        if before is None:
            after = _Path(psn, add(psn, -self._paths))
        elif (ahead := diff(psn, before.newest)) <= 0:
            after = replace(before, gap=_NONE) if psn == before.gap else before
        elif ahead == self._paths:
            after = replace(before, newest=psn)
        else:
            after = _Path(psn, add(psn, -self._paths))
            unsure = unsure if before.gap == _NONE else _newest(unsure, before.gap)
        paths[psn % self._paths] = after
        return replace(
            flow,
            came=flow.came if psn in flow.came else (*flow.came, psn),
            again=tuple(sorted({*flow.again, psn})) if psn in flow.came else flow.again,
            late=late,
            unsure=unsure,
            paths=tuple((number, *astuple(paths[number])) for number in sorted(paths)),
        )

    def _judge(self, flow: _Flow, psn: int, naks: Sequence[int]) -> tuple[_Flow, str]:
        """The host asks for a packet; ``naks`` are the PSNs of the NAKs that the switch sends."""
        flow = replace(flow, blocked=_NONE)
        if list(naks) not in ([], [psn]):
            return flow, f"the NAK for PSN {psn:#x} leaves as another one"
        larger = [each for each in flow.came if diff(each, psn) > 0]
        if not larger:
            return flow, ""
        if psn in flow.came:
            overtaken = any(each in larger for each in flow.came[: flow.came.index(psn)])
            if overtaken and naks and (self._exact or diff(psn, flow.unsure) > 0):
                return flow, f"PSN {psn:#x} has come after a larger one, and the NAK for it passes"
            sure = psn not in flow.again if self._exact else diff(psn, flow.late) > 0
            if not overtaken and sure and not naks:
                return flow, f"PSN {psn:#x} is lost behind the switch, and the NAK for it does not pass"
            return flow, ""
        if any(diff(each, psn) % self._paths == 0 for each in larger):
            return flow, "" if naks else f"PSN {psn:#x} is lost, and the NAK for it does not pass"
        if naks:
            return flow, f"PSN {psn:#x} may still come, and the NAK for it passes"
        return replace(flow, blocked=psn), ""


def _newest(one: int, other: int) -> int:
    return one if diff(one, other) >= 0 else other
