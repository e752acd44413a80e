"""Action profiles, packet replication, counters, meters, registers, value sets (sections 9.2 to 9.7)."""

from __future__ import annotations

from typing import Any

import pytest

from p4gen.p4rt.session import RequestError
from p4gen.p4rt.status import Code
from p4gen.protos import p4runtime as pb

from .conftest import DELETE, INSERT, MODIFY, World, frame

BAD = Code.INVALID_ARGUMENT


# --- 9.2.1 members ---


def test_members_are_inserted_modified_and_deleted(world: World) -> None:
    world.insert(world.member(1, 3))
    entry = world.key("group_table", (1, "exact", b"\5"))
    entry.action.action_profile_member_id = 1
    world.insert(entry)
    assert world.send(10, 5) == [3]
    world.write(MODIFY, world.member(1, 4))
    assert world.send(10, 5) == [4]
    assert world.read(pb.ActionProfileMember()) == [world.member(1, 4)]
    world.write(DELETE, entry)
    world.write(DELETE, world.member(1))
    assert world.read(pb.ActionProfileMember()) == []


def test_members_that_exist_or_do_not(world: World) -> None:
    world.insert(world.member(1))
    assert world.refused(INSERT, world.member(1, 9)) is Code.ALREADY_EXISTS
    assert world.refused(MODIFY, world.member(2)) is Code.NOT_FOUND
    assert world.refused(DELETE, world.member(2)) is Code.NOT_FOUND


@pytest.mark.parametrize("kind", [INSERT, MODIFY])
def test_a_member_needs_an_id_and_an_action(world: World, kind: int) -> None:
    assert world.refused(kind, world.member(0)) is BAD
    if kind == MODIFY:
        world.insert(world.member(1))
    without = world.member(1)
    without.ClearField("action")
    assert world.refused(kind, without) is BAD


def test_a_full_profile_is_exhausted(world: World) -> None:
    world.insert(*(world.member(n, profile="plain", table="member_table") for n in (1, 2)))
    assert world.refused(INSERT, world.member(3, profile="plain", table="member_table")) is Code.RESOURCE_EXHAUSTED


def test_an_unknown_profile(world: World) -> None:
    member = world.member(1)
    member.action_profile_id = 0x11FFFFFF
    assert world.refused(INSERT, member) is Code.NOT_FOUND


def test_a_member_in_use_is_not_deleted(world: World) -> None:
    world.insert(world.member(1), world.member(2), world.group(1, (2, 1)))
    entry = world.key("group_table", (1, "exact", b"\5"))
    entry.action.action_profile_member_id = 1
    world.insert(entry)
    assert world.refused(DELETE, world.member(1)) is Code.FAILED_PRECONDITION
    assert world.refused(DELETE, world.member(2)) is Code.FAILED_PRECONDITION


def test_an_entry_names_members_and_groups_that_exist(world: World) -> None:
    entry = world.key("group_table", (1, "exact", b"\5"))
    entry.action.action_profile_member_id = 9
    assert world.refused(INSERT, entry) is Code.NOT_FOUND
    entry.action.action_profile_group_id = 9
    assert world.refused(INSERT, entry) is Code.NOT_FOUND


def test_the_default_entry_of_an_indirect_table_is_const(world: World) -> None:
    world.insert(world.member(1))
    entry = world.key("group_table")
    entry.is_default_action = True
    entry.action.action_profile_member_id = 1
    assert world.refused(MODIFY, entry) is BAD


# --- 9.2.2 groups ---


def ports(world: World, key: int = 5) -> set[int]:
    return {port for aux in range(200) for port in world.send(10, key, aux * 331 % 65536)}


def use_group(world: World, number: int = 1) -> None:
    entry = world.key("group_table", (1, "exact", b"\5"))
    entry.action.action_profile_group_id = number
    world.insert(entry)


def test_a_group_spreads_over_its_members(world: World) -> None:
    world.insert(world.member(1, 3), world.member(2, 4), world.group(1, (1, 1), (2, 2)))
    use_group(world)
    assert ports(world) == {3, 4}
    world.write(MODIFY, world.group(1, (2, 1)))
    assert ports(world) == {4}
    assert world.read(pb.ActionProfileGroup()) == [world.group(1, (2, 1))]
    assert world.refused(DELETE, world.group(1)) is Code.FAILED_PRECONDITION


def test_a_member_whose_watch_port_is_down_is_left_out(world: World) -> None:
    world.insert(world.member(1, 3), world.member(2, 4))
    group = world.group(1, (1, 1), (2, 1))
    group.members[1].watch_port = b"\x04"
    world.insert(group)
    use_group(world)
    assert ports(world) == {3, 4}
    world.device.set_link(4, False)
    assert ports(world) == {3}
    world.device.set_link(4, True)
    assert ports(world) == {3, 4}


