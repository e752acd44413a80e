"""Errors of the behavioural model."""

from __future__ import annotations

from p4gen.errors import InputError


class ControlError(InputError):
    """A control-plane request that does not fit the program, or the state of the switch.

    The message is one line that names the object and, if there are any, the valid alternatives. Nothing has been
    changed.
    """
