"""Messages of P4Runtime and of the manager, a module for each package of Protobuf.

``scripts/protos`` makes ``descriptors.binpb`` from the .proto files: those of P4Runtime 1.4.1, which BMv2's server
speaks, google/rpc/status.proto, and the manager's own.
"""
