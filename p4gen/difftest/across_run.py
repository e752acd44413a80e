"""A complete differential test of two architectures' programs: both models, the first difference, and its reduction."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from p4gen.difftest.across import Across, Pair, Step, Tally
from p4gen.difftest.compare import Difference
from p4gen.difftest.events import Packet
from p4gen.difftest.family import traffic_of
from p4gen.difftest.reduce import minimise, shortest_tail
from p4gen.difftest.save import statements
from p4gen.errors import InputError
from p4gen.model import EngineName
from p4gen.p4.compile import compile_text
from p4gen.program import compose, render
from p4gen.ptf.mutations import Mutation
from p4gen.switch.pcap import write_pcap
from p4gen.vocabulary import ProgramSpec


@dataclass(frozen=True)
class Result:
    """The result. With a difference, ``reduced`` has as few steps as still show it."""

    tally: Tally
    seconds: float
    capabilities: dict[str, str]
    """What the tested program lacks, each with the reason."""
    difference: Difference | None = None
    found_after: int = 0
    reduced: tuple[Step, ...] = ()
    files: tuple[Path, ...] = ()


def reference_of(spec: ProgramSpec, arch: str) -> ProgramSpec:
    """The spec of the same program for another architecture, with ports of the same numbers. Raises ``InputError``."""
    last = spec.architecture.front_ports(spec.ports)[-1]
    fields = spec.model_dump(exclude={"arch", "ports", *spec.ARCH_FIELDS}) | {"arch": arch, "ports": last + 1}
    try:
        found = type(spec).model_validate(fields)
    except ValidationError as error:
        raise InputError(f"--against {arch}: there is no such program for it: {error.errors()[0]['msg']}") from None
    closed = found.architecture.reserved_ports.intersection(spec.architecture.front_ports(spec.ports))
    if closed:
        ports = ", ".join(map(str, sorted(closed)))
        raise InputError(f"--against {arch}: port {ports} is no port of hosts; compare {arch} against {spec.arch}")
    return found


@dataclass(frozen=True)
class Job:
    """A differential test of the program of ``tested`` against that of ``reference``. Programs and, for a difference,
    its files are written to ``folder``. ``fault`` is seeded into the program for the architecture ``faulty``."""

    reference: ProgramSpec
    tested: ProgramSpec
    seed: int
    packets: int
    folder: Path
    engine: EngineName = "interp"
    fault: Mutation | None = None
    faulty: str = ""
    progress: Callable[[Tally], None] | None = field(default=None, repr=False)

    def run(self) -> Result:
        """Run the test. Raises ``P4genError`` when a program does not compile."""
        started = time.monotonic()
        across = traffic_of(self.tested).across
        if across is None:
            raise InputError(f"{self.tested.program}: its family has no traffic for two architectures")
        traffic: Across = across(self.reference, self.tested, self.seed)
        reference, tested = ((spec, compile_text(*self._text(spec)).program) for spec in (self.reference, self.tested))
        pair = Pair(reference, tested, traffic, self.engine)
        found = pair.run(traffic.steps(), self.packets, self.progress)
        tally, lacked = pair.tally, dict(traffic.capabilities)
        if found is None:
            return Result(tally, time.monotonic() - started, lacked)
        pair.tally = Tally()

        def fails(steps: Sequence[Step]) -> bool:
            return pair.replay(steps) is not None

        steps = list(found.steps)
        shown = minimise(shortest_tail(steps, fails), fails) if fails(steps) else steps
        difference = pair.replay(shown) or found.difference
        after = sum(isinstance(step, Packet) for step in steps)
        files = self._save(pair, difference, shown)
        return Result(tally, time.monotonic() - started, lacked, difference, after, tuple(shown), files)

    def _text(self, spec: ProgramSpec) -> tuple[str, str]:
        """A program's text, in its file, and the file's name."""
        text = render(compose(spec)).text
        if self.fault is not None and self.faulty == spec.arch:
            text = self.fault.apply(text)
        file = self.folder / spec.arch / f"{spec.program}.p4"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return text, str(file)

    def _save(self, pair: Pair, difference: Difference, shown: Sequence[Step]) -> tuple[Path, ...]:
        """``difference.pcap``, ``.txt``, and ``.stf``, which the tested program should pass."""
        pcap, stf, text = (self.folder / f"difference.{suffix}" for suffix in ("pcap", "stf", "txt"))
        write_pcap(pcap, [step.frame for step in shown if isinstance(step, Packet)])
        note = f"p4gen difftest of {self.tested.program} against {self.reference.arch}, seed {self.seed}"
        note += f", fault {self.fault.name}@{self.faulty}" if self.fault else ""
        lines = [f"# {note}", f"# {difference.what}", *statements(pair.story(shown))]
        stf.write_text("\n".join(lines) + "\n", encoding="utf-8")
        story = [note, "", difference.what, *(f"  {line}" for line in difference.details), "", *_lines(shown)]
        text.write_text("\n".join(story) + "\n", encoding="utf-8")
        return pcap, stf, text


def _lines(steps: Sequence[Step]) -> Iterator[str]:
    for step in steps:
        yield f"{step}: {step.frame.hex()}" if isinstance(step, Packet) else f"{step}"
