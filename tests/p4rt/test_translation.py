"""Types with ``@p4runtime_translation`` (section 7.4.8): wider numbers, and strings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import PATIENCE_S

from p4gen.errors import InputError
from p4gen.model import ControlError
from p4gen.model.entries import Action, Entry, Exact, Indirect, Lpm, Match, Range, Ternary, Text
from p4gen.p4.compile import compile_file
from p4gen.p4rt.client import Client
from p4gen.p4rt.encoded import Encoder
from p4gen.p4rt.server import P4RuntimeServer
from p4gen.p4rt.session import RequestError
from p4gen.p4rt.status import Code
from p4gen.protos import p4runtime as pb
from p4gen.switch import bmv2
from p4gen.switch.device import Device
from p4gen.switch.running import Program, scratch

from .conftest import CPU, eventually

SOURCE = Path(__file__).parent / "translated.p4"
COMPILED = compile_file(SOURCE)
FORWARD = Action("forward", {"port": 3})
RED = Action("paint", {"colour": Text("red")})
BLUE = Text("blue")


class World:
    def __init__(self, device: Device, client: Client) -> None:
        self.device, self.client = device, client
        self.sent: list[tuple[int, bytes]] = []
        device.inject = lambda port, data: self.sent.extend(device.send(port, data))

    def send(self, port: int = 1) -> list[tuple[int, bytes]]:
        """What becomes of a frame: (port, vrf, colour, result)."""
        return self.device.send(port, bytes(3))

    def refused(self, *entries: Entry) -> tuple[Code, str]:
        with pytest.raises(RequestError) as caught:
            self.client.insert(*entries)
        ((_, code, text),) = [f for f in caught.value.failures if f[1] is not Code.ABORTED]
        return code, text


@pytest.fixture
def world() -> Iterator[World]:
    device = Device(1, cpu_port=CPU)
    with (
        scratch() as folder,
        P4RuntimeServer(device, f"unix:{folder / 's'}") as server,
        Client(server.address) as client,
    ):
        client.set_pipeline(COMPILED.p4info, SOURCE.read_bytes())
        yield World(device, client)


def vrf_of(name: Text) -> Entry:
    return Entry("vrfs", {"meta.port": Exact(1)}, Action("set_vrf", {"vrf": name}))


def test_a_string_stands_for_the_same_value_everywhere(world: World) -> None:
    world.client.insert(vrf_of(BLUE), Entry("routes", {"meta.vrf": Exact(BLUE)}, FORWARD))
    assert [port for port, _ in world.send()] == [3]
    world.client.modify(vrf_of(Text("green")))
    assert world.send() == []
    (read,) = world.client.entries("vrfs")
    assert (read.match["meta.port"], read.action.args) == (Exact(1), {"vrf": Text("green")})
    assert str(read.action.args["vrf"]) == "green"
    (route,) = world.client.entries("routes")
    assert route.match == {"meta.vrf": Exact(BLUE)}
    world.client.delete(route)
    assert world.client.entries("routes") == []


def test_numbers_of_the_data_plane_are_decimal_strings(world: World) -> None:
    world.client.insert(Entry("routes", {"meta.vrf": Exact(Text("5"))}, FORWARD))  # the program's default
    assert [data[2] for _, data in world.send()] == [5]
    assert world.client.default("vrfs").args == {"vrf": Text("5")}


def test_types_with_one_uri_only_share_their_strings(world: World) -> None:
    world.client.insert(vrf_of(Text("red")), Entry("routes", {"meta.vrf": Exact(Text("red"))}, FORWARD))
    world.client.insert(Entry("painted", {"meta.vrf": Exact(Text("red"))}, RED, priority=1))
    ((port, data),) = world.send()
    assert (port, data[1]) == (3, 3)  # the highest of two bits; that of vrf_t has ten


@pytest.mark.parametrize(
    ("table", "match"),
    [
        ("painted", {"meta.vrf": BLUE}),
        ("painted", {"meta.vrf": Ternary(BLUE, 0xFF)}),
        ("painted", {"meta.vrf": Ternary(BLUE, 0x3FF)}),
        ("painted", {"meta.port": 1}),
        ("painted", {"meta.port": Ternary(1, 0xFFFFFFFF)}),
        ("painted", {"meta.port": Ternary(1, 3)}),
        ("near", {"meta.port": 1}),
        ("near", {"meta.port": Lpm(0, 24)}),
    ],
)
def test_every_kind_of_match_that_can_be_translated(world: World, table: str, match: dict[str, Match]) -> None:
    world.client.insert(vrf_of(BLUE), Entry("routes", {"meta.vrf": BLUE}, FORWARD))
    world.client.insert(Entry(table, match, RED, priority=int(table == "painted")))
    ((_, data),) = world.send()
    assert data[1] == 3
    (read,) = world.client.entries(table)
    world.client.delete(read)
    ((_, data),) = world.send()
    assert data[1] == 0


def test_members_of_profiles_and_actions_of_entries(world: World) -> None:
    world.client.insert(vrf_of(BLUE), Entry("routes", {"meta.vrf": BLUE}, FORWARD))
    world.client.set_member("ways", 1, RED)
    world.client.insert(Entry("chosen", {"meta.vrf": Lpm(BLUE, 10)}, Indirect(member=1)))
    assert [data[1] for _, data in world.send()] == [3]
    world.client.set_member("ways", 1, Action("paint", {"colour": Text("violet")}))
    assert [data[1] for _, data in world.send()] == [2]


def test_packets_to_and_from_controllers(world: World) -> None:
    """The header has the data plane's widths: 9 bits, 2 and 5."""
    world.client.packet_out(bytes(3), port=4, colour=Text("red"), pad=0)
    assert eventually(lambda: world.sent) == [(4, bytes([0, 3, 0]))]
    world.client.insert(
        Entry("routes", {"meta.vrf": Text("5")}, Action("forward", {"port": CPU})),
        Entry("near", {"meta.port": 1}, RED),
    )
    assert world.send() == []
    assert world.client.packet_in(PATIENCE_S) == (bytes([0, 3, 5]), {"port": 1, "colour": Text("red"), "pad": 0})


