"""Themis's programs: the specs that there are, and that each of them builds."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from p4gen.builder import build
from p4gen.chips.v1model import switch as v1model
from p4gen.difftest.events import Mirroring, Packet, Request
from p4gen.errors import InputError
from p4gen.families import load_spec, parse_spec
from p4gen.groups import NextHop, Route
from p4gen.groups.addresses import prefix
from p4gen.groups.config import routing
from p4gen.groups.connections import Tier
from p4gen.model import Model
from p4gen.papers.themis.control import (
    Connection,
    PathSet,
    Peer,
    clone_sessions,
    filter_entries,
    path_map,
    path_map_entries,
    path_set_entries,
    spray_entry,
)
from p4gen.papers.themis.memory import paper_bytes, queue_entries
from p4gen.papers.themis.spec import Blocked, Evidence, Mode, Spread, ThemisSpec, Variant
from p4gen.papers.themis.traffic import RandomTraffic
from p4gen.papers.themis.verdicts import TALLIES, Verdict
from p4gen.program import compose, render
from p4gen.rocev2.headers import AETH, BTH, UDP, Ethernet, IPv4, ip_from, ip_header, ipv4
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket, parse
from p4gen.rocev2.places import places_for
from p4gen.switch import targets

IPV6_NETWORK = ip_from("fd00::")
SMALL: dict[str, Any] = {"paths": 4, "connections": 4, "queue": 16, "queue_banks": 4, "ports": 8}


def small(**fields: Any) -> ThemisSpec:
    """A small program; one that judges by classes has no queue."""
    without = ("queue", "queue_banks") if fields.get("evidence") is Evidence.CLASSES else ()
    return ThemisSpec(**{name: value for name, value in (SMALL | fields).items() if name not in without})


@pytest.mark.parametrize(
    "fields",
    [
        *({"mode": mode} for mode in Mode),
        *({"mode": "themis-s", "spread": spread} for spread in Spread),
        {"spread": Spread.PSN},
        {"blocked": Blocked.ACK},
        *({"mode": mode, "cm": "copy"} for mode in Mode),
        {"cm": "copy", "evidence": Evidence.CLASSES},
        {"icrc": "ignore"},
        *({"variant": variant} for variant in Variant),
        {"queue": 16, "queue_banks": 16},
        {"queue": 1024, "queue_banks": 2, "psn_bits": 24},
        *({"mode": mode, "tiers": 3} for mode in Mode),
        {"paths": 2},
        {"paths": 256},
        {"mode": "themis-s", "pipelines": 2},
        *({"mode": mode, "evidence": Evidence.CLASSES} for mode in (Mode.DESTINATION, Mode.BOTH)),
        *({"evidence": Evidence.CLASSES, "blocked": Blocked.ACK, "paths": paths} for paths in (2, 3, 64)),
        {"evidence": Evidence.CLASSES, "icrc": "ignore", "tiers": 3},
        *({"mode": mode, "ip": ip} for mode in Mode for ip in ("6", "both")),
        *({"mode": "themis-s", "spread": spread, "ip": "both"} for spread in Spread),
        {"mode": "themis-s", "spread": "flowlet", "ip": "6"},
        *({"ip": ip, "cm": "copy", "tiers": 3, "blocked": Blocked.ACK} for ip in ("6", "both")),
        *({"ip": ip, "evidence": Evidence.CLASSES, "icrc": "ignore"} for ip in ("6", "both")),
    ],
    ids=str,
)
def test_a_program_compiles_and_keeps_the_rules(fields: dict[str, Any], tmp_path: Path) -> None:
    built = build(small(**fields), tmp_path)
    assert built.program.exists()


@pytest.mark.parametrize("mode", list(Mode))
def test_a_mode_names_the_family(mode: Mode) -> None:
    spec = load_spec(flags={"mode": str(mode)})
    assert isinstance(spec, ThemisSpec)
    assert parse_spec(spec.model_dump(mode="json")) == spec
    assert load_spec(flags={"mode": "III"}).family == "epic"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"mode": "themis-d", "spread": "random"},
            "spread: error: spread = 'random': random is about the source; themis-d has none",
        ),
        (
            {"mode": "themis", "queue": 8, "queue_banks": 16},
            "queue_banks: error: queue_banks = 16: a queue of 8 does not have 16 banks",
        ),
        (
            {"mode": "themis", "psn_bits": 8},
            "psn_bits: error: psn_bits = 8: 2^(psn_bits - 1) must be more than the queue, 128",
        ),
        (
            {"mode": "themis", "queue": 32, "paths": 128, "psn_bits": 8},
            "paths: error: paths = 128: at most 2^(psn_bits - 2) = 64",
        ),
        (
            {"mode": "themis", "pipelines": 2},
            "pipelines: error: pipelines = 2: a connection's packets arrive in several pipelines, and "
            "v1model's egress keeps no state",
        ),
        (
            {"mode": "themis-s", "variant": "late-compensation"},
            "variant: error: variant = 'late-compensation': late-compensation is a design of Themis-D, which this "
            "program lacks",
        ),
        *(
            (
                {"mode": "themis", "evidence": "classes", field: value},
                f"{field}: error: {field} = {value!r}: {reason}",
            )
            for field, value, reason in (
                ("queue", 64, "goes with evidence queue; evidence classes keeps no queue of PSNs"),
                ("queue_banks", 8, "goes with evidence queue; evidence classes keeps no queue of PSNs"),
                ("psn_bits", 20, "goes with evidence queue; evidence classes keeps no queue of PSNs"),
                ("paths", 65, "evidence classes has words for each path of a connection: at most 64, or a queue"),
                *(
                    ("variant", str(variant), f"{variant} is a design of the queue: it goes with evidence queue")
                    for variant in Variant
                ),
            )
        ),
        *(
            (
                {"mode": "themis-s", "evidence": "classes"} | fields,
                "evidence: error: evidence = 'classes': NACKs are judged by Themis-D, which this program lacks",
            )
            for fields in ({}, {"mode": "themis", "spread": "psn"})
        ),
        (
            {"mode": "themis", "lanes": 64},
            "lanes: error: 'lanes' is a field of atp, epic, scin and switchml (--mode atp, I, II, III, scin or "
            "switchml), not of themis",
        ),
    ],
)
def test_what_does_not_fit_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        load_spec(flags=fields)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("weights", "entries"), [((1, 1, 1, 1), 4), ((1, 1, 1), 256), ((3, 1), 4), ((1,), 1), ((0, 1, 1), 2)]
)
def test_a_path_set_has_as_few_entries_as_its_turns_allow(weights: tuple[int, ...], entries: int) -> None:
    assert len(path_set_entries(ThemisSpec(), PathSet(0, weights))) == entries


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (PathSet(0, (1,) * 17), "path set 0 has 17 paths; the program sprays over 1 to 16"),
        (PathSet(3, (0, 0)), "path set 3: weights are from 0 on, and add up to 1 to 256"),
        (PathSet(16, (1, 1)), "path set 16: the program has 16, numbered from 0"),
    ],
)
def test_a_path_set_that_a_program_cannot_take_is_refused(paths: PathSet, message: str) -> None:
    with pytest.raises(InputError, match=message):
        path_set_entries(ThemisSpec(), paths)


def test_the_memory_of_section_4_and_of_the_program(tmp_path: Path) -> None:
    assert paper_bytes(256, 100 * 16, queue_entries(400, 2, 1.5, 1500)) == 192_512
    built = build(ThemisSpec(), tmp_path, use_p4c=False)
    assert built.manifest["themis"]["most_passes"] == 9
    memory = built.manifest["themis"]["memory"]
    a_queue = 128 * (16 + 4) + (8 + 8 + 7)
    assert memory["registers"] == 1600 * (a_queue + (8 + 2 + 4 + 24) + 24) // 8
    assert memory["keys"] == 1600 * 14
    assert memory["paper"] == 2 * 16 + (20 + 128) * 1600
    assert memory["evidence"] == 1600 * a_queue // 8
    assert "themis" not in build(ThemisSpec(mode=Mode.SOURCE), tmp_path, use_p4c=False).manifest


@pytest.mark.parametrize(("paths", "words"), [(4, 70_400), (16, 281_600)])
def test_the_memory_of_classes(paths: int, words: int, tmp_path: Path) -> None:
    """40 and 48 bits for each path of each connection, and 80 for the connection."""
    built = build(ThemisSpec(evidence=Evidence.CLASSES, paths=paths), tmp_path, use_p4c=False)
    memory = built.manifest["themis"]["memory"]
    assert memory["evidence"] == words + 1600 * 80 // 8
    assert memory["registers"] == memory["evidence"] + 1600 * (8 + 2 + (paths - 1).bit_length() + 24 + 24) // 8


class Leaf:
    """A leaf with four spines behind ports 2 to 5, and a clock."""

    def __init__(self, spread: Spread, tmp_path: Path, *, ipv6: bool = False, **fields: Any) -> None:
        self.now, self.network = 0, IPV6_NETWORK if ipv6 else 0
        spec = ThemisSpec(**SMALL | fields, mode=Mode.SOURCE, spread=spread, ip="both" if ipv6 else "4")
        program = build(spec, tmp_path, use_p4c=False).compiled.program
        self.model = Model(program, clock=lambda: self.now)
        hops = [NextHop(port, port, 1, 2) for port in range(2, 6)]
        self.away = self.network | ipv4("10.1.0.1")
        self.model.insert(*routing([Route(prefix(self.away, 0), 2, 4)], hops))

    def port(self, psn: int = 0, qp: int = 9) -> int:
        """The port by which a request leaves."""
        ip, bth = ip_header(self.network | ipv4("10.0.0.1"), self.away), BTH(Opcode.SEND_MIDDLE, qp, psn)
        headers = Ethernet(1, 2, places_for(self.away).ether_type), ip, UDP(), bth
        ((port, _),) = self.model.process(0, RocePacket(*headers, payload=bytes(8)).sealed().to_bytes())
        return port


@pytest.mark.parametrize("ipv6", [False, True])
def test_adaptive_routing_takes_the_shortest_queue(ipv6: bool, tmp_path: Path) -> None:
    leaf = Leaf(Spread.ADAPTIVE, tmp_path, ipv6=ipv6)
    for shortest in range(4):
        for number in range(4):
            lengths = 500 if number == shortest else 1000 + number
            leaf.model.write_register(f"spray_path.queue_{number}.length", 0, lengths)
        assert {leaf.port(psn) for psn in range(16)} == {2 + shortest}
    leaf.model.write_register("spray_path.queue_1.length", 0, 500)
    assert {leaf.port(psn) for psn in range(64)} == {2 + 1, 2 + 3}, "equal queues share"


@pytest.mark.parametrize("ipv6", [False, True])
def test_a_flowlet_ends_with_a_pause(ipv6: bool, tmp_path: Path) -> None:
    leaf = Leaf(Spread.FLOWLET, tmp_path, ipv6=ipv6, flowlet_gap=50)
    leaf.now = 1000
    taken: list[int] = []
    for _ in range(32):
        flowlet = {leaf.port(psn) for psn in range(4)}
        leaf.now += 50
        flowlet.add(leaf.port())
        assert len(flowlet) == 1, "a pause as long as the gap does not end it"
        leaf.now += 51
        taken += flowlet
    assert set(taken) == {2, 3, 4, 5}


def test_queue_lengths_are_refused_where_nobody_keeps_them() -> None:
    with pytest.raises(InputError, match="bmv2 keeps no lengths of queues in registers of themis_s_adaptive_n16"):
        targets.check_queue_lengths("bmv2", ThemisSpec(mode=Mode.SOURCE, spread=Spread.ADAPTIVE))
    targets.check_queue_lengths("embedded", ThemisSpec(mode=Mode.SOURCE, spread=Spread.ADAPTIVE))
    targets.check_queue_lengths("bmv2", ThemisSpec())


def test_the_paths_of_a_class_have_strides() -> None:
    """How far back the PSN before is that took the same path: of 256, three paths get 86, 85 and 85."""
    entries = path_set_entries(ThemisSpec(evidence=Evidence.CLASSES), PathSet(0, (1, 1, 1)))
    strides = [entry.action.args["stride"] for entry in entries]
    assert strides == [1, 4, 4, *[3] * 253]
    (alone,) = path_set_entries(ThemisSpec(evidence=Evidence.CLASSES), PathSet(0, (1,)))
    assert alone.action.args == {"path": 0, "stride": 1}


@pytest.mark.sample(2)
@pytest.mark.parametrize("ip", ["4", "6", "both"])
@pytest.mark.parametrize(
    ("mode", "evidence"), [*((mode, Evidence.QUEUE) for mode in Mode), (Mode.BOTH, Evidence.CLASSES)]
)
def test_random_traffic_reaches_every_verdict(mode: Mode, evidence: Evidence, ip: str, tmp_path: Path) -> None:
    """What differential tests send is the same for a seed, and comes to all that the program does."""
    spec = small(connections=6, mode=mode, evidence=evidence, ip=ip)
    model = Model(build(spec, tmp_path, use_p4c=False).compiled.program)
    first, again = (RandomTraffic(spec, 7) for _ in range(2))
    assert first.setup() == again.setup()
    for event in first.setup():
        if isinstance(event, Request):
            model.insert(event.entry)
        elif isinstance(event, Mirroring):
            model.set_clone_session(event.session)
    ports: set[int] = set()
    for event, same in zip(itertools.islice(first.packets(), 3000), again.packets(), strict=False):
        assert event == same
        if isinstance(event, Packet):
            ports |= {port for port, _ in model.process(event.port, event.frame)}
    assert len(ports) > 3
    if spec.filters:
        counted = [0] * 16
        for index, value in enumerate(model.counters("blocked_nack.verdicts")):
            counted[index % 16] += value.packets
        # ARRIVED and OVERTAKEN are of packets that come between the passes of a NACK; here, nothing does.
        wanted = [1, 2, 3, 4, 5, 8, 9] if spec.by_class else [0, 1, 2, 3, 4, 5, 8, 9]
        assert [number for number, count in enumerate(counted) if count] == wanted


def two_tiers(low: int) -> tuple[Tier, Tier]:
    """A leaf and a spine of four next hops each; the spine takes the hash's bits from ``low`` on."""
    return Tier("leaf", 2, 0), Tier("spine", 2, low)


