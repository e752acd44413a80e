"""A process group on a group of the manager."""

from __future__ import annotations

import atexit
import os
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import torch
from torch.distributed import ProcessGroup, ReduceOp
from typing_extensions import override

from p4gen.errors import InputError
from p4gen.host.collectives.arrays import Array
from p4gen.library.ranks import Communicator, Scale, join
from p4gen.torch.alone import Alone
from p4gen.torch.work import IncWork

_SCALE: Final = "P4GEN_SCALE"
_OPS: Final = {ReduceOp.SUM: "sum", ReduceOp.AVG: "sum", ReduceOp.MIN: "min", ReduceOp.MAX: "max"}
Tensors = Sequence[torch.Tensor]


@dataclass(frozen=True)
class Options:
    """``init_process_group(…, pg_options=p4gen.torch.Options(scale=2.0**16))``."""

    scale: Scale = "auto"
    """How floating-point numbers are added by a program that adds integers (``p4gen.Communicator``)."""
    timeout: float | None = None
    """Seconds after which a collective fails; None: the timeout of the process group."""

    @classmethod
    def from_environment(cls) -> Options:
        """The options if none are given: the scale is that of P4GEN_SCALE. Raises ``InputError``."""
        text = os.environ.get(_SCALE, "auto")
        try:
            return cls("auto" if text == "auto" else float(text))
        except ValueError:
            raise InputError(f"{_SCALE} is 'auto' or a factor, not {text!r}") from None


@dataclass
class TransferCounts:
    """What a group has done with tensors to reduce."""

    reduced: int = 0
    """Tensors that switches have reduced, or the ring of a group without a place."""
    gathered: int = 0
    """Tensors with a type or an op that the program lacks: all ranks' are gathered, and each rank reduces them."""


def create(given: Any, options: Options | None) -> IncGroup:
    """The process group that ``torch.distributed`` asks for, with the names of its hosts and the group from the
    store."""
    store, rank, size = given.store, given.group_rank, given.group_size
    options = options or Options.from_environment()
    timeout = options.timeout if options.timeout is not None else given.timeout.total_seconds()
    if size == 1:
        return IncGroup(Alone(), Options(options.scale, timeout))
    store.set(f"p4gen/host/{rank}", os.environ.get("P4GEN_HOST", ""))
    if rank == 0:
        store.set("p4gen/group", f"torch-{uuid.uuid4().hex[:12]}")
    hosts = [store.get(f"p4gen/host/{other}").decode() for other in range(size)]
    if "" in hosts:
        raise InputError(f"P4GEN_HOST is not set at rank {hosts.index('')}")
    if len(set(hosts)) < size:
        raise InputError(f"a host has one rank of a group, and these are the ranks' hosts: {', '.join(hosts)}")
    group = join(store.get("p4gen/group").decode(), ranks=hosts, timeout=timeout)
    atexit.register(group.abandon)
    return IncGroup(group, Options(options.scale, timeout))