def test_digests_have_the_strings(world: World) -> None:
    session, schema = world.client.session, world.client.schema
    update = pb.Update(type=pb.Update.INSERT)
    update.entity.digest_entry.digest_id = schema.digests.named("seen_t").id
    update.entity.digest_entry.config.max_list_size = 1
    world.client.write(update)
    world.client.insert(vrf_of(BLUE), Entry("ranged", {"meta.vrf": Range(BLUE, BLUE)}, Action("learn"), priority=1))
    world.send()
    message = session.get_stream_packet("digest", PATIENCE_S)
    assert [m.bitstring for m in message.digest.data[0].struct.members] == [b"blue", b"\xff"]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (vrf_of(Text("1024")), "1024 does not fit the 10 bits"),
        (vrf_of(Text("1023")), "1023 is the number that 'blue' stands for"),
        (Entry("vrfs", {"meta.port": 512}, Action("set_vrf", {"vrf": BLUE})), "does not fit the 9 bits"),
        (Entry("near", {"meta.port": Lpm(0, 23)}, RED), "prefix length 23 is not in 24 to 32"),
        (Entry("painted", {"meta.port": Ternary(0, 0x200)}, RED, priority=1), "not the mask of all bits, 0xffffffff"),
        (Entry("painted", {"meta.vrf": Ternary(BLUE, 0xF0)}, RED, priority=1), "not the mask of all bits, 0xff"),
        (Entry("chosen", {"meta.vrf": Lpm(BLUE, 9)}, Indirect(member=1)), "not in 10 to 10"),
        (Entry("ranged", {"meta.vrf": Range(BLUE, Text("red"))}, Action("learn"), priority=1), "one string"),
    ],
)
def test_what_is_refused(world: World, entry: Entry, reason: str) -> None:
    world.client.insert(Entry("routes", {"meta.vrf": BLUE}, FORWARD))
    code, text = world.refused(entry)
    assert code is Code.INVALID_ARGUMENT
    assert reason in text


