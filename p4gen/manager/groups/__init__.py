"""Groups in the manager: membership, life cycle, leases, repair."""
