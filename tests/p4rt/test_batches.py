"""The Write RPC's batches and errors (section 12), and the Read RPC's requests (section 13)."""

from __future__ import annotations

import threading

import grpc
import pytest

from p4gen.p4rt.session import RequestError
from p4gen.p4rt.status import Code
from p4gen.protos import p4runtime as pb
from p4gen.protos import rpc

from .conftest import DELETE, INSERT, MODIFY, World, entity_of, frame

ROLLBACK, ATOMIC = pb.WriteRequest.ROLLBACK_ON_ERROR, pb.WriteRequest.DATAPLANE_ATOMIC


def failures(world: World, *updates: tuple[int, object], atomicity: int = 0) -> list[tuple[int, Code]]:
    with pytest.raises(RequestError) as caught:
        world.session.write_all([pb.Update(type=k, entity=entity_of(m)) for k, m in updates], atomicity)
    assert caught.value.code is Code.UNKNOWN
    return [(number, code) for number, code, _ in caught.value.failures]


def test_every_update_of_a_batch_is_tried_and_reported(world: World) -> None:
    good, other = world.exact("exact_table", 5), world.exact("exact_table", 6)
    bad = world.exact("exact_table", 7, port=1)
    bad.action.action.params[0].value = b"\xff\xff"
    found = failures(world, (INSERT, good), (INSERT, bad), (DELETE, world.exact("exact_table", 9)), (INSERT, other))
    assert found == [(1, Code.INVALID_ARGUMENT), (2, Code.NOT_FOUND)]
    assert [world.send(0, key) for key in (5, 6, 7)] == [[3], [3], []]


def test_there_is_an_error_for_each_update_even_the_successful(world: World) -> None:
    request = pb.WriteRequest(device_id=1, election_id=pb.Uint128(low=10))
    for key in (5, 5, 6):
        request.updates.add(type=INSERT, entity=entity_of(world.exact("exact_table", key)))
    with pytest.raises(grpc.RpcError) as caught:
        world.session.stub.Write(request)
    details = dict(caught.value.trailing_metadata())["grpc-status-details-bin"]
    status = rpc.Status.FromString(details)
    errors = [pb.Error() for _ in status.details]
    for error, detail in zip(errors, status.details, strict=True):
        assert detail.Unpack(error)
    assert [e.canonical_code for e in errors] == [Code.OK, Code.ALREADY_EXISTS, Code.OK]
    assert errors[0].message == ""


def test_the_errors_of_a_large_batch_arrive(world: World) -> None:
    missing = world.exact("exact_table", 9)
    assert failures(world, *[(DELETE, missing)] * 300) == [(i, Code.NOT_FOUND) for i in range(300)]


@pytest.mark.parametrize("atomicity", [ROLLBACK, ATOMIC])
def test_all_or_none(world: World, atomicity: int) -> None:
    world.insert(
        world.exact("exact_table", 1, port=1),
        world.member(1),
        world.group(1, (1, 1)),
        world.exact("counted_table", 1, action="counted"),
    )
    session = pb.CloneSessionEntry(session_id=5)
    session.replicas.add(egress_port=1)
    default = pb.TableEntry(table_id=world.key("keyless_table").table_id, is_default_action=True)
    default.action.CopyFrom(world.action("keyless_table", "forward", port=2))
    notes = world.schema.registers.named("notes").id
    register = pb.RegisterEntry(register_id=notes)
    register.data.bitstring = b"\7"
    counter = pb.CounterEntry(
        counter_id=world.schema.counters.named("arrivals").id, data=pb.CounterData(packet_count=3)
    )
    meter = pb.MeterEntry(meter_id=world.schema.meters.named("police").id, config=pb.MeterConfig(cir=1, pir=1))
    values = pb.ValueSetEntry(value_set_id=next(iter(world.schema.value_sets)))
    values.members.add().match.add(field_id=1).exact.value = b"\7"
    direct = pb.DirectCounterEntry(table_entry=world.key("counted_table", (1, "exact", b"\1")))
    direct.data.packet_count = 9
    digest = pb.DigestEntry(digest_id=next(iter(world.schema.digests)))
    before = world.everything()
    found = failures(
        world,
        (INSERT, world.exact("exact_table", 2)),
        (MODIFY, world.exact("exact_table", 1, port=9)),
        (DELETE, world.exact("exact_table", 1)),
        (MODIFY, default),
        (INSERT, world.member(2)),
        (MODIFY, world.member(1, port=9)),
        (MODIFY, world.group(1, (1, 1), (2, 1))),
        (DELETE, world.group(1)),
        (INSERT, session),
        (MODIFY, register),
        (MODIFY, counter),
        (MODIFY, meter),
        (MODIFY, values),
        (MODIFY, direct),
        (INSERT, digest),
        (INSERT, world.exact("const_table", 9)),
        (INSERT, world.exact("exact_table", 3)),
        atomicity=atomicity,
    )
    assert found[15] == (15, Code.PERMISSION_DENIED)
    assert {code for number, code in found if number != 15} == {Code.ABORTED}
    assert world.everything() == before
    assert world.send(0, 1) == [1]


