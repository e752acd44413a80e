"""The memory of a pipe, and the state of the whole switch.

Every pipe has registers, counters and meters of its own, also where all pipes run the same program. Tables have the
same entries in all pipes. The control plane writes registers and meters of all pipes at once. It reads registers of
pipe 0 and the sums of counters, unless it names a pipe (``TofinoModel.registers``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, cast

from typing_extensions import override

from p4gen.chips.tna import PIPES
from p4gen.chips.tna.chip import chip_of
from p4gen.chips.tna.context import DECIDING, UNSET
from p4gen.chips.tna.filters import Detection, Filter, Levels
from p4gen.chips.tna.generator import Generator
from p4gen.chips.tna.hashing import calculation
from p4gen.chips.tna.replication import Lag, Pruning
from p4gen.chips.tna.views import EveryMeter, Selector, Shared, SumCounter
from p4gen.chips.tna.words import Array, Entries, Word
from p4gen.errors import Diagnostic, InputError
from p4gen.model.externs import Bucket, Counter, Meter
from p4gen.model.frozen import freeze_bucket
from p4gen.model.profiles import Profile
from p4gen.model.state import Clock, ModelState
from p4gen.model.tables import Installed
from p4gen.p4 import ir
from p4gen.p4 import types as t

ACTIONS = ("RegisterAction", "DirectRegisterAction", "MinMaxAction")
FILTERS = ("Lpf", "DirectLpf", "Wred", "DirectWred")
STATELESS = (
    "ActionProfile", "ActionSelector", "Alpm", "Atcam", "Checksum", "CRCPolynomial", "DirectCounter", "DirectMeter",
    "Digest", "Hash", "IdleTimeout", "Mirror", "ParserCounter", "ParserPriority", "Pktgen", "Random", "Resubmit",
    "SelectorAction", *FILTERS, "MathUnit", "LearnAction", *(f"LearnAction{number}" for number in (2, 3, 4)),
)  # fmt: skip
"""Externs whose instances have no state here. Of some of them the model knows no method; a call of one is refused."""


@dataclass
class Memory:
    """A pipe's own memory: registers, counters, meters, filters."""

    pipe: int
    arrays: dict[str, Array]
    entries: dict[str, Entries]
    params: dict[str, int]
    """Values of ``RegisterParam``; they are the same in all pipes."""
    counters: dict[str, Counter]
    meters: dict[str, Meter]
    levels: dict[str, Levels] = field(default_factory=dict)
    filters: dict[str, dict[int | None, Filter | Detection]] = field(default_factory=dict)
    """Configurations of filters by index, None for all others; they are the same in all pipes."""

    def reset(self) -> None:
        """The state after loading, except for parameters and configurations."""
        for group in (self.arrays, self.entries, self.counters, self.meters, self.levels):
            for each in group.values():
                each.reset()


