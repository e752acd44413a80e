"""The tools that the target needs, and their places on this machine."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from p4gen.errors import MissingToolError

MODEL, DRIVER = "tofino-model", "bf_switchd"
HUGE_PAGES = 196
_HUGE_PAGES_FILE = Path("/proc/sys/vm/nr_hugepages")


@dataclass(frozen=True)
class Sde:
    """An installed SDE: the paths of its programs, and its folder."""

    install: Path
    model: str
    driver: str

    @property
    def proto(self) -> Path:
        """The file that defines BF-Runtime's messages."""
        return self.install / "share" / "bf_rt_shared" / "proto" / "bfruntime.proto"

    def environment(self) -> dict[str, str]:
        """This process's environment, with the SDE's libraries and tools first."""
        path = os.pathsep.join(filter(None, (str(self.install / "bin"), os.environ.get("PATH", ""))))
        libraries = os.pathsep.join(filter(None, (str(self.install / "lib"), os.environ.get("LD_LIBRARY_PATH", ""))))
        return {**os.environ, "PATH": path, "LD_LIBRARY_PATH": libraries, "SDE_INSTALL": str(self.install)}


def find(tool: str) -> str | None:
    """A tool's absolute path: on PATH, or in ``$SDE_INSTALL/bin``; None if it is in neither."""
    if found := shutil.which(tool):
        return os.path.abspath(found)
    install = os.environ.get("SDE_INSTALL")
    return shutil.which(tool, path=str(Path(install).absolute() / "bin")) if install else None


def sde() -> Sde:
    """The installed SDE. Raises ``MissingToolError`` without it."""
    found = {tool: find(tool) for tool in (MODEL, DRIVER)}
    missing = [tool for tool, path in found.items() if path is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        where = "neither on PATH nor in $SDE_INSTALL/bin"
        raise MissingToolError(f"target tofino-model: {' and '.join(missing)} {verb} {where} (see p4gen doctor)")
    model, driver = found[MODEL] or "", found[DRIVER] or ""
    install = os.environ.get("SDE_INSTALL")
    return Sde(Path(install).absolute() if install else Path(driver).parent.parent, model, driver)


def check() -> Sde:
    """The installed SDE. Raises ``MissingToolError`` unless the target can run: tools, privilege and huge pages."""
    found = sde()
    if not found.proto.is_file():
        raise MissingToolError(
            f"target tofino-model: {found.proto} is missing; set SDE_INSTALL to the SDE's install folder"
        )
    missing = []
    if os.geteuid():
        missing.append("target tofino-model: only root may make its veth pairs and network namespace")
    if (pages := huge_pages()) < HUGE_PAGES:
        missing.append(
            f"target tofino-model: {DRIVER} needs {HUGE_PAGES} huge pages, there are {pages}: "
            f"sysctl vm.nr_hugepages={HUGE_PAGES}"
        )
    if missing:
        raise MissingToolError(*missing)
    return found


def versions() -> dict[str, str]:
    """The beginnings of the programs' checksums (SHA-256), since they have no common way to tell their versions."""
    found = sde()
    return {name: _digest(path) for name, path in ((MODEL, found.model), (DRIVER, found.driver))}


def _digest(path: str) -> str:
    with Path(path).open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()[:16]}"


def huge_pages() -> int:
    """The number of huge pages that the kernel keeps."""
    try:
        return int(_HUGE_PAGES_FILE.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0
