"""The scopes in which listed faults of Themis's programs show after few states, by their names in ``verify.ladder``."""

from __future__ import annotations

from collections.abc import Mapping

from p4gen.papers.themis.spec import ThemisSpec

_SCOPES = {
    "a loss": ("never-armed", "all-are-late", "blocked-stays-a-nack", "nacks-sprayed"),
    "a duplicate": ("nack-is-recorded", "late-goes-back"),
    "an odd port": ("map-adds",),
    "earlier connections": ("blocked-epoch-ignored",),
    "PSNs wrap, a loss": ("order-epoch-ignored",),
    "a loss and a duplicate": ("gap-stays-open", "any-copy-closes"),
    "PSNs wrap, a loss and a corruption": ("bad-icrc-believed",),
    "two connections, a loss": ("orders-shared",),
    "five packets, a loss and a duplicate": ("new-verdict-keeps-block",),
    "eight packets, a loss": ("unsure-of-closed-gaps",),
    "seven packets, two losses": ("gap-of-one", "forgotten-is-blocked"),
    "seven packets, three losses": ("unsure-goes-back",),
    "nine packets, two losses": ("unsure-not-kept",),
}


def first_scopes(_: ThemisSpec) -> Mapping[str, str]:
    """By fault, the scope that is searched first."""
    return {name: scope for scope, names in _SCOPES.items() for name in names}
