"""p4c's back end for Tofino, as a process: a stand-in ends in all the ways that a compiler can end."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner
from tna_programs import ACTION, ingress, program

from p4gen.builder import build
from p4gen.chips.tna.p4c import LOG, VARIABLE, command, compile_for_tofino, compiling, find
from p4gen.cli.check import command as check
from p4gen.errors import FailedError, InputError, MissingToolError, Pos
from p4gen.families import parse_spec
from p4gen.p4.p4c import CompilerCall
from p4gen.p4.toolchain import Toolchain

MANIFEST = '{"compilation_succeeded": true, "compiler_version": "9.13"}'


def stand_in(folder: Path, script: str, name: str = "p4c") -> str:
    """A program that runs ``script`` with the output's folder as ``$out``."""
    file = folder / name
    find_out = 'while [ $# -gt 1 ]; do [ "$1" = -o ] && out=$2; shift; done\n'
    file.write_text(f'#!/bin/sh\necho "called with $*"\n{find_out}{script}\n', encoding="utf-8")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


def call(folder: Path, timeout_s: float | None = None) -> CompilerCall:
    """A call for a program with an action on a register."""
    source = folder / "t.p4"
    source.write_text(ingress("meta.y = add.execute(meta.x);", ACTION), encoding="utf-8")
    return CompilerCall(source, folder / "out", timeout_s)


def test_the_command_is_that_of_p4c_for_tofino(tmp_path: Path) -> None:
    made = command("/x/p4c", "t2na", CompilerCall(Path("t.p4"), tmp_path, defines=("A=1",), includes=(tmp_path,)))
    assert made[1:10] == ["--target", "tofino2", "--arch", "t2na", "--std", "p4-16", "-g", "--verbose", "1"]
    assert "--p4runtime-force-std-externs" in made
    assert made[-6:] == ["-o", str(tmp_path), "-DA=1", "-I", str(tmp_path), "t.p4"]
    back_end = command("/x/p4c-barefoot", "tna", CompilerCall(Path("t.p4"), tmp_path))
    assert "-D__TARGET_TOFINO__=1" in back_end
    assert "--verbose" not in back_end


def test_success_is_status_0_and_the_manifests_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, stand_in(tmp_path, f"echo '{MANIFEST}' > $out/manifest.json"))
    made = compiling("tna")(call(tmp_path))
    assert made is not None
    assert made[0] == "9.13"
    assert made[1].json == tmp_path / "out" / "manifest.json"
    assert "--target tofino --arch tna" in (tmp_path / "out" / LOG).read_text(encoding="utf-8")


