"""Groups in the manager: membership, life, leases, repair."""