def test_groups_that_exist_or_do_not(world: World) -> None:
    world.insert(world.member(1), world.group(1, (1, 1)))
    assert world.refused(INSERT, world.group(1)) is Code.ALREADY_EXISTS
    assert world.refused(MODIFY, world.group(2)) is Code.NOT_FOUND
    assert world.refused(DELETE, world.group(2)) is Code.NOT_FOUND
    assert world.refused(INSERT, world.group(0)) is BAD


def test_groups_that_are_malformed(world: World) -> None:
    world.insert(world.member(1), world.member(2))
    assert world.refused(INSERT, world.group(1, (9, 1))) is Code.NOT_FOUND
    assert world.refused(INSERT, world.group(1, (1, 0))) is BAD
    assert world.refused(INSERT, world.group(1, (1, -1))) is BAD
    assert world.refused(INSERT, world.group(1, (1, 1), (1, 1))) is BAD
    assert world.refused(INSERT, world.group(1, (1, 2), max_size=1)) is Code.RESOURCE_EXHAUSTED
    watching = world.group(1, (1, 1))
    watching.members[0].watch_port = b"\xc8"
    assert world.refused(INSERT, watching) is BAD
    plain = world.group(1)
    plain.action_profile_id = world.schema.profiles.named("plain").id
    assert world.refused(INSERT, plain) is BAD


def test_max_size_stays(world: World) -> None:
    world.insert(world.member(1), world.group(1, (1, 1), max_size=3))
    assert world.refused(MODIFY, world.group(1, (1, 1), max_size=2)) is BAD


# --- 9.2.3 one shot ---


def test_one_shot_programming_is_read_as_it_was_written(world: World) -> None:
    entry = world.key("group_table", (1, "exact", b"\5"))
    for port in (3, 4):
        action = entry.action.action_profile_action_set.action_profile_actions.add(weight=1)
        action.action.CopyFrom(world.action("group_table", "forward", port=port).action)
    world.insert(entry)
    assert ports(world) == {3, 4}
    assert world.read(pb.TableEntry(table_id=entry.table_id)) == [entry]


def test_one_shot_weights_and_ports_are_checked(world: World) -> None:
    entry = world.key("group_table", (1, "exact", b"\5"))
    action = entry.action.action_profile_action_set.action_profile_actions.add(weight=0)
    action.action.CopyFrom(world.action("group_table", "forward", port=3).action)
    assert world.refused(INSERT, entry) is BAD
    action.weight, action.watch_port = 1, b"\xc8"
    assert world.refused(INSERT, entry) is BAD
    del entry.action.action_profile_action_set.action_profile_actions[:]
    assert world.refused(INSERT, entry) is BAD


# --- 9.5 packet replication ---


def multicast(number: int, *replicas: tuple[int, int]) -> Any:
    message = pb.MulticastGroupEntry(multicast_group_id=number)
    for port, instance in replicas:
        message.replicas.add(egress_port=port, instance=instance)
    return message


def test_a_multicast_group_replicates(world: World) -> None:
    world.insert(
        world.entry("exact_table", (1, "exact", b"\5"), action="replicate", group=7), multicast(7, (1, 1), (2, 2))
    )
    assert world.send(0, 5) == [1, 2]
    world.write(MODIFY, multicast(7, (3, 1)))
    assert world.send(0, 5) == [3]
    assert world.read(pb.MulticastGroupEntry()) == [multicast(7, (3, 1))]
    world.write(DELETE, multicast(7))
    assert world.send(0, 5) == []


def test_replicas_may_name_ports_in_bytes_and_groups_have_metadata(world: World) -> None:
    group = pb.MulticastGroupEntry(multicast_group_id=7, metadata=b"mine")
    group.replicas.add(port=b"\x05", instance=1)
    world.insert(world.entry("exact_table", (1, "exact", b"\5"), action="replicate", group=7), group)
    assert world.send(0, 5) == [5]
    assert world.read(multicast(7)) == [group]


