"""The embedded switch on interfaces: batches give what packets give one by one. Skipped where veths cannot be made."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from patience import PATIENCE_S, until

from p4gen.errors import FailedError, MissingToolError
from p4gen.model import EngineName, Model
from p4gen.model.entries import MulticastGroup, Replica
from p4gen.p4 import ir
from p4gen.p4.compile import compile_text
from p4gen.packetio import PacketSocket, wait_for_links
from p4gen.packetio.ip import ip
from p4gen.switch.control import ask
from p4gen.switch.device import Device
from p4gen.switch.packet import PacketPorts
from p4gen.switch.running import listens
from p4gen.switch.veth import veth_pairs

PORTS, CPU = 4, 500


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


@pytest.fixture
def pairs(stack: ExitStack) -> dict[int, tuple[str, str]]:
    try:
        return stack.enter_context(veth_pairs(range(PORTS)))
    except (FailedError, MissingToolError) as problem:
        pytest.skip(f"veth interfaces cannot be made: {problem}")


@pytest.fixture
def hosts(stack: ExitStack, pairs: Mapping[int, tuple[str, str]]) -> dict[int, PacketSocket]:
    return {port: stack.enter_context(PacketSocket(outer, slots=4096)) for port, (_, outer) in pairs.items()}


def program(echo: Path, destination: str = "std_meta.egress_spec = (bit<9>)hdr.h.port;") -> ir.Program:
    text = echo.read_text()
    line = "std_meta.egress_spec = (bit<9>)hdr.h.port;"
    assert text.count(line) == 1
    return compile_text(text.replace(line, destination)).program


def started(stack: ExitStack, device: Device, pairs: Mapping[int, tuple[str, str]]) -> PacketPorts:
    inner = {port: name for port, (name, _) in pairs.items()}
    ports = stack.enter_context(PacketPorts(device.send, inner, device.set_link, carry=device.carry))
    device.inject = ports.inject
    run(stack, ports)
    return ports


def run(stack: ExitStack, ports: PacketPorts) -> None:
    thread = threading.Thread(target=ports.run)
    thread.start()
    stack.callback(thread.join)
    stack.callback(ports.stop)


def device_of(model: Model, engine: EngineName = "jit", cpu_port: int = 0) -> Device:
    device = Device(engine=engine, cpu_port=cpu_port)
    device.commit(model)
    return device


def frame(rng: random.Random, to: int, number: int) -> bytes:
    return (
        bytes([to, number % 256])
        + number.to_bytes(4)
        + b"\2" * 6
        + b"\x88\xb5"
        + rng.randbytes(rng.randrange(46, 1400))
    )


def collected(host: PacketSocket, count: int) -> list[bytes]:
    taken: list[bytes] = []
    while len(taken) < count and (more := host.receive(PATIENCE_S)):
        taken += more
    return taken


@pytest.mark.parametrize("engine", ["jit", "interp"])
def test_ten_thousand_frames_come_out_as_one_by_one(
    stack: ExitStack,
    pairs: dict[int, tuple[str, str]],
    hosts: dict[int, PacketSocket],
    echo: Path,
    engine: EngineName,
    seed: int,
) -> None:
    rng = random.Random(seed)
    compiled, count = program(echo), 10_000 if engine == "jit" else 1_000
    device = device_of(Model(compiled, engine=engine), engine)
    ports = started(stack, device, pairs)
    single = Model(compiled)
    sent = [(rng.randrange(PORTS), frame(rng, rng.randrange(PORTS), i)) for i in range(count)]
    expected: dict[tuple[int, int], list[bytes]] = {}
    for port, data in sent:
        for out, result in single.process(port, data):
            expected.setdefault((port, out), []).append(result)
    found: dict[int, list[bytes]] = {port: [] for port in hosts}
    for first in range(0, count, 500):
        part = sent[first : first + 500]
        for port, host in hosts.items():
            host.send([data for at, data in part if at == port])
        for port, host in hosts.items():
            wanted = sum(data[0] == port for _, data in part)
            found[port] += collected(host, wanted)
    source = {data[2:6]: port for port, data in sent}
    for out, frames in found.items():
        for port in hosts:  # what comes from one port to another stays in order
            mine = [data for data in frames if source[data[2:6]] == port]
            assert mine == expected[port, out]
    assert ports.undelivered == {}
    counts = device.counts
    assert sum(c.in_packets for c in counts.values()) == sum(c.out_packets for c in counts.values()) == count
    assert sum(c.in_bytes for c in counts.values()) == sum(len(data) for _, data in sent)
    assert device.model is not None
    assert device.model.registers("seen") == [count]


def test_a_group_of_many_ports(
    stack: ExitStack, pairs: dict[int, tuple[str, str]], hosts: dict[int, PacketSocket], echo: Path
) -> None:
    model = Model(program(echo, "std_meta.mcast_grp = (bit<16>)hdr.h.port;"), engine="jit")
    everywhere = [*range(PORTS), 77]  # 77 is no port of this switch
    model.set_multicast_group(MulticastGroup(9, tuple(Replica(port, 1) for port in everywhere)))
    device = device_of(model)
    ports = started(stack, device, pairs)
    rng = random.Random(4)
    sent = [frame(rng, 9, i) for i in range(300)]
    assert hosts[2].send(sent) == 300
    for host in hosts.values():
        assert [data[2:] for data in collected(host, 300)] == [data[2:] for data in sent]
    until(lambda: ports.undelivered == {77: 300}, lambda: str(ports.undelivered))  # counted behind the last port's


def test_frames_from_controllers_join_and_frames_for_them_leave(
    stack: ExitStack, pairs: dict[int, tuple[str, str]], hosts: dict[int, PacketSocket], echo: Path
) -> None:
    device = device_of(
        Model(program(echo, "std_meta.egress_spec = 256 + (bit<9>)hdr.h.port;"), engine="jit"), cpu_port=CPU
    )
    for_controllers: list[bytes] = []
    device.subscribe(for_controllers.append, lambda _digests: None)
    started(stack, device, pairs)
    rng = random.Random(5)
    sent = [frame(rng, CPU - 256, i) for i in range(200)]
    hosts[1].send(sent)
    for i in range(100):
        device.packet_out(frame(rng, CPU - 256, 1000 + i))
    device.packet_out(frame(rng, CPU - 256, 5000) + bytes(60_000))  # larger than any interface's
    until(lambda: len(for_controllers) >= 301)
    numbers = [int.from_bytes(data[2:6]) for data in for_controllers]
    assert sorted(numbers) == [*range(200), *range(1000, 1100), 5000]
    assert [n for n in numbers if n < 200] == list(range(200))
    assert [n for n in numbers if 1000 <= n < 5000] == list(range(1000, 1100))
    assert device.counts[CPU].in_packets == 101
    assert device.counts[CPU].out_packets == 301


def test_vlan_tags_go_through_and_what_is_too_long_is_counted(
    stack: ExitStack, pairs: dict[int, tuple[str, str]], hosts: dict[int, PacketSocket], echo: Path
) -> None:
    ip(*(f"link set {name} mtu 2500" for name in pairs[1]))
    device = device_of(Model(program(echo), engine="jit"))
    inner = {port: name for port, (name, _) in pairs.items()}
    ports = stack.enter_context(PacketPorts(device.send, {1: inner[1]}, carry=device.carry))
    run(stack, ports)
    rng = random.Random(3)
    tags = [b"\x81\x00\x00\x07", b"\x88\xa8\xe0\x01", b"\x88\xa8\x00\x05\x81\x00\x30\x06", b""]
    plain = [frame(rng, 1, i) for i in range(200)]
    sent = [data[:12] + tags[i % 4] + data[12:] for i, data in enumerate(plain)]
    hosts[1].send(sent)
    assert [data[2:] for data in collected(hosts[1], 200)] == [data[2:] for data in sent]
    ip(*(f"link set {name} mtu 9000" for name in pairs[1]))  # too late: the switch has room for 2,500 bytes
    hosts[1].send([frame(rng, 1, 1) + bytes(5000), frame(rng, 1, 2)])
    assert len(collected(hosts[1], 1)) == 1
    assert ports.truncated == {1: 1}
    assert device.counts[1].in_packets == device.counts[1].out_packets == 201


def test_who_wants_the_lock_gets_it_amid_traffic(
    stack: ExitStack, pairs: dict[int, tuple[str, str]], hosts: dict[int, PacketSocket], echo: Path
) -> None:
    device = device_of(Model(program(echo), engine="jit"))
    started(stack, device, pairs)
    rng = random.Random(9)
    sent = [frame(rng, 1, i) for i in range(200)]
    for number in range(1, 51):
        hosts[0].send(sent)
        with device.lock, device.lock:
            assert device.model is not None
            (seen,) = device.model.registers("seen")
            assert seen <= 200 * number
            device.model.reset()
            assert device.model.registers("seen") == [0]
        assert len(collected(hosts[1], 200)) == 200


def test_what_waits_too_long_is_counted(
    stack: ExitStack, pairs: dict[int, tuple[str, str]], hosts: dict[int, PacketSocket], echo: Path
) -> None:
    compiled = program(echo)
    device = device_of(Model(compiled, engine="jit"))
    with device.lock:  # the switch stands still
        ports = started(stack, device, pairs)
        rng, sent = random.Random(8), 0
        while not ports.missed and sent < 100_000:
            sent += hosts[0].send([frame(rng, 1, i) for i in range(1000)])
        missed = ports.missed[0]
    came = 0
    while more := hosts[1].receive(1):
        came += len(more)
    # The rest has gone through, or waits too long in its turn.
    assert came + hosts[1].kernel_drops() == sent - missed - sum(ports.undelivered.values())
    assert device.counts[0].in_packets == sent - missed


def test_a_link_goes_down_amid_traffic_and_comes_back(
    stack: ExitStack, pairs: dict[int, tuple[str, str]], hosts: dict[int, PacketSocket], echo: Path
) -> None:
    ports = started(stack, device_of(Model(program(echo), engine="jit")), pairs)
    rng = random.Random(6)

    def through(out: int) -> list[bytes]:
        sent = [frame(rng, out, i) for i in range(100)]
        hosts[0].send(sent)
        return sent

    sent = through(1)
    assert len(collected(hosts[1], 100)) == 100
    ip(f"link set {pairs[1][0]} down")
    through(1)
    sent = through(2)
    assert [data[2:] for data in collected(hosts[2], 100)] == [data[2:] for data in sent]
    until(lambda: ports.undelivered == {1: 100}, lambda: str(ports.undelivered))
    ip(f"link set {pairs[1][0]} up")
    assert wait_for_links(pairs[1])
    sent = through(1)
    assert [data[2:] for data in collected(hosts[1], 100)] == [data[2:] for data in sent]
    hosts[1].send([frame(rng, 3, 1)])
    assert len(collected(hosts[3], 1)) == 1


def test_traces_and_captures_begin_and_end_by_request(
    stack: ExitStack, pairs: dict[int, tuple[str, str]], hosts: dict[int, PacketSocket], echo: Path, place: Path
) -> None:
    address, trace, pcap, log = f"unix:{place / 'p4rt.sock'}", place / "trace.txt", place / "pcap", place / "log"
    command = [sys.executable, "-m", "p4gen", "switch", str(echo), "--grpc-server-addr", address, "--json"]
    control = place / "control"
    command += ["--trace", str(trace), "--pcap", str(pcap), "--control", str(control), "--log-file", str(log)]
    for port, (inner, _) in pairs.items():
        command += ["-i", f"{port}@{inner}"]
    process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
    stack.callback(process.kill)

    def said(text: str, number: int) -> None:
        until(lambda: log.exists() and log.read_text().count(text) == number)

    said("listening at", 1)
    assert listens(address)
    rng, numbers = random.Random(7), iter(range(10_000))

    def through() -> None:
        sent = [frame(rng, 1, next(numbers)) for _ in range(50)]
        hosts[0].send(sent)
        assert [data[2:] for data in collected(hosts[1], 50)] == [data[2:] for data in sent]

    through()
    assert not trace.exists()
    for round_ in (1, 2):
        for what in ("trace", "capture"):
            for _ in range(2):  # again changes nothing
                assert ask(control, f"{what} on")[what] is True
            assert ask(control, "status")[what] is True
            through()
            for _ in range(2):
                assert ask(control, f"{what} off")[what] is False
            through()
        assert trace.read_text().count(" bytes out of port 1") == 50 * round_
        # Of the capture's header 24 bytes, of each frame's 16.
        assert (pcap / "port0_in.pcap").stat().st_size > 50 * round_ * (16 + 58)
        assert not (pcap / "port2_in.pcap").exists()
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 0
