"""What Soft-RoCE hosts boot from: a kernel with its first file system, and a root that all of them share.

Both are made of Debian's packages, once, and kept in p4gen's cache under a name that says of what they are made. Labs
look for them, and never make them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from p4gen import packages, stored
from p4gen.errors import FailedError, MissingToolError
from p4gen.labs.softroce import kernel
from p4gen.scratch import scratch

FILES: Final = Path(__file__).parent / "files"
SUITE: Final = "bookworm"
"""The release of Debian that guests have."""
PACKAGES: Final = (
    "iproute2", "iputils-ping", "kmod", "ethtool", "tcpdump",
    "rdma-core", "ibverbs-utils", "ibverbs-providers", "rdmacm-utils", "perftest", "python3", "python3-pyverbs",
)  # fmt: skip
"""Packages of the root, beside those that Debian cannot do without."""
_NEEDLESS: Final = (
    "usr/share/doc", "usr/share/man", "usr/share/info", "usr/share/locale", "usr/share/zoneinfo",
    "var/cache/apt", "var/lib/apt/lists", "var/lib/dpkg/info", "var/log",
)  # fmt: skip
_ROOT: Final = "root.sqfs"
_BUILD: Final = "p4gen softroce build"
_PATIENCE_S: Final = 3600.0
_LAST_LINES: Final = 12


@dataclass(frozen=True)
class Images:
    """The files that a guest boots from."""

    kernel: Path
    """An ELF file, which starts sooner than a compressed kernel."""
    initramfs: Path
    root: Path

    @property
    def complete(self) -> bool:
        """Whether all of them have been made."""
        return self.initramfs.exists() and self.root.exists()


def folder() -> Path:
    """The folder of all images."""
    return stored.cache_folder("softroce")


def find(version: str) -> Images:
    """The images with a kernel of ``KERNELS``. Raises ``MissingToolError``, which names the command that makes them."""
    found = places(version)
    if not found.complete:
        option = "" if version == kernel.DEFAULT else f" --kernel {version}"
        raise MissingToolError(f"there are no images of Soft-RoCE hosts with Linux {version}: {_BUILD}{option}")
    return found


def build(version: str, *, again: bool, tell: Callable[[str], None]) -> Images:
    """Make the images with a kernel of ``KERNELS``, as root; those that there are only if ``again`` is set. ``tell`` is
    told of each step.

    Raises ``MissingToolError`` without root, Debian's apt, or a tool, and ``FailedError`` with what the tool has said
    that failed. Then nothing of the step is left.
    """
    _check_tools()
    found = places(version)
    folder().mkdir(parents=True, exist_ok=True)
    steps = (
        (found.kernel.parent, lambda place: kernel.build(version, place, FILES / "initramfs-init", run)),
        (found.root.parent, _build_root),
    )
    for place, make in steps:
        if place.exists() and not again:
            tell(f"{place}: is there")
            continue
        tell(f"{place}: is being made")
        with scratch(".", folder()) as part:
            made = part / "made"
            made.mkdir()
            make(made)
            _replace(made, place)
    return found


def run(command: list[str], cwd: Path | None = None, text: str | None = None) -> str:
    """What a command prints. Raises ``FailedError`` with its last lines if it fails."""
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise FailedError(f"{command[0]} has not ended in {_PATIENCE_S:g} s") from None
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines()[-_LAST_LINES:]
        raise FailedError("\n  ".join([f"{' '.join(command)}: exit status {done.returncode}", *said]))
    return done.stdout


def places(version: str) -> Images:
    """Where the images with a kernel of ``KERNELS`` are, or would be."""
    own = folder() / f"linux-{version}-{kernel.content(version, FILES / 'initramfs-init')[:12]}"
    root = folder() / f"root-{stored.key([SUITE, *PACKAGES, *_NEEDLESS])[:12]}"
    return Images(own / kernel.KERNEL, own / kernel.INITRAMFS, root / _ROOT)


def _check_tools() -> None:
    lacking = packages.lacking(packages.SOFTROCE_BUILD)
    if lacking:
        raise MissingToolError(f"images are made with {', '.join(lacking)}: {packages.install(*lacking)}")
    if shutil.which("apt-cache") is None:
        raise MissingToolError(f"images are made of Debian's packages: {_BUILD} needs Debian's apt")
    if os.geteuid():
        raise MissingToolError(f"debootstrap makes a file system with root's files: run {_BUILD} as root")


def _replace(made: Path, place: Path) -> None:
    """Have a folder take another one's place, which may be there."""
    if place.exists():
        place.rename(made.with_name("old"))
    made.rename(place)


def _build_root(place: Path) -> None:
    tree = place.with_name("root")
    # Whatever debootstrap mounts is gone with its namespace, so that nothing is removed through it.
    apart = ["unshare", "--mount", "--propagation", "private", "--"]
    run([*apart, "debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, str(tree), _mirror()])
    for name in _NEEDLESS:
        shutil.rmtree(tree / name, ignore_errors=True)
    run(["mksquashfs", str(tree), str(place / _ROOT), "-comp", "lz4", "-noI", "-noF", "-no-progress", "-quiet"])


def _mirror() -> str:
    """The archive of the release, as this machine's apt has it; otherwise Debian's own."""
    lines = run(["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)"]).splitlines()
    found = (where for name, _, where in (line.partition(" ") for line in lines) if name == SUITE)
    return next(found, "http://deb.debian.org/debian")
