"""TableEntry (section 9.1): what a server must take, refuse, and give back."""

from __future__ import annotations

from typing import Any

import pytest

from p4gen.p4rt.status import Code
from p4gen.protos import p4runtime as pb

from .conftest import DELETE, INSERT, MODIFY, World

BAD = Code.INVALID_ARGUMENT


# --- 9.1 TableEntry ---


def test_an_entry_is_matched_modified_and_deleted(world: World) -> None:
    world.insert(world.exact("exact_table", 5, port=3))
    assert world.send(0, 5) == [3]
    assert world.send(0, 6) == []
    world.write(MODIFY, world.exact("exact_table", 5, port=4))
    assert world.send(0, 5) == [4]
    world.write(DELETE, world.key("exact_table", (1, "exact", b"\x05")))
    assert world.send(0, 5) == []


def test_what_was_written_is_read_in_canonical_form(world: World) -> None:
    entry = world.entry("exact_table", (1, "exact", b"\x00\x00\x05"))
    entry.metadata, entry.controller_metadata = b"cookie", 77
    world.insert(entry)
    (found,) = world.read(pb.TableEntry(table_id=entry.table_id))
    assert found.match[0].exact.value == b"\x05"
    assert (found.metadata, found.controller_metadata) == (b"cookie", 77)
    assert found.action.action.params[0].value == b"\x03"
    assert not found.is_const


def test_an_entry_that_exists_is_not_inserted_again(world: World) -> None:
    world.insert(world.exact("exact_table", 5))
    assert world.refused(INSERT, world.entry("exact_table", (1, "exact", b"\0\5"), port=9)) is Code.ALREADY_EXISTS
    assert world.send(0, 5) == [3]


@pytest.mark.parametrize("kind", [MODIFY, DELETE])
def test_an_entry_that_does_not_exist_is_not_found(world: World, kind: int) -> None:
    assert world.refused(kind, world.exact("exact_table", 5)) is Code.NOT_FOUND


def test_a_full_table_is_exhausted(world: World) -> None:
    world.insert(*(world.exact("exact_table", key) for key in range(4)))
    assert world.refused(INSERT, world.exact("exact_table", 4)) is Code.RESOURCE_EXHAUSTED


def test_an_unknown_table(world: World) -> None:
    entry = world.exact("exact_table", 5)
    entry.table_id = 0x02FFFFFF
    assert world.refused(INSERT, entry) is Code.NOT_FOUND


def test_priority_is_needed_with_ternary_keys_and_larger_wins(world: World) -> None:
    wide = world.entry("ternary_table", (1, "ternary", b"\0", b"\x01"), priority=1, port=1)
    narrow = world.entry("ternary_table", (1, "ternary", b"\x06", b"\xff"), priority=2, port=2)
    world.insert(wide, narrow)
    assert world.send(2, 6) == [2]
    assert world.send(2, 8) == [1]
    wide.priority = 0
    assert world.refused(INSERT, wide) is BAD
    wide.priority = -1
    assert world.refused(INSERT, wide) is BAD


def test_entries_of_one_priority_may_overlap(world: World) -> None:
    world.insert(*(world.entry("ternary_table", (1, "ternary", b"\0", bytes([mask])), priority=5) for mask in (1, 2)))
    assert len(world.read(pb.TableEntry(table_id=world.schema.tables.named("ternary_table").id))) == 2


@pytest.mark.parametrize("table", ["exact_table", "lpm_table"])
def test_priority_must_be_zero_without_ternary_keys(world: World, table: str) -> None:
    field = (1, "exact", b"\5") if table == "exact_table" else (1, "lpm", b"\5", 32)
    assert world.refused(INSERT, world.entry(table, field, priority=1)) is BAD


def test_deleting_looks_at_the_key_alone(world: World) -> None:
    world.insert(world.exact("exact_table", 5))
    nonsense = world.exact("exact_table", 5)
    nonsense.action.action.action_id = 0x01FFFFFF
    nonsense.idle_timeout_ns = 5
    world.write(DELETE, nonsense)
    assert world.send(0, 5) == []


