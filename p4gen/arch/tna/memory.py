"""The memory of a pipe, and the state of the whole switch.

Every pipe has registers, counters and meters of its own, also where all pipes run the same program. Tables have the
same entries in all pipes. The control plane writes registers and meters of all pipes at once and reads registers of
pipe 0 and the sums of counters, unless it asks for a pipe (``TofinoModel.registers``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast, overload
from weakref import WeakKeyDictionary

from p4gen.arch.tna.chip import PIPES, chip_of
from p4gen.arch.tna.generator import Generator
from p4gen.arch.tna.hashing import calculation
from p4gen.errors import Diagnostic, InputError
from p4gen.model.codec import decoder, flattener
from p4gen.model.externs import Bucket, Counter, Meter, Register
from p4gen.model.frozen import freeze_bucket
from p4gen.model.profiles import Profile
from p4gen.model.state import Clock, ModelState
from p4gen.model.tables import Installed
from p4gen.model.values import StructValue, copy_value, zero
from p4gen.p4 import ir
from p4gen.p4 import types as t

ACTIONS = ("RegisterAction", "DirectRegisterAction")
STATELESS = (
    "ActionProfile", "ActionSelector", "Alpm", "Atcam", "Checksum", "CRCPolynomial", "DirectCounter", "DirectMeter",
    "Digest", "Hash", "IdleTimeout", "Mirror", "ParserCounter", "ParserPriority", "Pktgen", "Random", "Resubmit",
    "SelectorAction", "Lpf", "DirectLpf", "Wred", "DirectWred", "MathUnit", "LearnAction", "MinMaxAction",
    *(f"{kind}{number}" for kind in ("LearnAction", "MinMaxAction") for number in (2, 3, 4)),
)  # fmt: skip
"""Externs whose instances have no state here. Of some of them the model knows no method; a call of one is refused."""


class Word:
    """The values of a register: how they start, and what they are as numbers, the first field in the highest bits."""

    def __init__(self, of: t.Type, initial: Any = None) -> None:
        self.width = t.width_of(of)
        self.number = flattener(of, valid_only=False)
        self.value = decoder(of)
        self._initial = zero(of) if initial is None else _value(of, initial)

    def fresh(self) -> Any:
        """The initial value, to be kept."""
        return copy_value(self._initial)


def _value(of: t.Type, given: Any) -> Any:
    """A constructor's argument as a value of type ``of``."""
    kind = t.strip(of)
    if isinstance(given, tuple):
        parts = [f.type for f in kind.fields] if isinstance(kind, t.Fields) else list(cast("t.Tuple", kind).elements)
        return StructValue([_value(part, each) for part, each in zip(parts, given, strict=True)])
    return given


@dataclass
class Array:
    """An indexed register in one pipe."""

    word: Word
    cells: list[Any]
    executions: int = 0
    """How often ``execute_log`` was called, which is the next index."""

    def reset(self) -> None:
        """All cells as they start."""
        self.cells[:] = [self.word.fresh() for _ in self.cells]
        self.executions = 0


class Entries:
    """A register with a cell for each entry of a table, in one pipe; None stands for no entry."""

    def __init__(self, word: Word) -> None:
        self.word = word
        self.alone = word.fresh()
        self.of: WeakKeyDictionary[Installed, Any] = WeakKeyDictionary()

    def reset(self) -> None:
        """All cells as they start."""
        self.alone = self.word.fresh()
        self.of.clear()


@dataclass
class Memory:
    """What a pipe has of its own."""

    pipe: int
    arrays: dict[str, Array]
    entries: dict[str, Entries]
    params: dict[str, int]
    """Values of ``RegisterParam``; they are the same in all pipes."""
    counters: dict[str, Counter]
    meters: dict[str, Meter]

    def reset(self) -> None:
        """The state after loading, except for parameters."""
        for group in (self.arrays, self.entries, self.counters, self.meters):
            for each in group.values():
                each.reset()


class Shared(Register):
    """A register as the control plane sees it."""

    def __init__(self, instance: ir.ExternInstance, arrays: Sequence[Array]) -> None:
        word = arrays[0].word
        self.name, self.width, self.size = instance.name, word.width, len(arrays[0].cells)
        self.signed = self.is_bool = False
        self._arrays = arrays
        self.cells = cast("list[int]", _Cells(arrays))

    def reset(self) -> None:
        """All cells of all pipes as they start."""
        for array in self._arrays:
            array.reset()