def test_a_refusal_of_an_experiment_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mode III is built whatever p4c says of it; Mode II is not."""
    monkeypatch.setenv(VARIABLE, stand_in(tmp_path, "echo 'error: PHV allocation was not successful'; exit 1"))
    fields = {"arch": "t2na", "lanes": 8, "fan_in": 2, "ports": 8, "groups": 1}
    built = build(parse_spec({**fields, "mode": "III"}), tmp_path)
    assert built.refusal is not None
    assert "refused" in built.refusal
    assert (built.p4c, built.program.is_file()) == (None, True)
    with pytest.raises(FailedError, match="refused"):
        build(parse_spec(fields), tmp_path)


RESOURCES = '{"resources": {"mau": {"nStages": 12, "mau_stages": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]}}}'
FAILURES = {
    f"cd $out; echo '{MANIFEST}' > manifest.json; mkdir -p pipe/logs; echo '{RESOURCES}' > pipe/logs/resources.json": (
        "spread {} over 13 stages; there are 12"
    ),
    "exit 3": "refused {} (exit status 3)",
    "kill -SEGV $$": "ended by SIGSEGV on {}",
    "exit 0": "ended well on {}, but manifest.json does not say compilation_succeeded",
    "echo '{\"compilation_succeeded\": false}' > $out/manifest.json": "but manifest.json does not say",
    "echo nonsense > $out/manifest.json": "but manifest.json does not say",
}


@pytest.mark.parametrize("script", FAILURES)
def test_how_it_failed_is_said_and_the_log_is_kept(script: str, tmp_path: Path) -> None:
    program = stand_in(tmp_path, f"echo some words\n{script}")
    asked = call(tmp_path)
    with pytest.raises(FailedError) as caught:
        compile_for_tofino(program, "tna", asked)
    assert FAILURES[script].format(asked.source) in str(caught.value)
    assert str(tmp_path / "out" / LOG) in str(caught.value)
    assert "some words" in (tmp_path / "out" / LOG).read_text(encoding="utf-8")


def test_the_log_outlives_a_driver_that_cleans_its_output(tmp_path: Path) -> None:
    asked = call(tmp_path)
    with pytest.raises(FailedError, match="not enough of it"):
        compile_for_tofino(stand_in(tmp_path, "echo 'error: not enough of it'; rm -f $out/*.log; exit 1"), "tna", asked)
    assert [file.name for file in tmp_path.iterdir() if LOG in file.name] == []


def test_an_earlier_manifest_does_not_count(tmp_path: Path) -> None:
    asked = call(tmp_path)
    asked.out.mkdir()
    (asked.out / "manifest.json").write_text(MANIFEST, encoding="utf-8")
    with pytest.raises(FailedError):
        compile_for_tofino(stand_in(tmp_path, "exit 0"), "tna", asked)


def test_what_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    fifo = tmp_path / "alive"
    os.mkfifo(fifo)
    # The child holds the pipe open for writing: the reader sees its end once no process of the compiler is left.
    program = stand_in(tmp_path, f"sleep 3600 > {fifo} &\necho begun\nwait")
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(FailedError, match="did not end within 2 s"):
        compile_for_tofino(program, "tna", call(tmp_path, 2))
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b""
    os.close(reader)
    assert "begun" in (tmp_path / "out" / LOG).read_text(encoding="utf-8")


def test_errors_lead_to_templates_and_declarations(tmp_path: Path) -> None:
    log = (
        "warning: nothing\\ntemplates/modules/slot.p4.j2(12): [--Werror=overlimit] error: too many comparisons\\n"
        "error: Could not place table: pipe.Ig.reg$split does not fit\\n2 errors, 1 warnings generated."
    )
    program = stand_in(tmp_path, f"printf '{log}'\nexit 1")
    asked = call(tmp_path)
    with pytest.raises(FailedError) as caught:
        compile_for_tofino(program, "tna", asked)
    _, first, second = caught.value.diagnostics
    assert first.where == Pos("templates/modules/slot.p4.j2", 12, 1)
    assert first.message == "p4c: too many comparisons"
    assert isinstance(second.where, Pos)
    lines = asked.source.read_text(encoding="utf-8").splitlines()
    assert "Register<bit<32>, bit<16>>(1024, 7) reg;" in lines[second.where.line - 1]


def told(tmp_path: Path, log: str, text: str = "") -> list[tuple[str, str]]:
    """The errors of a failed compilation with this log: a word of the line that each is at, and its message."""
    asked = call(tmp_path)
    if text:
        asked.source.write_text(text, encoding="utf-8")
    (tmp_path / "said").write_text(log, encoding="utf-8")
    with pytest.raises(FailedError) as caught:
        compile_for_tofino(stand_in(tmp_path, f"cat {tmp_path}/said\nexit 1"), "tna", asked)
    lines = asked.source.read_text(encoding="utf-8").splitlines()
    found = []
    for one in caught.value.diagnostics[1:]:
        at = one.where
        inside = isinstance(at, Pos) and at.file == str(asked.source)
        found.append((lines[at.line - 1].strip() if inside else str(at), one.message))  # type: ignore[union-attr]
    return found


FIELDS = """b.p4(8): [--Wwarn=unused] warning: nothing
error: Unable to slice the following group of fields due to unsatisfiable constraints: ingress::hdr.h.c

error: PHV allocation was not successful
3 field slices remain unallocated

The following fields were not allocated:
    ingress::hdr.h.c<16b>
    ingress::hdr.h.d<32b>[31:16]
    ingress::meta.x<16b>


error: This program violates action constraints imposed by Tofino2.

templates/modules/slot.p4.j2(14):
    action go() { hdr.h.c = 1; }
           ^^

  Action Ig.go must be rewritten.
2 errors, 1 warning generated.
"""


def test_a_failed_allocation_of_fields_leads_to_the_modules_that_use_them(tmp_path: Path) -> None:
    text = program(
        """control Mark(inout headers hdr, inout metadata meta) { apply { meta.x = hdr.h.c; hdr.h.d = 5; } }
