"""Scripts, Vagrantfile and Containerfile: what can be checked of them without a machine to spoil."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from p4gen import packages

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / "scripts"
SHELL = [
    path
    for path in [*SCRIPTS.iterdir(), ROOT / ".ci" / "run"]
    if path.suffix != ".txt" and path.name not in ("dashboard", "sizes")
]
TOOLS = ["awk", "bash", "cat", "dirname", "env", "id", "paste", "sed", "sort", "uname"]
GROUPS = {"base", "python", "lab", "p4", "roce"}


def table() -> list[tuple[str, str, str, str]]:
    """scripts/packages.txt: group, release, package, version."""
    lines = (SCRIPTS / "packages.txt").read_text().splitlines()
    rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    assert all(len(row) == 4 for row in rows)
    return [(group, release, package, version) for group, release, package, version in rows]


def listed(release: str, *groups: str) -> set[str]:
    """What apt is to be asked for."""
    return {
        package if version == "-" else f"{package}={version}"
        for group, of, package, version in table()
        if group in groups and of in (release, "any")
    }


def pins(text: str) -> dict[str, str]:
    """Names and versions of ``name==version`` lines."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split("==") for line in lines)


class Machine:
    """A PATH with common tools, and with an apt-get that nothing may call."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        for tool in TOOLS:
            found = shutil.which(tool)
            assert found, tool
            (self.bin / tool).symlink_to(found)
        self.command("apt-get", "echo apt-get was called >&2; exit 99")
        self.folder = folder

    def command(self, name: str, body: str) -> None:
        """Put a command onto its PATH, in place of the tool of that name."""
        (self.bin / name).unlink(missing_ok=True)
        (self.bin / name).write_text(f"#!/bin/sh\n{body}\n")
        (self.bin / name).chmod(0o755)

    def provision(self, distribution: str, version: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Run scripts/provision.sh as on that release."""
        release = self.folder / "os-release"
        release.write_text(f'NAME="Some Name"\nID={distribution}\nVERSION_ID="{version}"\n')
        return subprocess.run(
            [SCRIPTS / "provision.sh", *options],
            env={"PATH": str(self.bin), "P4GEN_OS_RELEASE": str(release)},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def installed(output: str) -> set[str]:
    """Packages that a dry run would have installed."""
    commands = [shlex.split(line) for line in output.splitlines() if "apt-get install" in line]
    return {word for command in commands for word in command[command.index("install") + 1 :] if word[0] != "-"}


@pytest.mark.parametrize("script", SHELL, ids=lambda path: path.name)
def test_shell_reads_every_script(script: Path) -> None:
    shell = "bash" if "bash" in script.read_text().partition("\n")[0] else "sh"
    done = subprocess.run([shell, "-n", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck_has_nothing_to_say() -> None:
    sourced = [path for path in SHELL if not path.read_text().startswith("#!")]
    for shell, scripts in ([], [path for path in SHELL if path not in sourced]), (["-s", "sh"], sourced):
        command = ["shellcheck", "-x", *shell, *map(str, scripts)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


@pytest.mark.skipif(shutil.which("ruby") is None, reason="ruby is not installed")
def test_vagrantfile_is_ruby() -> None:
    done = subprocess.run(["ruby", "-wc", ROOT / "Vagrantfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Syntax OK\n", "")


def test_packages_are_listed_once_in_known_groups() -> None:
    rows = table()
    assert {group for group, *_ in rows} == GROUPS
    for release in {release for _, release, *_ in rows} - {"any"}:
        names = [package for _, of, package, _ in rows if of in (release, "any")]
        assert len(names) == len(set(names)), release
    # The release pins the rest. P4's packages come from elsewhere, and Mininet is what labs are made of.
    assert all(version != "-" for group, _, package, version in rows if group == "p4" or package == "mininet")


def test_ubuntu_gets_all_that_is_listed(machine: Machine) -> None:
    done = machine.provision("ubuntu", "22.04", "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
    assert installed(done.stdout) == listed("ubuntu-22.04", *GROUPS)
    assert "p4gen-soft-roce up lab0" in done.stdout
    assert "--constraint" in done.stdout


def test_where_nobody_packages_p4_it_says_so_and_stops(machine: Machine) -> None:
    done = machine.provision("debian", "12", "--dry-run")
    assert (done.returncode, done.stdout) == (3, "")
    assert "nobody is known to package p4c and BMv2 for debian-12" in done.stderr
    assert "--without-p4" in done.stderr


def test_without_p4_and_roce_the_rest_goes_on(machine: Machine) -> None:
    done = machine.provision("debian", "12", "--dry-run", "--without-p4", "--without-roce")
    assert done.returncode == 0
    assert installed(done.stdout) == listed("debian-12", "base", "python", "lab")
    assert "rdma" not in done.stdout


def test_p4_tools_that_are_here_are_taken(machine: Machine) -> None:
    machine.command("p4c", "echo p4c 7.8.9")
    machine.command("simple_switch_grpc", "echo 4.5.6")
    done = machine.provision("debian", "12", "--dry-run", "--only", "p4")
    assert done.returncode == 0
    assert "p4c 7.8.9, BMv2 4.5.6" in done.stdout
    assert not installed(done.stdout)


@pytest.mark.parametrize(
    ("release", "options", "status", "cause"),
    [
        (("fedora", "43"), (), 3, "fedora-43 is not in scripts/packages.txt; known: debian-12 ubuntu-22.04"),
        (("ubuntu", "22.04"), ("--interfaces", "x"), 2, "unknown option --interfaces"),
        (("ubuntu", "22.04"), ("--only",), 2, "--only needs a value"),
        (("ubuntu", "22.04"), ("--only", "everything"), 2, "unknown step everything"),
    ],
)
def test_errors_name_their_cause(
    machine: Machine, release: tuple[str, str], options: tuple[str, ...], status: int, cause: str
) -> None:
    done = machine.provision(*release, "--dry-run", *options)
    assert done.returncode == status
    assert cause in done.stderr


def test_installing_needs_root(machine: Machine) -> None:
    machine.command("id", "echo 1000")
    done = machine.provision("ubuntu", "22.04")
    assert done.returncode == 3
    assert "needs root" in done.stderr


def test_container_is_the_virtual_machine_without_roce(machine: Machine) -> None:
    text = (ROOT / "Containerfile").read_text()
    calls = re.findall(r"^(?:RUN|    &&) scripts/provision\.sh (.*?)(?: \\)?$", text, re.MULTILINE)
    assert len(calls) == 4
    taken = set[str]()
    for call in calls:
        done = machine.provision("ubuntu", "22.04", "--dry-run", *call.split())
        assert (done.returncode, done.stderr) == (0, ""), call
        taken |= installed(done.stdout)
    assert taken == listed("ubuntu-22.04", *(GROUPS - {"roce"}))
    assert "apt-get" not in text, "packages are named in scripts/packages.txt only"


def test_images_are_pinned_to_the_release_that_has_p4_packages() -> None:
    assert {release for group, release, *_ in table() if group == "p4"} == {"ubuntu-22.04"}
    container = (ROOT / "Containerfile").read_text()
    assert re.findall(r"^FROM (\S+)$", container, re.MULTILINE)
    assert all(
        re.search(r"/ubuntu:jammy-\d{8}", image) for image in re.findall(r"^FROM (\S+)$", container, re.MULTILINE)
    )
    vagrant = (ROOT / "Vagrantfile").read_text()
    assert 'config.vm.box = "bento/ubuntu-22.04"' in vagrant
    assert re.search(r'config\.vm\.box_version = "\d{6}\.\d+\.\d+"', vagrant)
    assert 'path: "scripts/provision.sh"' in vagrant


def test_python_packages_are_pinned_within_the_project_s_ranges() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = pins((SCRIPTS / "constraints.txt").read_text())
    for requirement in map(Requirement, [*project["dependencies"], *project["optional-dependencies"]["dev"]]):
        version = pinned[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), (requirement, version)


def test_everything_that_is_installed_is_pinned() -> None:
    """What p4gen and its tests need, what that needs, and so on."""
    pinned = pins((SCRIPTS / "constraints.txt").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*map(Requirement, [*project["dependencies"], *project["optional-dependencies"]["dev"]])]
    seen: set[tuple[str, frozenset[str]]] = set()
    while needed:
        requirement = needed.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        assert name in pinned
        for text in metadata.requires(name) or ():
            further = Requirement(text)
            if further.marker is None or any(further.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                needed.append(further)
    assert len(seen) > 40


@dataclass(frozen=True)
class Checkout:
    """The scripts alone, with a virtual environment of stand-ins that say what they were called with."""

    folder: Path

    def tool(self, name: str, status: int = 0, says: str = "") -> None:
        path = self.folder / ".venv" / "bin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        said = f"{name} $* P4GEN_STARTS=$P4GEN_STARTS P4GEN_SEED=$P4GEN_SEED"
        path.write_text(f'#!/bin/sh\necho "{said}" >>calls\necho "{says}"\nexit {status}\n')
        path.chmod(0o755)

    def test(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if name != "P4GEN_STARTS"}
        return subprocess.run(
            [self.folder / "scripts" / "test", *arguments], env=environment, capture_output=True, text=True, check=False
        )

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    made = Checkout(tmp_path)
    (tmp_path / "scripts").mkdir()
    for name in ("test", "venv.sh", "constraints.txt"):
        shutil.copy(SCRIPTS / name, tmp_path / "scripts")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    for name in ("python", "ruff", "mypy", "p4gen"):
        made.tool(name)
    made.tool("pytest", says="7 passed, 2 skipped in 1.00s")
    return made


def test_a_step_that_fails_does_not_keep_others_from_running(checkout: Checkout) -> None:
    checkout.tool("mypy", 1, "Found 3 errors in 2 files")
    done = checkout.test("-x")
    assert done.returncode == 1
    assert "About " in done.stdout.partition("== ")[0]
    assert any(re.match(r"pytest --cache-clear -n \d+ --ignore tests/lab -x ", line) for line in checkout.calls)
    assert any(line.startswith("pytest tests/lab") for line in checkout.calls)
    summary = [line.split(maxsplit=3) for line in done.stdout.partition("== summary\n")[2].splitlines()]
    assert [(how, rest) for how, _, _, rest in summary if how != "passed"] == [
        ("FAILED", "mypy: Found 3 errors in 2 files")
    ]
    assert len(summary) == 39
    assert summary[-1][3] == "pytest tests/lab --durations 5: 7 passed, 2 skipped in 1.00s"


def test_full_leaves_nothing_out(checkout: Checkout) -> None:
    checkout.tool("simple_switch_grpc")
    checkout.tool("p4c-bm2-ss")
    assert checkout.test().returncode == 0
    (usual, calls) = checkout.calls, checkout.folder / "calls"
    calls.unlink()
    assert checkout.test("--full").returncode == 0
    assert any("ptf mutate --mode III --faults 4" in line for line in usual)
    assert any("ptf run --mode III --share 10" in line for line in usual)
    assert not any("--faults" in line or "--share" in line for line in checkout.calls)
    assert any("p4gen ptf run --mode multiwrite --out build/test --engine jit" in line for line in checkout.calls)
    for mode in ("II", "III", "themis"):
        for more in ("--engine jit", "--target bmv2"):
            assert any(f"p4gen ptf run --mode {mode} --out build/test {more}" in line for line in checkout.calls)
        assert any(f"difftest --mode {mode} --out build/test --packets 20000" in line for line in checkout.calls)
    assert any("difftest --mode themis --evidence classes" in line for line in checkout.calls)
    unit_tests = r"pytest --cache-clear -n \d+ --ignore tests/lab --full P4GEN_STARTS=100 "
    assert any(re.match(unit_tests, line) for line in checkout.calls)


def test_the_seed_is_that_of_every_step_and_drawn_for_full_only(checkout: Checkout) -> None:
    checkout.tool("simple_switch_grpc")
    checkout.tool("p4c-bm2-ss")
    seeds = []
    for arguments in ((), (), ("--seed", "5"), ("--seed=6", "--full"), ("--full",), ("--full",)):
        done = checkout.test(*arguments)
        assert done.returncode == 0
        (seed,) = {line.rpartition("P4GEN_SEED=")[2] for line in checkout.calls if not line.startswith("python ")}
        assert done.stdout.splitlines().count(f"seed {seed}") == 1
        assert f"== seed {seed}\n" in done.stdout
        seeds.append(seed)
        (checkout.folder / "calls").unlink()
    assert seeds[:4] == ["1", "1", "5", "6"]
    assert seeds[4] != seeds[5]
    assert checkout.test("--seed", "five").returncode == 3


def test_packages_have_the_versions_of_constraints_txt(checkout: Checkout) -> None:
    """And when one cannot be had, the last line says whose wish it was. A change of the file installs anew."""
    assert checkout.test().returncode == 0
    assert "pip install" in checkout.calls[0]
    assert "--constraint scripts/constraints.txt" in checkout.calls[0]
    (checkout.folder / "calls").unlink()
    assert checkout.test().returncode == 0
    assert not any("pip install" in line for line in checkout.calls)
    with (checkout.folder / "scripts" / "constraints.txt").open("a") as file:
        file.write("pytest==0.0.0\n")
    checkout.tool("python", 1)
    done = checkout.test()
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1] == (
        "p4gen: error: pip could not install p4gen with the versions of scripts/constraints.txt; see above"
    )


def test_doctor_lab_md_and_the_list_of_packages_agree() -> None:
    needed = {*packages.LAB.values()}
    # bash is part of every Debian and Ubuntu.
    assert needed - listed_names("lab") == {"bash"}
    assert packages.LIBPCAP in listed_names("lab")
    text = (ROOT / "docs" / "lab.md").read_text()
    (sentence,) = re.findall(r"^It needs root and .*?;", text, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"`([^`]+)`", sentence)) == needed
    done = subprocess.run(
        [sys.executable, "-m", "p4gen", "doctor", "--json"],
        env={"PATH": "/nowhere"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    ways = {part["part"]: part["get"] for part in json.loads(done.stdout)["parts"]}
    told = shlex.split(ways["Mininet"])[2:] + shlex.split(ways["lab tools"])[2:]
    assert set(told) == needed


def listed_names(group: str) -> set[str]:
    """Packages of a group, without versions."""
    return {package for of, _, package, _ in table() if of == group}


def test_ptf_is_what_the_advice_says() -> None:
    """PTF comes by itself, without the packages that its metadata name and that it does not import."""
    (pinned,) = pins((SCRIPTS / "ptf.txt").read_text()).items()
    assert f"pip install --no-deps {'=='.join(pinned)}" == packages.PTF
    assert metadata.version("ptf") == pinned[1]
    named = {canonicalize_name(Requirement(text).name) for text in metadata.requires("ptf") or ()}
    assert "netifaces" in named, "PTF no longer needs a compiler: it can be a dependency like all others"


def test_p4runtime_shell_has_an_environment_of_its_own() -> None:
    """With all that it needs; what p4gen itself is installed with does not depend on it."""
    pinned = pins((SCRIPTS / "shell.txt").read_text())
    wanted = f"p4runtime-shell=={pinned['p4runtime-shell']}"
    assert packages.P4RUNTIME_SHELL.endswith(f"/pip install {wanted}")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["optional-dependencies"]["shell"] == [wanted]
    ours = pins((SCRIPTS / "constraints.txt").read_text())
    assert not {"p4runtime-shell", "p4runtime"} & {*ours, *map(str, project["dependencies"])}
    assert ours["protobuf"] != pinned["protobuf"]


@pytest.mark.long
def test_p4gen_installs_beside_what_others_need(tmp_path: Path) -> None:
    """pip finds versions of all packages, and installs none."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    reached = subprocess.run([*pip, "download", "--no-deps", "--dest", tmp_path, "hatchling"], check=False)
    if reached.returncode:
        pytest.skip("no package registry is reached")
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", tmp_path, ROOT], check=True)
    (wheel,) = tmp_path.glob("p4gen-*.whl")
    beside = ["torch", "tensorflow", "protobuf>=5", "grpcio>=1.66", "jupyterlab"]
    done = subprocess.run(
        [*pip, "install", "--dry-run", "--ignore-installed", wheel, *beside],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = done.stdout.rpartition("Would install ")[2].split()
    versions = dict(name.rsplit("-", 1) for name in found)
    assert {"p4gen", "torch", "tensorflow", "jupyterlab"} <= versions.keys()
    assert "p4runtime" not in versions


def test_sizes_count_lines_by_room_and_what_a_change_added(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        who = ("-c", "user.name=n", "-c", "user.email=e@example.org")
        subprocess.run(("git", *who, *arguments), cwd=tmp_path, check=True, capture_output=True)

    def write(name: str, text: str) -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    git("init", "--initial-branch", "main")
    write("p4gen/papers/epic/sub/a.py", "1\n2\n")
    write("p4gen/net/b.py", "1\n")
    write("p4gen/manager/made_pb2.py", "1\n2\n3\n")
    write("docs/c.md", "three words here\n")
    git("add", "-A")
    git("commit", "-m", "first")
    write("p4gen/net/b.py", "1\n2\n3\n")
    git("commit", "-am", "second")
    done = subprocess.run((SCRIPTS / "sizes", "HEAD~1"), cwd=tmp_path, check=True, capture_output=True, text=True)
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["Python", "p4gen,", "all", "of", "it", "5", "+2"],
        ["Python", "p4gen/net", "3", "+2"],
        ["Python", "p4gen/papers/epic", "2", "+0"],
        ["words", "docs", "3", "+0"],
    ]
