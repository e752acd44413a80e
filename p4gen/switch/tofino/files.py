"""The files that tofino-model and bf_switchd read: the ports, and the places of p4c's output."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p4gen.arch import architecture
from p4gen.errors import FailedError, InputError

PORTS_FILE = "ports.json"
BFRT_FILE = "bfrt.json"
_PIPES = 4
_PIPE_SHIFT = 7
"""A device port's pipe is in the bits of its number from this one on."""


@dataclass(frozen=True)
class Chip:
    """A Tofino, by its names in the model and in p4c."""

    name: str
    """p4c's ``--target``; also the chip family, and the stem of the binary that p4c writes."""
    number: int
    """The model's ``--chip-type``."""
    arch: str
    """The architecture of its programs."""
    first: int
    """The first device port of a pipe that is a front port; lower ones are the CPU's and the packet generator's."""


TOFINO = Chip("tofino", 2, "tna", 0)
TOFINO2 = Chip("tofino2", 5, "t2na", 8)
CHIPS = {chip.name: chip for chip in (TOFINO, TOFINO2)}


@dataclass(frozen=True)
class Compiled:
    """The output of p4c's Tofino back end for a program: a folder with ``bfrt.json`` and one folder for each pipe."""

    name: str
    folder: Path
    chip: Chip
    pipes: tuple[str, ...]

    @classmethod
    def of(cls, folder: Path, name: str) -> Compiled:
        """The contents of p4c's output folder. Raises ``InputError`` unless it has all files that the model needs."""
        if not (folder / BFRT_FILE).is_file():
            raise InputError(f"{folder} has no {BFRT_FILE}: compile with p4c --bf-rt-schema {folder / BFRT_FILE}")
        for chip in CHIPS.values():
            found = sorted(path.parent.name for path in folder.glob(f"*/{chip.name}.bin"))
            if found:
                break
        else:
            wanted = " or ".join(f"{chip}.bin" for chip in CHIPS)
            raise InputError(f"{folder} has no pipe with {wanted}: p4c did not get to its assembler")
        for pipe in found:
            if not (folder / pipe / "context.json").is_file():
                raise InputError(f"{folder / pipe} has no context.json: p4c did not get to its assembler")
        if _PIPES % len(found):
            raise InputError(f"{folder} has {len(found)} pipes, which do not divide the {_PIPES} of a chip")
        return cls(name, folder, chip, tuple(found))

    def bfrt(self) -> dict[str, Any]:
        """The description of the program's tables."""
        return read_json(self.folder / BFRT_FILE)


def read_json(path: Path) -> dict[str, Any]:
    """An object in a file. Raises ``InputError`` when it is not one."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {error}") from None
    if not isinstance(found, dict):
        raise InputError(f"{path} is not a JSON object")
    return found


def conf(program: Compiled) -> dict[str, Any]:
    """The content of ``PROG.conf``, as p4c-gen-conf writes it, but with absolute paths, which both programs accept."""
    folder, chip, pipes = program.folder.resolve(), program.chip.name, program.pipes
    share = _PIPES // len(pipes)
    pipelines = [
        {
            "p4_pipeline_name": pipe,
            "context": str(folder / pipe / "context.json"),
            "config": str(folder / pipe / f"{chip}.bin"),
            # The external pipes of a folded Tofino are 0 and 2, those of a Tofino 2 are 0 and 1.
            "pipe_scope": [share * index + n if chip == TOFINO2.name else n * len(pipes) + index for n in range(share)],
            "path": str(folder),
        }
        for index, pipe in enumerate(pipes)
    ]
    return {
        "chip_list": [
            {
                "chip_family": chip,
                "instance": 0,
                "pcie_sysfs_prefix": "/sys/devices/pci0000:00/0000:00:03.0/0000:05:00.0",
                "sds_fw_path": "share/tofino_sds_fw/avago/firmware",
            }
        ],
        "p4_devices": [
            {
                "device-id": 0,
                "p4_programs": [
                    {
                        "program-name": program.name,
                        "bfrt-config": str(folder / BFRT_FILE),
                        "p4_pipelines": pipelines,
                        "model_json_path": str(folder / "share" / program.name / "aug_model.json"),
                    }
                ],
                "agent0": "lib/libpltfm_mgr.so",
            }
        ],
    }


def interfaces(port: int) -> tuple[str, str]:
    """The veth pair of a port, by its number in tests: the model's end, the other end.

    The model's names for interfaces are fixed: ``vethN``.
    """
    return f"veth{2 * port}", f"veth{2 * port + 1}"


def device_ports(chip: Chip, ports: Iterable[int]) -> dict[int, int]:
    """The device port of each port that tests use: the architecture's ports for hosts are the front ports of each pipe,
    in order. Other ports are left out."""
    arch = architecture(chip.arch)
    taken = Counter[int]()
    devices: dict[int, int] = {}
    for port in arch.front_ports(arch.ports):
        pipe = arch.pipe_of(port)
        devices[port] = pipe << _PIPE_SHIFT | chip.first + taken[pipe]
        taken[pipe] += 1
    return {port: devices[port] for port in ports if port in devices}


def ports(mapped: dict[int, int]) -> dict[str, Any]:
    """The content of ``ports.json`` for a mapping from ports to device ports."""
    return {
        "PortToVeth": [
            {"device_port": device, "veth1": 2 * port, "veth2": 2 * port + 1} for port, device in sorted(mapped.items())
        ]
    }


def write(program: Compiled, mapped: dict[int, int], directory: Path) -> tuple[Path, Path]:
    """Write both files into a folder. Returns the paths of ``PROG.conf`` and ``ports.json``."""
    made = directory / f"{program.name}.conf", directory / PORTS_FILE
    try:
        for path, content in zip(made, (conf(program), ports(mapped)), strict=True):
            path.write_text(json.dumps(content, indent=4) + "\n", encoding="utf-8")
    except OSError as error:
        raise FailedError(f"cannot write {error.filename}: {error.strerror}") from None
    return made
