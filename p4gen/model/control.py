"""The control plane of the behavioural model: ``ControlPlane`` on a ``ModelState``.

Requests follow P4Runtime 1.4 (section 9): names are P4Info names, entries of tables with ternary,
range or optional keys need a priority and larger ones win, lpm entries order themselves. A request of
several entries is done whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableSequence

from typing_extensions import override

from p4gen.model.control_plane import ControlPlane
from p4gen.model.entries import (
    Action,
    CloneSession,
    CounterValue,
    Entry,
    Exact,
    Lpm,
    Match,
    MulticastGroup,
    Range,
    Replica,
    Ternary,
    Text,
)
from p4gen.model.errors import ControlError
from p4gen.model.externs import Bucket, Counter, Meter, MeterConfig, Register, Trap
from p4gen.model.names import alternatives, find
from p4gen.model.state import Digest, ModelState
from p4gen.model.tables import Installed, KeyField, KeySpec, TableState, key_width
from p4gen.p4 import ir
from p4gen.p4 import types as t

MAX_PRIORITY = 2**31 - 1

DIRECT_COUNTERS = ("direct_counter", "DirectCounter")
DIRECT_METERS = ("direct_meter", "DirectMeter")


class Control(ControlPlane):
    """The control plane of an embedded switch, with more than ``ControlPlane`` asks for."""

    def __init__(self, state: ModelState) -> None:
        self._state = state

    # --- table entries ---

    @override
    def insert(self, *entries: Entry) -> None:
        self._batch(entries, self._insert)

    @override
    def modify(self, *entries: Entry) -> None:
        self._batch(entries, self._modify)

    @override
    def delete(self, *entries: Entry) -> None:
        self._batch(entries, self._delete)

    @override
    def entries(self, table: str) -> list[Entry]:
        state = self._table(table)
        return [_entry_of(state, installed) for installed in state.entries()]

    @override
    def set_default(self, table: str, action: Action | None) -> None:
        state = self._table(table)
        if state.table.const_default:
            raise ControlError(f"table {state.table.name}: its default action is const")
        if action is None:
            state.set_default(None, ())
        else:
            state.set_default(*resolve_action(state, action, default=True))

    def default(self, table: str) -> Action:
        """The current default action of a table."""
        state = self._table(table)
        return _action_of(state.default)

    def entry_counter(self, entry: Entry) -> CounterValue:
        """The table's direct counter for ``entry`` (whose action is ignored)."""
        state = self._table(entry.table)
        if not any(e.extern in DIRECT_COUNTERS for e in state.table.direct):
            raise ControlError(f"table {state.table.name}: it has no direct counter")
        found = self._existing(state, entry)
        return CounterValue(found.packets, found.bytes)

    def _table(self, name: str) -> TableState:
        return find("table", name, self._state.tables)

    def _batch(self, entries: tuple[Entry, ...], step: Callable[[Entry], Callable[[], None]]) -> None:
        undo: list[Callable[[], None]] = []
        try:
            for entry in entries:
                undo.append(step(entry))  # noqa: PERF401 - what was done before a failure must be known
        except ControlError:
            for back in reversed(undo):
                back()
            raise

    def _insert(self, entry: Entry) -> Callable[[], None]:
        state = self._changeable(entry.table)
        fields = _resolve_match(state, entry)
        new = self._installed(state, fields, entry)
        new.last_hit = self._state.clock()
        if state.find(new.identity) is not None:
            raise ControlError(f"table {state.table.name}: an entry with {describe_match(entry)} already exists")
        if len(state) >= state.size:
            raise ControlError(f"table {state.table.name}: full, it has room for {state.size} entries")
        state.insert(new)
        return lambda: state.remove(new)

    def _modify(self, entry: Entry) -> Callable[[], None]:
        state = self._changeable(entry.table)
        old = self._existing(state, entry)
        before = Installed(old.fields, old.ref, old.args, old.priority, bound=old.bound)
        state.replace(old, self._installed(state, old.fields, entry))
        return lambda: state.replace(old, before)

    def _delete(self, entry: Entry) -> Callable[[], None]:
        state = self._changeable(entry.table)
        old = self._existing(state, entry)
        if old.const:
            raise ControlError(f"table {state.table.name}: the entry with {describe_match(entry)} is const")
        state.remove(old)
        return lambda: state.insert(old)

    def _installed(self, state: TableState, fields: tuple[KeyField, ...], entry: Entry) -> Installed:
        return Installed(fields, *resolve_action(state, entry.action, default=False), entry.priority)

    def _changeable(self, table: str) -> TableState:
        state = self._table(table)
        if state.table.const_entries:
            raise ControlError(f"table {state.table.name}: its entries are const")
        if not state.keys:
            raise ControlError(f"table {state.table.name}: it has no keys, so only a default action")
        return state

    def _existing(self, state: TableState, entry: Entry) -> Installed:
        fields = _resolve_match(state, entry)
        found = state.find((*fields, entry.priority))
        if found is None:
            raise ControlError(f"table {state.table.name}: there is no entry with {describe_match(entry)}")
        return found

    # --- packet replication ---

    @override
    def set_multicast_group(self, group: MulticastGroup) -> None:
        what = f"multicast group {group.group_id}"
        if not 1 <= group.group_id < 1 << 16:
            raise ControlError(f"{what}: the id must be 1 to 65535 (0 means no multicast)")
        _check_replicas(what, group.replicas)
        if group.replicas:
            self._state.groups[group.group_id] = group
        else:
            self._state.groups.pop(group.group_id, None)

    @override
    def set_clone_session(self, session: CloneSession) -> None:
        what = f"clone session {session.session_id}"
        if not 0 <= session.session_id < 1 << 15:
            raise ControlError(f"{what}: the id must be at most 32767")
        if session.packet_length < 0:
            raise ControlError(f"{what}: packet_length {session.packet_length} is negative")
        _check_replicas(what, session.replicas)
        if session.replicas:
            self._state.sessions[session.session_id] = session
        else:
            self._state.sessions.pop(session.session_id, None)

    # --- externs ---

    @override
    def counter(self, name: str, index: int = 0) -> CounterValue:
        found: Counter = find("counter", name, self._state.counters)
        _check_index(f"counter {found.name}", index, found.size)
        return CounterValue(found.packets[index], found.bytes[index])

    @override
    def counters(self, name: str) -> list[CounterValue]:
        found: Counter = find("counter", name, self._state.counters)
        return [CounterValue(p, b) for p, b in zip(found.packets, found.bytes, strict=True)]

    def write_counter(self, name: str, index: int, value: CounterValue) -> None:
        """Set one cell of an indexed counter."""
        found: Counter = find("counter", name, self._state.counters)
        _check_index(f"counter {found.name}", index, found.size)
        found.packets[index], found.bytes[index] = value.packets, value.bytes

    @property
    def register_names(self) -> tuple[str, ...]:
        """The full names of the program's registers."""
        return tuple(self._state.registers)

    @property
    def keeps_time(self) -> bool:
        """Whether the program's behaviour may depend on meters, and so on time."""
        return bool(self._state.meters)

    @override
    def register(self, name: str, index: int) -> int:
        """One cell, as an unsigned number; ``NAME.FIELD`` is a field of the register."""
        found, low, width = self._part(name)
        _check_index(f"register {found.name}", index, found.size)
        return int(found.cells[index]) >> low & (1 << width) - 1

    def _part(self, name: str) -> tuple[Register, int, int]:
        """A register, or a field of one, with its lowest bit and its width."""
        whole, _, field = name.rpartition(".")
        for each, register in self._state.registers.items():
            if field in register.fields and whole and (each == whole or each.endswith("." + whole)):
                return find("register", whole, self._state.registers), *register.fields[field]
        found: Register = find("register", name, self._state.registers)
        return found, 0, found.width

    @override
    def registers(self, name: str) -> list[int]:
        found: Register = find("register", name, self._state.registers)
        mask = (1 << found.width) - 1
        return [int(v) & mask for v in found.cells]

    @override
    def write_register(self, name: str, index: int, value: int) -> None:
        """``name`` may be ``NAME.FIELD``, a field of the register; the value has its width."""
        found, low, width = self._part(name)
        _check_index(f"register {found.name}", index, found.size)
        _check_width(f"register {found.name}", value, width)
        if width < found.width:
            value = int(found.cells[index]) & ~((1 << width) - 1 << low) | value << low
        if found.signed and value >> (found.width - 1):
            value -= 1 << found.width
        found.cells[index] = bool(value) if found.is_bool else value

    def register_cells(self, name: str) -> MutableSequence[int]:
        """The cells of a register, for callers that write them often. Nothing checks the written values; they must
        fit."""
        found: Register = find("register", name, self._state.registers)
        return found.cells

    def set_meter(self, name: str, index: int | None, config: MeterConfig | None) -> None:
        """Configure one cell of an indexed meter, or with ``index`` None all cells. ``config`` None: always green."""
        found: Meter = find("meter", name, self._state.meters)
        if index is not None:
            _check_index(f"meter {found.name}", index, found.size)
        _check_meter(f"meter {found.name}", config)
        now = self._state.clock()
        for bucket in found.buckets if index is None else [found.buckets[index]]:
            bucket.configure(config, now)

    def meter(self, name: str, index: int) -> MeterConfig | None:
        """The configuration of one cell of an indexed meter."""
        found: Meter = find("meter", name, self._state.meters)
        _check_index(f"meter {found.name}", index, found.size)
        return found.buckets[index].config

    def set_entry_meter(self, entry: Entry, config: MeterConfig | None) -> None:
        """Configure the direct meter of an entry (whose action is ignored)."""
        state = self._table(entry.table)
        if not any(e.extern in DIRECT_METERS for e in state.table.direct):
            raise ControlError(f"table {state.table.name}: it has no direct meter")
        _check_meter(f"table {state.table.name}", config)
        found = self._existing(state, entry)
        found.meter = Bucket()
        found.meter.configure(config, self._state.clock())

    def set_value_set(self, name: str, *members: tuple[Match, ...] | Match) -> None:
        """Replace the members of a parser value set: one match per field of its type."""
        sets = {v.name: v for v in self._state.program.value_sets}
        value_set = find("value set", name, sets)
        widths = _value_set_widths(value_set.type)
        resolved = []
        for member in members:
            fields = member if isinstance(member, tuple) else (member,)
            if len(fields) != len(widths):
                raise ControlError(f"value set {value_set.name}: a member has {len(widths)} fields, not {len(fields)}")
            resolved.append(
                tuple(
                    _mask_field(f"value set {value_set.name}", KeySpec(str(i), "ternary", w), m)
                    for i, (w, m) in enumerate(zip(widths, fields, strict=True))
                )
            )
        if len(resolved) > value_set.size:
            raise ControlError(f"value set {value_set.name}: it has room for {value_set.size} members")
        self._state.value_sets[value_set.name][:] = resolved

    # --- events ---

    def traps(self) -> list[Trap]:
        """Undefined behaviour since loading, counted by source position."""
        return self._state.traps()

    def digests(self) -> list[Digest]:
        """Digests sent since the last call."""
        result = self._state.digests[:]
        self._state.digests.clear()
        return result

    def log_messages(self) -> list[str]:
        """Messages of ``log_msg`` since the last call."""
        result = self._state.log[:]
        self._state.log.clear()
        return result

    @override
    def reset(self) -> None:
        self._state.reset()


