"""What p4gen changes in the environment of its process, and not in that of others."""

import os

# gRPC's C core writes to standard error by itself. What fails reaches us as a status, and is told in our own words; so
# it is silent unless its user says otherwise. It reads this when it is first imported.
_SILENCED = "GRPC_VERBOSITY" not in os.environ
os.environ.setdefault("GRPC_VERBOSITY", "NONE")


def child_environment() -> dict[str, str]:
    """The environment of programs that are not p4gen's: their gRPC logs as its user has it."""
    return {name: value for name, value in os.environ.items() if not (_SILENCED and name == "GRPC_VERBOSITY")}
