"""Programs for Tofino against v1model's, under the same groups and traffic: equal but for what they lack, and able to
fail."""

from __future__ import annotations

import functools
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from p4gen.difftest.across import Change, Pair, updates
from p4gen.difftest.across_run import Job, Result, reference_of
from p4gen.difftest.events import Packet, Replication, Request
from p4gen.errors import InputError
from p4gen.groups.group import SwitchConfig
from p4gen.p4 import ir
from p4gen.p4.compile import compile_file, compile_text
from p4gen.papers.epic.capabilities import capabilities
from p4gen.papers.epic.spec import EpicSpec
from p4gen.papers.epic.traffic.across import AcrossTraffic
from p4gen.program import compose, render
from p4gen.ptf.mutations import Mutation
from p4gen.stf import parse_file
from p4gen.stf import run as run_stf

SMALL = {"lanes": 8, "window": 2, "message": 2, "groups": 16, "fan_in": 6, "ports": 8}
SEED = 11
FAULTS = (
    Mutation("ttl-kept", "Forward", "hdr.ipv4.ttl = hdr.ipv4.ttl - 1;", ""),
    Mutation("qp-kept", "TranslateHeader", "hdr.bth.dest_qp = dest_qp;", ""),
    # Of AckReq the two may differ, but not in any way.
    Mutation(
        "ack-request-lost", "TranslateHeader", "hdr.ipv4.ttl = 64;", "hdr.ipv4.ttl = 64; hdr.bth.ack_request = 0;"
    ),
    Mutation("mark-lost", "TranslateHeader", "hdr.ipv4.ttl = 64;", "hdr.ipv4.ttl = 64; hdr.ipv4.ecn = 0;"),
    Mutation("arp-unanswered", "AnswerArp", "hdr.arp.form = ARP_REPLY;", ""),
)


def spec(arch: str, **fields: object) -> EpicSpec:
    return EpicSpec.model_validate(SMALL | {"arch": arch, **fields})


@functools.cache
def program(of: EpicSpec, fault: Mutation | None = None) -> ir.Program:
    text = render(compose(of)).text
    return compile_text(fault.apply(text) if fault else text, f"{of.program}.p4").program


def pair(
    arch: str, seed: int = SEED, faulty: str = "", fault: Mutation | None = None, **fields: object
) -> tuple[Pair, AcrossTraffic]:
    tested = spec(arch, **fields)
    reference = reference_of(tested, "v1model")
    assert isinstance(reference, EpicSpec)
    traffic = AcrossTraffic(reference, tested, seed)
    programs = [(of, program(of, fault if of.arch == faulty else None)) for of in (reference, tested)]
    return Pair(programs[0], programs[1], traffic), traffic


@pytest.mark.parametrize(("arch", "stale"), [("t2na", "half"), ("tna", "stale")])
@pytest.mark.long
def test_what_leaves_is_equal_but_for_the_capabilities(arch: str, stale: str) -> None:
    both, traffic = pair(arch)
    found = both.run(traffic.steps(), 800)
    assert found is None, f"seed {SEED}: {found.difference}"
    tally = both.tally
    assert (tally.packets, tally.outputs > 200, tally.changes > 15) == (800, True, True)
    assert set(traffic.capabilities) == {each.name for each in capabilities(spec(arch))}
    assert stale in traffic.capabilities
    wanted = {"announcements", "ack_request", "padding", "mixed_opcode", "early"} | (
        {"stale"} if arch == "tna" else set()
    )
    assert tally.exceptions.keys() == wanted
    assert sum(tally.exceptions.values()) < 0.3 * tally.packets


@pytest.mark.parametrize(
    ("arch", "fields"),
    [
        ("t2na", {"ports": 128}),
        ("t2na", {"ports": 128, "lanes": 16, "payload_pipes": 2}),
        ("tna", {"ports": 256, "lanes": 32, "payload_pipes": 4}),
        ("t2na", {"ports": 128, "lanes": 16, "payload_pipes": 2, "icrc": "set"}),
        ("tna", {"ports": 256, "lanes": 32, "payload_pipes": 4, "icrc": "set"}),
    ],
    ids=["several-pipes", "fold-2", "fold-4", "fold-2-icrc", "fold-4-icrc"],
)
@pytest.mark.long
def test_groups_in_different_pipes_and_folded_payloads(arch: str, fields: dict[str, Any]) -> None:
    tested = spec(arch, **fields)
    both, traffic = pair(arch, **fields)
    groups = [group for stream in traffic.streams for group in stream.served.contexts]
    pipes = {tested.architecture.pipe_of(edge.port) for group in groups for edge in group.edges}
    assert len(pipes) > 1, f"seed {SEED}"
    found = both.run(traffic.steps(), 400)
    assert found is None, f"seed {SEED}: {found.difference}"
    assert both.tally.outputs > 100
    assert "apart" not in both.tally.exceptions