# --- from requests to stored entries ---


def _resolve_match(state: TableState, entry: Entry) -> tuple[KeyField, ...]:
    table = state.table.name
    by_name = {k.name: k for k in state.keys}
    given: dict[str, Match] = {}
    for name, match in entry.match.items():
        spec = _find_key(table, name, by_name)
        if spec.name in given:
            raise ControlError(f"table {table}: key {spec.name} is given twice")
        given[spec.name] = match
    if state.needs_priority and not 1 <= entry.priority <= MAX_PRIORITY:
        raise ControlError(f"table {table}: the entry needs a priority (1 or more, larger wins), not {entry.priority}")
    if not state.needs_priority and entry.priority != 0:
        raise ControlError(f"table {table}: its entries have no priority (no ternary, range or optional key)")
    return tuple(_field(table, spec, given.get(spec.name)) for spec in state.keys)


def _find_key(table: str, name: str, keys: Mapping[str, KeySpec]) -> KeySpec:
    return find("key", name, keys, where=f"table {table}: ")


def _field(table: str, spec: KeySpec, match: Match | None) -> KeyField:
    what = f"table {table}: key {spec.name}"
    if spec.width == 0:
        raise ControlError(f"{what}: its type has no representation for the control plane")
    if match is None:
        if spec.kind == "exact":
            raise ControlError(f"{what}: missing, an exact key cannot be left out")
        return (0, spec.full_mask) if spec.kind == "range" else (0, 0)
    if spec.kind == "range":
        return _range_field(what, spec, match)
    return _mask_field(what, spec, match)


