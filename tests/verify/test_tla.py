"""The model for TLC: it has as many states as a search without reduction, and the same verdict."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from p4gen.cli.app import cli
from p4gen.errors import InputError

Row = tuple[int, ...]

TOOLS = os.environ.get("TLA2TOOLS", "")
needs_tlc = pytest.mark.skipif(
    not (shutil.which("java") and Path(TOOLS).is_file()), reason="java, or the jar that TLA2TOOLS names, is not here"
)


def exported(folder: Path, *arguments: str) -> int:
    """Write the model of a scope; the number of states that the search says it has."""
    command = ["verify", "star-2", *arguments, "--export", "tla", "--out", str(folder)]
    result = CliRunner().invoke(cli, command, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    said = re.search(r"([\d,]+) states, [\d,]+ transitions without reduction", result.output)
    assert said is not None, result.output
    return int(said[1].replace(",", ""))


def checked(folder: Path) -> str:
    """What TLC says of a model."""
    command = ["java", "-cp", TOOLS, "tlc2.TLC", "-workers", "2", "-lncheck", "final", "-config", "Network.cfg"]
    return subprocess.run([*command, "Network.tla"], cwd=folder, capture_output=True, text=True, check=False).stdout


@needs_tlc
@pytest.mark.parametrize(
    "arguments",
    [
        ["--mode", "II", "--packets", "2", "--timeouts", "1", "--loss", "1"],
        ["--mode", "III", "--packets", "2"],
        ["--mode", "III", "--packets", "2", "--duplicate", "1", "--reorder", "1"],
        ["--mode", "III", "--packets", "2", "--corrupt", "1", "--loss", "0"],
        ["--mode", "III", "--packets", "2", "--forge", "1"],
    ],
    ids=" ".join,
)
def test_tlc_finds_the_states_of_a_search(arguments: list[str], tmp_path: Path) -> None:
    states = exported(tmp_path, *arguments)
    said = checked(tmp_path)
    assert "No error has been found" in said, said
    assert f"{states} distinct states found, 0 states left" in said, said


@needs_tlc
@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--mode", "III", "--variant", "nak-storm"], "Invariant Rules is violated"),
        (["--mode", "III", "--variant", "psn-recycling", "--flow", "acks", "--window", "1", "--packets", "4",
          "--loss", "0"], "Invariant Accuracy is violated"),
        (["--mode", "II", "--window", "1", "--packets", "2", "--fault", "duplicate-unanswered"],
         "Temporal property Liveness was violated"),
        (["--mode", "II", "--locks", "1", "--packets", "2", "--loss", "0", "--fault", "releases-free-nothing"],
         "Invariant Unlocked is violated"),
    ],
    ids=["rules", "accuracy", "liveness", "locks"],
)  # fmt: skip
def test_tlc_finds_a_wrong_design(arguments: list[str], found: str, tmp_path: Path) -> None:
    exported(tmp_path, *arguments)
    assert found in checked(tmp_path)


@pytest.mark.parametrize("mode", ["II", "III"])
def test_the_tables_have_the_states_of_a_search(mode: str, tmp_path: Path) -> None:
    """Without TLC: the tables of Parts, read back, with the loss, delivery and timeout of Network."""
    states = exported(tmp_path, "--mode", mode, "--packets", "2")
    parts = {name: Reader(text).value() for name, text in _definitions((tmp_path / "Parts.tla").read_text())}
    assert len(_reached(parts)) == states
    registers = parts["Registers"][0]
    assert [row["check_duplicate_slots"][5]["psn"] for row in registers][:2] == [0, 5]


def test_a_model_needs_a_folder() -> None:
    with pytest.raises(InputError, match="--export: error: needs the folder to write to, --out"):
        CliRunner().invoke(
            cli, ["verify", "star-2", "--mode", "II", "--export", "tla"], catch_exceptions=False, standalone_mode=False
        )


def _definitions(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split("\n\n")[1:-1]:
        name, _, value = part[part.index("*)\n") + 3 :].partition(" == ")
        yield name, value


class Reader:
    """Reads the notation of values: tuples, records, functions of numbers, sets, numbers, strings, truth values."""

    def __init__(self, text: str) -> None:
        self._tokens = re.findall(r'"[^"]*"|<<|>>|\|->|:>|@@|\w+|[\[\](){},]', text)
        self._at = 0

    def _next(self) -> str:
        self._at += 1
        return str(self._tokens[self._at - 1])

    def value(self) -> Any:
        """The next value."""
        token = self._next()
        ends = {"<<": ">>", "[": "]", "(": ")", "{": "}"}
        if token not in ends:
            return int(token) if token.isdigit() else {"TRUE": True, "FALSE": False}.get(token, token.strip('"'))
        found: list[Any] = []
        while self._tokens[self._at] != ends[token]:
            if self._tokens[self._at] in (",", "@@"):
                self._at += 1
            key = self._next() if token in "[(" else ""
            if key:
                self._at += 1
            each = self.value()
            found.append((int(key) if key.isdigit() else key, each) if key else each)
        self._at += 1
        return dict(found) if token in "[(" else tuple(found)


def _reached(parts: dict[str, Any]) -> set[Any]:
    """The states that Network reaches by deliveries, losses and timers that expire when nothing is on its way."""
    first = parts["FirstSwitch"], parts["FirstRank"], parts["FirstLink"], parts["Budget"]["losses"]
    seen, new = {first}, [first]
    while new:
        fresh = [each for each in dict.fromkeys(_next_of(parts, *new.pop())) if each not in seen]
        seen.update(fresh)
        new += fresh
    return seen


def _next_of(parts: dict[str, Any], switch: Row, rank: Row, link: tuple[Row, ...], losses: int) -> Iterator[Any]:
    states = {"switch": switch, "rank": rank}

    def after(part: str, number: int, effect: int, links: tuple[Row, ...]) -> Any:
        does = parts["Effect"][effect - 1]
        moved = states | {part: (*states[part][: number - 1], does["goes"], *states[part][number:])}
        sends = does["sends"] or {}
        out = tuple(packets + sends.get(at, ()) for at, packets in enumerate(links, 1))
        return moved["switch"], moved["rank"], out, losses

    for at, packets in enumerate(link):
        if packets:
            rest = (*link[:at], packets[1:], *link[at + 1 :])
            part, number = parts["To"][at]["part"], parts["To"][at]["number"]
            yield after(part, number, parts["Arrive"][at][states[part][number - 1] - 1][packets[0]], rest)
            if losses:
                yield switch, rank, rest, losses - 1
    if not any(link):
        for number, state in enumerate(rank, 1):
            for effect in (parts["Expire"][number - 1][state - 1] or {}).values():
                yield after("rank", number, effect, link)
        for tick, at in enumerate(parts["TickAt"]):
            if effect := parts["Tick"][tick][switch[at - 1] - 1]:
                yield after("switch", at, effect, link)
