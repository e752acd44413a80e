"""``p4gen doctor``: what is installed, what each missing part would add, and how to get it."""

from __future__ import annotations

import ctypes.util
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import click

from p4gen import packages
from p4gen.arch import architecture
from p4gen.cli.common import json_option
from p4gen.cli.defaults import MANAGER_VARIABLE
from p4gen.cli.places import place_options
from p4gen.cli.verb import verb
from p4gen.errors import FailedError, P4genError
from p4gen.p4 import p4c
from p4gen.p4.toolchain import Toolchain
from p4gen.switch.tofino import tools as tofino

CAP_NET_RAW = 13
CAP_NET_ADMIN = 12
CAP_SYS_ADMIN = 21


@dataclass(frozen=True)
class Finding:
    """One part: ``found`` is what was found, None if missing."""

    part: str
    found: str | None
    adds: str
    get: str


@verb(
    examples=[
        ("", "what is installed, and what each missing part would add"),
        ("--host h0 --manager 10.1.0.1:9560", "why h0 hears nothing of its switch: link, addresses, MTU, ICRC, loss"),
    ]
)
@click.option("--host", metavar="NAME", help="Check the connection of this host, as NAME, with its switch.")
@place_options
@json_option
def command(host: str | None, as_json: bool, **place: str | None) -> None:
    """List what is installed, and what each missing part would add.

    All of them but Python are optional: p4gen has its own compiler and switch. With --host, check what this host hears
    of its switch. Its probes are calls of a group of this host alone; no other rank may run on it. The exit status is 1
    if a check fails.
    """
    if host is not None:
        _check_host(host, place, as_json=as_json)
        return
    if given := [name for name, value in place.items() if value is not None]:
        raise click.UsageError(f"--{given[0]} goes with --host")
    findings = [
        Finding("Python", f"{platform.python_version()}, {sys.executable}", "everything", ""),
        Finding(
            "p4c-bm2-ss",
            _version(p4c.COMPILER, p4c.version),
            "BMv2 JSON, and a second opinion on every generated program",
            f"https://github.com/p4lang/p4c: {packages.P4LANG}",
        ),
        Finding(
            "simple_switch_grpc",
            _version("simple_switch_grpc", _first_line),
            "running programs on BMv2",
            f"https://github.com/p4lang/behavioral-model: {packages.P4LANG}",
        ),
        Finding(
            "tofino-model",
            _sde(),
            "running programs for Tofino on Intel's model, which p4gen has never run against",
            packages.OPEN_P4STUDIO,
        ),
        Finding(
            "p4c for Tofino",
            _p4c_for_tofino(),
            "compiling programs for Tofino, which tofino-model needs",
            "it comes with tofino-model; or set P4C_TOFINO to one",
        ),
        Finding(
            "huge pages",
            f"{tofino.huge_pages()}" if tofino.huge_pages() >= tofino.HUGE_PAGES else None,
            f"running tofino-model, whose driver needs {tofino.HUGE_PAGES} (there are {tofino.huge_pages()})",
            f"sysctl vm.nr_hugepages={tofino.HUGE_PAGES}",
        ),
        Finding("PTF", _ptf(), "the conformance suite", packages.PTF),
        Finding("p4runtime-shell", packages.p4runtime_shell(), "p4gen shell", packages.P4RUNTIME_SHELL),
        Finding("root", None if os.geteuid() else "yes", "running tofino-model", "run as root"),
        Finding(
            "Mininet",
            shutil.which("mnexec") and f"mnexec at {shutil.which('mnexec')}",
            "labs of several switches and hosts",
            packages.install("mnexec"),
        ),
        Finding(
            "lab tools",
            None if (missing := _missing_lab_tools()) else "ip, unshare, mount, bash",
            f"labs of several switches and hosts (missing: {', '.join(missing)})",
            packages.install(*missing) if missing else "",
        ),
        Finding(
            "Soft-RoCE tools",
            None if (lacking := packages.lacking(packages.SOFTROCE | packages.SOFTROCE_BUILD)) else "QEMU, debootstrap",
            f"labs with hosts that are virtual machines, and their images (missing: {', '.join(lacking)})",
            packages.install(*lacking) if lacking else "",
        ),
        Finding(
            "Soft-RoCE hosts",
            _guests(),
            "labs whose hosts have Linux's own RoCE stack",
            "p4gen softroce build, as root on Debian 12",
        ),
        Finding(
            "libpcap",
            ctypes.util.find_library("pcap"),
            "Scapy's capture filters on real interfaces",
            f"apt-get install {packages.LIBPCAP}",
        ),
        Finding("CAP_NET_RAW", _capability(CAP_NET_RAW), "switch ports on real or veth interfaces", "run as root"),
        Finding("CAP_NET_ADMIN", _capability(CAP_NET_ADMIN), "making veth interfaces, labs", "run as root"),
        Finding("CAP_SYS_ADMIN", _capability(CAP_SYS_ADMIN), "namespaces and mounts of labs", "run as root"),
    ]
    if as_json:
        click.echo(json.dumps({"parts": [asdict(finding) for finding in findings]}))
        return
    width = max(len(finding.part) for finding in findings)
    for finding in findings:
        if finding.found:
            click.echo(f"{click.style('ok     ', fg='green')}  {finding.part:{width}}  {finding.found}")
        else:
            click.echo(f"{click.style('missing', fg='yellow')}  {finding.part:{width}}  adds {finding.adds}")
            click.echo(f"{'':{width}}             get it: {finding.get}")


