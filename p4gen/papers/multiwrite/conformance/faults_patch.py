"""Faults to seed into MultiWrite's programs that patch ICRCs."""

from __future__ import annotations

from functools import partial

from p4gen.ptf.mutations import Mutation

PROGRAM = "patch"
_fault = partial(Mutation, program=PROGRAM)
_BEHIND = "behind_data(meta.arrived.header_crc ^ header_crc);"

PATCH = (
    _fault(
        "patch-length-wrong",
        "PatchIcrc",
        _BEHIND,
        "behind_data(behind_data(meta.arrived.header_crc ^ header_crc));    // as if there were twice the data",
    ),
    _fault("patch-without-length", "PatchIcrc", _BEHIND, "(meta.arrived.header_crc ^ header_crc);"),
    _fault("patch-forgotten", "PatchIcrc", f"hdr.icrc.crc ^ {_BEHIND}", "hdr.icrc.crc;"),
    _fault("patch-of-data-forgotten", "PatchIcrc", f"hdr.icrc.crc ^ {_BEHIND}", _BEHIND),
    _fault("patch-from-nothing", "KeepHeaderCrc", "meta.arrived.header_crc = header_crc;", ""),
    _fault("patched-answers-unchecked", "CheckIcrc", "if (hdr.icrc.crc != expected)", "if (false)"),
    _fault("patched-answers-stale", "SetIcrc", "hdr.icrc.crc = icrc;", ""),
)
"""The faults, the modules that they are in, and what is put in whose place."""

FIRST = {
    "PatchIcrc": ("test_mw_icrc",),
    "KeepHeaderCrc": ("test_mw_icrc",),
}
"""Modules of scenarios that are likely to detect the faults of a module."""
