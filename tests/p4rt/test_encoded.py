"""Entries as bytes against protobuf: the same messages, one form for each object, and what is decoded is what was."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4gen.model.entries import Action, CloneSession, Entry, Exact, Lpm, Match, MulticastGroup, Range, Replica, Ternary
from p4gen.model.errors import ControlError
from p4gen.p4.compile import compile_file
from p4gen.p4rt import codec, encoded
from p4gen.p4rt.schema import Field, Schema
from p4gen.protos import p4runtime as pb

from .conftest import SOURCE

SCHEMA = Schema(compile_file(SOURCE).p4info)
TABLES = [table for table in SCHEMA.tables.values() if table.keys and not table.profile_id]


def matches(field: Field) -> st.SearchStrategy[Match]:
    value = st.integers(0, field.full) | st.sampled_from([0, 1, field.full])
    if field.kind in ("exact", "optional"):
        return value | value.map(Exact)
    if field.kind == "lpm":
        length = st.integers(1, field.width)
        return st.builds(lambda v, n: Lpm(v & ~(field.full >> n) & field.full, n), value, length) | value.map(Exact)
    if field.kind == "ternary":
        return st.builds(lambda v, m: Ternary(v & m, m), value, st.integers(1, field.full)) | value.map(Exact)
    return st.builds(lambda a, b: Range(min(a, b), max(a, b)), value, value)


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    table = draw(st.sampled_from(TABLES))
    use = draw(st.sampled_from([u.action for u in table.actions if not u.default_only]))
    short = draw(st.booleans())

    def name(full: str) -> str:
        return full.rpartition(".")[2] if short else full

    match = {field.name: draw(matches(field)) for field in table.keys if field.kind == "exact" or draw(st.booleans())}
    order = draw(st.permutations(sorted(match)))
    args = {param.name: draw(st.integers(0, param.full)) for param in use.params}
    action = Action(name(use.name), dict(draw(st.permutations(sorted(args.items())))))
    priority = draw(st.integers(1, 2**31 - 1)) if table.needs_priority else 0
    return Entry(name(table.name), {field: match[field] for field in order}, action, priority)


def as_sent(entry: Entry) -> Any:
    return codec.encode_entry(SCHEMA.tables.named(entry.table), entry)


@given(entries())
def test_an_encoded_entry_is_protobuf_s(entry: Entry) -> None:
    key, value = encoded.Encoder(SCHEMA).entry(entry)
    message = as_sent(entry)
    assert pb.TableEntry.FromString(key[1] + value) == message
    assert pb.Entity.FromString(encoded.entity(key, value)).table_entry == message
    assert pb.Entity.FromString(encoded.entity(key)).table_entry == codec.encode_key(
        SCHEMA.tables.named(entry.table), entry
    )
    assert encoded.to_entry(SCHEMA, key, value) == codec.decode_entry(SCHEMA, message)


@given(entries(), st.randoms(use_true_random=False))
def test_a_switch_may_order_fields_and_pad_numbers_as_it_likes(entry: Entry, chance: random.Random) -> None:
    message = as_sent(entry)
    untidy = pb.TableEntry()
    untidy.CopyFrom(message)
    for match in untidy.match:
        given = getattr(match, match.WhichOneof("field_match_type"))
        for field in given.DESCRIPTOR.fields:
            if isinstance(value := getattr(given, field.name), bytes) and chance.random() < 0.5:
                setattr(given, field.name, b"\0" + value)
    for param in untidy.action.action.params:
        param.value = b"\0" * chance.randrange(3) + param.value
    for repeated in (untidy.match, untidy.action.action.params):
        shuffled = list(repeated)
        chance.shuffle(shuffled)
        del repeated[:]
        repeated.extend(shuffled)
    untidy.controller_metadata, untidy.metadata = 7, b"mine"
    response = pb.ReadResponse(entities=[pb.Entity(table_entry=untidy)])
    assert list(encoded.decode([response.SerializeToString()], ())) == [encoded.Encoder(SCHEMA).entry(entry)]


replicas = st.lists(st.builds(Replica, st.integers(0, 511), st.integers(0, 0xFFFF)), min_size=1, max_size=6)


@given(st.integers(1, 0xFFFF), replicas, st.booleans())
def test_multicast_groups(number: int, copies: list[Replica], new: bool) -> None:
    key, value = encoded.multicast_group(MulticastGroup(number, tuple(copies)))
    message = pb.Entity()
    group = message.packet_replication_engine_entry.multicast_group_entry
    group.multicast_group_id = number
    for copy in copies:
        if new:
            group.replicas.add(port=copy.port.to_bytes(4), instance=copy.rid)
        else:
            group.replicas.add(egress_port=copy.port, instance=copy.rid)
    response = pb.ReadResponse(entities=[message])
    assert list(encoded.decode([response.SerializeToString()], ())) == [(key, value)]
    found = pb.Entity.FromString(encoded.entity(key, value)).packet_replication_engine_entry.multicast_group_entry
    assert found.multicast_group_id == number
    assert all(copy.WhichOneof("port_kind") == "egress_port" for copy in found.replicas), "port 0 is a port, too"
    there = sorted((copy.egress_port, copy.instance) for copy in found.replicas)
    assert there == sorted((copy.port, copy.rid) for copy in copies)
    assert encoded.to_multicast_group(key, value).group_id == number
    assert sorted(map(repr, encoded.to_multicast_group(key, value).replicas)) == sorted(map(repr, copies))


@given(st.integers(1, 511), replicas, st.integers(0, 2000))
def test_clone_sessions(number: int, copies: list[Replica], length: int) -> None:
    key, value = encoded.clone_session(CloneSession(number, tuple(copies), length))
    message = pb.Entity.FromString(encoded.entity(key, value))
    session = message.packet_replication_engine_entry.clone_session_entry
    assert (session.session_id, session.packet_length_bytes) == (number, length)
    response = pb.ReadResponse(entities=[message])
    assert list(encoded.decode([response.SerializeToString()], ())) == [(key, value)]
    assert encoded.to_clone_session(key, value).packet_length == length
    assert encoded.describe(SCHEMA, key) == f"clone session {number}"


def test_what_a_controller_cannot_write_is_left_out() -> None:
    table = SCHEMA.tables.named("exact_table")
    entry = Entry("exact_table", {table.keys[0].name: Exact(5)}, Action("forward", {"port": 3}))
    plain, const, default = as_sent(entry), as_sent(entry), as_sent(entry)
    const.is_const = True
    default.is_default_action = True
    del default.match[:]
    for message, skipped, count in ((plain, (), 1), (plain, (table.id,), 0), (const, (), 0), (default, (), 0)):
        response = pb.ReadResponse(entities=[pb.Entity(table_entry=message)])
        assert len(list(encoded.decode([response.SerializeToString()], skipped))) == count


@pytest.mark.parametrize(
    ("entry", "cause"),
    [
        (Entry("no_table", {}, Action("forward")), "table no_table: no table of that name"),
        (Entry("exact_table", {"h.frame.nothing": Exact(1)}, Action("forward", {"port": 1})), "no key of that name"),
        (Entry("exact_table", {}, Action("backward")), "no action of that name"),
        (Entry("exact_table", {}, Action("forward", {"port": 1 << 20})), "does not fit"),
        (Entry("exact_table", {}, Action("forward", {"port": -1})), "does not fit"),
        (Entry("exact_table", {}, Action("forward")), "parameter port: missing"),
        (Entry("exact_table", {}, Action("forward", {"prot": 1})), "no parameter prot"),
    ],
)
def test_what_does_not_fit_is_refused(entry: Entry, cause: str) -> None:
    with pytest.raises(ControlError, match=cause):
        encoded.Encoder(SCHEMA).entry(entry)


def test_differences() -> None:
    held = {(1, b"a"): b"1", (1, b"b"): b"1", (2, b"a"): b"1"}
    wanted = {(1, b"a"): b"1", (1, b"b"): b"2", (3, b"a"): b"1"}
    assert encoded.differences(held, wanted) == ([(2, b"a")], [(1, b"b")], [(3, b"a")])