def test_multicast_groups_that_exist_do_not_or_are_malformed(world: World) -> None:
    world.insert(multicast(7, (1, 1)))
    assert world.refused(INSERT, multicast(7, (2, 1))) is Code.ALREADY_EXISTS
    assert world.refused(MODIFY, multicast(8)) is Code.NOT_FOUND
    assert world.refused(DELETE, multicast(8)) is Code.NOT_FOUND
    for kind in (INSERT, MODIFY, DELETE):
        assert world.refused(kind, multicast(0)) is BAD
    assert world.refused(INSERT, multicast(9, (1, 1), (1, 1))) is BAD
    assert world.refused(INSERT, multicast(9, (1, 1 << 20))) is BAD
    assert world.refused(INSERT, multicast(9, (600, 1))) is BAD
    assert world.refused(INSERT, multicast(1 << 20, (1, 1))) is BAD
    portless = multicast(9)
    portless.replicas.add(instance=1)
    assert world.refused(INSERT, portless) is BAD


def test_a_clone_session_clones_and_truncates(world: World) -> None:
    session = pb.CloneSessionEntry(session_id=5, packet_length_bytes=9)
    session.replicas.add(egress_port=6, instance=1)
    world.insert(world.entry("exact_table", (1, "exact", b"\5"), action="mirror", session=5), session)
    outputs = world.device.send(1, frame(0, 5))
    assert (6, frame(0, 5)[:9]) in outputs
    assert world.read(pb.CloneSessionEntry()) == [session]
    assert world.refused(INSERT, session) is Code.ALREADY_EXISTS
    world.write(DELETE, pb.CloneSessionEntry(session_id=5))
    assert all(port != 6 for port, _ in world.device.send(1, frame(0, 5)))


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "clone session: its id must not be 0"), (1 << 15, "clone session 32768: the id must be at most 32767")],
)
def test_ids_of_clone_sessions(world: World, number: int, said: str) -> None:
    session = pb.CloneSessionEntry(session_id=number)
    session.replicas.add(egress_port=6, instance=1)
    with pytest.raises(RequestError) as caught:
        world.insert(session)
    assert [text for _, _, text in caught.value.failures] == [said]


def test_clone_sessions_that_do_not_exist_or_are_malformed(world: World) -> None:
    for kind in (INSERT, MODIFY, DELETE):
        assert world.refused(kind, pb.CloneSessionEntry(session_id=0)) is BAD
    for kind in (MODIFY, DELETE):
        assert world.refused(kind, pb.CloneSessionEntry(session_id=5)) is Code.NOT_FOUND
    assert world.refused(INSERT, pb.CloneSessionEntry(session_id=5, packet_length_bytes=-1)) is BAD
    assert world.refused(INSERT, pb.Entity(packet_replication_engine_entry=pb.PacketReplicationEngineEntry())) is BAD


# --- 9.3.2, 9.4.2 and 9.7: counters, meters, registers ---


def arrays(world: World) -> list[Any]:
    config = pb.MeterConfig(cir=1, cburst=2, pir=3, pburst=4)
    register = pb.RegisterEntry(register_id=world.schema.registers.named("notes").id)
    register.data.bitstring = b"\7"
    return [
        pb.CounterEntry(counter_id=world.schema.counters.named("arrivals").id, data=pb.CounterData(packet_count=1)),
        pb.MeterEntry(meter_id=world.schema.meters.named("police").id, config=config),
        register,
    ]


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("kind", [INSERT, DELETE])
def test_arrays_are_only_modified(world: World, kind: int, which: int) -> None:
    assert world.refused(kind, arrays(world)[which]) is BAD


@pytest.mark.parametrize("which", range(3))
def test_indices_are_checked(world: World, which: int) -> None:
    message = arrays(world)[which]
    message.index.index = -1
    assert world.refused(MODIFY, message) is BAD
    assert world.read_refused(message) is BAD
    message.index.index = 8
    assert world.refused(MODIFY, message) is Code.OUT_OF_RANGE
    assert world.read_refused(message) is Code.OUT_OF_RANGE


@pytest.mark.parametrize("which", range(3))
def test_one_cell_or_all(world: World, which: int) -> None:
    message = arrays(world)[which]
    message.index.index = 2
    world.write(MODIFY, message)
    assert world.read(message) == [message]
    every = type(message)()
    every.CopyFrom(message)
    every.ClearField("index")
    cells = world.read(every)
    assert [cell.index.index for cell in cells] == list(range(8 if which == 0 else 4))
    assert [cell == message for cell in cells] == [i == 2 for i in range(len(cells))]
    world.write(MODIFY, every)
    assert all(cell.ByteSize() >= message.ByteSize() - 2 for cell in world.read(every))


@pytest.mark.parametrize("which", range(3))
def test_an_unknown_array(world: World, which: int) -> None:
    message = arrays(world)[which]
    setattr(message, message.DESCRIPTOR.fields[0].name, 0x7FFFFFF)
    assert world.refused(MODIFY, message) is Code.NOT_FOUND
    assert world.read_refused(message) is Code.NOT_FOUND