@pytest.mark.parametrize("icrc", ["set", "recompute"])
def test_icrcs_are_equal_too(icrc: str) -> None:
    both, traffic = pair("t2na", icrc=icrc)
    found = both.run(traffic.steps(), 300)
    assert found is None, f"seed {SEED}: {found.difference}"
    assert both.tally.outputs > 70
    assert both.tally.exceptions["ack_request"] > 0
    assert "icrc" not in traffic.capabilities


@pytest.mark.sample(4)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
@pytest.mark.parametrize("side", ["t2na", "v1model"])
def test_faults_in_either_program_are_found(fault: Mutation, side: str) -> None:
    both, traffic = pair("t2na", faulty=side, fault=fault)
    found = both.run(traffic.steps(), 1500)
    assert found is not None, f"seed {SEED}"
    # The same from the seed again, and from its steps.
    again, traffic = pair("t2na", faulty=side, fault=fault)
    assert again.run(traffic.steps(), 1500) == found
    assert again.replay(found.steps) == found.difference


def test_an_exception_is_none_for_a_program_that_has_the_capability() -> None:
    """v1model against itself as the program of fewer ports: nothing is excused."""
    tested = spec("v1model")
    traffic = AcrossTraffic(tested, tested, SEED)
    both = Pair((tested, program(tested)), (tested, program(tested)), traffic)
    assert both.run(traffic.steps(), 400) is None
    assert not traffic.capabilities
    assert not both.tally.exceptions


def test_updates_turn_one_configuration_into_another() -> None:
    _, traffic = pair("t2na")
    held: dict[object, object] = {}
    before = SwitchConfig((), ())
    for step in [traffic.setup(), *itertools.islice(traffic.steps(), 400)]:
        if not isinstance(step, Change):
            continue
        for update in updates(before, step.tested):
            if isinstance(update, Replication):
                held[update.group.group_id] = update.group
                continue
            assert isinstance(update, Request)
            key = update.entry.table, str(sorted((name, repr(m)) for name, m in update.entry.match.items()))
            assert (key in held) == (update.verb != "insert")
            held[key] = update.entry
            if update.verb == "delete":
                del held[key]
        before = step.tested
        entries = [entry for key, entry in held.items() if isinstance(key, tuple)]
        assert sorted(map(repr, entries)) == sorted(map(repr, before.entries))
        assert all(held[group.group_id] == group for group in before.multicast_groups)


def test_a_difference_is_reduced_to_files_that_show_it(tmp_path: Path) -> None:
    tested = spec("t2na")
    job = Job(reference_of(tested, "v1model"), tested, SEED, 1500, tmp_path, fault=FAULTS[0], faulty="t2na")
    result: Result = job.run()
    assert result.difference is not None
    assert [type(step) for step in result.reduced] == [Packet]
    pcap, stf, story = result.files
    assert pcap.stat().st_size > 24
    assert f"seed {SEED}, fault ttl-kept@t2na" in story.read_text()
    faulty, sound = tmp_path / "t2na" / f"{tested.program}.p4", tmp_path / "sound.p4"
    sound.write_text(render(compose(tested)).text)
    assert run_stf(compile_file(sound).program, parse_file(stf)).passed
    assert not run_stf(compile_file(faulty).program, parse_file(stf)).passed


@pytest.mark.long
def test_the_command_names_and_counts_exceptions(tmp_path: Path) -> None:
    def ended(*words: str) -> subprocess.CompletedProcess[str]:
        common = ["--mode", "II", "--arch", "t2na", "--lanes", "8", "--window", "2", "--message", "2", "--ports", "8"]
        command = [sys.executable, "-m", "p4gen", "difftest", *common, "--engine", "interp", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    done = ended("--against", "v1model", "--packets", "300", "--seed", "5")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "without ack_request: a slot's PSN, epoch and bitmap fill its words: a result has the AckReq" in done.stdout
    (folder,) = (tmp_path / "build" / "runs").iterdir()
    record = json.loads((folder / "run.json").read_text())
    assert record["passed"]
    assert record["tally"]["exceptions"]["ack_request"] > 0
    for words, cause in (
        (("--against", "nothing"), "must be one of"),
        (("--against", "v1model", "--faults"), "--faults is for BMv2"),
        (("--against", "v1model", "--fault", "none@t2na"), "no fault none exists"),
        (("--against", "v1model", "--fault", "none@bmv2"), "must be NAME@ARCH"),
    ):
        refused = ended(*words)
        assert refused.returncode == 2
        assert cause in refused.stderr
        assert len(refused.stderr.splitlines()) <= 2


def test_a_program_that_the_other_architecture_does_not_have_is_refused() -> None:
    with pytest.raises(InputError, match="--against tna: there is no such program"):
        reference_of(EpicSpec.model_validate({"ports": 510}), "tna")
    with pytest.raises(InputError, match="port 2, 6 is no port of hosts; compare t2na against tna"):
        reference_of(spec("tna"), "t2na")