class TofinoState(ModelState):
    """The state of a switch with TNA or T2NA."""

    SUPPORTED: ClassVar[tuple[str, ...]] = (
        "Counter", "DirectRegister", "Meter", "Register", "RegisterParam", *ACTIONS,
        *(f"{kind}{number}" for kind in ACTIONS for number in (2, 3, 4)), *STATELESS,
    )  # fmt: skip
    PADS_HEADERS: ClassVar[bool] = True
    DIRECT: ClassVar[Mapping[str, Literal["counter", "meter"]]] = {"DirectCounter": "counter", "DirectMeter": "meter"}

    def __init__(self, program: ir.Program, clock: Clock | None = None, seed: int = 0, *, poison: bool = False) -> None:
        super().__init__(program, clock, seed, poison=poison)
        self.params = _parameters(program)
        self.filters: dict[str, dict[int | None, Filter | Detection]] = {
            e.name: {} for extern in FILTERS for e in instances(program, extern)
        }
        self.pipes = [Memory(pipe, *self._memory(program)) for pipe in range(PIPES)]
        self._see_all()
        self.profiles = self._profiles(program)
        self.port_metadata: dict[int, int] = {}
        """The metadata between intrinsic metadata and packet, by port; 0 for other ports."""
        self.exclusions: dict[int, frozenset[int]] = {}
        """The ports of each exclusion id of level 2."""
        self.loopback: set[int] = set()
        """Ports whose output arrives again, besides those for recirculation."""
        self.lags: dict[int, Lag] = {}
        self.global_rid: int | None = None
        """A replication id of packets that exclude ports of all nodes."""
        self.cpu_port = chip_of(program).cpu_port
        """Where the copy to the CPU goes."""
        self.generator = Generator(chip_of(program), self._now, self.ports_down)

    def pruning(self, *, hashes_nodes: bool) -> Pruning:
        """The settings that decide about copies, besides their group and the packet."""
        return Pruning(self.exclusions, self.lags, self.ports_down, self.global_rid, hashes_nodes)

    def _see_all(self) -> None:
        """Make the control plane's views of the pipes."""
        by_name = {e.name: e for e in instances(self.program, "Register")}
        self.registers = {n: Shared(e, [p.arrays[n] for p in self.pipes]) for n, e in by_name.items()}
        first = self.pipes[0]
        self.counters = {n: SumCounter([p.counters[n] for p in self.pipes]) for n in first.counters}
        self.meters = {n: EveryMeter([p.meters[n] for p in self.pipes]) for n in first.meters}

    @override
    def unassigned(self, of: t.Type) -> Any:
        """A number that reads as 0, and counts for nothing where it is copied out to a field for the traffic manager
        or the deparser."""
        found = super().unassigned(of)
        if self.poison:
            return found
        if isinstance(t.strip(of), t.Bits):
            return UNSET
        if self.decides(of):
            found.fields[:] = [UNSET for _ in found.fields]
        return found

    @override
    def decides(self, of: t.Type) -> bool:
        """The types of fields for the traffic manager and the deparser."""
        kind = t.strip(of)
        return isinstance(kind, t.Struct) and kind.name.endswith(DECIDING)

    def _now(self) -> int:
        return self.clock()

    def _memory(self, program: ir.Program) -> tuple[Any, ...]:
        arrays = {e.name: _array(e) for e in instances(program, "Register")}
        entries = {e.name: Entries(word_of(e)) for e in instances(program, "DirectRegister")}
        counters = {e.name: Counter(e) for e in instances(program, "Counter")}
        meters = {e.name: Meter(e) for e in instances(program, "Meter")}
        levels = {name: Levels() for name in self.filters}
        return arrays, entries, self.params, counters, meters, levels, self.filters

    def _profiles(self, program: ir.Program) -> dict[str, Profile]:
        found: dict[str, Profile] = {}
        for e in instances(program, "ActionProfile"):
            found[e.name] = Profile(e.name, False, int(e.args[0]), ports_down=self.ports_down)
        for e in instances(program, "ActionSelector"):
            own = e.arguments.get("action_profile")
            members = found[own.name] if isinstance(own, ir.ExternInstance) else None
            size = members.size if members is not None else int(cast("int", e.arguments["size"]))
            hashed = e.arguments["hash"]
            assert isinstance(hashed, ir.ExternInstance)
            selector = Selector(e.name, True, size, ports_down=self.ports_down, calculation=calculation(hashed))
            if members is not None:
                # A selector chooses among the members of its profile; either name stands for them.
                selector.members, members.groups, members.selector = members.members, selector.groups, True
            found[e.name] = selector
        return found

    @override
    def reset(self) -> None:
        super().reset()
        for pipe in self.pipes:
            pipe.reset()
        self.params.update(_parameters(self.program))
        self.port_metadata.clear()
        self.exclusions.clear()
        self.loopback.clear()
        self.lags.clear()
        for configurations in self.filters.values():
            configurations.clear()
        self.global_rid, self.cpu_port = None, chip_of(self.program).cpu_port
        self.generator.reset()

    # --- freezing ---

    @override
    def _freeze_memory(self) -> tuple[Any, ...]:
        entries = [e for table in self.tables.values() for e in (*table.entries(), table.default)]
        hits = tuple((e.packets, e.bytes, e.last_hit, freeze_bucket(e.meter)) for e in entries)
        pipes = tuple(_freeze(pipe, entries) for pipe in self.pipes)
        return pipes, hits, self.freeze_settings(), self.random.getstate()

    def freeze_settings(self) -> tuple[Any, ...]:
        """The state that only this architecture has, as data."""
        return (
            tuple(self.params.items()), tuple(self.port_metadata.items()), tuple(self.exclusions.items()),
            tuple(self.lags.items()), tuple((name, tuple(each.items())) for name, each in self.filters.items()),
            tuple(sorted(self.loopback)), (self.global_rid, self.cpu_port),
            self.generator.freeze(),
        )  # fmt: skip

    def restore_settings(self, frozen: tuple[Any, ...]) -> None:
        """Undo ``freeze_settings``."""
        params, metadata, exclusions, lags, filters, loopback, (self.global_rid, self.cpu_port), generator = frozen
        for mine, theirs in (
            (self.params, params), (self.port_metadata, metadata), (self.exclusions, exclusions), (self.lags, lags),
        ):  # fmt: skip
            cast("dict[Any, Any]", mine).clear()
            cast("dict[Any, Any]", mine).update(theirs)
        for name, configurations in filters:
            self.filters[name].clear()
            self.filters[name].update(configurations)
        self.loopback.clear()
        self.loopback.update(loopback)
        self.generator.restore(generator)

    @override
    def _restore_switch(self, configuration: Any, memory: tuple[Any, ...]) -> None:
        pipes, hits, settings, chance = memory
        if list(map(_shape, pipes)) != [_shape(_freeze(pipe, [])) for pipe in self.pipes]:
            raise ValueError("the frozen state is of another program")
        if configuration != self._configuration():
            self._configure(configuration)
        entries = [e for table in self.tables.values() for e in (*table.entries(), table.default)]
        for entry, (packets, size, last, bucket) in zip(entries, hits, strict=True):
            entry.packets, entry.bytes, entry.last_hit = packets, size, last
            entry.meter = None if bucket is None else Bucket.of(bucket)
        for pipe, frozen in zip(self.pipes, pipes, strict=True):
            _restore(pipe, frozen, entries)
        self.restore_settings(settings)
        self.random.setstate(chance)