@pytest.mark.parametrize(("ip", "network"), [("4", 0), ("6", IPV6_NETWORK), ("both", 0), ("both", IPV6_NETWORK)])
def test_a_path_map_reaches_all_paths(ip: Literal["4", "6", "both"], network: int, tmp_path: Path) -> None:
    """Through two tiers of ECMP, the PSNs of a connection take as many paths as there are, each PSN always the same."""
    spec = ThemisSpec(**SMALL | {"paths": 16}, mode=Mode.SOURCE, tiers=3, ip=ip)
    here, away = network | ipv4("10.0.0.1"), network | ipv4("10.1.0.1")
    leaf, spine = (Model(build(spec, tmp_path, use_p4c=False).compiled.program) for _ in range(2))
    tiers = two_tiers(4)
    for switch, tier in ((leaf, tiers[0]), (spine, tiers[1])):
        routes = [Route(prefix(away, 0), 2, 1 << tier.bits, tier.shift)]
        switch.insert(*routing(routes, [NextHop(p, p, 1, 2) for p in range(2, 6)]))
    deltas = path_map(tiers, ipv6=network > 0)
    assert len(deltas) == 16
    assert deltas[0] == 0
    assert max(deltas) < 1 << 14
    connection = Connection(Peer(here, 7), Peer(away, 9))
    leaf.insert(*path_set_entries(spec, PathSet.equal(1, 16)), *path_map_entries(spec, 1, deltas))

    def path(psn: int, source_port: int) -> int:
        headers = ip_header(here, away), UDP(source_port), BTH(Opcode.SEND_MIDDLE, 9, psn)
        ethernet = Ethernet(1, 2, places_for(away).ether_type)
        ((up, frame),) = leaf.process(0, RocePacket(ethernet, *headers, payload=bytes(8)).sealed().to_bytes())
        ((on, _),) = spine.process(0, frame)
        return (up - 2) | (on - 2) << 2

    for source_port in (49152, 51000, 65535):
        base = path(0, source_port)
        leaf.insert(spray_entry(spec, connection, 1))
        taken = [path(psn, source_port) for psn in range(32)]
        assert taken == [base ^ psn % 16 for psn in range(32)], "paths are counted from the base, by XOR"
        leaf.delete(spray_entry(spec, connection, 1))


