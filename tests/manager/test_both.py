"""Leaves whose program is EPIC's with Themis beside it: one manager gives them groups and connections."""

from __future__ import annotations

import pytest

from p4gen.manager.api import Code, ManagerError
from p4gen.papers.themis.spec import ThemisSpec
from p4gen.vocabulary.topology import load_topology

from .collectives import Wires
from .rig import Rig, group, small
from .test_connection_packets import SPEC, Ends
from .test_connections import NETWORK, _patient, held, spec  # noqa: F401

HOSTS = "h0", "h1", "h2", "h3"


def rig_of_both(mode: str) -> Rig:
    topology = load_topology(NETWORK)
    beside = ThemisSpec(paths=4, path_sets=4, connections=2, queue=16, queue_banks=4)
    specs = {name: small(mode, **({"beside": beside} if "leaf" in name else {})) for name in topology.switches}
    return Rig(topology, specs, drain=0.0, out_of_order=topology.hosts)


@pytest.mark.parametrize("mode", ["II", "III"])
@pytest.mark.long
def test_a_switch_serves_groups_and_connections(mode: str) -> None:
    rig = rig_of_both(mode)
    with rig.register() as manager:
        ends = Ends(rig, manager)
        (base,) = set(ends.leaves(range(8)))
        manager.init_group(group("g", *HOSTS))
        rig.check()
        wires = Wires(rig)
        wires.run("g")
        manager.register_connection(SPEC)
        rig.check()
        taken = ends.leaves(range(8))
        assert (taken[0], len(set(taken[:4])), taken[4:]) == (base, 4, taken[:4])
        wires.run("g", seed=2)
        ends.arrive(0, 1, 3, 2)
        assert not ends.passes(2)
        assert held(rig, "leaf1") == {"deliver": 1, "answer_flows": 1, "paths": 4}
        sessions = {session.session_id for session in rig.switches["leaf1"].holds().clone_sessions}
        assert (511 in sessions, 1 in sessions) == (True, mode == "III")
        manager.destroy_group("g")
        rig.check()
        assert not ends.passes(2)
        ends.arrive(5, 4)
        assert not ends.passes(4)
        manager.release_connection(1)
        rig.check()
        assert ends.passes(4)
        assert set(ends.leaves(range(8))) == {base}


@pytest.mark.long
def test_each_familys_limits_are_its_own() -> None:
    """Tables of connections that are full leave room for groups."""
    rig = rig_of_both("III")
    with rig.register() as manager:
        for qp in (0x100, 0x200):
            manager.register_connection(spec(qp=qp))
        with pytest.raises(ManagerError) as full:
            manager.register_connection(spec(qp=0x300))
        assert full.value.code is Code.NO_ROOM
        manager.init_group(group("g", *HOSTS))
        rig.check()
        Wires(rig).run("g")
