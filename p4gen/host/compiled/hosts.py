"""The hosts of a compiled world, with its loop, and who does what compiled code asks for."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from p4gen.compiled import frames, machine
from p4gen.compiled.freezing import State
from p4gen.compiled.memory import PROBLEMS, Ask, world
from p4gen.host.compiled.loop import CompiledLoop
from p4gen.host.compiled.nics import CompiledNic
from p4gen.host.compiled.pairs import CompiledPair
from p4gen.host.compiled.records import Frames
from p4gen.host.transport.nic import BURST

Method = Callable[[Any, int, int], int]
_CALLBACK: Final = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)


class CompiledHosts:
    """Up to ``hosts`` hosts. Alone, their frames go to the ``line`` of their NICs, or are collected; in a network
    (``p4gen.net.world``), over its directions.

    ``frame`` is the most bytes of a frame, ``burst`` the number of packets that a NIC gives to its line at once. The
    other arguments are the numbers of a network's directions, switches, and ports of switches.
    """

    def __init__(
        self, frame: int, hosts: int, *, burst: int = BURST, directions: int = 0, switches: int = 0, outputs: int = 0
    ) -> None:
        self.frames = Frames(world(frame, directions, switches, outputs, hosts))
        self.world = self.frames.world
        self._counts = hosts, switches, directions
        self.loop = CompiledLoop(self.world)
        self.nics: list[CompiledNic] = []
        self.pairs: list[CompiledPair] = []
        self.after_action: list[Callable[[], None]] = []
        """What has to be done after an action of Python's: switches take over new entries."""
        self._served: dict[int, tuple[Sequence[Any], Method]] = {}
        self.frames.answers = answer = _CALLBACK(self._asked)
        every = self.world.all
        every["burst"] = burst
        every["ask"] = ctypes.cast(answer, ctypes.c_void_p).value
        every["crc"] = machine.crc32().address("crc32_from")
        self.serve(self.pairs, _OF_PAIRS)
        self.serve(self.nics, _OF_NICS)
        self.loop.after_run.append(self._count)

    def add(self, mac: int, ip: int) -> CompiledNic:
        """One more host. Its NIC sends on the ``line`` that it is given."""
        nic = CompiledNic(self.frames, len(self.nics), mac, ip, self.loop, self.pairs)
        self.nics.append(nic)
        return nic

    def serve(self, objects: Sequence[Any], methods: Mapping[Ask, Method]) -> None:
        """When compiled code asks for one of ``methods``, its first argument is the number of the object whose method
        answers."""
        self._served |= {int(what): (objects, method) for what, method in methods.items()}

    def take_left(self) -> list[tuple[int, bytes]]:
        """The frames that have been collected, in order, each with the number of its host (``CompiledNic.collect``)."""
        every, left = self.world.all[0], self.world.left
        found = [(int(host), int(frame)) for host, frame in left[: int(every["left_used"])]]
        every["left_used"] = 0
        taken = [(host, self.frames.get(frame)) for host, frame in found]
        for _, frame in found:
            frames.give(self.world.place, frame)
        return taken

    def state(self) -> State:
        """The state of the world, as a part of a run."""
        return State(self.world, *self._counts)

    def restored(self) -> None:
        """The world has returned to an earlier state: its records get the addresses of Python's memory."""
        for pair in self.pairs:
            pair.find_memory()

    def _count(self) -> None:
        for pair in self.pairs:
            if pair.channel is not None:
                pair.channel.count()

    def _asked(self, what: int, who: int, one: int, two: int) -> int:
        """Do what compiled code asks for. An exception ends the run: it must not pass through compiled code."""
        try:
            if what == Ask.ACTION:
                self.loop.act(who)
                for follow in self.after_action:
                    follow()
                return 0
            if what == Ask.PROBLEM:
                raise AssertionError(PROBLEMS[who])
            objects, method = self._served[what]
            return method(objects[who], one, two)
        except BaseException as error:
            self.loop.fail(error)
            return 0


_OF_PAIRS: Final[dict[Ask, Method]] = {
    Ask.SENT: CompiledPair.sent,
    Ask.RECEIVED: CompiledPair.received,
    Ask.FAIL: CompiledPair.break_off,
    Ask.TEMPLATE: CompiledPair.fill_template,
    Ask.WRITE: CompiledPair.begin_write,
    Ask.OVERRUN: CompiledPair.overrun,
    Ask.EXECUTE: CompiledPair.execute,
    Ask.REPEAT: CompiledPair.repeat,
    Ask.CNP: CompiledPair.next_cnp,
    Ask.ENDED: CompiledPair.end_run,
    Ask.UNEXPECTED: CompiledPair.refuse_run,
    Ask.ANSWER: CompiledPair.next_response,
}
_OF_NICS: Final[dict[Ask, Method]] = {Ask.REFUSED: CompiledNic.refused, Ask.TRANSMIT: CompiledNic.transmit}
