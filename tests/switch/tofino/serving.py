"""What the stand-ins for bf_switchd and p4c do besides living and dying: a server that checks messages, and files."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from p4gen.p4.compile import compile_file
from p4gen.switch.tofino.bfrt import protos

from .described import CHIP
from .from_p4info import bfrt
from .runtime import Runtime, serving

_RUNNING = ExitStack()


def serve(conf: str, port: int, install: str, plan: dict[str, Any], say: Callable[..., None]) -> None:
    """Serve BF-Runtime at a port for the program of a PROG.conf. What is wrong with messages is an event."""
    (device,) = json.loads(Path(conf).read_text())["p4_devices"]
    (program,) = device["p4_programs"]
    described = Path(program["bfrt-config"]).read_bytes()
    proto = Path(install) / "share/bf_rt_shared/proto/bfruntime.proto"
    tables = [*json.loads(described)["tables"], *CHIP["tables"]]
    chip = json.dumps(CHIP).encode()
    runtime = Runtime(protos.load(proto), program["program-name"], described, chip, tables, **plan)
    _RUNNING.enter_context(serving(runtime, f"127.0.0.1:{port}"))

    def watch() -> None:
        told = 0
        while not runtime.over.wait(0.05):
            for text in runtime.wrong[told:]:
                say("wrong", text=text)
            told = len(runtime.wrong)

    threading.Thread(target=watch, daemon=True).start()


def outputs(chip: str, folder: str, source: str) -> None:
    """Write what p4c writes, but for the binary and what only the driver reads."""
    out = Path(folder)
    (out / "pipe").mkdir(parents=True, exist_ok=True)
    compiled = compile_file(Path(source), defines=(f"__TARGET_TOFINO__={2 if chip == 'tofino2' else 1}",))
    (out / "bfrt.json").write_text(json.dumps(bfrt(compiled.p4info)))
    (out / "pipe/context.json").write_text("{}")
    (out / f"pipe/{chip}.bin").write_bytes(b"\0")
    said = {"compilation_succeeded": True, "compiler_version": "0 (a stand-in)"}
    (out / "manifest.json").write_text(json.dumps(said))
