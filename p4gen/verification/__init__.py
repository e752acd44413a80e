"""``p4gen verify``: every reachable state of switches, hosts and a lossy network."""
