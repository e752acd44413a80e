"""simple_switch_CLI's commands in STF: mirroring, multicast, registers, counters, meters, action profiles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from p4gen.arch import of_package
from p4gen.errors import Diagnostic
from p4gen.model import ControlError, MeterConfig
from p4gen.model.entries import Action, CloneSession, CounterValue, Exact, MulticastGroup, Replica
from p4gen.model.profiles import GroupMember
from p4gen.p4 import ir
from p4gen.plugins import answers
from p4gen.stf.bench import Bench, Engine
from p4gen.stf.extension import Extra, StfCommands
from p4gen.stf.lexer import StfError
from p4gen.stf.parser import COMMANDS
from p4gen.stf.statements import Command, CreateMember, Handle, Rate, Value


class Commander(Bench):
    """A bench that also takes the commands of simple_switch_CLI."""

    def __init__(self, program: ir.Program, engine: Engine) -> None:
        super().__init__(program, engine)
        self.groups: dict[int, list[int]] = {}
        """The nodes of each multicast group."""
        self.regroup: Callable[[int], None] | None = None
        """Makes a group again, on an architecture with nodes of its own."""
        self._nodes: list[tuple[int, list[int]]] = []
        self._mirrors: dict[int, tuple[int | None, int | None, int]] = {}
        self._members: dict[str, int] = {}
        self._selections: dict[str, list[list[int]]] = {}
        self._sets: dict[str, list[Any]] = {}

    def create_member(self, statement: CreateMember) -> None:
        """Execute ``act_prof_create_member``; members are numbered from 0."""
        number = self._members.get(statement.profile, 0)
        args = {name: value.value for name, value in statement.action.args}
        self.model.set_member(statement.profile, number, Action(statement.action.name, args))
        self._members[statement.profile] = number + 1
        self.name(statement.handle, number)

    def command(self, statement: Command) -> None:
        """Execute any other command, by the method of its name."""
        extra = None if statement.name in COMMANDS else self._extra(statement)
        kinds = COMMANDS[statement.name] if extra is None else extra.arguments
        kinds += kinds[-1:] * (len(statement.args) - len(kinds))
        args: list[Any] = [
            argument if kind.rstrip("?").isupper() else self.number(argument)
            for kind, argument in zip(kinds, statement.args, strict=False)
        ]
        done = getattr(self, f"_{statement.name}") if extra is None else partial(extra.run, self)
        self.name(statement.handle, done(*args))

    def _extra(self, statement: Command) -> Extra:
        """The command of this name that the program's architecture adds."""
        program = self.model.program
        arch = of_package(program.package, program.arch)
        own = arch.facet(StfCommands).commands if arch is not None and answers(arch, StfCommands) else {}
        if statement.name not in own:
            what = arch.name if arch is not None else program.package
            raise StfError(Diagnostic(statement.pos, f"switches of {what} have no {statement.name}"))
        return own[statement.name]

    def _mirroring_add(self, session: int, port: int) -> None:
        self._mirror(session, (port, None, 0))

    def _mirroring_add_mc(self, session: int, group: int) -> None:
        self._mirror(session, (None, group, 0))

    def _mirroring_add_truncate(self, session: int, port: int, length: int) -> None:
        self._mirror(session, (port, None, length))

    def _mirroring_delete(self, session: int) -> None:
        self._mirrors.pop(session, None)
        self.model.set_clone_session(CloneSession(session, ()))

    def _mirroring_get(self, session: int) -> None:
        port, group, _ = self._mirrors.get(session, (None, None, 0))
        where = f"port {port}" if port is not None else f"group {group}" if group is not None else "not configured"
        self.notes.append(f"mirroring session {session}: {where}")

    def _mirror(self, session: int, to: tuple[int | None, int | None, int]) -> None:
        self._mirrors[session] = to
        port, group, length = to
        replicas = (Replica(port),) if port is not None else self._replicas(group or 0)
        self.model.set_clone_session(CloneSession(session, replicas, length))

    def _mc_mgrp_create(self, group: int) -> int:
        self.groups[group] = []
        return group

    def _mc_mgrp_destroy(self, group: int) -> None:
        self.groups.pop(group, None)
        self.refresh()
        self.model.set_multicast_group(MulticastGroup(group, ()))

    def _mc_node_create(self, rid: int, *ports: int) -> int:
        self._nodes.append((rid, sorted(ports)))
        return len(self._nodes) - 1

    def _mc_node_update(self, node: int, *ports: int) -> None:
        self.node(node)[1][:] = sorted(ports)
        self.refresh()

    def _mc_node_associate(self, group: int, node: int) -> None:
        self.node(node)
        self.group(group).append(node)
        self.refresh()

    def _mc_node_dissociate(self, group: int, node: int) -> None:
        if node not in self.group(group):
            raise ControlError(f"multicast group {group}: node {node} is not in it")
        self.group(group).remove(node)
        self.refresh()

    def _mc_node_destroy(self, node: int) -> None:
        self.node(node)[1].clear()
        self.refresh()

    def group(self, group: int) -> list[int]:
        """The nodes of a multicast group."""
        if group not in self.groups:
            raise ControlError(f"multicast group {group}: it has not been created")
        return self.groups[group]

    def node(self, node: int) -> tuple[int, list[int]]:
        """The replication id and the ports of a node."""
        if node >= len(self._nodes):
            raise ControlError(f"multicast node {node}: it has not been created")
        return self._nodes[node]

    def _replicas(self, group: int) -> tuple[Replica, ...]:
        nodes = [self._nodes[n] for n in self.groups.get(group, [])]
        return tuple(dict.fromkeys(Replica(port, rid) for rid, ports in nodes for port in ports))

    def refresh(self) -> None:
        """Give the switch its groups again, and the sessions that mirror to one."""
        for group in self.groups:
            if group and self.regroup is not None:
                self.regroup(group)
            elif group:
                self.model.set_multicast_group(MulticastGroup(group, self._replicas(group)))
        for session, to in self._mirrors.items():
            if to[1] is not None:
                self._mirror(session, to)

    def _counter_read(self, name: str, index: Handle | Value) -> None:
        value = self.counter(name, index)
        self.notes.append(f"{name}[{_index_text(index)}]: {value.packets} packets, {value.bytes} bytes")

    def _counter_write(self, name: str, index: int, packets: int, size: int) -> None:
        self.model.write_counter(name, index, CounterValue(packets, size))

    def _counter_reset(self, name: str) -> None:
        table = self.of_entries(name)
        if table is not None:
            for entry in self.added.get(table, []):
                self.model.set_entry_counter(entry, CounterValue(0, 0))
            return
        for index in range(len(self.model.counters(name))):
            self.model.write_counter(name, index, CounterValue(0, 0))

    def _register_read(self, name: str, index: int) -> None:
        self.notes.append(f"{name}[{index}] = {self.model.register(name, index)}")

    def _register_write(self, name: str, index: int, value: int) -> None:
        self.model.write_register(name, index, value)

    def _register_reset(self, name: str) -> None:
        for index in range(len(self.model.registers(name))):
            self.model.write_register(name, index, 0)

    def _meter_get_rates(self, name: str, index: Handle | Value) -> None:
        table = self.of_entries(name)
        if table is None:
            config = self.model.meter(name, self.number(index))
        else:
            config = self.model.entry_meter(self.entry(index, table))
        self.notes.append(f"{name}[{_index_text(index)}]: {config or 'no rates'}")

    def _meter_set_rates(self, name: str, index: Handle | Value, committed: Rate, peak: Rate) -> None:
        config, table = _meter(committed, peak), self.of_entries(name)
        if table is None:
            self.model.set_meter(name, self.number(index), config)
        else:
            self.model.set_entry_meter(self.entry(index, table), config)

    def _meter_array_set_rates(self, name: str, committed: Rate, peak: Rate) -> None:
        self.model.set_meter(name, None, _meter(committed, peak))

    def _act_prof_create_group(self, profile: str) -> int:
        groups = self._selections.setdefault(profile, [])
        groups.append([])
        self.model.set_group(profile, len(groups) - 1, ())
        return len(groups) - 1

    def _act_prof_add_member_to_group(self, profile: str, member: int, group: int) -> None:
        self._selection(profile, group).append(member)
        self._select(profile, group)

    def _act_prof_remove_member_from_group(self, profile: str, member: int, group: int) -> None:
        members = self._selection(profile, group)
        if member not in members:
            raise ControlError(f"action profile {profile}: member {member} is not in group {group}")
        members.remove(member)
        self._select(profile, group)

    def _act_prof_delete_member(self, profile: str, member: int) -> None:
        self.model.delete_member(profile, member)

    def _selection(self, profile: str, group: int) -> list[int]:
        groups = self._selections.get(profile, [])
        if group >= len(groups):
            raise ControlError(f"action profile {profile}: group {group} has not been created")
        return groups[group]

    def _select(self, profile: str, group: int) -> None:
        # BMv2 keeps a group's members in the order of their numbers, and its selector counts in that order.
        members = sorted(self._selection(profile, group))
        self.model.set_group(profile, group, [GroupMember(member) for member in members])

    def _pvs_add(self, name: str, *values: int) -> None:
        members = self._sets.setdefault(name, [])
        members.append(tuple(Exact(v) for v in values))
        self.model.set_value_set(name, *members)

    def _pvs_clear(self, name: str) -> None:
        self._sets.pop(name, None)
        self.model.set_value_set(name)


def _index_text(index: Handle | Value) -> str:
    return index.name if isinstance(index, Handle) else str(index.value)


def _meter(committed: Rate, peak: Rate) -> MeterConfig:
    def per_second(rate: Rate) -> int:
        return round(rate.per_microsecond * 1_000_000)

    return MeterConfig(per_second(committed), committed.burst, per_second(peak), peak.burst)
