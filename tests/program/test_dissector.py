"""The dissector for Wireshark names each packet of a run as what the program takes it for."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import p4gen
from p4gen.builder import build
from p4gen.cli.app import cli
from p4gen.program import compose

TSHARK = shutil.which("tshark")
NEEDS_TSHARK = pytest.mark.skipif(TSHARK is None, reason="tshark is not installed")


def shown(fields: Mapping[str, Any], folder: Path) -> tuple[set[str], str]:
    """The names that tshark gives the packets of a run, and all that it prints of them."""
    capture, spec = folder / "run.pcapng", p4gen.generate(**fields).spec
    built = build(spec, folder / "build", use_p4c=False)
    flags = [word for name, value in fields.items() for word in (f"--{name}", str(value))]
    run = ["sim", "run", "star-4", *flags, "--size", "4K", "--seed", "1", "--capture", str(capture)]
    assert CliRunner().invoke(cli, run, standalone_mode=False).return_value == 0
    command = [str(TSHARK), "-X", f"lua_script:{built.folder / f'{spec.program}.lua'}", "-r", str(capture)]
    names, whole = (
        subprocess.run([*command, *more], capture_output=True, text=True, check=True)
        for more in (("-T", "fields", "-e", "p4gen.datagram"), ("-O", "p4gen"))
    )
    assert "lua" not in names.stderr.lower().replace(".lua", ""), names.stderr
    return set(names.stdout.split("\n")[:-1]), whole.stdout


@NEEDS_TSHARK
@pytest.mark.parametrize(
    ("fields", "names", "parts"),
    [
        (
            {"mode": "III", "lanes": 64},
            {"DATA", "CONTROL", "ACK"},
            ("p4gen: a control message: which collective comes", "Immediate data", "value: ", "syndrome: "),
        ),
        (
            {"mode": "scin", "lanes": 64, "completion": "ordered"},
            {"ARRIVAL", "ACK", "READ", "RESPONSE", "MIDDLE", "WRITE", "LAST"},
            ("p4gen: a rank arrives at a call", "source_key: ", "dma_length: "),
        ),
    ],
)
def test_every_packet_of_a_run_has_a_name(
    fields: Mapping[str, Any], names: set[str], parts: tuple[str, ...], tmp_path: Path
) -> None:
    found, whole = shown(fields, tmp_path)
    assert found == names
    for part in parts:
        assert part in whole


def test_a_family_without_datagrams_has_no_dissector(tmp_path: Path) -> None:
    spec = p4gen.generate(mode="themis").spec
    assert not list(build(spec, tmp_path, use_p4c=False).folder.glob("*.lua"))
    assert compose(spec).parts.datagrams(spec) == ()
