"""open-p4studio's Python client of BF-Runtime and its descriptions of tables, from the checkout that P4STUDIO names."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import shutil
import sys
import types
from pathlib import Path
from typing import Any

from p4gen.protos.package import Package

from .described import SDE_TABLES

BFRT = Path(os.environ.get("P4STUDIO", "/nowhere")) / "pkgsrc/bf-drivers/src/bf_rt"
PROTO = BFRT / "proto/bfruntime.proto"
CLIENT = BFRT / "bfruntime_grpc_client/python"
_NEEDED = {"P4STUDIO, a checkout of open-p4studio": CLIENT.is_dir(), "protoc": shutil.which("protoc") is not None}
_NEEDED["six"] = importlib.util.find_spec("six") is not None
_NEEDED["googleapis-common-protos"] = importlib.util.find_spec("google.rpc") is not None
MISSING = [name for name, there in _NEEDED.items() if not there]


def chip(name: str) -> dict[str, Any]:
    """The SDE's own description of a Tofino's tables, those that we use."""
    found = []
    for wanted, part in SDE_TABLES.items():
        document = json.loads((BFRT / f"bf_rt_{part}" / f"bf_rt_{part}_{name}.json").read_text())
        found += [table for table in document["tables"] if table["name"] == wanted]
    for table in found:
        table.setdefault("size", 0)
    return {"tables": found}


def sde_client(messages: Package) -> Any:
    """Their client, on message classes made as ours are: it uses the same proto. ``forget_client`` unloads it."""
    numbers = types.SimpleNamespace(Value=["WARM_INIT_STARTED", "WARM_INIT_FINISHED"].index)
    generated = types.ModuleType("bfrt_grpc.bfruntime_pb2")
    generated.__getattr__ = lambda name: getattr(messages, name)  # type: ignore[method-assign]
    generated.__dict__["SetForwardingPipelineConfigResponseType"] = numbers
    stubs = types.ModuleType("bfrt_grpc.bfruntime_pb2_grpc")
    stubs.__dict__["bfruntime__pb2"] = generated
    modules = {"bfrt_grpc": types.ModuleType("bfrt_grpc"), "bfrt_grpc.bfruntime_pb2_grpc": stubs}
    modules["bfrt_grpc"].__dict__["bfruntime_pb2_grpc"] = stubs
    package = types.ModuleType("sde_client")
    package.__path__ = [str(CLIENT)]
    modules["sde_client"] = package
    sys.modules |= modules
    return importlib.import_module("sde_client.client")


def forget_client() -> None:
    """Unload what ``sde_client`` has loaded."""
    for name in [name for name in sys.modules if name.split(".")[0] in ("sde_client", "bfrt_grpc")]:
        del sys.modules[name]


class Wire:
    """What stands behind the client in place of a server: the last request, without an answer."""

    def __init__(self, messages: Package) -> None:
        self.last, self._answer = b"", messages.WriteResponse()

    def _write(self, request: Any, metadata: object = None) -> Any:
        self.last = request.SerializeToString()
        return self._answer

    def _read(self, request: Any, metadata: object = None) -> Any:
        self.last = request.SerializeToString()
        return iter(())
