"""v1model as simple_switch implements it: the processing around and between a program's blocks.

Section names are those of behavioral-model's docs/simple_switch.md; where the text leaves a question open,
targets/simple_switch/simple_switch.cpp decides.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import override

from p4gen.arch.ports import DROP_PORT
from p4gen.chips.v1model.externs import V1MODEL
from p4gen.model.codec import packed
from p4gen.model.entries import Replica
from p4gen.model.interp import Context, Frame, Interpreter, Reject
from p4gen.model.passes import HELD, Passes
from p4gen.model.poison import initial
from p4gen.model.runner import HoldingRunner
from p4gen.model.state import ModelState
from p4gen.model.trace import Trace, show
from p4gen.model.values import StructValue, copy_value, zero
from p4gen.p4 import ir
from p4gen.p4 import types as t

NORMAL, INGRESS_CLONE, EGRESS_CLONE, COALESCED, RECIRCULATED, REPLICATION, RESUBMITTED = range(7)
"""``instance_type`` (simple_switch.h, PktInstanceType)."""

CLONE_SESSION_MASK = 0x7FFF

Preserved = list[tuple[tuple[int, ...], Any]]
"""Values of user metadata fields and their paths (field indices)."""


@dataclass
class _Arrival:
    """A packet at the start of ingress."""

    data: bytes
    port: int
    instance_type: int = NORMAL
    preserved: Preserved = field(default_factory=list)
    timestamp: int = 0


@dataclass
class _Departure:
    """A packet in the buffer between ingress and egress, for ``port``."""

    ctx: Context
    headers: StructValue
    meta: Any
    standard: StructValue
    port: int
    keep: int = 0
    """Number of bytes that a clone session keeps; 0: all."""


class V1Model(HoldingRunner):
    """Runs packets through a program with the blocks of ``V1Switch``.

    Raises ``InputError`` for what is not supported.
    """

    def __init__(self, program: ir.Program, state: ModelState) -> None:
        self._program = program
        self._state = state
        self._plain = _Pipeline(program, Interpreter(program, state, V1MODEL), poison=state.poison)
        self._traced: _Pipeline | None = None
        self._holds = False

    @override
    def hold(self, held: bool) -> None:
        self._holds = held

    @override
    def process(self, port: int, packet: bytes, trace: Trace | None = None) -> list[tuple[int, bytes]]:
        if trace is None:
            pipeline = self._plain
        else:
            if self._traced is None:
                self._traced = _Pipeline(
                    self._program,
                    Interpreter(self._program, self._state, V1MODEL, traced=True),
                    poison=self._state.poison,
                )
            pipeline = self._traced
        return _Run(self._state, pipeline, trace, holds=self._holds).packet(port, packet)


class _Pipeline:
    """The compiled blocks and the slots of their parameters."""

    def __init__(self, program: ir.Program, interpreter: Interpreter, *, poison: bool) -> None:
        self.blocks = interpreter.blocks
        self.frame = interpreter.frame
        # Whether the packet is among the parameters or not, these are the last ones.
        slots = {
            name: [interpreter.slot(p.variable) for p in block.params][-_ARITY[name] :]
            for name, block in program.blocks.items()
        }
        self.slots = slots
        headers, meta, standard = (p.variable.type for p in program.blocks["ig"].params[-3:])
        self.meta_type = meta
        self.positions = {name: block.pos for name, block in program.blocks.items()}
        # Standard metadata is the architecture's, and always initialised.
        self._prototypes = initial(headers, poison=poison), initial(meta, poison=poison), zero(standard)
        fields = t.strip(standard)
        assert isinstance(fields, t.Struct)
        self.field = {f.name: i for i, f in enumerate(fields.fields)}

    def fresh(self) -> tuple[StructValue, Any, StructValue]:
        """Headers, user metadata and standard metadata of a new packet."""
        headers, meta, standard = self._prototypes
        return headers.copy(), copy_value(meta), standard.copy()

    def run(self, block: str, ctx: Context, *values: Any, label: str = "") -> None:
        """Run a block on its parameters, which it changes in place."""
        if ctx.trace is not None:
            ctx.trace.add("block", f"{_TITLES[block]}{label}", self.positions[block], block=block)
        f: Frame = self.frame()
        f[0] = ctx
        for slot, value in zip(self.slots[block], values, strict=True):
            f[slot] = value
        self.blocks[block](f)

    def preserve(self, meta: Any, index: int | None) -> Preserved:
        """The fields of user metadata that ``@field_list(index)`` marks."""
        if index is None:
            return []
        return [(path, copy_value(_at(meta, path))) for path in _marked(self.meta_type, index)]


_ARITY = {"p": 3, "vr": 2, "ig": 3, "eg": 3, "ck": 2, "dep": 1}
_TITLES = {
    "p": "parser", "vr": "verify checksum", "ig": "ingress", "eg": "egress", "ck": "compute checksum",
    "dep": "deparser",
}  # fmt: skip


def _marked(of: t.Type, index: int) -> Iterator[tuple[int, ...]]:
    of = t.strip(of)
    if isinstance(of, t.Struct):
        for i, member in enumerate(of.fields):
            if any(a.name == "field_list" and index in a.args for a in member.annotations):
                yield (i,)
            else:
                yield from ((i, *rest) for rest in _marked(member.type, index))


def _at(value: Any, path: tuple[int, ...]) -> Any:
    for i in path:
        value = value.fields[i]
    return value


def _restore(meta: Any, preserved: Preserved) -> None:
    for path, value in preserved:
        owner = _at(meta, path[:-1])
        if isinstance(value, StructValue):
            owner.fields[path[-1]].assign(value)
        else:
            owner.fields[path[-1]] = value


class _Run(Passes[_Arrival, _Departure]):
    """One received packet and everything it causes."""

    def __init__(self, state: ModelState, pipeline: _Pipeline, trace: Trace | None, *, holds: bool) -> None:
        super().__init__(state, pipeline.positions["ig"], trace)
        self._pipeline = pipeline
        self._holds = holds

    @override
    def _arrival(self, port: int, packet: bytes) -> _Arrival:
        if port == HELD:
            data, preserved = pickle.loads(packet)  # noqa: S301 - written below
            return _Arrival(data, 0, RECIRCULATED, preserved)
        return _Arrival(packet, port, timestamp=self._state.clock())

    # --- ingress ---

    def _parse(self, arrival: _Arrival, ctx: Context) -> tuple[StructValue, Any, StructValue]:
        """Parser and checksum verification. A reject drops nothing: ingress finds ``parser_error`` set."""
        pipeline, field_of = self._pipeline, self._pipeline.field
        headers, meta, standard = pipeline.fresh()
        _restore(meta, arrival.preserved)
        fields = standard.fields
        fields[field_of["ingress_port"]] = arrival.port
        fields[field_of["instance_type"]] = arrival.instance_type
        fields[field_of["packet_length"]] = len(arrival.data) & 0xFFFFFFFF
        fields[field_of["ingress_global_timestamp"]] = arrival.timestamp & ((1 << 48) - 1)
        error = "NoError"
        try:
            pipeline.run("p", ctx, headers, meta, standard)
        except Reject as reject:
            error = reject.error
            self._note("reject", f"the parser rejects: {error}", error=error)
        pipeline.run("vr", ctx, headers, meta)
        fields[field_of["parser_error"]] = error
        fields[field_of["checksum_error"]] = int(ctx.checksum_error)
        return headers, meta, standard

    @override
    def _ingress(self, arrival: _Arrival) -> None:
        pipeline, field_of, size = self._pipeline, self._pipeline.field, len(arrival.data)
        ctx = Context(data=arrival.data, ingress_length=size, length=size, trace=self._trace)
        headers, meta, standard = self._parse(arrival, ctx)
        pipeline.run("ig", ctx, headers, meta, standard)

        if ctx.clone is not None:
            self._clone_ingress(arrival, ctx.clone, meta)
            ctx.clone = None
        self._state.digests.extend(ctx.digests)
        ctx.digests = []

        if ctx.resubmit is not None:
            preserved = pipeline.preserve(meta, ctx.resubmit[0])
            self._note("decision", "resubmit")
            self._arrivals.append(_Arrival(arrival.data, 0, RESUBMITTED, preserved))
            return
        fields = standard.fields
        group = fields[field_of["mcast_grp"]]
        if group:
            fields[field_of["instance_type"]] = REPLICATION
            self._multicast(group, ctx, headers, meta, standard)
            return
        port = fields[field_of["egress_spec"]]
        if port == DROP_PORT:
            self._note("drop", f"dropped at the end of ingress (egress_spec is {DROP_PORT})", where="ingress")
            return
        fields[field_of["instance_type"]] = NORMAL
        self._note("decision", f"unicast to port {port}", port=port)
        self._departures.append(_Departure(ctx, headers, meta, standard, port))

    def _multicast(self, group: int, ctx: Context, headers: StructValue, meta: Any, standard: StructValue) -> None:
        found = self._state.groups.get(group)
        if found is None:
            self._note("drop", f"dropped: multicast group {group} is not configured", where="multicast")
            return
        self._note("decision", f"multicast group {group}: {_replicas(found.replicas)}", group=group)
        self._replicate(found.replicas, ctx, headers, meta, standard)

    def _replicate(
        self,
        replicas: tuple[Replica, ...],
        ctx: Context,
        headers: StructValue,
        meta: Any,
        standard: StructValue,
        *,
        keep: int = 0,
    ) -> None:
        """One copy for each replica; requests made so far stay with the original."""
        for replica in replicas:
            copy = _copy_of(ctx)
            own = standard.copy()
            own.fields[self._pipeline.field["egress_rid"]] = replica.rid
            self._departures.append(_Departure(copy, headers.copy(), copy_value(meta), own, replica.port, keep))

    def _clone_ingress(self, arrival: _Arrival, clone: tuple[int, int | None], meta: Any) -> None:
        """Clone from ingress to egress: the received packet, parsed again; new metadata except for the field list and
        instance_type."""
        session = self._session(clone)
        if session is None:
            return
        size = len(arrival.data)
        ctx = Context(data=arrival.data, ingress_length=size, length=size, trace=self._trace)
        again = _Arrival(arrival.data, arrival.port)
        headers, _, _ = self._parse(again, ctx)
        _, fresh_meta, standard = self._pipeline.fresh()
        _restore(fresh_meta, self._pipeline.preserve(meta, clone[1]))
        standard.fields[self._pipeline.field["instance_type"]] = INGRESS_CLONE
        self._replicate(session.replicas, ctx, headers, fresh_meta, standard, keep=session.packet_length)

    def _session(self, clone: tuple[int, int | None]) -> Any:
        number = clone[0] & CLONE_SESSION_MASK
        found = self._state.sessions.get(number)
        if found is None:
            self._note("decision", f"no clone: session {number} is not configured", session=number)
        else:
            self._note("decision", f"clone session {number}: {_replicas(found.replicas)}", session=number)
        return found

    # --- egress ---

    @override
    def _egress(self, packet: _Departure) -> None:
        pipeline, field_of, ctx = self._pipeline, self._pipeline.field, packet.ctx
        headers, meta, standard = packet.headers, packet.meta, packet.standard
        fields = standard.fields
        fields[field_of["egress_port"]] = packet.port
        # Any value but the drop port: simple_switch assigns drop port + 1, truncated to nine bits.
        fields[field_of["egress_spec"]] = (DROP_PORT + 1) & 0x1FF
        fields[field_of["packet_length"]] = ctx.length & 0xFFFFFFFF
        fields[field_of["egress_global_timestamp"]] = self._state.clock() & ((1 << 48) - 1)
        label = f" for port {packet.port}, rid {fields[field_of['egress_rid']]}" if self._trace is not None else ""
        pipeline.run("eg", ctx, headers, meta, standard, label=label)

        if ctx.clone is not None:
            self._clone_egress(ctx, headers, meta)
            ctx.clone = None
        if fields[field_of["egress_spec"]] == DROP_PORT:
            self._note("drop", f"dropped at the end of egress (egress_spec is {DROP_PORT})", where="egress")
            return
        data = self._deparse(ctx, headers, meta)
        if ctx.recirculate is not None:
            preserved = pipeline.preserve(meta, ctx.recirculate[0])
            self._note("decision", f"recirculate {len(data)} bytes")
            if self._holds:
                self._outputs.append((HELD, pickle.dumps((data, preserved))))
                return
            self._arrivals.append(_Arrival(data, 0, RECIRCULATED, preserved))
            return
        limits = [n for n in (ctx.truncate, packet.keep or None) if n is not None]
        data = data[: min(limits)] if limits else data
        self._note("output", f"{len(data)} bytes out of port {packet.port}", port=packet.port, size=len(data))
        self._outputs.append((packet.port, data))

    def _clone_egress(self, ctx: Context, headers: StructValue, meta: Any) -> None:
        """Clone from egress to egress: the headers at the end of egress; new metadata except for the field list."""
        assert ctx.clone is not None
        session = self._session(ctx.clone)
        if session is None:
            return
        _, fresh_meta, standard = self._pipeline.fresh()
        _restore(fresh_meta, self._pipeline.preserve(meta, ctx.clone[1]))
        standard.fields[self._pipeline.field["instance_type"]] = EGRESS_CLONE
        self._replicate(session.replicas, ctx, headers, fresh_meta, standard, keep=session.packet_length)

    def _deparse(self, ctx: Context, headers: StructValue, meta: Any) -> bytes:
        self._pipeline.run("ck", ctx, headers, meta)
        ctx.emitted = []
        self._pipeline.run("dep", ctx, headers)
        return packed(ctx.emitted) + ctx.data[(ctx.at + 7) >> 3 :]


def _copy_of(ctx: Context) -> Context:
    """A replica's context: the same packet, none of the requests."""
    return Context(
        data=ctx.data, at=ctx.at, ingress_length=ctx.ingress_length, length=ctx.length, trace=ctx.trace
    )  # fmt: skip


def _replicas(replicas: tuple[Replica, ...]) -> str:
    return ", ".join(f"port {r.port}" + (f" rid {show(r.rid)}" if r.rid else "") for r in replicas) or "no copies"