def test_a_counter_counts_and_without_data_stays(world: World) -> None:
    world.send(3)
    wanted = pb.CounterEntry(counter_id=world.schema.counters.named("arrivals").id)
    wanted.index.index = 3
    world.write(MODIFY, wanted)
    (found,) = world.read(wanted)
    assert (found.data.packet_count, found.data.byte_count) == (1, 14)
    assert len(world.read(pb.CounterEntry())) == 8


def test_a_meter_without_a_configuration_is_green_again(world: World) -> None:
    _, meter, _ = arrays(world)
    world.write(MODIFY, meter)
    meter.ClearField("config")
    meter.index.index = 1
    world.write(MODIFY, meter)
    cells = world.read(pb.MeterEntry())
    assert [cell.HasField("config") for cell in cells] == [True, False, True, True]


def test_a_meter_configuration_that_is_wrong(world: World) -> None:
    _, meter, _ = arrays(world)
    for name, value in (("eburst", 1), ("cir", -1), ("cir", 9)):
        _, wrong, _ = arrays(world)
        setattr(wrong.config, name, value)
        assert world.refused(MODIFY, wrong) is BAD
    meter.counter_data.SetInParent()
    assert world.refused(MODIFY, meter) is Code.UNIMPLEMENTED
    assert world.read_refused(meter) is Code.UNIMPLEMENTED


def test_meters_colour(world: World) -> None:
    _, meter, _ = arrays(world)
    meter.config.CopyFrom(pb.MeterConfig(cir=1, cburst=1, pir=1, pburst=2))
    world.write(MODIFY, meter)
    assert [world.send(12) for _ in range(3)] == [[0], [1], [2]]


@pytest.mark.parametrize(
    ("name", "written", "program_saw"),
    [("balances", b"\x05", b"\x04"), ("balances", b"\0", b"\xff"), ("balances", b"\xf8\0", b"\x07\xff")],
)
def test_signed_registers(world: World, name: str, written: bytes, program_saw: bytes) -> None:
    register = pb.RegisterEntry(register_id=world.schema.registers.named(name).id)
    register.index.index = 0
    register.data.bitstring = written
    world.write(MODIFY, register)
    world.send(13)
    assert [cell.data.bitstring for cell in world.read(pb.RegisterEntry(register_id=register.register_id))] == [
        written,
        program_saw,
    ]


def test_wide_registers(world: World) -> None:
    register = pb.RegisterEntry(register_id=world.schema.registers.named("wide").id)
    register.index.index = 0
    register.data.bitstring = b"\x80" + b"\xff" * 8
    world.write(MODIFY, register)
    world.send(13)
    assert world.read(pb.RegisterEntry(register_id=register.register_id))[1].data.bitstring == b"\x81" + b"\0" * 8


@pytest.mark.parametrize(("kind", "value"), [("bitstring", b"\1\0\0"), ("bitstring", b""), ("bool", True)])
def test_register_data_must_be_of_its_type(world: World, kind: str, value: object) -> None:
    _, _, register = arrays(world)
    setattr(register.data, kind, value)
    assert world.refused(MODIFY, register) is BAD


# --- 9.6 value sets ---


def value_set(world: World, *values: bytes) -> Any:
    message = pb.ValueSetEntry(value_set_id=next(iter(world.schema.value_sets)))
    for value in values:
        message.members.add().match.add(field_id=1).exact.value = value
    return message


def test_a_value_set_is_replaced(world: World) -> None:
    world.write(MODIFY, value_set(world, b"\7", b"\0\x08"))
    assert [world.send(99, aux=aux) for aux in (7, 8, 9)] == [[1], [1], [0]]
    assert world.read(pb.ValueSetEntry()) == [value_set(world, b"\7", b"\x08")]
    world.write(MODIFY, value_set(world))
    assert world.send(99, aux=7) == [0]


def test_value_sets_that_are_wrong(world: World) -> None:
    assert world.refused(INSERT, value_set(world, b"\7")) is BAD
    assert world.refused(DELETE, value_set(world)) is BAD
    assert world.refused(MODIFY, value_set(world, b"\1", b"\2", b"\3")) is Code.RESOURCE_EXHAUSTED
    assert world.refused(MODIFY, value_set(world, b"\1", b"\0\1")) is Code.ALREADY_EXISTS
    assert world.refused(MODIFY, value_set(world, b"\1\0\0")) is BAD
    unknown = value_set(world)
    unknown.value_set_id = 0x03FFFFFF
    assert world.refused(MODIFY, unknown) is Code.NOT_FOUND
