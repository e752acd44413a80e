"""Throughput of AllReduce against loss, in Modes II and III, as a plot: python examples/loss_sweep.py [FILE.svg]."""

import sys

import matplotlib.pyplot as plt

import p4gen

LOSSES = ["0%", "0.1%", "1%", "5%"]

for mode in ("II", "III"):
    program = p4gen.generate(mode=mode, lanes=64)
    rates = []
    for loss in LOSSES:
        result = p4gen.simulate("star-4", program, size="256K", loss=loss, seed=1)
        assert result.ok, result.to_dict()
        rates.append(result.to_dict()["gbps"])
        print(f"Mode {mode}, {loss:>4} lost: {rates[-1]:5.1f} Gb/s, {result.resent:,} packets sent again")
    plt.plot(LOSSES, rates, marker="o", label=f"Mode {mode}")

plt.xlabel("loss on each link")
plt.ylabel("Gb/s")
plt.legend()
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "loss.svg")
