"""AllReduce in a network of one's own, in a built-in one and in a generated one, while a link is down for a time."""

import sys

import p4gen

RACKS = (("h0", "left"), ("h1", "left"), ("h2", "right"), ("h3", "right"), ("left", "core"), ("right", "core"))

network = p4gen.Topology(
    name="two-racks",
    switches=("left", "right", "core"),
    hosts=("h0", "h1", "h2", "h3"),
    links=[list(ends) for ends in RACKS],
    defaults={"bandwidth": "100G", "delay": "500ns"},
)
for topology in (network, p4gen.load_topology("star-4"), p4gen.load_topology("clos:2x2x2")):
    for down in ([], [f"{topology.links[0].name}@20us-80us"]):
        result = p4gen.simulate(
            topology, {"mode": "III"}, size="1M", down=down, seed=1,
            progress=lambda done, total: print(f"{done} of {total}", end="\r", file=sys.stderr),
        )  # fmt: skip
        assert result.ok, result.to_dict()
        rate, links = result.to_dict()["gbps"], f"{down[0]} down" if down else "all links up"
        print(f"{topology.name}, {links}: {rate:.1f} Gb/s, {result.resent} packets sent again")