def _freeze(pipe: Memory, entries: Sequence[Installed]) -> tuple[Any, ...]:
    return (
        tuple(
            (a.executions, a.first, a.held, tuple(a.word.number(c)[0] for c in a.cells)) for a in pipe.arrays.values()
        ),
        tuple(
            tuple(r.word.number(v)[0] for v in (r.alone, *(r.of.get(e, r.word.fresh()) for e in entries)))
            for r in pipe.entries.values()
        ),
        tuple((tuple(c.packets), tuple(c.bytes)) for c in pipe.counters.values()),
        tuple(tuple(map(freeze_bucket, m.buckets)) for m in pipe.meters.values()),
        tuple(levels.freeze(list(entries)) for levels in pipe.levels.values()),
    )


def _shape(frozen: tuple[Any, ...]) -> tuple[Any, ...]:
    arrays, entries, counters, meters, _ = frozen
    return [len(cells) for *_, cells in arrays], len(entries), [len(p) for p, _ in counters], list(map(len, meters))


def _restore(pipe: Memory, frozen: tuple[Any, ...], entries: Sequence[Installed]) -> None:
    arrays, direct, counters, meters, levels = frozen
    for array, (executions, first, held, cells) in zip(pipe.arrays.values(), arrays, strict=True):
        array.executions, array.first, array.held = executions, first, held
        array.cells[:] = [array.word.value(number) for number in cells]
    for register, (alone, *numbers) in zip(pipe.entries.values(), direct, strict=True):
        register.alone = register.word.value(alone)
        register.of.clear()
        register.of.update((e, register.word.value(n)) for e, n in zip(entries, numbers, strict=True))
    for counter, (packets, sizes) in zip(pipe.counters.values(), counters, strict=True):
        counter.packets[:], counter.bytes[:] = packets, sizes
    for meter, buckets in zip(pipe.meters.values(), meters, strict=True):
        meter.buckets[:] = map(Bucket.of, buckets)
    for mine, theirs in zip(pipe.levels.values(), levels, strict=True):
        mine.restore(theirs, list(entries))


def instances(program: ir.Program, extern: str) -> Iterator[ir.ExternInstance]:
    """The instances of an extern."""
    return (e for e in program.externs if e.extern == extern)


def _parameters(program: ir.Program) -> dict[str, int]:
    return {e.name: cast("int", e.arguments["initial_value"]) for e in instances(program, "RegisterParam")}


def word_of(instance: ir.ExternInstance) -> Word:
    """The values of a register. Raises ``InputError`` for types that it cannot have."""
    of = instance.type_args[0]
    try:
        return Word(of, instance.arguments.get("initial_value"))
    except TypeError as problem:
        what = f"register {instance.name}: elements of type {of} are not supported ({problem})"
        raise InputError(Diagnostic(instance.pos, what)) from None


def _array(instance: ir.ExternInstance) -> Array:
    word = word_of(instance)
    return Array(word, [word.fresh() for _ in range(size_of(instance))])


def size_of(instance: ir.ExternInstance) -> int:
    """How many cells a register has."""
    size = instance.arguments["size"]
    assert isinstance(size, int)
    return size
