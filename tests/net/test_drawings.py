"""Captures, ladders, charts and topologies: what they show is what happened."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from io import BytesIO

import pytest
from scapy.utils import RawPcapNgReader

from p4gen.experiments.plot import Series, chart_svg
from p4gen.net.collectives.simulation import SimConfig, Simulation
from p4gen.net.drawing import topology_svg
from p4gen.net.views.capture import Capture
from p4gen.net.views.ladder import Ladder
from p4gen.net.world.faults import Faults, Script
from p4gen.net.world.watching import Passage
from p4gen.papers.epic.spec import EpicSpec
from p4gen.vocabulary.topology import load_topology, packaged_folder

CONFIG = SimConfig(
    load_topology("star-4"),
    EpicSpec(lanes=8, window=4, message=2, groups=1, ports=16),
    size=64,
    faults=Faults(scripts=(Script.parse("drop the 1st UP_DATA of rank 2"),)),
)


def watched(limit: int = 400) -> tuple[bytes, Ladder, list[Passage]]:
    simulation = Simulation(CONFIG)
    network = simulation.network
    file, seen = BytesIO(), []
    capture = Capture(file, network.directions)
    ladder = Ladder(["h0", "h1", "h2", "h3", "s0"], network.kinds, limit)

    def watch(passage: Passage) -> None:
        seen.append(passage)
        capture(passage)
        ladder(passage)

    network.watch(watch)
    assert simulation.run().ok
    return file.getvalue(), ladder, seen


def test_a_capture_is_pcapng_that_others_read() -> None:
    data, _, seen = watched()
    packets = list(RawPcapNgReader(BytesIO(data)))
    assert [packet for packet, _ in packets] == [passage.frame for passage in seen]
    for (_, meta), passage in zip(packets, seen, strict=True):
        assert meta.ifname.decode() == f"{passage.src}>{passage.dst}"
        assert (meta.tshigh << 32) + meta.tslow == passage.sent // 1000
        assert meta.tsresol == 10**9
    assert b"dropped: script: drop the 1st UP_DATA of rank 2" in data


def test_a_ladder_has_an_arrow_for_each_packet_and_a_cross_for_the_lost_one() -> None:
    _, ladder, seen = watched()
    svg = ladder.svg()
    root = ET.fromstring(svg)
    arrows = [line for line in root.iter("{http://www.w3.org/2000/svg}line") if "marker-end" in line.attrib]
    assert len(arrows) == sum(passage.arrived is not None for passage in seen)
    assert svg.count("drop the 1st UP_DATA of rank 2") == 1
    assert "CONTROL" in svg


def test_a_long_ladder_says_what_it_leaves_out() -> None:
    _, ladder, seen = watched(limit=10)
    assert f"{len(seen) - 10} later packets are not shown" in ladder.svg()


@pytest.mark.parametrize("name", sorted(file.stem for file in packaged_folder().glob("*.yaml")))
def test_topologies_are_drawn_whole(name: str) -> None:
    topology = load_topology(name)
    root = ET.fromstring(topology_svg(topology))
    texts = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {*topology.switches, *topology.hosts} <= texts
    assert len(list(root.iter("{http://www.w3.org/2000/svg}line"))) == len(topology.links)


def test_charts_leave_gaps() -> None:
    ET.fromstring(chart_svg("t", "x", ["1", "2"], "y", [Series("a", [1.0, None]), Series("b", [None, None])]))


def test_a_dashed_line_has_the_colour_of_the_one_before_it() -> None:
    lines = [Series("a", [1.0, 2.0]), Series("a too", [1.0, 3.0], dashed=True), Series("b", [2.0, 1.0])]
    svg = chart_svg("t", "x", ["1", "2"], "y", lines)
    assert svg == chart_svg("t", "x", ["1", "2"], "y", lines)
    paths = [each.attrib.get("style", "") for each in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}path")]
    drawn = [style for style in paths if "stroke-width: 1.5" in style][:3]
    first, second, third = (re.findall("stroke: (#[0-9a-f]{6})", style) for style in drawn)
    assert first == second != third
    assert ["stroke-dasharray" in style for style in drawn] == [False, True, False]