def test_a_tier_whose_hash_depends_on_another_is_named() -> None:
    with pytest.raises(InputError, match="tier spine: its bits of the hash depend on those of the tiers before it"):
        path_map(two_tiers(0))
    with pytest.raises(InputError, match="tier spine"):
        path_map(two_tiers(1))


class Destination:
    """Themis-D over two paths, with one connection to the host behind port 0.

    A queue of sixteen PSNs in four banks takes a NACK four or five passes.
    """

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **fields: Any) -> None:
        spec = ThemisSpec(**SMALL | fields, mode=Mode.DESTINATION)
        self.model = Model(build(spec, tmp_path, use_p4c=False).compiled.program)
        self.requester, self.responder = Peer(ipv4("10.1.0.1"), 7), Peer(ipv4("10.0.0.1"), 9)
        connection = Connection(self.requester, self.responder)
        hops = [NextHop(0, 0, 1, 2), NextHop(2, 2, 1, 2)]
        self.model.insert(
            *routing([Route("10.0.0.1/32", 0), Route("10.1.0.0/16", 2)], hops),
            *path_set_entries(spec, PathSet.equal(1, 2)),
            *filter_entries(spec, connection, 1, index=0, epoch=1, port=0),
        )
        for session in clone_sessions(spec):
            self.model.set_clone_session(session)
        self.between: list[int] = []
        """PSNs of requests that arrive between the first and the second pass of the next NACK."""
        ingress = v1model._Run._ingress

        def interrupted(run: Any, arrival: Any) -> None:
            if arrival.instance_type == v1model.RECIRCULATED and self.between:
                psns, self.between = self.between, []
                waiting = [
                    replace(arrival, data=self.request(psn), port=2, instance_type=0, preserved=[]) for psn in psns
                ]
                run._arrivals.extend([*waiting, arrival])
            else:
                ingress(run, arrival)

        monkeypatch.setattr(v1model._Run, "_ingress", interrupted)

    def request(self, psn: int) -> bytes:
        """A request of the connection."""
        headers = Ethernet(1, 2), IPv4(self.requester.ip, self.responder.ip), UDP()
        bth = BTH(Opcode.SEND_MIDDLE, self.responder.qp, psn)
        return RocePacket(*headers, bth, payload=bytes(8)).sealed().to_bytes()

    def arrive(self, *psns: int) -> list[int]:
        """Requests arrive; the PSNs of the NACKs that the switch makes."""
        return [psn for one in psns for psn in self._nacks(self.model.process(2, self.request(one)))]

    def nack(self, psn: int) -> list[int]:
        """A NACK of the host; the PSNs of NACKs that leave for the requester."""
        headers = Ethernet(1, 2), IPv4(self.responder.ip, self.requester.ip), UDP(49152)
        bth = BTH(Opcode.ACKNOWLEDGE, self.requester.qp, psn)
        return self._nacks(self.model.process(0, RocePacket(*headers, bth, aeth=AETH(0x60, 3)).sealed().to_bytes()))

    def _nacks(self, outputs: list[tuple[int, bytes]]) -> list[int]:
        return [parse(frame).bth.psn for port, frame in outputs if port == 2]


