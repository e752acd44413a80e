"""The compiled functions that Python calls, and the code that they call by address."""

from __future__ import annotations

import functools

from p4gen.compiled import channels
from p4gen.compiled.events import at
from p4gen.compiled.frames import give, take
from p4gen.compiled.links import arrive, deliver, transmit
from p4gen.compiled.nics import place_of, receive
from p4gen.compiled.pairs import acknowledge, answer, answer_by_python, kick
from p4gen.compiled.posting import forget_receives, post_receive, post_send
from p4gen.compiled.requester import drop_oldest, forget_again, resend
from p4gen.compiled.responder import take_first_kept
from p4gen.compiled.run import run
from p4gen.model.jit import crc, native

__all__ = [
    "acknowledge", "answer", "answer_by_python", "arrive", "at", "channels", "crc32", "deliver", "drop_oldest",
    "forget_again", "forget_receives", "give", "kick", "place_of", "post_receive", "post_send", "receive", "resend",
    "run", "take", "take_first_kept", "transmit",
]  # fmt: skip


@functools.cache
def crc32() -> native.Code:
    """The CRC-32 of ICRCs (``machine.crc_from``)."""
    text = crc.crc32(carryless=native.machine().carryless, continued=True)
    return native.load(text, native.cache_directory())[0]