class IncGroup(ProcessGroup):
    """The ranks of a process group, on the switches of a manager's group.

    SUM, AVG, MIN and MAX of dense CPU tensors; AVG is divided at the ranks. What the program cannot reduce is gathered
    and reduced by every rank. All methods return a ``Work``; what is refused raises ``InputError`` at once, at every
    rank.
    """

    def __init__(self, ranks: Communicator | Alone, options: Options) -> None:
        super().__init__(ranks.rank, ranks.size)
        self.ranks, self.options = ranks, options
        self.counts = TransferCounts()
        self._name = self._description = ""

    @override
    def getBackendName(self) -> str:
        return "inc"

    @override
    def setGroupName(self, group_name: str) -> None:
        self._name = group_name

    @override
    def getGroupName(self) -> str:
        return self._name

    @override
    def setGroupDesc(self, group_desc: str) -> None:
        self._description = group_desc

    @override
    def getGroupDesc(self) -> str:
        return self._description

    @override
    def _get_backend(self, device: torch.device) -> Any:
        """The group itself: torch 2.14 asks the backend of a batch of messages whether it coalesces them."""
        return self

    @override
    def shutdown(self) -> None:
        """Leave the group, as all ranks do."""
        if isinstance(self.ranks, Communicator):
            atexit.unregister(self.ranks.abandon)
        self.ranks.close()

    @override
    def abort(self) -> None:
        """Leave the group at once; the calls of other ranks fail."""
        self.ranks.abandon()

    # --- reductions ---

    @override
    def allreduce(self, tensors: Tensors | torch.Tensor, opts: Any = None, **_: Any) -> IncWork:
        op = _op_of(opts)
        every = _listed(tensors)
        return _together([self._reduce("allreduce", tensor, tensor, op) for tensor in every], every)

    @override
    def allreduce_coalesced(self, tensors: Tensors, opts: Any = None) -> IncWork:
        return self.allreduce(tensors, opts)

    @override
    def reduce(self, tensors: Tensors | torch.Tensor, opts: Any = None, **_: Any) -> IncWork:
        [tensor] = _listed(tensors)
        return self._reduce("reduce", tensor, tensor, _op_of(opts), getattr(opts, "rootRank", 0))

    @override
    def _reduce_scatter_base(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> IncWork:
        return self._reduce("reducescatter", given, output, _op_of(opts))

    @override
    def reduce_scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any = None) -> IncWork:
        pairs = zip(outputs, inputs, strict=True)
        works = [self._reduce("reducescatter", _joined(parts), output, _op_of(opts)) for output, parts in pairs]
        return _together(works, outputs)

    @override
    def reduce_scatter_tensor_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> IncWork:
        pairs = zip(outputs, inputs, strict=True)
        return _together([self._reduce_scatter_base(output, given, opts) for output, given in pairs], outputs)

    def _reduce(self, collective: str, given: torch.Tensor, output: torch.Tensor, op: Any, root: int = 0) -> IncWork:
        name = _OPS.get(getattr(op, "op", op))
        if name is None:
            raise InputError(f"inc has SUM, AVG, MIN and MAX, not {op}")
        if collective == "reducescatter" and given.numel() != output.numel() * self.ranks.size:
            raise InputError(f"{given.numel():,} elements are not {self.ranks.size} times {output.numel():,}")
        average = getattr(op, "op", op) == ReduceOp.AVG
        values = _numbers(given)
        scale = self.options.scale if self.ranks.quantises(values.dtype) else None
        if self.ranks.reduces(values.dtype, name):
            self.counts.reduced += 1
            timeout = self.options.timeout
            done = self.ranks.begin(collective, values, root, op=name, scale=scale, timeout=timeout)
        else:
            self.counts.gathered += 1
            done = self._gathered(collective, values, name, root)

        def finish(value: Array | None) -> None:
            if value is not None:
                _store(output, _mean(value, self.ranks.size) if average else value)

        return IncWork(done, finish, [output])

    def _gathered(self, collective: str, values: Array, name: str, root: int) -> Future[Array | None]:
        """The reduction of all ranks' values by this rank."""
        size, rank = self.ranks.size, self.ranks.rank
        function = {"sum": np.add, "min": np.minimum, "max": np.maximum}[name]

        def reduced(every: Array | None) -> Array | None:
            assert every is not None
            if collective == "reduce" and rank != root:
                return None
            total: Array = function.reduce(every.reshape(size, -1), axis=0, dtype=values.dtype)
            return np.split(total, size)[rank] if collective == "reducescatter" else total

        return _then(self.ranks.begin("allgather", values, timeout=self.options.timeout), reduced)

    # --- copies ---

    @override
    def broadcast(self, tensors: Tensors | torch.Tensor, opts: Any = None, **_: Any) -> IncWork:
        root, every = getattr(opts, "rootRank", 0), _listed(tensors)
        works = []
        for tensor in every:
            done = self.ranks.begin("broadcast", _bytes(tensor), root, timeout=self.options.timeout)
            works.append(IncWork(done, partial(_fill, tensor), [tensor]))
        return _together(works, every)

    @override
    def _allgather_base(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> IncWork:
        if output.numel() != given.numel() * self.ranks.size:
            raise InputError(f"{output.numel():,} elements are not {self.ranks.size} times {given.numel():,}")
        done = self.ranks.begin("allgather", _bytes(given), timeout=self.options.timeout)
        return IncWork(done, partial(_fill, output), [output])

    @override
    def allgather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> IncWork:
        works = []
        for rooms, given in zip(outputs, inputs, strict=True):
            done = self.ranks.begin("allgather", _bytes(given), timeout=self.options.timeout)
            works.append(IncWork(done, partial(_fill_all, rooms), rooms))
        return _together(works, [room for rooms in outputs for room in rooms])

    @override
    def allgather_into_tensor_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> IncWork:
        pairs = zip(outputs, inputs, strict=True)
        return _together([self._allgather_base(output, given) for output, given in pairs], outputs)

    @override
    def allgather_coalesced(self, output_lists: Sequence[Tensors], input_list: Tensors, opts: Any = None) -> IncWork:
        rooms = [[rooms[i] for rooms in output_lists] for i in range(len(input_list))]
        return self.allgather(rooms, input_list)

    @override
    def barrier(self, opts: Any = None) -> IncWork:
        return IncWork(self.ranks.begin("barrier", timeout=self.options.timeout), lambda _: None, [])

    # --- over connections between ranks ---

    @override
    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> IncWork:
        return self._exchange(outputs, inputs)

    @override
    def alltoall_base(
        self,
        output: torch.Tensor,
        given: torch.Tensor,
        output_splits: Sequence[int],
        input_splits: Sequence[int],
        opts: Any = None,
    ) -> IncWork:
        return self._exchange(self._split(output, output_splits), self._split(given, input_splits), [output])

    @override
    def gather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> IncWork:
        root, [given] = getattr(opts, "rootRank", 0), inputs
        nothing, mine = given.new_empty(0), self.ranks.rank == root
        rooms = list(outputs[0]) if mine else [nothing] * self.ranks.size
        return self._exchange(rooms, [given if rank == root else nothing for rank in range(self.ranks.size)])

    @override
    def scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any = None) -> IncWork:
        root, [output] = getattr(opts, "rootRank", 0), outputs
        nothing, mine = output.new_empty(0), self.ranks.rank == root
        parts = list(inputs[0]) if mine else [nothing] * self.ranks.size
        return self._exchange([output if rank == root else nothing for rank in range(self.ranks.size)], parts)

    @override
    def send(self, tensors: Tensors, to: int, tag: int) -> IncWork:
        [tensor] = tensors
        return IncWork(self.ranks.begin_send(_bytes(tensor), to, tag), lambda _: None, [tensor])

    @override
    def recv(self, tensors: Tensors, source: int, tag: int) -> IncWork:
        [tensor] = tensors
        room = np.empty(tensor.nbytes, np.uint8)
        return IncWork(self.ranks.begin_receive(room, source, tag), lambda _: _fill(tensor, room), [tensor])

    @override
    def recv_anysource(self, tensors: Tensors, tag: int) -> IncWork:
        raise InputError("inc receives from a rank that is named")

    # What torch calls these since 2.13.
    all_gather_single = _allgather_base
    all_gather_single_coalesced = allgather_into_tensor_coalesced
    all_to_all_single = alltoall_base
    reduce_scatter_single = _reduce_scatter_base
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    def _split(self, tensor: torch.Tensor, sizes: Sequence[int]) -> list[torch.Tensor]:
        """The rows of a tensor in a part for each rank; in equal parts if there are no sizes."""
        rows = tensor.shape[0]
        if not sizes and rows % self.ranks.size:
            raise InputError(f"{rows} rows cannot be divided evenly among {self.ranks.size} ranks")
        return list(tensor.split(list(sizes) or [rows // self.ranks.size] * self.ranks.size))

    def _exchange(self, outputs: Tensors, inputs: Tensors, whole: Tensors | None = None) -> IncWork:
        rooms = [np.empty(output.nbytes, np.uint8) for output in outputs]
        done = self.ranks.begin_exchange([_bytes(given) for given in inputs], rooms)

        def finish(_: None) -> None:
            for output, room in zip(outputs, rooms, strict=True):
                _fill(output, room)

        return IncWork(done, finish, outputs if whole is None else whole)


def _mean(total: Array, ranks: int) -> Array:
    """A sum divided by the number of ranks, integers towards zero, as torch's AVG is."""
    parts = total / ranks
    return (parts if np.issubdtype(total.dtype, np.inexact) else np.trunc(parts)).astype(total.dtype)


def _op_of(opts: Any) -> Any:
    return getattr(opts, "reduceOp", ReduceOp.SUM) if opts is not None else ReduceOp.SUM


def _listed(tensors: Tensors | torch.Tensor) -> list[torch.Tensor]:
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def _joined(parts: Tensors) -> torch.Tensor:
    if len({part.numel() for part in parts}) > 1:
        raise InputError("inc scatters parts of the same size")
    return torch.cat([part.reshape(-1) for part in parts])


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_sparse or tensor.device.type != "cpu":
        raise InputError(f"inc takes dense tensors on the CPU, not {tensor.layout} on {tensor.device}")
    return tensor.detach().contiguous()


def _numbers(tensor: torch.Tensor) -> Array:
    """The elements, for a reduction; half-precision numbers as float32."""
    dense = _dense(tensor)
    if dense.is_complex():
        raise InputError(f"inc does not reduce {tensor.dtype}: use torch.view_as_real")
    if dense.dtype in (torch.float16, torch.bfloat16):
        dense = dense.float()
    kind: np.dtype[Any] = torch.empty(0, dtype=dense.dtype).numpy().dtype
    found: Array = _bytes(dense).view(kind).reshape(tuple(dense.shape))
    return found


class _Memory:
    """The memory of a contiguous tensor, for NumPy, which keeps the tensor. ``Tensor.numpy`` would forbid that the
    tensor's storage is resized later, as FullyShardedDataParallel does."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        shape = (tensor.nbytes,)
        self.__array_interface__ = {"data": (tensor.data_ptr(), False), "shape": shape, "typestr": "|u1", "version": 3}


def _bytes(tensor: torch.Tensor) -> Array:
    """The bytes of a tensor, in its memory if that is contiguous."""
    return np.asarray(_Memory(_dense(tensor))) if tensor.nbytes else np.empty(0, np.uint8)


def _fill(tensor: torch.Tensor, value: Array) -> None:
    """Give a tensor its elements, from bytes. NumPy copies them if it can, as torch would start threads for it, which
    take the processor from those that move packets."""
    if not value.size:
        return
    if tensor.is_contiguous():
        np.copyto(_bytes(tensor), value)
    else:
        tensor.copy_(torch.from_numpy(value).view(tensor.dtype).reshape(tensor.shape))


def _store(tensor: torch.Tensor, value: Array) -> None:
    """Give a tensor its elements, from numbers."""
    found = torch.from_numpy(value)
    if tensor.dtype == found.dtype:
        _fill(tensor, np.ascontiguousarray(value).reshape(-1).view(np.uint8))
    else:
        tensor.copy_(found.reshape(tensor.shape))


def _fill_all(tensors: Tensors, value: Array) -> None:
    for tensor, part in zip(tensors, np.split(value, len(tensors)), strict=True):
        _fill(tensor, part)


def _then(done: Future[Array | None], function: Callable[[Array | None], Array | None]) -> Future[Array | None]:
    """A future of what a function makes of another one's result."""
    found: Future[Array | None] = Future()

    def end(_: object) -> None:
        try:
            found.set_result(function(done.result()))
        except Exception as error:
            found.set_exception(error)

    done.add_done_callback(end)
    return found


def _together(works: Sequence[IncWork], outputs: Sequence[torch.Tensor]) -> IncWork:
    """One work for several, which end in their order."""
    if len(works) == 1:
        return works[0]
    last: Future[None] = Future()
    torch.futures.collect_all([work.get_future() for work in works]).then(lambda all_: _settle(last, all_))
    return IncWork(last, lambda _: None, outputs)


def _settle(last: Future[None], every: Any) -> None:
    try:
        for future in every.value():
            future.value()
    except Exception as error:
        last.set_exception(error)
    else:
        last.set_result(None)