def _range_field(what: str, spec: KeySpec, match: Match) -> KeyField:
    match match:
        case Range(low=low, high=high):
            _check_width(what, low, spec.width)
            _check_width(what, high, spec.width)
            if low > high:
                raise ControlError(f"{what}: range {low}..{high} is empty")
            return (low, high)
        case Exact(value=value) | int(value):
            _check_width(what, value, spec.width)
            return (value, value)
    raise _wrong_kind(what, spec, match)


def _mask_field(what: str, spec: KeySpec, match: Match) -> tuple[int, int]:
    match match:
        case Exact(value=value) | int(value):
            # An exact value is the special case of any kind of match (simple_switch.md, Note 5).
            mask = spec.full_mask
        case Lpm(value=value, prefix_len=length) if spec.kind in ("lpm", "ternary"):
            if not 0 <= length <= spec.width:
                raise ControlError(f"{what}: prefix length {length} is not 0 to {spec.width}")
            mask = spec.full_mask ^ (spec.full_mask >> length)
        case Ternary(value=value, mask=mask) if spec.kind == "ternary":
            _check_width(f"{what}: mask", mask, spec.width)
        case _:
            raise _wrong_kind(what, spec, match)
    _check_width(what, value, spec.width)
    if value & ~mask:
        raise ControlError(f"{what}: value {value:#x} has bits outside its mask {mask:#x}")
    return (value, mask)