@pytest.mark.parametrize("data", [b"", b"\xff", b"a\0b"])
def test_strings_that_are_none(world: World, data: bytes) -> None:
    schema = world.client.schema
    entry = pb.TableEntry(table_id=schema.tables.named("routes").id)
    entry.match.add(field_id=1).exact.value = data
    entry.action.action.action_id = schema.actions.named("I.drop").id
    with pytest.raises(RequestError) as caught:
        world.client.write(pb.Update(type=pb.Update.INSERT, entity=pb.Entity(table_entry=entry)))
    ((_, code, text),) = caught.value.failures
    assert code is Code.INVALID_ARGUMENT
    assert "a string must" in text


def test_a_string_that_nothing_uses_gives_its_number_back(world: World) -> None:
    def paint(colour: str) -> Entry:
        return Entry("near", {"meta.port": 1}, Action("paint", {"colour": Text(colour)}))

    world.client.insert(paint("red"))
    for colour in ("yellow", "green", "blue", "violet"):
        world.client.modify(paint(colour))
    world.client.insert(Entry("near", {"meta.port": 3}, Action("paint", {"colour": Text("1")})))
    assert [e.action.args["colour"] for e in world.client.entries("near")] == [Text("violet"), Text("1")]


def test_all_strings_in_use(world: World) -> None:
    world.client.insert(
        *(
            Entry("near", {"meta.port": port}, Action("paint", {"colour": Text(colour)}))
            for port, colour in enumerate(("red", "yellow", "green", "blue"))
        )
    )
    code, text = world.refused(Entry("near", {"meta.port": 7}, Action("paint", {"colour": Text("violet")})))
    assert code is Code.RESOURCE_EXHAUSTED
    assert "all their values" in text


def test_strings_keep_their_numbers_when_the_program_is_reconciled(world: World) -> None:
    world.client.insert(vrf_of(Text("other")), Entry("routes", {"meta.vrf": BLUE}, FORWARD))
    world.client.delete(vrf_of(Text("other")))
    before = world.client.entries("routes")
    config = pb.ForwardingPipelineConfig(p4info=COMPILED.p4info, p4_device_config=SOURCE.read_bytes())
    world.client.session.set_config(config, pb.SetForwardingPipelineConfigRequest.RECONCILE_AND_COMMIT)
    assert world.client.entries("routes") == before
    world.client.insert(vrf_of(BLUE))
    ((_, data),) = world.send()
    assert data[2] == 0xFE  # the second string's number, not the first's


def test_a_client_writes_strings_only(world: World) -> None:
    for value in (97, 0):
        with pytest.raises(ControlError, match="strings"):
            world.client.insert(Entry("routes", {"meta.vrf": Exact(value)}, FORWARD))
        with pytest.raises(ControlError, match="strings"):
            Encoder(world.client.schema).entry(Entry("routes", {"meta.vrf": Exact(value)}, FORWARD))
        with pytest.raises(ControlError, match="strings"):
            Encoder(world.client.schema).entry(Entry("vrfs", {"meta.port": 1}, Action("set_vrf", {"vrf": value})))
    with pytest.raises(ControlError, match="strings"):
        world.client.packet_out(bytes(3), port=4, colour=1, pad=0)


def test_bmv2_is_not_started_with_strings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bmv2, "check_tools", lambda: None)
    program = Program.of_text(SOURCE.read_text(encoding="utf-8"), tmp_path, compiled=COMPILED)
    running = bmv2.running_bmv2(program, tmp_path, ())
    with pytest.raises(InputError, match="colour_t and vrf_t are translated to strings"), running:
        pass
