"""A guest's kernel, and the file system in memory with which it starts: the modules, in the order of loading."""

from __future__ import annotations

import lzma
import shutil
import subprocess
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Protocol

from p4gen import stored
from p4gen.errors import FailedError

KERNELS: Final = {"6.12": "linux-image-6.12-amd64", "6.1": "linux-image-amd64"}
"""Versions of Linux, and Debian's packages that depend on the newest kernel of each."""
DEFAULT: Final = "6.12"
KERNEL, INITRAMFS = "vmlinux", "initramfs"
MODULES: Final = (
    "virtio_pci", "virtio_mmio", "virtio_blk", "virtio_net", "virtio_console", "squashfs", "overlay",
    "9pnet_virtio", "9p", "crc32_generic", "crc32_pclmul", "ib_uverbs", "rdma_ucm", "rdma_rxe",
)  # fmt: skip


def _zstd(data: bytes) -> bytes:
    """What is decompressed of data that more data follow; zstd complains of these."""
    return subprocess.run(["zstd", "-dcq"], input=data, capture_output=True, check=False).stdout


_FORMATS: Final[tuple[tuple[bytes, Callable[[bytes], bytes]], ...]] = (
    (b"\x28\xb5\x2f\xfd", _zstd),
    (b"\xfd7zXZ\x00", lambda data: lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(data)),
    (b"\x1f\x8b\x08", lambda data: zlib.decompressobj(31).decompress(data)),
)
"""How a compressed kernel begins, and how it is decompressed."""


class Run(Protocol):
    """Runs a command, in a folder and with text as its input, and returns what it prints."""

    def __call__(self, command: list[str], cwd: Path | None = None, text: str | None = None) -> str:
        """Raises ``FailedError`` if the command fails."""
        ...


def content(version: str, init: Path) -> str:
    """A digest of all that the images of a version are made of. ``init`` is their first program."""
    return stored.key([KERNELS[version], *MODULES, init.read_text(encoding="utf-8")])


def build(version: str, place: Path, init: Path, run: Run) -> None:
    """Make the images of a version in the folder ``place``; what is beside it is the caller's to remove. Raises
    ``FailedError``."""
    package = _package(version, run)
    tree = place.with_name("package")
    run(["apt-get", "-o", "APT::Sandbox::User=root", "download", package], place.parent)
    (file,) = place.parent.glob("*.deb")
    run(["dpkg", "-x", str(file), str(tree)])
    release = package.removeprefix("linux-image-")
    (place / KERNEL).write_bytes(uncompressed((tree / "boot" / f"vmlinuz-{release}").read_bytes()))
    if not (tree / "lib").exists():
        (tree / "lib").symlink_to("usr/lib")
    run(["depmod", "-b", str(tree), release])
    ram = place.with_name("initramfs")
    (ram / "bin").mkdir(parents=True)
    (ram / "modules").mkdir()
    names = [_add_module(file, ram / "modules") for file in _module_files(tree, release, run)]
    (ram / "modules" / "order").write_text("".join(f"{name}\n" for name in names), encoding="ascii")
    shutil.copy(shutil.which("busybox") or "", ram / "bin" / "busybox")
    shutil.copy(init, ram / "init")
    (ram / "init").chmod(0o755)
    listed = "".join(f"{path.relative_to(ram)}\n" for path in sorted(ram.rglob("*")))
    run(["cpio", "-o", "-H", "newc", "--quiet", "-R", "0:0", "-O", str(place / INITRAMFS)], ram, listed)


def uncompressed(image: bytes) -> bytes:
    """The kernel as ELF that is in a compressed kernel. Raises ``FailedError`` if there is none."""
    for begin, unpack in _FORMATS:
        at = image.find(begin)
        while at >= 0:
            try:
                found = unpack(image[at:])
            except (lzma.LZMAError, zlib.error):
                found = b""
            if found[:4] == b"\x7fELF":
                return found
            at = image.find(begin, at + 1)
    raise FailedError("the kernel is compressed in a way that p4gen does not know")


def _package(version: str, run: Run) -> str:
    """The package of the newest kernel of a version."""
    words = [line.split() for line in run(["apt-cache", "depends", KERNELS[version]]).splitlines()]
    found = [word[1] for word in words if word[:1] == ["Depends:"] and word[1].startswith("linux-image-")]
    if not found:
        raise FailedError(f"apt knows no kernel behind {KERNELS[version]}: apt-get update, on Debian 12")
    return found[0]


def _module_files(tree: Path, release: str, run: Run) -> Iterator[Path]:
    """The files of the modules and of those that they need, each after those."""
    order: dict[str, None] = {}
    for module in MODULES:
        lines = run(["modprobe", "-S", release, "-d", str(tree), "--show-depends", module]).splitlines()
        order |= {line.split()[1]: None for line in lines if line.startswith("insmod ")}
    return map(Path, order)


def _add_module(file: Path, folder: Path) -> str:
    """Put a module into a folder, uncompressed. Returns its name there."""
    if file.suffix == ".xz":
        (folder / file.stem).write_bytes(lzma.decompress(file.read_bytes()))
        return file.stem
    shutil.copy(file, folder)
    return file.name
