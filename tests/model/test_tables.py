"""Table lookup against brute force (spec 14.2; simple_switch.md "Table match kinds supported")."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from p4gen.model.tables import Installed, KeyField, TableState
from p4gen.p4 import ir

from .handmade import Maker, action, bit, lit, table

WIDTH = 6
FULL = (1 << WIDTH) - 1


def make(kinds: list[str]) -> TableState:
    nop = action("nop", ())
    keys = [(lit(0, bit(WIDTH)), kind, f"k{i}") for i, kind in enumerate(kinds)]
    return TableState(table("t", keys, (nop,), nop))


def field_of(kind: str) -> st.SearchStrategy[KeyField]:
    value = st.integers(0, FULL)
    if kind == "exact":
        return value.map(lambda v: (v, FULL))
    if kind == "lpm":
        masks = st.integers(0, WIDTH).map(lambda n: FULL ^ (FULL >> n))
        return st.tuples(value, masks).map(lambda p: (p[0] & p[1], p[1]))
    if kind == "ternary":
        return st.tuples(value, value).map(lambda p: (p[0] & p[1], p[1]))
    if kind == "optional":
        return st.one_of(value.map(lambda v: (v, FULL)), st.just((0, 0)))
    return st.tuples(value, value).map(lambda p: (min(p), max(p)))


def prefix_bits(entry: Installed) -> int:
    return sum(f[1].bit_count() for f in entry.fields if isinstance(f[1], int))


KINDS = st.lists(st.sampled_from(["exact", "lpm", "ternary", "range", "optional"]), min_size=1, max_size=3).filter(
    lambda kinds: kinds.count("lpm") <= 1
)


@given(st.data(), KINDS)
def test_lookup_is_what_brute_force_finds(data: st.DataObject, kinds: list[str]) -> None:
    """ "If multiple installed table entries match the same search key, one among them with the maximum numeric
    priority will win"; "the matching entry with the longest prefix length is always the winner"."""
    state = make(kinds)
    priorities = iter(data.draw(st.permutations(range(1, 31))))
    for fields in data.draw(st.lists(st.tuples(*map(field_of, kinds)), max_size=30)):
        entry = Installed(fields, state.default.ref, (), next(priorities) if state.needs_priority else 0)
        if state.find(entry.identity) is None:
            state.insert(entry)
    for victim in data.draw(st.lists(st.sampled_from(state.entries()), max_size=5, unique=True)) if len(state) else []:
        state.remove(victim)
    for key in data.draw(st.lists(st.tuples(*[st.integers(0, FULL)] * len(kinds)), min_size=1, max_size=20)):
        matching = [e for e in state.entries() if state.matches(e, key)]
        if state.needs_priority:
            best = max(matching, key=lambda e: e.priority, default=None)
        else:
            best = max(matching, key=prefix_bits, default=None)
        assert state.lookup(key) is best


def test_entries_of_the_program_win_by_their_priority() -> None:
    """ "const entries … highest priority first, to lowest priority last, based upon the order they appear"; the
    front end hands that over as priorities."""
    nop = action("nop", ())
    call = ir.ActionCall(ir.ActionRef("nop", nop, ()), ())
    entries = tuple(
        ir.TableEntry((value,), call, True, priority, Maker().program().blocks["ig"].pos)
        for value, priority in ((ir.Between(1, 8), 3), (ir.Between(6, 12), 2), (ir.Anything(), 1))
    )
    state = TableState(table("t", [(lit(0, bit(WIDTH)), "range", "k")], (nop,), nop, entries=entries))
    assert [e.priority for k in (7, 9, 40) if (e := state.lookup((k,)))] == [3, 2, 1]


def test_masked_values_of_the_program_ignore_bits_outside_the_mask() -> None:
    """Note 2: "A run time search key value k matches if (k & mask) == (val & mask)"."""
    nop = action("nop", ())
    call = ir.ActionCall(ir.ActionRef("nop", nop, ()), ())
    entry = ir.TableEntry((ir.Masked(0b110011, 0b110000),), call, True, 1, Maker().program().blocks["ig"].pos)
    state = TableState(table("t", [(lit(0, bit(WIDTH)), "ternary", "k")], (nop,), nop, entries=(entry,)))
    assert state.lookup((0b110101,)) is not None
    assert state.lookup((0b010011,)) is None
