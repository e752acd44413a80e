"""The queue pairs of a device."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from p4gen.errors import FailedError
from p4gen.host.device.codes import gid_text, path_mtu, retries, timeout_code
from p4gen.host.device.library import GID, QP, SGE, AHAttr, GlobalRoute, PyverbsError, QPAttr, RecvWR, SendWR, enums
from p4gen.host.device.memory import DeviceMemory, Held
from p4gen.host.transport.clock import Clock
from p4gen.host.transport.nicinfo import MTUS
from p4gen.host.transport.verbs import Completion, Operation, Peer, QpConfig, RecvWr, SendWr, Status
from p4gen.rocev2.headers import ip_text

STATUSES: Final = {
    enums.IBV_WC_SUCCESS: Status.SUCCESS,
    enums.IBV_WC_LOC_LEN_ERR: Status.LOCAL_LENGTH_ERROR,
    enums.IBV_WC_REM_INV_REQ_ERR: Status.REMOTE_INVALID_REQUEST,
    enums.IBV_WC_REM_ACCESS_ERR: Status.REMOTE_ACCESS_ERROR,
    enums.IBV_WC_REM_OP_ERR: Status.REMOTE_OPERATION_ERROR,
    enums.IBV_WC_RETRY_EXC_ERR: Status.RETRY_EXCEEDED,
    enums.IBV_WC_RNR_RETRY_EXC_ERR: Status.RNR_RETRY_EXCEEDED,
    enums.IBV_WC_WR_FLUSH_ERR: Status.FLUSHED,
}
"""What completions say; anything else is a bad response."""
_OPCODES: Final = {
    Operation.READ: enums.IBV_WR_RDMA_READ,
    Operation.FETCH_ADD: enums.IBV_WR_ATOMIC_FETCH_AND_ADD,
    Operation.COMPARE_SWAP: enums.IBV_WR_ATOMIC_CMP_AND_SWP,
}
_ACCESS: Final = (
    enums.IBV_ACCESS_LOCAL_WRITE
    | enums.IBV_ACCESS_REMOTE_WRITE
    | enums.IBV_ACCESS_REMOTE_READ
    | enums.IBV_ACCESS_REMOTE_ATOMIC
)
_RECEIVE: Final = 1
"""The bit of a work request's number on the device that says which queue it is of."""


class Home(Protocol):
    """The NIC of a pair."""

    memory: DeviceMemory
    gid_index: int
    mtu: int
    """The active MTU."""
    reads: int
    """READs that a queue pair may have outstanding, and remembers."""
    depth: int
    """Work requests that a queue of the device holds."""

    @property
    def clock(self) -> Clock:
        """The time."""
        ...

    def forget(self, serial: int) -> None:
        """Ignore what completes of a connection from now on."""


@dataclass(frozen=True)
class _Posted:
    """A work request on the device."""

    wr_id: int
    packets: int
    held: Held