class _Cells(MutableSequence[int]):
    """Cells as numbers: reads are of pipe 0, writes of all pipes."""

    def __init__(self, arrays: Sequence[Array]) -> None:
        self._arrays = arrays

    def __len__(self) -> int:
        return len(self._arrays[0].cells)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> MutableSequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | MutableSequence[int]:
        first = self._arrays[0]
        if isinstance(index, slice):
            return [first.word.number(each)[0] for each in first.cells[index]]
        return first.word.number(first.cells[index])[0]

    def __setitem__(self, index: int | slice, value: Any) -> None:
        places = range(len(self))[index] if isinstance(index, slice) else [index]
        values: Iterable[int] = value if isinstance(index, slice) else [value]
        for at, number in zip(places, values, strict=True):
            for array in self._arrays:
                array.cells[at] = array.word.value(number)

    def __delitem__(self, index: int | slice) -> None:
        raise TypeError("a register keeps its size")

    def insert(self, index: int, value: int) -> None:
        """Not possible."""
        raise TypeError("a register keeps its size")


class _Sums(MutableSequence[int]):
    """One number a cell, summed over the pipes; what is written stands in pipe 0."""

    def __init__(self, parts: Sequence[list[int]]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return len(self._parts[0])

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> MutableSequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | MutableSequence[int]:
        if isinstance(index, slice):
            return [sum(each) for each in zip(*(part[index] for part in self._parts), strict=True)]
        return sum(part[index] for part in self._parts)

    def __setitem__(self, index: int | slice, value: Any) -> None:
        for i, part in enumerate(self._parts):
            if isinstance(index, slice):
                part[index] = list(value) if i == 0 else [0] * len(part[index])
            else:
                part[index] = value if i == 0 else 0

    def __delitem__(self, index: int | slice) -> None:
        raise TypeError("a counter keeps its size")

    def insert(self, index: int, value: int) -> None:
        """Not possible."""
        raise TypeError("a counter keeps its size")


class _SumCounter(Counter):
    def __init__(self, parts: Sequence[Counter]) -> None:
        self.name, self.size = parts[0].name, parts[0].size
        self.packets = cast("list[int]", _Sums([part.packets for part in parts]))
        self.bytes = cast("list[int]", _Sums([part.bytes for part in parts]))


class _EveryMeter(Meter):
    """A meter's buckets in all pipes, those of pipe 0 first; what is configured is configured in each."""

    def __init__(self, parts: Sequence[Meter]) -> None:
        self.name, self.size, self.in_bytes = parts[0].name, parts[0].size, parts[0].in_bytes
        self.buckets = [_Buckets(parts, i) for i in range(self.size)]

    def reset(self) -> None:
        """No rates."""
        for bucket in self.buckets:
            bucket.configure(None, 0)


class _Buckets(Bucket):
    __slots__ = ("_at", "_parts")

    def __init__(self, parts: Sequence[Meter], at: int) -> None:
        super().__init__()
        self._parts, self._at = parts, at

    def configure(self, config: Any, now: int) -> None:
        """Configure each."""
        super().configure(config, now)
        for part in self._parts:
            part.buckets[self._at].configure(config, now)

    def follow(self) -> None:
        """Take over the configuration of pipe 0's."""
        self.config = self._parts[0].buckets[self._at].config


@dataclass(eq=False)
class Selector(Profile):
    """An action selector, with its own hash."""

    calculation: Callable[[int, int], int] = field(default=lambda key, _: key, repr=False)

    def hash(self, key: int, width: int) -> int:
        """By its instance of ``Hash``."""
        return self.calculation(key, width)


class TofinoState(ModelState):
    """The state of a switch with TNA or T2NA."""

    SUPPORTED: ClassVar[tuple[str, ...]] = (
        "Counter", "DirectRegister", "Meter", "Register", "RegisterParam", *ACTIONS,
        *(f"{kind}{number}" for kind in ACTIONS for number in (2, 3, 4)), *STATELESS,
    )  # fmt: skip

    def __init__(self, program: ir.Program, clock: Clock | None = None, seed: int = 0, *, poison: bool = False) -> None:
        super().__init__(program, clock, seed, poison=poison)
        self.params = _parameters(program)
        self.pipes = [Memory(pipe, *self._memory(program)) for pipe in range(PIPES)]
        by_name = {e.name: e for e in _of(program, "Register")}
        self.registers = {n: Shared(e, [p.arrays[n] for p in self.pipes]) for n, e in by_name.items()}
        first = self.pipes[0]
        self.counters = {n: _SumCounter([p.counters[n] for p in self.pipes]) for n in first.counters}
        self.meters = {n: _EveryMeter([p.meters[n] for p in self.pipes]) for n in first.meters}
        self.profiles = self._profiles(program)
        self.port_metadata: dict[int, int] = {}
        """What stands between intrinsic metadata and packet, by port; 0 for those not here."""
        self.exclusions: dict[int, frozenset[int]] = {}
        """The ports of each exclusion id of level 2."""
        self.loopback: set[int] = set()
        """Ports whose output arrives again, besides those for recirculation."""
        self.generator = Generator(chip_of(program), self._now, self.ports_down)

    def _now(self) -> int:
        return self.clock()

    def _memory(self, program: ir.Program) -> tuple[Any, ...]:
        arrays = {e.name: _array(e) for e in _of(program, "Register")}
        entries = {e.name: Entries(_word(e)) for e in _of(program, "DirectRegister")}
        counters = {e.name: Counter(e) for e in _of(program, "Counter")}
        meters = {e.name: Meter(e) for e in _of(program, "Meter")}
        return arrays, entries, self.params, counters, meters

    def _profiles(self, program: ir.Program) -> dict[str, Profile]:
        found: dict[str, Profile] = {}
        for e in _of(program, "ActionProfile"):
            found[e.name] = Profile(e.name, False, int(e.args[0]), ports_down=self.ports_down)
        for e in _of(program, "ActionSelector"):
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

    def reset(self) -> None:
        """Return to the state after loading."""
        super().reset()
        for pipe in self.pipes:
            pipe.reset()
        self.params.update(_parameters(self.program))
        self.port_metadata.clear()
        self.exclusions.clear()
        self.loopback.clear()
        self.generator.reset()

    # --- freezing ---

    def _freeze_memory(self) -> tuple[Any, ...]:
        entries = [e for table in self.tables.values() for e in (*table.entries(), table.default)]
        hits = tuple((e.packets, e.bytes, e.last_hit, freeze_bucket(e.meter)) for e in entries)
        settings = (
            tuple(self.params.items()), tuple(self.port_metadata.items()), tuple(self.exclusions.items()),
            tuple(sorted(self.loopback)), self.generator.freeze(),
        )  # fmt: skip
        return tuple(_freeze(pipe, entries) for pipe in self.pipes), hits, settings, self.random.getstate()

    def _restore_switch(self, configuration: Any, memory: tuple[Any, ...]) -> None:
        pipes, hits, (params, metadata, exclusions, loopback, generator), chance = memory
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
        for meter in self.meters.values():
            for every in meter.buckets:
                assert isinstance(every, _Buckets)
                every.follow()
        for mine, theirs in ((self.params, params), (self.port_metadata, metadata), (self.exclusions, exclusions)):
            cast("dict[Any, Any]", mine).clear()
            cast("dict[Any, Any]", mine).update(theirs)
        self.loopback.clear()
        self.loopback.update(loopback)
        self.generator.restore(generator)
        self.random.setstate(chance)


def _freeze(pipe: Memory, entries: Sequence[Installed]) -> tuple[Any, ...]:
    return (
        tuple((a.executions, tuple(a.word.number(c)[0] for c in a.cells)) for a in pipe.arrays.values()),
        tuple(
            tuple(r.word.number(v)[0] for v in (r.alone, *(r.of.get(e, r.word.fresh()) for e in entries)))
            for r in pipe.entries.values()
        ),
        tuple((tuple(c.packets), tuple(c.bytes)) for c in pipe.counters.values()),
        tuple(tuple(map(freeze_bucket, m.buckets)) for m in pipe.meters.values()),
    )


def _shape(frozen: tuple[Any, ...]) -> tuple[Any, ...]:
    arrays, entries, counters, meters = frozen
    return [len(cells) for _, cells in arrays], len(entries), [len(p) for p, _ in counters], list(map(len, meters))


def _restore(pipe: Memory, frozen: tuple[Any, ...], entries: Sequence[Installed]) -> None:
    arrays, direct, counters, meters = frozen
    for array, (executions, cells) in zip(pipe.arrays.values(), arrays, strict=True):
        array.executions, array.cells[:] = executions, [array.word.value(number) for number in cells]
    for register, (alone, *numbers) in zip(pipe.entries.values(), direct, strict=True):
        register.alone = register.word.value(alone)
        register.of.clear()
        register.of.update((e, register.word.value(n)) for e, n in zip(entries, numbers, strict=True))
    for counter, (packets, sizes) in zip(pipe.counters.values(), counters, strict=True):
        counter.packets[:], counter.bytes[:] = packets, sizes
    for meter, buckets in zip(pipe.meters.values(), meters, strict=True):
        meter.buckets[:] = map(Bucket.of, buckets)


def _of(program: ir.Program, extern: str) -> Iterator[ir.ExternInstance]:
    return (e for e in program.externs if e.extern == extern)


def _parameters(program: ir.Program) -> dict[str, int]:
    return {e.name: cast("int", e.arguments["initial_value"]) for e in _of(program, "RegisterParam")}


def _word(instance: ir.ExternInstance) -> Word:
    of = instance.type_args[0]
    try:
        return Word(of, instance.arguments.get("initial_value"))
    except TypeError as problem:
        what = f"register {instance.name}: elements of type {of} are not supported ({problem})"
        raise InputError(Diagnostic(instance.pos, what)) from None


def _array(instance: ir.ExternInstance) -> Array:
    word, size = _word(instance), instance.arguments["size"]
    assert isinstance(size, int)
    return Array(word, [word.fresh() for _ in range(size)])
