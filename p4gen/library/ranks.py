"""``p4gen.join``: a rank of a group in one's own process, with NumPy arrays."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Any, Final, Literal, TypeVar

import numpy as np

from p4gen.errors import FailedError, InputError
from p4gen.host.collectives.arrays import Array, array_type, divide, dtype_of
from p4gen.host.collectives.plan import GroupConfig
from p4gen.host.collectives.quantised import Blocks, Fixed, check_quantised
from p4gen.library.stations import Station
from p4gen.manager.api import GroupSpec
from p4gen.manager.ranks.member import Member
from p4gen.manager.ranks.peers import Card, Peers
from p4gen.vocabulary import DType, Op, ProgramSpec
from p4gen.vocabulary.message import Collective

Scale = Literal["auto"] | float | None
T = TypeVar("T")
U = TypeVar("U")
_LEAVING_S: Final = 10.0
"""Seconds for which a rank that leaves waits for the others."""


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class _Call:
    collective: Collective
    values: Array
    root: int
    op: Op | None
    scale: Scale
    timeout: float | None


class Communicator:
    """One rank of a group. All ranks make the same calls of collectives, in the same order.

    The six collectives, ``all_to_all``, ``send`` and ``receive`` wait for the result; the methods ``begin…`` return
    futures. A future's arguments must not be changed before it is done. All raise ``InputError`` for a call that the
    group cannot make, and ``FailedError`` when the group has ended, a connection has failed, or ``timeout`` seconds
    have passed (None: no limit). Over connections between ranks that is a ``TimeoutError``, after which they cannot be
    used. While the manager moves a group to another tree, calls take longer, and do not fail.

    Reductions take elements that the program on the switches adds. Floating-point numbers on a program that adds
    integers need a ``scale``: ``"auto"`` has all ranks agree on an exponent for each 256 numbers
    (``p4gen.host.collectives.quantised.Blocks`` has the bound of the error), a number is a fixed factor. What only
    moves data takes elements of any type.
    """

    def __init__(self, station: Station, member: Member, ranks: Sequence[str], *, owned: bool) -> None:
        assert member.rank is not None
        self.name, self.rank, self.ranks = member.group, member.rank, tuple(ranks)
        self.saturated = 0
        """Number of this rank's numbers that a fixed scale has saturated."""
        self._station, self._member = station, member
        self._orders = ThreadPoolExecutor(1, f"{self.name} calls")
        """Makes the calls in order; those of quantised numbers are several calls of the group."""
        self._waiting = 0
        """Calls that wait in ``_orders``, or are being made there."""
        self._lock = threading.Lock()
        self._results = ThreadPoolExecutor(1, f"{self.name} results")
        self._closed = False
        self._owned = owned
        """Whether the group ends when its ranks leave."""
        self._peers = self._connect()

    @property
    def size(self) -> int:
        """The number of ranks."""
        return len(self.ranks)

    @property
    def spec(self) -> ProgramSpec:
        """The program on the group's switches."""
        spec = self._member.spec
        assert spec is not None
        return spec

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of elements that the program reduces; int32 if it leaves the choice to calls."""
        return array_type(DType.INT32 if self._program.op is Op.DYNAMIC else self._program.dtype)

    @property
    def payload(self) -> int:
        """Bytes of a packet's payload."""
        return self._program.packet

    @property
    def dropped(self) -> Mapping[str, int]:
        """Number of frames that this host's NIC has dropped, by reason."""
        return self._member.report().dropped

    def report(self) -> Counter[str]:
        """Counters of this rank's queue pairs on trees and rings: packets ``sent`` and ``resent``, ``timeouts``,
        ``naks``."""
        report = self._member.report()
        return Counter({name: getattr(report, name) for name in ("sent", "resent", "timeouts", "naks")})

    def reduces(self, dtype: Any, op: str) -> bool:
        """Whether the group can reduce elements of a NumPy type, with a scale if need be."""
        program, reduction = self._program, _known(Op, op, "op")
        if self.quantises(dtype):
            return reduction is Op.SUM and program.op in (Op.SUM, Op.DYNAMIC)
        try:
            program.kind(dtype_of(np.empty(0, dtype)), reduction)
        except InputError:
            return False
        return True

    def quantises(self, dtype: Any) -> bool:
        """Whether reductions of elements of a NumPy type need a scale."""
        return np.issubdtype(dtype, np.floating) and self._program.dtype.number_format.integer

    # --- collectives ---

    def all_reduce(
        self, values: Array, op: str | None = None, *, scale: Scale = None, timeout: float | None = None
    ) -> Array:
        """The reduction of all ranks' values, in their shape and type. ``op`` is ``sum``, ``min`` or ``max``; without
        it, the program's own, or ``sum`` if it has all."""
        return _array(self.begin("allreduce", values, op=op, scale=scale, timeout=timeout))

    def reduce(
        self, values: Array, root: int, op: str | None = None, *, scale: Scale = None, timeout: float | None = None
    ) -> Array | None:
        """The reduction at rank ``root``, None elsewhere."""
        return self.begin("reduce", values, root, op=op, scale=scale, timeout=timeout).result()

    def broadcast(self, values: Array, root: int, *, timeout: float | None = None) -> Array:
        """The root's values; at other ranks ``values`` gives only shape and type."""
        return _array(self.begin("broadcast", values, root, timeout=timeout))

    def reduce_scatter(
        self, values: Array, op: str | None = None, *, scale: Scale = None, timeout: float | None = None
    ) -> Array:
        """This rank's part of the reduction, in one dimension: values are divided evenly, in order of rank."""
        return _array(self.begin("reducescatter", values, op=op, scale=scale, timeout=timeout))

    def all_gather(self, values: Array, *, timeout: float | None = None) -> Array:
        """All ranks' values in order of rank, in one dimension. All have the same size."""
        return _array(self.begin("allgather", values, timeout=timeout))

    def barrier(self, *, timeout: float | None = None) -> None:
        """Return at no rank before all have called it."""
        self.begin("barrier", timeout=timeout).result()

    def all_to_all(self, values: Array, *, timeout: float | None = None) -> Array:
        """The parts that all ranks have for this one, in order of rank and in one dimension: values are divided evenly.
        Raises ``TimeoutError`` after ``timeout`` seconds."""
        parts = divide(values, self.size)
        rooms = [np.empty_like(part) for part in parts]
        self.begin_exchange(parts, rooms).result(timeout)
        return np.concatenate(rooms)

    def begin(
        self,
        collective: str,
        values: Array | None = None,
        root: int = 0,
        *,
        op: str | None = None,
        scale: Scale = None,
        timeout: float | None = None,
    ) -> Future[Array | None]:
        """Begin ``allreduce``, ``reduce``, ``broadcast``, ``reducescatter``, ``allgather`` or ``barrier``. The
        future's result is this rank's, None if there is none. ``values`` must stay as they are until it is done."""
        chosen = _known(Collective, collective, "collective")
        reduction = None if op is None else _known(Op, op, "op")
        array = np.zeros(0) if values is None else np.asarray(values)
        call = _Call(chosen, array, root, reduction, scale, timeout)
        return self._later(lambda future: self._begin(future, call), waits=scale == "auto")

    def begin_exchange(self, send: Sequence[Array], receive: Sequence[Array]) -> Future[None]:
        """Send ``send[r]`` to each rank r, and fill ``receive[r]`` with what that rank sends: parts of any sizes, which
        both ends have to know. Rooms must be contiguous."""
        if len(send) != self.size or len(receive) != self.size:
            raise InputError(f"an exchange of {self.size} ranks has as many parts")
        if send[self.rank].nbytes != receive[self.rank].nbytes:
            raise InputError("a rank's part for itself has the size of its room")
        peers = self._connected()

        def begin(future: Future[None]) -> None:
            _bytes(receive[self.rank])[:] = _bytes(np.ascontiguousarray(send[self.rank]))
            outgoing = {rank: _bytes(np.ascontiguousarray(part)) for rank, part in enumerate(send) if rank != self.rank}
            incoming = {rank: _bytes(room) for rank, room in enumerate(receive) if rank != self.rank}
            self._hand_over(peers.exchange(outgoing, incoming), future)

        return self._later(begin)

    # --- messages ---

    def send(self, values: Array, to: int, tag: int = 0, *, timeout: float | None = None) -> None:
        """Send values to a rank, and return when it has them. Raises ``TimeoutError`` after ``timeout`` seconds."""
        self.begin_send(values, to, tag).result(timeout)

    def receive(self, room: Array, source: int, tag: int = 0, *, timeout: float | None = None) -> None:
        """Fill ``room``, which must be contiguous, with the next message of a rank. Messages of a rank come in the
        order in which it has sent them. Raises ``FailedError`` if this one has another size or another tag,
        ``TimeoutError`` after ``timeout`` seconds."""
        self.begin_receive(room, source, tag).result(timeout)

    def begin_send(self, values: Array, to: int, tag: int = 0) -> Future[None]:
        """Begin to send; the future is done when the rank has the values."""
        self._check_other(to)
        return self._hand_over(self._connected().send(to, _bytes(np.ascontiguousarray(values)), tag), Future())

    def begin_receive(self, room: Array, source: int, tag: int = 0) -> Future[None]:
        """Begin to receive; the future is done when ``room`` has the message."""
        self._check_other(source)
        return self._hand_over(self._connected().receive(source, _bytes(room), tag), Future())

    # --- other ranks ---

    def shrink(self, timeout: float = 60.0) -> tuple[str, ...]:
        """Go on without the ranks that have gone away; calls fail until all others have called this. Returns the hosts
        that were left out. Ranks keep their order, and get numbers from 0 on; calls that had ended stay so.

        Only of a group that was created ``elastic``. Raises ``FailedError`` after ``timeout`` seconds, in which no rank
        has gone away, or others have not called it.
        """
        before = self.ranks
        self._change(timeout, lambda spec: [rank for rank in spec.ranks if rank not in spec.gone] if spec.gone else ())
        return tuple(rank for rank in before if rank not in self.ranks)

    def grow(self, hosts: Sequence[str], timeout: float = 60.0) -> None:
        """Take hosts in as further ranks, the last ones. All ranks call this; the hosts call ``p4gen.join`` without
        ranks. Raises ``FailedError`` after ``timeout`` seconds."""
        self.barrier(timeout=timeout)
        self._change(timeout, lambda spec: (*spec.ranks, *hosts))

    def _change(self, timeout: float, wanted: Callable[[GroupSpec], Sequence[str]]) -> None:
        if self._closed:
            raise FailedError(f"this rank has left group {self.name}")
        self.ranks = self._station.change(self._member, time.monotonic() + timeout, wanted)
        assert self._member.rank is not None
        self.rank = self._member.rank
        peers = self._peers
        if peers is not None:
            self._station.loop.run_there(lambda: peers.end(f"group {self.name} has other ranks"))
        self._peers = self._connect()

    # --- the end ---

    def close(self) -> None:
        """Leave the group, when all ranks do. Others have ``_LEAVING_S`` seconds to come to this point."""
        self._close(orderly=True)

    def abandon(self) -> None:
        """Leave the group at once, as a rank that has failed: the calls of the others fail, too."""
        self._close(orderly=False)

    def __enter__(self) -> Communicator:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._close(orderly=kind is None)

    def _close(self, *, orderly: bool) -> None:
        if self._closed:
            return
        self._closed = True
        if orderly:
            with contextlib.suppress(FailedError):  # others may have left already, and the group with them
                self._member.barrier(_LEAVING_S)
                if self._owned:
                    self._station.leave(self._member, _LEAVING_S)
        with contextlib.suppress(FailedError):  # the loop has ended
            self._station.loop.run_there(lambda: self._member.end(f"{self.ranks[self.rank]} has left"))
        self._orders.shutdown()
        self._results.shutdown()
        self._station.release(self.name if self._owned and not orderly else "")

    # --- calls, in the thread that makes them ---

    def _begin(self, future: Future[Array | None], call: _Call) -> None:
        values, size = call.values, self.size
        match call.collective:
            case Collective.BARRIER:
                self._make(future, call, lambda _: None)
            case Collective.BROADCAST:
                self._make(future, replace(call, values=self._words(values)), partial(_restored, like=values))
            case Collective.ALLGATHER:
                after = partial(_restored_rows, like=values, rows=size)
                self._make(future, replace(call, values=self._words(values)), after)
            case _ if self.quantises(values.dtype):
                self._begin_quantised(future, call)
            case _ if call.scale is not None:
                raise InputError(f"the program adds {dtype_of(values)} itself, and needs no scale")
            case _:
                self._make(future, call, lambda value: value)

    def _begin_quantised(self, future: Future[Array | None], call: _Call) -> None:
        dtype, values = self._program.dtype, call.values
        if call.op not in (None, Op.SUM):
            raise InputError(f"op {call.op}: of {values.dtype}, a program that adds {dtype} has only sums")
        if call.scale is None:
            raise InputError(f"the program adds {dtype}: for {values.dtype} give a scale, 'auto' or a factor")
        check_quantised(dtype, self.size)
        self._program.kind(dtype, Op.SUM)
        scattered = call.collective is Collective.REDUCE_SCATTER
        parts = divide(values, self.size) if scattered else [values.reshape(-1)]
        mine = self.rank if scattered else 0
        number: Callable[[Array], Array]
        if call.scale == "auto":
            blocks = Blocks(dtype, self.size)
            codes = [blocks.codes(part) for part in parts]
            agreed = self._agreed(np.concatenate(codes), call.timeout).reshape(len(parts), -1)
            quantised = [blocks.quantise(part, codes) for part, codes in zip(parts, agreed, strict=True)]
            number = partial(blocks.numbers, codes=agreed[mine], kind=values.dtype)
        else:
            fixed = Fixed(dtype, self.size, call.scale)
            quantised = [fixed.quantise(part) for part in parts]
            number = partial(fixed.numbers, kind=values.dtype)
        self.saturated += sum(part.saturated for part in quantised)
        elements = np.concatenate([part.elements for part in quantised])
        shape = parts[mine].shape if scattered else values.shape

        def after(total: Array | None) -> Array | None:
            return None if total is None else number(total).reshape(shape)

        self._make(future, replace(call, values=elements, op=Op.SUM), after)

    def _agreed(self, codes: Array, timeout: float | None) -> Array:
        """The greatest of all ranks' exponent codes. Every rank adds its own to zeros in its place, so that the sum has
        all ranks' codes: an AllReduce waits for late ranks without sending anything again, as an AllGather would."""
        own = self._words(codes)
        every = np.zeros((self.size, own.size), own.dtype)
        every[self.rank] = own
        total = self._member.begin(Collective.ALLREDUCE, every, 0, Op.SUM, timeout).result().value
        most: Array = total.view(np.uint8).reshape(self.size, -1)[:, : codes.size].max(axis=0)
        return most

    def _make(self, future: Future[Array | None], call: _Call, after: Callable[[Any], Array | None]) -> None:
        """Make a call of the group; ``after`` makes the future's result of this rank's.

        A rank that has not called Broadcast yet refuses its packets. In Mode III the switch then sends them again at a
        tick, which is long, so a Barrier goes first. An AllReduce has no result before all have called it.
        """
        if self._program.hop_by_hop and call.collective not in (Collective.ALLREDUCE, Collective.BARRIER):
            self._member.begin(Collective.BARRIER)
        begun = self._member.begin(call.collective, call.values, call.root, call.op, call.timeout)
        self._hand_over(begun, future, lambda result: after(result.value))

    def _hand_over(self, done: Future[T], future: Future[U], after: Callable[[T], U] = _same) -> Future[U]:
        """End ``future`` when ``done`` has ended, with what ``after`` makes of its result: in a thread of its own, as
        the loop must not wait for it."""

        def settle() -> None:
            try:
                future.set_result(after(done.result()))
            except Exception as error:
                future.set_exception(error)

        done.add_done_callback(lambda _: self._results.submit(settle))
        return future

    def _later(self, begin: Callable[[Future[T]], None], *, waits: bool = False) -> Future[T]:
        """A future that ``begin`` gets, after the calls before. ``waits``: ``begin`` waits for other ranks."""
        if self._closed:
            raise FailedError(f"this rank has left group {self.name}")
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()

        def run() -> None:
            try:
                begin(future)
            except Exception as error:
                future.set_exception(error)

        def run_there() -> None:
            run()
            with self._lock:
                self._waiting -= 1

        with self._lock:
            if self._waiting or waits:
                self._waiting += 1
                self._orders.submit(run_there)
            else:
                run()
        return future

    @property
    def _program(self) -> GroupConfig:
        program = self._member.program
        assert program is not None
        return program

    def _words(self, values: Array) -> Array:
        """Values of any type as elements of the program, filled up with zeros."""
        kind = self.dtype
        words = np.zeros(-(-values.nbytes // kind.itemsize), kind)
        words.view(np.uint8)[: values.nbytes] = _bytes(np.ascontiguousarray(values))
        return words

    # --- connections ---

    def _connect(self) -> Peers | None:
        """Connections to all other ranks; None if the program has no AllGather, with which ranks tell each other how
        they are reached."""
        if self.size == 1 or Collective.ALLGATHER not in self._program.served():
            return None
        station = self._station
        card = Card.drawn(station.nic, self.rank, self.size, station.addresses.ip, owner=self._owned)
        cards = Card.all_in(self.all_gather(card.array), self.size)
        self._owned = any(card.owner for card in cards)
        peers = Peers(station.nic, self.rank, station.addresses.gateway, cards, self.ranks)
        station.loop.run_there(lambda: self._member.add_end(peers.end))
        self.barrier()  # no packet comes before its queue pair is there
        return peers

    def _connected(self) -> Peers:
        if self._closed or self._member.ended:
            raise FailedError(self._member.ended or f"this rank has left group {self.name}")
        if self._peers is None:
            raise InputError(f"group {self.name} has no connections between ranks: the program has no AllGather")
        return self._peers

    def _check_other(self, rank: int) -> None:
        if not 0 <= rank < self.size or rank == self.rank:
            raise InputError(f"rank {rank} is not another one of {self.size}")


def join(
    group: str = "world",
    *,
    ranks: Sequence[str] | None = None,
    manager: str | None = None,
    host: str | None = None,
    interface: str | None = None,
    timer: str | None = None,
    verbs: str | None = None,
    tls: str | None = None,
    elastic: bool = False,
    timeout: float = 60.0,
) -> Communicator:
    """Become a rank of a group, in this process.

    >>> import p4gen
    >>> with p4gen.join() as group:  # doctest: +SKIP
    ...     group.all_reduce(np.ones(3, np.int32)) / group.size
    array([1., 1., 1.])

    ``ranks`` are the group's hosts in order of rank; rank 0 creates the group. A group that is there already is joined,
    and stays when its ranks leave; without ``ranks`` (and without P4GEN_RANKS) it has to be there. An ``elastic`` group
    stays when ranks go away, and can have others (``shrink``, ``grow``). ``manager`` is the manager's address, ``host``
    this host's name there, ``interface`` the network interface, which has the addresses that the manager gives to the
    host; ``timer`` is the retransmission timer of queue pairs, as ``50ms``. With ``verbs`` a device is the NIC, in
    place of p4gen's own on the interface: an RNIC, or Linux's ``rxe0``. ``tls`` is the folder of the certificate for a
    manager that asks for one. Variables of the environment stand for what is missing: P4GEN_MANAGER, P4GEN_HOST,
    P4GEN_INTERFACE, P4GEN_TIMER, P4GEN_VERBS, P4GEN_TLS, P4GEN_RANKS (``h0,h1``); `p4gen lab --exec` sets them.

    Needs root, for packet sockets; with ``verbs``, pyverbs instead. Raises ``InputError`` for what is missing or
    unknown, ``FailedError`` when the group cannot be created, or this host is not in an active group within ``timeout``
    seconds.
    """
    until = time.monotonic() + timeout
    station = Station.shared(manager, host, interface, timer, verbs, tls)
    try:
        names = station.ranks(ranks)
        owned = station.create(group, names, elastic=elastic)
        member, every = station.member(group, names, max(0.1, until - time.monotonic()))
        return Communicator(station, member, every, owned=owned)
    except BaseException:
        station.release()
        raise


def _known(kind: Callable[[str], T], text: str, what: str) -> T:
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"there is no {what} {text!r}") from None


def _array(future: Future[Array | None]) -> Array:
    value = future.result()
    assert value is not None
    return value


def _bytes(values: Array) -> memoryview:
    """The memory of a contiguous array. Raises ``InputError`` for another one."""
    if not values.flags.c_contiguous:
        raise InputError("the array is not contiguous")
    return values.reshape(-1).view(np.uint8).data


def _restored(words: Array, like: Array) -> Array:
    """The array of which ``words`` are the elements."""
    return words.view(np.uint8)[: like.nbytes].view(like.dtype).reshape(like.shape)


def _restored_rows(words: Array, like: Array, rows: int) -> Array:
    """The arrays of ``rows`` ranks, one after the other, of which ``words`` are the elements."""
    per_rank = words.view(np.uint8).reshape(rows, -1)[:, : like.nbytes]
    return np.ascontiguousarray(per_rank).reshape(-1).view(like.dtype)
