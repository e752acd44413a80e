"""Running both engines side by side and comparing everything that can be seen of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from p4gen.model import MeterConfig, Model
from p4gen.model.entries import Action, CloneSession, Entry, Exact, Lpm, MulticastGroup, Replica, Ternary
from p4gen.p4 import ir
from p4gen.p4 import types as t


class Pair:
    """A program on both engines, with one clock that only ``send`` moves."""

    def __init__(self, program: ir.Program, seed: int = 0) -> None:
        self.now = 1000
        self.program = program
        self.interp = Model(program, clock=lambda: self.now, seed=seed)
        self.jit = Model(program, clock=lambda: self.now, seed=seed, engine="jit", cache="")
        self.both = (self.interp, self.jit)

    def configure(self, rng: Random) -> None:
        """The same random entries, groups, sessions, meters and members in both."""
        for group in (1, 2):
            replicas = tuple(Replica(port, rng.randint(0, 3)) for port in rng.sample(range(6), group + 1))
            self.each("set_multicast_group", MulticastGroup(group, replicas))
        for session in (1, 2):
            replicas = tuple(Replica(port, port) for port in rng.sample(range(6), session))
            self.each("set_clone_session", CloneSession(session, replicas, rng.choice((0, 9))))
        for model in self.both:
            for meter in model._state.meters:
                model.set_meter(meter, None, MeterConfig(2_000_000, 60, 3_000_000, 90))
            for name in model._state.value_sets:
                model.set_value_set(name, 5, Ternary(0x80, 0xFE))
        for table in self.program.tables:
            if not table.const_entries:
                for _ in range(rng.randint(0, 5)):
                    self._entry(table, rng)

    def change(self, rng: Random) -> None:
        """One random change of a table, in both."""
        table = rng.choice([t for t in self.program.tables if not t.const_entries])
        held = self.interp.entries(table.name)
        if not held or rng.random() < 0.4:
            if len(held) < (table.size or 8):
                self._entry(table, rng)
            return
        entry = rng.choice(held)
        if rng.random() < 0.5:
            self.each("delete", entry)
        else:
            ref = rng.choice([r for r in table.actions if not r.default_only])
            self.each("modify", replace(entry, action=_action(ref, rng)))

    def _entry(self, table: ir.Table, rng: Random) -> None:
        match: dict[str, Any] = {}
        ordered = False
        for key in table.keys:
            width = t.width_of(key.expr.type)
            value = rng.choice((0, 5, rng.getrandbits(width))) & ((1 << width) - 1)
            if key.match_kind == "lpm":
                length = rng.randint(0, width)
                mask = ((1 << width) - 1) ^ ((1 << (width - length)) - 1)
                match[key.name] = Lpm(value & mask, length)
            elif key.match_kind == "ternary":
                mask = rng.choice((0, 1, (1 << width) - 1, rng.getrandbits(width)))
                match[key.name], ordered = Ternary(value & mask, mask), True
            elif key.match_kind == "exact":
                match[key.name] = Exact(value)
            else:
                ordered = True
        ref = rng.choice([r for r in table.actions if not r.default_only])
        entry = Entry(table.name, match, _action(ref, rng), rng.randint(1, 9) if ordered else 0)
        if self.interp._state.tables[table.name].find(_identity(self.interp, entry)) is None:
            self.each("insert", entry)

    def each(self, method: str, *args: Any) -> None:
        """Call a method of both."""
        for model in self.both:
            getattr(model, method)(*args)

    def send(self, port: int, packet: bytes) -> list[tuple[int, bytes]]:
        """Send a packet to both; they must give the same."""
        self.now += 7
        wanted, found = (m.process(port, packet) for m in self.both)
        assert found == wanted, f"packet {packet.hex()}: {_show(found)} instead of {_show(wanted)}"
        return wanted

    def compare(self) -> None:
        """All state must be the same."""
        wanted, found = (everything(m) for m in self.both)
        for name, value in wanted.items():
            assert found[name] == value, f"{name}: {found[name]} instead of {value}"


def _action(ref: ir.ActionRef, rng: Random) -> Action:
    args = {p.variable.name: rng.getrandbits(t.width_of(p.variable.type)) for p in ref.action.data}
    return Action(ref.action.name, {n: v % 6 if n == "port" else v for n, v in args.items()})


def _identity(model: Model, entry: Entry) -> tuple[object, ...]:
    from p4gen.model.control import _resolve_match  # noqa: PLC0415

    return (*_resolve_match(model._state.tables[entry.table], entry), entry.priority)


def _show(packets: Sequence[tuple[int, bytes]]) -> str:
    return ", ".join(f"{port}:{data.hex()}" for port, data in packets) or "nothing"


def everything(model: Model) -> dict[str, Any]:
    """The state of a model, by name."""
    state = model._state
    found: dict[str, Any] = {f"register {n}": list(r.cells) for n, r in state.registers.items()}
    found |= {f"counter {n}": (list(c.packets), list(c.bytes)) for n, c in state.counters.items()}
    for name, table in state.tables.items():
        entries = [table.find(e.identity) for e in table.entries()]
        found[f"table {name}"] = [(e.identity, e.packets, e.bytes, e.last_hit) for e in entries if e is not None]
    found["traps"] = sorted((str(trap.pos), trap.what, trap.count) for trap in model.traps())
    found["digests"], found["log"] = model.digests(), model.log_messages()
    return found
