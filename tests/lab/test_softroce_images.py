"""Images of Soft-RoCE hosts: how they are named, what is refused, what a failed build leaves."""

from __future__ import annotations

import gzip
import lzma
import os
import shutil
import sys
from pathlib import Path

import pytest

from p4gen import packages
from p4gen.errors import FailedError, MissingToolError
from p4gen.labs.softroce import images, kernel, layer

ELF = b"\x7fELF" + bytes(range(200))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """p4gen's cache, empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "p4gen" / "softroce"


def complete(version: str) -> images.Images:
    """Files in the place of a version's images."""
    found = images.places(version)
    for file in (found.kernel, found.initramfs, found.root):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"an image")
    return found


def test_kernels_have_images_of_their_own_and_one_root(cache: Path) -> None:
    new, old = (images.places(version) for version in ("6.12", "6.1"))
    assert new.root == old.root
    assert new.kernel.parent != old.kernel.parent
    assert new.kernel.parent == new.initramfs.parent
    assert {cache} == {found.parent.parent for found in (new.root, new.kernel, old.kernel)}


def test_images_are_named_by_what_they_are_made_of(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = images.places("6.12")
    monkeypatch.setattr(images, "PACKAGES", (*images.PACKAGES, "strace"))
    assert images.places("6.12").root != before.root
    assert images.places("6.12").kernel == before.kernel
    monkeypatch.setattr(kernel, "MODULES", (*kernel.MODULES, "mlx5_ib"))
    assert images.places("6.12").kernel != before.kernel


def test_a_changed_first_program_is_another_image(tmp_path: Path) -> None:
    init = tmp_path / "init"
    init.write_text("one")
    before = kernel.content("6.1", init)
    init.write_text("other")
    assert kernel.content("6.1", init) != before


@pytest.mark.parametrize(("version", "option"), [("6.12", ""), ("6.1", " --kernel 6.1")])
def test_without_images_one_line_names_the_command(cache: Path, version: str, option: str) -> None:
    with pytest.raises(MissingToolError) as told:
        images.find(version)
    (line,) = told.value.lines()
    assert line.endswith(f"there are no images of Soft-RoCE hosts with Linux {version}: p4gen softroce build{option}")
    made = complete(version)
    assert images.find(version) == made


def test_without_tools_one_line_says_how_to_get_them(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingToolError, match=r"images are made with debootstrap, .*: apt-get install debootstrap"):
        images.build("6.12", again=False, tell=print)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tools that do nothing but succeed, and root's rights."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in (*packages.SOFTROCE_BUILD, "apt-get", "apt-cache", "dpkg", "unshare"):
        (folder / name).symlink_to(shutil.which("true") or "/bin/true")
    (folder / "rm").symlink_to(shutil.which("rm") or "/bin/rm")  # for scratch folders
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return folder


def test_only_root_makes_images(cache: Path, tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(MissingToolError, match="run p4gen softroce build as root"):
        images.build("6.12", again=False, tell=print)


def test_what_is_there_is_not_made_again(cache: Path, tools: Path) -> None:
    told: list[str] = []
    found = complete("6.12")
    assert images.build("6.12", again=False, tell=told.append) == found
    assert told == [f"{found.kernel.parent}: is there", f"{found.root.parent}: is there"]


def test_a_failed_build_leaves_nothing_and_keeps_what_was_there(cache: Path, tools: Path) -> None:
    (tools / "apt-cache").unlink()
    (tools / "apt-cache").write_text("#!/bin/sh\necho 'no such package' >&2\nexit 100\n")
    (tools / "apt-cache").chmod(0o755)
    found = complete("6.12")
    with pytest.raises(FailedError, match=r"apt-cache depends .*: exit status 100\n  no such package"):
        images.build("6.12", again=True, tell=print)
    assert set(cache.iterdir()) == {found.root.parent, found.kernel.parent}
    shutil.rmtree(found.kernel.parent)
    with pytest.raises(FailedError):
        images.build("6.12", again=False, tell=print)
    assert list(cache.iterdir()) == [found.root.parent]


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress], ids=["gzip", "xz"])
def test_a_kernel_is_found_in_its_compressed_image(compress: object) -> None:
    assert callable(compress)
    begin = b"a loader \x1f\x8b\x08 \xfd7zXZ\x00 that only looks compressed"
    assert kernel.uncompressed(begin + compress(ELF) + b"the end") == ELF


def test_a_kernel_without_elf_is_refused() -> None:
    with pytest.raises(FailedError, match="compressed in a way"):
        kernel.uncompressed(gzip.compress(b"no kernel"))


def test_guests_have_the_python_that_packages_are_made_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 12, 1))
    with pytest.raises(MissingToolError, match=r"run p4gen with Python 3\.11, not 3\.12$"):
        layer.layer()


def test_a_changed_source_is_another_image_of_p4gen(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("one = 1")
    before = layer.digest({"p4gen/module.py": file})
    file.write_text("one = 2")
    assert layer.digest({"p4gen/module.py": file}) != before
    assert layer.digest({"p4gen/other.py": file}) != layer.digest({"p4gen/module.py": file})
