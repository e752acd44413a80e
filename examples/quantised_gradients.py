"""Adds float32 gradients on switches that add integers: with agreed exponents, and with fixed factors.

p4gen lab star-4 --mode II --exec 'python examples/quantised_gradients.py'
"""

import numpy as np

import p4gen

SIZE = 100_000

with p4gen.join() as group:
    every = [np.random.default_rng(rank).standard_normal(SIZE, np.float32) * 1e-3 for rank in range(group.size)]
    right = np.sum(every, axis=0, dtype=np.float64)
    for scale in ("auto", 2.0**16, 2.0**24, 2.0**40):
        before = group.saturated
        total = group.all_reduce(every[group.rank], scale=scale)
        if group.rank == 0:
            name = scale if scale == "auto" else f"2**{int(np.log2(scale))}"
            wrong, saturated = np.abs(total - right).max(), group.saturated - before
            print(f"scale {name:>5}: largest error {wrong:.1e}, {saturated:,} of {SIZE:,} numbers saturated")