control Ig(inout headers hdr, inout metadata meta, in ingress_intrinsic_metadata_t i,
    in ingress_intrinsic_metadata_from_parser_t p, inout ingress_intrinsic_metadata_for_deparser_t d,
    inout ingress_intrinsic_metadata_for_tm_t t) { Mark() mark; apply { mark.apply(hdr, meta); hdr.h.c = 1; } }"""
    )
    slices, fields, action = told(tmp_path, FIELDS, text)
    assert slices[0].startswith("control Ig(")
    assert slices[1].endswith("; by the fields it names, of Ig 1, Ig.mark 1")
    assert fields == (
        "control Mark(inout headers hdr, inout metadata meta) { apply { meta.x = hdr.h.c; hdr.h.d = 5; } }",
        "p4c: PHV allocation was not successful: 3 field slices remain unallocated;"
        " by the fields it names, of Ig.mark 3, Ig 1",
    )
    assert action == (
        "templates/modules/slot.p4.j2:14:1",
        "p4c: This program violates action constraints imposed by Tofino2",
    )


def test_a_place_behind_the_word_error_counts_too(tmp_path: Path) -> None:
    log = (
        "error: templates/modules/lane.p4.j2(16): Could not place table tbl_b16: The table tbl_b16 could not fit within"
        " the input crossbar by itself: Ig.reg requires more than 2 PHV inputs\n   r = act.execute(1);\n\n1 error, 3 w"
    )
    ((place, message),) = told(tmp_path, log)
    assert place == "templates/modules/lane.p4.j2:16:1"
    assert message.startswith("p4c: Could not place table tbl_b16: ")


def test_what_p4c_writes_about_placement_is_read(tmp_path: Path) -> None:
    asked = call(tmp_path)
    script = (
        "mkdir -p $out/pipe/logs\nprintf 'Stage 0\\nIg.reg not placed\\n' > $out/pipe/logs/table_summary.log\nexit 1"
    )
    with pytest.raises(FailedError) as caught:
        compile_for_tofino(stand_in(tmp_path, script), "tna", asked)
    (_, found) = caught.value.diagnostics
    assert found.message == "p4c: Ig.reg not placed"
    assert isinstance(found.where, Pos)
    assert "reg;" in asked.source.read_text(encoding="utf-8").splitlines()[found.where.line - 1]


def test_p4c_on_path_counts_if_it_knows_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert find("tna") is None
    stand_in(tmp_path, "echo bmv2-v1model")
    assert find("tna") is None
    made = stand_in(tmp_path, "echo bmv2-v1model\necho tofino-tna\necho tofino2-t2na")
    assert find("tna") == find("t2na") == made
    monkeypatch.setenv("PATH", "/nowhere")
    assert find("tna") is None
    sde = tmp_path / "sde"
    (sde / "bin").mkdir(parents=True)
    made = stand_in(sde / "bin", "echo tofino-tna")
    monkeypatch.setenv("SDE_INSTALL", str(sde))
    assert find("tna") == made
    assert find("t2na") is None
    monkeypatch.setenv(VARIABLE, str(tmp_path / "nothing"))
    with pytest.raises(InputError, match="is not a program that can be run"):
        find("tna")


def test_check_asks_p4c_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    source = call(tmp_path).source
    argv = [str(source), "--p4c", str(tmp_path / "out"), "--p4c-timeout", "60"]
    done = CliRunner().invoke(check, argv)
    assert isinstance(done.exception, MissingToolError)
    assert "no p4c for tofino on PATH, and P4C_TOFINO names none" in str(done.exception)
    monkeypatch.setenv(VARIABLE, stand_in(tmp_path, "echo 'error: no room'\nexit 1"))
    done = CliRunner().invoke(check, argv)
    assert done.exit_code == 1
    assert "error: p4c: no room" in done.output
    monkeypatch.setenv(VARIABLE, stand_in(tmp_path, f"echo '{MANIFEST}' > $out/manifest.json"))
    assert CliRunner().invoke(check, argv).exit_code == 0


def test_a_build_keeps_both_manifests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, stand_in(tmp_path, f"sleep 1\necho '{MANIFEST}' > $out/manifest.json"))
    spec = parse_spec({"mode": "II", "arch": "t2na", "lanes": 8})
    built = build(spec, tmp_path / "built")
    assert json.loads((built.folder / "manifest.json").read_text())["program"] == spec.program
    output = built.folder / spec.architecture.facet(Toolchain).output
    assert json.loads((output / "manifest.json").read_text()) == json.loads(MANIFEST)
    assert (output / LOG).is_file()


def test_a_build_compares_p4info(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = f"echo '{MANIFEST}' > $out/manifest.json\ncp {tmp_path}/theirs $out/p4info.txtpb"
    monkeypatch.setenv(VARIABLE, stand_in(tmp_path, written))
    spec = parse_spec({"mode": "II", "arch": "t2na", "lanes": 8})
    info = build(spec, tmp_path / "built", use_p4c=False).folder / f"{spec.program}.p4info.txtpb"
    theirs = info.read_text(encoding="utf-8")
    (tmp_path / "theirs").write_text(theirs + 'externs { extern_type_name: "Snapshot" }\n', encoding="utf-8")
    assert build(spec, tmp_path / "built").p4c == "9.13"
    (tmp_path / "theirs").write_text(theirs.replace('"IncIngress.drops"', '"IncIngress.other"'), encoding="utf-8")
    with pytest.raises(FailedError, match=r"P4Info differs from p4c's(?s:.*)IncIngress\.other is missing"):
        build(spec, tmp_path / "built")