def test_a_keyless_table_has_no_entries(world: World) -> None:
    assert world.refused(INSERT, world.entry("keyless_table")) is BAD


@pytest.mark.parametrize("kind", [INSERT, MODIFY, DELETE])
def test_is_const_is_not_for_updates(world: World, kind: int) -> None:
    entry = world.exact("exact_table", 5)
    entry.is_const = True
    assert world.refused(kind, entry) is BAD


# --- 9.1.1 match format ---

BAD_KEYS: list[tuple[str, tuple[tuple[Any, ...], ...]]] = [
    ("exact_table", ()),
    ("exact_table", ((1, "exact", b""),)),
    ("exact_table", ((1, "exact", b"\1\0\0\0\0"),)),
    ("exact_table", ((2, "exact", b"\1"),)),
    ("exact_table", ((1, "lpm", b"\1", 32),)),
    ("exact_table", ((1, "exact", b"\1"), (1, "exact", b"\1"))),
    ("lpm_table", ((1, "lpm", b"\1", 0),)),
    ("lpm_table", ((1, "lpm", b"\1", 33),)),
    ("lpm_table", ((1, "lpm", b"\1", -1),)),
    ("lpm_table", ((1, "lpm", b"\x0a\0\0\1", 24),)),
    ("lpm_table", ((1, "lpm", b"", 24),)),
    ("ternary_table", ((1, "ternary", b"\0", b"\0"),)),
    ("ternary_table", ((1, "ternary", b"\3", b"\2"),)),
    ("ternary_table", ((1, "ternary", b"\1", b""),)),
    ("ternary_table", ((1, "ternary", b"\1", b"\1\xff\xff\xff\xff"),)),
    ("ternary_table", ((2, "optional", b""),)),
    ("ternary_table", ((2, "optional", b"\1\0\0"),)),
    ("range_table", ((1, "range", b"\2", b"\1"),)),
    ("range_table", ((1, "range", b"\0", b"\xff\xff"),)),
    ("range_table", ((1, "range", b"\0", b"\1\xff\xff"),)),
    ("range_table", ((1, "range", b"", b"\1"),)),
]


@pytest.mark.parametrize(("table", "fields"), BAD_KEYS)
def test_a_match_that_is_malformed(world: World, table: str, fields: tuple[tuple[Any, ...], ...]) -> None:
    priority = 1 if table in ("ternary_table", "range_table") else 0
    assert world.refused(INSERT, world.entry(table, *fields, priority=priority)) is BAD


def test_a_match_field_without_a_match(world: World) -> None:
    entry = world.exact("exact_table", 5)
    entry.match[0].ClearField("exact")
    assert world.refused(INSERT, entry) is BAD


def test_every_kind_of_match_matches(world: World) -> None:
    world.insert(
        world.entry("lpm_table", (1, "lpm", b"\x0a\0\0\0", 8), port=1),
        world.entry("lpm_table", (1, "lpm", b"\x0a\1\0\0", 16), port=2),
        world.entry("lpm_table", port=3),
        world.entry("ternary_table", (2, "optional", b"\7"), priority=1, port=4),
        world.entry("range_table", (1, "range", b"\5", b"\x0a"), priority=1, port=5),
    )
    assert [world.send(1, key) for key in (0x0A020000, 0x0A010000, 0x0B000000)] == [[1], [2], [3]]
    assert [world.send(2, 1, aux) for aux in (7, 8)] == [[4], []]
    assert [world.send(3, 1, aux) for aux in (4, 5, 10, 11)] == [[], [5], [5], []]


# --- 9.1.2 action specification ---


def test_an_insert_needs_an_action(world: World) -> None:
    assert world.refused(INSERT, world.key("exact_table", (1, "exact", b"\5"))) is BAD


