"""Mininet's modules, from the distribution's package.

Debian's package belongs to the system's Python. Its folder is not added to ``sys.path``, because then all other
packages in it would be found, too; only its package ``mininet`` is made importable.
"""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p4gen.errors import MissingToolError
from p4gen.packages import install

FOLDER = Path("/usr/lib/python3/dist-packages/mininet")
"""The folder of the package in Debian and Ubuntu; a ``mininet`` on Python's path takes precedence."""
MNEXEC = "mnexec"
INSTALL = install(MNEXEC)
_TOOLS = (MNEXEC, "ifconfig")
"""Tools that Mininet needs; its package installs them."""


@dataclass(frozen=True)
class Modules:
    """The modules of Mininet that labs use."""

    net: Any
    node: Any
    link: Any


def find(folder: Path = FOLDER) -> Path | None:
    """The folder of the package; None if it is not installed."""
    spec = importlib.util.find_spec("mininet")
    if spec is not None and spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return folder if (folder / "net.py").is_file() else None


def check(folder: Path = FOLDER) -> Path:
    """The folder of the package. Raises ``MissingToolError`` unless the package and its tools are installed."""
    found = find(folder)
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if found is None:
        raise MissingToolError(f"a lab needs Mininet, which is not installed: {INSTALL}")
    if missing:
        raise MissingToolError(f"Mininet in {found} lacks {' and '.join(missing)}: {INSTALL}")
    return found


def load(folder: Path = FOLDER) -> Modules:
    """Import Mininet. Raises ``MissingToolError`` if it is not installed, or does not work with this Python."""
    found = check(folder)
    try:
        if "mininet" not in sys.modules:
            _import_package(found)
        _stand_in_for_distutils()
        modules = [importlib.import_module(f"mininet.{name}") for name in ("net", "node", "link", "log")]
    except ImportError as error:
        raise MissingToolError(f"Mininet in {found} does not fit Python {sys.version.split()[0]}: {error}") from None
    modules[3].setLogLevel("critical")
    # Mininet would raise limits of the whole machine permanently.
    modules[0].Mininet.inited = True
    return Modules(*modules[:3])


def _import_package(folder: Path) -> None:
    spec = importlib.util.spec_from_file_location(
        "mininet", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["mininet"] = package
    spec.loader.exec_module(package)


def _stand_in_for_distutils() -> None:
    """Provide a substitute for ``distutils``, which Python 3.12 no longer has. Mininet 2.3.0 uses it to compare
    versions of Open vSwitch, which labs do not use."""
    try:
        importlib.import_module("distutils.version")
    except ImportError:
        version = types.ModuleType("distutils.version")
        version.StrictVersion = str  # type: ignore[attr-defined]
        package = types.ModuleType("distutils")
        package.version = version  # type: ignore[attr-defined]
        sys.modules |= {"distutils": package, "distutils.version": version}
