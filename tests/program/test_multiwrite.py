"""MultiWrite's programs: the specs that there are, that each of them builds, and the entries that contexts need."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from p4gen.builder import build
from p4gen.errors import InputError
from p4gen.families import load_spec
from p4gen.groups.group import Endpoint
from p4gen.model import Model
from p4gen.net.world.faults import Faults, Impairment
from p4gen.papers.multiwrite.control import Window, WriteContext, WriteEdge, configuration
from p4gen.papers.multiwrite.headers import mweth
from p4gen.papers.multiwrite.simulation import Layer, WriteConfig, WriteSimulation
from p4gen.papers.multiwrite.spec import MultiwriteSpec, Place, Repair, Replicate
from p4gen.program import compose, render
from p4gen.program.compilation import compile_spec
from p4gen.vocabulary import Icrc
from p4gen.vocabulary.topology import load_topology, packaged

SMALL = MultiwriteSpec(payload=64, contexts=2, edges=3, slots=4, ports=4)
PORTS = {1: 0, 2: 1, 3: 2}


def edge(number: int, reach: int = 0, window: Window | None = None) -> WriteEdge:
    return WriteEdge(
        number, Endpoint(2, 0x0A000001, 0x100 + number), Endpoint(4, 0x0A000100 + number, 9), reach, window
    )


def star() -> WriteContext:
    """Rank 0 behind edge 1 writes to rank 1 behind edge 2, and to ranks 2 and 3 behind edge 3, a switch's."""
    edges = edge(1), edge(2, 0b10, Window(0x1000, 7)), edge(3, 0b1100)
    return WriteContext(0, 0, edges, source=1, rkey=5, window_bytes=4096)


@pytest.mark.parametrize("replicate", Replicate)
@pytest.mark.parametrize("place", Place)
@pytest.mark.parametrize("receivers", [32, 256])
def test_every_program_builds(tmp_path: Path, replicate: Replicate, place: Place, receivers: int) -> None:
    spec = MultiwriteSpec.model_validate(
        {"payload": 64, "edges": 3, "receivers": receivers, "replicate": replicate, "place": place}
    )
    assert build(spec, tmp_path, use_p4c=False).manifest["spec"]["replicate"] == replicate


@pytest.mark.parametrize("icrc", ["set", "ignore"])
def test_programs_without_a_check_of_the_icrc(tmp_path: Path, icrc: str) -> None:
    spec = load_spec(flags={"mode": "multiwrite", "payload": 64, "edges": 2, "icrc": icrc})
    build(spec, tmp_path, use_p4c=False)
    text = render(compose(spec)).text
    assert "CheckIcrc" not in text
    assert ("SetIcrc" in text) == (icrc == "set")


def test_programs_that_patch_icrcs_compute_nothing_over_data(tmp_path: Path) -> None:
    spec = load_spec(flags={"mode": "multiwrite", "payload": 64, "edges": 2, "icrc": "patch"})
    build(spec, tmp_path, use_p4c=False)
    text = render(compose(spec)).text
    assert spec.program.endswith("_patchicrc")
    assert "PatchIcrc" in text
    assert "hdr.payload }" not in text


def test_corrupt_headers_are_not_for_programs_that_patch_icrcs() -> None:
    spec, faults = SMALL.model_copy(update={"icrc": Icrc.PATCH}), Faults((Impairment(corrupt=0.01),))
    with pytest.raises(InputError, match="does not check the ICRC of writes"):
        WriteSimulation(WriteConfig(load_topology(packaged("star-3")), spec, (Layer(4),), faults))


def test_other_families_do_not_patch_icrcs() -> None:
    with pytest.raises(InputError, match="icrc = 'patch': must be recompute, set or ignore"):
        load_spec(flags={"mode": "II", "icrc": "patch"})


def test_the_state_of_a_leaf_for_64_sources(tmp_path: Path) -> None:
    spec = MultiwriteSpec(receivers=64, edges=16, contexts=64, slots=16)
    bits = build(spec, tmp_path, use_p4c=False).manifest["state_bits"]
    assert bits == 64 * (32 + 33) + 16 * 64 * (32 + 64) + 16 * 64 * 16 * (24 + 24)
    assert bits / 8 / 1024 <= 110


def test_the_state_of_a_leaf_that_keeps_packets(tmp_path: Path) -> None:
    spec = MultiwriteSpec(receivers=64, edges=16, contexts=64, slots=16, repair=Repair.HOP)
    bits = build(spec, tmp_path, use_p4c=False).manifest["state_bits"]
    held = 64 * 16 * (8 * 1024 + 8 + 24 + 1 + 2 + 8 + 32 + 64 + 64)
    assert bits == 64 * (32 + 33) + 16 * 64 * (32 + 57 + 102) + 16 * 64 * 16 * 24 + held
    assert bits / 8 / 1024**2 <= 1.1


