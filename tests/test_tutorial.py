"""Every command of the tutorial is one that p4gen, or a lab's prompt, takes."""

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from p4gen.cli.app import cli
from p4gen.labs.network import faults
from p4gen.labs.prompt.commands import COMMANDS
from p4gen.labs.prompt.tracing import KINDS
from p4gen.vocabulary import units
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import TopologySpec, load_topology

TEXT = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text()
SHELL = re.findall(r"^\$ (?:sudo )?\./scripts/p4gen (.*)$", TEXT, re.MULTILINE)
INLINE = re.findall(r"`p4gen ([^`]+)`", TEXT)


def prompted() -> Iterator[tuple[str, str]]:
    """What is typed at prompts, with the topology of the lab."""
    topology = ""
    for line in TEXT.splitlines():
        if found := re.match(r"\$ .*p4gen lab (\S+)", line):
            topology = found[1]
        elif line.startswith("lab> "):
            yield topology, line.removeprefix("lab> ")


@pytest.mark.parametrize("arguments", [*SHELL, *INLINE])
def test_command_lines_are_accepted(arguments: str) -> None:
    name, command, rest = cli.resolve_command(click.Context(cli), shlex.split(arguments))
    assert name is not None
    assert command is not None, name
    command.make_context(name, list(rest))  # raises what the user would see


@pytest.mark.parametrize(("topology", "line"), sorted(set(prompted())))
def test_what_is_typed_at_prompts_is_a_command(topology: str, line: str) -> None:
    network = load_topology(topology)
    first, *words = line.split()
    if first in network.hosts:
        assert words[0] == "ping"
        assert words[1] in network.hosts
        return
    if first == "help":
        assert words[0] in COMMANDS
        return
    command = COMMANDS[first]
    assert command.least <= len(words) <= command.most, command.usage
    assert FITS[first](network, words) if first in FITS else not words, command.usage


def link_fits(network: TopologySpec, words: list[str]) -> bool:
    what, a, b, *times = words
    assert [units.duration(time) > 0 for time in times[1::2]] == [True] * len(times[::2])
    return (
        what == "link" and any(set(link.ends) == {a, b} for link in network.links) and {*times[::2]} <= {"after", "for"}
    )


def run_fits(_network: TopologySpec, words: list[str]) -> bool:
    collective, size, *rest = words
    return bool(Collective(collective) and units.size(size)) and (
        not rest or (rest[0] == "repeat" and int(rest[1]) > 1)
    )


FITS: dict[str, Callable[[TopologySpec, list[str]], bool]] = {
    "counters": lambda network, words: words[0] in network.ports,
    "pcap": lambda network, words: words[0] in network.ports,
    "trace": lambda network, words: words[0] in network.switches and int(words[1]) > 0 and words[-1] in KINDS,
    "loss": lambda network, words: words[0] in network.hosts and faults.parse("loss", words[1]) > 0,
    "run": run_fits,
    "fail": link_fits,
    "restore": link_fits,
}


def test_there_is_something_to_look_at() -> None:
    assert len(SHELL) >= 6
    assert len(INLINE) >= 3
    assert len(set(prompted())) >= 20
    assert {topology for topology, _ in prompted()} == {"tree-3-2", "leaf-spine"}
