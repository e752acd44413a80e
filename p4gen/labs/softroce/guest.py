"""A virtual machine: QEMU's command line, and whether it starts at all on this machine."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from p4gen import packages, stored
from p4gen.errors import MissingToolError
from p4gen.labs.softroce.images import Images, folder
from p4gen.labs.softroce.ports import ADDRESS, COMMANDS_PORT, GATEWAY, MAC

KVM, TCG = "kvm", "tcg"
MEMORY: Final = 320
"""MiB of a guest."""
PROGRAM_MEMORY: Final = 2048
"""MiB of a guest that runs a program of the user's, such as one with PyTorch."""
ROOM: Final = 64 << 20
"""Bytes of that which a call may take."""
TAP: Final = "tap0"
_PROBE_S: Final = {KVM: 15.0, TCG: 120.0}
"""Seconds in which a kernel must have started: there are machines with /dev/kvm on which it never does."""
_STARTED: Final = "p4gen: there is no root"
"""The last word of a guest without disks."""
_PANIC: Final = "Kernel panic"
_OFFLOADS: Final = "csum guest_csum gso guest_tso4 guest_tso6 guest_ecn guest_ufo host_tso4 host_tso6 host_ecn host_ufo"
"""What a guest's card would leave to others, such as checksums: switches do nothing of it."""


@dataclass(frozen=True)
class Machine:
    """Of what a host's virtual machine is made."""

    images: Images
    layer: Path
    """The image with p4gen (``p4gen.labs.softroce.layer``)."""
    accelerator: str
    """``kvm``, or ``tcg`` where a guest's instructions are translated."""


def check() -> None:
    """Raises ``MissingToolError`` unless what labs with guests call is installed."""
    lacking = packages.lacking(packages.SOFTROCE)
    if lacking:
        raise MissingToolError(f"Soft-RoCE hosts need {', '.join(lacking)}: {packages.install(*lacking)}")


def command(machine: Machine, name: str, requests: int, console: Path, folders: Sequence[str] = ()) -> list[str]:
    """The command that runs the guest ``name`` in the namespace of its host, with the card for data on ``TAP``.

    ``requests`` is the descriptor of a stream socket to the guest's program; ``console`` gets the kernel's messages.
    The guest may mount this machine's ``folders``, each by its place in the sequence (9p); it may write.
    """
    disks = [(file, f"disk{number}") for number, file in enumerate((machine.images.root, machine.layer))]
    offloads = ",".join(f"{name}=off" for name in _OFFLOADS.split())
    forward = f"hostfwd=tcp:127.0.0.1:{COMMANDS_PORT}-{ADDRESS}:{COMMANDS_PORT}"
    words = f"p4gen.name={name} p4gen.address={ADDRESS}/24 p4gen.mac={MAC}"
    return [
        *_machine(machine.images, machine.accelerator, words, PROGRAM_MEMORY if folders else MEMORY),
        *("-serial", f"file:{console}"),
        *(word for file, disk in disks for word in _disk(file, disk)),
        *(word for number, folder in enumerate(folders) for word in _folder(folder, number)),
        *("-chardev", f"socket,id=requests,fd={requests}", "-device", "virtio-serial-device"),
        *("-device", "virtserialport,chardev=requests,name=p4gen"),
        *("-netdev", f"user,id=management,ipv6=off,host={GATEWAY},{forward}"),
        *("-device", f"virtio-net-device,netdev=management,mac={MAC}"),
        *("-netdev", f"tap,id=data,ifname={TAP},script=no,downscript=no"),
        *("-device", f"virtio-net-device,netdev=data,{offloads}"),
    ]


def accelerator(images: Images) -> str:
    """``kvm`` if a guest starts with it, which is tried once after each start of this machine; otherwise ``tcg``."""
    if not Path("/dev/kvm").exists():
        return TCG
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    place = folder() / f"kvm-{stored.key([boot, str(images.kernel)])[:12]}"
    found = stored.read(place)
    if found is None:
        found = str(starts(images, KVM)).encode()
        stored.write(place, found)
    return KVM if found == b"True" else TCG


def starts(images: Images, accelerator: str) -> bool:
    """Whether a guest starts here."""
    with tempfile.TemporaryFile() as output:
        try:
            subprocess.run(
                [*_machine(images, accelerator, ""), "-serial", "stdio"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.DEVNULL,
                timeout=_PROBE_S[accelerator],
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        output.seek(0)
        return _STARTED.encode() in output.read()


def last_words(console: Path, lines: int = 12) -> Sequence[str]:
    """The end of a guest's console, and before it the kernel's panic, if there is one."""
    try:
        found = console.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    return [*(line for line in found[:-lines] if _PANIC in line), *found[-lines:]]


def _machine(images: Images, accelerator: str, words: str, memory: int = MEMORY) -> list[str]:
    """A machine with its kernel, which gets ``words``, and no devices."""
    tcg = accelerator == TCG
    line = f"console=ttyS0 quiet loglevel=5 panic=1 mitigations=off {_clock() if tcg else ''} {words}"
    return [
        *(packages.QEMU, "-accel", "tcg,tb-size=64" if tcg else KVM, "-cpu", "Nehalem,-spec-ctrl" if tcg else "host"),
        *("-machine", "microvm,acpi=on", "-smp", "1", "-m", str(memory)),
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
        *("-kernel", str(images.kernel), "-initrd", str(images.initramfs), "-append", line),
    ]


def _clock() -> str:
    """What a translated kernel is told of its clock, which is this machine's: a kernel that measures the rate fails if
    the machine is busy."""
    found = re.search(r"^bogomips\s*:\s*([\d.]+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    rate = f" tsc_early_khz={round(float(found[1]) * 500)}" if found else ""
    return f"tsc=reliable no_timer_check{rate}"


def _disk(file: Path, name: str) -> list[str]:
    drive = f"id={name},file={file},format=raw,if=none,readonly=on"
    return ["-drive", drive, "-device", f"virtio-blk-device,drive={name}"]


def _folder(path: str, number: int) -> list[str]:
    # QEMU reads a comma in a value as two.
    shared = f"local,id=folder{number},path={path.replace(',', ',,')},security_model=none"
    return ["-fsdev", shared, "-device", f"virtio-9p-device,fsdev=folder{number},mount_tag={number}"]
