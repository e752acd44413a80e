"""A module of one's own in a generated program: `p4gen new` writes a family with one, which counts contributions."""

import os
import subprocess
import sys
import tempfile

import p4gen

with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.executable, "-m", "p4gen", "new", "stragglers"], cwd=folder, check=True, stdout=sys.stderr)
    os.environ["P4GEN_FAMILIES"] = os.path.join(folder, "stragglers")

    program = p4gen.generate(family="stragglers", lanes=8)
    own = [line for line in program.text.splitlines() if "contributions" in line]
    print(f"{len(program.text.splitlines()):,} lines of P4, {len(own)} of them with the new module:")
    print("\n".join(own))

    result = p4gen.simulate("star-4", program, size="64K", loss="1%", seed=1)
    print(f"AllReduce with it: {'right' if result.ok else result.errors}, {result.resent:,} packets sent again")
