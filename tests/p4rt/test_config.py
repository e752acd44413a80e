"""SetForwardingPipelineConfig and GetForwardingPipelineConfig (sections 14 and 15)."""

from __future__ import annotations

import grpc
import pytest

from p4gen.p4rt.session import RequestError
from p4gen.p4rt.status import Code
from p4gen.protos import p4runtime as pb

from .conftest import MODIFY, SOURCE, World

ACTIONS = pb.SetForwardingPipelineConfigRequest
GET = pb.GetForwardingPipelineConfigRequest


def code(world: World, config: object, action: int) -> Code:
    before = world.session.get_config()
    with pytest.raises(RequestError) as caught:
        world.session.set_config(config, action)
    assert world.session.get_config() == before
    return caught.value.code


def test_verify_changes_nothing(bare: World) -> None:
    bare.connect(0, 10).set_config(bare.config, ACTIONS.VERIFY)
    assert bare.session.get_config() is None


@pytest.mark.parametrize(
    "action", [ACTIONS.VERIFY, ACTIONS.VERIFY_AND_SAVE, ACTIONS.VERIFY_AND_COMMIT, ACTIONS.RECONCILE_AND_COMMIT]
)
def test_a_config_that_is_missing_or_cannot_be_realised(world: World, action: int) -> None:
    world.insert(world.exact("exact_table", 5))
    wrong = world.config
    wrong.p4_device_config = b"control c() { nonsense }"
    other = world.config
    del other.p4info.tables[0]
    bare_config = pb.ForwardingPipelineConfig(p4_device_config=SOURCE.read_bytes())
    json = world.config
    json.p4_device_config = b'{"program": "of another switch"}'
    binary = world.config
    binary.p4_device_config = b"\xff\xfe"
    for config in (None, wrong, other, bare_config, json, binary):
        assert code(world, config, action) is Code.INVALID_ARGUMENT
    assert world.send(0, 5) == [3]


def test_an_action_that_is_not_specified(world: World) -> None:
    assert code(world, world.config, ACTIONS.UNSPECIFIED) is Code.INVALID_ARGUMENT


def test_commit_without_a_saved_config_or_with_one_given(world: World) -> None:
    assert code(world, None, ACTIONS.COMMIT) is Code.NOT_FOUND
    world.session.set_config(world.config, ACTIONS.VERIFY_AND_SAVE)
    assert code(world, world.config, ACTIONS.COMMIT) is Code.INVALID_ARGUMENT


def test_verify_and_commit_clears_the_state(world: World) -> None:
    world.insert(world.exact("exact_table", 5))
    world.send(12, aux=7)
    world.session.set_config(world.config)
    assert world.send(0, 5) == []
    assert world.device.model is not None
    assert world.device.model.registers("notes") == [0] * 4


def test_what_is_written_after_saving_takes_effect_with_commit(world: World) -> None:
    world.insert(world.exact("exact_table", 5, port=3))
    world.session.set_config(world.config, ACTIONS.VERIFY_AND_SAVE)
    assert world.send(0, 5) == [3]  # the forwarding state is not modified
    assert world.read(pb.TableEntry(table_id=world.exact("exact_table", 5).table_id)) == []
    world.insert(world.exact("exact_table", 6, port=4))
    assert world.send(0, 6) == []
    world.session.set_config(None, ACTIONS.COMMIT)
    assert world.send(0, 5) == []
    assert world.send(0, 6) == [4]


def test_reconcile_keeps_the_state(world: World) -> None:
    world.insert(world.member(1), world.group(1, (1, 2)), world.exact("exact_table", 5))
    indirect = world.key("group_table", (1, "exact", b"\x08"))
    indirect.action.action_profile_group_id = 1
    world.insert(indirect)
    world.write(MODIFY, world.exact("initial_table", 2, port=9))
    world.send(12, aux=7)
    before = world.everything()
    changed = world.config
    changed.p4_device_config = SOURCE.read_bytes() + b"\n// another text\n"
    changed.cookie.cookie = 5
    world.session.set_config(changed, ACTIONS.RECONCILE_AND_COMMIT)
    assert world.everything() == before
    assert [world.send(0, 5), world.send(10, 8), world.send(8, 2)] == [[3], [3], [9]]


def test_reconcile_refuses_a_program_that_has_no_place_for_the_state(world: World) -> None:
    world.insert(*(world.exact("exact_table", key) for key in range(3)))
    smaller = world.config
    smaller.p4_device_config = SOURCE.read_bytes().replace(b"size = 4;", b"size = 2;")
    next(t for t in smaller.p4info.tables if t.preamble.alias == "exact_table").size = 2
    assert code(world, smaller, ACTIONS.RECONCILE_AND_COMMIT) is Code.INVALID_ARGUMENT
    assert world.send(0, 2) == [3]
    world.session.set_config(smaller)


def test_the_config_is_read_as_it_was_set(world: World) -> None:
    config = world.config
    config.cookie.cookie = 42
    world.session.set_config(config)

    def get(kind: int) -> pb.ForwardingPipelineConfig:
        return world.session.stub.GetForwardingPipelineConfig(GET(device_id=1, response_type=kind)).config

    assert get(GET.ALL) == config
    assert get(GET.COOKIE_ONLY) == pb.ForwardingPipelineConfig(cookie=config.cookie)
    assert get(GET.P4INFO_AND_COOKIE) == pb.ForwardingPipelineConfig(cookie=config.cookie, p4info=config.p4info)
    assert get(GET.DEVICE_CONFIG_AND_COOKIE).p4_device_config == config.p4_device_config
    assert not get(GET.DEVICE_CONFIG_AND_COOKIE).HasField("p4info")


def test_another_device_s_config(world: World) -> None:
    for call, request in (
        (world.session.stub.GetForwardingPipelineConfig, GET(device_id=2)),
        (world.session.stub.SetForwardingPipelineConfig, ACTIONS(device_id=2)),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            call(request)
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
