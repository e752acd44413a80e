"""Generate EPIC's Mode II, put it on a switch in memory, route one host's address, and send a packet there."""

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

import p4gen

HOST, GATEWAY = "02:00:00:00:00:02", "02:00:00:00:00:fe"

switch = p4gen.generate(mode="II", lanes=8).switch()
route = {"hdr.ipv4.dst_addr": p4gen.Lpm(0x0A000002, 32)}
switch.insert(p4gen.Entry("forward.routes", route, p4gen.Action("forward.set_next_hop", {"id": 1})))
macs = {"src_mac": int(GATEWAY.replace(":", ""), 16), "dst_mac": int(HOST.replace(":", ""), 16)}
hop = p4gen.Action("forward.send", {"port": 7, **macs})
switch.insert(p4gen.Entry("forward.next_hops", {"next_hop": p4gen.Exact(1)}, hop))

frame = Ether(dst=GATEWAY) / IP(src="10.0.0.1", dst="10.0.0.2", ttl=9) / UDP(sport=1, dport=2) / b"hello"
for port, sent in switch.send(0, frame):
    packet = Ether(sent)
    print(f"port {port}: to {packet.dst}, TTL {packet[IP].ttl}, {bytes(packet[UDP].payload)!r}")
