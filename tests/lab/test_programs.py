"""Programs of one's own on every host: `p4gen lab --exec`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from p4gen.vocabulary.message import Collective

from .labs import SMALL, lab
from .traces import Traces

ROOT = Path(__file__).parents[2]
RANKS = """
import os, sys
import numpy as np
import p4gen

with p4gen.join() as group:
    assert os.environ["RANK"] == str(group.rank) and os.environ["WORLD_SIZE"] == str(group.size)
    values = np.arange(1000, dtype=np.int32) * (group.rank + 1)
    assert (group.all_reduce(values) == np.arange(1000) * sum(range(1, group.size + 1))).all()
    assert group.all_to_all(np.arange(group.size) + 10 * group.rank).tolist() == [
        10 * source + group.rank for source in range(group.size)
    ]
    pair = [group.ranks[0], group.ranks[-1]]
    if group.ranks[group.rank] in pair:
        with p4gen.join("pair", ranks=pair) as two:
            two.barrier()
            assert two.size == 2
    print("right at", group.ranks[group.rank])
    print("and a line for errors", file=sys.stderr)
"""
DYING = """
import os, signal, sys
import numpy as np
import p4gen

with p4gen.join() as group:
    group.barrier()
    if group.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        for _ in range(100_000):
            group.all_reduce(np.zeros(64, np.int32))
    except p4gen.FailedError as error:
        sys.exit(f"told: {error}")
"""

ELASTIC = """
import os, signal, time
import numpy as np
import p4gen

def total(group):
    return f"{group.size}: {group.all_reduce(np.full(1000, group.rank + 1, np.int32))[999]}"

late = os.environ["P4GEN_HOST"] == "h3"  # h3 waits until the others take it in
with p4gen.join("work", ranks=[] if late else ["h0", "h1", "h2"], elastic=True, timeout=300) as group:
    if not late:
        print("sum of", total(group))
        if group.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            for _ in range(100_000):
                group.all_reduce(np.zeros(10_000, np.int32))
        except p4gen.FailedError as error:
            print("told:", error.reason)
        if group.rank == 2:
            time.sleep(1)  # the group has its new ranks before this rank asks for them
        print("left out:", *group.shrink())
        print("sum of", total(group))
        group.grow(["h3"])
    print("sum of", total(group))
    print("all", group.all_to_all(np.arange(group.size) + 10 * group.rank).tolist())
"""

ROLLING = """
import subprocess, sys
import numpy as np
import p4gen

with p4gen.join() as group:
    command = [sys.executable, "-m", "p4gen", "manager", "rollout", *sys.argv[1:]]
    rollout = subprocess.Popen(command) if group.rank == 0 else None
    over = 0
    while not over:  # calls go on until it has ended
        ended = rollout is not None and rollout.poll() is not None
        over, total = group.all_reduce(np.array([ended, group.rank + 1], np.int32))
        assert total == sum(range(1, group.size + 1))
    if rollout is not None:
        print("rollout ended with", rollout.returncode)
