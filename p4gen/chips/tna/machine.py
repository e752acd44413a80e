"""Tofino around and between a program's blocks: ports, pipes, the traffic manager, mirrors, resubmission,
recirculation.

A field of ``ig_intr_md_for_tm`` has an effect only if the program has assigned it. A packet for which no field was
assigned is dropped. Unicast, two multicast groups and the copy to the CPU all happen if they are requested;
``drop_ctl`` bit 0 forbids the first two, bit 1 the copy, bit 2 mirroring. Queues are empty: no packet waits, is lost,
or deflected, and all queue depths and times in queues are 0.

A packet is resubmitted in place of being forwarded, and at most once; the bytes of ``Resubmit.emit`` then take the
place of the port's metadata. An ingress mirror copies the packet as it arrived, an egress mirror as it leaves, both
after the header of ``Mirror.emit``. The copy goes to the ports of the session, through egress; the session's length
counts from that header on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from p4gen.chips.tna import PIPES
from p4gen.chips.tna.chip import FCS, NO_PORT, PORTS, chip_of, pipe_of
from p4gen.chips.tna.context import UNSET, Pass
from p4gen.chips.tna.memory import TofinoState
from p4gen.chips.tna.pipeline import Gress, Pipeline, Values
from p4gen.chips.tna.replication import Copy, Request, copies, copies_of_session
from p4gen.chips.tna.settings import Settings
from p4gen.model.errors import ControlError
from p4gen.model.passes import Passes
from p4gen.model.runner import GeneratingRunner
from p4gen.model.trace import Trace
from p4gen.p4 import ir


@dataclass
class _Arrival:
    """A packet at the start of ingress."""

    data: bytes
    port: int
    resubmitted: bytes | None = None


@dataclass
class _Departure:
    """A packet between ingress and egress."""

    data: bytes
    copy: Copy
    cos: int = 0
    queue: int = 0


class TofinoModel(Settings, GeneratingRunner):
    """Runs packets through a program with the packages of TNA or T2NA. Raises ``InputError`` for what is not
    supported."""

    def __init__(self, program: ir.Program, state: TofinoState) -> None:
        self.program, self.state, self.chip = program, state, chip_of(program)
        self._pipelines: dict[tuple[int, bool], Pipeline | None] = {}
        self._count = len({name.partition(".")[0] for name in program.blocks})
        for pipe in range(min(self._count, PIPES)):
            self.pipeline(pipe, traced=False)

    def pipeline(self, pipe: int, *, traced: bool) -> Pipeline | None:
        """The pipeline that runs in a pipe. A single pipeline runs in all pipes; of two, pipes 0 and 2 have the first
        and 1 and 3 the second, as in p4testgen; of more, each pipe has its own, and a pipe without one has None."""
        if (pipe, traced) not in self._pipelines:
            number = 0 if self._count == 1 else pipe % 2 if self._count == 2 else pipe
            found = None
            if number < self._count:
                found = Pipeline(
                    self.program, f"pipe{number}", self.state, self.state.pipes[pipe], self.chip, traced=traced
                )
            self._pipelines[pipe, traced] = found
        return self._pipelines[pipe, traced]

    @override
    def process(self, port: int, packet: bytes, trace: Trace | None = None) -> list[tuple[int, bytes]]:
        """Process a packet. Outputs of packets from the generator come first; outputs of packets that this packet makes
        the generator send come last."""
        return self.generate(trace) + self._run(port, packet, trace) + self.generate(trace)

    @override
    def generate(self, trace: Trace | None = None) -> list[tuple[int, bytes]]:
        if not self.state.generator.applications:
            return []
        made = self.state.generator.due()
        return [output for port, packet in made for output in self._run(port, packet, trace)]

    def _run(self, port: int, packet: bytes, trace: Trace | None) -> list[tuple[int, bytes]]:
        if not 0 <= port < PORTS:
            raise ControlError(f"port {port}: ports are numbered from 0 to {PORTS - 1}")
        return _Run(self, trace).packet(port, packet)


class _Run(Passes[_Arrival, _Departure]):
    """One received packet and everything it causes."""

    _state: TofinoState

    def __init__(self, model: TofinoModel, trace: Trace | None) -> None:
        super().__init__(model.state, next(iter(model.program.blocks.values())).pos, trace)
        self._model = model

    @override
    def _arrival(self, port: int, packet: bytes) -> _Arrival:
        return _Arrival(packet, port)

    def _pipeline(self, port: int) -> Pipeline | None:
        found = self._model.pipeline(pipe_of(port), traced=self._trace is not None)
        if found is None:
            self._note("drop", f"dropped: the program has nothing for pipe {pipe_of(port)}", where="pipe")
        return found

    # --- ingress ---

    @override
    def _ingress(self, arrival: _Arrival) -> None:
        pipeline = self._pipeline(arrival.port)
        if pipeline is None:
            return
        gress, chip, now = pipeline.ingress, self._model.chip, self._nanoseconds(48)
        front = gress.front(
            {
                "resubmit_flag": int(arrival.resubmitted is not None),
                "ingress_port": arrival.port,
                "ingress_mac_tstamp": now,
            }
        )
        beside = self._state.port_metadata.get(arrival.port, 0).to_bytes(chip.port_metadata)
        if arrival.resubmitted is not None:
            beside = arrival.resubmitted.ljust(chip.port_metadata, b"\0")
        ctx = Pass(data=front + beside + arrival.data, length=len(arrival.data) + FCS, trace=self._trace)
        ctx.port_metadata = len(beside)
        values = gress.fresh()
        gress.put(values, "ig_intr_md_from_prsr", global_tstamp=now)
        if not gress.run(ctx, values, arrival.port, f" of pipe {pipe_of(arrival.port)}"):
            self._note("drop", "dropped by the ingress parser", where="parser")
            return
        self._state.digests.extend(ctx.digests)
        drop = gress.get(values, "ig_intr_md_for_dprsr", "drop_ctl")
        if not drop & 4:
            self._mirror(ctx, arrival.data, "ingress")
        for context in ctx.generates:
            address, length = (gress.get(values, "ig_intr_md_for_dprsr", f"pktgen_{n}") for n in ("address", "length"))
            self._state.generator.emitted(pipe_of(arrival.port), context, address, length)
        if self._resubmit(ctx, arrival):
            return
        self._forward(gress, values, gress.packet(ctx), drop)

    def _resubmit(self, ctx: Pass, arrival: _Arrival) -> bool:
        if not ctx.resubmits:
            return False
        if arrival.resubmitted is not None:
            self._note("decision", "not resubmitted: it was before")
            return False
        front, room = ctx.resubmits[0], self._model.chip.port_metadata
        if len(front) > room:
            what = f"a resubmitted packet has {room} bytes for metadata, not {len(front)}; the rest is lost"
            self._state.trap(self._at, what)
            front = front[:room]
        self._note("decision", "resubmit")
        self._arrivals.append(_Arrival(arrival.data, arrival.port, front))
        return True

    def _forward(self, gress: Gress, values: Values, data: bytes, drop: int) -> None:
        """Make the traffic manager's copies: unicast, multicast groups, the copy to the CPU."""

        def field(name: str) -> int:
            return gress.get(values, "ig_intr_md_for_tm", name)

        found: list[Copy] = []
        port = field("ucast_egress_port")
        if not drop & 1:
            if port is not UNSET and port != NO_PORT:
                self._note("decision", f"unicast to port {port}", port=port)
                found.append(Copy(port))
            for name in ("mcast_grp_a", "mcast_grp_b"):
                group = field(name)
                if group is not UNSET and group:
                    found += self._multicast(group, field)
        if field("copy_to_cpu") and not drop & 2:
            cpu = self._state.cpu_port
            self._note("decision", f"copy to the CPU, port {cpu}", port=cpu)
            found.append(Copy(cpu))
        if not found:
            why = "drop_ctl" if drop & 1 else "no port and no group was assigned, or the group has no copies"
            self._note("drop", f"dropped at the end of ingress ({why})", where="ingress")
            return
        for copy in found:
            if field("bypass_egress"):
                self._note("decision", "past egress")
                self._send(copy.port, data)
            else:
                self._departures.append(_Departure(data, copy, int(field("ingress_cos")), int(field("qid"))))

    def _multicast(self, group: int, field: Any) -> list[Copy]:
        configured = self._state.groups.get(group)
        if configured is None:
            self._note("decision", f"no copies: multicast group {group} is not configured", group=group)
            return []
        request = Request(
            field("rid"), field("level1_exclusion_id"), field("level2_exclusion_id"),
            field("level1_mcast_hash"), field("level2_mcast_hash"),
        )  # fmt: skip
        found = copies(configured, request, self._state.pruning(hashes_nodes=self._model.chip.hashes_nodes))
        shown = ", ".join(f"port {c.port}" + (f" rid {c.rid}" if c.rid else "") for c in found) or "no copies"
        self._note("decision", f"multicast group {group}: {shown}", group=group)
        return found

    def _mirror(self, ctx: Pass, data: bytes, direction: str) -> None:
        for number, front in ctx.mirrors:
            session = self._state.sessions.get(number)
            found = [] if session is None else copies_of_session(session, direction)
            if session is None or not found:
                self._note("decision", f"no mirror: session {number} has no port in {direction}", session=number)
                continue
            shown = ", ".join(f"port {copy.port}" for copy in found)
            self._note("decision", f"mirror session {number}: {shown}", session=number)
            whole = front + data
            whole = whole[: session.packet_length] if session.packet_length else whole
            self._departures += [_Departure(whole, copy) for copy in found]
        ctx.mirrors = []

    # --- egress ---

    @override
    def _egress(self, packet: _Departure) -> None:
        pipeline = self._pipeline(packet.copy.port)
        if pipeline is None:
            return
        gress, copy, now = pipeline.egress, packet.copy, self._nanoseconds(48)
        numbers = {
            "egress_port": copy.port, "egress_rid": copy.rid, "egress_rid_first": int(copy.first),
            "egress_qid": packet.queue, "egress_cos": packet.cos, "pkt_length": len(packet.data) + FCS,
            "enq_tstamp": now,
        }  # fmt: skip
        ctx = Pass(data=gress.front(numbers) + packet.data, length=len(packet.data) + FCS, trace=self._trace)
        ctx.at = 0 if gress.extracts else 8 * (len(ctx.data) - len(packet.data))
        values = gress.fresh()
        gress.put(values, "eg_intr_md_from_prsr", global_tstamp=now)
        gress.run(ctx, values, copy.port, f" of pipe {pipe_of(copy.port)} for port {copy.port}, rid {copy.rid}")
        drop, data = gress.get(values, "eg_intr_md_for_dprsr", "drop_ctl"), gress.packet(ctx)
        if not drop & 4:
            self._mirror(ctx, data, "egress")
        if drop & 1:
            self._note("drop", "dropped at the end of egress (drop_ctl)", where="egress")
            return
        self._send(copy.port, data)

    def _send(self, port: int, data: bytes) -> None:
        if self._model.recirculates(port):
            self._note("decision", f"recirculate {len(data)} bytes by port {port}", port=port)
            self._state.generator.recirculated(pipe_of(port), data)
            self._arrivals.append(_Arrival(data, port))
            return
        self._note("output", f"{len(data)} bytes out of port {port}", port=port, size=len(data))
        self._outputs.append((port, data))

    def _nanoseconds(self, width: int) -> int:
        return self._state.clock() * 1000 & (1 << width) - 1
