"""Executables that live and die as tofino-model, bf_switchd and p4c do. They switch nothing, and compile nothing."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from p4gen.switch.tofino.tools import Sde

TESTS = Path(__file__).parent.parent.parent
PROTO = Path(os.environ.get("P4STUDIO", "/nowhere")) / "pkgsrc/bf-drivers/src/bf_rt/proto/bfruntime.proto"
MISSING = [
    name for name, there in (("P4STUDIO", PROTO.is_file()), ("protoc", shutil.which("protoc") is not None)) if not there
]
COMPILER = """#!{python}
import sys
if "--target-help" in sys.argv:
    print("tofino-tna, tofino2-t2na")
elif "--version" in sys.argv:
    print("p4c Version 0 (a stand-in)")
else:
    sys.path.insert(0, {tests!r})
    from switch.tofino.serving import outputs
    outputs(sys.argv[sys.argv.index("--target") + 1], sys.argv[sys.argv.index("-o") + 1], sys.argv[-1])
"""
SCRIPT = """#!{python}
import json, os, signal, socket, sys, time
here, name = {here!r}, {name!r}
with open(os.path.join(here, "plan.json")) as file:
    plan = json.load(file)[name]
with open("/proc/net/dev") as file:
    interfaces = sorted(line.split(":")[0].strip() for line in file if ":" in line)
def say(what, **more):
    with open(os.path.join(here, "events"), "a") as file:
        file.write(json.dumps({{"who": name, "what": what, **more}}) + chr(10))
def stop(*_):
    with open("/proc/net/dev") as file:  # frames that have reached an interface
        lines = [line.replace(":", " ").split() for line in file if "veth" in line]
    say("stopped", frames={{line[0]: int(line[2]) for line in lines}})
    sys.exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN if plan.get("deaf") else stop)
say("started", argv=sys.argv[1:], interfaces=interfaces, pid=os.getpid(), cwd=os.getcwd(),
    libraries=os.environ.get("LD_LIBRARY_PATH", "").split(":")[0], install=os.environ.get("SDE_INSTALL"))
print(name, "says something")
sys.stdout.flush()
if "dies" in plan:
    print(plan.get("last", "it hurts"))
    sys.exit(plan["dies"])
if name == "tofino-model":
    until = plan.get("lives")
    waits = socket.create_server(("127.0.0.1", 8001))  # for its driver
    while not (until and os.path.exists(os.path.join(here, until))):
        time.sleep(0.02)
    sys.exit(4)
def option(name):
    return sys.argv[sys.argv.index(name) + 1]
if "runtime" in plan:
    sys.path.insert(0, plan["tests"])
    from switch.tofino.serving import serve
    serve(option("--conf-file"), int(option("--bfrt-grpc-port")), here, plan["runtime"], say)
port = int(option("--status-port"))
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", port))
listener.listen()
asked = 0
while True:
    peer = listener.accept()[0]
    device = peer.recv(1)
    ready = asked >= plan.get("not_ready", 0)
    asked += 1
    say("asked", device=device.decode(), ready=ready)
    peer.sendall(b"1" if ready else b"0")
    peer.close()
    if asked == plan.get("dies_when_asked"):
        sys.exit(9)
"""


class StandIns:
    """An installed SDE of stand-ins, in a folder. ``plan`` says how each of the two lives."""

    def __init__(self, folder: Path, **plan: dict[str, Any]) -> None:
        self.folder = folder
        (folder / "bin").mkdir(parents=True)
        proto = folder / "share/bf_rt_shared/proto/bfruntime.proto"
        proto.parent.mkdir(parents=True)
        proto.write_bytes(PROTO.read_bytes() if PROTO.is_file() else b"")
        self.plan(**plan)
        compiler = folder / "bin/p4c"
        compiler.write_text(COMPILER.format(python=sys.executable, tests=str(TESTS)))
        compiler.chmod(0o755)
        for name in ("tofino-model", "bf_switchd"):
            path = folder / "bin" / name
            path.write_text(SCRIPT.format(python=sys.executable, here=str(folder), name=name))
            path.chmod(0o755)

    def plan(self, model: dict[str, Any] | None = None, driver: dict[str, Any] | None = None) -> None:
        plans = {"tofino-model": model or {}, "bf_switchd": {"tests": str(TESTS), **(driver or {})}}
        (self.folder / "plan.json").write_text(json.dumps(plans))

    def sde(self) -> Sde:
        return Sde(self.folder, str(self.folder / "bin/tofino-model"), str(self.folder / "bin/bf_switchd"))

    def events(self) -> list[dict[str, Any]]:
        path = self.folder / "events"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def order(self) -> list[str]:
        """Who did what, without the questions to the status port."""
        return [f"{event['who']} {event['what']}" for event in self.events() if event["what"] != "asked"]
