"""``torch.distributed`` on generated switches: the backend ``inc``, in labs. Skipped without torch."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from .labs import BMV2, SMALL, lab
from .traces import Traces

pytest.importorskip("torch")
HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
DYING = """
import os, signal, torch
import torch.distributed as dist
import p4gen.torch
dist.init_process_group("inc")
if dist.get_rank() == 1:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    while True:
        dist.all_reduce(torch.ones(8))
except RuntimeError as error:
    raise SystemExit(f"told: {error}")
"""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))  # otherwise torch leaves a folder in TMPDIR


def run(out: Path, *arguments: str, program: Path, options: str = "") -> str:
    found = lab(out, *arguments, "--exec", f"{sys.executable} {program} {options}")
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def losses(text: str) -> list[float]:
    return [float(found) for found in re.findall(r"^\[0\] step \d+ loss (\S+)$", text, re.MULTILINE)]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "program",
    [("II", *SMALL), ("III", *SMALL), ("I", *SMALL, "--verb", "write", "--groups", "64"), ("switchml",), ("atp",)],
    ids=lambda program: program[0],
)
def test_every_call_is_right(machine: Traces, tmp_path: Path, program: tuple[str, ...]) -> None:
    """Whatever the program lacks is made of what it has."""
    found = run(tmp_path, "star-4", "--mode", *program, program=HERE / "torch_programs" / "collectives.py")
    assert [f"[{rank}] right at rank {rank}\n" in found for rank in range(4)] == [True] * 4


def test_tensor_parallelism_and_sharded_parameters(machine: Traces, tmp_path: Path) -> None:
    found = run(tmp_path, "star-2", "--mode", "II", *SMALL, program=HERE / "torch_programs" / "parallel.py")
    for name in ("tensor", "fully_shard", "FullyShardedDataParallel"):
        assert f"[1] {name}: right at rank 1\n" in found


@pytest.mark.sample(1)
@pytest.mark.parametrize("target", ["embedded", pytest.param("bmv2", marks=BMV2)])
@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_training_is_gloos_while_links_fail(machine: Traces, tmp_path: Path, parallel: str, target: str) -> None:
    """The group moves to another tree, or waits for the link; gloo's sums are rounded in another order."""
    program, options = ROOT / "examples" / "train_ddp.py", f"--steps 12 --parallel {parallel}"
    hosts = ("--target", target, "--ranks", "h0,h2,h4,h6")
    cuts = ("--fail", "leaf0-spine0@1s", "--fail", "h2-leaf1@8s-9s")
    ours = losses(run(tmp_path, "leaf-spine", "--mode", "III", *hosts, *cuts, program=program, options=options))
    gloos = losses(run(tmp_path, "star-4", "--mode", "II", program=program, options=f"{options} --backend gloo"))
    assert len(gloos) == 12
    assert ours == pytest.approx(gloos, rel=1e-4)
    assert ours[-1] < ours[0]


@pytest.mark.parametrize("mode", ["switchml", "atp"])
def test_training_on_sums_is_gloos(machine: Traces, tmp_path: Path, mode: str) -> None:
    """Gradients are blocks with a common exponent, as in SwitchML's paper."""
    program, options = ROOT / "examples" / "train_ddp.py", "--steps 4"
    ours = losses(run(tmp_path, "star-4", "--mode", mode, program=program, options=options))
    gloos = losses(run(tmp_path, "star-4", "--mode", "II", program=program, options=f"{options} --backend gloo"))
    assert len(gloos) == 4
    assert ours == pytest.approx(gloos, rel=1e-4)
    assert ours[-1] < ours[0]


def test_the_death_of_a_rank_is_told_by_name(machine: Traces, tmp_path: Path) -> None:
    program = tmp_path / "dying.py"
    program.write_text(DYING)
    found = lab(tmp_path, "star-3", "--mode", "II", *SMALL, "--exec", f"{sys.executable} {program}")
    assert found.returncode == 137, found.stdout + found.stderr
    for rank in (0, 2):
        assert re.search(rf"^\[{rank}\] told: .*h1 has gone away$", found.stderr, re.MULTILINE), found.stderr
