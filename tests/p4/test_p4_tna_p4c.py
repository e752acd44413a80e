"""p4c's back end for Tofino, as a process: a stand-in ends in all the ways that a compiler can end."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner
from tna_programs import ACTION, ingress

from p4gen.arch.tna.p4c import LOG, VARIABLE, command, compile_for_tofino, compiling, find
from p4gen.cli.check import command as check
from p4gen.errors import FailedError, InputError, MissingToolError, Pos
from p4gen.p4.p4c import CompilerCall

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


FAILURES = {
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


def test_p4c_on_path_counts_if_it_knows_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert find("tna") is None
    stand_in(tmp_path, "echo bmv2-v1model")
    assert find("tna") is None
    made = stand_in(tmp_path, "echo bmv2-v1model\necho tofino-tna\necho tofino2-t2na")
    assert find("tna") == find("t2na") == made
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
