from __future__ import annotations

from pathlib import Path

import pytest

from p4gen.errors import InputError
from p4gen.vocabulary import units
from p4gen.vocabulary.topology import load_topology, packaged_folder

GOOD = """\
name: two
switches: [s0]
hosts: [h0, h1]
links:
  - [h0, s0]
  - {ends: [h1, s0], bandwidth: 25G, delay: 500ns}
"""


def load(tmp_path: Path, text: str) -> str:
    """The complaints about a file, without its folder."""
    file = tmp_path / "t.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        load_topology(file)
    return str(error.value).replace(f"{tmp_path}/", "")


def test_settings_are_the_links_own_or_the_default(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(GOOD)
    topology = load_topology(tmp_path / "t.yaml")
    first, second = topology.links
    assert [topology.setting(link, "bandwidth") for link in (first, second)] == [100_000_000_000, 25_000_000_000]
    assert topology.setting(second, "delay") == 500_000
    assert topology.rank_hosts == ("h0", "h1")
    assert topology.next_ports("s0", "h1") == (1,)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("[h0, s0]", "[h0, s9]", "t.yaml:5:10: error: there is no node 's9'"),
        ("[h0, s0]", "[h0, h1]", "t.yaml:5:5: error: a host connects to a switch"),
        ("[h0, s0]", "[s0, s0]", "t.yaml:5:5: error: 's0' cannot be connected to itself"),
        ("[h0, s0]", "[s0, h1]", "t.yaml:6:5: error: h1-s0 is given twice"),
        ("[h0, h1]", "[h0, h1, h2]", "t.yaml:3:17: error: a host has one link; h2 has 0"),
        ("[h0, h1]", "[h0, h0]", "t.yaml:3:13: error: 'h0' is given twice"),
        ("25G", "fast", "t.yaml:6:33: error: 'fast' is not a bandwidth such as 100G (bit/s)"),
        ("500ns", "5", "t.yaml:6:45: error: 5 is not a duration such as 1us"),
        ("name: two\n", "", "t.yaml:1:1: error: 'name' is missing"),
        ("name: two", "name: two\nlinkz: 1", "t.yaml:2:8: error: unknown field 'linkz'"),
        ("name: two", "name: two\nranks: [h7]", "t.yaml:2:9: error: there is no host 'h7'"),
        ("name: two", "name: two\nranks: [h1, h1]", "t.yaml:2:8: error: a host can be only one rank"),
        ("name: two", "name: two\nroot: h0", "t.yaml:2:7: error: there is no switch 'h0'"),
        ("[s0]", "[s0, s1]", "error: nothing connects s1 to s0"),
        ("name: two", "name: two\nname: three", "t.yaml:2:1: error: 'name' is given twice"),
        ("name: two", "name: [", "not valid YAML"),
        ("[h0, s0]", "h0-s0", "t.yaml:5:5: error: a link is [a, b], or a mapping with ends: [a, b]"),
        ("[h0, s0]", "[h0]", "t.yaml:5:5: error: a link has two ends, as in [a, b]"),
        ("[h0, h1]", "[h0, H1]", "t.yaml:3:13: error: 'H1' is not a name: it starts with a lower-case letter"),
        ("[h0, h1]", "[h0, 7]", "t.yaml:3:13: error: '7' is not a name"),
        ("name: two", "name: a/b", "t.yaml:1:7: error: 'a/b' is not a name"),
        ("[s0]", "s0", "t.yaml:2:11: error: must be a list, as in [s0, s1]"),
    ],
)
def test_what_is_wrong_is_said_where_it_stands(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    assert complaint in load(tmp_path, GOOD.replace(old, new, 1))


def test_files_that_are_no_topology(tmp_path: Path) -> None:
    assert "is empty" in load(tmp_path, "")
    assert "a topology is a mapping" in load(tmp_path, "[1]")
    with pytest.raises(InputError, match="cannot read"):
        load_topology(tmp_path / "none.yaml")
    with pytest.raises(InputError, match="there are fat-tree-k4, leaf-spine, mesh-8, star-2, star-3, star-4"):
        load_topology("star-9")


def test_equal_paths_are_all_found() -> None:
    topology = load_topology("fat-tree-k4")
    assert len(topology.next_ports("edge0", "h15")) == 2
    assert len(topology.next_ports("agg0", "h15")) == 2
    assert len(topology.next_ports("core0", "h15")) == 1


def test_those_that_come_with_p4gen() -> None:
    names = {file.stem: load_topology(file) for file in packaged_folder().glob("*.yaml")}
    assert {name: len(t.rank_hosts) for name, t in names.items()} == {
        "star-2": 2, "star-3": 3, "star-4": 4, "star-8": 8, "tree-3-2": 4, "tree-3-4": 16, "tree-5-2": 16,
        "leaf-spine": 8, "fat-tree-k4": 16, "mesh-8": 8, "two-servers": 16,
    }  # fmt: skip
    assert all(t.name == name for name, t in names.items())


def test_units() -> None:
    assert (units.size("4M"), units.size("256KiB"), units.size(12)) == (4 << 20, 256 << 10, 12)
    assert (units.duration("1.5us"), units.duration("0")) == (1_500_000, 0)
    assert (units.share("5%"), units.share(0.25)) == (0.05, 0.25)
    assert units.bandwidth("400Gb/s") == 400_000_000_000
    for wrong in ("-1", "5 apples", ""):
        for unit in (units.size, units.duration, units.share, units.bandwidth):
            with pytest.raises(ValueError, match="not a"):
                unit(wrong)
    with pytest.raises(ValueError, match="more than 0"):
        units.bandwidth("0")