"""


def program(folder: Path, text: str) -> str:
    file = folder / "program.py"
    file.write_text(text)
    return f"{sys.executable} {file}"


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.mark.parametrize("collective", Collective)
def test_mpi_runs_between_hosts(tmp_path: Path, machine: Traces, collective: Collective) -> None:
    """The baseline of EPIC's emulation compares its results itself, and fails if they are wrong."""
    pytest.importorskip("mpi4py")
    run = f"{sys.executable} -m p4gen.papers.epic.experiments.mpi {collective} 65536"
    done = lab(tmp_path, "star-4", "--mode", "II", *SMALL, "--exec", run, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(next(line for line in done.stderr.splitlines() if line.startswith("[0] {")).partition(" ")[2])
    sizes = [0] if collective is Collective.BARRIER else [4 << 10, 16 << 10, 64 << 10]
    assert [(row["collective"], row["size"], row["calls"]) for row in found["rows"]] == [
        (collective, size, 10) for size in sizes
    ]
    assert all(row["mean"] > 0 for row in found["rows"])
    assert "MPICH" in found["library"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("mode", ["I", "II", "III"])
def test_every_host_is_a_rank(machine: Traces, tmp_path: Path, mode: str) -> None:
    found = lab(tmp_path, "star-3", "--mode", mode, *SMALL, "--exec", program(tmp_path, RANKS))
    assert found.returncode == 0, found.stdout + found.stderr
    for rank in range(3):
        assert f"[{rank}] right at h{rank}\n" in found.stdout
        assert f"[{rank}] and a line for errors\n" in found.stderr
    assert "all 3 ranks have ended with status 0" in found.stdout


WRITTEN = ("--verb", "write", "--groups", "32")
"""Switches write results to memory that ranks offer: a context for each pattern."""


def test_ranks_offer_memory_for_results(machine: Traces, tmp_path: Path) -> None:
    """Also those of a second group, in the same processes."""
    found = lab(tmp_path, "star-3", "--mode", "II", *SMALL, *WRITTEN, "--exec", program(tmp_path, RANKS))
    assert found.returncode == 0, found.stdout + found.stderr
    assert "all 3 ranks have ended with status 0" in found.stdout


def test_a_link_is_cut_meanwhile_and_only_some_hosts_are_ranks(machine: Traces, tmp_path: Path) -> None:
    more = "    for _ in range(200):\n        group.all_reduce(values)\n"
    text = RANKS.replace('    print("right at"', f'{more}    print("right at"')
    arguments = ("--ranks", "h0,h2,h4", "--fail", "leaf0-spine0@1s", "--json", "--seed", "1")
    found = lab(tmp_path, "leaf-spine", "--mode", "III", *SMALL, *arguments, "--exec", program(tmp_path, text))
    assert found.returncode == 0, found.stdout + found.stderr
    assert json.loads(found.stdout.splitlines()[-1])["statuses"] == {"h0": 0, "h2": 0, "h4": 0}
    assert "[2] right at h4\n" in found.stderr


def test_the_death_of_a_rank_ends_the_calls_of_others_by_name(machine: Traces, tmp_path: Path) -> None:
    found = lab(tmp_path, "star-3", "--mode", "III", *SMALL, "--exec", program(tmp_path, DYING))
    assert found.returncode == 137, found.stdout + found.stderr
    for rank in (0, 2):
        assert f"[{rank}] told: " in found.stderr
    assert found.stderr.count("h1 has gone away") >= 2
    assert "rank 1 (h1) has failed with status 137" in found.stdout
    assert "exit statuses: h0 1, h1 137, h2 1" in found.stdout


@pytest.mark.parametrize("mode", [("III",), ("II", *WRITTEN)], ids=["send", "write"])
def test_a_group_goes_on_without_a_rank_that_has_died_and_takes_in_another_one(
    machine: Traces, tmp_path: Path, mode: tuple[str, ...]
) -> None:
    found = lab(tmp_path, "star-4", "--mode", *mode, *SMALL, "--exec", f"{program(tmp_path, ELASTIC)} || true")
    assert found.returncode == 0, found.stdout + found.stderr
    for rank, all_to_all in ((0, [0, 10, 20]), (2, [1, 11, 21])):
        lines = [line.partition("] ")[2] for line in found.stdout.splitlines() if line.startswith(f"[{rank}]")]
        assert lines[0] == "sum of 3: 6"
        assert lines[1] == "told: allreduce of group work: h1 has gone away"
        assert lines[2:] == ["left out: h1", "sum of 2: 3", "sum of 3: 6", f"all {all_to_all}"]
    assert "[3] sum of 3: 6\n" in found.stdout


def test_what_never_ends_is_ended(machine: Traces, tmp_path: Path) -> None:
    command = "trap '' TERM; [ $RANK = 0 ] && exit 3; sleep 1000 & wait; sleep 1000"
    found = lab(tmp_path, "star-2", "--mode", "II", *SMALL, "--deadline", "3", "--exec", command)
    assert found.returncode == 137, found.stdout + found.stderr
    assert "rank 1 (h1) did not end in time, and is ended" in found.stdout


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (("--loss", "1%"), "--loss 1% does not go with --exec, as programs' own NICs have no faults"),
        (("--delay", "1ms@h0"), "--delay 1ms@h0 does not go with --exec"),
        (("--hosts", "h1=softroce", "--delay", "1ms@h0"), "--delay 1ms@h0 does not go with --exec"),
        (("--size", "1M"), "--size does not go with --exec: the programs make the calls"),
        (("--suite",), "--suite or --exec, not both"),
        (("--ranks", "h0", "--ranks", "h1"), "--exec takes --ranks once"),
    ],
)
def test_options_of_the_labs_own_hosts_are_refused(tmp_path: Path, arguments: tuple[str, ...], cause: str) -> None:
    found = lab(tmp_path, "star-2", "--exec", "true", *arguments)
    assert found.returncode == 2
    assert cause in " ".join(found.stderr.split())


@pytest.mark.parametrize("collective", ["allreduce", "reduce", "broadcast", "allgather", "barrier"])
def test_hosts_measure_calls_and_check_them(machine: Traces, tmp_path: Path, collective: str) -> None:
    sizes = "" if collective == "barrier" else "-b 1K -e 4K"
    command = f"{sys.executable} -m p4gen host --collective {collective} {sizes} --repeat 2 --root 1"
    found = lab(tmp_path, "star-3", "--mode", "II", *SMALL, "--exec", command)
    assert found.returncode == 0, found.stdout + found.stderr
    lines = [line.split() for line in found.stdout.splitlines() if line.startswith("[0]") and "#" not in line]
    assert len(lines) == (3 if sizes else 1)
    assert all(line[-1] == "0" for line in lines)
    for rank in (1, 2):
        assert f"[{rank}] rank {rank} (h{rank}): 0 wrong results\n" in found.stdout


