"""BF-Runtime's messages, made at run time from the SDE's bfruntime.proto, of which p4gen has no copy."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from p4gen.errors import FailedError, MissingToolError
from p4gen.protos.package import DEFINITIONS, Package, pool_of

PACKAGE: Final = "bfrt_proto"
_TIMEOUT_S: Final = 300


def _compilers() -> list[list[str]]:
    """Commands that may be protoc; the first one that exists is used."""
    found = [[path] for path in (_protoc(),) if path]
    if importlib.util.find_spec("grpc_tools") is not None:
        found.append([sys.executable, "-m", "grpc_tools.protoc"])
    return found


def _protoc() -> str | None:
    install = os.environ.get("SDE_INSTALL")
    return (shutil.which("protoc", path=str(Path(install) / "bin")) if install else None) or shutil.which("protoc")


def _includes(proto: Path) -> Sequence[Path]:
    """The folders of the file, and of the definitions that it imports (google/rpc/status.proto)."""
    return proto.parent, DEFINITIONS


@functools.cache
def load(proto: Path) -> Package:
    """The classes of a file. Raises ``MissingToolError`` without the file or without protoc, ``FailedError`` when
    protoc refuses it."""
    if not proto.is_file():
        raise MissingToolError(f"target tofino-model: {proto} is missing: set SDE_INSTALL to the SDE's folder")
    commands = _compilers()
    if not commands:
        raise MissingToolError("target tofino-model: protoc is not on PATH; apt-get install protobuf-compiler")
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "descriptors"
        command = [
            *commands[0],
            *(f"-I{path}" for path in _includes(proto)),
            "--include_imports",
            f"--descriptor_set_out={output}",
            proto.name,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        if done.returncode:
            raise FailedError(f"{proto}: protoc refuses it: {(done.stderr or done.stdout).strip()}")
        return Package(pool_of(output.read_bytes()), PACKAGE)
