"""BF-Runtime's message classes, made at run time from the SDE's bfruntime.proto; p4gen has no copy of them.

protoc turns the file into descriptors, which need no generated code and fit every release of protobuf.
"""

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
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from p4gen.errors import FailedError, MissingToolError

PACKAGE: Final = "bfrt_proto"
_TIMEOUT_S: Final = 300


class Protos:
    """The message classes of one bfruntime.proto, as attributes."""

    def __init__(self, descriptors: bytes) -> None:
        """``descriptors`` is a serialized ``FileDescriptorSet`` with everything that the file imports."""
        files = descriptor_pb2.FileDescriptorSet.FromString(descriptors)
        self._pool: Any = descriptor_pool.DescriptorPool()
        for file in files.file:
            self._pool.Add(file)
        self._factory: Any = message_factory.MessageFactory(self._pool)
        self._classes: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._classes:
            try:
                found = self._pool.FindMessageTypeByName(f"{PACKAGE}.{name}")
            except KeyError:
                raise AttributeError(f"bfruntime.proto has no message {name}") from None
            self._classes[name] = self._factory.GetPrototype(found)
        return self._classes[name]


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
    from google.rpc import status_pb2  # noqa: PLC0415  # only this target needs it

    return proto.parent, Path(status_pb2.__file__).parent.parent.parent


@functools.cache
def load(proto: Path) -> Protos:
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
        return Protos(output.read_bytes())
