"""A device with one of everything behind a P4Runtime server, and a controller that may say what it likes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S

from p4gen.model.entries import Action
from p4gen.p4.compile import Compiled, compile_file
from p4gen.p4rt.codec import encode_table_action
from p4gen.p4rt.schema import Schema
from p4gen.p4rt.server import P4RuntimeServer
from p4gen.p4rt.session import RequestError, Session
from p4gen.p4rt.status import Code
from p4gen.protos import p4runtime as pb
from p4gen.switch.device import Device
from p4gen.switch.running import scratch

SOURCE = Path(__file__).parent / "everything.p4"
CPU = 510
INSERT, MODIFY, DELETE = pb.Update.INSERT, pb.Update.MODIFY, pb.Update.DELETE


def frame(what: int, key: int = 0, aux: int = 0, payload: bytes = b"payload") -> bytes:
    return bytes([what]) + key.to_bytes(4) + aux.to_bytes(2) + payload


@dataclass
class World:
    """The switch, its server, and a primary controller."""

    device: Device
    server: P4RuntimeServer
    compiled: Compiled
    sessions: list[Session] = field(default_factory=list)
    now: int = 0
    """Microseconds on the switch's clock."""

    @property
    def schema(self) -> Schema:
        return Schema(self.compiled.p4info)

    @property
    def session(self) -> Session:
        return self.sessions[0]

    @property
    def config(self) -> Any:
        return pb.ForwardingPipelineConfig(p4info=self.compiled.p4info, p4_device_config=SOURCE.read_bytes())

    def connect(self, *election: int) -> Session:
        self.sessions.append(Session(self.server.address, 1, (election[0], election[1])))
        return self.sessions[-1]

    def send(self, what: int, key: int = 0, aux: int = 0, port: int = 1) -> list[int]:
        """The ports out of which a frame goes."""
        return [out for out, _ in self.device.send(port, frame(what, key, aux))]

    def stop_time(self, now: int = 0) -> None:
        """Have the digests' clock, in nanoseconds, stand still at ``now``."""
        self.server._digests._clock = lambda: now

    # --- building entities ---

    def key(self, table: str, *fields: tuple[Any, ...], priority: int = 0) -> Any:
        """A TableEntry; fields are (id, kind, values in the order of the kind's message)."""
        message = pb.TableEntry(table_id=self.schema.tables.named(table).id, priority=priority)
        for number, kind, *values in fields:
            match = message.match.add(field_id=number)
            given = getattr(match, kind)
            for descriptor, value in zip(given.DESCRIPTOR.fields, values, strict=True):
                setattr(given, descriptor.name, value)
        return message

    def action(self, table: str, name: str, **args: int) -> Any:
        return encode_table_action(self.schema.tables.named(table), Action(name, args))

    def entry(
        self, table: str, *fields: tuple[Any, ...], action: str = "forward", priority: int = 0, **args: int
    ) -> Any:
        message = self.key(table, *fields, priority=priority)
        message.action.CopyFrom(
            self.action(table, action, **(args or ({} if action in ("drop", "learn", "to_cpu") else {"port": 3})))
        )
        return message

    def exact(self, table: str, key: int, **args: Any) -> Any:
        return self.entry(table, (1, "exact", key.to_bytes(1)), **args)

    def member(self, number: int, port: int = 3, profile: str = "spread", table: str = "group_table") -> Any:
        message = pb.ActionProfileMember(action_profile_id=self.schema.profiles.named(profile).id, member_id=number)
        message.action.CopyFrom(self.action(table, "forward", port=port).action)
        return message

    def group(self, number: int, *members: tuple[int, int], max_size: int = 0) -> Any:
        message = pb.ActionProfileGroup(
            action_profile_id=self.schema.profiles.named("spread").id, group_id=number, max_size=max_size
        )
        for member, weight in members:
            message.members.add(member_id=member, weight=weight)
        return message

    # --- requests ---

    def write(self, kind: int, *messages: Any, atomicity: int = 0) -> None:
        self.session.write_all([pb.Update(type=kind, entity=entity_of(m)) for m in messages], atomicity)

    def insert(self, *messages: Any) -> None:
        self.write(INSERT, *messages)

    def refused(self, kind: int, message: Any) -> Code:
        """The code with which an update is refused; nothing may have changed."""
        before = self.everything()
        with pytest.raises(RequestError) as caught:
            self.write(kind, message)
        assert self.everything() == before
        ((number, code, text),) = caught.value.failures
        assert number == 0
        assert text
        return code

    def read(self, message: Any) -> list[Any]:
        found = list(self.session.read_all(entity_of(message)))
        inner = [getattr(e, e.WhichOneof("entity")) for e in found]
        if isinstance(message, pb.MulticastGroupEntry | pb.CloneSessionEntry):
            return [getattr(m, m.WhichOneof("type")) for m in inner]
        return inner

    def read_refused(self, message: Any) -> Code:
        with pytest.raises(RequestError) as caught:
            self.read(message)
        return caught.value.code

    def everything(self) -> list[bytes]:
        """The whole state that P4Runtime shows."""
        wanted = [pb.Entity() for _ in range(11)]
        wanted[0].table_entry.SetInParent()
        wanted[1].table_entry.is_default_action = True
        wanted[2].action_profile_member.SetInParent()
        wanted[3].action_profile_group.SetInParent()
        wanted[4].packet_replication_engine_entry.multicast_group_entry.SetInParent()
        wanted[5].packet_replication_engine_entry.clone_session_entry.SetInParent()
        wanted[6].counter_entry.SetInParent()
        wanted[7].meter_entry.SetInParent()
        wanted[8].register_entry.SetInParent()
        wanted[9].value_set_entry.SetInParent()
        wanted[10].digest_entry.SetInParent()
        return [e.SerializeToString(deterministic=True) for e in self.session.read_all(*wanted)]


def entity_of(message: Any) -> Any:
    """An entity around a message, by its type."""
    entity = pb.Entity()
    for descriptor in entity.DESCRIPTOR.fields:
        if descriptor.message_type is message.DESCRIPTOR:
            getattr(entity, descriptor.name).CopyFrom(message)
            return entity
    for name in ("multicast_group_entry", "clone_session_entry"):
        place = getattr(entity.packet_replication_engine_entry, name)
        if place.DESCRIPTOR is message.DESCRIPTOR:
            place.CopyFrom(message)
            return entity
    assert isinstance(message, pb.Entity)
    return message


def eventually(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.005)
    return found


@pytest.fixture(scope="session")
def compiled() -> Compiled:
    return compile_file(SOURCE)


@pytest.fixture
def bare(compiled: Compiled) -> Iterator[World]:
    """Without a program and without a controller."""
    device = Device(1, cpu_port=CPU, ports=[*range(16), CPU], clock=lambda: made.now)
    with scratch() as folder, P4RuntimeServer(device, f"unix:{folder / 's'}") as server:
        made = World(device, server, compiled)
        yield made
        for session in made.sessions:
            session.tear_down()


@pytest.fixture
def world(bare: World) -> World:
    """With the program, and a primary controller with election id 10."""
    bare.connect(0, 10).set_config(bare.config)
    return bare
