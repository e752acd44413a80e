"""Client arbitration (section 5), and who may do what (sections 12 to 16)."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from patience import PATIENCE_S

from p4gen.errors import FailedError
from p4gen.p4rt.server import write
from p4gen.p4rt.server.arbitration import MAX_CONTROLLERS
from p4gen.p4rt.session import RequestError, Session
from p4gen.p4rt.status import Code
from p4gen.protos import p4runtime as pb

from .conftest import World, eventually

Update = Callable[[Any], None]


class Stream:
    """A stream on which nothing happens by itself."""

    def __init__(self, session: Session) -> None:
        self.requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.call = session.stub.StreamChannel(iter(self.requests.get, None))

    def update(self, election: tuple[int, int] | None, device: int = 1, role: str = "") -> Stream:
        request = pb.StreamMessageRequest()
        request.arbitration.device_id = device
        if election is not None:
            request.arbitration.election_id.high, request.arbitration.election_id.low = election
        if role:
            request.arbitration.role.name = role
        self.requests.put(request)
        return self

    def next(self) -> Any:
        return next(self.call).arbitration

    def code(self) -> grpc.StatusCode:
        """The status with which the server ends the stream."""
        with pytest.raises(grpc.RpcError) as caught:
            for _ in self.call:
                pass
        code: grpc.StatusCode = caught.value.code()
        return code

    def close(self) -> None:
        self.requests.put(None)
        self.call.cancel()


@pytest.fixture
def open_stream(world: World) -> Iterator[Callable[[], Stream]]:
    made: list[Stream] = []

    def make() -> Stream:
        made.append(Stream(world.session))
        return made[-1]

    yield make
    for stream in made:
        stream.close()


Open = Callable[[], Stream]


# --- 5.3 rules for handling MasterArbitrationUpdate ---


def test_the_highest_election_id_is_the_primary(world: World, open_stream: Open) -> None:
    low, high = open_stream().update((0, 9)), open_stream()
    first = low.next()
    assert first.status.code == Code.ALREADY_EXISTS
    assert first.election_id.low == 10
    assert high.update((1, 0)).next().status.code == Code.OK
    told = low.next()  # every backup is told of the new primary
    assert told.status.code == Code.ALREADY_EXISTS
    assert (told.election_id.high, told.election_id.low) == (1, 0)
    old = eventually(lambda: world.session.get_stream_packet("arbitration", 1))
    assert old.arbitration.status.code == Code.ALREADY_EXISTS


def test_an_unknown_device_ends_the_stream(open_stream: Open) -> None:
    assert open_stream().update((0, 11), device=2).code() is grpc.StatusCode.NOT_FOUND


def test_an_election_id_in_use_ends_the_stream(world: World, open_stream: Open) -> None:
    assert open_stream().update((0, 10)).code() is grpc.StatusCode.INVALID_ARGUMENT
    assert world.session.get_stream_packet("arbitration", 0.1) is None
    with pytest.raises(FailedError, match="INVALID_ARGUMENT: election id"):
        world.connect(0, 10)


def test_taking_another_s_election_id_later_ends_the_stream(open_stream: Open) -> None:
    stream = open_stream().update((0, 9))
    stream.next()
    assert stream.update((0, 10)).code() is grpc.StatusCode.INVALID_ARGUMENT


def test_the_device_of_a_stream_cannot_be_changed(open_stream: Open) -> None:
    stream = open_stream().update((0, 9))
    stream.next()
    assert stream.update((0, 9), device=2).code() is grpc.StatusCode.FAILED_PRECONDITION


def test_the_role_of_a_stream_cannot_be_changed(open_stream: Open) -> None:
    stream = open_stream().update((0, 9))
    stream.next()
    assert stream.update((0, 9), role="other").code() is grpc.StatusCode.FAILED_PRECONDITION


def test_a_role_configuration_that_nobody_agreed_upon(open_stream: Open) -> None:
    request = pb.StreamMessageRequest()
    request.arbitration.device_id = 1
    request.arbitration.role.config.type_url = "x/y"
    stream = open_stream()
    stream.requests.put(request)
    assert stream.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_too_many_controllers(open_stream: Open) -> None:
    for number in range(MAX_CONTROLLERS):
        open_stream().update((0, 100 + number), role="crowd").next()
    assert open_stream().update((0, 99), role="crowd").code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_each_role_has_a_primary_of_its_own(world: World, open_stream: Open) -> None:
    answer = open_stream().update((0, 1), role="other").next()
    assert (answer.status.code, answer.role.name) == (Code.OK, "other")
    world.insert(world.exact("exact_table", 5))


def test_without_an_election_id_nobody_is_primary(open_stream: Open) -> None:
    stream = open_stream().update(None, role="empty")
    answer = stream.next()
    assert answer.status.code == Code.NOT_FOUND
    assert not answer.HasField("election_id")
    zero = open_stream().update((0, 0), role="empty")
    assert zero.next().status.code == Code.OK  # an id of zero is an id


def test_when_the_primary_leaves_there_is_none(open_stream: Open) -> None:
    backup, primary = open_stream(), open_stream()
    primary.update((0, 20)).next()
    assert backup.update((0, 15)).next().status.code == Code.ALREADY_EXISTS
    primary.close()
    told = backup.next()
    assert told.status.code == Code.NOT_FOUND
    assert told.election_id.low == 20  # the highest ever seen
    assert backup.update((0, 19)).next().status.code == Code.NOT_FOUND
    assert backup.update((0, 20)).next().status.code == Code.OK


def test_a_primary_may_step_down(world: World, open_stream: Open) -> None:
    stream = open_stream().update((0, 20))
    stream.next()
    assert stream.update((0, 5)).next().status.code == Code.NOT_FOUND
    with pytest.raises(RequestError) as caught:
        world.insert(world.exact("exact_table", 5))
    assert caught.value.code is Code.PERMISSION_DENIED


# --- 12 and 14: checks, in order ---


def test_writes_need_the_device_then_the_primary_then_a_pipeline(bare: World) -> None:
    def code(**request: Any) -> grpc.StatusCode:
        with pytest.raises(grpc.RpcError) as caught:
            bare.session.stub.Write(pb.WriteRequest(**request))
        found: grpc.StatusCode = caught.value.code()
        return found

    bare.connect(0, 10)
    mine = pb.Uint128(low=10)
    assert code(device_id=2) is grpc.StatusCode.NOT_FOUND
    assert code(device_id=1, role="nobody", election_id=mine) is grpc.StatusCode.NOT_FOUND
    assert code(device_id=1) is grpc.StatusCode.PERMISSION_DENIED
    assert code(device_id=1, election_id=pb.Uint128(low=11)) is grpc.StatusCode.PERMISSION_DENIED
    assert code(device_id=1, election_id=mine) is grpc.StatusCode.FAILED_PRECONDITION


def test_a_backup_reads_and_does_not_write(world: World) -> None:
    backup = world.connect(0, 9)
    assert not backup.is_primary
    with pytest.raises(RequestError) as caught:
        backup.set_config(world.config)
    assert caught.value.code is Code.PERMISSION_DENIED
    assert backup.get_config() is not None
    assert len(list(backup.read_all(pb.Entity(table_entry=pb.TableEntry())))) == 4


def test_reads_need_neither_stream_nor_election_id(world: World) -> None:
    with grpc.insecure_channel(world.server.address) as channel:
        stub = type(world.session.stub)(channel)
        responses = list(stub.Read(pb.ReadRequest(device_id=1, entities=[pb.Entity(table_entry=pb.TableEntry())])))
    assert len(responses[0].entities) == 4


def test_reads_of_another_device_or_without_a_pipeline(bare: World) -> None:
    session = bare.connect(0, 10)
    for device, code in ((2, grpc.StatusCode.NOT_FOUND), (1, grpc.StatusCode.FAILED_PRECONDITION)):
        with pytest.raises(grpc.RpcError) as caught:
            list(session.stub.Read(pb.ReadRequest(device_id=device)))
        assert caught.value.code() is code


def test_capabilities_name_the_version(bare: World) -> None:
    answer = bare.connect(0, 10).stub.Capabilities(pb.CapabilitiesRequest())
    assert answer.p4runtime_api_version == "1.4.1"


# --- requests that take long ---


class Held:
    """A write of the primary that stops before its second update, and goes on when ``release`` is called."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self._stopped, self._released, self.count = threading.Event(), threading.Event(), 0
        apply = write.apply

        def held(pipeline: Any, update: Any) -> Any:
            self.count += 1
            if self.count == 2:
                self._stopped.set()
                assert self._released.wait(PATIENCE_S)
            return apply(pipeline, update)

        monkeypatch.setattr(write, "apply", held)
        entries = [world.exact("exact_table", key) for key in (1, 2)]
        self._thread = threading.Thread(target=world.insert, args=entries)
        self._thread.start()
        assert self._stopped.wait(PATIENCE_S)

    def release(self) -> None:
        self._released.set()
        self._thread.join(PATIENCE_S)