def test_the_header_of_wide_bitmaps() -> None:
    assert [mweth(receivers).size for receivers in (64, 1024)] == [16, 136]


def test_replication_is_by_sets_for_few_edges() -> None:
    assert [MultiwriteSpec(edges=edges).replication for edges in (10, 11)] == [Replicate.SUBSET, Replicate.PRUNE]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"repair": "host"}, "repair: error: repair = 'host': must be source or hop"),
        ({"icrc": "none"}, "icrc: error: icrc = 'none': must be recompute, set, ignore or patch"),
        (
            {"icrc": "patch", "repair": "hop"},
            "icrc: error: icrc = 'patch': packets that a switch keeps are sent again with an ICRC of their own",
        ),
        ({"lanes": 8}, "lanes: error: 'lanes' is a field of atp, epic, scin and switchml"),
        ({"receivers": 48}, "receivers: error: receivers = 48: must be 32, 64, 128, 256, 512 or 1024"),
        ({"slots": 12}, "slots: error: slots = 12: must be 2, 4, 8"),
        ({"payload": 100}, "payload: error: payload = 100: must be a multiple of 64"),
        ({"pipelines": 2}, "pipelines: error: pipelines = 2: a write's copies share the state of one pipeline"),
        ({"edges": 16, "ports": 8}, "edges: error: edges = 16: each has a port, and the switch has 8"),
        (
            {"replicate": "subset", "edges": 11},
            "replicate: error: replicate = 'subset': subset takes 2047 multicast groups for 11 edges: prune",
        ),
        ({"beside": "themis"}, "beside: error: beside = 'themis': MultiWrite's programs have no second family"),
        ({"arch": "t2na"}, "arch: error: arch = 't2na': MultiWrite's programs are for v1model"),
    ],
)
def test_what_does_not_fit_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        load_spec(flags={"mode": "multiwrite"} | fields)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(("replicate", "groups"), [(Replicate.SUBSET, 7), (Replicate.PRUNE, 1)])
def test_a_switch_takes_the_entries_of_a_context(replicate: Replicate, groups: int) -> None:
    spec = SMALL.model_copy(update={"replicate": replicate})
    found = configuration(spec, [star()], PORTS)
    assert len(found.multicast_groups) == groups
    found.install(Model(compile_spec(spec).program))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"context": 2}, "context 2: the program has 2, numbered from 0"),
        ({"epoch": 0}, "context 0: epoch 0 is not in 1 to 255"),
        ({"window_bytes": 63}, "context 0: a window of 63 bytes has no room for a packet's 64"),
        ({"source": 4}, "context 0: there is no edge 4, which is to lead to the source"),
        ({"edges": (edge(1), edge(1, 2))}, "context 0: two of its edges have the same number"),
        ({"edges": (edge(1, 2), edge(2, 4))}, "context 0: edge 1 leads to the source, and to destinations"),
        ({"edges": (edge(1), edge(4, 2))}, "context 0: edge 4: the program has 3, numbered from 1"),
        ({"edges": (edge(1), edge(2, 6), edge(3, 4))}, "context 0: edge 3: ranks 0x4 are behind another edge"),
        ({"edges": (edge(1), edge(2, 3))}, "context 0: edge 2: ranks 0x1 are behind another edge, or the source"),
        ({"edges": (edge(1), edge(2, 1 << 32))}, "context 0: edge 2: there are ranks 0 to 31 only"),
        (
            {"edges": (edge(1), edge(2, 6, Window(0, 1)))},
            "context 0: edge 2: it leads to a destination, which is one rank, not 0x6",
        ),
        (
            {"edges": (edge(1), edge(2, 2, Window((1 << 64) - 64, 1)))},
            "context 0: edge 2: the window goes beyond the last address",
        ),
    ],
)
def test_a_context_that_a_program_cannot_serve_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        configuration(SMALL, [replace(star(), **change)], PORTS)
    assert message in str(refused.value)


def test_rings_must_have_room_for_packets() -> None:
    spec = SMALL.model_copy(update={"place": Place.APPEND})
    for window, message in (
        (Window(0, 1, slot_shift=5, ring=4), "a slot of 32 bytes has no room for a packet's 64"),
        (Window(0, 1, slot_shift=6, ring=3), "a ring of 3 slots is no power of two"),
    ):
        with pytest.raises(InputError, match=message):
            configuration(spec, [replace(star(), edges=(edge(1), edge(2, 2, window)))], PORTS)


def test_two_contexts_share_no_connection() -> None:
    with pytest.raises(InputError, match="QP 0x101 of 0x0a000001 has another connection"):
        configuration(SMALL, [star(), replace(star(), context=1)], PORTS)