def test_a_host_is_told_what_is_wrong_with_its_connection(machine: Traces, tmp_path: Path) -> None:
    script = """
        [ $RANK = 0 ] || exit 0
        doctor() { "$PYTHON" -m p4gen doctor --host "$1" || echo "status $?"; }
        doctor h0
        ip link set $P4GEN_INTERFACE mtu 80; doctor h0; ip link set $P4GEN_INTERFACE mtu 9000
        ip link set $P4GEN_INTERFACE down; doctor h0; ip link set $P4GEN_INTERFACE up
        ip addr flush dev $P4GEN_INTERFACE; doctor h0
        doctor h7
        P4GEN_MANAGER=127.0.0.1:1 doctor h0
    """
    found = lab(tmp_path, "star-2", "--mode", "II", *SMALL, "--exec", f"PYTHON={sys.executable}; {script}")
    assert found.returncode == 0, found.stdout + found.stderr
    lines = [line.partition("] ")[2] for line in found.stdout.splitlines() if line.startswith("[0] ")]
    runs = "\n".join(lines).split("ok     manager")
    assert [run.count("status 1") for run in runs] == [0, 0, 1, 1, 1, 2]
    assert re.search(r"ok     loss, order  0 of [\d,]+ packets were sent again", runs[1])
    assert "an MTU of 80; payloads of 64 bytes need 124: ip link set h0-eth0 mtu 124" in runs[2]
    assert "wrong  link         h0-eth0 has no link" in runs[3]
    assert "wrong  interface    no interface has 10.0.0.1" in runs[4]
    assert "wrong  host         there is no host 'h7'" in runs[5]
    assert "wrong  manager      no manager answers at 127.0.0.1:1" in runs[5]


@pytest.mark.parametrize("ip", ["6", "both"])
def test_programs_and_the_doctor_over_ipv6(machine: Traces, tmp_path: Path, ip: str) -> None:
    doctor = f"{sys.executable} -m p4gen doctor --host h0"
    own = f"{sys.executable} -m p4gen.labs.hosts.ping -c 1 $MASTER_ADDR"
    command = f"{program(tmp_path, RANKS)} && if [ $RANK = 0 ]; then {own} && {doctor}; fi"
    found = lab(tmp_path, "star-3", "--mode", "II", "--ip", ip, *SMALL, "--exec", command)
    assert found.returncode == 0, found.stdout + found.stderr
    for said in (
        "right at h2",
        "h0 is fd00:0:0:1::1",
        "fe80::1 is at 02:00:00:01:00:01",
        "payloads of 64 bytes need 144",
    ):
        assert said in found.stdout, found.stdout


@pytest.mark.parametrize(
    ("topology", "words", "said"),
    [
        ("leaf-spine", "--mode III --reliability gbn", ["leaf0: ", "leaf1: ", "spine0: ", "spine1: ", "ended with 0"]),
        ("star-3", "--mode themis --wait 2", ["s0: group world is broken after 2 s", "is back", "ended with 1"]),
    ],
)
def test_calls_go_on_while_another_program_is_rolled_out(
    machine: Traces, tmp_path: Path, topology: str, words: str, said: list[str]
) -> None:
    lanes = "" if "themis" in words else " ".join(SMALL)
    command = f"{program(tmp_path, ROLLING)} {words} {lanes} --out {tmp_path}/build"
    found = lab(tmp_path, topology, "--mode", "III", *SMALL, "--exec", command)
    assert found.returncode == 0, found.stdout + found.stderr
    places = [found.stdout.find(text) for text in said]
    assert -1 not in places
    assert places == sorted(places), found.stdout


def test_a_host_says_what_it_lacks(tmp_path: Path) -> None:
    for words, cause in (
        (["h0"], "the manager is not given, and P4GEN_MANAGER is not set"),
        (["h0", "--collective", "barrier", "-b", "1K"], "a barrier has no data: omit --minbytes"),
        ([], "missing argument 'NAME'"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "p4gen", "host", *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert cause in done.stderr


def test_the_example_of_quantised_gradients_runs(machine: Traces, tmp_path: Path) -> None:
    command = f"{sys.executable} {ROOT / 'examples' / 'quantised_gradients.py'}"
    found = lab(tmp_path, "star-4", "--mode", "II", "--exec", command)
    assert found.returncode == 0, found.stdout + found.stderr
    lines = [line for line in found.stdout.splitlines() if line.startswith("[0] scale")]
    assert len(lines) == 4
    assert lines[0].endswith(" 0 of 100,000 numbers saturated")