def test_controllers_are_answered_while_a_batch_is_written(
    world: World, open_stream: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(world, monkeypatch)
    for election in ((0, 1), (0, 2), None):
        assert open_stream().update(election).next().status.code == Code.ALREADY_EXISTS
    assert open_stream().update((0, 1), role="other").next().status.code == Code.OK
    assert held.count == 2
    held.release()
    assert len(world.read(world.key("exact_table"))) == 2


def test_a_new_primary_is_told_when_the_batch_of_the_old_one_is_written(
    world: World, open_stream: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup, new = open_stream().update((0, 1)), open_stream()
    backup.next()
    held = Held(world, monkeypatch)
    new.update((0, 20))
    assert backup.next().election_id.low == 20
    request = pb.WriteRequest(device_id=1, election_id=pb.Uint128(low=20))
    for election in (10, 20):  # the old primary's, and the new one's too early
        request.election_id.low = election
        with pytest.raises(grpc.RpcError) as caught:
            world.session.stub.Write(request)
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
    held.release()
    assert new.next().status.code == Code.OK
    request.election_id.low = 20
    world.session.stub.Write(request)


def test_a_primary_that_leaves_before_it_is_told(
    world: World, open_stream: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup, new = open_stream().update((0, 1)), open_stream()
    backup.next()
    held = Held(world, monkeypatch)
    new.update((0, 20))
    assert backup.next().status.code == Code.ALREADY_EXISTS
    new.close()
    assert backup.next().status.code == Code.NOT_FOUND
    held.release()
    last = open_stream().update((0, 20))
    assert last.next().status.code == Code.OK