def _wrong_kind(what: str, spec: KeySpec, match: Match) -> ControlError:
    return ControlError(f"{what}: it is {spec.kind}, and {type(match).__name__} does not fit it")


def resolve_action(
    state: TableState, action: Action, *, default: bool
) -> tuple[ir.ActionRef, tuple[int | bool | str, ...]]:
    """An action and its data as a table stores them. Raises ``ControlError`` for what does not fit the table."""
    table = state.table.name
    refs = {ref.action.name: ref for ref in state.table.actions}
    short = {ref.name: ref for ref in state.table.actions}
    ref = short.get(action.name) or find("action", action.name, refs, where=f"table {table}: ")
    name = ref.action.name
    if ref.default_only and not default:
        raise ControlError(f"table {table}: action {name} is only for the default action (@defaultonly)")
    if ref.table_only and default:
        raise ControlError(f"table {table}: action {name} is not for the default action (@tableonly)")
    params = {p.variable.name: p for p in ref.action.data}
    for given in action.args:
        if given not in params:
            raise ControlError(f"table {table}: action {name}: no parameter {given}; {alternatives(given, params)}")
    args = []
    for param, spec in params.items():
        what = f"table {table}: action {name}: parameter {param}"
        if param not in action.args:
            raise ControlError(f"{what}: missing")
        args.append(_argument(what, action.args[param], spec.variable.type))
    return ref, tuple(args)


