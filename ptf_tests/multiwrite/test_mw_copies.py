"""Which edges get a copy of a write."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from writes import INVALID, WriteTest

from p4gen.groups import NextHop, Route, SwitchConfig
from p4gen.groups.config import routing
from p4gen.model.entries import Exact
from p4gen.papers.multiwrite.control import configuration
from p4gen.ptf.scenario import Output


class OneCopyAPort(WriteTest):
    """Of all destinations behind one edge together, one copy; the union of edges, each once."""

    def runTest(self) -> None:
        far = 0b1100 << self.spec.edges - 1  # two ranks that the last edge leads to, over a switch
        context = self.served(behind={self.spec.edges: far})
        one, two = far & -far, far
        self.posts(self.write(context, 0, one), {self.spec.edges: 0})
        self.posts(self.write(context, 1, two), {self.spec.edges: 1})
        self.posts(self.write(context, 2, two | self.bits([2, 3])), {2: 0, 3: 0, self.spec.edges: 2})


class CopiesTooManyAreCounted(WriteTest):
    """Copies for edges that a write does not name end at egress, also those for edges that its context has not."""

    def unfit(self) -> str | None:
        return None if self.spec.prunes else "there are no copies too many"

    def runTest(self) -> None:
        context = self.star()
        context = replace(context, edges=context.edges[:-1])
        self.serve(context)
        self.posts(self.write(context, 0, self.bits([2])), {2: 0})
        self.equal("dropped", self.drops(), {"PrunePort.not_named": self.spec.edges - 1})


class EdgesThatAreNotServed(WriteTest):
    """A copy for an edge whose entry is gone is dropped for that."""

    def runTest(self) -> None:
        context = self.served()
        entries = configuration(self.spec, [context], self.ports).entries
        (gone,) = (e for e in entries if e.action.name == "set_endpoints" and e.match["edge"] == Exact(2))
        self.control.delete(gone)
        self.posts(self.write(context, 0, self.bits([2, 3])), {3: 0})
        self.equal("dropped", self.drops()["TranslateHeader.unknown_edge"], 1)


class OneBitIsAPlainWrite(WriteTest):
    """Of one destination, one copy, and it is a plain WRITE."""

    def runTest(self) -> None:
        context = self.served()
        for i, edge in enumerate(self.others(context)):
            self.posts(self.write(context, i, self.bits([edge])), {edge: 0})


class AllBitsIsABroadcast(WriteTest):
    """With all bits set, everybody but the source gets a copy."""

    def runTest(self) -> None:
        context = self.served(source=1)
        everybody = self.others(context)
        for psn in range(2):
            self.posts(self.write(context, psn, self.bits(everybody)), dict.fromkeys(everybody, psn))


class _Refused(WriteTest):
    """A write whose bitmap is wrong: the source is told, and nothing else happens."""

    def told(self, bitmap: int, reason: str, *, first_hop: bool = True) -> None:
        context = self.served(first_hop=first_hop)
        for psn in (0, 3):
            write = self.write(context, psn, bitmap)
            answer = [self.reply(context, write.packet, 0, INVALID)] if first_hop else []
            self.refused(self.ports[1], write.packet.to_bytes(), f"ReachPorts.{reason}", answer)
        self.posts(self.write(context, 0, self.bits([2])), {2: 0})


class EmptyBitmapIsRefused(_Refused):
    """A write to nobody."""

    def runTest(self) -> None:
        self.told(0, "empty_bitmap")


class OwnBitIsRefused(_Refused):
    """A write of a source to itself, and others."""

    def runTest(self) -> None:
        self.told(self.bits([1, 2]), "unreachable")


class UnknownBitIsRefused(_Refused):
    """A write to a rank that no edge leads to, and others."""

    def unfit(self) -> str | None:
        return "every bit has an edge" if self.spec.edges == self.spec.receivers else None

    def runTest(self) -> None:
        self.told(1 << (self.spec.receivers - 1) | self.bits([2]), "unreachable")


class SwitchesAreNotTold(_Refused):
    """Between switches a wrong bitmap is dropped without a word: it is not for a switch to give up a connection."""

    def runTest(self) -> None:
        self.told(0, "empty_bitmap", first_hop=False)


class RefusalClaimsNothing(WriteTest):
    """A NAK acknowledges everything before its PSN, so a refusal's PSN is the first one that is not everywhere; where
    each hop repairs, the first one that has not come."""

    def runTest(self) -> None:
        context = self.served()
        for psn in range(3):
            self.posts(self.write(context, psn, self.bits([2, 3])), {2: psn, 3: psn})
        self.says(context, 2, 2, None)
        self.says(context, 3, 0, 1)
        write = self.write(context, 3, 0)
        told = [self.reply(context, write.packet, 3 if self.spec.holds else 1, INVALID)]
        self.refused(self.ports[1], write.packet.to_bytes(), "ReachPorts.empty_bitmap", told)


class EverySubsetOfFourEdges(WriteTest):
    """All 15 sets of four edges."""

    least_edges = 5

    def runTest(self) -> None:
        context = self.served(source=self.spec.edges - 1)
        counted = dict.fromkeys(range(1, 5), 0)
        sets = [edges for size in range(1, 5) for edges in combinations(range(1, 5), size)]
        for psn, edges in enumerate(self.random.sample(sets, len(sets))):
            self.posts(self.write(context, psn, self.bits(edges)), {edge: counted[edge] for edge in edges})
            for edge in edges:
                self.says(context, edge, counted[edge], psn + 1 if edge == edges[-1] else None)
                counted[edge] += 1


class SourceGetsNoCopy(WriteTest):
    """Whatever the destinations, nothing comes back to the source."""

    def runTest(self) -> None:
        for source in range(self.spec.edges):
            self.control.reset()
            context = self.served(source=source)
            everybody = self.others(context)
            self.post(self.write(context, 0, self.bits(everybody)))
            ports = sorted(output.port for output in self.outputs())
            self.equal("ports that have copies", ports, sorted(self.ports[edge] for edge in everybody))


class OrdinaryWritesPass(WriteTest):
    """What is for no endpoint of the switch is routed, if there is a route, and has no other effect."""

    over_ipv6 = False

    def runTest(self) -> None:
        context = self.served()
        write = self.write(context, 0, self.bits([2]))
        elsewhere = write.packet.ip.dst + 0x4000
        packet = replace(write.packet, ip=replace(write.packet.ip, dst=elsewhere)).sealed()
        self.refused(self.ports[1], packet.to_bytes(), "Forward.no_route")
        hop = NextHop(1, self.ports[3], src_mac=0x02BB00000001, dst_mac=0x02CC00000001)
        self.install(SwitchConfig(routing([Route("10.0.64.0/18", 1)], [hop]), (), ()))
        self.send(self.ports[1], packet.to_bytes())
        ip = replace(packet.ipv4, ttl=packet.ipv4.ttl - 1)
        routed = replace(packet, eth=replace(packet.eth, dst=hop.dst_mac, src=hop.src_mac))
        routed = replace(routed, ip=replace(ip, checksum=ip.right_checksum()))
        self.expect([Output(self.ports[3], routed.to_bytes())])