@pytest.mark.parametrize(("variant", "spurious"), [(None, []), (Variant.LATE_COMPENSATION, [2])])
def test_the_listing_compensates_what_has_arrived(
    variant: Variant | None, spurious: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sections 3.3 and 3.4 to the letter: 2 has come before NACK(2) does, and 4 is taken for the proof of its loss."""
    leaf = Destination(tmp_path, monkeypatch, variant=variant)
    assert leaf.arrive(0, 1, 3, 2) == []
    assert leaf.nack(2) == []
    assert leaf.arrive(4) == spurious


def test_a_nack_that_dequeues_takes_the_evidence_of_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two holes in a row: the NACK for the first takes the evidence for the second out of the queue."""
    for variant, second in ((None, []), (Variant.DESTRUCTIVE_QUEUE, [3])):
        leaf = Destination(tmp_path, monkeypatch, variant=variant)
        leaf.arrive(0, 1, 4, 2, 3)
        assert leaf.nack(2) == []
        assert leaf.nack(3) == second, "3 came behind 4, which may be forgotten"


@pytest.mark.parametrize(
    ("before", "between", "passes", "later"),
    [
        ((), (2,), [], []),  # it arrives: blocked, and not armed
        ((), (4,), [2], []),  # a PSN of its path overtakes it: the NACK itself passes, and no other is made
        ((), (4, 2), [], []),  # it was late for good
        ((), (5,), [], [2]),  # of another path: blocked, and armed
        ((4,), (6,), [2], []),  # lost already: one NACK, not two
        ((2, 0, 0, 0, 0), (4,), [], []),  # here already, in an older row
    ],
)
def test_what_arrives_between_the_passes_of_a_nack_counts(
    before: tuple[int, ...],
    between: tuple[int, ...],
    passes: list[int],
    later: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leaf = Destination(tmp_path, monkeypatch)
    leaf.arrive(*range((1 << 24) - 14, 1 << 24), 0, 1, 3, *before)
    leaf.between = [*between]
    assert leaf.nack(2) == passes
    assert leaf.between == [], "the NACK has gone round"
    assert leaf.arrive(8, 10) == later


@pytest.mark.parametrize("evidence", list(Evidence))
def test_verdicts_are_shown_by_the_names_that_programs_count_them_under(evidence: Evidence) -> None:
    text = render(compose(ThemisSpec(evidence=evidence))).text
    enum = re.search(r"enum bit<4> verdict_t \{(.*?)\n\}", text, re.DOTALL)
    assert enum is not None
    counted = {name: int(number) for name, number in re.findall(r"^ +(\w+) += (\d+)", enum[1], re.MULTILINE)}
    assert counted
    assert counted.items() <= {verdict.name: verdict.value for verdict in Verdict}.items()
    shown = {verdict for verdicts in TALLIES.values() for verdict in verdicts}
    assert {verdict.name for verdict in shown} >= counted.keys()
