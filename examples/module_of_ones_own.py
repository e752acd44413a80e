"""A module of one's own in a generated program: `p4gen new` writes a family with one, which counts contributions."""

import os
import subprocess
import sys
import tempfile

import p4gen

os.chdir(tempfile.mkdtemp(prefix="p4gen-"))
subprocess.run([sys.executable, "-m", "p4gen", "new", "stragglers"], check=True, stdout=subprocess.DEVNULL)
os.environ["P4GEN_FAMILIES"] = os.path.abspath("stragglers")

program = p4gen.generate(family="stragglers", lanes=8)
own = [line for line in program.text.splitlines() if "contributions" in line]
print(f"{program.text.count(chr(10)):,} lines of P4, {len(own)} of them name the new module's counter:")
print("\n".join(own))

result = p4gen.simulate("star-4", program, size="64K", loss="1%", seed=1)
print(f"AllReduce with it: {'right' if result.ok else result.errors}, {result.resent:,} packets sent again")
