"""The parts of a simulated network: event loop, links, nodes, faults, and their states as data."""
