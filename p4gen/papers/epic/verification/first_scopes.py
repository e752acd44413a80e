"""The scopes in which listed faults of EPIC's programs show after few states, by their names in ``verify.ladder``."""

from __future__ import annotations

from collections.abc import Mapping

from p4gen.papers.epic.spec import EpicSpec, Mode

_II = {
    "a forgery": ("any-port",),
    "messages of three packets": ("middle-not-parsed",),
    "a duplicate": ("stale-starts-afresh",),
    "a corruption": ("corruption-laundered",),
    "two groups of two": ("slot-off-by-one",),
    "five packets, window 4, a loss": ("filter-lets-all-pass", "filter-skipped"),
    "broadcast on star-3, a loss": ("least-of-plain-numbers",),
    "broadcast on star-3, a duplicate": ("ack-takes-back",),
    "broadcast on star-3, rank 1 is the root": ("root-not-in-code",),
    "broadcast on star-3, messages of two packets, a loss": (
        "progress-not-noticed", "node-not-kept", "node-keeps-its-psn",
    ),
    "broadcast on star-3, Go-Back-N, window 4, two losses": ("nak-forwarded-too-early", "own-psn-goes-on"),
    "two broadcasts on star-3, Go-Back-N, window 4, a loss": (
        "nak-lost-behind-ack", "nak-with-the-psn-before", "nak-behind-equal-ack",
    ),
    "two broadcasts on star-3, refined, two roots, window 4, a loss": ("oldest-not-looked-at",),
    "allreduce and reduce on tree-3-2, refined, window 4, a loss": ("anything-is-announced", "everything-goes-round"),
    "four calls, a duplicate": ("last-announcement-wins",),
    "two groups, broadcast, a loss": ("acks-per-switch",),
    "an earlier group, a loss": ("epoch-ignored", "announcement-of-any-epoch"),
    "an earlier group, window 4, five packets, a loss": ("filter-forgets-the-epoch",),
    "an earlier group whose broadcast was cut short, window 4, a loss": ("zero-is-announced",),
    "broadcast and allreduce, slots idle since 0xfffffe": ("broadcast-takes-no-slot",),
}  # fmt: skip
_III = {
    "a forgery": ("any-port",),
    "a corruption": ("corruption-laundered",),
    "two groups of two": ("shared-slots",),
    "five packets, window 4, a loss": (
        "one-packet-bursts", "cursor-stands-still", "limiter-stays", "later-gap-unasked", "gap-unreported",
        "gap-of-one", "all-since-resent", "resent-without-ackreq",
    ),
    "five packets, window 4, two losses": ("second-gap-silent",),
    "messages of three packets, one ACK each, a loss": ("ack-for-all",),
    "flow acks, window 2, seven packets": ("gap-after-not-ready",),
    "reduce on star-3, rank 1 is the root": ("root-forgotten",),
    "four calls, refined, a loss": ("other-range-stays",),
    "an earlier group, a loss": ("epoch-is-one", "range-epoch-ignored"),
    "an earlier group that was cut short, window 4": ("epoch-ignored",),
    "slots idle since 0xfffffe": ("idle-slot-is-joined",),
    "broadcast on star-3, window 4, idle since 0xfffffe": (
        "cursor-sends-the-unsent", "sent-before-the-wrap-counts", "cursor-fills-a-gap",
    ),
    "refined, flow acks, a loss and a duplicate": ("old-ack-moves-the-range-too-far",),
    "star-4, no faults": ("last-contribution-not-folded", "fold-skips-last-edge"),
    "star-4, a loss": ("last-contribution-not-stored",),
}  # fmt: skip
_I = {
    "a forgery": ("any-port",),
    "five packets, window 4, a loss": ("resent-to-all",),
    "messages of three packets": ("ready-not-advanced", "opcode-forgotten"),
    "star-4, no faults": ("fold-skips-last-edge",),
    "a loss": ("emits-what-is-not-next",),
    "two slots, a duplicate": ("range-too-small", "range-starts-at-the-acked", "no-ackreq-at-the-end"),
    "two slots, flow acks": (
        "outputs-are-all",
        "range-off-by-one",
        "range-never-moves",
        "any-range",
        "rnr-never",
        "rnr-forgets-psn",
    ),
    "two slots, flow acks, a duplicate": ("old-ack-wins",),
    "four slots, messages of two packets, flow acks": ("gap-after-not-ready",),
    "two calls, an earlier group": ("emission-epoch-ignored",),
    "allreduce on tree-3-2, no faults": ("cursors-are-answers",),
}
_BY_MODE: Mapping[Mode, Mapping[str, tuple[str, ...]]] = {Mode.I: _I, Mode.II: _II, Mode.III: _III}


def first_scopes(spec: EpicSpec) -> Mapping[str, str]:
    """By fault, the scope that is searched first."""
    return {name: scope for scope, names in _BY_MODE.get(spec.mode, {}).items() for name in names}
