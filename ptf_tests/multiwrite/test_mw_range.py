"""How far a source may run ahead."""

from __future__ import annotations

from writes import SourceTest


class ExactlyN(SourceTest):
    """N packets are taken; the next one is dropped in silence until the first is everywhere, and then taken."""

    def runTest(self) -> None:
        context = self.served()
        count = self.spec.slots
        for psn in range(count):
            self.posts(self.write(context, psn, self.bits([2])), {2: psn})
        beyond = self.write(context, count, self.bits([3]))
        self.refused(self.ports[1], beyond.packet.to_bytes(), "CheckOrder.ahead")
        self.says(context, 2, 0, 1)
        self.posts(beyond, {3: 0})
        further = self.write(context, count + 1, self.bits([3]))
        self.refused(self.ports[1], further.packet.to_bytes(), "CheckOrder.ahead")


class RoomIsFreedByTheLastOfItsSet(SourceTest):
    """A packet's words are free when the last of its destinations has acknowledged it, and not before."""

    def runTest(self) -> None:
        context = self.served()
        count = self.spec.slots
        self.posts(self.write(context, 0, self.bits([2, 3, 4])), {2: 0, 3: 0, 4: 0})
        for psn in range(1, count):
            self.posts(self.write(context, psn, self.bits([3])), {3: psn})
        self.says(context, 3, count - 1, None)
        self.says(context, 4, 0, None)
        beyond = self.write(context, count, self.bits([3]))
        self.refused(self.ports[1], beyond.packet.to_bytes(), "CheckOrder.ahead")
        self.says(context, 2, 0, count)
        self.posts(beyond, {3: count})


class RangesWrap(SourceTest):
    """The range goes on over the wrap of the source's PSNs."""

    def runTest(self) -> None:
        count = self.spec.slots
        context = self.served(first_psn=(1 << 24) - count // 2)
        for psn in range(count):
            self.posts(self.write(context, psn, self.bits([2])), {2: psn})
        beyond = self.write(context, count, self.bits([2]))
        self.refused(self.ports[1], beyond.packet.to_bytes(), "CheckOrder.ahead")
        self.says(context, 2, count - 1, count)
        self.posts(beyond, {2: count})
