"""What a host's NIC cannot do: InitGroup refuses it, and says what would do."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from p4gen.host.collectives.plan import PsnSync
from p4gen.host.transport.nicinfo import OUR_NIC, NicInfo, NicNeeds
from p4gen.host.transport.verbs import Recovery
from p4gen.manager.api import Code, GroupState, HostInfo, ManagerError, Memory
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.papers.scin.spec import ScinSpec
from p4gen.vocabulary import ServingSpec
from p4gen.vocabulary.message import Collective

from .rig import Rig, group, small

ALL = ("h0", "h1", "h2", "h3")
RXE = NicInfo(Recovery.GO_BACK_N, (256, 512, 1024), outstanding=129, reads=128, queue_pairs=((17, 200),))
CUT = "h1: a message is cut into packets of 32 bytes; its NIC cuts it into packets of 256, 512 or 1024 bytes: "


def refused(spec: ServingSpec, nic: NicInfo = RXE, **fields: object) -> str:
    """Why a group of all hosts is refused if h1 has this NIC; "" if it is not."""
    memories = (Memory(0, 1, 1 << 20),) * 4 if spec.uses_memory else ()
    rig = Rig("star-4", spec)
    with rig.register() as manager:
        manager.register_host(HostInfo("h1", nic=nic))
        wanted = group("g", *ALL, **{"memories": memories, "sync": PsnSync.SUBGROUPS} | fields)
        try:
            manager.init_group(wanted)
        except ManagerError as error:
            found = error
        else:
            return ""
        assert found.code is Code.INVALID
        assert not manager.groups()
        return found.reason


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, ""),
        ({"reliability": "sr"}, "h1: its NIC recovers by gbn, not by sr: reliability gbn would do"),
        ({"reliability": "sack"}, "h1: its NIC recovers by gbn, not by ideal: reliability gbn would do"),
        ({"lanes": 8}, f"{CUT}such packets would do, or messages of one packet"),
        ({"lanes": 8, "message": 1}, ""),
        ({"lanes": 128, "op": "sum", "dtype": "int32"}, ""),
        ({"window": 32, "message": 4}, ""),
        (
            {"icrc": "ignore"},
            "h1: its NIC checks ICRCs, and those of modeiii_sum_int32_x64_gbn_noicrc are wrong: icrc set would do",
        ),
        ({"window": 33}, "h1: 132 packets may be unacknowledged (W x M); its NIC has 129 at most"),
    ],
)
def test_programs_that_a_nic_cannot_serve(fields: dict[str, object], reason: str) -> None:
    spec = small("III", **{"lanes": 64, "message": 4, "reliability": "gbn", "groups": 16} | fields)
    assert refused(spec) == reason
    assert refused(spec, OUR_NIC) == ""


def test_all_reasons_together() -> None:
    assert refused(small("II", window=200, message=2), replace(RXE, mtus=(1024,))).splitlines() == [
        "h1: its NIC recovers by gbn, not by sr: reliability gbn would do",
        "h1: a message is cut into packets of 32 bytes; its NIC cuts it into packets of 1024 bytes: such packets would "
        "do, or messages of one packet",
        "h1: 400 packets may be unacknowledged (W x M); its NIC has 129 at most",
    ]
    assert "packets have 512 bytes of data; its NIC sends 256 at most" in refused(
        small(lanes=128, reliability="gbn"), replace(RXE, mtus=(256,))
    )


def test_psns_are_the_nics_own() -> None:
    spec = small(lanes=64, reliability="gbn")
    reason = "h1: its NIC alone sets PSNs: sync subgroups would do"
    assert refused(spec, sync=PsnSync.REFINED) == reason
    symmetric = frozenset({Collective.ALLREDUCE, Collective.BARRIER})
    assert refused(spec, sync=PsnSync.REFINED, collectives=symmetric) == "", "there is nothing to set"


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (ScinSpec(lanes=64, contexts=9, waves=32, edges=4, ports=4), ""),
        (ScinSpec(lanes=32, contexts=9, waves=32, wave=1, edges=4, ports=4), ""),
        (ScinSpec(lanes=32, contexts=9, edges=4, ports=4), "a message is cut into packets of 128 bytes"),
        (
            ScinSpec(lanes=256, dtype="mxint8", contexts=9, edges=4, ports=4),
            "a message is cut into packets of unequal lengths",
        ),
        (MultiwriteSpec(contexts=4, edges=4, ports=4, slots=64), ""),
    ],
    ids=range(5),
)
def test_programs_that_use_memory(spec: ServingSpec, reason: str) -> None:
    collectives = frozenset({Collective.BROADCAST if isinstance(spec, MultiwriteSpec) else Collective.ALLREDUCE})
    said = refused(spec, collectives=collectives)
    assert reason in said
    assert bool(reason) == bool(said)


def test_reads_that_are_not_remembered() -> None:
    spec = ScinSpec(lanes=64, contexts=9, waves=32, edges=4, ports=4)
    assert refused(spec, replace(RXE, reads=16), collectives=frozenset({Collective.ALLREDUCE})) == (
        "h1: 32 READs may be outstanding; its NIC remembers 16"
    )


def test_another_program_may_do() -> None:
    """Only the trees of the program that the NIC cannot serve are refused."""
    specs = {"s0": small(lanes=64), "s1": small(lanes=64, reliability="gbn"), "s2": small(lanes=64)}
    rig = Rig("tree-3-2", specs)
    with rig.register() as manager:
        manager.register_host(HostInfo("h1", nic=RXE))
        with pytest.raises(ManagerError, match="root s0: s0: h1: its NIC recovers by gbn, not by sr") as far:
            manager.init_group(group("g", "h1", "h2", sync=PsnSync.SUBGROUPS, root="s0"))
        assert far.value.code is Code.NO_ROOM
        status = manager.init_group(group("g", "h0", "h1", sync=PsnSync.SUBGROUPS))
        assert (status.state, set(status.tree)) == (GroupState.ACTIVE, {"s1"})


def test_a_ring_needs_packets_of_its_hosts_path_mtu() -> None:
    rig = Rig("tree-3-2", small(groups=1, reliability="gbn"))
    with rig.register() as manager:
        manager.register_host(HostInfo("h1", nic=RXE))
        fields: dict[str, object] = {"collectives": frozenset({Collective.ALLREDUCE}), "fallback": True}
        manager.init_group(group("a", *ALL, sync=PsnSync.SUBGROUPS, **fields))
        with pytest.raises(ManagerError) as caught:
            manager.init_group(group("b", *ALL, sync=PsnSync.SUBGROUPS, **fields))
        assert caught.value.code is Code.REFUSED
        assert f"no ring: {CUT}" in caught.value.reason


def test_the_log_says_what_a_host_offers(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "p4gen.manager")
    rig = Rig("star-4", small())
    with rig.register() as manager:
        for nic in (OUR_NIC, RXE, RXE):
            manager.register_host(HostInfo("h1", nic=nic))
    said = [record.message for record in caplog.records if "NIC" in record.message]
    assert said == ["host h1 has a NIC with 183 queue pairs, recovery by gbn"]


def test_needs_of_nobody_are_met_by_every_nic() -> None:
    assert not list(replace(RXE, reads=0).lacks(NicNeeds()))