def _check_host(host: str, place: Mapping[str, str | None], *, as_json: bool) -> None:
    """Print each check, and raise ``FailedError`` if one fails."""
    from p4gen.library.probing import Place, checks  # noqa: PLC0415 - the list of parts does not need it
    from p4gen.library.stations import stated  # noqa: PLC0415

    manager = stated(place["manager"], "manager", MANAGER_VARIABLE)
    found = []
    for check in checks(Place(host, manager, place["interface"], place["verbs"], place["tls"])):
        found.append(check)
        if not as_json:
            state = click.style("ok   ", fg="green") if check.ok else click.style("wrong", fg="red")
            click.echo(f"{state}  {check.what:11}  {check.found}")
    if as_json:
        click.echo(json.dumps({"checks": [asdict(check) for check in found]}))
    if not found[-1].ok:
        raise FailedError(f"{host}: the check of '{found[-1].what}' fails")


def _ptf() -> str | None:
    try:
        return metadata.version("ptf")
    except metadata.PackageNotFoundError:
        return None


def _version(tool: str, ask: Callable[[str], str]) -> str | None:
    path = shutil.which(tool)
    if path is None:
        return None
    try:
        return f"{ask(path)}, {path}"
    except (OSError, subprocess.SubprocessError) as error:
        return f"{path}, which does not run: {error}"


def _sde() -> str | None:
    """Where the model and its driver are, if both are there."""
    found = [tofino.find(tool) for tool in (tofino.MODEL, tofino.DRIVER)]
    paths = [path for path in found if path is not None]
    return f"{', '.join(paths)}; never run against the real model" if len(paths) == len(found) else None


def _p4c_for_tofino() -> str | None:
    """The compiler's version, or why it cannot be asked."""
    ask = architecture("t2na").facet(Toolchain).version
    try:
        return ask() if ask is not None else None
    except (P4genError, OSError, subprocess.SubprocessError) as error:
        return f"which does not run: {error}"


def _missing_lab_tools() -> list[str]:
    """The tools that a lab calls, in addition to Mininet."""
    return [tool for tool in packages.lacking(packages.LAB) if tool != "mnexec"]


def _guests() -> str | None:
    """The kernels of guests for which there are images, and how they start; None if they do not."""
    from p4gen.labs.softroce import guest, images, kernel  # noqa: PLC0415 - it takes a while, and most need it not

    found = {version: images.places(version) for version in kernel.KERNELS}
    there = [version for version, each in found.items() if each.complete]
    if not there or shutil.which(packages.QEMU) is None:
        return None
    way = guest.accelerator(found[there[0]])
    if not guest.starts(found[there[0]], way):
        return None
    return f"Linux {' and '.join(there)}, {'on KVM' if way == guest.KVM else 'translated (no KVM)'}"


def _first_line(path: str) -> str:
    done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=False)
    return (done.stdout + done.stderr).strip().partition("\n")[0] or "unknown version"


def _capability(number: int) -> str | None:
    """Whether this process has a capability (capabilities(7)), by the effective set in /proc."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return None if os.geteuid() else "root"
    effective = next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff")), 0)
    return "yes" if effective >> number & 1 else None
