"""The manager's service over gRPC, and its client."""
