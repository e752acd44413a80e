"""The P4Runtime server: one device behind one gRPC address."""

from p4gen.p4rt.server.service import P4RuntimeServer, serve

__all__ = ["P4RuntimeServer", "serve"]
