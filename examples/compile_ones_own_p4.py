"""Compile a P4 program of one's own, insert entries, send packets, read counters, and meet a wrong entry's error."""

from pathlib import Path

import p4gen

switch = p4gen.compile(Path(__file__).with_name("stations.p4")).switch()
stations = {"h0": 0x02_00_00_00_00_01, "h1": 0x02_00_00_00_00_02}
entries = [
    p4gen.Entry("stations", {"hdr.ethernet.dst": p4gen.Exact(address)}, p4gen.Action("send", {"port": port}))
    for port, address in enumerate(stations.values())
]
switch.insert(*entries)

for source, target in (("h0", "h1"), ("h1", "h0"), ("h0", "h1")):
    frame = stations[target].to_bytes(6) + stations[source].to_bytes(6) + b"\x88\xb5" + b"hello"
    ports = [port for port, _ in switch.send(list(stations).index(source), frame)]
    print(f"{source} to {target}: out of {ports}")
for name, entry in zip(stations, entries, strict=True):
    print(f"to {name}: {switch.entry_counter(entry).packets} packets")

try:
    switch.insert(p4gen.Entry("stations", {"hdr.ethernet.dst": p4gen.Exact(3)}, p4gen.Action("send", {"port": 512})))
except p4gen.P4genError as error:
    print(error)