def test_an_atomic_batch_is_one_step_for_packets(world: World) -> None:
    here, there = world.exact("exact_table", 5, port=1), world.exact("exact_table", 5, port=2)
    world.insert(here)
    seen: set[tuple[int, ...]] = set()
    stop = threading.Event()

    def packets() -> None:
        while not stop.is_set():
            seen.add(tuple(port for port, _ in world.device.send(1, frame(0, 5))))

    thread = threading.Thread(target=packets)
    thread.start()
    for entry in (there, here) * 10:
        world.session.write_all(
            [pb.Update(type=DELETE, entity=entity_of(entry)), pb.Update(type=INSERT, entity=entity_of(entry))], ATOMIC
        )
    stop.set()
    thread.join()
    assert seen <= {(1,), (2,)}


def test_updates_without_type_or_entity_and_what_no_target_has(world: World) -> None:
    entity = entity_of(world.exact("exact_table", 5))
    extern = pb.Entity(extern_entry=pb.ExternEntry(extern_type_id=1))
    for update, code in (
        (pb.Update(entity=entity), Code.INVALID_ARGUMENT),
        (pb.Update(type=INSERT), Code.INVALID_ARGUMENT),
        (pb.Update(type=INSERT, entity=extern), Code.UNIMPLEMENTED),
    ):
        with pytest.raises(RequestError) as caught:
            world.session.write_all([update])
        assert caught.value.failures[0][1] is code


def test_an_empty_batch_does_nothing(world: World) -> None:
    world.session.write_all([])


def test_a_read_needs_entities_that_are_set(world: World) -> None:
    with pytest.raises(RequestError) as caught:
        list(world.session.read_all(pb.Entity()))
    assert caught.value.code is Code.INVALID_ARGUMENT
    with pytest.raises(RequestError) as caught:
        list(world.session.read_all(pb.Entity(extern_entry=pb.ExternEntry())))
    assert caught.value.code is Code.UNIMPLEMENTED


def test_several_requests_in_one_read(world: World) -> None:
    world.insert(world.exact("exact_table", 5), world.member(1))
    wanted = [pb.Entity(table_entry=pb.TableEntry(table_id=world.exact("exact_table", 5).table_id)), pb.Entity()]
    wanted[1].action_profile_member.SetInParent()
    found = list(world.session.read_all(*wanted, *wanted))
    assert [e.WhichOneof("entity") for e in found] == ["table_entry", "action_profile_member"] * 2


def test_the_shell_s_error_iterator_would_hang_where_ours_names_the_update(world: World) -> None:
    world.insert(world.exact("exact_table", 5))
    assert failures(world, (INSERT, world.exact("exact_table", 6)), (INSERT, world.exact("exact_table", 5))) == [
        (1, Code.ALREADY_EXISTS)
    ]


def test_a_write_that_is_none_is_refused(world: World) -> None:
    call = world.session.channel.unary_unary("/p4.v1.P4Runtime/Write")
    with pytest.raises(grpc.RpcError) as caught:
        call(b"\xff")
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