def test_modifying_without_an_action_leaves_it(world: World) -> None:
    world.insert(world.exact("exact_table", 5))
    changed = world.key("exact_table", (1, "exact", b"\5"))
    changed.metadata = b"new"
    world.write(MODIFY, changed)
    assert world.send(0, 5) == [3]
    (found,) = world.read(pb.TableEntry(table_id=changed.table_id))
    assert found.metadata == b"new"
    assert found.action.HasField("action")


def test_an_action_that_is_not_the_table_s(world: World) -> None:
    entry = world.exact("lpm_table", 5)
    del entry.match[:]
    entry.action.CopyFrom(world.action("exact_table", "learn"))
    assert world.refused(INSERT, entry) is BAD
    entry.action.action.action_id = 0x01FFFFFF
    assert world.refused(INSERT, entry) is BAD


def test_the_kind_of_action_must_be_the_table_s(world: World) -> None:
    entry = world.exact("exact_table", 5)
    entry.action.action_profile_member_id = 1
    assert world.refused(INSERT, entry) is BAD
    entry.action.action_profile_group_id = 1
    assert world.refused(INSERT, entry) is BAD
    indirect = world.key("group_table", (1, "exact", b"\5"))
    indirect.action.CopyFrom(world.action("exact_table", "forward", port=1))
    assert world.refused(INSERT, indirect) is BAD
    plain = world.key("member_table", (1, "exact", b"\5"))
    plain.action.action_profile_group_id = 1
    assert world.refused(INSERT, plain) is BAD


def test_an_action_outside_its_scope(world: World) -> None:
    entry = world.key("exact_table", (1, "exact", b"\5"))
    entry.action.CopyFrom(world.action("exact_table", "only_default"))
    assert world.refused(INSERT, entry) is Code.PERMISSION_DENIED
    default = pb.TableEntry(table_id=entry.table_id, is_default_action=True)
    default.action.CopyFrom(world.action("exact_table", "only_entries", port=1))
    assert world.refused(MODIFY, default) is Code.PERMISSION_DENIED


@pytest.mark.parametrize("fault", ["missing", "extra", "twice", "too wide", "empty"])
def test_parameters_that_are_wrong(world: World, fault: str) -> None:
    entry = world.exact("exact_table", 5)
    params = entry.action.action.params
    match fault:
        case "missing":
            del params[:]
        case "extra":
            params.add(param_id=9, value=b"\1")
        case "twice":
            params.add(param_id=1, value=b"\1")
        case "too wide":
            params[0].value = b"\2\0"
        case "empty":
            params[0].value = b""
    assert world.refused(INSERT, entry) is BAD


# --- 9.1.3 default entry ---


def test_the_default_entry_is_modified_and_reset(world: World) -> None:
    default = pb.TableEntry(table_id=world.schema.tables.named("keyless_table").id, is_default_action=True)
    default.action.CopyFrom(world.action("keyless_table", "forward", port=6))
    default.metadata = b"mine"
    world.write(MODIFY, default)
    assert world.send(9) == [6]
    wanted = pb.TableEntry(table_id=default.table_id, is_default_action=True)
    assert world.read(wanted) == [default]
    world.write(MODIFY, wanted)
    assert world.send(9) == []
    (found,) = world.read(wanted)
    assert found.metadata == b""


@pytest.mark.parametrize("kind", [INSERT, DELETE])
def test_the_default_entry_is_neither_inserted_nor_deleted(world: World, kind: int) -> None:
    default = pb.TableEntry(table_id=world.schema.tables.named("exact_table").id, is_default_action=True)
    default.action.CopyFrom(world.action("exact_table", "drop"))
    assert world.refused(kind, default) is BAD


def test_the_default_entry_has_neither_match_nor_priority(world: World) -> None:
    default = world.exact("exact_table", 5)
    default.is_default_action = True
    assert world.refused(MODIFY, default) is BAD
    del default.match[:]
    default.priority = 1
    assert world.refused(MODIFY, default) is BAD