class DevicePair:
    """One end of a connection (``p4gen.host.transport.rc.VerbsPair``).

    The device's queues hold few work requests, and it knows no limit of packets outstanding: others wait here. Messages
    are sent while ``max_outstanding`` packets at most are not acknowledged, but a message is never divided.
    """

    def __init__(
        self,
        nic: Home,
        qp: QP,
        serial: int,
        peer: Peer,
        config: QpConfig,
        on_completion: Callable[[Completion], None],
    ) -> None:
        """``serial`` is the connection's number, which is never used again."""
        self.number: int = qp.qp_num
        self.peer, self.config, self.clock = peer, config, nic.clock
        self.qp, self.serial = qp, serial
        self.broken: Status | None = None
        self._nic, self._on_completion = nic, on_completion
        self._mtu = path_mtu(config.mtu, nic.mtu)
        self._sends: deque[_Posted] = deque()
        self._receives: deque[_Posted] = deque()
        self._later_sends: deque[SendWr] = deque()
        self._later_receives: deque[RecvWr] = deque()
        self._outstanding = 0
        """Packets on the device that are not acknowledged."""
        self._sent = 0
        self._flushed: list[_Posted] = []
        """Work requests of a broken pair, whose memory the device may still use."""
        try:
            qp.to_rts(self._attributes())
        except PyverbsError as error:
            qp.modify(QPAttr(qp_state=enums.IBV_QPS_RESET), enums.IBV_QP_STATE)
            far = ip_text(peer.ip)
            raise FailedError(
                f"queue pair {self.number} cannot be connected with {far}: {error}; is there a route and a neighbour?"
            ) from None

    def _attributes(self) -> QPAttr:
        nic, config = self._nic, self.config
        route = GlobalRoute(dgid=GID(gid_text(self.peer.ip)), sgid_index=nic.gid_index, hop_limit=64)
        found = QPAttr(port_num=1)
        found.qp_access_flags = _ACCESS
        found.path_mtu, found.dest_qp_num = 1 + MTUS.index(self._mtu), self.peer.qp
        found.sq_psn, found.rq_psn = config.initial_psn, config.received_psn
        found.timeout, found.min_rnr_timer = timeout_code(config.timeout_ps), config.rnr_timer
        found.retry_cnt, found.rnr_retry = retries(config.retry_count), retries(config.rnr_retry)
        found.max_rd_atomic = min(config.max_rd_atomic, nic.reads)
        found.max_dest_rd_atomic = min(config.max_dest_rd_atomic, nic.reads)
        found.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
        return found

    def counts(self) -> Mapping[str, int]:
        """The packets of messages ``sent`` (``VerbsPair.counts``); a device counts the rest for all its pairs."""
        return {"sent": self._sent, "resent": 0, "timeouts": 0, "naks": 0, "cnps": 0}

    def post_send(self, wr: SendWr) -> None:
        """Post a SEND, a WRITE, a READ or an atomic operation (``VerbsPair.post_send``).

        On a path MTU that is longer than the configuration's MTU, a longer message would be divided elsewhere: it
        breaks the pair with a local length error.
        """
        data = memoryview(wr.data)
        if self.broken is not None:
            self._on_completion(Completion(wr.wr_id, Status.FLUSHED))
            return
        if wr.operation is not None and (data.readonly or (wr.operation is not Operation.READ and data.nbytes != 8)):
            raise ValueError(f"a response to {wr.operation} cannot be stored in what is given as data")
        self._later_sends.append(wr)
        if data.nbytes > self.config.mtu != self._mtu:
            self.fail(Status.LOCAL_LENGTH_ERROR)
        else:
            self._push_sends()

    def post_recv(self, wr: RecvWr) -> None:
        """Post a buffer for a message."""
        if self.broken is not None:
            self._on_completion(Completion(wr.wr_id, Status.FLUSHED, True))
            return
        self._later_receives.append(wr)
        self._push_receives()

    def fail(self, status: Status) -> None:
        """Break the pair: its oldest send ends with ``status``, everything else is flushed."""
        if self.broken is None:
            self._end(status, [])

    def completed(self, receive: bool, status: Status, length: int, immediate: int | None) -> None:
        """The oldest work request of a queue is complete."""
        posted = (self._receives if receive else self._sends).popleft()
        if status is not Status.SUCCESS:
            self._end(status, [Completion(posted.wr_id, status, receive)])
            return
        if receive:
            self._push_receives()
        else:
            self._outstanding -= posted.packets
        self._on_completion(Completion(posted.wr_id, status, receive, length, immediate))
        if not receive and self.broken is None:
            self._push_sends()

    def reset(self) -> None:
        """Let go of the device's queue pair, and of all memory. What was posted is forgotten; what is posted later is
        flushed."""
        self.qp.modify(QPAttr(qp_state=enums.IBV_QPS_RESET), enums.IBV_QP_STATE)
        self.broken = self.broken or Status.FLUSHED
        self._flushed.clear()
        for queue in (self._sends, self._receives, self._later_sends, self._later_receives):
            queue.clear()

    def _end(self, status: Status, first: list[Completion]) -> None:
        """Break the pair. ``first`` is what the device has completed with an error, if anything."""
        self.broken = status
        self._nic.forget(self.serial)
        self.qp.modify(QPAttr(qp_state=enums.IBV_QPS_ERR), enums.IBV_QP_STATE)
        sends = [*(each.wr_id for each in self._sends), *(wr.wr_id for wr in self._later_sends)]
        receives = [*(each.wr_id for each in self._receives), *(wr.wr_id for wr in self._later_receives)]
        self._flushed += [*self._sends, *self._receives]
        for queue in (self._sends, self._receives, self._later_sends, self._later_receives):
            queue.clear()
        ends = first + [Completion(wr_id, Status.FLUSHED) for wr_id in sends]
        if sends and not first:
            ends[0] = Completion(sends[0], status)
        for completion in (*ends, *(Completion(wr_id, Status.FLUSHED, True) for wr_id in receives)):
            self._on_completion(completion)

    def _push_sends(self) -> None:
        """Give the device the sends that wait, as far as it may have them."""
        waiting, limit = self._later_sends, self.config.max_outstanding
        while waiting and len(self._sends) < self._nic.depth:
            wr = waiting[0]
            packets = max(1, -(-len(wr.data) // self._mtu))
            if self._sends and self._outstanding + packets > limit:
                return
            posted = _Posted(wr.wr_id, packets, self._nic.memory.hold(wr.data))
            self.qp.post_send(self._request(wr, posted.held))
            waiting.popleft()
            self._sends.append(posted)
            self._outstanding += packets
            self._sent += packets if wr.operation is None else 1

    def _push_receives(self) -> None:
        waiting = self._later_receives
        while waiting and len(self._receives) < self._nic.depth:
            wr = waiting.popleft()
            held = self._nic.memory.hold(wr.buffer)
            self.qp.post_recv(RecvWR(wr_id=self.serial << 1 | _RECEIVE, num_sge=1, sg=[_element(held)]))
            self._receives.append(_Posted(wr.wr_id, 0, held))

    def _request(self, wr: SendWr, held: Held) -> SendWR:
        plain = enums.IBV_WR_SEND, enums.IBV_WR_SEND_WITH_IMM
        kinds = plain if wr.rkey is None else (enums.IBV_WR_RDMA_WRITE, enums.IBV_WR_RDMA_WRITE_WITH_IMM)
        found = SendWR(
            wr_id=self.serial << 1,
            num_sge=1,
            sg=[_element(held)],
            opcode=kinds[wr.immediate is not None] if wr.operation is None else _OPCODES[wr.operation],
            send_flags=enums.IBV_SEND_SIGNALED | (enums.IBV_SEND_SOLICITED if wr.solicited else 0),
            imm_data=socket.htonl(wr.immediate or 0),
        )
        if wr.operation is Operation.FETCH_ADD:
            found.set_wr_atomic(wr.rkey, wr.remote_address, wr.swap_or_add, 0)
        elif wr.operation is Operation.COMPARE_SWAP:
            found.set_wr_atomic(wr.rkey, wr.remote_address, wr.compare, wr.swap_or_add)
        elif wr.rkey is not None:
            found.set_wr_rdma(wr.rkey, wr.remote_address)
        return found


def _element(held: Held) -> SGE:
    return SGE(held.address, held.size, held.key)
