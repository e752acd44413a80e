"""Instruction memory of a stage, as p4c fills it.

A word of instructions has two slots for actions of each gress, if no container is written by both. The first slot of
the first word stays empty, and is for actions that do nothing (p4c, InstructionMemory::find_row_and_color).
"""

from __future__ import annotations

from collections.abc import Iterable

from p4gen.chips.tna.resources.access import Bits, meet

_SLOTS = 2


class InstructionMemory:
    """The instruction words of one stage, by gress."""

    def __init__(self) -> None:
        self.words: dict[str, list[list[Bits]]] = {}
        """By gress: for each word what the actions in it write. The first word has one slot beside the empty one."""

    def copy(self) -> InstructionMemory:
        """A copy that can be filled without changing this one."""
        found = InstructionMemory()
        found.words = {gress: [list(word) for word in words] for gress, words in self.words.items()}
        return found

    @property
    def used(self) -> int:
        """How many words hold an action."""
        return max(map(len, self.words.values()), default=0)

    def add(self, gress: str, actions: Iterable[Bits]) -> int:
        """Place a table's actions, by what each writes. Returns in how many words they stand."""
        words = self.words.setdefault(gress, [])
        taken: set[int] = set()
        idle = False
        for writes in actions:
            if not writes and not idle:
                # Only the first action that does nothing goes there: the driver distinguishes others by their words.
                idle = True
                words.extend([[]] if not words else [])
                taken.add(0)
                continue
            number = next((i for i, word in enumerate(words) if self._fits(i, word, writes)), len(words))
            if number == len(words):
                words.append([])
            words[number].append(writes)
            taken.add(number)
        return len(taken)

    @staticmethod
    def _fits(number: int, word: list[Bits], writes: Bits) -> bool:
        return len(word) < _SLOTS - (number == 0) and not any(meet(writes, other) for other in word)