def test_a_const_default_entry_is_not_modified(world: World) -> None:
    default = pb.TableEntry(table_id=world.schema.tables.named("lpm_table").id, is_default_action=True)
    default.action.CopyFrom(world.action("lpm_table", "forward", port=1))
    assert world.refused(MODIFY, default) is Code.PERMISSION_DENIED
    (found,) = world.read(pb.TableEntry(table_id=default.table_id, is_default_action=True))
    assert found.is_const


def test_the_default_entry_has_no_idle_timeout(world: World) -> None:
    default = pb.TableEntry(table_id=world.schema.tables.named("idle_table").id, is_default_action=True)
    default.action.CopyFrom(world.action("idle_table", "drop"))
    default.idle_timeout_ns = 1
    assert world.refused(MODIFY, default) is BAD


# --- 9.1.4 constant tables ---


@pytest.mark.parametrize("kind", [INSERT, MODIFY, DELETE])
@pytest.mark.parametrize("key", [1, 9])
def test_entries_of_a_const_table_are_const(world: World, kind: int, key: int) -> None:
    assert world.refused(kind, world.exact("const_table", key)) is Code.PERMISSION_DENIED


def test_const_entries_are_read_with_their_action(world: World) -> None:
    found = world.read(pb.TableEntry(table_id=world.schema.tables.named("const_table").id))
    assert [e.match[0].exact.value for e in found] == [b"\1", b"\2"]
    assert all(e.is_const and e.HasField("action") for e in found)


def test_a_preinitialised_table_has_const_entries_and_others(world: World) -> None:
    for kind in (MODIFY, DELETE):
        assert world.refused(kind, world.exact("initial_table", 1)) is Code.PERMISSION_DENIED
    world.write(MODIFY, world.exact("initial_table", 2, port=8))
    world.insert(world.exact("initial_table", 3, port=9))
    assert [world.send(8, key) for key in (1, 2, 3)] == [[1], [8], [9]]
    world.write(DELETE, world.exact("initial_table", 2))
    assert world.send(8, 2) == []


# --- 9.1.5 wildcard reads ---


def test_reads_select_by_every_field(world: World) -> None:
    one = world.entry("ternary_table", (1, "ternary", b"\1", b"\xff"), priority=1)
    two = world.entry("ternary_table", (1, "ternary", b"\2", b"\xff"), priority=2, action="drop")
    one.metadata, two.controller_metadata = b"one", 2
    world.insert(one, two, world.exact("exact_table", 5))
    table = pb.TableEntry(table_id=one.table_id)
    assert world.read(table) == [one, two]
    for chosen, wanted in (
        ({"priority": 2}, two),
        ({"metadata": b"one"}, one),
        ({"controller_metadata": 2}, two),
        ({"match": two.match}, two),
        ({"action": two.action}, two),
    ):
        assert world.read(pb.TableEntry(table_id=one.table_id, **chosen)) == [wanted]
    assert len(world.read(pb.TableEntry())) == 7  # all tables, the program's own entries included
    assert world.read(pb.TableEntry(table_id=one.table_id, priority=3)) == []


def test_reading_an_unknown_table_or_a_bad_match(world: World) -> None:
    assert world.read_refused(pb.TableEntry(table_id=0x02FFFFFF)) is Code.NOT_FOUND
    assert world.read_refused(world.key("exact_table", (2, "exact", b"\1"))) is BAD


# --- 9.1.6 direct resources, 9.3.1, 9.4.1 ---


def test_a_direct_counter_is_set_read_and_kept(world: World) -> None:
    entry = world.exact("counted_table", 5, action="counted")
    entry.counter_data.packet_count = 100
    world.insert(entry)
    assert world.send(4, 5) == [3]
    wanted = pb.TableEntry(table_id=entry.table_id)
    assert not world.read(wanted)[0].HasField("counter_data")
    wanted.counter_data.SetInParent()
    assert world.read(wanted)[0].counter_data.packet_count == 101
    world.write(MODIFY, world.exact("counted_table", 5, action="counted", port=4))
    assert world.read(wanted)[0].counter_data.packet_count == 101
    direct = pb.DirectCounterEntry(table_entry=world.key("counted_table", (1, "exact", b"\5")))
    direct.data.packet_count = 7
    world.write(MODIFY, direct)
    (found,) = world.read(pb.DirectCounterEntry(table_entry=direct.table_entry))
    assert found.data.packet_count == 7


