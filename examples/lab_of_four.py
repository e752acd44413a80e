"""A lab of a switch and four hosts under Mininet: calls, a lost link, counters and drops. Needs root and Mininet."""

import sys

import p4gen

with p4gen.lab("star-4", {"mode": "III", "lanes": 16}, out=sys.argv[1] if len(sys.argv) > 1 else "build") as lab:
    for collective, size in (("allreduce", "256K"), ("broadcast", "64K"), ("barrier", None)):
        answer = lab.run(collective, size, repeat=2)
        assert answer.ok, answer.text
        for call in answer.run["calls"]:
            print(f"{call['collective']}: {call['seconds'] * 1e3:.1f} ms, right: {call['right']}")

    print(lab.fail("h0-s0").text)
    print(lab.restore("h0-s0").text)
    assert lab.run("allreduce", "64K", "h1", "h2").ok  # a group of two

    for node in ("s0", "h0"):
        print(lab.command(f"counters {node}").text)
    print(lab.command("drops").text)