def _argument(what: str, value: int, of: t.Type) -> int | bool:
    of = t.strip(of)
    if not isinstance(of, (t.Bits, t.Bool, t.SerEnum)):
        raise ControlError(f"{what}: its type {of} has no representation for the control plane")
    width = t.width_of(of)
    _check_width(what, value, width)
    if isinstance(of, t.Bool):
        return bool(value)
    base = of.base if isinstance(of, t.SerEnum) else of
    return value - (1 << width) if base.signed and value >> (width - 1) else value


def _check_width(what: str, value: int, width: int) -> None:
    if not isinstance(value, int):
        raise ControlError(f"{what}: {value!r} is not a number")
    if value < 0 or value >> width:
        raise ControlError(f"{what}: value {value} does not fit bit<{width}> (0 to {(1 << width) - 1})")


def _check_index(what: str, index: int, size: int) -> None:
    if not 0 <= index < size:
        raise ControlError(f"{what}: index {index} is out of range, it has {size} cells")


def _check_meter(what: str, config: MeterConfig | None) -> None:
    if config is None:
        return
    if min(config.cir, config.cburst, config.pir, config.pburst) < 0:
        raise ControlError(f"{what}: rates and bursts cannot be negative")
    if config.cir > config.pir:
        raise ControlError(f"{what}: the committed rate {config.cir} is above the peak rate {config.pir}")


def _check_replicas(what: str, replicas: tuple[Replica, ...]) -> None:
    for replica in replicas:
        if not 0 <= replica.port < 1 << 9:
            raise ControlError(f"{what}: port {replica.port} does not fit bit<9>")
        if not 0 <= replica.rid < 1 << 16:
            raise ControlError(f"{what}: rid {replica.rid} does not fit bit<16>")
    if len(set(replicas)) != len(replicas):
        raise ControlError(f"{what}: two replicas have the same port and rid")


def _value_set_widths(of: t.Type) -> list[int]:
    of = t.strip(of)
    if isinstance(of, t.Fields):
        return [width for f in of.fields for width in _value_set_widths(f.type)]
    if isinstance(of, t.Tuple):
        return [width for e in of.elements for width in _value_set_widths(e)]
    return [key_width(of)]


# --- from stored entries to requests ---


def _entry_of(state: TableState, installed: Installed) -> Entry:
    match: dict[str, Match] = {}
    for spec, field in zip(state.keys, installed.fields, strict=True):
        found = _match_of(spec, field)
        if found is not None:
            match[spec.name] = found
    return Entry(state.table.name, match, _action_of(installed), installed.priority)


def _match_of(spec: KeySpec, field: KeyField) -> Match | None:
    a, b = field
    if isinstance(a, str) or isinstance(b, str):
        return None
    match spec.kind:
        case "exact":
            return Exact(a)
        case "optional":
            return Exact(a) if b else None
        case "lpm":
            return Lpm(a, b.bit_count()) if b else None
        case "range":
            return None if (a, b) == (0, spec.full_mask) else Range(a, b)
    return Ternary(a, b) if b else None


def _action_of(installed: Installed) -> Action:
    if installed.bound is not None:
        return installed.bound.indirect
    args = {}
    for param, value in zip(installed.ref.action.data, installed.args, strict=True):
        if not isinstance(value, str):
            args[param.variable.name] = int(value) & (1 << t.width_of(param.variable.type)) - 1
    return Action(installed.ref.action.name, args)


def describe_match(entry: Entry) -> str:
    """The match of an entry as text for messages and traces: ``a=1, b=0x2&0xf, priority 3``."""
    parts = []
    for name, match in entry.match.items():
        match match:
            case Lpm(value=value, prefix_len=length):
                parts.append(f"{name}={value:#x}/{length}")
            case Ternary(value=value, mask=mask):
                parts.append(f"{name}={value:#x}&{mask:#x}")
            case Range(low=low, high=high):
                parts.append(f"{name}={low}..{high}")
            case Exact(value=value) | int(value):
                parts.append(f"{name}={value!r}" if isinstance(value, Text) else f"{name}={value:#x}")
    if entry.priority:
        parts.append(f"priority {entry.priority}")
    return ", ".join(parts) or "no match fields"
