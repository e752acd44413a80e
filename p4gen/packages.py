"""Where the tools that p4gen calls come from: the one list for error messages and ``p4gen doctor``.

``scripts/packages.txt`` installs the same on a new machine, and docs/lab.md names it; a test compares the three.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

LAB = {
    "mnexec": "mininet",
    "ip": "iproute2",
    "unshare": "util-linux",
    "mount": "mount",
    "bash": "bash",
}
"""What a lab needs: commands, and Debian's and Ubuntu's packages of them."""

QEMU = "qemu-system-x86_64"
SOFTROCE_BUILD = {
    "debootstrap": "debootstrap",
    "mksquashfs": "squashfs-tools",
    "cpio": "cpio",
    "busybox": "busybox-static",
    "depmod": "kmod",
    "modprobe": "kmod",
    "zstd": "zstd",
}
"""With what the images of Soft-RoCE hosts are made."""
SOFTROCE = {QEMU: "qemu-system-x86", "mksquashfs": "squashfs-tools"}
"""What labs with Soft-RoCE hosts need beside ``LAB``."""
_PACKAGES = LAB | SOFTROCE_BUILD | SOFTROCE

LIBPCAP = "libpcap0.8"
"""Not for labs: Scapy compiles filters with it."""

P4LANG = "the p4lang project's packages for Ubuntu (scripts/provision.sh installs them), or from source"
"""p4c and BMv2, which neither Debian nor Ubuntu has."""

PTF = "pip install --no-deps ptf==0.12.0"
"""Without its dependencies: one of them has to be compiled, and PTF imports only Scapy, which p4gen needs anyway."""

SHELL = Path(sys.prefix) / "shell"
"""An environment for p4runtime-shell alone, whose protobuf and IPython are some years old."""
P4RUNTIME_SHELL = f"python3 -m venv {SHELL} && {SHELL}/bin/pip install p4runtime-shell==0.0.6"

OPEN_P4STUDIO = (
    "git clone https://github.com/p4lang/open-p4studio, in it "
    "./p4studio/p4studio profile apply ./p4studio/profiles/testing.yaml, and set SDE_INSTALL to its folder install"
)
"""The model of Tofino and its driver."""


def p4runtime_shell() -> str | None:
    """The Python that can run p4runtime-shell: that of its own environment, or this one; None if there is none."""
    own = SHELL / "bin" / "python"
    if own.exists():
        return str(own)
    return sys.executable if importlib.util.find_spec("p4runtime_sh") else None


def lacking(commands: Iterable[str]) -> list[str]:
    """Those of the commands that are not on PATH."""
    return [command for command in commands if shutil.which(command) is None]


def install(*commands: str) -> str:
    """How to get commands that labs, their hosts, or the images of these need."""
    return f"apt-get install {' '.join(dict.fromkeys(_PACKAGES[command] for command in commands))}"
