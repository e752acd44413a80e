"""The commands of a lab's prompt. Each command returns whether it succeeded."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

from p4gen.errors import InputError
from p4gen.labs.groups import tree_text
from p4gen.labs.network import faults
from p4gen.labs.prompt import connections, running, trouble
from p4gen.labs.prompt.terminal import Command, Session, read_number
from p4gen.labs.prompt.tracing import KINDS, Tracer
from p4gen.labs.prompt.welcome import display_path
from p4gen.labs.runs.report import counts_text, table, without_kernel
from p4gen.labs.runs.run import slow
from p4gen.rocev2.headers import ip_text, mac_text


def _groups(session: Session, _words: list[str]) -> bool:
    _tell_traced(session)
    groups = session.lab.manager.groups()
    if not groups:
        session.console.print("no groups; init NAME HOST HOST … creates one, and so does run")
        return True
    found = table("group", "state", "generation", "ranks", "tree", "slots", "reason")
    for status in groups:
        found.add_row(
            status.spec.name,
            str(status.state),
            str(status.generation),
            " ".join(status.spec.ranks),
            tree_text(status),
            ", ".join(f"{switch} {slots}" for switch, slots in status.slots.items()),
            status.reason,
        )
    session.console.print(found)
    return True


def _tell_traced(session: Session) -> None:
    for switch in session.lab.traced():
        session.console.print(slow(switch), markup=False)


def _net(session: Session, _words: list[str]) -> bool:
    lab = session.lab
    _tell_traced(session)
    switches = table("switch", "process", "ports")
    for switch, process in lab.switches.items():
        ports = []
        for port, link in lab.job.ports_of(switch).items():
            down = " (down)" if frozenset(link.ends) in lab.network.down else ""
            ports.append(f"{port}:{link.other(switch)}{down}")
        switches.add_row(switch, str(process.pid) if process.running else "[red]dead[/red]", "  ".join(ports))
    session.console.print(switches)
    hosts = table("host", "address", "MAC", "switch", "faults of its link", "enter it from another terminal")
    for host in lab.hosts:
        said = lab.hosts[host].hello.result()
        link = lab.topology.ports[host][0]
        enter = f"nsenter -t {lab.outer} -m -p mnexec -a {lab.network.pid(host)} bash"
        if host in lab.job.machines:
            enter = f"a virtual machine: {host} bash, here"
        address, mac = ip_text(said["ip"]), mac_text(said["mac"])
        hosts.add_row(host, address, mac, link.other(host), lab.impairments.hosts[host].text(), enter)
    session.console.print(hosts)
    for name, troubles in lab.impairments.links.items():
        session.console.print(f"{name}: {troubles.text()}, each way")
    return True


def _counters(session: Session, words: list[str]) -> bool:
    lab, name = session.lab, words[0]
    _tell_traced(session)
    if name in lab.hosts:
        counters = lab.hosts[name].call("counters")
        for group, counts in counters["groups"].items():
            session.console.print(f"{group}: " + ", ".join(f"{key} {value}" for key, value in counts.items()))
        refused = without_kernel(counters["refused"])
        if device := counts_text(counters.get("device", {})):
            session.console.print(f"device: {device}")
        session.console.print(f"faults: {counts_text(counters['faults']) or 'none'}")
        session.console.print(f"refused by the NIC: {counts_text(refused) or 'none'}")
        session.console.print(f"left to the kernel: {sum(counters['refused'].values()) - sum(refused.values()):,}")
        session.console.print(f"not sent {counters['undelivered']}, too late for the socket {counters['kernel_drops']}")
        return True
    by_port = lab.link_counters(name)
    found = table("port", "to", "packets in", "bytes in", "packets out", "bytes out", "lost in", "lost out")
    links = lab.job.ports_of(name)
    for port, counts in by_port.items():
        found.add_row(str(port), links[port].other(name), *(f"{value:,}" for value in counts.values()))
    session.console.print(found)
    for status in lab.manager.status().switches:
        if status.name == name:
            state = "reachable" if status.reachable else f"[red]not reachable[/red]: {status.problem}"
            session.console.print(
                f"{state}; contexts {status.contexts} of {status.contexts_total}, slots {status.slots} of "
                f"{status.slots_total}, {status.entries} entries, {status.ticks_per_second:.0f} ticks/s"
            )
            session.console.print(f"dropped by the program: {counts_text(status.drops) or 'nothing'}")
    return True


def _drops(session: Session, _words: list[str]) -> bool:
    found = table("where", "dropped")
    for switch, drops in session.lab.switch_drops().items():
        found.add_row(switch, counts_text(drops) or "nothing")
    for host, counters in session.lab.host_counters().items():
        counts = {f"fault: {reason}": count for reason, count in counters["faults"].items()}
        counts |= without_kernel(counters["refused"])
        found.add_row(host, counts_text(counts) or "nothing")
    for link, counts in session.lab.impairments.counts().items():
        found.add_row(link, counts_text({f"fault: {reason}": count for reason, count in counts.items()}) or "nothing")
    session.console.print(found)
    return True


def _trace(session: Session, words: list[str]) -> bool:
    switch, *rest = words
    session.lab.check_switch(switch)
    tracer = session.tracers.get(switch)
    if rest == ["off"]:
        if tracer is not None:
            tracer.close()
        session.lab.set_trace(switch, False)
        session.console.print(f"{switch} does not trace")
        return True
    kind = rest.pop() if rest and rest[-1] in KINDS else ""
    count = read_number(rest.pop(0), "how many packets") if rest else 1
    if rest or not count:
        raise InputError(f"usage: {COMMANDS['trace'].usage}")
    if tracer is not None:
        tracer.close()  # the new trace replaces it
    session.tracers[switch] = tracer = Tracer(session.lab, switch, count, session.console, kind, turn=session.turn)
    tracer.start()
    what = {"": "packet", "data": "data packet", "ticks": "tick"}[kind]
    whose = f"{what}'s" if count == 1 else f"{count} {what}s'"
    session.console.print(
        f"the next {whose} way through {switch} will be printed; all packets, lanes and edges are in "
        f"{display_path(tracer.file)}",
        markup=False,
    )
    return True


def _pcap(session: Session, words: list[str]) -> bool:
    file = session.lab.capture(words[0])
    state = "begins" if words[0] in session.lab.taps else "has ended"
    session.console.print(f"capture of {words[0]} {state}: {display_path(file)}", markup=False)
    return True


def _shell(session: Session, words: list[str]) -> bool:
    command = session.lab.shell_command(words[0])
    if not sys.stdin.isatty():
        raise InputError("a shell needs a terminal")
    name = words[0]
    if name in session.lab.switches:
        session.console.print(f"p4runtime-shell is now {name}'s controller; when you leave it, the manager is again")
    session.execute(command)
    if name in session.lab.switches and session.lab.switches[name].running:
        session.lab.register(name)  # it reconnects with a newer election id
    return True


def _init(session: Session, words: list[str]) -> bool:
    name, rest = words[0], words[1:]
    root: str | None = None
    if rest[-2:-1] == ["root"]:
        rest, root = rest[:-2], rest[-1]
    status = session.lab.groups.init(name, rest, root)
    session.console.print(f"{name}: {tree_text(status)}, {len(rest)} ranks")
    return True


def _destroy(session: Session, words: list[str]) -> bool:
    session.lab.manager.destroy_group(words[0])
    session.console.print(f"{words[0]} is gone")
    return True


def _move(session: Session, words: list[str]) -> bool:
    status = session.lab.manager.move_group(words[0], words[1] if len(words) > 1 else None)
    session.lab.groups.join(status)
    session.console.print(f"{words[0]}: {tree_text(status)}, generation {status.generation}")
    return True


def _resize(session: Session, words: list[str]) -> bool:
    status = session.lab.manager.resize_group(words[0], read_number(words[1], "slots"))
    session.lab.groups.join(status)
    slots = ", ".join(f"{switch} {slots}" for switch, slots in status.slots.items())
    session.console.print(f"{words[0]}: slots {slots}, generation {status.generation}")
    return True


def _top(session: Session, _words: list[str]) -> bool:
    _tell_traced(session)
    once = [] if session.attached else ["--once"]
    return session.execute([sys.executable, "-m", "p4gen", "top", "--manager", session.lab.manager_address, *once]) == 0


_NET = Command("net", "Switches, hosts, links, faults; 'topology' is the same.", _net, 0, 0)
COMMANDS: Final[Mapping[str, Command]] = {
    "run": Command(running.RUN, "Run it and check it: run allreduce 1M.", running.run, 1),
    "connections": Command(
        "connections", "Connections that leaves spray: paths, counters.", connections.connections, 0, 0
    ),
    "spray": Command(connections.SPRAY, "Have connections sprayed, or on ECMP's paths.", connections.spray, 1, 1),
    "groups": Command("groups", "Groups, their trees and states.", _groups, 0, 0),
    "init": Command("init NAME HOST HOST … [root SWITCH]", "Create a group, with ranks in this order.", _init, 2),
    "destroy": Command("destroy NAME", "DestroyGroup.", _destroy, 1, 1),
    "move": Command("move NAME [ROOT]", "Move a group to another tree, with this root.", _move, 1, 2),
    "resize": Command("resize NAME N", "Change the number of slots of a group.", _resize, 2, 2),
    "net": _NET,
    "topology": _NET,
    "counters": Command("counters NODE", "Counters of a switch's ports, or of a host's ranks.", _counters, 1, 1),
    "drops": Command("drops", "Dropped packets, by place and reason.", _drops, 0, 0),
    "trace": Command(
        "trace SWITCH [N] [data|ticks] | trace SWITCH off",
        "Print the next packets' way through a switch, by default no ticks; or no more.",
        _trace,
        1,
        3,
    ),
    "fail": Command(
        trouble.FAIL,
        "Take a link down, or kill a switch or the manager.",
        trouble.fail,
        1,
        7,
    ),
    "restore": Command(trouble.RESTORE, "Take a link up again.", trouble.restore, 3, 3),
    "restart": Command(
        trouble.RESTART, "Start a switch again, empty; the manager, on its store.", trouble.restart, 1, 2
    ),
    "loss": Command(
        "loss PLACE SHARE",
        "Lose packets at h1, all (hosts), leaf0-spine0, spine0, each way: loss h1 5%.",
        trouble.suffer("loss"),
        2,
        2,
    ),
    "delay": Command("delay PLACE TIME", "Delay them: delay spine0 1ms.", trouble.suffer("delay"), 2, 2),
    "duplicate": Command("duplicate PLACE SHARE", "Deliver some twice.", trouble.suffer("duplicate"), 2, 2),
    "reorder": Command(
        "reorder PLACE SHARE", "Delay some, so that packets are reordered.", trouble.suffer("reorder"), 2, 2
    ),
    "corrupt": Command("corrupt PLACE SHARE", "Flip one to three bits of some.", trouble.suffer("corrupt"), 2, 2),
    "heal": Command("heal", "Remove all faults of links.", trouble.heal, 0, 0),
    "pcap": Command("pcap NODE", "Capture a node's interfaces; repeat the command to end it.", _pcap, 1, 1),
    "shell": Command("shell NODE", "A host's shell, or p4runtime-shell on a switch.", _shell, 1, 1),
    "top": Command("top", "Groups, rates, retransmissions and drops, live.", _top, 0, 0),
}
assert set(faults.KINDS) <= set(COMMANDS)
