"""Layouts of Themis-D's registers. All PSNs of a connection that its hosts are sent pass through them.

The epoch in a word is the generation of the connection that it belongs to; a word of another epoch counts as empty.
"""

from __future__ import annotations

from p4gen.layout import Field, Word
from p4gen.papers.themis.spec import ThemisSpec

_EPOCH = Field("epoch", 8, "epoch")


FLOWLET = Word(Field("time", 48, "time of its last packet, us"), Field("choice", 16, "next hop"))
"""SprayPath's word for flowlets, of all connections with one hash."""


def tail(spec: ThemisSpec) -> Word:
    """RecordPsn's word: how far a queue has been filled, and where its next PSN goes."""
    if spec.narrow:
        return NARROW_TAIL
    return Word(
        _EPOCH,
        Field("filled", spec.queue.bit_length(), "PSNs in the queue"),
        Field("next", spec.queue.bit_length() - 1, "place of the next one"),
    )


def psns(spec: ThemisSpec) -> Word:
    """A place in a queue: a PSN that went to the host, and the path that it came by.

    The path is kept because a NACK is compared with many PSNs in one pass, but the table that knows a PSN's path can be
    looked up only once.
    """
    if spec.narrow:
        return NARROW_PSN
    return Word(Field("path", spec.path_bits, "path"), Field("psn", spec.psn_bits, "low bits of the PSN"))


ORDER = Word(
    _EPOCH,
    Field("newest", 24, "newest PSN of all"),
    Field("late", 24, "newest that came after a larger one"),
    Field("unsure", 24, "newest that was in a forgotten gap"),
)
"""RecordClass's word for a connection, the same for all its paths."""

NEWEST = Word(_EPOCH, Field("path_set", 8, "path set"), Field("psn", 24, "newest PSN"))
"""RecordClass's word for a class, the PSNs of one path. With other paths, a connection has other classes: a word of
another path set counts as empty, too."""

GAP = Word(Field("start", 24, "newest PSN before the gap"), Field("end", 24, "newest PSN in it"))
"""RecordClass's word for a class: its newest gap, of PSNs that had not passed when a later one of their path did. All
PSNs of the class after ``end`` have passed; none is missing if ``start`` and ``end`` are equal."""

_SERIAL = (Field("psn", 24, "PSN"), Field("known", 8, "1, or 0 of a word never written"))
NARROW_MARK = Word(*_SERIAL, Field("owner", 24, ""), _EPOCH)
"""Where registers have words of two numbers: a PSN as a serial number, and whose it is."""
NARROW_CLASS = Word(*_SERIAL, _EPOCH, Field("path_set", 8, "path set"), Field("path", 16, "path"))
NARROW_TAIL = Word(Field("newest", 32, "place of the newest PSN"), Field("owner", 24, ""), _EPOCH)
NARROW_PSN = Word(Field("psn", 24, "PSN"), Field("path", 8, "path"))
NARROW_BLOCKED = Word(
    Field("psn", 24, "PSN"),
    Field("state", 8, "what has become of its NACK"),
    _EPOCH,
    Field("path_set", 8, "path set"),
    Field("path", 16, "path"),
)
NARROW_GAP = Word(
    Field("start", 24, "newest PSN before the gap"),
    Field("start_known", 8, ""),
    Field("end", 24, "newest PSN in it"),
    Field("end_known", 8, ""),
)
"""``GAP`` of two serial numbers."""


def newest(spec: ThemisSpec) -> Word:
    """RecordClass's word for how far a class has come."""
    return NARROW_CLASS if spec.narrow else NEWEST


def gap(spec: ThemisSpec) -> Word:
    """Its word for a class's newest gap."""
    return NARROW_GAP if spec.narrow else GAP


def blocked(spec: ThemisSpec) -> Word:
    """BlockedNack's word: the NACK that is being judged or has been blocked (BePSN and Valid of section 3.4)."""
    if spec.narrow:
        return NARROW_CLASS if spec.by_class else NARROW_BLOCKED
    return Word(
        _EPOCH,
        Field("state", 2, "state of the NACK"),
        Field("path", spec.path_bits, "path of BePSN"),
        Field("psn", 24, "BePSN"),
    )


def layouts(spec: ThemisSpec) -> dict[str, Word]:
    """The layouts of all words, by the last part of their registers' names."""
    return {
        "blocked": blocked(spec),
        "flowlets": FLOWLET,
        "gaps": gap(spec),
        "largest": NARROW_MARK,
        "newest": newest(spec),
        "order": ORDER,
        "psns": psns(spec),
        "tails": tail(spec),
    }
