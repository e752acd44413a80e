"""Generate EPIC's Mode III, see what it offers and keeps, build it into a folder, and meet a wrong field's error."""

import sys

import p4gen

program = p4gen.generate(mode="III", lanes=64, window=8)
print(f"{program.name}: {len(program.text.splitlines()):,} lines, {program.manifest['state_bits']:,} bits of state")

for table in program.p4info.tables:
    print(f"table {table.preamble.alias}, {table.size:,} entries: {', '.join(key.name for key in table.match_fields)}")
for module in program.manifest["modules"]:
    for register in module["registers"]:
        print(f"{module['name']} keeps {register['purpose']}: {register['formula']}")
for file in program.write(sys.argv[1] if len(sys.argv) > 1 else "build"):
    print(f"wrote {file}")

try:
    p4gen.generate(program, lanes=7)
except p4gen.InputError as error:
    for diagnostic in error.diagnostics:
        print(f"{diagnostic.where}: {diagnostic.message}")