@pytest.mark.parametrize("kind", [INSERT, DELETE])
def test_direct_resources_are_only_modified(world: World, kind: int) -> None:
    world.insert(world.exact("counted_table", 5, action="counted"), world.exact("metered_table", 5, action="metered"))
    counter = pb.DirectCounterEntry(table_entry=world.key("counted_table", (1, "exact", b"\5")))
    meter = pb.DirectMeterEntry(table_entry=world.key("metered_table", (1, "exact", b"\5")))
    assert world.refused(kind, counter) is BAD
    assert world.refused(kind, meter) is BAD


def test_direct_resources_of_an_entry_that_is_not_there(world: World) -> None:
    counter = pb.DirectCounterEntry(table_entry=world.key("counted_table", (1, "exact", b"\5")))
    meter = pb.DirectMeterEntry(table_entry=world.key("metered_table", (1, "exact", b"\5")))
    for message in (counter, meter):
        assert world.refused(MODIFY, message) is Code.NOT_FOUND
        assert world.read_refused(message) is Code.NOT_FOUND


def test_direct_resources_that_the_table_has_not(world: World) -> None:
    entry = world.exact("exact_table", 5)
    entry.counter_data.packet_count = 1
    assert world.refused(INSERT, entry) is BAD
    entry.ClearField("counter_data")
    entry.meter_config.cir = 1
    assert world.refused(INSERT, entry) is BAD
    entry.ClearField("meter_config")
    entry.meter_counter_data.SetInParent()
    assert world.refused(INSERT, entry) is Code.UNIMPLEMENTED


def test_a_direct_meter_goes_back_to_its_default_when_it_is_left_out(world: World) -> None:
    entry = world.exact("metered_table", 5, action="metered")
    for name in ("cir", "cburst", "pir", "pburst"):
        setattr(entry.meter_config, name, 5)
    world.insert(entry)
    wanted = pb.TableEntry(table_id=entry.table_id, meter_config=pb.MeterConfig())
    assert world.read(wanted)[0].meter_config == entry.meter_config
    world.write(MODIFY, world.exact("metered_table", 5, action="metered", port=4))
    assert not world.read(wanted)[0].HasField("meter_config")
    direct = pb.DirectMeterEntry(table_entry=world.key("metered_table", (1, "exact", b"\5")), config=entry.meter_config)
    world.write(MODIFY, direct)
    assert world.read(wanted)[0].meter_config == entry.meter_config
    assert world.read(pb.DirectMeterEntry())[0].config == entry.meter_config


# --- 9.1.7 idle timeouts ---


def test_idle_timeouts_are_for_tables_that_support_them(world: World) -> None:
    entry = world.exact("exact_table", 5)
    entry.idle_timeout_ns = 1
    assert world.refused(INSERT, entry) is BAD
    entry.idle_timeout_ns = 0
    entry.time_since_last_hit.SetInParent()
    assert world.refused(INSERT, entry) is BAD


def test_time_since_last_hit_is_for_reading(world: World) -> None:
    entry = world.exact("idle_table", 5)
    entry.time_since_last_hit.SetInParent()
    assert world.refused(INSERT, entry) is BAD
    entry.ClearField("time_since_last_hit")
    entry.idle_timeout_ns = 7_000_000
    world.insert(entry)
    wanted = pb.TableEntry(table_id=entry.table_id)
    assert world.read(wanted) == [entry]
    wanted.time_since_last_hit.SetInParent()
    world.now = 30
    assert world.read(wanted)[0].time_since_last_hit.elapsed_ns == 30_000
    world.send(6, 5)
    world.now = 32
    assert world.read(wanted)[0].time_since_last_hit.elapsed_ns == 2_000
