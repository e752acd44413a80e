"""Mininet's modules, from where the distribution puts them.

Debian's package belongs to the system's Python: its folder is not put on ``sys.path``, or everything else in there
would be found, too. Only its package ``mininet`` is, under that name.
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
"""Debian's and Ubuntu's place; a ``mininet`` that this Python finds by itself comes first."""
MNEXEC = "mnexec"
INSTALL = install(MNEXEC)
_TOOLS = (MNEXEC, "ifconfig")
"""What Mininet cannot do without; its package brings them."""


@dataclass(frozen=True)
class Modules:
    """The modules of Mininet that labs use."""

    net: Any
    node: Any
    link: Any


def find(folder: Path = FOLDER) -> Path | None:
    """The folder of the package, None where there is none."""
    spec = importlib.util.find_spec("mininet")
    if spec is not None and spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return folder if (folder / "net.py").is_file() else None


def check(folder: Path = FOLDER) -> Path:
    """The folder of the package. Raises ``MissingToolError`` unless everything is there."""
    found = find(folder)
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if found is None:
        raise MissingToolError(f"a lab needs Mininet, which is not installed: {INSTALL}")
    if missing:
        raise MissingToolError(f"Mininet in {found} lacks {' and '.join(missing)}: {INSTALL}")
    return found


def load(folder: Path = FOLDER) -> Modules:
    """Import Mininet. Raises ``MissingToolError`` where it is not, or does not fit this Python."""
    found = check(folder)
    try:
        if "mininet" not in sys.modules:
            _import_package(found)
        _stand_in_for_distutils()
        modules = [importlib.import_module(f"mininet.{name}") for name in ("net", "node", "link", "log")]
    except ImportError as error:
        raise MissingToolError(f"Mininet in {found} does not fit Python {sys.version.split()[0]}: {error}") from None
    modules[3].setLogLevel("critical")
    # It would raise limits of the whole machine, and leave them raised.
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
    """Mininet 2.3.0 compares Open vSwitch's versions by ``distutils``, which Python 3.12 no longer has. Labs have no
    Open vSwitch."""
    try:
        importlib.import_module("distutils.version")
    except ImportError:
        version = types.ModuleType("distutils.version")
        version.StrictVersion = str  # type: ignore[attr-defined]
        package = types.ModuleType("distutils")
        package.version = version  # type: ignore[attr-defined]
        sys.modules |= {"distutils": package, "distutils.version": version}
