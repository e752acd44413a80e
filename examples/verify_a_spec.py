"""Check a small AllReduce in all states that a lost packet leads to; then seed a fault, and read how it fails."""

import p4gen

SPEC = {"mode": "II", "window": 1}

report = p4gen.verify("star-2", SPEC, packets=2, loss=1)
assert report.ok, report.story
print(f"as generated: {report.result.sentence()}")

fault = "repeat-returns-own-data"  # `p4gen ptf mutate` has a list of them
report = p4gen.verify("star-2", SPEC, packets=2, loss=1, fault=fault)
assert report.problem is not None
print(f"with the fault {fault}, {report.problem.property} are wrong: {report.problem.text}")
print(report.story)
