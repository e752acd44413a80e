"""What goes into a message comes out of it; and the generated code is that of the .proto."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from p4gen.host.collectives.plan import PsnSync
from p4gen.host.transport.verbs import Peer, Recovery
from p4gen.manager import api
from p4gen.manager.api import Code, GroupSpec, GroupState, HostInfo, ManagerError
from p4gen.manager.remote.messages import from_message, to_message
from p4gen.papers.epic.spec import EpicSpec
from p4gen.protos import incmanager as pb
from p4gen.vocabulary.message import Collective

from . import samples

KINDS: list[tuple[type, st.SearchStrategy[Any]]] = [
    (api.SwitchInfo, samples.switches),
    (api.HostInfo, samples.hosts),
    (api.HostAddresses, samples.addresses),
    (api.GroupSpec, samples.group_specs),
    (api.GroupStatus, samples.group_statuses),
    (api.JobSpec, samples.job_specs),
    (api.JobStatus, samples.job_statuses),
    (api.RankConfig, samples.rank_configs),
    (api.Membership, samples.memberships),
    (api.RankReport, samples.reports),
    (api.SwitchStatus, samples.switch_statuses),
    (api.Status, samples.statuses),
    (api.ConnectionSpec, samples.connection_specs),
    (api.ConnectionStatus, samples.connection_statuses),
]


@pytest.mark.parametrize(("kind", "values"), KINDS, ids=lambda value: getattr(value, "__name__", ""))
def test_what_goes_in_comes_out(kind: type, values: st.SearchStrategy[Any]) -> None:
    @given(values)
    def check(value: Any) -> None:
        message: Message = to_message(value)
        again = type(message).FromString(message.SerializeToString())
        assert from_message(kind, again) == value

    check()


@pytest.mark.parametrize("ip", [bytes(3), bytes(17)])
def test_an_address_of_another_length_is_refused(ip: bytes) -> None:
    with pytest.raises(ManagerError, match="bytes are no IP address") as caught:
        from_message(api.HostAddresses, pb.HostAddresses(ip=ip))
    assert caught.value.code is Code.INVALID


def test_what_has_another_shape_in_messages() -> None:
    channel = api.RankChannel((Collective.REDUCE, 3), 0x201, Peer(0x0200_0000_0001, 0x0A00_0001, 0x101, 0xD001))
    assert to_message(channel) == pb.RankChannel(
        collective="REDUCE", root=3, qp=0x201,
        peer_mac=0x0200_0000_0001, peer_ip=bytes((10, 0, 0, 1)), peer_qp=0x101, udp_src_port=0xD001,
    )  # fmt: skip
    spec = GroupSpec("g", ("h1", "h0"), "s0", PsnSync.SUBGROUPS, frozenset({Collective.BARRIER, Collective.ALLREDUCE}))
    status = api.GroupStatus(spec, GroupState.BROKEN, 7, "why", {"s0": None, "s1": "s0"}, {"s0": 8})
    assert to_message(status) == pb.GroupStatus(
        spec=pb.GroupSpec(
            name="g", ranks=["h1", "h0"], root="s0", sync=pb.PsnSync.SUBGROUPS, duty=1.0, term=1,
            collectives=[pb.Collective.ALLREDUCE, pb.Collective.BARRIER],
        ),
        state=pb.GroupState.BROKEN, generation=7, reason="why",
        tree=[pb.TreeSwitch(name="s0"), pb.TreeSwitch(name="s1", parent="s0")], slots={"s0": 8},
    )  # fmt: skip
    switch = api.SwitchInfo("s0", "unix:/s0", EpicSpec(lanes=8), "p4info", b"config")
    assert EpicSpec.model_validate_json(to_message(switch).spec_json) == switch.spec


@pytest.mark.parametrize(
    ("kind", "message", "cause"),
    [
        (api.Membership, pb.Membership(group="g"), "Membership: state: "),
        (api.GroupStatus, pb.GroupStatus(state=pb.GroupState.ACTIVE), "GroupStatus: spec: "),
        (api.RankConfig, pb.RankConfig(sync=pb.PsnSync.REFINED, spec_json="{}"), "RankConfig: addresses: "),
        (api.RankConfig, pb.RankConfig(channels=[pb.RankChannel(root=1)]), "the program's spec is wrong: "),
    ],
)
def test_what_a_message_lacks_is_named_in_one_line(kind: type, message: Any, cause: str) -> None:
    with pytest.raises(ManagerError) as caught:
        from_message(kind, message)
    assert caught.value.code is Code.INVALID
    assert caught.value.reason.startswith(cause)
    assert "\n" not in caught.value.reason


def test_every_kind_of_the_api_is_carried() -> None:
    """A field that is added to a dataclass has to be added to its message."""
    differing = {
        "SwitchInfo": {"spec": "spec_json"},
        "RankConfig": {"spec": "spec_json"},
        "RankChannel": {"key": "collective", "peer": "peer_qp"},
        "RingEnd": {"peer": "peer_qp"},
    }
    kinds = [
        "LinkPort", "SwitchInfo", "NicInfo", "HostInfo", "HostAddresses", "GroupSpec", "RankChannel", "RankTree",
        "RingEnd", "RankConfig", "Membership", "GroupTree", "GroupStatus", "RankReport", "SwitchStatus", "Status",
    ]  # fmt: skip
    for kind in kinds:
        there = {field.name for field in getattr(pb, kind).DESCRIPTOR.fields}
        for field in fields(getattr(api, kind)):
            assert differing.get(kind, {}).get(field.name, field.name) in there, f"{kind}.{field.name}"


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [(pb.Collective, Collective), (pb.PsnSync, PsnSync), (pb.GroupState, GroupState), (pb.Recovery, Recovery)],
)
def test_enumerations_have_the_same_names(theirs: Any, ours: Any) -> None:
    assert [name for name, _ in theirs.items() if not name.endswith("_UNSPECIFIED")] == [value.name for value in ours]


def test_a_host_that_says_nothing_of_its_nic_has_ours() -> None:
    assert from_message(HostInfo, pb.HostInfo(name="h0", out_of_order=True)) == HostInfo("h0", True)


def test_defaults_of_a_group() -> None:
    assert from_message(GroupSpec, pb.GroupSpec(name="g", ranks=["h0"])) == GroupSpec("g", ("h0",))


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (pb.GroupSpec(sync=17), "PsnSync: 17 is not a known value"),
        (pb.GroupSpec(collectives=[0]), "Collective: 0 is not a known value"),
    ],
)
def test_groups_that_make_no_sense(message: Any, cause: str) -> None:
    with pytest.raises(ManagerError, match=cause) as caught:
        from_message(GroupSpec, message)
    assert caught.value.code is Code.INVALID


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "Invalid JSON"),
        ("{}", ""),
        ('{"mode": "IX"}', "mode"),
        ('{"lanse": 3}', "lanse"),
        ('{"lanes": 7.5}', ""),
        ("[]", "no JSON object"),
        ('{"family": "nope"}', "no such family"),
        ('{"family": []}', "no such family"),
    ],
)
def test_program_specs_that_make_no_sense(text: str, cause: str) -> None:
    message = pb.SwitchInfo(name="s0", spec_json=text)
    if text == "{}":
        from_message(api.SwitchInfo, message)  # every field has a default
        return
    with pytest.raises(ManagerError, match="the program's spec is wrong: .*" + cause) as caught:
        from_message(api.SwitchInfo, message)
    assert caught.value.code is Code.INVALID


def test_a_group_for_nothing_cannot_be_sent() -> None:
    with pytest.raises(ManagerError, match="group g has no collectives"):
        to_message(GroupSpec("g", ("h0",), collectives=frozenset()))
